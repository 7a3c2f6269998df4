//! `waggle export` and `waggle import`: whole graphs as files, streamed.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

mod vault;

use crate::client::ClientArgs;
use crate::output::OutputArgs;

#[derive(clap::Args)]
pub(crate) struct Export {
    /// What to write. Only json holds everything.
    #[arg(long, default_value = "json", value_parser = ["json", "abhi", "graphml", "html", "bundle", "vault"])]
    format: String,
    /// The file; without it, stdout. An existing file is replaced once the export is complete.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only this project.
    #[arg(long)]
    project: Option<String>,
    /// Only what this agent said or gave evidence for.
    #[arg(long)]
    agent_id: Option<String>,
    /// Only what rests on this session.
    #[arg(long)]
    session_id: Option<String>,
    /// What to do about texts that look like a credential.
    #[arg(long, default_value = "refuse", value_parser = ["refuse", "redact", "include"])]
    secrets: String,
    /// With weak links too, where a format leaves them out.
    #[arg(long)]
    include_low_confidence_edges: bool,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(clap::Args)]
pub(crate) struct Import {
    /// A file that `waggle export` wrote, or the folder or ZIP of a Markdown vault.
    file: PathBuf,
    /// What happens to what is there already.
    #[arg(long, default_value = "merge", value_parser = ["merge", "skip-existing", "overwrite", "branch"])]
    strategy: String,
    /// Put everything into this project.
    #[arg(long)]
    project: Option<String>,
    /// Leave out links without an end instead of refusing the file.
    #[arg(long)]
    allow_dangling: bool,
    /// Only tell what would be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn export(args: Export) -> Result<()> {
    let mut query: Vec<(&str, String)> = vec![("format", args.format), ("secrets", args.secrets)];
    for (name, value) in [
        ("project", args.project),
        ("agent_id", args.agent_id),
        ("session_id", args.session_id),
    ] {
        query.extend(value.map(|value| (name, value)));
    }
    if args.include_low_confidence_edges {
        query.push(("include_low_confidence_edges", "true".to_owned()));
    }
    let client = args.client.public()?;
    match args.output {
        None => client.download("/api/graph/export", &query, &mut io::stdout().lock()),
        Some(path) => {
            // Under another name until it is complete: an export that breaks off leaves no file that looks like one.
            let part = part_of(&path);
            let mut file = File::create(&part).with_context(|| format!("write {}", part.display()))?;
            let done = client
                .download("/api/graph/export", &query, &mut file)
                .and_then(|()| Ok(file.flush()?))
                .and_then(|()| Ok(file.sync_all()?))
                .and_then(|()| std::fs::rename(&part, &path).with_context(|| format!("write {}", path.display())));
            if done.is_err() {
                let _ = std::fs::remove_file(&part);
            }
            done
        }
    }
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

pub(crate) fn import(args: Import) -> Result<()> {
    let (file, format) = if args.file.is_dir() {
        (vault::pack(&args.file)?, "vault")
    } else {
        let file = File::open(&args.file).with_context(|| format!("read {}", args.file.display()))?;
        (file, "auto")
    };
    let mut query: Vec<(&str, String)> = vec![("format", format.to_owned()), ("strategy", args.strategy)];
    query.extend(args.project.map(|project| ("project", project)));
    for (name, on) in [("allow_dangling", args.allow_dangling), ("dry_run", args.dry_run)] {
        if on {
            query.push((name, "true".to_owned()));
        }
    }
    let report = args.client.public()?.upload("/api/graph/import", &query, file)?;
    args.output.show(&report, || lines(&report))
}

fn lines(report: &Value) -> String {
    let is_vault = report.get("format").and_then(Value::as_str) == Some("vault");
    let mut text = String::new();
    for (key, value) in report.as_object().into_iter().flatten() {
        if key != "conflicts" && key != "renamed" {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{key}: {value}\n"));
        }
    }
    let conflicts = report.get("conflicts").and_then(Value::as_array);
    for conflict in conflicts.into_iter().flatten() {
        let field = |name: &str| conflict.get(name).and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!(
            "conflict: {} {} {} {}\n",
            field(if is_vault { "path" } else { "record" }),
            field(if is_vault { "node_id" } else { "id" }),
            field("reason"),
            field(if is_vault { "field" } else { "fields" })
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_is_shown_with_its_conflicts_last() {
        let report = json!({
            "format": "json", "nodes_created": 2, "dry_run": false,
            "conflicts": [{"record": "node", "id": "x", "reason": "differs", "fields": "content"}],
        });
        let expected = "format: json\nnodes_created: 2\ndry_run: false\nconflict: node x differs content\n";
        assert_eq!(lines(&report), expected);
        let report = json!({
            "format": "vault", "nodes_updated": 0,
            "conflicts": [{"path": "a.md", "node_id": "x", "reason": "both_changed", "field": "content"}],
        });
        let expected = "format: vault\nnodes_updated: 0\nconflict: a.md x both_changed content\n";
        assert_eq!(lines(&report), expected);
    }

    #[test]
    fn a_file_has_another_name_until_it_is_complete() {
        assert_eq!(part_of(Path::new("/a/b.json")), Path::new("/a/b.json.part"));
    }
}
