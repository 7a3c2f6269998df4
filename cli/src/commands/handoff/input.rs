//! The transcript as it comes: spooled under its limit, read as one object or line by line, checked as a whole before
//! anything is sent.
//!
//! Lines are read twice from the spooled copy, once to check and once to send, so that a long transcript is never held in
//! memory.

mod spool;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Seek as _};

use serde::de::IgnoredAny;
use serde_json::Value;
use waggle_gateway::handoff::{
    Ignored, Malformed, Message, Scope, Transcript, check_scope_part, read_document, read_message, read_scope,
};
use waggle_memory::handoff::{Named, content_of, identity_of};
use waggle_memory::time::Millis;

use super::failure::Failed;
use super::{Args, InputFormat};

/// Longest line: a message of the largest size with every letter escaped, and its other members.
const LINE_BYTES_MAX: u64 = 8 * 1024 * 1024;

const NO_SESSION: &str = "no session_id: messages are told apart in the session without a name, which all hand-offs \
                          without one share; give --session-id";

/// A transcript that was read and found good.
pub(super) struct Input {
    scope: Scope,
    source: Source,
    count: usize,
    with_ids: bool,
    ignored: Ignored,
    now: Millis,
}

enum Source {
    Messages(Vec<Message>),
    Lines(File),
}

/// Reads and checks the whole input.
pub(super) fn read(args: &Args) -> Result<Input, Failed> {
    let now = now()?;
    for (name, value) in [
        ("project", &args.project),
        ("agent_id", &args.agent_id),
        ("session_id", &args.session_id),
    ] {
        if let Some(value) = value {
            check_scope_part(name, value).map_err(|problem| Failed::problem(&problem))?;
        }
    }
    let mut spooled = spool::spool(args)?;
    let mut input = match format_of(args.input_format, &mut spooled)? {
        InputFormat::Ndjson => lines(spooled, now)?,
        _ => document(spooled, now)?,
    };
    let scope = &mut input.scope;
    for (place, given) in [
        (&mut scope.project, &args.project),
        (&mut scope.agent_id, &args.agent_id),
        (&mut scope.session_id, &args.session_id),
    ] {
        if let Some(given) = given {
            place.clone_from(given);
        }
    }
    Ok(input)
}

/// The wall clock, for timestamps that lie ahead.
fn now() -> Result<Millis, Failed> {
    use waggle_config::runtime::clock::{Clock as _, System};
    let now = System::new().wall();
    if now.0 > 0 {
        Ok(now)
    } else {
        Err(Failed::internal("the clock of this machine stands before 1970"))
    }
}

/// One object with all messages, unless the first line is an object of its own without `messages`.
fn format_of(asked: InputFormat, spooled: &mut File) -> Result<InputFormat, Failed> {
    if asked != InputFormat::Auto {
        return Ok(asked);
    }
    let mut reader = BufReader::new(&mut *spooled);
    let mut first = Vec::new();
    loop {
        first.clear();
        let read = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut first);
        if read.map_err(unreadable)? == 0 || !first.trim_ascii().is_empty() {
            break;
        }
    }
    drop(reader);
    spooled.rewind().map_err(unreadable)?;
    let members: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_slice(&first);
    Ok(match members {
        Ok(members) if !members.contains_key("messages") => InputFormat::Ndjson,
        _ => InputFormat::Json,
    })
}

fn unreadable(error: std::io::Error) -> Failed {
    Failed::internal(format!("read the spooled input: {error}"))
}

fn document(mut spooled: File, now: Millis) -> Result<Input, Failed> {
    let mut bytes = Vec::new();
    spooled.read_to_end(&mut bytes).map_err(unreadable)?;
    let text = text_of(&bytes, 1)?;
    let Transcript {
        scope,
        messages,
        ignored,
    } = read_document(text, now).map_err(|malformed| match malformed {
        Malformed::Json { line, column, why } => Failed::malformed(line, column, &why),
        Malformed::Content(problem) => Failed::problem(&problem),
    })?;
    let mut seen = Identities::default();
    for (index, message) in messages.iter().enumerate() {
        seen.check(index, message)?;
    }
    Ok(Input {
        scope,
        count: messages.len(),
        with_ids: seen.with_ids,
        source: Source::Messages(messages),
        ignored,
        now,
    })
}

