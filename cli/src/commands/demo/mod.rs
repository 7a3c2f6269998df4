//! `waggle demo`: a conversation of a small team, stored and asked about through the same tools that agents use.

mod conversation;

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::client::{Client, ClientArgs};
use crate::failure::{self, Failure};
use crate::output::OutputArgs;
use conversation::{FIRST_CHOICE, MARK, QUESTIONS, SECOND_CHOICE, TURNS};

/// The demo's own tag: a project with memories and without it belongs to somebody.
const TAG: &str = "waggle-demo";
/// More than the demo ever stores.
const CLEAR_MAX: usize = 200;
const KINDS: [&str; 7] = [
    "fact",
    "entity",
    "concept",
    "preference",
    "decision",
    "question",
    "note",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The project to use; refused if it holds anything that is not the demo's.
    #[arg(long, default_value = "waggle-demo")]
    project: String,
    /// Delete what an earlier demo stored, and end.
    #[arg(long)]
    clear: bool,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let demo = Demo {
        client: args.client.public()?,
        project: args.project.clone(),
    };
    demo.refuse_foreign()?;
    if args.clear {
        let deleted = demo.clear()?;
        return args
            .output
            .show(&json!({"project": args.project, "deleted": deleted}), || {
                format!("deleted {deleted} memories of project {}\n", args.project)
            });
    }
    let mut steps = vec![demo.load()?];
    for question in QUESTIONS {
        steps.push(demo.ask(question)?);
    }
    steps.extend(demo.conflict()?);
    let clear = format!("waggle demo --clear --project {}", args.project);
    args.output.show(
        &json!({"project": args.project, "steps": steps, "clear": clear}),
        || screen(&steps, &clear),
    )
}

struct Demo {
    client: Client,
    project: String,
}

impl Demo {
    fn refuse_foreign(&self) -> Result<()> {
        let (stats, _) = self.client.tool("get_stats", &json!({"project": self.project}))?;
        if stats["total_nodes"].as_u64().unwrap_or(0) == 0 {
            return Ok(());
        }
        let (marked, _) = self
            .client
            .tool("query_graph", &self.query(json!({"query": "", "tags": [TAG]})))?;
        if marked["nodes"].as_array().is_some_and(|nodes| !nodes.is_empty()) {
            return Ok(());
        }
        let what = format!(
            "project '{}' holds memories that are not the demo's",
            self.project.escape_debug()
        );
        Err(Failure::new(failure::CONFLICT, what)
            .next("choose another one with --project")
            .into())
    }

    /// Arguments of query_graph for this project alone.
    fn query(&self, mut arguments: Value) -> Value {
        arguments["project"] = json!(self.project);
        arguments["strict_scope"] = json!(true);
        arguments
    }

    fn load(&self) -> Result<Value> {
        let mark = json!({
            "label": MARK, "content": MARK, "node_type": "note", "tags": [TAG], "project": self.project,
        });
        self.client.tool("store_node", &mark)?;
        let (mut extracted, mut reused) = (0, 0);
        for (user, assistant) in TURNS {
            let turn = json!({
                "user_message": user, "assistant_response": assistant,
                "project": self.project, "agent_id": "demo", "session_id": "demo-1",
            });
            let (answer, _) = self.client.tool("observe_conversation", &turn)?;
            extracted += answer["created_count"].as_u64().unwrap_or(0);
            reused += answer["reused_count"].as_u64().unwrap_or(0);
        }
        Ok(json!({
            "title": "A conversation is stored",
            "text": format!("{} turns gave {extracted} new memories, {reused} were known already", TURNS.len()),
        }))
    }

