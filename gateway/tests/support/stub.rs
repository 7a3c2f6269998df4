//! A node that answers from a script, for tests of the gateway only.

mod history;
pub mod insight;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use prost::Message;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use waggle_gateway::keys::ApiKeyText;
use waggle_memory::meta::{KeyScopes, Slot};
use waggle_proto::wire::error_detail::Family;
use waggle_proto::wire::history_service_server::HistoryServiceServer;
use waggle_proto::wire::insight_service_server::InsightServiceServer;
use waggle_proto::wire::memory_service_server::{MemoryService, MemoryServiceServer};
use waggle_proto::wire::meta_service_server::{MetaService, MetaServiceServer};
use waggle_proto::wire::transcript_service_server::{TranscriptService, TranscriptServiceServer};
use waggle_proto::wire::transfer_service_server::TransferServiceServer;
use waggle_proto::wire::*;

pub const T0: i64 = 1_780_000_000_000;

#[derive(Default)]
pub struct Stub {
    pub keys: Mutex<BTreeMap<String, (KeyInfo, Vec<u8>)>>,
    pub contexts: Mutex<Vec<CallContext>>,
    pub queries: Mutex<Vec<QueryRequest>>,
    pub diffs: Mutex<Vec<DiffRequest>>,
    /// Memories that a query finds.
    pub memories: Mutex<Vec<Memory>>,
    /// Failures answered before anything else, first one first.
    pub failures: Mutex<Vec<Status>>,
    /// What exports read and imports write.
    pub graphs: super::graphs::Graphs,
    pub handoffs: Mutex<Vec<HandoffRequest>>,
    /// What a hand-off answers.
    pub handoff_reply: Mutex<HandoffReply>,
    pub placements_read: AtomicUsize,
    pub keys_read: AtomicUsize,
    /// No key can be looked up: the meta shard is away.
    pub away: AtomicBool,
    /// Depths that replays asked for.
    pub depths: Mutex<Vec<Option<u32>>>,
}

impl Stub {
    pub fn add_key(&self, key: &ApiKeyText, tenant: &str, scopes: KeyScopes, pepper: &[u8]) {
        let info = KeyInfo {
            key_id: key.kid().to_owned(),
            tenant_id: tenant.to_owned(),
            name: "test".to_owned(),
            scopes: u32::from(scopes.bits()),
            ..KeyInfo::default()
        };
        self.keys
            .lock()
            .expect("keys")
            .insert(key.kid().to_owned(), (info, key.keyed_hash(pepper).to_vec()));
    }

    pub fn change_keys(&self, change: impl Fn(&mut KeyInfo)) {
        self.keys
            .lock()
            .expect("keys")
            .values_mut()
            .for_each(|(info, _)| change(info));
    }

    pub(super) fn enter(&self, context: Option<CallContext>) -> Result<(), Status> {
        self.contexts
            .lock()
            .expect("contexts")
            .push(context.expect("a context"));
        let mut failures = self.failures.lock().expect("failures");
        if failures.is_empty() {
            Ok(())
        } else {
            Err(failures.remove(0))
        }
    }
}

pub fn failure(code: &str, family: Family) -> Status {
    let detail = ErrorDetail {
        code: code.to_owned(),
        message: format!("scripted {code}; do something else"),
        family: family.into(),
        current_version: if code == "version_conflict" { 7 } else { 0 },
        ..ErrorDetail::default()
    };
    Status::with_details(Code::Internal, "scripted", detail.encode_to_vec().into())
}

pub fn uuid_bytes(number: u64) -> Vec<u8> {
    uuid::Uuid::from_u64_pair(0x0197_c1f2_7a64_7000, 0x8000_0000_0000_0000 | number)
        .into_bytes()
        .to_vec()
}

pub fn memory(number: u64, content_bytes: usize) -> Memory {
    Memory {
        id: uuid_bytes(number),
        namespace: "default".to_owned(),
        scope: Some(Scope {
            project: "shop".to_owned(),
            ..Scope::default()
        }),
        label: format!("Memory {number}"),
        content: format!("{number} {}", "é\"x".repeat(content_bytes / 4)),
        kind: 1,
        tags: vec!["observed".to_owned(), "db".to_owned()],
        confidence: 1,
        valid_from: T0,
        recorded_at: T0,
        updated_at: T0,
        version: 1,
        author: "key:k".to_owned(),
        state: "current".to_owned(),
        ..Memory::default()
    }
}

