//! What must hold of the rules for every text: no panic, linear time, spans on boundaries, determinism; and that a
//! statement with one number, date, name, polarity, unit, purpose or author changed never merges with the first.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a stopwatch of the test; the rules themselves see no clock"
)]

use std::time::Instant;

use proptest::prelude::*;
use waggle_memory::extract::{DRAFTS_PER_TURN_MAX, ExtractInput, Extraction, decompose, extract};
use waggle_memory::kind::Kind;
use waggle_memory::read::{PairOutcome, StatementInput, blocking_gates, compare, read_statement};
use waggle_memory::time::Millis;
use waggle_memory::time_words::interpret;

const NOW: Millis = Millis(1_802_260_800_000);

fn input<'a>(content: &'a str, author: &'a str, kind: Kind) -> StatementInput<'a> {
    StatementInput {
        label: "one label",
        content,
        kind,
        author,
        observed_at: NOW,
    }
}

fn observe(user: &str, assistant: &str) -> Extraction {
    extract(&ExtractInput {
        user_message: user,
        assistant_response: assistant,
        author: "key:a",
        observed_at: NOW,
    })
}

fn check_extraction(found: &Extraction, user: &str, assistant: &str) {
    use waggle_memory::extract::Speaker;
    assert!(found.drafts.len() <= DRAFTS_PER_TURN_MAX);
    for draft in &found.drafts {
        let text = if draft.speaker == Speaker::User {
            user
        } else {
            assistant
        };
        let said = text.get(draft.span.0..draft.span.1);
        assert!(said.is_some_and(|s| !s.is_empty()), "span {:?} of {text:?}", draft.span);
        assert!(
            !draft.label.trim().is_empty() && draft.label.len() <= 800 && !draft.label.contains('\n'),
            "{draft:?}"
        );
        assert!(!draft.content.is_empty());
        assert!(draft.tags.iter().all(|t| !t.is_empty() && t.len() <= 64), "{draft:?}");
    }
    for link in &found.links {
        assert!(link.source != link.target && link.source < found.drafts.len() && link.target < found.drafts.len());
    }
}

