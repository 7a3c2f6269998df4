//! Real handshakes over loopback, with the bytes that tonic would send over them.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected as _;

use super::*;
use crate::certificates::{PeerError, create, create_ca, files, renew};
use crate::runtime::clock::Manual;

const NOW: Millis = Millis(1_796_000_000_000);
const NODE: Subject = Subject {
    role: Role::Node,
    id: 1,
};
const GATEWAY: Subject = Subject {
    role: Role::Gateway,
    id: 1,
};
const LONG: Duration = Duration::from_secs(30);

fn made() -> tempfile::TempDir {
    let temp = tempfile::tempdir().expect("temporary directory");
    create_ca(temp.path(), NOW).expect("authority");
    create(temp.path(), NODE, NOW).expect("node");
    create(temp.path(), GATEWAY, NOW).expect("gateway");
    temp
}

fn tls(dir: &Path, subject: Subject) -> PeerTls {
    tls_with(dir, subject, Manual::at(NOW))
}

fn tls_with(dir: &Path, subject: Subject, clock: Manual) -> PeerTls {
    PeerTls::load(files(dir, subject), subject.role, Arc::new(clock)).expect("load")
}

/// A server that gives away its connections.
struct Server {
    address: String,
    accepted: mpsc::Receiver<PeerStream>,
    _work: tokio::task::JoinSet<()>,
}

impl Server {
    async fn start(tls: &PeerTls) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listen");
        let address = listener.local_addr().expect("address").to_string();
        let (sender, accepted) = mpsc::channel(8);
        let incoming = tls.incoming(listener);
        let mut work = tokio::task::JoinSet::new();
        work.spawn(async move {
            let mut incoming = pin!(incoming);
            while let Some(stream) = incoming.next().await {
                if sender.send(stream.expect("never an error")).await.is_err() {
                    return;
                }
            }
        });
        Self {
            address,
            accepted,
            _work: work,
        }
    }

    /// A connection, both ends of it. TLS 1.3 tells the client of a refusal only when it reads.
    async fn connect(&mut self, client: &PeerTls, to: Subject) -> (TlsStream<TcpStream>, PeerStream) {
        let ours = client.connect(to, &self.address).await.expect("connect");
        let theirs = soon(self.accepted.recv()).await.expect("accepted");
        (ours, theirs)
    }

    async fn is_refused(&mut self, client: &PeerTls, to: Subject) -> bool {
        match client.connect(to, &self.address).await {
            Err(_) => true,
            Ok(mut stream) => soon(stream.read_u8()).await.is_err(),
        }
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.expect("in time")
}

async fn talk(ours: &mut TlsStream<TcpStream>, theirs: &mut PeerStream) {
    ours.write_all(b"ping").await.expect("write");
    ours.flush().await.expect("flush");
    let mut said = [0; 4];
    soon(theirs.read_exact(&mut said)).await.expect("read");
    theirs.write_all(&said).await.expect("write");
    theirs.flush().await.expect("flush");
    soon(ours.read_exact(&mut said)).await.expect("read");
    assert_eq!(&said, b"ping");
}

fn shown(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    let chain = stream.get_ref().1.peer_certificates().expect("a certificate");
    chain[0].to_vec()
}

