//! The feed of changes, merging by hand, clearing.

use waggle_memory::change::{Change, ChangeKind};
use waggle_memory::clear::{Clear, ClearPhase, ClearPoint, ClearTarget, Cleared};
use waggle_memory::command::Canonicalize;
use waggle_memory::id::{LinkId, MemoryId, Principal};
use waggle_memory::kind::Relationship;
use waggle_memory::outcome::Canonicalized;
use waggle_memory::statement::Fingerprint;
use waggle_memory::time::Millis;

use super::generated as pb;
use super::malformed::{Malformed, id, ids, need, tenant, word};
use super::message::{Persisted, needed, optional};

impl Persisted for Change {
    type Message = pb::Change;

    fn to_message(&self) -> pb::Change {
        pb::Change {
            at: self.at.0,
            author: self.author.0.clone(),
            kind: self.kind.number().into(),
            memory: self.memory.bytes().to_vec(),
            other: self.other.map(|id| id.bytes().to_vec()),
            link: self.link.map(|id| id.bytes().to_vec()),
            relationship: self.relationship.map(|relationship| relationship.number().into()),
            version: self.version,
            scope: Some(self.scope.to_message()),
        }
    }

    fn from_message(m: pb::Change) -> Result<Self, Malformed> {
        Ok(Self {
            at: Millis(m.at),
            author: Principal(m.author),
            kind: word("change.kind", m.kind, ChangeKind::from_number)?,
            memory: id("change.memory", &m.memory, MemoryId::from_bytes)?,
            other: m
                .other
                .map(|bytes| id("change.other", &bytes, MemoryId::from_bytes))
                .transpose()?,
            link: m
                .link
                .map(|bytes| id("change.link", &bytes, LinkId::from_bytes))
                .transpose()?,
            relationship: m
                .relationship
                .map(|number| word("change.relationship", number, Relationship::from_number))
                .transpose()?,
            version: m.version,
            scope: needed("change.scope", m.scope)?,
        })
    }
}

impl Persisted for Canonicalize {
    type Message = pb::Canonicalize;

    fn to_message(&self) -> pb::Canonicalize {
        pb::Canonicalize {
            tenant: self.tenant.as_str().to_owned(),
            memories: self.memories.iter().map(|id| id.bytes().to_vec()).collect(),
            canonical: self.canonical.bytes().to_vec(),
        }
    }

    fn from_message(m: pb::Canonicalize) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("canonicalize.tenant", &m.tenant)?,
            memories: ids("canonicalize.memories", &m.memories, MemoryId::from_bytes)?,
            canonical: id("canonicalize.canonical", &m.canonical, MemoryId::from_bytes)?,
        })
    }
}

impl Persisted for Canonicalized {
    type Message = pb::Canonicalized;

    fn to_message(&self) -> pb::Canonicalized {
        pb::Canonicalized {
            id: self.id.bytes().to_vec(),
            merged: self.merged.iter().map(|id| id.bytes().to_vec()).collect(),
            links_moved: self.links_moved,
            links_dropped: self.links_dropped,
            aliases_added: self.aliases_added,
        }
    }

    fn from_message(m: pb::Canonicalized) -> Result<Self, Malformed> {
        Ok(Self {
            id: id("canonicalized.id", &m.id, MemoryId::from_bytes)?,
            merged: ids("canonicalized.merged", &m.merged, MemoryId::from_bytes)?,
            links_moved: m.links_moved,
            links_dropped: m.links_dropped,
            aliases_added: m.aliases_added,
        })
    }
}

impl Persisted for Clear {
    type Message = pb::Clear;

    fn to_message(&self) -> pb::Clear {
        pb::Clear {
            tenant: self.tenant.as_str().to_owned(),
            target: Some(self.target.to_message()),
            from: self.from.as_ref().map(Persisted::to_message),
            rows_max: self.rows_max,
        }
    }

    fn from_message(m: pb::Clear) -> Result<Self, Malformed> {
        Ok(Self {
            tenant: tenant("clear.tenant", &m.tenant)?,
            target: needed("clear.target", m.target)?,
            from: optional(m.from)?,
            rows_max: m.rows_max,
        })
    }
}

impl Persisted for ClearTarget {
    type Message = pb::ClearTarget;

    fn to_message(&self) -> pb::ClearTarget {
        use pb::clear_target::{All, Session, Target};
        let target = match self {
            Self::All => Target::All(All {}),
            Self::Project(name) => Target::Project(name.clone()),
            Self::Session { project, session } => Target::Session(Session {
                project: project.clone(),
                session: session.clone(),
            }),
        };
        pb::ClearTarget { target: Some(target) }
    }

    fn from_message(m: pb::ClearTarget) -> Result<Self, Malformed> {
        use pb::clear_target::Target;
        Ok(match need("clear.target", m.target)? {
            Target::All(_) => Self::All,
            Target::Project(name) => Self::Project(name),
            Target::Session(m) => Self::Session {
                project: m.project,
                session: m.session,
            },
        })
    }
}

impl Persisted for ClearPoint {
    type Message = pb::ClearPoint;

    fn to_message(&self) -> pb::ClearPoint {
        use pb::clear_point::{After, Memories, Phase, Turns};
        let phase = match self.phase {
            ClearPhase::Memories(after) => Phase::Memories(Memories {
                after: after.map(|(fingerprint, memory)| After {
                    fingerprint: fingerprint.0,
                    memory: memory.bytes().to_vec(),
                }),
            }),
            ClearPhase::Turns => Phase::Turns(Turns {}),
        };
        pb::ClearPoint {
            project: self.project.clone(),
            phase: Some(phase),
        }
    }

    fn from_message(m: pb::ClearPoint) -> Result<Self, Malformed> {
        use pb::clear_point::Phase;
        let phase = match need("clear.phase", m.phase)? {
            Phase::Memories(m) => {
                let after = m.after.map(|after| {
                    let memory = id("clear.after", &after.memory, MemoryId::from_bytes)?;
                    Ok::<_, Malformed>((Fingerprint(after.fingerprint), memory))
                });
                ClearPhase::Memories(after.transpose()?)
            }
            Phase::Turns(_) => ClearPhase::Turns,
        };
        Ok(Self {
            project: m.project,
            phase,
        })
    }
}

impl Persisted for Cleared {
    type Message = pb::Cleared;

    fn to_message(&self) -> pb::Cleared {
        let kinds = (0..).zip(&self.memories_by_kind).filter(|(_, count)| **count > 0);
        pb::Cleared {
            memories_by_kind: kinds
                .map(|(kind, count)| pb::cleared::OfKind { kind, count: *count })
                .collect(),
            links: self.links,
            turns: self.turns,
            sessions: self.sessions,
            evidence: self.evidence,
            receipt: self.receipt.clone(),
            next: self.next.as_ref().map(Persisted::to_message),
        }
    }

    fn from_message(m: pb::Cleared) -> Result<Self, Malformed> {
        let mut cleared = Self {
            links: m.links,
            turns: m.turns,
            sessions: m.sessions,
            evidence: m.evidence,
            receipt: m.receipt,
            next: optional(m.next)?,
            ..Self::default()
        };
        for of_kind in m.memories_by_kind {
            let cell = usize::try_from(of_kind.kind)
                .ok()
                .and_then(|kind| cleared.memories_by_kind.get_mut(kind));
            let unknown = Malformed::UnknownNumber {
                field: "cleared.kind",
                number: i64::from(of_kind.kind),
            };
            *cell.ok_or(unknown)? = of_kind.count;
        }
        Ok(cleared)
    }
}
