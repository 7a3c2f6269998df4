//! Bytes of what consensus keeps and sends: log records, votes, log ids, positions. Hand-written because the format is
//! a promise to every later version and small enough to read in one sitting; numbers are little endian.
//!
//! A log record carries its own checksum, seeded with the shard, over index, term and payload: a flipped bit or a
//! record in the wrong place is found when the log is opened, not when it has been replicated. The first byte of every
//! kept value is its format; a reader refuses formats that it does not know.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use openraft::EntryPayload;
use openraft::vote::{RaftLeaderId, RaftVote};
use waggle_memory::meta::ShardId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::types::{Command, LeaderId, LogEntry, LogId, Member, Membership, Payload, StoredMembership, Vote};

/// Format of log records and of the other kept values.
const FORMAT: u8 = 1;
const RECORD_HEADER_BYTES: usize = 9;
/// Joint consensus has two sets of voters; more is nonsense.
const CONFIGS_MAX: u32 = 4;
const MEMBERS_MAX: u32 = 1024;
const ADDRESS_BYTES_MAX: u32 = 1024;

/// Bytes that do not follow the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The format byte is unknown.
    #[error("written in format {0}, which this version does not know; a newer version of waggle wrote it")]
    Format(u8),
    /// The checksum does not match.
    #[error("the checksum does not match")]
    Checksum,
    /// Too short, too long, or an impossible value.
    #[error("malformed at {0}")]
    Shape(&'static str),
}

/// What a replica's tables are the result of: written in one batch with them (I-03).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The last applied entry.
    pub applied: Option<LogId>,
    /// The last applied membership.
    pub membership: StoredMembership,
}

impl Position {
    /// Its kept form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        put_option(&mut out, self.applied.as_ref(), put_log_id);
        put_option(&mut out, self.membership.log_id().as_ref(), put_log_id);
        put_membership(&mut out, self.membership.membership());
        out
    }

    /// Reads the kept form.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::with_format(bytes)?;
        let applied = input.option(Input::log_id)?;
        let log_id = input.option(Input::log_id)?;
        let membership = input.membership()?;
        input.end()?;
        Ok(Self {
            applied,
            membership: StoredMembership::new(log_id, membership),
        })
    }
}

/// The kept form of an entry.
pub fn encode_record(shard: ShardId, entry: &LogEntry) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + payload_bytes(&entry.payload));
    out.extend_from_slice(&[FORMAT, 0, 0, 0, 0, 0, 0, 0, 0]);
    put_entry(&mut out, entry);
    let sum = checksum(shard, out.get(RECORD_HEADER_BYTES..).unwrap_or_default());
    if let Some(place) = out.get_mut(1..RECORD_HEADER_BYTES) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    out
}

/// Reads the kept form of an entry and checks its checksum.
pub fn decode_record(shard: ShardId, bytes: &[u8]) -> Result<LogEntry, Malformed> {
    let mut input = Input::with_format(bytes)?;
    let sum = input.u64()?;
    if sum != checksum(shard, input.rest) {
        return Err(Malformed::Checksum);
    }
    let entry = input.entry()?;
    input.end()?;
    Ok(entry)
}

/// Bytes that an entry's payload costs in queues and caches.
pub fn payload_bytes(payload: &Payload) -> usize {
    match payload {
        EntryPayload::Blank => 0,
        EntryPayload::Normal(command) => command.0.len(),
        EntryPayload::Membership(membership) => membership
            .nodes()
            .map(|(_, member)| 32 + member.address.len())
            .sum::<usize>(),
    }
}

/// The kept form of a vote.
pub fn encode_vote(vote: &Vote) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_vote(&mut out, vote);
    out
}

/// Reads the kept form of a vote.
pub fn decode_vote(bytes: &[u8]) -> Result<Vote, Malformed> {
    let mut input = Input::with_format(bytes)?;
    let vote = input.vote()?;
    input.end()?;
    Ok(vote)
}

