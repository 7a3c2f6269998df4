//! A vault as one file: a ZIP, or a JSON object from path to text. Reading treats every byte as hostile.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek, SeekFrom, Write};

use serde::de::{DeserializeSeed, MapAccess, Visitor};
use zip::read::ZipArchive;
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::{BASE_PATH, FILE_BYTES_MAX, Importer, Vault};

/// What every entry of a ZIP begins with in its directory.
const ENTRY_SIGNATURE: [u8; 4] = *b"PK\x01\x02";
/// Longest path.
const PATH_BYTES_MAX: usize = 1_024;
/// A small archive may unpack to this much at any ratio: repeated text compresses very well.
const RATIO_FREE_BYTES: u64 = 32 << 20;
/// Longest merge base: a line for each of the most files that there can be, with their relations.
const BASE_BYTES_MAX: usize = 128 << 20;

/// Bounds of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Most bytes of the archive.
    pub archive_bytes_max: u64,
    /// Most files in it.
    pub files_max: usize,
    /// Most bytes of all its files, unpacked.
    pub unpacked_bytes_max: u64,
    /// Most unpacked bytes for a byte of the archive.
    pub ratio_max: u64,
}

impl ArchiveLimits {
    /// What uploads are read with.
    pub const UPLOAD: Self = Self {
        archive_bytes_max: 512 << 20,
        files_max: 100_000,
        unpacked_bytes_max: 4 << 30,
        ratio_max: 200,
    };
}

/// Why a vault is refused as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The bytes cannot be read.
    #[error("the vault cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is no ZIP, or a broken one.
    #[error("this is no readable ZIP file: {0}; export it again or pack the folder again")]
    Zip(#[from] zip::result::ZipError),
    /// It is no JSON object from path to text.
    #[error("content must be a JSON object that gives each path its text: {0}")]
    Json(#[from] serde_json::Error),
    /// Too large.
    #[error("the archive has more than {max} bytes; split it by project")]
    ArchiveTooLarge {
        /// The bound.
        max: u64,
    },
    /// Too many files.
    #[error("the vault has more than {max} files; split it by project")]
    TooManyFiles {
        /// The bound.
        max: usize,
    },
    /// One file is too large.
    #[error("the file '{path}' has more than {max} bytes; split it")]
    FileTooLarge {
        /// Which.
        path: String,
        /// The bound.
        max: usize,
    },
    /// All files together are too large.
    #[error("the vault unpacks to more than {max} bytes; split it by project")]
    UnpackedTooLarge {
        /// The bound.
        max: u64,
    },
    /// It unpacks to suspiciously much.
    #[error("the vault unpacks to more than {max} times its size; pack the folder again without other files")]
    RatioTooHigh {
        /// The bound.
        max: u64,
    },
    /// Too much changed at once.
    #[error("the changed files have more than {max} bytes; import them in parts")]
    TooManyChanges {
        /// The bound.
        max: usize,
    },
    /// A path that could leave the folder, or a name that is there twice, or something that is no plain file.
    #[error("'{path}' is refused: {why}")]
    Member {
        /// Which.
        path: String,
        /// Why.
        why: &'static str,
    },
    /// The merge base is not usable.
    #[error("'{BASE_PATH}' {why}; restore it from the export, or remove it to import without a base")]
    Base {
        /// Why.
        why: String,
    },
}

impl ArchiveError {
    /// The error code of the tools.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ArchiveTooLarge { .. } | Self::FileTooLarge { .. } | Self::UnpackedTooLarge { .. } => {
                "payload_too_large"
            }
            Self::TooManyFiles { .. } | Self::RatioTooHigh { .. } | Self::TooManyChanges { .. } => "limit_exceeded",
            _ => "validation_failed",
        }
    }
}

/// Writes a vault as a ZIP. Gives the same bytes for the same vault.
pub fn write_zip<W: Write + Seek>(vault: &Vault, out: W) -> Result<W, ArchiveError> {
    let mut packer = Packer::new(out);
    for (path, text) in &vault.files {
        packer.put(path, text)?;
    }
    packer.finish()
}

/// Packs the files of a folder into a ZIP that can be imported.
pub struct Packer<W: Write + Seek> {
    zip: ZipWriter<W>,
}

