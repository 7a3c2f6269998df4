//! What is said about each client, for people and for programs.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::connect::clients::Client;
use crate::connect::malformed::Malformed;
use crate::connect::places::Places;
use crate::connect::plan::State;
use crate::failure::{self, Failure};
use crate::output::{cell, table};

/// One client, or one file with rules.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) client: &'static Client,
    pub(crate) file: Option<PathBuf>,
    pub(crate) state: State,
    pub(crate) changed: bool,
    pub(crate) backup: Option<PathBuf>,
    pub(crate) diff: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) next: Vec<String>,
    /// Why it did not work.
    pub(crate) problem: Option<String>,
    /// Where in the file.
    pub(crate) at: Option<Malformed>,
    pub(crate) exit: u8,
}

impl Line {
    pub(crate) fn new(client: &'static Client, file: Option<PathBuf>, state: State) -> Self {
        Self {
            client,
            file,
            state,
            changed: false,
            backup: None,
            diff: String::new(),
            warnings: Vec::new(),
            next: Vec::new(),
            problem: None,
            at: None,
            exit: 0,
        }
    }

    pub(crate) fn malformed(client: &'static Client, file: PathBuf, at: Malformed) -> Self {
        Self {
            problem: Some(format!("{}, {at}", file.display())),
            at: Some(at),
            exit: failure::CONFIGURATION,
            next: vec!["correct the file; it was left as it is".to_owned()],
            ..Self::new(client, Some(file), State::Unreadable)
        }
    }

    pub(crate) fn failed(client: &'static Client, file: Option<PathBuf>, why: String, exit: u8) -> Self {
        Self {
            problem: Some(why),
            exit,
            ..Self::new(client, file, State::Unreadable)
        }
    }

    pub(crate) fn json(&self) -> Value {
        let mut fields = json!({
            "client": self.client.id,
            "name": self.client.name,
            "state": self.state.word(),
            "file": self.file,
            "changed": self.changed,
            "backup": self.backup,
            "warnings": self.warnings,
            "next": self.next,
        });
        if let Some(problem) = &self.problem {
            fields["problem"] = json!(problem);
        }
        if let Some(at) = &self.at {
            fields["line"] = json!(at.line);
            fields["column"] = json!(at.column);
        }
        if !self.diff.is_empty() {
            fields["diff"] = json!(self.diff);
        }
        fields
    }
}

pub(crate) fn screen(lines: &[Line], places: &Places) -> String {
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            let file = line.file.as_ref().map(|path| places.short(path));
            vec![
                line.client.id.to_owned(),
                line.state.word().to_owned(),
                if line.changed { "yes" } else { "no" }.to_owned(),
                cell(&json!(file)),
            ]
        })
        .collect();
    let mut text = table(&["CLIENT", "STATE", "CHANGED", "FILE"], &rows);
    for line in lines {
        // Writing to a String cannot fail.
        if !line.diff.is_empty() {
            let _ = write!(text, "\n{}\n{}", line.client.id, line.diff);
        }
        if let Some(backup) = &line.backup {
            let _ = writeln!(text, "{}: backup {}", line.client.id, places.short(backup));
        }
        if let Some(problem) = &line.problem {
            let _ = writeln!(text, "{}: {problem}", line.client.id);
        }
        for warning in &line.warnings {
            let _ = writeln!(text, "{}: warning: {warning}", line.client.id);
        }
        for next in &line.next {
            let _ = writeln!(text, "{}: {next}", line.client.id);
        }
    }
    text
}

/// The exit of the whole: that of the only failure, 8 where some worked and some did not.
pub(crate) fn outcome(lines: &[Line]) -> anyhow::Result<()> {
    let failed: Vec<&Line> = lines.iter().filter(|line| line.exit != 0).collect();
    let Some(first) = failed.first() else { return Ok(()) };
    let alike = failed.iter().all(|line| line.exit == first.exit);
    // That some are connected does not make a failed check half of a success.
    let exit = if alike && (failed.len() == lines.len() || first.exit == failure::CHECK_FAILED) {
        first.exit
    } else {
        failure::PARTIAL
    };
    let problem = first.problem.clone().unwrap_or_else(|| first.state.word().to_owned());
    let what = match failed.len() {
        1 => format!("{}: {problem}", first.client.id),
        count => format!(
            "{count} of {} clients failed; the first, {}: {problem}",
            lines.len(),
            first.client.id
        ),
    };
    let failure = Failure::new(exit, what);
    Err(match first.next.first() {
        Some(next) => failure.next(next.clone()),
        None => failure,
    }
    .into())
}
