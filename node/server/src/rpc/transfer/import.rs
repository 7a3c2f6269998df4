//! Records to take in. What fits into one command is all or nothing; a longer import goes on command by command, and its
//! repetition goes on where it ended, because what is there already stays as it is.

mod batch;
mod records;

use std::sync::Arc;

use tonic::Streaming;
use waggle_memory::apply::apply;
use waggle_memory::command::{Command, Entry};
use waggle_memory::import::{ConflictReason, ImportRecords, Imported, RecordKind};
use waggle_memory::outcome::Outcome;
use waggle_memory::tables::overlay::Overlay;
use waggle_memory::tables::typed;
use waggle_proto::wire::{self, ImportCount, ImportHead, ImportPart, ImportReply, RenamedMemory};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use batch::Batch;
use records::Reader;

/// Most records of an import that is only tried out: all of them are held until its end.
const TRIED_RECORDS_MAX: usize = 100_000;
/// Most bytes of those.
const TRIED_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Most renamed memories in an answer.
const RENAMED_MAX: usize = 1_000;

pub(super) async fn handle(engine: &Arc<Engine>, mut parts: Streaming<ImportPart>) -> Result<ImportReply, CallError> {
    let first = next(&mut parts)
        .await?
        .ok_or_else(|| CallError::invalid("head", "the stream of an import is empty"))?;
    let mut import = Import::begin(engine, &first)?;
    let mut part = Some(first);
    while let Some(found) = part {
        import.take(found.records).await?;
        if found.last {
            return import.finish().await;
        }
        part = next(&mut parts).await?;
    }
    Err(CallError::rejected(
        "validation_failed",
        "the stream of records broke off before its last part; repeat the import",
    ))
}

async fn next(parts: &mut Streaming<ImportPart>) -> Result<Option<ImportPart>, CallError> {
    parts.message().await.map_err(|status| {
        CallError::rejected(
            "validation_failed",
            format!(
                "the stream of records broke off: {}; repeat the import",
                status.message()
            ),
        )
    })
}

struct Import {
    call: Call,
    head: ImportHead,
    reader: Arc<Reader>,
    batch: Batch,
    /// Commands of an import that is only tried out.
    tried: Vec<ImportRecords>,
    tried_bytes: usize,
    report: Imported,
    /// What a branch left out because it was erased here.
    erased: Imported,
    commands: u32,
    renamed: Vec<RenamedMemory>,
}

impl Import {
    fn begin(engine: &Arc<Engine>, first: &ImportPart) -> Result<Self, CallError> {
        let head = first
            .head
            .clone()
            .ok_or_else(|| CallError::invalid("head", "is missing on the first part"))?;
        let call = Call::new(engine, head.context.clone())?;
        let reader = Reader::new(&head, &call.principal)?;
        Ok(Self {
            batch: Batch::default(),
            tried: Vec::new(),
            tried_bytes: 0,
            report: Imported::default(),
            erased: Imported::default(),
            commands: 0,
            renamed: Vec::new(),
            reader: Arc::new(reader),
            head,
            call,
        })
    }

