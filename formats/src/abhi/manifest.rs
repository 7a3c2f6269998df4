//! The manifest: what it says, and what the content hash takes of it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::container::{malformed, wrong};
use super::{LINES, MANIFEST, SCHEMA_VERSION};
use crate::error::ReadError;
use crate::json::canonical;

/// A manifest that was read. Foreign members stay in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub(super) value: Value,
}

/// What the manifest says of one member.
pub(super) struct Member {
    pub(super) sha256: String,
    pub(super) size: Option<u64>,
    pub(super) encrypted: bool,
}

impl Manifest {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        let value: Value = crate::json::parse(bytes).map_err(|why| malformed(MANIFEST, None, 0, &why))?;
        if !value.is_object() {
            return Err(wrong("the manifest is no object"));
        }
        let manifest = Self { value };
        let version = manifest.text("schema_version");
        if version.split('.').next() != SCHEMA_VERSION.split('.').next() {
            return Err(ReadError::WrongVersion {
                found: version.chars().take(20).filter(|c| c.is_ascii_graphic()).collect(),
                readable: "2.x",
            });
        }
        Ok(manifest)
    }

    /// A member that is a text; empty where it is not.
    pub fn text(&self, member: &str) -> &str {
        self.value.get(member).and_then(Value::as_str).unwrap_or_default()
    }

    /// The content hash that it states.
    pub fn content_hash(&self) -> &str {
        self.text("content_hash")
    }

    /// Whether members are encrypted.
    pub fn is_encrypted(&self) -> bool {
        let enabled = self
            .value
            .get("encryption")
            .and_then(|encryption| encryption.get("enabled"));
        enabled.and_then(Value::as_bool) == Some(true)
    }

    /// Whether it says that the file is signed.
    pub fn is_signed(&self) -> bool {
        let present = self
            .value
            .get("signatures")
            .and_then(|signatures| signatures.get("present"));
        present.and_then(Value::as_bool) == Some(true)
    }

    pub(super) fn member(&self, name: &str) -> Option<Member> {
        let member = self.value.get("members")?.get(name)?;
        Some(Member {
            sha256: member
                .get("sha256")?
                .as_str()?
                .trim_start_matches("sha256:")
                .to_lowercase(),
            size: member.get("size").and_then(Value::as_u64),
            encrypted: member.get("encrypted").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    pub(super) fn stated_count(&self, name: &str) -> Option<u64> {
        let key = name.strip_suffix(".jsonl")?;
        self.value.get("counts")?.get(key)?.as_u64()
    }

    /// The hash begins with the manifest; the lines follow.
    pub(super) fn start_hash(&self) -> Sha256 {
        let mut hashed = self.value.clone();
        if let Value::Object(members) = &mut hashed {
            for outside in ["content_hash", "created_at", "export_context"] {
                members.shift_remove(outside);
            }
            members.insert(
                "signatures".to_owned(),
                json!({"algorithm": "ed25519", "present": false}),
            );
        }
        let mut hasher = Sha256::new();
        hasher.update(canonical(&hashed).as_bytes());
        hasher
    }

    /// Lines without an entry here would be outside of every hash.
    pub(super) fn check_members(&self, has: impl Fn(&str) -> bool) -> Result<(), ReadError> {
        for name in LINES {
            if has(name) != self.member(name).is_some() {
                return Err(malformed(
                    MANIFEST,
                    None,
                    0,
                    &format!("members do not fit the ZIP: {name}"),
                ));
            }
        }
        Ok(())
    }
}
