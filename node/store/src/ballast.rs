//! A file that only takes space. RocksDB cannot open, and so cannot even delete, on a disk without one free byte. When a
//! start finds such a disk, the ballast goes, and its room is what the log is replayed into.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

/// Its name in the data directory.
pub(crate) const NAME: &str = "ballast";

/// Gives the room back when less than `bytes` are free. Returns whether there was something to give.
pub(crate) fn release(directory: &Path, free: u64, bytes: u64) -> io::Result<bool> {
    if free >= bytes {
        return Ok(false);
    }
    match fs::remove_file(directory.join(NAME)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the room, if it is not taken and at least `free_after` bytes remain for others.
pub(crate) fn take(directory: &Path, free: u64, bytes: u64, free_after: u64) -> io::Result<()> {
    let path = directory.join(NAME);
    if fs::metadata(&path).is_ok_and(|there| there.len() >= bytes) || free < bytes.saturating_add(free_after) {
        return Ok(());
    }
    let file = File::create(&path)?;
    // A file system that cannot set blocks aside has none to give back either: then there is no ballast.
    if let Err(error) = fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        drop(file);
        fs::remove_file(&path)?;
        return Err(error.into());
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_ballast_takes_real_blocks_and_gives_them_back_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        take(directory.path(), 2 * MIB, MIB, 2 * MIB).unwrap();
        assert!(!path.exists(), "too little would be left for others");
        take(directory.path(), 4 * MIB, MIB, 2 * MIB).unwrap();
        assert!(
            fs::metadata(&path).unwrap().blocks() * 512 >= MIB,
            "blocks that are set aside"
        );
        assert!(!release(directory.path(), MIB, MIB).unwrap(), "there is room");
        assert!(path.exists());
        assert!(release(directory.path(), MIB - 1, MIB).unwrap());
        assert!(!path.exists());
        assert!(!release(directory.path(), 0, MIB).unwrap(), "nothing is left to give");
    }
}
