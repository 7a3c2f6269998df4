//! Writes a vault: a file for every memory, and the merge base.

use std::collections::BTreeMap;

use waggle_memory::id::{MemoryId, TenantId};
use waggle_memory::kind::Confidence;
use waggle_memory::link::{Link, Resolution};
use waggle_memory::memory::Evidence;
use waggle_memory::record::MemoryRecord;

use super::base::{Base, BaseFile, ContentHash, hash_of, relation_key};
use super::body::{self, Mark, RelationLine};
use super::fields::{shown_label, shown_tags};
use super::front_matter::{Flow, FrontMatter, quoted};
use super::{BASE_PATH, FILE_BYTES_MAX, paths};
use crate::graph::Graph;
use crate::redaction::Redactor;

/// Most bytes of a file that each long list may take, so that the whole stays below [`FILE_BYTES_MAX`]: a content of
/// 64 KiB and the rest of the front matter fit beside four of them. What does not fit is counted in `left_out`.
const LIST_BYTES_MAX: usize = FILE_BYTES_MAX / 6;

/// What stands in every file.
#[derive(Clone, Copy, Debug)]
pub struct VaultOptions<'a> {
    /// Whose graph it is.
    pub tenant: &'a TenantId,
    /// The point of the graph that was read.
    pub read_at: &'a str,
}

/// A vault in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vault {
    /// Path to text; the merge base among them.
    pub files: BTreeMap<String, String>,
    /// Memories in it.
    pub node_count: usize,
    /// Links in it.
    pub edge_count: usize,
    /// Places where a secret was replaced.
    pub redactions: usize,
}

/// Writes a graph as a vault. Gives the same bytes for the same graph.
pub fn write(graph: &Graph, options: VaultOptions<'_>) -> Result<Vault, serde_json::Error> {
    let redactor = Redactor::default();
    let mut vault = Vault::default();
    let mut base = Base::new(options.tenant.as_str(), options.read_at);
    for record in graph.memories() {
        let file = File::of(record, graph, options.tenant, &redactor);
        vault.edge_count += file.base.relations.len();
        base.files.insert(record.memory.id.to_string(), file.base);
        vault.files.insert(file.path, file.text);
    }
    vault.node_count = graph.memory_count();
    vault.redactions = redactor.count();
    base.redactions = vault.redactions;
    let mut hash = ContentHash::default();
    vault.files.iter().for_each(|(path, text)| {
        hash.add(path);
        hash.add(text);
    });
    base.content_hash = hash.finish();
    vault.files.insert(BASE_PATH.to_owned(), base.write()?);
    Ok(vault)
}

/// One file, with its entry in the merge base.
struct File {
    path: String,
    text: String,
    base: BaseFile,
}

impl File {
    fn of(record: &MemoryRecord, graph: &Graph, tenant: &TenantId, redactor: &Redactor) -> Self {
        let memory = &record.memory;
        let label = shown_label(&redactor.text(&memory.label));
        let content = redactor.text(&memory.content);
        let aliases: Vec<String> = memory.aliases.iter().map(|alias| redactor.text(&alias.text)).collect();
        let (aliases, aliases_out) = fitting(aliases, |alias| quoted(alias).len());
        let newest_first: Vec<(String, String)> = record
            .evidence
            .iter()
            .rev()
            .map(|(_, evidence)| evidence_forms(evidence, redactor))
            .collect();
        let (mut evidence, evidence_out) = fitting(newest_first, |(record, line)| record.len() + line.len());
        evidence.reverse();
        let links: Vec<&Link> = graph.links_from(memory.id).collect();
        let links: Vec<(&Link, String)> = links
            .into_iter()
            .map(|link| (link, edge_record(link, redactor)))
            .collect();
        let (links, links_out) = fitting(links, |(_, record)| record.len() * 2 + 200);

        let mut front = FrontMatter::default();
        front.text("node_id", &memory.id.to_string());
        front.text("tenant_id", tenant.as_str());
        front.text("namespace", &memory.namespace);
        front.text("project", &memory.scope.project);
        front.text("agent_id", &memory.scope.agent_id);
        front.text("session_id", &memory.scope.session_id);
        front.text("node_type", memory.kind.word());
        memory.tags.iter().for_each(|tag| {
            redactor.text(tag);
        });
        front.texts("tags", shown_tags(&memory.tags, redactor).iter().map(String::as_str));
        front.texts("aliases", aliases.iter().map(String::as_str));
        front.text("confidence", memory.confidence.word());
        front.raw("version", &memory.version.to_string());
        front.text("created_at", &memory.recorded_at.to_string());
        front.text("updated_at", &memory.updated_at.to_string());
        front.text("valid_from", &memory.valid_from.to_string());
        front.raw(
            "valid_to",
            &memory.valid_to.map_or("null".to_owned(), |to| quoted(&to.to_string())),
        );
        front.text("source_prompt", &redactor.text(&memory.source_prompt));
        front.raw("metadata", &metadata_text(&memory.metadata, redactor));
        let (records, lines): (Vec<String>, Vec<String>) = evidence.into_iter().unzip();
        front.records("evidence", &records);
        let edges: Vec<String> = links.iter().map(|(_, record)| record.clone()).collect();
        front.records("edges", &edges);
        left_out(
            &mut front,
            [
                ("aliases", aliases_out),
                ("evidence", evidence_out),
                ("edges", links_out),
            ],
        );

        let relations: Vec<RelationLine> = links
            .iter()
            .map(|(link, _)| relation_line(link, graph, redactor))
            .collect();
        let text = front.finish() + &body::write(&label, &content, &lines, &relations);
        let base = BaseFile {
            version: memory.version,
            sha256: hash_of(text.as_bytes()),
            relations: links
                .iter()
                .map(|(link, _)| {
                    (
                        relation_key(link.relationship.word(), &link.target.to_string()),
                        link.weight_thousandths,
                    )
                })
                .collect(),
        };
        let path = paths::path_of(&memory.scope.project, memory.kind, &label, memory.id);
        Self { path, text, base }
    }
}

