//! Which messages of a transcript form logical turns.

use crate::kind::Role;

/// Whether a tool's message ends the assistant block that it stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boundary {
    /// Tool and system messages are looked through.
    #[default]
    Neighbours,
    /// What the assistant says after a tool's message is a block of its own. User blocks are joined all the same:
    /// nothing that a user said is left out because of a tool.
    Tool,
}

/// A user block and the assistant block that answers it: positions of messages, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogicalTurn {
    /// At least one.
    pub user: Vec<usize>,
    /// At least one.
    pub assistant: Vec<usize>,
}

/// How a transcript divides. Every user and assistant message is in exactly one of the three lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// From left to right.
    pub pairs: Vec<LogicalTurn>,
    /// Assistant blocks that no user block stands before: transcript only.
    pub skipped: Vec<Vec<usize>>,
    /// User messages at the end that nobody has answered yet: transcript only until somebody does.
    pub unpaired: Vec<usize>,
}

/// Divides messages, given by their roles, in one pass. Tool and system messages are in no list.
pub fn windows(roles: impl IntoIterator<Item = Role>, boundary: Boundary) -> Windows {
    let mut found = Windows::default();
    let mut open = LogicalTurn::default();
    let mut leading = Vec::new();
    let mut tool_spoke = false;
    for (position, role) in roles.into_iter().enumerate() {
        match role {
            Role::Tool => tool_spoke = true,
            Role::System => {}
            Role::User => {
                found.close(&mut open, &mut leading);
                open.user.push(position);
                tool_spoke = false;
            }
            Role::Assistant => {
                let splits = boundary == Boundary::Tool && tool_spoke;
                if splits && (!open.assistant.is_empty() || !leading.is_empty()) {
                    found.close(&mut open, &mut leading);
                }
                if open.user.is_empty() {
                    leading.push(position);
                } else {
                    open.assistant.push(position);
                }
                tool_spoke = false;
            }
        }
    }
    found.close(&mut open, &mut leading);
    found.unpaired = open.user;
    found
}

impl Windows {
    /// Ends what is complete: an answered user block, or an assistant block that nobody asked for. A user block
    /// without an answer stays open.
    fn close(&mut self, open: &mut LogicalTurn, leading: &mut Vec<usize>) {
        if !open.assistant.is_empty() {
            self.pairs.push(std::mem::take(open));
        }
        if !leading.is_empty() {
            self.skipped.push(std::mem::take(leading));
        }
    }

    /// Blocks at the end that wait for an answer: none or one.
    pub fn unpaired_blocks(&self) -> usize {
        usize::from(!self.unpaired.is_empty())
    }
}
