//! Tenants that share every name, so that only the tenant keeps them apart: whatever one reads, by whatever tool or path,
//! holds nothing of another. And one tenant under many clients, none of whose writes is lost.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use waggle_tests::mcp::Client;
use waggle_tests::world::World;

/// WAGGLE_TENANTS=200 takes minutes.
const TENANTS_DEFAULT: usize = 6;
/// Letters before and after the number of a marker.
const MARK: (&str, &str) = ("zq", "qz");

fn tenants_wanted() -> Result<usize> {
    match std::env::var("WAGGLE_TENANTS") {
        Ok(number) => number.parse().context("WAGGLE_TENANTS is a number"),
        Err(_) => Ok(TENANTS_DEFAULT),
    }
}

/// A word that stands in everything that a tenant has, and nowhere else.
fn marker(number: usize) -> String {
    format!("{}{number:05}{}", MARK.0, MARK.1)
}

/// Every marker in a text.
fn markers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(MARK.0) {
        let word: String = text[at..].chars().take(MARK.0.len() + 5 + MARK.1.len()).collect();
        let digits = word.strip_prefix(MARK.0).and_then(|rest| rest.strip_suffix(MARK.1));
        if digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit())) {
            found.push(word);
        }
    }
    found
}

/// A tenant with something of every sort, and the ids by which others will ask for it.
struct Tenant {
    key: String,
    client: Client,
    marker: String,
    node: String,
    /// Said by somebody, so that it can be replayed.
    said: String,
    edge: String,
}

async fn fill(world: &World, number: usize) -> Result<Tenant> {
    let key = world
        .new_tenant(&format!("tenant-{number}"), &["graph:read", "graph:write"])
        .await?;
    let client = world.client(&key)?;
    let marker = marker(number);
    let scope = json!({"project": "shop", "agent_id": "claude", "session_id": "s1"});
    let with = |mut fields: Value| {
        if let (Some(fields), Value::Object(scope)) = (fields.as_object_mut(), scope.clone()) {
            fields.extend(scope);
        }
        fields
    };
    let turn = with(json!({
        "user_message": format!("We decided to use PostgreSQL for the {marker} ledger."),
        "assistant_response": format!("Noted, the {marker} ledger."),
    }));
    let observed = client.call("observe_conversation", turn).await?.ok()?;
    let said = observed
        .list("stored_nodes")
        .first()
        .and_then(|node| node["id"].as_str());
    let said = said.context("find the memory of the turn")?.to_owned();
    let mut nodes = Vec::new();
    for (label, kind) in [("Cache", "decision"), ("Cache again", "decision"), ("Gone", "note")] {
        let memory = with(json!({
            "label": format!("{label} {marker}"), "content": format!("{label} of {marker} is kept in Redis {}", nodes.len()),
            "node_type": kind, "tags": [marker], "source_prompt": format!("asked by {marker}"),
        }));
        let stored = client.call("store_node", memory).await?.ok()?;
        nodes.push(stored.str("id")?.to_owned());
    }
    let [node, other, gone] = nodes.as_slice() else {
        anyhow::bail!("three memories")
    };
    let change = json!({"node_id": node, "content": format!("The cache of {marker} moved to Valkey")});
    client.call("update_node", change).await?.ok()?;
    let link = json!({"source_id": node, "target_id": other, "relationship": "contradicts"});
    let edge = client.call("store_edge", link).await?.ok()?.str("id")?.to_owned();
    client.call("delete_node", json!({"node_id": gone})).await?.ok()?;
    let transcript = with(json!({"messages": [
        {"role": "user", "content": format!("Alice owns the {marker} service."), "message_id": "m1"},
        {"role": "assistant", "content": format!("So Alice owns {marker}."), "message_id": "m2"},
    ]}));
    let handed = world.hand_over(&key, &transcript).await?;
    ensure!(handed["transcript_records_written"] == 2, "{handed}");
    Ok(Tenant {
        key,
        marker,
        node: node.clone(),
        said,
        edge,
        client,
    })
}

