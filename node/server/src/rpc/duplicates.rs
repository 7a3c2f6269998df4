//! dedup_candidates: pairs of one project that say nearly the same. Each memory asks the vector index for its nearest
//! neighbours; nothing compares all with all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waggle_memory::id::MemoryId;
use waggle_memory::memory::{Memory, State, VectorDraft};
use waggle_memory::read::{Gate, StatementInput, blocking_gates};
use waggle_memory::tables::Item;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::{self, DuplicatePair, DuplicatesReply, DuplicatesRequest};

use super::scoped::Scoped;
use super::views;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use crate::plan;

/// Memories of the tenant that are looked through for those of the scope.
const LOOKED_THROUGH_MAX: usize = 50_000;
/// Memories whose neighbours are looked up; the newest.
const SCANNED_MAX: usize = 2_000;
/// Pairs that are kept; the nearest.
const PAIRS_MAX: usize = 500;
/// What an answer shows of a content; lists are shorter anyway.
const CONTENT_BYTES_MAX: usize = 1_024;
/// Bounds of the threshold.
const THRESHOLDS: std::ops::RangeInclusive<u32> = plan::CANDIDATE_THOUSANDTHS..=990;

pub(super) async fn handle(engine: &Arc<Engine>, request: DuplicatesRequest) -> Result<DuplicatesReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let scope = Scoped::of(&wire::scope_of(request.scope)?);
    let threshold = request.threshold_thousandths;
    if !THRESHOLDS.contains(&threshold) {
        return Err(CallError::invalid(
            "threshold",
            format!(
                "{threshold} thousandths; allowed are {} to {}",
                THRESHOLDS.start(),
                THRESHOLDS.end()
            ),
        ));
    }
    call.linearize().await?;
    let shard = call.shard;
    call.read(move |engine, rows| {
        let now = engine.clock.wall();
        let mut search = Search {
            scope: &scope,
            threshold,
            now,
            seen: BTreeSet::new(),
            best: BTreeSet::new(),
            memories: BTreeMap::new(),
            cut: false,
        };
        let mut scanned: Vec<Memory> = Vec::new();
        let walked = scope.newest(
            rows,
            LOOKED_THROUGH_MAX,
            SCANNED_MAX,
            |memory| memory.state_at(now) == State::Current,
            |memory| scanned.push(memory),
        );
        let mut awaiting = 0;
        for memory in &scanned {
            let item = Item::Memory(memory.id);
            let Some(vector) = rows.vector(item) else {
                awaiting += u32::from(rows.awaits_vector(item));
                continue;
            };
            let text = plan::meaning_of(&memory.label, &memory.content);
            let project = memory.scope.project_key();
            let near = plan::near(engine, rows, shard, &project, &text, &VectorDraft::Ready(vector), now);
            search.offer(rows, memory, near);
        }
        Ok(DuplicatesReply {
            scanned: u32::try_from(walked.taken).unwrap_or(u32::MAX),
            cut: walked.cut || search.cut,
            awaiting_vectors: awaiting,
            pairs: search.pairs(rows),
        })
    })
    .await
}

/// A pair, nearest first.
type Ranked = (Reverse<u32>, MemoryId, MemoryId);

struct Search<'a> {
    scope: &'a Scoped,
    threshold: u32,
    now: Millis,
    /// At most eight for each memory that was scanned.
    seen: BTreeSet<(MemoryId, MemoryId)>,
    best: BTreeSet<Ranked>,
    /// Those of the best pairs.
    memories: BTreeMap<MemoryId, Memory>,
    cut: bool,
}

impl Search<'_> {
    fn offer(&mut self, rows: TenantRows<'_>, memory: &Memory, near: Vec<plan::Near>) {
        for near in near {
            let other = near.memory;
            let far = near.similarity_thousandths < self.threshold;
            if other.id == memory.id || far || !self.scope.holds(rows, &other) {
                continue;
            }
            // The older one first.
            let (a, b) = (memory.id.min(other.id), memory.id.max(other.id));
            // The other end may see it a thousandth nearer: the first look counts.
            if !self.seen.insert((a, b)) {
                continue;
            }
            self.best.insert((Reverse(near.similarity_thousandths), a, b));
            self.memories.insert(memory.id, memory.clone());
            self.memories.insert(other.id, other);
            if self.best.len() > PAIRS_MAX {
                self.cut = true;
                self.best.pop_last();
            }
        }
        // Memories of pairs that fell out again.
        if self.memories.len() > PAIRS_MAX * 4 {
            let used: BTreeSet<MemoryId> = self.best.iter().flat_map(|(_, a, b)| [*a, *b]).collect();
            self.memories.retain(|id, _| used.contains(id));
        }
    }

    /// Those that may merge first.
    fn pairs(self, rows: TenantRows<'_>) -> Vec<DuplicatePair> {
        let shown = |memory: &Memory| {
            let mut view = views::brief(rows, memory, self.now).0;
            cut_text(&mut view.content);
            view.aliases.clear();
            Some(view)
        };
        let mut pairs: Vec<DuplicatePair> = self
            .best
            .iter()
            .filter_map(|(Reverse(similarity), a, b)| {
                let (a, b) = (self.memories.get(a)?, self.memories.get(b)?);
                Some(DuplicatePair {
                    a: shown(a),
                    b: shown(b),
                    similarity_thousandths: *similarity,
                    blocked_by: gates(a, b).into_iter().map(|gate| gate_word(gate).to_owned()).collect(),
                })
            })
            .collect();
        pairs.sort_by_key(|pair| !pair.blocked_by.is_empty());
        pairs
    }
}

fn gates(a: &Memory, b: &Memory) -> Vec<Gate> {
    let read = |memory| -> StatementInput<'_> {
        let memory: &Memory = memory;
        StatementInput {
            label: &memory.label,
            content: &memory.content,
            kind: memory.kind,
            author: &memory.author.0,
            observed_at: memory.recorded_at,
        }
    };
    blocking_gates(&read(a), &read(b))
}

/// The name that callers see.
const fn gate_word(gate: Gate) -> &'static str {
    match gate {
        Gate::Scope => "scope",
        Gate::Kind => "kind",
        Gate::Polarity => "polarity",
        Gate::Quantity => "quantity",
        Gate::Time => "time",
        Gate::Names => "names",
        Gate::Subject => "subject",
        Gate::Purpose => "purpose_and_limits",
        Gate::Modality => "modality",
        Gate::State => "state",
    }
}

fn cut_text(text: &mut String) {
    let mut end = text.len().min(CONTENT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}
