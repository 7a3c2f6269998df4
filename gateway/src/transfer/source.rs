//! A file to import: given in the call, or uploaded before. It is read twice, first to verify it.

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::PathBuf;

use bytes::Bytes;

use crate::fault::Fault;

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

    /// The first bytes, by which a format is known. Blocks.
    pub(crate) fn beginning(&self, bytes_max: u64) -> Result<Vec<u8>, Fault> {
        let mut beginning = Vec::new();
        let read = self.open()?.take(bytes_max).read_to_end(&mut beginning);
        read.map_err(|_| super::uploads::gone())?;
        Ok(beginning)
    }
}