pub fn link(number: u64, source: u64, target: u64, relationship: u32) -> Link {
    Link {
        id: uuid_bytes(number),
        source: uuid_bytes(source),
        target: uuid_bytes(target),
        relationship,
        weight_thousandths: 1000,
        confidence: 1,
        origin: 1,
        created_at: T0,
        version: 1,
        ..Link::default()
    }
}

/// Serves the stub and gives a channel to it.
pub async fn serve(stub: Arc<Stub>) -> Channel {
    let (send, receive) = tokio::sync::mpsc::channel(16);
    let incoming = ReceiverStream::new(receive).map(Ok::<_, std::io::Error>);
    let services = Server::builder()
        .add_service(MemoryServiceServer::new(Shared(Arc::clone(&stub))))
        .add_service(InsightServiceServer::new(Shared(Arc::clone(&stub))))
        .add_service(TransferServiceServer::new(Shared(Arc::clone(&stub))))
        .add_service(
            TranscriptServiceServer::new(Shared(Arc::clone(&stub)))
                .max_decoding_message_size(waggle_config::limits::RPC_BYTES_MAX),
        )
        .add_service(HistoryServiceServer::new(Shared(Arc::clone(&stub))))
        .add_service(MetaServiceServer::new(Shared(stub)));
    tokio::spawn(services.serve_with_incoming(incoming));
    let connector = tower::service_fn(move |_: http::Uri| {
        let send = send.clone();
        async move {
            let (server, client) = super::pipe();
            send.send(server).await.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(client)
        }
    });
    Endpoint::from_static("http://stub").connect_with_connector_lazy(connector)
}

pub struct Shared(pub(super) Arc<Stub>);

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl TranscriptService for Shared {
    async fn handoff(&self, request: Request<HandoffRequest>) -> Answer<HandoffReply> {
        let mut request = request.into_inner();
        self.0.enter(request.context.take())?;
        self.0.handoffs.lock().expect("handoffs").push(request);
        Ok(Response::new(*self.0.handoff_reply.lock().expect("reply")))
    }
}

