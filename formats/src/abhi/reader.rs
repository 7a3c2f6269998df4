//! Reads a container: everything is verified when it is opened, then records are given one by one.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Seek};

use serde_json::Value;
use sha2::{Digest, Sha256};
use waggle_memory::id::MemoryId;
use waggle_memory::record::Record;

use super::container::{Container, Lines, malformed, wrong};
use super::manifest::Manifest;
use super::{EDGES, LINES, MANIFEST, NODES, PUBLIC_KEY, SIGNATURE, TRANSCRIPTS, WINDOWS, crypt};
use crate::check::check;
use crate::counts::Counts;
use crate::error::{Dangling, Place, ReadError};
use crate::json::{self, hex};
use crate::limits::{NODES_MAX, RECORDS_MAX};
use crate::shape::memory::{RedirectShape, TombstoneShape};
use crate::signature::Signature;
use crate::waggle::{Changes, Importer, OURS, edge, node, transcript};

/// Links without an end that an error lists.
const DANGLING_LISTED_MAX: usize = 100;

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
                return Err(malformed(MANIFEST, None, 0, &format!("counts: {name} has {count} lines")));
            }
        }
        let signature = if manifest.is_signed() { Some(read_signature(&mut container)?) } else { None };
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

    /// Whether a trusted key signed this very content. `trusted` says which public keys count.
    pub fn is_signed_by(&self, trusted: impl FnOnce(&[u8; 32]) -> bool) -> bool {
        self.signature.is_some_and(|signature| {
            trusted(&signature.public_key) && signature.fits(self.manifest.content_hash())
        })
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
                let record = record_of(name, line, &repos, importer, &mut taken.report.changes)
                    .map_err(|why| ReadError::Malformed { place: place.clone(), why })?;
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
            self.container.stream(name, &mut |chunk| lines.push(chunk, &mut on_line))?;
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
        return Err(ReadError::Signature("the manifest says that the file is signed, and the signature is missing"));
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
        TRANSCRIPTS => Some(Record::Turn(Box::new(transcript::from_line(line, importer, changes)?))),
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
    let Some(ours) = manifest.value.get(OURS) else { return Ok(Vec::new()) };
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

/// Counts records, and refuses doubles and links without an end.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) report: Report,
    nodes: HashSet<MemoryId>,
    others: HashSet<[u8; 16]>,
    last: Option<u8>,
}

impl Taken {
    /// Whether the record is to be given out.
    pub(crate) fn take(&mut self, record: &Record, place: &Place) -> Result<bool, ReadError> {
        let counts = &mut self.report.counts;
        let (sort, count, limit) = match record {
            Record::Session(_) => (0, &mut counts.sessions, RECORDS_MAX),
            Record::Turn(_) => (1, &mut counts.transcripts, RECORDS_MAX),
            Record::Memory(_) => (2, &mut counts.nodes, NODES_MAX),
            Record::Link(_) => (3, &mut counts.edges, RECORDS_MAX),
            Record::Redirect(_) => (4, &mut counts.redirects, RECORDS_MAX),
            Record::Tombstone(..) => (5, &mut counts.tombstones, RECORDS_MAX),
        };
        if self.last != Some(sort) {
            self.others.clear();
            self.last = Some(sort);
        }
        let new = match record {
            Record::Session(_) => true,
            Record::Turn(turn) => self.others.insert(turn.id.bytes()),
            Record::Memory(memory) => self.nodes.insert(memory.memory.id),
            Record::Link(link) => self.others.insert(link.id.bytes()),
            Record::Redirect(redirect) => self.others.insert(redirect.from.bytes()),
            Record::Tombstone(id, _) => self.others.insert(id.bytes()),
        };
        if !new {
            return Err(ReadError::Malformed {
                place: place.clone(),
                why: "a record with this id was there before".to_owned(),
            });
        }
        if let Record::Link(link) = record {
            for end in [link.source, link.target] {
                if !self.nodes.contains(&end) {
                    self.report.changes.dangling_dropped += 1;
                    if self.report.dangling.len() < DANGLING_LISTED_MAX {
                        self.report.dangling.push(Dangling { link: link.id, end });
                    }
                    return Ok(false);
                }
            }
        }
        if *count >= limit {
            return Err(ReadError::TooLarge {
                place: place.clone(),
                what: "records of one sort",
                limit,
            });
        }
        *count += 1;
        Ok(true)
    }
}

