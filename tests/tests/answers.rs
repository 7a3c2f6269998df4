//! What default answers show, and what they leave to those who ask for it.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use waggle_tests::mcp::Client;
use waggle_tests::world::World;

async fn store(client: &Client, kind: &str, content: &str, more: Value) -> Result<String> {
    let mut memory = json!({"label": content, "content": content, "node_type": kind, "project": "p"});
    if let (Some(fields), Value::Object(more)) = (memory.as_object_mut(), more) {
        fields.extend(more);
    }
    Ok(client.call("store_node", memory).await?.ok()?.str("id")?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_hold_yet_supports_nothing() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    let now = store(&client, "fact", "The billing service runs on Fargate", json!({})).await?;
    let later = json!({"valid_from": "2999-01-01"});
    let later = store(&client, "fact", "Lambdas replace the old machines", later).await?;
    let link = json!({"source_id": now, "target_id": later, "relationship": "depends_on"});
    client.call("store_edge", link).await?.ok()?;
    let question = json!({"query": "what does the billing service run on", "project": "p", "max_depth": 2});
    for (change, shown) in [
        (json!({}), false),
        (json!({"as_of": "2998-01-01"}), false),
        (json!({"as_of": "2999-06-01"}), true),
        (json!({"include_invalidated": true}), true),
    ] {
        let mut asked = question.clone();
        if let (Some(asked), Value::Object(change)) = (asked.as_object_mut(), change.clone()) {
            asked.extend(change);
        }
        let found = client.call("query_graph", asked).await?.ok()?;
        ensure!(found.text.contains(&now), "{change}: {}", found.text);
        ensure!(
            found.structured.to_string().contains(&later) == shown,
            "{change}: {}",
            found.text
        );
    }
    world.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brief_has_facts_under_facts_and_its_conflicts_even_when_there_are_none() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    store(&client, "fact", "The office is in Ghent", json!({})).await?;
    store(&client, "concept", "A ledger is a list of bookings", json!({})).await?;
    store(
        &client,
        "concept",
        "Backups are kept for 30 days",
        json!({"tags": ["requirement"]}),
    )
    .await?;
    let brief = client.call("prime_context", json!({"project": "p"})).await?.ok()?;
    let sections = brief.list("sections");
    let under = |title: &str| {
        let section = sections.iter().find(|section| section["title"] == title);
        section.map(|section| section["items"].to_string()).unwrap_or_default()
    };
    ensure!(
        under("Facts").contains("Ghent") && !under("Facts").contains("ledger"),
        "{sections:?}"
    );
    ensure!(
        under("Constraints and requirements").contains("30 days"),
        "{sections:?}"
    );
    // Written today, so it stands under the changes; nothing is told twice.
    ensure!(under("Changes of the last 7 days").contains("ledger"), "{sections:?}");
    ensure!(brief.structured["conflicts"] == json!([]), "{}", brief.structured);
    world.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_names_no_loser_of_a_conflict() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    let mut said = Vec::new();
    for text in [
        "We decided to use PostgreSQL for the orders.",
        "We decided to use MySQL for the orders.",
    ] {
        let turn = json!({"user_message": text, "assistant_response": "", "project": "p"});
        let answer = client.call("observe_conversation", turn).await?.ok()?;
        let node = answer.list("stored_nodes").first().context("a memory")?.clone();
        said.push(node["id"].as_str().context("its id")?.to_owned());
    }
    let [loser, winner] = said.as_slice() else {
        anyhow::bail!("two memories")
    };
    let conflicts = client.call("list_conflicts", json!({"project": "p"})).await?.ok()?;
    let edge = conflicts.list("conflicts").first().context("a conflict")?["edge"]["id"].clone();
    client
        .call("resolve_conflict", json!({"edge_id": edge, "winner": winner}))
        .await?
        .ok()?;
    let question = json!({"query": "which database for the orders", "project": "p", "retrieval_mode": "replay"});
    let found = client.call("query_graph", question.clone()).await?.ok()?;
    ensure!(found.list("replay_hits").len() == 2, "{}", found.text);
    ensure!(!found.structured.to_string().contains(loser), "{}", found.structured);
    ensure!(found.structured.to_string().contains(winner), "{}", found.structured);
    let mut all = question;
    all["include_invalidated"] = json!(true);
    let found = client.call("query_graph", all).await?.ok()?;
    ensure!(found.structured.to_string().contains(loser), "{}", found.structured);
    world.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_period_that_begins_in_the_future_is_refused_by_its_beginning() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    let answer = client.call("graph_diff", json!({"since": "2999-01-01"})).await?;
    ensure!(
        answer.is_error && answer.structured["field"] == "since",
        "{}",
        answer.text
    );
    let answer = client
        .call("graph_diff", json!({"since": "2026-01-02", "until": "2026-01-01"}))
        .await?;
    ensure!(
        answer.is_error && answer.structured["field"] == "until",
        "{}",
        answer.text
    );
    world.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_says_who_decided() -> Result<()> {
    let world = World::start()?;
    let output = std::process::Command::new(waggle_tests::workspace::binary()?)
        .args(["demo", "--url", &world.base])
        .env("WAGGLE_KEY", &world.dev.api_key)
        .output()?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{said}");
    ensure!(said.contains("superseded by") && !said.contains("by -"), "{said}");
    world.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_keeps_the_reason_that_was_given_for_it() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    let id = store(&client, "fact", "The office is in Ghent", json!({})).await?;
    for (content, reason) in [
        ("The office is in Basel", Some("we moved on the first of May")),
        ("The office is in Bern", None),
    ] {
        let mut change = json!({"node_id": id, "content": content});
        if let Some(reason) = reason {
            change["reason"] = json!(reason);
        }
        client.call("update_node", change).await?.ok()?;
    }
    let history = client.call("get_node_history", json!({"node_id": id})).await?.ok()?;
    let reasons: Vec<&Value> = history
        .list("versions")
        .iter()
        .map(|version| &version["reason"])
        .collect();
    ensure!(
        reasons == [&Value::Null, &json!("we moved on the first of May"), &Value::Null],
        "{}",
        history.text
    );
    let alone = client
        .call("update_node", json!({"node_id": id, "reason": "no change"}))
        .await?;
    ensure!(
        alone.is_error && alone.structured["error_code"] == "validation_failed",
        "{}",
        alone.text
    );
    world.stop()
}
