use proptest::prelude::*;

use super::*;

fn role(letter: char) -> Role {
    match letter {
        'u' => Role::User,
        'a' => Role::Assistant,
        't' => Role::Tool,
        _ => Role::System,
    }
}

fn roles(letters: &str) -> Vec<Role> {
    letters.chars().filter(|letter| *letter != ' ').map(role).collect()
}

/// Logical turns as "users>assistants" by position, then skipped assistant blocks, then what waits for an answer.
fn shown(letters: &str, boundary: Boundary) -> String {
    let found = windows(roles(letters), boundary);
    let list = |positions: &[usize]| positions.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
    let mut parts: Vec<String> = found
        .pairs
        .iter()
        .map(|pair| format!("{}>{}", list(&pair.user), list(&pair.assistant)))
        .collect();
    parts.extend(found.skipped.iter().map(|block| format!("skipped {}", list(block))));
    if found.unpaired_blocks() > 0 {
        parts.push(format!("waits {}", list(&found.unpaired)));
    }
    parts.join(", ")
}

#[test]
fn messages_divide_into_logical_turns() {
    for (letters, boundary, expect) in [
        ("u u a u a", Boundary::Neighbours, "0+1>2, 3>4"),
        ("u t t a", Boundary::Neighbours, "0>3"),
        ("u a t t a", Boundary::Neighbours, "0>1+4"),
        ("u a t t a", Boundary::Tool, "0>1, skipped 4"),
        ("a u u t s a u", Boundary::Neighbours, "1+2>5, skipped 0, waits 6"),
        ("u a u", Boundary::Neighbours, "0>1, waits 2"),
        ("u a u a", Boundary::Neighbours, "0>1, 2>3"),
        ("", Boundary::Neighbours, ""),
        ("t s", Boundary::Neighbours, ""),
        ("a a", Boundary::Neighbours, "skipped 0+1"),
        ("a t a", Boundary::Tool, "skipped 0, skipped 2"),
        // A system message is no boundary, and a tool's message splits no user block.
        ("u a s a", Boundary::Tool, "0>1+3"),
        ("u t u a", Boundary::Tool, "0+2>3"),
        ("u t a", Boundary::Tool, "0>2"),
        ("u a t u a", Boundary::Tool, "0>1, 3>4"),
    ] {
        assert_eq!(shown(letters, boundary), expect, "{letters} {boundary:?}");
    }
}

#[test]
fn a_place_in_a_block_is_found_in_its_message() {
    let block = Joined::new(["one two", "three", "four"]);
    assert_eq!(block.text(), "one two\n\nthree\n\nfour");
    for (range, expect) in [
        ((0, 3), (0, (0, 3))),
        ((4, 7), (0, (4, 7))),
        ((9, 14), (1, (0, 5))),
        ((16, 20), (2, (0, 4))),
        // Across the gap: what lies in the first message.
        ((4, 12), (0, (4, 7))),
        // From inside of the gap: the next message.
        ((7, 14), (1, (0, 5))),
        ((20, 20), (2, (4, 4))),
        ((0, 0), (0, (0, 0))),
        ((99, 120), (2, (4, 4))),
    ] {
        assert_eq!(block.locate(range), Some(expect), "{range:?}");
    }
    assert_eq!(Joined::new([]).locate((0, 0)), None);
}

#[test]
fn a_message_is_the_same_by_its_id_or_by_all_that_is_known_of_it() {
    let by_id = |id, text| identity_of(Named::ById(id), Role::User, text);
    assert_eq!(by_id("m1", "a"), by_id("m1", "b"));
    assert_ne!(by_id("m1", "a"), by_id("m2", "a"));
    let place = |position, timestamp: Option<i64>, role, text| {
        let timestamp = timestamp.map(Millis);
        identity_of(Named::ByPlace { position, timestamp }, role, text)
    };
    let first = place(0, Some(5), Role::User, "a");
    assert_eq!(first, place(0, Some(5), Role::User, "a"));
    for other in [
        place(1, Some(5), Role::User, "a"),
        place(0, Some(6), Role::User, "a"),
        place(0, None, Role::User, "a"),
        place(0, Some(5), Role::Assistant, "a"),
        place(0, Some(5), Role::User, "b"),
        by_id("a", "a"),
    ] {
        assert_ne!(first, other);
    }
    assert_ne!(content_of(Role::User, "a"), content_of(Role::Assistant, "a"));
}

proptest! {
    #[test]
    fn every_message_is_accounted_for_once_and_in_order(letters in "[uats]{0,60}", tool in any::<bool>()) {
        let boundary = if tool { Boundary::Tool } else { Boundary::Neighbours };
        let roles = roles(&letters);
        let found = windows(roles.clone(), boundary);
        let mut seen: Vec<usize> = Vec::new();
        let mut end_of_last = None;
        for pair in &found.pairs {
            prop_assert!(!pair.user.is_empty() && !pair.assistant.is_empty());
            prop_assert!(pair.user.iter().all(|at| roles[*at] == Role::User));
            prop_assert!(pair.assistant.iter().all(|at| roles[*at] == Role::Assistant));
            prop_assert!(pair.user.last() < pair.assistant.first());
            prop_assert!(end_of_last < pair.user.first().copied());
            end_of_last = pair.assistant.last().copied();
            seen.extend(pair.user.iter().chain(&pair.assistant));
        }
        prop_assert!(found.skipped.iter().all(|block| !block.is_empty()));
        seen.extend(found.skipped.iter().flatten());
        seen.extend(&found.unpaired);
        seen.sort_unstable();
        let kept: Vec<usize> = (0..roles.len())
            .filter(|at| matches!(roles[*at], Role::User | Role::Assistant))
            .collect();
        prop_assert_eq!(seen, kept);
        // Nothing that a user said is lost but a block at the very end that nobody answered.
        let answered = found.unpaired.iter().all(|at| !roles[*at..].contains(&Role::Assistant));
        prop_assert!(answered);
    }

    #[test]
    fn a_range_inside_one_message_comes_back_as_it_was(
        texts in proptest::collection::vec("[a-zé\n ]{1,12}", 1..6), which in any::<prop::sample::Index>()
    ) {
        let block = Joined::new(texts.iter().map(String::as_str));
        let position = which.index(texts.len());
        let before: usize = texts[..position].iter().map(|text| text.len() + BLOCK_GAP.len()).sum();
        let range = (before, before + texts[position].len());
        prop_assert_eq!(block.locate(range), Some((position, (0, texts[position].len()))));
        prop_assert_eq!(&block.text()[range.0..range.1], texts[position].as_str());
    }
}
