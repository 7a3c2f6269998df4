//! A graph as one page that works from disk: no server, no network, nothing loaded.
//!
//! The page's own policy forbids everything but its own script and style, by their hashes. The graph stands in it as
//! JSON in which no character can end the block, and its script puts every text into the page as text.

mod data;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use waggle_memory::id::TenantId;
use waggle_memory::time::Millis;

use crate::graph::Graph;
use crate::redaction::Redactor;

const SCRIPT: &str = concat!(
    include_str!("html/layout.js"),
    include_str!("html/parts.js"),
    include_str!("html/page.js")
);
const STYLE: &str = include_str!("html/page.css");

/// Most memories of a page: what a browser draws smoothly.
pub const MEMORIES_MAX: usize = 5_000;
/// Most links of a page, the strongest first.
pub const LINKS_MAX: usize = 50_000;

/// What a page is about.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions<'a> {
    /// Whose graph it is.
    pub tenant: &'a TenantId,
    /// The project that was asked for; empty: all.
    pub project: &'a str,
    /// Now: it decides which memories are current. It is not shown, so that the same graph gives the same page later.
    pub generated_at: Millis,
    /// Whether memories move to where their links pull them.
    pub layout: Layout,
}

/// How memories are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Links pull, neighbours push.
    Physics,
    /// By project and number of links, the same every time.
    Fixed,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The file.
    pub html: String,
    /// Memories in it.
    pub node_count: usize,
    /// Links in it.
    pub edge_count: usize,
    /// Memories that are left out.
    pub nodes_left_out: usize,
    /// Places where a secret was replaced.
    pub redactions: usize,
}

/// When something of a graph changed last: by a write, or because a validity began or ended.
fn last_change(graph: &Graph, now: Millis) -> Millis {
    let memories = graph.memories().flat_map(|record| {
        let memory = &record.memory;
        let all = [
            Some(memory.recorded_at),
            Some(memory.updated_at),
            Some(memory.valid_from),
            memory.valid_to,
        ];
        all.into_iter().flatten()
    });
    let links = graph.links().flat_map(|link| {
        let resolved = link.resolution.as_ref().and_then(|resolution| resolution.at);
        std::iter::once(link.created_at).chain(resolved)
    });
    memories.chain(links).filter(|at| *at <= now).max().unwrap_or_default()
}

/// Makes a page. Gives the same bytes for the same graph and options.
pub fn render(graph: &Graph, options: PageOptions<'_>) -> Result<Page, serde_json::Error> {
    let redactor = Redactor::default();
    // Between this moment and now nothing began or ended, so both give the same states.
    let options = PageOptions {
        generated_at: last_change(graph, options.generated_at),
        ..options
    };
    let data = data::collect(graph, options, &redactor);
    let json = escaped(&serde_json::to_string(&data)?);
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    Ok(Page {
        html: page(&policy, &json),
        node_count: data.nodes.len(),
        edge_count: data.links.len(),
        nodes_left_out: graph.memory_count().saturating_sub(data.nodes.len()),
        redactions: redactor.count(),
    })
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// JSON that is safe inside of a script element: `<` never appears, nor what old scripts take for a line break.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Nothing of the graph is in here but `json`.
fn page(policy: &str, json: &str) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Memory graph</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1 id="title">Memory graph</h1><span id="facts" class="facts"></span><button id="theme" type="button">Dark</button></header>
<div id="notice" role="status" hidden></div>
<nav id="side" aria-label="Search and filters">
<div class="filters">
<label class="field">Search<input id="search" type="search" placeholder="Words in label, content, tags" autocomplete="off" spellcheck="false"></label>
<div id="kinds" class="kinds" role="group" aria-label="Types"></div>
<label class="field">Project<select id="project"><option value="">all projects</option></select></label>
<div class="pair">
<label class="field">Tag<select id="tag"><option value="">all tags</option></select></label>
<label class="field">State<select id="state"><option value="">all states</option></select></label>
</div>
<div class="checks">
<label><input id="weak" type="checkbox" checked>weak links</label>
<label><input id="conflicts" type="checkbox"><span id="conflict-count">only open conflicts</span></label>
</div>
</div>
<div id="count" role="status"></div>
<ul id="list" class="list"></ul>
</nav>
<main id="map">
<canvas id="view" tabindex="0" role="img" aria-label="Map of memories and links; the list beside it has the same memories"></canvas>
<div class="legend">dashed: weak link · <b>red</b>: open conflict · pale: closed</div>
<div class="tools"><button id="in" type="button" aria-label="Zoom in">+</button><button id="out" type="button" aria-label="Zoom out">−</button><button id="fit" type="button">Fit</button></div>
</main>
<aside id="detail" aria-label="Memory" hidden></aside>
<script id="data" type="application/json">{json}</script>
<script>{SCRIPT}</script>
</body>
</html>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_script_nor_style_ends_its_own_element() {
        assert!(!SCRIPT.contains("</") && !STYLE.contains('<'));
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("eval"));
        assert!(!SCRIPT.contains("http") && !STYLE.contains("url("));
        assert!(
            !SCRIPT.contains('\r') && !STYLE.contains('\r'),
            "the hash is of the bytes that a browser reads"
        );
    }
}
