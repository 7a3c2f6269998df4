//! The data directory before RocksDB is opened: who may use it, whose it is, and in which format.
//!
//! ```text
//! lock        held by the process that uses the directory
//! creating    present from the first byte of a creation until its end
//! identity    written last by a creation: format, cluster, node
//! db/         RocksDB
//! ballast     room that a start on a full disk gives back
//! ```
//!
//! The identity stands in a file and in the database, so that a directory put together from two others, or one whose
//! `db` was removed, is noticed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use waggle_memory::meta::{ClusterId, NodeId};

use crate::ballast;
use crate::options::{Identity, Start};

/// The format of everything below the data directory. Raised with a migration, never without.
pub const FORMAT: u32 = 1;

/// The oldest release that reads [`FORMAT`]; written beside it for the message of a release that cannot.
const FORMAT_NEEDS: &str = "0.1.0";

const LOCK: &str = "lock";
const CREATING: &str = "creating";
const IDENTITY: &str = "identity";
const IDENTITY_NEW: &str = "identity.new";
const DATABASE: &str = "db";

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path is a file or something else.
    #[error("open {}: this is not a directory; name a directory for the data", path.display())]
    NotADirectory {
        /// The data directory.
        path: PathBuf,
    },
    /// Another process (or another part of this one) uses it.
    #[error("open {}: another process uses this data directory; stop it first, or name another directory", path.display())]
    Locked {
        /// The data directory.
        path: PathBuf,
    },
    /// It belongs to somebody else.
    #[error(
        "open {}: this is the data of {found}, not of {expected}; name the right directory, or correct node and cluster in the configuration",
        path.display()
    )]
    WrongIdentity {
        /// The data directory.
        path: PathBuf,
        /// Who asks.
        expected: Identity,
        /// Whose it is.
        found: Identity,
    },
    /// Data should be there and is not.
    #[error(
        "open {}: {missing}; do not start under the old identity, acknowledged data could be lost: mount the right disk, or remove this node from the cluster and add it as a new one",
        path.display()
    )]
    MissingData {
        /// The data directory.
        path: PathBuf,
        /// What was looked for.
        missing: &'static str,
    },
    /// A first start found something.
    #[error("open {}: the directory is not empty ({found}); a first start needs an empty one", path.display())]
    NotEmpty {
        /// The data directory.
        path: PathBuf,
        /// One thing in it.
        found: String,
    },
    /// Written by a later release.
    #[error(
        "open {}: data is format {found}, needs waggle {needs} or newer (this release reads up to format {FORMAT})",
        path.display()
    )]
    NewerFormat {
        /// The data directory.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The oldest release that reads it.
        needs: String,
    },
    /// The identity file cannot be read as such.
    #[error("open {}: the identity file is damaged ({detail}); restore it from a backup", path.display())]
    DamagedIdentity {
        /// The data directory.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The file system refused.
    #[error("open {}: {operation} failed: {source}", path.display())]
    FileSystem {
        /// The data directory.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// In the system's words.
        source: io::Error,
    },
    /// The log cannot be read at one place, and what stands behind it was acknowledged.
    #[error(
        "open {}: the log {} is damaged at byte {offset}, and acknowledged writes stand behind it; replace this node's replicas from healthy ones, restore a backup, or start once with --accept-damaged-log to go on without what is behind",
        path.display(), file.display()
    )]
    DamagedLog {
        /// The data directory.
        path: PathBuf,
        /// The log file.
        file: PathBuf,
        /// The first byte that cannot be read.
        offset: u64,
    },
    /// RocksDB refused.
    #[error("open {}: the database does not open ({detail}); check the disk, or replace this node's replicas from healthy ones", path.display())]
    Database {
        /// The data directory.
        path: PathBuf,
        /// In RocksDB's words.
        detail: String,
    },
}

impl OpenError {
    /// The stable code of the error pages.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotADirectory { .. } => "data_not_a_directory",
            Self::Locked { .. } => "data_locked",
            Self::WrongIdentity { .. } => "data_wrong_identity",
            Self::MissingData { .. } => "data_missing",
            Self::NotEmpty { .. } => "data_not_empty",
            Self::NewerFormat { .. } => "data_newer_format",
            Self::DamagedIdentity { .. } => "data_damaged_identity",
            Self::FileSystem { .. } => "data_file_system",
            Self::DamagedLog { .. } => "data_damaged_log",
            Self::Database { .. } => "data_database",
        }
    }
}

/// A locked data directory.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The lock lasts as long as the file is open; nobody needs to remove it after a crash.
    _lock: File,
}

/// What a locked directory is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A database is to be created in it, then [`Directory::finish_creation`].
    Nothing(Identity),
    /// The database of this identity.
    Data(Identity),
}

