//! Context bundles: what a graph knows of a topic as one text to paste into a conversation, or to hand to a person.
//!
//! The caller chooses the memories and their order; this module shows the current ones, redacts, and cuts to a token
//! budget by whole items. What was cut is named.

mod dates;
mod fill;
mod json;
mod markdown;
mod text;
mod view;

use waggle_memory::id::{MemoryId, TenantId, TurnId};
use waggle_memory::time::Millis;

use crate::graph::Graph;
use crate::redaction::Redactor;
use view::View;

/// Who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// An agent: short dates, ids beside every item.
    Llm,
    /// A person: dates and names in full, ids in the appendix only.
    Human,
}

impl Audience {
    /// The word of the tools.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Human => "human",
        }
    }
}

/// In which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleFormat {
    /// Markdown alone.
    Markdown,
    /// JSON alone.
    Json,
    /// Both; each gets half of the budget.
    Both,
}

/// What was asked, and what was found.
#[derive(Clone, Debug)]
pub struct BundleRequest<'a> {
    /// Whose graph it is.
    pub tenant: &'a TenantId,
    /// The project asked for; empty: the whole tenant.
    pub project: &'a str,
    /// How the memories were chosen: prime, query or graph.
    pub mode: &'a str,
    /// How they were found, if they were searched for.
    pub retrieval_mode: &'a str,
    /// What was asked.
    pub query: &'a str,
    /// Now: it decides which memories are current, and is shown.
    pub generated_at: Millis,
    /// The memories, best first.
    pub memories: &'a [MemoryId],
    /// Turns that were found, best first.
    pub turns: &'a [TurnId],
    /// Whether weak links are shown.
    pub weak_links: WeakLinks,
    /// Who reads it.
    pub audience: Audience,
    /// In which form.
    pub format: BundleFormat,
    /// Most tokens of the whole, a token being four bytes.
    pub token_budget: usize,
}

/// Whether weak links are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeakLinks {
    /// The default.
    LeftOut,
    /// On request.
    Shown,
}

/// A bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// In Markdown, if asked for.
    pub markdown: Option<String>,
    /// In JSON, if asked for.
    pub json: Option<String>,
    /// Tokens of the forms together.
    pub token_estimate: usize,
    /// Sections that were cut, by key, in either form.
    pub truncation_flags: Vec<&'static str>,
    /// Current memories among those asked for.
    pub node_count: usize,
    /// Links among them.
    pub edge_count: usize,
    /// Places where a secret was replaced.
    pub redactions: usize,
}

/// Makes a bundle. Gives the same bytes for the same graph and request.
pub fn render(graph: &Graph, request: &BundleRequest<'_>) -> Result<Bundle, serde_json::Error> {
    let redactor = Redactor::default();
    let view = View::of(graph, request, &redactor);
    let each = match request.format {
        BundleFormat::Both => request.token_budget / 2,
        _ => request.token_budget,
    };
    let mut bundle = Bundle {
        node_count: view.nodes.len(),
        edge_count: view.links.len(),
        redactions: redactor.count(),
        ..Bundle::default()
    };
    if request.format != BundleFormat::Json {
        let (text, cut) = markdown::render(&view, request, each);
        bundle.add(&text, &cut);
        bundle.markdown = Some(text);
    }
    if request.format != BundleFormat::Markdown {
        let (text, cut) = json::render(&view, request, each)?;
        // The members alone are about 220 tokens. Beside Markdown, JSON that does not fit is left out.
        if request.format == BundleFormat::Both && tokens(text.len()) > each {
            bundle.truncation_flags.push("json");
        } else {
            bundle.add(&text, &cut);
            bundle.json = Some(text);
        }
    }
    Ok(bundle)
}

impl Bundle {
    fn add(&mut self, text: &str, cut: &[&'static str]) {
        self.token_estimate += tokens(text.len());
        for flag in cut {
            if !self.truncation_flags.contains(flag) {
                self.truncation_flags.push(flag);
            }
        }
    }
}

/// Four bytes are a token; a part of one counts.
pub fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}
