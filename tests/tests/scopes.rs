//! Where a memory is found again: by every session and agent in its evidence, under every spelling of its project, and in
//! lists that end.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use waggle_tests::mcp::Client;
use waggle_tests::server::Dev;

async fn started() -> Result<(tempfile::TempDir, Dev, Client)> {
    let folder = tempfile::tempdir()?;
    let dev = Dev::start(&folder.path().join("data"))?;
    let client = Client::of(&dev)?;
    Ok((folder, dev, client))
}

fn said(content: &str, project: &str, agent: &str, session: &str) -> Value {
    json!({
        "label": content, "content": content, "node_type": "fact",
        "project": project, "agent_id": agent, "session_id": session,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_scope_finds_a_memory_in_every_session_and_agent_that_said_it() -> Result<()> {
    let (_folder, dev, client) = started().await?;
    let content = "The release train leaves on Thursday";
    let first = client.call("store_node", said(content, "p", "ada", "s1")).await?.ok()?;
    let again = client.call("store_node", said(content, "p", "bob", "s2")).await?.ok()?;
    ensure!(again.str("id")? == first.str("id")?, "{}", again.structured);
    for (agent, session, found) in [
        ("", "s1", true),
        ("", "s2", true),
        ("ada", "", true),
        ("bob", "s2", true),
        ("Bob", "", true),
        ("", "s3", false),
        ("eve", "", false),
    ] {
        let query = json!({
            "query": "when does the release train leave", "project": "p",
            "agent_id": agent, "session_id": session, "strict_scope": true,
        });
        let answer = client.call("query_graph", query).await?.ok()?;
        ensure!(
            answer.list("nodes").len() == usize::from(found),
            "agent {agent:?}, session {session:?}: {}",
            answer.structured
        );
    }
    dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_one_under_every_spelling_of_its_name() -> Result<()> {
    let (_folder, dev, client) = started().await?;
    client
        .call("store_node", said("The warehouse opens at 6", "Straße Süd", "", ""))
        .await?
        .ok()?;
    for project in ["STRASSE SÜD", " straße süd ", "strasse su\u{308}d"] {
        let query = json!({ "query": "when does the warehouse open", "project": project });
        let answer = client.call("query_graph", query).await?.ok()?;
        ensure!(answer.list("nodes").len() == 1, "{project}: {}", answer.structured);
    }
    let brief = client
        .call("prime_context", json!({ "project": "Strase Sud" }))
        .await?
        .ok()?;
    ensure!(brief.str("empty_reason")? == "scope_unknown", "{}", brief.structured);
    client
        .call("store_node", said("Everybody has a badge", "", "", ""))
        .await?
        .ok()?;
    let brief = client
        .call("prime_context", json!({ "project": "Strase Süd" }))
        .await?
        .ok()?;
    ensure!(
        brief.structured["warnings"] == json!(["scope_unknown"]) && brief.str("hint")?.contains("Straße Süd"),
        "a misspelt project beside tenant-wide memories: {}",
        brief.structured
    );
    dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_over_many_scopes_shows_each_once_and_agents_without_a_session() -> Result<()> {
    let (_folder, dev, client) = started().await?;
    for number in 0..60 {
        let content = format!("Fact number {number}");
        client
            .call("store_node", said(&content, &format!("project/{number:02}"), "", ""))
            .await?
            .ok()?;
    }
    client
        .call("store_node", said("Fact of a loner", "project/07", "loner", ""))
        .await?
        .ok()?;
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut cursor = Value::Null;
    for page in 0.. {
        ensure!(page < 60, "the walk does not end");
        let mut arguments = json!({ "token_budget": 400 });
        if cursor.is_string() {
            arguments["cursor"] = cursor;
        }
        let answer = client.call("list_context_scopes", arguments).await?.ok()?;
        for list in ["projects", "namespaces", "agent_ids"] {
            for name in answer.list(list) {
                seen.push((list.to_owned(), name.as_str().unwrap_or_default().to_owned()));
            }
        }
        cursor = answer.structured["next_cursor"].clone();
        if !cursor.is_string() {
            break;
        }
    }
    let count = |list: &str| seen.iter().filter(|(of, _)| of == list).count();
    ensure!(
        seen.len() == seen.iter().collect::<BTreeSet<_>>().len(),
        "something was shown twice: {seen:?}"
    );
    ensure!(
        (count("projects"), count("namespaces"), count("agent_ids")) == (60, 60, 1),
        "{seen:?}"
    );
    let of_project = json!({ "project": "PROJECT/07" });
    let answer = client.call("list_context_scopes", of_project).await?.ok()?;
    ensure!(
        answer.structured["agent_ids"] == json!(["loner"]),
        "{}",
        answer.structured
    );
    let turn = json!({
        "user_message": "My token is ghp_abcdefghijklmnopqrstuvwxyz0123456789 for now.", "assistant_response": "",
        "project": "p", "session_id": "s1",
    });
    client.call("observe_conversation", turn).await?.ok()?;
    let scopes = client.call("list_context_scopes", json!({})).await?.ok()?;
    ensure!(!scopes.text.contains("ghp_"), "a title tells a secret: {}", scopes.text);
    dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_holds_when_a_default_is_spelled_out() -> Result<()> {
    let (_folder, dev, client) = started().await?;
    for number in 0..12 {
        let content = format!("The pump number {number} stands in hall {number} and is painted in colour {number}");
        client.call("store_node", said(&content, "p", "", "")).await?.ok()?;
    }
    let first = json!({ "query": "where does the pump stand", "project": "p", "token_budget": 300 });
    let page = client.call("query_graph", first).await?.ok()?;
    let next = json!({
        "query": "where does the pump stand", "project": "p", "token_budget": 300,
        "cursor": page.str("next_cursor")?, "max_nodes": 20, "retrieval_mode": "fusion",
    });
    let second = client.call("query_graph", next).await?.ok()?;
    ensure!(!second.list("nodes").is_empty(), "{}", second.structured);
    dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_turn_is_in_no_memory_and_is_told() -> Result<()> {
    let (_folder, dev, client) = started().await?;
    let turn = json!({
        "user_message": "The deploy key is sk-aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd. I prefer dark mode.",
        "assistant_response": "", "project": "p",
    });
    let answer = client.call("observe_conversation", turn).await?.ok()?;
    ensure!(
        answer.structured["redactions"] == 0,
        "nothing was replaced: {}",
        answer.structured
    );
    let warning = answer.structured["warnings"][0].as_str().unwrap_or_default();
    ensure!(warning.starts_with("secrets_left_out: 1 "), "{}", answer.structured);
    ensure!(answer.list("stored_nodes").len() == 1, "{}", answer.structured);
    ensure!(
        !answer.structured["stored_nodes"].to_string().contains("sk-"),
        "{}",
        answer.structured
    );
    dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_at_once_all_arrive_when_nobody_names_a_version() -> Result<()> {
    let (_folder, dev, client) = started().await?;
    let stored = client
        .call("store_node", said("The build takes 9 minutes", "p", "", ""))
        .await?
        .ok()?;
    let id = stored.str("id")?.to_owned();
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..12 {
        let (client, id) = (client.clone(), id.clone());
        writers.spawn(async move {
            let change = json!({ "node_id": id, "content": format!("The build takes {number} minutes") });
            client.call("update_node", change).await?.ok().map(drop)
        });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    let history = client
        .call("get_node_history", json!({ "node_id": id, "token_budget": 20_000 }))
        .await?
        .ok()?;
    ensure!(
        history.structured["node"]["version"] == 13,
        "{}",
        history.structured["node"]
    );
    let stale = json!({ "node_id": id, "content": "The build takes long", "expected_version": 1 });
    let refused = client.call("update_node", stale).await?;
    ensure!(
        refused.structured["error_code"] == "version_conflict",
        "{}",
        refused.structured
    );
    dev.stop()
}
