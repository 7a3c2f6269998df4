//! Outcomes, as the rows of request ids keep them.

use waggle_memory::clear::Cleared;
use waggle_memory::command::DedupReason;
use waggle_memory::id::{LinkId, MemoryId, TurnId};
use waggle_memory::import::Imported;
use waggle_memory::outcome::{Canonicalized, Outcome, Rejection, Remembered, StoredMemory};

use super::generated as pb;
use super::malformed::{Malformed, id, ids, need, word};
use super::message::{Persisted, from_messages, to_messages};

/// Words that rejections carry as `'static` text. A word that is not here is read as [`OTHER_WORD`], which is less
/// clear to the caller and harmless otherwise; a test looks for words that apply uses and this list lacks.
const WORDS: &[&str] = &[
    "agent_id",
    "aliases",
    "cluster",
    "confidence",
    "content",
    "due",
    "edge",
    "evidence",
    "expected_version",
    "id",
    "join_token",
    "key",
    "kind",
    "label",
    "link",
    "links",
    "memories",
    "memory",
    "metadata",
    "name",
    "namespace",
    "node",
    "node_ids",
    "observed_at",
    "placement",
    "project",
    "reason",
    "relationship",
    "request_id",
    "scope",
    "session_id",
    "shard",
    "slot",
    "source_id",
    "source_prompt",
    "tags",
    "target_id",
    "tenant",
    "text",
    "turn",
    "turns",
    "valid_from",
    "valid_to",
    "vector",
    "version",
    "weight",
    "winner",
];

const OTHER_WORD: &str = "argument";

fn known_word(text: &str) -> &'static str {
    WORDS.iter().find(|word| **word == text).copied().unwrap_or(OTHER_WORD)
}

impl Persisted for Outcome {
    type Message = pb::Outcome;

    fn to_message(&self) -> pb::Outcome {
        use pb::outcome::Outcome as Case;
        let case = match self {
            Self::Remembered(remembered) => Case::Remembered(remembered.to_message()),
            Self::Updated {
                id,
                previous_version,
                conflicts,
            } => Case::Updated(pb::Updated {
                id: id.bytes().to_vec(),
                previous_version: *previous_version,
                conflicts: link_ids(conflicts),
            }),
            Self::Deleted {
                id,
                deleted,
                label,
                deleted_links,
                turns_kept,
                receipt,
            } => Case::Deleted(pb::Deleted {
                id: id.bytes().to_vec(),
                deleted: *deleted,
                label: label.clone(),
                deleted_links: *deleted_links,
                turns_kept: *turns_kept,
                receipt: receipt.clone(),
            }),
            Self::LinkStored { id, created } => Case::LinkStored(pb::LinkStored {
                id: id.bytes().to_vec(),
                created: *created,
            }),
            Self::LinkDeleted { id, deleted } => Case::LinkDeleted(pb::LinkDeleted {
                id: id.bytes().to_vec(),
                deleted: *deleted,
            }),
            Self::ConflictResolved { id } => Case::ConflictResolved(pb::ConflictResolved {
                id: id.bytes().to_vec(),
            }),
            Self::Imported(imported) => Case::Imported(imported.to_message()),
            Self::Canonicalized(done) => Case::Canonicalized(done.to_message()),
            Self::Cleared(done) => Case::Cleared(done.to_message()),
            Self::Done => Case::Done(pb::Done {}),
            Self::MessagesStored { turns, written } => Case::MessagesStored(pb::MessagesStored {
                turns: turns.iter().map(|id| id.bytes().to_vec()).collect(),
                written: *written,
            }),
            Self::MessageReused { position } => Case::MessageReused(pb::MessageReused { position: *position }),
            Self::AlreadyExtracted => Case::AlreadyExtracted(pb::AlreadyExtracted {}),
            Self::Rejected(rejection) => Case::Rejected(rejection.to_message()),
        };
        pb::Outcome { outcome: Some(case) }
    }

    fn from_message(m: pb::Outcome) -> Result<Self, Malformed> {
        use pb::outcome::Outcome as Case;
        Ok(match need("outcome", m.outcome)? {
            Case::Remembered(m) => Self::Remembered(Box::new(Remembered::from_message(m)?)),
            Case::Updated(m) => Self::Updated {
                id: id("updated.id", &m.id, MemoryId::from_bytes)?,
                previous_version: m.previous_version,
                conflicts: ids("updated.conflicts", &m.conflicts, LinkId::from_bytes)?,
            },
            Case::Deleted(m) => Self::Deleted {
                id: id("deleted.id", &m.id, MemoryId::from_bytes)?,
                deleted: m.deleted,
                label: m.label,
                deleted_links: m.deleted_links,
                turns_kept: m.turns_kept,
                receipt: m.receipt,
            },
            Case::LinkStored(m) => Self::LinkStored {
                id: id("link_stored.id", &m.id, LinkId::from_bytes)?,
                created: m.created,
            },
            Case::LinkDeleted(m) => Self::LinkDeleted {
                id: id("link_deleted.id", &m.id, LinkId::from_bytes)?,
                deleted: m.deleted,
            },
            Case::ConflictResolved(m) => Self::ConflictResolved {
                id: id("conflict_resolved.id", &m.id, LinkId::from_bytes)?,
            },
            Case::Imported(m) => Self::Imported(Box::new(Imported::from_message(m)?)),
            Case::Canonicalized(m) => Self::Canonicalized(Box::new(Canonicalized::from_message(m)?)),
            Case::Cleared(m) => Self::Cleared(Box::new(Cleared::from_message(m)?)),
            Case::Done(_) => Self::Done,
            Case::MessagesStored(m) => Self::MessagesStored {
                turns: ids("messages_stored.turns", &m.turns, TurnId::from_bytes)?,
                written: m.written,
            },
            Case::MessageReused(m) => Self::MessageReused { position: m.position },
            Case::AlreadyExtracted(_) => Self::AlreadyExtracted,
            Case::Rejected(m) => Self::Rejected(Rejection::from_message(m)?),
        })
    }
}

