//! decompose_and_store, get_topics, dedup_candidates and memory_replay on a real server.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use waggle_tests::mcp::{Answer, Client};
use waggle_tests::server::Dev;

/// Calls while vectors are on their way; each takes a millisecond or more.
const LOOKS_MAX: usize = 3_000;

fn start() -> Result<(TempDir, Dev, Client)> {
    let folder = tempfile::tempdir().context("make a folder for the data")?;
    let dev = Dev::start(&folder.path().join("data"))?;
    let client = Client::of(&dev)?;
    Ok((folder, dev, client))
}

fn finish(dev: Dev) -> Result<()> {
    let errors = dev.errors()?;
    dev.stop()?;
    ensure!(errors.is_empty(), "the server logged errors:\n{}", errors.join("\n"));
    Ok(())
}

async fn store(client: &Client, label: &str, content: &str, scope: Value) -> Result<String> {
    let mut memory = json!({"label": label, "content": content, "node_type": "fact"});
    merge(&mut memory, scope);
    Ok(client.call("store_node", memory).await?.ok()?.str("id")?.to_owned())
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

fn ids(answer: &Answer, list: &str) -> Vec<String> {
    answer
        .list(list)
        .iter()
        .filter_map(|item| Some(item.get("id")?.as_str()?.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn f12_a_text_is_stored_in_pieces_of_its_scope_and_once_only() -> Result<()> {
    let (_folder, dev, client) = start()?;
    let text = json!({
        "content": "- We chose Postgres for the invoices\n- The API rate limit is 100 requests per minute\n- Alice leads the billing team",
        "context": "Billing kickoff notes",
        "project": "shop", "session_id": "kickoff", "agent_id": "scribe",
    });
    let first = client.call("decompose_and_store", text.clone()).await?.ok()?;
    let context = first.str("context_node_id")?.to_owned();
    let nodes = ids(&first, "nodes");
    ensure!(nodes.len() >= 4 && nodes.contains(&context), "{}", first.structured);
    ensure!(first.structured["created_count"] == nodes.len(), "{}", first.structured);
    let part_of = first
        .list("edges")
        .iter()
        .filter(|edge| edge["relationship"] == "part_of" && edge["target_id"] == *context);
    ensure!(
        part_of.count() == nodes.len() - 1,
        "every piece is part of the context: {}",
        first.structured
    );

    let again = client.call("decompose_and_store", text).await?.ok()?;
    ensure!(again.structured["created_count"] == 0, "{}", again.structured);
    ensure!(again.str("context_node_id")? == context, "{}", again.structured);

    for (scope, found) in [
        (json!({"project": "shop"}), true),
        (json!({"session_id": "kickoff"}), true),
        (json!({"agent_id": "scribe", "project": "shop"}), true),
        (json!({"project": "other"}), false),
        (json!({"project": "shop", "session_id": "later"}), false),
        (json!({"project": "shop", "agent_id": "somebody"}), false),
    ] {
        let topics = client.call("get_topics", scope.clone()).await?.ok()?;
        let total = topics.structured["total_nodes"].as_u64().unwrap_or_default();
        ensure!(
            (total == nodes.len() as u64) == found && (total == 0) != found,
            "{scope}: {}",
            topics.structured
        );
    }
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_too_many_pieces_is_refused_whole() -> Result<()> {
    let (_folder, dev, client) = start()?;
    let line = |number: usize| format!("- Service number {number} listens on port {}\n", 10_000 + number);
    let content: String = (0..501).map(line).collect();
    let refused = client
        .call("decompose_and_store", json!({"content": content, "project": "ports"}))
        .await?;
    ensure!(
        refused.is_error && refused.text.starts_with("limit_exceeded"),
        "{}",
        refused.text
    );
    let stats = client.call("get_stats", json!({})).await?.ok()?;
    ensure!(stats.structured["total_nodes"] == 0, "{}", stats.structured);
    let most: String = (0..500).map(line).collect();
    let stored = client
        .call(
            "decompose_and_store",
            json!({"content": most, "context": "Ports", "project": "ports"}),
        )
        .await?
        .ok()?;
    ensure!(
        stored.structured["created_count"].as_u64() >= Some(500),
        "{}",
        stored.structured
    );
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn f12_unlinked_memories_make_topics_that_are_named_by_their_words() -> Result<()> {
    let (_folder, dev, client) = start()?;
    let shop = || json!({"project": "shop"});
    for (label, content) in [
        ("Postgres storage", "Postgres stores the invoices of the shop"),
        ("Postgres backup", "The Postgres backup runs every night"),
        ("Green tea", "Alice likes green tea"),
        ("Tea kitchen", "Green tea is served in the kitchen"),
        ("Zebras", "Zebras sleep standing"),
    ] {
        store(&client, label, content, shop()).await?;
    }
    store(&client, "Elsewhere", "Postgres elsewhere", json!({"project": "other"})).await?;
    let one = client.call("get_topics", shop()).await?.ok()?;
    let two = client.call("get_topics", shop()).await?.ok()?;
    // A vector that came in between makes a new answer, with the same topics.
    ensure!(
        one.list("clusters") == two.list("clusters"),
        "the same state has the same topics: {}",
        two.structured
    );
    let labels: Vec<&str> = one
        .list("clusters")
        .iter()
        .filter_map(|cluster| cluster["label"].as_str())
        .collect();
    ensure!(labels.len() == 3, "{}", one.structured);
    ensure!(labels.iter().any(|label| label.contains("postgres")), "{labels:?}");
    ensure!(labels.iter().any(|label| label.contains("tea")), "{labels:?}");
    ensure!(labels.last() == Some(&"unlinked"), "{labels:?}");
    ensure!(one.structured["total_nodes"] == 5, "{}", one.structured);
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn f14_pairs_of_one_project_are_found_with_what_blocks_them() -> Result<()> {
    let (_folder, dev, client) = start()?;
    let mut expect = Vec::new();
    for (number, project) in [(100, "shop"), (200, "shop"), (300, "other")] {
        let content = format!("The public API rate limit is {number} requests per minute");
        expect.push(
            store(
                &client,
                "API rate limit",
                &content,
                json!({"project": project, "session_id": project}),
            )
            .await?,
        );
    }
    store(&client, "Tea", "Alice likes green tea", json!({"project": "shop"})).await?;
    let mut found = None;
    for _ in 0..LOOKS_MAX {
        let answer = client.call("dedup_candidates", json!({})).await?.ok()?;
        let waiting = answer.list("warnings").contains(&json!("vectors_pending"));
        if !waiting {
            found = Some(answer);
            break;
        }
    }
    let found = found.context("the vectors did not come")?;
    ensure!(found.structured["total_nodes_scanned"] == 4, "{}", found.structured);
    let pairs = found.list("pairs");
    ensure!(pairs.len() == 1, "one pair, of one project: {}", found.structured);
    let pair = &pairs[0];
    ensure!(pair["a"]["id"] == *expect[0] && pair["b"]["id"] == *expect[1], "{pair}");
    ensure!(pair["similarity"].as_f64() >= Some(0.85), "{pair}");
    let blocked = pair["blocked_by"].as_array().context("a list")?;
    ensure!(blocked.contains(&json!("quantity")), "{pair}");
    for scope in [json!({"project": "other"}), json!({"session_id": "nobody"})] {
        let none = client.call("dedup_candidates", scope.clone()).await?.ok()?;
        ensure!(none.list("pairs").is_empty(), "{scope}: {}", none.structured);
    }
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_gives_the_turns_under_a_memory_and_those_it_reflects_on() -> Result<()> {
    let (_folder, dev, client) = start()?;
    let said = "Hello. We chose Postgres for the invoices. Bye.";
    let turn = json!({"user_message": said, "assistant_response": "", "project": "shop", "session_id": "s1"});
    let observed = client.call("observe_conversation", turn).await?.ok()?;
    let memory = ids(&observed, "stored_nodes").first().cloned().context("a memory")?;
    let turn_id = observed.structured["transcript_ids"][0].clone();

    let own = client.call("memory_replay", json!({"memory_id": memory})).await?.ok()?;
    let entry = own.list("entries").first().cloned().context("an entry")?;
    ensure!(
        entry["transcript_id"] == turn_id && entry["session"] == "s1" && entry["role"] == "user",
        "{entry}"
    );
    let (start, end) = (
        entry["span_start"].as_u64().context("start")?,
        entry["span_end"].as_u64().context("end")?,
    );
    let span = said.get(start as usize..end as usize).context("a span of the turn")?;
    ensure!(
        entry["content"] == span && span.contains("Postgres") && span.len() < said.len(),
        "{entry}"
    );
    let full = client
        .call("memory_replay", json!({"memory_id": memory, "full": true}))
        .await?
        .ok()?;
    ensure!(full.list("entries")[0]["content"] == said, "{}", full.structured);

    // A chain of reflections over it, with a cycle at its end.
    let mut chain = vec![memory.clone()];
    for number in 1..=4 {
        let content = format!("Reflection number {number} on the choice of a store");
        let above = store(
            &client,
            &format!("Reflection {number}"),
            &content,
            json!({"project": "shop"}),
        )
        .await?;
        let below = chain.last().cloned().context("the memory below")?;
        let link = json!({"source_id": above, "target_id": below, "relationship": "reflects_on"});
        client.call("store_edge", link).await?.ok()?;
        chain.push(above);
    }
    let back = json!({"source_id": memory, "target_id": chain[3], "relationship": "reflects_on"});
    client.call("store_edge", back).await?.ok()?;
    for (at, depth, count, distance) in [
        (1, json!(0), 0, None),
        (1, json!(1), 1, Some(1)),
        (3, Value::Null, 1, Some(3)),
        (3, json!(2), 0, None),
        (4, json!(99), 0, None),
    ] {
        let replay = client
            .call("memory_replay", json!({"memory_id": chain[at], "depth": depth}))
            .await?
            .ok()?;
        ensure!(
            replay.structured["count"] == count && replay.structured["depth_cap"] == 3,
            "{at} {depth}: {}",
            replay.structured
        );
        if let Some(distance) = distance {
            let entry = &replay.list("entries")[0];
            ensure!(
                entry["distance"] == distance && entry["source_memory_id"] == *memory,
                "{entry}"
            );
        }
    }
    let missing = json!({"memory_id": "0197c1f2-7a64-7000-8000-2f1d3c5e7a90"});
    let nothing = client.call("memory_replay", missing).await?.ok()?;
    ensure!(
        nothing.structured["empty_reason"] == "not_found",
        "{}",
        nothing.structured
    );

    // The same over REST.
    let rest = client.at("/api/memory_replay")?;
    let body = json!({"memory_id": memory}).to_string();
    let (status, _, text) = rest.send(reqwest::Method::POST, &[], &body).await?;
    ensure!(status == 200, "{status}: {text}");
    let answer: Value = serde_json::from_str(&text)?;
    ensure!(answer["entries"] == own.structured["entries"], "{answer}");
    finish(dev)
}
