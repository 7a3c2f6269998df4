//! After the transcript is stored: what the next conversation needs, as files on this machine. A bundle to paste, a
//! checkpoint of the session that can be imported elsewhere, and a manifest that says which files belong together.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use waggle_gateway::handoff::Scope;

use super::report::Files;
use super::{Args, ExportFormat};
use crate::client::Client;
use crate::failure::{self, Failure};

/// Budget of the bundle when none is given: the largest that a call may ask for. --max-nodes bounds it, too.
const TOKENS_MAX: u32 = 20_000;
/// Longest checkpoint.
const CHECKPOINT_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Letters of a scope's name in a file name.
const NAME_CHARS_MAX: usize = 64;

/// How the export ended, if it did not fail.
pub(super) enum Export {
    Written(Box<Files>),
    Skipped(&'static str),
}

/// A bundle in one form.
struct Bundle {
    text: String,
    nodes: u64,
    edges: u64,
    cut: bool,
}

/// Writes everything. The error is the end of a sentence.
pub(super) fn export(client: &Client, args: &Args, scope: &Scope) -> Result<Export, String> {
    let prefix = args.output_path.clone().unwrap_or_else(|| default_prefix(scope));
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new(".")).to_owned();
    let mut checkpoint = temporary(&folder)?;
    if let Err(error) = fetch_checkpoint(client, scope, checkpoint.as_file_mut()) {
        let failure = Failure::from_error(&error);
        // A cluster of an earlier release has no exports.
        if failure.exit == failure::NOT_FOUND {
            return Ok(Export::Skipped("export_not_supported"));
        }
        return Err(format!("fetch the checkpoint: {}", failure.what));
    }
    let mut files = Files {
        checkpoint_path: with_ending(&prefix, "abhi"),
        checkpoint_scope: scope_word(scope).to_owned(),
        ..Files::default()
    };
    for (format, word, ending) in [
        (ExportFormat::Markdown, "markdown", "md"),
        (ExportFormat::Json, "json", "json"),
    ] {
        if args.export_format != ExportFormat::Both && args.export_format != format {
            continue;
        }
        let bundle = fetch_bundle(client, args, scope, word)?;
        let path = with_ending(&prefix, ending);
        write(&folder, &path, bundle.text.as_bytes())?;
        (files.node_count, files.edge_count) = (bundle.nodes, bundle.edges);
        if bundle.cut {
            files
                .warnings
                .push(format!("the {word} bundle was cut to its token budget"));
        }
        match format {
            ExportFormat::Markdown => files.markdown_path = Some(path),
            _ => files.json_path = Some(path),
        }
    }
    let (sha256, bytes) = digest(checkpoint.as_file_mut()).map_err(|error| format!("read the checkpoint: {error}"))?;
    persist(checkpoint, &files.checkpoint_path)?;
    // Last: a manifest names files that are there.
    files.manifest_path = with_ending(&prefix, "checkpoint.json");
    let manifest = manifest(scope, &files, &sha256, bytes);
    write(&folder, &files.manifest_path, format!("{manifest:#}\n").as_bytes())?;
    Ok(Export::Written(Box::new(files)))
}

fn fetch_checkpoint(client: &Client, scope: &Scope, out: &mut File) -> anyhow::Result<()> {
    // Texts that look like a credential are replaced, or a transcript that held one could never be checkpointed.
    let mut query = vec![("format", "abhi".to_owned()), ("secrets", "redact".to_owned())];
    query.extend(
        scope_fields(scope)
            .into_iter()
            .map(|(name, value)| (name, value.to_owned())),
    );
    let mut out = Bounded {
        out,
        left: CHECKPOINT_BYTES_MAX,
    };
    client.download("/api/graph/export", &query, &mut out)
}

