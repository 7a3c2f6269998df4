//! Before and after a proposal: stamps, admission, and what openraft's answers mean for the caller.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use openraft::errors::{ClientWriteError, Fatal, ForwardReason, ForwardToLeader, LinearizableReadError, RaftError};
use waggle_memory::command::{Command, Entry, Request};
use waggle_memory::id::Principal;
use waggle_memory::time::{Millis, Stamp};

use crate::error::{Indeterminate, ProposeError, Unavailable};
use crate::settings::Settings;
use crate::types::Types;

/// A command that asks to be replicated: an entry without its stamp, which the leader gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Who asks, from the credential.
    pub principal: Principal,
    /// Makes a retry harmless; absent for the system's own commands.
    pub request: Option<Request>,
    /// What to do.
    pub command: Command,
}

impl Proposal {
    pub(crate) fn stamped(self, stamp: Stamp) -> Entry {
        Entry {
            stamp,
            principal: self.principal,
            request: self.request,
            command: self.command,
        }
    }
}

/// The leader's hybrid clock: wall time, but never back and never the same twice. Apply raises stamps above the last
/// applied one, so a new leader with a slow wall clock is harmless (I-08).
#[derive(Debug, Default)]
pub(crate) struct HybridClock(Mutex<Stamp>);

impl HybridClock {
    pub(crate) fn next(&self, wall: Millis) -> Stamp {
        // A poisoned lock still guards a whole stamp.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = last.next().max(Stamp { wall, logical: 0 });
        *last
    }
}

/// Bounds proposals in flight by count and bytes (I-40).
#[derive(Debug)]
pub(crate) struct Admission {
    settings: Arc<Settings>,
    count: AtomicUsize,
    bytes: AtomicUsize,
}

impl Admission {
    pub(crate) const fn new(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// The permit is held until the caller has an answer or gives up. One who gives up frees room although the entry
    /// may still be on its way: openraft's own bounded queues are the second line.
    pub(crate) fn admit(self: &Arc<Self>, bytes: usize) -> Result<Permit, Unavailable> {
        let bytes_max = self.settings.command_bytes_max;
        if bytes > bytes_max {
            return Err(Unavailable::CommandTooLarge { bytes, bytes_max });
        }
        let permit = Permit {
            admission: Arc::clone(self),
            bytes,
        };
        let count_before = self.count.fetch_add(1, Ordering::Relaxed);
        let bytes_before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if count_before >= self.settings.proposals_max || bytes_before + bytes > self.settings.proposal_bytes_max {
            return Err(Unavailable::Overloaded {
                retry_after: self.settings.overload_retry_after,
            });
        }
        Ok(permit)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// Room for one proposal.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    bytes: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.count.fetch_sub(1, Ordering::Relaxed);
        self.admission.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A write that openraft has refused or lost.
pub(crate) fn write_error(error: ClientWriteError<Types>) -> ProposeError {
    match error {
        ClientWriteError::ForwardToLeader(forward) => not_leading(forward).into(),
        ClientWriteError::LogEntryDiscarded(_) => Indeterminate::LeadershipLost.into(),
        // Neither can come of a plain write without preconditions; both are decided before the append.
        ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_) => {
            Unavailable::NoQuorum.into()
        }
    }
}

pub(crate) fn read_error(error: RaftError<Types, LinearizableReadError<Types>>) -> Unavailable {
    match error {
        RaftError::Fatal(fatal) => stopped(&fatal),
        RaftError::APIError(LinearizableReadError::ForwardToLeader(forward)) => not_leading(forward),
        RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) => Unavailable::NoQuorum,
    }
}

/// Before the proposal was handed over.
pub(crate) fn stopped(fatal: &Fatal<Types>) -> Unavailable {
    match fatal {
        Fatal::Stopped => Unavailable::ShuttingDown,
        Fatal::StorageError(_) | Fatal::Panicked => Unavailable::Halted { why: fatal.to_string() },
    }
}

fn not_leading(forward: ForwardToLeader<Types>) -> Unavailable {
    match (forward.reason, forward.leader_node) {
        (ForwardReason::LeaseExpired, _) | (_, None) => Unavailable::NoQuorum,
        (ForwardReason::NotLeader | ForwardReason::LeadershipTransfer, Some(hint)) => Unavailable::NotLeader { hint },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_increase_although_the_wall_clock_goes_back() {
        let clock = HybridClock::default();
        let stamps = [5, 5, 3, 6].map(|wall| clock.next(Millis(wall)));
        let stamp = |wall, logical| Stamp {
            wall: Millis(wall),
            logical,
        };
        assert_eq!(stamps, [stamp(5, 0), stamp(5, 1), stamp(5, 2), stamp(6, 0)]);
    }

    #[test]
    fn admission_refuses_by_count_and_by_bytes_and_gives_room_back() {
        let settings = Settings {
            proposals_max: 2,
            proposal_bytes_max: 100,
            command_bytes_max: 80,
            ..Settings::default()
        };
        let admission = Arc::new(Admission::new(Arc::new(settings)));
        let first = admission.admit(60).expect("room");
        assert!(matches!(admission.admit(60), Err(Unavailable::Overloaded { .. })));
        let second = admission.admit(40).expect("room");
        assert!(matches!(admission.admit(0), Err(Unavailable::Overloaded { .. })));
        assert!(matches!(
            admission.admit(81),
            Err(Unavailable::CommandTooLarge {
                bytes: 81,
                bytes_max: 80
            })
        ));
        drop((first, second));
        assert_eq!(admission.in_flight(), 0);
        assert!(admission.admit(80).is_ok());
    }
}
