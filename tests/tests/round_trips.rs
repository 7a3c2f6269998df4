//! A large graph out and in again in every format: what is read back is what was written, and reading changes nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Cursor, Read as _, Write as _};

use anyhow::{Context, Result, ensure};
use reqwest::StatusCode;
use serde_json::{Value, json};
use waggle_tests::texts::Dice;
use waggle_tests::world::{World, records};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// Logical turns of the generated conversations; WAGGLE_ROUND_TRIP_TURNS sets another number.
const TURNS_DEFAULT: usize = 400;
/// Turns of one conversation.
const TURNS_OF_EACH: usize = 25;

const PEOPLE: [&str; 8] = ["Alice", "Bob", "Zoë", "Dmitri", "Fatima", "Jürgen", "Ngozi", "Søren"];
const SERVICES: [&str; 8] = [
    "billing",
    "search",
    "ledger",
    "mobile app",
    "warehouse",
    "payroll",
    "newsletter",
    "checkout",
];
const TOOLS: [&str; 10] = [
    "PostgreSQL",
    "MySQL",
    "Redis",
    "Kafka",
    "RabbitMQ",
    "Kubernetes",
    "Terraform",
    "Jenkins",
    "MongoDB",
    "Grafana",
];

/// What somebody may say about work, and what an assistant answers.
fn turn(dice: &mut Dice, number: usize) -> (String, String) {
    let mut pick = |from: &[&str]| {
        let at = usize::try_from(dice.below(from.len() as u64)).unwrap_or_default();
        from.get(at).copied().unwrap_or_default().to_owned()
    };
    let (person, service, tool, other) = (pick(&PEOPLE), pick(&SERVICES), pick(&TOOLS), pick(&TOOLS));
    let user = match number % 9 {
        0 => format!("We decided to use {tool} for the {service} because it is well understood."),
        1 => format!("{person} owns the {service} service."),
        2 => format!("The {service} limit is {} requests per minute.", 10 + number),
        3 => format!("I prefer {tool} over {other} for the {service}."),
        4 => format!("We moved the {service} from {tool} to {other}."),
        5 => format!("The {service} depends on {tool}. Remember to renew its certificate in case {number}."),
        6 => format!("\u{201c}Größe\u{201d} of the {service} is {number} µm — {person} measured it \u{1F41D}."),
        7 => format!("Should the {service} leave {tool}, and who decides case {number}?"),
        _ => format!("{person} works on case {number} of the {service}:\n\n```\nselect {number};\n```\n"),
    };
    (user, format!("Noted: case {number}, {service}."))
}

/// Transcripts of this test, or those of WAGGLE_TRANSCRIPTS, a folder of JSON files as a hand-off takes them.
fn transcripts() -> Result<Vec<Value>> {
    if let Ok(folder) = std::env::var("WAGGLE_TRANSCRIPTS") {
        let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        files.sort_by_key(std::fs::DirEntry::path);
        let read = |file: &std::fs::DirEntry| -> Result<Value> {
            Ok(serde_json::from_str(&std::fs::read_to_string(file.path())?)?)
        };
        return files.iter().map(read).collect();
    }
    let turns = match std::env::var("WAGGLE_ROUND_TRIP_TURNS") {
        Ok(number) => number.parse().context("WAGGLE_ROUND_TRIP_TURNS is a number")?,
        Err(_) => TURNS_DEFAULT,
    };
    let mut dice = Dice::new(7);
    let all: Vec<(String, String)> = (0..turns).map(|number| turn(&mut dice, number)).collect();
    Ok(all
        .chunks(TURNS_OF_EACH)
        .enumerate()
        .map(|(number, part)| {
            let messages: Vec<Value> = part
                .iter()
                .enumerate()
                .flat_map(|(at, (user, assistant))| {
                    let time = format!("2026-{:02}-{:02}T09:{at:02}:00Z", 1 + number % 9, 1 + number % 27);
                    [
                        json!({"role": "user", "content": user, "timestamp": time, "message_id": format!("u{at}")}),
                        json!({"role": "assistant", "content": assistant, "timestamp": time}),
                    ]
                })
                .collect();
            let project = ["Shop", "ops", "Größe"][number % 3];
            let agent = ["claude", "codex"][number % 2];
            json!({
                "project": project, "agent_id": agent,
                "session_id": format!("s{number}"), "messages": messages,
            })
        })
        .collect())
}