/// A session is all of it, whoever spoke in it; without one the agent counts.
fn scope_fields(scope: &Scope) -> Vec<(&'static str, &str)> {
    let agent = if scope.session_id.is_empty() {
        scope.agent_id.as_str()
    } else {
        ""
    };
    let all = [
        ("project", scope.project.as_str()),
        ("agent_id", agent),
        ("session_id", scope.session_id.as_str()),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn fetch_bundle(client: &Client, args: &Args, scope: &Scope, format: &str) -> Result<Bundle, String> {
    let mut arguments = Map::new();
    arguments.insert("mode".to_owned(), json!("prime"));
    arguments.insert("format".to_owned(), json!(format));
    arguments.insert("max_nodes".to_owned(), json!(args.max_nodes));
    let tokens = args.max_context_tokens.unwrap_or(TOKENS_MAX);
    arguments.insert("token_budget".to_owned(), json!(tokens));
    for (name, value) in scope_fields(scope) {
        arguments.insert(name.to_owned(), json!(value));
    }
    let answer = client.tool("export_context_bundle", &Value::Object(arguments));
    let (found, _) = answer.map_err(|error| format!("fetch the bundle: {}", Failure::from_error(&error).what))?;
    let number = |name: &str| found.get(name).and_then(Value::as_u64).unwrap_or(0);
    let text = found.get("content").and_then(Value::as_str);
    Ok(Bundle {
        text: text.ok_or("the cluster gave a bundle without content")?.to_owned(),
        nodes: number("node_count"),
        edges: number("edge_count"),
        cut: found.get("truncation_flags").is_some() || found.get("content_truncated").is_some(),
    })
}

fn scope_word(scope: &Scope) -> &'static str {
    match (scope.session_id.is_empty(), scope.project.is_empty()) {
        (false, _) => "session",
        (true, false) => "project",
        (true, true) => "all",
    }
}

/// In the working directory, named after the narrowest part of the scope.
fn default_prefix(scope: &Scope) -> PathBuf {
    let parts = [&scope.session_id, &scope.project, &scope.agent_id];
    let name = parts
        .into_iter()
        .find(|part| !part.is_empty())
        .map_or("memory", String::as_str);
    let safe: String = name
        .chars()
        .take(NAME_CHARS_MAX)
        .map(|c| {
            if c.is_alphanumeric() || matches!(c, '-' | '_') {
                c
            } else {
                '-'
            }
        })
        .collect();
    PathBuf::from(format!("waggle-handoff-{safe}"))
}

/// Adds an ending; a point inside of the prefix is part of the name.
fn with_ending(prefix: &Path, ending: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn manifest(scope: &Scope, files: &Files, sha256: &str, bytes: u64) -> Value {
    // Beside the manifest, so that the folder can be moved.
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    json!({
        "format": "waggle-handoff-checkpoint",
        "format_version": 1,
        "scope": {"project": scope.project, "agent_id": scope.agent_id, "session_id": scope.session_id},
        "checkpoint": {
            "file": name(&files.checkpoint_path),
            "scope": files.checkpoint_scope,
            "bytes": bytes,
            "sha256": sha256,
        },
        "bundle": {
            "markdown": files.markdown_path.as_deref().and_then(name),
            "json": files.json_path.as_deref().and_then(name),
            "node_count": files.node_count,
            "edge_count": files.edge_count,
        },
    })
}

fn temporary(folder: &Path) -> Result<NamedTempFile, String> {
    // The error names a file that nobody knows of; its kind does not.
    NamedTempFile::new_in(folder).map_err(|error| format!("write into {}: {}", folder.display(), error.kind()))
}

/// Whole or not at all.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> Result<(), String> {
    let mut file = temporary(folder)?;
    file.write_all(bytes)
        .map_err(|error| format!("write {}: {error}", path.display()))?;
    persist(file, path)
}

fn persist(file: NamedTempFile, path: &Path) -> Result<(), String> {
    let written = file
        .as_file()
        .sync_all()
        .and_then(|()| file.persist(path).map_err(|error| error.error));
    written
        .map(drop)
        .map_err(|error| format!("write {}: {error}", path.display()))
}

fn digest(file: &mut File) -> io::Result<(String, u64)> {
    file.rewind()?;
    let (mut hasher, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; 64 * 1024]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hasher.update(piece.get(..read).unwrap_or_default());
        bytes += read as u64;
    }
    let hex: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((hex, bytes))
}

/// A writer that takes no more than it should.
struct Bounded<'a> {
    out: &'a mut File,
    left: u64,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            io::Error::other(format!(
                "the checkpoint is longer than {CHECKPOINT_BYTES_MAX} bytes; give a narrower scope"
            ))
        })?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(project: &str, agent_id: &str, session_id: &str) -> Scope {
        Scope {
            project: project.to_owned(),
            agent_id: agent_id.to_owned(),
            session_id: session_id.to_owned(),
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named_alone() {
        let folder = tempfile::Builder::new().prefix("folder").tempdir().expect("a folder");
        let gone = folder.path().join("gone");
        let said = temporary(&gone).map(drop).expect_err("no such folder");
        let wanted = format!("write into {}: ", gone.display());
        assert!(said.starts_with(&wanted), "{said}");
        assert!(!said.contains(".tmp"), "{said}");
    }

    #[test]
    fn files_are_named_after_the_narrowest_part_of_the_scope() {
        for (scope, word, name) in [
            (scope("p", "a", "s/1 ü"), "session", "waggle-handoff-s-1-ü"),
            (scope("team/pay", "a", ""), "project", "waggle-handoff-team-pay"),
            (scope("", "a", ""), "all", "waggle-handoff-a"),
            (scope("", "", ""), "all", "waggle-handoff-memory"),
        ] {
            assert_eq!(scope_word(&scope), word);
            assert_eq!(default_prefix(&scope), PathBuf::from(name));
        }
        assert_eq!(with_ending(Path::new("out/v1.2"), "md"), PathBuf::from("out/v1.2.md"));
    }

    #[test]
    fn files_are_written_whole_and_hashed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txt");
        write(folder.path(), &path, b"abc").expect("written");
        write(folder.path(), &path, b"abcd").expect("written over");
        assert_eq!(std::fs::read(&path).expect("read"), b"abcd");
        let (hex, bytes) = digest(&mut File::open(&path).expect("open")).expect("read");
        assert_eq!(bytes, 4);
        assert_eq!(hex, "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589");
        let missing = folder.path().join("none");
        assert!(write(&missing, &missing.join("a"), b"x").is_err());
        let mut out = tempfile::tempfile().expect("a file");
        let mut bounded = Bounded { out: &mut out, left: 3 };
        assert!(bounded.write_all(b"abc").is_ok() && bounded.write_all(b"d").is_err());
    }

    #[test]
    fn a_session_is_checkpointed_whoever_spoke_in_it() {
        assert_eq!(
            scope_fields(&scope("p", "a", "s")),
            [("project", "p"), ("session_id", "s")]
        );
        assert_eq!(
            scope_fields(&scope("p", "a", "")),
            [("project", "p"), ("agent_id", "a")]
        );
    }
}
