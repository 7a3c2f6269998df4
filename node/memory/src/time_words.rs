//! What a query says about time, in English and outside quotation marks.

use crate::time::Millis;

/// Which end of the time line the query asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeOrder {
    /// None: by relevance.
    #[default]
    None,
    /// Newest valid_from first.
    Latest,
    /// Oldest valid_from first.
    Oldest,
    /// Closed ones first.
    Former,
}

/// What was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeIntent {
    /// Only this period, half open.
    pub period: Option<(Millis, Millis)>,
    /// How hits of one topic are ordered.
    pub order: TimeOrder,
    /// Closed memories are included and marked.
    pub include_closed: bool,
    /// The last 14 days are preferred, without a filter.
    pub prefer_recent: bool,
    /// The world as it was then.
    pub as_of: Option<Millis>,
    /// Scheduled memories, plans and due dates are included.
    pub include_scheduled: bool,
    /// The words that were understood, in order, as written in lower case.
    pub words: Vec<String>,
}

/// Reads the words about time in `query`.
pub fn interpret(_query: &str, _now: Millis) -> TimeIntent {
    TimeIntent::default()
}
