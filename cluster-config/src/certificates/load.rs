//! Reading what a process needs, and proving it before anything is done with it.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use waggle_memory::time::Millis;
use x509_parser::prelude::X509Certificate;

use super::{CertificateError, Material, Role, certificates_in, life, parse, provider, read, read_key, subject_of};
use crate::checked::TlsFiles;

/// Reads what a process needs and proves it: right role, in time, a known authority, one key. The file of the
/// authority may hold several while one replaces another; one of them has to be the signer.
pub fn load(files: &TlsFiles, role: Role, now: Millis) -> Result<Material, CertificateError> {
    let ca_pem = read(&files.ca)?;
    let certificate_pem = read(&files.certificate)?;
    let key_pem = read_key(&files.key)?;
    let path = || files.certificate.clone();
    let chain = certificates_in(&files.certificate, &certificate_pem)?;
    let certificate = first(files, &chain)?;
    let subject = subject_of(&certificate).ok_or_else(|| CertificateError::Malformed {
        path: path(),
        why: "the certificate names no node and no gateway; make one with `waggle cert`".to_owned(),
    })?;
    if subject.role != role {
        return Err(CertificateError::WrongRole {
            path: path(),
            found: subject,
            needed: role,
        });
    }
    let authority_expires_at = signer_expires_at(files, &ca_pem, &certificate)?;
    let (from, expires_at) = life(&certificate);
    if now < from {
        return Err(CertificateError::NotYet {
            path: path(),
            from,
            now,
        });
    }
    if now >= expires_at {
        return Err(CertificateError::Expired {
            path: path(),
            subject,
            end: expires_at,
        });
    }
    check_key(files, chain.clone(), &key_pem)?;
    Ok(Material {
        subject,
        ca_pem,
        certificate_pem,
        key_pem,
        expires_at,
        authority_expires_at,
    })
}

/// Whether the key is the certificate's.
pub(super) fn check_key(
    files: &TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    key_pem: &str,
) -> Result<(), CertificateError> {
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|error| CertificateError::Malformed {
        path: files.key.clone(),
        why: format!("no private key in PEM form: {error}"),
    })?;
    let provider = Arc::new(provider());
    rustls::sign::CertifiedKey::from_der(chain, key, &provider)
        .map(|_| ())
        .map_err(|_| CertificateError::OtherKey {
            key: files.key.clone(),
            certificate: files.certificate.clone(),
        })
}

fn first<'a>(files: &TlsFiles, chain: &'a [CertificateDer<'static>]) -> Result<X509Certificate<'a>, CertificateError> {
    let der = chain.first().ok_or_else(|| CertificateError::Malformed {
        path: files.certificate.clone(),
        why: "no certificate in PEM form".to_owned(),
    })?;
    parse(&files.certificate, der)
}

/// The end of the authority that signed the certificate.
fn signer_expires_at(
    files: &TlsFiles,
    ca_pem: &str,
    certificate: &X509Certificate<'_>,
) -> Result<Millis, CertificateError> {
    for der in certificates_in(&files.ca, ca_pem)? {
        let authority = parse(&files.ca, &der)?;
        if certificate.verify_signature(Some(authority.public_key())).is_ok() {
            return Ok(life(&authority).1);
        }
    }
    Err(CertificateError::OtherAuthority {
        certificate: files.certificate.clone(),
        ca: files.ca.clone(),
    })
}