fn link_ids(all: &[LinkId]) -> Vec<Vec<u8>> {
    all.iter().map(|id| id.bytes().to_vec()).collect()
}

impl Persisted for Remembered {
    type Message = pb::Remembered;

    fn to_message(&self) -> pb::Remembered {
        pb::Remembered {
            turns: self.turns.iter().map(|id| id.bytes().to_vec()).collect(),
            memories: to_messages(&self.memories),
            links: link_ids(&self.links),
            conflicts: link_ids(&self.conflicts),
            first_use_of_project: self.first_use_of_project,
        }
    }

    fn from_message(m: pb::Remembered) -> Result<Self, Malformed> {
        Ok(Self {
            turns: ids("remembered.turns", &m.turns, TurnId::from_bytes)?,
            memories: from_messages("remembered.memories", m.memories)?,
            links: ids("remembered.links", &m.links, LinkId::from_bytes)?,
            conflicts: ids("remembered.conflicts", &m.conflicts, LinkId::from_bytes)?,
            first_use_of_project: m.first_use_of_project,
        })
    }
}

impl Persisted for StoredMemory {
    type Message = pb::StoredMemory;

    fn to_message(&self) -> pb::StoredMemory {
        pb::StoredMemory {
            id: self.id.bytes().to_vec(),
            merged: self.merged.map(|reason| reason.number().into()),
            similarity_thousandths: self.similarity_thousandths,
            alias_added: self.alias_added,
            aliases_full: self.aliases_full,
        }
    }

    fn from_message(m: pb::StoredMemory) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("stored.id", &m.id, MemoryId::from_bytes)?,
            merged: m
                .merged
                .map(|number| word("stored.merged", number, DedupReason::from_number))
                .transpose()?,
            similarity_thousandths: m.similarity_thousandths,
            alias_added: m.alias_added,
            aliases_full: m.aliases_full,
        })
    }
}

impl Persisted for Rejection {
    type Message = pb::Rejection;

    fn to_message(&self) -> pb::Rejection {
        use pb::rejection::{self, Rejection as Case};
        let case = match self {
            Self::NotFound { what, id } => Case::NotFound(rejection::NotFound {
                what: (*what).to_owned(),
                id: id.clone(),
            }),
            Self::VersionConflict { current } => {
                Case::VersionConflict(rejection::VersionConflict { current: *current })
            }
            Self::NotResolvable { why } => Case::NotResolvable(rejection::NotResolvable { why: why.clone() }),
            Self::Invalid { field, why } => Case::Invalid(rejection::Invalid {
                field: (*field).to_owned(),
                why: why.clone(),
            }),
            Self::LimitExceeded { why } => Case::LimitExceeded(rejection::LimitExceeded { why: why.clone() }),
            Self::RequestIdReused => Case::RequestIdReused(rejection::RequestIdReused {}),
            Self::AlreadyExists { what, id } => Case::AlreadyExists(rejection::AlreadyExists {
                what: (*what).to_owned(),
                id: id.clone(),
            }),
        };
        pb::Rejection { rejection: Some(case) }
    }

    fn from_message(m: pb::Rejection) -> Result<Self, Malformed> {
        use pb::rejection::Rejection as Case;
        Ok(match need("rejection", m.rejection)? {
            Case::NotFound(m) => Self::NotFound {
                what: known_word(&m.what),
                id: m.id,
            },
            Case::VersionConflict(m) => Self::VersionConflict { current: m.current },
            Case::NotResolvable(m) => Self::NotResolvable { why: m.why },
            Case::Invalid(m) => Self::Invalid {
                field: known_word(&m.field),
                why: m.why,
            },
            Case::LimitExceeded(m) => Self::LimitExceeded { why: m.why },
            Case::RequestIdReused(_) => Self::RequestIdReused,
            Case::AlreadyExists(m) => Self::AlreadyExists {
                what: known_word(&m.what),
                id: m.id,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Every word in `field: "..."` and `what: "..."` of the domain's source.
    fn words_of_rejections(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("the domain's source is beside this crate") {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                words_of_rejections(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("source is text");
                for opening in ["field: \"", "what: \""] {
                    let words = text.split(opening).skip(1).filter_map(|rest| rest.split('"').next());
                    found.extend(words.map(str::to_owned));
                }
            }
        }
    }

    #[test]
    fn every_word_of_a_rejection_in_the_domain_is_known_here() {
        let mut found = Vec::new();
        words_of_rejections(
            &PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../node/memory/src"),
            &mut found,
        );
        assert!(!found.is_empty(), "apply rejects something");
        let unknown: Vec<&String> = found.iter().filter(|word| known_word(word) == OTHER_WORD).collect();
        assert!(unknown.is_empty(), "add to WORDS: {unknown:?}");
    }
}
