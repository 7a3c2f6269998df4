//! What the index is told about a memory or a turn. It keeps postings, numbers and the vector of it, never its text.

use waggle_memory::id::TurnId;
use waggle_memory::kind::{Confidence, Kind};
use waggle_memory::memory::{Memory, Vector};
use waggle_memory::tables::Item;
use waggle_memory::time::Millis;
use waggle_memory::transcript::Turn;

/// A memory or a turn, as the index wants to see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Which one it is.
    pub item: Item,
    /// Part of the tenant that policies attach to; empty for a turn of a project without one.
    pub namespace: String,
    /// Comparison key of the project; empty is tenant-wide.
    pub project_key: String,
    /// As given; empty for none.
    pub session: String,
    /// Comparison key of the agent; empty for none.
    pub agent_key: String,
    /// Sessions of further evidence: a memory belongs to every session in its evidence.
    pub also_sessions: Vec<String>,
    /// Comparison keys of the agents of further evidence.
    pub also_agent_keys: Vec<String>,
    /// Who says it, by name. Left empty for a turn, it is read from a leading "Name: ".
    pub speaker: String,
    /// None for a turn.
    pub kind: Option<Kind>,
    /// A turn counts as explicit: it was said.
    pub confidence: Confidence,
    /// Tags; empty for a turn.
    pub tags: Vec<String>,
    /// Short name; empty for a turn.
    pub label: String,
    /// Content of a memory, text of a turn.
    pub text: String,
    /// Other wordings.
    pub aliases: Vec<String>,
    /// From when it holds; a turn: when it was said.
    pub valid_from: Millis,
    /// Whether somebody stated `valid_from`. A period looks at it then, and at `observed_at` otherwise.
    pub valid_from_stated: bool,
    /// Until when it holds, exclusive.
    pub valid_to: Option<Millis>,
    /// When it was said.
    pub observed_at: Millis,
    /// When it was recorded.
    pub recorded_at: Millis,
    /// A turn's position in its session.
    pub turn_index: Option<u32>,
    /// The turns a memory came from.
    pub from_turns: Vec<TurnId>,
    /// Its vector, of any model; the index takes those of its own model only.
    pub vector: Option<Vector>,
    /// Whether a vector is to come.
    pub awaits_vector: bool,
}

impl Document {
    /// A memory with what its evidence adds: the turns it came from and when it was said.
    pub fn of_memory(memory: &Memory, from_turns: Vec<TurnId>, observed_at: Millis) -> Self {
        Self {
            item: Item::Memory(memory.id),
            namespace: memory.namespace.clone(),
            project_key: memory.scope.project_key(),
            session: memory.scope.session_id.clone(),
            agent_key: memory.scope.agent_key(),
            also_sessions: Vec::new(),
            also_agent_keys: Vec::new(),
            speaker: String::new(),
            kind: Some(memory.kind),
            confidence: memory.confidence,
            tags: memory.tags.clone(),
            label: memory.label.clone(),
            text: memory.content.clone(),
            aliases: memory.aliases.iter().map(|alias| alias.text.clone()).collect(),
            valid_from: memory.valid_from,
            valid_from_stated: memory.valid_from_stated,
            valid_to: memory.valid_to,
            observed_at,
            recorded_at: memory.recorded_at,
            turn_index: None,
            from_turns,
            vector: None,
            awaits_vector: false,
        }
    }

    /// A turn; `namespace` is that of its project.
    pub fn of_turn(turn: &Turn, namespace: &str) -> Self {
        Self {
            item: Item::Turn(turn.id),
            namespace: namespace.to_owned(),
            project_key: turn.scope.project_key(),
            session: turn.scope.session_id.clone(),
            agent_key: turn.scope.agent_key(),
            also_sessions: Vec::new(),
            also_agent_keys: Vec::new(),
            speaker: String::new(),
            kind: None,
            confidence: Confidence::Explicit,
            tags: Vec::new(),
            label: String::new(),
            text: turn.text.clone(),
            aliases: Vec::new(),
            valid_from: turn.observed_at,
            valid_from_stated: false,
            valid_to: None,
            observed_at: turn.observed_at,
            recorded_at: turn.recorded_at,
            turn_index: Some(turn.turn_index),
            from_turns: Vec::new(),
            vector: None,
            awaits_vector: false,
        }
    }

    /// The same with its vector, or with the note that one is to come.
    pub fn with_vector(mut self, vector: Option<Vector>, awaits_vector: bool) -> Self {
        self.vector = vector;
        self.awaits_vector = awaits_vector;
        self
    }
}
