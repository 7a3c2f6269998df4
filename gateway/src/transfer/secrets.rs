//! What an export does about texts that look like a secret: refuse it, put a mark in their place, or let them pass.

use waggle_memory::extract::secret_ranges;
use waggle_memory::record::{MemoryRecord, Record};

use super::description::SecretsPolicy;
use crate::fault::Fault;

/// Findings that a refusal names.
const FINDINGS_SHOWN: usize = 20;
const MARK: &str = "[secret:credential]";

/// The policy of one export, and what it met.
pub(crate) struct Screen {
    policy: SecretsPolicy,
    /// Places that were replaced.
    pub(crate) redactions: u64,
    found: Vec<String>,
    found_count: u64,
    stops_at_first: bool,
}

impl Screen {
    /// Names what it finds at the end, when nothing that was written has gone out yet.
    pub(crate) fn new(policy: SecretsPolicy) -> Self {
        Self {
            policy,
            stops_at_first: false,
            redactions: 0,
            found: Vec::new(),
            found_count: 0,
        }
    }

    /// Stops before the first record with a secret: what was written is gone.
    pub(crate) fn strict(policy: SecretsPolicy) -> Self {
        Self {
            stops_at_first: true,
            ..Self::new(policy)
        }
    }

    /// The record as it may be written.
    pub(crate) fn pass(&mut self, mut record: Record) -> Result<Record, Fault> {
        if self.policy == SecretsPolicy::Include {
            return Ok(record);
        }
        match &mut record {
            Record::Session(session) => {
                let id = session.session_id.escape_debug().to_string();
                self.text(&id, "session", "title", &mut session.title);
            }
            Record::Turn(turn) => self.text(&turn.id.to_string(), "transcript", "text", &mut turn.text),
            Record::Memory(record) => self.memory(record),
            Record::Link(link) => {
                let id = link.id.to_string();
                self.text(&id, "edge", "reason", &mut link.reason);
                if let Some(resolution) = &mut link.resolution {
                    self.text(&id, "edge", "note", &mut resolution.note);
                }
            }
            Record::Redirect(_) | Record::Tombstone(..) => {}
        }
        if self.stops_at_first {
            self.finish()?;
        }
        Ok(record)
    }

    fn memory(&mut self, record: &mut MemoryRecord) {
        let memory = &mut record.memory;
        let id = memory.id.to_string();
        self.text(&id, "node", "label", &mut memory.label);
        self.text(&id, "node", "content", &mut memory.content);
        self.text(&id, "node", "source_prompt", &mut memory.source_prompt);
        for alias in &mut memory.aliases {
            self.text(&id, "node", "aliases", &mut alias.text);
        }
        for (_, evidence) in &mut record.evidence {
            self.text(&id, "node", "evidence_records", &mut evidence.text);
        }
        for version in &mut record.versions {
            self.text(&id, "node", "versions", &mut version.label);
            self.text(&id, "node", "versions", &mut version.content);
        }
    }

    fn text(&mut self, id: &str, sort: &str, field: &str, text: &mut String) {
        let ranges = secret_ranges(text);
        if ranges.is_empty() {
            return;
        }
        let count = u64::try_from(ranges.len()).unwrap_or(u64::MAX);
        if self.policy == SecretsPolicy::Redact {
            *text = redacted(text, &ranges);
            self.redactions = self.redactions.saturating_add(count);
            return;
        }
        self.found_count = self.found_count.saturating_add(count);
        if self.found.len() < FINDINGS_SHOWN {
            self.found.push(format!("{sort} {id} in {field}"));
        }
    }

    /// After the last record: whether the export may go out.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        if self.found.is_empty() {
            return Ok(());
        }
        Err(Fault::new(
            "secrets_found",
            format!(
                "{} places look like a credential: {}; repeat with secrets: redact, or with secrets: include and a key \
                 that has graph:write",
                self.found_count,
                self.found.join(", ")
            ),
        )
        .with_field("secrets"))
    }
}

fn redacted(text: &str, ranges: &[(usize, usize)]) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end) in ranges {
        clean.push_str(text.get(at..*start).unwrap_or_default());
        clean.push_str(MARK);
        at = *end;
    }
    clean.push_str(text.get(at..).unwrap_or_default());
    clean
}
