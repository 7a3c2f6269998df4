//! Entries and commands.

use waggle_memory::clear::{Clear, ClearPhase, ClearPoint, ClearTarget};
use waggle_memory::command::{
    AttachVectors, Canonicalize, Command, Entry, JoinNode, LateVector, NewEvidence, NewLink, NewMemory, NewSpan,
    NewTurn, Remember, Request, ResolveConflict, SimilarMemory, StoreLink, UpdateMemory,
};
use waggle_memory::handoff::{NewMessage, RememberMessages, StoreMessages};
use waggle_memory::id::{EvidenceId, LinkId, MemoryId, PairId, RequestId, TurnId};
use waggle_memory::kind::{Confidence, Kind, Origin, Relationship, Role};
use waggle_memory::meta::KeyId;
use waggle_memory::statement::Fingerprint;

use super::rows::DEDUP;
use super::{Draw, Sort};

/// Number of commands that [`Draw::command`] knows.
pub const COMMANDS: usize = 20;

const REMEMBER: usize = 0;

impl Draw {
    pub fn entry(&mut self) -> Entry {
        let mut command = self.below(COMMANDS);
        // Half of all entries make something that the others can meet.
        if self.near && self.flag() {
            command = REMEMBER;
        }
        self.entry_with(command)
    }

    /// An entry with the command of a number below [`COMMANDS`].
    pub fn entry_with(&mut self, command: usize) -> Entry {
        Entry {
            stamp: self.stamp(),
            principal: self.principal(),
            request: self.maybe(|draw| Request {
                id: RequestId(draw.text()),
                arguments: draw.number(),
            }),
            command: self.command(command),
        }
    }

    pub fn command(&mut self, number: usize) -> Command {
        match number {
            REMEMBER => Command::Remember(Box::new(Remember {
                tenant: self.tenant(),
                scope: self.scope(),
                namespace: self.text(),
                origin: self.pick(Origin::ALL),
                pair: PairId::from_bytes(self.bytes()),
                turns: self.list(Self::new_turn),
                memories: self.list(Self::new_memory),
                links: self.list(Self::new_link),
            })),
            1 => Command::UpdateMemory(Box::new(UpdateMemory {
                tenant: self.tenant(),
                id: self.memory_id(),
                expected_version: self.maybe(Self::u32),
                based_on_version: self.u32(),
                label: self.maybe(Self::text),
                content: self.maybe(Self::text),
                tags: self.maybe(|draw| draw.list(Self::text)),
                valid_from: self.maybe(Self::time),
                valid_to: self.maybe(Self::time),
                statement: self.maybe(Self::statement),
                rules_version: self.u32(),
                vector: self.maybe(Self::vector_draft),
            })),
            2 => Command::DeleteMemory {
                tenant: self.tenant(),
                id: self.memory_id(),
            },
            3 => Command::StoreLink(StoreLink {
                tenant: self.tenant(),
                id: LinkId::from_bytes(self.new_id(Sort::Link)),
                source: self.memory_id(),
                target: self.memory_id(),
                relationship: self.pick(Relationship::ALL),
                weight_thousandths: self.u32(),
            }),
            4 => Command::ResolveConflict(ResolveConflict {
                tenant: self.tenant(),
                link: self.link_id(),
                winner: self.maybe(Self::memory_id),
                note: self.text(),
                valid_to: self.maybe(Self::time),
            }),
            5 => Command::AttachVectors(AttachVectors {
                tenant: self.tenant(),
                items: self.list(|draw| LateVector {
                    item: draw.item(),
                    text_version: draw.u32(),
                    vector: draw.maybe(Self::vector),
                }),
            }),
            6 => Command::ExpireRequests { before: self.time() },
            7 => Command::InitCluster(self.placement()),
            8 => Command::CreateTenant(self.tenant_info()),
            9 => Command::CreateKey(self.api_key()),
            10 => Command::RevokeKey {
                id: KeyId(self.text()),
                of_tenant: self.maybe(Self::tenant),
            },
            11 => Command::ImportRecords(Box::new(self.import())),
            12 => Command::DeleteLink {
                tenant: self.tenant(),
                id: self.link_id(),
            },
            13 => Command::StoreMessages(Box::new(StoreMessages {
                tenant: self.tenant(),
                scope: self.scope(),
                namespace: self.text(),
                messages: self.list(Self::new_message),
            })),
            14 => Command::Canonicalize(Canonicalize {
                tenant: self.tenant(),
                memories: self.list(Self::memory_id),
                canonical: self.memory_id(),
            }),
            15 => Command::Clear(Clear {
                tenant: self.tenant(),
                target: self.clear_target(),
                from: self.unless_near(Self::clear_point),
                rows_max: self.u32(),
            }),
            17 => Command::ChangePlacement(self.placement()),
            18 => Command::CreateJoinToken(self.join_token()),
            19 => Command::JoinNode(Box::new(JoinNode {
                node: self.node_info(),
                token: KeyId(self.text()),
                secret_hash: self.bytes::<32>().to_vec(),
            })),
            _ => {
                let turns = self.list(Self::turn_id);
                let Command::Remember(mut remember) = self.command(REMEMBER) else {
                    unreachable!("the first command is Remember")
                };
                if self.near {
                    remember.turns.clear();
                }
                Command::RememberMessages(Box::new(RememberMessages {
                    turns,
                    remember: *remember,
                }))
            }
        }
    }

