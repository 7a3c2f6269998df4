//! Writes a container, one record after the other.

use std::io::{Read, Seek, Write};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use waggle_memory::kind::{Confidence, Relationship};
use waggle_memory::record::Record;
use waggle_memory::scope::Scope;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::container::{Container, Offset};
use super::manifest::Manifest;
use super::reader::hash_lines;
use super::{EDGES, LINES, MAGIC, MANIFEST, NODES, PUBLIC_KEY, SCHEMA_VERSION, SIGNATURE, TRANSCRIPTS, WINDOWS, crypt};
use crate::check::{check, name};
use crate::counts::Counts;
use crate::error::{ReadError, WriteError};
use crate::json::{canonical, hex, sorted, why};
use crate::limits::{ENCRYPTED_BYTES_MAX, MANIFEST_BYTES_MAX, WINDOWS_BYTES_MAX};
use crate::order::{Misplaced, Order};
use crate::shape::memory::{RedirectShape, TombstoneShape};
use crate::signature::Signature;
use crate::waggle::{edge, node, transcript};

/// What a file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Whose graph it is.
    pub tenant_id: String,
    /// What was exported; empty fields do not filter.
    pub scope: Scope,
    /// The model of the vectors that are not in the file.
    pub embedding_model_id: String,
    /// Its dimensions.
    pub embedding_dim: u32,
    /// Also links that are weak and say relates_to only.
    pub include_low_confidence_edges: bool,
}

/// How the lines are encrypted.
pub struct Encryption<'a> {
    /// Never stored.
    pub passphrase: &'a str,
    /// Fills bytes with randomness: 28 for each member.
    pub random: &'a mut dyn FnMut(&mut [u8]),
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Records by sort.
    pub counts: Counts,
    /// `sha256:` and 64 hexadecimal digits.
    pub content_hash: String,
    /// Weak links that were left out.
    pub edges_filtered: u64,
}

/// Writes records in the order of [`Record`]'s variants, each variant by id. Without [`Writer::finish`] the file is cut.
pub struct Writer<'a, W: Read + Write + Seek> {
    zip: ZipWriter<Offset<W>>,
    info: Info,
    encryption: Option<Encryption<'a>>,
    order: Order,
    /// The member that is open, as a place in [`LINES`].
    open: usize,
    hasher: Sha256,
    size: u64,
    /// Lines of an encrypted member.
    plain: Vec<u8>,
    /// Lines of the last member, which come first.
    windows: Vec<u8>,
    members: serde_json::Map<String, Value>,
    redirects: Vec<Value>,
    tombstones: Vec<Value>,
    aside_bytes: usize,
    edges_filtered: u64,
}

impl<'a, W: Read + Write + Seek> Writer<'a, W> {
    /// Begins a file in an empty target, which is read again for the hash.
    pub fn new(mut out: W, info: Info, encryption: Option<Encryption<'a>>) -> Result<Self, WriteError> {
        out.write_all(&MAGIC)?;
        let mut writer = Self {
            zip: ZipWriter::new(Offset::new(out, 4)),
            info,
            encryption,
            order: Order::default(),
            open: 0,
            hasher: Sha256::new(),
            size: 0,
            plain: Vec::new(),
            windows: Vec::new(),
            members: serde_json::Map::new(),
            redirects: Vec::new(),
            tombstones: Vec::new(),
            aside_bytes: 0,
            edges_filtered: 0,
        };
        writer.start(TRANSCRIPTS)?;
        Ok(writer)
    }

