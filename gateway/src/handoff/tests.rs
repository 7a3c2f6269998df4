use serde_json::json;

use super::*;

/// 2026-07-29T10:00:00Z.
const NOW: Millis = Millis(1_785_319_200_000);

fn read(text: &str) -> Result<Transcript, String> {
    read_document(text, NOW).map_err(|malformed| match malformed {
        Malformed::Json { line, column, why } => format!("json {line}:{column} {why}"),
        Malformed::Content(problem) => problem.to_string(),
    })
}

#[test]
fn a_transcript_is_read_with_its_scope_and_what_nobody_reads_is_named() {
    let text = json!({
        "session_id": "s1", "project": "P", "source": "chat", "agent_id": null,
        "messages": [
            {"role": "user", "content": "hello", "name": "Eva", "message_id": "m1"},
            {"role": "tool", "content": "ls", "timestamp": "2026-07-28T09:30:00+02:00", "name": "x"},
        ],
    });
    let found = read(&text.to_string()).expect("a transcript");
    assert_eq!(
        (found.scope.project.as_str(), found.scope.session_id.as_str()),
        ("P", "s1")
    );
    assert_eq!(found.messages[0].message_id, "m1");
    assert_eq!(
        found.messages[1].timestamp.map(|at| at.to_string()).as_deref(),
        Some("2026-07-28T07:30:00.000Z")
    );
    assert_eq!(
        found.ignored.warnings(),
        [
            "member 'source' is ignored",
            "member 'name' of messages is ignored (2 times)"
        ]
    );
}

#[test]
fn times_of_iso_8601_are_read() {
    for (text, expect) in [
        ("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05.000Z")),
        ("2026-01-02T03:04:05.5+01:00", Some("2026-01-02T02:04:05.500Z")),
        ("2026-01-02T03:04:05", Some("2026-01-02T03:04:05.000Z")),
        ("2026-01-02", Some("2026-01-02T00:00:00.000Z")),
        ("yesterday", None),
        ("3d", None),
        ("1785319200", None),
        ("", None),
    ] {
        assert_eq!(instant(text).map(|at| at.to_string()).as_deref(), expect, "{text}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let message = |fields: Value| json!({"messages": [{"role": "user", "content": "a"}, fields]}).to_string();
    for (text, expect) in [
        ("{\n  \"messages\": [}".to_owned(), "json 2:16 expected value"),
        (
            "[]".to_owned(),
            "json 1:0 invalid type: sequence, expected an object with messages",
        ),
        ("{}".to_owned(), "field 'messages' is missing"),
        ("{\"messages\": []} x".to_owned(), "json 1:18 trailing characters"),
        (
            json!({"messages": {}}).to_string(),
            "json 1:12 invalid type: map, expected a list of messages",
        ),
        (
            json!({"messages": [], "project": 1}).to_string(),
            "field 'project' must be a string",
        ),
        (
            json!({"messages": [], "session_id": "s".repeat(257)}).to_string(),
            "field 'session_id' has 257 bytes; the limit is 256",
        ),
        (
            message(json!("hi")),
            "field 'messages[1]' must be an object with role and content",
        ),
        (
            message(json!({"content": "a"})),
            "field 'messages[1].role' is missing; one of user, assistant, system, tool",
        ),
        (
            message(json!({"role": "human", "content": "a"})),
            "field 'messages[1].role' must be one of user, assistant, system, tool",
        ),
        (
            message(json!({"role": "user", "content": " \n"})),
            "field 'messages[1].content' is missing or blank; leave messages without text out",
        ),
        (
            message(json!({"role": "user", "content": ["a"]})),
            "field 'messages[1].content' must be a string",
        ),
        (
            message(json!({"role": "user", "content": "a".repeat(MESSAGE_BYTES_MAX + 1)})),
            "field 'messages[1].content' has 1048577 bytes; the limit is 1048576",
        ),
        (
            message(json!({"role": "user", "content": "a\u{0}"})),
            "field 'messages[1].content' must not hold a NUL character",
        ),
        (
            message(json!({"role": "user", "content": "a", "timestamp": "soon"})),
            "field 'messages[1].timestamp' is no ISO 8601 time; write it as 2026-07-28T09:30:00Z",
        ),
        (
            message(json!({"role": "user", "content": "a", "timestamp": "2026-07-29T10:06:00Z"})),
            "field 'messages[1].timestamp' lies more than 5 minutes ahead",
        ),
        (
            message(json!({"role": "user", "content": "a", "message_id": "i".repeat(257)})),
            "field 'messages[1].message_id' has 257 bytes; the limit is 256",
        ),
    ] {
        assert_eq!(
            read(&text).err().as_deref(),
            Some(expect),
            "{}",
            &text[..text.len().min(80)]
        );
    }
}

#[test]
fn a_transcript_has_so_many_messages_and_names_so_many_ignored_members() {
    let one = r#"{"role":"user","content":"a"},"#;
    let many = |count: usize| format!("{{\"messages\":[{}]}}", one.repeat(count).trim_end_matches(','));
    assert_eq!(
        read(&many(HANDOFF_MESSAGES_MAX)).map(|found| found.messages.len()),
        Ok(HANDOFF_MESSAGES_MAX)
    );
    assert_eq!(
        read(&many(HANDOFF_MESSAGES_MAX + 1)).err().as_deref(),
        Some("field 'messages' has more than 100000 entries; hand the transcript off in parts")
    );
    let mut fields = Map::new();
    for number in 0..30 {
        fields.insert(format!("f{number:02}"), Value::Null);
    }
    fields.insert("messages".to_owned(), json!([]));
    let warnings = read(&Value::Object(fields).to_string())
        .expect("a transcript")
        .ignored
        .warnings();
    assert_eq!(
        (warnings.len(), warnings.last().map(String::as_str)),
        (21, Some("members of other names are ignored (10 times)"))
    );
}
