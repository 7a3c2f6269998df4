//! `waggle replay`: the turns that a memory rests on, verbatim.

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::client::{Client, ClientArgs};
use crate::output::{OutputArgs, print};

/// A page holds up to 200 entries; this many pages are more than any walk has.
const PAGES_MAX: usize = 1_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The memory.
    #[arg(long, value_name = "ID")]
    memory_id: String,
    /// Steps along reflects_on. Default: as many as the policy allows.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    depth: Option<i64>,
    /// Do not cut long texts.
    #[arg(long)]
    verbose: bool,
    /// Whole turns instead of the spans that memories rest on.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let client = args.client.public()?;
    let mut body = Map::new();
    body.insert("memory_id".into(), json!(args.memory_id));
    if let Some(depth) = args.depth {
        body.insert("depth".into(), json!(depth));
    }
    body.insert("verbose".into(), json!(args.verbose));
    body.insert("full".into(), json!(args.full));
    let replay = all_pages(&client, body)?;
    match args.output.format() {
        crate::output::Format::Json => print(&format!("{replay:#}\n")),
        crate::output::Format::Table => print(&readable(&replay)),
    }
}

/// One answer of all pages: its entries in order, partial if one of them was.
fn all_pages(client: &Client, mut body: Map<String, Value>) -> Result<Value> {
    let mut whole = Value::Null;
    for _ in 0..PAGES_MAX {
        let mut page = client.post("/api/memory_replay", &Value::Object(body.clone()))?;
        let cursor = page.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
        if whole.is_null() {
            whole = page;
        } else {
            append(&mut whole, &mut page);
        }
        match cursor {
            Some(cursor) => body.insert("cursor".into(), json!(cursor)),
            None => break,
        };
    }
    if let Some(fields) = whole.as_object_mut() {
        for of_a_page in ["next_cursor", "truncated", "token_estimate"] {
            fields.remove(of_a_page);
        }
    }
    Ok(whole)
}

fn append(whole: &mut Value, page: &mut Value) {
    let partial = page.get("partial") == Some(&Value::Bool(true));
    let more = page
        .get_mut("entries")
        .and_then(Value::as_array_mut)
        .map(std::mem::take);
    if let (Some(entries), Some(more)) = (whole.get_mut("entries").and_then(Value::as_array_mut), more) {
        entries.extend(more);
    }
    if partial && let Some(fields) = whole.as_object_mut() {
        fields.insert("partial".into(), json!(true));
    }
}

/// A line about each turn, then what was said.
fn readable(replay: &Value) -> String {
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let entries = replay
        .get("entries")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if entries.is_empty() {
        let why = match replay.get("empty_reason").and_then(Value::as_str) {
            Some("not_found") => "no such memory",
            _ => "this memory rests on no transcript",
        };
        return format!("{why}\n");
    }
    let mut shown = String::new();
    for entry in entries {
        if entry.get("content").is_none_or(Value::is_null) {
            let (id, status) = (text(entry, "transcript_id"), text(entry, "status"));
            shown.push_str(&format!("{id}: {status}\n\n"));
            continue;
        }
        let session = text(entry, "session");
        let place = if session.is_empty() {
            String::new()
        } else {
            format!(" in session {session}")
        };
        let (when, role) = (text(entry, "observed_at"), text(entry, "role"));
        let cut = if text(entry, "status") == "truncated" {
            " (cut; --verbose shows all)"
        } else {
            ""
        };
        shown.push_str(&format!("{when} {role}{place}{cut}\n{}\n\n", text(entry, "content")));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_one_answer() {
        let mut whole = json!({"entries": [{"n": 1}], "partial": false});
        append(&mut whole, &mut json!({"entries": [{"n": 2}], "partial": true}));
        assert_eq!(whole, json!({"entries": [{"n": 1}, {"n": 2}], "partial": true}));
    }

    #[test]
    fn a_person_reads_who_said_what_and_what_is_missing() {
        let replay = json!({"entries": [
            {"observed_at": "2026-03-01T09:00:00.000Z", "role": "user", "session": "s1", "content": "we chose Postgres", "status": "ok"},
            {"transcript_id": "t2", "content": null, "status": "erased"},
        ]});
        assert_eq!(
            readable(&replay),
            "2026-03-01T09:00:00.000Z user in session s1\nwe chose Postgres\n\nt2: erased\n\n"
        );
        assert_eq!(
            readable(&json!({"entries": [], "empty_reason": "not_found"})),
            "no such memory\n"
        );
    }
}