impl Directory {
    /// Locks the directory and compares what is there with what is expected.
    pub(crate) fn claim(path: &Path, start: Start) -> Result<(Self, Found), OpenError> {
        match fs::metadata(path) {
            Ok(there) if !there.is_dir() => return Err(OpenError::NotADirectory { path: path.to_owned() }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => match start {
                Start::Fresh(_) => fs::create_dir_all(path).map_err(file_system(path, "create the directory"))?,
                Start::Known(_) | Start::Any => return Err(missing(path, "there is no such directory")),
            },
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(OpenError::NotADirectory { path: path.to_owned() });
            }
            Err(error) => return Err(file_system(path, "look at the directory")(error)),
        }
        let directory = Self {
            path: path.to_owned(),
            _lock: lock(path)?,
        };
        let identity = read_identity(path)?;
        let found = match (start, identity) {
            (Start::Fresh(_), Some(_)) => {
                return Err(OpenError::NotEmpty {
                    path: path.to_owned(),
                    found: IDENTITY.to_owned(),
                });
            }
            (Start::Fresh(identity), None) => {
                directory.begin_creation()?;
                Found::Nothing(identity)
            }
            (Start::Known(_) | Start::Any, None) => return Err(missing(path, "it holds no identity file")),
            (Start::Known(expected), Some(found)) if found != expected => {
                return Err(OpenError::WrongIdentity {
                    path: path.to_owned(),
                    expected,
                    found,
                });
            }
            (Start::Known(_) | Start::Any, Some(identity)) => {
                if !directory.database().join("CURRENT").is_file() {
                    return Err(missing(path, "it holds an identity file, but no database"));
                }
                Found::Data(identity)
            }
        };
        Ok((directory, found))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Leaves the directory with nothing but the mark of a creation. A creation that did not end never acknowledged
    /// anything, so its database may go.
    fn begin_creation(&self) -> Result<(), OpenError> {
        let creating = self.path.join(CREATING);
        if creating.exists() {
            match fs::remove_dir_all(self.database()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_system(&self.path, "remove an unfinished database")(error));
                }
                _ => {}
            }
        }
        let look = file_system(&self.path, "list the directory");
        for entry in fs::read_dir(&self.path).map_err(&look)? {
            let name = entry.map_err(&look)?.file_name();
            // A mount point of its own comes with lost+found.
            if ![LOCK, CREATING, IDENTITY_NEW, ballast::NAME, "lost+found"]
                .iter()
                .any(|ours| name == *ours)
            {
                return Err(OpenError::NotEmpty {
                    path: self.path.clone(),
                    found: name.to_string_lossy().into_owned(),
                });
            }
        }
        let mark = file_system(&self.path, "mark the creation");
        File::create(creating).and_then(|file| file.sync_all()).map_err(&mark)?;
        sync_directory(&self.path).map_err(&mark)
    }

    /// Writes the identity: from here on the directory holds data.
    pub(crate) fn finish_creation(&self, identity: Identity) -> Result<(), OpenError> {
        let text = format!(
            "format = {FORMAT}\nneeds = {FORMAT_NEEDS}\ncluster = {}\nnode = {}\n",
            identity.cluster, identity.node.0
        );
        let step = file_system(&self.path, "write the identity file");
        let new = self.path.join(IDENTITY_NEW);
        let mut file = File::create(&new).map_err(&step)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(&step)?;
        fs::rename(&new, self.path.join(IDENTITY)).map_err(&step)?;
        sync_directory(&self.path).map_err(&step)?;
        fs::remove_file(self.path.join(CREATING)).map_err(&step)?;
        sync_directory(&self.path).map_err(&step)
    }

    /// Bytes that this process may still write to the file system of the directory.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let there = rustix::fs::statvfs(&self.path)?;
        Ok(there.f_bavail.saturating_mul(there.f_frsize))
    }
}

/// The identity of a data directory; None where there is none yet. Does not lock.
pub(crate) fn read_identity(path: &Path) -> Result<Option<Identity>, OpenError> {
    let text = match fs::read_to_string(path.join(IDENTITY)) {
        Ok(text) => text,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                io::ErrorKind::NotADirectory => Err(OpenError::NotADirectory { path: path.to_owned() }),
                io::ErrorKind::InvalidData => Err(damaged(path, "it is not text")),
                _ => Err(file_system(path, "read the identity file")(error)),
            };
        }
    };
    let field = |name: &str| {
        text.lines().find_map(|line| {
            line.split_once(" = ")
                .and_then(|(key, value)| (key == name).then_some(value))
        })
    };
    let format: u32 = field("format")
        .and_then(|f| f.parse().ok())
        .ok_or_else(|| damaged(path, "it names no format"))?;
    // Before anything else: the other fields are those of a format that we do not know.
    if format > FORMAT {
        let needs = field("needs").unwrap_or("of a later release").to_owned();
        return Err(OpenError::NewerFormat {
            path: path.to_owned(),
            found: format,
            needs,
        });
    }
    let cluster = field("cluster")
        .and_then(parse_cluster)
        .ok_or_else(|| damaged(path, "it names no cluster"))?;
    let node = field("node")
        .and_then(|n| n.parse().ok())
        .ok_or_else(|| damaged(path, "it names no node"))?;
    Ok(Some(Identity {
        cluster,
        node: NodeId(node),
    }))
}

fn parse_cluster(text: &str) -> Option<ClusterId> {
    if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16)
        .ok()
        .map(|number| ClusterId(number.to_be_bytes()))
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let step = file_system(path, "lock the directory");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK))
        .map_err(&step)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(error) => Err(step(error.into())),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn file_system(path: &Path, operation: &'static str) -> impl Fn(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::FileSystem {
        path: path.clone(),
        operation,
        source,
    }
}

fn missing(path: &Path, missing: &'static str) -> OpenError {
    OpenError::MissingData {
        path: path.to_owned(),
        missing,
    }
}

fn damaged(path: &Path, detail: &str) -> OpenError {
    OpenError::DamagedIdentity {
        path: path.to_owned(),
        detail: detail.to_owned(),
    }
}
