//! The vault, both ways: what is exported comes back without a change, and an edit is that edit and nothing else.

#![allow(clippy::unwrap_used, reason = "a test")]

mod pages_support;

use std::collections::BTreeMap;

use pages_support::vault::*;
use pages_support::*;
use waggle_formats::graph::Graph;
use waggle_formats::vault::{self, BASE_PATH, Change, ConflictReason, MemoryRef};
use waggle_memory::kind::{Kind, Relationship};
use waggle_memory::record::Record;
use waggle_memory::time::Millis;

#[test]
fn a_file_reads_as_people_expect() {
    let (_, graph) = three();
    let vault = export(&graph);
    let path = format!("payments/fact/ledger-uses-postgres--{}.md", memory_id(1));
    let text = &vault.files[&path];
    let body = text.split_once("\n---\n").unwrap().1;
    let expected = format!(
        "\n# Ledger uses Postgres\n\n## Content\n\nThe ledger uses Postgres 16.\n\n## Evidence\n\n- [user turn 1] The \
         ledger uses Postgres 16.\n\n## Relations\n\n- [[depends_on::Audit needs SQL]] <!-- node_id:{} -->\n",
        memory_id(2)
    );
    assert_eq!(body, expected);
    for line in [
        "tenant_id: \"acme\"",
        "tags: [\"observed\", \"storage\"]",
        "version: 1",
        "valid_to: null",
        "valid_from: \"2026-02-19T00:00:00.000Z\"",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
    assert_eq!((vault.node_count, vault.edge_count, vault.redactions), (3, 3, 0));
}

#[test]
fn an_export_that_nobody_touched_changes_nothing_with_and_without_its_base() {
    let (_, graph) = three();
    let files = export(&graph).files;
    for files in [files.clone(), without_base(files)] {
        let plan = import(&files, &graph);
        assert_eq!((plan.changes, plan.unchanged), (Vec::new(), 3));
    }
}

#[test]
fn an_edit_of_one_field_is_that_change() {
    let (_, graph) = three();
    let vault = export(&graph);
    type Check = fn(&vault::UpdateMemory) -> bool;
    let edits: [(&str, &str, Check); 6] = [
        ("# Ledger uses Postgres", "# Ledger database", |u| {
            u.label.as_deref() == Some("Ledger database")
        }),
        ("Postgres 16.\n\n## Ev", "Postgres 17.\nSince May.\n\n## Ev", |u| {
            u.content.as_deref() == Some("The ledger uses Postgres 17.\nSince May.")
        }),
        (
            "tags: [\"observed\", \"storage\"]",
            "tags:\n  - database\n  - observed",
            |u| u.tags == Some(vec!["database".to_owned(), "observed".to_owned()]),
        ),
        ("valid_to: null", "valid_to: 2026-12-31", |u| {
            u.valid_to == Some(Millis(1_798_675_200_000))
        }),
        (
            "valid_from: \"2026-02-19T00:00:00.000Z\"",
            "valid_from: 2026-01-01T00:00:00Z",
            |u| u.valid_from == Some(Millis(1_767_225_600_000)),
        ),
        ("## Content\n\nThe", "## Content\n\n\\## Evidence\nThe", |u| {
            u.content.as_deref() == Some("## Evidence\nThe ledger uses Postgres 16.")
        }),
    ];
    for (from, to, check) in edits {
        for files in [edited(&vault, 1, from, to), without_base(edited(&vault, 1, from, to))] {
            let plan = import(&files, &graph);
            let update = only_update(&plan);
            assert!(check(update), "{to}: {update:?}");
            let fields = [
                update.label.is_some(),
                update.content.is_some(),
                update.tags.is_some(),
                update.valid_from.is_some(),
                update.valid_to.is_some(),
            ];
            assert_eq!(fields.iter().filter(|f| **f).count(), 1, "{update:?}");
            assert_eq!((update.id, update.expected_version), (memory_id(1), 1));
            assert_eq!(plan.unchanged, 2);
        }
    }
}

#[test]
fn what_editors_do_to_files_is_no_edit() {
    let (_, graph) = three();
    let files = export(&graph).files;
    let converted: BTreeMap<String, String> = files
        .iter()
        .map(|(path, text)| (path.clone(), text.replace('\n', "\r\n")))
        .collect();
    let unquoted: BTreeMap<String, String> = files
        .iter()
        .map(|(path, text)| {
            let text = text.replace("node_type: \"fact\"", "node_type: fact");
            let text = text.replace("tags: [\"observed\", \"storage\"]", "tags:\n  - storage\n  - observed");
            (
                format!("moved/{path}"),
                text.replace("\n## Evidence", "\n\n\n## Evidence"),
            )
        })
        .filter(|(path, _)| !path.ends_with("json"))
        .collect();
    for files in [without_base(converted), unquoted] {
        let plan = import(&files, &graph);
        assert_eq!((plan.changes, plan.unchanged), (Vec::new(), 3));
    }
}

#[test]
fn a_change_in_the_graph_alone_stays_and_both_sides_conflict() {
    let (memories, graph) = three();
    let vault = export(&graph);
    let newer = changed(&memories[0], |m| m.content = "The ledger uses Postgres 18.".to_owned());
    let mut now = memories.clone();
    now[0] = newer;
    let now = pages_support::graph(&now, &graph.links().cloned().collect::<Vec<_>>());

    let plan = import(&vault.files, &now);
    assert_eq!((plan.changes, plan.unchanged), (Vec::new(), 3));

    let files = edited(&vault, 1, "Postgres 16.\n\n## Ev", "Postgres 17.\n\n## Ev");
    let plan = import(&files, &now);
    let conflict = only_conflict(&plan);
    assert_eq!(conflict.node_id, Some(memory_id(1)));
    assert_eq!(conflict.field, "content");
    assert_eq!(conflict.reason, ConflictReason::BothChanged);
    assert_eq!(conflict.base.as_deref(), Some("The ledger uses Postgres 16."));
    assert_eq!(conflict.vault.as_deref(), Some("The ledger uses Postgres 17."));
    assert_eq!(conflict.current.as_deref(), Some("The ledger uses Postgres 18."));

    // Other fields of the same file are judged by themselves; the same change on both sides is none.
    let label = edited(&vault, 1, "# Ledger uses Postgres", "# Ledger");
    assert_eq!(only_update(&import(&label, &now)).label.as_deref(), Some("Ledger"));
    let same = edited(&vault, 1, "Postgres 16.\n\n## Ev", "Postgres 18.\n\n## Ev");
    assert_eq!(import(&same, &now).changes, Vec::new());
}

#[test]
fn relations_are_added_struck_and_kept_when_their_line_is_gone() {
    let (_, graph) = three();
    let vault = export(&graph);
    let line = format!("- [[depends_on::Audit needs SQL]] <!-- node_id:{} -->\n", memory_id(2));

    let gone = edited(&vault, 1, &line, "");
    assert_eq!(import(&gone, &graph).changes, Vec::new());
    let mut no_file = vault.files.clone();
    no_file.retain(|path, _| !path.contains("ledger"));
    assert_eq!(import(&no_file, &graph).changes, Vec::new());

    let struck = format!(
        "- ~~[[depends_on::Audit needs SQL]]~~ <!-- node_id:{} -->\n",
        memory_id(2)
    );
    for to in [struck.as_str(), "- ~~[[depends_on::audit needs sql]]~~\n"] {
        let plan = import(&edited(&vault, 1, &line, to), &graph);
        assert!(
            matches!(plan.changes.as_slice(), [Change::DeleteLink { id, .. }] if *id == link_id(1)),
            "{to}: {plan:?}"
        );
    }

    let added = format!("{line}- [[part_of::Cache is Redis]]\n- [[relates_to::Nobody knows this]]\n");
    let plan = import(&edited(&vault, 1, &line, &added), &graph);
    let [
        Change::StubNote(stub),
        Change::StoreLink(known),
        Change::StoreLink(to_stub),
    ] = plan.changes.as_slice()
    else {
        panic!("{plan:#?}");
    };
    assert_eq!(
        (stub.label.as_str(), stub.project.as_str()),
        ("Nobody knows this", "Payments")
    );
    let links = [known, to_stub];
    let part_of = links.iter().find(|l| l.relationship == Relationship::PartOf).unwrap();
    assert_eq!(part_of.target, MemoryRef::Known(memory_id(3)));
    assert_eq!(part_of.source, MemoryRef::Known(memory_id(1)));
    let stubbed = links
        .iter()
        .find(|l| l.relationship == Relationship::RelatesTo)
        .unwrap();
    assert_eq!(stubbed.target, MemoryRef::New(stub.key));

    // A symmetric link is there from both ends.
    let both = edited(
        &vault,
        2,
        "reports.\n",
        "reports.\n\n## Relations\n\n- [[contradicts::Cache is Redis]]\n",
    );
    let plan = import(&both, &graph);
    assert_eq!(plan.changes, Vec::new(), "{plan:?}");
}

#[test]
fn a_link_that_was_deleted_since_the_export_stays_deleted() {
    let (memories, graph) = three();
    let vault = export(&graph);
    let now = pages_support::graph(&memories, &[]);
    let touched = edited(&vault, 1, "# Ledger uses Postgres", "# Ledger");
    let plan = import(&touched, &now);
    assert_eq!(only_update(&plan).label.as_deref(), Some("Ledger"));
}

#[test]
fn a_weight_is_a_field_like_others() {
    let (memories, graph) = three();
    let vault = export(&graph);
    let files = edited(&vault, 1, "\"weight\": 1.000", "\"weight\": 0.5");
    let plan = import(&files, &graph);
    assert!(
        matches!(plan.changes.as_slice(), [Change::StoreLink(link)] if link.weight_thousandths == Some(500)),
        "{plan:?}"
    );
    let mut heavier = link(1, 1, 2, Relationship::DependsOn);
    heavier.weight_thousandths = 700;
    let plan = import(&files, &pages_support::graph(&memories, &[heavier]));
    assert_eq!(only_conflict(&plan).field, "relations.depends_on");
}

#[test]
fn other_tenants_unknown_words_and_doubled_ids_are_conflicts() {
    let (_, graph) = three();
    let vault = export(&graph);
    let reason = |from: &str, to: &str| {
        only_conflict(&import(&edited(&vault, 1, from, to), &graph))
            .reason
            .clone()
    };
    assert_eq!(
        reason("tenant_id: \"acme\"", "tenant_id: \"other\""),
        ConflictReason::OtherTenant
    );
    assert_eq!(
        reason("node_type: \"fact\"", "node_type: \"factoid\""),
        ConflictReason::UnknownWord
    );
    assert_eq!(
        reason("node_type: \"fact\"", "node_type: \"decision\""),
        ConflictReason::ReadOnly
    );
    assert_eq!(
        reason("project: \"Payments\"", "project: \"Other\""),
        ConflictReason::ReadOnly
    );
    assert_eq!(reason("[[depends_on::", "[[needs::"), ConflictReason::UnknownWord);
    assert_eq!(
        reason("- [user turn 1] The", "- [user turn 9] I said"),
        ConflictReason::ReadOnly
    );
    assert_eq!(reason("aliases: []", "aliases: [\"mine\"]"), ConflictReason::ReadOnly);
    for (from, to) in [
        ("valid_to: null", "valid_to: soon"),
        ("valid_to: null", "valid_to: 2020-01-01"),
        ("node_id: \"", "node_id: \"x"),
        ("version: 1", "version: [1"),
        ("# Ledger uses Postgres", &format!("# {}", "x".repeat(801))),
        ("## Evidence", "## Content"),
    ] {
        let reason = reason(from, to);
        assert!(matches!(reason, ConflictReason::Invalid(_)), "{to}: {reason:?}");
    }
    let mut twice = vault.files.clone();
    let (path, text) = vault.files.iter().find(|(path, _)| path.contains("ledger")).unwrap();
    twice.insert(
        path.replace("payments", "copy"),
        text.replace("# Ledger", "# The ledger"),
    );
    twice.insert(path.clone(), text.replace("# Ledger", "# A ledger"));
    let plan = import(&twice, &graph);
    assert!(
        plan.conflicts().any(|c| c.reason == ConflictReason::DoubledId),
        "{plan:?}"
    );
    // A whole vault of another tenant: nothing but conflicts.
    let plan = import_as(&"other".parse().unwrap(), &vault.files, &graph);
    assert_eq!(plan.changes.len(), 3);
    assert!(plan.conflicts().all(|c| c.reason == ConflictReason::OtherTenant));
}

#[test]
fn new_files_are_stored_and_their_relations_find_each_other() {
    let (_, graph) = three();
    let mut files = BTreeMap::new();
    files.insert(
        "notes/Plan.md".to_owned(),
        "Move the ledger in May.\n\n## Relations\n\n- [[depends_on::Budget]]\n- [[relates_to::Ledger uses Postgres]]\n"
            .to_owned(),
    );
    files.insert(
        "notes/b.md".to_owned(),
        "---\nnode_type: decision\nproject: Payments\ntags: money\nvalid_from: 2026-04-01\n---\n# Budget\n\nApproved.\n"
            .to_owned(),
    );
    let plan = import(&files, &graph);
    let [
        Change::StoreMemory(note),
        Change::StoreMemory(decision),
        Change::StoreLink(a),
        Change::StoreLink(b),
    ] = plan.changes.as_slice()
    else {
        panic!("{plan:#?}");
    };
    assert_eq!(
        (note.label.as_str(), note.content.as_str()),
        ("Plan", "Move the ledger in May.")
    );
    assert_eq!((note.kind, note.id), (Kind::Note, None));
    assert_eq!(
        (decision.label.as_str(), decision.content.as_str()),
        ("Budget", "Approved.")
    );
    assert_eq!(
        (decision.kind, decision.scope.project.as_str()),
        (Kind::Decision, "Payments")
    );
    assert_eq!(decision.tags, ["money"]);
    assert!(decision.evidence.is_empty());
    let targets = [a.target, b.target];
    assert!(targets.contains(&MemoryRef::New(decision.key)) && targets.contains(&MemoryRef::Known(memory_id(1))));
}

#[test]
fn a_vault_moves_to_an_empty_tenant_of_the_same_name_with_its_ids_but_nothing_erased_comes_back() {
    let (_, graph) = three();
    let vault = export(&graph);
    let empty = Graph::collect([tombstone(3)]).unwrap();
    let plan = import(&vault.files, &empty);
    let stored: Vec<_> = plan
        .changes
        .iter()
        .filter_map(|c| match c {
            Change::StoreMemory(store) => store.id,
            _ => None,
        })
        .collect();
    assert_eq!(stored, [memory_id(2), memory_id(1)]);
    assert_eq!(plan.unchanged, 1);
    let touched = edited(&vault, 3, "# Cache is Redis", "# Cache");
    let plan = import(&touched, &empty);
    assert!(plan.conflicts().any(|c| c.reason == ConflictReason::Erased), "{plan:?}");
}

#[test]
fn files_of_the_older_product_import_without_invented_evidence() {
    let id = memory_id(9);
    let text = format!(
        "---\nnode_id: {id}\ntenant_id: local\nproject: pp\nnode_type: decision\ntags:\n- db\nvalid_from: null\n\
         valid_to: null\ncreated_at: 2025-11-02T10:00:00+00:00\nupdated_at: 2025-11-02T10:00:00+00:00\n---\n\n# Use \
         Postgres\n\n## Content\n\nWe use Postgres.\n\n## Evidence\n\n- No evidence recorded.\n\n## Relations\n\n- \
         [[depends_on::SQL]]\n"
    );
    let files = BTreeMap::from([("pp/decision/use-postgres.md".to_owned(), text)]);
    let plan = import(&files, &Graph::default());
    let Some(Change::StoreMemory(store)) = plan.changes.first() else {
        panic!("{plan:#?}");
    };
    assert_eq!(store.id, Some(id));
    assert_eq!(store.evidence, []);
    assert_eq!((store.valid_from, store.valid_to), (None, None));
    assert_eq!(store.recorded_at, Some(Millis(1_762_077_600_000)));

    // The same file once the memory is there: nothing; edited, nobody knows which is newer.
    let mut there = memory(9, "Use Postgres", "We use Postgres.");
    there.memory.kind = Kind::Decision;
    there.memory.tags = vec!["db".to_owned()];
    there.memory.scope.project = "pp".to_owned();
    there.memory.recorded_at = Millis(1_762_077_600_000);
    let sql = memory(8, "SQL", "SQL.");
    let graph = graph(&[there, sql], &[link(1, 9, 8, Relationship::DependsOn)]);
    let plan = import(&files, &graph);
    assert_eq!((plan.changes, plan.unchanged), (Vec::new(), 1));
    let files = files
        .into_iter()
        .map(|(path, text)| (path, text.replace("We use Postgres", "We use SQLite")))
        .collect();
    assert_eq!(only_conflict(&import(&files, &graph)).reason, ConflictReason::NoBase);
}

#[test]
fn secrets_stay_inside_and_an_edit_beside_one_does_not_lose_it() {
    const KEY: &str = "sk-abcdefghijklmnopqrstuvwx";
    let mut secret = memory(1, "Database login", &format!("The key is {KEY} and {KEY} again."));
    secret.memory.aliases.push(alias(&format!("login: {KEY}")));
    secret.memory.metadata = "{\"password\":\"open sesame\"}".to_owned();
    let label = format!("{KEY} rotates");
    let graph = graph(
        &[secret, memory(2, &label, "It rotates.")],
        &[link(1, 1, 2, Relationship::PartOf)],
    );
    let vault = export(&graph);
    let all: String = vault
        .files
        .iter()
        .flat_map(|(path, text)| [path.as_str(), text.as_str()])
        .collect();
    assert!(!all.contains("abcdefgh") && !all.contains("sesame"));
    // Content, alias, metadata and evidence of the first; label of the second.
    assert_eq!(vault.redactions, 2 + 1 + 1 + 2 + 1);
    assert_eq!(import(&vault.files, &graph).changes, Vec::new());
    let label = edited(&vault, 1, "# Database login", "# Login");
    assert_eq!(only_update(&import(&label, &graph)).label.as_deref(), Some("Login"));
    let content = edited(&vault, 1, "## Content\n\nThe key is", "## Content\n\nA key is");
    assert_eq!(
        only_conflict(&import(&content, &graph)).reason,
        ConflictReason::Redacted
    );
}

#[test]
fn the_largest_memory_fits_a_file() {
    let mut big = memory(1, &"ü".repeat(400), &"## Content\n".repeat(5_900));
    big.memory.aliases = (0..64)
        .map(|n| alias(&format!("{n} {}", "\u{1}x".repeat(20_000))))
        .collect();
    big.evidence = (0..1_000).map(|n| (n, evidence(1, &"\u{1}".repeat(500)))).collect();
    big.memory.evidence_count = 5_000;
    let many: Vec<_> = (2..4_000).map(|n| memory(n, &format!("Label {n}"), "x")).collect();
    let links: Vec<_> = (2..4_000).map(|n| link(n, 1, n, Relationship::RelatesTo)).collect();
    let mut all = vec![big];
    all.extend(many);
    let graph = graph(&all, &links);
    let vault = export(&graph);
    let longest = vault
        .files
        .iter()
        .filter(|(p, _)| p.as_str() != BASE_PATH)
        .map(|(_, t)| t.len())
        .max();
    assert!(longest.unwrap() < vault::FILE_BYTES_MAX, "{longest:?}");
    let id = memory_id(1).to_string();
    let text = vault.files.iter().find(|(p, _)| p.contains(&id)).unwrap().1;
    assert!(text.contains("left_out: {\"aliases\": "), "{}", &text[..3_000]);
    let plan = import(&without_base(vault.files.clone()), &graph);
    assert_eq!((plan.changes.len(), plan.unchanged), (0, all.len()));
}

#[test]
fn records_of_links_without_an_end_are_left_out() {
    let dangling = link(1, 1, 7, Relationship::PartOf);
    let records = [
        Record::Memory(Box::new(memory(1, "a", "b"))),
        Record::Link(Box::new(dangling)),
    ];
    let vault = export(&Graph::collect(records).unwrap());
    assert_eq!(vault.edge_count, 0);
}