/// Versions, aliases, links by hand, settled conflicts, merged and erased memories: what conversations alone do not make.
async fn work_over(world: &World, key: &str) -> Result<()> {
    let client = world.client(key)?;
    let (_, file) = world.export(key, "secrets=include").await?;
    let backup = records(&file)?;
    let nodes = backup["nodes"].as_array().context("find the nodes")?;
    let id = |at: usize| nodes.get(at).and_then(|node| node["id"].as_str()).context("a node");
    for at in (0..nodes.len().min(100)).step_by(7) {
        let content = format!(
            "{} Looked at again, {at}.",
            nodes[at]["content"].as_str().unwrap_or_default()
        );
        client
            .call(
                "update_node",
                json!({"node_id": id(at)?, "content": content, "tags": ["again", "ünï"]}),
            )
            .await?
            .ok()?;
    }
    for at in (1..nodes.len().min(80)).step_by(5) {
        let link = json!({
            "source_id": id(at)?, "target_id": id(at - 1)?, "relationship": "depends_on", "weight": 0.333,
        });
        client.call("store_edge", link).await?.ok()?;
    }
    let conflicts = client
        .call("list_conflicts", json!({"limit": 20, "token_budget": 20_000}))
        .await?
        .ok()?;
    for conflict in conflicts.list("conflicts").iter().step_by(2) {
        let arguments = json!({
            "edge_id": conflict["edge"]["id"], "winner": conflict["edge"]["source_id"], "resolution_note": "decided \u{2713}",
        });
        client.call("resolve_conflict", arguments).await?.ok()?;
    }
    for (number, content) in ["The lamp in the hall is blue", "The hall lamp is a blue one"]
        .iter()
        .enumerate()
    {
        let memory = json!({
            "label": format!("Lamp {number}"), "content": content, "node_type": "note", "source_prompt": "asked",
            "valid_from": "2026-01-05", "valid_to": "2030-01-01", "project": "ops",
        });
        client.call("store_node", memory).await?.ok()?;
    }
    let lamps = client
        .call(
            "query_graph",
            json!({"query": "blue lamp in the hall", "project": "ops", "strict_scope": true}),
        )
        .await?
        .ok()?;
    let lamps: Vec<&str> = lamps
        .list("nodes")
        .iter()
        .filter(|node| node["label"].as_str().is_some_and(|label| label.starts_with("Lamp")))
        .filter_map(|node| node["id"].as_str())
        .collect();
    if let [stays, goes, ..] = lamps.as_slice() {
        client
            .call("canonicalize_node", json!({"canonical_id": stays, "node_ids": [goes]}))
            .await?
            .ok()?;
    }
    let gone = json!({"node_id": id(nodes.len() - 1)?});
    client.call("delete_node", gone).await?.ok()?;
    Ok(())
}

/// Names a graph: the same for two tenants that have the same.
fn digest(file: &str) -> Result<String> {
    let bytes = records(file)?.to_string();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    Ok(format!("{hash:016x} of {} bytes", bytes.len()))
}

