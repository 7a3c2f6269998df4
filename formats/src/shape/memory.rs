//! Memories with all that belongs to them, redirects and tombstones.

use serde::{Deserialize, Serialize};
use waggle_memory::id::{EvidenceId, MemoryId, Principal, TurnId};
use waggle_memory::kind::{Confidence, Kind, Role};
use waggle_memory::memory::{Alias, ChangeReason, Erased, Evidence, Memory, Tombstone, TurnSpan, Version};
use waggle_memory::record::{MemoryRecord, Redirect};
use waggle_memory::scope::Scope;
use waggle_memory::statement::Fingerprint;
use waggle_memory::time::Millis;

use super::statement::StatementShape;
use crate::json::{self, Text};

/// Counts of links are not in it: whoever stores the links counts them, and an export of one project leaves some out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryShape {
    agent_id: String,
    aliases: Vec<AliasShape>,
    author: String,
    confidence: Text<Confidence>,
    content: String,
    due: Option<Text<Millis>>,
    evidence_count: u32,
    evidence_records: Vec<EvidenceShape>,
    id: Text<MemoryId>,
    label: String,
    #[serde(with = "json::metadata", default)]
    metadata: String,
    namespace: String,
    node_type: Text<Kind>,
    project: String,
    recorded_at: Text<Millis>,
    rules_version: u32,
    session_id: String,
    source_prompt: String,
    statement: StatementShape,
    superseded_by: Option<Text<MemoryId>>,
    tags: Vec<String>,
    text_version: u32,
    updated_at: Text<Millis>,
    valid_from: Text<Millis>,
    valid_from_stated: bool,
    valid_to: Option<Text<Millis>>,
    version: u32,
    versions: Vec<VersionShape>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AliasShape {
    added_at: Text<Millis>,
    author: String,
    exact: Option<Text<Fingerprint>>,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EvidenceShape {
    agent_id: String,
    author: String,
    evidence_id: Text<EvidenceId>,
    number: u32,
    observed_at: Text<Millis>,
    project: String,
    session_id: String,
    source_text: String,
    turn: Option<SpanShape>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpanShape {
    role: Text<Role>,
    span_end: u32,
    span_start: u32,
    turn_id: Text<TurnId>,
    turn_index: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionShape {
    content: String,
    label: String,
    node_type: Text<Kind>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    note: String,
    reason: Text<ChangeReason>,
    recorded_at: Text<Millis>,
    replaced_at: Text<Millis>,
    replaced_by: String,
    superseded_by: Option<Text<MemoryId>>,
    tags: Vec<String>,
    valid_from: Text<Millis>,
    valid_to: Option<Text<Millis>>,
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RedirectShape {
    from: Text<MemoryId>,
    to: Text<MemoryId>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TombstoneShape {
    author: String,
    deleted_at: Text<Millis>,
    deleted_edges: u32,
    erased: Option<ErasedShape>,
    id: Text<MemoryId>,
    receipt: String,
    turns_kept: u32,
}

impl From<&MemoryRecord> for MemoryShape {
    fn from(record: &MemoryRecord) -> Self {
        let memory = &record.memory;
        Self {
            agent_id: memory.scope.agent_id.clone(),
            aliases: memory.aliases.iter().map(AliasShape::from).collect(),
            author: memory.author.0.clone(),
            confidence: Text(memory.confidence),
            content: memory.content.clone(),
            due: memory.due.map(Text),
            evidence_count: memory.evidence_count,
            evidence_records: record.evidence.iter().map(EvidenceShape::from).collect(),
            id: Text(memory.id),
            label: memory.label.clone(),
            metadata: memory.metadata.clone(),
            namespace: memory.namespace.clone(),
            node_type: Text(memory.kind),
            project: memory.scope.project.clone(),
            recorded_at: Text(memory.recorded_at),
            rules_version: memory.rules_version,
            session_id: memory.scope.session_id.clone(),
            source_prompt: memory.source_prompt.clone(),
            statement: StatementShape::from(&memory.statement),
            superseded_by: memory.superseded_by.map(Text),
            tags: memory.tags.clone(),
            text_version: memory.text_version,
            updated_at: Text(memory.updated_at),
            valid_from: Text(memory.valid_from),
            valid_from_stated: memory.valid_from_stated,
            valid_to: memory.valid_to.map(Text),
            version: memory.version,
            versions: record.versions.iter().map(VersionShape::from).collect(),
        }
    }
}

impl From<MemoryShape> for MemoryRecord {
    fn from(shape: MemoryShape) -> Self {
        let memory = Memory {
            id: shape.id.0,
            namespace: shape.namespace,
            scope: Scope {
                project: shape.project,
                agent_id: shape.agent_id,
                session_id: shape.session_id,
            },
            label: shape.label,
            content: shape.content,
            kind: shape.node_type.0,
            tags: shape.tags,
            aliases: shape.aliases.into_iter().map(Alias::from).collect(),
            source_prompt: shape.source_prompt,
            metadata: shape.metadata,
            evidence_count: shape.evidence_count,
            confidence: shape.confidence.0,
            valid_from: shape.valid_from.0,
            valid_from_stated: shape.valid_from_stated,
            valid_to: shape.valid_to.map(|at| at.0),
            recorded_at: shape.recorded_at.0,
            updated_at: shape.updated_at.0,
            version: shape.version,
            text_version: shape.text_version,
            author: Principal(shape.author),
            due: shape.due.map(|at| at.0),
            superseded_by: shape.superseded_by.map(|id| id.0),
            statement: shape.statement.into(),
            rules_version: shape.rules_version,
            link_count: 0,
            open_conflict_count: 0,
        };
        Self {
            memory,
            evidence: shape.evidence_records.into_iter().map(EvidenceShape::read).collect(),
            versions: shape.versions.into_iter().map(Version::from).collect(),
        }
    }
}

impl From<&Alias> for AliasShape {
    fn from(alias: &Alias) -> Self {
        Self {
            added_at: Text(alias.added_at),
            author: alias.author.0.clone(),
            exact: alias.exact.map(Text),
            text: alias.text.clone(),
        }
    }
}

impl From<AliasShape> for Alias {
    fn from(shape: AliasShape) -> Self {
        Self {
            text: shape.text,
            author: Principal(shape.author),
            added_at: shape.added_at.0,
            exact: shape.exact.map(|f| f.0),
        }
    }
}

impl From<&(u32, Evidence)> for EvidenceShape {
    fn from((number, evidence): &(u32, Evidence)) -> Self {
        Self {
            agent_id: evidence.scope.agent_id.clone(),
            author: evidence.author.0.clone(),
            evidence_id: Text(evidence.id),
            number: *number,
            observed_at: Text(evidence.observed_at),
            project: evidence.scope.project.clone(),
            session_id: evidence.scope.session_id.clone(),
            source_text: evidence.text.clone(),
            turn: evidence.turn.as_ref().map(|span| SpanShape {
                role: Text(span.role),
                span_end: span.end,
                span_start: span.start,
                turn_id: Text(span.turn),
                turn_index: span.turn_index,
            }),
        }
    }
}

impl EvidenceShape {
    fn read(self) -> (u32, Evidence) {
        let evidence = Evidence {
            id: self.evidence_id.0,
            turn: self.turn.map(|span| TurnSpan {
                turn: span.turn_id.0,
                turn_index: span.turn_index,
                role: span.role.0,
                start: span.span_start,
                end: span.span_end,
            }),
            scope: Scope {
                project: self.project,
                agent_id: self.agent_id,
                session_id: self.session_id,
            },
            text: self.source_text,
            observed_at: self.observed_at.0,
            author: Principal(self.author),
        };
        (self.number, evidence)
    }
}

impl From<&Version> for VersionShape {
    fn from(version: &Version) -> Self {
        Self {
            content: version.content.clone(),
            label: version.label.clone(),
            node_type: Text(version.kind),
            note: version.note.clone(),
            reason: Text(version.reason),
            recorded_at: Text(version.recorded_at),
            replaced_at: Text(version.replaced_at),
            replaced_by: version.replaced_by.0.clone(),
            superseded_by: version.superseded_by.map(Text),
            tags: version.tags.clone(),
            valid_from: Text(version.valid_from),
            valid_to: version.valid_to.map(Text),
            version: version.version,
        }
    }
}

impl From<VersionShape> for Version {
    fn from(shape: VersionShape) -> Self {
        Self {
            version: shape.version,
            recorded_at: shape.recorded_at.0,
            replaced_at: shape.replaced_at.0,
            replaced_by: Principal(shape.replaced_by),
            reason: shape.reason.0,
            label: shape.label,
            content: shape.content,
            kind: shape.node_type.0,
            tags: shape.tags,
            valid_from: shape.valid_from.0,
            valid_to: shape.valid_to.map(|at| at.0),
            superseded_by: shape.superseded_by.map(|id| id.0),
            note: shape.note,
        }
    }
}

impl From<&Redirect> for RedirectShape {
    fn from(redirect: &Redirect) -> Self {
        Self {
            from: Text(redirect.from),
            to: Text(redirect.to),
        }
    }
}

impl From<RedirectShape> for Redirect {
    fn from(shape: RedirectShape) -> Self {
        Self {
            from: shape.from.0,
            to: shape.to.0,
        }
    }
}

/// What is left of an erased memory.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErasedShape {
    agent_id: String,
    content_hash: Text<ContentHash>,
    node_type: Text<Kind>,
    project: String,
    recorded_at: Text<Millis>,
    session_id: String,
}

/// 128 bits as hexadecimal digits.
#[derive(Clone, Copy)]
struct ContentHash([u8; 16]);

impl json::Word for ContentHash {
    fn expected() -> String {
        "32 hexadecimal digits".to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        json::from_hex(text).map(Self)
    }

    fn show(&self) -> String {
        json::hex(&self.0)
    }
}

impl From<&Erased> for ErasedShape {
    fn from(erased: &Erased) -> Self {
        Self {
            agent_id: erased.scope.agent_id.clone(),
            content_hash: Text(ContentHash(erased.content_hash)),
            node_type: Text(erased.kind),
            project: erased.scope.project.clone(),
            recorded_at: Text(erased.recorded_at),
            session_id: erased.scope.session_id.clone(),
        }
    }
}

impl From<ErasedShape> for Erased {
    fn from(shape: ErasedShape) -> Self {
        Self {
            scope: Scope {
                project: shape.project,
                agent_id: shape.agent_id,
                session_id: shape.session_id,
            },
            kind: shape.node_type.0,
            recorded_at: shape.recorded_at.0,
            content_hash: shape.content_hash.0.0,
        }
    }
}

impl TombstoneShape {
    pub(crate) fn new(id: MemoryId, tombstone: &Tombstone) -> Self {
        Self {
            author: tombstone.author.0.clone(),
            deleted_at: Text(tombstone.deleted_at),
            deleted_edges: tombstone.deleted_links,
            erased: tombstone.of.as_ref().map(ErasedShape::from),
            id: Text(id),
            receipt: tombstone.receipt.clone(),
            turns_kept: tombstone.turns_kept,
        }
    }

    pub(crate) fn read(self) -> (MemoryId, Tombstone) {
        let tombstone = Tombstone {
            deleted_at: self.deleted_at.0,
            author: Principal(self.author),
            receipt: self.receipt,
            deleted_links: self.deleted_edges,
            turns_kept: self.turns_kept,
            of: self.erased.map(Erased::from),
        };
        (self.id.0, tombstone)
    }
}
