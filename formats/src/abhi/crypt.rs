//! Encrypted members (AES-256-GCM under a key that PBKDF2 makes of the passphrase) and the text form of public keys.

use aes_gcm::aead::Aead;
use aes_gcm::{Aes256Gcm, KeyInit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pbkdf2::pbkdf2_hmac;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::error::ReadError;
use crate::json;

const ALGORITHM: &str = "aes-256-gcm";
const KDF: &str = "pbkdf2-hmac-sha256";
const ITERATIONS: u32 = 600_000;
/// A file may ask for more rounds than we use, and not for a day of work.
const ITERATIONS_MAX: u32 = 5_000_000;

/// An encrypted member, as it stands in the ZIP.
#[derive(Serialize, Deserialize)]
pub(super) struct Sealed {
    algorithm: String,
    ciphertext_b64: String,
    iterations: u32,
    kdf: String,
    nonce_b64: String,
    salt_b64: String,
}

/// Encrypts a member; salt and nonce must be new ones.
pub(super) fn seal(plain: &[u8], passphrase: &str, salt: [u8; 16], nonce: [u8; 12]) -> Result<Vec<u8>, String> {
    let key = derive(passphrase, &salt, ITERATIONS);
    let cipher = Aes256Gcm::new(&key.into());
    let sealed = cipher
        .encrypt(&nonce.into(), plain)
        .map_err(|_| "the member is too large to be encrypted".to_owned())?;
    let sealed = Sealed {
        algorithm: ALGORITHM.to_owned(),
        ciphertext_b64: STANDARD.encode(sealed),
        iterations: ITERATIONS,
        kdf: KDF.to_owned(),
        nonce_b64: STANDARD.encode(nonce),
        salt_b64: STANDARD.encode(salt),
    };
    serde_json::to_vec(&sealed).map_err(|error| json::why(&error))
}

/// Decrypts a member.
pub(super) fn unseal(bytes: &[u8], passphrase: Option<&str>) -> Result<Vec<u8>, ReadError> {
    let passphrase = passphrase.ok_or(ReadError::Passphrase("the file is encrypted: give its passphrase"))?;
    let damaged = || ReadError::Passphrase("an encrypted member is not what the format says");
    let sealed: Sealed = json::parse(bytes).map_err(|_| damaged())?;
    if sealed.algorithm != ALGORITHM
        || sealed.kdf != KDF
        || sealed.iterations == 0
        || sealed.iterations > ITERATIONS_MAX
    {
        return Err(ReadError::Passphrase(
            "the file is encrypted in a way that is not known here",
        ));
    }
    let decoded = |text: &str| STANDARD.decode(text).map_err(|_| damaged());
    let nonce: [u8; 12] = decoded(&sealed.nonce_b64)?.try_into().map_err(|_| damaged())?;
    let key = derive(passphrase, &decoded(&sealed.salt_b64)?, sealed.iterations);
    Aes256Gcm::new(&key.into())
        .decrypt(&nonce.into(), decoded(&sealed.ciphertext_b64)?.as_slice())
        .map_err(|_| ReadError::Passphrase("the passphrase is wrong, or the file was changed"))
}

fn derive(passphrase: &str, salt: &[u8], iterations: u32) -> [u8; 32] {
    let mut key = [0; 32];
    pbkdf2_hmac::<Sha256>(passphrase.as_bytes(), salt, iterations, &mut key);
    key
}

/// The frame of an Ed25519 key in DER.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// A public key as PEM.
pub(super) fn to_pem(key: &[u8; 32]) -> String {
    let der = [SPKI.as_slice(), key].concat();
    format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", STANDARD.encode(der))
}

/// Reads a public key.
pub(super) fn from_pem(text: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(text).ok()?;
    let body = text.trim().strip_prefix(PEM_BEGIN)?.strip_suffix(PEM_END)?;
    let body: String = body.split_whitespace().collect();
    let der = STANDARD.decode(body).ok()?;
    der.strip_prefix(SPKI.as_slice())?.try_into().ok()
}