/// Calls of every tool that reads. The question is whose things are asked for: the caller's own, or another tenant's.
fn reads(of: &Tenant) -> Vec<(&'static str, Value)> {
    let budget = 20_000;
    let query = format!("what is decided about {}", of.marker);
    let about = format!("about {}", of.marker);
    vec![
        ("dedup_candidates", json!({})),
        ("export_context_bundle", json!({"token_budget": budget})),
        (
            "export_context_bundle",
            json!({"mode": "query", "query": query, "format": "both", "token_budget": budget}),
        ),
        (
            "export_context_bundle",
            json!({"mode": "graph", "token_budget": budget}),
        ),
        ("export_graph_backup", json!({"token_budget": budget})),
        (
            "export_graph_backup",
            json!({"format": "graphml", "token_budget": budget}),
        ),
        ("export_graph_html", json!({})),
        ("export_markdown_vault", json!({})),
        ("get_node_history", json!({"node_id": of.node, "token_budget": budget})),
        (
            "get_related",
            json!({"node_id": of.node, "include_invalidated": true, "token_budget": budget}),
        ),
        ("get_stats", json!({})),
        ("get_stats", json!({"project": "shop"})),
        ("get_topics", json!({"token_budget": budget})),
        ("graph_diff", json!({"token_budget": budget})),
        (
            "list_conflicts",
            json!({"include_resolved": true, "token_budget": budget}),
        ),
        ("list_context_scopes", json!({})),
        ("memory_capabilities", json!({})),
        (
            "memory_replay",
            json!({"memory_id": of.said, "full": true, "verbose": true}),
        ),
        (
            "prime_context",
            json!({"include_evidence": true, "token_budget": budget}),
        ),
        (
            "prime_context",
            json!({"project": "shop", "query": query, "include_evidence": true}),
        ),
        ("query_graph", json!({"query": query, "token_budget": budget})),
        (
            "query_graph",
            json!({"query": query, "retrieval_mode": "replay", "token_budget": budget}),
        ),
        (
            "query_graph",
            json!({
                "query": about, "retrieval_mode": "graph", "include_invalidated": true, "expand_depth": 2,
                "explain": true, "token_budget": budget,
            }),
        ),
        (
            "query_graph",
            json!({"query": "", "tags": [of.marker], "token_budget": budget}),
        ),
        (
            "timeline",
            json!({"node_id": of.node, "limit": 200, "token_budget": budget}),
        ),
        (
            "timeline",
            json!({"query": about, "limit": 200, "token_budget": budget}),
        ),
    ]
}

/// Paths of REST that read.
const PATHS: [&str; 10] = [
    "/api/graph",
    "/api/graph/nodes?include_invalidated=true",
    "/api/graph/edges?include_invalidated=true",
    "/api/graph?limit=1",
    "/api/graph/export",
    "/api/graph/export?format=graphml",
    "/api/graph/export?format=html",
    "/api/graph/export?format=bundle",
    "/api/graph/export?project=shop",
    "/api/graph/export?session_id=s1",
];

