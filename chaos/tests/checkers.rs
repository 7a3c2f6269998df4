//! The search for an order, against one that tries them all; and histories that are good by construction, or broken in
//! one place.

use proptest::prelude::*;
use waggle_chaos::checker::Verdict;
use waggle_chaos::checker::linear::{self, Call, Model as _, STEPS_MAX};
use waggle_chaos::checker::lists::{self, Append, Happened, Read};
use waggle_chaos::checker::register::{self, Input, Output, Register, State};
use waggle_chaos::dice::Dice;

type Operation = Call<Input, Output>;

/// All orders of all subsets that contain every answered call. Slow and hard to get wrong.
fn brute_force(calls: &[Operation]) -> bool {
    fn explore(calls: &[Operation], done: &mut Vec<usize>, state: State) -> bool {
        let left: Vec<usize> = (0..calls.len()).filter(|index| !done.contains(index)).collect();
        if left.iter().all(|&index| calls[index].answer.is_none()) {
            return true;
        }
        for &index in &left {
            // Whoever had ended before this one began must have been ordered before it.
            let may_be_next = left.iter().all(|&other| {
                let ended = calls[other].answer.as_ref().map(|(_, end)| *end);
                other == index || ended.is_none_or(|end| end >= calls[index].start)
            });
            if !may_be_next {
                continue;
            }
            let told = calls[index].answer.as_ref().map(|(output, _)| output);
            if let Some(after) = Register.step(&state, &calls[index].input, told) {
                done.push(index);
                if explore(calls, done, after) {
                    return true;
                }
                done.pop();
            }
        }
        false
    }
    explore(calls, &mut Vec::new(), Register.initial())
}

fn wish(dice: &mut Dice, value: u64) -> Input {
    match dice.below(10) {
        0 => Input::Create { value },
        1..=3 => Input::Write { value },
        4..=5 => Input::Cas {
            expected: u32::try_from(dice.between(1, 4)).expect("small"),
            value,
        },
        6 if dice.below(3) == 0 => Input::Delete,
        _ => Input::Read,
    }
}

/// Linearizable by construction: each operation happens at one moment between its start and its end. Some are never
/// answered; of those some never happen.
fn good(dice: &mut Dice, count: usize, together: u64) -> Vec<Operation> {
    let mut state = register::apply(State::Absent, Input::Create { value: 1_000_000 }).0;
    let made = Output::Created {
        version: 1,
        fresh: true,
    };
    let mut calls = vec![Call {
        input: Input::Create { value: 1_000_000 },
        start: 0,
        answer: Some((made, 1)),
    }];
    for index in 0..count as u64 {
        let moment = 100 + index * 10;
        let input = wish(dice, index);
        let (start, end) = (
            moment - dice.below(together * 10 + 1).min(98),
            moment + dice.below(together * 10 + 1),
        );
        let unanswered = dice.below(8) == 0 && input != Input::Read;
        if unanswered && dice.below(2) == 0 {
            calls.push(Call {
                input,
                start,
                answer: None,
            });
            continue;
        }
        let (after, output) = register::apply(state, input);
        state = after;
        calls.push(Call {
            input,
            start,
            answer: (!unanswered).then_some((output, end)),
        });
    }
    calls
}