/// Any text, words of the rules mixed with noise.
fn texts() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "We",
        "I",
        "use",
        "no longer",
        "PostgreSQL",
        "from",
        "to",
        "MySQL",
        "because",
        "so",
        ",",
        ".",
        "?",
        "\n",
        "- ",
        "> ",
        "```",
        "15",
        "minutes",
        "March",
        "next",
        "last",
        "week",
        "may",
        "not",
        "the",
        "a",
        "if",
        "and",
        "but",
        "is",
        "was",
        "chosen",
        "by",
        "don't",
        "'s",
        "$40k",
        "€",
        "—",
        "–",
        "/",
        "(",
        "\"",
        "`",
        "“",
        "”",
        "TODO:",
        "http://x.y",
        "a/b.rs",
        "-v",
        "Q3",
        "17:00",
        "5",
        "pm",
        "one hundred",
        "thousand",
        "million",
        "ago",
        "2027-02-30",
        "99999999999999999999",
        "let's",
        "should",
        "you",
        "could",
        "é",
        "日本",
        "\u{301}",
        "\u{feff}",
        "_",
        "A_B",
        "x_y()",
        "replace",
        "with",
        "over",
        "instead of",
        "every",
        "Friday",
        "password:",
        "sk-aaaaaaaaaaaaaaaaaaaaaa",
        "-----BEGIN",
        "PRIVATE",
        "KEY-----",
        "eyJ",
        "until",
    ]);
    prop_oneof![
        any::<String>(),
        prop::collection::vec(words, 0..40).prop_map(|w| w.join(" ")),
        prop::collection::vec(any::<char>(), 0..80).prop_map(|c| c.into_iter().collect()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_extracted_without_panic_and_with_true_spans(user in texts(), assistant in texts()) {
        let found = observe(&user, &assistant);
        check_extraction(&found, &user, &assistant);
        prop_assert_eq!(found, observe(&user, &assistant));
        let _ = decompose(&user, &assistant, "key:a", NOW);
    }

    #[test]
    fn any_statement_is_read_and_merges_with_itself(text in texts(), at in any::<i64>()) {
        let a = StatementInput { observed_at: Millis(at), ..input(&text, "key:a", Kind::Fact) };
        let read = read_statement(&a);
        prop_assert_eq!(compare((&read, Kind::Fact), (&read, Kind::Fact)), PairOutcome::MergeExact);
        prop_assert!(blocking_gates(&a, &a).is_empty());
        let _ = interpret(&text, Millis(at));
    }

    #[test]
    fn one_changed_part_never_merges(base in 0..BASES.len(), from in 0..64_usize, to in 0..64_usize) {
        let Some((pattern, parts)) = BASES.get(base) else { return Ok(()) };
        let (from, to) = (from % parts.len(), to % parts.len());
        prop_assume!(from != to);
        let part = |i: usize| parts.get(i).copied().unwrap_or_default();
        never_merges(&pattern.replace("{}", part(from)), &pattern.replace("{}", part(to)));
    }

    #[test]
    fn another_number_never_merges(a in 0..100_000_u32, b in 0..100_000_u32, place in 0..PLACES.len()) {
        prop_assume!(a != b);
        let Some(pattern) = PLACES.get(place) else { return Ok(()) };
        never_merges(&pattern.replace("{}", &a.to_string()), &pattern.replace("{}", &b.to_string()));
    }
}

const PLACES: &[&str] = &[
    "The limit is {} requests",
    "We keep {} replicas",
    "The build number is {}",
    "It costs ${}",
    "Retry after {} seconds",
    "We bought {} licenses in March",
    "The service runs Python 3.{}",
    "Port {} is open",
    "Room {} is taken on Friday",
];

/// A statement with a hole, and what may stand in it: any two make different statements.
const BASES: &[(&str, &[&str])] = &[
    (
        "The timeout is {}",
        &[
            "5 seconds",
            "5 minutes",
            "5 hours",
            "5 days",
            "50 seconds",
            "5 ms",
            "5 months",
            "5",
        ],
    ),
    (
        "The budget is {}",
        &["$40k", "€40k", "£40k", "$4k", "$40", "40k", "$400k"],
    ),
    ("The file has {}", &["5 MB", "5 GB", "5 KB", "5 TB", "5 MiB", "5 bytes"]),
    (
        "Release is planned for {}",
        &[
            "March",
            "April",
            "March 3",
            "March 4",
            "next March",
            "next Friday",
            "Friday",
            "Monday",
            "tomorrow",
            "next week",
            "Q3",
            "2028",
        ],
    ),
    (
        "The meeting starts at {}",
        &["9:00", "9:30", "21:00", "5 pm", "5 am", "noon"],
    ),
    (
        "{} owns the payments service",
        &[
            "Alice", "Bob", "Andrew", "Andrews", "Adam", "Adams", "Dana", "The team", "Nobody", "I", "We",
        ],
    ),
    (
        "The payments service is owned by {}",
        &["Alice", "Bob", "alice b", "the search team", "us", "me"],
    ),
    (
        "We use PostgreSQL {}",
        &[
            "",
            "for billing",
            "for search",
            "in production",
            "in staging",
            "as a cache",
            "only for billing",
            "except for billing",
            "unless it rains",
            "until March",
        ],
    ),
    (
        "The flag is {}",
        &[
            "on",
            "off",
            "not on",
            "not off",
            "enabled",
            "disabled",
            "not enabled",
            "never on",
            "always on",
        ],
    ),
    (
        "We {} deploy on Fridays",
        &[
            "",
            "do not",
            "never",
            "always",
            "must",
            "must not",
            "should",
            "may",
            "will",
            "might",
            "can",
            "cannot",
            "sometimes",
            "only",
        ],
    ),
    (
        "We use {}",
        &[
            "PostgreSQL",
            "MySQL",
            "MongoDB",
            "Redis",
            "Acme",
            "Acme Widgets",
            "Bolt",
            "`redis`",
            "-v",
            "-V",
            "a/b.rs",
            "A/b.rs",
        ],
    ),
    (
        "{} users can export",
        &["", "All", "Some", "Most", "No", "Few", "Ten", "Admin", "Only admin"],
    ),
    (
        "Run the backup {} the deploy",
        &["before", "after", "during", "without", "with", "for", "until"],
    ),
    (
        "Keep {} 3 replicas",
        &["", "at least", "at most", "more than", "less than", "exactly", "up to"],
    ),
    (
        "{} use Kafka",
        &[
            "We",
            "We will",
            "We might",
            "We used to",
            "Maybe we",
            "They",
            "If traffic doubles we",
            "We should",
            "We do not",
            "I",
        ],
    ),
    (
        "Copy the data from {}",
        &["A to B", "B to A", "A", "B", "A and B", "A or B"],
    ),
    (
        "The service depends on {}",
        &["auth", "billing", "auth and billing", "auth or billing", "no auth"],
    ),
    (
        "The office is in {}",
        &["Berlin", "Bern", "Munich", "Веrlin", "West Berlin"],
    ),
    (
        "Set {} to true",
        &["LOG_LEVEL", "log_level", "DEBUG_MODE", "\"Debug\"", "\"debug\""],
    ),
    ("Option {} is approved", &["A", "B", "1", "2", "first", "second"]),
    (
        "The {} limit is high",
        &["upper", "lower", "rate", "size", "memory", "upload", "download"],
    ),
];

fn never_merges(first: &str, second: &str) {
    let (a, b) = (input(first, "key:a", Kind::Fact), input(second, "key:a", Kind::Fact));
    let outcome = compare((&read_statement(&a), Kind::Fact), (&read_statement(&b), Kind::Fact));
    assert!(
        !matches!(outcome, PairOutcome::MergeExact | PairOutcome::MergeCanonical),
        "{first:?} / {second:?}: {outcome:?}"
    );
    assert!(
        !blocking_gates(&a, &b).is_empty(),
        "no gate between {first:?} and {second:?}"
    );
}

#[test]
fn all_changes_of_one_part_are_kept_apart() {
    for (pattern, parts) in BASES {
        for (i, from) in parts.iter().enumerate() {
            for to in parts.iter().skip(i + 1) {
                never_merges(&pattern.replace("{}", from), &pattern.replace("{}", to));
            }
        }
    }
}

/// Plain statements of every kind; each word of them matters but articles.
const PLAIN: &[&str] = &[
    "We chose FastAPI for the billing service because async is simple",
    "Alice Johnson owns the payments service in production",
    "Access tokens expire after 15 minutes on mobile",
    "The release is planned for March 15 at 17:00",
    "We switched from MySQL to PostgreSQL last month",
    "All admins must rotate the signing key before every release",
    "The feature flag is on for EU users only",
    "I prefer tabs over spaces in Python files",
    "The backup runs every Friday at 5 pm",
    "We will migrate the search cluster to Kubernetes in Q3",
    "Never log raw API keys in the gateway",
    "The upload limit is 25 MB per file",
    "Our staging API is at https://staging.example.com/v2",
    "The office moved from Berlin to Munich in 2024",
    "Use the flag -v in src/main.rs when LOG_LEVEL is set",
    "The billing service depends on the auth API and Redis",
    "Maybe we should use Kafka for events later",
    "What database should we use for reports?",
];

#[test]
fn replacing_or_dropping_any_word_never_merges() {
    for text in PLAIN {
        let words: Vec<&str> = text.split(' ').collect();
        for (i, word) in words.iter().enumerate() {
            let with = |new: &[&str]| -> String {
                let head = words.iter().take(i);
                head.chain(new)
                    .chain(words.iter().skip(i + 1))
                    .copied()
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let article = matches!(word.to_lowercase().as_str(), "the" | "a" | "an");
            for new in ["zebra", "Zebra", "42", "not", "June", "every", "`x`"] {
                if new != *word {
                    never_merges(text, &with(&[new]));
                }
            }
            never_merges(text, &with(&[word, "zebra"]));
            if !article {
                never_merges(text, &with(&[]));
            }
            if let Some(next) = words.get(i + 1).filter(|next| *next != word) {
                let mut swapped = words.clone();
                swapped.swap(i, i + 1);
                // "15 March" is "March 15".
                let day = words.get(i..i + 2) == Some(&["March", "15"]);
                if !article && !day && !matches!(next.to_lowercase().as_str(), "the" | "a" | "an") {
                    never_merges(text, &swapped.join(" "));
                }
            }
        }
    }
}

#[test]
fn another_author_never_merges_in_the_first_person_and_always_otherwise() {
    for (text, personal) in [
        ("I prefer tabs", true),
        ("My editor is Vim", true),
        ("Send the report to me", true),
        ("We use PostgreSQL", false),
        ("The deadline is March 15", false),
    ] {
        let (a, b) = (input(text, "key:a", Kind::Fact), input(text, "key:b", Kind::Fact));
        let outcome = compare((&read_statement(&a), Kind::Fact), (&read_statement(&b), Kind::Fact));
        assert_eq!(outcome != PairOutcome::MergeExact, personal, "{text}: {outcome:?}");
        assert_eq!(blocking_gates(&a, &b).is_empty(), !personal, "{text}");
    }
}

#[test]
fn a_relative_day_said_on_another_day_is_another_statement() {
    let a = input("The release is tomorrow", "key:a", Kind::Fact);
    let b = StatementInput {
        observed_at: NOW.plus(Millis::DAY),
        ..a
    };
    let outcome = compare((&read_statement(&a), Kind::Fact), (&read_statement(&b), Kind::Fact));
    assert!(!matches!(
        outcome,
        PairOutcome::MergeExact | PairOutcome::MergeCanonical
    ));
}

/// Texts that quadratic rules would take minutes for. The bound is generous: it tells quadratic from linear.
#[test]
fn long_texts_take_linear_time() {
    let long = |part: &str, bytes: usize| part.repeat(bytes / part.len() + 1);
    let texts = [
        "x".repeat(100_000),
        "é".repeat(50_000),
        "—".repeat(40_000),
        "'".repeat(100_000),
        "`".repeat(100_000),
        "\"a".repeat(50_000),
        "/".repeat(100_000),
        "9".repeat(100_000),
        ".".repeat(100_000),
        "-----BEGIN ".repeat(9_000),
        long("a.b", 100_000),
        long("and we use ", 65_536),
        long("We use Redis and ", 65_536),
        long("not ", 65_536),
        long("for the ", 65_536),
        long("one hundred ", 65_536),
        long("because of ", 65_536),
        long("\n- ", 65_536),
        long(
            "We decided to use PostgreSQL because MySQL replication is painful. ",
            65_536,
        ),
        long("The billing service depends on the auth API.\n", 65_536),
        long("March 15 ", 65_536),
        long("a, ", 65_536),
        long("(", 65_536),
        long("?!", 65_536),
    ];
    for text in &texts {
        let start = Instant::now();
        let _ = observe(text, "");
        let extracted = start.elapsed();
        let a = input(text, "key:a", Kind::Fact);
        let start = Instant::now();
        let _ = read_statement(&a);
        let _ = interpret(text, NOW);
        let read = start.elapsed();
        let name: String = text.chars().take(24).collect();
        println!("{name:?}: extract {extracted:?}, read {read:?}");
        assert!(
            extracted.as_millis() < 5_000 && read.as_millis() < 5_000,
            "{name:?}: {extracted:?}, {read:?}"
        );
    }
}

#[test]
fn more_statements_than_the_limit_are_reported_and_not_kept() {
    let many: String = (0..70)
        .map(|i| format!("The limit of queue number {i} is {i} messages.\n"))
        .collect();
    let found = observe(&many, "");
    assert!(found.over_limit && found.drafts.is_empty());
    let many: String = (0..501)
        .map(|i| format!("- The limit of queue number {i} is {i} messages\n"))
        .collect();
    assert!(decompose(&many, "", "key:a", NOW).is_err());
}
