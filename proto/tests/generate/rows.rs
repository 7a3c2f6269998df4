//! Rows.

use waggle_memory::change::{Change, ChangeKind};
use waggle_memory::clear::Cleared;
use waggle_memory::command::DedupReason;
use waggle_memory::handoff::Message;
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, MessageId, PairId, TurnId};
use waggle_memory::import::{ConflictReason, Counted, ImportConflict, Imported, RecordKind};
use waggle_memory::kind::{Confidence, Kind, Origin, Relationship, Role};
use waggle_memory::link::{Link, Resolution};
use waggle_memory::memory::{Alias, ChangeReason, Erased, Evidence, Memory, Tombstone, TurnSpan, Version};
use waggle_memory::meta::{
    ApiKey, ClusterId, JoinToken, KeyId, KeyScopes, NodeId, NodeInfo, NodeState, Placement, Replica, ReplicaState,
    ShardId, ShardPlacement, Tenant,
};
use waggle_memory::outcome::{Canonicalized, Outcome, Rejection, Remembered, StoredMemory};
use waggle_memory::tables::{RequestRow, Row};
use waggle_memory::transcript::{Agent, Counters, Project, Session, TenantState, Turn};
use waggle_proto::log::RowKind;

use super::{Draw, Sort};

const CHANGES: [ChangeReason; 6] = [
    ChangeReason::Update,
    ChangeReason::Merge,
    ChangeReason::Resolve,
    ChangeReason::Reopen,
    ChangeReason::Ended,
    ChangeReason::Import,
];
pub const DEDUP: [DedupReason; 4] = [
    DedupReason::ExactContent,
    DedupReason::CanonicalForm,
    DedupReason::SameLabel,
    DedupReason::Semantic,
];

impl Draw {
    pub fn memory_id(&mut self) -> MemoryId {
        MemoryId::from_bytes(self.id(Sort::Memory))
    }

    pub fn link_id(&mut self) -> LinkId {
        LinkId::from_bytes(self.id(Sort::Link))
    }

    pub fn turn_id(&mut self) -> TurnId {
        TurnId::from_bytes(self.id(Sort::Turn))
    }

    /// One of few, so that messages repeat.
    pub fn message_id(&mut self) -> MessageId {
        MessageId::from_bytes([self.pick(&[1, 2, 3]); 16])
    }

    pub fn message(&mut self) -> Message {
        Message {
            identity: self.message_id(),
            content: self.fingerprint(),
            extracted: self.flag(),
        }
    }

    pub fn row(&mut self, kind: RowKind) -> Row {
        match kind {
            RowKind::Stamp => Row::Stamp(self.stamp()),
            RowKind::Placement => Row::Placement(self.placement()),
            RowKind::TenantInfo => Row::TenantInfo(self.tenant_info()),
            RowKind::ApiKey => Row::ApiKey(self.api_key()),
            RowKind::JoinToken => Row::JoinToken(self.join_token()),
            RowKind::State => Row::State(self.tenant_state()),
            RowKind::Memory => Row::Memory(Box::new(self.memory())),
            RowKind::Version => Row::Version(Box::new(self.version())),
            RowKind::Evidence => Row::Evidence(Box::new(self.evidence())),
            RowKind::Link => Row::Link(Box::new(self.link())),
            RowKind::LinkId => Row::LinkId(self.link_id()),
            RowKind::Turn => Row::Turn(Box::new(self.turn())),
            RowKind::TurnId => Row::TurnId(self.turn_id()),
            RowKind::Session => Row::Session(self.session()),
            RowKind::Project => Row::Project(self.project()),
            RowKind::Agent => Row::Agent(self.agent()),
            RowKind::Vector => Row::Vector(self.vector()),
            RowKind::Tombstone => Row::Tombstone(self.tombstone()),
            RowKind::Request => Row::Request(self.request_row()),
            RowKind::Message => Row::Message(self.message()),
            RowKind::Change => Row::Change(Box::new(self.change())),
            RowKind::Redirect => Row::Redirect(self.memory_id()),
            RowKind::Mark => Row::Mark,
        }
    }

