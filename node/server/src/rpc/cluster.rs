//! The service between nodes: joining, changes of the placement, messages of replicas, snapshots.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use waggle_memory::command::{Command, JoinNode};
use waggle_memory::id::Principal;
use waggle_memory::meta::{KeyId, ShardId};
use waggle_memory::outcome::Outcome;
use waggle_memory::tables::typed;
use waggle_proto::wire::cluster_service_server::ClusterService;
use waggle_proto::wire::{
    self, JoinRequest, Placement, ReplicaAnswer, ReplicaFrame, SnapshotAnswer, SnapshotPiece, SnapshotProgressReply,
    SnapshotProgressRequest,
};
use waggle_shard::{CallKind, Frame, Proposal};

use crate::cluster::{Incoming, change_placement_here};
use crate::engine::Engine;
use crate::error::CallError;

/// Messages of one other node that are answered at the same time.
const FRAMES_AT_ONCE: usize = 1_024;

/// ClusterService.
#[derive(Clone)]
pub(crate) struct ClusterCalls {
    pub(crate) engine: Arc<Engine>,
    pub(crate) incoming: Arc<Incoming>,
}

impl ClusterCalls {
    async fn let_in(&self, join: JoinNode) -> Result<Placement, CallError> {
        let node = join.node.id;
        let meta = self.engine.shard(ShardId::META)?;
        let proposal = Proposal {
            principal: Principal(format!("node:{}", node.0)),
            request: None,
            command: Command::JoinNode(Box::new(join)),
        };
        let proposed = meta.propose(proposal, self.engine.options.call_time_max).await?;
        if let Outcome::Rejected(rejection) = proposed.outcome {
            return Err(rejection.into());
        }
        tracing::info!(%node, "a node joined");
        let placement = self
            .engine
            .blocking(|engine| {
                engine
                    .database
                    .read(ShardId::META, typed::placement)
                    .map_err(|fault| CallError::halted("read the placement", &fault))
            })
            .await?;
        placement
            .map(|placement| wire::placement(&placement))
            .ok_or_else(|| CallError::halted("read the placement", &"it is not there after a join"))
    }

    async fn answer(&self, message: ReplicaFrame) -> ReplicaAnswer {
        let number = message.number;
        match self.answer_frame(message).await {
            Ok(body) => ReplicaAnswer {
                number,
                body,
                refused: String::new(),
            },
            Err(refused) => ReplicaAnswer {
                number,
                body: Vec::new(),
                refused,
            },
        }
    }

    async fn answer_frame(&self, message: ReplicaFrame) -> Result<Vec<u8>, String> {
        let kind = match message.kind {
            1 => CallKind::Append,
            2 => CallKind::Vote,
            3 => CallKind::PreVote,
            4 => CallKind::TransferLeader,
            other => return Err(format!("unknown kind {other}")),
        };
        let shard = ShardId(message.shard);
        let handle = self
            .engine
            .shards
            .get(shard)
            .filter(|handle| handle.replica() == message.to_replica)
            .ok_or_else(|| format!("replica {} of {shard} is not on this node", message.to_replica))?;
        let frame = Frame {
            kind,
            body: message.body.into(),
        };
        let answer = handle.answer(frame).await.map_err(|malformed| malformed.to_string())?;
        Ok(answer.into())
    }
}

#[tonic::async_trait]
impl ClusterService for ClusterCalls {
    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<Placement>, Status> {
        let certificate = request
            .extensions()
            .get::<waggle_config::certificates::Subject>()
            .copied();
        let request = request.into_inner();
        let node = request.node.ok_or_else(|| CallError::invalid("node", "is missing"))?;
        let node = wire::node_info_of(node).map_err(CallError::from)?;
        if certificate.is_some_and(|subject| subject.id != node.id.0) {
            return Err(CallError::rejected("authorization_failed", "the certificate is for another node").into());
        }
        if node.address.is_empty() || node.address.len() > 256 || node.zone.len() > 64 {
            return Err(CallError::invalid("node", "has no address, or a text is too long").into());
        }
        let join = JoinNode {
            node,
            token: KeyId(request.token_id),
            secret_hash: request.secret_hash,
        };
        Ok(Response::new(self.let_in(join).await?))
    }

    async fn change_placement(&self, request: Request<Placement>) -> Result<Response<Placement>, Status> {
        let next = wire::placement_of(request.into_inner()).map_err(CallError::from)?;
        let changed = change_placement_here(&self.engine, next).await?;
        Ok(Response::new(wire::placement(&changed)))
    }

    type ReplicateStream = Pin<Box<dyn Stream<Item = Result<ReplicaAnswer, Status>> + Send>>;

    async fn replicate(
        &self,
        request: Request<Streaming<ReplicaFrame>>,
    ) -> Result<Response<Self::ReplicateStream>, Status> {
        let calls = self.clone();
        // The futures are polled for the first time in the order of the messages, so each replica is handed its messages
        // in that order; answers leave as they come.
        let answers = request
            .into_inner()
            .map(move |message| {
                let calls = calls.clone();
                async move { Ok(calls.answer(message?).await) }
            })
            .buffer_unordered(FRAMES_AT_ONCE);
        Ok(Response::new(Box::pin(answers)))
    }

    async fn send_snapshot(
        &self,
        request: Request<Streaming<SnapshotPiece>>,
    ) -> Result<Response<SnapshotAnswer>, Status> {
        let mut pieces = request.into_inner();
        let engine = Arc::clone(&self.engine);
        let room = engine
            .blocking(|engine| {
                engine
                    .database
                    .free_bytes()
                    .map_err(|fault| CallError::halted("look at the free space", &fault))
            })
            .await?;
        // Twice: the files, and the rows that are made from them.
        let arrived = self.incoming.receive(&mut pieces, room / 2).await?;
        let handle = self.engine.shard(arrived.shard)?;
        if handle.replica() != arrived.replica {
            return Err(CallError::rejected("validation_failed", "the snapshot is for another replica").into());
        }
        tracing::info!(shard = %arrived.shard, "install a snapshot");
        let answer = handle
            .answer_snapshot(arrived.frame, arrived.files)
            .await
            .map_err(|malformed| CallError::invalid("install", malformed.to_string()))?;
        self.incoming.remove(arrived.shard).await;
        Ok(Response::new(SnapshotAnswer { body: answer.into() }))
    }

    async fn snapshot_progress(
        &self,
        request: Request<SnapshotProgressRequest>,
    ) -> Result<Response<SnapshotProgressReply>, Status> {
        Ok(Response::new(self.incoming.progress(request.get_ref()).await?))
    }
}
