//! Who a process is, on disk: the layout of a data directory, identity files, secrets. An identity is made once, by an
//! explicit act, and never by a start that finds nothing: a node that lost its directory must not come back under its
//! old name and vote again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use waggle_memory::meta::{ClusterId, NodeId};

/// Names inside a data directory. One list, so that `waggle dev` and the two processes find the same files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    root: PathBuf,
}

impl DataDir {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The database.
    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// Held by the process that uses the directory.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub fn pepper(&self) -> PathBuf {
        self.root.join("secrets/pepper")
    }

    pub fn cluster_secret(&self) -> PathBuf {
        self.root.join("secrets/cluster-secret")
    }

    pub fn operator_key(&self) -> PathBuf {
        self.root.join("secrets/operator-key")
    }

    pub fn certificates(&self) -> PathBuf {
        self.root.join("certificates")
    }

    /// Configuration files that `waggle dev` writes for running the roles apart.
    pub fn config(&self, role: &str) -> PathBuf {
        self.root.join("config").join(format!("{role}.toml"))
    }

    /// What a node knows of its cluster: placement, its own replicas, snapshots that arrive.
    pub fn cluster(&self) -> PathBuf {
        self.root.join("cluster")
    }

    /// Drawn when the directory was made; see [`waggle_memory::meta::NodeInfo::incarnation`].
    pub fn incarnation(&self) -> PathBuf {
        self.root.join("identity/incarnation")
    }

    /// The key that `waggle dev` prints.
    pub fn dev_key(&self) -> PathBuf {
        self.root.join("dev-key")
    }

    /// Present since the first start was complete. Before it nothing was ever acknowledged, so what an unfinished first
    /// start left may be removed; after it a missing database is a loss, and the node must not start.
    pub fn started(&self) -> PathBuf {
        self.root.join("identity/started")
    }

    fn cluster_id(&self) -> PathBuf {
        self.root.join("identity/cluster-id")
    }

    fn node_id(&self) -> PathBuf {
        self.root.join("identity/node-id")
    }
}

/// Which node of which cluster a data directory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster: ClusterId,
    pub node: NodeId,
}

#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("{} holds no identity: this node was never made, or its directory was lost", .0.display())]
    Missing(PathBuf),
    #[error("{} holds an identity already ({}); use an empty directory", .path.display(), .found.node)]
    Exists { path: PathBuf, found: Identity },
    #[error("{}: '{text}' is not {expected}", .path.display())]
    Malformed {
        path: PathBuf,
        text: String,
        expected: &'static str,
    },
    #[error("{action} {}: {source}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl Identity {
    /// Reads the identity of a data directory.
    pub fn load(dir: &DataDir) -> Result<Self, IdentityError> {
        let cluster = read_line(&dir.cluster_id()).map_err(|error| missing(dir, error))?;
        let node = read_line(&dir.node_id()).map_err(|error| missing(dir, error))?;
        let cluster = parse_cluster_id(&cluster).ok_or(IdentityError::Malformed {
            path: dir.cluster_id(),
            text: cluster,
            expected: "a cluster id, 32 hexadecimal digits",
        })?;
        let node = node
            .strip_prefix("nod_")
            .and_then(|digits| digits.parse().ok())
            .filter(|id| *id > 0)
            .map(NodeId)
            .ok_or(IdentityError::Malformed {
                path: dir.node_id(),
                text: node,
                expected: "a node id, such as nod_1",
            })?;
        Ok(Self { cluster, node })
    }

    /// Gives an empty data directory its identity; refuses one that has one.
    pub fn create(dir: &DataDir, identity: Self) -> Result<Self, IdentityError> {
        match Self::load(dir) {
            Ok(found) => {
                return Err(IdentityError::Exists {
                    path: dir.root.clone(),
                    found,
                });
            }
            Err(IdentityError::Missing(_)) => {}
            Err(other) => return Err(other),
        }
        write(
            &dir.cluster_id(),
            format!("{}\n", identity.cluster).as_bytes(),
            Access::Everyone,
        )?;
        // Last: with this file the identity is complete.
        write(
            &dir.node_id(),
            format!("{}\n", identity.node).as_bytes(),
            Access::Everyone,
        )?;
        Ok(identity)
    }
}

fn missing(dir: &DataDir, error: IdentityError) -> IdentityError {
    match error {
        IdentityError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            IdentityError::Missing(dir.root.clone())
        }
        other => other,
    }
}

