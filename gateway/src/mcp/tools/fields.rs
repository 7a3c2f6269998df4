//! The fields of all tools, in groups that several tools share.

use waggle_config::limits::{
    CONTENT_BYTES_MAX, CURSOR_BYTES_MAX, DEPTH_MAX, EXPAND_DEPTH_MAX, LABEL_BYTES_MAX, MESSAGE_BYTES_MAX, NODES_MAX,
    NOTE_BYTES_MAX, QUERY_BYTES_MAX, SCOPE_PART_BYTES_MAX, SOURCE_PROMPT_BYTES_MAX, TAG_BYTES_MAX, TAGS_MAX,
    TOKEN_BUDGET_DEFAULT, TOKEN_BUDGET_MAX, TOKEN_BUDGET_MIN,
};
use waggle_memory::kind::{Kind, Relationship};

use crate::mcp::schema::{Field, FieldKind, TEXT};
use crate::transfer::description::{Format, SecretsPolicy};

const fn text(bytes_max: usize) -> FieldKind {
    FieldKind::Text {
        bytes_max,
        default: None,
    }
}

const fn text_or_empty(bytes_max: usize) -> FieldKind {
    FieldKind::Text {
        bytes_max,
        default: Some(""),
    }
}

fn kinds() -> Vec<&'static str> {
    Kind::ALL.iter().map(|kind| kind.word()).collect()
}

fn relationships() -> Vec<&'static str> {
    Relationship::ALL
        .iter()
        .map(|relationship| relationship.word())
        .collect()
}

fn modes() -> Vec<&'static str> {
    vec!["fusion", "graph", "replay"]
}

const DEPTH: i64 = DEPTH_MAX as i64;

const PROJECT_FIELD: Field = Field::new("project", text_or_empty(SCOPE_PART_BYTES_MAX), "");

pub(crate) const PROJECT: &[Field] = &[PROJECT_FIELD];

/// Where a memory belongs.
pub(crate) const SCOPE: &[Field] = &[
    PROJECT_FIELD,
    Field::new("agent_id", text_or_empty(SCOPE_PART_BYTES_MAX), ""),
    Field::new("session_id", text_or_empty(SCOPE_PART_BYTES_MAX), ""),
];

/// How much of a long answer, and from where.
pub(crate) const PAGE: &[Field] = &[TOKEN_BUDGET, CURSOR];

const TOKEN_BUDGET: Field = Field::new(
    "token_budget",
    FieldKind::Integer {
        min: TOKEN_BUDGET_MIN as i64,
        max: TOKEN_BUDGET_MAX as i64,
        default: Some(TOKEN_BUDGET_DEFAULT as i64),
    },
    "",
);

/// How long an answer without pages may be.
pub(crate) const BUDGET: &[Field] = &[TOKEN_BUDGET];

const CURSOR: Field = Field::new("cursor", text(CURSOR_BYTES_MAX), "");

pub(crate) const NODE_ID: &[Field] = &[Field::required("node_id", FieldKind::Id, "")];

pub(crate) const GET_RELATED: &[Field] = &[
    Field::new(
        "max_depth",
        FieldKind::Integer {
            min: 0,
            max: DEPTH,
            default: Some(2),
        },
        "",
    ),
    Field::new("include_invalidated", FieldKind::Flag { default: false }, ""),
];

pub(crate) const DECOMPOSE: &[Field] = &[
    Field::required("content", text(MESSAGE_BYTES_MAX), "The text"),
    Field::new("context", text_or_empty(QUERY_BYTES_MAX), "What all is part of"),
];

pub(crate) const THRESHOLD: &[Field] = &[Field::new(
    "threshold",
    FieldKind::Number {
        min: 0.85,
        max: 0.99,
        default: Some(0.85),
    },
    "",
)];

pub(crate) const MAX_TOPICS: &[Field] = &[Field::new(
    "max_topics",
    FieldKind::Integer {
        min: 1,
        max: 100,
        default: Some(20),
    },
    "",
)];

pub(crate) const REPLAY: &[Field] = &[
    Field::required("memory_id", FieldKind::Id, ""),
    Field::new("depth", FieldKind::Depth, "reflects_on steps; default all"),
    Field::new("verbose", FieldKind::Flag { default: false }, "Long texts uncut"),
    Field::new("full", FieldKind::Flag { default: false }, "Whole turns"),
    Field::unlisted("agent_id", text_or_empty(SCOPE_PART_BYTES_MAX)),
];

/// Transcripts are longer than memories.
pub(crate) const REPLAY_PAGE: &[Field] = &[
    Field::new(
        "token_budget",
        FieldKind::Integer {
            min: TOKEN_BUDGET_MIN as i64,
            max: REPLAY_TOKENS_MAX,
            default: Some(5_000),
        },
        "",
    ),
    CURSOR,
];

/// Largest token budget of a replay: 4 MiB of text.
pub(crate) const REPLAY_TOKENS_MAX: i64 = 1_048_576;

