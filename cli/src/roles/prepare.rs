//! The data directory before a role starts: who uses it, whose it is, and the secrets and certificates in it.

use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use waggle_config::certificates::{self, Role, Subject};
use waggle_config::identity::{self, Access, DataDir, Identity, IdentityError};
use waggle_config::runtime::clock::Clock;
use waggle_memory::meta::{ClusterId, NodeId};

use crate::failure::{self, Failure};

pub(crate) const FIRST_NODE: NodeId = NodeId(1);
const SECRET_BYTES: usize = 32;

/// Whether a start may make an identity where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenNew {
    /// The first node of a new cluster, under this number.
    Create(NodeId),
    Refuse,
}

/// A data directory that belongs to this process until it ends.
pub(crate) struct Claimed {
    pub(crate) dir: DataDir,
    pub(crate) identity: Identity,
    /// Nothing was ever acknowledged here.
    pub(crate) is_new: bool,
    /// The store was created, if only by a first start that did not end.
    pub(crate) has_store: bool,
    pub(crate) incarnation: [u8; 16],
    /// The operating system takes the lock back when the file is closed, however the process ends.
    _lock: File,
}

/// A data directory that nobody else uses, whether or not it has an identity.
pub(crate) struct Locked {
    pub(crate) dir: DataDir,
    /// None: it has none yet.
    pub(crate) identity: Option<Identity>,
    lock: File,
}

/// Locks the directory and finds out whose it is.
pub(crate) fn claim(root: &Path, when_new: WhenNew) -> Result<Claimed> {
    let dir = find(root)?;
    if when_new == WhenNew::Refuse
        && let Err(error @ IdentityError::Missing(_)) = Identity::load(&dir)
    {
        return Err(Failure::new(failure::CONFIGURATION, error.to_string())
            .next(
                "mount the right disk; or make a new cluster here with `waggle cluster init`; or join one with \
                 node.join_token_file",
            )
            .into());
    }
    let locked = lock_dir(dir)?;
    match (locked.identity, when_new) {
        (Some(identity), _) => locked.claimed(identity),
        (None, WhenNew::Create(node)) => {
            let mut cluster = [0; 16];
            random(&mut cluster)?;
            locked.create(Identity {
                cluster: ClusterId(cluster),
                node,
            })
        }
        (None, WhenNew::Refuse) => Err(IdentityError::Missing(locked.dir.root().to_owned()).into()),
    }
}

/// Locks a directory that may be empty.
pub(crate) fn lock_root(root: &Path) -> Result<Locked> {
    lock_dir(find(root)?)
}

fn find(root: &Path) -> Result<DataDir> {
    let root = std::path::absolute(root).with_context(|| format!("find {}", root.display()))?;
    // For messages; one that does not exist yet has nothing to resolve.
    Ok(DataDir::new(fs::canonicalize(&root).unwrap_or(root)))
}

