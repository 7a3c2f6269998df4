//! Messages between replicas as bytes. They are not kept, so they carry no format byte: nodes agree on a protocol
//! version when they connect. Only this module and `network.rs` know what is in a frame.

use bytes::Bytes;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderError, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};

use crate::codec::{Input, Malformed, put_entry, put_log_id, put_membership, put_option, put_u32, put_u64, put_vote};
use crate::ports::{CallKind, Frame};
use crate::types::{SnapshotMeta, StoredMembership, Types, Vote};

/// Most entries in one message; openraft's own limit is 300.
const ENTRIES_MAX: u32 = 4096;

/// What a message is turned into and back.
pub(crate) trait Message: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed>;

    fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(128);
        self.put(&mut out);
        out.into()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let message = Self::read(&mut input)?;
        input.end()?;
        Ok(message)
    }

    fn frame(&self, kind: CallKind) -> Frame {
        Frame {
            kind,
            body: self.to_bytes(),
        }
    }
}

/// An answer, or why the other replica has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply<T>(pub(crate) Result<T, String>);

impl<T: Message> Message for Reply<T> {
    fn put(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Ok(answer) => {
                out.push(0);
                answer.put(out);
            }
            Err(why) => {
                out.push(1);
                crate::codec::put_bytes(out, why.as_bytes());
            }
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        if input.flag()? {
            Ok(Self(Err(String::from_utf8_lossy(input.bytes()?).into_owned())))
        } else {
            T::read(input).map(|answer| Self(Ok(answer)))
        }
    }
}

impl Message for AppendEntriesRequest<Types> {
    fn put(&self, out: &mut Vec<u8>) {
        put_vote(out, &self.vote);
        put_option(out, self.prev_log_id.as_ref(), put_log_id);
        put_option(out, self.leader_commit.as_ref(), put_log_id);
        put_u32(out, u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        for entry in &self.entries {
            put_entry(out, entry);
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let vote = input.vote()?;
        let prev_log_id = input.option(Input::log_id)?;
        let leader_commit = input.option(Input::log_id)?;
        let count = input.u32()?;
        if count > ENTRIES_MAX {
            return Err(Malformed::Shape("entries"));
        }
        let entries = (0..count).map(|_| input.entry()).collect::<Result<_, _>>()?;
        Ok(Self {
            vote,
            prev_log_id,
            entries,
            leader_commit,
        })
    }
}

impl Message for AppendEntriesResponse<Types> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Success => out.push(0),
            Self::PartialSuccess(log_id) => {
                out.push(1);
                put_option(out, log_id.as_ref(), put_log_id);
            }
            Self::Conflict => out.push(2),
            Self::HigherVote(vote) => {
                out.push(3);
                put_vote(out, vote);
            }
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(match input.u8()? {
            0 => Self::Success,
            1 => Self::PartialSuccess(input.option(Input::log_id)?),
            2 => Self::Conflict,
            3 => Self::HigherVote(input.vote()?),
            _ => return Err(Malformed::Shape("an append answer")),
        })
    }
}

impl Message for VoteRequest<Types> {
    fn put(&self, out: &mut Vec<u8>) {
        put_vote(out, &self.vote);
        put_option(out, self.last_log_id.as_ref(), put_log_id);
        out.push(u8::from(self.leadership_transfer));
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let mut request = Self::new(input.vote()?, input.option(Input::log_id)?);
        request.leadership_transfer = input.flag()?;
        Ok(request)
    }
}

impl Message for VoteResponse<Types> {
    fn put(&self, out: &mut Vec<u8>) {
        put_vote(out, &self.vote);
        put_option(out, self.last_log_id.as_ref(), put_log_id);
        out.push(u8::from(self.vote_granted));
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let (vote, last_log_id) = (input.vote()?, input.option(Input::log_id)?);
        Ok(Self::new(vote, last_log_id, input.flag()?))
    }
}

impl Message for TransferLeaderRequest<Types> {
    fn put(&self, out: &mut Vec<u8>) {
        put_vote(out, self.from_leader());
        put_u64(out, *self.to_node_id());
        put_option(out, self.last_log_id(), put_log_id);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(Self::new(input.vote()?, input.u64()?, input.option(Input::log_id)?))
    }
}

