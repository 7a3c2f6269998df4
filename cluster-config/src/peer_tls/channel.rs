//! Channels to other processes. Each connect takes the material of that moment.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Error, Uri};

use super::PeerTls;
use crate::certificates::Subject;
use crate::limits::CONNECT_TIME_MAX;

/// A peer whose machine is gone says nothing; without questions nobody would notice.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
const KEEP_ALIVE_PATIENCE: Duration = Duration::from_secs(10);
/// What HTTP/2 lets one call, and one connection, send before it waits for the other side.
const CALL_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * CALL_WINDOW_BYTES;

impl PeerTls {
    /// A channel to the process `subject` at `address` (host:port): opened at the first call, and again after every
    /// loss. Whoever answers there with another certificate than the subject's is refused.
    pub fn channel(&self, subject: Subject, address: &str) -> Result<Channel, Error> {
        // TLS is the connector's work, so tonic must not add its own: hence http here, https in what the peer sees.
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?
            .connect_timeout(CONNECT_TIME_MAX)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_PATIENCE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(CALL_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let endpoint = match Uri::try_from(format!("https://{}", subject.dns_name())) {
            Ok(origin) => endpoint.origin(origin),
            Err(_) => endpoint,
        };
        let (tls, address): (Self, Arc<str>) = (self.clone(), Arc::from(address));
        let connector = tower::service_fn(move |_: Uri| {
            let (tls, address) = (tls.clone(), Arc::clone(&address));
            async move { tls.connect(subject, &address).await.map(TokioIo::new) }
        });
        Ok(endpoint.connect_with_connector_lazy(connector))
    }

    pub(super) async fn connect(
        &self,
        subject: Subject,
        address: &str,
    ) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        // Answers are small and whole: waiting to fill a packet only costs time.
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(subject.dns_name()).map_err(io::Error::other)?;
        // Loaded after the connect, which may have taken long.
        let config = Arc::clone(&self.0.current.load().client);
        TlsConnector::from(config).connect(name, stream).await
    }
}
