//! What this server and this key can do. Answers from the tool table and the limits, without asking a node.

use serde_json::{Value, json};

use super::ToolCall;
use super::get_related::{named, unseen};
use crate::error_codes::ERROR_CODES;
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::mcp::schema::{TOOLS, ToolSet};
use crate::mcp::translate::Fields;

pub(super) fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let mut answer = Answer {
        lists: vec!["tools"],
        ..Answer::default()
    };
    if call.walk.is_none() {
        answer.put(
            "server",
            json!({"name": "waggle", "version": env!("CARGO_PKG_VERSION")}),
        );
        answer.put("tenant_id", call.tenant());
        answer.put("author", call.caller.principal.as_str());
        answer.put("scopes", call.caller.scopes.words());
        answer.put("paths", ToolSet::ALL.map(ToolSet::path).to_vec());
        answer.put("limits", limits(call));
        answer.put("retrieval_modes", json!(["fusion", "graph", "replay"]));
        answer.put(
            "error_codes",
            ERROR_CODES.iter().map(|(code, _)| *code).collect::<Vec<_>>(),
        );
    }
    let with_schema = call.arguments.flag("include_schema");
    let items = TOOLS.iter().map(|tool| {
        let fields = Fields::default()
            .with("name", tool.name)
            .with("scopes", tool.scopes.words())
            .with("allowed", call.caller.scopes.contains(tool.scopes))
            .with_if(
                with_schema,
                "result",
                if with_schema {
                    result_schema(tool.name)
                } else {
                    Value::Null
                },
            );
        named("tools", fields, tool.name)
    });
    answer.items = unseen(items.collect(), call.walk.as_ref());
    Ok(answer)
}

fn limits(call: &ToolCall<'_>) -> Value {
    use waggle_config::limits as l;
    let limits = &call.app.limits;
    json!({
        "request_body_bytes": limits.body_bytes_max(),
        "message_bytes": l::MESSAGE_BYTES_MAX,
        "content_bytes": l::CONTENT_BYTES_MAX,
        "label_bytes": l::LABEL_BYTES_MAX,
        "query_bytes": l::QUERY_BYTES_MAX,
        "resolution_note_bytes": l::NOTE_BYTES_MAX,
        "scope_field_bytes": l::SCOPE_PART_BYTES_MAX,
        "tag_bytes": l::TAG_BYTES_MAX,
        "tags": l::TAGS_MAX,
        "max_nodes": l::NODES_MAX,
        "max_depth": l::DEPTH_MAX,
        "expand_depth": l::EXPAND_DEPTH_MAX,
        "token_budget_default": l::TOKEN_BUDGET_DEFAULT,
        "token_budget_max": l::TOKEN_BUDGET_MAX,
        "extracted_per_turn": l::EXTRACTED_PER_TURN_MAX,
        "reads_per_minute": limits.reads_per_minute(),
        "writes_per_minute": limits.writes_per_minute(),
        "concurrent_calls": limits.concurrent_calls_max(),
        "call_seconds": limits.call_time_default().as_secs(),
        "request_id_bytes": l::REQUEST_ID_BYTES_MAX,
        "request_id_hours": l::REQUEST_ID_KEPT.as_secs() / 3600,
        "cursor_minutes": l::CURSOR_AGE_MAX.as_secs() / 60,
    })
}

