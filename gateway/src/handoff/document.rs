//! One JSON object with a whole transcript.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use waggle_memory::time::Millis;

use super::{Problem, Transcript, read_message};

/// Why a text is no transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is no JSON, or no object.
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// In words.
        why: String,
    },
    /// Something in it cannot be taken.
    Content(Problem),
}

/// Reads a transcript. The first thing that is wrong ends it.
pub fn read_document(text: &str, now: Millis) -> Result<Transcript, Malformed> {
    let mut reading = Reading {
        now,
        transcript: Transcript::default(),
        problem: None,
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let outcome = json.deserialize_map(&mut reading).and_then(|()| json.end());
    match (outcome, reading.problem) {
        (_, Some(problem)) => Err(Malformed::Content(problem)),
        (Err(error), None) => Err(Malformed::Json {
            line: error.line(),
            column: error.column(),
            why: without_place(&error.to_string()).to_owned(),
        }),
        (Ok(()), None) => Ok(reading.transcript),
    }
}

/// The parser's sentence without "at line 1 column 2".
fn without_place(sentence: &str) -> &str {
    sentence.rsplit_once(" at line ").map_or(sentence, |(what, _)| what)
}

struct Reading {
    now: Millis,
    transcript: Transcript,
    /// Kept beside the parser's own error, which has room for words only.
    problem: Option<Problem>,
}

impl<'de> Visitor<'de> for &mut Reading {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with messages")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut messages_seen = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == "messages" {
                messages_seen = true;
                map.next_value_seed(Messages(&mut *self))?;
                continue;
            }
            let value: Value = map.next_value()?;
            match self.transcript.scope.set(&name, &value) {
                Ok(true) => {}
                Ok(false) => self.transcript.ignored.note(&name, false),
                Err(problem) => return Err(self.stopped(problem)),
            }
        }
        if messages_seen {
            Ok(())
        } else {
            Err(self.stopped(Problem::new(None, "messages", "is missing")))
        }
    }
}

impl Reading {
    fn stopped<E: serde::de::Error>(&mut self, problem: Problem) -> E {
        let error = E::custom(&problem);
        self.problem.get_or_insert(problem);
        error
    }
}

struct Messages<'a>(&'a mut Reading);

impl<'de> DeserializeSeed<'de> for Messages<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Messages<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let reading = self.0;
        if !reading.transcript.messages.is_empty() {
            return Err(A::Error::custom("messages are given twice"));
        }
        while let Some(value) = list.next_element::<Value>()? {
            let index = reading.transcript.messages.len();
            match read_message(index, &value, reading.now, &mut reading.transcript.ignored) {
                Ok(message) => reading.transcript.messages.push(message),
                Err(problem) => return Err(reading.stopped(problem)),
            }
        }
        Ok(())
    }
}