#[tonic::async_trait]
impl MemoryService for Shared {
    async fn observe(&self, request: Request<ObserveRequest>) -> Answer<ObserveReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let stored = |number, created| StoredMemory {
            memory: Some(memory(number, 40)),
            created,
            dedup_reason: if created {
                String::new()
            } else {
                "exact_content".to_owned()
            },
            similarity_thousandths: 1000,
            ..StoredMemory::default()
        };
        Ok(Response::new(ObserveReply {
            pair_id: uuid_bytes(90),
            transcript_ids: vec![uuid_bytes(91), uuid_bytes(92)],
            stored: vec![stored(1, true), stored(2, false)],
            links: vec![link(50, 1, 2, 3)],
            conflicts: vec![link(51, 1, 8, 2), link(52, 1, 9, 2)],
            ..ObserveReply::default()
        }))
    }

    async fn store_memory(&self, request: Request<StoreMemoryRequest>) -> Answer<StoreMemoryReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let mut stored = memory(1, 0);
        stored.label = request.label;
        stored.content = request.content;
        stored.kind = request.kind;
        stored.tags = request.tags;
        Ok(Response::new(StoreMemoryReply {
            stored: Some(StoredMemory {
                memory: Some(stored),
                created: true,
                ..StoredMemory::default()
            }),
            conflicts: vec![link(60, 1, 2, 2)],
            ..StoreMemoryReply::default()
        }))
    }

    async fn store_link(&self, request: Request<StoreLinkRequest>) -> Answer<StoreLinkReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let mut stored = link(61, 1, 2, request.relationship);
        stored.weight_thousandths = request.weight_thousandths;
        Ok(Response::new(StoreLinkReply {
            link: Some(stored),
            created: true,
        }))
    }

    async fn update_memory(&self, request: Request<UpdateMemoryRequest>) -> Answer<UpdateMemoryReply> {
        self.0.enter(request.into_inner().context)?;
        Ok(Response::new(UpdateMemoryReply {
            memory: Some(memory(1, 40)),
            previous_version: 1,
            ..UpdateMemoryReply::default()
        }))
    }

    async fn delete_memory(&self, request: Request<DeleteMemoryRequest>) -> Answer<DeleteMemoryReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        Ok(Response::new(DeleteMemoryReply {
            id: request.id,
            deleted: true,
            ..DeleteMemoryReply::default()
        }))
    }

    async fn resolve_conflict(&self, request: Request<ResolveConflictRequest>) -> Answer<ResolveConflictReply> {
        self.0.enter(request.into_inner().context)?;
        let mut resolved = link(62, 1, 2, 2);
        resolved.resolution = Some(Resolution {
            resolved: true,
            winner: uuid_bytes(1),
            ..Resolution::default()
        });
        Ok(Response::new(ResolveConflictReply {
            link: Some(resolved),
            source: Some(memory(1, 40)),
            target: Some(memory(2, 40)),
        }))
    }

    async fn query(&self, request: Request<QueryRequest>) -> Answer<QueryReply> {
        let request = request.into_inner();
        self.0.enter(request.context.clone())?;
        let known = self.0.memories.lock().expect("memories").clone();
        let hash = |memory: &Memory| short_hash(false, &memory.id);
        let nodes: Vec<NodeHit> = known
            .iter()
            .filter(|memory| !request.shown.contains(&hash(memory)))
            .take(request.max_nodes as usize)
            .map(|memory| NodeHit {
                memory: Some(memory.clone()),
                score: 0.5,
                ..NodeHit::default()
            })
            .collect();
        let ranking = nodes
            .iter()
            .map(|hit| FusionHit {
                id: hit.memory.as_ref().expect("memory").id.clone(),
                score: 0.5,
                is_turn: false,
            })
            .collect();
        self.0.queries.lock().expect("queries").push(request);
        Ok(Response::new(QueryReply {
            empty_reason: if nodes.is_empty() {
                "no_match".to_owned()
            } else {
                String::new()
            },
            links: vec![link(70, 1, 2, 3)],
            nodes,
            ranking,
            total_in_scope: known.len() as u64,
            read_at: Some(ReadPoint {
                shard: 1,
                applied_index: 5,
                stamp: T0,
            }),
            ..QueryReply::default()
        }))
    }

    async fn prime(&self, request: Request<PrimeRequest>) -> Answer<PrimeReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let item = |number: u64| PrimeItem {
            memory_id: uuid_bytes(number),
            text: format!("line {number} {}", "x".repeat(150)),
        };
        let known = self.0.memories.lock().expect("memories").clone();
        Ok(Response::new(PrimeReply {
            project: "shop".to_owned(),
            sections: vec![
                PrimeSection {
                    title: "Open conflicts".to_owned(),
                    items: vec![item(1)],
                },
                PrimeSection {
                    title: "Decisions in force".to_owned(),
                    items: (2..12).map(item).collect(),
                },
                PrimeSection {
                    title: "Preferences".to_owned(),
                    items: (12..15).map(item).collect(),
                },
            ],
            nodes: known
                .into_iter()
                .map(|memory| NodeHit {
                    memory: Some(memory),
                    ..NodeHit::default()
                })
                .collect(),
            read_at: Some(ReadPoint {
                shard: 1,
                applied_index: 5,
                stamp: T0,
            }),
            ..PrimeReply::default()
        }))
    }

    async fn related(&self, request: Request<RelatedRequest>) -> Answer<RelatedReply> {
        self.0.enter(request.into_inner().context)?;
        let known = self.0.memories.lock().expect("memories").clone();
        let nodes = known
            .into_iter()
            .map(|memory| RelatedNode {
                memory: Some(memory),
                depth: 1,
                strength_thousandths: 500,
                ..RelatedNode::default()
            })
            .collect();
        Ok(Response::new(RelatedReply {
            nodes,
            links: vec![link(70, 1, 2, 3)],
            more: false,
        }))
    }

    async fn list_scopes(&self, request: Request<ListScopesRequest>) -> Answer<ListScopesReply> {
        self.0.enter(request.into_inner().context)?;
        Ok(Response::new(ListScopesReply {
            projects: (0..60)
                .map(|n| ProjectInfo {
                    name: format!("project-{n}"),
                    last_used_at: T0,
                    ..ProjectInfo::default()
                })
                .collect(),
            agents: vec![AgentInfo {
                name: "coder".to_owned(),
                ..AgentInfo::default()
            }],
            ..ListScopesReply::default()
        }))
    }

    async fn stats(&self, request: Request<StatsRequest>) -> Answer<StatsReply> {
        self.0.enter(request.into_inner().context)?;
        Ok(Response::new(StatsReply {
            memories: 3,
            memories_by_kind: vec![0, 2, 0, 0, 0, 1],
            most_recent: vec![memory(1, 40)],
            ..StatsReply::default()
        }))
    }
}

