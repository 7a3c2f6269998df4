//! What a query says about time, in English and outside quotation marks.

use jiff::civil::Date;

use crate::read::dates::{Direction, calendar_period, day_of, start_of, when};
use crate::read::list::list;
use crate::read::numbers::quantity;
use crate::read::token::{Token, TokenKind, tokens};
use crate::read::words::is_in;
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

/// Longest query looked at, in words; the rest says nothing about time.
const WORDS_MAX: usize = 512;

struct Reader {
    /// Words outside quotation marks; a quotation stands as an empty word.
    tokens: Vec<Token>,
    today: Option<Date>,
    now: Millis,
    intent: TimeIntent,
}

/// Reads the words about time in `query`.
pub fn interpret(query: &str, now: Millis) -> TimeIntent {
    let mut all = tokens(query);
    all.truncate(WORDS_MAX);
    let mut quoted = false;
    for token in &mut all {
        // Double quotation marks that the reader of tokens could not pair, and single ones.
        let mark = token.kind == TokenKind::Punct && matches!(token.text.as_str(), "'" | "‘" | "’" | "\"");
        quoted ^= mark;
        if token.kind == TokenKind::Quoted || mark || quoted {
            (token.kind, token.lower) = (TokenKind::Quoted, String::new());
        }
    }
    let mut reader = Reader {
        tokens: all,
        today: day_of(now),
        now,
        intent: TimeIntent::default(),
    };
    let mut at = 0;
    while at < reader.tokens.len() {
        at += reader.step(at).max(1);
    }
    reader.intent
}

impl Reader {
    fn word(&self, at: usize) -> &str {
        self.tokens
            .get(at)
            .filter(|t| t.kind == TokenKind::Word)
            .map_or("", |t| t.lower.as_str())
    }

    /// Whether the blank-separated words of `phrase` stand at `at`; how many they are.
    fn phrase(&self, at: usize, phrase: &str) -> Option<usize> {
        let count = phrase.split(' ').count();
        phrase
            .split(' ')
            .enumerate()
            .all(|(i, w)| self.word(at + i) == w)
            .then_some(count)
    }

    fn understood(&mut self, at: usize, taken: usize) -> usize {
        let words: Vec<&str> = self
            .tokens
            .get(at..at + taken)
            .unwrap_or_default()
            .iter()
            .map(|t| t.lower.as_str())
            .collect();
        self.intent.words.push(words.join(" "));
        taken
    }

    fn order(&mut self, order: TimeOrder) {
        if self.intent.order == TimeOrder::None {
            self.intent.order = order;
        }
    }

    /// Reads what stands at `at`; how many tokens it took.
    fn step(&mut self, at: usize) -> usize {
        const CHANGES: &[&str] = &[
            "what changed",
            "what has changed",
            "history of",
            "the history",
            "evolution of",
            "how has",
            "how did",
            "changes to",
        ];
        const FORMER: &[&str] = &[
            "previously",
            "formerly",
            "used to",
            "the old",
            "before that",
            "the previous",
            "the former",
        ];
        const OLDEST: &[&str] = &[
            "originally",
            "initially",
            "at first",
            "first discussed",
            "first decided",
            "first mentioned",
            "first proposed",
            "first chosen",
            "first choose",
            "the original",
            "the initial",
            "in the beginning",
        ];
        const LATEST: &[&str] = &[
            "latest",
            "newest",
            "most recent",
            "most recently",
            "current",
            "currently",
            "now",
            "right now",
            "still",
        ];
        const RECENT: &[&str] = &["recently", "lately", "recent"];
        const AHEAD: &[&str] = &[
            "planned",
            "upcoming",
            "next week",
            "next month",
            "next quarter",
            "next year",
            "next",
            "tomorrow",
            "scheduled",
        ];
        if let Some(taken) = self.as_of(at).or_else(|| self.period(at)) {
            return self.understood(at, taken);
        }
        let longest = |reader: &Self, list: &[&str]| list.iter().filter_map(|p| reader.phrase(at, p)).max();
        if let Some(taken) = longest(self, CHANGES) {
            // "How did X evolve": the verb decides.
            let asks = self.word(at) == "how";
            let moves =
                (at..at + 12).any(|i| is_in(list!("evolve evolved change changed develop developed"), self.word(i)));
            if !asks || moves {
                self.intent.include_closed = true;
                self.order(TimeOrder::Oldest);
                return self.understood(at, taken);
            }
        }
        if let Some(taken) = longest(self, OLDEST) {
            self.intent.include_closed = true;
            self.order(TimeOrder::Oldest);
            return self.understood(at, taken);
        }
        if let Some(taken) = longest(self, FORMER) {
            self.intent.include_closed = true;
            self.order(TimeOrder::Former);
            return self.understood(at, taken);
        }
        if let Some(taken) = longest(self, LATEST) {
            self.order(TimeOrder::Latest);
            return self.understood(at, taken);
        }
        if let Some(taken) = longest(self, RECENT) {
            self.intent.prefer_recent = true;
            return self.understood(at, taken);
        }
        if let Some(taken) = longest(self, AHEAD) {
            self.intent.include_scheduled = true;
            return self.understood(at, taken);
        }
        0
    }

