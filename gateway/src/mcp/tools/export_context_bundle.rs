//! What a graph knows of a topic as one text to paste: chosen by a brief, a question or its best connected memories, and
//! cut to the budget by whole items. So it always fits, and there is never a link.

use std::sync::Arc;

use serde_json::Value;
use waggle_config::limits::NODES_MAX;
use waggle_formats::bundle::{Audience, Bundle, BundleFormat, BundleRequest, WeakLinks, render};
use waggle_formats::graph::Graph;
use waggle_memory::id::{MemoryId, TenantId, TurnId};
use waggle_memory::time::Millis;
use waggle_proto::wire::query_request::Mode;
use waggle_proto::wire::{NodeHit, PrimeRequest, QueryRequest, TurnHit};

use super::ToolCall;
use super::exports::described;
use crate::fault::Fault;
use crate::mcp::result::Answer;
use crate::route::timed;
use crate::transfer::description::{Format, SecretsPolicy};
use crate::transfer::export::open;
use crate::transfer::import::blocking;
use crate::transfer::pages::{best_connected, collect};

/// Tries with ever smaller parts of the budget: escapes of the answer take what the text does not know of.
const TRIES: usize = 5;

/// What was asked, without borrows: it goes to a thread that may block.
struct Asked {
    tenant: TenantId,
    project: String,
    mode: &'static str,
    retrieval_mode: &'static str,
    query: String,
    now: Millis,
    weak_links: WeakLinks,
    audience: Audience,
    format: BundleFormat,
    nodes_max: usize,
}

#[derive(Default)]
struct Chosen {
    memories: Vec<MemoryId>,
    turns: Vec<TurnId>,
}

pub(super) async fn run(call: &ToolCall<'_>) -> Result<Answer, Fault> {
    let asked = Arc::new(asked(call)?);
    let export = described(call, Format::Bundle, SecretsPolicy::Redact)?;
    let chosen = choose(call, &asked).await?;
    let _permit = call.app.transfer.enter()?;
    let mut incoming = open(call.app, call.caller, &call.call, &export, call.call.deadline).await?;
    let (graph, chosen) = blocking({
        let asked = Arc::clone(&asked);
        move || {
            let graph = collect(&mut incoming)?;
            let chosen = chosen.unwrap_or_else(|| Chosen {
                memories: best_connected(&graph, asked.nodes_max),
                turns: Vec::new(),
            });
            Ok((Arc::new(graph), Arc::new(chosen)))
        }
    })
    .await?;
    let tokens = usize::try_from(call.arguments.integer("token_budget")).unwrap_or_default();
    let mut answer = Answer::default();
    for attempt in 0..TRIES {
        let part = tokens * (TRIES - attempt) / (TRIES + 1);
        let (asked, graph, chosen) = (Arc::clone(&asked), Arc::clone(&graph), Arc::clone(&chosen));
        let bundle = blocking(move || rendered(&asked, &graph, &chosen, part)).await?;
        answer = told(call, bundle);
        let fitted = answer.clone().fit(tokens, None);
        if fitted.structured.get("content_truncated").is_none() {
            break;
        }
    }
    Ok(answer)
}

fn asked(call: &ToolCall<'_>) -> Result<Asked, Fault> {
    let arguments = &call.arguments;
    let mode = match arguments.text("mode") {
        "query" => "query",
        "graph" => "graph",
        _ => "prime",
    };
    let query = arguments.text("query").to_owned();
    if mode == "query" && query.trim().is_empty() {
        return Err(Fault::validation(
            "query",
            "mode query needs a query; say what it is about",
        ));
    }
    let retrieval_mode = match (mode, arguments.text("retrieval_mode")) {
        ("query", "graph") => "graph",
        ("query", "replay") => "replay",
        ("query", _) => "fusion",
        _ => "",
    };
    Ok(Asked {
        tenant: call.caller.tenant.clone(),
        project: arguments.text("project").to_owned(),
        mode,
        retrieval_mode,
        query,
        now: call.now,
        weak_links: if arguments.flag("include_low_confidence_edges") {
            WeakLinks::Shown
        } else {
            WeakLinks::LeftOut
        },
        audience: if arguments.text("audience") == "human" {
            Audience::Human
        } else {
            Audience::Llm
        },
        format: match arguments.text("format") {
            "json" => BundleFormat::Json,
            "both" => BundleFormat::Both,
            _ => BundleFormat::Markdown,
        },
        nodes_max: usize::try_from(arguments.integer("max_nodes")).unwrap_or_default(),
    })
}

