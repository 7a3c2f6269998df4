//! Linearizability of one object: is there an order of its operations that respects real time and that the object,
//! doing one after the other, would have answered in the same way?
//!
//! The search of Wing and Gong with Lowe's memory: operations that may come next are tried in turn; what was reached once
//! with the same operations done and the same state is not tried again. Of unanswered operations that ask for the same,
//! only the one that began first is tried: whatever a later one explains, it explains, too. Its time may explode, so its steps are bounded,
//! and beyond the bound nobody can say.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use super::Verdict;

/// What an object does. Deterministic: the state after an operation follows from the state before it.
pub trait Model {
    type State: Clone + Eq + Hash + Debug;
    type Input: Debug + PartialEq;
    type Output: Debug;

    fn initial(&self) -> Self::State;

    /// The state afterwards, or None if the object would not have answered so. Without an output any answer is right.
    fn step(&self, state: &Self::State, input: &Self::Input, output: Option<&Self::Output>) -> Option<Self::State>;
}

/// One operation on the object. One that certainly had no effect is left out before.
#[derive(Clone, Debug)]
pub struct Call<I, O> {
    pub input: I,
    pub start: u64,
    /// Output and time of the answer. None: unknown, so it may happen at any time after its start, or never.
    pub answer: Option<(O, u64)>,
}

pub const STEPS_MAX: usize = 2_000_000;

/// Pass, fail with the operation at which every order ends, or unknown after `steps_max` tries.
pub fn check<M: Model>(model: &M, calls: &[Call<M::Input, M::Output>], steps_max: usize) -> Verdict {
    Search::new(model, calls).run(steps_max)
}

/// The ends of the list of events.
const HEAD: usize = 0;

#[derive(Clone, Copy)]
enum Event {
    Head,
    Call(usize),
    Return(usize),
}

struct Search<'a, M: Model> {
    model: &'a M,
    calls: &'a [Call<M::Input, M::Output>],
    events: Vec<Event>,
    /// Doubly linked, so that an operation is taken out and put back in constant time.
    next: Vec<usize>,
    before: Vec<usize>,
    /// Of each call: where its two events stand.
    places: Vec<(usize, Option<usize>)>,
    returns_left: usize,
    /// Of an unanswered call: the one before it that asks for the same.
    twins: Vec<Option<usize>>,
}

impl<'a, M: Model> Search<'a, M> {
    fn new(model: &'a M, calls: &'a [Call<M::Input, M::Output>]) -> Self {
        let mut times: Vec<(u64, u8, Event)> = Vec::with_capacity(calls.len() * 2);
        for (index, call) in calls.iter().enumerate() {
            // At the same moment a start goes before an end: they overlap, which forbids nothing.
            times.push((call.start, 0, Event::Call(index)));
            if let Some((_, end)) = &call.answer {
                times.push((*end, 1, Event::Return(index)));
            }
        }
        times.sort_by_key(|(time, kind, _)| (*time, *kind));
        let mut events = vec![Event::Head];
        events.extend(times.into_iter().map(|(_, _, event)| event));
        let count = events.len();
        let mut places = vec![(HEAD, None); calls.len()];
        for (place, event) in events.iter().enumerate() {
            match event {
                Event::Head => {}
                Event::Call(index) => places[*index].0 = place,
                Event::Return(index) => places[*index].1 = Some(place),
            }
        }
        Self {
            model,
            calls,
            next: (1..=count).collect(), // `count` is behind the last one
            before: (0..=count).map(|place| place.saturating_sub(1)).collect(),
            returns_left: places.iter().filter(|(_, end)| end.is_some()).count(),
            twins: twins::<M>(calls, &events),
            events,
            places,
        }
    }

