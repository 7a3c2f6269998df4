//! The text of an API key: `wg_<env>_<kid>_<secret>_<check>`.
//!
//! `env` and `kid` are for people and for finding the row; the secret is 32 random bytes in base 62; the check makes a
//! mistyped key recognisable without asking anybody, and a leaked one findable by scanners. Only a keyed hash of the
//! secret is ever stored.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::seal::{base62, keyed_hash};

const SECRET_BYTES: usize = 32;
const SECRET_DIGITS: usize = 43;
const CHECK_DIGITS: usize = 6;
const KID_DIGITS: usize = 12;
const ENV_BYTES_MAX: usize = 16;
const KID_BYTES_MAX: usize = 32;

/// Why a text is no API key. Says which part, never what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("an API key starts with wg_ and has five parts separated by '_'")]
    Shape,
    #[error("the environment in an API key is 1 to 16 of a-z and 0-9")]
    Environment,
    #[error("the id in an API key is 1 to 32 of A-Z, a-z and 0-9")]
    Id,
    #[error("the secret in an API key is 43 of A-Z, a-z and 0-9")]
    Secret,
    #[error("the check digits do not fit: the key was mistyped or cut")]
    Check,
    #[error("no randomness from the operating system")]
    NoRandomness,
}

/// A well-formed key. Its secret is only compared and hashed, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeyText {
    env: String,
    kid: String,
    secret: String,
}

impl fmt::Debug for ApiKeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKeyText(wg_{}_{}_…)", self.env, self.kid)
    }
}

impl ApiKeyText {
    /// Makes a new key with a random id and secret.
    pub fn make(env: &str) -> Result<Self, BadKey> {
        let mut random = [0u8; SECRET_BYTES + 9];
        getrandom::fill(&mut random).map_err(|_| BadKey::NoRandomness)?;
        let (secret, kid) = random.split_at(SECRET_BYTES);
        Self::from_parts(env, &base62(kid, KID_DIGITS), &base62(secret, SECRET_DIGITS))
    }

    fn from_parts(env: &str, kid: &str, secret: &str) -> Result<Self, BadKey> {
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if env.is_empty()
            || env.len() > ENV_BYTES_MAX
            || !plain(env)
            || env.bytes().any(|byte| byte.is_ascii_uppercase())
        {
            return Err(BadKey::Environment);
        }
        if kid.is_empty() || kid.len() > KID_BYTES_MAX || !plain(kid) {
            return Err(BadKey::Id);
        }
        if secret.len() != SECRET_DIGITS || !plain(secret) {
            return Err(BadKey::Secret);
        }
        Ok(Self {
            env: env.to_owned(),
            kid: kid.to_owned(),
            secret: secret.to_owned(),
        })
    }

    /// Reads the text form; a wrong check digit is found here, without asking the cluster.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let mut parts = text.split('_');
        let (Some("wg"), Some(env), Some(kid), Some(secret), Some(check), None) = (
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
        ) else {
            return Err(BadKey::Shape);
        };
        let key = Self::from_parts(env, kid, secret)?;
        if !bool::from(key.check().as_bytes().ct_eq(check.as_bytes())) {
            return Err(BadKey::Check);
        }
        Ok(key)
    }

    /// The public id: it finds the row.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The part that opens nothing and finds the key again.
    pub fn prefix(&self) -> String {
        format!("wg_{}_{}", self.env, self.kid)
    }

    /// The whole key, to be shown once.
    pub fn reveal(&self) -> String {
        format!("wg_{}_{}_{}_{}", self.env, self.kid, self.secret, self.check())
    }

    /// What is stored: HMAC-SHA256 of id and secret under the cluster's pepper.
    pub fn keyed_hash(&self, pepper: &[u8]) -> [u8; 32] {
        keyed_hash(
            pepper,
            &[b"waggle api key v1", self.kid.as_bytes(), self.secret.as_bytes()],
        )
    }

    fn check(&self) -> String {
        let digest = Sha256::digest(format!("wg_{}_{}_{}", self.env, self.kid, self.secret).as_bytes());
        base62(digest.get(..4).unwrap_or_default(), CHECK_DIGITS)
    }
}

/// Whether a stored hash is that of the key, in constant time. A hash of another length costs the same.
pub fn hash_matches(stored: &[u8], computed: &[u8; 32]) -> bool {
    let mut padded = [0u8; 32];
    let fits = stored.len() == padded.len();
    if fits {
        padded.copy_from_slice(stored);
    }
    bool::from(padded.ct_eq(computed)) & fits
}
