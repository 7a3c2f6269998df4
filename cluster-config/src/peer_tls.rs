//! Mutual TLS between the processes of a cluster, as server and as client, with certificates that can be renewed while
//! it runs (I-42).
//!
//! Every handshake takes the material of that moment. A connection keeps what it was opened with, so a renewal breaks no
//! call. Only [`PeerTls::reload`] changes the material, and only for one that [`certificates::load`] has proven. Here is
//! nothing of what a peer may do: a server asks [`Peer::admit`], for each call.
//!
//! Sessions are never resumed: every connection shows its certificate anew to whoever is trusted now.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use waggle_memory::time::Millis;

use crate::certificates::{self, CertificateError, Material, Role, Subject};
use crate::checked::TlsFiles;
use crate::runtime::clock::Clock;

mod channel;
mod incoming;
mod watch;

pub use incoming::{Peer, PeerStream, only};

const HTTP2: &[u8] = b"h2";

/// What a process shows to others and whom it trusts. A clone is another handle of the same.
#[derive(Clone)]
pub struct PeerTls(Arc<Shared>);

struct Shared {
    files: TlsFiles,
    clock: Arc<dyn Clock>,
    current: ArcSwap<Current>,
}

/// All of one moment, so that no handshake mixes an old certificate with a new authority.
struct Current {
    material: Arc<Material>,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl PeerTls {
    /// Reads and proves the files of a process.
    pub fn load(files: TlsFiles, role: Role, clock: Arc<dyn Clock>) -> Result<Self, CertificateError> {
        let material = certificates::load(&files, role, clock.wall())?;
        let current = ArcSwap::from_pointee(Current::new(&files, material, &clock)?);
        Ok(Self(Arc::new(Shared { files, clock, current })))
    }

    pub fn subject(&self) -> Subject {
        self.0.current.load().material.subject
    }

    /// What new connections use.
    pub fn material(&self) -> Arc<Material> {
        Arc::clone(&self.0.current.load().material)
    }

    pub fn expires_at(&self) -> Millis {
        self.0.current.load().material.expires_at
    }

    /// Refuses a certificate that is for another process than this one.
    pub fn is_for(&self, needed: Subject) -> Result<(), CertificateError> {
        self.material().is_for(&self.0.files, needed)
    }

    /// Reads the files again. What is wrong with them changes nothing: the pair that is in use stays.
    pub fn reload(&self) -> Result<(), CertificateError> {
        let subject = self.subject();
        let material = certificates::load(&self.0.files, subject.role, self.0.clock.wall())?;
        material.is_for(&self.0.files, subject)?;
        self.0
            .current
            .store(Arc::new(Current::new(&self.0.files, material, &self.0.clock)?));
        Ok(())
    }
}

impl fmt::Debug for PeerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerTls({:?})", self.material())
    }
}

impl Current {
    fn new(files: &TlsFiles, material: Material, clock: &Arc<dyn Clock>) -> Result<Self, CertificateError> {
        let provider = Arc::new(certificates::provider());
        let time = Arc::new(OurTime(Arc::clone(clock)));
        let bad_ca = |why: String| CertificateError::Malformed {
            path: files.ca.clone(),
            why,
        };
        let bad_pair = |why: String| CertificateError::Malformed {
            path: files.certificate.clone(),
            why,
        };
        let mut roots = RootCertStore::empty();
        for der in ders(&material.ca_pem).map_err(bad_ca)? {
            roots.add(der).map_err(|error| bad_ca(error.to_string()))?;
        }
        let roots = Arc::new(roots);
        let chain = ders(&material.certificate_pem).map_err(bad_pair)?;
        let key =
            PrivateKeyDer::from_pem_slice(material.key_pem.as_bytes()).map_err(|_| bad_pair("no key".to_owned()))?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| bad_ca(error.to_string()))?;
        let tls = |error: rustls::Error| bad_pair(error.to_string());
        let mut server = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::clone(&time) as _)
            .with_protocol_versions(&[&TLS13])
            .map_err(tls)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(tls)?;
        server.alpn_protocols = vec![HTTP2.to_vec()];
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&TLS13])
            .map_err(tls)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(tls)?;
        client.alpn_protocols = vec![HTTP2.to_vec()];
        client.resumption = Resumption::disabled();
        Ok(Self {
            material: Arc::new(material),
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }
}

/// Whether a peer's certificate is in time is asked of the same clock as everything else.
#[derive(Debug)]
struct OurTime(Arc<dyn Clock>);

impl TimeProvider for OurTime {
    fn current_time(&self) -> Option<UnixTime> {
        let millis = u64::try_from(self.0.wall().0).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_millis(millis)))
    }
}

fn ders(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
