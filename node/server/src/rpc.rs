//! The gRPC services: one file a call. They read the message, do the work, write the answer.

mod canonicalize;
mod clear;
mod cluster;
mod conflicts;
mod decompose;
mod delete;
mod diff;
mod duplicates;
mod feed;
mod handoff;
mod history;
mod hits;
mod meta;
mod observe;
mod placement;
mod prime;
mod query;
mod related;
mod replay;
mod resolve;
mod scoped;
mod scopes;
mod stats;
mod store_link;
pub(crate) mod store_memory;
mod timeline;
mod topics;
mod transfer;
mod update;
mod views;

use std::sync::Arc;

use tonic::{Request, Response, Status};
use waggle_proto::wire::history_service_server::HistoryService;
use waggle_proto::wire::insight_service_server::InsightService;
use waggle_proto::wire::memory_service_server::MemoryService;
use waggle_proto::wire::transcript_service_server::TranscriptService;
use waggle_proto::wire::{
    CanonicalizeReply, CanonicalizeRequest, ClearReply, ClearRequest, DecomposeReply, DecomposeRequest,
    DeleteMemoryReply, DeleteMemoryRequest, DiffReply, DiffRequest, DuplicatesReply, DuplicatesRequest, HandoffReply,
    HandoffRequest, HistoryReply, HistoryRequest, ListConflictsReply, ListConflictsRequest, ListScopesReply,
    ListScopesRequest, ObserveReply, ObserveRequest, PrimeReply, PrimeRequest, QueryReply, QueryRequest, RelatedReply,
    RelatedRequest, ReplayReply, ReplayRequest, ResolveConflictReply, ResolveConflictRequest, StatsReply, StatsRequest,
    StoreLinkReply, StoreLinkRequest, StoreMemoryReply, StoreMemoryRequest, TimelineReply, TimelineRequest,
    TopicsReply, TopicsRequest, UpdateMemoryReply, UpdateMemoryRequest,
};

use crate::engine::Engine;
pub(crate) use cluster::ClusterCalls;
pub(crate) use meta::MetaCalls;
pub(crate) use topics::TopicCache;
pub(crate) use transfer::TransferCalls;

/// MemoryService.
#[derive(Clone)]
pub(crate) struct MemoryCalls {
    pub(crate) engine: Arc<Engine>,
}

/// HistoryService.
#[derive(Clone)]
pub(crate) struct HistoryCalls {
    pub(crate) engine: Arc<Engine>,
}

/// InsightService.
#[derive(Clone)]
pub(crate) struct InsightCalls {
    pub(crate) engine: Arc<Engine>,
}

macro_rules! calls {
    ($service:ident for $calls:ident: $($name:ident($request:ty) -> $reply:ty = $module:ident;)*) => {
        #[tonic::async_trait]
        impl $service for $calls {
            $(
                async fn $name(&self, request: Request<$request>) -> Result<Response<$reply>, Status> {
                    let started = self.engine.clock.monotonic();
                    let result = $module::handle(&self.engine, request.into_inner()).await;
                    let spent = self.engine.clock.monotonic().saturating_sub(started);
                    metrics::histogram!("waggle_node_call_duration_seconds", "call" => stringify!($name))
                        .record(spent.as_secs_f64());
                    Ok(Response::new(result?))
                }
            )*
        }
    };
}

calls! {
    MemoryService for MemoryCalls:
    observe(ObserveRequest) -> ObserveReply = observe;
    store_memory(StoreMemoryRequest) -> StoreMemoryReply = store_memory;
    store_link(StoreLinkRequest) -> StoreLinkReply = store_link;
    update_memory(UpdateMemoryRequest) -> UpdateMemoryReply = update;
    delete_memory(DeleteMemoryRequest) -> DeleteMemoryReply = delete;
    resolve_conflict(ResolveConflictRequest) -> ResolveConflictReply = resolve;
    query(QueryRequest) -> QueryReply = query;
    prime(PrimeRequest) -> PrimeReply = prime;
    related(RelatedRequest) -> RelatedReply = related;
    list_scopes(ListScopesRequest) -> ListScopesReply = scopes;
    stats(StatsRequest) -> StatsReply = stats;
}

calls! {
    InsightService for InsightCalls:
    decompose(DecomposeRequest) -> DecomposeReply = decompose;
    topics(TopicsRequest) -> TopicsReply = topics;
    duplicates(DuplicatesRequest) -> DuplicatesReply = duplicates;
    replay(ReplayRequest) -> ReplayReply = replay;
}

/// TranscriptService.
#[derive(Clone)]
pub(crate) struct TranscriptCalls {
    pub(crate) engine: Arc<Engine>,
}

calls! {
    TranscriptService for TranscriptCalls:
    handoff(HandoffRequest) -> HandoffReply = handoff;
}

calls! {
    HistoryService for HistoryCalls:
    history(HistoryRequest) -> HistoryReply = history;
    timeline(TimelineRequest) -> TimelineReply = timeline;
    list_conflicts(ListConflictsRequest) -> ListConflictsReply = conflicts;
    diff(DiffRequest) -> DiffReply = diff;
    canonicalize(CanonicalizeRequest) -> CanonicalizeReply = canonicalize;
    clear(ClearRequest) -> ClearReply = clear;
}
