//! One memory as an object with a version: created once, written, compared and set, deleted for good.

use std::collections::BTreeMap;

use super::Verdict;
use super::linear::{self, Call, Model};
use crate::history::{Action, Answer, Operation, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nobody stored it yet.
    Absent,
    Live {
        version: u32,
        value: u64,
    },
    /// Deleted. Ids are never used again (I-21).
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    Create { value: u64 },
    Read,
    Write { value: u64 },
    Cas { expected: u32, value: u64 },
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// There it is, made by this call or before it.
    Created {
        version: u32,
        fresh: bool,
    },
    Value {
        version: u32,
        value: u64,
    },
    Updated {
        version: u32,
    },
    Conflict {
        current: u32,
    },
    Absent,
    Deleted {
        now: bool,
    },
}

pub struct Register;

impl Model for Register {
    type State = State;
    type Input = Input;
    type Output = Output;

    fn initial(&self) -> State {
        State::Absent
    }

    fn step(&self, state: &State, input: &Input, output: Option<&Output>) -> Option<State> {
        let (after, answer) = apply(*state, *input);
        output.is_none_or(|told| *told == answer).then_some(after)
    }
}

/// What the object becomes and answers.
pub fn apply(state: State, input: Input) -> (State, Output) {
    match (state, input) {
        (State::Absent, Input::Create { value }) => (
            State::Live { version: 1, value },
            Output::Created {
                version: 1,
                fresh: true,
            },
        ),
        (State::Live { version, .. }, Input::Create { .. }) => (state, Output::Created { version, fresh: false }),
        // A name is stored once in a run, so nobody creates what was deleted.
        (State::Gone, Input::Create { .. }) => (state, Output::Absent),
        (State::Live { version, value }, Input::Read) => (state, Output::Value { version, value }),
        (State::Live { version, .. }, Input::Cas { expected, .. }) if expected != version => {
            (state, Output::Conflict { current: version })
        }
        (State::Live { version, .. }, Input::Write { value } | Input::Cas { value, .. }) => {
            let version = version.saturating_add(1);
            (State::Live { version, value }, Output::Updated { version })
        }
        (State::Live { .. }, Input::Delete) => (State::Gone, Output::Deleted { now: true }),
        (State::Gone, Input::Delete) => (state, Output::Deleted { now: false }),
        (State::Absent | State::Gone, Input::Read | Input::Write { .. } | Input::Cas { .. })
        | (State::Absent, Input::Delete) => (state, Output::Absent),
    }
}

/// All registers of a history, one by one: an object's history is linearizable or not whatever the others do.
pub fn check(history: &[Operation], steps_max: usize) -> Verdict {
    let mut verdict = Verdict::Pass;
    for (key, calls) in calls(history) {
        let one = match linear::check(&Register, &calls, steps_max) {
            Verdict::Pass => Verdict::Pass,
            Verdict::Fail { violations } => {
                Verdict::of(violations.iter().map(|what| format!("{key}: {what}")).collect())
            }
            Verdict::Unknown { why } => Verdict::unknown(format!("{key}: {why}")),
        };
        verdict = verdict.and(one);
    }
    verdict
}

/// The calls of each key that say something about its register.
pub fn calls(history: &[Operation]) -> BTreeMap<&str, Vec<Call<Input, Output>>> {
    let mut keys: BTreeMap<&str, Vec<Call<Input, Output>>> = BTreeMap::new();
    // A repetition is no operation of its own: domain checks demand that it has no effect and the first answer.
    for operation in history.iter().filter(|operation| !operation.repeat) {
        let Some(input) = input(&operation.action) else {
            continue;
        };
        let answer = match (&operation.outcome, operation.end) {
            (Outcome::Fail { .. }, _) => continue,
            // A read that was not answered changes and says nothing.
            (Outcome::Unknown { .. }, _) | (_, None) if input == Input::Read => continue,
            (Outcome::Unknown { .. }, _) | (_, None) => None,
            (Outcome::Ok { answer }, Some(end)) => match output(answer) {
                Some(output) => Some((output, end)),
                None => continue,
            },
        };
        keys.entry(&operation.key).or_default().push(Call {
            input,
            start: operation.start,
            answer,
        });
    }
    keys.values_mut().for_each(|calls| sharpen(calls));
    keys
}

