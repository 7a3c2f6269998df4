//! Which replicas this node holds, by its own word. A node starts what is in this list and nothing else: an empty
//! replica that is not marked as joining has lost its data, and must not vote.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use waggle_config::identity::{self, Access, IdentityError};
use waggle_memory::meta::ShardId;

/// One line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) replica: u64,
    /// It has not received its first membership yet, so it may be empty.
    pub(crate) joining: bool,
}

/// The list, and its file.
pub(crate) struct Hosted {
    file: PathBuf,
    entries: Mutex<BTreeMap<ShardId, Entry>>,
}

impl Hosted {
    /// Reads the list; None if there never was one.
    pub(crate) fn open(file: PathBuf) -> Result<Option<Self>, String> {
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("read {}: {error}", file.display())),
        };
        let entries = text
            .lines()
            .map(|line| {
                parse(line).ok_or_else(|| format!("{}: '{}' is not a replica", file.display(), line.escape_debug()))
            })
            .collect::<Result<_, _>>()?;
        Ok(Some(Self {
            file,
            entries: Mutex::new(entries),
        }))
    }

    /// Makes the list. Blocks.
    pub(crate) fn create(file: PathBuf, entries: BTreeMap<ShardId, Entry>) -> Result<Self, IdentityError> {
        let hosted = Self {
            file,
            entries: Mutex::new(entries),
        };
        hosted.change(|_| ())?;
        Ok(hosted)
    }

    pub(crate) fn all(&self) -> BTreeMap<ShardId, Entry> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Before a replica is started for the first time. Blocks.
    pub(crate) fn add(&self, shard: ShardId, replica: u64) -> Result<(), IdentityError> {
        self.change(|entries| {
            entries.insert(shard, Entry { replica, joining: true });
        })
    }

    /// When a replica is a member by its own log. Blocks.
    pub(crate) fn joined(&self, shard: ShardId) -> Result<(), IdentityError> {
        self.change(|entries| {
            if let Some(entry) = entries.get_mut(&shard) {
                entry.joining = false;
            }
        })
    }

    /// After the data of a replica were removed. Blocks.
    pub(crate) fn remove(&self, shard: ShardId) -> Result<(), IdentityError> {
        self.change(|entries| {
            entries.remove(&shard);
        })
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<ShardId, Entry>)) -> Result<(), IdentityError> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = entries.clone();
        change(&mut next);
        let text: String = next
            .iter()
            .map(|(shard, entry)| {
                let state = if entry.joining { "joining" } else { "member" };
                format!("{} {} {state}\n", shard.0, entry.replica)
            })
            .collect();
        identity::write(&self.file, text.as_bytes(), Access::Owner)?;
        *entries = next;
        Ok(())
    }
}

fn parse(line: &str) -> Option<(ShardId, Entry)> {
    let mut words = line.split(' ');
    let shard = ShardId(words.next()?.parse().ok()?);
    let replica = words.next()?.parse().ok()?;
    let joining = match words.next()? {
        "joining" => true,
        "member" => false,
        _ => return None,
    };
    words.next().is_none().then_some((shard, Entry { replica, joining }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_what_was_written_and_nonsense_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("replicas");
        assert!(Hosted::open(file.clone()).expect("readable").is_none());
        let hosted = Hosted::create(file.clone(), BTreeMap::new()).expect("made");
        hosted.add(ShardId(3), 17).expect("added");
        hosted.add(ShardId(0), 4).expect("added");
        hosted.joined(ShardId(0)).expect("joined");
        let again = Hosted::open(file.clone()).expect("readable").expect("there");
        let entry = |replica, joining| Entry { replica, joining };
        assert_eq!(
            again.all(),
            BTreeMap::from([(ShardId(0), entry(4, false)), (ShardId(3), entry(17, true))])
        );
        again.remove(ShardId(3)).expect("removed");
        assert_eq!(std::fs::read_to_string(&file).expect("text"), "0 4 member\n");
        std::fs::write(&file, "0 4 leader\n").expect("written");
        assert!(Hosted::open(file).is_err());
    }
}
