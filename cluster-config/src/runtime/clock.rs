//! The one place that reads a clock. Everything else takes time as an argument or holds an `Arc<dyn Clock>`, so that
//! tests and simulation decide what time it is.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use waggle_memory::time::Millis;

/// Wall time, which people read and which may jump; and monotonic time, which measures and never goes back.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Time since the epoch.
    fn wall(&self) -> Millis;

    /// Time since some fixed moment of this process.
    fn monotonic(&self) -> Duration;
}

/// For tests of whole processes only: milliseconds by which the wall clock of this process is wrong. It stands for a
/// machine whose clock was set badly; docs/chaos.md.
pub const OFFSET_VARIABLE: &str = "WAGGLE_CLOCK_OFFSET_MS";

/// The machine's clocks.
#[derive(Debug)]
pub struct System {
    started: Instant,
    offset_ms: i64,
}

impl System {
    pub fn new() -> Self {
        let said = std::env::var(OFFSET_VARIABLE).ok();
        Self {
            started: Instant::now(),
            offset_ms: said.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        }
    }

    /// By how much the wall clock was made wrong; 0 but in tests.
    pub const fn offset_ms(&self) -> i64 {
        self.offset_ms
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for System {
    fn wall(&self) -> Millis {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
        let now = SystemTime::now();
        // A machine set to a time before 1970 gives 0: stamps are monotone by themselves (I-08).
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).plus(self.offset_ms)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct Manual {
    now: Mutex<(Millis, Duration)>,
}

impl Manual {
    pub fn at(wall: Millis) -> Self {
        Self {
            now: Mutex::new((wall, Duration::ZERO)),
        }
    }

    /// Both clocks go on.
    pub fn advance(&self, by: Duration) {
        let mut now = self.lock();
        now.0 = now.0.plus(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
        now.1 += by;
    }

    /// Somebody sets the wall clock, forwards or back; monotonic time does not notice.
    pub fn set_wall(&self, wall: Millis) {
        self.lock().0 = wall;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Millis, Duration)> {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for Manual {
    fn wall(&self) -> Millis {
        self.lock().0
    }

    fn monotonic(&self) -> Duration {
        self.lock().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Manual::at(Millis(1_000));
        assert_eq!((clock.wall(), clock.monotonic()), (Millis(1_000), Duration::ZERO));
        clock.advance(Duration::from_millis(250));
        assert_eq!(
            (clock.wall(), clock.monotonic()),
            (Millis(1_250), Duration::from_millis(250))
        );
        clock.set_wall(Millis(10));
        assert_eq!(
            (clock.wall(), clock.monotonic()),
            (Millis(10), Duration::from_millis(250))
        );
    }

    #[test]
    fn the_machines_monotonic_clock_does_not_go_back() {
        let clock = System::new();
        let before = clock.monotonic();
        assert!(clock.monotonic() >= before);
        assert!(clock.wall() > Millis(1_700_000_000_000));
    }
}
