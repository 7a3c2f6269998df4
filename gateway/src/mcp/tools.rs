//! One file for each tool: arguments in, one call to the owner of the tenant, an answer out.

pub(crate) mod fields;

mod canonicalize_node;
mod clear;
mod decompose_and_store;
mod dedup_candidates;
mod delete_node;
mod export_context_bundle;
mod export_graph_backup;
mod export_graph_html;
mod export_markdown_vault;
mod exports;
mod get_node_history;
mod get_related;
pub(crate) mod get_stats;
mod get_topics;
mod graph_diff;
pub(crate) mod import_graph_backup;
mod import_markdown_vault;
mod list_conflicts;
mod list_context_scopes;
mod memory_capabilities;
mod memory_replay;
mod observe_conversation;
mod prime_context;
mod query_graph;
mod resolve_conflict;
mod store_edge;
mod store_node;
mod timeline;
mod update_node;

#[cfg(test)]
mod reference_page;

use rmcp::model::JsonObject;
use std::sync::Arc;
use tokio::time::Instant;

use waggle_memory::time::Millis;
use waggle_proto::wire::clear_request::What;

use crate::app::App;
use crate::auth::Caller;
use crate::cursor::{Binding, Left, Walk};
use crate::fault::Fault;
use crate::mcp::arguments::{Arguments, fingerprint};
use crate::mcp::result::{Answer, Fitted};
use crate::mcp::schema::{ToolKind, ToolSpec};
use crate::route::Call;

/// One checked call of a tool.
pub(crate) struct ToolCall<'a> {
    pub(crate) app: &'a Arc<App>,
    pub(crate) caller: &'a Caller,
    pub(crate) tool: &'static ToolSpec,
    pub(crate) arguments: Arguments,
    pub(crate) call: Call,
    /// Relative times and new cursors count from here.
    pub(crate) now: Millis,
    /// None: the first page.
    pub(crate) walk: Option<Walk>,
    /// A bounded answer is good enough.
    pub(crate) bounded: bool,
    /// Where the caller reaches this gateway.
    pub(crate) base_url: String,
    /// The answer reflects at least this applied index.
    pub(crate) read_after: u64,
}

impl<'a> ToolCall<'a> {
    /// A linearizable call, whoever brought it: arguments checked, cursor opened.
    pub(crate) fn begin(
        app: &'a Arc<App>,
        caller: &'a Caller,
        tool: &'static ToolSpec,
        given: &JsonObject,
        request_id: String,
    ) -> Result<Self, Fault> {
        let now = app.clock.wall();
        let fingerprint = fingerprint(tool, given);
        let binding = Binding {
            tenant: caller.tenant.as_str(),
            key_id: &caller.key_id,
            tool: tool.name,
            arguments: fingerprint,
        };
        let mut arguments = Arguments::check(tool, given, now)?;
        let walk = match arguments.optional_text("cursor") {
            None => None,
            Some(cursor) => Some(app.cursors.open(cursor, binding, now)?),
        };
        if let Some(walk) = &walk {
            // Relative times mean what they meant on the first page.
            arguments = Arguments::check(tool, given, walk.started)?;
        }
        Ok(Self {
            app,
            caller,
            tool,
            arguments,
            call: Call {
                request_id,
                fingerprint,
                deadline: Instant::now() + app.limits.call_time_default(),
                writes: !tool.hints.read_only,
                bounded: false,
            },
            now,
            walk,
            bounded: false,
            base_url: String::new(),
            read_after: 0,
        })
    }
}

impl ToolCall<'_> {
    pub(crate) fn tenant(&self) -> &str {
        self.caller.tenant.as_str()
    }

    fn binding(&self) -> Binding<'_> {
        Binding {
            tenant: self.tenant(),
            key_id: &self.caller.key_id,
            tool: self.tool.name,
            arguments: self.call.fingerprint,
        }
    }

    /// Runs the tool and makes its answer fit.
    pub(crate) async fn run(self) -> Result<Fitted, Fault> {
        let answer = match self.tool.kind {
            ToolKind::DecomposeAndStore => decompose_and_store::run(&self).await?,
            ToolKind::DedupCandidates => dedup_candidates::run(&self).await?,
            ToolKind::ExportContextBundle => export_context_bundle::run(&self).await?,
            ToolKind::ExportGraphHtml => export_graph_html::run(&self).await?,
            ToolKind::ExportGraphBackup => export_graph_backup::run(&self).await?,
            ToolKind::ExportMarkdownVault => export_markdown_vault::run(&self).await?,
            ToolKind::ImportMarkdownVault => import_markdown_vault::run(&self).await?,
            ToolKind::ImportGraphBackup => import_graph_backup::run(&self).await?,
            ToolKind::CanonicalizeNode => canonicalize_node::run(&self).await?,
            ToolKind::ClearAll => clear::run(&self, What::All).await?,
            ToolKind::ClearProject => clear::run(&self, What::Project).await?,
            ToolKind::ClearSession => clear::run(&self, What::Session).await?,
            ToolKind::DeleteNode => delete_node::run(&self).await?,
            ToolKind::GetNodeHistory => get_node_history::run(&self).await?,
            ToolKind::GetRelated => get_related::run(&self).await?,
            ToolKind::GetStats => get_stats::run(&self).await?,
            ToolKind::GetTopics => get_topics::run(&self).await?,
            ToolKind::GraphDiff => graph_diff::run(&self).await?,
            ToolKind::ListConflicts => list_conflicts::run(&self).await?,
            ToolKind::ListContextScopes => list_context_scopes::run(&self).await?,
            ToolKind::MemoryCapabilities => memory_capabilities::run(&self)?,
            ToolKind::MemoryReplay => memory_replay::run(&self).await?,
            ToolKind::ObserveConversation => observe_conversation::run(&self).await?,
            ToolKind::PrimeContext => prime_context::run(&self).await?,
            ToolKind::QueryGraph => query_graph::run(&self).await?,
            ToolKind::ResolveConflict => resolve_conflict::run(&self).await?,
            ToolKind::StoreEdge => store_edge::run(&self).await?,
            ToolKind::StoreNode => store_node::run(&self).await?,
            ToolKind::Timeline => timeline::run(&self).await?,
            ToolKind::UpdateNode => update_node::run(&self).await?,
        };
        let link = answer.link.clone();
        let mut fitted = self.fit(answer);
        fitted.link = link;
        Ok(fitted)
    }

    fn fit(&self, answer: Answer) -> Fitted {
        let budget = self.arguments.integer("token_budget");
        let pages = self.tool.fields().any(|field| field.name == "cursor");
        if !pages {
            let tokens = usize::try_from(budget).ok().filter(|tokens| *tokens > 0);
            return answer.fit(tokens.unwrap_or(crate::mcp::result::UNPAGED_TOKENS_MAX), None);
        }
        let walk = self.walk.clone().unwrap_or_else(|| Walk {
            started: self.now,
            ..Walk::default()
        });
        // Names of shown items take a quarter of the budget at most.
        let bytes = usize::try_from(budget).unwrap_or_default();
        let named_max = bytes / crate::mcp::result::CURSOR_BYTES_PER_ITEM;
        let seal = |shown: &[u32], left: Left, read_stamp: i64| {
            let walk = Walk {
                started: walk.started,
                read_stamp: if walk.read_stamp == 0 {
                    read_stamp
                } else {
                    walk.read_stamp
                },
                left,
                position: walk.position.after(shown, named_max),
            };
            self.app.cursors.seal(&walk, self.binding(), self.now)
        };
        answer.fit(usize::try_from(budget).unwrap_or_default(), Some(&seal))
    }
}
