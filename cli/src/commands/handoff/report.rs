//! What a hand-off did, summed over the calls that it took.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::input::Input;

/// Counts that add up over calls.
const SUMS: [&str; 7] = [
    "transcript_records_written",
    "transcript_records_skipped",
    "logical_turns_processed",
    "assistant_blocks_skipped",
    "nodes_created",
    "nodes_reused",
    "conflicts",
];
/// A count that only the last call knows.
const TRAILING: &str = "unpaired_trailing_blocks";
/// Warnings that are shown; a transcript sent in many parts must not repeat itself.
const WARNINGS_MAX: usize = 50;

/// The report while it is made.
pub(super) struct Report {
    fields: Map<String, Value>,
    warnings: Vec<String>,
}

/// Files that the export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) markdown_path: Option<PathBuf>,
    pub(super) json_path: Option<PathBuf>,
    pub(super) node_count: u64,
    pub(super) edge_count: u64,
    pub(super) checkpoint_path: PathBuf,
    pub(super) checkpoint_scope: String,
    pub(super) manifest_path: PathBuf,
    pub(super) warnings: Vec<String>,
}

impl Report {
    pub(super) fn new(input: &Input) -> Self {
        let scope = input.scope();
        let mut fields = Map::new();
        fields.insert(
            "scope".to_owned(),
            json!({"project": scope.project, "agent_id": scope.agent_id, "session_id": scope.session_id}),
        );
        fields.insert("input_message_count".to_owned(), json!(input.count()));
        for name in SUMS.iter().chain([&TRAILING]) {
            fields.insert((*name).to_owned(), json!(0));
        }
        Self {
            fields,
            warnings: input.warnings(),
        }
    }

    /// Adds the answer of one call, finished or not.
    pub(super) fn add(&mut self, answer: &Value) {
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
        for name in SUMS {
            let sum = number(self.fields.get(name)) + number(answer.get(name));
            self.fields.insert(name.to_owned(), json!(sum));
        }
        self.fields
            .insert(TRAILING.to_owned(), json!(number(answer.get(TRAILING))));
        for warning in answer.get("warnings").and_then(Value::as_array).into_iter().flatten() {
            let Some(warning) = warning.as_str() else { continue };
            if self.warnings.len() < WARNINGS_MAX && !self.warnings.iter().any(|known| known == warning) {
                self.warnings.push(warning.to_owned());
            }
        }
    }

    /// Takes back what was skipped only because an unfinished call had stored it a moment before.
    pub(super) fn not_skipped(&mut self, count: u64) {
        let name = "transcript_records_skipped";
        let skipped = self.fields.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.fields
            .insert(name.to_owned(), json!(skipped.saturating_sub(count)));
    }

    pub(super) fn count(&self, name: &str) -> u64 {
        self.fields.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    pub(super) fn skip_export(&mut self, reason: &str) {
        self.fields.insert("export_skipped".to_owned(), json!(true));
        self.fields.insert("export_skipped_reason".to_owned(), json!(reason));
    }

    pub(super) fn exported(&mut self, files: &Files) {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        for (name, value) in [
            ("export_skipped", json!(false)),
            ("markdown_path", json!(path(&files.markdown_path))),
            ("json_path", json!(path(&files.json_path))),
            ("export_node_count", json!(files.node_count)),
            ("export_edge_count", json!(files.edge_count)),
            ("checkpoint_path", json!(files.checkpoint_path.display().to_string())),
            ("checkpoint_scope", json!(files.checkpoint_scope)),
            (
                "checkpoint_manifest_path",
                json!(files.manifest_path.display().to_string()),
            ),
        ] {
            self.fields.insert(name.to_owned(), value);
        }
        self.warnings.extend(files.warnings.iter().cloned());
    }

    pub(super) fn finish(&self) -> Value {
        let mut fields = self.fields.clone();
        fields.insert("warnings".to_owned(), json!(self.warnings));
        Value::Object(fields)
    }
}