    pub fn memory(&mut self) -> Memory {
        Memory {
            id: self.memory_id(),
            namespace: self.text(),
            scope: self.scope(),
            label: self.text(),
            content: self.text(),
            kind: self.pick(Kind::ALL),
            tags: self.list(Self::text),
            aliases: self.list(|draw| Alias {
                text: draw.text(),
                author: draw.principal(),
                added_at: draw.time(),
                exact: draw.maybe(Self::fingerprint),
            }),
            source_prompt: self.text(),
            metadata: self.text(),
            evidence_count: self.u32(),
            confidence: self.pick(Confidence::ALL),
            valid_from: self.time(),
            valid_from_stated: self.flag(),
            valid_to: self.maybe(Self::time),
            recorded_at: self.time(),
            updated_at: self.time(),
            version: self.u32(),
            text_version: self.u32(),
            author: self.principal(),
            due: self.maybe(Self::time),
            superseded_by: self.maybe(Self::memory_id),
            statement: self.statement(),
            rules_version: self.u32(),
            link_count: self.u32(),
            open_conflict_count: self.u32(),
        }
    }

    pub fn version(&mut self) -> Version {
        Version {
            version: self.u32(),
            recorded_at: self.time(),
            replaced_at: self.time(),
            replaced_by: self.principal(),
            reason: self.pick(&CHANGES),
            label: self.text(),
            content: self.text(),
            kind: self.pick(Kind::ALL),
            tags: self.list(Self::text),
            valid_from: self.time(),
            valid_to: self.maybe(Self::time),
            superseded_by: self.maybe(Self::memory_id),
        }
    }

    pub fn evidence(&mut self) -> Evidence {
        Evidence {
            id: EvidenceId::from_bytes(self.bytes()),
            turn: self.maybe(|draw| TurnSpan {
                turn: draw.turn_id(),
                turn_index: draw.u32(),
                role: draw.pick(Role::ALL),
                start: draw.u32(),
                end: draw.u32(),
            }),
            scope: self.scope(),
            text: self.text(),
            observed_at: self.time(),
            author: self.principal(),
        }
    }

    pub fn link(&mut self) -> Link {
        Link {
            id: self.link_id(),
            source: self.memory_id(),
            target: self.memory_id(),
            relationship: self.pick(Relationship::ALL),
            weight_thousandths: self.u32(),
            confidence: self.pick(Confidence::ALL),
            origin: self.pick(Origin::ALL),
            reason: self.text(),
            shared_terms: self.list(Self::text),
            author: self.principal(),
            created_at: self.time(),
            version: self.u32(),
            resolution: self.maybe(|draw| Resolution {
                resolved: draw.flag(),
                winner: draw.maybe(Self::memory_id),
                note: draw.text(),
                stated: draw.flag(),
                by: draw.maybe(Self::principal),
                at: draw.maybe(Self::time),
                loser_valid_to_before: draw.maybe(|draw| draw.maybe(Self::time)),
            }),
        }
    }

    pub fn turn(&mut self) -> Turn {
        Turn {
            id: self.turn_id(),
            pair: PairId::from_bytes(self.bytes()),
            scope: self.scope(),
            role: self.pick(Role::ALL),
            turn_index: self.u32(),
            text: self.text(),
            observed_at: self.time(),
            recorded_at: self.time(),
            author: self.principal(),
            memories: self.list(Self::memory_id),
        }
    }

    pub fn session(&mut self) -> Session {
        Session {
            project: self.text(),
            session_id: self.text(),
            agents: self.list(Self::text),
            title: self.text(),
            first_used_at: self.time(),
            last_used_at: self.time(),
            turn_count: self.u32(),
            memory_count: self.u32(),
        }
    }

