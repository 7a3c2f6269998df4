//! Certificates between the processes of one cluster: a small authority of its own, certificates whose name says id
//! and role, and the checks that make plaintext and mistaken identity impossible (I-42).
//!
//! A certificate carries its subject twice: as the DNS name `node-1.waggle.internal`, which TLS checks, and as the URI
//! `waggle://node/1`, from which we read the role. A peer's role is checked after the handshake, by [`peer`].

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use waggle_memory::time::Millis;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use crate::checked::TlsFiles;
use crate::identity::{self, IdentityError, SecretError};

mod load;
mod make;
mod renew;

pub use load::load;
pub use make::{create, create_ca};
pub use renew::{ensure, renew};

/// What a process may do towards others. A node's certificate grants the most: guard its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Node,
    Gateway,
}

impl Role {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Gateway => "gateway",
        }
    }
}

/// Whose certificate it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    pub role: Role,
    pub id: u64,
}

impl Subject {
    /// The name that TLS checks.
    pub fn dns_name(self) -> String {
        format!("{}-{}.waggle.internal", self.role.word(), self.id)
    }

    fn uri(self) -> String {
        format!("waggle://{}/{}", self.role.word(), self.id)
    }

    fn from_uri(uri: &str) -> Option<Self> {
        let (role, id) = uri.strip_prefix("waggle://")?.split_once('/')?;
        let role = [Role::Node, Role::Gateway]
            .into_iter()
            .find(|known| known.word() == role)?;
        Some(Self {
            role,
            id: id.parse().ok()?,
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role.word(), self.id)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("read {}: {source}; make one with `waggle cert`, or name another file", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: {why}", .path.display())]
    Malformed { path: PathBuf, why: String },
    #[error("{}: this certificate is for {found}, but a {} needs one of its own role", .path.display(), .needed.word())]
    WrongRole {
        path: PathBuf,
        found: Subject,
        needed: Role,
    },
    #[error("{}: this certificate is for {found}, but this process is {needed}", .path.display())]
    WrongId {
        path: PathBuf,
        found: Subject,
        needed: Subject,
    },
    #[error("{}: not valid before {from}, and it is {now}; check the clock of this machine", .path.display())]
    NotYet { path: PathBuf, from: Millis, now: Millis },
    #[error("{}: expired at {end}; renew it with `waggle cert renew --role {} --id {}`", .path.display(), .subject.role.word(), .subject.id)]
    Expired {
        path: PathBuf,
        subject: Subject,
        end: Millis,
    },
    #[error("{} is not signed by the authority in {}", .certificate.display(), .ca.display())]
    OtherAuthority { certificate: PathBuf, ca: PathBuf },
    #[error("{} is not the key of the certificate in {}", .key.display(), .certificate.display())]
    OtherKey { key: PathBuf, certificate: PathBuf },
    #[error("{} exists already; `waggle cert renew` replaces a certificate", .0.display())]
    Exists(PathBuf),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Write(#[from] IdentityError),
    #[error("make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// Certificate, key and authority of one process, as PEM, proven to belong together. tonic takes it as it is.
#[derive(Clone)]
pub struct Material {
    pub subject: Subject,
    pub ca_pem: String,
    pub certificate_pem: String,
    pub key_pem: String,
    pub expires_at: Millis,
    /// The end of the authority that signed it, which may be one of several in the file.
    pub authority_expires_at: Millis,
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Material({}, until {})", self.subject, self.expires_at)
    }
}

/// What one certificate file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub path: PathBuf,
    /// None: an authority.
    pub subject: Option<Subject>,
    pub expires_at: Millis,
}

/// Where a certificate stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Good,
    /// It ends within [`ENDING_WITHIN`]: time to renew it.
    Ending,
    Ended,
}

/// Milliseconds.
pub const ENDING_WITHIN: i64 = 30 * Millis::DAY;

impl Life {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Ending => "expiring",
            Self::Ended => "expired",
        }
    }
}

impl Described {
    pub fn life(&self, now: Millis) -> Life {
        if now >= self.expires_at {
            Life::Ended
        } else if now.plus(ENDING_WITHIN) >= self.expires_at {
            Life::Ending
        } else {
            Life::Good
        }
    }
}

