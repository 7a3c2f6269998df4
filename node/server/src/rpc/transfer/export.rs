//! All records of a scope, from one view of the tables: what is written meanwhile does not show. The view is held for as
//! long as the stream lasts, so streams have an end in time.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use waggle_memory::export::{Export, ExportKinds, ExportScope};
use waggle_memory::extract::RULES_VERSION;
use waggle_memory::id::TenantId;
use waggle_memory::meta::ShardId;
use waggle_memory::record::Record;
use waggle_memory::tables::typed::{self, TenantRows};
use waggle_proto::log::encode_record;
use waggle_proto::wire::{self, ExportHead, ExportPage, ExportRequest, ReadPoint};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Longest export. A view that is held keeps every row that was replaced since.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(600);
/// Size of a page, but for one record more.
const PAGE_BYTES: usize = 512 * 1024;
/// Most bytes of one record; more go into further records.
const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Pages that wait for the reader.
const PAGES_AHEAD: usize = 4;

type Page = Result<ExportPage, Status>;

pub(super) async fn handle(engine: &Arc<Engine>, request: ExportRequest) -> Result<ReceiverStream<Page>, CallError> {
    let call = Call::new(engine, request.context)?;
    let scope = wire::scope_of(request.scope)?;
    let permit = Arc::clone(&engine.exports).try_acquire_owned().map_err(|_| {
        CallError::unavailable(
            "this node makes as many exports as it may at once; try again",
            Duration::from_secs(2),
        )
    })?;
    let applied_index = call.linearize().await?;
    let (pages, reader) = mpsc::channel(PAGES_AHEAD);
    let (engine, runtime) = (Arc::clone(engine), Handle::current());
    let job = Job {
        shard: call.shard,
        tenant: call.tenant,
        applied_index,
        scope: ExportScope {
            project: scope.project,
            agent_id: scope.agent_id,
            session_id: scope.session_id,
        },
        kinds: ExportKinds {
            transcripts: request.transcripts,
            graph: request.graph,
            tombstones: request.tombstones,
        },
    };
    // Not awaited: it ends with its reader, or at the end of its time.
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let sent = Sender {
            pages,
            runtime,
            started: engine.clock.monotonic(),
            engine: &engine,
        };
        job.run(&engine, &sent);
    });
    Ok(ReceiverStream::new(reader))
}

struct Job {
    shard: ShardId,
    tenant: TenantId,
    applied_index: u64,
    scope: ExportScope,
    kinds: ExportKinds,
}

/// The reader went away, or the time is over.
struct Stopped;

impl Job {
    fn run(self, engine: &Engine, pages: &Sender<'_>) {
        let view = engine.database.view(self.shard);
        let read_at = ReadPoint {
            shard: self.shard.0,
            applied_index: self.applied_index,
            stamp: typed::last_stamp(&view).wall.0,
        };
        let mut page = ExportPage {
            head: Some(ExportHead {
                read_at: Some(read_at),
                embedding_model: engine.embedder.model().to_owned(),
                rules_version: RULES_VERSION,
            }),
            ..ExportPage::default()
        };
        let mut bytes = 0;
        let records = Export::new(TenantRows::new(&view, &self.tenant), self.scope, self.kinds);
        for record in records.flat_map(in_parts) {
            let encoded = encode_record(&record);
            bytes += encoded.len();
            page.records.push(encoded);
            if bytes < PAGE_BYTES {
                continue;
            }
            // No page leaves that rests on a row that could not be read.
            let full = checked(&view, std::mem::take(&mut page));
            let failed = full.is_err();
            if pages.send(full).is_err() || failed {
                return;
            }
            bytes = 0;
        }
        page.last = true;
        let _ = pages.send(checked(&view, page));
    }
}

fn in_parts(record: Record) -> Vec<Record> {
    match record {
        Record::Memory(record) => {
            let parts = record.split(RECORD_BYTES_MAX).into_iter();
            parts.map(|part| Record::Memory(Box::new(part))).collect()
        }
        other => vec![other],
    }
}

fn checked(view: &waggle_store::ShardView<'_>, page: ExportPage) -> Page {
    match view.check() {
        Ok(()) => Ok(page),
        Err(fault) => Err(CallError::halted("read rows for an export", &fault).into()),
    }
}

struct Sender<'a> {
    pages: mpsc::Sender<Page>,
    runtime: Handle,
    started: Duration,
    engine: &'a Engine,
}

impl Sender<'_> {
    fn send(&self, page: Page) -> Result<(), Stopped> {
        let spent = self.engine.clock.monotonic().saturating_sub(self.started);
        let left = EXPORT_TIME_MAX.saturating_sub(spent);
        let sent = self.runtime.block_on(tokio::time::timeout(left, self.pages.send(page)));
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Stopped),
        }
    }
}
