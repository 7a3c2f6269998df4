//! Reading and replacing a file of somebody else's: bounded, through links, with a backup, all or nothing.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// More is no configuration of a program.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Older backups of a file are removed.
const BACKUPS_MAX: usize = 5;
/// Between the name of the file and the time of the backup.
const BACKUP_MARK: &str = ".waggle-backup-";
/// Stands in the name of a backup before the mode of the original, where the backup has less.
const MODE_MARK: &str = "-mode";

#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{action} {}: {source}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} has more than {FILE_BYTES_MAX} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("{} is not UTF-8 at byte {at}", .path.display())]
    NotText { path: PathBuf, at: usize },
    #[error("{} was changed by another program just now; nothing was written", .0.display())]
    Changed(PathBuf),
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError::Io { action, path, source }
}

/// The text of a file; None if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, FileError> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link(path) => return Ok(None),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    if !file.metadata().map_err(io_error("read", path))?.is_file() {
        return Err(FileError::NotAFile(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(io_error("read", path))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| FileError::NotText {
        path: path.to_owned(),
        at: error.utf8_error().valid_up_to(),
    })
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
}

/// One change of one file.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) path: &'a Path,
    pub(crate) before: Option<&'a str>,
    /// None: the file goes.
    pub(crate) after: Option<&'a str>,
    /// The new text holds a key: nobody else may read it.
    pub(crate) secret: bool,
    /// Becomes part of the backup's name.
    pub(crate) time: &'a str,
}

impl Change<'_> {
    /// Makes the change and gives the backup. A link stays one: what it points to is replaced.
    pub(crate) fn save(&self) -> Result<Option<PathBuf>, FileError> {
        let path = if is_link(self.path) {
            fs::canonicalize(self.path).map_err(io_error("follow the link", self.path))?
        } else {
            self.path.to_owned()
        };
        let dir = path.parent().unwrap_or(Path::new(".")).to_owned();
        fs::create_dir_all(&dir).map_err(io_error("create the directory", &dir))?;
        let mode = mode_of(&path);
        let backup = match self.before {
            None => None,
            Some(text) => Some(self.back_up(&path, text, mode)?),
        };
        // Programs rewrite their own files: what was edited must still be what is there.
        if read(&path)?.as_deref() != self.before {
            return Err(FileError::Changed(path));
        }
        match self.after {
            Some(text) => replace(&path, text, self.new_mode(mode))?,
            None => fs::remove_file(&path).map_err(io_error("remove", &path))?,
        }
        sync(&dir);
        remove_old_backups(&path);
        Ok(backup)
    }

    fn new_mode(&self, mode: Option<u32>) -> u32 {
        match mode {
            _ if self.secret => mode.unwrap_or(0o600) & 0o700 | 0o600,
            Some(mode) => mode,
            None => 0o644,
        }
    }

    /// The same mode as the original, but never open to everybody: it may hold keys of other servers.
    fn back_up(&self, path: &Path, text: &str, mode: Option<u32>) -> Result<PathBuf, FileError> {
        let mode = mode.unwrap_or(0o600);
        let kept = mode & !0o007;
        // The name remembers what the copy itself must not have.
        let opened = if kept == mode {
            String::new()
        } else {
            format!("{MODE_MARK}{mode:03o}")
        };
        for attempt in 0..100u32 {
            let suffix = if attempt == 0 {
                String::new()
            } else {
                format!("-{attempt:02}")
            };
            let backup = beside(path, &format!("{BACKUP_MARK}{}{suffix}{opened}", self.time));
            match write_new(&backup, text, kept) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => {
                    return other
                        .map(|()| backup.clone())
                        .map_err(io_error("write the backup", &backup));
                }
            }
        }
        Err(io_error("write the backup of", path)(
            io::ErrorKind::AlreadyExists.into(),
        ))
    }
}

/// A file that was made private because a key stood in it gets the mode back that it had before. A file that its owner made
/// private stays so.
pub(crate) fn restore_mode(path: &Path) -> Result<(), FileError> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if mode_of(&path) != Some(0o600) {
        return Ok(());
    }
    let modes = backups(&path).into_iter().filter_map(|backup| {
        let name = backup.file_name()?.to_string_lossy().into_owned();
        let named = name
            .rsplit_once(MODE_MARK)
            .and_then(|(_, mode)| u32::from_str_radix(mode, 8).ok());
        named.or_else(|| mode_of(&backup))
    });
    // The newest is the one of this very change.
    match modes.skip(1).find(|mode| *mode != 0o600) {
        Some(mode) => fs::File::open(&path)
            .and_then(|file| set_mode(&file, mode & 0o777))
            .map_err(io_error("restore the mode of", &path)),
        None => Ok(()),
    }
}

/// The backups of a file, newest first.
pub(crate) fn backups(path: &Path) -> Vec<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let mark = format!("{}{BACKUP_MARK}", name.to_string_lossy());
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&mark))
        .map(|entry| entry.path())
        .collect();
    // The time is part of the name, so names sort by time; the mode that may stand behind it says nothing of that.
    found.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let time = name
            .rsplit_once(MODE_MARK)
            .map_or(name.clone(), |(time, _)| time.to_owned());
        std::cmp::Reverse(time)
    });
    found
}

