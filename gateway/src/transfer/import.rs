//! From a file to the node's stream of records: first the whole file is verified, then it is read again and sent.

use std::sync::Arc;

use futures::Stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use waggle_formats::abhi::Importer;
use waggle_formats::error::ReadError;
use waggle_formats::{abhi, backup, waggle_json};
use waggle_memory::meta::KeyScopes;
use waggle_memory::record::Record;
use waggle_proto::log::encode_record;
use waggle_proto::wire::import_head::Strategy;
use waggle_proto::wire::{ImportHead, ImportPart, ImportReply};

use super::source::Source;
use crate::app::App;
use crate::auth::Caller;
use crate::fault::Fault;
use crate::route::Call;

/// Bytes of records sent at once.
const PART_BYTES: usize = 512 * 1024;
/// Most bytes of one record as it is sent; a larger memory goes in parts.
const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Parts that wait for the node.
const PARTS_AHEAD: usize = 4;
/// As many bytes tell every format.
const BEGINNING_BYTES: u64 = 4096;

/// What is imported, and how.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) source: Source,
    pub(crate) strategy: Strategy,
    /// Present: everything goes into this project.
    pub(crate) project: Option<String>,
    pub(crate) allow_dangling: bool,
    pub(crate) dry_run: bool,
    /// For what a file of Waggle's does not say.
    pub(crate) importer: Importer,
}

/// What an import did.
pub(crate) struct Done {
    pub(crate) format: &'static str,
    pub(crate) hash_verified: bool,
    pub(crate) dangling_dropped: u64,
    pub(crate) reply: ImportReply,
}

/// Formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileFormat {
    Backup,
    Abhi,
    Waggle,
}

impl FileFormat {
    const fn word(self) -> &'static str {
        match self {
            Self::Backup => "json",
            Self::Abhi => "abhi",
            Self::Waggle => "waggle_json",
        }
    }

    fn detect(beginning: &[u8]) -> Result<Self, Fault> {
        if beginning.starts_with(&abhi::MAGIC) || beginning.starts_with(b"PK") {
            return Ok(Self::Abhi);
        }
        let text = String::from_utf8_lossy(beginning);
        if text.trim_start().starts_with('{') {
            let is_ours = text.contains(backup::FORMAT);
            return Ok(if is_ours { Self::Backup } else { Self::Waggle });
        }
        Err(Fault::new(
            "validation_failed",
            "the file is none that can be imported; give a backup (JSON or .abhi) of export_graph_backup",
        )
        .with_field("content"))
    }
}

/// What was found out about a file before anything is sent.
struct Verified {
    format: FileFormat,
    is_ours: bool,
    hash_verified: bool,
    dangling_dropped: u64,
}

/// Verifies a file and has the node take it in.
pub(crate) async fn run(app: &Arc<App>, caller: &Caller, call: &Call, import: &Import) -> Result<Done, Fault> {
    let verified = blocking({
        let (app, import) = (Arc::clone(app), import.clone());
        move || verify(&app, &import)
    })
    .await?;
    let is_admin = caller.scopes.contains(KeyScopes::ADMIN_WRITE);
    let head = ImportHead {
        context: None,
        strategy: import.strategy.into(),
        project: import.project.clone(),
        keep_authors: is_admin || verified.is_ours,
        overwrite_newer: is_admin,
        allow_dangling: import.allow_dangling,
        dry_run: import.dry_run,
    };
    let format = verified.format;
    let reply = app
        .cluster
        .transfer(caller, call, |mut client, context, left| {
            let head = ImportHead {
                context: Some(context),
                ..head.clone()
            };
            let mut request = Request::new(parts(import.clone(), format, head));
            request.set_timeout(left);
            async move { client.import(request).await }
        })
        .await?;
    Ok(Done {
        format: format.word(),
        hash_verified: verified.hash_verified,
        dangling_dropped: verified.dangling_dropped.saturating_add(reply.dangling_dropped),
        reply,
    })
}

/// Runs something that blocks.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            tracing::error!(%error, "a transfer ended with a panic");
            Err(Fault::internal())
        }
    }
}

fn verify(app: &App, import: &Import) -> Result<Verified, Fault> {
    let format = FileFormat::detect(&import.source.beginning(BEGINNING_BYTES)?)?;
    let options = backup::Options {
        allow_dangling: import.allow_dangling,
    };
    match format {
        FileFormat::Backup => {
            let (_, summary) = backup::verify(import.source.open()?, options).map_err(|error| fault_of(&error))?;
            Ok(Verified {
                format,
                is_ours: summary.is_signed_by(|key| app.transfer.signing.is_ours(key)),
                hash_verified: true,
                dangling_dropped: summary.dangling_dropped,
            })
        }
        FileFormat::Abhi => {
            let mut reader = abhi::Reader::open(import.source.open()?, None).map_err(|error| fault_of(&error))?;
            let is_ours = reader.is_signed_by(|key| app.transfer.signing.is_ours(key));
            let report = reader.records(&import.importer, import.allow_dangling, |_| Ok::<(), Fault>(()))?;
            Ok(Verified {
                format,
                is_ours,
                hash_verified: true,
                dangling_dropped: report.changes.dangling_dropped,
            })
        }
        FileFormat::Waggle => {
            let mut reader = waggle_json::Reader::open(import.source.open()?).map_err(|error| fault_of(&error))?;
            let report = reader.records(&import.importer, import.allow_dangling, |_| Ok::<(), Fault>(()))?;
            Ok(Verified {
                format,
                is_ours: false,
                hash_verified: false,
                dangling_dropped: report.changes.dangling_dropped,
            })
        }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        fault_of(&error)
    }
}

