//! From what a caller said to a command: ids, reading by the rules, vectors, and the duplicates that only similarity can
//! find. Everything uncertain happens here, before the proposal.

use uuid::Uuid;
use waggle_memory::command::{DedupReason, NewEvidence, NewMemory, NewSpan, SimilarMemory};
use waggle_memory::extract::{Draft, RULES_VERSION, Speaker};
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, PairId, TurnId};
use waggle_memory::kind::Kind;
use waggle_memory::memory::{Memory, VectorDraft};
use waggle_memory::read::{StatementInput, blocking_gates};
use waggle_memory::tables::Item;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_recall::index::Filter;

use crate::engine::Engine;

/// Below it two memories are not even possible duplicates.
pub(crate) const CANDIDATE_THOUSANDTHS: u32 = 850;
/// From here on equal labels are one memory.
const SAME_LABEL_THOUSANDTHS: u32 = 900;
/// From here on two memories are one by meaning alone.
const SEMANTIC_THOUSANDTHS: u32 = 970;
/// Most similar memories that are compared and shown.
const SIMILAR_MAX: usize = 8;

pub(crate) fn new_memory_id() -> MemoryId {
    MemoryId::from_uuid(Uuid::now_v7())
}

pub(crate) fn new_turn_id() -> TurnId {
    TurnId::from_uuid(Uuid::now_v7())
}

pub(crate) fn new_pair_id() -> PairId {
    PairId::from_uuid(Uuid::now_v7())
}

pub(crate) fn new_link_id() -> LinkId {
    LinkId::from_uuid(Uuid::now_v7())
}

fn new_evidence_id() -> EvidenceId {
    EvidenceId::from_uuid(Uuid::now_v7())
}

/// A memory that a caller gave as such.
pub(crate) struct Given {
    pub(crate) label: String,
    pub(crate) content: String,
    pub(crate) kind: Kind,
    pub(crate) tags: Vec<String>,
    pub(crate) source_prompt: String,
    pub(crate) valid_from: Option<Millis>,
    pub(crate) valid_to: Option<Millis>,
}

/// The command form of a memory that a caller gave.
pub(crate) fn given(given: Given, author: &str, now: Millis, vector: VectorDraft) -> NewMemory {
    let input = StatementInput {
        label: &given.label,
        content: &given.content,
        kind: given.kind,
        author,
        observed_at: now,
    };
    let statement = waggle_memory::read::read_statement(&input);
    NewMemory {
        id: new_memory_id(),
        evidence: NewEvidence {
            id: new_evidence_id(),
            span: None,
            text: given.content.clone(),
            observed_at: None,
        },
        label: given.label,
        content: given.content,
        kind: given.kind,
        tags: given.tags,
        source_prompt: given.source_prompt,
        confidence: waggle_memory::kind::Confidence::Explicit,
        valid_from: given.valid_from,
        default_valid_from: None,
        valid_to: given.valid_to,
        due: None,
        statement,
        rules_version: RULES_VERSION,
        vector,
        similar: None,
    }
}

/// The command form of what extraction proposes. `turn_of` gives the position of a speaker's turn in the command.
pub(crate) fn drafted(
    draft: Draft,
    turn_of: impl Fn(Speaker) -> Option<u32>,
    turn_text: &str,
    observed_at: Millis,
    vector: VectorDraft,
) -> NewMemory {
    let (start, end) = draft.span;
    let position = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    let span = turn_of(draft.speaker).map(|turn| NewSpan {
        turn,
        start: position(start),
        end: position(end),
    });
    NewMemory {
        id: new_memory_id(),
        evidence: NewEvidence {
            id: new_evidence_id(),
            span,
            text: turn_text.get(start..end).unwrap_or(&draft.content).to_owned(),
            observed_at: Some(observed_at),
        },
        label: draft.label,
        content: draft.content,
        kind: draft.kind,
        tags: draft.tags,
        source_prompt: String::new(),
        confidence: draft.confidence,
        valid_from: draft.valid_from,
        default_valid_from: Some(observed_at),
        valid_to: draft.valid_to,
        due: draft.due,
        statement: draft.statement,
        rules_version: RULES_VERSION,
        vector,
        similar: None,
    }
}

