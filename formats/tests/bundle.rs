//! Context bundles: what they show, and that they never exceed their budget.

#![allow(clippy::unwrap_used, reason = "a test")]

mod pages_support;

use pages_support::*;
use proptest::prelude::*;
use serde_json::Value;
use waggle_formats::bundle::{self, Audience, Bundle, BundleFormat, BundleRequest, WeakLinks};
use waggle_formats::graph::Graph;
use waggle_memory::id::{MemoryId, TurnId};
use waggle_memory::kind::{Confidence, Kind, Relationship};
use waggle_memory::record::Record;
use waggle_memory::time::Millis;

struct Asked {
    memories: Vec<MemoryId>,
    turns: Vec<TurnId>,
    audience: Audience,
    format: BundleFormat,
    weak_links: WeakLinks,
    token_budget: usize,
}

impl Asked {
    fn of(numbers: &[u16]) -> Self {
        Self {
            memories: numbers.iter().map(|n| memory_id(*n)).collect(),
            turns: Vec::new(),
            audience: Audience::Llm,
            format: BundleFormat::Markdown,
            weak_links: WeakLinks::LeftOut,
            token_budget: 2_000,
        }
    }

    fn render(&self, graph: &Graph) -> Bundle {
        let tenant = tenant();
        let request = BundleRequest {
            tenant: &tenant,
            project: "Payments",
            mode: "query",
            retrieval_mode: "fusion",
            query: "which database?",
            generated_at: NOW,
            memories: &self.memories,
            turns: &self.turns,
            weak_links: self.weak_links,
            audience: self.audience,
            format: self.format,
            token_budget: self.token_budget,
        };
        bundle::render(graph, &request).unwrap()
    }

    fn markdown(&self, graph: &Graph) -> String {
        self.render(graph).markdown.unwrap()
    }

    fn json(&self, graph: &Graph) -> Value {
        serde_json::from_str(&self.render(graph).json.unwrap()).unwrap()
    }
}

/// A decision with a reason, a conflict, a closed memory, a weak link, a turn.
fn graph() -> Graph {
    let mut decision = memory(1, "Use Postgres", "We chose Postgres for the ledger.");
    decision.memory.kind = Kind::Decision;
    decision.evidence[0].1.text = "ok, Postgres it is".to_owned();
    let mut closed = memory(4, "Use MySQL", "We chose MySQL.");
    closed.memory.valid_to = Some(NOW.plus(-Millis::DAY));
    let mut weak = link(3, 2, 3, Relationship::RelatesTo);
    weak.confidence = Confidence::Weak;
    let memories = [
        decision,
        memory(2, "Audit needs SQL", "The audit needs SQL reports."),
        memory(3, "No SQL", "The audit needs no SQL."),
        closed,
    ];
    let links = [
        link(1, 1, 2, Relationship::DependsOn),
        link(2, 3, 2, Relationship::Contradicts),
        weak,
        link(4, 4, 1, Relationship::RelatesTo),
    ];
    let records = memories.into_iter().map(|m| Record::Memory(Box::new(m)));
    let links = links.into_iter().map(|l| Record::Link(Box::new(l)));
    let turn = Record::Turn(Box::new(turn(1, "OK, Postgres it is")), None);
    Graph::collect(records.chain(links).chain([turn])).unwrap()
}

#[test]
fn a_bundle_has_its_sections_in_order_and_only_what_holds() {
    let text = Asked::of(&[1, 2, 3, 4]).markdown(&graph());
    let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(
        sections,
        [
            "How To Use",
            "Memory Summary",
            "Key Facts By Node Type",
            "Decisions With Reasons",
            "Contradictions And Updates",
            "Timeline Of Recent Changes",
            "Relationship Map",
            "Replay Evidence",
            "Full Node Appendix",
        ]
    );
    assert!(!text.contains("MySQL"), "{text}");
    assert!(
        text.contains("3 current memories of project Payments: 2 facts, 1 decision. 1 link, 1 open conflict."),
        "{text}"
    );
    let decision = format!(
        "- Use Postgres: We chose Postgres for the ledger. [{}] Because of: \"Audit needs SQL\".",
        memory_id(1)
    );
    assert!(text.contains(&decision), "{text}");
    assert!(
        text.contains("\"No SQL\" contradicts \"Audit needs SQL\" (open conflict) [edge "),
        "{text}"
    );
    assert!(!text.contains("relates_to"), "weak links are left out");
    let mut asked = Asked::of(&[1, 2, 3]);
    asked.weak_links = WeakLinks::Shown;
    assert!(asked.markdown(&graph()).contains("-> relates_to ->"));
}

#[test]
fn words_that_support_something_stand_once() {
    let mut asked = Asked::of(&[1, 2, 3]);
    let text = asked.markdown(&graph());
    assert_eq!(text.matches("Postgres it is").count(), 1, "{text}");
    // The evidence of the second says what its content says.
    assert_eq!(
        text.matches("- user, 2026-02-19: \"The audit needs SQL reports.\"")
            .count(),
        0
    );
    asked.turns = vec![turn(1, "").id];
    let text = asked.markdown(&graph());
    assert_eq!(text.to_lowercase().matches("postgres it is").count(), 1, "{text}");
    asked.format = BundleFormat::Json;
    let json = asked.json(&graph());
    assert_eq!(
        json.to_string().to_lowercase().matches("postgres it is").count(),
        1,
        "{json}"
    );
}