    /// Writes the next record.
    pub fn record(&mut self, record: &Record) -> Result<(), WriteError> {
        let invalid = |why: String| WriteError::Invalid {
            record: name(record),
            why,
        };
        check(record).map_err(invalid)?;
        if let Record::Link(link) = record {
            let low = link.confidence == Confidence::Weak && link.relationship == Relationship::RelatesTo;
            if low && !self.info.include_low_confidence_edges {
                self.edges_filtered += 1;
                return Ok(());
            }
        }
        self.order.take(record).map_err(|misplaced| match misplaced {
            Misplaced::OutOfOrder => WriteError::OutOfOrder { record: name(record) },
            Misplaced::Dangling(dangling) => WriteError::Dangling(dangling),
            Misplaced::TooMany { what, limit } => WriteError::TooLarge { what, limit },
        })?;
        let tenant = &self.info.tenant_id;
        match record {
            Record::Session(session) => {
                let line = line_of(&transcript::to_window(session, tenant).map_err(invalid)?);
                self.windows.extend_from_slice(&line);
                within(self.windows.len(), "bytes of sessions", WINDOWS_BYTES_MAX)
            }
            Record::Turn(turn, message) => {
                let line = line_of(&transcript::to_line(turn, *message, tenant).map_err(invalid)?);
                self.line(0, &line)
            }
            Record::Memory(memory) => {
                let line = line_of(&node::to_line(memory, tenant).map_err(invalid)?);
                self.line(1, &line)
            }
            Record::Link(link) => {
                let line = line_of(&edge::to_line(link, tenant).map_err(invalid)?);
                self.line(2, &line)
            }
            Record::Redirect(redirect) => {
                let value = serde_json::to_value(RedirectShape::from(redirect)).map_err(|e| invalid(why(&e)))?;
                self.aside(&value)?;
                self.redirects.push(value);
                Ok(())
            }
            Record::Tombstone(id, tombstone) => {
                let value = serde_json::to_value(TombstoneShape::new(*id, tombstone)).map_err(|e| invalid(why(&e)))?;
                self.aside(&value)?;
                self.tombstones.push(value);
                Ok(())
            }
        }
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
        self.advance(3)?;
        let windows = std::mem::take(&mut self.windows);
        self.put(&windows)?;
        self.close()?;
        let mut manifest = Manifest { value: self.manifest() };
        let passphrase = self.encryption.as_ref().map(|encryption| encryption.passphrase);
        // The hash begins with the manifest, which is known only now: the members are read again.
        let archive = self.zip.finish_into_readable().map_err(zip_error)?;
        let mut container = Container::checked(archive).map_err(read_error)?;
        let (content_hash, _) = hash_lines(&mut container, &manifest, passphrase).map_err(read_error)?;
        let signature = sign(&content_hash);
        if let Value::Object(members) = &mut manifest.value {
            members.insert("content_hash".to_owned(), content_hash.clone().into());
            members.insert(
                "signatures".to_owned(),
                json!({"algorithm": "ed25519", "present": signature.is_some()}),
            );
        }
        let bytes = canonical(&manifest.value).into_bytes();
        within(bytes.len(), "bytes of manifest", MANIFEST_BYTES_MAX)?;
        let mut zip = ZipWriter::new_append(container.into_inner()).map_err(zip_error)?;
        let mut add = |name: &str, bytes: &[u8]| -> Result<(), WriteError> {
            zip.start_file(name, options()).map_err(zip_error)?;
            zip.write_all(bytes)?;
            Ok(())
        };
        add(MANIFEST, &bytes)?;
        if let Some(signature) = &signature {
            add(SIGNATURE, &signature.bytes)?;
            add(PUBLIC_KEY, crypt::to_pem(&signature.public_key).as_bytes())?;
        }
        zip.finish().map_err(zip_error)?.flush()?;
        Ok(Summary {
            counts: self.order.counts,
            content_hash,
            edges_filtered: self.edges_filtered,
        })
    }

