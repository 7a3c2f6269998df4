//! `waggle abhi`: files of graphs, without a server.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use waggle_config::runtime::clock::{Clock as _, System};
use waggle_formats::abhi::{self, Document, FieldChange, Importer, Info, Prefer, Reader, Writer};
use waggle_memory::id::Principal;

use crate::failure::{self, Failure};
use crate::output::OutputArgs;

/// The passphrase of an encrypted file; never an argument, which other users of the machine can see.
const PASSPHRASE: &str = "WAGGLE_ABHI_PASSPHRASE";

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Check hashes, signature and every record. Ends with 1 when an import would refuse the file.
    Validate(One),
    /// Show what a file says about itself and how much it holds.
    Inspect(One),
    /// Show what a second file has that the first has not, and the other way round.
    Diff(Two),
    /// Bring the changes of two files together, counted from the file that both came from.
    Merge(Merge),
}

#[derive(clap::Args)]
pub(crate) struct One {
    /// The file. The passphrase of an encrypted one is in WAGGLE_ABHI_PASSPHRASE.
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Two {
    /// The first file.
    old: PathBuf,
    /// The second file.
    new: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Merge {
    /// The file that both came from.
    base: PathBuf,
    /// One file.
    left: PathBuf,
    /// The other file.
    right: PathBuf,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    into: PathBuf,
    /// Which side wins where both changed the same field.
    #[arg(long, default_value = "left", value_parser = ["left", "right"])]
    prefer: String,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Validate(args) => validate(&args),
        Verb::Inspect(args) => inspect(&args),
        Verb::Diff(args) => diff(&args),
        Verb::Merge(args) => merge(&args),
    }
}

fn importer() -> Importer {
    Importer {
        author: Principal("file".to_owned()),
        at: System::new().wall(),
    }
}

fn passphrase() -> Option<String> {
    std::env::var(PASSPHRASE).ok()
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("read {}", path.display()))
}

fn load(path: &Path) -> Result<Document> {
    let read = Reader::open(open(path)?, passphrase().as_deref()).and_then(|mut reader| Document::load(&mut reader));
    read.with_context(|| format!("read {}", path.display()))
}

fn validate(args: &One) -> Result<()> {
    let found = abhi::validate(open(&args.file)?, passphrase().as_deref(), &importer());
    let report = json!({
        "valid": found.valid,
        "errors": found.errors,
        "warnings": found.warnings,
        "nodes": found.report.counts.nodes,
        "edges": found.report.counts.edges,
        "transcripts": found.report.counts.transcripts,
        "content_hash": found.content_hash,
        "encrypted": found.encrypted,
        "signature_fits": found.signature_fits,
    });
    args.output.show(&report, || lines(&report))?;
    if found.valid {
        Ok(())
    } else {
        Err(Failure::new(failure::GENERAL, format!("{} is not valid", args.file.display())).into())
    }
}

fn inspect(args: &One) -> Result<()> {
    let found = abhi::inspect(open(&args.file)?, passphrase().as_deref())
        .with_context(|| format!("read {}", args.file.display()))?;
    let [transcripts, nodes, edges, windows] = found.lines;
    let report = json!({
        "transcripts": transcripts,
        "nodes": nodes,
        "edges": edges,
        "context_windows": windows,
        "node_types": found.node_types,
        "edge_types": found.edge_types,
        "manifest": found.manifest,
    });
    args.output.show(&report, || lines(&report))
}

fn diff(args: &Two) -> Result<()> {
    let found = abhi::diff(&load(&args.old)?, &load(&args.new)?);
    let changed = |all: &[(String, Vec<FieldChange>)]| -> Vec<Value> {
        let one = |change: &FieldChange| json!({"field": change.field, "old": change.old, "new": change.new});
        all.iter()
            .map(|(id, changes)| json!({"id": id, "changes": changes.iter().map(one).collect::<Vec<_>>()}))
            .collect()
    };
    let report = json!({
        "nodes_added": found.nodes_added,
        "nodes_removed": found.nodes_removed,
        "nodes_updated": changed(&found.nodes_updated),
        "edges_added": found.edges_added,
        "edges_removed": found.edges_removed,
        "edges_updated": changed(&found.edges_updated),
    });
    args.output.show(&report, || lines(&report))
}

fn merge(args: &Merge) -> Result<()> {
    let prefer = if args.prefer == "right" {
        Prefer::Right
    } else {
        Prefer::Left
    };
    let merged = abhi::merge(&load(&args.base)?, &load(&args.left)?, &load(&args.right)?, prefer);
    let records = merged
        .document
        .records(&importer())
        .context("read the merged records")?;
    let mut out = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&args.into)
        .with_context(|| format!("write {}", args.into.display()))?;
    let info = Info {
        include_low_confidence_edges: true,
        ..Info::default()
    };
    let mut writer = Writer::new(&mut out, info, None).context("write the merged file")?;
    for record in &records {
        writer.record(record).context("write the merged file")?;
    }
    let summary = writer.finish().context("write the merged file")?;
    out.flush()?;
    let conflicts: Vec<Value> = merged
        .conflicts
        .iter()
        .map(|conflict| json!({"id": conflict.id, "field": conflict.field}))
        .collect();
    let report = json!({
        "nodes": summary.counts.nodes,
        "edges": summary.counts.edges,
        "content_hash": summary.content_hash,
        "conflicts": conflicts,
        "preferred": args.prefer,
        "dangling_edges_dropped": merged.dangling_dropped,
    });
    args.output.show(&report, || lines(&report))
}

fn lines(report: &Value) -> String {
    let fields = report.as_object().into_iter().flatten();
    fields
        .map(|(key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{key}: {value}\n")
        })
        .collect()
}
