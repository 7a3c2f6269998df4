//! Accepts connections, with TLS where configured, and lets them end in peace.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use waggle_config::limits::CONNECTIONS_MAX;

use crate::options::Listen;

/// A client that says nothing is dropped after this time.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
const HEADER_TIME_MAX: Duration = Duration::from_secs(30);
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// After accept failed, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Listener {
    name: &'static str,
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    pub(crate) async fn bind(name: &'static str, listen: &Listen) -> std::io::Result<Self> {
        let socket = TcpListener::bind(listen.address).await?;
        let address = socket.local_addr()?;
        Ok(Self {
            name,
            socket,
            address,
            tls: listen.tls.clone().map(TlsAcceptor::from),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then waits for what is in progress, at most `drain_time`.
    pub(crate) async fn serve(self, router: Router, stop: CancellationToken, drain_time: Duration) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let graceful = Arc::new(GracefulShutdown::new());
        let abandon = CancellationToken::new();
        let tasks = TaskTracker::new();
        loop {
            let Some(place) = (tokio::select! {
                () = stop.cancelled() => None,
                place = Arc::clone(&places).acquire_owned() => place.ok(),
            }) else {
                break;
            };
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(listener = self.name, %error, "accept failed");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                },
            };
            let connection = Connection {
                router: router.clone(),
                graceful: Arc::clone(&graceful),
            };
            let (tls, abandon) = (self.tls.clone(), abandon.clone());
            tasks.spawn(async move {
                tokio::select! {
                    () = abandon.cancelled() => {}
                    () = connection.run(stream, tls) => {}
                }
                drop(place);
            });
        }
        drop(self.socket);
        tasks.close();
        // Idle connections end now, busy ones after their answer.
        let drained = async {
            if let Ok(graceful) = unwrap_when_free(graceful).await {
                graceful.shutdown().await;
            }
            tasks.wait().await;
        };
        if tokio::time::timeout(drain_time, drained).await.is_err() {
            tracing::warn!(
                listener = self.name,
                connections = tasks.len(),
                "connections still busy after the drain time are cut"
            );
            abandon.cancel();
            tasks.wait().await;
        }
    }
}

/// Connections hold the watcher only while they start.
async fn unwrap_when_free(mut graceful: Arc<GracefulShutdown>) -> Result<GracefulShutdown, ()> {
    for _ in 0..200 {
        match Arc::try_unwrap(graceful) {
            Ok(graceful) => return Ok(graceful),
            Err(held) => graceful = held,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(())
}

struct Connection {
    router: Router,
    graceful: Arc<GracefulShutdown>,
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Answers are small and whole: waiting to fill a packet only costs time.
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.speak(stream).await,
            Some(acceptor) => match tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => self.speak(stream).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            },
        }
    }

    async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME_MAX)
            .max_buf_size(HEADER_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(HEADER_BYTES_MAX as u32)
            .max_concurrent_streams(128)
            .keep_alive_interval(Duration::from_secs(20));
        let service = TowerToHyperService::new(self.router);
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let watched = self.graceful.watch(connection);
        drop(self.graceful);
        // How a connection ends is the client's business.
        if let Err(error) = watched.await {
            tracing::trace!(%error, "connection ended");
        }
    }
}
