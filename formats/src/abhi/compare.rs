//! Two files compared. Works on the lines as they are, whoever wrote them; both are held in memory, so they are bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

use serde_json::Value;
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::record::Record;

use super::reader::{Reader, record_of};
use super::taken::Taken;
use super::{EDGES, NODES, TRANSCRIPTS, WINDOWS};
use crate::error::{Place, ReadError};
use crate::json::canonical;
use crate::limits::{COMPARED_BYTES_MAX, COMPARED_RECORDS_MAX};
use crate::waggle::{Changes, Importer, OURS, transcript};

/// Fields of a memory that count as a difference. Versions, use and vectors do not.
pub(super) const NODE_FIELDS: [&str; 8] = [
    "aliases",
    "content",
    "label",
    "metadata",
    "node_type",
    "tags",
    "valid_from",
    "valid_to",
];
/// Fields of a link that count as a difference.
pub(super) const EDGE_FIELDS: [&str; 5] = ["metadata", "relationship", "source_id", "target_id", "weight"];

pub(super) type Lines = BTreeMap<String, Value>;

/// A file in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    pub(super) nodes: Lines,
    pub(super) edges: Lines,
    pub(super) transcripts: Lines,
    pub(super) windows: Lines,
    pub(super) repos: BTreeMap<String, String>,
    /// Memories whose text came from two files.
    pub(super) mixed: BTreeSet<String>,
}

/// One field with another value.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// Its name.
    pub field: String,
    /// In the first file.
    pub old: Value,
    /// In the second file.
    pub new: Value,
}

/// What is different in the second file. Ids ascend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    /// Memories that only the second has.
    pub nodes_added: Vec<String>,
    /// Memories that only the first has.
    pub nodes_removed: Vec<String>,
    /// Memories that both have, with what changed.
    pub nodes_updated: Vec<(String, Vec<FieldChange>)>,
    /// Links that only the second has.
    pub edges_added: Vec<String>,
    /// Links that only the first has.
    pub edges_removed: Vec<String>,
    /// Links that both have, with what changed.
    pub edges_updated: Vec<(String, Vec<FieldChange>)>,
}

impl Document {
    /// Reads a file whole.
    pub fn load<R: Read + Seek>(reader: &mut Reader<R>) -> Result<Self, ReadError> {
        let mut document = Self {
            repos: transcript::repos(reader.manifest().value.get("repos").unwrap_or(&Value::Null)),
            ..Self::default()
        };
        let (mut records, mut bytes) = (0usize, 0usize);
        for (name, into) in [
            (TRANSCRIPTS, &mut document.transcripts),
            (NODES, &mut document.nodes),
            (EDGES, &mut document.edges),
            (WINDOWS, &mut document.windows),
        ] {
            reader.lines(name, &mut |line: Value, place: Place| -> Result<(), ReadError> {
                records += 1;
                bytes += line.to_string().len();
                if records > COMPARED_RECORDS_MAX || bytes > COMPARED_BYTES_MAX {
                    return Err(ReadError::TooLarge {
                        place,
                        what: "records in a file that is compared",
                        limit: u64::try_from(COMPARED_RECORDS_MAX).unwrap_or(u64::MAX),
                    });
                }
                let Some(id) = line.get("id").and_then(Value::as_str).map(str::to_owned) else {
                    return Err(ReadError::Malformed {
                        place,
                        why: "id is missing".to_owned(),
                    });
                };
                if into.insert(id, line).is_some() {
                    return Err(ReadError::Malformed {
                        place,
                        why: "a record with this id was there before".to_owned(),
                    });
                }
                Ok(())
            })?;
        }
        Ok(document)
    }