    pub fn project(&mut self) -> Project {
        Project {
            name: self.text(),
            namespace: self.text(),
            first_used_at: self.time(),
            last_used_at: self.time(),
            counters: self.counters(),
        }
    }

    pub fn agent(&mut self) -> Agent {
        Agent {
            name: self.text(),
            last_used_at: self.time(),
            memory_count: self.u32(),
            turn_count: self.u32(),
        }
    }

    pub fn counters(&mut self) -> Counters {
        Counters {
            memories_by_kind: std::array::from_fn(|_| self.u64()),
            memories_closed: self.u64(),
            links: std::array::from_fn(|_| std::array::from_fn(|_| self.u64())),
            open_conflicts: self.u64(),
            sessions: self.u64(),
            turns: self.u64(),
            text_bytes: self.u64(),
        }
    }

    pub fn tenant_state(&mut self) -> TenantState {
        TenantState {
            counters: self.counters(),
            awaiting_vectors: self.u64(),
            most_connected: self.list(|draw| (draw.memory_id(), draw.u32())),
            changes: self.u64(),
        }
    }

    pub fn tombstone(&mut self) -> Tombstone {
        Tombstone {
            deleted_at: self.time(),
            author: self.principal(),
            receipt: self.text(),
            deleted_links: self.u32(),
            turns_kept: self.u32(),
            of: self.maybe(|draw| Erased {
                scope: draw.scope(),
                kind: draw.pick(Kind::ALL),
                recorded_at: draw.time(),
                content_hash: draw.bytes(),
            }),
        }
    }

    pub fn change(&mut self) -> Change {
        Change {
            at: self.time(),
            author: self.principal(),
            kind: self.pick(ChangeKind::ALL),
            memory: self.memory_id(),
            other: self.maybe(Self::memory_id),
            link: self.maybe(Self::link_id),
            relationship: self.maybe(|draw| draw.pick(Relationship::ALL)),
            version: self.u32(),
            scope: self.scope(),
        }
    }

    pub fn placement(&mut self) -> Placement {
        Placement {
            cluster: ClusterId(self.bytes()),
            version: self.u64(),
            slots: self.list(|draw| ShardId(draw.u32())),
            shards: self.list(|draw| ShardPlacement {
                shard: ShardId(draw.u32()),
                replicas: draw.list(|draw| Replica {
                    id: draw.u64(),
                    node: NodeId(draw.u64()),
                    state: draw.pick(&[ReplicaState::Joining, ReplicaState::Voting, ReplicaState::Leaving]),
                }),
            }),
            nodes: self.list(Self::node_info),
            replication: self.pick(&[1, 3, 5]),
            next_replica: self.u64(),
        }
    }

    pub fn node_info(&mut self) -> NodeInfo {
        NodeInfo {
            id: NodeId(self.u64()),
            address: self.text(),
            zone: self.text(),
            state: self.pick(&[
                NodeState::Active,
                NodeState::Draining,
                NodeState::Decommissioning,
                NodeState::Gone,
            ]),
            joined_at: self.time(),
            incarnation: self.bytes(),
        }
    }

    pub fn join_token(&mut self) -> JoinToken {
        JoinToken {
            id: KeyId(self.text()),
            secret_hash: self.bytes::<32>().to_vec(),
            expires_at: self.time(),
            used_by: self.maybe(|draw| NodeId(draw.u64())),
        }
    }

    pub fn tenant_info(&mut self) -> Tenant {
        Tenant {
            id: self.tenant(),
            name: self.text(),
            created_at: self.time(),
        }
    }

    pub fn api_key(&mut self) -> ApiKey {
        ApiKey {
            id: KeyId(self.text()),
            tenant: self.tenant(),
            name: self.text(),
            secret_hash: self.bytes::<32>().to_vec(),
            scopes: KeyScopes::from_bits(u8::try_from(self.below(16)).unwrap()),
            created_by: self.text(),
            created_at: self.time(),
            expires_at: self.maybe(Self::time),
            revoked_at: self.maybe(Self::time),
            unlimited: self.flag(),
        }
    }

