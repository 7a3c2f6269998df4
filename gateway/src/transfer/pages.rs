//! Exports that need the whole graph at once, and always without secrets: the vault.

use std::io::{Read, Seek, Write};

use serde_json::{Map, Value};
use waggle_formats::graph::{Graph, TooManyRecords};
use waggle_formats::vault::{self, ArchiveError, VaultOptions};
use waggle_memory::id::TenantId;

use super::export::{Incoming, Writing, Written};
use crate::fault::Fault;

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

impl Writing<'_> {
    /// A ZIP of Markdown files, or (inline) a JSON object from path to text.
    pub(super) fn write_vault(&self, incoming: &mut Incoming, mut out: impl Write) -> Result<Written, Fault> {
        let graph = collect(incoming)?;
        let tenant: TenantId = self.tenant.parse().map_err(|_| Fault::internal())?;
        let options = VaultOptions {
            tenant: &tenant,
            read_at: incoming.read_at(),
        };
        let vault = vault::write(&graph, options).map_err(|error| {
            tracing::error!(%error, "a vault cannot be written");
            Fault::internal()
        })?;
        let written = Written {
            nodes: wide(vault.node_count),
            edges: wide(vault.edge_count),
            content_hash: String::new(),
            redactions: wide(vault.redactions),
        };
        if self.inline {
            let files: Map<String, Value> = vault
                .files
                .into_iter()
                .map(|(path, text)| (path, Value::String(text)))
                .collect();
            out.write_all(Value::Object(files).to_string().as_bytes())
                .map_err(|_| Fault::internal())?;
            return Ok(written);
        }
        // A ZIP is written with steps back, which a stream has not: it grows in a file that has no name.
        let scratch = self.app.transfer.uploads.scratch()?;
        let zipped = vault::write_zip(&vault, scratch).map_err(|error| archive_fault(&error))?;
        copy(zipped, &mut out)?;
        Ok(written)
    }
}

fn copy(mut file: impl Read + Seek, out: &mut impl Write) -> Result<(), Fault> {
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

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
