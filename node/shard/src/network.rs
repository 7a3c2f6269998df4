//! openraft's network over the [`Wire`] port. All calls are implemented: openraft's default for pre-vote grants without
//! asking, and its default for streamed appends waits for each answer before it sends the next.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use openraft::errors::{
    NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout as TimeoutError, Unreachable,
};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use waggle_memory::meta::ShardId;

use crate::message::{Message, Reply, SnapshotHead};
use crate::ports::{CallKind, SnapshotFiles, Target, Wire, WireError};
use crate::types::{LogId, Member, ReplicaId, SnapshotMeta, Types, Vote};

/// Appends in flight to one follower. Each holds up to 300 entries or the byte cap of a log read.
const APPENDS_IN_FLIGHT_MAX: usize = 8;

type RpcError = RPCError<Types>;
type Snapshot = openraft::type_config::alias::SnapshotOf<Types, SnapshotFiles>;

/// Makes connections of one replica to the others of its shard.
pub(crate) struct Network {
    pub(crate) shard: ShardId,
    pub(crate) from: ReplicaId,
    pub(crate) wire: Arc<dyn Wire>,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Connection;

    async fn new_client(&mut self, target: ReplicaId, node: &Member) -> Connection {
        let target = Target {
            shard: self.shard,
            from: self.from,
            to: target,
            member: node.clone(),
        };
        Connection {
            target,
            wire: Arc::clone(&self.wire),
        }
    }
}

/// The way to one other replica.
pub(crate) struct Connection {
    target: Target,
    wire: Arc<dyn Wire>,
}

impl Connection {
    fn call<Q: Message, A: Message>(
        &self,
        kind: CallKind,
        request: &Q,
        timeout: Duration,
    ) -> impl Future<Output = Result<A, RpcError>> + Send + use<Q, A> {
        let answer = self.wire.call(&self.target, request.frame(kind), timeout);
        let target = self.target.clone();
        async move { read_answer(&target, kind, answer.await) }
    }
}

impl RaftNetworkV2<Types> for Connection {
    type SnapshotData = SnapshotFiles;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RpcError> {
        self.call(CallKind::Append, &rpc, option.soft_ttl()).await
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<Types>, RpcError>>, RpcError>>
    where
        S: Stream<Item = AppendEntriesRequest<Types>> + Send + Unpin + 'static,
    {
        let connection = &*self;
        // The frame enters the wire inside of `map`, in the order of the stream; only the answers are waited for
        // together.
        let answers = input
            .map(move |rpc| {
                let previous = rpc.prev_log_id;
                let last = rpc.entries.last().map(|entry| entry.log_id).or(previous);
                let answer = connection.call(CallKind::Append, &rpc, option.soft_ttl());
                async move { (previous, last, answer.await) }
            })
            .buffered(APPENDS_IN_FLIGHT_MAX)
            .scan(false, |ended, (previous, last, answer)| {
                if *ended {
                    return std::future::ready(None);
                }
                let result = stream_result(previous, last, answer);
                // After a conflict, a higher vote, a partial success or an error what follows was sent in vain.
                *ended = !matches!(&result, Ok(Ok(matched)) if *matched == last);
                std::future::ready(Some(result))
            });
        std::future::ready(Ok(answers.boxed())).boxed()
    }

    async fn vote(&mut self, rpc: VoteRequest<Types>, option: RPCOption) -> Result<VoteResponse<Types>, RpcError> {
        self.call(CallKind::Vote, &rpc, option.soft_ttl()).await
    }

    async fn pre_vote(&mut self, rpc: VoteRequest<Types>, option: RPCOption) -> Result<VoteResponse<Types>, RpcError> {
        self.call(CallKind::PreVote, &rpc, option.soft_ttl()).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let meta: SnapshotMeta = snapshot.meta;
        let frame = SnapshotHead { vote, meta }.frame(CallKind::Snapshot);
        let sending = self
            .wire
            .send_snapshot(&self.target, frame, snapshot.snapshot, option.soft_ttl());
        match select(sending, Box::pin(cancel)).await {
            Either::Left((answer, _)) => {
                read_answer(&self.target, CallKind::Snapshot, answer).map_err(StreamingError::from)
            }
            Either::Right((closed, _)) => Err(StreamingError::Closed(closed)),
        }
    }

    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RpcError> {
        self.call(CallKind::TransferLeader, &req, option.soft_ttl()).await
    }
}

fn stream_result(
    previous: Option<LogId>,
    last: Option<LogId>,
    answer: Result<AppendEntriesResponse<Types>, RpcError>,
) -> Result<StreamAppendResult<Types>, RpcError> {
    let answer = answer?;
    if answer.is_conflict() && previous.is_none() {
        // Nothing lies before the first entry, so nothing can conflict there: the follower talks nonsense.
        return Err(unreachable_because(
            "the follower reports a conflict before the first entry".to_owned(),
        ));
    }
    Ok(answer.into_stream_result(previous, last))
}

fn read_answer<A: Message>(target: &Target, kind: CallKind, answer: Result<Bytes, WireError>) -> Result<A, RpcError> {
    let bytes = answer.map_err(|error| match error {
        WireError::Unreachable(_) => RPCError::Unreachable(Unreachable::new(&error)),
        WireError::Timeout { after } => RPCError::Timeout(TimeoutError {
            action: action(kind),
            id: target.from,
            target: target.to,
            timeout: after,
        }),
        WireError::Lost(_) => RPCError::Network(NetworkError::new(&error)),
    })?;
    match Reply::<A>::from_bytes(&bytes) {
        Ok(Reply(Ok(answer))) => Ok(answer),
        Ok(Reply(Err(why))) => Err(unreachable_because(format!(
            "replica {} does not answer: {why}",
            target.to
        ))),
        Err(malformed) => Err(unreachable_because(format!(
            "replica {} answers nonsense: {malformed}",
            target.to
        ))),
    }
}

fn unreachable_because(why: String) -> RpcError {
    RPCError::Unreachable(Unreachable::from_string(why))
}

const fn action(kind: CallKind) -> RPCTypes {
    match kind {
        CallKind::Append => RPCTypes::AppendEntries,
        CallKind::Vote | CallKind::PreVote => RPCTypes::Vote,
        CallKind::TransferLeader => RPCTypes::TransferLeader,
        CallKind::Snapshot => RPCTypes::InstallSnapshot,
    }
}
