//! From stored messages to memories: exactly what observe_conversation does with two messages, with spans that point to
//! the real ones.

use waggle_memory::command::{Command, NewLink, NewMemory, Remember};
use waggle_memory::extract::{Extraction, Speaker};
use waggle_memory::handoff::{Joined, RememberMessages};
use waggle_memory::id::TurnId;
use waggle_memory::kind::{Origin, Role};
use waggle_memory::memory::VectorDraft;
use waggle_memory::outcome::{Outcome, Remembered};
use waggle_memory::scope::Scope;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_memory::transcript::Turn;

use crate::call::Call;
use crate::error::CallError;
use crate::plan;
use crate::rpc::observe;

/// Longest block that the rules read at once: as long as a message of observe_conversation. What is longer is read in
/// several steps.
const BLOCK_BYTES_MAX: usize = 1024 * 1024;
/// Messages that are read at once.
const BLOCK_MESSAGES_MAX: usize = 500;
/// Times that somebody else may get in between before the rest is left to them.
const ATTEMPTS_MAX: usize = 3;

/// What became of a logical turn.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Something was extracted from, even if nothing was found in it.
    pub(super) done: bool,
    pub(super) created: u32,
    pub(super) reused: u32,
    pub(super) conflicts: u32,
    pub(super) over_limit: bool,
    pub(super) redactions: u32,
}

/// Messages that the rules read together.
struct Blocks {
    /// User messages first.
    turns: Vec<Turn>,
    user: Joined,
    assistant: Joined,
    users: usize,
}

/// Extracts from the given turns of one logical turn, user block first.
pub(super) async fn extract_pair(call: &Call, scope: &Scope, members: &[TurnId]) -> Result<Read, CallError> {
    let mut read = Read::default();
    let mut rest = members;
    let mut attempts = 0;
    while !rest.is_empty() && attempts < ATTEMPTS_MAX {
        let asked = rest.to_vec();
        let (turns, taken) = call.read(move |_, rows| Ok(next_turns(rows, &asked))).await?;
        if !turns.is_empty() && !remember(call, scope, Blocks::of(turns), &mut read).await? {
            // Somebody extracted from one of them meanwhile: look again what is left.
            attempts += 1;
            continue;
        }
        attempts = 0;
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(read)
}

/// The next turns that nobody extracted from and that are read together, and how many of `members` they settle.
fn next_turns(rows: TenantRows<'_>, members: &[TurnId]) -> (Vec<Turn>, usize) {
    let (mut turns, mut user_bytes, mut assistant_bytes) = (Vec::new(), 0, 0);
    for (at, id) in members.iter().enumerate() {
        if rows.message_of(*id).is_none_or(|message| message.extracted) {
            continue;
        }
        let Some(turn) = rows.turn(*id) else { continue };
        let bytes = if turn.role == Role::User {
            &mut user_bytes
        } else {
            &mut assistant_bytes
        };
        *bytes += turn.text.len();
        if !turns.is_empty() && (*bytes > BLOCK_BYTES_MAX || turns.len() >= BLOCK_MESSAGES_MAX) {
            return (turns, at);
        }
        turns.push(turn);
    }
    (turns, members.len())
}

impl Blocks {
    fn of(turns: Vec<Turn>) -> Self {
        let users = turns.iter().filter(|turn| turn.role == Role::User).count();
        let texts = || turns.iter().map(|turn| turn.text.as_str());
        Self {
            user: Joined::new(texts().take(users)),
            assistant: Joined::new(texts().skip(users)),
            users,
            turns,
        }
    }

    fn block(&self, speaker: Speaker) -> &Joined {
        match speaker {
            Speaker::User => &self.user,
            Speaker::Assistant => &self.assistant,
        }
    }

    /// The moment that words such as "tomorrow" are read from.
    fn observed_at(&self) -> Millis {
        self.turns.first().map(|turn| turn.observed_at).unwrap_or_default()
    }

    /// Points a memory to the message that it was said in.
    fn place(&self, memory: &mut NewMemory, speaker: Speaker, range: (usize, usize)) {
        let Some((position, (start, end))) = self.block(speaker).locate(range) else {
            return;
        };
        let turn = match speaker {
            Speaker::User => position,
            Speaker::Assistant => self.users + position,
        };
        let Some(said) = self.turns.get(turn) else { return };
        let number = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        memory.evidence.span = Some(waggle_memory::command::NewSpan {
            turn: number(turn),
            start: number(start),
            end: number(end),
        });
        if let Some(words) = said.text.get(start..end).filter(|words| !words.is_empty()) {
            memory.evidence.text = words.to_owned();
        }
        memory.evidence.observed_at = Some(said.observed_at);
        memory.default_valid_from = Some(said.observed_at);
    }
}

/// Stores what the rules find. False when one of the turns was extracted from meanwhile.
async fn remember(call: &Call, scope: &Scope, blocks: Blocks, read: &mut Read) -> Result<bool, CallError> {
    let observed_at = blocks.observed_at();
    let extraction = observe::extracted(call, blocks.user.text(), blocks.assistant.text(), observed_at).await?;
    let (over_limit, redactions) = (extraction.over_limit, extraction.redactions);
    let links: Vec<NewLink> = extraction.links.iter().filter_map(observe::new_link).collect();
    let memories = planned(call, &blocks, extraction).await;
    let memories = observe::with_similar(call, &scope.project_key(), memories, observed_at).await?;
    let pair = blocks.turns.first().map_or_else(plan::new_pair_id, |turn| turn.pair);
    let command = RememberMessages {
        turns: blocks.turns.iter().map(|turn| turn.id).collect(),
        remember: Remember {
            tenant: call.tenant.clone(),
            namespace: crate::rpc::store_memory::namespace_of(&scope.project),
            scope: scope.clone(),
            origin: Origin::Handoff,
            pair,
            turns: Vec::new(),
            memories,
            links,
        },
    };
    match call
        .propose(Command::RememberMessages(Box::new(command)))
        .await?
        .outcome
    {
        Outcome::Remembered(remembered) => {
            read.add(&remembered);
            read.over_limit |= over_limit;
            read.redactions += redactions;
            Ok(true)
        }
        Outcome::AlreadyExtracted => Ok(false),
        _ => Err(CallError::halted(
            "extract from messages",
            &"the outcome is of another command",
        )),
    }
}

/// Drafts in their command form, with vectors.
async fn planned(call: &Call, blocks: &Blocks, extraction: Extraction) -> Vec<NewMemory> {
    let texts = extraction.drafts.iter();
    let texts: Vec<String> = texts
        .map(|draft| plan::meaning_of(&draft.label, &draft.content))
        .collect();
    let mut vectors = if texts.is_empty() {
        Vec::new().into_iter()
    } else {
        call.engine.embedder.for_write(texts).await.into_iter()
    };
    let observed_at = blocks.observed_at();
    extraction
        .drafts
        .into_iter()
        .map(|draft| {
            let (speaker, range) = (draft.speaker, draft.span);
            let vector = vectors.next().unwrap_or(VectorDraft::Pending);
            let text = blocks.block(speaker).text();
            let mut memory = plan::drafted(draft, |_| None, text, observed_at, vector);
            blocks.place(&mut memory, speaker, range);
            memory
        })
        .collect()
}

impl Read {
    fn add(&mut self, remembered: &Remembered) {
        let reused = remembered
            .memories
            .iter()
            .filter(|stored| stored.merged.is_some())
            .count();
        let created = remembered.memories.len() - reused;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        self.done = true;
        self.created += number(created);
        self.reused += number(reused);
        self.conflicts += number(remembered.conflicts.len());
    }
}