/// Instead of values that were perhaps written and certainly seen by nobody: all the same, so that they are twins.
const UNSEEN: u64 = u64::MAX;

/// Says of unanswered writes what the answers of others say: a value is written once, so whoever read it saw when it was
/// there and which version it made. What nobody saw differs in nothing. This loses no order, and saves most of the search.
pub fn sharpen(calls: &mut [Call<Input, Output>]) {
    let mut seen: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
    for call in calls.iter() {
        if let Some((Output::Value { version, value }, end)) = call.answer {
            let first = seen.entry(value).or_insert((version, end));
            first.1 = end.min(first.1);
        }
    }
    for call in calls.iter_mut().filter(|call| call.answer.is_none()) {
        let (Input::Create { value } | Input::Write { value } | Input::Cas { value, .. }) = &mut call.input else {
            continue;
        };
        let Some(&(version, end)) = seen.get(value) else {
            *value = UNSEEN;
            continue;
        };
        // It cannot have begun after it was seen; if the history says so, no order must explain it.
        let end = end.max(call.start);
        let output = match call.input {
            Input::Create { .. } => Output::Created { version, fresh: true },
            _ => Output::Updated { version },
        };
        call.answer = Some((output, end));
    }
}

fn input(action: &Action) -> Option<Input> {
    Some(match action {
        Action::Create { value } => Input::Create { value: *value },
        Action::Write { value } => Input::Write { value: *value },
        Action::Cas { expected, value } => Input::Cas {
            expected: *expected,
            value: *value,
        },
        Action::Delete => Input::Delete,
        Action::Read => Input::Read,
        Action::Query | Action::Link { .. } => return None,
    })
}

