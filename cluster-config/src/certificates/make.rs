//! Making authorities and certificates. Keys are written with mode 0600, and nothing is replaced: `renew` does that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SanType,
};
use waggle_memory::time::Millis;

use super::{CertificateError, Role, Subject, certificates_in, files, parse, read, read_key};
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
    let made = Authority::load(dir)?.sign(subject, now)?;
    identity::write(&files.key, made.key_pem.as_bytes(), Access::Owner)?;
    identity::write(&files.certificate, made.certificate_pem.as_bytes(), Access::Everyone)?;
    Ok(files)
}

/// The authority of a directory, with its key.
pub(super) struct Authority(Issuer<'static, KeyPair>);

pub(super) struct Made {
    pub(super) certificate_pem: String,
    pub(super) key_pem: String,
}

impl Authority {
    /// Of several certificates in ca.pem it is the one that belongs to ca.key.
    pub(super) fn load(dir: &Path) -> Result<Self, CertificateError> {
        let (ca, ca_key) = (dir.join("ca.pem"), dir.join("ca.key"));
        let key_pair = KeyPair::from_pem(&read_key(&ca_key)?)?;
        let public = key_pair.subject_public_key_info();
        for der in certificates_in(&ca, &read(&ca)?)? {
            if parse(&ca, &der)?.public_key().raw == public {
                return Ok(Self(Issuer::from_ca_cert_der(&der, key_pair)?));
            }
        }
        Err(CertificateError::OtherKey {
            key: ca_key,
            certificate: ca,
        })
    }

    pub(super) fn sign(&self, subject: Subject, now: Millis) -> Result<Made, CertificateError> {
        let key_pair = KeyPair::generate()?;
        let made = leaf(subject, now)?.signed_by(&key_pair, &self.0)?;
        Ok(Made {
            certificate_pem: made.pem(),
            key_pem: key_pair.serialize_pem(),
        })
    }
}

fn leaf(subject: Subject, now: Millis) -> Result<CertificateParams, CertificateError> {
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
    Ok(params)
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
