//! Who is inside, and who holds up shutdown. Work enters through the gate and leaves by dropping its pass; closing the
//! gate lets nobody in, waits for those inside, and names whoever is still there at the deadline.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

#[derive(Clone, Debug, Default)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    holders: BTreeMap<&'static str, usize>,
}

/// Permission to be inside; dropping it leaves.
#[derive(Debug)]
pub struct Pass {
    inner: Arc<Inner>,
    name: &'static str,
}

/// The gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shutting down: no new work is accepted")]
pub struct Closed;

/// Who was still inside at the deadline, and how many of each name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("still busy after the deadline: {}", self.names())]
pub struct StillInside {
    pub holders: Vec<(&'static str, usize)>,
}

impl StillInside {
    fn names(&self) -> String {
        let names: Vec<_> = self
            .holders
            .iter()
            .map(|(name, count)| format!("{name} ({count})"))
            .collect();
        names.join(", ")
    }
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters under a name that a person understands, such as `mcp call`.
    pub fn enter(&self, name: &'static str) -> Result<Pass, Closed> {
        let mut state = self.inner.lock();
        if state.closed {
            return Err(Closed);
        }
        *state.holders.entry(name).or_default() += 1;
        Ok(Pass {
            inner: Arc::clone(&self.inner),
            name,
        })
    }

    pub fn is_closed(&self) -> bool {
        self.inner.lock().closed
    }

    /// Lets nobody in from now on and waits for those inside. Cancel-safe: the gate stays closed.
    pub async fn close(&self, at_most: Duration) -> Result<(), StillInside> {
        self.inner.lock().closed = true;
        let empty = async {
            loop {
                let left = self.inner.left.notified();
                tokio::pin!(left);
                // Registered before the look, so that a pass dropped in between is not missed.
                left.as_mut().enable();
                if self.inner.lock().holders.is_empty() {
                    return;
                }
                left.await;
            }
        };
        if tokio::time::timeout(at_most, empty).await.is_ok() {
            return Ok(());
        }
        let holders: Vec<_> = self
            .inner
            .lock()
            .holders
            .iter()
            .map(|(name, count)| (*name, *count))
            .collect();
        if holders.is_empty() {
            Ok(())
        } else {
            Err(StillInside { holders })
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        if let Some(count) = state.holders.get_mut(self.name) {
            *count -= 1;
            if *count == 0 {
                state.holders.remove(self.name);
            }
        }
        drop(state);
        self.inner.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_gate_lets_nobody_in() {
        let gate = Gate::new();
        gate.close(Duration::ZERO).await.expect("nobody is inside");
        assert_eq!(gate.enter("late").map(|_| ()), Err(Closed));
    }

    #[tokio::test]
    async fn closing_waits_for_those_inside() {
        let gate = Gate::new();
        let pass = gate.enter("call").expect("open");
        let leave = async {
            while !gate.is_closed() {
                tokio::task::yield_now().await;
            }
            drop(pass);
        };
        let (closed, ()) = tokio::join!(gate.close(Duration::from_secs(30)), leave);
        assert_eq!(closed, Ok(()));
    }

    #[tokio::test]
    async fn whoever_stays_too_long_is_named() {
        let gate = Gate::new();
        let _first = gate.enter("snapshot").expect("open");
        let _second = gate.enter("mcp call").expect("open");
        let _third = gate.enter("mcp call").expect("open");
        let error = gate.close(Duration::from_millis(1)).await.expect_err("held");
        assert_eq!(
            error.to_string(),
            "still busy after the deadline: mcp call (2), snapshot (1)"
        );
    }
}
