//! Byte order is the order of keys wherever a scan goes, and nothing but a key is read as one.

use proptest::prelude::*;
use waggle_memory::id::TenantId;

use super::*;
use generate::Draw;

#[path = "../../../../proto/tests/generate/mod.rs"]
mod generate;

const SHARD: ShardId = ShardId(7);

fn bytes_of(key: &Key) -> Vec<u8> {
    encode_key(SHARD, key)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn keys_come_back_as_they_were(seed: u64, shard: u32) {
        let key = Draw::new(seed).key();
        let bytes = encode_key(ShardId(shard), &key);
        prop_assert_eq!(decode_key(&bytes), Ok((ShardId(shard), key)));
    }

    #[test]
    fn byte_order_is_key_order_within_a_tenant(seed: u64) {
        let mut draw = Draw::new(seed);
        let tenant = draw.tenant();
        let (a, b) = (draw.key_of(tenant.clone()), draw.key_of(tenant));
        prop_assert_eq!(bytes_of(&a).cmp(&bytes_of(&b)), a.cmp(&b), "{:?} {:?}", a, b);
    }

    #[test]
    fn byte_order_is_key_order_among_rows_of_the_shard(seed: u64) {
        let mut draw = Draw::new(seed);
        let (a, b) = (Key::Shard(draw.shard_key()), Key::Shard(draw.shard_key()));
        prop_assert_eq!(bytes_of(&a).cmp(&bytes_of(&b)), a.cmp(&b), "{:?} {:?}", a, b);
    }

    #[test]
    fn rows_of_the_shard_sort_before_those_of_tenants(seed: u64) {
        let mut draw = Draw::new(seed);
        let tenant = draw.tenant();
        let (shard, tenant) = (Key::Shard(draw.shard_key()), draw.key_of(tenant));
        prop_assert!(bytes_of(&shard) < bytes_of(&tenant));
        prop_assert!(shard < tenant);
    }

    /// Across tenants the order is slot, then tenant: not that of `Key`, and rows of tenants never mix.
    #[test]
    fn rows_of_two_tenants_never_mix(seed: u64) {
        let mut draw = Draw::new(seed);
        let one = draw.tenant();
        let two = std::iter::repeat_with(|| draw.tenant()).find(|other| *other != one).unwrap();
        let by_slot = (Slot::of(&one), &one).cmp(&(Slot::of(&two), &two));
        for _ in 0..4 {
            let (a, b) = (draw.key_of(one.clone()), draw.key_of(two.clone()));
            prop_assert_eq!(bytes_of(&a).cmp(&bytes_of(&b)), by_slot);
        }
    }

    #[test]
    fn every_key_lies_in_the_ranges_of_its_shard_and_kind(seed: u64, shard: u32) {
        let key = Draw::new(seed).key();
        let bytes = encode_key(ShardId(shard), &key);
        let (first, end) = shard_range(ShardId(shard));
        prop_assert!(first <= bytes && bytes < end);
        let (first, end) = kind_range(ShardId(shard), &key, KeyKind::of(&key));
        prop_assert!(first <= bytes && bytes < end);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_are_the_key_that_they_say(bytes: Vec<u8>, seed: u64, at: prop::sample::Index, with: u8) {
        let mut damaged = bytes_of(&Draw::new(seed).key());
        let at = at.index(damaged.len());
        damaged[at] ^= with;
        for bytes in [bytes, damaged] {
            if let Ok((shard, key)) = decode_key(&bytes) {
                prop_assert_eq!(encode_key(shard, &key), bytes);
            }
        }
    }

    #[test]
    fn log_keys_sort_by_shard_and_index(a: (u32, u64), b: (u32, u64)) {
        let key = |(shard, index)| log_key(ShardId(shard), index);
        prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
        prop_assert_eq!(log_index(ShardId(a.0), &key(a)), Some(a.1));
    }
}

#[test]
fn the_bytes_of_a_key_stay_what_they_are() {
    let acme: TenantId = "acme".parse().unwrap();
    assert_eq!(Slot::of(&acme).0, 0x08e1, "a slot is part of every stored key");
    let key = Key::Tenant(acme.clone(), TenantKey::Session("pp".to_owned(), "a\u{0}b".to_owned()));
    let hex: String = bytes_of(&key).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "00000007_08e2_61636d650001_29_70700001_6100ff620001".replace('_', "")
    );
    let key = Key::Shard(ShardKey::RequestAge(Millis(-1), acme, RequestId("r".to_owned())));
    let hex: String = bytes_of(&key).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "00000007_0000_02_7fffffffffffffff_61636d650001_720001".replace('_', "")
    );
}

#[test]
fn numbers_of_kinds_grow_in_the_order_of_the_domain_and_read_back() {
    assert!(
        KeyKind::ALL
            .windows(2)
            .all(|pair| pair[0] < pair[1] && pair[0].number() < pair[1].number())
    );
    for kind in KeyKind::ALL {
        assert_eq!(KeyKind::from_number(kind.number()), Some(*kind));
    }
}
