//! Replicated intents. A command has no behaviour: everything uncertain (ids, times, vectors, extracted drafts) was
//! decided before the proposal and is carried inside. `apply` gives each its effect.

use crate::clear::Clear;
use crate::handoff::{RememberMessages, StoreMessages};
use crate::id::{EvidenceId, LinkId, MemoryId, PairId, Principal, RequestId, TenantId, TurnId};
use crate::import::ImportRecords;
use crate::kind::{Confidence, Kind, Origin, Relationship, Role};
use crate::memory::VectorDraft;
use crate::meta::{ApiKey, JoinToken, KeyId, NodeInfo, Placement, Tenant};
use crate::scope::Scope;
use crate::statement::Statement;
use crate::time::{Millis, Stamp};

/// One entry of a shard's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The leader's time; apply raises it if needed so that stamps increase (I-08).
    pub stamp: Stamp,
    /// Who asks, from the credential.
    pub principal: Principal,
    /// Makes a retry harmless; absent for the system's own commands.
    pub request: Option<Request>,
    /// What to do.
    pub command: Command,
}

/// Identity of a mutating call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's (or the gateway's) id.
    pub id: RequestId,
    /// Fingerprint of tool and arguments: the same id with other arguments is refused.
    pub arguments: u64,
}

/// What to do. Numbers of the persisted format are in `proto/log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Store turns, memories and links in one step.
    Remember(Box<Remember>),
    /// Change one memory.
    UpdateMemory(Box<UpdateMemory>),
    /// Erase one memory.
    DeleteMemory {
        /// Whose.
        tenant: TenantId,
        /// Which.
        id: MemoryId,
    },
    /// Make or strengthen a link.
    StoreLink(StoreLink),
    /// Erase a link and nothing else.
    DeleteLink {
        /// Whose.
        tenant: TenantId,
        /// Which.
        id: LinkId,
    },
    /// Settle a conflict.
    ResolveConflict(ResolveConflict),
    /// Vectors of items that were stored as text first.
    AttachVectors(AttachVectors),
    /// Take in records of an export.
    ImportRecords(Box<ImportRecords>),
    /// Forget request ids whose time is over.
    ExpireRequests {
        /// Those recorded before this moment.
        before: Millis,
    },
    /// Meta: the first entry of a cluster.
    InitCluster(Placement),
    /// Meta: the next placement, if its version is the one after the stored one.
    ChangePlacement(Placement),
    /// Meta: lets one more node join.
    CreateJoinToken(JoinToken),
    /// Meta: a node joins.
    JoinNode(Box<JoinNode>),
    /// Meta: a tenant.
    CreateTenant(Tenant),
    /// Meta: an API key.
    CreateKey(ApiKey),
    /// Meta: end an API key.
    RevokeKey {
        /// Which.
        id: KeyId,
        /// None for an operator of the whole cluster, else the tenant whose key it must be.
        of_tenant: Option<TenantId>,
    },
    /// Store messages of a transcript, each once.
    StoreMessages(Box<StoreMessages>),
    /// Store what was extracted from stored messages, once.
    RememberMessages(Box<RememberMessages>),
    /// Merge memories into one by hand.
    Canonicalize(Canonicalize),
    /// One step of erasing a scope.
    Clear(Clear),
}

impl Command {
    /// The tenant whose rows it touches; None for commands of the meta shard and of a shard as a whole.
    pub fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Remember(c) => Some(&c.tenant),
            Self::UpdateMemory(c) => Some(&c.tenant),
            Self::DeleteMemory { tenant, .. } | Self::DeleteLink { tenant, .. } => Some(tenant),
            Self::StoreLink(c) => Some(&c.tenant),
            Self::ResolveConflict(c) => Some(&c.tenant),
            Self::AttachVectors(c) => Some(&c.tenant),
            Self::ImportRecords(c) => Some(&c.tenant),
            Self::StoreMessages(c) => Some(&c.tenant),
            Self::RememberMessages(c) => Some(&c.remember.tenant),
            Self::Canonicalize(c) => Some(&c.tenant),
            Self::Clear(c) => Some(&c.tenant),
            Self::ExpireRequests { .. }
            | Self::InitCluster(_)
            | Self::ChangePlacement(_)
            | Self::CreateJoinToken(_)
            | Self::JoinNode(_)
            | Self::CreateTenant(_)
            | Self::CreateKey(_)
            | Self::RevokeKey { .. } => None,
        }
    }
}

/// A node that asks to be part of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinNode {
    /// Itself.
    pub node: NodeInfo,
    /// The token that it was given.
    pub token: KeyId,
    /// SHA-256 of the token's secret.
    pub secret_hash: Vec<u8>,
}

/// Turns with what was extracted from them, or memories that somebody stored as such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remember {
    /// Whose.
    pub tenant: TenantId,
    /// Where.
    pub scope: Scope,
    /// Namespace for a project that is used for the first time.
    pub namespace: String,
    /// Which part of the system asks.
    pub origin: Origin,
    /// Joins the turns of one call.
    pub pair: PairId,
    /// Stored first, verbatim.
    pub turns: Vec<NewTurn>,
    /// Stored, or merged into what is there.
    pub memories: Vec<NewMemory>,
    /// Between `memories`, by position.
    pub links: Vec<NewLink>,
}

/// A turn to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTurn {
    /// Its identity.
    pub id: TurnId,
    /// Who spoke.
    pub role: Role,
    /// Verbatim after redaction.
    pub text: String,
    /// When it was said.
    pub observed_at: Millis,
    /// Its meaning.
    pub vector: VectorDraft,
}