/// The memories by a brief or a question; None: by the graph alone.
async fn choose(call: &ToolCall<'_>, asked: &Asked) -> Result<Option<Chosen>, Fault> {
    let (nodes, turns) = match asked.mode {
        "query" => ask(call, asked).await?,
        "prime" => prime(call, asked).await?,
        _ => return Ok(None),
    };
    let ids = nodes.into_iter().filter_map(|hit| hit.memory);
    Ok(Some(Chosen {
        memories: ids
            .filter_map(|memory| memory.id.as_slice().try_into().ok().map(MemoryId::from_bytes))
            .take(asked.nodes_max)
            .collect(),
        turns: turns
            .into_iter()
            .filter_map(|turn| turn.turn_id.as_slice().try_into().ok().map(TurnId::from_bytes))
            .collect(),
    }))
}

async fn ask(call: &ToolCall<'_>, asked: &Asked) -> Result<(Vec<NodeHit>, Vec<TurnHit>), Fault> {
    let mode = match asked.retrieval_mode {
        "graph" => Mode::Graph,
        "replay" => Mode::Replay,
        _ => Mode::Fusion,
    };
    let nodes_max = asked.nodes_max.min(NODES_MAX);
    let request = QueryRequest {
        scope: Some(call.arguments.scope()),
        query: asked.query.clone(),
        max_nodes: u32::try_from(nodes_max).unwrap_or(u32::MAX),
        max_depth: 2,
        mode: mode.into(),
        ..QueryRequest::default()
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                QueryRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.query(request).await }
        })
        .await?;
    Ok((reply.nodes, reply.turns))
}

async fn prime(call: &ToolCall<'_>, asked: &Asked) -> Result<(Vec<NodeHit>, Vec<TurnHit>), Fault> {
    let request = PrimeRequest {
        scope: Some(call.arguments.scope()),
        query: asked.query.clone(),
        include_evidence: true,
        ..PrimeRequest::default()
    };
    let reply = call
        .app
        .cluster
        .memory(call.caller, &call.call, |mut client, context, left| {
            let request = timed(
                PrimeRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.prime(request).await }
        })
        .await?;
    Ok((reply.nodes, reply.turns))
}

fn rendered(asked: &Asked, graph: &Graph, chosen: &Chosen, token_budget: usize) -> Result<Bundle, Fault> {
    let request = BundleRequest {
        tenant: &asked.tenant,
        project: &asked.project,
        mode: asked.mode,
        retrieval_mode: asked.retrieval_mode,
        query: &asked.query,
        generated_at: asked.now,
        memories: &chosen.memories,
        turns: &chosen.turns,
        weak_links: asked.weak_links,
        audience: asked.audience,
        format: asked.format,
        token_budget,
    };
    render(graph, &request).map_err(|error| {
        tracing::error!(%error, "a bundle cannot be written");
        Fault::internal()
    })
}

fn told(call: &ToolCall<'_>, bundle: Bundle) -> Answer {
    let mut answer = Answer::default();
    answer.put("mode", call.arguments.text("mode"));
    answer.put("format", call.arguments.text("format"));
    answer.put("node_count", bundle.node_count);
    answer.put("edge_count", bundle.edge_count);
    answer.put("token_estimate", bundle.token_estimate);
    answer.put_some(
        "truncation_flags",
        bundle
            .truncation_flags
            .iter()
            .map(|flag| Value::from(*flag))
            .collect::<Vec<_>>(),
    );
    if bundle.redactions > 0 {
        answer.put("redactions", bundle.redactions);
    }
    match (bundle.markdown, bundle.json) {
        (Some(markdown), Some(json)) => {
            answer.put("content", markdown);
            answer.put("content_json", json);
        }
        (Some(content), None) | (None, Some(content)) => answer.put("content", content),
        (None, None) => {}
    }
    answer
}
