//! memory_replay: the turns that a memory rests on, and those under the memories that it reflects on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waggle_memory::id::{MemoryId, TurnId};
use waggle_memory::kind::Relationship;
use waggle_memory::memory::{Evidence, TurnSpan};
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_memory::transcript::Turn;
use waggle_proto::wire::{self, ReplayEntry, ReplayReply, ReplayRequest, ReplaySpan};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Steps along reflects_on where no policy says otherwise.
const DEPTH_CAP: u32 = 3;
/// Memories of one walk.
const MEMORIES_MAX: usize = 4_096;
/// Pieces of evidence of one walk that are read.
const EVIDENCE_MAX: usize = 20_000;
/// Entries of one page.
const PAGE_ENTRIES_MAX: usize = 200;
/// Text of one page in bytes, unless its first entry alone is longer.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) async fn handle(engine: &Arc<Engine>, request: ReplayRequest) -> Result<ReplayReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let start = wire::memory_id("memory_id", &request.memory_id)?;
    let page = Page {
        full: request.full,
        entry_bytes_max: usize::try_from(request.entry_bytes_max)
            .unwrap_or(PAGE_BYTES_MAX)
            .clamp(1, PAGE_BYTES_MAX),
        shown: request.shown.into_iter().collect(),
        skip: usize::try_from(request.skip).unwrap_or(usize::MAX),
    };
    let depth = request.depth.unwrap_or(DEPTH_CAP).min(DEPTH_CAP);
    call.linearize().await?;
    call.read(move |_, rows| {
        // A merged id leads to what took it in.
        let start = rows.follow(start);
        if rows.memory(start).is_none() {
            return Ok(ReplayReply {
                depth_cap: DEPTH_CAP,
                ..ReplayReply::default()
            });
        }
        let walk = Walk::from(rows, start, depth);
        let ordered = walk.ordered();
        let mut reply = ReplayReply {
            found: true,
            depth_used: walk.depth_used,
            depth_cap: DEPTH_CAP,
            walk_truncated: walk.truncated,
            rows_total: count(ordered.len()),
            ..ReplayReply::default()
        };
        page.fill(rows, &ordered, &mut reply);
        Ok(reply)
    })
    .await
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What memories of the walk say about one turn.
struct Rests {
    observed_at: Millis,
    session: String,
    turn_index: u32,
    spans: Vec<(u32, u32)>,
    /// With their distance, nearest first once the walk is over.
    memories: BTreeSet<(u32, MemoryId)>,
}

struct Walk {
    turns: BTreeMap<TurnId, Rests>,
    depth_used: u32,
    truncated: bool,
}

impl Walk {
    /// Breadth first, targets in id order; every memory once, so cycles end.
    fn from(rows: TenantRows<'_>, start: MemoryId, depth: u32) -> Self {
        let mut walk = Self {
            turns: BTreeMap::new(),
            depth_used: 0,
            truncated: false,
        };
        let mut visited = BTreeSet::from([start]);
        let mut evidence_left = EVIDENCE_MAX;
        let mut level = vec![start];
        for distance in 0..=depth {
            if level.is_empty() {
                break;
            }
            walk.depth_used = distance;
            let mut next = Vec::new();
            for id in &level {
                let evidence = rows.evidence(*id, evidence_left);
                evidence_left -= evidence.len();
                walk.truncated |= evidence_left == 0;
                for (_, evidence) in evidence {
                    if let Some(span) = &evidence.turn {
                        walk.rest(span, &evidence, *id, distance);
                    }
                }
                if distance == depth {
                    continue;
                }
                for target in rows.targets(*id, Relationship::ReflectsOn, MEMORIES_MAX) {
                    if visited.contains(&target) || rows.memory(target).is_none() {
                        continue;
                    }
                    if visited.len() == MEMORIES_MAX {
                        walk.truncated = true;
                        break;
                    }
                    visited.insert(target);
                    next.push(target);
                }
            }
            level = next;
        }
        walk
    }

    fn rest(&mut self, span: &TurnSpan, evidence: &Evidence, memory: MemoryId, distance: u32) {
        let rests = self.turns.entry(span.turn).or_insert_with(|| Rests {
            observed_at: evidence.observed_at,
            session: evidence.scope.session_id.clone(),
            turn_index: span.turn_index,
            spans: Vec::new(),
            memories: BTreeSet::new(),
        });
        rests.spans.push((span.start, span.end));
        if !rests.memories.iter().any(|(_, known)| *known == memory) {
            rests.memories.insert((distance, memory));
        }
    }

