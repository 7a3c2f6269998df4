//! Takes an edited vault in: the files are compared with the graph as it is, then the plan is done step by step. Every
//! step is harmless to repeat, so an import that broke off is simply repeated.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;
use waggle_formats::vault::{
    ArchiveLimits, Change, Conflict, Importer, MemoryRef, Plan, StoreLink, StoreMemory, UpdateMemory, is_zip_of_notes,
    read_json, read_zip,
};
use waggle_memory::id::{EvidenceId, MemoryId, Principal, TenantId};
use waggle_memory::kind::{Confidence, Kind};
use waggle_memory::memory::{Alias, Evidence, Memory};
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::record::{MemoryRecord, Record};
use waggle_memory::scope::Scope;
use waggle_memory::time::Millis;
use waggle_proto::wire::import_head::Strategy;
use waggle_proto::wire::{self, ImportHead, StoreLinkRequest, StoreMemoryRequest, TagList, UpdateMemoryRequest};

use super::description::{Description, Format, SecretsPolicy};
use super::export::open;
use super::import::{blocking, send_records};
use super::pages::{archive_fault, collect};
use super::source::Source;
use crate::app::App;
use crate::auth::Caller;
use crate::fault::Fault;
use crate::route::{Call, timed};

/// What an import did, or would do.
#[derive(Default)]
pub(crate) struct Done {
    nodes_created: usize,
    nodes_updated: usize,
    nodes_unchanged: usize,
    edges_created: usize,
    edges_updated: usize,
    edges_deleted: usize,
    stub_nodes_created: usize,
    conflicts: Vec<Value>,
}

/// Conflicts that an answer names.
const CONFLICTS_SHOWN: usize = 50;

impl Done {
    pub(crate) fn json(&self, dry_run: bool) -> Value {
        json!({
            "nodes_created": self.nodes_created,
            "nodes_updated": self.nodes_updated,
            "nodes_unchanged": self.nodes_unchanged,
            "edges_created": self.edges_created,
            "edges_updated": self.edges_updated,
            "edges_deleted": self.edges_deleted,
            "stub_nodes_created": self.stub_nodes_created,
            "conflicts": self.conflicts.iter().take(CONFLICTS_SHOWN).collect::<Vec<_>>(),
            "conflict_count": self.conflicts.len(),
            "dry_run": dry_run,
        })
    }

    fn conflict(&mut self, conflict: &Conflict) {
        self.conflicts.push(json!({
            "node_id": conflict.node_id.map(|id| id.to_string()),
            "path": conflict.path,
            "field": conflict.field,
            "base": conflict.base,
            "vault": conflict.vault,
            "current": conflict.current,
            "reason": conflict.reason.word(),
            "hint": conflict.reason.to_string(),
        }));
    }
}

/// Whether a file is a ZIP of notes. Blocks. A broken ZIP is none, and whoever reads it as something else says so.
pub(crate) fn looks_like_one(source: &Source) -> Result<bool, Fault> {
    Ok(source.beginning(2)? == b"PK" && is_zip_of_notes(source.open()?).unwrap_or(false))
}

/// Compares a vault with the graph and does what its files ask for.
pub(crate) async fn run(
    app: &Arc<App>,
    caller: &Caller,
    call: &Call,
    source: Source,
    dry_run: bool,
) -> Result<Done, Fault> {
    let plan = plan(app, caller, call, source).await?;
    let mut done = Done {
        nodes_unchanged: plan.unchanged,
        ..Done::default()
    };
    if dry_run {
        plan.changes.iter().for_each(|change| count(&mut done, change));
        return Ok(done);
    }
    let mut steps = Steps {
        app,
        caller,
        call,
        number: 0,
        made: BTreeMap::new(),
        done,
    };
    for change in &plan.changes {
        steps.take(change).await?;
    }
    Ok(steps.done)
}

async fn plan(app: &Arc<App>, caller: &Caller, call: &Call, source: Source) -> Result<Plan, Fault> {
    let everything = Description {
        format: Format::Vault,
        project: String::new(),
        agent_id: String::new(),
        session_id: String::new(),
        secrets: SecretsPolicy::Include,
        weak_links: true,
        physics: false,
        exported_at: 0,
        name: String::new(),
    };
    let mut incoming = open(app, caller, call, &everything, call.deadline).await?;
    let tenant: TenantId = caller.tenant.clone();
    blocking(move || {
        let graph = collect(&mut incoming)?;
        let mut importer = Importer::new(&tenant, &graph);
        let limits = ArchiveLimits::UPLOAD;
        let read = if source.beginning(2)? == b"PK" {
            read_zip(source.open()?, &limits, &mut importer)
        } else {
            read_json(&source.text()?, &limits, &mut importer)
        };
        read.map_err(|error| archive_fault(&error))?;
        Ok(importer.finish())
    })
    .await
}