    fn run(mut self, steps_max: usize) -> Verdict {
        let end = self.events.len();
        let mut state = self.model.initial();
        let mut done = Bits::new(self.calls.len());
        let mut seen: HashSet<(Bits, M::State)> = HashSet::new();
        let mut stack: Vec<(usize, M::State)> = Vec::new();
        let mut furthest = (0, None);
        let mut place = self.next[HEAD];
        let mut steps = 0;
        while self.returns_left > 0 {
            steps += 1;
            if steps > steps_max {
                return Verdict::unknown(format!(
                    "no order was found within {steps_max} steps for {} operations",
                    self.calls.len()
                ));
            }
            // An operation that was not answered may be the next one, too; behind the last event there is none.
            let candidate = match self.events.get(place) {
                Some(Event::Call(index)) if place < end => Some(*index),
                _ => None,
            };
            if let Some(index) = candidate {
                if self.twins[index].is_some_and(|twin| !done.has(twin)) {
                    place = self.next[place];
                    continue;
                }
                let call = &self.calls[index];
                let output = call.answer.as_ref().map(|(output, _)| output);
                let after = self.model.step(&state, &call.input, output);
                // What was not answered and changes nothing here need not happen here.
                if let Some(after) = after.filter(|after| output.is_some() || *after != state) {
                    done.set(index);
                    if seen.insert((done.clone(), after.clone())) {
                        stack.push((index, std::mem::replace(&mut state, after)));
                        self.take_out(index);
                        place = self.next[HEAD];
                        continue;
                    }
                    done.clear(index);
                }
                place = self.next[place];
                continue;
            }
            // An answer before any order explains it: the latest choice was wrong.
            if let Some(Event::Return(stuck)) = self.events.get(place)
                && (furthest.1.is_none() || stack.len() > furthest.0)
            {
                furthest = (stack.len(), Some((*stuck, state.clone())));
            }
            let Some((index, before)) = stack.pop() else {
                return Verdict::fail(self.explain(furthest));
            };
            state = before;
            done.clear(index);
            self.put_back(index);
            place = self.next[self.places[index].0];
        }
        Verdict::Pass
    }

    fn explain(&self, (count, stuck): (usize, Option<(usize, M::State)>)) -> String {
        let Some((index, state)) = stuck else {
            return "not linearizable".to_owned();
        };
        let call = &self.calls[index];
        format!(
            "not linearizable: of {} operations at most {count} fit in an order; then the object is {state:?}, and \
             {:?} at {} was answered {:?}",
            self.calls.len(),
            call.input,
            call.start,
            call.answer
        )
    }

    fn take_out(&mut self, index: usize) {
        let (start, end) = self.places[index];
        self.unlink(start);
        if let Some(end) = end {
            self.unlink(end);
            self.returns_left -= 1;
        }
    }

    /// In the opposite order of taking out, so that every neighbour is there again.
    fn put_back(&mut self, index: usize) {
        let (start, end) = self.places[index];
        if let Some(end) = end {
            self.relink(end);
            self.returns_left += 1;
        }
        self.relink(start);
    }

    fn unlink(&mut self, place: usize) {
        let (before, next) = (self.before[place], self.next[place]);
        self.next[before] = next;
        self.before[next] = before;
    }

    fn relink(&mut self, place: usize) {
        let (before, next) = (self.before[place], self.next[place]);
        self.next[before] = place;
        self.before[next] = place;
    }
}

fn twins<M: Model>(calls: &[Call<M::Input, M::Output>], events: &[Event]) -> Vec<Option<usize>> {
    let mut twins = vec![None; calls.len()];
    let mut earlier: Vec<usize> = Vec::new();
    for event in events {
        let Event::Call(index) = event else { continue };
        if calls[*index].answer.is_none() {
            let same = earlier
                .iter()
                .rev()
                .find(|one| calls[**one].input == calls[*index].input);
            twins[*index] = same.copied();
            earlier.push(*index);
        }
    }
    twins
}

/// Which operations are done.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn has(&self, index: usize) -> bool {
        self.0[index / 64] & (1 << (index % 64)) != 0
    }

    fn set(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn clear(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }
}
