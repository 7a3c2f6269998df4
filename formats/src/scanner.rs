//! Finds the values in a stream of JSON without holding more than one of them. What a value means, serde decides; here
//! is only where it ends, and the hash of all bytes before a place.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::error::{Place, ReadError};
use crate::limits::{DEPTH_MAX, FILE_BYTES_MAX};

const CHUNK_BYTES: usize = 64 * 1024;

/// What can go wrong while bytes are read.
#[derive(Debug)]
pub(crate) enum Trouble {
    Io(io::Error),
    TooLong { what: &'static str, limit: u64 },
    Unexpected(&'static str),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Trouble {
    pub(crate) fn at(self, place: Place) -> ReadError {
        match self {
            Self::Io(error) => ReadError::Io(error),
            Self::TooLong { what, limit } => ReadError::TooLarge { place, what, limit },
            Self::Unexpected(what) => ReadError::Malformed {
                place,
                why: format!("expected {what}"),
            },
        }
    }
}

pub(crate) struct Scanner<R> {
    input: R,
    buffer: Vec<u8>,
    /// Next byte of the buffer.
    at: usize,
    /// First byte of the buffer that is not in the hash yet.
    unhashed: usize,
    /// Bytes before the buffer.
    before: u64,
    hasher: Sha256,
    value: Vec<u8>,
}

impl<R: Read> Scanner<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            at: 0,
            unhashed: 0,
            before: 0,
            hasher: Sha256::new(),
            value: Vec::new(),
        }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> u64 {
        self.before + u64::try_from(self.at).unwrap_or(u64::MAX)
    }

    /// SHA-256 of all bytes read so far.
    pub(crate) fn hash(&mut self) -> [u8; 32] {
        self.hasher
            .update(self.buffer.get(self.unhashed..self.at).unwrap_or_default());
        self.unhashed = self.at;
        self.hasher.clone().finalize().into()
    }

    /// The next byte that is no blank, still unread. None at the end.
    pub(crate) fn peek(&mut self) -> Result<Option<u8>, Trouble> {
        loop {
            match self.byte()? {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return Ok(other),
            }
        }
    }

    /// Takes one byte of punctuation.
    pub(crate) fn take(&mut self, wanted: u8, name: &'static str) -> Result<(), Trouble> {
        if self.peek()? != Some(wanted) {
            return Err(Trouble::Unexpected(name));
        }
        self.at += 1;
        Ok(())
    }

    /// Takes the byte if it comes next.
    pub(crate) fn take_if(&mut self, wanted: u8) -> Result<bool, Trouble> {
        let there = self.peek()? == Some(wanted);
        self.at += usize::from(there);
        Ok(there)
    }

    /// The bytes of the next value: balanced and at most `bytes_max` long, else unchecked.
    pub(crate) fn value(&mut self, bytes_max: usize, what: &'static str) -> Result<&[u8], Trouble> {
        let first = self.peek()?.ok_or(Trouble::Unexpected("a value"))?;
        self.value.clear();
        let mut nesting = Nesting::default();
        loop {
            let Some(byte) = self.byte()? else {
                return if nesting.is_plain(first) && !self.value.is_empty() {
                    Ok(&self.value)
                } else {
                    Err(Trouble::Unexpected("the rest of a value"))
                };
            };
            if nesting.is_plain(first) && matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\n' | b'\r' | b'\t') {
                break;
            }
            if self.value.len() >= bytes_max {
                let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
                return Err(Trouble::TooLong { what, limit });
            }
            self.value.push(byte);
            self.at += 1;
            if nesting.step(byte)? {
                break;
            }
        }
        if self.value.is_empty() {
            return Err(Trouble::Unexpected("a value"));
        }
        Ok(&self.value)
    }

    fn byte(&mut self) -> Result<Option<u8>, Trouble> {
        if let Some(byte) = self.buffer.get(self.at) {
            return Ok(Some(*byte));
        }
        self.refill()?;
        Ok(self.buffer.first().copied())
    }

    fn refill(&mut self) -> Result<(), Trouble> {
        self.hash_rest();
        self.before = self.position();
        if self.before > FILE_BYTES_MAX {
            return Err(Trouble::TooLong {
                what: "bytes in one file",
                limit: FILE_BYTES_MAX,
            });
        }
        self.at = 0;
        self.unhashed = 0;
        self.buffer.resize(CHUNK_BYTES, 0);
        let read = loop {
            match self.input.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.clear();
                    return Err(error.into());
                }
                Ok(read) => break read,
            }
        };
        self.buffer.truncate(read);
        Ok(())
    }

    fn hash_rest(&mut self) {
        self.hasher
            .update(self.buffer.get(self.unhashed..self.at).unwrap_or_default());
        self.unhashed = self.at;
    }
}

#[derive(Default)]
struct Nesting {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Nesting {
    /// Whether the value has no end of its own: a number, true, false, null.
    fn is_plain(&self, first: u8) -> bool {
        !matches!(first, b'{' | b'[' | b'"') && self.depth == 0 && !self.in_text
    }

    /// Takes a byte; true if it ends the value.
    fn step(&mut self, byte: u8) -> Result<bool, Trouble> {
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_text = false;
                    return Ok(self.depth == 0);
                }
                _ => {}
            }
            return Ok(false);
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(Trouble::Unexpected("at most 32 levels of nesting"));
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.checked_sub(1).ok_or(Trouble::Unexpected("a value"))?;
                return Ok(self.depth == 0);
            }
            _ => {}
        }
        Ok(false)
    }
}