fn lines(spooled: File, now: Millis) -> Result<Input, Failed> {
    let mut input = Input {
        scope: Scope::default(),
        source: Source::Lines(spooled),
        count: 0,
        with_ids: false,
        ignored: Ignored::default(),
        now,
    };
    let (mut scope, mut ignored) = (Scope::default(), Ignored::default());
    let (mut seen, mut count) = (Identities::default(), 0);
    input.each_line(|number, value| {
        if number == 0 && is_scope(&value) {
            let fields = value.as_object().cloned().unwrap_or_default();
            scope = read_scope(&fields, &mut ignored).map_err(|problem| Failed::problem(&problem))?;
            return Ok(true);
        }
        let message = read_message(count, &value, now, &mut ignored).map_err(|problem| Failed::problem(&problem))?;
        seen.check(count, &message)?;
        count += 1;
        Ok(true)
    })?;
    Ok(Input {
        scope,
        ignored,
        count,
        with_ids: seen.with_ids,
        ..input
    })
}

/// The first line may hold the scope: an object that is no message.
fn is_scope(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|fields| !fields.contains_key("role") && !fields.contains_key("content"))
}

fn text_of(bytes: &[u8], first_line: usize) -> Result<&str, Failed> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = good.iter().filter(|byte| **byte == b'\n').count();
        let column = good.iter().rev().take_while(|byte| **byte != b'\n').count();
        Failed::malformed(first_line + line, column + 1, "it is not UTF-8")
    })
}

impl Input {
    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether any message has a name of its own, and so may clash with a stored one.
    pub(super) fn has_ids(&self) -> bool {
        self.with_ids
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.ignored.warnings();
        if self.scope.session_id.is_empty() && self.count > 0 {
            warnings.push(NO_SESSION.to_owned());
        }
        warnings
    }

    /// Gives every message in order, until `take` says that it wants no more.
    pub(super) fn each(&mut self, mut take: impl FnMut(Message) -> Result<(), Failed>) -> Result<(), Failed> {
        if let Source::Messages(messages) = &self.source {
            return messages.iter().try_for_each(|message| take(message.clone()));
        }
        let (now, mut count) = (self.now, 0);
        self.each_line(|number, value| {
            if number == 0 && is_scope(&value) {
                return Ok(true);
            }
            let message = read_message(count, &value, now, &mut Ignored::default());
            count += 1;
            take(message.map_err(|problem| Failed::problem(&problem))?)?;
            Ok(true)
        })
    }

    /// Gives the lines that are not blank, numbered from 0 without the blank ones, until `take` says no.
    fn each_line(&mut self, mut take: impl FnMut(usize, Value) -> Result<bool, Failed>) -> Result<(), Failed> {
        let Source::Lines(spooled) = &mut self.source else {
            return Ok(());
        };
        spooled.rewind().map_err(unreadable)?;
        let mut reader = BufReader::new(spooled);
        let (mut line, mut number, mut bytes) = (0, 0, Vec::new());
        loop {
            line += 1;
            bytes.clear();
            let limit = LINE_BYTES_MAX + 1;
            let read = (&mut reader)
                .take(limit)
                .read_until(b'\n', &mut bytes)
                .map_err(unreadable)?;
            if read == 0 {
                return Ok(());
            }
            if bytes.len() as u64 == limit {
                return Err(Failed::malformed(line, 1, "the line is longer than 8 MiB"));
            }
            let text = text_of(&bytes, line)?.trim();
            if text.is_empty() {
                continue;
            }
            let value: Value = serde_json::from_str(text).map_err(|error| {
                let sentence = error.to_string();
                let why = sentence
                    .rsplit_once(" at line ")
                    .map_or(sentence.as_str(), |(what, _)| what);
                Failed::malformed(line, error.column(), why)
            })?;
            if !take(number, value)? {
                return Ok(());
            }
            number += 1;
        }
    }
}

/// Names of messages that were seen, so that two messages under one name are found before anything is sent.
#[derive(Default)]
struct Identities {
    seen: HashMap<waggle_memory::id::MessageId, waggle_memory::statement::Fingerprint>,
    with_ids: bool,
}

impl Identities {
    fn check(&mut self, index: usize, message: &Message) -> Result<(), Failed> {
        if message.message_id.is_empty() {
            return Ok(());
        }
        self.with_ids = true;
        let identity = identity_of(Named::ById(&message.message_id), message.role, &message.content);
        let content = content_of(message.role, &message.content);
        match self.seen.insert(identity, content) {
            Some(earlier) if earlier != content => Err(Failed::reused(index)),
            _ => Ok(()),
        }
    }
}