    /// Its records in the order of files, links without an end left out.
    pub fn records(&self, importer: &Importer) -> Result<Vec<Record>, ReadError> {
        let mut taken = Taken::default();
        let mut records = Vec::new();
        for (member, lines) in [
            (WINDOWS, &self.windows),
            (TRANSCRIPTS, &self.transcripts),
            (NODES, &self.nodes),
            (EDGES, &self.edges),
        ] {
            let mut sorted = Vec::new();
            for (index, (id, line)) in lines.iter().enumerate() {
                let place = Place {
                    member: member.to_owned(),
                    index: u64::try_from(index).ok(),
                    position: 0,
                };
                let record = record_of(member, line.clone(), &self.repos, importer, &mut Changes::default());
                let record = record.map_err(|why| ReadError::Malformed {
                    place: place.clone(),
                    why,
                })?;
                let Some(mut record) = record else { continue };
                if self.mixed.contains(id) {
                    read_again(&mut record);
                }
                if taken.take(&record, &place)? {
                    sorted.push(record);
                }
            }
            sorted.sort_by_key(key);
            records.append(&mut sorted);
        }
        Ok(records)
    }
}

/// Text of two files is a new version that nobody read before.
fn read_again(record: &mut Record) {
    let Record::Memory(record) = record else { return };
    let memory = &mut record.memory;
    memory.version = memory.version.saturating_add(1);
    memory.text_version = memory.version;
    memory.statement = read_statement(&StatementInput {
        label: &memory.label,
        content: &memory.content,
        kind: memory.kind,
        author: &memory.author.0,
        observed_at: memory.recorded_at,
    });
}

fn key(record: &Record) -> (String, String) {
    match record {
        Record::Session(session) => (
            waggle_memory::scope::name_key(&session.project),
            session.session_id.clone(),
        ),
        Record::Turn(turn, _) => (turn.id.to_string(), String::new()),
        Record::Memory(record) => (record.memory.id.to_string(), String::new()),
        Record::Link(link) => (link.id.to_string(), String::new()),
        Record::Redirect(redirect) => (redirect.from.to_string(), String::new()),
        Record::Tombstone(id, _) => (id.to_string(), String::new()),
    }
}

/// What `new` has that `old` has not, and the other way round.
pub fn diff(old: &Document, new: &Document) -> Diff {
    let (nodes_added, nodes_removed, nodes_updated) = diff_lines(&old.nodes, &new.nodes, &NODE_FIELDS);
    let (edges_added, edges_removed, edges_updated) = diff_lines(&old.edges, &new.edges, &EDGE_FIELDS);
    Diff {
        nodes_added,
        nodes_removed,
        nodes_updated,
        edges_added,
        edges_removed,
        edges_updated,
    }
}

type LineDiff = (Vec<String>, Vec<String>, Vec<(String, Vec<FieldChange>)>);

fn diff_lines(old: &Lines, new: &Lines, fields: &[&str]) -> LineDiff {
    let only = |a: &Lines, b: &Lines| a.keys().filter(|id| !b.contains_key(*id)).cloned().collect();
    let changed = old.iter().filter_map(|(id, before)| {
        let changes = changes(before, new.get(id)?, fields);
        (!changes.is_empty()).then(|| (id.clone(), changes))
    });
    (only(new, old), only(old, new), changed.collect())
}

pub(super) fn changes(old: &Value, new: &Value, fields: &[&str]) -> Vec<FieldChange> {
    let change = |field: &&str| {
        let (old, new) = (field_of(old, field), field_of(new, field));
        (canonical(&old) != canonical(&new)).then(|| FieldChange {
            field: (*field).to_owned(),
            old,
            new,
        })
    };
    fields.iter().filter_map(change).collect()
}

/// A field. Of a memory without our own part of the metadata, which changes with every version; of a link with it,
/// because it holds the resolution.
fn field_of(line: &Value, field: &str) -> Value {
    let mut value = line.get(field).cloned().unwrap_or(Value::Null);
    if field == "metadata"
        && line.get("relationship").is_none()
        && let Value::Object(members) = &mut value
    {
        members.shift_remove(OURS);
        if members.is_empty() {
            return Value::Null;
        }
    }
    value
}
