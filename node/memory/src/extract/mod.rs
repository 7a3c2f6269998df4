//! From what was said to what is worth keeping: drafts of memories and the links between them, by fixed rules.
//!
//! Runs on the leader before a proposal. Deterministic: no model, no clock, no randomness; the same text under the
//! same [`RULES_VERSION`] gives the same drafts everywhere. English first; any other language yields nothing.

mod classify;
mod collect;
mod dates;
mod english;
mod label;
mod links;
mod names;
pub mod secrets;
mod split;

use std::fmt;

use collect::{Collected, Said};
pub(crate) use links::content_words;

use crate::kind::{Confidence, Kind, Relationship};
use crate::statement::Statement;
use crate::time::Millis;

/// Version of the rules, kept on each extracted memory.
pub const RULES_VERSION: u32 = 1;

/// Most drafts of one turn.
pub const DRAFTS_PER_TURN_MAX: usize = 64;

/// Most pieces of one text given to [`decompose`].
pub const PIECES_MAX: usize = 500;

/// One pair of messages, as it was stored.
#[derive(Clone, Copy, Debug)]
pub struct ExtractInput<'a> {
    /// What the person said; may be blank.
    pub user_message: &'a str,
    /// What the agent answered; may be blank.
    pub assistant_response: &'a str,
    /// The principal of the call, as text: whom `I` means.
    pub author: &'a str,
    /// When it was said; relative dates count from here.
    pub observed_at: Millis,
}

/// Whose message a draft comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The person, or the author of a decomposed text.
    User,
    /// The agent.
    Assistant,
}

/// A memory that extraction proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Short name.
    pub label: String,
    /// The clause in its own words.
    pub content: String,
    /// What sort of memory.
    pub kind: Kind,
    /// Bookkeeping tags, sorted.
    pub tags: Vec<String>,
    /// Inferred, or weak when hedged, conditional or suggested.
    pub confidence: Confidence,
    /// Whose message it stands in.
    pub speaker: Speaker,
    /// Byte offsets into that one message, half open, on character boundaries. The context of a decomposed text stands in no
    /// message: (0, 0).
    pub span: (usize, usize),
    /// From when it holds, only when stated.
    pub valid_from: Option<Millis>,
    /// Until when it holds, only when stated.
    pub valid_to: Option<Millis>,
    /// When a plan, to-do or deadline falls due.
    pub due: Option<Millis>,
    /// What the duplicate and conflict rules compare.
    pub statement: Statement,
}

/// A link between two drafts of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftLink {
    /// Index of the source draft.
    pub source: usize,
    /// Index of the target draft.
    pub target: usize,
    /// What the link says.
    pub relationship: Relationship,
    /// How sure it is.
    pub confidence: Confidence,
    /// Why it exists, in words a person can check.
    pub reason: String,
    /// Content words that both ends have.
    pub shared_terms: Vec<String>,
}

/// Everything found in one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// Memories, in the order of the text.
    pub drafts: Vec<Draft>,
    /// Links between them.
    pub links: Vec<DraftLink>,
    /// Secrets seen; their clauses made no memory.
    pub redactions: u32,
    /// More drafts than the limit; then `drafts` and `links` are empty.
    pub over_limit: bool,
}

/// A text with more pieces than [`PIECES_MAX`]; nothing of it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPieces {
    /// How many were found before reading stopped.
    pub pieces: usize,
}

impl fmt::Display for TooManyPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at least {} pieces, at most {PIECES_MAX} are allowed", self.pieces)
    }
}

impl std::error::Error for TooManyPieces {}

/// The memories of one turn.
pub fn extract(input: &ExtractInput<'_>) -> Extraction {
    let said = Said {
        author: input.author,
        observed_at: input.observed_at,
        origin: "observed",
        keep_all: false,
        statements_max: DRAFTS_PER_TURN_MAX,
    };
    let mut collected = Collected::default();
    collected.message(input.user_message, Speaker::User, said);
    collected.message(input.assistant_response, Speaker::Assistant, said);
    if collected.statements > DRAFTS_PER_TURN_MAX {
        return Extraction {
            redactions: collected.redactions,
            over_limit: true,
            ..Extraction::default()
        };
    }
    // Statements first: a turn that names many files keeps what it says.
    collected.truncate(DRAFTS_PER_TURN_MAX);
    collected.finish()
}

/// The memories of a text that its author gives as such, piece by piece. A context becomes a concept, the last draft,
/// that every piece is part of.
pub fn decompose(content: &str, context: &str, author: &str, observed_at: Millis) -> Result<Extraction, TooManyPieces> {
    let said = Said {
        author,
        observed_at,
        origin: "decomposed",
        keep_all: true,
        statements_max: PIECES_MAX,
    };
    let mut collected = Collected::default();
    collected.message(content, Speaker::User, said);
    if collected.statements > PIECES_MAX {
        return Err(TooManyPieces {
            pieces: collected.statements,
        });
    }
    collected.truncate(PIECES_MAX);
    let mut extraction = collected.finish();
    let pieces = extraction.drafts.len();
    if !context.trim().is_empty() && pieces > 0 {
        extraction.drafts.push(context_draft(context.trim(), said));
        for source in 0..pieces {
            extraction.links.push(DraftLink {
                source,
                target: pieces,
                relationship: Relationship::PartOf,
                confidence: Confidence::Inferred,
                reason: "given in this context".to_owned(),
                shared_terms: Vec::new(),
            });
        }
    }
    Ok(extraction)
}

fn context_draft(context: &str, said: Said<'_>) -> Draft {
    let label = label::first_words(context);
    let label = if label.is_empty() { "Context".to_owned() } else { label };
    let statement = said.statement(&label, context, Kind::Concept);
    Draft {
        label,
        content: context.to_owned(),
        kind: Kind::Concept,
        tags: vec![said.origin.to_owned()],
        confidence: Confidence::Inferred,
        speaker: Speaker::User,
        span: (0, 0),
        valid_from: None,
        valid_to: None,
        due: None,
        statement,
    }
}