fn parse_cluster_id(text: &str) -> Option<ClusterId> {
    (text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
        .map(|number| ClusterId(number.to_be_bytes()))
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Mode 0644.
    Everyone,
    /// Mode 0600.
    Owner,
}

/// Writes a file so that a reader sees all of it or nothing, with its directories.
pub fn write(path: &Path, bytes: &[u8], access: Access) -> Result<(), IdentityError> {
    let io = |action| {
        let path = path.to_owned();
        move |source| IdentityError::Io { action, path, source }
    };
    let dir = path.parent().unwrap_or(Path::new("."));
    create_dir(dir).map_err(io("create the directory of"))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = dir.join(name);
    let written = open_new(&new, access).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(&new, path)) {
        // The half-written file is of no use; that it cannot be removed changes nothing about the error.
        drop(fs::remove_file(&new));
        return Err(io("write")(error));
    }
    // Without it the name may be gone after a loss of power.
    fs::File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(io("sync the directory of"))
}

/// A secret file: one line. Refuses one that others may read.
pub fn read_secret(path: &Path) -> Result<String, SecretError> {
    let metadata = fs::metadata(path).map_err(|source| SecretError::Io {
        path: path.to_owned(),
        source,
    })?;
    check_private(path, &metadata)?;
    let text = fs::read_to_string(path).map_err(|source| SecretError::Io {
        path: path.to_owned(),
        source,
    })?;
    let text = text.trim();
    if text.is_empty() {
        Err(SecretError::Empty(path.to_owned()))
    } else {
        Ok(text.to_owned())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("read {}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is empty", .0.display())]
    Empty(PathBuf),
    #[error("{} can be read by others (mode {mode:03o}); run: chmod 600 {}", .path.display(), .path.display())]
    Open { path: PathBuf, mode: u32 },
}

#[cfg(unix)]
pub(crate) fn check_private(path: &Path, metadata: &fs::Metadata) -> Result<(), SecretError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o777;
    // A group may read it: that is how systemd and Kubernetes hand secrets to a service.
    if mode & 0o037 != 0 {
        Err(SecretError::Open {
            path: path.to_owned(),
            mode,
        })
    } else {
        Ok(())
    }
}

#[cfg(not(unix))]
pub(crate) fn check_private(_path: &Path, _metadata: &fs::Metadata) -> Result<(), SecretError> {
    Ok(())
}

fn read_line(path: &Path) -> Result<String, IdentityError> {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .map_err(|source| IdentityError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })
}

#[cfg(unix)]
fn create_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    // Data directories are nobody else's business.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
fn create_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

fn open_new(path: &Path, access: Access) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(match access {
            Access::Everyone => 0o644,
            Access::Owner => 0o600,
        });
    }
    #[cfg(not(unix))]
    let _ = access;
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        cluster: ClusterId([7; 16]),
        node: NodeId(3),
    };

    #[test]
    fn an_identity_is_made_once() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let dir = DataDir::new(temp.path().join("new"));
        assert!(matches!(Identity::load(&dir), Err(IdentityError::Missing(_))));
        Identity::create(&dir, IDENTITY).expect("empty directory");
        assert_eq!(Identity::load(&dir).expect("just made"), IDENTITY);
        let error = Identity::create(&dir, IDENTITY).expect_err("has one");
        assert!(error.to_string().contains("(nod_3); use an empty directory"), "{error}");
    }

    #[test]
    fn a_damaged_identity_is_not_a_missing_one() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let dir = DataDir::new(temp.path());
        Identity::create(&dir, IDENTITY).expect("empty directory");
        fs::write(dir.node_id(), "three").expect("write");
        let error = Identity::create(&dir, IDENTITY).expect_err("damaged");
        assert!(
            error.to_string().ends_with("'three' is not a node id, such as nod_1"),
            "{error}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let temp = tempfile::tempdir().expect("temporary directory");
        let path = temp.path().join("secret");
        write(&path, b"hidden\n", Access::Owner).expect("write");
        assert_eq!(read_secret(&path).expect("private"), "hidden");
        for (mode, fine) in [
            (0o400, true),
            (0o640, true),
            (0o644, false),
            (0o660, false),
            (0o602, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
            assert_eq!(read_secret(&path).is_ok(), fine, "{mode:o}");
        }
    }
}