/// A failure here leaves a file too many, which the next change removes.
fn remove_old_backups(path: &Path) {
    for old in backups(path).into_iter().skip(BACKUPS_MAX) {
        drop(fs::remove_file(old));
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn replace(path: &Path, text: &str, mode: u32) -> Result<(), FileError> {
    let new = beside(path, &format!(".{}.new", std::process::id()));
    drop(fs::remove_file(&new));
    let written = write_new(&new, text, mode).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        drop(fs::remove_file(&new));
        io_error("write", path)(error)
    })
}

fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = open_with_mode(&mut options, path)?;
    file.write_all(text.as_bytes())?;
    set_mode(&file, mode)?;
    file.sync_all()
}

/// Without it the name may be gone after a loss of power; the content is safe either way.
fn sync(dir: &Path) {
    drop(fs::File::open(dir).and_then(|dir| dir.sync_all()));
}

#[cfg(unix)]
fn mode_of(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .ok()
        .map(|metadata| metadata.permissions().mode() & 0o777)
}

/// Private until its mode is set.
#[cfg(unix)]
fn open_with_mode(options: &mut fs::OpenOptions, path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600).open(path)
}

#[cfg(unix)]
fn set_mode(file: &fs::File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Elsewhere a profile's files are private by the rights of their directory.
#[cfg(not(unix))]
fn mode_of(_path: &Path) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn open_with_mode(options: &mut fs::OpenOptions, path: &Path) -> io::Result<fs::File> {
    options.open(path)
}

#[cfg(not(unix))]
fn set_mode(_file: &fs::File, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("a file").permissions().mode() & 0o777
    }

    fn change<'a>(path: &'a Path, before: Option<&'a str>, after: &'a str, time: &'a str) -> Change<'a> {
        Change {
            path,
            before,
            after: Some(after),
            secret: false,
            time,
        }
    }

    #[test]
    fn a_change_keeps_mode_and_link_and_leaves_a_private_backup() {
        let dir = tempfile::tempdir().expect("directory");
        let (real, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
        fs::write(&real, "old").expect("write");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o664)).expect("chmod");
        symlink(&real, &link).expect("link");
        let backup = change(&link, Some("old"), "new", "1")
            .save()
            .expect("saved")
            .expect("a backup");
        assert!(is_link(&link));
        assert_eq!(
            (fs::read_to_string(&real).expect("read").as_str(), mode(&real)),
            ("new", 0o664)
        );
        assert_eq!(
            (fs::read_to_string(&backup).expect("read").as_str(), mode(&backup)),
            ("old", 0o660)
        );
        let secret = Change {
            secret: true,
            ..change(&link, Some("new"), "key", "2")
        };
        secret.save().expect("saved");
        assert_eq!(mode(&real), 0o600);
        let names: Vec<_> = fs::read_dir(dir.path())
            .expect("list")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(names.len(), 4, "no rest of writing is left: {names:?}");
    }

    #[test]
    fn the_mode_comes_back_once_the_key_is_gone() {
        for (before, after) in [(0o644, 0o644), (0o664, 0o664), (0o640, 0o640), (0o600, 0o600)] {
            let dir = tempfile::tempdir().expect("directory");
            let path = dir.path().join("settings.json");
            fs::write(&path, "old").expect("write");
            fs::set_permissions(&path, fs::Permissions::from_mode(before)).expect("chmod");
            let secret = Change {
                secret: true,
                ..change(&path, Some("old"), "key", "1")
            };
            secret.save().expect("saved");
            assert_eq!(mode(&path), 0o600);
            change(&path, Some("key"), "old", "2").save().expect("saved");
            restore_mode(&path).expect("restored");
            assert_eq!(mode(&path), after, "{before:o}");
        }
        // Without a key nothing was taken away.
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("settings.json");
        fs::write(&path, "old").expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).expect("chmod");
        change(&path, Some("old"), "new", "1").save().expect("saved");
        restore_mode(&path).expect("nothing to do");
        assert_eq!(mode(&path), 0o604);
    }

    #[test]
    fn backups_are_bounded_and_newest_first() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("c.toml");
        fs::write(&path, "0").expect("write");
        for n in 0..8 {
            let (before, after, time) = (n.to_string(), (n + 1).to_string(), format!("2026-0{n}"));
            change(&path, Some(&before), &after, &time).save().expect("saved");
        }
        change(&path, Some("8"), "9", "2026-07")
            .save()
            .expect("the same moment twice");
        let kept: Vec<String> = backups(&path)
            .iter()
            .map(|path| fs::read_to_string(path).expect("read"))
            .collect();
        assert_eq!(kept, ["8", "7", "6", "5", "4"]);
    }

    #[test]
    fn what_another_program_wrote_meanwhile_stays() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("c.json");
        fs::write(&path, "theirs").expect("write");
        let refused = change(&path, Some("old"), "ours", "1").save();
        assert!(matches!(refused, Err(FileError::Changed(_))), "{refused:?}");
        assert_eq!(fs::read_to_string(&path).expect("read"), "theirs");
        let gone = change(&dir.path().join("none"), Some("old"), "ours", "1").save();
        assert!(matches!(gone, Err(FileError::Changed(_))), "{gone:?}");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("c.json");
        fs::write(&path, b"ab\xff").expect("write");
        assert!(matches!(read(&path), Err(FileError::NotText { at: 2, .. })));
        assert!(read(&dir.path().join("none")).expect("absent").is_none());
        assert!(read(dir.path()).is_err());
        symlink(dir.path().join("nowhere"), dir.path().join("dangling")).expect("link");
        assert!(
            read(&dir.path().join("dangling")).is_err(),
            "a link to nothing is not absence"
        );
    }
}
