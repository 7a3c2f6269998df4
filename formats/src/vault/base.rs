//! `.waggle/vault.json`: from which state of the graph the files of a vault were written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The only format name and version that are written and read.
const FORMAT: &str = "waggle-vault";
const FORMAT_VERSION: u32 = 1;

/// The merge base of a vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Base {
    format: String,
    format_version: u32,
    pub(super) tenant_id: String,
    /// The point of the graph that was read, as the exporter named it.
    pub(super) read_at: String,
    /// Places where a secret was replaced.
    pub(super) redactions: usize,
    /// By id of a memory.
    pub(super) files: BTreeMap<String, BaseFile>,
    /// Over the files, in the order of their paths.
    pub(super) content_hash: String,
}

/// One file as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseFile {
    /// Version of the memory.
    pub(super) version: u32,
    /// Hash of the file's bytes.
    pub(super) sha256: String,
    /// Its relations: `relationship target` and weight in thousandths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) relations: BTreeMap<String, u32>,
}

/// Why a merge base cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadBase {
    #[error("cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("has format '{format}' version {version}; this version reads '{FORMAT}' {FORMAT_VERSION}")]
    Version { format: String, version: u32 },
}

impl Base {
    pub(super) fn new(tenant_id: &str, read_at: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            tenant_id: tenant_id.to_owned(),
            read_at: read_at.to_owned(),
            redactions: 0,
            files: BTreeMap::new(),
            content_hash: String::new(),
        }
    }

    pub(super) fn read(text: &str) -> Result<Self, BadBase> {
        let base: Self = serde_json::from_str(text)?;
        if base.format != FORMAT || base.format_version != FORMAT_VERSION {
            return Err(BadBase::Version {
                format: base.format.chars().take(80).collect(),
                version: base.format_version,
            });
        }
        Ok(base)
    }

    pub(super) fn write(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }
}

/// The key of a relation in [`BaseFile::relations`].
pub(super) fn relation_key(relationship: &str, target: &str) -> String {
    format!("{relationship} {target}")
}

/// SHA-256 in hexadecimal.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A hash over many parts, each with its length.
#[derive(Default)]
pub(super) struct ContentHash(Sha256);

impl ContentHash {
    pub(super) fn add(&mut self, part: &str) {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part.as_bytes());
    }

    pub(super) fn finish(self) -> String {
        format!("sha256:{}", hex(&self.0.finalize()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
            for nibble in [byte >> 4, byte & 15] {
                out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
            out
        })
}
