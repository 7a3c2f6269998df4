//! What ends a replica: a broken invariant of the storage. Nobody retries a fault, because after a failed sync nobody
//! knows what the page cache still holds, and after a row that cannot be read nobody knows what else is wrong.

/// A broken invariant of the storage. The replica halts (or the process ends, after a failed write); an operator acts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A write or a sync failed; what is on the disk is unknown.
    #[error(
        "{operation}: the write failed ({detail}); end this process, check the disk and the file system, start again"
    )]
    WriteFailed {
        /// What was being done.
        operation: &'static str,
        /// In RocksDB's words.
        detail: String,
    },
    /// A read failed.
    #[error("{operation}: the read failed ({detail}); check the disk, then replace this replica from a healthy one")]
    ReadFailed {
        /// What was being done.
        operation: &'static str,
        /// In RocksDB's words.
        detail: String,
    },
    /// A checksum does not match, or a structure of the database is damaged.
    #[error(
        "{operation}: stored bytes are damaged ({detail}); do not use this copy, replace the replica from a healthy one"
    )]
    Damaged {
        /// What was being done.
        operation: &'static str,
        /// In RocksDB's words.
        detail: String,
    },
    /// A key or row does not have the form that its kind demands.
    #[error(
        "read {key}: the stored row is malformed ({detail}); if this follows a downgrade, start the newer version, else replace the replica"
    )]
    MalformedRow {
        /// The key, readable if it could be read.
        key: String,
        /// What is wrong.
        detail: String,
    },
    /// A row was to be written under a key of another kind.
    #[error("write {key}: a row of kind {row} does not belong under this key; report this as a bug")]
    MisplacedRow {
        /// The key.
        key: String,
        /// The kind of the row.
        row: &'static str,
    },
    /// A scan had its two ends in different tenants (I-30).
    #[error("scan from {from}: the other end {to} lies in another tenant; report this as a bug")]
    ScanAcrossTenants {
        /// One end.
        from: String,
        /// The other.
        to: String,
    },
    /// The file system could not be asked.
    #[error("{operation}: the file system refuses to answer ({detail}); check the data directory")]
    FileSystem {
        /// What was being done.
        operation: &'static str,
        /// In the system's words.
        detail: String,
    },
}

impl Fault {
    /// The stable code of the error pages.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::WriteFailed { .. } => "store_write_failed",
            Self::ReadFailed { .. } => "store_read_failed",
            Self::Damaged { .. } => "store_damaged",
            Self::MalformedRow { .. } => "store_malformed_row",
            Self::MisplacedRow { .. } => "store_misplaced_row",
            Self::ScanAcrossTenants { .. } => "store_scan_across_tenants",
            Self::FileSystem { .. } => "store_file_system",
        }
    }

    pub(crate) fn read(operation: &'static str, error: rocksdb::Error) -> Self {
        let damaged = error.kind() == rocksdb::ErrorKind::Corruption;
        let detail = error.into_string();
        if damaged {
            Self::Damaged { operation, detail }
        } else {
            Self::ReadFailed { operation, detail }
        }
    }

    pub(crate) fn write(operation: &'static str, error: rocksdb::Error) -> Self {
        Self::WriteFailed {
            operation,
            detail: error.into_string(),
        }
    }
}