/// A memory to store unless it is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    /// Its identity if it turns out to be new.
    pub id: MemoryId,
    /// Short name.
    pub label: String,
    /// The statement.
    pub content: String,
    /// What sort.
    pub kind: Kind,
    /// Caller's and bookkeeping tags.
    pub tags: Vec<String>,
    /// Caller's note.
    pub source_prompt: String,
    /// How it came to be believed.
    pub confidence: Confidence,
    /// Stated start of validity.
    pub valid_from: Option<Millis>,
    /// Default start of validity where none is stated (observed_at); None = the stamp.
    pub default_valid_from: Option<Millis>,
    /// Stated end of validity.
    pub valid_to: Option<Millis>,
    /// When it falls due.
    pub due: Option<Millis>,
    /// What the rules read in it.
    pub statement: Statement,
    /// Version of those rules.
    pub rules_version: u32,
    /// What it rests on.
    pub evidence: NewEvidence,
    /// Its meaning.
    pub vector: VectorDraft,
    /// A duplicate that only similarity can find, with every gate checked by the leader.
    pub similar: Option<SimilarMemory>,
}

/// Evidence of a new memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvidence {
    /// Its identity.
    pub id: EvidenceId,
    /// Where in the turns of the same command; None = the author's word.
    pub span: Option<NewSpan>,
    /// The words.
    pub text: String,
    /// When it was said; None = the stamp.
    pub observed_at: Option<Millis>,
}

/// A byte range of a turn of the same command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSpan {
    /// Position in `Remember::turns`.
    pub turn: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A stored memory that the leader found equal by label or meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimilarMemory {
    /// Which.
    pub id: MemoryId,
    /// The text version that was compared: a changed one is not merged into.
    pub text_version: u32,
    /// By which rule.
    pub reason: DedupReason,
    /// Cosine in thousandths.
    pub similarity_thousandths: u32,
}

/// By which rule two memories were found to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DedupReason {
    /// Same text.
    ExactContent = 1,
    /// Same statement in other words.
    CanonicalForm = 2,
    /// Same label and close in meaning.
    SameLabel = 3,
    /// Very close in meaning.
    Semantic = 4,
}

impl DedupReason {
    /// The number of the persisted format.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Reads the number of the persisted format.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::ExactContent,
            2 => Self::CanonicalForm,
            3 => Self::SameLabel,
            4 => Self::Semantic,
            _ => return None,
        })
    }

    /// The word of the tool surface.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ExactContent => "exact_content",
            Self::CanonicalForm => "canonical_form",
            Self::SameLabel => "same_label",
            Self::Semantic => "semantic",
        }
    }
}

/// A link between two memories of the same command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLink {
    /// Its identity if it turns out to be new.
    pub id: LinkId,
    /// Position in `Remember::memories`.
    pub source: u32,
    /// Position in `Remember::memories`.
    pub target: u32,
    /// What it says.
    pub relationship: Relationship,
    /// How it came to be believed.
    pub confidence: Confidence,
    /// 0 to 1000.
    pub weight_thousandths: u32,
    /// Why.
    pub reason: String,
    /// Words that both share.
    pub shared_terms: Vec<String>,
}

/// A change of one memory; None leaves a field alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateMemory {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub id: MemoryId,
    /// Refused when the current version is another.
    pub expected_version: Option<u32>,
    /// The version that the leader read; text and statement below belong to it.
    pub based_on_version: u32,
    /// New short name.
    pub label: Option<String>,
    /// New statement.
    pub content: Option<String>,
    /// Replaces the caller's tags.
    pub tags: Option<Vec<String>>,
    /// New start of validity.
    pub valid_from: Option<Millis>,
    /// New end of validity.
    pub valid_to: Option<Millis>,
    /// What the rules read in the new text; None when the text stays.
    pub statement: Option<Statement>,
    /// Version of those rules.
    pub rules_version: u32,
    /// The meaning of the new text; None when the text stays.
    pub vector: Option<VectorDraft>,
}

/// A link that somebody draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLink {
    /// Whose.
    pub tenant: TenantId,
    /// Its identity if it turns out to be new.
    pub id: LinkId,
    /// From.
    pub source: MemoryId,
    /// To.
    pub target: MemoryId,
    /// What it says.
    pub relationship: Relationship,
    /// 0 to 1000.
    pub weight_thousandths: u32,
}

/// Settling a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveConflict {
    /// Whose.
    pub tenant: TenantId,
    /// The conflict.
    pub link: LinkId,
    /// The end that holds; None: both stay.
    pub winner: Option<MemoryId>,
    /// Why.
    pub note: String,
    /// When the loser ended; None = now.
    pub valid_to: Option<Millis>,
}

/// A deliberate merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonicalize {
    /// Whose.
    pub tenant: TenantId,
    /// Merged away, in this order; at most [`Canonicalize::MEMORIES_MAX`].
    pub memories: Vec<MemoryId>,
    /// What stays.
    pub canonical: MemoryId,
}

impl Canonicalize {
    /// Most memories merged by one command.
    pub const MEMORIES_MAX: usize = 50;
}

/// Vectors that follow their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachVectors {
    /// Whose.
    pub tenant: TenantId,
    /// At most [`AttachVectors::ITEMS_MAX`].
    pub items: Vec<LateVector>,
}

impl AttachVectors {
    /// Most vectors in one command (each about 400 bytes).
    pub const ITEMS_MAX: usize = 256;
}

/// One late vector; ignored when the item changed, was erased or has its vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateVector {
    /// Of what.
    pub item: crate::tables::Item,
    /// Text version of the memory that was embedded; 0 for a turn.
    pub text_version: u32,
    /// The vector; None: the model has nothing to say about this text.
    pub vector: Option<crate::memory::Vector>,
}
