//! Identities and receipts that apply has to make itself: the same on every replica.

use super::Transaction;
use crate::id::{EvidenceId, LinkId, MemoryId};
use crate::time::Millis;

impl Transaction<'_> {
    /// The id of a link that conflict detection makes: a UUIDv7 of this entry's time whose other bits are a hash of
    /// what it joins, so that every replica makes the same one.
    pub(in crate::apply) fn link_id(&self, source: MemoryId, word: &str, target: MemoryId) -> LinkId {
        LinkId::from_bytes(derived_uuid(
            self.now,
            &[&source.bytes(), word.as_bytes(), &target.bytes()],
        ))
    }

    /// The id of evidence that a change (not a caller) makes.
    pub(in crate::apply) fn evidence_id(&self, memory: MemoryId, number: u32) -> EvidenceId {
        EvidenceId::from_bytes(derived_uuid(self.now, &[&memory.bytes(), &number.to_be_bytes()]))
    }

    /// Proof that a step of a clearing was done.
    pub(in crate::apply) fn receipt_of_step(&self, parts: &[&[u8]]) -> String {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(self.tenant.as_str().as_bytes());
        hasher.update(&self.now.0.to_be_bytes());
        hasher.update(&self.state.changes.to_be_bytes());
        hasher.update(self.principal.0.as_bytes());
        for part in parts {
            hasher.update(part);
            hasher.update(&[0xff]);
        }
        format!("cleared-{:032x}", hasher.digest128())
    }

    /// Proof of an erasure: a hash over what, when and who.
    pub(in crate::apply) fn receipt(&self, memory: MemoryId) -> String {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(self.tenant.as_str().as_bytes());
        hasher.update(&memory.bytes());
        hasher.update(&self.now.0.to_be_bytes());
        hasher.update(self.principal.0.as_bytes());
        format!("erased-{memory}-{:032x}", hasher.digest128())
    }
}

fn derived_uuid(now: Millis, parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(&now.0.to_be_bytes());
    for part in parts {
        hasher.update(part);
        hasher.update(&[0xff]);
    }
    let mut bytes = hasher.digest128().to_be_bytes();
    // 48 bits of milliseconds, then version 7 and the RFC 9562 variant.
    let time = u64::try_from(now.0).unwrap_or(0).to_be_bytes();
    bytes
        .iter_mut()
        .zip(time.iter().skip(2))
        .for_each(|(byte, time)| *byte = *time);
    if let Some(byte) = bytes.get_mut(6) {
        *byte = (*byte & 0x0f) | 0x70;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = (*byte & 0x3f) | 0x80;
    }
    bytes
}
