//! Three files merged: two, and the one that both came from.

use std::collections::BTreeSet;

use serde_json::Value;

use super::compare::{Document, EDGE_FIELDS, Lines, NODE_FIELDS, changes};
use crate::waggle::OURS;

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

/// Brings the changes of two files together, counted from the file that both came from.
pub fn merge(base: &Document, left: &Document, right: &Document, prefer: Prefer) -> Merged {
    let mut conflicts = Vec::new();
    let mut mixed = BTreeSet::new();
    let mut document = Document {
        nodes: merge_lines(
            [&base.nodes, &left.nodes, &right.nodes],
            &NODE_FIELDS,
            prefer,
            &mut conflicts,
            &mut mixed,
        ),
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
                Some(merge_line(
                    id,
                    [before.unwrap_or(&null), ours, theirs],
                    fields,
                    prefer,
                    conflicts,
                    mixed,
                ))
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
    let by_left: BTreeSet<String> = changes(base, left, fields)
        .into_iter()
        .map(|change| change.field)
        .collect();
    let by_right: BTreeSet<String> = changes(base, right, fields)
        .into_iter()
        .map(|change| change.field)
        .collect();
    let apart: BTreeSet<String> = changes(left, right, fields)
        .into_iter()
        .map(|change| change.field)
        .collect();
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
