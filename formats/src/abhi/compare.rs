//! Two files compared, and three merged. Works on the lines as they are, whoever wrote them; both are held in memory, so
//! they are bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

use serde_json::Value;
use waggle_memory::read::{StatementInput, read_statement};
use waggle_memory::record::Record;

use super::reader::{Reader, Taken, record_of};
use super::{EDGES, NODES, TRANSCRIPTS, WINDOWS};
use crate::error::{Place, ReadError};
use crate::json::canonical;
use crate::limits::{COMPARED_BYTES_MAX, COMPARED_RECORDS_MAX};
use crate::waggle::{Changes, Importer, OURS, transcript};

/// Fields of a memory that count as a difference. Versions, use and vectors do not.
const NODE_FIELDS: [&str; 8] = ["aliases", "content", "label", "metadata", "node_type", "tags", "valid_from", "valid_to"];
/// Fields of a link that count as a difference.
const EDGE_FIELDS: [&str; 5] = ["metadata", "relationship", "source_id", "target_id", "weight"];

type Lines = BTreeMap<String, Value>;

/// A file in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    nodes: Lines,
    edges: Lines,
    transcripts: Lines,
    windows: Lines,
    repos: BTreeMap<String, String>,
    /// Memories whose text came from two files.
    mixed: BTreeSet<String>,
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

/// Which side wins where both changed the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    /// The second file of the three.
    Left,
    /// The third file of the three.
    Right,
}

/// Both sides changed the same field, each in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeConflict {
    /// The memory or link.
    pub id: String,
    /// The field; empty where one side changed what the other removed.
    pub field: String,
}

/// A merged file.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The result.
    pub document: Document,
    /// Where a side was preferred. Ids ascend.
    pub conflicts: Vec<MergeConflict>,
    /// Links that lost an end and were left out.
    pub dangling_dropped: Vec<String>,
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
                let record = record.map_err(|why| ReadError::Malformed { place: place.clone(), why })?;
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
        Record::Turn(turn) => (turn.id.to_string(), String::new()),
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

fn changes(old: &Value, new: &Value, fields: &[&str]) -> Vec<FieldChange> {
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

/// Brings the changes of two files together, counted from the file that both came from.
pub fn merge(base: &Document, left: &Document, right: &Document, prefer: Prefer) -> Merged {
    let mut conflicts = Vec::new();
    let mut mixed = BTreeSet::new();
    let mut document = Document {
        nodes: merge_lines([&base.nodes, &left.nodes, &right.nodes], &NODE_FIELDS, prefer, &mut conflicts, &mut mixed),
        edges: merge_lines(
            [&base.edges, &left.edges, &right.edges],
            &EDGE_FIELDS,
            prefer,
            &mut conflicts,
            &mut BTreeSet::new(),
        ),
        transcripts: union(&left.transcripts, &right.transcripts),
        windows: union(&left.windows, &right.windows),
        repos: left.repos.clone().into_iter().chain(right.repos.clone()).collect(),
        mixed,
    };
    conflicts.sort_by(|a, b| (&a.id, &a.field).cmp(&(&b.id, &b.field)));
    let nodes = &document.nodes;
    let has = |line: &Value, end: &str| {
        let id = line.get(end).and_then(Value::as_str);
        id.is_some_and(|id| nodes.contains_key(id))
    };
    let loose: Vec<String> = document
        .edges
        .iter()
        .filter(|(_, line)| !has(line, "source_id") || !has(line, "target_id"))
        .map(|(id, _)| id.clone())
        .collect();
    for id in &loose {
        document.edges.remove(id);
    }
    Merged {
        document,
        conflicts,
        dangling_dropped: loose,
    }
}

fn union(left: &Lines, right: &Lines) -> Lines {
    let mut all = right.clone();
    all.extend(left.clone());
    all
}

fn merge_lines(
    [base, left, right]: [&Lines; 3],
    fields: &[&str],
    prefer: Prefer,
    conflicts: &mut Vec<MergeConflict>,
    mixed: &mut BTreeSet<String>,
) -> Lines {
    let ids: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let mut merged = Lines::new();
    for id in ids {
        let line = match (base.get(id), left.get(id), right.get(id)) {
            (None, Some(line), None) | (None, None, Some(line)) => Some(line.clone()),
            // Removed on one side: what the other changed stays, and is said.
            (Some(before), Some(line), None) | (Some(before), None, Some(line)) => {
                let changed = !changes(before, line, fields).is_empty();
                if changed {
                    conflicts.push(MergeConflict {
                        id: id.clone(),
                        field: String::new(),
                    });
                }
                changed.then(|| line.clone())
            }
            (before, Some(ours), Some(theirs)) => {
                let null = Value::Null;
                Some(merge_line(id, [before.unwrap_or(&null), ours, theirs], fields, prefer, conflicts, mixed))
            }
            (_, None, None) => None,
        };
        merged.extend(line.map(|line| (id.clone(), line)));
    }
    merged
}

fn merge_line(
    id: &str,
    [base, left, right]: [&Value; 3],
    fields: &[&str],
    prefer: Prefer,
    conflicts: &mut Vec<MergeConflict>,
    mixed: &mut BTreeSet<String>,
) -> Value {
    let by_left: BTreeSet<String> = changes(base, left, fields).into_iter().map(|change| change.field).collect();
    let by_right: BTreeSet<String> = changes(base, right, fields).into_iter().map(|change| change.field).collect();
    let apart: BTreeSet<String> = changes(left, right, fields).into_iter().map(|change| change.field).collect();
    let (kept, other, other_changed) = match prefer {
        _ if by_right.is_empty() => return left.clone(),
        _ if by_left.is_empty() => return right.clone(),
        Prefer::Left => (left, right, (&by_right, &by_left)),
        Prefer::Right => (right, left, (&by_left, &by_right)),
    };
    let mut line = kept.clone();
    for field in &apart {
        if other_changed.1.contains(field) {
            if other_changed.0.contains(field) {
                conflicts.push(MergeConflict {
                    id: id.to_owned(),
                    field: field.clone(),
                });
            }
            continue;
        }
        take_field(&mut line, other, field);
        mixed.insert(id.to_owned());
    }
    line
}

/// Takes one field from the other side. What our own part of the metadata says about it comes along; the rest of that
/// part stays.
fn take_field(line: &mut Value, other: &Value, field: &str) {
    let is_link = line.get("relationship").is_some();
    let ours = |line: &Value| line.get("metadata").and_then(|metadata| metadata.get(OURS)).cloned();
    let (kept, others) = (ours(line), ours(other));
    let Value::Object(members) = line else { return };
    let mut value = other.get(field).cloned().unwrap_or(Value::Null);
    if field == "metadata" && !is_link {
        if let (Value::Object(metadata), Some(kept)) = (&mut value, kept) {
            metadata.insert(OURS.to_owned(), kept);
        }
        members.insert(field.to_owned(), value);
        return;
    }
    members.insert(field.to_owned(), value);
    let about = match field {
        "aliases" => "aliases",
        "valid_from" => "valid_from_stated",
        "weight" => "weight_thousandths",
        _ => return,
    };
    let said = others.and_then(|others| others.get(about).cloned());
    let part = members.get_mut("metadata").and_then(|metadata| metadata.get_mut(OURS));
    if let (Some(Value::Object(part)), Some(said)) = (part, said) {
        part.insert(about.to_owned(), said);
    }
}
