//! Exports that need the whole graph at once, and always without secrets: the vault, the page, the
//! bundle.

use std::io::{Read, Seek, Write};

use serde_json::{Map, Value};
use waggle_formats::bundle::{self, Audience, BundleFormat, BundleRequest, WeakLinks};
use waggle_formats::graph::{Graph, TooManyRecords};
use waggle_formats::html::{self, Layout, PageOptions};
use waggle_formats::vault::{self, ArchiveError, VaultOptions};
use waggle_memory::id::{MemoryId, TenantId};
use waggle_memory::time::Millis;

use super::export::{Incoming, Writing, Written};
use crate::fault::Fault;

/// Tokens of a bundle that is fetched by its address.
const BUNDLE_TOKENS: usize = waggle_config::limits::TOKEN_BUDGET_MAX;
/// Memories of such a bundle.
const BUNDLE_NODES: usize = 500;

/// All records of an export at once. Blocks.
pub(crate) fn collect(incoming: &mut Incoming) -> Result<Graph, Fault> {
    let mut failed = None;
    let records = std::iter::from_fn(|| match incoming.next() {
        Ok(record) => record,
        Err(fault) => {
            failed = Some(fault);
            None
        }
    });
    let graph = Graph::collect(records);
    match failed {
        Some(fault) => Err(fault),
        None => graph.map_err(|error: TooManyRecords| Fault::new("payload_too_large", error.to_string())),
    }
}

/// The memories with the most links, most first.
pub(crate) fn best_connected(graph: &Graph, nodes_max: usize) -> Vec<MemoryId> {
    let mut ranked: Vec<(usize, MemoryId)> = graph
        .memories()
        .map(|record| (graph.links_of(record.memory.id).count(), record.memory.id))
        .collect();
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().map(|(_, id)| id).take(nodes_max).collect()
}

impl Writing<'_> {
    /// One page that works from disk.
    pub(super) fn write_html(&self, incoming: &mut Incoming, mut out: impl Write) -> Result<Written, Fault> {
        let graph = collect(incoming)?;
        let tenant: TenantId = self.tenant.parse().map_err(|_| Fault::internal())?;
        let options = PageOptions {
            tenant: &tenant,
            project: &self.export.project,
            generated_at: Millis(self.export.exported_at),
            layout: if self.export.physics {
                Layout::Physics
            } else {
                Layout::Fixed
            },
        };
        let page = html::render(&graph, options).map_err(|error| unwritable(&error))?;
        write_all(&mut out, page.html.as_bytes())?;
        Ok(Written {
            nodes: wide(page.node_count),
            edges: wide(page.edge_count),
            redactions: wide(page.redactions),
            nodes_left_out: wide(page.nodes_left_out),
            ..Written::default()
        })
    }

    /// The best connected memories of the scope as Markdown.
    pub(super) fn write_bundle(&self, incoming: &mut Incoming, mut out: impl Write) -> Result<Written, Fault> {
        let graph = collect(incoming)?;
        let tenant: TenantId = self.tenant.parse().map_err(|_| Fault::internal())?;
        let request = BundleRequest {
            tenant: &tenant,
            project: &self.export.project,
            mode: "graph",
            retrieval_mode: "",
            query: "",
            generated_at: Millis(self.export.exported_at),
            memories: &best_connected(&graph, BUNDLE_NODES),
            turns: &[],
            weak_links: if self.export.weak_links {
                WeakLinks::Shown
            } else {
                WeakLinks::LeftOut
            },
            audience: Audience::Llm,
            format: BundleFormat::Markdown,
            token_budget: BUNDLE_TOKENS,
        };
        let bundle = bundle::render(&graph, &request).map_err(|error| unwritable(&error))?;
        write_all(&mut out, bundle.markdown.unwrap_or_default().as_bytes())?;
        Ok(Written {
            nodes: wide(bundle.node_count),
            edges: wide(bundle.edge_count),
            redactions: wide(bundle.redactions),
            ..Written::default()
        })
    }

    /// A ZIP of Markdown files, or (inline) a JSON object from path to text.
    pub(super) fn write_vault(&self, incoming: &mut Incoming, mut out: impl Write) -> Result<Written, Fault> {
        let graph = collect(incoming)?;
        let tenant: TenantId = self.tenant.parse().map_err(|_| Fault::internal())?;
        let options = VaultOptions {
            tenant: &tenant,
            read_at: incoming.read_at(),
        };
        let vault = vault::write(&graph, options).map_err(|error| unwritable(&error))?;
        let written = Written {
            nodes: wide(vault.node_count),
            edges: wide(vault.edge_count),
            redactions: wide(vault.redactions),
            ..Written::default()
        };
        if self.inline {
            let files: Map<String, Value> = vault
                .files
                .into_iter()
                .map(|(path, text)| (path, Value::String(text)))
                .collect();
            write_all(&mut out, Value::Object(files).to_string().as_bytes())?;
            return Ok(written);
        }
        // A ZIP is written with steps back, which a stream has not: it grows in a file that has no name.
        let scratch = self.app.transfer.uploads.scratch()?;
        let zipped = vault::write_zip(&vault, scratch).map_err(|error| archive_fault(&error))?;
        copy(zipped, &mut out)?;
        Ok(written)
    }
}

pub(super) fn copy(mut file: impl Read + Seek, out: &mut impl Write) -> Result<(), Fault> {
    file.rewind()
        .and_then(|()| std::io::copy(&mut file, out))
        .and_then(|_| out.flush())
        .map_err(|error| {
            tracing::debug!(%error, "an export was not fetched to its end");
            Fault::internal()
        })
}

/// What is wrong with an archive, as its importer is told.
pub(crate) fn archive_fault(error: &ArchiveError) -> Fault {
    match error {
        ArchiveError::Io(_) => super::uploads::gone(),
        other => Fault::new(other.code(), other.to_string()).with_field("content"),
    }
}

fn unwritable(error: &serde_json::Error) -> Fault {
    tracing::error!(%error, "a page cannot be written");
    Fault::internal()
}

fn write_all(out: &mut impl Write, bytes: &[u8]) -> Result<(), Fault> {
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| {
        tracing::debug!(%error, "an export was not fetched to its end");
        Fault::internal()
    })
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
