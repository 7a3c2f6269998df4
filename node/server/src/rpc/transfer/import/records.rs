//! From encoded records to records that may be proposed: read, checked, and decided about.

use std::collections::BTreeMap;

use waggle_memory::extract::RULES_VERSION;
use waggle_memory::handoff::content_of;
use waggle_memory::id::{MemoryId, Principal};
use waggle_memory::import::check::check;
use waggle_memory::import::prepare::Preparation;
use waggle_memory::import::{ImportStrategy, RecordKind, overwrites_newer};
use waggle_memory::memory::Memory;
use waggle_memory::outcome::Rejection;
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::scope::Scope;
use waggle_memory::statement::Statement;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::log::{decode_record, encode_record};
use waggle_proto::wire::import_head::Strategy;
use waggle_proto::wire::{ImportHead, RenamedMemory};

use crate::error::CallError;
use crate::rpc::store_memory::namespace_of;

/// Most bytes of one record in a command; a larger memory comes in several.
const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The member of metadata that names an author who is not believed.
const CLAIMED_AUTHOR: &str = "claimed_author";

/// Reads the records of one import.
pub(super) struct Reader {
    preparation: Preparation,
    strategy: ImportStrategy,
    is_trusted: bool,
    keeps_namespaces: bool,
    guards_newer: bool,
}

/// Records with their sizes.
pub(super) struct Read {
    pub(super) records: Vec<(Record, usize)>,
    /// Memories of a branch that were erased here, under the ids of the file: a branch revives nothing.
    pub(super) erased: Vec<MemoryId>,
    pub(super) renamed: Vec<RenamedMemory>,
}

impl Reader {
    pub(super) fn new(head: &ImportHead, importer: &Principal) -> Result<Self, CallError> {
        if let Some(project) = &head.project
            && (project.len() > Scope::FIELD_BYTES_MAX || project.contains('\0'))
        {
            let why = format!("at most {} bytes, no NUL", Scope::FIELD_BYTES_MAX);
            return Err(CallError::invalid("project", why));
        }
        let (strategy, new_ids) = match head.strategy() {
            Strategy::Merge => (ImportStrategy::Merge, false),
            Strategy::SkipExisting => (ImportStrategy::SkipExisting, false),
            Strategy::Overwrite => (ImportStrategy::Overwrite, false),
            Strategy::Branch => (ImportStrategy::Merge, true),
        };
        if new_ids && head.project.as_deref().unwrap_or_default().trim().is_empty() {
            return Err(CallError::invalid("project", "a branch needs a project of its own"));
        }
        Ok(Self {
            preparation: Preparation {
                author: (!head.keep_authors).then(|| importer.clone()),
                project: head.project.clone(),
                new_ids,
            },
            strategy,
            is_trusted: head.keep_authors,
            keeps_namespaces: head.keep_authors && head.project.is_none(),
            guards_newer: strategy == ImportStrategy::Overwrite && !head.overwrite_newer,
        })
    }

    pub(super) fn strategy(&self) -> ImportStrategy {
        self.strategy
    }

    pub(super) fn read(
        &self,
        rows: TenantRows<'_>,
        encoded: Vec<Vec<u8>>,
        renamed_max: usize,
    ) -> Result<Read, CallError> {
        let mut read = Read {
            records: Vec::with_capacity(encoded.len()),
            erased: Vec::new(),
            renamed: Vec::new(),
        };
        for bytes in encoded {
            let record = decode_record(&bytes)
                .map_err(|malformed| CallError::invalid("records", format!("a record cannot be read: {malformed}")))?;
            check(&record).map_err(|rejection| named(&record, rejection))?;
            if self.preparation.new_ids && self.is_erased(rows, &record, &mut read.erased) {
                continue;
            }
            if let Record::Memory(record) = &record
                && self.preparation.new_ids
                && read.renamed.len() < renamed_max
            {
                let (from, to) = (record.memory.id, self.preparation.new_memory_id(record.memory.id));
                read.renamed.push(RenamedMemory {
                    from: from.bytes().to_vec(),
                    to: to.bytes().to_vec(),
                });
            }
            let record = self.claimed(record)?;
            let Some(record) = self.preparation.prepare(record) else {
                continue;
            };
            for record in self.finished(rows, record)? {
                let bytes = encode_record(&record).len();
                read.records.push((record, bytes));
            }
        }
        Ok(read)
    }

