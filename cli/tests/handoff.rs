//! Hand-off of transcripts with the real binary: what it stores, what it reports, how it fails.

#![cfg(unix)]

#[allow(dead_code, reason = "each test binary uses a part")]
mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use common::{stderr, waggle};
use serde_json::{Value, json};

/// A server on data of its own; killed in the end.
struct Dev(Child);

impl Dev {
    fn start(home: &Path) -> Self {
        let mut command = waggle(home);
        command
            .args(["dev", "--json", "--listen", "127.0.0.1:0", "--data"])
            .arg(home.join("data"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("start the server");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        let server = Self(child);
        BufReader::new(out).read_line(&mut line).expect("read");
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        assert!(ready["mcp_url"].is_string(), "the server said {line:?}");
        server
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn handoff(home: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = waggle(home)
        .arg("ingest-transcript-handoff")
        .args(arguments)
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the command");
    // It may end before it has read everything.
    let _ = child.stdin.take().expect("its input").write_all(input.as_bytes());
    child.wait_with_output().expect("its end")
}

fn report(home: &Path, arguments: &[&str], input: &Value) -> Value {
    let output = handoff(home, arguments, &input.to_string());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("a report")
}

fn failure(output: &Output) -> (Option<i32>, Value) {
    let text = stderr(output);
    let error: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(error["message"].is_string() && error["details"].is_object(), "{error}");
    (output.status.code(), error)
}

fn message(letter: char, index: usize) -> Value {
    let role = match letter {
        'u' => "user",
        'a' => "assistant",
        't' => "tool",
        _ => "system",
    };
    let content = match letter {
        'u' => format!("We decided to use database number {index} for service {index}."),
        'a' => format!("The service {index} depends on database number {index}."),
        _ => format!("output {index}"),
    };
    json!({"role": role, "content": content, "message_id": format!("m{index}")})
}

fn transcript(session: &str, letters: &str) -> Value {
    let letters = letters.chars().filter(|letter| *letter != ' ');
    let messages: Vec<Value> = letters
        .enumerate()
        .map(|(index, letter)| message(letter, index))
        .collect();
    json!({"project": "handoff", "session_id": session, "messages": messages})
}

/// Written, skipped, logical turns, waiting user blocks, skipped assistant blocks.
fn counts(report: &Value) -> [u64; 5] {
    [
        "transcript_records_written",
        "transcript_records_skipped",
        "logical_turns_processed",
        "unpaired_trailing_blocks",
        "assistant_blocks_skipped",
    ]
    .map(|name| {
        report[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name} is missing in {report}"))
    })
}

#[test]
fn transcripts_are_stored_and_extracted_from_once() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let _server = Dev::start(home);

    // Every kind of transcript, and each of them again: nothing is written or extracted twice.
    for (session, letters, split, expect) in [
        ("one", "u u a u a", false, [5, 0, 2, 0, 0]),
        ("two", "u t t a", false, [4, 0, 1, 0, 0]),
        ("three", "u a t t a", false, [5, 0, 1, 0, 0]),
        ("four", "u a t t a", true, [5, 0, 1, 0, 1]),
        ("five", "a u u t s a u", false, [7, 0, 1, 1, 1]),
    ] {
        let arguments: &[&str] = if split { &["--tool-boundary-splits-blocks"] } else { &[] };
        let input = transcript(session, letters);
        let first = report(home, arguments, &input);
        assert_eq!(counts(&first), expect, "{session}: {first}");
        assert_eq!(first["scope"]["session_id"], session);
        let again = report(home, arguments, &input);
        let [written, _, _, waiting, skipped] = expect;
        assert_eq!(
            counts(&again),
            [0, written, 0, waiting, skipped],
            "{session} again: {again}"
        );
        assert_eq!(
            (&again["nodes_created"], &again["nodes_reused"]),
            (&json!(0), &json!(0))
        );
    }

    // The first turn of a session makes memories, and they are found with the words of the message.
    let made = report(home, &[], &transcript("six", "u a"));
    let stored = made["nodes_created"].as_u64().unwrap_or(0) + made["nodes_reused"].as_u64().unwrap_or(0);
    assert!(stored > 0, "{made}");

    // Longer transcripts extract from what is new, and an answer that comes alone finds its question.
    let waiting = report(home, &[], &transcript("seven", "u a u"));
    assert_eq!(counts(&waiting), [3, 0, 1, 1, 0]);
    assert_eq!(
        counts(&report(home, &[], &transcript("seven", "u a u a"))),
        [1, 3, 1, 0, 0]
    );
    assert_eq!(
        counts(&report(home, &[], &transcript("eight", "u a u"))),
        [3, 0, 1, 1, 0]
    );
    let mut alone = transcript("eight", "");
    alone["messages"] = json!([message('a', 3)]);
    assert_eq!(counts(&report(home, &[], &alone)), [1, 0, 1, 0, 0]);
    assert_eq!(counts(&report(home, &[], &alone)), [0, 1, 0, 0, 0]);

    // Nothing to do.
    let nothing = report(home, &[], &transcript("nine", ""));
    assert_eq!(counts(&nothing), [0; 5]);
    assert_eq!(nothing["export_skipped_reason"], "no_messages");

    // A dry run stores nothing.
    let dry = report(home, &["--dry-run"], &transcript("ten", "u a u"));
    assert_eq!(counts(&dry), [3, 0, 1, 1, 0]);
    assert_eq!(
        counts(&report(home, &["--dry-run"], &transcript("ten", "u a u"))),
        [3, 0, 1, 1, 0]
    );

    // Lines, a scope that flags override, and warnings.
    let mut lines = json!({"session_id": "other", "note": 1}).to_string();
    for line in transcript("", "u a")
        .get("messages")
        .and_then(Value::as_array)
        .expect("messages")
    {
        lines.push_str(&format!("\n{line}\n"));
    }
    let output = handoff(home, &["--session-id", "eleven", "--project", "lines"], &lines);
    let read: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(counts(&read), [2, 0, 1, 0, 0]);
    assert_eq!(
        read["scope"],
        json!({"project": "lines", "agent_id": "", "session_id": "eleven"})
    );
    assert_eq!(read["warnings"], json!(["member 'note' is ignored"]));

    // An id that comes again with another text: refused, and nothing of it is stored.
    let mut edited = transcript("one", "u u a u a u");
    edited["messages"][1]["content"] = json!("something else");
    let (code, error) = failure(&handoff(home, &[], &edited.to_string()));
    assert_eq!(
        (code, &error["code"]),
        (Some(1), &json!("message_id_reused")),
        "{error}"
    );
    assert_eq!(counts(&report(home, &[], &transcript("one", "u u a u a u")))[0], 1);

    // Wrong key, and a cluster that is not there.
    let wrong_key = home.join("wrong.key");
    std::fs::write(&wrong_key, "wg_dev_not_a_key\n").expect("write");
    for (arguments, expect) in [
        (
            ["--key-file", wrong_key.to_str().expect("a path")],
            "authentication_failed",
        ),
        (["--url", "http://127.0.0.1:9"], "backend_unavailable"),
    ] {
        let (code, error) = failure(&handoff(home, &arguments, &transcript("x", "u a").to_string()));
        assert_eq!((code, &error["code"]), (Some(2), &json!(expect)), "{error}");
    }

    // A transcript in several parts, sent twice at the same moment: each message is stored and extracted from once.
    let long = transcript("long", &"u a ".repeat(150)).to_string();
    let reports = std::thread::scope(|threads| {
        let running: Vec<_> = (0..2).map(|_| threads.spawn(|| handoff(home, &[], &long))).collect();
        let outputs = running.into_iter().map(|running| running.join().expect("no panic"));
        outputs
            .map(|output| serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output))))
            .collect::<Vec<Value>>()
    });
    let sum = |name: &str| {
        reports
            .iter()
            .map(|report| report[name].as_u64().unwrap_or(0))
            .sum::<u64>()
    };
    assert_eq!(sum("transcript_records_written"), 300, "{reports:?}");
    assert_eq!(sum("logical_turns_processed"), 150, "{reports:?}");
}