/// What a check of a file finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validation {
    /// Nothing stands against an import; links without an end do.
    pub valid: bool,
    /// Why not.
    pub errors: Vec<String>,
    /// What an import would change or leave out.
    pub warnings: Vec<String>,
    /// What was read.
    pub report: Report,
    /// As computed and stated.
    pub content_hash: String,
    /// Whether lines are encrypted.
    pub encrypted: bool,
    /// None for a file without a signature, else whether it fits its own key.
    pub signature_fits: Option<bool>,
}

/// Checks a file without doing anything with it.
pub fn validate<R: Read + Seek>(input: R, passphrase: Option<&str>, importer: &Importer) -> Validation {
    let mut found = Validation::default();
    let result = Reader::open(input, passphrase).and_then(|mut reader| {
        found.content_hash = reader.manifest.content_hash().to_owned();
        found.encrypted = reader.manifest.is_encrypted();
        found.signature_fits = reader.signature.map(|_| reader.is_signed_by(|_| true));
        reader.records(importer, true, |_| Ok::<(), ReadError>(()))
    });
    match result {
        Err(error) => found.errors.push(error.to_string()),
        Ok(report) => {
            if !report.dangling.is_empty() {
                found.errors.push(ReadError::Dangling(report.dangling.clone()).to_string());
            }
            found.warnings = warnings(&report.changes);
            found.report = report;
        }
    }
    if found.signature_fits == Some(false) {
        found.errors.push("the signature does not fit the content".to_owned());
    }
    found.valid = found.errors.is_empty();
    found
}

fn warnings(changes: &Changes) -> Vec<String> {
    [
        (changes.ids_renamed, "ids are no UUID and get one made of their text"),
        (changes.relationships_replaced, "links have a relationship that is not known here and become relates_to"),
        (changes.self_links_dropped, "links from a memory to itself are left out"),
        (changes.evidence_dropped, "placeholders for missing evidence are left out"),
        (changes.cut, "texts or lists are above a bound and cut"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect()
}

/// What a file holds, by its own words.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// The whole manifest.
    pub manifest: Value,
    /// Lines of transcripts, nodes, edges and context windows.
    pub lines: [u64; 4],
    /// Memories by kind, as the file calls them.
    pub node_types: BTreeMap<String, u64>,
    /// Links by relationship, as the file calls them.
    pub edge_types: BTreeMap<String, u64>,
}

/// Kinds or relationships that an inspection tells apart.
const WORDS_MAX: usize = 100;

/// Looks into a file.
pub fn inspect<R: Read + Seek>(input: R, passphrase: Option<&str>) -> Result<Inspection, ReadError> {
    let mut reader = Reader::open(input, passphrase)?;
    let mut inspection = Inspection {
        manifest: reader.manifest.value.clone(),
        lines: reader.lines,
        node_types: BTreeMap::new(),
        edge_types: BTreeMap::new(),
    };
    for (name, field, types) in [
        (NODES, "node_type", &mut inspection.node_types),
        (EDGES, "relationship", &mut inspection.edge_types),
    ] {
        reader.lines(name, &mut |line: Value, _| -> Result<(), ReadError> {
            let word = line.get(field).and_then(Value::as_str).unwrap_or_default();
            let word: String = word.chars().take(80).collect();
            if types.len() < WORDS_MAX || types.contains_key(&word) {
                *types.entry(word).or_default() += 1;
            }
            Ok(())
        })?;
    }
    Ok(inspection)
}