    /// Whether a record is an erased memory, or a link to one.
    fn is_erased(&self, rows: TenantRows<'_>, record: &Record, erased: &mut Vec<MemoryId>) -> bool {
        let is_erased = |id: MemoryId| rows.tombstone(id).is_some();
        match record {
            Record::Memory(record) if is_erased(record.memory.id) => {
                // A long memory comes in several parts, one after the other.
                if erased.last() != Some(&record.memory.id) {
                    erased.push(record.memory.id);
                }
                true
            }
            Record::Link(link) => is_erased(link.source) || is_erased(link.target),
            _ => false,
        }
    }

    /// Where the file's author is not believed, he stays in the metadata.
    fn claimed(&self, record: Record) -> Result<Record, CallError> {
        let Record::Memory(mut record) = record else {
            return Ok(record);
        };
        if self.preparation.author.is_some() {
            let memory = &mut record.memory;
            memory.metadata = with_claimed_author(&memory.metadata, &memory.author.0);
            check(&Record::Memory(record.clone()))
                .map_err(|rejection| named(&Record::Memory(record.clone()), rejection))?;
        }
        Ok(Record::Memory(record))
    }

    /// What the rules read in a memory is read again here, unless the file is trusted as a whole: nobody else's file
    /// decides what merges with what.
    fn finished(&self, rows: TenantRows<'_>, record: Record) -> Result<Vec<Record>, CallError> {
        let mut record = match record {
            Record::Memory(record) => record,
            Record::Turn(turn, message) => {
                // A text that is not what the message said, such as a redacted one, is not that message.
                let message = message.filter(|message| message.content == content_of(turn.role, &turn.text));
                return Ok(vec![Record::Turn(turn, message)]);
            }
            other => return Ok(vec![other]),
        };
        if !self.keeps_namespaces || record.memory.namespace.is_empty() {
            record.memory.namespace = namespace_of(&record.memory.scope.project);
        }
        if !self.is_trusted || record.memory.rules_version == 0 {
            read_again(&mut record);
        }
        if self.guards_newer
            && let Some(there) = rows.memory(record.memory.id)
            && overwrites_newer(&there, &record.memory)
        {
            return Err(CallError::rejected(
                "authorization_failed",
                format!(
                    "node {} is stored in the later version {}; overwriting it needs the scope admin:write as well",
                    there.id, there.version
                ),
            ));
        }
        let parts = record.split(RECORD_BYTES_MAX).into_iter();
        Ok(parts.map(|part| Record::Memory(Box::new(part))).collect())
    }
}

/// Metadata, canonical JSON, with one member more. An author that the file itself claims stays.
fn with_claimed_author(metadata: &str, author: &str) -> String {
    let parsed: Option<BTreeMap<String, serde_json::Value>> = serde_json::from_str(metadata).ok();
    let mut members = parsed.unwrap_or_default();
    if author.is_empty() {
        return metadata.to_owned();
    }
    members
        .entry(CLAIMED_AUTHOR.to_owned())
        .or_insert_with(|| author.into());
    serde_json::to_string(&members).unwrap_or_else(|_| metadata.to_owned())
}

fn read_again(record: &mut MemoryRecord) {
    let observed_at = record
        .evidence
        .first()
        .map_or(record.memory.recorded_at, |(_, evidence)| evidence.observed_at);
    let memory = &mut record.memory;
    memory.statement = statement_of(memory, &memory.content, observed_at);
    memory.rules_version = RULES_VERSION;
    let wordings: Vec<Option<_>> = memory
        .aliases
        .iter()
        .map(|alias| {
            alias
                .exact
                .map(|_| statement_of(memory, &alias.text, observed_at).reading())
        })
        .collect();
    for (alias, exact) in memory.aliases.iter_mut().zip(wordings) {
        alias.exact = exact;
    }
}

fn statement_of(memory: &Memory, content: &str, observed_at: Millis) -> Statement {
    read_statement(&StatementInput {
        label: &memory.label,
        content,
        kind: memory.kind,
        author: &memory.author.0,
        observed_at,
    })
}

/// Which record breaks the rule.
fn named(record: &Record, rejection: Rejection) -> CallError {
    let id = match record {
        Record::Session(session) => session.session_id.escape_debug().to_string(),
        Record::Turn(turn, _) => turn.id.to_string(),
        Record::Memory(record) => record.memory.id.to_string(),
        Record::Link(link) => link.id.to_string(),
        Record::Redirect(redirect) => redirect.from.to_string(),
        Record::Tombstone(id, _) => id.to_string(),
    };
    let kind = RecordKind::of(record).word();
    match rejection {
        Rejection::Invalid { field, why } => CallError::invalid(field, format!("{kind} {id}: {why}")),
        other => other.into(),
    }
}