fn count(done: &mut Done, change: &Change) {
    match change {
        Change::StoreMemory(_) => done.nodes_created += 1,
        Change::StubNote(_) => done.stub_nodes_created += 1,
        Change::UpdateMemory(_) => done.nodes_updated += 1,
        Change::DeleteLink { .. } => done.edges_deleted += 1,
        Change::StoreLink(_) => done.edges_created += 1,
        Change::Conflict(conflict) => done.conflict(conflict),
    }
}

/// A plan that is being done.
struct Steps<'a> {
    app: &'a App,
    caller: &'a Caller,
    call: &'a Call,
    number: u32,
    /// Memories that earlier steps made, by their keys in the plan.
    made: BTreeMap<usize, MemoryId>,
    done: Done,
}

impl Steps<'_> {
    async fn take(&mut self, change: &Change) -> Result<(), Fault> {
        match change {
            Change::StoreMemory(store) => {
                let (id, created) = match store.id {
                    Some(id) => (id, self.store_as(id, store).await?),
                    None => self.store(store).await?,
                };
                self.made.insert(store.key, id);
                if created {
                    self.done.nodes_created += 1;
                } else {
                    self.done.nodes_unchanged += 1;
                }
            }
            Change::StubNote(stub) => {
                let request = StoreMemoryRequest {
                    scope: Some(wire::Scope {
                        project: stub.project.clone(),
                        ..wire::Scope::default()
                    }),
                    label: stub.label.clone(),
                    content: stub.label.clone(),
                    kind: u32::from(Kind::Note.number()),
                    ..StoreMemoryRequest::default()
                };
                let (id, created) = self.store_memory(request).await?;
                self.made.insert(stub.key, id);
                self.done.stub_nodes_created += usize::from(created);
            }
            Change::UpdateMemory(update) => self.update(update).await?,
            Change::DeleteLink { id, .. } => {
                let deleted = self.delete_link(id.bytes().to_vec()).await?;
                self.done.edges_deleted += usize::from(deleted);
            }
            Change::StoreLink(link) => self.store_link(link).await?,
            Change::Conflict(conflict) => self.done.conflict(conflict),
        }
        Ok(())
    }

    /// Each step has a request id of its own, the same on a repetition of the call.
    fn next_call(&mut self) -> Call {
        self.number += 1;
        let whole: String = self.call.request_id.chars().take(100).collect();
        Call {
            request_id: format!("{whole}/{}", self.number),
            ..self.call.clone()
        }
    }

    async fn store(&mut self, store: &StoreMemory) -> Result<(MemoryId, bool), Fault> {
        let request = StoreMemoryRequest {
            scope: Some(wire::scope(&store.scope)),
            label: store.label.clone(),
            content: store.content.clone(),
            kind: u32::from(store.kind.number()),
            tags: store.tags.clone(),
            source_prompt: store.source_prompt.clone(),
            valid_from: store.valid_from.map(|at| at.0),
            valid_to: store.valid_to.map(|at| at.0),
            ..StoreMemoryRequest::default()
        };
        self.store_memory(request).await
    }

    async fn store_memory(&mut self, request: StoreMemoryRequest) -> Result<(MemoryId, bool), Fault> {
        let call = self.next_call();
        let reply = self
            .app
            .cluster
            .memory(self.caller, &call, |mut client, context, left| {
                let request = timed(
                    StoreMemoryRequest {
                        context: Some(context),
                        ..request.clone()
                    },
                    left,
                );
                async move { client.store_memory(request).await }
            })
            .await?;
        let stored = reply.stored.unwrap_or_default();
        let id = stored.memory.map(|memory| memory.id).unwrap_or_default();
        let id = wire::memory_id("id", &id).map_err(|_| Fault::internal())?;
        Ok((id, stored.created))
    }

    /// A memory that keeps the id that its file states. Who imports answers for it.
    async fn store_as(&mut self, id: MemoryId, store: &StoreMemory) -> Result<bool, Fault> {
        let call = self.next_call();
        let now = self.app.clock.wall();
        let record = record_of(id, store, &Principal(self.caller.principal.clone()), now);
        let head = ImportHead {
            strategy: Strategy::Merge.into(),
            keep_authors: false,
            ..ImportHead::default()
        };
        let reply = send_records(self.app, self.caller, &call, head, vec![record]).await?;
        Ok(reply.memories.unwrap_or_default().created > 0)
    }

    async fn update(&mut self, update: &UpdateMemory) -> Result<(), Fault> {
        let call = self.next_call();
        let request = UpdateMemoryRequest {
            id: update.id.bytes().to_vec(),
            expected_version: Some(update.expected_version),
            label: update.label.clone(),
            content: update.content.clone(),
            tags: update.tags.clone().map(|tags| TagList { tags }),
            valid_from: update.valid_from.map(|at| at.0),
            valid_to: update.valid_to.map(|at| at.0),
            ..UpdateMemoryRequest::default()
        };
        let updated = self
            .app
            .cluster
            .memory(self.caller, &call, |mut client, context, left| {
                let request = timed(
                    UpdateMemoryRequest {
                        context: Some(context),
                        ..request.clone()
                    },
                    left,
                );
                async move { client.update_memory(request).await }
            })
            .await;
        match updated {
            Ok(_) => self.done.nodes_updated += 1,
            // Somebody was faster than the plan: both sides changed.
            Err(fault) if fault.code == "version_conflict" || fault.code == "not_found" => {
                self.done.conflicts.push(json!({
                    "node_id": update.id.to_string(),
                    "path": update.path,
                    "reason": "both_changed",
                    "hint": "changed while the vault was imported; export again and repeat the edit",
                }));
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    async fn delete_link(&mut self, id: Vec<u8>) -> Result<bool, Fault> {
        let call = self.next_call();
        let reply = self
            .app
            .cluster
            .transfer(self.caller, &call, |mut client, context, left| {
                let request = timed(
                    wire::DeleteLinkRequest {
                        context: Some(context),
                        id: id.clone(),
                    },
                    left,
                );
                async move { client.delete_link(request).await }
            })
            .await?;
        Ok(reply.deleted)
    }

    async fn store_link(&mut self, link: &StoreLink) -> Result<(), Fault> {
        let end = |end: MemoryRef| match end {
            MemoryRef::Known(id) => Some(id),
            MemoryRef::New(key) => self.made.get(&key).copied(),
        };
        let (Some(source), Some(target)) = (end(link.source), end(link.target)) else {
            return Ok(());
        };
        if source == target {
            // Two files whose memories turned out to be one.
            return Ok(());
        }
        let call = self.next_call();
        let request = StoreLinkRequest {
            source: source.bytes().to_vec(),
            target: target.bytes().to_vec(),
            relationship: u32::from(link.relationship.number()),
            weight_thousandths: link.weight_thousandths.unwrap_or(1_000),
            ..StoreLinkRequest::default()
        };
        let reply = self
            .app
            .cluster
            .memory(self.caller, &call, |mut client, context, left| {
                let request = timed(
                    StoreLinkRequest {
                        context: Some(context),
                        ..request.clone()
                    },
                    left,
                );
                async move { client.store_link(request).await }
            })
            .await?;
        if reply.created {
            self.done.edges_created += 1;
        } else {
            self.done.edges_updated += 1;
        }
        Ok(())
    }
}

fn record_of(id: MemoryId, store: &StoreMemory, author: &Principal, now: Millis) -> Record {
    let recorded_at = store.recorded_at.unwrap_or(now).min(now);
    let statement = read_statement(&StatementInput {
        label: &store.label,
        content: &store.content,
        kind: store.kind,
        author: &author.0,
        observed_at: recorded_at,
    });
    let evidence = store.evidence.iter().enumerate().map(|(at, claim)| Evidence {
        id: EvidenceId::from_uuid(Uuid::new_v5(&id.uuid(), format!("evidence {at}").as_bytes())),
        turn: None,
        scope: Scope {
            project: store.scope.project.clone(),
            agent_id: claim.agent_id.clone(),
            session_id: claim.session_id.clone(),
        },
        text: claim.text.clone(),
        observed_at: claim.observed_at.unwrap_or(recorded_at),
        author: author.clone(),
    });
    let evidence: Vec<(u32, Evidence)> = (1..).zip(evidence).take(1_000).collect();
    Record::Memory(Box::new(MemoryRecord {
        memory: Memory {
            id,
            namespace: String::new(),
            scope: store.scope.clone(),
            label: store.label.clone(),
            content: store.content.clone(),
            kind: store.kind,
            tags: store.tags.clone(),
            aliases: store
                .aliases
                .iter()
                .map(|text| Alias {
                    text: text.clone(),
                    author: author.clone(),
                    added_at: recorded_at,
                    exact: None,
                })
                .collect(),
            source_prompt: store.source_prompt.clone(),
            metadata: store.metadata.clone(),
            evidence_count: u32::try_from(evidence.len()).unwrap_or(u32::MAX),
            confidence: store.confidence.unwrap_or(Confidence::Explicit),
            valid_from: store.valid_from.unwrap_or(recorded_at),
            valid_from_stated: store.valid_from.is_some(),
            valid_to: store.valid_to,
            recorded_at,
            updated_at: recorded_at,
            version: 1,
            text_version: 1,
            author: author.clone(),
            due: None,
            superseded_by: None,
            statement,
            // Read again where it is stored.
            rules_version: 0,
            link_count: 0,
            open_conflict_count: 0,
        },
        evidence,
        versions: Vec::new(),
    }))
}
