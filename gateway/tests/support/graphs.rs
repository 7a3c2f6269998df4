//! Graphs of tenants behind the stub: the domain itself over model tables, without storage or consensus.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use waggle_memory::apply::apply;
use waggle_memory::command::{Command, Entry};
use waggle_memory::export::{Export, ExportKinds, ExportScope};
use waggle_memory::id::{Principal, TenantId};
use waggle_memory::import::prepare::Preparation;
use waggle_memory::import::{Counted, ImportRecords, ImportStrategy};
use waggle_memory::outcome::Outcome;
use waggle_memory::record::Record;
use waggle_memory::tables::model::Model;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::{Millis, Stamp};
use waggle_proto::log::{decode_record, encode_record};
use waggle_proto::wire::import_head::Strategy;
use waggle_proto::wire::transfer_service_server::TransferService;
use waggle_proto::wire::*;

use super::stub::{Shared, T0};

/// Records that fit one page of the stub.
const PAGE_RECORDS: usize = 3;

#[derive(Default)]
pub struct Graphs {
    models: Mutex<BTreeMap<String, Model>>,
    /// Heads of the imports that came.
    pub heads: Mutex<Vec<ImportHead>>,
}

impl Graphs {
    /// All records of a tenant.
    pub fn records(&self, tenant: &str) -> Vec<Record> {
        self.exported(tenant, ExportScope::default(), ExportKinds::ALL)
    }

    fn exported(&self, tenant: &str, scope: ExportScope, kinds: ExportKinds) -> Vec<Record> {
        let models = self.models.lock().expect("models");
        let tenant: TenantId = tenant.parse().expect("a tenant");
        let empty = Model::default();
        let model = models.get(tenant.as_str()).unwrap_or(&empty);
        Export::new(TenantRows::new(model, &tenant), scope, kinds).collect()
    }

    /// Puts so many memories in a row of links.
    pub fn fill(&self, tenant: &str, memories: u8) {
        let outcome = self.import(tenant, ImportStrategy::Merge, super::records::chain(memories));
        assert!(matches!(outcome, Outcome::Imported(_)), "{outcome:?}");
    }

    pub fn import(&self, tenant: &str, strategy: ImportStrategy, records: Vec<Record>) -> Outcome {
        let mut models = self.models.lock().expect("models");
        let entry = Entry {
            stamp: Stamp {
                wall: Millis(T0),
                logical: 0,
            },
            principal: Principal("key:stub".to_owned()),
            request: None,
            command: Command::ImportRecords(Box::new(ImportRecords {
                tenant: tenant.parse().expect("a tenant"),
                strategy,
                await_vectors: true,
                records,
            })),
        };
        apply(models.entry(tenant.to_owned()).or_default(), &entry).outcome
    }
}

#[tonic::async_trait]
impl TransferService for Shared {
    type ExportStream = ReceiverStream<Result<ExportPage, Status>>;

    async fn export(&self, request: Request<ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        let request = request.into_inner();
        let context = request.context.clone().expect("a context");
        self.0.enter(request.context)?;
        let scope = request.scope.unwrap_or_default();
        let scope = ExportScope {
            project: scope.project,
            agent_id: scope.agent_id,
            session_id: scope.session_id,
        };
        let kinds = ExportKinds {
            transcripts: request.transcripts,
            graph: request.graph,
            tombstones: request.tombstones,
        };
        let records = self.0.graphs.exported(&context.tenant, scope, kinds);
        let mut pages: Vec<ExportPage> = records
            .chunks(PAGE_RECORDS)
            .map(|records| ExportPage {
                records: records.iter().map(encode_record).collect(),
                ..ExportPage::default()
            })
            .collect();
        pages.push(ExportPage {
            last: true,
            ..ExportPage::default()
        });
        if let Some(first) = pages.first_mut() {
            first.head = Some(ExportHead {
                read_at: Some(ReadPoint::default()),
                embedding_model: "model".to_owned(),
                rules_version: 1,
            });
        }
        let (sender, receiver) = tokio::sync::mpsc::channel(pages.len());
        for page in pages {
            sender.try_send(Ok(page)).expect("room for every page");
        }
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListReply>, Status> {
        let request = request.into_inner();
        let context = request.context.clone().expect("a context");
        self.0.enter(request.context.clone())?;
        let records = self.0.graphs.records(&context.tenant);
        let limit = usize::try_from(request.limit).expect("small");
        let mut reply = ListReply {
            read_at: Some(ReadPoint::default()),
            ..ListReply::default()
        };
        for record in records {
            let (id, full) = match (&record, request.what()) {
                (Record::Memory(record), list_request::What::Memories) => {
                    (record.memory.id.bytes(), reply.memories.len() == limit)
                }
                (Record::Link(link), list_request::What::Links) => (link.id.bytes(), reply.links.len() == limit),
                _ => continue,
            };
            if id.as_slice() <= request.after.as_slice() {
                continue;
            }
            if full {
                let memory = reply.memories.last().map(|memory| memory.id.clone());
                reply.next = memory
                    .or(reply.links.last().map(|link| link.id.clone()))
                    .expect("a full page");
                break;
            }
            match record {
                Record::Memory(record) => reply.memories.push(memory(&record.memory, &[], Millis(T0))),
                Record::Link(found) => reply.links.push(link(&found)),
                _ => {}
            }
        }
        Ok(Response::new(reply))
    }

    async fn import(&self, request: Request<Streaming<ImportPart>>) -> Result<Response<ImportReply>, Status> {
        let mut parts = request.into_inner();
        let (mut head, mut records, mut last) = (ImportHead::default(), Vec::new(), false);
        while let Some(part) = parts.message().await? {
            head = part.head.unwrap_or(head);
            records.extend(part.records.iter().map(|bytes| decode_record(bytes).expect("a record")));
            last |= part.last;
        }
        assert!(last, "the stream has a last part");
        let context = head.context.clone().expect("a context");
        self.0.enter(head.context.clone())?;
        self.0.graphs.heads.lock().expect("heads").push(head.clone());
        let prepared = Preparation {
            author: (!head.keep_authors).then(|| Principal(context.principal.clone())),
            project: head.project.clone(),
            new_ids: head.strategy() == Strategy::Branch,
        };
        let strategy = match head.strategy() {
            Strategy::Merge | Strategy::Branch => ImportStrategy::Merge,
            Strategy::SkipExisting => ImportStrategy::SkipExisting,
            Strategy::Overwrite => ImportStrategy::Overwrite,
        };
        let records = records
            .into_iter()
            .filter_map(|record| prepared.prepare(record))
            .collect();
        let Outcome::Imported(imported) = self.0.graphs.import(&context.tenant, strategy, records) else {
            panic!("the domain refused what the gateway let pass");
        };
        let count = |counted: Counted| {
            Some(ImportCount {
                created: counted.created,
                updated: counted.updated,
                unchanged: counted.unchanged,
            })
        };
        Ok(Response::new(ImportReply {
            memories: count(imported.memories),
            links: count(imported.links),
            turns: count(imported.turns),
            sessions: count(imported.sessions),
            tombstones: count(imported.tombstones),
            commands: 1,
            ..ImportReply::default()
        }))
    }

    async fn delete_link(&self, request: Request<DeleteLinkRequest>) -> Result<Response<DeleteLinkReply>, Status> {
        self.0.enter(request.into_inner().context)?;
        Ok(Response::new(DeleteLinkReply { deleted: true }))
    }
}
