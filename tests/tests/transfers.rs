//! A whole graph out of the real server, over its URL, and into another tenant.

use anyhow::{Context, Result, ensure};
use reqwest::StatusCode;
use serde_json::json;
use waggle_tests::mcp::Client;
use waggle_tests::world::{World, records};

/// `waggle` with these arguments, as somebody would type it.
fn waggle(world: &World, key: &str, arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let output = std::process::Command::new(waggle_tests::workspace::binary()?)
        .args(arguments)
        .args(["--url", &world.base])
        .env("WAGGLE_KEY", key)
        .output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8(said)?))
}

async fn fill(client: &Client) -> Result<()> {
    let turns = [
        (
            "We decided to use PostgreSQL for the ledger because it has strong transactions.",
            "Noted: PostgreSQL.",
        ),
        (
            "The ledger depends on the payments service. Zoë prefers short branches.",
            "I will remember that.",
        ),
        (
            "We moved the ledger from PostgreSQL to CockroachDB.",
            "CockroachDB it is.",
        ),
    ];
    for (user, assistant) in turns {
        let turn = json!({
            "user_message": user, "assistant_response": assistant,
            "project": "ledger", "agent_id": "claude", "session_id": "s1",
        });
        client.call("observe_conversation", turn).await?.ok()?;
    }
    let memory = json!({
        "label": "Retention", "content": "Backups are kept for 30 days", "node_type": "concept",
        "project": "ops", "tags": ["requirement"],
    });
    let stored = client.call("store_node", memory).await?.ok()?;
    let id = stored.str("id")?.to_owned();
    let change = json!({"node_id": id, "content": "Backups are kept for 90 days"});
    client.call("update_node", change).await?.ok()?;
    let gone = json!({"label": "Gone", "content": "The old badge colour is green", "node_type": "fact"});
    let gone = client.call("store_node", gone).await?.ok()?;
    client
        .call("delete_node", json!({"node_id": gone.str("id")?}))
        .await?
        .ok()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_goes_into_another_tenant_and_comes_out_the_same() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    fill(&client).await?;
    let (status, file) = world.export(&world.dev.api_key, "format=json").await?;
    ensure!(status == StatusCode::OK, "{status}: {file}");
    let wanted = records(&file)?;
    ensure!(
        wanted["nodes"].as_array().is_some_and(|nodes| nodes.len() > 3),
        "{wanted}"
    );
    ensure!(
        wanted["tombstones"].as_array().map(Vec::len) == Some(1),
        "{}",
        wanted["tombstones"]
    );

    // Signed by this cluster, so a key that only writes keeps the authors.
    let key = world.new_tenant("copy", &["graph:read", "graph:write"]).await?;
    let (status, tried) = world.import(&key, "dry_run=true", file.clone()).await?;
    ensure!(status == StatusCode::OK, "{tried}");
    let (_, empty) = world.export(&key, "").await?;
    ensure!(
        records(&empty)?["nodes"] == json!([]),
        "a trial writes nothing: {empty}"
    );
    let (status, imported) = world.import(&key, "", file.clone()).await?;
    ensure!(status == StatusCode::OK, "{imported}");
    for field in [
        "nodes_created",
        "edges_created",
        "transcripts_created",
        "tombstones_created",
    ] {
        ensure!(
            tried[field] == imported[field],
            "{field}: {} {}",
            tried[field],
            imported[field]
        );
    }
    ensure!(
        imported["hash_verified"] == true && imported["conflict_count"] == 0,
        "{imported}"
    );
    let (_, copy) = world.export(&key, "").await?;
    ensure!(records(&copy)? == wanted, "the copy differs:\n{copy}\nfrom\n{file}");

    let (_, again) = world.import(&key, "", file.clone()).await?;
    ensure!(again["nodes_created"] == 0 && again["nodes_updated"] == 0, "{again}");
    let (_, copy) = world.export(&key, "").await?;
    ensure!(records(&copy)? == wanted, "a second import changes nothing");
    let (_, source) = world.export(&world.dev.api_key, "").await?;
    ensure!(records(&source)? == wanted, "the tenant of the file is untouched");

    // What was imported is found, by words at once and by meaning as soon as its vector is there.
    let copy = Client::new(&world.dev.mcp_url, &key)?;
    let found = copy
        .call(
            "query_graph",
            json!({"query": "how long are backups kept", "project": "ops"}),
        )
        .await?
        .ok()?;
    ensure!(found.text.contains("90 days"), "{}", found.text);

    let errors = world.dev.errors()?;
    ensure!(errors.is_empty(), "the server logged errors:\n{}", errors.join("\n"));
    world.dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_refused_and_a_foreign_one_has_the_importer_as_author() -> Result<()> {
    let world = World::start()?;
    fill(&Client::of(&world.dev)?).await?;
    let (_, file) = world.export(&world.dev.api_key, "project=ops").await?;
    let key = world.new_tenant("other", &["graph:read", "graph:write"]).await?;
    let (status, refused) = world.import(&key, "", file.replace("90 days", "91 days")).await?;
    ensure!(status == StatusCode::BAD_REQUEST, "{refused}");
    ensure!(refused["error_code"] == "hash_verification_failed", "{refused}");

    let at = file.find("\"signature\":").context("find the signature")?;
    let unsigned = format!("{}\"signature\":null}}\n", &file[..at]);
    let (status, imported) = world.import(&key, "project=mine", unsigned).await?;
    ensure!(status == StatusCode::OK && imported["nodes_created"] == 1, "{imported}");
    let (_, copy) = world.export(&key, "").await?;
    let copy = records(&copy)?;
    let node = &copy["nodes"][0];
    ensure!(node["project"] == "mine" && node["namespace"] == "mine", "{copy:?}");
    ensure!(node["metadata"]["claimed_author"].is_string(), "{node}");
    ensure!(node["metadata"]["claimed_author"] != node["author"], "{node}");
    world.dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_handed_over_before_a_backup_is_known_after_the_restore() -> Result<()> {
    let world = World::start()?;
    let transcript = json!({
        "project": "shop", "agent_id": "planner", "session_id": "s1",
        "messages": [
            {"role": "user", "content": "We decided to use PostgreSQL for orders.", "message_id": "m1"},
            {"role": "assistant", "content": "Noted: PostgreSQL."},
            {"role": "tool", "content": "exit code 0"},
            {"role": "user", "content": "The orders service depends on the ledger."},
        ],
    });
    let stored = world.hand_over(&world.dev.api_key, &transcript).await?;
    ensure!(stored["transcript_records_written"] == 4, "{stored}");
    ensure!(stored["logical_turns_processed"] == 1, "{stored}");
    let (_, file) = world.export(&world.dev.api_key, "format=json").await?;
    let abhi = world.export_bytes(&world.dev.api_key, "format=abhi").await?;

    for (tenant, file) in [("json", file.clone().into_bytes()), ("abhi", abhi)] {
        let key = world.new_tenant(tenant, &["graph:read", "graph:write"]).await?;
        let (status, imported) = world.import(&key, "", file).await?;
        ensure!(status == StatusCode::OK, "{tenant}: {imported}");
        let (_, before) = world.export(&key, "").await?;
        let again = world.hand_over(&key, &transcript).await?;
        ensure!(again["transcript_records_written"] == 0, "{tenant}: {again}");
        ensure!(again["transcript_records_skipped"] == 4, "{tenant}: {again}");
        ensure!(again["nodes_created"] == 0, "{tenant}: {again}");
        let (_, after) = world.export(&key, "").await?;
        ensure!(
            records(&after)? == records(&before)?,
            "{tenant}: the hand-off changed something"
        );

        // The user block at the end still waits for its answer.
        let mut longer = transcript.clone();
        let answer = json!({"role": "assistant", "content": "Noted: orders needs the ledger."});
        longer["messages"]
            .as_array_mut()
            .context("find the messages")?
            .push(answer);
        let longer = world.hand_over(&key, &longer).await?;
        ensure!(longer["transcript_records_written"] == 1, "{tenant}: {longer}");
        ensure!(longer["logical_turns_processed"] == 1, "{tenant}: {longer}");
    }
    world.dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vault_comes_back_from_a_folder_and_from_a_zip() -> Result<()> {
    let world = World::start()?;
    fill(&Client::of(&world.dev)?).await?;
    let key = world.dev.api_key.clone();
    let folder = tempfile::tempdir()?;
    let zip = folder.path().join("vault.zip");
    let zip_name = zip.to_str().context("a path of text")?;
    let (code, said) = waggle(&world, &key, &["export", "--format", "vault", "--output", zip_name])?;
    ensure!(code == Some(0), "{said}");
    let (code, said) = waggle(&world, &key, &["import", zip_name])?;
    ensure!(code == Some(0) && said.contains("format: vault\n"), "{said}");
    ensure!(
        said.contains("nodes_updated: 0\n") && said.contains("conflict_count: 0\n"),
        "{said}"
    );

    let unpacked = folder.path().join("notes");
    let note = unpack(&zip, &unpacked, "90 days")?;
    let text = std::fs::read_to_string(&note)?;
    std::fs::write(&note, text.replace("90 days", "120 days"))?;
    let notes = unpacked.to_str().context("a path of text")?;
    let (code, said) = waggle(&world, &key, &["import", notes, "--dry-run"])?;
    ensure!(code == Some(0) && said.contains("nodes_updated: 1\n"), "{said}");
    let (code, said) = waggle(&world, &key, &["import", notes])?;
    ensure!(code == Some(0) && said.contains("nodes_updated: 1\n"), "{said}");
    let (code, said) = waggle(&world, &key, &["import", notes])?;
    ensure!(code == Some(0) && said.contains("nodes_updated: 0\n"), "{said}");
    let (_, file) = world.export(&key, "").await?;
    ensure!(file.contains("120 days"), "the edit is there");

    let (code, said) = waggle(
        &world,
        &key,
        &["import", notes, "--strategy", "branch", "--project", "x"],
    )?;
    ensure!(code != Some(0) && said.contains("strategy"), "{said}");
    world.dev.stop()
}

/// Unpacks a ZIP and gives the file whose text holds `word`.
fn unpack(zip: &std::path::Path, into: &std::path::Path, word: &str) -> Result<std::path::PathBuf> {
    zip::ZipArchive::new(std::fs::File::open(zip)?)?.extract(into)?;
    let mut waiting = vec![into.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == "md") && std::fs::read_to_string(&path)?.contains(word)
            {
                return Ok(path);
            }
        }
    }
    anyhow::bail!("no file holds {word}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_export_leaves_no_file_and_says_why() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    for number in 0..40 {
        let memory = json!({
            "label": format!("Part {number}"), "content": format!("Part {number}: {}", "word ".repeat(9_000)),
            "node_type": "note",
        });
        client.call("store_node", memory).await?.ok()?;
    }
    let secret = json!({
        "label": "Token", "content": "the token is ghp_abcdefghijklmnopqrstuvwxyz0123456789", "node_type": "note",
    });
    client.call("store_node", secret).await?.ok()?;
    let (status, answer) = world.export(&world.dev.api_key, "format=json").await?;
    ensure!(status == StatusCode::BAD_REQUEST, "{status}: {answer}");
    ensure!(answer.contains("secrets_found") && !answer.contains("ghp_"), "{answer}");
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("all.json");
    let name = file.to_str().context("a path of text")?;
    let (code, said) = waggle(&world, &world.dev.api_key, &["export", "--output", name])?;
    ensure!(code != Some(0) && said.contains("secrets_found"), "{code:?} {said}");
    ensure!(std::fs::read_dir(folder.path())?.next().is_none(), "a file is left");
    world.dev.stop()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_leaves_out_what_was_erased_here() -> Result<()> {
    let world = World::start()?;
    let client = Client::of(&world.dev)?;
    fill(&client).await?;
    let (_, file) = world.export(&world.dev.api_key, "").await?;
    let backup = records(&file)?;
    let nodes = backup["nodes"].as_array().context("find the nodes")?;
    let edge = &backup["edges"][0];
    let gone = edge["source_id"].as_str().context("find a link")?;
    client.call("delete_node", json!({"node_id": gone})).await?.ok()?;
    let (status, report) = world
        .import(&world.dev.api_key, "strategy=branch&project=branch", file.clone())
        .await?;
    ensure!(status == StatusCode::OK, "{report}");
    ensure!(report["nodes_created"] == nodes.len() - 1, "{report}");
    let named = json!({"record": "node", "id": gone, "reason": "erased_here", "fields": ""});
    ensure!(report["conflicts"] == json!([named]), "{report}");
    let content = nodes.iter().find(|node| node["id"] == gone).context("find the node")?["content"].clone();
    let (_, after) = world.export(&world.dev.api_key, "project=branch").await?;
    let after = records(&after)?;
    let revived = after["nodes"].as_array().context("find the nodes")?;
    ensure!(
        revived.iter().all(|node| node["content"] != content),
        "{content} is back"
    );
    world.dev.stop()
}