/// Tools whose answers are counts, names of scopes, words about the server, or a link to what [`PATHS`] reads.
const WITHOUT_CONTENT: [&str; 6] = [
    "export_markdown_vault",
    "export_graph_html",
    "get_stats",
    "list_context_scopes",
    "memory_capabilities",
    "dedup_candidates",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_holds_anything_of_another_tenant() -> Result<()> {
    let wanted = tenants_wanted()?;
    ensure!(wanted > 1, "one tenant alone has nobody to leak to");
    let world = World::start()?;
    let mut tenants = Vec::new();
    for number in 0..wanted {
        tenants.push(fill(&world, number).await?);
    }
    let all = tenants.first().context("a tenant")?;
    every_reading_tool_is_called(all).await?;
    // How often each tool showed its own tenant's marker: where it never does, the test could not see a leak.
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, tenant) in tenants.iter().enumerate() {
        let others = [(number + 1) % wanted, (number + wanted / 2) % wanted];
        for asked in [number].into_iter().chain(others) {
            let of = tenants.get(asked).context("a tenant")?;
            for (tool, arguments) in reads(of) {
                let answer = tenant.client.call(tool, arguments.clone()).await?;
                let text = format!("{}\n{}", answer.text, answer.structured);
                check(tenant, &text, &arguments).with_context(|| format!("{tool} {arguments}"))?;
                if asked == number {
                    ensure!(!answer.is_error, "{tool} {arguments}: {}", answer.text);
                    *seen.entry(tool).or_default() += usize::from(text.contains(&tenant.marker));
                } else if arguments.get("memory_id").is_some() {
                    ensure!(answer.structured["empty_reason"] == "not_found", "{tool}: {text}");
                } else if arguments.get("node_id").is_some() {
                    ensure!(answer.is_error, "{tool} knows the id of another tenant: {text}");
                    ensure!(answer.structured["error_code"] == "not_found", "{tool}: {text}");
                }
            }
            writes_reach_nothing(tenant, of, asked == number).await?;
        }
        for path in PATHS {
            let (status, text) = world.get(&tenant.key, path).await?;
            ensure!(status.is_success(), "{path}: {status} {text}");
            check(tenant, &text, &Value::Null).context(path)?;
            ensure!(
                path.contains("/edges") || text.contains(&tenant.marker),
                "{path} shows nothing: {text}"
            );
        }
        let vault = world.export_bytes(&tenant.key, "format=vault").await?;
        let notes = unpacked(&vault)?;
        check(tenant, &notes, &Value::Null).context("the vault")?;
        ensure!(notes.contains(&tenant.marker), "the vault shows nothing: {notes}");
    }
    for (tool, count) in &seen {
        ensure!(
            *count > 0 || WITHOUT_CONTENT.contains(tool),
            "no answer of {tool} holds its own marker: a leak could not be seen"
        );
    }
    links_and_cursors_are_of_one_tenant(&world, &tenants).await?;
    world.stop()
}

/// Names and texts of a ZIP.
fn unpacked(bytes: &[u8]) -> Result<String> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes))?;
    let mut text = String::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index)?;
        text.push_str(&file.name()?);
        std::io::Read::read_to_string(&mut file, &mut text)?;
    }
    Ok(text)
}

/// Only the caller's own marker. A question of several words may be repeated in its answer, and counts for nothing.
fn check(tenant: &Tenant, text: &str, arguments: &Value) -> Result<()> {
    let mut text = text.to_owned();
    for asked in arguments.as_object().into_iter().flat_map(|fields| fields.values()) {
        if let Some(asked) = asked.as_str().filter(|asked| asked.contains(' ')) {
            text = text.replace(asked, "");
        }
    }
    for found in markers(&text) {
        ensure!(
            found == tenant.marker,
            "an answer to {} holds {found}: {text}",
            tenant.marker
        );
    }
    Ok(())
}

async fn every_reading_tool_is_called(tenant: &Tenant) -> Result<()> {
    let listed = tenant.client.rpc("tools/list", json!({})).await?;
    let called: Vec<&str> = reads(tenant).iter().map(|(tool, _)| *tool).collect();
    let tools = listed["result"]["tools"].as_array().context("read the list of tools")?;
    ensure!(tools.len() >= 28, "{listed}");
    for tool in tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == true) {
        let name = tool["name"].as_str().context("a name")?;
        ensure!(called.contains(&name), "add {name} to the calls of this test");
    }
    Ok(())
}

/// Nothing of another tenant can be changed, linked, merged or erased by its id.
async fn writes_reach_nothing(tenant: &Tenant, of: &Tenant, own: bool) -> Result<()> {
    if own {
        return Ok(());
    }
    for (tool, arguments) in [
        ("update_node", json!({"node_id": of.node, "content": "taken over"})),
        ("delete_node", json!({"node_id": of.node})),
        (
            "store_edge",
            json!({"source_id": tenant.node, "target_id": of.node, "relationship": "relates_to"}),
        ),
        ("resolve_conflict", json!({"edge_id": of.edge, "winner": of.node})),
        (
            "canonicalize_node",
            json!({"canonical_id": tenant.node, "node_ids": [of.node]}),
        ),
    ] {
        let answer = tenant.client.call(tool, arguments).await?;
        ensure!(
            answer.is_error || answer.structured["deleted"] == false,
            "{tool} reached another tenant: {}",
            answer.text
        );
    }
    Ok(())
}

