//! Rows of the tool table about storing, changing and erasing single memories and links.

use waggle_memory::meta::KeyScopes;

use super::{Hints, ToolKind, ToolSpec};
use crate::mcp::tools::fields;

pub(super) const DECOMPOSE_AND_STORE: ToolSpec = ToolSpec {
    kind: ToolKind::DecomposeAndStore,
    name: "decompose_and_store",
    title: "Store a text in pieces",
    description: "Split a text into single memories and link them.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::ADDS,
    core: false,
    fields: &[fields::DECOMPOSE, fields::SCOPE],
};

pub(super) const DELETE_NODE: ToolSpec = ToolSpec {
    kind: ToolKind::DeleteNode,
    name: "delete_node",
    title: "Delete a memory",
    description: "Erase a memory for good: content, versions, aliases, evidence, links. To retire it but keep its \
                  history, set valid_to with update_node instead.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::DESTROYS,
    core: false,
    fields: &[fields::NODE_ID],
};

pub(super) const OBSERVE_CONVERSATION: ToolSpec = ToolSpec {
    kind: ToolKind::ObserveConversation,
    name: "observe_conversation",
    title: "Remember a turn",
    description: "Store a finished turn verbatim and extract decisions, preferences, facts. Call after turns \
                  worth keeping.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::ADDS,
    core: true,
    fields: &[fields::OBSERVE, fields::SCOPE, fields::OBSERVED_AT],
};

pub(super) const RESOLVE_CONFLICT: ToolSpec = ToolSpec {
    kind: ToolKind::ResolveConflict,
    name: "resolve_conflict",
    title: "Settle a conflict",
    description: "Settle a contradicts or updates edge: the winner stays, the other is closed; without winner both stay.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::ADDS_ONCE,
    core: true,
    fields: &[fields::RESOLVE],
};

pub(super) const STORE_EDGE: ToolSpec = ToolSpec {
    kind: ToolKind::StoreEdge,
    name: "store_edge",
    title: "Link two memories",
    description: "Link two memories. `updates` reads: source replaces target.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::ADDS_ONCE,
    core: true,
    fields: &[fields::STORE_EDGE],
};

pub(super) const STORE_NODE: ToolSpec = ToolSpec {
    kind: ToolKind::StoreNode,
    name: "store_node",
    title: "Remember one fact",
    description: "Store one atomic fact given as such; a duplicate returns the stored one.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::ADDS_ONCE,
    core: true,
    fields: &[fields::STORE_NODE, fields::SCOPE, fields::VALIDITY],
};

pub(super) const UPDATE_NODE: ToolSpec = ToolSpec {
    kind: ToolKind::UpdateNode,
    name: "update_node",
    title: "Correct a memory",
    description: "Change content, label, tags or validity of a memory; the old version and wording are kept. Set \
                  valid_to to retire it.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::ADDS,
    core: false,
    fields: &[
        fields::NODE_ID,
        fields::UPDATE_NODE,
        fields::VALIDITY,
        fields::EXPECTED_VERSION,
        fields::REASON,
    ],
};