/// The kept form of a log id.
pub fn encode_log_id(log_id: &LogId) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_log_id(&mut out, log_id);
    out
}

/// Reads the kept form of a log id.
pub fn decode_log_id(bytes: &[u8]) -> Result<LogId, Malformed> {
    let mut input = Input::with_format(bytes)?;
    let log_id = input.log_id()?;
    input.end()?;
    Ok(log_id)
}

fn checksum(shard: ShardId, body: &[u8]) -> u64 {
    xxh3_64_with_seed(body, u64::from(shard.0))
}

pub(crate) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Lengths come from memory that exists and is bounded by the queues, far below the limit of the type.
fn put_length(out: &mut Vec<u8>, length: usize) {
    put_u32(out, u32::try_from(length).unwrap_or(u32::MAX));
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub(crate) fn put_option<T>(out: &mut Vec<u8>, value: Option<&T>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

pub(crate) fn put_log_id(out: &mut Vec<u8>, log_id: &LogId) {
    put_u64(out, log_id.leader_id.term);
    put_u64(out, log_id.leader_id.node_id);
    put_u64(out, log_id.index);
}

pub(crate) fn put_vote(out: &mut Vec<u8>, vote: &Vote) {
    put_u64(out, vote.leader_id.term);
    put_u64(out, vote.leader_id.node_id);
    out.push(u8::from(vote.committed));
}

pub(crate) fn put_membership(out: &mut Vec<u8>, membership: &Membership) {
    let configs = membership.get_joint_config();
    put_length(out, configs.len());
    for config in configs {
        put_length(out, config.len());
        for replica in config {
            put_u64(out, *replica);
        }
    }
    let nodes: Vec<_> = membership.nodes().collect();
    put_length(out, nodes.len());
    for (replica, member) in nodes {
        put_u64(out, *replica);
        put_u64(out, member.node);
        put_bytes(out, member.address.as_bytes());
    }
}

pub(crate) fn put_entry(out: &mut Vec<u8>, entry: &LogEntry) {
    put_log_id(out, &entry.log_id);
    match &entry.payload {
        EntryPayload::Blank => out.push(0),
        EntryPayload::Normal(command) => {
            out.push(1);
            put_bytes(out, &command.0);
        }
        EntryPayload::Membership(membership) => {
            out.push(2);
            put_membership(out, membership);
        }
    }
}

/// Bytes still to be read. Every length is checked before anything is allocated for it.
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn with_format(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut input = Self::new(bytes);
        match input.u8()? {
            FORMAT => Ok(input),
            other => Err(Malformed::Format(other)),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(Malformed::Shape("the end"))?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed::Shape("the end"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Shape("a flag")),
        }
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn count(&mut self, what: &'static str, max: u32) -> Result<u32, Malformed> {
        let count = self.u32()?;
        if count > max {
            Err(Malformed::Shape(what))
        } else {
            Ok(count)
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Shape("bytes after the end"))
        }
    }

    pub(crate) fn leader_id(&mut self) -> Result<LeaderId, Malformed> {
        Ok(LeaderId::new(self.u64()?, self.u64()?))
    }

    pub(crate) fn log_id(&mut self) -> Result<LogId, Malformed> {
        Ok(LogId::new(self.leader_id()?, self.u64()?))
    }

    pub(crate) fn vote(&mut self) -> Result<Vote, Malformed> {
        Ok(Vote::from_leader_id(self.leader_id()?, self.flag()?))
    }

    pub(crate) fn membership(&mut self) -> Result<Membership, Malformed> {
        let mut configs = Vec::new();
        for _ in 0..self.count("voter sets", CONFIGS_MAX)? {
            let mut voters = BTreeSet::new();
            for _ in 0..self.count("voters", MEMBERS_MAX)? {
                voters.insert(self.u64()?);
            }
            configs.push(voters);
        }
        let mut nodes = BTreeMap::new();
        for _ in 0..self.count("members", MEMBERS_MAX)? {
            let (replica, node) = (self.u64()?, self.u64()?);
            let address = self.bytes()?;
            if address.len() > ADDRESS_BYTES_MAX as usize {
                return Err(Malformed::Shape("an address"));
            }
            let address = std::str::from_utf8(address).map_err(|_| Malformed::Shape("an address"))?;
            nodes.insert(
                replica,
                Member {
                    node,
                    address: address.to_owned(),
                },
            );
        }
        // An empty membership is what a replica starts with; openraft's checked constructor refuses it.
        if configs.is_empty() && nodes.is_empty() {
            return Ok(Membership::default());
        }
        Membership::new(configs, nodes).map_err(|_| Malformed::Shape("a membership"))
    }

    pub(crate) fn entry(&mut self) -> Result<LogEntry, Malformed> {
        let log_id = self.log_id()?;
        let payload = match self.u8()? {
            0 => EntryPayload::Blank,
            1 => EntryPayload::Normal(Command(Bytes::copy_from_slice(self.bytes()?))),
            2 => EntryPayload::Membership(self.membership()?),
            _ => return Err(Malformed::Shape("a payload kind")),
        };
        Ok(LogEntry { log_id, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_id(term: u64, index: u64) -> LogId {
        LogId::new(LeaderId::new(term, 7), index)
    }

    fn membership() -> Membership {
        let nodes = BTreeMap::from([
            (
                7,
                Member {
                    node: 1,
                    address: "127.0.0.1:7301".to_owned(),
                },
            ),
            (
                8,
                Member {
                    node: 2,
                    address: "127.0.0.1:7302".to_owned(),
                },
            ),
        ]);
        Membership::new(vec![BTreeSet::from([7])], nodes).expect("a valid membership")
    }

    fn entries() -> Vec<LogEntry> {
        vec![
            LogEntry {
                log_id: log_id(1, 0),
                payload: EntryPayload::Blank,
            },
            LogEntry {
                log_id: log_id(2, 1),
                payload: EntryPayload::Membership(membership()),
            },
            LogEntry {
                log_id: log_id(2, 2),
                payload: EntryPayload::Normal(Command(Bytes::from_static(b"remember"))),
            },
        ]
    }

    #[test]
    fn what_is_kept_reads_back() {
        for entry in entries() {
            let bytes = encode_record(ShardId(3), &entry);
            assert_eq!(decode_record(ShardId(3), &bytes), Ok(entry));
        }
        for position in [
            Position::default(),
            Position {
                applied: Some(log_id(5, 9)),
                membership: StoredMembership::new(Some(log_id(2, 1)), membership()),
            },
        ] {
            assert_eq!(Position::decode(&position.encode()), Ok(position));
        }
        let vote = Vote {
            leader_id: LeaderId::new(4, 7),
            committed: true,
        };
        assert_eq!(decode_vote(&encode_vote(&vote)), Ok(vote));
        assert_eq!(decode_log_id(&encode_log_id(&log_id(4, 11))), Ok(log_id(4, 11)));
    }

    #[test]
    fn a_flipped_bit_or_a_foreign_shard_is_found() {
        let bytes = encode_record(ShardId(3), &entries()[2]);
        assert_eq!(decode_record(ShardId(4), &bytes), Err(Malformed::Checksum));
        for at in 1..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(
                decode_record(ShardId(3), &damaged),
                Err(Malformed::Checksum),
                "byte {at}"
            );
        }
        for length in 0..bytes.len() {
            assert!(decode_record(ShardId(3), &bytes[..length]).is_err(), "length {length}");
        }
    }

    #[test]
    fn the_kept_form_is_the_one_of_the_first_version() {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(
            hex(&encode_record(ShardId(3), &entries()[2])),
            "01c3f53ae937ca79da02000000000000000700000000000000020000000000000001080000\
             0072656d656d626572"
        );
        assert_eq!(
            hex(&encode_vote(&Vote {
                leader_id: LeaderId::new(4, 7),
                committed: true
            })),
            "010400000000000000070000000000000001"
        );
    }
}