    fn manifest(&self) -> Value {
        let counts = self.order.counts;
        let scope = &self.info.scope;
        let kind = match (scope.session_id.is_empty(), scope.project.is_empty()) {
            (false, _) => "session",
            (true, false) => "project",
            (true, true) => "all",
        };
        let encrypted = self.encryption.is_some();
        let mut manifest = json!({
            "agent_id": scope.agent_id,
            "context_window_edges": [],
            "counts": {
                "context_windows": counts.sessions,
                "edges": counts.edges,
                "nodes": counts.nodes,
                "transcripts": counts.transcripts,
            },
            "embedding_dim": self.info.embedding_dim,
            "embedding_model_id": self.info.embedding_model_id,
            "encryption": {
                "algorithm": if encrypted { "aes-256-gcm" } else { "" },
                "enabled": encrypted,
            },
            "export_context": {
                "edge_filter": {
                    "edges_exported": counts.edges,
                    "edges_filtered": self.edges_filtered,
                    "edges_total": counts.edges + self.edges_filtered,
                    "include_low_confidence_edges": self.info.include_low_confidence_edges,
                    "low_confidence_threshold": 0.7,
                }
            },
            "includes_embeddings": false,
            "members": self.members,
            "project": scope.project,
            "repos": [],
            "schema_version": SCHEMA_VERSION,
            "scope": kind,
            "session_id": scope.session_id,
            "signatures": {"algorithm": "ed25519", "present": false},
            "tenant": self.info.tenant_id,
            "ui": {},
        });
        if !self.redirects.is_empty() || !self.tombstones.is_empty() {
            let ours = json!({"redirects": self.redirects, "tombstones": self.tombstones});
            if let Value::Object(members) = &mut manifest {
                members.insert(crate::waggle::OURS.to_owned(), ours);
            }
        }
        sorted(&manifest)
    }

    fn aside(&mut self, value: &Value) -> Result<(), WriteError> {
        self.aside_bytes += value.to_string().len();
        within(
            self.aside_bytes,
            "bytes of redirects and tombstones",
            MANIFEST_BYTES_MAX / 2,
        )
    }

    fn line(&mut self, member: usize, line: &[u8]) -> Result<(), WriteError> {
        self.advance(member)?;
        self.put(line)
    }

    /// Opens members up to the one at `member`.
    fn advance(&mut self, member: usize) -> Result<(), WriteError> {
        while self.open < member {
            self.close()?;
            self.open += 1;
            self.start(LINES.get(self.open).copied().unwrap_or(WINDOWS))?;
        }
        Ok(())
    }

    fn start(&mut self, member: &str) -> Result<(), WriteError> {
        debug_assert!([TRANSCRIPTS, NODES, EDGES, WINDOWS].contains(&member));
        self.zip.start_file(member, options()).map_err(zip_error)?;
        self.hasher = Sha256::new();
        self.size = 0;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.hasher.update(bytes);
        self.size += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.encryption.is_some() {
            within(
                self.plain.len() + bytes.len(),
                "bytes in an encrypted member",
                ENCRYPTED_BYTES_MAX / 2,
            )?;
            self.plain.extend_from_slice(bytes);
        } else {
            self.zip.write_all(bytes)?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), WriteError> {
        if let Some(encryption) = &mut self.encryption {
            let (mut salt, mut nonce) = ([0; 16], [0; 12]);
            (encryption.random)(&mut salt);
            (encryption.random)(&mut nonce);
            let sealed = crypt::seal(&self.plain, encryption.passphrase, salt, nonce).map_err(WriteError::Header)?;
            self.zip.write_all(&sealed)?;
            self.plain.clear();
        }
        let digest: [u8; 32] = self.hasher.clone().finalize().into();
        let member = LINES.get(self.open).copied().unwrap_or(WINDOWS);
        let about = json!({"encrypted": self.encryption.is_some(), "sha256": hex(&digest), "size": self.size});
        self.members.insert(member.to_owned(), about);
        Ok(())
    }
}

fn line_of(value: &Value) -> Vec<u8> {
    let mut line = canonical(value).into_bytes();
    line.push(b'\n');
    line
}

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::from_date_and_time(2000, 1, 1, 0, 0, 0).unwrap_or_default())
        .unix_permissions(0o600)
}

fn within(bytes: usize, what: &'static str, limit: usize) -> Result<(), WriteError> {
    if bytes > limit {
        return Err(WriteError::TooLarge {
            what,
            limit: u64::try_from(limit).unwrap_or(u64::MAX),
        });
    }
    Ok(())
}

fn zip_error(error: zip::result::ZipError) -> WriteError {
    WriteError::Io(std::io::Error::other(error))
}

/// Reading back what was just written fails only if the target does.
fn read_error(error: ReadError) -> WriteError {
    WriteError::Io(std::io::Error::other(error.to_string()))
}
