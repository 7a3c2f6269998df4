//! The real binary over its URL: few tests, each about something that only the whole can get wrong.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use waggle_tests::mcp::Client;
use waggle_tests::server::Dev;
use waggle_tests::texts;

fn start() -> Result<(TempDir, Dev, Client)> {
    let folder = tempfile::tempdir().context("make a folder for the data")?;
    let dev = Dev::start(&folder.path().join("data"))?;
    let client = Client::of(&dev)?;
    Ok((folder, dev, client))
}

/// Ends the server and looks at its log: an ERROR line means that a person must look, and here nobody should have to.
fn finish(dev: Dev) -> Result<()> {
    let errors = dev.errors()?;
    dev.stop()?;
    ensure!(errors.is_empty(), "the server logged errors:\n{}", errors.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_is_recalled_after_a_restart() -> Result<()> {
    let (folder, dev, client) = start()?;
    let (label, content) = texts::fact(1);
    let memory = json!({ "label": label, "content": content, "node_type": "fact", "project": "restart" });
    let stored = client.call("store_node", memory).await?.ok()?;
    let id = stored.str("id")?.to_owned();
    ensure!(
        stored.text.contains(&id),
        "the id is in the structured answer only: {}",
        stored.text
    );
    finish(dev)?;

    let dev = Dev::start(&folder.path().join("data"))?;
    let client = Client::of(&dev)?;
    let question = json!({ "query": texts::question(1), "project": "restart" });
    let found = client.call("query_graph", question).await?.ok()?;
    let ids: Vec<&str> = found
        .list("nodes")
        .iter()
        .filter_map(|node| node.get("id")?.as_str())
        .collect();
    ensure!(ids.contains(&id.as_str()), "{id} is not among {ids:?}");
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_id_gives_the_first_outcome() -> Result<()> {
    let (_folder, dev, client) = start()?;
    let (label, content) = texts::fact(2);
    let memory = json!({ "label": label, "content": content, "node_type": "fact", "project": "retry" });
    let first = client.call_once("store_node", memory.clone(), "retry-1").await?.ok()?;
    let second = client.call_once("store_node", memory.clone(), "retry-1").await?.ok()?;
    ensure!(first.str("id")? == second.str("id")?, "a retry made another memory");
    ensure!(
        first.structured.get("created") == second.structured.get("created"),
        "a retry gave another outcome"
    );

    let other = json!({ "label": "other", "content": texts::fact(3).1, "node_type": "fact", "project": "retry" });
    let clash = client.call_once("store_node", other, "retry-1").await?;
    ensure!(
        clash.is_error && clash.text.starts_with("request_id_reused"),
        "not refused: {}",
        clash.text
    );
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_a_good_key_gets_401_whatever_it_asks() -> Result<()> {
    let (_folder, dev, _) = start()?;
    for key in ["", "wg_wrong", "not-even-a-key"] {
        let client = Client::new(&dev.mcp_url, key)?;
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
            let (status, headers, _) = client.send(method.clone(), &[], body).await?;
            ensure!(
                status == StatusCode::UNAUTHORIZED,
                "{method} with the key {key:?}: {status}"
            );
            let challenge = headers
                .get("www-authenticate")
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default();
            ensure!(
                challenge.starts_with("Bearer"),
                "{method} with the key {key:?}: challenge {challenge:?}"
            );
        }
    }
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_no_post_of_one_message_is_told_so() -> Result<()> {
    let (_folder, dev, client) = start()?;
    for method in [Method::GET, Method::DELETE] {
        let (status, headers, _) = client.send(method.clone(), &[], "").await?;
        ensure!(status == StatusCode::METHOD_NOT_ALLOWED, "{method}: {status}");
        ensure!(
            headers.get("allow").is_some_and(|value| value == "POST"),
            "{method}: {headers:?}"
        );
    }
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (body, code) in [("{\"jsonrpc\":", -32700), (&format!("[{one},{one}]"), -32600)] {
        let (status, _, text) = client.send(Method::POST, &[], body).await?;
        ensure!(status == StatusCode::BAD_REQUEST, "{body}: {status}: {text}");
        let answer: Value = serde_json::from_str(&text).with_context(|| format!("{body}: {text}"))?;
        ensure!(answer["error"]["code"] == code, "{body}: {answer}");
    }
    let (status, _, text) = client
        .at("/.well-known/oauth-protected-resource")?
        .send(Method::GET, &[], "")
        .await?;
    ensure!(
        status == StatusCode::NOT_FOUND,
        "a discovery document without an authorization server: {status}: {text}"
    );
    serde_json::from_str::<Value>(&text).with_context(|| format!("the 404 has no JSON body: {text:?}"))?;
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_a_call_is_named() -> Result<()> {
    let (_folder, dev, client) = start()?;
    let answer = client
        .rpc("tools/call", json!({ "name": "no_such_tool", "arguments": {} }))
        .await?;
    ensure!(answer["error"]["code"] == -32602, "unknown tool: {answer}");

    let with_typo = json!({ "user_text": "hello", "user_message": "hello", "assistant_response": "" });
    let answer = client.call("observe_conversation", with_typo).await?;
    ensure!(
        answer.is_error && answer.text.starts_with("validation_failed"),
        "unknown field: {}",
        answer.text
    );
    ensure!(
        answer.text.contains("user_text") && answer.text.contains("user_message"),
        "unhelpful: {}",
        answer.text
    );

    let absent = "018f0000-0000-7000-8000-000000000000";
    let answer = client.call("get_related", json!({ "node_id": absent })).await?;
    ensure!(
        answer.is_error && answer.text.starts_with("not_found"),
        "absent id: {}",
        answer.text
    );
    ensure!(
        answer.structured["error_code"] == "not_found",
        "absent id: {}",
        answer.structured
    );
    finish(dev)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_list_is_flat_sorted_stable_and_small() -> Result<()> {
    let (_folder, dev, client) = start()?;
    // Tokens as the budgets of every answer count them: a quarter of the bytes, rounded up.
    for (path, tools_max, tokens_max) in [
        ("/mcp", 128, 4_500),
        ("/mcp/core", 8, 1_500),
        ("/mcp/readonly", 128, 4_500),
    ] {
        let client = client.at(path)?;
        let answer = client.rpc("tools/list", json!({})).await?;
        let tools = answer["result"]["tools"]
            .as_array()
            .with_context(|| format!("{path}: {answer}"))?;
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        ensure!(names.is_sorted(), "{path}: not sorted: {names:?}");
        ensure!(
            names.iter().collect::<BTreeSet<_>>().len() == tools.len(),
            "{path}: a name twice: {names:?}"
        );
        ensure!((1..=tools_max).contains(&tools.len()), "{path}: {} tools", tools.len());
        let tokens = answer["result"]["tools"].to_string().len().div_ceil(4);
        ensure!(tokens <= tokens_max, "{path}: {tokens} tokens, at most {tokens_max}");
        for tool in tools {
            check_tool(tool).with_context(|| format!("{path}: {tool}"))?;
        }
        let again = client.rpc("tools/list", json!({})).await?;
        ensure!(
            again["result"] == answer["result"],
            "{path}: another list on the second call"
        );
    }
    finish(dev)
}

/// What the least capable client can still read.
fn check_tool(tool: &Value) -> Result<()> {
    let name = tool["name"].as_str().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    ensure!((1..=40).contains(&name.len()) && name.bytes().all(plain), "the name");
    ensure!(
        tool["description"].as_str().is_some_and(|text| !text.is_empty()),
        "no description"
    );
    ensure!(tool.get("outputSchema").is_none(), "an output schema");
    let schema = &tool["inputSchema"];
    ensure!(
        schema["type"] == "object" && schema["additionalProperties"] == false,
        "the top of the schema"
    );
    let text = schema.to_string();
    for word in ["$ref", "$defs", "anyOf", "oneOf", "allOf", "\"format\":", "\"null\""] {
        // A property may be called format; a schema keyword has a text after it, a property an object.
        let keyword = if word == "\"format\":" { "\"format\":\"" } else { word };
        ensure!(!text.contains(keyword), "the schema has {keyword}");
    }
    for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
        ensure!(tool["annotations"][hint].is_boolean(), "no {hint}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_given_a_session() -> Result<()> {
    let (_folder, dev, client) = start()?;
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2031-01-01", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    let bogus = [("mcp-session-id", "made-up"), ("last-event-id", "7")];
    for headers in [&[][..], &bogus] {
        let (status, answered, text) = client.send(Method::POST, headers, &hello.to_string()).await?;
        ensure!(status == StatusCode::OK, "{status}: {text}");
        ensure!(!answered.contains_key("mcp-session-id"), "a session id");
        let answer: Value = serde_json::from_str(&text)?;
        ensure!(answer["result"]["protocolVersion"] == "2025-11-25", "{answer}");
        ensure!(answer["result"]["serverInfo"]["name"].is_string(), "{answer}");
    }
    finish(dev)
}
