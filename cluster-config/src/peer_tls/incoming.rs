//! Accepting peers: handshakes run side by side, and who a peer is goes with each of its calls.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered, Stream, StreamExt as _};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;
use tonic::{Request, Status};

use super::PeerTls;
use crate::certificates::{self, PeerError, Role, Subject};
use crate::limits::{HANDSHAKE_TIME_MAX, HANDSHAKES_MAX};

/// After accept failed, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who is at the other end of a connection, as its certificate proves. Every request of the connection has it in its
/// extensions.
#[derive(Clone, Debug)]
pub struct Peer {
    subject: Result<Subject, PeerError>,
    pub address: Option<SocketAddr>,
}

impl Peer {
    /// Its subject, if that has one of the roles. The handshake has proven the authority, not the role.
    pub fn admit(&self, allowed: &[Role]) -> Result<Subject, PeerError> {
        match self.subject.clone()? {
            subject if allowed.contains(&subject.role) => Ok(subject),
            subject => Err(PeerError::NotAllowed(subject)),
        }
    }
}

/// For tonic's interceptors: lets calls of these roles through, with the caller's [`Subject`] in the extensions.
pub fn only(allowed: &'static [Role]) -> impl Fn(Request<()>) -> Result<Request<()>, Status> + Clone + Send + Sync {
    move |mut request| {
        let admitted = match request.extensions().get::<Peer>() {
            Some(peer) => peer.admit(allowed),
            None => Err(PeerError::Absent),
        };
        match admitted {
            Ok(subject) => {
                request.extensions_mut().insert(subject);
                Ok(request)
            }
            Err(error) => {
                tracing::warn!(%error, "refused a peer");
                Err(Status::permission_denied(error.to_string()))
            }
        }
    }
}

impl PeerTls {
    /// The connections of a listener after good handshakes, for tonic's `serve_with_incoming`. Dropping it closes the
    /// listener and ends unfinished handshakes; connections that were given out live on.
    pub fn incoming(&self, listener: TcpListener) -> impl Stream<Item = io::Result<PeerStream>> + Send + use<> {
        let accept = Accept {
            tls: self.clone(),
            listener,
            handshakes: FuturesUnordered::new(),
        };
        stream::unfold(accept, |mut accept| async move {
            let stream = accept.next().await;
            Some((Ok(stream), accept))
        })
    }
}

struct Accept {
    tls: PeerTls,
    listener: TcpListener,
    handshakes: FuturesUnordered<BoxFuture<'static, Option<PeerStream>>>,
}

impl Accept {
    async fn next(&mut self) -> PeerStream {
        loop {
            let has_room = self.handshakes.len() < HANDSHAKES_MAX;
            tokio::select! {
                Some(done) = self.handshakes.next(), if !self.handshakes.is_empty() => {
                    if let Some(stream) = done {
                        return stream;
                    }
                }
                accepted = self.listener.accept(), if has_room => match accepted {
                    Ok((stream, address)) => {
                        let config = Arc::clone(&self.tls.0.current.load().server);
                        self.handshakes.push(Box::pin(handshake(config, stream, address)));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "accept failed");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }
}

async fn handshake(config: Arc<ServerConfig>, stream: TcpStream, address: SocketAddr) -> Option<PeerStream> {
    // Answers are small and whole: waiting to fill a packet only costs time.
    drop(stream.set_nodelay(true));
    match tokio::time::timeout(HANDSHAKE_TIME_MAX, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(inner)) => Some(PeerStream::new(inner, address)),
        Ok(Err(error)) => {
            // A rustls error is about certificates or protocols; the rest are peers that went away, and port scans.
            if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                tracing::warn!(%address, %error, "TLS handshake refused");
            } else {
                tracing::debug!(%address, %error, "TLS handshake ended");
            }
            None
        }
        Err(_) => {
            tracing::debug!(%address, "TLS handshake took too long");
            None
        }
    }
}

/// One connection of a peer.
#[derive(Debug)]
pub struct PeerStream {
    inner: TlsStream<TcpStream>,
    peer: Peer,
}

impl PeerStream {
    fn new(inner: TlsStream<TcpStream>, address: SocketAddr) -> Self {
        let chain = inner.get_ref().1.peer_certificates().unwrap_or_default();
        let peer = Peer {
            subject: certificates::peer(chain, &[Role::Node, Role::Gateway]),
            address: Some(address),
        };
        Self { inner, peer }
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl Connected for PeerStream {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
