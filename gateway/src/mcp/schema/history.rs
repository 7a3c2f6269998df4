//! Rows of the tool table about the past and about erasing scopes.

use waggle_config::limits::{DEPTH_MAX, IDS_PER_CALL_MAX, LIST_MAX, QUERY_BYTES_MAX, SCOPE_PART_BYTES_MAX};
use waggle_memory::meta::KeyScopes;

use super::{Field, FieldKind, Hints, ToolKind, ToolSpec};
use crate::mcp::tools::fields;

const LIMIT: Field = Field::new(
    "limit",
    FieldKind::Integer {
        min: 1,
        max: LIST_MAX as i64,
        default: Some(25),
    },
    "",
);

const DEPTH: Field = Field::new(
    "max_depth",
    FieldKind::Integer {
        min: 0,
        max: DEPTH_MAX as i64,
        default: Some(2),
    },
    "",
);

const CONFIRM: Field = Field::new("confirm", FieldKind::Flag { default: false }, "");
const DRY_RUN: Field = Field::new("dry_run", FieldKind::Flag { default: false }, "");

const SCOPE_PART: FieldKind = FieldKind::Text {
    bytes_max: SCOPE_PART_BYTES_MAX,
    default: None,
};

/// Erasing more than one memory takes an administrator.
const ERASES_SCOPES: KeyScopes = KeyScopes::GRAPH_WRITE.with(KeyScopes::ADMIN_WRITE);

pub(super) const CANONICALIZE_NODE: ToolSpec = ToolSpec {
    kind: ToolKind::CanonicalizeNode,
    name: "canonicalize_node",
    title: "Merge memories",
    description: "Merge memories of one project into one; their ids keep resolving.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::DESTROYS,
    core: false,
    fields: &[&[
        Field::required(
            "node_ids",
            FieldKind::Ids {
                items_max: IDS_PER_CALL_MAX,
            },
            "Merged away",
        ),
        Field::required("canonical_id", FieldKind::Id, "Stays"),
    ]],
};

pub(super) const CLEAR_ALL: ToolSpec = ToolSpec {
    kind: ToolKind::ClearAll,
    name: "clear_all",
    title: "Erase everything",
    description: "Erase all memory for good.",
    scopes: ERASES_SCOPES,
    hints: Hints::DESTROYS,
    core: false,
    fields: &[&[CONFIRM, DRY_RUN]],
};

pub(super) const CLEAR_PROJECT: ToolSpec = ToolSpec {
    kind: ToolKind::ClearProject,
    name: "clear_project",
    title: "Erase a project",
    description: "Erase a project's memories, edges, transcripts, sessions for good.",
    scopes: ERASES_SCOPES,
    hints: Hints::DESTROYS,
    core: false,
    fields: &[&[Field::required("project", SCOPE_PART, ""), CONFIRM, DRY_RUN]],
};

pub(super) const CLEAR_SESSION: ToolSpec = ToolSpec {
    kind: ToolKind::ClearSession,
    name: "clear_session",
    title: "Erase a session",
    description: "Erase a session's transcripts and the memories that rest on it alone.",
    scopes: KeyScopes::GRAPH_WRITE,
    hints: Hints::DESTROYS,
    core: false,
    fields: &[
        &[Field::required("session_id", SCOPE_PART, "")],
        fields::PROJECT,
        &[CONFIRM, DRY_RUN],
    ],
};

pub(super) const GET_NODE_HISTORY: ToolSpec = ToolSpec {
    kind: ToolKind::GetNodeHistory,
    name: "get_node_history",
    title: "History of a memory",
    description: "A memory in full: versions, evidence, conflicts, related memories.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::NODE_ID, &[DEPTH], fields::PAGE],
};

pub(super) const GRAPH_DIFF: ToolSpec = ToolSpec {
    kind: ToolKind::GraphDiff,
    name: "graph_diff",
    title: "What changed",
    description: "Memories and edges added, changed, closed, deleted in a period.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[
        &[
            Field::new("since", FieldKind::Time, "Default 24h"),
            Field::new("until", FieldKind::Time, "Default now"),
        ],
        fields::SCOPE,
        fields::PAGE,
    ],
};

pub(super) const LIST_CONFLICTS: ToolSpec = ToolSpec {
    kind: ToolKind::ListConflicts,
    name: "list_conflicts",
    title: "Conflicts",
    description: "Contradictions and replacements to settle, newest first.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[
        &[
            Field::new("include_resolved", FieldKind::Flag { default: false }, "Settled too"),
            LIMIT,
        ],
        fields::SCOPE,
        fields::PAGE,
    ],
};

pub(super) const TIMELINE: ToolSpec = ToolSpec {
    kind: ToolKind::Timeline,
    name: "timeline",
    title: "Timeline",
    description: "What happened, newest first: around a memory, a topic, or in a scope.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[
        &[
            Field::new("node_id", FieldKind::Id, "Around it"),
            Field::new(
                "query",
                FieldKind::Text {
                    bytes_max: QUERY_BYTES_MAX,
                    default: Some(""),
                },
                "Or a topic",
            ),
            LIMIT,
            DEPTH,
            Field::new("include_evidence", FieldKind::Flag { default: true }, "Evidence too"),
            Field::new("since", FieldKind::Time, "From then"),
        ],
        fields::SCOPE,
        fields::PAGE,
    ],
};