    fn clear_target(&mut self) -> ClearTarget {
        match self.below(3) {
            0 if !self.near => ClearTarget::All,
            1 => ClearTarget::Project(self.text()),
            _ => ClearTarget::Session {
                project: self.maybe(Self::text),
                session: self.text(),
            },
        }
    }

    pub fn clear_point(&mut self) -> ClearPoint {
        ClearPoint {
            project: self.text(),
            phase: if self.flag() {
                ClearPhase::Memories(self.maybe(|draw| (draw.fingerprint(), draw.memory_id())))
            } else {
                ClearPhase::Turns
            },
        }
    }

    fn new_turn(&mut self) -> NewTurn {
        NewTurn {
            id: TurnId::from_bytes(self.new_id(Sort::Turn)),
            role: self.pick(Role::ALL),
            text: self.text(),
            observed_at: self.time(),
            vector: self.vector_draft(),
        }
    }

    fn new_message(&mut self) -> NewMessage {
        NewMessage {
            identity: self.message_id(),
            content: Fingerprint(self.number() % 2),
            pair: PairId::from_bytes(self.bytes()),
            turn: self.new_turn(),
        }
    }

    fn new_memory(&mut self) -> NewMemory {
        NewMemory {
            id: MemoryId::from_bytes(self.new_id(Sort::Memory)),
            label: self.text(),
            content: self.text(),
            kind: self.pick(Kind::ALL),
            tags: self.list(Self::text),
            source_prompt: self.text(),
            confidence: self.pick(Confidence::ALL),
            valid_from: self.maybe(Self::time),
            default_valid_from: self.maybe(Self::time),
            valid_to: self.unless_near(Self::time),
            due: self.maybe(Self::time),
            statement: self.statement(),
            rules_version: self.u32(),
            evidence: NewEvidence {
                id: EvidenceId::from_bytes(self.bytes()),
                span: self.unless_near(|draw| NewSpan {
                    turn: draw.u32(),
                    start: draw.u32(),
                    end: draw.u32(),
                }),
                text: self.text(),
                observed_at: self.maybe(Self::time),
            },
            vector: self.vector_draft(),
            similar: self.maybe(|draw| SimilarMemory {
                id: draw.memory_id(),
                text_version: draw.u32(),
                reason: draw.pick(&DEDUP),
                similarity_thousandths: draw.u32(),
            }),
        }
    }

    fn new_link(&mut self) -> NewLink {
        NewLink {
            id: LinkId::from_bytes(self.new_id(Sort::Link)),
            source: self.u32(),
            target: self.u32(),
            relationship: self.pick(Relationship::ALL),
            confidence: self.pick(Confidence::ALL),
            weight_thousandths: self.u32(),
            reason: self.text(),
            shared_terms: self.list(Self::text),
        }
    }
}
