//! What is asked of the index, and what it answers.

use waggle_memory::id::TurnId;
use waggle_memory::kind::Kind;
use waggle_memory::rank::{Parts, Tuning};
use waggle_memory::tables::Item;
use waggle_memory::time::Millis;

/// A question.
#[derive(Clone, Copy, Debug)]
pub struct IndexQuery<'a> {
    /// The words. Blank is allowed with kinds or tags: then everything that passes the filter is found, newest first.
    pub text: &'a str,
    /// The meaning, embedded by the index's own model; None for words only.
    pub vector: Option<QueryVector<'a>>,
    /// What may be found at all.
    pub filter: &'a Filter,
    /// What goes first among near-equals.
    pub prefer: Preferences<'a>,
    /// The caller's present, for recency.
    pub now: Millis,
    /// Most hits.
    pub limit: usize,
    /// Whether the counts of what was removed, and the matched words of each hit, are wanted. Never changes the order.
    pub explain: bool,
    /// The constants.
    pub tuning: &'a Tuning,
}

/// A vector of the query: component i is `components[i] * scale`.
#[derive(Clone, Copy, Debug)]
pub struct QueryVector<'a> {
    /// One signed byte a dimension, in -127..=127.
    pub components: &'a [i8],
    /// Their unit.
    pub scale: f32,
}

/// What goes first among near-equals; empty means no preference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preferences<'a> {
    /// A session.
    pub session: &'a str,
    /// Comparison key of an agent.
    pub agent_key: &'a str,
}

/// Which items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Items {
    /// Memories and turns.
    #[default]
    Both,
    /// Memories only.
    Memories,
    /// Turns only.
    Turns,
}

/// Which state a memory must be in. A turn is never closed or scheduled: what was said stays said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateFilter {
    /// Those that hold at a moment, and the others as told.
    At {
        /// The moment.
        at: Millis,
        /// Those that ended before, too.
        closed: bool,
        /// Those that begin later, too.
        scheduled: bool,
    },
    /// The world as it was then: memories that held, turns said by then.
    AsOf(Millis),
}

/// What may be found. Everything is decided while scanning, before the best are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Memories, turns, both.
    pub items: Items,
    /// Namespaces that the credential may read, each with everything below it; None for all.
    pub namespaces: Option<Vec<String>>,
    /// Comparison keys of projects; None for all.
    pub projects: Option<Vec<String>>,
    /// With `projects`: what belongs to no project, too.
    pub tenant_wide: bool,
    /// Exactly this session (strict scope).
    pub session: Option<String>,
    /// Exactly this agent's comparison key (strict scope).
    pub agent_key: Option<String>,
    /// Any of these kinds; empty for all. Turns have no kind, so any kind leaves them out.
    pub kinds: Vec<Kind>,
    /// All of these tags; empty for all. Leaves turns out, too.
    pub tags: Vec<String>,
    /// World clock.
    pub state: StateFilter,
    /// Record clock: recorded by then.
    pub known_at: Option<Millis>,
    /// Half open, on `valid_from` where stated, else on `observed_at`.
    pub period: Option<(Millis, Millis)>,
}

impl Filter {
    /// Everything that holds at `now`.
    pub fn current(now: Millis) -> Self {
        Self {
            items: Items::Both,
            namespaces: None,
            projects: None,
            tenant_wide: true,
            session: None,
            agent_key: None,
            kinds: Vec::new(),
            tags: Vec::new(),
            state: StateFilter::At {
                at: now,
                closed: false,
                scheduled: false,
            },
            known_at: None,
            period: None,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexAnswer {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Items that were ranked.
    pub candidates: usize,
    /// Words of the query that can be looked for; 0 with a text: only punctuation and stop words.
    pub query_terms: usize,
    /// Highest cosine of what passed the filter.
    pub best_cosine: Option<f32>,
    /// Whether raw scores say that nothing matches by word or meaning; then there are no hits.
    pub no_match: bool,
    /// What passed the filter, and what the filter removed.
    pub counts: Counts,
    /// Items that passed the filter and still wait for their vector.
    pub awaiting_vectors: usize,
}

/// How many items there are behind an answer. Those of `removed_*` match by word or meaning and pass everything that
/// stands before in this list; they are counted when there are no hits or when an explanation is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the index; do not show: it includes what the credential may not read.
    pub documents: usize,
    /// In the namespaces and the scope of the query.
    pub in_scope: usize,
    /// Passed the whole filter.
    pub passed: usize,
    /// Readable, but of another project, session or agent.
    pub removed_by_scope: usize,
    /// Recorded or said after `known_at` or `as_of`.
    pub removed_by_record: usize,
    /// In scope, but of another kind, without the tags, or not of the wanted items.
    pub removed_by_type_or_tag: usize,
    /// In scope, but ended.
    pub removed_closed: usize,
    /// In scope, but not yet begun.
    pub removed_scheduled: usize,
    /// Outside the period.
    pub removed_by_period: usize,
}

/// One item of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// A memory, or a turn without a found memory of its own.
    pub item: Item,
    /// For a memory: the found turns that it came from, best first. They are not hits of their own.
    pub turns: Vec<TurnId>,
    /// The score.
    pub score: f32,
    /// A turn whose memories were ended.
    pub superseded: bool,
    /// BM25 of its own, 0 without a matching word.
    pub bm25: f32,
    /// Place in the lane of words, from 1.
    pub lexical_rank: Option<u32>,
    /// Cosine of its own.
    pub cosine: Option<f32>,
    /// Place in the lane of meaning, from 1.
    pub dense_rank: Option<u32>,
    /// Words of the query that it contains, as in the query's analysis; filled for explanations.
    pub matched_terms: Vec<String>,
    /// What the score is made of.
    pub parts: Parts,
}