/// Anything: starts, ends and answers by chance. Mostly not linearizable.
fn any(dice: &mut Dice, count: usize) -> Vec<Operation> {
    (0..count as u64)
        .map(|index| {
            let start = dice.below(20);
            let input = if index == 0 {
                Input::Create { value: 0 }
            } else {
                wish(dice, index)
            };
            let version = u32::try_from(dice.between(1, 3)).expect("small");
            let output = match input {
                Input::Create { .. } => Output::Created {
                    version: 1,
                    fresh: true,
                },
                Input::Read => match dice.below(6) {
                    0 => Output::Absent,
                    _ => Output::Value {
                        version,
                        value: dice.below(count as u64),
                    },
                },
                Input::Write { .. } => Output::Updated { version: version + 1 },
                Input::Cas { expected, .. } if dice.below(2) == 0 => Output::Updated { version: expected + 1 },
                Input::Cas { .. } => Output::Conflict { current: version },
                Input::Delete => Output::Deleted {
                    now: dice.below(2) == 0,
                },
            };
            let answered = index == 0 || dice.below(4) > 0;
            Call {
                input,
                start,
                answer: answered.then_some((output, start + dice.below(15))),
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_search_agrees_with_trying_all_orders(seed: u64, count in 1_usize..7, like_a_good_one: bool) {
        let mut dice = Dice::new(seed);
        let mut calls = if like_a_good_one { good(&mut dice, count, 5) } else { any(&mut dice, count) };
        if like_a_good_one && dice.below(2) == 0 {
            // A good one with one answer changed: close to the border.
            let index = dice.index(calls.len());
            if let Some((Output::Value { version, .. } | Output::Updated { version }, _)) = &mut calls[index].answer {
                *version += 1;
            }
        }
        let expected = brute_force(&calls);
        register::sharpen(&mut calls);
        let found = linear::check(&Register, &calls, STEPS_MAX);
        prop_assert_eq!(found == Verdict::Pass, expected, "{} for {:?}", found, calls);
    }

    #[test]
    fn good_histories_pass(seed: u64, count in 1_usize..120, together in 0_u64..6) {
        let calls = good(&mut Dice::new(seed), count, together);
        prop_assert_eq!(linear::check(&Register, &calls, STEPS_MAX), Verdict::Pass);
    }

    #[test]
    fn one_violation_in_a_good_history_is_found(seed: u64, count in 5_usize..80, together in 0_u64..4) {
        let mut dice = Dice::new(seed);
        let mut calls = good(&mut dice, count, together);
        // A read after everything else that shows what was never written: no order explains it.
        let start = 1_000_000;
        let wrong = Output::Value { version: 3, value: 999_999 };
        calls.push(Call { input: Input::Read, start, answer: Some((wrong, start + 1)) });
        register::sharpen(&mut calls);
        prop_assert_eq!(linear::check(&Register, &calls, STEPS_MAX).word(), "fail");
    }

    #[test]
    fn a_stale_read_in_a_quiet_history_is_found(seed: u64, count in 5_u64..60) {
        let mut dice = Dice::new(seed);
        let mut calls = Vec::new();
        let mut state = State::Absent;
        for index in 0..count {
            let input = if index == 0 { Input::Create { value: 0 } } else { Input::Write { value: index } };
            let (after, output) = register::apply(state, input);
            state = after;
            calls.push(Call { input, start: index * 10, answer: Some((output, index * 10 + 5)) });
        }
        let old = dice.below(count - 1);
        let stale = Output::Value { version: u32::try_from(old + 1).expect("small"), value: old };
        calls.push(Call { input: Input::Read, start: count * 10, answer: Some((stale, count * 10 + 1)) });
        prop_assert_eq!(linear::check(&Register, &calls, STEPS_MAX).word(), "fail");
    }

    #[test]
    fn good_lists_pass_and_one_violation_is_found(seed: u64, count in 3_usize..60, kind in 0_u64..5) {
        let mut dice = Dice::new(seed);
        let (mut list, mut appends, mut reads): (Vec<u64>, Vec<Append>, Vec<Read>) = Default::default();
        for value in 0..count as u64 {
            let at = 100 + value * 10;
            let (start, end) = (at - dice.below(30), at + dice.below(30));
            let happened = match dice.below(8) {
                0 => Happened::No,
                1 => Happened::Unknown,
                _ => Happened::Yes,
            };
            if happened == Happened::Yes || (happened == Happened::Unknown && dice.below(2) == 0) {
                list.push(value);
            }
            let end = (happened != Happened::Unknown).then_some(end);
            appends.push(Append { value, start, end, happened, position: None });
            if dice.below(2) == 0 {
                reads.push(Read { start: at, end: at + 1, first: 0, values: list.clone() });
            }
        }
        let end = 100_000;
        reads.push(Read { start: end, end: end + 1, first: 0, values: list.clone() });
        prop_assert_eq!(lists::check(&appends, &reads), Verdict::Pass);
        prop_assume!(list.len() >= 3);
        let acknowledged = appends.iter().find(|append| append.happened == Happened::Yes).map(|append| append.value);
        prop_assume!(acknowledged.is_some());
        let last = reads.last_mut().expect("pushed above");
        match kind {
            0 => last.values.retain(|value| Some(*value) != acknowledged),
            1 => last.values.push(list[0]),
            2 => last.values.swap(0, list.len() - 1),
            3 => last.values.push(7_777_777),
            _ => {
                let shorter = Read { start: end + 10, end: end + 11, first: 0, values: list[..list.len() - 1].to_vec() };
                reads.push(shorter);
            }
        }
        // Two neighbours swapped in the only read that shows both, begun at the same time, are an order like any other.
        let swapped_within_reach = kind == 2 && list.len() < 8;
        prop_assume!(!swapped_within_reach);
        prop_assert_eq!(lists::check(&appends, &reads).word(), "fail");
    }
}

/// Long faults leave many operations unknown, and each of them may happen at any later time.
#[test]
fn many_unknown_operations_do_not_explode() {
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let mut calls = good(&mut dice, 80, 5);
        for call in &mut calls {
            if matches!(call.input, Input::Write { .. } | Input::Cas { .. }) && dice.below(2) == 0 {
                call.answer = None;
            }
        }
        let mut unseen = calls.clone();
        register::sharpen(&mut unseen);
        assert_eq!(
            linear::check(&Register, &unseen, STEPS_MAX),
            Verdict::Pass,
            "seed {seed}"
        );
        // The same, and a violation: all orders have to be excluded.
        let wrong = Output::Value { version: 70, value: 3 };
        calls.push(Call {
            input: Input::Read,
            start: 1_000_000,
            answer: Some((wrong, 1_000_001)),
        });
        register::sharpen(&mut calls);
        assert_eq!(
            linear::check(&Register, &calls, STEPS_MAX).word(),
            "fail",
            "seed {seed}"
        );
    }
}