    /// First and last day of the date at `at`, looking back, and how many tokens it takes.
    fn date(&self, at: usize) -> Option<(Date, Date, usize)> {
        let found = when(&self.tokens, at, self.today?, Direction::Backward)?;
        let (first, last) = found.days?;
        Some((first, last, found.taken))
    }

    /// "as of DATE", "back in YEAR": the end of the period named.
    fn as_of(&mut self, at: usize) -> Option<usize> {
        let lead = self.phrase(at, "as of").or_else(|| self.phrase(at, "back in"))?;
        if self.word(at + lead) == "now" {
            return None;
        }
        let (_, last, taken) = self.date(at + lead)?;
        self.intent.as_of = start_of(last).map(|at| at.plus(Millis::DAY - 1));
        Some(lead + taken)
    }

    fn set(&mut self, from: Option<Millis>, to: Option<Millis>) -> Option<()> {
        let (from, to) = (from?, to?);
        self.intent.period.get_or_insert((from, to));
        Some(())
    }

    /// Whether the word before `at` names a stretch of time: a unit or a weekday.
    fn is_part_of_time(&self, at: usize) -> bool {
        const STRETCHES: [&str; 13] = [
            "day",
            "night",
            "evening",
            "week",
            "weekend",
            "month",
            "year",
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
        ];
        let before = at.checked_sub(1).map_or("", |before| self.word(before));
        let singular = before.strip_suffix('s').unwrap_or(before);
        STRETCHES.contains(&singular) || singular == "sunday"
    }