    fn ask(&self, question: &str) -> Result<Value> {
        let arguments = self.query(json!({"query": question, "max_nodes": 3, "explain": true}));
        let (answer, _) = self.client.tool("query_graph", &arguments)?;
        let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
        let mut text = String::new();
        for node in &nodes {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:.3}  {}",
                node["score"].as_f64().unwrap_or(0.0),
                one_line(&node["content"])
            );
            if let Some(why) = node.get("explain") {
                let _ = writeln!(text, "       because {}", plain(why));
            }
        }
        if nodes.is_empty() {
            let _ = writeln!(text, "nothing: {}", one_line(&answer["empty_reason"]));
        }
        Ok(json!({"title": format!("Recall: {question}"), "text": text, "nodes": nodes}))
    }

    /// Two decisions that cannot both hold: shown, settled, and still in the history.
    fn conflict(&self) -> Result<Vec<Value>> {
        let first = self.decide(FIRST_CHOICE)?;
        let second = self.decide(SECOND_CHOICE)?;
        let (old, new) = (id_of(&first)?, id_of(&second)?);
        let open = second["conflicts"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["with"] == old))
            .cloned();
        let edge = match open {
            Some(conflict) => conflict["edge_id"].as_str().unwrap_or_default().to_owned(),
            // Also after an earlier run, in which it was settled.
            None => {
                let link = json!({"source_id": new, "target_id": old, "relationship": "contradicts"});
                id_of(&self.client.tool("store_edge", &link)?.0)?.to_owned()
            }
        };
        let shown = json!({
            "title": "Two decisions that cannot both hold",
            "text": format!("{FIRST_CHOICE}\n{SECOND_CHOICE}\nconflict {edge}: both stay in answers until somebody decides"),
        });
        let settle = json!({"edge_id": edge, "winner": new, "resolution_note": "decided in the demo"});
        let (settled, _) = self.client.tool("resolve_conflict", &settle)?;
        let question = self.query(json!({"query": "which database did we decide to use", "max_nodes": 5}));
        let (answer, _) = self.client.tool("query_graph", &question)?;
        let ids: Vec<&str> = answer["nodes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|node| node["id"].as_str())
            .collect();
        let resolved = json!({
            "title": "It is settled",
            "text": format!(
                "resolved by {}; the loser {} in answers now",
                one_line(&settled["resolved_by"]),
                if ids.contains(&old) { "is still" } else { "is no longer" },
            ),
            "loser_in_answers": ids.contains(&old),
        });
        let depth = json!({"node_id": old, "max_depth": 0, "include_invalidated": true});
        let (history, _) = self.client.tool("get_related", &depth)?;
        let memory = &history["nodes"][0];
        let kept = json!({
            "title": "Nothing is forgotten",
            "text": format!(
                "{}\nheld until {}, superseded by {}, by {}",
                one_line(&memory["content"]),
                one_line(&memory["valid_to"]),
                one_line(&memory["superseded_by"]),
                one_line(&settled["resolved_by"]),
            ),
            "node": memory,
        });
        Ok(vec![shown, resolved, kept])
    }

    fn decide(&self, text: &str) -> Result<Value> {
        let memory = json!({
            "label": text, "content": text, "node_type": "decision", "tags": [TAG], "project": self.project,
        });
        Ok(self.client.tool("store_node", &memory)?.0)
    }

    /// Deletes the memories page by page; the count is bounded, whatever the project holds.
    fn clear(&self) -> Result<usize> {
        let mut deleted = 0;
        while deleted < CLEAR_MAX {
            let all = json!({"query": "", "node_types": KINDS, "include_invalidated": true, "max_nodes": 50});
            let (page, _) = self.client.tool("query_graph", &self.query(all))?;
            let ids: Vec<String> = page["nodes"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|node| Some(node["id"].as_str()?.to_owned()))
                .collect();
            if ids.is_empty() {
                break;
            }
            for id in ids {
                self.client.tool("delete_node", &json!({"node_id": id}))?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }
}

fn id_of(answer: &Value) -> Result<&str> {
    answer["id"].as_str().context("the answer has no id")
}

fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// Names and values of an explanation, without brackets.
fn plain(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let parts: Vec<String> = fields
                .iter()
                .map(|(name, inner)| format!("{name} {}", plain(inner)))
                .collect();
            parts.join(", ")
        }
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => one_line(other),
    }
}

fn screen(steps: &[Value], clear: &str) -> String {
    let mut text = String::new();
    for (number, step) in steps.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", number + 1, one_line(&step["title"]));
        for line in step["text"].as_str().unwrap_or_default().lines() {
            let _ = writeln!(text, "   {line}");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "The memories stay until you say: {clear}");
    text
}
