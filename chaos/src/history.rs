//! What the clients did and what they were told: one record for each operation, in a file of JSON lines.
//!
//! A record says no more than its client knows. No answer means [`Outcome::Unknown`]: the operation happened, or did not,
//! or will happen later, so it has no end. Times are those of the recording process, whose clock no fault touches.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Microseconds since the history began.
pub type Micros = u64;

/// What a client asked for. Values are numbers that are written once in a run, so that a read says who wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Action {
    /// Store the memory of this key.
    Create {
        value: u64,
    },
    /// Whatever version it has.
    Write {
        value: u64,
    },
    /// Only if it still has this version.
    Cas {
        expected: u32,
        value: u64,
    },
    Delete,
    Read,
    /// Recall by a question that names the key.
    Query,
    /// A link from this key's memory to another's.
    Link {
        to: String,
    },
}

impl Action {
    /// Whether it changes something if it happens.
    pub fn writes(&self) -> bool {
        !matches!(self, Self::Read | Self::Query)
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Write { .. } => "write",
            Self::Cas { .. } => "cas",
            Self::Delete => "delete",
            Self::Read => "read",
            Self::Query => "query",
            Self::Link { .. } => "link",
        }
    }
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum Answer {
    /// `fresh`: this very call made it; otherwise it was there before.
    Created { id: String, version: u32, fresh: bool },
    /// A write happened and made this version.
    Updated { version: u32 },
    /// Refused, because the version is another one.
    Conflict { current: u32 },
    /// There is no such memory, or no more.
    Absent,
    /// `now`: by this very call.
    Deleted { now: bool },
    /// The memory as it is, and the values of its versions from `first` on.
    Value {
        version: u32,
        value: u64,
        first: u32,
        versions: Vec<u64>,
    },
    /// The ids of the memories that a question found with the text of this key.
    Found { ids: Vec<String> },
    /// The link's id.
    Linked { id: String, fresh: bool },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Ok {
        answer: Answer,
    },
    /// It certainly had no effect.
    Fail {
        code: String,
    },
    /// It may have had its effect, or have it yet.
    Unknown {
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub process: u32,
    pub request_id: String,
    /// Of the memory: `tenant/name`.
    pub key: String,
    pub action: Action,
    pub start: Micros,
    /// None while the outcome is unknown.
    pub end: Option<Micros>,
    /// Sent how often, under the same request id.
    pub attempts: u32,
    /// Another sending of an operation that was answered before.
    #[serde(default)]
    pub repeat: bool,
    pub outcome: Outcome,
}

impl Operation {
    pub fn answer(&self) -> Option<&Answer> {
        match &self.outcome {
            Outcome::Ok { answer } => Some(answer),
            Outcome::Fail { .. } | Outcome::Unknown { .. } => None,
        }
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self.outcome, Outcome::Unknown { .. })
    }

    pub fn is_ok(&self) -> bool {
        matches!(self.outcome, Outcome::Ok { .. })
    }
}

/// Takes records from many clients and writes each at once: a history that ends early is still a history.
pub struct Recorder {
    began: Instant,
    file: Mutex<BufWriter<File>>,
    written: AtomicU64,
}

impl Recorder {
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("make {}", path.display()))?;
        Ok(Self {
            began: Instant::now(),
            file: Mutex::new(BufWriter::new(file)),
            written: AtomicU64::new(0),
        })
    }

    pub fn now(&self) -> Micros {
        micros(self.began.elapsed())
    }

    pub fn record(&self, operation: &Operation) -> Result<()> {
        let mut line = serde_json::to_vec(operation).context("write a record")?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).context("write the history")?;
        self.written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// From here on a reader of the file sees all records.
    pub fn flush(&self) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.flush().context("write the history")
    }
}

pub fn read(path: &Path) -> Result<Vec<Operation>> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let mut operations = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(|| format!("read {}", path.display()))?;
        let operation =
            serde_json::from_str(&line).with_context(|| format!("{}, line {}: {line}", path.display(), number + 1))?;
        operations.push(operation);
    }
    Ok(operations)
}

pub fn micros(time: Duration) -> Micros {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_read_as_it_was_written() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("history.jsonl");
        let recorder = Recorder::create(&path)?;
        let base = Operation {
            process: 3,
            request_id: "r-1".to_owned(),
            key: "t/a".to_owned(),
            action: Action::Cas { expected: 4, value: 9 },
            start: recorder.now(),
            end: None,
            attempts: 2,
            repeat: false,
            outcome: Outcome::Unknown {
                why: "no answer".to_owned(),
            },
        };
        let answers = [
            Answer::Created {
                id: "x".to_owned(),
                version: 1,
                fresh: true,
            },
            Answer::Conflict { current: 5 },
            Answer::Absent,
            Answer::Value {
                version: 2,
                value: 9,
                first: 1,
                versions: vec![7, 9],
            },
        ];
        let mut all = vec![base.clone()];
        all.extend(answers.into_iter().map(|answer| Operation {
            end: Some(base.start + 5),
            outcome: Outcome::Ok { answer },
            ..base.clone()
        }));
        for operation in &all {
            recorder.record(operation)?;
        }
        recorder.flush()?;
        assert_eq!(recorder.written(), 5);
        assert_eq!(read(&path)?, all);
        Ok(())
    }
}