fn output(answer: &Answer) -> Option<Output> {
    Some(match answer {
        Answer::Created { version, fresh, .. } => Output::Created {
            version: *version,
            fresh: *fresh,
        },
        Answer::Updated { version } => Output::Updated { version: *version },
        Answer::Conflict { current } => Output::Conflict { current: *current },
        Answer::Absent => Output::Absent,
        Answer::Deleted { now } => Output::Deleted { now: *now },
        Answer::Value { version, value, .. } => Output::Value {
            version: *version,
            value: *value,
        },
        Answer::Found { .. } | Answer::Linked { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `c5` create, `r` read, `w7` write, `x2:8` compare with version 2 and set, `d` delete; `start-end`, or `start-` if
    /// never answered; the answer behind `=`: `v2:7` value, `u2` updated, `!3` conflict, `none`, `made`, `gone`, `was`.
    fn call(text: &str) -> Call<Input, Output> {
        let mut words = text.split_whitespace();
        let (what, time, told) = (words.next().expect("what"), words.next().expect("time"), words.next());
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text} in {what}"));
        let pair = |text: &str| {
            let (one, other) = text.split_once(':').expect("a pair");
            (u32::try_from(number(one)).expect("a version"), number(other))
        };
        let input = match what.split_at(1) {
            ("c", value) => Input::Create { value: number(value) },
            ("r", _) => Input::Read,
            ("w", value) => Input::Write { value: number(value) },
            ("x", rest) => {
                let (expected, value) = pair(rest);
                Input::Cas { expected, value }
            }
            _ => Input::Delete,
        };
        let (start, end) = time.split_once('-').expect("start-end");
        let output = told.map(|told| match told {
            "=none" => Output::Absent,
            "=made" => Output::Created {
                version: 1,
                fresh: true,
            },
            "=gone" => Output::Deleted { now: true },
            "=was" => Output::Deleted { now: false },
            _ => match told[1..].split_at(1) {
                ("v", rest) => {
                    let (version, value) = pair(rest);
                    Output::Value { version, value }
                }
                ("u", version) => Output::Updated {
                    version: u32::try_from(number(version)).expect("a version"),
                },
                (_, version) => Output::Conflict {
                    current: u32::try_from(number(version)).expect("a version"),
                },
            },
        });
        Call {
            input,
            start: number(start),
            answer: output.map(|output| (output, number(end))),
        }
    }

    #[test]
    fn histories_are_judged_as_a_person_would() {
        for (why, verdict, history) in [
            (
                "one after the other",
                "pass",
                &["c5 0-1 =made", "r 2-3 =v1:5", "w6 4-5 =u2", "r 6-7 =v2:6"][..],
            ),
            ("a stale read", "fail", &["c5 0-1 =made", "w6 4-5 =u2", "r 6-7 =v1:5"]),
            (
                "a read beside the write sees the old value",
                "pass",
                &["c5 0-1 =made", "w6 4-9 =u2", "r 6-7 =v1:5"],
            ),
            ("or the new one", "pass", &["c5 0-1 =made", "w6 4-9 =u2", "r 6-7 =v2:6"]),
            (
                "but not the new one and then the old one",
                "fail",
                &["c5 0-1 =made", "w6 4-9 =u2", "r 5-6 =v2:6", "r 7-8 =v1:5"],
            ),
            (
                "an unknown write that was seen",
                "pass",
                &["c5 0-1 =made", "w6 4-", "r 100-101 =v2:6"],
            ),
            (
                "an unknown write that never happened",
                "pass",
                &["c5 0-1 =made", "w6 4-", "r 100-101 =v1:5"],
            ),
            (
                "an unknown write that comes late",
                "pass",
                &["c5 0-1 =made", "w6 4-", "r 10-11 =v1:5", "r 100-101 =v2:6"],
            ),
            (
                "an unknown write that went away again",
                "fail",
                &["c5 0-1 =made", "w6 4-", "r 10-11 =v2:6", "r 100-101 =v1:5"],
            ),
            (
                "an unknown write seen before it was sent",
                "fail",
                &["c5 0-1 =made", "r 2-3 =v2:6", "w6 4-"],
            ),
            (
                "a write that happened twice",
                "fail",
                &["c5 0-1 =made", "w6 4-5 =u2", "r 6-7 =v3:6"],
            ),
            (
                "two winners of one version",
                "fail",
                &["c5 0-1 =made", "x1:6 2-9 =u2", "x1:7 3-8 =u2"],
            ),
            (
                "one winner, and a loser who sees it",
                "pass",
                &["c5 0-1 =made", "x1:6 2-9 =u2", "x1:7 3-8 =!2", "r 10-11 =v2:6"],
            ),
            (
                "deleted, and it answers again",
                "fail",
                &["c5 0-1 =made", "d 2-3 =gone", "r 4-5 =none", "r 6-7 =v1:5"],
            ),
            ("deleted twice", "fail", &["c5 0-1 =made", "d 2-3 =gone", "d 4-5 =gone"]),
            (
                "deleted, and asked again",
                "pass",
                &["c5 0-1 =made", "d 2-3 =gone", "d 4-5 =was"],
            ),
            ("a lost memory", "fail", &["c5 0-1 =made", "r 2-3 =none"]),
        ] {
            let calls: Vec<_> = history.iter().map(|text| call(text)).collect();
            let found = linear::check(&Register, &calls, linear::STEPS_MAX);
            assert_eq!(found.word(), verdict, "{why}: {found}");
        }
    }

    #[test]
    fn beyond_the_bound_nobody_can_say() {
        let calls: Vec<_> = ["c5 0-1 =made", "w6 4-5 =u2", "r 6-7 =v1:5"].map(call).into();
        assert_eq!(linear::check(&Register, &calls, 2).word(), "unknown");
    }
}
