//! Signatures of files: Ed25519 over the ASCII text of the content hash. Whose keys count is for the caller to say.

use ed25519_dalek::{Signature as Ed25519, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::json;

/// A signature and the key that checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Of the signer.
    pub public_key: [u8; 32],
    /// Over the text of the content hash.
    pub bytes: [u8; 64],
}

impl Signature {
    /// Whether it is one of `content_hash` by its own key. That the key is one to trust is another question.
    pub fn fits(&self, content_hash: &str) -> bool {
        VerifyingKey::from_bytes(&self.public_key).is_ok_and(|key| {
            key.verify_strict(content_hash.as_bytes(), &Ed25519::from_bytes(&self.bytes))
                .is_ok()
        })
    }
}

/// As a member of the backup.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignatureShape {
    algorithm: String,
    public_key: String,
    value: String,
}

impl From<&Signature> for SignatureShape {
    fn from(signature: &Signature) -> Self {
        Self {
            algorithm: "ed25519".to_owned(),
            public_key: json::hex(&signature.public_key),
            value: json::hex(&signature.bytes),
        }
    }
}

impl SignatureShape {
    pub(crate) fn read(&self) -> Option<Signature> {
        if self.algorithm != "ed25519" {
            return None;
        }
        Some(Signature {
            public_key: json::from_hex(&self.public_key)?,
            bytes: json::from_hex(&self.value)?,
        })
    }
}