    fn period(&mut self, at: usize) -> Option<usize> {
        const ALWAYS: Option<Millis> = Some(Millis(i64::MAX));
        const EVER: Option<Millis> = Some(Millis(i64::MIN));
        let after = |last: Date| start_of(last).map(|at| at.plus(Millis::DAY));
        match self.word(at) {
            day @ ("today" | "yesterday") => {
                let (first, last) = calendar_period(self.today?, "day", if day == "today" { 0 } else { -1 })?;
                self.set(start_of(first), after(last))?;
                Some(1)
            }
            word @ ("this" | "last" | "past" | "previous") => {
                let unit = self.word(at + 1).to_owned();
                if matches!(unit.as_str(), "week" | "month" | "quarter" | "year") {
                    let (first, last) = calendar_period(self.today?, &unit, if word == "this" { 0 } else { -1 })?;
                    self.set(start_of(first), after(last))?;
                    return Some(2);
                }
                // "last 7 days", "past two weeks"
                if !matches!(word, "last" | "past") {
                    return None;
                }
                let amount = quantity(&self.tokens, at + 1)?;
                let (count, unit) = amount.key.strip_prefix("q:")?.split_once(' ')?;
                let millis = match unit {
                    "ms" => count.parse::<i64>().ok()?,
                    "month" => count.parse::<i64>().ok()?.checked_mul(30 * Millis::DAY)?,
                    _ => return None,
                };
                self.set(Some(self.now.plus(millis.checked_neg()?)), Some(self.now.plus(1)))?;
                Some(1 + amount.taken)
            }
            "since" => {
                let (first, _, taken) = self.date(at + 1)?;
                self.set(start_of(first), ALWAYS)?;
                Some(1 + taken)
            }
            // "the week before August 3" names a week beside a date; what was said about it may lie on either side.
            "after" | "before" if self.is_part_of_time(at) => None,
            "after" => {
                let (_, last, taken) = self.date(at + 1)?;
                self.set(after(last), ALWAYS)?;
                Some(1 + taken)
            }
            "before" => {
                let (first, _, taken) = self.date(at + 1)?;
                self.set(EVER, start_of(first))?;
                Some(1 + taken)
            }
            "until" | "till" => {
                let (_, last, taken) = self.date(at + 1)?;
                self.set(EVER, after(last))?;
                Some(1 + taken)
            }
            "between" => {
                let (first, _, taken) = self.date(at + 1)?;
                let and = at + 1 + taken;
                if self.word(and) != "and" {
                    return None;
                }
                // The second date stands without a preposition of its own: read it as if after "in".
                let (_, last, more) = self.date(and + 1)?;
                if last < first {
                    return None;
                }
                self.set(start_of(first), after(last))?;
                Some(2 + taken + more)
            }
            "on" | "in" | "during" => {
                let (first, last, taken) = self.date(at + 1)?;
                self.set(start_of(first), after(last))?;
                Some(1 + taken)
            }
            _ => {
                // "3 days ago"
                let (first, last, taken) = self.date(at)?;
                let ago = self.word(at + taken - 1) == "ago";
                if !ago {
                    return None;
                }
                self.set(start_of(first), after(last))?;
                Some(taken)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wednesday, 10 February 2027, 12:00 UTC.
    const NOW: Millis = Millis(1_802_260_800_000);

    fn show(query: &str) -> String {
        let intent = interpret(query, NOW);
        let day = |at: Millis| match at.0 {
            i64::MAX | i64::MIN => "*".to_owned(),
            _ => at.to_string().chars().take(10).collect(),
        };
        let mut out = Vec::new();
        if let Some((from, to)) = intent.period {
            out.push(format!("{}..{}", day(from), day(to)));
        }
        if let Some(at) = intent.as_of {
            out.push(format!("as_of {at}"));
        }
        if intent.order != TimeOrder::None {
            out.push(format!("{:?}", intent.order).to_lowercase());
        }
        for (set, word) in [
            (intent.include_closed, "closed"),
            (intent.prefer_recent, "recent"),
            (intent.include_scheduled, "scheduled"),
        ] {
            if set {
                out.push(word.to_owned());
            }
        }
        out.join(" ")
    }

    #[test]
    fn words_about_time_are_read() {
        for (query, expected) in [
            ("what did we decide today", "2027-02-10..2027-02-11"),
            ("what did we do yesterday", "2027-02-09..2027-02-10"),
            ("decisions of this week", "2027-02-08..2027-02-15"),
            ("decisions of last week", "2027-02-01..2027-02-08"),
            ("last month", "2027-01-01..2027-02-01"),
            ("last quarter", "2026-10-01..2027-01-01"),
            ("this year", "2027-01-01..2028-01-01"),
            ("changes in the last 7 days", "2027-02-03..2027-02-10"),
            ("the past two weeks", "2027-01-27..2027-02-10"),
            ("since January", "2027-01-01..*"),
            ("after 2027-01-15", "2027-01-16..*"),
            ("before March 2026", "*..2026-03-01"),
            ("the week before March 2026", ""),
            ("on the Monday after January 5", ""),
            ("between January 5 and January 20", "2027-01-05..2027-01-21"),
            ("on January 5", "2027-01-05..2027-01-06"),
            ("in December", "2026-12-01..2027-01-01"),
            ("in 2025", "2025-01-01..2026-01-01"),
            ("3 days ago", "2027-02-07..2027-02-08"),
            ("recent decisions", "recent"),
            ("most recent decision", "latest"),
            ("latest auth token", "latest"),
            ("current jwt expiry", "latest"),
            ("are we still on MySQL", "latest"),
            ("what database did we originally choose", "oldest closed"),
            ("the original plan", "oldest closed"),
            ("what did we use previously", "former closed"),
            ("the old database", "former closed"),
            ("what did we use before that", "former closed"),
            ("as of 2026-12-31", "as_of 2026-12-31T23:59:59.999Z"),
            ("back in 2025", "as_of 2025-12-31T23:59:59.999Z"),
            ("what changed in auth", "oldest closed"),
            ("history of the retry policy", "oldest closed"),
            ("how did the retry policy evolve", "oldest closed"),
            ("how did we deploy", ""),
            ("upcoming releases", "scheduled"),
            ("what is due tomorrow", "scheduled"),
            ("plans for next week", "scheduled"),
            ("who said \"latest and greatest\"", ""),
            ("which currency do we use", ""),
            ("next.js version", ""),
            ("the last decision", ""),
        ] {
            assert_eq!(show(query), expected, "{query}");
        }
    }

    #[test]
    fn what_was_understood_is_named() {
        assert_eq!(
            interpret("latest decision since January", NOW).words,
            ["latest", "since january"]
        );
    }
}
