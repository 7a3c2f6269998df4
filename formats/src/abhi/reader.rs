//! Reads a container: everything is verified when it is opened, then records are given one by one.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use serde_json::Value;
use sha2::{Digest, Sha256};
use waggle_memory::record::Record;

use super::container::{Container, Lines, malformed, wrong};
use super::manifest::Manifest;
use super::taken::Taken;
use super::{EDGES, LINES, MANIFEST, NODES, PUBLIC_KEY, SIGNATURE, TRANSCRIPTS, WINDOWS, crypt};
use crate::check::check;
use crate::counts::Counts;
use crate::error::{Dangling, Place, ReadError};
use crate::json::{self, hex};
use crate::shape::memory::{RedirectShape, TombstoneShape};
use crate::signature::Signature;
use crate::waggle::{Changes, Importer, OURS, edge, node, transcript};

/// A file whose hashes fit.
pub struct Reader<R> {
    container: Container<R>,
    passphrase: Option<String>,
    manifest: Manifest,
    signature: Option<Signature>,
    lines: [u64; 4],
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records that were given out.
    pub counts: Counts,
    /// What was changed on the way.
    pub changes: Changes,
    /// Links without an end, the first hundred.
    pub dangling: Vec<Dangling>,
}

impl<R: Read + Seek> Reader<R> {
    /// Opens and verifies: every member's hash, the content hash, and what the manifest says about both. The signature
    /// is read and checked on request ([`Reader::is_signed_by`]).
    pub fn open(input: R, passphrase: Option<&str>) -> Result<Self, ReadError> {
        let mut container = Container::open(input)?;
        if !container.has(MANIFEST) {
            return Err(wrong("it has no manifest"));
        }
        let manifest = Manifest::parse(&container.whole(MANIFEST)?)?;
        manifest.check_members(|name| container.has(name))?;
        let (content_hash, lines) = hash_lines(&mut container, &manifest, passphrase)?;
        if manifest.content_hash().trim_start_matches("sha256:") != content_hash.trim_start_matches("sha256:") {
            return Err(ReadError::Hash {
                what: "the file".to_owned(),
            });
        }
        for (name, count) in LINES.iter().zip(lines) {
            if manifest.stated_count(name).is_some_and(|stated| stated != count) {
                return Err(malformed(
                    MANIFEST,
                    None,
                    0,
                    &format!("counts: {name} has {count} lines"),
                ));
            }
        }
        let signature = if manifest.is_signed() {
            Some(read_signature(&mut container)?)
        } else {
            None
        };
        Ok(Self {
            container,
            passphrase: passphrase.map(str::to_owned),
            manifest,
            signature,
            lines,
        })
    }

    /// What the file says about itself.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The signature, if there is one; whether it fits is another question.
    pub const fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    /// Lines of transcripts, nodes, edges and context windows.
    pub const fn line_counts(&self) -> [u64; 4] {
        self.lines
    }

    /// Whether a trusted key signed this very content. `trusted` says which public keys count.
    pub fn is_signed_by(&self, trusted: impl FnOnce(&[u8; 32]) -> bool) -> bool {
        self.signature
            .is_some_and(|signature| trusted(&signature.public_key) && signature.fits(self.manifest.content_hash()))
    }

