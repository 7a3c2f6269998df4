//! Writes a backup, one record after the other.

use std::io::{BufWriter, Write};

use serde::Serialize;
use sha2::{Digest, Sha256};
use waggle_memory::record::Record;

use super::{FORMAT, Header, SECTIONS, ScopeShape, Summary, VERSION};
use crate::check::{check, name};
use crate::error::WriteError;
use crate::json::{Text, hex};
use crate::limits::{FILE_BYTES_MAX, HEADER_BYTES_MAX, RECORD_BYTES_MAX};
use crate::order::{Misplaced, Order};
use crate::shape;
use crate::signature::{Signature, SignatureShape};

/// Writes records in the order of [`Record`]'s variants, each variant by id. Without [`Writer::finish`] the file is cut
/// and no reader takes it.
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    hasher: Sha256,
    bytes: u64,
    order: Order,
    /// Members with records that were opened.
    sections: usize,
    /// The open member has a record.
    any: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(out: W, header: &Header) -> Result<Self, WriteError> {
        let mut writer = Self {
            out: BufWriter::new(out),
            hasher: Sha256::new(),
            bytes: 0,
            order: Order::default(),
            sections: 0,
            any: false,
        };
        writer.put(b"{")?;
        writer.member("format", &FORMAT)?;
        writer.member("format_version", &VERSION)?;
        writer.member("tenant_id", &header.tenant_id)?;
        writer.member("exported_at", &Text(header.exported_at))?;
        writer.member("read_at", &header.read_at)?;
        let scope = ScopeShape {
            agent_id: header.scope.agent_id.clone(),
            project: header.scope.project.clone(),
            session_id: header.scope.session_id.clone(),
        };
        writer.member("scope", &scope)?;
        writer.member("embedding_model_id", &header.embedding_model_id)?;
        writer.member("rules_version", &header.rules_version)?;
        writer.open_section()?;
        Ok(writer)
    }

    /// Writes the next record.
    pub fn record(&mut self, record: &Record) -> Result<(), WriteError> {
        check(record).map_err(|why| WriteError::Invalid {
            record: name(record),
            why,
        })?;
        self.order.take(record).map_err(|misplaced| match misplaced {
            Misplaced::OutOfOrder => WriteError::OutOfOrder { record: name(record) },
            Misplaced::Dangling(dangling) => WriteError::Dangling(dangling),
            Misplaced::TooMany { what, limit } => WriteError::TooLarge { what, limit },
        })?;
        while self.sections <= section_of(record) {
            self.close_section()?;
            self.open_section()?;
        }
        let json = shape::to_json(record)?;
        if json.len() > RECORD_BYTES_MAX {
            return Err(WriteError::Invalid {
                record: name(record),
                why: format!("it has {} bytes; the limit of a file is {RECORD_BYTES_MAX}", json.len()),
            });
        }
        self.put(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        self.put(&json)
    }

    /// Ends the file without a signature.
    pub fn finish(self) -> Result<Summary, WriteError> {
        self.end(|_| None)
    }

    /// Ends the file with a signature over its content hash, as `sign` makes it.
    pub fn finish_signed(self, sign: impl FnOnce(&str) -> Signature) -> Result<Summary, WriteError> {
        self.end(|hash| Some(sign(hash)))
    }

    fn end(mut self, sign: impl FnOnce(&str) -> Option<Signature>) -> Result<Summary, WriteError> {
        while self.sections < SECTIONS.len() {
            self.close_section()?;
            self.open_section()?;
        }
        self.close_section()?;
        let counts = self.order.counts;
        self.member("counts", &counts)?;
        let digest: [u8; 32] = self.hasher.clone().finalize().into();
        let content_hash = format!("sha256:{}", hex(&digest));
        self.member("content_hash", &content_hash)?;
        let signature = sign(&content_hash);
        self.put(b"\"signature\":")?;
        let shape = signature.as_ref().map(SignatureShape::from);
        self.put(&serde_json::to_vec(&shape)?)?;
        self.put(b"}\n")?;
        self.out.flush()?;
        Ok(Summary {
            counts,
            content_hash,
            signature,
            bytes: self.bytes,
            dangling_dropped: 0,
        })
    }

    fn open_section(&mut self) -> Result<(), WriteError> {
        if let Some(section) = SECTIONS.get(self.sections) {
            self.put(format!("\"{section}\":[").as_bytes())?;
        }
        self.sections += 1;
        self.any = false;
        Ok(())
    }

    fn close_section(&mut self) -> Result<(), WriteError> {
        self.put(b"],\n")
    }

    fn member(&mut self, member: &str, value: &impl Serialize) -> Result<(), WriteError> {
        let json = serde_json::to_vec(value)?;
        if json.len() > HEADER_BYTES_MAX {
            return Err(WriteError::Header(format!(
                "{member} has more than {HEADER_BYTES_MAX} bytes"
            )));
        }
        self.put(format!("\"{member}\":").as_bytes())?;
        self.put(&json)?;
        self.put(b",\n")
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if self.bytes > FILE_BYTES_MAX {
            return Err(WriteError::TooLarge {
                what: "bytes in one file",
                limit: FILE_BYTES_MAX,
            });
        }
        self.hasher.update(bytes);
        self.out.write_all(bytes)?;
        Ok(())
    }
}

/// The place of the record's member in [`SECTIONS`].
fn section_of(record: &Record) -> usize {
    match record {
        Record::Session(_) => 0,
        Record::Turn(..) => 1,
        Record::Memory(_) => 2,
        Record::Link(_) => 3,
        Record::Redirect(_) => 4,
        Record::Tombstone(..) => 5,
    }
}
