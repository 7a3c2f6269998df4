//! Whole graphs in and out: what an export is and how it is asked for again, the stream of records from and to the node,
//! the files in between, and uploads that wait for their import.
//!
//! Files are written and read on threads that may block, as streams: no export and no import is ever held as a whole.

pub(crate) mod description;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod pages;
pub(crate) mod secrets;
pub(crate) mod signing;
pub(crate) mod source;
pub(crate) mod uploads;
pub(crate) mod vault_import;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use waggle_config::limits::TRANSFERS_MAX;

use crate::fault::Fault;
use crate::options::GatewayOptions;
use description::Links;
use signing::Signing;
use uploads::Uploads;

/// What exports and imports share.
pub(crate) struct Transfer {
    pub(crate) links: Links,
    pub(crate) uploads: Uploads,
    pub(crate) signing: Signing,
    running: Arc<Semaphore>,
}

impl Transfer {
    pub(crate) fn new(options: &GatewayOptions) -> std::io::Result<Self> {
        let secret = options.cluster_secret.bytes();
        Ok(Self {
            links: Links::new(secret),
            uploads: Uploads::open(&options.spool_dir, secret)?,
            signing: Signing::new(secret),
            running: Arc::new(Semaphore::new(TRANSFERS_MAX)),
        })
    }

    /// A place among the transfers that run.
    pub(crate) fn enter(&self) -> Result<OwnedSemaphorePermit, Fault> {
        Arc::clone(&self.running).try_acquire_owned().map_err(|_| {
            Fault::unavailable(
                format!("this gateway runs {TRANSFERS_MAX} exports and imports already; repeat the call"),
                Duration::from_secs(5),
            )
        })
    }
}