#[test]
fn people_read_full_dates_and_no_ids_before_the_appendix() {
    let mut asked = Asked::of(&[1, 2, 3]);
    asked.audience = Audience::Human;
    let text = asked.markdown(&graph());
    let (before, appendix) = text.split_once("## Full Node Appendix").unwrap();
    assert!(
        before.contains("19 February 2026") && before.contains("As of 1 March 2026."),
        "{before}"
    );
    assert!(before.contains("-> depends on ->"), "{before}");
    for id in [memory_id(1).to_string(), link_id(2).to_string()] {
        assert!(!before.contains(&id), "{before}");
    }
    assert!(appendix.contains(&format!("- id: {}", memory_id(1))));
}

#[test]
fn json_has_the_members_and_closed_memories_are_not_in_it() {
    let mut asked = Asked::of(&[1, 2, 3, 4]);
    asked.format = BundleFormat::Json;
    let json = asked.json(&graph());
    let members: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        members,
        [
            "schema_version",
            "export_type",
            "generated_at",
            "tenant_id",
            "project",
            "mode",
            "retrieval_mode",
            "audience",
            "query",
            "summary",
            "nodes",
            "edges",
            "conflicts",
            "replay_hits",
            "timeline",
            "stats",
            "render_hints",
        ]
    );
    assert_eq!(json["export_type"], "context_bundle");
    assert_eq!(json["nodes"].as_array().unwrap().len(), 3);
    assert_eq!(json["conflicts"][0]["state"], "open");
    assert_eq!(json["stats"]["node_type_breakdown"]["fact"], 2);
    assert_eq!(json["render_hints"]["truncation_flags"], serde_json::json!([]));
    let text = asked.render(&graph()).json.unwrap();
    assert_eq!(json["render_hints"]["token_estimate"], text.len().div_ceil(4));
}

#[test]
fn a_small_budget_keeps_the_best_of_every_section_and_names_the_cuts() {
    let memories: Vec<_> = (1..100u16)
        .map(|n| {
            let mut record = memory(
                n,
                &format!("Label number {n}"),
                &format!("Something about {n} that is long enough."),
            );
            record.memory.kind = if n % 2 == 0 { Kind::Decision } else { Kind::Fact };
            record
        })
        .collect();
    let links: Vec<_> = (1..50u16).map(|n| link(n, n, n + 1, Relationship::PartOf)).collect();
    let graph = pages_support::graph(&memories, &links);
    let mut asked = Asked::of(&(1..100).collect::<Vec<_>>());
    asked.token_budget = 500;
    let bundle = asked.render(&graph);
    let text = bundle.markdown.unwrap();
    assert!(text.len() <= 2_000 && text.len() > 1_500, "{}", text.len());
    for title in ["Key Facts", "Decisions With", "Timeline", "Relationship Map"] {
        assert!(text.contains(title), "{title} in\n{text}");
    }
    assert!(
        bundle.truncation_flags.contains(&"key_facts"),
        "{:?}",
        bundle.truncation_flags
    );
    assert!(text.contains("Left out for the token budget, in part or whole: "));
    assert!(text.contains("Label number 1:") && text.contains("Label number 2:"));
}

#[test]
fn one_memory_larger_than_the_budget_is_cut_and_marked() {
    let long = "wörter ".repeat(2_000);
    let graph = pages_support::graph(&[memory(1, &"L".repeat(790), &long)], &[]);
    for format in [BundleFormat::Markdown, BundleFormat::Json] {
        let mut asked = Asked::of(&[1]);
        asked.format = format;
        asked.token_budget = 550;
        let bundle = asked.render(&graph);
        let text = bundle.markdown.or(bundle.json).unwrap();
        assert!(text.len() <= 2_200 && text.contains("LLL"), "{}", text.len());
        assert!(!bundle.truncation_flags.is_empty(), "{text}");
    }
}

#[test]
fn secrets_do_not_get_into_a_bundle() {
    let key = "sk-abcdefghijklmnopqrstuvwx";
    let graph = pages_support::graph(&[memory(1, "Key", &format!("The key is {key}."))], &[]);
    let mut asked = Asked::of(&[1]);
    asked.format = BundleFormat::Both;
    let bundle = asked.render(&graph);
    assert!(bundle.redactions >= 1);
    assert!(!format!("{bundle:?}").contains("abcdefgh"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_budget_is_exceeded(
        texts in prop::collection::vec((any::<String>(), "\\PC{1,400}", 0..7usize), 1..20),
        budget in 280usize..3_000,
        format in prop::sample::select(vec![BundleFormat::Markdown, BundleFormat::Json, BundleFormat::Both]),
        human in any::<bool>(),
    ) {
        let memories: Vec<_> = texts
            .iter()
            .zip(1u16..)
            .map(|((label, content, kind), number)| {
                let label: String = label.chars().filter(|c| !c.is_control()).take(200).collect();
                let mut record = memory(number, &format!("L{label}"), content);
                record.memory.kind = Kind::ALL[*kind];
                record
            })
            .collect();
        let count = u16::try_from(memories.len()).unwrap();
        let links: Vec<_> = (1..count).map(|n| link(n, n, n + 1, Relationship::ALL[usize::from(n) % 8])).collect();
        let graph = pages_support::graph(&memories, &links);
        let mut asked = Asked::of(&(1..=count).collect::<Vec<_>>());
        (asked.format, asked.token_budget) = (format, budget);
        asked.audience = if human { Audience::Human } else { Audience::Llm };
        let bundle = asked.render(&graph);
        let bytes = bundle.markdown.as_deref().map_or(0, str::len) + bundle.json.as_deref().map_or(0, str::len);
        prop_assert!(bytes <= budget * 4, "{} bytes of {}", bytes, budget * 4);
        let again = asked.render(&graph);
        prop_assert_eq!(&bundle, &again);
        if let Some(json) = &bundle.json {
            prop_assert!(serde_json::from_str::<Value>(json).is_ok());
        }
    }
}
