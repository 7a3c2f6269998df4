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
        let at_least_one = |value: u32| NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN);
        Self {
            // A key that is forgotten starts again with a full allowance, which it would have after a minute anyway.
            keys: Cache::builder()
                .max_capacity(KEYS_CACHED_MAX as u64)
                .time_to_idle(Duration::from_secs(600))
                .build(),
            reads: at_least_one(limits.reads_per_minute()),
            writes: at_least_one(limits.writes_per_minute()),
            concurrent: limits.concurrent_calls_max() as usize,
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
            return Err(refused(&format!("{} calls at the same time", self.concurrent), Duration::from_secs(1)));
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
    Fault::new("rate_limited", format!("this key may do {limit}; wait and repeat the call")).with_retry_after(wait)
}
