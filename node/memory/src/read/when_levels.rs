//! The levels of the calendar that a date names: a month does not contradict a day in it.

use super::term::{Term, TermKind};

/// The levels that the dates in `terms` name, coarse to fine: level, key, words.
pub(super) fn when_levels(terms: &[Term]) -> Vec<(&'static str, String, String)> {
    let dates: Vec<&Term> = terms.iter().filter(|t| t.kind == TermKind::Date).collect();
    let (days, clocks): (Vec<&Term>, Vec<&Term>) = dates.iter().partition(|t| !t.text.starts_with("t:"));
    let join = |terms: &[&Term]| {
        let keys: Vec<&str> = terms.iter().map(|t| t.text.as_str()).collect();
        let shown: Vec<&str> = terms.iter().map(|t| t.shown.as_str()).collect();
        (keys.join(" "), shown.join(" "))
    };
    let mut levels = Vec::new();
    match days.as_slice() {
        [] => {}
        [day] => {
            let shown = || day.shown.clone();
            match day.days {
                // A birthday has no year.
                Some(_) if day.text.starts_with("md:") => levels.push(("day", day.text.clone(), shown())),
                None => levels.push(("weekday", day.text.clone(), shown())),
                Some((first, last)) => {
                    let span = i64::from(last.since((jiff::Unit::Day, first)).map_or(0, |s| s.get_days()));
                    let quarter = (first.month() - 1) / 3 + 1;
                    let whole = span == 0 || first.day() == 1;
                    let fits = |most: i64| whole && span <= most;
                    if fits(366) {
                        levels.push(("year", first.year().to_string(), shown()));
                    }
                    if fits(92) {
                        levels.push(("quarter", format!("{} q{quarter}", first.year()), shown()));
                    }
                    if fits(31) {
                        levels.push(("month", format!("{} m{}", first.year(), first.month()), shown()));
                    }
                    if !whole || span == 0 {
                        levels.push(("day", day.text.clone(), shown()));
                    }
                }
            }
        }
        several => {
            let (value, shown) = join(several);
            levels.push(("span", value, shown));
        }
    }
    if !clocks.is_empty() {
        let (value, shown) = join(&clocks);
        levels.push(("time", value, shown));
    }
    levels
}
