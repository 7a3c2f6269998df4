//! The placement as this node knows it: never older than it was, kept in a file so that a restart without the meta shard
//! serves all the same, and watched by whoever acts on it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tokio::sync::watch;
use waggle_config::identity::{self, Access, IdentityError};
use waggle_memory::meta::{ClusterId, Placement};
use waggle_memory::tables::Row;
use waggle_proto::log::{RowKind, decode_row, encode_row};

/// See the module.
pub(crate) struct Known {
    now: ArcSwap<Placement>,
    version: watch::Sender<u64>,
    file: PathBuf,
    /// One writer of the file at a time.
    writing: Mutex<()>,
}

impl Known {
    pub(crate) fn new(placement: Placement, file: PathBuf) -> Self {
        let (version, _) = watch::channel(placement.version);
        Self {
            now: ArcSwap::from_pointee(placement),
            version,
            file,
            writing: Mutex::new(()),
        }
    }

    /// What a former process of this node knew. A file of another cluster, or one that cannot be read, is worth nothing.
    pub(crate) fn read(file: &PathBuf, cluster: ClusterId) -> Option<Placement> {
        let bytes = std::fs::read(file).ok()?;
        match decode_row(RowKind::Placement, &bytes) {
            Ok(Row::Placement(placement)) if placement.cluster == cluster => Some(placement),
            _ => {
                tracing::warn!(file = %file.display(), "the kept placement is not usable; it is learned again");
                None
            }
        }
    }

    pub(crate) fn load(&self) -> Guard<Arc<Placement>> {
        self.now.load()
    }

    /// Takes a placement if it is newer. Blocks on the file.
    pub(crate) fn learn(&self, placement: &Placement) -> Result<bool, IdentityError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.now.load();
        if placement.cluster != known.cluster || placement.version <= known.version {
            return Ok(false);
        }
        self.now.store(Arc::new(placement.clone()));
        self.version.send_replace(placement.version);
        self.keep(placement)?;
        Ok(true)
    }

    /// Writes the file. Blocks.
    pub(crate) fn keep(&self, placement: &Placement) -> Result<(), IdentityError> {
        identity::write(
            &self.file,
            &encode_row(&Row::Placement(placement.clone())),
            Access::Owner,
        )
    }

    /// Changes of the version.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}
