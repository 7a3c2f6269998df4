//! Walls that only the whole can break: between projects, between what holds and what is closed, and between a missing
//! identity and somebody's data.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use waggle_tests::mcp::Client;
use waggle_tests::server::Dev;

async fn store(client: &Client, project: &str, content: &str) -> Result<String> {
    let memory = json!({ "label": content, "content": content, "node_type": "fact", "project": project });
    Ok(client.call("store_node", memory).await?.ok()?.str("id")?.to_owned())
}

fn ids(nodes: &[Value]) -> Vec<&str> {
    nodes.iter().filter_map(|node| node["id"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brief_stays_in_its_project_and_shows_what_holds() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dev = Dev::start(&folder.path().join("data"))?;
    let client = Client::of(&dev)?;
    let x = store(&client, "xx", "The cache of project X is called Heron").await?;
    let y = store(&client, "yy", "Secret of project Y: the vault is called Egret").await?;
    let link = json!({ "source_id": x, "target_id": y, "relationship": "contradicts" });
    client.call("store_edge", link).await?.ok()?;
    // Newer memories elsewhere must not push the project's own out of its brief.
    for number in 0..230 {
        store(
            &client,
            "noise",
            &format!("Item number {number} weighs {number} kilograms"),
        )
        .await?;
    }
    let brief = client.call("prime_context", json!({ "project": "xx" })).await?.ok()?;
    ensure!(ids(brief.list("nodes")) == [x.as_str()], "{}", brief.text);
    ensure!(!brief.text.contains("Egret"), "{}", brief.text);
    ensure!(brief.structured["total_nodes_in_graph"] == 1, "{}", brief.structured);

    let unknown = json!({ "query": "what is the vault called", "session_id": "nobody-was-here" });
    let found = client.call("query_graph", unknown).await?.ok()?;
    ensure!(
        found.list("nodes").is_empty(),
        "an unknown session widened the scope: {}",
        found.text
    );
    ensure!(found.str("empty_reason")? == "scope_unknown", "{}", found.structured);
    dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_side_of_a_conflict_is_in_no_default_answer() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dev = Dev::start(&folder.path().join("data"))?;
    let client = Client::of(&dev)?;
    let open = store(&client, "p", "The build server is called Falcon").await?;
    let closed = store(&client, "p", "The build server is called Osprey").await?;
    let question = json!({ "query": "what is the build server called", "project": "p" });
    let before = client.call("query_graph", question.clone()).await?.ok()?;
    ensure!(
        before.list("nodes").len() == 2,
        "both sides of an open conflict: {}",
        before.text
    );
    client
        .call(
            "update_node",
            json!({ "node_id": closed, "valid_to": "2030-01-01T00:00:00Z" }),
        )
        .await?
        .ok()?;
    let end = json!({ "node_id": closed, "valid_from": "2020-01-01", "valid_to": "2020-02-01" });
    client.call("update_node", end).await?.ok()?;
    let after = client.call("query_graph", question).await?.ok()?;
    ensure!(ids(after.list("nodes")) == [open.as_str()], "{}", after.text);

    let then = json!({ "query": "what is the build server called", "project": "p", "as_of": "2001-01-01" });
    let nothing = client.call("query_graph", then).await?.ok()?;
    ensure!(
        nothing.str("empty_reason")? == "before_first_record",
        "{}",
        nothing.structured
    );
    dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_start_removes_data_whatever_is_missing_beside_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let dev = Dev::start(&data)?;
    let client = Client::of(&dev)?;
    let id = store(&client, "p", "The deploy runs on Fridays").await?;
    dev.stop()?;

    // The mark of a completed start is gone: the data are used, not thrown away.
    std::fs::remove_file(data.join("identity/started"))?;
    let dev = Dev::start(&data)?;
    let client = Client::of(&dev)?;
    let found = client
        .call("get_related", json!({ "node_id": id, "max_depth": 0 }))
        .await?
        .ok()?;
    ensure!(ids(found.list("nodes")) == [id.as_str()], "{}", found.text);
    dev.stop()?;

    // The identity is gone: refuse, and leave everything where it is.
    let kept = folder.path().join("identity");
    std::fs::rename(data.join("identity"), &kept)?;
    ensure!(
        Dev::start(&data).is_err(),
        "a store without its identity was taken over"
    );
    let _ = std::fs::remove_dir_all(data.join("identity"));
    std::fs::rename(&kept, data.join("identity"))?;
    let dev = Dev::start(&data)?;
    let client = Client::of(&dev)?;
    client.call("get_related", json!({ "node_id": id })).await?.ok()?;
    dev.stop()?;

    // A folder of somebody else that happens to have this name.
    let foreign = folder.path().join("foreign");
    std::fs::create_dir_all(foreign.join("store/src"))?;
    std::fs::write(foreign.join("store/src/index.ts"), "export {}")?;
    ensure!(Dev::start(&foreign).is_err(), "a stranger's folder was taken over");
    ensure!(foreign.join("store/src/index.ts").exists(), "and its files are gone");
    Ok(())
}