    /// Reads encoded records and proposes them whenever a command is full.
    async fn take(&mut self, encoded: Vec<Vec<u8>>) -> Result<(), CallError> {
        let (reader, renamed_room) = (Arc::clone(&self.reader), RENAMED_MAX.saturating_sub(self.renamed.len()));
        let read = self
            .call
            .read(move |_, rows| reader.read(rows, encoded, renamed_room))
            .await?;
        self.renamed.extend(read.renamed);
        for id in read.erased {
            self.erased.memories.unchanged += 1;
            self.erased
                .conflict(RecordKind::Memory, id.bytes(), ConflictReason::Erased, "");
        }
        for (record, bytes) in read.records {
            if self.batch.is_full_with(bytes) {
                self.flush(false).await?;
            }
            self.batch.push(record, bytes);
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<ImportReply, CallError> {
        self.flush(true).await?;
        if self.head.dry_run {
            self.report = self.try_out().await?;
        }
        self.report.add(std::mem::take(&mut self.erased));
        Ok(self.reply())
    }

    /// Proposes what has come so far.
    async fn flush(&mut self, is_last: bool) -> Result<(), CallError> {
        let records = self.batch.take(is_last);
        if !self.head.allow_dangling {
            let links = batch::ends_of_links(&records);
            let known = self.batch.known_memories();
            let dangling = self
                .call
                .read(move |_, rows| Ok(batch::dangling(rows, &links, &known)))
                .await?;
            batch::refuse_dangling(&dangling, self.commands)?;
        }
        let command = ImportRecords {
            tenant: self.call.tenant.clone(),
            strategy: self.reader.strategy(),
            await_vectors: self.call.engine.embedder.is_available(),
            records,
        };
        if self.head.dry_run {
            return self.keep(command);
        }
        // Only an import of one command has one outcome to keep under the request id.
        let whole = is_last && self.commands == 0;
        let call = if whole {
            self.call.clone()
        } else {
            self.call.without_request()
        };
        let written = call.propose(Command::ImportRecords(Box::new(command))).await?;
        let Outcome::Imported(imported) = written.outcome else {
            return Err(CallError::halted(
                "import records",
                &"the outcome is of another command",
            ));
        };
        self.report.add(*imported);
        self.commands = self.commands.saturating_add(1);
        Ok(())
    }

    fn keep(&mut self, command: ImportRecords) -> Result<(), CallError> {
        let count: usize = self.tried.iter().map(|command| command.records.len()).sum();
        self.tried_bytes = self.tried_bytes.saturating_add(self.batch.last_bytes());
        if count + command.records.len() > TRIED_RECORDS_MAX || self.tried_bytes > TRIED_BYTES_MAX {
            return Err(CallError::rejected(
                "limit_exceeded",
                format!(
                    "dry_run holds at most {TRIED_RECORDS_MAX} records and {} MiB; import without it, or part by part",
                    TRIED_BYTES_MAX >> 20
                ),
            ));
        }
        self.tried.push(command);
        self.commands = self.commands.saturating_add(1);
        Ok(())
    }

    /// Applies everything to a copy that is thrown away.
    async fn try_out(&mut self) -> Result<Imported, CallError> {
        self.call.linearize().await?;
        let commands = std::mem::take(&mut self.tried);
        let (shard, principal) = (self.call.shard, self.call.principal.clone());
        self.call
            .engine
            .blocking(move |engine| {
                let tried = engine.database.read(shard, |tables| {
                    let mut overlay = Overlay::new(tables);
                    let mut report = Imported::default();
                    for command in commands {
                        let entry = Entry {
                            stamp: typed::last_stamp(&overlay).next(),
                            principal: principal.clone(),
                            request: None,
                            command: Command::ImportRecords(Box::new(command)),
                        };
                        match apply(&mut overlay, &entry).outcome {
                            Outcome::Imported(imported) => report.add(*imported),
                            Outcome::Rejected(rejection) => return Err(CallError::from(rejection)),
                            _ => {}
                        }
                    }
                    Ok(report)
                });
                match tried {
                    Ok(report) => report,
                    Err(fault) => Err(CallError::halted("try an import out", &fault)),
                }
            })
            .await
    }

    fn reply(self) -> ImportReply {
        let count = |counted: waggle_memory::import::Counted| {
            Some(ImportCount {
                created: counted.created,
                updated: counted.updated,
                unchanged: counted.unchanged,
            })
        };
        let report = self.report;
        ImportReply {
            memories: count(report.memories),
            links: count(report.links),
            turns: count(report.turns),
            sessions: count(report.sessions),
            tombstones: count(report.tombstones),
            dangling_dropped: report.dangling,
            conflicts: report
                .conflicts
                .into_iter()
                .map(|conflict| wire::ImportConflict {
                    record: conflict.record.word().to_owned(),
                    id: conflict.id.to_vec(),
                    reason: conflict.why.word().to_owned(),
                    field: conflict.field,
                })
                .collect(),
            conflict_count: report.conflict_count,
            commands: self.commands,
            renamed: self.renamed,
        }
    }
}
