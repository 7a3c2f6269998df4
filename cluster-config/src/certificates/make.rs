//! Making authorities and certificates. Keys are written with mode 0600, and nothing is ever replaced.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use waggle_memory::time::Millis;

use super::{CertificateError, Role, Subject, files, read, read_key};
use crate::checked::TlsFiles;
use crate::identity::{self, Access};

const CA_LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const LEAF_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Machines' clocks differ a little: a new certificate must be good on all of them at once.
const BACKDATED: Duration = Duration::from_secs(3600);

/// Makes a new authority in `dir`: `ca.pem` and `ca.key`. Whoever has the key can make nodes of this cluster.
pub fn create_ca(dir: &Path, now: Millis) -> Result<PathBuf, CertificateError> {
    let (certificate, key) = (dir.join("ca.pem"), dir.join("ca.key"));
    refuse_existing(&[&certificate, &key])?;
    let key_pair = KeyPair::generate()?;
    let mut params = params_for("waggle cluster authority", now, CA_LIFE);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let made = params.self_signed(&key_pair)?;
    identity::write(&key, key_pair.serialize_pem().as_bytes(), Access::Owner)?;
    identity::write(&certificate, made.pem().as_bytes(), Access::Everyone)?;
    Ok(certificate)
}

/// Makes a certificate for one process, signed by the authority in `dir`.
pub fn create(dir: &Path, subject: Subject, now: Millis) -> Result<TlsFiles, CertificateError> {
    let files = files(dir, subject);
    refuse_existing(&[&files.certificate, &files.key])?;
    let ca_pem = read(&files.ca)?;
    let ca_key = read_key(&dir.join("ca.key"))?;
    let issuer = Issuer::from_ca_cert_pem(&ca_pem, KeyPair::from_pem(&ca_key)?)?;
    let key_pair = KeyPair::generate()?;
    let mut params = params_for(&subject.dns_name(), now, LEAF_LIFE);
    params.subject_alt_names = vec![
        SanType::DnsName(subject.dns_name().try_into()?),
        SanType::URI(subject.uri().try_into()?),
    ];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // Nodes also call each other.
    params.extended_key_usages = match subject.role {
        Role::Node => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        Role::Gateway => vec![ExtendedKeyUsagePurpose::ClientAuth],
    };
    params.use_authority_key_identifier_extension = true;
    let made = params.signed_by(&key_pair, &issuer)?;
    identity::write(&files.key, key_pair.serialize_pem().as_bytes(), Access::Owner)?;
    identity::write(&files.certificate, made.pem().as_bytes(), Access::Everyone)?;
    Ok(files)
}

fn params_for(name: &str, now: Millis, life: Duration) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let now = Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = epoch + now.saturating_sub(BACKDATED);
    params.not_after = epoch + now + life;
    params
}

fn refuse_existing(paths: &[&PathBuf]) -> Result<(), CertificateError> {
    match paths.iter().find(|path| path.exists()) {
        Some(path) => Err(CertificateError::Exists((*path).clone())),
        None => Ok(()),
    }
}