/// Field names of an answer with their types: `?` may be missing, `[]` is a list.
pub(super) fn result_schema(tool: &str) -> Value {
    let node = "id label content node_type tags[]? project? confidence? state? valid_from? valid_to? due? superseded_by? \
                conflicts[]? updated_by? updated_at";
    let edge = "id source_id target_id relationship weight? confidence reason? state?";
    let full_edge = "id source_id target_id relationship weight confidence origin reason? author created_at version \
                     resolution? metadata";
    let full = "id tenant_id namespace project? agent_id? session_id? label content node_type tags[]? aliases[]? \
                source_prompt? confidence state valid_from valid_to? due? recorded_at created_at updated_at version author \
                superseded_by? conflicts[]? evidence_count evidence_records[]? embedding_status";
    let tombstone = "id deleted deleted_at author receipt content_hash? node_type? project? agent_id? session_id?";
    let conflict = "edge_id relationship source_id target_id state reason?";
    let page = "truncated next_cursor? token_estimate";
    match tool {
        "decompose_and_store" => json!({
            "fields": "created_count reused_count redactions? context_node_id? scope_note? warnings[]?",
            "nodes[]": format!("{node} created dedup_reason? similarity? alias_added?"),
            "edges[]": edge,
            "conflicts[]": conflict,
        }),
        "dedup_candidates" => json!({
            "fields": "threshold total_nodes_scanned warnings[]?",
            "pairs[]": "a b similarity blocked_by[]",
            "page": page,
        }),
        "canonicalize_node" => json!({
            "fields": "merged_node_ids[] edges_repointed edges_dropped aliases_added",
            "canonical_node": full,
        }),
        "clear_all" | "clear_project" | "clear_session" => json!(
            "scope project? session_id? deleted_nodes deleted_edges deleted_transcripts deleted_sessions evidence_removed \
             counts_by_node_type dry_run receipt?"
        ),
        "get_node_history" => json!({
            "node": format!("{full} deleted? deleted_at? receipt? content_hash?"),
            "aliases[]": "text author added_at",
            "versions[]": "version recorded_at author? change? reason? changed[]? label content node_type tags[]? valid_from valid_to? \
                 superseded_by?",
            "evidence_records[]": "evidence_id kind turn_id? turn_index? source_role? source_text \
                 source_span_start? source_span_end? session_id? agent_id? observed_at author",
            "conflicts[]": format!("edge_id {full_edge}"),
            "related_nodes[]": node,
            "edges[]": edge,
            "fields": "redirected_from? warnings[]?",
            "page": page,
        }),
        "graph_diff" => json!({
            "fields": "since until generated_at counts warnings[]?",
            "added_nodes[] updated_nodes[] closed_nodes[]": node,
            "deleted_nodes[]": tombstone,
            "created_edges[] contradiction_edges[]": edge,
            "resolved_conflicts[]": full_edge,
            "page": page,
        }),
        "list_conflicts" => json!({
            "conflicts[]": "state edge reason? created_at source_node target_node winner? resolved_by? resolved_at?",
            "page": page,
        }),
        "timeline" => json!({
            "fields": "scope warnings[]?",
            "items[]": "kind timestamp label? summary? node_id? edge_id? author",
            "page": page,
        }),
        "delete_node" => json!("id label? deleted deleted_edges turns_kept receipt?"),
        "export_context_bundle" => json!(
            "mode format node_count edge_count token_estimate truncation_flags[]? redactions? content content_json?"
        ),
        "export_graph_backup" | "export_graph_html" | "export_markdown_vault" => json!(
            "format node_count edge_count bytes redactions? schema_version? content_hash? content? uri? name? mime_type? \
             expires_at? file_name? hint?"
        ),
        "get_related" => {
            json!({"nodes[]": format!("{node} depth via_edge_id? strength"), "edges[]": edge, "page": page})
        }
        "get_stats" => json!(
            "total_nodes total_edges node_type_breakdown edge_type_breakdown open_conflicts closed_nodes total_sessions \
             total_turns bytes embedding_status index_status project_known most_connected_nodes[] \
             most_recent_nodes[]"
        ),
        "get_topics" => json!({
            "fields": "total_clusters total_nodes computed_at warnings[]?",
            "clusters[]": "cluster_id label node_count top_tags[]? nodes[] {id label node_type} nodes_cut?",
            "page": page,
        }),
        "import_graph_backup" => json!({
            "fields": "format nodes_created nodes_updated nodes_unchanged edges_created edges_updated edges_unchanged \
                 transcripts_created sessions_created tombstones_created dangling_edges_dropped conflict_count hash_verified \
                 dry_run commands",
            "conflicts[]": "record id reason fields",
            "renamed[]?": "from to",
        }),
        "import_markdown_vault" => json!({
            "fields": "nodes_created nodes_updated nodes_unchanged edges_created edges_updated edges_deleted \
                 stub_nodes_created conflict_count dry_run",
            "conflicts[]": "node_id path field base vault current reason hint",
        }),
        "list_context_scopes" => {
            json!({"fields": "projects[] agent_ids[] session_ids[] namespaces[]? details[]", "page": page})
        }
        "memory_capabilities" => json!({
            "fields": "server tenant_id author scopes[] paths[] limits retrieval_modes[] error_codes[]",
            "tools[]": "name scopes[] allowed result?",
            "page": page,
        }),
        "memory_replay" => json!({
            "fields": "memory_id count partial depth_used depth_cap walk_truncated empty_reason",
            "entries[]": "transcript_id namespace session role turn_index shape created_at observed_at archived_at expires_at \
                 source_memory_id memory_ids[] distance original_size span_start span_end spans[] content content_bytes \
                 truncated status error",
            "page": page,
        }),
        "observe_conversation" => json!({
            "fields": "turn_id transcript_ids[] verbatim_stored nodes_extracted edges_inferred extraction_errors[]? created_count \
                 reused_count redactions scope_note? warnings[]?",
            "stored_nodes[]": format!("{node} created dedup_reason? similarity? alias_added?"),
            "edges[]": edge,
            "conflicts[]": conflict,
        }),
        "prime_context" => json!({
            "fields": "project? summary total_nodes_in_graph empty_reason? hint? warnings[]? read_at",
            "sections[]": "title items[] {node_id text}",
            "nodes[]": node,
            "edges[]": edge,
            "conflicts[]": conflict,
            "page": page,
        }),
        "query_graph" => json!({
            "fields": "query retrieval_mode interpreted? total_nodes_in_graph empty_reason? hint? warnings[]? explain? read_at",
            "nodes[]": format!("{node} score support? turn_ids[]? learned_later? outside_period? explain?"),
            "edges[]": edge,
            "replay_hits[]": "turn_id session_id turn_index role text observed_at node_ids[]? score project? \
                 superseded? outside_period? explain?",
            "fusion_hits[]": "rank kind id score",
            "conflicts[]": conflict,
            "page": page,
        }),
        "resolve_conflict" => json!({
            "fields": "resolved winner? resolution_note? resolved_at? resolved_by?",
            "edge": full_edge,
            "source_node": node,
            "target_node": node,
        }),
        "store_edge" => json!(format!("{full_edge} created")),
        "store_node" => json!({
            "fields": format!("{full} created dedup_reason? similarity? alias_added? aliases_full? scope_note?"),
            "conflicts[]": "edge_id relationship with state reason?",
            "possible_duplicates[]": "id label similarity",
        }),
        "update_node" => json!({
            "fields": format!("{full} previous_version"),
            "conflicts[]": "edge_id relationship with state reason?",
            "possible_duplicates[]": "id label similarity",
        }),
        _ => Value::Null,
    }
}
