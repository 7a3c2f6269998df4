//! The persisted format: what is written is read back, what was written before is read for ever, and nothing else is
//! taken for a message.

#![allow(clippy::unwrap_used, reason = "a test")]

mod generate;

use std::fmt::{Debug, Write};
use std::fs;
use std::path::PathBuf;

use generate::Draw;
use generate::commands::COMMANDS;
use proptest::prelude::*;
use waggle_memory::tables::Row;
use waggle_proto::log::{Malformed, RowKind, check_entry, decode_entry, decode_row, encode_entry, encode_row, limits};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn entries_come_back_as_they_were(seed: u64) {
        let entry = Draw::new(seed).entry();
        let bytes = encode_entry(&entry);
        prop_assert_eq!(decode_entry(&bytes), Ok(entry.clone()));
        prop_assert_eq!(check_entry(&entry), Ok(bytes));
    }

    #[test]
    fn rows_come_back_as_they_were(seed: u64) {
        for kind in RowKind::ALL {
            let row = Draw::new(seed).row(*kind);
            prop_assert_eq!(decode_row(*kind, &encode_row(&row)), Ok(row));
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes: Vec<u8>) {
        let _entry = decode_entry(&bytes);
        for kind in RowKind::ALL {
            let _row = decode_row(*kind, &bytes);
        }
    }

    /// Damage near what is right gets further into the decoder than bytes out of nowhere.
    #[test]
    fn damaged_messages_are_refused_or_read_without_a_panic(seed: u64, at: prop::sample::Index, with: u8, cut: bool) {
        let mut draw = Draw::new(seed);
        let mut entry = encode_entry(&draw.entry());
        damage(&mut entry, at, with, cut);
        let _entry = decode_entry(&entry);
        let kind = draw.pick(RowKind::ALL);
        let mut row = encode_row(&draw.row(kind));
        damage(&mut row, at, with, cut);
        let _row = decode_row(kind, &row);
    }
}

fn damage(bytes: &mut Vec<u8>, at: prop::sample::Index, with: u8, cut: bool) {
    let at = at.index(bytes.len());
    if cut {
        bytes.truncate(at);
    } else {
        bytes[at] ^= with;
    }
}

#[test]
fn every_field_set_comes_back_too() {
    for seed in 0..64 {
        for command in 0..COMMANDS {
            let entry = Draw::full(seed).entry_with(command);
            assert_eq!(decode_entry(&encode_entry(&entry)), Ok(entry));
        }
        for kind in RowKind::ALL {
            let row = Draw::full(seed).row(*kind);
            assert_eq!(decode_row(*kind, &encode_row(&row)), Ok(row));
        }
    }
}

#[test]
fn a_row_of_another_kind_is_refused() {
    let row = encode_row(&Draw::full(1).row(RowKind::Link));
    assert_eq!(
        decode_row(RowKind::Memory, &row),
        Err(Malformed::WrongRow {
            expected: "memory",
            found: "link"
        })
    );
}

#[test]
fn no_bytes_at_all_and_later_formats_are_refused() {
    assert_eq!(decode_row(RowKind::Mark, &[]), Err(Malformed::UnknownFormat(0)));
    assert_eq!(decode_entry(&[]), Err(Malformed::UnknownFormat(0)));
    // Field 1, varint, 2.
    assert_eq!(decode_row(RowKind::Mark, &[8, 2]), Err(Malformed::UnknownFormat(2)));
    assert_eq!(decode_entry(&[8, 2]), Err(Malformed::UnknownFormat(2)));
}

#[test]
fn a_row_or_command_of_a_sort_that_is_not_known_is_refused() {
    // Field 1 = 1, then field 100 as an empty message.
    let later = [8, 1, 0xa2, 0x06, 0];
    assert_eq!(decode_row(RowKind::Mark, &later), Err(Malformed::Missing("row")));
    // With a stamp, so that the command is what is missing.
    let later = [8, 1, 0x12, 0, 0xa2, 0x06, 0];
    assert_eq!(decode_entry(&later), Err(Malformed::Missing("entry.command")));
}

#[test]
fn ids_numbers_and_lists_are_checked() {
    // Row 11 is a link id: three bytes are none.
    assert_eq!(
        decode_row(RowKind::LinkId, &[8, 1, 0x5a, 3, 1, 2, 3]),
        Err(Malformed::BadId("link id"))
    );
    // Row 13 is a turn id, row 10 a link; its relationship 99 has no meaning.
    let mut link = vec![8, 1, 0x52, 3 * 18 + 2];
    for field in [0x0a, 0x12, 0x1a] {
        link.extend([field, 16]);
        link.extend([7; 16]);
    }
    link.extend([0x20, 99]);
    let unknown = Malformed::UnknownNumber {
        field: "link.relationship",
        number: 99,
    };
    assert_eq!(decode_row(RowKind::Link, &link), Err(unknown));
    let mut session = vec![8, 1];
    let mut agents = Vec::new();
    for _ in 0..=limits::ITEMS_MAX {
        agents.extend([0x1a, 0]);
    }
    session.push(0x6a);
    // Session is row 14 if the file says so; the kind decides, so look it up instead of counting.
    let encoded = encode_row(&Draw::full(1).row(RowKind::Session));
    session[2] = encoded[2];
    let mut length = agents.len();
    while length >= 128 {
        session.push(u8::try_from(length % 128).unwrap() | 128);
        length /= 128;
    }
    session.push(u8::try_from(length).unwrap());
    session.extend(agents);
    let count = limits::ITEMS_MAX + 1;
    let many = Malformed::TooMany {
        field: "session.agents",
        count,
        count_max: limits::ITEMS_MAX,
    };
    assert_eq!(decode_row(RowKind::Session, &session), Err(many));
}

