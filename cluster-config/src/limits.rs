//! Every bound of the system (I-40): a value that something may not exceed, with its unit, and what it costs to allow
//! it. A bound that an operator may change has a key in [`crate::keys`], whose default is the value here.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// What the number of a bound counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Count,
    Tokens,
    PerMinute,
    Millis,
}

/// One row of the reference page.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub name: &'static str,
    pub unit: Unit,
    pub value: u64,
    pub doc: &'static str,
    /// What is spent when the bound is reached.
    pub cost: &'static str,
}

macro_rules! bounds {
    ($($(#[doc = $doc:literal])+ $unit:ident $name:ident = $value:expr, costs $cost:literal;)*) => {
        $(
            $(#[doc = $doc])+
            #[doc = ""]
            #[doc = concat!("Costs: ", $cost, ".")]
            pub const $name: bounds!(@type $unit) = $value;
        )*

        /// All of them, in the order of this file.
        pub const ALL: &[Bound] = &[$(Bound {
            name: stringify!($name),
            unit: Unit::$unit,
            value: bounds!(@number $unit $name),
            doc: concat!($($doc),+),
            cost: $cost,
        }),*];
    };
    (@type Millis) => { Duration };
    (@type $other:ident) => { usize };
    (@number Millis $name:ident) => { $name.as_millis() as u64 };
    (@number $other:ident $name:ident) => { $name as u64 };
}

bounds! {
    // What one request may bring.
    /// Body of a request, counted while it is read.
    Bytes BODY_BYTES_MAX = 4 * MIB, costs "that many bytes for each call in flight";
    /// Body of a batch of transcript turns.
    Bytes TRANSCRIPT_BATCH_BYTES_MAX = 8 * MIB, costs "that many bytes for each batch in flight";
    /// Body of a hand-off, a whole transcript at once.
    Bytes HANDOFF_BYTES_MAX = 16 * MIB, costs "that many bytes, and as many again for its messages, for each hand-off in flight";
    /// Messages of a hand-off.
    Count HANDOFF_MESSAGES_MAX = 100_000, costs "about 200 bytes each while the hand-off runs, besides their texts";
    /// A user message, an assistant's answer, a text to decompose.
    Bytes MESSAGE_BYTES_MAX = MIB, costs "one log entry of this size, kept by every replica";
    /// Content of a memory.
    Bytes CONTENT_BYTES_MAX = 64 * KIB, costs "one row of this size for each version";
    /// Label of a memory.
    Bytes LABEL_BYTES_MAX = 800, costs "a part of each row and of each hit";
    /// A query.
    Bytes QUERY_BYTES_MAX = 8 * KIB, costs "time of the encoder, which grows with the words";
    /// Context given with a query or a memory.
    Bytes CONTEXT_BYTES_MAX = 8 * KIB, costs "a part of each row";
    /// The prompt that a memory came from.
    Bytes SOURCE_PROMPT_BYTES_MAX = 8 * KIB, costs "a part of each row";
    /// Note of a resolution.
    Bytes NOTE_BYTES_MAX = 4 * KIB, costs "a part of the row of a conflict";
    /// Metadata of a memory, as JSON.
    Bytes METADATA_BYTES_MAX = 16 * KIB, costs "a part of each row";
    /// Nesting of metadata.
    Count METADATA_DEPTH_MAX = 4, costs "stack while it is read";
    /// Project, agent or session: each of them.
    Bytes SCOPE_PART_BYTES_MAX = 256, costs "a part of each index row of a scope";
    /// One tag.
    Bytes TAG_BYTES_MAX = 64, costs "a part of each row";
    /// Tags of a memory.
    Count TAGS_MAX = 32, costs "2 KiB of a row";
    /// Display name of a tenant or a key.
    Bytes NAME_BYTES_MAX = 200, costs "a part of one row of the meta shard";
    /// A request id of a client.
    Bytes REQUEST_ID_BYTES_MAX = 128, costs "a part of one dedupe row for each mutating call of a day";
    /// How long the outcome of a request id is kept.
    Millis REQUEST_ID_KEPT = Duration::from_secs(24 * 3600), costs "one row of about 200 bytes for each mutating call in this time";

    // What one memory may grow to.
    /// Aliases of a memory.
    Count ALIASES_MAX = 64, costs "up to 50 KiB of a row";
    /// Pieces of evidence kept for a memory.
    Count EVIDENCE_MAX = 1_000, costs "about 150 bytes each";
    /// Versions kept of a memory.
    Count VERSIONS_MAX = 1_000, costs "one row each";
    /// Links of a memory.
    Count LINKS_PER_MEMORY_MAX = 10_000, costs "two index rows each";
    /// Changes kept in the feed of a tenant; past it the oldest is forgotten with each new one.
    Count CHANGES_KEPT_MAX = 1_000_000, costs "one row of about 150 bytes each";
    /// Rows that one step of erasing a session, a project or a tenant touches.
    Count CLEAR_ROWS_PER_STEP = 1_000, costs "a fraction of a second of a replica";
    /// Memories made from one turn; past it the turn is kept and says so.
    Count EXTRACTED_PER_TURN_MAX = 64, costs "one command that writes them all";
    /// Pieces that one text is decomposed into.
    Count PIECES_MAX = 500, costs "one command that writes them all";
    /// Links that one call makes.
    Count LINKS_PER_CALL_MAX = 2_000, costs "one command that writes them all";

    // What one answer may bring.
    /// Memories in the answer of a query.
    Count NODES_MAX = 200, costs "reads of that many rows";
    /// Entries of a list.
    Count LIST_MAX = 200, costs "reads of that many rows";
    /// Depth of a walk along links.
    Count DEPTH_MAX = 5, costs "reads that grow with the links at each step";
    /// Depth that recall widens its hits by.
    Count EXPAND_DEPTH_MAX = 2, costs "reads that grow with the links at each step";
    /// Ids in one call.
    Count IDS_PER_CALL_MAX = 50, costs "that many reads";
    /// Smallest token budget that can be asked for.
    Tokens TOKEN_BUDGET_MIN = 200, costs "nothing";
    /// Token budget of a call that does not name one.
    Tokens TOKEN_BUDGET_DEFAULT = 2_000, costs "8 KiB of answer";
    /// Largest token budget.
    Tokens TOKEN_BUDGET_MAX = 20_000, costs "80 KiB of answer";
    /// A cursor, as text.
    Bytes CURSOR_BYTES_MAX = 2 * KIB, costs "nothing: cursors are not kept";
    /// How long a cursor can be used.
    Millis CURSOR_AGE_MAX = Duration::from_secs(15 * 60), costs "nothing: cursors are not kept";

    // What one key may do.
    /// Reads of one key in a minute.
    PerMinute READS_PER_MINUTE = 6_000, costs "processor time of the gateway and the leader";
    /// Writes of one key in a minute.
    PerMinute WRITES_PER_MINUTE = 3_000, costs "log, and time of the encoder";
    /// Calls of one key at the same time.
    Count CONCURRENT_CALLS_MAX = 64, costs "up to one body each";
    /// Time of a call that does not name one.
    Millis CALL_TIME_DEFAULT = Duration::from_secs(30), costs "a place among the concurrent calls";
    /// Longest time of a call: clients give up at 60 s.
    Millis CALL_TIME_MAX = Duration::from_secs(50), costs "a place among the concurrent calls";

    // Exports and imports.
    /// A file that is uploaded for an import.
    Bytes UPLOAD_BYTES_MAX = 512 * MIB, costs "that many bytes on the gateway's disk for each upload";
    /// How long an upload is kept.
    Millis UPLOAD_AGE_MAX = Duration::from_secs(3600), costs "its bytes on the gateway's disk";
    /// Uploads of one tenant at the same time.
    Count UPLOADS_PER_TENANT_MAX = 4, costs "up to 512 MiB of disk each";
    /// Bytes of all uploads of a gateway.
    Bytes UPLOADS_BYTES_MAX = 4 * 1024 * MIB, costs "that many bytes on the gateway's disk";
    /// How long the link of an export can be used.
    Millis EXPORT_LINK_AGE_MAX = Duration::from_secs(15 * 60), costs "nothing: exports are made when they are fetched";
    /// Exports and imports of a gateway at the same time.
    Count TRANSFERS_MAX = 8, costs "a thread and some MiB each";
    /// Longest export or import.
    Millis TRANSFER_TIME_MAX = Duration::from_secs(600), costs "a view of the tables on a node, which keeps replaced rows";

    // What a gateway keeps.
    /// How long a gateway believes what it knows of a key; a revocation is felt everywhere after this at the latest.
    Millis KEY_CACHE_AGE_MAX = Duration::from_secs(4), costs "one call to the meta shard per key in this time";
    /// Keys whose rows and counters a gateway holds.
    Count KEYS_CACHED_MAX = 100_000, costs "about 500 bytes each";
    /// Connections of clients, for one gateway.
    Count CONNECTIONS_MAX = 4_096, costs "about 20 KiB each";

    // Between processes of the cluster.
    /// Handshakes of other processes that are not complete, for one listener.
    Count HANDSHAKES_MAX = 256, costs "about 20 KiB each";
    /// A peer that does not complete its handshake within this time is dropped.
    Millis HANDSHAKE_TIME_MAX = Duration::from_secs(10), costs "the place of a handshake";
    /// Opening a connection to another process, its handshake included.
    Millis CONNECT_TIME_MAX = Duration::from_secs(5), costs "the wait of a call to a machine that is gone";

    // What a node keeps.
    /// Bytes of all recall indexes of a node.
    Bytes INDEX_BYTES_MAX = 512 * MIB, costs "resident memory; the index used least is dropped and built again on demand";
    /// How long a write waits for its vector before it goes on without.
    Millis ENCODER_DEFERRAL_BUDGET = Duration::from_millis(50), costs "that much latency of a write";
    /// Texts that wait for the encoder.
    Count ENCODER_QUEUE_MAX = 4_096, costs "the texts, up to 64 KiB each; what finds no place is encoded later";
    /// Proposals of one shard that are not answered yet.
    Count PROPOSALS_IN_FLIGHT_MAX = 4_096, costs "their entries; more is refused as overload";
    /// Bytes of those proposals.
    Bytes PROPOSAL_BYTES_IN_FLIGHT_MAX = 32 * MIB, costs "that many bytes for each led shard";
    /// One command, which is one entry of the log.
    Bytes ENTRY_BYTES_MAX = 16 * MIB, costs "one message between nodes, and one write to disk";
    /// A message between two processes of a cluster.
    Bytes RPC_BYTES_MAX = 32 * MIB, costs "that many bytes for each call in flight";
    /// Bytes of the entries in one append to a follower.
    Bytes APPEND_BYTES_MAX = 4 * MIB, costs "one message between nodes";
    /// Events in one page of the audit.
    Count AUDIT_PAGE_MAX = 1_000, costs "reads of that many rows";
    /// Keys of one tenant.
    Count KEYS_PER_TENANT_MAX = 1_000, costs "one row of the meta shard each";
    /// Tenants of a cluster.
    Count TENANTS_MAX = 100_000, costs "one row of the meta shard each";

    // Shutdown.
    /// How long work in progress may take after shutdown began.
    Millis DRAIN_TIME_MAX = Duration::from_secs(20), costs "the wait of whoever stops the process";
}

/// Bounds that an operator may change, proven to fit together. Part of [`crate::GatewayConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLimits {
    pub(crate) body_bytes_max: usize,
    pub(crate) reads_per_minute: u32,
    pub(crate) writes_per_minute: u32,
    pub(crate) concurrent_calls_max: u32,
    pub(crate) call_time_default: Duration,
    pub(crate) call_time_max: Duration,
}

impl CallLimits {
    /// The values of this file.
    pub fn standard() -> Self {
        Self {
            body_bytes_max: BODY_BYTES_MAX,
            reads_per_minute: narrow(READS_PER_MINUTE),
            writes_per_minute: narrow(WRITES_PER_MINUTE),
            concurrent_calls_max: narrow(CONCURRENT_CALLS_MAX),
            call_time_default: CALL_TIME_DEFAULT,
            call_time_max: CALL_TIME_MAX,
        }
    }

    pub fn body_bytes_max(&self) -> usize {
        self.body_bytes_max
    }

    pub fn reads_per_minute(&self) -> u32 {
        self.reads_per_minute
    }

    pub fn writes_per_minute(&self) -> u32 {
        self.writes_per_minute
    }

    pub fn concurrent_calls_max(&self) -> u32 {
        self.concurrent_calls_max
    }

    pub fn call_time_default(&self) -> Duration {
        self.call_time_default
    }

    pub fn call_time_max(&self) -> Duration {
        self.call_time_max
    }
}

fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

// Relations that the rest of the code relies on, checked where a wrong number can still be corrected.
const _: () = {
    assert!(CONTENT_BYTES_MAX < MESSAGE_BYTES_MAX && MESSAGE_BYTES_MAX < BODY_BYTES_MAX);
    // A turn is two messages, and one entry holds it with what is extracted from it.
    assert!(2 * MESSAGE_BYTES_MAX < ENTRY_BYTES_MAX && ENTRY_BYTES_MAX < PROPOSAL_BYTES_IN_FLIGHT_MAX);
    assert!(BODY_BYTES_MAX < RPC_BYTES_MAX && ENTRY_BYTES_MAX < RPC_BYTES_MAX);
    // A hand-off travels to its node in one message, with about twenty bytes for each of its messages.
    assert!(HANDOFF_BYTES_MAX + 64 * HANDOFF_MESSAGES_MAX < RPC_BYTES_MAX);
    assert!(TOKEN_BUDGET_MIN < TOKEN_BUDGET_DEFAULT && TOKEN_BUDGET_DEFAULT < TOKEN_BUDGET_MAX);
    assert!(CALL_TIME_DEFAULT.as_millis() <= CALL_TIME_MAX.as_millis());
    // A revocation must be felt within five seconds.
    assert!(KEY_CACHE_AGE_MAX.as_millis() < 5_000);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_has_a_name_a_reason_and_a_cost() {
        for bound in ALL {
            assert!(bound.value > 0, "{}", bound.name);
            assert!(bound.doc.trim().len() > 5, "{}", bound.name);
            assert!(!bound.cost.is_empty(), "{}", bound.name);
        }
    }
}