    /// Gives every record to `sink`: sessions, turns, memories, links, redirects, tombstones. Links without an end are
    /// left out, and refuse the file at its end unless they are allowed: read once without a purpose before anything
    /// is done with the records.
    pub fn records<E: From<ReadError>>(
        &mut self,
        importer: &Importer,
        allow_dangling: bool,
        mut sink: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<Report, E> {
        let repos = transcript::repos(self.manifest.value.get("repos").unwrap_or(&Value::Null));
        let mut taken = Taken::default();
        for name in [WINDOWS, TRANSCRIPTS, NODES, EDGES] {
            self.lines(name, &mut |line, place| {
                let record = record_of(name, line, &repos, importer, &mut taken.report.changes).map_err(|why| {
                    ReadError::Malformed {
                        place: place.clone(),
                        why,
                    }
                })?;
                match record {
                    Some(record) if taken.take(&record, &place)? => sink(record),
                    _ => Ok(()),
                }
            })?;
        }
        if !allow_dangling && !taken.report.dangling.is_empty() {
            return Err(ReadError::Dangling(taken.report.dangling).into());
        }
        for record in aside(&self.manifest)? {
            let place = Place {
                member: MANIFEST.to_owned(),
                index: None,
                position: 0,
            };
            if taken.take(&record, &place)? {
                sink(record)?;
            }
        }
        Ok(taken.report)
    }

    /// Every line of a member as a value.
    pub(super) fn lines<E: From<ReadError>>(
        &mut self,
        name: &'static str,
        on_value: &mut dyn FnMut(Value, Place) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.container.has(name) {
            return Ok(());
        }
        let mut lines = Lines::new(name);
        let mut on_line = |line: &[u8], place: Place| -> Result<(), E> {
            let value = json::parse(line).map_err(|why| ReadError::Malformed {
                place: place.clone(),
                why,
            })?;
            on_value(value, place)
        };
        let encrypted = self.manifest.member(name).is_some_and(|member| member.encrypted);
        if encrypted {
            let plain = crypt::unseal(&self.container.whole(name)?, self.passphrase.as_deref())?;
            lines.push(&plain, &mut on_line)?;
        } else {
            self.container
                .stream(name, &mut |chunk| lines.push(chunk, &mut on_line))?;
        }
        lines.end(&mut on_line)
    }
}

/// The content hash, with every member's own hash checked on the way, and the lines of each.
pub(super) fn hash_lines<R: Read + Seek>(
    container: &mut Container<R>,
    manifest: &Manifest,
    passphrase: Option<&str>,
) -> Result<(String, [u64; 4]), ReadError> {
    let mut all = manifest.start_hash();
    let mut counts = [0; 4];
    for (name, count) in LINES.into_iter().zip(&mut counts) {
        let Some(member) = manifest.member(name) else { continue };
        let mut own = Sha256::new();
        let mut size: u64 = 0;
        let mut last = b'\n';
        let mut blank = true;
        let mut take = |chunk: &[u8]| {
            own.update(chunk);
            all.update(chunk);
            size = size.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
            for byte in chunk {
                if *byte == b'\n' {
                    *count += u64::from(!blank);
                    blank = true;
                } else {
                    blank &= byte.is_ascii_whitespace();
                }
            }
            last = chunk.last().copied().unwrap_or(last);
        };
        if member.encrypted {
            take(&crypt::unseal(&container.whole(name)?, passphrase)?);
        } else {
            container.stream(name, &mut |chunk| -> Result<(), ReadError> {
                take(chunk);
                Ok(())
            })?;
        }
        *count += u64::from(!blank);
        if last != b'\n' {
            all.update(b"\n");
        }
        let digest: [u8; 32] = own.finalize().into();
        if hex(&digest) != member.sha256 || member.size.is_some_and(|stated| stated != size) {
            return Err(ReadError::Hash { what: name.to_owned() });
        }
    }
    let digest: [u8; 32] = all.finalize().into();
    Ok((format!("sha256:{}", hex(&digest)), counts))
}

fn read_signature<R: Read + Seek>(container: &mut Container<R>) -> Result<Signature, ReadError> {
    if !container.has(SIGNATURE) || !container.has(PUBLIC_KEY) {
        return Err(ReadError::Signature(
            "the manifest says that the file is signed, and the signature is missing",
        ));
    }
    let damaged = ReadError::Signature("the signature or its public key is no Ed25519");
    let bytes = container.whole(SIGNATURE)?.try_into();
    let public_key = crypt::from_pem(&container.whole(PUBLIC_KEY)?);
    match (bytes, public_key) {
        (Ok(bytes), Some(public_key)) => Ok(Signature { public_key, bytes }),
        _ => Err(damaged),
    }
}

pub(crate) fn record_of(
    member: &str,
    line: Value,
    repos: &BTreeMap<String, String>,
    importer: &Importer,
    changes: &mut Changes,
) -> Result<Option<Record>, String> {
    let record = match member {
        WINDOWS => transcript::from_window(line, repos, importer, changes)?.map(Record::Session),
        TRANSCRIPTS => {
            let (turn, message) = transcript::from_line(line, importer, changes)?;
            Some(Record::Turn(Box::new(turn), message))
        }
        NODES => Some(Record::Memory(Box::new(node::from_line(line, importer, changes)?))),
        _ => edge::from_line(line, importer, changes)?.map(|link| Record::Link(Box::new(link))),
    };
    if let Some(record) = &record {
        check(record)?;
    }
    Ok(record)
}

/// Redirects and tombstones of the manifest.
fn aside(manifest: &Manifest) -> Result<Vec<Record>, ReadError> {
    let Some(ours) = manifest.value.get(OURS) else {
        return Ok(Vec::new());
    };
    let list = |name: &str| ours.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let damaged = |error: serde_json::Error| malformed(MANIFEST, None, 0, &json::why(&error));
    let mut records = Vec::new();
    for value in list("redirects") {
        let shape: RedirectShape = serde_json::from_value(value).map_err(damaged)?;
        records.push(Record::Redirect(shape.into()));
    }
    for value in list("tombstones") {
        let shape: TombstoneShape = serde_json::from_value(value).map_err(damaged)?;
        let (id, tombstone) = shape.read();
        records.push(Record::Tombstone(id, tombstone));
    }
    for record in &records {
        check(record).map_err(|why| malformed(MANIFEST, None, 0, &why))?;
    }
    Ok(records)
}