async fn digest_of(world: &World, key: &str) -> Result<String> {
    digest(&String::from_utf8(
        world.export_bytes(key, "format=json&secrets=include").await?,
    )?)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_brings_a_graph_back_and_reading_changes_nothing() -> Result<()> {
    let world = World::start()?;
    let all = ["graph:read", "graph:write"];
    let key = world.new_tenant("source", &all).await?;
    for transcript in transcripts()? {
        let report = world.hand_over(&key, &transcript).await?;
        ensure!(report["transcript_records_written"].as_u64() > Some(0), "{report}");
    }
    work_over(&world, &key).await?;
    let file = world.export_bytes(&key, "format=json&secrets=include").await?;
    let before = digest(std::str::from_utf8(&file)?)?;
    let backup = records(std::str::from_utf8(&file)?)?;
    let count = |list: &str| backup[list].as_array().map_or(0, Vec::len);
    let shown = format!(
        "{} nodes, {} edges, {} transcripts, {} sessions, {} redirects, {} tombstones; digest {before}",
        count("nodes"),
        count("edges"),
        count("transcripts"),
        count("sessions"),
        count("redirects"),
        count("tombstones"),
    );
    println!("{shown}");
    ensure!(
        count("nodes") > 50 && count("edges") > 50 && count("tombstones") == 1,
        "{shown}"
    );

    // Backups: the same graph in another tenant, and a second time nothing new.
    let abhi = world
        .export_bytes(&key, "format=abhi&secrets=include&include_low_confidence_edges=true")
        .await?;
    for (format, file) in [("json", file.clone()), ("abhi", abhi)] {
        let copy = world.new_tenant(&format!("copy-{format}"), &all).await?;
        for time in ["first", "second"] {
            let (status, report) = world.import(&copy, "", file.clone()).await?;
            ensure!(status == StatusCode::OK, "{format}: {report}");
            ensure!(report["conflict_count"] == 0, "{format}: {report}");
            let created = report["nodes_created"] == count("nodes") && report["edges_created"] == count("edges");
            let nothing = [
                "nodes_created",
                "nodes_updated",
                "edges_created",
                "edges_updated",
                "transcripts_created",
            ];
            let nothing = nothing.iter().all(|field| report[*field] == 0);
            ensure!(
                if time == "first" { created } else { nothing },
                "{format}, {time}: {report}"
            );
            ensure!(
                digest_of(&world, &copy).await? == before,
                "{format}, {time}: another digest"
            );
        }
    }

    // What is only read: the same bytes again, and as many memories and links.
    let graphml = world.export_bytes(&key, "format=graphml&secrets=include").await?;
    let graphml = String::from_utf8(graphml)?;
    ensure!(
        graphml.matches("<node ").count() == count("nodes"),
        "GraphML has other nodes"
    );
    ensure!(
        graphml.matches("<edge ").count() == count("edges"),
        "GraphML has other edges"
    );
    let html = world.export_bytes(&key, "format=html").await?;
    let page = std::str::from_utf8(&html)?;
    let (_, data) = page.split_once("type=\"application/json\">").context("find the data")?;
    let (data, _) = data.split_once("</script>").context("find their end")?;
    let data: Value = serde_json::from_str(data)?;
    ensure!(
        data["nodes"].as_array().map(Vec::len) == Some(count("nodes")),
        "the page has other nodes"
    );
    ensure!(
        world.export_bytes(&key, "format=html").await? == html,
        "the page changes by itself"
    );
    let again = world.export_bytes(&key, "format=graphml&secrets=include").await?;
    ensure!(again == graphml.into_bytes(), "GraphML changes by itself");
    let bundle = String::from_utf8(world.export_bytes(&key, "format=bundle").await?)?;
    ensure!(
        bundle.contains("## Full Node Appendix") || bundle.contains("Memory Summary"),
        "{bundle}"
    );
    ensure!(digest_of(&world, &key).await? == before, "an export changed the graph");

    vault_round_trip(&world, &key, &backup).await?;
    world.stop()
}

async fn vault_round_trip(world: &World, key: &str, backup: &Value) -> Result<()> {
    let before = digest_of(world, key).await?;
    let vault = world.export_bytes(key, "format=vault").await?;
    let again = world.export_bytes(key, "format=vault").await?;
    ensure!(notes(&vault)? == notes(&again)?, "the vault changes by itself");
    let (status, report) = world.import(key, "format=vault", vault.clone()).await?;
    ensure!(status == StatusCode::OK, "{report}");
    for field in [
        "nodes_created",
        "nodes_updated",
        "edges_created",
        "edges_deleted",
        "conflict_count",
    ] {
        ensure!(report[field] == 0, "an unchanged vault: {report}");
    }
    ensure!(
        digest_of(world, key).await? == before,
        "an unchanged vault changed the graph"
    );

    let (edited, id) = edited(&vault)?;
    let (status, report) = world.import(key, "format=vault", edited).await?;
    ensure!(status == StatusCode::OK && report["nodes_updated"] == 1, "{report}");
    ensure!(
        report["nodes_created"] == 0 && report["conflict_count"] == 0,
        "{report}"
    );
    let (_, file) = world.export(key, "secrets=include").await?;
    let after = records(&file)?;
    let differing = differing(backup, &after, "nodes");
    ensure!(differing == [id.clone()], "{differing:?} instead of {id}");
    for list in ["edges", "transcripts", "sessions", "redirects", "tombstones"] {
        ensure!(backup[list] == after[list], "an edit of a note changed {list}");
    }
    let node = after["nodes"].as_array().context("find the nodes")?;
    let node = node
        .iter()
        .find(|node| node["id"] == id.as_str())
        .context("find the node")?;
    ensure!(
        node["tags"]
            .as_array()
            .is_some_and(|tags| tags.contains(&json!("edited-by-hand"))),
        "{node}"
    );
    Ok(())
}

/// The notes of a vault. Its base also names the point that was read, which moves on while vectors are made.
fn notes(vault: &[u8]) -> Result<BTreeMap<String, String>> {
    let mut archive = ZipArchive::new(Cursor::new(vault))?;
    let mut notes = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index)?;
        let name = file.name()?.into_owned();
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        if name.ends_with(".md") {
            notes.insert(name, text);
        }
    }
    Ok(notes)
}

