//! Compares the relations of a file with the links of the graph: a new line makes a link, a struck one deletes it, a
//! missing one does nothing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::str::FromStr;

use waggle_memory::id::MemoryId;
use waggle_memory::kind::{Confidence, Relationship};
use waggle_memory::link::Link;

use super::base::{BaseFile, relation_key};
use super::body::Mark;
use super::changes::check_label;
use super::note::Note;
use super::plan::{Change, Conflict, ConflictReason, MemoryRef, StoreLink};
use super::targets::Targets;
use super::write::{confidence_of, weight_text};
use super::yaml::Yaml;
use crate::graph::Graph;

/// The memory whose file it is.
pub(super) struct Source<'a> {
    pub(super) memory: MemoryRef,
    pub(super) project: &'a str,
    /// What the merge base knows of the file.
    pub(super) base: Option<&'a BaseFile>,
}

/// A relation that a file states, in its front matter, its body or both.
struct Stated {
    label: Option<String>,
    mark: Mark,
    weight: Option<u32>,
    confidence: Option<Confidence>,
    /// Its weight when the file was written, if it was in it.
    base_weight: Option<u32>,
}

impl Stated {
    /// The same relation said again. If either line is struck through, whoever struck it meant it.
    fn join(&mut self, other: Self) {
        if other.mark == Mark::Struck {
            self.mark = Mark::Struck;
        }
        self.weight = self.weight.or(other.weight);
        self.confidence = self.confidence.or(other.confidence);
    }
}

/// What a relation of a file points at: the text of an id, or a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pointer {
    Id(MemoryId),
    Label(String),
}

/// Deletions and additions that a file asks for.
pub(super) fn compare(note: &Note, source: &Source<'_>, graph: &Graph, targets: &mut Targets<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let base = base_weights(note, source);
    let current = current_links(source, graph);
    for ((relationship, target), stated) in resolved_relations(note, source, &base, targets, &mut changes) {
        let there = known(target).and_then(|id| current.get(&(relationship, id)).copied());
        // It was there and somebody deleted it since: the graph is newer than the file.
        if stated.base_weight.is_none() || there.is_some() {
            changes.extend(change(note, source, relationship, target, &stated, there));
        }
    }
    changes
}

/// What the file states, by the memory that is meant. Two lines that mean the same are one.
fn resolved_relations(
    note: &Note,
    source: &Source<'_>,
    base: &BTreeMap<String, u32>,
    targets: &mut Targets<'_>,
    changes: &mut Vec<Change>,
) -> BTreeMap<(Relationship, MemoryRef), Stated> {
    let weight_in_base = |relationship: Relationship, id: MemoryId| {
        base.get(&relation_key(relationship.word(), &id.to_string())).copied()
    };
    let mut resolved: BTreeMap<(Relationship, MemoryRef), Stated> = BTreeMap::new();
    for ((relationship, pointer), mut stated) in stated_relations(note, source, changes) {
        if let Pointer::Id(id) = &pointer {
            stated.base_weight = weight_in_base(relationship, *id);
            // It was there, and its target is gone since.
            if stated.base_weight.is_some() && !matches!(targets.by_id(*id), Ok(Some(_))) {
                continue;
            }
        }
        let found = match find(&pointer, &stated, source, targets) {
            Ok(Some(target)) if target == source.memory => Err(ConflictReason::Invalid(
                "a memory cannot be related to itself".to_owned(),
            )),
            found => found,
        };
        match found {
            Ok(Some(target)) => {
                let in_base = known(target).and_then(|id| weight_in_base(relationship, id));
                stated.base_weight = stated.base_weight.or(in_base);
                match resolved.entry((relationship, target)) {
                    Entry::Vacant(entry) => {
                        entry.insert(stated);
                    }
                    Entry::Occupied(mut entry) => entry.get_mut().join(stated),
                }
            }
            Ok(None) => {}
            Err(reason) => {
                let label = stated.label.as_deref();
                changes.push(conflict(note, source, relationship, &pointer, label, reason));
            }
        }
    }
    resolved
}

fn change(
    note: &Note,
    source: &Source<'_>,
    relationship: Relationship,
    target: MemoryRef,
    stated: &Stated,
    there: Option<&Link>,
) -> Option<Change> {
    let path = note.path.clone();
    let base_weight = stated.base_weight;
    let changed_in_graph = there
        .zip(base_weight)
        .filter(|(link, base)| link.weight_thousandths != *base);
    let both = |link: &Link, base: u32, vault: String| {
        Some(Change::Conflict(Conflict {
            node_id: known(source.memory),
            path: note.path.clone(),
            field: format!("relations.{relationship}"),
            base: Some(weight_text(base)),
            vault: Some(vault),
            current: Some(weight_text(link.weight_thousandths)),
            reason: ConflictReason::BothChanged,
        }))
    };
    match (stated.mark, there) {
        (Mark::Struck, None) => None,
        (Mark::Struck, Some(link)) => match changed_in_graph {
            Some((link, base)) => both(link, base, "struck through".to_owned()),
            None => Some(Change::DeleteLink { id: link.id, path }),
        },
        (Mark::Kept, None) => Some(Change::StoreLink(StoreLink {
            source: source.memory,
            target,
            relationship,
            weight_thousandths: stated.weight,
            confidence: stated.confidence,
            path,
        })),
        (Mark::Kept, Some(link)) => {
            let weight = stated.weight.filter(|w| base_weight.is_some_and(|base| base != *w))?;
            if weight == link.weight_thousandths {
                return None;
            }
            match changed_in_graph {
                Some((link, base)) => both(link, base, weight_text(weight)),
                None => Some(Change::StoreLink(StoreLink {
                    source: source.memory,
                    target,
                    relationship,
                    weight_thousandths: Some(weight),
                    confidence: None,
                    path,
                })),
            }
        }
    }
}

