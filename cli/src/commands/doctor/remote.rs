//! What a gateway answers.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use waggle_config::runtime::clock::{Clock as _, System};
use waggle_gateway::ToolSet;

use super::{Check, Status};
use crate::client::{Client, ClientArgs, is_loopback};

const PROJECT: &str = "waggle-doctor";
/// The header counts seconds, and the call takes time.
const CLOCK_SECONDS_MAX: i64 = 5;
/// Beyond it relative times ("today") mean something else on the two sides.
const CLOCK_SECONDS_FAIL: i64 = 300;

pub(super) fn checks(client: &ClientArgs, write: bool) -> Vec<Check> {
    let client = match client.public() {
        Ok(client) => client,
        Err(error) => return vec![Check::fail("reachable", &error, "correct the address or the key")],
    };
    let date = match client.probe("/readyz") {
        Err(error) => return vec![Check::fail("reachable", &error, "is the server running?")],
        Ok((status, date)) => {
            let reachable = match status {
                200 => Check::ok("reachable", format!("{} is ready", client.base())),
                404 => Check::warn(
                    "reachable",
                    format!("{} answers, but has no /readyz", client.base()),
                    "is it the address of a Waggle gateway?",
                ),
                other => Check::warn(
                    "reachable",
                    format!("{} answers {other}: it is not ready", client.base()),
                    "wait until it is started; `waggle status` shows why",
                ),
            };
            (reachable, date)
        }
    };
    let (reachable, date) = date;
    let mut checks = vec![reachable, tls(client.base())];
    checks.extend(date.map(|date| clock(&date)));
    let initialized = initialize(&client);
    let works = initialized.status == Status::Ok;
    checks.push(initialized);
    if !works {
        return checks;
    }
    checks.extend(key_and_version(&client));
    checks.push(tools(&client));
    if write {
        checks.push(match round_trip(&client) {
            Ok(detail) => Check::ok("write", detail),
            Err(error) => Check::fail(
                "write",
                &error,
                "does the key have graph:write? `waggle status` shows the nodes",
            ),
        });
    }
    checks
}

fn tls(base: &str) -> Check {
    if base.starts_with("https://") {
        Check::ok("tls", "the certificate is good for the name")
    } else if is_loopback(base) {
        Check::ok("tls", "not needed on this machine")
    } else {
        Check::warn(
            "tls",
            "the key travels unencrypted",
            "put TLS in front of the gateway and use https://",
        )
    }
}

fn clock(date: &str) -> Check {
    let Ok(server) = jiff::fmt::rfc2822::parse(date) else {
        return Check::warn(
            "clock",
            format!("the server says it is '{}'", date.escape_debug()),
            "is it a proxy?",
        );
    };
    let here = System::new().wall().0 / 1000;
    let apart = (server.timestamp().as_second() - here).abs();
    match apart {
        0..=CLOCK_SECONDS_MAX => Check::ok("clock", format!("{apart} s apart")),
        _ => Check {
            status: if apart > CLOCK_SECONDS_FAIL {
                Status::Fail
            } else {
                Status::Warn
            },
            ..Check::warn(
                "clock",
                format!("the server's clock is {apart} s apart"),
                "set both clocks by NTP",
            )
        },
    }
}

fn initialize(client: &Client) -> Check {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "waggle doctor", "version": env!("CARGO_PKG_VERSION")},
    });
    match client.rpc("/mcp", "initialize", &params) {
        Ok(answer) => Check::ok(
            "protocol",
            format!("MCP {}", answer["protocolVersion"].as_str().unwrap_or("?")),
        ),
        Err(error) => Check::fail("protocol", &error, "is it the address of a Waggle gateway?"),
    }
}

fn key_and_version(client: &Client) -> Vec<Check> {
    let capabilities = match client.tool("memory_capabilities", &json!({})) {
        Ok((capabilities, _)) => capabilities,
        Err(error) => return vec![Check::fail("key", &error, "make a key with `waggle key create`")],
    };
    let scopes: Vec<&str> = capabilities["scopes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let tenant = capabilities["tenant_id"].as_str().unwrap_or("?");
    let detail = format!("tenant {tenant}, {}", scopes.join(", "));
    let key = if scopes.contains(&"graph:read") && scopes.contains(&"graph:write") {
        Check::ok("key", detail)
    } else {
        Check::warn("key", detail, "agents need graph:read and graph:write")
    };
    let (ours, theirs) = (
        env!("CARGO_PKG_VERSION"),
        capabilities["server"]["version"].as_str().unwrap_or("?"),
    );
    let version = if ours == theirs {
        Check::ok("version", ours)
    } else {
        Check::warn(
            "version",
            format!("here {ours}, the server {theirs}"),
            "use the same release on both sides",
        )
    };
    vec![key, version]
}

fn tools(client: &Client) -> Check {
    let counted: Result<Vec<String>> = ToolSet::ALL
        .into_iter()
        .map(|set| {
            let list = client.rpc(set.path(), "tools/list", &json!({}))?;
            let tools = list["tools"].as_array().context("the list of tools is no list")?;
            let tokens = list["tools"].to_string().len().div_ceil(4);
            Ok(format!("{} {} tools, {tokens} tokens", set.path(), tools.len()))
        })
        .collect();
    match counted {
        Ok(sets) => Check::ok("tools", sets.join("; ")),
        Err(error) => Check::fail("tools", &error, "is it the address of a Waggle gateway?"),
    }
}

/// Stores a memory, finds it, deletes it, and does not find it any more.
fn round_trip(client: &Client) -> Result<String> {
    let mark = format!("doctor check {}", uuid::Uuid::now_v7());
    let (stored, _) = client.tool(
        "store_node",
        &json!({"label": mark, "content": format!("This is {mark}."), "node_type": "note", "project": PROJECT}),
    )?;
    let id = stored["id"].as_str().context("the stored memory has no id")?;
    let find = || -> Result<bool> {
        let query = json!({"query": mark, "project": PROJECT, "max_nodes": 5, "retrieval_mode": "graph"});
        let (found, _) = client.tool("query_graph", &query)?;
        Ok(found["nodes"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|node| node["id"] == id))
    };
    let found = find();
    let (deleted, _) = client.tool("delete_node", &json!({"node_id": id}))?;
    anyhow::ensure!(found?, "the memory was stored and was not found");
    anyhow::ensure!(deleted["deleted"] == true, "the memory was not deleted");
    anyhow::ensure!(!find()?, "the memory was deleted and is still found");
    Ok("stored, found and deleted a memory".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared() {
        assert_eq!(clock("Thu, 01 Jan 1970 00:00:00 GMT").status, Status::Fail);
        assert_eq!(clock("yesterday").status, Status::Warn);
        let now = jiff::Timestamp::from_second(System::new().wall().0 / 1000).expect("a time");
        let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        assert_eq!(clock(&date).status, Status::Ok, "{date}");
    }

    #[test]
    fn only_this_machine_needs_no_tls() {
        assert_eq!(tls("http://127.0.0.1:7700").status, Status::Ok);
        assert_eq!(tls("https://h").status, Status::Ok);
        assert_eq!(tls("http://h").status, Status::Warn);
    }
}