async fn links_and_cursors_are_of_one_tenant(world: &World, tenants: &[Tenant]) -> Result<()> {
    let [first, second, ..] = tenants else {
        anyhow::bail!("two tenants")
    };
    let (_, page) = world.get(&first.key, "/api/graph?limit=1").await?;
    let page: Value = serde_json::from_str(&page)?;
    let cursor = page["next_cursor"].as_str().context("find a cursor")?;
    let (status, text) = world.get(&second.key, &format!("/api/graph?cursor={cursor}")).await?;
    ensure!(
        status.as_u16() == 400 && text.contains("invalid_cursor"),
        "{status} {text}"
    );
    let link = first
        .client
        .call("export_graph_backup", json!({"token_budget": 200}))
        .await?
        .ok()?;
    let uri = link.structured["uri"].as_str().or(link.structured["url"].as_str());
    if let Some((_, path)) = uri.and_then(|uri| uri.split_once("/api/")) {
        let (status, text) = world.get(&second.key, &format!("/api/{path}")).await?;
        ensure!(status.as_u16() == 404, "{status} {text}");
    }
    Ok(())
}

const CLIENTS: usize = 20;
const CHANGES_OF_EACH: usize = 3;

/// Each client adds its words to one memory, reading it first and writing only over what it read; and stores memories of
/// its own meanwhile.
async fn change(client: Client, node: String, number: usize) -> Result<()> {
    for step in 0..CHANGES_OF_EACH {
        let own = json!({
            "label": format!("Note {number}-{step}"), "content": format!("Client {number} took step {step}"),
            "node_type": "note", "project": "shop",
        });
        let stored = client.call("store_node", own).await?.ok()?;
        let read = client
            .call("get_related", json!({"node_id": stored.str("id")?, "max_depth": 0}))
            .await?
            .ok()?;
        ensure!(
            read.text.contains(&format!("Client {number} took step {step}")),
            "{}",
            read.text
        );
        let mut left = 2_000;
        loop {
            let read = client
                .call(
                    "get_node_history",
                    json!({"node_id": node, "max_depth": 0, "token_budget": 20_000}),
                )
                .await?
                .ok()?;
            let node = &read.structured["node"];
            let (version, content) = (node["version"].as_u64(), node["content"].as_str());
            let (version, content) = version.zip(content).context("read the memory")?;
            let arguments = json!({
                "node_id": node["id"], "content": format!("{content} w{number}x{step}"), "expected_version": version,
            });
            let answer = client.call("update_node", arguments).await?;
            if !answer.is_error {
                break;
            }
            ensure!(answer.structured["error_code"] == "version_conflict", "{}", answer.text);
            left -= 1;
            ensure!(left > 0, "client {number} never gets its turn");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_clients_of_one_tenant_lose_no_write() -> Result<()> {
    let world = World::start()?;
    let key = world.new_tenant("busy", &["graph:read", "graph:write"]).await?;
    let client = world.client(&key)?;
    let memory = json!({"label": "Shared", "content": "words:", "node_type": "note", "project": "shop"});
    let node = client.call("store_node", memory).await?.ok()?.str("id")?.to_owned();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        tasks.spawn(change(world.client(&key)?, node.clone(), number));
    }
    while let Some(done) = tasks.join_next().await {
        done.context("a client panicked")??;
    }
    let (_, file) = world.export(&key, "").await?;
    let backup = waggle_tests::world::records(&file)?;
    let nodes = backup["nodes"].as_array().context("find the nodes")?;
    ensure!(nodes.len() == 1 + CLIENTS * CHANGES_OF_EACH, "{} nodes", nodes.len());
    let shared = nodes
        .iter()
        .find(|found| found["id"] == node.as_str())
        .context("find the memory")?;
    let content = shared["content"].as_str().context("its content")?;
    let words: Vec<&str> = content.split(' ').skip(1).collect();
    for number in 0..CLIENTS {
        for step in 0..CHANGES_OF_EACH {
            let word = format!("w{number}x{step}");
            let count = words.iter().filter(|found| **found == word).count();
            ensure!(count == 1, "{word} stands {count} times in {content}");
        }
    }
    ensure!(
        shared["version"] == 1 + CLIENTS * CHANGES_OF_EACH,
        "{}",
        shared["version"]
    );
    world.stop()
}