#[test]
fn wrong_input_ends_with_1_and_says_where() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let blank = json!({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": " "}]}).to_string();
    let twice = json!({"messages": [
        {"role": "user", "content": "a", "message_id": "m"}, {"role": "user", "content": "b", "message_id": "m"}
    ]})
    .to_string();
    let cases: [(&[&str], &str, &str, Value); 10] = [
        (
            &[],
            "{\n  \"messages\": [",
            "malformed_json",
            json!({"line": 2, "column": 15}),
        ),
        (&[], "", "malformed_json", json!({"line": 1, "column": 0})),
        (&[], &blank, "validation_error", json!({"index": 1, "field": "content"})),
        (&[], &twice, "message_id_reused", json!({"index": 1})),
        (
            &["--max-input-bytes", "10"],
            &blank,
            "payload_too_large",
            json!({"max_input_bytes": 10}),
        ),
        (
            &["--input", "none.json"],
            "",
            "input_not_found",
            json!({"path": "none.json"}),
        ),
        (&["--max-nodes", "0"], "", "invalid_arguments", json!({})),
        (&["--no-such-flag"], "", "invalid_arguments", json!({})),
        (
            &["--input-format", "ndjson"],
            "{\"role\":\"user\",\"content\":\"a\"}\n{",
            "malformed_json",
            json!({"line": 2, "column": 1}),
        ),
        (
            &["--input-format", "ndjson"],
            "{}\n{\"role\":\"nobody\",\"content\":\"a\"}",
            "validation_error",
            json!({"index": 0, "field": "role"}),
        ),
    ];
    for (arguments, input, code, details) in cases {
        let output = handoff(home, arguments, input);
        let (exit, error) = failure(&output);
        assert_eq!(
            (exit, error["code"].as_str()),
            (Some(1), Some(code)),
            "{arguments:?} {input:?}: {error}"
        );
        assert_eq!(error["details"], details, "{arguments:?} {input:?}: {error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_silent_standard_input_is_given_up_and_an_empty_transcript_needs_no_cluster() {
    let home = tempfile::tempdir().expect("a folder");
    let mut child = waggle(home.path())
        .args(["ingest-transcript-handoff", "--read-timeout-seconds", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the command");
    let silent = child.stdin.take();
    let (exit, error) = failure(&child.wait_with_output().expect("its end"));
    drop(silent);
    assert_eq!((exit, error["code"].as_str()), (Some(1), Some("read_timeout")));
    let nothing = report(home.path(), &[], &json!({"messages": []}));
    assert_eq!(nothing["export_skipped"], true);
    // No cluster is known here.
    let (exit, error) = failure(&handoff(home.path(), &[], &transcript("s", "u a").to_string()));
    assert_eq!(
        (exit, error["code"].as_str()),
        (Some(2), Some("backend_unavailable")),
        "{error}"
    );
}