/// The weights that the relations had when the file was written.
fn base_weights(note: &Note, source: &Source<'_>) -> BTreeMap<String, u32> {
    if let Some(base) = source.base {
        return base.relations.clone();
    }
    // Without a merge base the front matter stands in, if this product wrote it and the memory is there.
    if note.version().is_none() || known(source.memory).is_none() {
        return BTreeMap::new();
    }
    let edges = note.records("edges").iter();
    edges
        .filter_map(|edge| {
            let key = relation_key(edge.text_of("relationship")?, edge.text_of("target")?);
            Some((key, weight_of(edge).unwrap_or(1_000)))
        })
        .collect()
}

/// The links of the graph that the file's memory has as source, and symmetric ones from the other end.
fn current_links<'a>(source: &Source<'_>, graph: &'a Graph) -> BTreeMap<(Relationship, MemoryId), &'a Link> {
    let Some(id) = known(source.memory) else {
        return BTreeMap::new();
    };
    graph
        .links_of(id)
        .filter(|link| link.source == id || link.relationship.is_symmetric())
        .map(|link| ((link.relationship, link.other_end(id)), link))
        .collect()
}

/// Front matter and body together: the body decides whether a relation stands, the front matter knows its weight.
fn stated_relations(
    note: &Note,
    source: &Source<'_>,
    changes: &mut Vec<Change>,
) -> BTreeMap<(Relationship, Pointer), Stated> {
    let mut stated = BTreeMap::new();
    for edge in note.records("edges") {
        let id = edge.text_of("target").and_then(|id| MemoryId::from_str(id).ok());
        let relationship = edge.text_of("relationship").and_then(|word| word.parse().ok());
        if let (Some(id), Some(relationship)) = (id, relationship) {
            let relation = Stated {
                label: None,
                mark: Mark::Kept,
                weight: weight_of(edge),
                confidence: confidence_of(edge.text_of("confidence")),
                base_weight: None,
            };
            stated.insert((relationship, Pointer::Id(id)), relation);
        }
    }
    for line in &note.body.relations {
        let Ok(relationship) = Relationship::from_str(&line.relationship) else {
            changes.push(unknown_word(note, source, &line.relationship));
            continue;
        };
        let pointer = line
            .target
            .map_or_else(|| Pointer::Label(line.label.clone()), Pointer::Id);
        let entry = stated.entry((relationship, pointer)).or_insert(Stated {
            label: None,
            mark: line.mark,
            weight: None,
            confidence: None,
            base_weight: None,
        });
        entry.label = Some(line.label.clone());
        // The same line twice, once struck: whoever struck it meant it.
        if line.mark == Mark::Struck {
            entry.mark = Mark::Struck;
        }
    }
    changes.extend(note.body.unreadable.iter().map(|line| unreadable(note, source, line)));
    stated
}

/// The memory that is meant; None if there is nothing to do.
fn find(
    pointer: &Pointer,
    stated: &Stated,
    source: &Source<'_>,
    targets: &mut Targets<'_>,
) -> Result<Option<MemoryRef>, ConflictReason> {
    if let Pointer::Id(id) = pointer
        && let Some(target) = targets.by_id(*id)?
    {
        return Ok(Some(target));
    }
    let Some(label) = &stated.label else {
        return Err(ConflictReason::UnknownTarget);
    };
    match targets.by_label(label, source.project)? {
        Some(target) => Ok(Some(target)),
        None if stated.mark == Mark::Struck => Ok(None),
        None => {
            check_label(label).map_err(ConflictReason::Invalid)?;
            Ok(Some(targets.stub(label, source.project)))
        }
    }
}

fn weight_of(edge: &Yaml) -> Option<u32> {
    let weight: f64 = edge.text_of("weight")?.parse().ok()?;
    (0.0..=1.0).contains(&weight).then(|| (weight * 1_000.0).round() as u32)
}

fn known(memory: MemoryRef) -> Option<MemoryId> {
    match memory {
        MemoryRef::Known(id) => Some(id),
        MemoryRef::New(_) => None,
    }
}

fn conflict(
    note: &Note,
    source: &Source<'_>,
    relationship: Relationship,
    pointer: &Pointer,
    label: Option<&str>,
    reason: ConflictReason,
) -> Change {
    let target = match pointer {
        Pointer::Id(id) => id.to_string(),
        Pointer::Label(label) => label.clone(),
    };
    let vault = label.map_or(target.clone(), |label| format!("{label} ({target})"));
    Change::Conflict(Conflict {
        node_id: known(source.memory),
        path: note.path.clone(),
        field: format!("relations.{relationship}"),
        base: None,
        vault: Some(vault),
        current: None,
        reason,
    })
}

fn unknown_word(note: &Note, source: &Source<'_>, word: &str) -> Change {
    Change::Conflict(Conflict {
        node_id: known(source.memory),
        path: note.path.clone(),
        field: "relations".to_owned(),
        base: None,
        vault: Some(word.chars().take(200).collect()),
        current: None,
        reason: ConflictReason::UnknownWord,
    })
}

fn unreadable(note: &Note, source: &Source<'_>, line: &str) -> Change {
    Change::Conflict(Conflict {
        node_id: known(source.memory),
        path: note.path.clone(),
        field: "relations".to_owned(),
        base: None,
        vault: Some(line.to_owned()),
        current: None,
        reason: ConflictReason::Invalid("is not '- [[relationship::Label]]'".to_owned()),
    })
}