/// The parts of one attempt. The file is read on a thread of its own, which ends with the stream.
fn parts(import: Import, format: FileFormat, head: ImportHead) -> impl Stream<Item = ImportPart> + Send + 'static {
    let (sender, receiver) = mpsc::channel(PARTS_AHEAD);
    let runtime = Handle::current();
    // Not awaited: without a reader, sending fails and the thread ends.
    tokio::task::spawn_blocking(move || {
        let mut sending = Sending {
            sender,
            runtime,
            part: ImportPart {
                head: Some(head),
                ..ImportPart::default()
            },
            bytes: 0,
        };
        let sent = match format {
            FileFormat::Backup => send_backup(&import, &mut sending),
            FileFormat::Abhi => send_abhi(&import, &mut sending),
            FileFormat::Waggle => send_waggle(&import, &mut sending),
        };
        // A file that fails now was verified before; without a last part the node refuses the rest.
        match sent {
            Ok(()) => sending.finish(),
            Err(fault) => tracing::warn!(code = fault.code, "an import broke off while it was read"),
        }
    });
    ReceiverStream::new(receiver)
}

/// Sends a few records that are in memory.
pub(crate) async fn send_records(
    app: &App,
    caller: &Caller,
    call: &Call,
    head: ImportHead,
    records: Vec<Record>,
) -> Result<ImportReply, Fault> {
    let records: Vec<Vec<u8>> = records.iter().map(encode_record).collect();
    app.cluster
        .transfer(caller, call, |mut client, context, left| {
            let part = ImportPart {
                head: Some(ImportHead {
                    context: Some(context),
                    ..head.clone()
                }),
                records: records.clone(),
                last: true,
            };
            let mut request = Request::new(futures::stream::once(std::future::ready(part)));
            request.set_timeout(left);
            async move { client.import(request).await }
        })
        .await
}

fn send_backup(import: &Import, sending: &mut Sending) -> Result<(), Fault> {
    let options = backup::Options {
        allow_dangling: import.allow_dangling,
    };
    let mut reader = backup::Reader::open(import.source.open()?, options).map_err(|error| fault_of(&error))?;
    while let Some(record) = reader.next_record().map_err(|error| fault_of(&error))? {
        sending.send(record)?;
    }
    Ok(())
}

fn send_abhi(import: &Import, sending: &mut Sending) -> Result<(), Fault> {
    let mut reader = abhi::Reader::open(import.source.open()?, None).map_err(|error| fault_of(&error))?;
    reader
        .records(&import.importer, import.allow_dangling, |record| sending.send(record))
        .map(|_| ())
}

fn send_waggle(import: &Import, sending: &mut Sending) -> Result<(), Fault> {
    let mut reader = waggle_json::Reader::open(import.source.open()?).map_err(|error| fault_of(&error))?;
    reader
        .records(&import.importer, import.allow_dangling, |record| sending.send(record))
        .map(|_| ())
}

struct Sending {
    sender: mpsc::Sender<ImportPart>,
    runtime: Handle,
    part: ImportPart,
    bytes: usize,
}

impl Sending {
    fn send(&mut self, record: Record) -> Result<(), Fault> {
        let records = match record {
            Record::Memory(record) => record
                .split(RECORD_BYTES_MAX)
                .into_iter()
                .map(|part| Record::Memory(Box::new(part)))
                .collect(),
            other => vec![other],
        };
        for record in records {
            let encoded = encode_record(&record);
            self.bytes += encoded.len();
            self.part.records.push(encoded);
            if self.bytes >= PART_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.bytes = 0;
        let part = std::mem::take(&mut self.part);
        self.runtime
            .block_on(self.sender.send(part))
            .map_err(|_| Fault::internal())
    }

    fn finish(mut self) {
        self.part.last = true;
        // Nobody waits any more when the call was given up.
        let _ = self.flush();
    }
}

/// What is wrong with a file, as its importer is told.
pub(crate) fn fault_of(error: &ReadError) -> Fault {
    match error {
        ReadError::Io(_) => super::uploads::gone(),
        other => Fault::new(other.code(), other.to_string()).with_field("content"),
    }
}