#[tokio::test]
async fn a_renewed_pair_is_shown_to_the_next_and_what_was_open_goes_on() {
    let dir = made();
    let (node, gateway) = (tls(dir.path(), NODE), tls(dir.path(), GATEWAY));
    let mut server = Server::start(&node).await;
    let (mut ours, mut theirs) = server.connect(&gateway, NODE).await;
    talk(&mut ours, &mut theirs).await;

    renew(dir.path(), NODE, NOW).expect("renew the node's");
    renew(dir.path(), GATEWAY, NOW).expect("renew the gateway's");
    node.reload().expect("reload");
    gateway.reload().expect("reload");

    let (mut newer, mut theirs_newer) = server.connect(&gateway, NODE).await;
    talk(&mut newer, &mut theirs_newer).await;
    assert_ne!(shown(&ours), shown(&newer));
    assert_eq!(theirs_newer.peer().admit(&[Role::Gateway]), Ok(GATEWAY));
    talk(&mut ours, &mut theirs).await;
    for name in ["node-1.pem.previous", "node-1.key.previous"] {
        assert!(dir.path().join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn a_role_decides_who_is_admitted_and_who_can_serve() {
    let dir = made();
    let (node, gateway) = (tls(dir.path(), NODE), tls(dir.path(), GATEWAY));
    let mut server = Server::start(&node).await;
    let (_ours, theirs) = server.connect(&gateway, NODE).await;
    assert_eq!(theirs.peer().admit(&[Role::Node]), Err(PeerError::NotAllowed(GATEWAY)));
    assert_eq!(theirs.peer().admit(&[Role::Node, Role::Gateway]), Ok(GATEWAY));
    // The same for each call, by what tonic puts beside it.
    let call = || {
        let mut request = tonic::Request::new(());
        request.extensions_mut().insert(theirs.connect_info());
        request
    };
    let admitted = only(&[Role::Gateway])(call()).expect("its role");
    assert_eq!(admitted.extensions().get::<Subject>(), Some(&GATEWAY));
    let refused = only(&[Role::Node])(call()).expect_err("another role");
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    assert!(only(&[Role::Node])(tonic::Request::new(())).is_err(), "nobody at all");
    // Another node than the one that was asked for.
    let other = Subject { id: 2, ..NODE };
    assert!(server.is_refused(&gateway, other).await);
    // A gateway's certificate does not make a server.
    let mut impostor = Server::start(&gateway).await;
    assert!(impostor.is_refused(&node, GATEWAY).await);
}

#[tokio::test]
async fn another_authority_is_refused_until_both_sides_trust_it() {
    let (dir, stranger) = (made(), made());
    let node = tls(dir.path(), NODE);
    let foreign = tls(stranger.path(), GATEWAY);
    let mut server = Server::start(&node).await;
    assert!(server.is_refused(&foreign, NODE).await);

    // The new authority first, as an operator would who goes over to it.
    let read = |dir: &Path| std::fs::read_to_string(dir.join("ca.pem")).expect("read");
    let (old, new) = (read(dir.path()), read(stranger.path()));
    for dir in [dir.path(), stranger.path()] {
        std::fs::write(dir.join("ca.pem"), format!("{new}{old}")).expect("write");
    }
    node.reload().expect("reload");
    foreign.reload().expect("reload");
    let (mut ours, mut theirs) = server.connect(&foreign, NODE).await;
    talk(&mut ours, &mut theirs).await;
    // The authority whose key is there signs, wherever it stands in the file.
    renew(dir.path(), NODE, NOW).expect("renew");
    node.reload().expect("reload");
    let (mut ours, mut theirs) = server.connect(&foreign, NODE).await;
    talk(&mut ours, &mut theirs).await;

    // Without the old one, what it signed is worth nothing, its own process included.
    let bundle = read(dir.path());
    std::fs::write(dir.path().join("ca.pem"), &new).expect("write");
    assert!(matches!(node.reload(), Err(CertificateError::OtherAuthority { .. })));
    std::fs::write(dir.path().join("ca.pem"), bundle).expect("write");
    std::fs::write(stranger.path().join("ca.pem"), &new).expect("write");
    foreign.reload().expect("signed by the new one");
    assert!(server.is_refused(&foreign, NODE).await);
}

#[tokio::test]
async fn a_broken_renewal_leaves_the_old_pair_in_use() {
    let dir = made();
    let node = tls(dir.path(), NODE);
    let gateway = tls(dir.path(), GATEWAY);
    let mut server = Server::start(&node).await;
    let before = node.material();
    let certificate = files(dir.path(), NODE).certificate;
    let good = std::fs::read(&certificate).expect("read");
    let other_subject = std::fs::read(files(dir.path(), GATEWAY).certificate).expect("read");
    for broken in [
        b"nonsense".to_vec(),
        Vec::new(),
        good[..good.len() / 2].to_vec(),
        other_subject,
    ] {
        std::fs::write(&certificate, broken).expect("write");
        assert!(node.reload().is_err());
        assert_eq!(node.material().certificate_pem, before.certificate_pem);
        let (mut ours, mut theirs) = server.connect(&gateway, NODE).await;
        talk(&mut ours, &mut theirs).await;
    }
    std::fs::write(&certificate, good).expect("write");
    node.reload().expect("whole again");
}

#[tokio::test]
async fn a_watcher_takes_changed_files_into_use() {
    let dir = made();
    let node = tls(dir.path(), NODE);
    let (now, stop) = (Arc::new(Notify::new()), CancellationToken::new());
    let watching = node.clone().watch(Arc::clone(&now), stop.clone());
    let before = node.material().certificate_pem.clone();
    let work = async {
        renew(dir.path(), NODE, NOW).expect("renew");
        while node.material().certificate_pem == before {
            now.notify_one();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    };
    soon(async { tokio::join!(watching, work) }).await;
}

#[test]
fn a_pair_that_is_not_good_yet_is_refused() {
    let dir = made();
    let node = tls(dir.path(), NODE);
    renew(dir.path(), NODE, NOW.plus(10 * Millis::DAY)).expect("renew");
    assert!(matches!(node.reload(), Err(CertificateError::NotYet { .. })));
}

#[tokio::test]
async fn a_certificate_that_has_ended_opens_no_connection() {
    let dir = made();
    let later = NOW.plus(2 * 365 * Millis::DAY);
    let clock = Arc::new(Manual::at(NOW));
    let gateway = PeerTls::load(files(dir.path(), GATEWAY), Role::Gateway, Arc::clone(&clock) as _).expect("in time");
    renew(dir.path(), NODE, later).expect("renew");
    let node = tls_with(dir.path(), NODE, Manual::at(later));
    let mut server = Server::start(&node).await;
    assert!(server.is_refused(&gateway, NODE).await, "the server's is not good yet");
    clock.set_wall(later);
    assert!(server.is_refused(&gateway, NODE).await, "the client's has ended");
    renew(dir.path(), GATEWAY, later).expect("renew");
    gateway.reload().expect("reload");
    let (mut ours, mut theirs) = server.connect(&gateway, NODE).await;
    talk(&mut ours, &mut theirs).await;
}