#[tonic::async_trait]
impl MetaService for Shared {
    async fn get_placement(&self, _: Request<GetPlacementRequest>) -> Answer<Placement> {
        self.0.placements_read.fetch_add(1, Ordering::Relaxed);
        Ok(Response::new(Placement {
            cluster_id: vec![1; 16],
            version: 1,
            slots: vec![1; usize::from(Slot::COUNT)],
            shards: vec![ShardReplicas {
                shard: 1,
                replicas: vec![Replica {
                    id: 1,
                    node: 1,
                    state: 2,
                }],
            }],
            nodes: Vec::new(),
            replication: 1,
            next_replica: 2,
        }))
    }

    type WatchPlacementStream = tokio_stream::Pending<Result<Placement, Status>>;

    async fn watch_placement(&self, _: Request<WatchPlacementRequest>) -> Answer<Self::WatchPlacementStream> {
        Ok(Response::new(tokio_stream::pending()))
    }

    async fn create_join_token(&self, _: Request<CreateJoinTokenRequest>) -> Answer<CreateJoinTokenReply> {
        Err(Status::unimplemented("not of this stub"))
    }

    async fn set_node_state(&self, _: Request<SetNodeStateRequest>) -> Answer<Placement> {
        Err(Status::unimplemented("not of this stub"))
    }

    async fn plan_cluster(&self, _: Request<PlanClusterRequest>) -> Answer<PlanClusterReply> {
        Err(Status::unimplemented("not of this stub"))
    }

    async fn transfer_leader(&self, _: Request<TransferLeaderRequest>) -> Answer<TransferLeaderReply> {
        Err(Status::unimplemented("not of this stub"))
    }

    async fn shard_digest(&self, _: Request<ShardDigestRequest>) -> Answer<ShardDigestReply> {
        Err(Status::unimplemented("not of this stub"))
    }

    async fn find_key(&self, request: Request<FindKeyRequest>) -> Answer<FindKeyReply> {
        self.0.keys_read.fetch_add(1, Ordering::Relaxed);
        if self.0.away.load(Ordering::Relaxed) {
            return Err(Status::unavailable("scripted"));
        }
        let found = self
            .0
            .keys
            .lock()
            .expect("keys")
            .get(&request.into_inner().key_id)
            .cloned();
        let (key, secret_hash) = found.map_or((None, Vec::new()), |(info, hash)| (Some(info), hash));
        Ok(Response::new(FindKeyReply { key, secret_hash }))
    }

    async fn create_tenant(&self, request: Request<CreateTenantRequest>) -> Answer<TenantInfo> {
        let request = request.into_inner();
        Ok(Response::new(TenantInfo {
            tenant_id: request.tenant_id,
            name: request.name,
            status: "active".to_owned(),
            created_at: T0,
            existed: false,
        }))
    }

    async fn list_tenants(&self, _: Request<ListTenantsRequest>) -> Answer<ListTenantsReply> {
        let tenant = |id: &str| TenantInfo {
            tenant_id: id.to_owned(),
            ..TenantInfo::default()
        };
        Ok(Response::new(ListTenantsReply {
            tenants: vec![tenant("acme"), tenant("other")],
            truncated: false,
        }))
    }

    async fn create_key(&self, request: Request<CreateKeyRequest>) -> Answer<KeyInfo> {
        let request = request.into_inner();
        let info = request.key.expect("a key");
        self.0
            .keys
            .lock()
            .expect("keys")
            .insert(info.key_id.clone(), (info.clone(), request.secret_hash));
        Ok(Response::new(info))
    }

    async fn list_keys(&self, request: Request<ListKeysRequest>) -> Answer<ListKeysReply> {
        let tenant = request.into_inner().tenant_id;
        let keys = self.0.keys.lock().expect("keys");
        let keys = keys
            .values()
            .map(|(info, _)| info.clone())
            .filter(|info| tenant.is_empty() || info.tenant_id == tenant);
        Ok(Response::new(ListKeysReply {
            keys: keys.collect(),
            truncated: false,
        }))
    }

    async fn revoke_key(&self, request: Request<RevokeKeyRequest>) -> Answer<KeyInfo> {
        let request = request.into_inner();
        let mut keys = self.0.keys.lock().expect("keys");
        let found = keys
            .get_mut(&request.key_id)
            .filter(|(info, _)| request.of_tenant.is_empty() || info.tenant_id == request.of_tenant);
        let Some((info, _)) = found else {
            return Err(failure("not_found", Family::Rejected));
        };
        info.revoked_at = Some(T0);
        Ok(Response::new(info.clone()))
    }

    async fn node_status(&self, _: Request<NodeStatusRequest>) -> Answer<NodeStatusReply> {
        Ok(Response::new(NodeStatusReply {
            node_id: 1,
            version: "0.1.0".to_owned(),
            ..NodeStatusReply::default()
        }))
    }
}
