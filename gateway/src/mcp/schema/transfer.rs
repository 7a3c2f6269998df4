//! Rows of the tool table about exports and imports.

use waggle_memory::meta::KeyScopes;

use super::{Hints, ToolKind, ToolSpec};
use crate::mcp::tools::fields;

pub(super) const EXPORT_CONTEXT_BUNDLE: ToolSpec = ToolSpec {
    kind: ToolKind::ExportContextBundle,
    name: "export_context_bundle",
    title: "Bundle",
    description: "A text to paste, cut to the budget.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[
        fields::EXPORT_BUNDLE,
        fields::SCOPE,
        fields::WEAK_LINKS,
        fields::BUDGET,
        fields::EXPORT_PATHS,
    ],
};

pub(super) const EXPORT_GRAPH_BACKUP: ToolSpec = ToolSpec {
    kind: ToolKind::ExportGraphBackup,
    name: "export_graph_backup",
    title: "Back up",
    description: "A scope as a file to import again; inline, else a link.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[
        fields::EXPORT_BACKUP,
        fields::SCOPE,
        fields::WEAK_LINKS,
        fields::BUDGET,
        fields::EXPORT_PATHS,
    ],
};

pub(super) const EXPORT_GRAPH_HTML: ToolSpec = ToolSpec {
    kind: ToolKind::ExportGraphHtml,
    name: "export_graph_html",
    title: "Export a page",
    description: "A scope as one offline HTML page.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::SCOPE, fields::EXPORT_HTML, fields::EXPORT_PATHS],
};

pub(super) const EXPORT_MARKDOWN_VAULT: ToolSpec = ToolSpec {
    kind: ToolKind::ExportMarkdownVault,
    name: "export_markdown_vault",
    title: "Export Markdown",
    description: "A scope as Markdown files: path to text, or a ZIP link.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::SCOPE, fields::EXPORT_PATHS],
};

pub(super) const IMPORT_GRAPH_BACKUP: ToolSpec = ToolSpec {
    kind: ToolKind::ImportGraphBackup,
    name: "import_graph_backup",
    title: "Import",
    description: "Take a backup in; repeating it changes nothing.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::ADDS_ONCE,
    core: false,
    fields: &[fields::IMPORT_SOURCE, fields::IMPORT_BACKUP, fields::IMPORT_PATHS],
};

pub(super) const IMPORT_MARKDOWN_VAULT: ToolSpec = ToolSpec {
    kind: ToolKind::ImportMarkdownVault,
    name: "import_markdown_vault",
    title: "Import Markdown",
    description: "Take the edits of a vault in.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::ADDS_ONCE,
    core: false,
    fields: &[fields::IMPORT_SOURCE, fields::IMPORT_DRY_RUN, fields::IMPORT_PATHS],
};
