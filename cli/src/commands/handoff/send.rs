//! The transcript on its way to the cluster: in parts that one call has time for. The cluster pairs a part with what it
//! stored before, so parts give what the whole would.

use std::time::Duration;

use serde_json::{Map, Value, json};
use waggle_gateway::handoff::{Message, Scope};
use waggle_memory::kind::Role;

use super::Args;
use super::failure::Failed;
use super::input::Input;
use super::report::Report;
use crate::client::Client;
use crate::failure::Failure;

const PATH: &str = "/api/transcripts/handoff";
/// Times that one part is sent again while the cluster says that it made progress.
const CONTINUED_MAX: usize = 100;
/// Times that one part is sent again when the cluster could not take it.
const REPEATED_MAX: usize = 5;
/// Longest wait before that.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How large a part gets. From `good` on it ends before the next user message, at `most` anywhere.
#[derive(Clone, Copy, Debug)]
struct Size {
    messages_good: usize,
    messages_most: usize,
    bytes_good: usize,
    bytes_most: usize,
}

/// Extraction takes some milliseconds for each logical turn, and one call has half a minute.
const TO_STORE: Size = Size {
    messages_good: 200,
    messages_most: 400,
    bytes_good: 1024 * 1024,
    bytes_most: 2 * 1024 * 1024,
};
/// Looking messages up takes next to nothing; the body is what counts.
const TO_CHECK: Size = Size {
    messages_good: 20_000,
    messages_most: 40_000,
    bytes_good: 1024 * 1024,
    bytes_most: 2 * 1024 * 1024,
};

/// Messages of one call.
#[derive(Default)]
struct Part {
    first_position: usize,
    messages: Vec<Message>,
    bytes: usize,
}

impl Part {
    /// Whether the part ends before `next`.
    fn ends_before(&self, next: &Message, size: Size) -> bool {
        let after = self.bytes + next.content.len();
        if self.messages.is_empty() {
            return false;
        }
        let full = self.messages.len() >= size.messages_most || after > size.bytes_most;
        let good = self.messages.len() >= size.messages_good || self.bytes >= size.bytes_good;
        let answered = self.messages.last().is_some_and(|last| last.role != Role::User);
        full || (good && answered && next.role == Role::User)
    }

    fn push(&mut self, message: Message) {
        self.bytes += message.content.len();
        self.messages.push(message);
    }

    /// The next part, empty so far.
    fn next(&self) -> Self {
        Self {
            first_position: self.first_position + self.messages.len(),
            ..Self::default()
        }
    }

    fn body(&self, scope: &Scope) -> Value {
        let messages: Vec<Value> = self.messages.iter().map(message_json).collect();
        json!({
            "project": scope.project,
            "agent_id": scope.agent_id,
            "session_id": scope.session_id,
            "messages": messages,
        })
    }
}

fn message_json(message: &Message) -> Value {
    let mut fields = Map::new();
    fields.insert("role".to_owned(), json!(message.role.word()));
    fields.insert("content".to_owned(), json!(message.content));
    if let Some(at) = message.timestamp {
        fields.insert("timestamp".to_owned(), json!(at.to_string()));
    }
    if !message.message_id.is_empty() {
        fields.insert("message_id".to_owned(), json!(message.message_id));
    }
    Value::Object(fields)
}

/// Sends everything and adds up what the cluster says.
pub(super) fn send(client: &Client, args: &Args, input: &mut Input, report: &mut Report) -> Result<(), Failed> {
    if args.dry_run {
        return in_parts(input, TO_CHECK, |scope, part| {
            let answer =
                call(client, args, scope, part, true)?.map_err(|(status, body)| Failed::refused(status, &body))?;
            report.add(&answer);
            Ok(())
        });
    }
    // A clash with a stored message in a late part must be known before the first part is stored.
    if input.has_ids() && input.count() > TO_STORE.messages_good {
        in_parts(input, TO_CHECK, |scope, part| {
            let answer = call(client, args, scope, part, true)?;
            answer
                .map(drop)
                .map_err(|(status, body)| Failed::refused(status, &body))
        })?;
    }
    in_parts(input, TO_STORE, |scope, part| store(client, args, scope, part, report))
}