/// The text that stands for a memory's meaning.
pub(crate) fn meaning_of(label: &str, content: &str) -> String {
    // A label that only repeats the beginning of the content adds tokens and no meaning.
    let begins_alike = content.to_lowercase().starts_with(&label.to_lowercase());
    if label.is_empty() || begins_alike {
        content.to_owned()
    } else {
        format!("{label}: {content}")
    }
}

/// A stored memory that is near to a new one.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    pub(crate) memory: Memory,
    pub(crate) similarity_thousandths: u32,
}

/// Memories of the same project that are near in meaning, nearest first. Nothing without a vector: similarity is then
/// left out, and near duplicates stay candidates.
pub(crate) fn near(
    engine: &Engine,
    rows: TenantRows<'_>,
    shard: waggle_memory::meta::ShardId,
    project_key: &str,
    text: &str,
    vector: &VectorDraft,
    now: Millis,
) -> Vec<Near> {
    let VectorDraft::Ready(vector) = vector else {
        return Vec::new();
    };
    let Ok(index) = engine.index(shard, rows.tenant()) else {
        return Vec::new();
    };
    let filter = Filter {
        items: waggle_recall::index::Items::Memories,
        projects: Some(vec![project_key.to_owned()]),
        tenant_wide: project_key.is_empty(),
        ..Filter::current(now)
    };
    let found = index.read().nearest(
        text,
        &vector.components,
        f32::from_bits(vector.scale_bits),
        &filter,
        SIMILAR_MAX,
    );
    found
        .into_iter()
        .map(|(item, cosine)| (item, thousandths(cosine)))
        .filter(|(_, similarity)| *similarity >= CANDIDATE_THOUSANDTHS)
        .filter_map(|(item, similarity_thousandths)| match item {
            Item::Memory(id) => rows.memory(id).map(|memory| Near {
                memory,
                similarity_thousandths,
            }),
            Item::Turn(_) => None,
        })
        .filter(|near| near.memory.scope.project_key() == project_key)
        .collect()
}

fn thousandths(cosine: f32) -> u32 {
    // In 0..=1000 by the clamp.
    (cosine.clamp(0.0, 1.0) * 1_000.0).floor() as u32
}

/// The near memory that the new one repeats, if every gate lets it.
pub(crate) fn similar(new: &NewMemory, near: &[Near], author: &str, observed_at: Millis) -> Option<SimilarMemory> {
    near.iter().find_map(|near| {
        let there = &near.memory;
        let reason = if near.similarity_thousandths >= SEMANTIC_THOUSANDTHS {
            DedupReason::Semantic
        } else if near.similarity_thousandths >= SAME_LABEL_THOUSANDTHS && there.statement.label == new.statement.label
        {
            DedupReason::SameLabel
        } else {
            return None;
        };
        let ours = StatementInput {
            label: &new.label,
            content: &new.content,
            kind: new.kind,
            author,
            observed_at,
        };
        let theirs = StatementInput {
            label: &there.label,
            content: &there.content,
            kind: there.kind,
            author: &there.author.0,
            observed_at: there.recorded_at,
        };
        let conflicts = new.statement.claims.iter().any(|claim| {
            there
                .statement
                .claims
                .iter()
                .any(|c| c.slot == claim.slot && (c.value != claim.value || c.negated != claim.negated))
        });
        let free = there.superseded_by.is_none()
            && there.statement.modality == new.statement.modality
            && !conflicts
            && blocking_gates(&theirs, &ours).is_empty();
        free.then_some(SimilarMemory {
            id: there.id,
            text_version: there.text_version,
            reason,
            similarity_thousandths: near.similarity_thousandths,
        })
    })
}