    /// Turns in the order in which they were said.
    fn ordered(&self) -> Vec<(&TurnId, &Rests)> {
        let mut ordered: Vec<(&TurnId, &Rests)> = self.turns.iter().collect();
        ordered.sort_by(|(a, x), (b, y)| {
            let key = |rests: &Rests| (rests.observed_at, rests.session.clone(), rests.turn_index);
            key(x).cmp(&key(y)).then(a.cmp(b))
        });
        ordered
    }
}

/// What part of the walk is asked for, and how.
struct Page {
    full: bool,
    entry_bytes_max: usize,
    shown: BTreeSet<u32>,
    skip: usize,
}

impl Page {
    fn fill(&self, rows: TenantRows<'_>, ordered: &[(&TurnId, &Rests)], reply: &mut ReplayReply) {
        let left: Vec<_> = ordered
            .iter()
            .filter(|(id, _)| !self.shown.contains(&wire::short_hash(true, &id.bytes())))
            .skip(self.skip)
            .collect();
        reply.rows_left = count(left.len());
        let mut bytes = 0;
        for (id, rests) in left.into_iter().take(PAGE_ENTRIES_MAX) {
            let entry = self.entry(rows, **id, rests);
            bytes += entry.text.len();
            if bytes > PAGE_BYTES_MAX && !reply.entries.is_empty() {
                break;
            }
            reply.entries.push(entry);
        }
    }

    fn entry(&self, rows: TenantRows<'_>, id: TurnId, rests: &Rests) -> ReplayEntry {
        let spans = united(&rests.spans);
        let mut entry = ReplayEntry {
            turn_id: id.bytes().to_vec(),
            memory_ids: rests.memories.iter().map(|(_, id)| id.bytes().to_vec()).collect(),
            distance: rests.memories.first().map_or(0, |(distance, _)| *distance),
            spans: spans
                .iter()
                .map(|(start, end)| ReplaySpan {
                    start: *start,
                    end: *end,
                })
                .collect(),
            ..ReplayEntry::default()
        };
        // A row that is gone hides no other: the entry says so.
        let Some(turn) = rows.turn(id) else {
            entry.gone = true;
            return entry;
        };
        let text = if self.full {
            turn.text.clone()
        } else {
            quoted(&turn, &spans)
        };
        let (text, cut) = cut_text(text, self.entry_bytes_max);
        entry.original_bytes = u64::try_from(turn.text.len()).unwrap_or(u64::MAX);
        entry.namespace = rows
            .project(&turn.scope.project)
            .map(|project| project.namespace)
            .unwrap_or_default();
        entry.scope = Some(wire::scope(&turn.scope));
        entry.role = u32::from(turn.role.number());
        entry.turn_index = turn.turn_index;
        entry.created_at = turn.recorded_at.0;
        entry.observed_at = turn.observed_at.0;
        entry.text = text;
        entry.cut = cut;
        entry
    }
}

/// Spans that overlap or touch become one.
fn united(spans: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut sorted: Vec<(u32, u32)> = spans.iter().copied().filter(|(start, end)| start < end).collect();
    sorted.sort_unstable();
    let mut united: Vec<(u32, u32)> = Vec::new();
    for (start, end) in sorted {
        match united.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => united.push((start, end)),
        }
    }
    united
}

/// The spans, in order, joined by one newline.
fn quoted(turn: &Turn, spans: &[(u32, u32)]) -> String {
    let part = |(start, end): &(u32, u32)| {
        let (start, end) = (usize::try_from(*start).ok()?, usize::try_from(*end).ok()?);
        turn.text.get(start..end)
    };
    spans.iter().filter_map(part).collect::<Vec<_>>().join("\n")
}

fn cut_text(mut text: String, bytes_max: usize) -> (String, bool) {
    if text.len() <= bytes_max {
        return (text, false);
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    (text, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_or_touch_are_one() {
        type Spans<'a> = &'a [(u32, u32)];
        let cases: [(Spans<'_>, Spans<'_>); 4] = [
            (&[(5, 9), (0, 5)], &[(0, 9)]),
            (&[(0, 4), (2, 3)], &[(0, 4)]),
            (&[(6, 8), (0, 4)], &[(0, 4), (6, 8)]),
            (&[(3, 3)], &[]),
        ];
        for (spans, expect) in cases {
            assert_eq!(united(spans), expect, "{spans:?}");
        }
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut_text("äöü".to_owned(), 3), ("ä".to_owned(), true));
        assert_eq!(cut_text("äöü".to_owned(), 6), ("äöü".to_owned(), false));
    }
}
