//! How much one key may do: reads and writes a minute, and calls at the same time. Counted in this process; the number
//! of gateways multiplies it until limits are shared through the cluster.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock as _;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use moka::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use waggle_config::limits::{CallLimits, KEYS_CACHED_MAX};

use crate::auth::Caller;
use crate::fault::Fault;

/// What a call costs its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    Read,
    Write,
}

struct KeyState {
    reads: DefaultDirectRateLimiter,
    writes: DefaultDirectRateLimiter,
    concurrent: Arc<Semaphore>,
}

/// All keys that were seen lately.
pub(crate) struct RateLimits {
    keys: Cache<String, Arc<KeyState>>,
    reads: NonZeroU32,
    writes: NonZeroU32,
    concurrent: usize,
    for_all: bool,
}

/// Held while a call runs.
#[derive(Debug)]
pub(crate) struct Pass {
    _permit: Option<OwnedSemaphorePermit>,
}

impl RateLimits {
    pub(crate) fn new(limits: &CallLimits, for_all: bool) -> Self {
        let concurrent = limits.concurrent_calls_max() as usize;
        Self::with(
            limits.reads_per_minute(),
            limits.writes_per_minute(),
            concurrent,
            for_all,
        )
    }

    fn with(reads: u32, writes: u32, concurrent: usize, for_all: bool) -> Self {
        let at_least_one = |value: u32| NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN);
        Self {
            // A key that is forgotten starts again with a full allowance, which it would have after a minute anyway.
            keys: Cache::builder()
                .max_capacity(KEYS_CACHED_MAX as u64)
                .time_to_idle(Duration::from_secs(600))
                .build(),
            reads: at_least_one(reads),
            writes: at_least_one(writes),
            concurrent,
            for_all,
        }
    }

    /// Lets a call in, or says when to come back.
    pub(crate) fn enter(&self, caller: &Caller, cost: Cost) -> Result<Pass, Fault> {
        if caller.unlimited && !self.for_all {
            return Ok(Pass { _permit: None });
        }
        let state = self.keys.get_with_by_ref(caller.key_id.as_str(), || {
            Arc::new(KeyState {
                reads: RateLimiter::direct(Quota::per_minute(self.reads)),
                writes: RateLimiter::direct(Quota::per_minute(self.writes)),
                concurrent: Arc::new(Semaphore::new(self.concurrent)),
            })
        });
        let Ok(permit) = Arc::clone(&state.concurrent).try_acquire_owned() else {
            return Err(refused(
                &format!("{} calls at the same time", self.concurrent),
                Duration::from_secs(1),
            ));
        };
        let (limiter, limit, what) = match cost {
            Cost::Read => (&state.reads, self.reads, "reads"),
            Cost::Write => (&state.writes, self.writes, "writes"),
        };
        match limiter.check() {
            Ok(()) => Ok(Pass { _permit: Some(permit) }),
            Err(not_until) => {
                let wait = not_until.wait_time_from(limiter.clock().now());
                Err(refused(&format!("{limit} {what} a minute"), wait))
            }
        }
    }
}

fn refused(limit: &str, wait: Duration) -> Fault {
    metrics::counter!("waggle_gateway_rejected_requests_total", "reason" => "rate").increment(1);
    Fault::new(
        "rate_limited",
        format!("this key may do {limit}; wait and repeat the call"),
    )
    .with_retry_after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use waggle_memory::meta::KeyScopes;

    fn caller(key_id: &str, unlimited: bool) -> Caller {
        Caller {
            tenant: "acme".parse().expect("a tenant"),
            key_id: key_id.to_owned(),
            principal: format!("key:{key_id}"),
            scopes: KeyScopes::ALL,
            unlimited,
        }
    }

    #[test]
    fn reads_writes_and_keys_are_counted_apart() {
        let limits = RateLimits::with(3, 2, 10, false);
        let (one, two, free) = (caller("one", false), caller("two", false), caller("free", true));
        let count = |caller: &Caller, cost| (0..6).filter(|_| limits.enter(caller, cost).is_ok()).count();
        assert_eq!(count(&one, Cost::Write), 2);
        assert_eq!(count(&one, Cost::Read), 3);
        assert_eq!(count(&two, Cost::Read), 3);
        assert_eq!(count(&free, Cost::Read), 6);
        let refused = limits.enter(&one, Cost::Write).expect_err("used up");
        assert_eq!((refused.code, refused.status), ("rate_limited", 429));
        let seconds = refused.retry_seconds().expect("when to come back");
        assert!((1..=60).contains(&seconds), "{seconds}");
        assert!(RateLimits::with(1, 1, 1, true).enter(&free, Cost::Read).is_ok());
    }

    #[test]
    fn a_key_has_so_many_calls_at_the_same_time() {
        let limits = RateLimits::with(100, 100, 2, false);
        let one = caller("one", false);
        let held = [limits.enter(&one, Cost::Read), limits.enter(&one, Cost::Write)];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(
            limits.enter(&one, Cost::Read).map_err(|fault| fault.code).err(),
            Some("rate_limited")
        );
        drop(held);
        assert!(limits.enter(&one, Cost::Read).is_ok());
    }
}
