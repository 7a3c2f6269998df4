//! A look at a file without doing anything with it.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use serde_json::Value;

use super::reader::{Reader, Report};
use super::{EDGES, NODES};
use crate::error::ReadError;
use crate::waggle::{Changes, Importer};

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
        found.content_hash = reader.manifest().content_hash().to_owned();
        found.encrypted = reader.manifest().is_encrypted();
        found.signature_fits = reader.signature().map(|_| reader.is_signed_by(|_| true));
        reader.records(importer, true, |_| Ok::<(), ReadError>(()))
    });
    match result {
        Err(error) => found.errors.push(error.to_string()),
        Ok(report) => {
            if !report.dangling.is_empty() {
                found
                    .errors
                    .push(ReadError::Dangling(report.dangling.clone()).to_string());
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
        (
            changes.relationships_replaced,
            "links have a relationship that is not known here and become relates_to",
        ),
        (changes.self_links_dropped, "links from a memory to itself are left out"),
        (
            changes.evidence_dropped,
            "placeholders for missing evidence are left out",
        ),
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
        manifest: reader.manifest().value.clone(),
        lines: reader.line_counts(),
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
