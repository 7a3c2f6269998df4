//! The ZIP inside: its four bytes, which members it may have, and how much they may unpack to.

use std::io::{self, Read, Seek, SeekFrom, Write};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::{MAGIC, MANIFEST, MEMBERS, PUBLIC_KEY, SIGNATURE};
use crate::error::{Place, ReadError};
use crate::limits::{
    ENCRYPTED_BYTES_MAX, FILE_BYTES_MAX, MANIFEST_BYTES_MAX, MEMBERS_MAX, RATIO_MAX, RECORD_BYTES_MAX,
};

/// Takes a line of a member and says whether reading goes on.
type OnLine<'a, E> = dyn FnMut(&[u8], Place) -> Result<(), E> + 'a;

/// Unpacked bytes that even a tiny member may have: our own exports of much repeated text must open.
const SMALL_BYTES: u64 = 16 * 1024 * 1024;
/// The end of a ZIP: 22 bytes and a comment.
const END_BYTES: u64 = 22 + 65_535;

/// A stream that begins some bytes later.
#[derive(Debug)]
pub(super) struct Offset<T> {
    inner: T,
    base: u64,
}

impl<T> Offset<T> {
    pub(super) const fn new(inner: T, base: u64) -> Self {
        Self { inner, base }
    }
}

impl<T: Read> Read for Offset<T> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.inner.read(to)
    }
}

impl<T: Write> Write for Offset<T> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.inner.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Seek> Seek for Offset<T> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => SeekFrom::Start(at.saturating_add(self.base)),
            other => other,
        };
        let at = self.inner.seek(to)?;
        at.checked_sub(self.base)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek before the start of the ZIP"))
    }
}

/// An archive of which every member is known and within its bounds by what it says.
pub(super) struct Container<R> {
    archive: ZipArchive<Offset<R>>,
}

impl<R: Read + Seek> Container<R> {
    pub(super) fn open(mut input: R) -> Result<Self, ReadError> {
        input.seek(SeekFrom::Start(0))?;
        let mut first = Vec::new();
        input.by_ref().take(4).read_to_end(&mut first)?;
        let base = match first.as_slice() {
            start if *start == MAGIC => 4,
            b"PK\x03\x04" => 0,
            _ => return Err(wrong("it begins neither with WGL and version 1 nor as a ZIP")),
        };
        let mut input = Offset::new(input, base);
        check_end(&mut input)?;
        let archive = ZipArchive::new(input).map_err(zip_error)?;
        Self::checked(archive)
    }

    pub(super) fn checked(mut archive: ZipArchive<Offset<R>>) -> Result<Self, ReadError> {
        if archive.has_duplicate_names() {
            return Err(wrong("a member is there twice"));
        }
        if archive.has_overlapping_entries().map_err(zip_error)? {
            return Err(wrong("members overlap"));
        }
        let mut total: u64 = 0;
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(zip_error)?;
            let Some(name) = MEMBERS.iter().find(|name| name.as_bytes() == entry.name_raw()) else {
                return Err(wrong("it has a member that does not belong to the format"));
            };
            let plain = matches!(
                entry.compression(),
                CompressionMethod::Stored | CompressionMethod::Deflated
            );
            if !entry.is_file() || entry.is_symlink() || entry.encrypted() || !plain {
                return Err(wrong("a member is no plain deflated file"));
            }
            let allowed = unpacked_max(entry.compressed_size());
            if entry.size() > allowed {
                return Err(too_large(name, "times its packed size", RATIO_MAX));
            }
            total = total.saturating_add(entry.size());
        }
        if total > FILE_BYTES_MAX {
            return Err(too_large("file", "bytes unpacked", FILE_BYTES_MAX));
        }
        Ok(Self { archive })
    }

    pub(super) fn into_inner(self) -> Offset<R> {
        self.archive.into_inner()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }

    /// A small member as a whole.
    pub(super) fn whole(&mut self, name: &'static str) -> Result<Vec<u8>, ReadError> {
        let limit = match name {
            MANIFEST => MANIFEST_BYTES_MAX,
            SIGNATURE | PUBLIC_KEY => 4_096,
            _ => ENCRYPTED_BYTES_MAX,
        };
        let mut bytes = Vec::new();
        self.stream(name, &mut |chunk| -> Result<(), ReadError> {
            if bytes.len() + chunk.len() > limit {
                return Err(too_large(name, "bytes", u64::try_from(limit).unwrap_or(u64::MAX)));
            }
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// The unpacked bytes of a member, piece by piece.
    pub(super) fn stream<E: From<ReadError>>(
        &mut self,
        name: &'static str,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut entry = self.archive.by_name(name).map_err(zip_error)?;
        let allowed = unpacked_max(entry.compressed_size());
        let mut read: u64 = 0;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let count = match entry.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The inflater and the checksum answer with an error of IO.
                Err(_) => return Err(malformed(name, None, read, "the packed bytes are damaged").into()),
            };
            read = read.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            if read > allowed {
                return Err(too_large(name, "times its packed size", RATIO_MAX).into());
            }
            sink(chunk.get(..count).unwrap_or_default())?;
        }
    }
}

