//! `waggle memory`: a small client of the same tools that agents use.

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::client::ClientArgs;
use crate::output::{OutputArgs, print};

/// A label of ours is a line of the content; the gateway's bound is in bytes.
const LABEL_CHARS_MAX: usize = 80;

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Remember one thing.
    Add(Add),
    /// Recall what answers a question, best first.
    Search(Search),
    /// Show one memory.
    Show(Show),
}

#[derive(clap::Args)]
pub(crate) struct Add {
    /// What to remember.
    content: String,
    /// A short title. Default: the beginning of the content.
    #[arg(long)]
    label: Option<String>,
    #[arg(long, default_value = "fact", value_parser = ["fact", "entity", "concept", "preference", "decision", "question", "note"])]
    kind: String,
    /// May be repeated.
    #[arg(long = "tag")]
    tags: Vec<String>,
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Search {
    /// The question, or words to look for.
    query: String,
    /// At most so many memories.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// The id, as `search` and `add` show it.
    id: String,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
struct Scope {
    #[arg(long)]
    project: Option<String>,
    #[arg(long)]
    agent_id: Option<String>,
    #[arg(long)]
    session_id: Option<String>,
}

impl Scope {
    fn put_into(&self, arguments: &mut Map<String, Value>) {
        for (name, value) in [
            ("project", &self.project),
            ("agent_id", &self.agent_id),
            ("session_id", &self.session_id),
        ] {
            if let Some(value) = value {
                arguments.insert(name.to_owned(), json!(value));
            }
        }
    }
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Add(args) => {
            let mut arguments = Map::new();
            let label = args.label.clone().unwrap_or_else(|| label_of(&args.content));
            arguments.insert("label".into(), json!(label));
            arguments.insert("content".into(), json!(args.content));
            arguments.insert("node_type".into(), json!(args.kind));
            if !args.tags.is_empty() {
                arguments.insert("tags".into(), json!(args.tags));
            }
            args.scope.put_into(&mut arguments);
            call(&args.client, args.output, "store_node", arguments)
        }
        Verb::Search(args) => {
            let mut arguments = Map::new();
            arguments.insert("query".into(), json!(args.query));
            arguments.insert("max_nodes".into(), json!(args.limit));
            args.scope.put_into(&mut arguments);
            call(&args.client, args.output, "query_graph", arguments)
        }
        Verb::Show(args) => {
            let mut arguments = Map::new();
            arguments.insert("node_id".into(), json!(args.id));
            arguments.insert("max_depth".into(), json!(0));
            arguments.insert("include_invalidated".into(), json!(true));
            call(&args.client, args.output, "get_related", arguments)
        }
    }
}

/// The tool's own text is written for readers; programs take the structured form.
fn call(client: &ClientArgs, output: OutputArgs, tool: &str, arguments: Map<String, Value>) -> Result<()> {
    let (data, text) = client.public()?.tool(tool, &Value::Object(arguments))?;
    match output.format() {
        crate::output::Format::Json => print(&format!("{data:#}\n")),
        crate::output::Format::Table => print(&format!("{}\n", text.trim_end())),
    }
}

fn label_of(content: &str) -> String {
    let line = content
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    if line.chars().count() <= LABEL_CHARS_MAX {
        return line.to_owned();
    }
    let cut: String = line.chars().take(LABEL_CHARS_MAX - 1).collect();
    // Not in the middle of a word, if there is a word to end with.
    let end = cut
        .rfind(' ')
        .filter(|end| *end > LABEL_CHARS_MAX / 2)
        .unwrap_or(cut.len());
    format!("{}…", cut.get(..end).unwrap_or(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_beginning_of_the_content() {
        assert_eq!(label_of("\n  we deploy on Fridays \nalways"), "we deploy on Fridays");
        let long = label_of(&"word ".repeat(60));
        assert!(
            long.ends_with("word…") && long.chars().count() <= LABEL_CHARS_MAX,
            "{long}"
        );
        assert_eq!(label_of(&"ü".repeat(100)).chars().count(), LABEL_CHARS_MAX);
    }
}