    pub fn request_row(&mut self) -> RequestRow {
        RequestRow {
            arguments: self.number(),
            at: self.time(),
            outcome: self.outcome(),
        }
    }

    pub fn outcome(&mut self) -> Outcome {
        match self.below(15) {
            12 => Outcome::Canonicalized(Box::new(Canonicalized {
                id: self.memory_id(),
                merged: self.list(Self::memory_id),
                links_moved: self.u32(),
                links_dropped: self.u32(),
                aliases_added: self.u32(),
            })),
            13 => Outcome::Cleared(Box::new(Cleared {
                memories_by_kind: std::array::from_fn(|_| self.u64()),
                links: self.u64(),
                turns: self.u64(),
                sessions: self.u64(),
                evidence: self.u64(),
                receipt: self.text(),
                next: self.maybe(Self::clear_point),
            })),
            0 => Outcome::Updated {
                id: self.memory_id(),
                previous_version: self.u32(),
                conflicts: self.list(Self::link_id),
            },
            1 => Outcome::Deleted {
                id: self.memory_id(),
                deleted: self.flag(),
                label: self.text(),
                deleted_links: self.u32(),
                turns_kept: self.u32(),
                receipt: self.text(),
            },
            2 => Outcome::LinkStored {
                id: self.link_id(),
                created: self.flag(),
            },
            3 => Outcome::ConflictResolved { id: self.link_id() },
            4 => Outcome::Done,
            5 => Outcome::Rejected(self.rejection()),
            7 => Outcome::LinkDeleted {
                id: self.link_id(),
                deleted: self.flag(),
            },
            6 => Outcome::Imported(Box::new(self.imported())),
            8 => Outcome::MessagesStored {
                turns: self.list(Self::turn_id),
                written: self.u32(),
            },
            9 => Outcome::MessageReused { position: self.u32() },
            10 => Outcome::AlreadyExtracted,
            _ => Outcome::Remembered(Box::new(Remembered {
                turns: self.list(Self::turn_id),
                memories: self.list(|draw| StoredMemory {
                    id: draw.memory_id(),
                    merged: draw.maybe(|draw| draw.pick(&DEDUP)),
                    similarity_thousandths: draw.u32(),
                    alias_added: draw.flag(),
                    aliases_full: draw.flag(),
                }),
                links: self.list(Self::link_id),
                conflicts: self.list(Self::link_id),
                first_use_of_project: self.flag(),
            })),
        }
    }

    fn imported(&mut self) -> Imported {
        let mut counted = || Counted {
            created: self.u64(),
            updated: self.u64(),
            unchanged: self.u64(),
        };
        Imported {
            memories: counted(),
            links: counted(),
            turns: counted(),
            sessions: counted(),
            tombstones: counted(),
            dangling: self.u64(),
            conflicts: self.list(|draw| ImportConflict {
                record: draw.pick(&[RecordKind::Memory, RecordKind::Link, RecordKind::Redirect]),
                id: draw.bytes(),
                why: draw.pick(ConflictReason::ALL),
                field: draw.text(),
            }),
            conflict_count: self.u64(),
        }
    }

    pub fn rejection(&mut self) -> Rejection {
        let what = self.pick(&["memory", "edge", "key", "tenant", "cluster"]);
        match self.below(7) {
            0 => Rejection::NotFound { what, id: self.text() },
            1 => Rejection::VersionConflict { current: self.u32() },
            2 => Rejection::NotResolvable { why: self.text() },
            3 => Rejection::Invalid {
                field: self.pick(&["valid_to", "relationship"]),
                why: self.text(),
            },
            4 => Rejection::LimitExceeded { why: self.text() },
            5 => Rejection::RequestIdReused,
            _ => Rejection::AlreadyExists { what, id: self.text() },
        }
    }
}