/// The vault with one tag more in one file, and whose it is.
fn edited(vault: &[u8]) -> Result<(Vec<u8>, String)> {
    let mut archive = ZipArchive::new(Cursor::new(vault))?;
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let mut id = None;
    for index in 0..archive.len() {
        let mut file = archive.by_index(index)?;
        let name = file.name()?.into_owned();
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        if id.is_none() && name.ends_with(".md") && text.contains("\ntags: [") {
            let line = text
                .lines()
                .find(|line| line.starts_with("node_id: "))
                .context("find the id")?;
            id = Some(line.trim_start_matches("node_id: ").trim_matches('"').to_owned());
            let comma = if text.contains("\ntags: []") { "" } else { ", " };
            let mut more = String::new();
            write!(more, "\ntags: [\"edited-by-hand\"{comma}")?;
            text = text.replacen("\ntags: [", &more, 1);
        }
        out.start_file(name, SimpleFileOptions::default())?;
        out.write_all(text.as_bytes())?;
    }
    Ok((out.finish()?.into_inner(), id.context("no note has tags")?))
}

/// Ids of the records that are not the same in both.
fn differing(one: &Value, other: &Value, list: &str) -> Vec<String> {
    let by_id = |backup: &Value| -> BTreeMap<String, Value> {
        let all = backup[list].as_array().cloned().unwrap_or_default();
        let id = |record: &Value| record["id"].as_str().unwrap_or_default().to_owned();
        all.into_iter().map(|record| (id(&record), record)).collect()
    };
    let (one, other) = (by_id(one), by_id(other));
    let ids = one.keys().chain(other.keys().filter(|id| !one.contains_key(*id)));
    ids.filter(|id| one.get(*id) != other.get(*id)).cloned().collect()
}
