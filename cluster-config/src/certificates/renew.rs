//! A new key and certificate in the place of old ones, while processes may read them at any moment.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use waggle_memory::time::Millis;

use super::load::check_key;
use super::make::Authority;
use super::{
    CertificateError, ENDING_WITHIN, Subject, certificates_in, create, files, life, parse, read, read_key, subject_of,
};
use crate::checked::TlsFiles;
use crate::identity::{self, Access, IdentityError};

/// Replaces key and certificate of one process by new ones for the same subject, signed by the authority in `dir`. The
/// old pair stays beside them as `.previous`. Both new files are on the disk before the first name changes, so that a
/// reader sees two files that do not match for the time between two renames at most, and reads again.
pub fn renew(dir: &Path, subject: Subject, now: Millis) -> Result<TlsFiles, CertificateError> {
    let files = files(dir, subject);
    check_subject(&files, subject)?;
    let made = Authority::load(dir)?.sign(subject, now)?;
    let (new_key, new_certificate) = (beside(&files.key, "new"), beside(&files.certificate, "new"));
    identity::write(&new_key, made.key_pem.as_bytes(), Access::Owner)?;
    identity::write(&new_certificate, made.certificate_pem.as_bytes(), Access::Everyone)?;
    keep_owner(&files.key, &new_key);
    keep_owner(&files.certificate, &new_certificate);
    // A renewal that was cut between its two renames left a pair that is worth nothing: keep the one before it.
    if belong_together(&files) {
        keep_previous(&files.key)?;
        keep_previous(&files.certificate)?;
    }
    rename(&new_key, &files.key)?;
    rename(&new_certificate, &files.certificate)?;
    sync_directory_of(&files.certificate)?;
    Ok(files)
}

/// Makes the certificate if there is none, and renews it if it ends soon or has ended. For directories that have the
/// authority's key beside the certificates, such as that of `waggle dev`.
pub fn ensure(dir: &Path, subject: Subject, now: Millis) -> Result<TlsFiles, CertificateError> {
    let files = files(dir, subject);
    if !files.certificate.exists() {
        return create(dir, subject, now);
    }
    for der in certificates_in(&files.certificate, &read(&files.certificate)?)?
        .iter()
        .take(1)
    {
        let (_, expires_at) = life(&parse(&files.certificate, der)?);
        if expires_at <= now.plus(ENDING_WITHIN) {
            return renew(dir, subject, now);
        }
    }
    Ok(files)
}

/// Whoever renews the wrong file should hear of it before anything changes.
fn check_subject(files: &TlsFiles, needed: Subject) -> Result<(), CertificateError> {
    let path = &files.certificate;
    for der in certificates_in(path, &read(path)?)?.iter().take(1) {
        match subject_of(&parse(path, der)?) {
            Some(found) if found == needed => {}
            Some(found) => {
                return Err(CertificateError::WrongId {
                    path: path.clone(),
                    found,
                    needed,
                });
            }
            None => {
                return Err(CertificateError::Malformed {
                    path: path.clone(),
                    why: "the certificate names no node and no gateway; nothing was renewed".to_owned(),
                });
            }
        }
    }
    Ok(())
}

fn belong_together(files: &TlsFiles) -> bool {
    let chain = read(&files.certificate).and_then(|pem| certificates_in(&files.certificate, &pem));
    match (chain, read_key(&files.key)) {
        (Ok(chain), Ok(key_pem)) => check_key(files, chain, &key_pem).is_ok(),
        _ => false,
    }
}

/// The old file under a second name: at no moment is there none under the first.
fn keep_previous(path: &Path) -> Result<(), CertificateError> {
    let (previous, linking) = (beside(path, "previous"), beside(path, "previous.new"));
    drop(fs::remove_file(&linking));
    fs::hard_link(path, &linking)
        .or_else(|_| {
            // A file system without links.
            fs::copy(path, &linking).map(|_| ())
        })
        .map_err(|source| io_error("keep the old file as", &linking, source))?;
    rename(&linking, &previous)
}

/// Who renews as root must not take the key away from the user that the process runs as.
#[cfg(unix)]
fn keep_owner(old: &Path, new: &Path) {
    use std::os::unix::fs::MetadataExt as _;
    if let Ok(metadata) = fs::metadata(old) {
        drop(std::os::unix::fs::chown(
            new,
            Some(metadata.uid()),
            Some(metadata.gid()),
        ));
        drop(fs::set_permissions(new, metadata.permissions()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_old: &Path, _new: &Path) {}

fn rename(from: &Path, to: &Path) -> Result<(), CertificateError> {
    fs::rename(from, to).map_err(|source| io_error("write", to, source))
}

fn sync_directory_of(path: &Path) -> Result<(), CertificateError> {
    File::open(path.parent().unwrap_or(Path::new(".")))
        .and_then(|dir| dir.sync_all())
        .map_err(|source| io_error("sync the directory of", path, source))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> CertificateError {
    CertificateError::Write(IdentityError::Io {
        action,
        path: path.to_owned(),
        source,
    })
}
