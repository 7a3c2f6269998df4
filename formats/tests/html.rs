//! The HTML page: self-contained, closed by its own policy, and data stays data.

#![allow(clippy::unwrap_used, reason = "a test")]

mod pages_support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pages_support::*;
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use waggle_formats::graph::Graph;
use waggle_formats::html::{self, Layout, Page, PageOptions};
use waggle_memory::kind::{Confidence, Relationship};
use waggle_memory::time::Millis;

fn render(graph: &Graph, layout: Layout) -> Page {
    render_at(graph, layout, NOW)
}

fn render_at(graph: &Graph, layout: Layout, now: Millis) -> Page {
    let tenant = tenant();
    let options = PageOptions {
        tenant: &tenant,
        project: "Payments",
        generated_at: now,
        layout,
    };
    html::render(graph, options).unwrap()
}

/// What stands between two marks, and what follows.
fn between<'a>(text: &'a str, open: &str, close: &str) -> (&'a str, &'a str) {
    let (_, rest) = text.split_once(open).unwrap();
    rest.split_once(close).unwrap()
}

fn data(page: &Page) -> Value {
    let (json, _) = between(
        &page.html,
        "<script id=\"data\" type=\"application/json\">",
        "</script>",
    );
    serde_json::from_str(json).unwrap()
}

#[test]
fn the_policy_names_the_hashes_of_its_script_and_style_and_nothing_else() {
    let page = render(&graph(&[memory(1, "a", "b")], &[]), Layout::Physics);
    let (policy, _) = between(&page.html, "Content-Security-Policy\" content=\"", "\"");
    let (style, rest) = between(&page.html, "<style>", "</style>");
    let (_, rest) = between(rest, "application/json\">", "</script>");
    let (script, rest) = between(rest, "<script>", "</script>");
    assert!(!rest.contains("<script"), "there is one script");
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let expected = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    );
    assert_eq!(policy, expected);
    for remote in [
        "http:",
        "https:",
        "src=",
        "href=",
        "url(",
        "@import",
        " style=",
        " onclick=",
    ] {
        assert!(!page.html.contains(remote), "{remote}");
    }
}

#[test]
fn the_page_has_what_it_shows() {
    let mut closed = memory(2, "Old", "It was so.");
    closed.memory.valid_to = Some(NOW.plus(-Millis::DAY));
    let mut weak = link(2, 2, 1, Relationship::RelatesTo);
    weak.confidence = Confidence::Weak;
    let graph = graph(
        &[memory(1, "New", "It is so."), closed],
        &[link(1, 1, 2, Relationship::Updates), weak],
    );
    let page = render(&graph, Layout::Fixed);
    let data = data(&page);
    assert_eq!(data["meta"]["physics"], false);
    assert_eq!(data["nodes"][0]["state"], "current");
    assert_eq!(data["nodes"][1]["state"], "closed");
    assert_eq!(data["nodes"][0]["evidence"][0][2], "It is so.");
    assert_eq!(
        data["links"][0],
        serde_json::json!([0, 1, "updates", 1.0, "inferred", "open", "the text says so"])
    );
    assert_eq!(data["links"][1][4], "weak");
    assert_eq!((page.node_count, page.edge_count, page.nodes_left_out), (2, 2, 0));
    assert_eq!(page, render(&graph, Layout::Fixed));
}

#[test]
fn above_the_bound_the_best_connected_are_shown_and_the_page_says_so() {
    let all = u16::try_from(html::MEMORIES_MAX).unwrap() + 7;
    let memories: Vec<_> = (1..=all).map(|n| memory(n, "x", "y")).collect();
    // The last seven are linked, and so stay.
    let links: Vec<_> = (all - 6..all)
        .map(|n| link(n, n, n + 1, Relationship::PartOf))
        .collect();
    let page = render(&graph(&memories, &links), Layout::Physics);
    assert_eq!(
        (page.node_count, page.edge_count, page.nodes_left_out),
        (html::MEMORIES_MAX, 6, 7)
    );
    let notice = data(&page)["meta"]["notices"][0].as_str().unwrap().to_owned();
    assert!(notice.contains("5000 best connected of 5007"), "{notice}");
}

#[test]
fn secrets_do_not_get_into_a_page() {
    let key = "sk-abcdefghijklmnopqrstuvwx";
    let page = render(
        &graph(&[memory(1, "Key", &format!("The key is {key}."))], &[]),
        Layout::Physics,
    );
    assert!(!page.html.contains("abcdefgh"));
    assert_eq!(page.redactions, 2, "content and evidence");
    assert_eq!(data(&page)["meta"]["redactions"], 2);
}

proptest! {
    #[test]
    fn no_text_leaves_the_data_block(
        text in prop_oneof![
            any::<String>(),
            prop::sample::select(vec![
                "</script><script>alert(1)</script>".to_owned(),
                "<!--<script>".to_owned(),
                "<img src=x onerror=alert(1)>".to_owned(),
                "\u{2028}\u{2029}]]>".to_owned(),
            ]),
        ],
    ) {
        let label = format!("L{text}");
        let page = render(&graph(&[memory(1, &label, &label)], &[]), Layout::Physics);
        let empty = render(&graph(&[], &[]), Layout::Physics);
        let tags = |page: &Page| page.html.matches('<').count();
        prop_assert_eq!(tags(&page), tags(&empty));
        let data = data(&page);
        let shown = data["nodes"][0]["label"].as_str();
        prop_assert_eq!(shown, Some(label.as_str()));
    }
}

#[test]
fn a_page_of_a_later_day_is_the_same_unless_something_ended_since() {
    let mut ends = memory(1, "Sale", "Everything is cheaper.");
    ends.memory.valid_to = Some(NOW.plus(5 * Millis::DAY));
    let graph = graph(&[ends, memory(2, "Shop", "It is open.")], &[]);
    let on_day = |day: i64| render_at(&graph, Layout::Fixed, NOW.plus(day * Millis::DAY)).html;
    assert_eq!(on_day(0), on_day(4));
    assert_ne!(on_day(4), on_day(6), "the sale is over");
    assert_eq!(on_day(6), on_day(60));
}