/// What a ZIP of `packed` bytes may hold.
fn unpacked_max(packed: u64) -> u64 {
    packed.saturating_mul(RATIO_MAX).clamp(SMALL_BYTES, FILE_BYTES_MAX)
}

/// Looks at the end of the ZIP before the library makes an entry for each member that the file claims to have.
fn check_end<R: Read + Seek>(input: &mut R) -> Result<(), ReadError> {
    let length = input.seek(SeekFrom::End(0))?;
    input.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
    let mut end = Vec::new();
    input.by_ref().take(END_BYTES).read_to_end(&mut end)?;
    let at = end.windows(4).rposition(|bytes| bytes == b"PK\x05\x06");
    let Some(record) = at.and_then(|at| end.get(at..)).filter(|record| record.len() >= 22) else {
        return Err(wrong("the end of the ZIP is missing"));
    };
    let members = record.get(10..12).map_or(0, |n| {
        n.iter().rev().fold(0u64, |sum, byte| (sum << 8) | u64::from(*byte))
    });
    if members > MEMBERS_MAX {
        return Err(too_large("file", "members", MEMBERS_MAX));
    }
    input.seek(SeekFrom::Start(0))?;
    Ok(())
}

/// Cuts a stream of bytes into lines.
pub(super) struct Lines {
    member: &'static str,
    line: Vec<u8>,
    index: u64,
    position: u64,
}

impl Lines {
    pub(super) const fn new(member: &'static str) -> Self {
        Self {
            member,
            line: Vec::new(),
            index: 0,
            position: 0,
        }
    }

    pub(super) fn place(&self) -> Place {
        Place {
            member: self.member.to_owned(),
            index: Some(self.index),
            position: self.position,
        }
    }

    pub(super) fn push<E: From<ReadError>>(&mut self, chunk: &[u8], on_line: &mut OnLine<'_, E>) -> Result<(), E> {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + piece.len() > RECORD_BYTES_MAX {
                let limit = u64::try_from(RECORD_BYTES_MAX).unwrap_or(u64::MAX);
                return Err(too_large(self.member, "bytes in one record", limit).into());
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end(on_line)?;
            }
        }
        Ok(())
    }

    /// The last line may lack its line feed.
    pub(super) fn end<E: From<ReadError>>(&mut self, on_line: &mut OnLine<'_, E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii();
        if !text.is_empty() {
            on_line(text, self.place())?;
            self.index += 1;
        }
        self.position = self
            .position
            .saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
        self.line = line;
        self.line.clear();
        Ok(())
    }
}

pub(super) fn wrong(why: &str) -> ReadError {
    ReadError::WrongFormat {
        expected: ".abhi file",
        why: why.to_owned(),
    }
}

pub(super) fn malformed(member: &str, index: Option<u64>, position: u64, why: &str) -> ReadError {
    ReadError::Malformed {
        place: Place {
            member: member.to_owned(),
            index,
            position,
        },
        why: why.to_owned(),
    }
}

pub(super) fn too_large(member: &str, what: &'static str, limit: u64) -> ReadError {
    ReadError::TooLarge {
        place: Place {
            member: member.to_owned(),
            index: None,
            position: 0,
        },
        what,
        limit,
    }
}

/// The library's words may quote names of the file.
pub(super) fn zip_error(error: ZipError) -> ReadError {
    match error {
        ZipError::Io(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            ) =>
        {
            ReadError::Io(error)
        }
        _ => wrong("the ZIP is damaged"),
    }
}
