//! Keyed hashes and base62: what keys, cursors and read points are made of.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// HMAC-SHA256 over the parts, each preceded by its length, so that no two lists of parts meet in one message.
pub(crate) fn keyed_hash(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes a key of any length; the fallback is never used.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// `bytes` as one big-endian number in base 62, padded with zeros to `digits`.
pub(crate) fn base62(bytes: &[u8], digits: usize) -> String {
    let mut number = bytes.to_vec();
    let mut text = Vec::with_capacity(digits);
    while text.len() < digits {
        let mut rest = 0u32;
        for byte in &mut number {
            let value = rest * 256 + u32::from(*byte);
            *byte = (value / 62) as u8;
            rest = value % 62;
        }
        text.push(DIGITS.get(rest as usize).copied().unwrap_or(b'0'));
    }
    text.reverse();
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base62_counts_like_any_other_base() {
        assert_eq!(base62(&[0], 2), "00");
        assert_eq!(base62(&[61], 2), "0z");
        assert_eq!(base62(&[62], 2), "10");
        assert_eq!(base62(&[255; 32], 43).len(), 43);
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(keyed_hash(b"k", &[b"ab", b"c"]), keyed_hash(b"k", &[b"a", b"bc"]));
    }
}