fn in_parts(
    input: &mut Input,
    size: Size,
    mut send: impl FnMut(&Scope, &Part) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let scope = input.scope().clone();
    let mut part = Part::default();
    input.each(|message| {
        if part.ends_before(&message, size) {
            send(&scope, &part)?;
            part = part.next();
        }
        part.push(message);
        Ok(())
    })?;
    if part.messages.is_empty() {
        return Ok(());
    }
    send(&scope, &part)
}

/// Stores one part, however many calls it takes.
fn store(client: &Client, args: &Args, scope: &Scope, part: &Part, report: &mut Report) -> Result<(), Failed> {
    let (mut continued, mut repeated) = (0, 0);
    // Records that an unfinished call of this part stored or skipped: the next call skips them, which is no news.
    let mut seen = 0;
    loop {
        let refused = match call(client, args, scope, part, false)? {
            Ok(answer) => {
                report.add(&answer);
                report.not_skipped(seen);
                return Ok(());
            }
            Err(refused) => refused,
        };
        let (status, body) = refused;
        let again = matches!(status, 429 | 503);
        let failed = || {
            let stored = report.count("transcript_records_written");
            let failed = Failed::refused(status, &body);
            if stored > 0 {
                failed.with("transcript_records_written", stored)
            } else {
                failed
            }
        };
        match body.get("details").filter(|_| again) {
            Some(done) if continued < CONTINUED_MAX => {
                continued += 1;
                let mut done = done.clone();
                if let Some(fields) = done.as_object_mut() {
                    // Counted by every call of a part; the last one tells.
                    fields.remove("assistant_blocks_skipped");
                }
                report.add(&done);
                report.not_skipped(seen);
                let number = |name: &str| done.get(name).and_then(Value::as_u64).unwrap_or(0);
                seen = number("transcript_records_written") + number("transcript_records_skipped");
            }
            None if again && repeated < REPEATED_MAX => {
                repeated += 1;
                pause(&body)?;
            }
            _ => return Err(failed()),
        }
    }
}

type Answer = Result<Value, (u16, Value)>;

fn call(client: &Client, args: &Args, scope: &Scope, part: &Part, dry_run: bool) -> Result<Answer, Failed> {
    let path = format!(
        "{PATH}?first_position={}&tool_boundary_splits_blocks={}&dry_run={dry_run}",
        part.first_position, args.tool_boundary_splits_blocks
    );
    let (status, body) = client
        .exchange(&path, &part.body(scope))
        .map_err(|error| Failed::unreachable(&Failure::from_error(&error)))?;
    Ok(if (200..300).contains(&status) {
        Ok(body)
    } else {
        Err((status, body))
    })
}

/// As long as the cluster asks for.
fn pause(body: &Value) -> Result<(), Failed> {
    let seconds = body.get("retry_after_s").and_then(Value::as_u64).unwrap_or(1);
    let wait = Duration::from_secs(seconds).min(PAUSE_MAX);
    crate::client::block_on(async {
        tokio::time::sleep(wait).await;
        Ok(())
    })
    .map_err(|error| Failed::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of the parts of messages that are given by role letter, each of `bytes` bytes.
    fn parts(letters: &str, bytes: usize, size: Size) -> Vec<usize> {
        let (mut lengths, mut part) = (Vec::new(), Part::default());
        for letter in letters.chars() {
            let message = Message {
                role: if letter == 'u' { Role::User } else { Role::Assistant },
                content: "x".repeat(bytes),
                timestamp: None,
                message_id: String::new(),
            };
            if part.ends_before(&message, size) {
                lengths.push(part.messages.len());
                let next = part.next();
                assert_eq!(next.first_position, lengths.iter().sum::<usize>());
                part = next;
            }
            part.push(message);
        }
        lengths.push(part.messages.len());
        lengths
    }

    #[test]
    fn a_part_ends_before_a_user_message_if_it_can() {
        let size = Size {
            messages_good: 3,
            messages_most: 6,
            bytes_good: 30,
            bytes_most: 60,
        };
        assert_eq!(parts("uauaua", 1, size), [4, 2]);
        assert_eq!(parts("uuuuuuuua", 1, size), [6, 3]);
        assert_eq!(parts("uaaaaaaaa", 1, size), [6, 3]);
        assert_eq!(parts("uaua", 20, size), [2, 2]);
        assert_eq!(parts("uuu", 50, size), [1, 1, 1]);
        assert_eq!(parts("u", 100, size), [1]);
    }
}
