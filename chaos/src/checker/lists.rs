//! Lists that only grow. Each value is appended at most once, so a read says by itself who wrote, in which order, and what
//! is missing: violations are found without a search, however long the history is.

use std::collections::{BTreeMap, BTreeSet};

use super::Verdict;
use crate::history::{Action, Answer, Operation, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    Yes,
    /// Refused: nobody may ever see it.
    No,
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Append {
    pub value: u64,
    pub start: u64,
    /// None while unknown.
    pub end: Option<u64>,
    pub happened: Happened,
    /// Where it came to stand, if the answer said so; the first position is 0.
    pub position: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Read {
    pub start: u64,
    pub end: u64,
    /// The position of the first value shown: long lists are shown from their end.
    pub first: usize,
    pub values: Vec<u64>,
}

impl Read {
    fn length(&self) -> usize {
        self.first + self.values.len()
    }
}

pub fn check(appends: &[Append], reads: &[Read]) -> Verdict {
    let mut violations = Vec::new();
    let known: BTreeMap<u64, &Append> = appends.iter().map(|append| (append.value, append)).collect();
    let mut order: BTreeMap<usize, u64> = BTreeMap::new();
    for append in appends.iter().filter(|append| append.happened == Happened::Yes) {
        if let Some(position) = append.position
            && let Some(other) = order.insert(position, append.value)
        {
            violations.push(format!(
                "two values at position {position}: {other} and {}",
                append.value
            ));
        }
    }
    for read in reads {
        one_read(read, &known, &mut order, &mut violations);
        for append in appends.iter().filter(|append| append.happened == Happened::Yes) {
            let before = append.end.is_some_and(|end| end < read.start);
            // Without a position it may stand in the part that was not shown.
            let shown = append
                .position
                .map_or(read.first == 0, |position| position >= read.first);
            if before && shown && !read.values.contains(&append.value) {
                violations.push(format!(
                    "lost: {} was acknowledged before the read at {} and is not in it",
                    append.value, read.start
                ));
            }
        }
    }
    in_real_time(&order, &known, &mut violations);
    growing(reads, &mut violations);
    Verdict::of(violations)
}

fn one_read(
    read: &Read,
    known: &BTreeMap<u64, &Append>,
    order: &mut BTreeMap<usize, u64>,
    violations: &mut Vec<String>,
) {
    let mut seen = BTreeSet::new();
    for (offset, &value) in read.values.iter().enumerate() {
        let position = read.first + offset;
        if !seen.insert(value) {
            violations.push(format!(
                "duplicated: {value} stands twice in the read at {}",
                read.start
            ));
        }
        match known.get(&value) {
            None => violations.push(format!("phantom: nobody appended {value}, read at {}", read.start)),
            Some(append) if append.happened == Happened::No => {
                violations.push(format!("phantom: {value} was refused and is read at {}", read.start));
            }
            Some(append) if append.start > read.end => violations.push(format!(
                "phantom: {value} is read at {}, before it was sent at {}",
                read.start, append.start
            )),
            Some(_) => {}
        }
        let other = *order.entry(position).or_insert(value);
        if other != value {
            violations.push(format!(
                "reordered: position {position} is {value} in the read at {} and {other} elsewhere",
                read.start
            ));
        }
    }
}

/// What ended before another began stands before it.
fn in_real_time(order: &BTreeMap<usize, u64>, known: &BTreeMap<u64, &Append>, violations: &mut Vec<String>) {
    let mut earliest: Option<(u64, u64)> = None; // end and value of a later position
    for value in order.values().rev() {
        let Some(append) = known.get(value) else { continue };
        if let Some((end, later)) = earliest
            && append.start > end
        {
            violations.push(format!(
                "reordered: {value} began at {} and stands before {later}, which had ended at {end}",
                append.start
            ));
        }
        if let Some(end) = append.end
            && earliest.is_none_or(|(known, _)| end < known)
        {
            earliest = Some((end, *value));
        }
    }
}

/// A later read shows at least as much.
fn growing(reads: &[Read], violations: &mut Vec<String>) {
    let mut by_end: Vec<&Read> = reads.iter().collect();
    by_end.sort_by_key(|read| read.end);
    let mut by_start = by_end.clone();
    by_start.sort_by_key(|read| read.start);
    let (mut longest, mut ended): (Option<&Read>, _) = (None, by_end.into_iter().peekable());
    for read in by_start {
        while let Some(before) = ended.next_if(|before| before.end < read.start) {
            if longest.is_none_or(|longest| before.length() > longest.length()) {
                longest = Some(before);
            }
        }
        if let Some(longest) = longest.filter(|longest| longest.length() > read.length()) {
            violations.push(format!(
                "lost: the read at {} shows {} values, an earlier one at {} showed {}",
                read.start,
                read.length(),
                longest.start,
                longest.length()
            ));
        }
    }
}

/// The versions of each memory are such a list: a write appends one.
pub fn check_versions(history: &[Operation]) -> Verdict {
    let mut keys: BTreeMap<&str, (Vec<Append>, Vec<Read>)> = BTreeMap::new();
    for operation in history.iter().filter(|operation| !operation.repeat) {
        let (appends, reads) = keys.entry(&operation.key).or_default();
        match &operation.action {
            Action::Create { value } | Action::Write { value } | Action::Cas { value, .. } => {
                let (happened, position) = match &operation.outcome {
                    Outcome::Unknown { .. } => (Happened::Unknown, None),
                    Outcome::Fail { .. } => (Happened::No, None),
                    Outcome::Ok { answer } => match answer {
                        Answer::Created {
                            version, fresh: true, ..
                        }
                        | Answer::Updated { version } => {
                            (Happened::Yes, usize::try_from(version.saturating_sub(1)).ok())
                        }
                        _ => (Happened::No, None),
                    },
                };
                appends.push(Append {
                    value: *value,
                    start: operation.start,
                    end: operation.end.filter(|_| happened != Happened::Unknown),
                    happened,
                    position,
                });
            }
            Action::Read => {
                if let (Some(Answer::Value { first, versions, .. }), Some(end)) = (operation.answer(), operation.end) {
                    reads.push(Read {
                        start: operation.start,
                        end,
                        first: usize::try_from(first.saturating_sub(1)).unwrap_or(0),
                        values: versions.clone(),
                    });
                }
            }
            Action::Delete | Action::Query | Action::Link { .. } => {}
        }
    }
    keys.into_iter()
        .fold(Verdict::Pass, |verdict, (key, (appends, reads))| {
            verdict.and(match check(&appends, &reads) {
                Verdict::Fail { violations } => Verdict::of(
                    violations
                        .iter()
                        .map(|what| format!("versions of {key}: {what}"))
                        .collect(),
                ),
                other => other,
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(value: u64, start: u64, end: u64) -> Append {
        Append {
            value,
            start,
            end: Some(end),
            happened: Happened::Yes,
            position: None,
        }
    }

    fn read(start: u64, end: u64, values: &[u64]) -> Read {
        Read {
            start,
            end,
            first: 0,
            values: values.to_vec(),
        }
    }

    #[test]
    fn each_kind_of_violation_is_named() {
        let appends = [append(1, 0, 1), append(2, 2, 3), append(3, 2, 9)];
        let refused = Append {
            happened: Happened::No,
            ..append(4, 0, 1)
        };
        let unknown = Append {
            happened: Happened::Unknown,
            end: None,
            ..append(5, 0, 1)
        };
        let mut all = appends.to_vec();
        all.extend([refused, unknown]);
        for (reads, found) in [
            (vec![read(10, 11, &[1, 2, 3])], "pass"),
            (vec![read(10, 11, &[1, 3, 2])], "pass"),
            (vec![read(10, 11, &[1, 3, 2, 5])], "pass"),
            (vec![read(4, 5, &[1, 2])], "pass"),
            (vec![read(10, 11, &[1, 3])], "fail: lost"),
            (vec![read(10, 11, &[1, 2, 3, 3])], "fail: duplicated"),
            (vec![read(10, 11, &[2, 1, 3])], "fail: reordered"),
            (
                vec![read(10, 11, &[1, 2, 3]), read(10, 11, &[1, 3, 2])],
                "fail: reordered",
            ),
            (vec![read(10, 11, &[1, 2, 3, 9])], "fail: phantom"),
            (vec![read(10, 11, &[1, 2, 3, 4])], "fail: phantom"),
            (vec![read(0, 1, &[2])], "fail: phantom"),
            (
                vec![read(10, 11, &[1, 2, 3, 5]), read(12, 13, &[1, 2, 3])],
                "fail: lost",
            ),
        ] {
            let verdict = check(&all, &reads).to_string();
            assert!(verdict.starts_with(found), "{reads:?}: {verdict}");
        }
    }

    #[test]
    fn a_list_shown_from_its_end_lacks_nothing() {
        let appends: Vec<Append> = (0..10)
            .map(|value| Append {
                position: Some(usize::try_from(value).expect("small")),
                ..append(value, value * 2, value * 2 + 1)
            })
            .collect();
        let shown = Read {
            first: 7,
            ..read(100, 101, &[7, 8, 9])
        };
        assert_eq!(check(&appends, &[shown]), Verdict::Pass);
        let hole = Read {
            first: 7,
            ..read(100, 101, &[7, 9])
        };
        assert_eq!(check(&appends, &[hole]).word(), "fail");
    }
}
