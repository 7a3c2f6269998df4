//! A whole node with one shard for the tests of its calls, reached over gRPC in memory.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "tasks of a test end with it; each uses a part"
)]

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint, Server};
use waggle_config::runtime::clock::System;
use waggle_memory::meta::{ClusterId, NodeId, ShardId};
use waggle_node::{ClusterOrigin, EngineOptions, Identity, NoPeers, Node, NodeOptions};
use waggle_proto::wire::CallContext;
use waggle_shard::Settings;
use waggle_store::{Start, StoreOptions};

/// A node that serves until [`Hosted::end`].
pub(crate) struct Hosted {
    /// To every service of the node.
    pub(crate) channel: Channel,
    folder: tempfile::TempDir,
    node: Node,
    stop: CancellationToken,
    served: tokio::task::JoinHandle<()>,
    shard: u32,
}

impl Hosted {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity {
            cluster: ClusterId([7; 16]),
            node: NodeId(1),
        };
        let mut store = StoreOptions::development(Start::Fresh(identity));
        store.reserve_bytes = 0;
        let options = NodeOptions {
            data_dir: folder.path().join("store"),
            store,
            identity,
            cluster_dir: folder.path().join("cluster"),
            origin: ClusterOrigin::New {
                shard_count: 1,
                replication: 1,
            },
            address: String::new(),
            zone: String::new(),
            incarnation: [1; 16],
            dial: Arc::new(NoPeers),
            raft: Settings::default(),
            engine: EngineOptions::default(),
        };
        let node = Node::start(options, Arc::new(System::new())).await.unwrap();
        let shard = node.placement().slots[0].0;
        let (send, receive) = tokio::sync::mpsc::channel(16);
        let incoming = ReceiverStream::new(receive).map(Ok::<_, std::io::Error>);
        let services = node.services();
        let stop = CancellationToken::new();
        let ended = stop.clone().cancelled_owned();
        let served = tokio::spawn(async move {
            let server = Server::builder()
                .add_service(services.memory())
                .add_service(services.history())
                .add_service(services.transcripts());
            server.serve_with_incoming_shutdown(incoming, ended).await.unwrap();
        });
        let connector = tower::service_fn(move |_: http::Uri| {
            let send = send.clone();
            async move {
                let (server, client) = tokio::io::duplex(1 << 18);
                send.send(server).await.map_err(std::io::Error::other)?;
                Ok::<_, std::io::Error>(TokioIo::new(client))
            }
        });
        let channel = Endpoint::from_static("http://node.test").connect_with_connector_lazy(connector);
        Self {
            channel,
            folder,
            node,
            stop,
            served,
            shard,
        }
    }

    /// The shard of every tenant.
    pub(crate) fn shard(&self) -> ShardId {
        ShardId(self.shard)
    }

    /// A call of the tenant `acme`.
    pub(crate) fn context(&self, request_id: &str) -> CallContext {
        CallContext {
            tenant: "acme".to_owned(),
            principal: "key:a".to_owned(),
            shard: self.shard,
            placement_version: 1,
            request_id: request_id.to_owned(),
            arguments_fingerprint: 1,
        }
    }

    /// Clients must be gone before.
    pub(crate) async fn end(self) {
        self.end_and_keep().await.close().unwrap();
    }

    /// The same; gives the folder with the data in `store`.
    pub(crate) async fn end_and_keep(self) -> tempfile::TempDir {
        let Self {
            channel,
            folder,
            node,
            stop,
            served,
            ..
        } = self;
        drop(channel);
        stop.cancel();
        served.await.unwrap();
        node.shutdown(Duration::from_secs(20)).await.unwrap();
        folder
    }
}
