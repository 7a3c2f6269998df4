//! gRPC inside one process: the same services and the same messages as between two, over pipes in memory. `waggle dev`
//! so runs the code that a cluster runs, without a port that somebody else could reach.

use std::io;

use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Uri};

/// Bytes on their way in one direction. A typical answer fits.
const PIPE_BYTES: usize = 256 * 1024;
const CONNECTIONS_WAITING_MAX: usize = 16;
/// What HTTP/2 lets one call send before it waits for the other side.
const WINDOW_BYTES: u32 = 1024 * 1024;

pub(crate) type Incoming = ReceiverStream<io::Result<DuplexStream>>;

/// A channel, and the connections that it will open.
pub(crate) fn in_memory() -> (Channel, Incoming) {
    let (opened, incoming) = mpsc::channel(CONNECTIONS_WAITING_MAX);
    let connector = tower::service_fn(move |_: Uri| {
        let opened = opened.clone();
        async move {
            let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
            opened
                .send(Ok(theirs))
                .await
                .map_err(|_| io::Error::other("the node has stopped"))?;
            Ok::<_, io::Error>(TokioIo::new(ours))
        }
    });
    let channel = Endpoint::from_static("http://node.waggle.internal")
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(4 * WINDOW_BYTES)
        .connect_with_connector_lazy(connector);
    (channel, ReceiverStream::new(incoming))
}
