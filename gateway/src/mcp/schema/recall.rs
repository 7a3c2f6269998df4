//! Rows of the tool table about recall, overviews and what the server offers.

use waggle_memory::meta::KeyScopes;

use super::{Hints, ToolKind, ToolSpec};
use crate::mcp::tools::fields;

pub(super) const DEDUP_CANDIDATES: ToolSpec = ToolSpec {
    kind: ToolKind::DedupCandidates,
    name: "dedup_candidates",
    title: "Possible duplicates",
    description: "Pairs of a project that say nearly the same, and what forbids to merge them.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::SCOPE, fields::THRESHOLD, fields::PAGE],
};

pub(super) const GET_RELATED: ToolSpec = ToolSpec {
    kind: ToolKind::GetRelated,
    name: "get_related",
    title: "Related memories",
    description: "Memories linked to a known one, strongest first, in both directions. Use it to explain or follow up \
                  a hit.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::NODE_ID, fields::GET_RELATED, fields::PAGE],
};

pub(super) const GET_STATS: ToolSpec = ToolSpec {
    kind: ToolKind::GetStats,
    name: "get_stats",
    title: "Statistics",
    description: "Counts by type, open conflicts, sessions, bytes, most connected and most recent memories, index \
                  status.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::PROJECT],
};

pub(super) const GET_TOPICS: ToolSpec = ToolSpec {
    kind: ToolKind::GetTopics,
    name: "get_topics",
    title: "Topics",
    description: "What the memories are about, largest topic first.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::SCOPE, fields::MAX_TOPICS, fields::PAGE],
};

pub(super) const LIST_CONTEXT_SCOPES: ToolSpec = ToolSpec {
    kind: ToolKind::ListContextScopes,
    name: "list_context_scopes",
    title: "List projects, agents, sessions",
    description: "Known projects, agents and sessions, most recently used first. Use it when a scope looks empty or \
                  misspelt.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::PROJECT, fields::PAGE],
};

pub(super) const MEMORY_CAPABILITIES: ToolSpec = ToolSpec {
    kind: ToolKind::MemoryCapabilities,
    name: "memory_capabilities",
    title: "Capabilities",
    description: "What this server and key can do.",
    scopes: KeyScopes::from_bits(0),
    hints: Hints::READS,
    core: true,
    fields: &[fields::CAPABILITIES],
};

pub(super) const MEMORY_REPLAY: ToolSpec = ToolSpec {
    kind: ToolKind::MemoryReplay,
    name: "memory_replay",
    title: "Replay transcripts",
    description: "The turns that a memory rests on, verbatim.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: false,
    fields: &[fields::REPLAY, fields::REPLAY_PAGE],
};

pub(super) const PRIME_CONTEXT: ToolSpec = ToolSpec {
    kind: ToolKind::PrimeContext,
    name: "prime_context",
    title: "Brief me",
    description: "Brief for a new conversation or a task: conflicts, decisions, constraints, preferences, facts, open \
                  questions.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: true,
    fields: &[fields::SCOPE, fields::PRIME, fields::PAGE],
};

pub(super) const QUERY_GRAPH: ToolSpec = ToolSpec {
    kind: ToolKind::QueryGraph,
    name: "query_graph",
    title: "Recall",
    description: "Recall memories and turns that answer a question. Search before answers that may depend on earlier \
                  decisions, preferences or facts.",
    scopes: KeyScopes::GRAPH_READ,
    hints: Hints::READS,
    core: true,
    fields: &[fields::QUERY, fields::SCOPE, fields::QUERY_MORE, fields::PAGE],
};
