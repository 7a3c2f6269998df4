//! What an export does about texts that look like a secret: refuse it, put a mark in their place, or let them pass.

use waggle_formats::secrets::{redact, scan};
use waggle_memory::record::Record;

use super::description::SecretsPolicy;
use crate::fault::Fault;

/// Findings that a refusal names.
const FINDINGS_SHOWN: usize = 20;

/// The policy of one export, and what it met.
pub(crate) struct Screen {
    policy: SecretsPolicy,
    /// Places that were replaced.
    pub(crate) redactions: u64,
    found: Vec<String>,
    found_count: u64,
}

impl Screen {
    /// Names what it finds at the end, when nothing that was written has gone out yet.
    pub(crate) fn new(policy: SecretsPolicy) -> Self {
        Self {
            policy,
            redactions: 0,
            found: Vec::new(),
            found_count: 0,
        }
    }

    /// The record as it may be written.
    pub(crate) fn pass(&mut self, mut record: Record) -> Result<Record, Fault> {
        match self.policy {
            SecretsPolicy::Include => {}
            SecretsPolicy::Redact => {
                let count = u64::try_from(redact(&mut record)).unwrap_or(u64::MAX);
                self.redactions = self.redactions.saturating_add(count);
            }
            SecretsPolicy::Refuse => self.look(&record),
        }
        Ok(record)
    }

    fn look(&mut self, record: &Record) {
        for finding in scan(record) {
            self.found_count = self.found_count.saturating_add(1);
            if self.found.len() < FINDINGS_SHOWN {
                self.found.push(finding.to_string());
            }
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