/// The first items whose sizes fit [`LIST_BYTES_MAX`], and how many did not.
fn fitting<T>(items: Vec<T>, size: impl Fn(&T) -> usize) -> (Vec<T>, usize) {
    let mut bytes = 0usize;
    let count = items.len();
    let kept: Vec<T> = items
        .into_iter()
        .take_while(|item| {
            bytes = bytes.saturating_add(size(item));
            bytes <= LIST_BYTES_MAX
        })
        .collect();
    let out = count - kept.len();
    (kept, out)
}

fn left_out(front: &mut FrontMatter, counts: [(&str, usize); 3]) {
    let cut = counts.iter().filter(|(_, count)| *count > 0);
    let flow = cut.fold(Flow::default(), |flow, (name, count)| {
        flow.raw(name, &count.to_string())
    });
    if counts.iter().any(|(_, count)| *count > 0) {
        front.raw("left_out", &flow.finish());
    }
}

/// JSON inside of a text, because nothing interprets it and every number must come back as it was.
fn metadata_text(metadata: &str, redactor: &Redactor) -> String {
    if metadata.is_empty() {
        "{}".to_owned()
    } else {
        quoted(&redactor.metadata(metadata))
    }
}

/// A piece of evidence as record of the front matter and as line of the body.
fn evidence_forms(evidence: &Evidence, redactor: &Redactor) -> (String, String) {
    let text = redactor.text(&evidence.text);
    let flow = Flow::default().text("evidence_id", &evidence.id.to_string());
    let flow = match &evidence.turn {
        Some(span) => flow
            .text("kind", "turn")
            .text("turn_id", &span.turn.to_string())
            .raw("turn_index", &span.turn_index.to_string())
            .text("source_role", span.role.word())
            .raw("source_span_start", &span.start.to_string())
            .raw("source_span_end", &span.end.to_string()),
        None => flow.text("kind", "author"),
    };
    let flow = flow
        .text("source_text", &text)
        .text("session_id", &evidence.scope.session_id)
        .text("agent_id", &evidence.scope.agent_id)
        .text("observed_at", &evidence.observed_at.to_string())
        .text("author", &evidence.author.0);
    (flow.finish(), evidence_line(evidence, &text))
}

/// `[user turn 3] text`, or `[author] text`.
pub(super) fn evidence_line(evidence: &Evidence, text: &str) -> String {
    let source = match &evidence.turn {
        Some(span) => format!("{} turn {}", span.role, span.turn_index),
        None => evidence.author.0.clone(),
    };
    body::one_line(&format!("[{source}] {text}")).trim().to_owned()
}

fn edge_record(link: &Link, redactor: &Redactor) -> String {
    let flow = Flow::default()
        .text("id", &link.id.to_string())
        .text("target", &link.target.to_string())
        .text("relationship", link.relationship.word())
        .raw("weight", &weight_text(link.weight_thousandths))
        .text("confidence", link.confidence.word());
    match &link.resolution {
        Some(resolution) => flow
            .raw("resolution", &resolution_record(resolution, redactor))
            .finish(),
        None => flow.finish(),
    }
}

fn resolution_record(resolution: &Resolution, redactor: &Redactor) -> String {
    let flow = Flow::default().text("state", if resolution.resolved { "resolved" } else { "open" });
    if !resolution.resolved {
        return flow.finish();
    }
    let winner = |id: MemoryId| quoted(&id.to_string());
    flow.raw("winner", &resolution.winner.map_or("null".to_owned(), winner))
        .text("kind", if resolution.stated { "stated" } else { "decided" })
        .text("note", &redactor.text(&resolution.note))
        .finish()
}

/// Thousandths as a decimal number.
pub(super) fn weight_text(thousandths: u32) -> String {
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

fn relation_line(link: &Link, graph: &Graph, redactor: &Redactor) -> RelationLine {
    let label = graph
        .memory(link.target)
        .map(|m| redactor.again(&m.label))
        .unwrap_or_default();
    RelationLine {
        relationship: link.relationship.word().to_owned(),
        label: if label.trim().is_empty() {
            link.target.to_string()
        } else {
            label
        },
        target: Some(link.target),
        mark: Mark::Kept,
    }
}

/// The confidence that a word names.
pub(super) fn confidence_of(word: Option<&str>) -> Option<Confidence> {
    word.and_then(|word| word.parse().ok())
}