fn lock_dir(dir: DataDir) -> Result<Locked> {
    let lock = lock(&dir)?;
    let identity = match Identity::load(&dir) {
        Ok(identity) => Some(identity),
        Err(IdentityError::Missing(_)) => {
            refuse_data_of_nobody(&dir)?;
            None
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Locked { dir, identity, lock })
}

impl Locked {
    /// Gives the directory its identity.
    pub(crate) fn create(self, identity: Identity) -> Result<Claimed> {
        let identity = Identity::create(&self.dir, identity)?;
        self.claimed(identity)
    }

    fn claimed(self, identity: Identity) -> Result<Claimed> {
        let Self { dir, lock, .. } = self;
        // A first start that did not end left a store of this very identity, or none: the store itself finds out, and
        // refuses whatever else lies there. Nothing is ever removed.
        let is_new = !dir.started().exists();
        let has_store = dir.store().join("identity").exists();
        let incarnation = incarnation(&dir)?;
        Ok(Claimed {
            dir,
            identity,
            is_new,
            has_store,
            incarnation,
            _lock: lock,
        })
    }
}

/// Drawn at the first use of a directory and the same ever after.
pub(crate) fn incarnation(dir: &DataDir) -> Result<[u8; 16]> {
    let path = dir.incarnation();
    if let Ok(text) = fs::read_to_string(&path) {
        let bytes = text.trim();
        let parsed = u128::from_str_radix(bytes, 16).ok().filter(|_| bytes.len() == 32);
        return parsed
            .map(u128::to_be_bytes)
            .with_context(|| format!("{} is not 32 hexadecimal digits", path.display()));
    }
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    identity::write(&path, format!("{}\n", hex(&bytes)).as_bytes(), Access::Everyone)?;
    Ok(bytes)
}

impl Claimed {
    /// From now on a missing database is a loss. Call it when the node runs, before anybody can write to it.
    pub(crate) fn mark_started(&self) -> Result<()> {
        if self.is_new {
            identity::write(&self.dir.started(), b"1\n", Access::Everyone)?;
        }
        Ok(())
    }
}

/// A store without the identity beside it was somebody's: a new identity would make it unreadable for its owner.
fn refuse_data_of_nobody(dir: &DataDir) -> Result<()> {
    let store = dir.store();
    let Ok(mut entries) = fs::read_dir(&store) else {
        return Ok(());
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let what = format!("{} holds data, but the identity beside it is missing", store.display());
    Err(Failure::new(failure::CONFIGURATION, what)
        .next("put the identity folder back from a backup, or name another directory")
        .into())
}

fn lock(dir: &DataDir) -> Result<File> {
    let path = dir.lock();
    // Written by way of a helper that makes the directories with the right mode.
    if !path.exists() {
        identity::write(&path, b"", Access::Owner)?;
    }
    let file = File::options()
        .write(true)
        .open(&path)
        .with_context(|| format!("open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let what = format!("another waggle process uses {}", dir.root().display());
            Err(Failure::new(failure::CONFLICT, what)
                .next("stop it, or name another directory with --data")
                .into())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("lock {}", path.display())),
    }
}

/// The secrets of a cluster; made when they are not there.
pub(crate) fn ensure_secrets(dir: &DataDir) -> Result<()> {
    for path in [dir.pepper(), dir.cluster_secret()] {
        if !path.exists() {
            let mut bytes = [0; SECRET_BYTES];
            random(&mut bytes)?;
            identity::write(&path, format!("{}\n", hex(&bytes)).as_bytes(), Access::Owner)?;
        }
    }
    Ok(())
}

/// Authority and certificates, so that the same directory can be served by two processes. What ends soon is renewed.
pub(crate) fn ensure_certificates(dir: &DataDir, node: NodeId, clock: &dyn Clock) -> Result<()> {
    let certificates_dir = dir.certificates();
    if !certificates_dir.join("ca.pem").exists() {
        certificates::create_ca(&certificates_dir, clock.wall())?;
    }
    for subject in [
        Subject {
            role: Role::Node,
            id: node.0,
        },
        Subject {
            role: Role::Gateway,
            id: 1,
        },
    ] {
        certificates::ensure(&certificates_dir, subject, clock.wall())?;
    }
    Ok(())
}

/// Configuration of the two roles over this directory. Written once: whoever edits it keeps the edit.
pub(crate) fn ensure_config_files(dir: &DataDir, node: NodeId) -> Result<Vec<PathBuf>> {
    let node_file = format!(
        r#"# Written by `waggle dev`, for running its data as two processes: docs/running-two-processes.md.
# Paths start at the directory of this file.

[node]
data_dir = ".."
listen = "127.0.0.1:7710"
admin_listen = "127.0.0.1:7711"
store_bytes_max = "64MiB"
disk_reserve_bytes = "256MiB"

[tls]
ca_file = "../certificates/ca.pem"
certificate_file = "../certificates/node-{id}.pem"
key_file = "../certificates/node-{id}.key"
"#,
        id = node.0
    );
    let gateway_file = format!(
        r#"# Written by `waggle dev`, for running its data as two processes: docs/running-two-processes.md.
# Paths start at the directory of this file.

[gateway]
listen = "127.0.0.1:7700"
admin_listen = "127.0.0.1:7701"
environment = "dev"
nodes = ["{id}@127.0.0.1:7710"]
pepper_file = "../secrets/pepper"
cluster_secret_file = "../secrets/cluster-secret"

[tls]
ca_file = "../certificates/ca.pem"
certificate_file = "../certificates/gateway-1.pem"
key_file = "../certificates/gateway-1.key"
"#,
        id = node.0
    );
    let mut paths = Vec::new();
    for (role, text) in [("node", node_file), ("gateway", gateway_file)] {
        let path = dir.config(role);
        if !path.exists() {
            identity::write(&path, text.as_bytes(), Access::Everyone)?;
        }
        paths.push(path);
    }
    Ok(paths)
}

pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| anyhow::anyhow!("take randomness from the operating system: {error}"))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use waggle_config::raw::Raw;
    use waggle_config::runtime::clock::System;
    use waggle_config::{checked, identity::read_secret};

    use super::*;

    #[test]
    fn a_directory_has_one_user_and_keeps_its_identity() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let root = temp.path().join("data");
        assert!(claim(&root, WhenNew::Refuse).is_err(), "nothing is there yet");
        assert!(!root.exists(), "a refused start leaves nothing behind");
        let first = claim(&root, WhenNew::Create(FIRST_NODE)).expect("new");
        let error = claim(&root, WhenNew::Create(FIRST_NODE)).err().expect("in use");
        assert!(error.to_string().contains("another waggle process uses"), "{error}");
        let identity = first.identity;
        drop(first);
        let again = claim(&root, WhenNew::Refuse).expect("known");
        assert_eq!(again.identity, identity);
        assert!(again.is_new, "it never ran");
        again.mark_started().expect("mark");
        drop(again);
        assert!(!claim(&root, WhenNew::Refuse).expect("known").is_new);
    }

    #[test]
    fn nothing_in_the_store_is_removed_whatever_is_missing_beside_it() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let claimed = claim(temp.path(), WhenNew::Create(FIRST_NODE)).expect("new");
        let (store, identity) = (claimed.dir.store(), temp.path().join("identity"));
        fs::create_dir(&store).expect("store");
        fs::write(store.join("identity"), "of the store").expect("store");
        drop(claimed);
        // No start was completed, and the store is there.
        let claimed = claim(temp.path(), WhenNew::Create(FIRST_NODE)).expect("again");
        assert!(claimed.is_new && claimed.has_store);
        drop(claimed);
        assert!(store.join("identity").exists());
        // A store whose identity is lost belongs to somebody.
        fs::remove_dir_all(&identity).expect("identity");
        assert!(claim(temp.path(), WhenNew::Create(FIRST_NODE)).is_err());
        assert!(store.join("identity").exists() && !identity.exists());
    }

    #[test]
    fn the_files_of_a_new_directory_fit_together() {
        let temp = tempfile::tempdir().expect("temporary directory");
        let claimed = claim(temp.path(), WhenNew::Create(FIRST_NODE)).expect("new");
        let clock = System::new();
        for _ in 0..2 {
            ensure_secrets(&claimed.dir).expect("secrets");
            ensure_certificates(&claimed.dir, FIRST_NODE, &clock).expect("certificates");
            ensure_config_files(&claimed.dir, FIRST_NODE).expect("configuration");
        }
        let node = checked::node(&Raw::load(&claimed.dir.config("node"))).expect("node.toml");
        let gateway = checked::gateway(&Raw::load(&claimed.dir.config("gateway"))).expect("gateway.toml");
        let load = |files, role| certificates::load(files, role, clock.wall()).expect("certificate");
        assert_eq!(
            load(node.tls(), Role::Node).subject,
            Subject {
                role: Role::Node,
                id: 1
            }
        );
        assert_eq!(
            load(gateway.tls(), Role::Gateway).subject,
            Subject {
                role: Role::Gateway,
                id: 1
            }
        );
        assert_eq!(
            read_secret(gateway.pepper_file()).expect("pepper").len(),
            2 * SECRET_BYTES
        );
        assert_eq!(
            node.data_dir().canonicalize().expect("path"),
            temp.path().canonicalize().expect("path")
        );
    }
}