impl Message for TransferLeaderResponse<Types> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Ok(()) => out.push(0),
            Err(TransferLeaderError::VoteChanged { expected, actual }) => {
                out.push(1);
                put_vote(out, expected);
                put_vote(out, actual);
            }
            Err(TransferLeaderError::LogNotFlushed { expected, actual }) => {
                out.push(2);
                put_option(out, expected.as_ref(), put_log_id);
                put_option(out, actual.as_ref(), put_log_id);
            }
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(match input.u8()? {
            0 => Ok(()),
            1 => Err(TransferLeaderError::VoteChanged {
                expected: input.vote()?,
                actual: input.vote()?,
            }),
            2 => Err(TransferLeaderError::LogNotFlushed {
                expected: input.option(Input::log_id)?,
                actual: input.option(Input::log_id)?,
            }),
            _ => return Err(Malformed::Shape("a transfer answer")),
        })
    }
}

/// What goes beside the files of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotHead {
    pub(crate) vote: Vote,
    pub(crate) meta: SnapshotMeta,
}

impl Message for SnapshotHead {
    fn put(&self, out: &mut Vec<u8>) {
        put_vote(out, &self.vote);
        put_option(out, self.meta.last_log_id.as_ref(), put_log_id);
        put_option(out, self.meta.last_membership.log_id().as_ref(), put_log_id);
        put_membership(out, self.meta.last_membership.membership());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let vote = input.vote()?;
        let last_log_id = input.option(Input::log_id)?;
        let log_id = input.option(Input::log_id)?;
        let last_membership = StoredMembership::new(log_id, input.membership()?);
        Ok(Self {
            vote,
            meta: SnapshotMeta {
                last_log_id,
                last_membership,
            },
        })
    }
}

impl Message for SnapshotResponse<Types> {
    fn put(&self, out: &mut Vec<u8>) {
        put_vote(out, &self.vote);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.vote().map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use openraft::vote::RaftLeaderId;

    use super::*;
    use crate::types::{LeaderId, LogEntry, LogId};

    fn vote() -> Vote {
        Vote {
            leader_id: LeaderId::new(3, 2),
            committed: true,
        }
    }

    fn log_id() -> LogId {
        LogId::new(LeaderId::new(3, 2), 41)
    }

    fn check<T: Message + Debug + PartialEq>(message: T) {
        let bytes = message.to_bytes();
        assert_eq!(T::from_bytes(&bytes).as_ref(), Ok(&message));
        for length in 0..bytes.len() {
            assert!(T::from_bytes(&bytes[..length]).is_err(), "{message:?} cut at {length}");
        }
    }

    #[test]
    fn messages_read_back() {
        check(VoteRequest::<Types>::new(vote(), Some(log_id())));
        check(Reply(Ok(VoteResponse::<Types>::new(vote(), None, true))));
        check(Reply::<VoteResponse<Types>>(Err("halted".to_owned())));
        check(AppendEntriesResponse::<Types>::PartialSuccess(Some(log_id())));
        check(AppendEntriesResponse::<Types>::HigherVote(vote()));
        check(TransferLeaderRequest::<Types>::new(vote(), 2, Some(log_id())));
        check::<TransferLeaderResponse<Types>>(Err(TransferLeaderError::LogNotFlushed {
            expected: Some(log_id()),
            actual: None,
        }));
        check(SnapshotHead {
            vote: vote(),
            meta: SnapshotMeta {
                last_log_id: Some(log_id()),
                ..Default::default()
            },
        });

        let append = AppendEntriesRequest::<Types> {
            vote: vote(),
            prev_log_id: None,
            leader_commit: Some(log_id()),
            entries: vec![LogEntry {
                log_id: log_id(),
                payload: openraft::EntryPayload::Blank,
            }],
        };
        let read = AppendEntriesRequest::<Types>::from_bytes(&append.to_bytes()).expect("reads back");
        assert_eq!(format!("{read:?}"), format!("{append:?}"));
    }
}
