//! Hears of placements from whichever node answers, so that routes are known before they are needed and stay known while
//! the meta shard is away.

use std::time::Duration;

use tokio_stream::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use waggle_config::limits::RPC_BYTES_MAX;
use waggle_proto::wire;
use waggle_proto::wire::meta_service_client::MetaServiceClient;

use super::Cluster;

const AGAIN_AFTER: Duration = Duration::from_millis(500);

impl Cluster {
    /// Until `shutdown`.
    pub(crate) async fn watch(&self, shutdown: &CancellationToken) {
        let mut turn = 0_usize;
        loop {
            let nodes = self.nodes.all();
            let at = turn.checked_rem(nodes.len()).unwrap_or(0);
            turn = turn.wrapping_add(1);
            let following = async {
                if let Some((node, channel)) = nodes.get(at) {
                    let why = self.follow(channel.clone()).await;
                    tracing::debug!(%node, why, "this node tells of no more placements");
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = following => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(AGAIN_AFTER) => {}
            }
        }
    }

    async fn follow(&self, channel: Channel) -> String {
        let known_version = self.known_placement().map_or(0, |placement| placement.version);
        let mut client = MetaServiceClient::new(channel).max_decoding_message_size(RPC_BYTES_MAX);
        let request = wire::WatchPlacementRequest { known_version };
        let mut placements = match client.watch_placement(request).await {
            Ok(answer) => answer.into_inner(),
            Err(status) => return status.message().to_owned(),
        };
        loop {
            match placements.next().await {
                Some(Ok(placement)) => {
                    self.learn(placement);
                }
                Some(Err(status)) => return status.message().to_owned(),
                None => return "the stream has ended".to_owned(),
            }
        }
    }
}