impl<W: Write + Seek> Packer<W> {
    /// An empty ZIP.
    pub fn new(out: W) -> Self {
        Self {
            zip: ZipWriter::new(out),
        }
    }

    /// Adds a file.
    pub fn put(&mut self, path: &str, text: &str) -> Result<(), ArchiveError> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::DEFAULT)
            .unix_permissions(0o644);
        self.zip.start_file(path, options)?;
        self.zip.write_all(text.as_bytes())?;
        Ok(())
    }

    /// Ends the ZIP.
    pub fn finish(self) -> Result<W, ArchiveError> {
        Ok(self.zip.finish()?)
    }
}

/// Whether a file of a folder belongs into its ZIP: what editors and systems leave beside notes does not, and anything
/// else that is no note is refused.
pub fn belongs(path: &str) -> Result<bool, ArchiveError> {
    check_path(path)?;
    if path == BASE_PATH {
        return Ok(true);
    }
    if is_of_the_editor(path) {
        return Ok(false);
    }
    check_is_note(path).map(|()| true)
}

/// Whether this is a ZIP that looks like a vault: the merge base is in it, or a note.
pub fn is_zip_of_notes<R: Read + Seek>(mut reader: R) -> Result<bool, ArchiveError> {
    check_size(&mut reader, &ArchiveLimits::UPLOAD)?;
    let zip = ZipArchive::new(reader)?;
    Ok(zip
        .file_names()
        .any(|name| name.is_ok_and(|name| name == BASE_PATH || name.ends_with(".md"))))
}

/// Reads a ZIP into an import.
pub fn read_zip<R: Read + Seek>(
    mut reader: R,
    limits: &ArchiveLimits,
    importer: &mut Importer<'_>,
) -> Result<(), ArchiveError> {
    let archive_bytes = check_size(&mut reader, limits)?;
    let mut zip = ZipArchive::new(reader)?;
    if zip.has_duplicate_names() {
        let why = "a name stands in the archive twice";
        return Err(member("the archive", why));
    }
    if zip.len() > limits.files_max + 1 {
        return Err(ArchiveError::TooManyFiles { max: limits.files_max });
    }
    let mut budget = Budget::new(archive_bytes, limits);
    if let Some(index) = zip.index_for_name(BASE_PATH) {
        let text = read_member(&mut zip, index, BASE_BYTES_MAX, &mut budget)?;
        importer.set_base(&text.1)?;
    }
    for index in 0..zip.len() {
        let name = zip.name_for_index(index).transpose()?.unwrap_or_default().into_owned();
        check_path(name.trim_end_matches('/'))?;
        if name == BASE_PATH || is_of_the_editor(&name) || name.ends_with('/') {
            continue;
        }
        check_is_note(&name)?;
        let (path, text) = read_member(&mut zip, index, FILE_BYTES_MAX, &mut budget)?;
        importer.add(&path, &text)?;
    }
    Ok(())
}

/// Reads a JSON object from path to text into an import.
pub fn read_json(text: &str, limits: &ArchiveLimits, importer: &mut Importer<'_>) -> Result<(), ArchiveError> {
    if text.len() as u64 > limits.archive_bytes_max {
        return Err(ArchiveError::ArchiveTooLarge {
            max: limits.archive_bytes_max,
        });
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let mut files = FilesSeed(limits.files_max + 1).deserialize(&mut json)?;
    json.end()?;
    if let Some(base) = files.remove(BASE_PATH) {
        importer.set_base(&base)?;
    }
    for (path, text) in &files {
        check_path(path)?;
        if !is_of_the_editor(path) {
            check_is_note(path)?;
            importer.add(path, text)?;
        }
    }
    Ok(())
}

/// The size of the archive; refuses one whose directory would fill the machine before anybody could count its entries.
fn check_size<R: Read + Seek>(reader: &mut R, limits: &ArchiveLimits) -> Result<u64, ArchiveError> {
    reader.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0u8; 1 << 16];
    let (mut bytes, mut entries, mut matched) = (0u64, 0usize, 0usize);
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        bytes = bytes.saturating_add(count as u64);
        if bytes > limits.archive_bytes_max {
            return Err(ArchiveError::ArchiveTooLarge {
                max: limits.archive_bytes_max,
            });
        }
        for byte in buffer.iter().take(count) {
            matched = match ENTRY_SIGNATURE.get(matched) {
                Some(expected) if expected == byte => matched + 1,
                _ => usize::from(*byte == b'P'),
            };
            if matched == ENTRY_SIGNATURE.len() {
                (entries, matched) = (entries + 1, 0);
            }
        }
        // Folders are entries, too.
        if entries > limits.files_max.saturating_mul(2) {
            return Err(ArchiveError::TooManyFiles { max: limits.files_max });
        }
    }
    reader.seek(SeekFrom::Start(0))?;
    Ok(bytes)
}

