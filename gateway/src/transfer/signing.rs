//! The cluster's signature on its backups: an Ed25519 key made from the cluster's secret, the same on every gateway.

use ed25519_dalek::{Signer, SigningKey};
use waggle_formats::signature::Signature;

use crate::seal::keyed_hash;

/// Signs backups, and knows its own signatures.
pub(crate) struct Signing {
    key: SigningKey,
}

impl Signing {
    pub(crate) fn new(cluster_secret: &[u8]) -> Self {
        let seed = keyed_hash(cluster_secret, &[b"waggle backup signature v1"]);
        Self {
            key: SigningKey::from_bytes(&seed),
        }
    }

    pub(crate) fn sign(&self, content_hash: &str) -> Signature {
        Signature {
            public_key: self.key.verifying_key().to_bytes(),
            bytes: self.key.sign(content_hash.as_bytes()).to_bytes(),
        }
    }

    /// Whether a public key is this cluster's.
    pub(crate) fn is_ours(&self, public_key: &[u8; 32]) -> bool {
        self.key.verifying_key().to_bytes() == *public_key
    }
}