pub(crate) const CAPABILITIES: &[Field] = &[
    Field::new(
        "include_schema",
        FieldKind::Flag { default: false },
        "Result schemas too",
    ),
    // The answer is short: pages are for whoever insists.
    Field {
        listed: false,
        ..TOKEN_BUDGET
    },
    Field {
        listed: false,
        ..CURSOR
    },
];

pub(crate) const OBSERVE: &[Field] = &[
    Field::required("user_message", text(MESSAGE_BYTES_MAX), "What the user said"),
    Field::required(
        "assistant_response",
        text(MESSAGE_BYTES_MAX),
        "Your answer; one may be blank",
    ),
];

pub(crate) const OBSERVED_AT: &[Field] = &[Field::new("observed_at", FieldKind::Time, "When; default now")];

pub(crate) const QUERY: &[Field] = &[Field::required("query", text(QUERY_BYTES_MAX), "Question or key words")];

pub(crate) const QUERY_MORE: &[Field] = &[
    Field::new(
        "max_nodes",
        FieldKind::Integer {
            min: 1,
            max: NODES_MAX as i64,
            default: Some(20),
        },
        "",
    ),
    Field::new(
        "max_depth",
        FieldKind::Integer {
            min: 0,
            max: DEPTH,
            default: Some(2),
        },
        "",
    ),
    Field::new(
        "expand_depth",
        FieldKind::Integer {
            min: 0,
            max: EXPAND_DEPTH_MAX as i64,
            default: Some(0),
        },
        "Supporting memories",
    ),
    Field::new(
        "retrieval_mode",
        FieldKind::Word {
            allowed: modes,
            aliases: &[("hybrid", "fusion"), ("verbatim", "replay")],
            default: Some("fusion"),
        },
        "graph: memories; replay: turns",
    ),
    Field::new("include_invalidated", FieldKind::Flag { default: false }, ""),
    Field::new("as_of", FieldKind::Time, "World as of then"),
    Field::new("known_at", FieldKind::Time, "As known then"),
    Field::new(
        "node_types",
        FieldKind::Words {
            items_max: 7,
            allowed: kinds,
        },
        "Only these",
    ),
    Field::new(
        "tags",
        FieldKind::Texts {
            items_max: TAGS_MAX,
            bytes_max: TAG_BYTES_MAX,
            empty: true,
        },
        "All of these",
    ),
    Field::new(
        "strict_scope",
        FieldKind::Flag { default: false },
        "Scope fields filter",
    ),
    Field::new("explain", FieldKind::Flag { default: false }, "Why each hit"),
];

pub(crate) const PRIME: &[Field] = &[
    Field::new("query", text_or_empty(QUERY_BYTES_MAX), "The task, if known"),
    Field::new("include_evidence", FieldKind::Flag { default: false }, "Quote turns"),
    // Arguments of an older tool; they have no effect on the same sections.
    Field::unlisted(
        "depth",
        FieldKind::Integer {
            min: 0,
            max: 100,
            default: None,
        },
    ),
    Field::unlisted(
        "max_subqueries",
        FieldKind::Integer {
            min: 0,
            max: 1000,
            default: None,
        },
    ),
    Field::unlisted("mode", text(TEXT)),
];

pub(crate) const RESOLVE: &[Field] = &[
    Field::required("edge_id", FieldKind::Id, "Conflict edge"),
    Field::new("winner", FieldKind::Id, "The end that holds"),
    Field::new("resolution_note", text_or_empty(NOTE_BYTES_MAX), "Why"),
    Field::new("valid_to", FieldKind::Time, "Loser ended; default now"),
];

pub(crate) const STORE_EDGE: &[Field] = &[
    Field::required("source_id", FieldKind::Id, ""),
    Field::required("target_id", FieldKind::Id, ""),
    Field::required(
        "relationship",
        FieldKind::Word {
            allowed: relationships,
            aliases: &[],
            default: None,
        },
        "Read from source to target",
    ),
    Field::new(
        "weight",
        FieldKind::Number {
            min: 0.0,
            max: 1.0,
            default: Some(1.0),
        },
        "",
    ),
];

pub(crate) const STORE_NODE: &[Field] = &[
    Field::required("label", text(LABEL_BYTES_MAX), "Short name"),
    Field::required("content", text(CONTENT_BYTES_MAX), "One statement"),
    Field::required(
        "node_type",
        FieldKind::Word {
            allowed: kinds,
            aliases: &[],
            default: None,
        },
        "What it is",
    ),
    Field::new(
        "tags",
        FieldKind::Texts {
            items_max: TAGS_MAX,
            bytes_max: TAG_BYTES_MAX,
            empty: true,
        },
        "",
    ),
    Field::new(
        "source_prompt",
        text_or_empty(SOURCE_PROMPT_BYTES_MAX),
        "Where it came from",
    ),
];

pub(crate) const VALIDITY: &[Field] = &[
    Field::new("valid_from", FieldKind::Time, "Holds from"),
    Field::new("valid_to", FieldKind::Time, "Holds until"),
];

