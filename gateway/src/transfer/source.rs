//! A file to import: given in the call, or uploaded before. It is read twice, first to verify it.

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::PathBuf;

use bytes::Bytes;

use crate::fault::Fault;

/// Text that is read as a whole.
const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Where the bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Inline(Bytes),
    File(PathBuf),
}

pub(crate) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

impl Source {
    /// From its beginning. Blocks.
    pub(crate) fn open(&self) -> Result<Box<dyn ReadSeek>, Fault> {
        match self {
            Self::Inline(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            Self::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(_) => Err(super::uploads::gone()),
            },
        }
    }

    /// All of it as text, if it is short enough for that. Blocks.
    pub(crate) fn text(&self) -> Result<String, Fault> {
        let mut text = String::new();
        let bytes_max = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX);
        let read = self.open()?.take(bytes_max + 1).read_to_string(&mut text);
        read.map_err(|_| Fault::new("validation_failed", "the file is no text in UTF-8").with_field("content"))?;
        if text.len() > TEXT_BYTES_MAX {
            let what = format!("JSON content may have {TEXT_BYTES_MAX} bytes; upload a ZIP instead");
            return Err(Fault::new("payload_too_large", what).with_field("content"));
        }
        Ok(text)
    }

    /// The first bytes, by which a format is known. Blocks.
    pub(crate) fn beginning(&self, bytes_max: u64) -> Result<Vec<u8>, Fault> {
        let mut beginning = Vec::new();
        let read = self.open()?.take(bytes_max).read_to_end(&mut beginning);
        read.map_err(|_| super::uploads::gone())?;
        Ok(beginning)
    }
}