#[test]
fn too_many_bytes_are_refused_before_they_are_read() {
    let bytes = vec![0; limits::ROW_BYTES_MAX + 1];
    assert!(matches!(
        decode_row(RowKind::Mark, &bytes),
        Err(Malformed::TooLarge { .. })
    ));
    let bytes = vec![0; limits::ENTRY_BYTES_MAX + 1];
    assert!(matches!(decode_entry(&bytes), Err(Malformed::TooLarge { .. })));
}

/// Bytes of a release, never rewritten, and what they mean, rewritten with UPDATE=1 and reviewed.
fn check_golden<T: Debug>(
    name: &str,
    bytes: impl Fn() -> Vec<u8>,
    read: impl Fn(&[u8]) -> T,
    again: impl Fn(&T) -> Vec<u8>,
) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(format!("{name}.txt"));
    let update = std::env::var_os("UPDATE").is_some();
    let found = fs::read_to_string(&path).unwrap_or_default();
    let (hex, text) = found.split_once("\n\n").unwrap_or_default();
    let golden = match hex.is_empty() {
        true if update => bytes(),
        true => panic!("{} is missing; UPDATE=1 writes it", path.display()),
        false => from_hex(hex),
    };
    let value = read(&golden);
    assert_eq!(
        to_hex(&again(&value)),
        to_hex(&golden),
        "{name}: the same value has other bytes now"
    );
    let now = format!("{value:#?}\n");
    if update {
        fs::write(&path, format!("{}\n{now}", to_hex(&golden))).unwrap();
    } else {
        assert_eq!(text, now, "{name}: old bytes mean something else now");
    }
}

fn to_hex(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for line in bytes.chunks(48) {
        line.iter().for_each(|byte| write!(hex, "{byte:02x}").unwrap());
        hex.push('\n');
    }
    hex
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap())
        .collect()
}

#[test]
fn rows_of_every_release_keep_their_bytes_and_meaning() {
    for kind in RowKind::ALL {
        let name = format!("row_{}", kind.word().replace(' ', "_"));
        check_golden(
            &name,
            || encode_row(&Draw::full(7).row(*kind)),
            |bytes| decode_row(*kind, bytes).unwrap(),
            encode_row,
        );
    }
}

#[test]
fn entries_of_every_release_keep_their_bytes_and_meaning() {
    const NAMES: [&str; COMMANDS] = [
        "remember",
        "update_memory",
        "delete_memory",
        "store_link",
        "resolve_conflict",
        "attach_vectors",
        "expire_requests",
        "init_cluster",
        "create_tenant",
        "create_key",
        "revoke_key",
        "import_records",
        "delete_link",
        "store_messages",
        "canonicalize",
        "clear",
        "remember_messages",
        "change_placement",
        "create_join_token",
        "join_node",
    ];
    for (command, name) in NAMES.iter().enumerate() {
        check_golden(
            &format!("entry_{name}"),
            || encode_entry(&Draw::full(7).entry_with(command)),
            |bytes| decode_entry(bytes).unwrap(),
            encode_entry,
        );
    }
    // Records that came later than their command.
    check_golden(
        "entry_import_message",
        || encode_entry(&Draw::full(8).entry_with(generate::commands::IMPORT)),
        |bytes| decode_entry(bytes).unwrap(),
        encode_entry,
    );
}

#[test]
fn a_placement_from_before_there_were_several_nodes_is_read_as_one_node_with_everything() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/first_form_placement.txt");
    let found = fs::read_to_string(path).unwrap();
    let (hex, _) = found.split_once("\n\n").unwrap();
    let Row::Placement(placement) = decode_row(RowKind::Placement, &from_hex(hex)).unwrap() else {
        panic!("another row");
    };
    let node = placement.nodes[0].id;
    assert_eq!((placement.nodes.len(), placement.replication), (1, 1));
    assert_eq!(placement.next_replica, node.0 + 1);
    for (number, shard) in (0..).zip(&placement.shards) {
        assert_eq!(shard.shard.0, number, "the meta shard, and then the data shards");
        let replicas: Vec<_> = shard
            .replicas
            .iter()
            .map(|replica| (replica.id, replica.node))
            .collect();
        assert_eq!(replicas, [(node.0, node)]);
    }
}