pub(crate) const UPDATE_NODE: &[Field] = &[
    Field::new("content", text(CONTENT_BYTES_MAX), "New statement"),
    Field::new("label", text(LABEL_BYTES_MAX), "New name"),
    // No default: absent keeps the tags, an empty list clears them.
    Field::new(
        "tags",
        FieldKind::Texts {
            items_max: TAGS_MAX,
            bytes_max: TAG_BYTES_MAX,
            empty: false,
        },
        "Replaces all tags",
    ),
];

pub(crate) const EXPECTED_VERSION: &[Field] = &[Field::new(
    "expected_version",
    FieldKind::Integer {
        min: 1,
        max: u32::MAX as i64,
        default: None,
    },
    "Refuse if it changed since",
)];

pub(crate) const REASON: &[Field] = &[Field::new(
    "reason",
    text_or_empty(NOTE_BYTES_MAX),
    "Why; kept in its history",
)];

fn backup_formats() -> Vec<&'static str> {
    Format::BACKUPS.to_vec()
}

fn secrets_policies() -> Vec<&'static str> {
    SecretsPolicy::WORDS.to_vec()
}

fn strategies() -> Vec<&'static str> {
    vec!["merge", "skip-existing", "overwrite", "branch"]
}

pub(crate) const EXPORT_BACKUP: &[Field] = &[
    Field::new(
        "format",
        FieldKind::Word {
            allowed: backup_formats,
            aliases: &[],
            default: Some("json"),
        },
        "json is complete",
    ),
    Field::new(
        "secrets",
        FieldKind::Word {
            allowed: secrets_policies,
            aliases: &[],
            default: Some("refuse"),
        },
        "What looks like one",
    ),
];

pub(crate) const WEAK_LINKS: &[Field] = &[Field::new(
    "include_low_confidence_edges",
    FieldKind::Flag { default: false },
    "Weak edges too",
)];

/// Names of files that older clients send; only the last part is used, as the name that is offered.
pub(crate) const EXPORT_PATHS: &[Field] = &[
    Field::unlisted("output_path", text(PATH_BYTES_MAX)),
    Field::unlisted("root_path", text(PATH_BYTES_MAX)),
];

const PATH_BYTES_MAX: usize = 4_096;

pub(crate) const IMPORT_SOURCE: &[Field] = &[
    Field::new("content", text(MESSAGE_BYTES_MAX), "The file, up to 1 MiB"),
    Field::new("upload_id", text(64), "Or its POST /api/uploads"),
];

pub(crate) const IMPORT_BACKUP: &[Field] = &[
    Field::new(
        "strategy",
        FieldKind::Word {
            allowed: strategies,
            aliases: &[],
            default: Some("merge"),
        },
        "branch: new ids",
    ),
    Field::new("project", text(SCOPE_PART_BYTES_MAX), "Import into"),
    Field::new(
        "allow_dangling",
        FieldKind::Flag { default: false },
        "Drop edges without ends",
    ),
    DRY_RUN,
];

pub(crate) const IMPORT_DRY_RUN: &[Field] = &[DRY_RUN];

const DRY_RUN: Field = Field::new("dry_run", FieldKind::Flag { default: false }, "");

/// Refused with the reason: the server opens no file by name.
pub(crate) const IMPORT_PATHS: &[Field] = &[
    Field::unlisted("input_path", text(PATH_BYTES_MAX)),
    Field::unlisted("root_path", text(PATH_BYTES_MAX)),
];

fn bundle_modes() -> Vec<&'static str> {
    vec!["prime", "query", "graph"]
}

fn bundle_formats() -> Vec<&'static str> {
    vec!["markdown", "json", "both"]
}

fn audiences() -> Vec<&'static str> {
    vec!["llm", "human"]
}

pub(crate) const EXPORT_BUNDLE: &[Field] = &[
    Field::new(
        "mode",
        FieldKind::Word {
            allowed: bundle_modes,
            aliases: &[],
            default: Some("prime"),
        },
        "What is chosen",
    ),
    Field::new("query", text_or_empty(QUERY_BYTES_MAX), "For mode query"),
    Field::new(
        "format",
        FieldKind::Word {
            allowed: bundle_formats,
            aliases: &[],
            default: Some("markdown"),
        },
        "Form",
    ),
    Field::new(
        "audience",
        FieldKind::Word {
            allowed: audiences,
            aliases: &[],
            default: Some("llm"),
        },
        "Reader",
    ),
    Field::unlisted(
        "retrieval_mode",
        FieldKind::Word {
            allowed: modes,
            aliases: &[("hybrid", "fusion"), ("verbatim", "replay")],
            default: Some("fusion"),
        },
    ),
    Field::new(
        "max_nodes",
        FieldKind::Integer {
            min: 1,
            max: 500,
            default: Some(25),
        },
        "",
    ),
];

pub(crate) const EXPORT_HTML: &[Field] = &[Field::new(
    "include_physics",
    FieldKind::Flag { default: true },
    "Moving layout",
)];