/// Names of the files of one directory of certificates.
pub fn files(dir: &Path, subject: Subject) -> TlsFiles {
    let stem = format!("{}-{}", subject.role.word(), subject.id);
    TlsFiles {
        ca: dir.join("ca.pem"),
        certificate: dir.join(format!("{stem}.pem")),
        key: dir.join(format!("{stem}.key")),
    }
}

/// The provider of all TLS in the process: ring, and of its suites those of TLS 1.3 only, so that no connection of
/// ours can be talked into an older protocol. Call it first of all; a second call changes nothing.
pub fn install_provider() {
    // Err: somebody was first, which only a test binary can arrange.
    drop(provider().install_default());
}

pub(crate) fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    provider
        .cipher_suites
        .retain(|suite| suite.version().version == rustls::ProtocolVersion::TLSv1_3);
    provider
}

impl Material {
    /// Refuses a certificate that is for another node than this one.
    pub fn is_for(&self, files: &TlsFiles, needed: Subject) -> Result<(), CertificateError> {
        if self.subject == needed {
            return Ok(());
        }
        Err(CertificateError::WrongId {
            path: files.certificate.clone(),
            found: self.subject,
            needed,
        })
    }
}

/// Why a peer is not let in after a good handshake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    #[error("the peer showed no certificate")]
    Absent,
    #[error("the peer's certificate names no role of this cluster")]
    Unnamed,
    #[error("{0} may not call this service")]
    NotAllowed(Subject),
}

/// Who a peer is, by the first certificate of its verified chain; refuses every role that is not `allowed`. A server
/// calls it for each connection: the handshake has proven the authority, not the role.
pub fn peer(chain: &[CertificateDer<'_>], allowed: &[Role]) -> Result<Subject, PeerError> {
    let der = chain.first().ok_or(PeerError::Absent)?;
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| PeerError::Unnamed)?;
    let subject = subject_of(&certificate).ok_or(PeerError::Unnamed)?;
    if allowed.contains(&subject.role) {
        Ok(subject)
    } else {
        Err(PeerError::NotAllowed(subject))
    }
}

/// Every certificate of a directory, by name of its file. A file of authorities may hold several.
pub fn list(dir: &Path) -> Result<Vec<Described>, CertificateError> {
    let unreadable = |source| CertificateError::Unreadable {
        path: dir.to_owned(),
        source,
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pem"));
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        for der in certificates_in(&path, &read(&path)?)? {
            let certificate = parse(&path, &der)?;
            let (_, expires_at) = life(&certificate);
            found.push(Described {
                subject: subject_of(&certificate),
                expires_at,
                path: path.clone(),
            });
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String, CertificateError> {
    fs::read_to_string(path).map_err(|source| CertificateError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn read_key(path: &Path) -> Result<String, CertificateError> {
    let metadata = fs::metadata(path).map_err(|source| CertificateError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    identity::check_private(path, &metadata)?;
    read(path)
}

/// All certificates of a file; at least one.
fn certificates_in(path: &Path, pem: &str) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let malformed = |why: String| CertificateError::Malformed {
        path: path.to_owned(),
        why,
    };
    let found = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| malformed(format!("no certificate in PEM form: {error}")))?;
    if found.is_empty() {
        return Err(malformed("no certificate in PEM form".to_owned()));
    }
    Ok(found)
}

fn parse<'a>(path: &Path, der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, CertificateError> {
    X509Certificate::from_der(der)
        .map(|(_, certificate)| certificate)
        .map_err(|error| CertificateError::Malformed {
            path: path.to_owned(),
            why: format!("not a certificate: {error}"),
        })
}

fn subject_of(certificate: &X509Certificate<'_>) -> Option<Subject> {
    let names = certificate.subject_alternative_name().ok()??;
    let mut subjects = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) => Subject::from_uri(uri),
        _ => None,
    });
    // Two roles in one certificate would mean that a check of one of them is no check.
    match (subjects.next(), subjects.next()) {
        (Some(subject), None) => Some(subject),
        _ => None,
    }
}

fn life(certificate: &X509Certificate<'_>) -> (Millis, Millis) {
    let validity = certificate.validity();
    (
        Millis(validity.not_before.timestamp() * 1_000),
        Millis(validity.not_after.timestamp() * 1_000),
    )
}

#[cfg(test)]
mod tests;