/// What may still be unpacked.
struct Budget {
    unpacked: u64,
    unpacked_max: u64,
    ratio_bytes_max: u64,
    ratio_max: u64,
}

impl Budget {
    fn new(archive_bytes: u64, limits: &ArchiveLimits) -> Self {
        Self {
            unpacked: 0,
            unpacked_max: limits.unpacked_bytes_max,
            ratio_bytes_max: archive_bytes.saturating_mul(limits.ratio_max).max(RATIO_FREE_BYTES),
            ratio_max: limits.ratio_max,
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ArchiveError> {
        self.unpacked = self.unpacked.saturating_add(bytes as u64);
        if self.unpacked > self.unpacked_max {
            return Err(ArchiveError::UnpackedTooLarge { max: self.unpacked_max });
        }
        if self.unpacked > self.ratio_bytes_max {
            return Err(ArchiveError::RatioTooHigh { max: self.ratio_max });
        }
        Ok(())
    }
}

/// Unpacks one member, never more than its bound whatever its header says.
fn read_member<R: Read + Seek>(
    zip: &mut ZipArchive<R>,
    index: usize,
    bytes_max: usize,
    budget: &mut Budget,
) -> Result<(String, String), ArchiveError> {
    let file = zip.by_index(index)?;
    let path = file.name()?.into_owned();
    if file.is_symlink() {
        return Err(member(&path, "it is a link"));
    }
    if !file.is_file() {
        return Err(member(&path, "it is no plain file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(ArchiveError::FileTooLarge { path, max: bytes_max });
    }
    budget.spend(bytes.len())?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok((path, text)),
        Err(_) => Err(member(&path, "it is not UTF-8 text")),
    }
}

/// A path stays below the folder, on every system.
fn check_path(path: &str) -> Result<(), ArchiveError> {
    let why = if path.len() > PATH_BYTES_MAX {
        "its path is too long"
    } else if path.chars().any(|c| c.is_control() || matches!(c, '\\' | ':')) {
        "its path has characters that some systems give a meaning"
    } else if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        "its path must be relative and have no '.', '..' or empty part"
    } else {
        return Ok(());
    };
    Err(member(path, why))
}

/// What editors and systems put beside notes is left unread.
fn is_of_the_editor(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    matches!(first, ".obsidian" | ".trash" | ".git" | "__MACOSX")
        || matches!(last, ".DS_Store" | "Thumbs.db" | "desktop.ini" | ".gitignore")
}

fn check_is_note(path: &str) -> Result<(), ArchiveError> {
    if path.ends_with(".md") {
        return Ok(());
    }
    Err(member(path, "only '.md' files belong into a vault"))
}

fn member(path: &str, why: &'static str) -> ArchiveError {
    let path = path.chars().take(200).flat_map(char::escape_debug).collect();
    ArchiveError::Member { path, why }
}

/// Reads an object of texts and refuses a path that is there twice.
struct FilesSeed(usize);

impl<'de> DeserializeSeed<'de> for FilesSeed {
    type Value = BTreeMap<String, String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FilesSeed {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object whose values are texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut files = BTreeMap::new();
        while let Some((path, text)) = map.next_entry::<String, String>()? {
            if files.len() >= self.0 {
                return Err(serde::de::Error::custom("too many files"));
            }
            let shown: String = path.chars().take(200).collect();
            if files.insert(path, text).is_some() {
                return Err(serde::de::Error::custom(format_args!(
                    "the path '{shown}' stands in it twice"
                )));
            }
        }
        Ok(files)
    }
}
