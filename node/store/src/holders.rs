//! Who still holds the database on behalf of consensus. Its tasks end a moment after it says that it has stopped, and a
//! directory can be opened again only when the last of them has let go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Counts holders.
#[derive(Clone, Default)]
pub(crate) struct Holders(Arc<(Mutex<usize>, Condvar)>);

/// One holder. To be dropped after what is held: the last field of its owner.
pub(crate) struct Holder(Holders);

impl Holders {
    pub(crate) fn hold(&self) -> Holder {
        *self.0.0.lock() += 1;
        Holder(self.clone())
    }

    /// Waits until nobody holds anything and gives the number of those who still do. Blocking.
    pub(crate) fn wait(&self, within: Duration) -> usize {
        let deadline = Instant::now() + within;
        let mut count = self.0.0.lock();
        while *count > 0 && !self.0.1.wait_until(&mut count, deadline).timed_out() {}
        *count
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        *self.0.0.0.lock() -= 1;
        self.0.0.1.notify_all();
    }
}
