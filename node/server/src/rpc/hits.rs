//! From what the index found to what an answer shows: checked against the state, in rank order, with conflicts beside
//! each other and expansion along links after everything that matched by itself.

use std::collections::BTreeSet;

use waggle_memory::id::MemoryId;
use waggle_memory::link::Link;
use waggle_memory::memory::{Memory, State};
use waggle_memory::tables::Item;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_memory::time_words::{TimeIntent, TimeOrder};
use waggle_memory::transcript::Turn;
use waggle_proto::wire::{self, FusionHit, HitExplain, NodeHit, TurnHit};
use waggle_recall::index::Hit;

use super::related::Walk;
use super::views;

/// Hits within this part of the best score are about the same topic: time words order only those.
const TOPIC_GATE: f32 = 0.85;
/// Best hits from which links are followed.
const SEEDS_MAX: usize = 10;
/// Memories of one turn, and evidence of one memory, that are looked at to tell which part of the turn matches.
const PARTS_MAX: usize = 32;

/// How an answer is put together.
pub(super) struct Assembly {
    pub(super) nodes_max: usize,
    pub(super) turns_max: usize,
    pub(super) depth: u32,
    pub(super) expand_depth: u32,
    pub(super) explain: bool,
    /// The moment of the world clock for which states are shown.
    pub(super) at: Millis,
    /// Show the text that was recorded by then.
    pub(super) recorded_by: Option<Millis>,
    pub(super) closed_too: bool,
    pub(super) scheduled_too: bool,
    /// Words of the query, as [`words_of`] makes them.
    pub(super) words: Vec<String>,
    /// Key of the project in scope; None for the whole tenant.
    pub(super) project: Option<String>,
}

/// What an answer shows.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) nodes: Vec<NodeHit>,
    pub(super) memories: Vec<Memory>,
    pub(super) turns: Vec<TurnHit>,
    pub(super) ranking: Vec<FusionHit>,
    pub(super) conflicts: Vec<Link>,
    pub(super) more: bool,
}

impl Assembly {
    pub(super) fn assemble(&self, rows: TenantRows<'_>, hits: Vec<Hit>, shown_before: &BTreeSet<u32>) -> Shown {
        let mut shown = Shown::default();
        let mut placed: BTreeSet<MemoryId> = BTreeSet::new();
        for hit in hits {
            if shown_before.contains(&short_hash(hit.item)) {
                if let Item::Memory(id) = hit.item {
                    placed.insert(id);
                }
                continue;
            }
            match hit.item {
                Item::Memory(id) if placed.contains(&id) => {}
                Item::Memory(id) if shown.nodes.len() < self.nodes_max => {
                    self.place(rows, &mut shown, &mut placed, id, &hit)
                }
                Item::Turn(id) if shown.turns.len() < self.turns_max => {
                    if let Some(turn) = rows.turn(id) {
                        shown.ranking.push(fusion(true, &id.bytes(), hit.score));
                        let superseded = hit.superseded || self.matching_part_ended(rows, &turn);
                        let mut found = turn_hit(&turn, &hit, superseded, self.explain);
                        found.memory_ids = self.shown_of(rows, &turn);
                        shown.turns.push(found);
                    }
                }
                _ => shown.more = true,
            }
        }
        self.expand(rows, &mut shown, &mut placed, shown_before);
        shown
    }

    /// Places a memory and, right after it, the other sides of its open conflicts.
    fn place(&self, rows: TenantRows<'_>, shown: &mut Shown, placed: &mut BTreeSet<MemoryId>, id: MemoryId, hit: &Hit) {
        let Some(memory) = rows.memory(id) else { return };
        let mut node = self.node(rows, shown, &memory, hit.score);
        node.turn_ids = hit.turns.iter().map(|turn| turn.bytes().to_vec()).collect();
        node.explain = self.explain.then(|| explained(hit));
        shown.ranking.push(fusion(false, &id.bytes(), hit.score));
        placed.insert(id);
        let open: Vec<Link> = views::conflicts_at(rows, &memory, false);
        shown.nodes.push(node);
        shown.memories.push(memory);
        for link in open {
            let other = link.other_end(id);
            if shown.nodes.len() < self.nodes_max
                && !placed.contains(&other)
                && let Some(memory) = rows.memory(other)
                && self.is_in_scope(&memory)
                && self.is_shown(&memory)
            {
                let node = self.node(rows, shown, &memory, hit.score);
                shown.ranking.push(fusion(false, &other.bytes(), hit.score));
                shown.nodes.push(node);
                shown.memories.push(memory);
                placed.insert(other);
            }
        }
    }

    /// The memories of a turn that an answer may name: not the loser of a conflict, nor what was erased.
    fn shown_of(&self, rows: TenantRows<'_>, turn: &Turn) -> Vec<Vec<u8>> {
        let memories = turn.memories.iter().filter_map(|id| rows.memory(*id));
        memories
            .filter(|memory| self.is_shown(memory))
            .map(|memory| memory.id.bytes().to_vec())
            .collect()
    }

    /// Whether what matches of a turn with several memories is what one of them said that has ended since: of the spans
    /// that memories rest on, those with most words of the query decide.
    fn matching_part_ended(&self, rows: TenantRows<'_>, turn: &Turn) -> bool {
        let memories: Vec<Memory> = turn
            .memories
            .iter()
            .take(PARTS_MAX)
            .filter_map(|id| rows.memory(*id))
            .collect();
        let ended = |memory: &Memory| memory.state_at(self.at) == State::Closed;
        if !memories.iter().any(ended) {
            return false;
        }
        let scored: Vec<(usize, bool)> = memories
            .iter()
            .map(|memory| (self.words_in_part(rows, turn, memory), ended(memory)))
            .collect();
        let best = scored.iter().map(|(words, _)| *words).max().unwrap_or(0);
        best > 0
            && scored
                .iter()
                .filter(|(words, _)| *words == best)
                .all(|(_, ended)| *ended)
    }

    fn words_in_part(&self, rows: TenantRows<'_>, turn: &Turn, memory: &Memory) -> usize {
        let place = |byte: u32| usize::try_from(byte).unwrap_or(usize::MAX);
        let evidence = rows.evidence(memory.id, PARTS_MAX);
        let spans = evidence.iter().filter_map(|(_, evidence)| evidence.turn.as_ref());
        let parts = spans
            .filter(|span| span.turn == turn.id)
            .filter_map(|span| turn.text.get(place(span.start)..place(span.end)));
        let said: Vec<String> = parts.flat_map(words_of).collect();
        self.words.iter().filter(|word| said.contains(word)).count()
    }

    /// Whether state and record clock let a memory into this answer, also one that comes as the other side of a conflict.
    fn is_shown(&self, memory: &Memory) -> bool {
        let holds = match memory.state_at(self.at) {
            State::Current => true,
            State::Closed => self.closed_too,
            State::Scheduled => self.scheduled_too,
        };
        holds && self.recorded_by.is_none_or(|by| memory.recorded_at <= by)
    }

    fn is_in_scope(&self, memory: &Memory) -> bool {
        let key = memory.scope.project_key();
        key.is_empty() || self.project.as_ref().is_none_or(|project| *project == key)
    }

    fn node(&self, rows: TenantRows<'_>, shown: &mut Shown, memory: &Memory, score: f32) -> NodeHit {
        let (mut view, conflicts) = views::brief(rows, memory, self.at);
        let mut learned_later = false;
        if let Some(by) = self.recorded_by {
            learned_later = show_as_recorded_by(rows, memory, &mut view, by);
        }
        for link in conflicts {
            if !shown.conflicts.iter().any(|known| known.id == link.id) {
                shown.conflicts.push(link);
            }
        }
        NodeHit {
            memory: Some(view),
            score,
            learned_later,
            ..NodeHit::default()
        }
    }

    /// Follows links from the best hits. What matched neither word nor meaning never stands above what did.
    fn expand(
        &self,
        rows: TenantRows<'_>,
        shown: &mut Shown,
        placed: &mut BTreeSet<MemoryId>,
        shown_before: &BTreeSet<u32>,
    ) {
        let depth = self.depth.max(self.expand_depth);
        if depth == 0 || shown.nodes.is_empty() {
            return;
        }
        let extra = usize::try_from(self.expand_depth)
            .unwrap_or(0)
            .saturating_mul(self.nodes_max);
        let room = self.nodes_max.saturating_sub(shown.nodes.len()).saturating_add(extra);
        if room == 0 {
            return;
        }
        let seeds: Vec<MemoryId> = shown.memories.iter().take(SEEDS_MAX).map(|memory| memory.id).collect();
        let last = shown.ranking.last().map_or(0.0, |hit| hit.score);
        let best = shown.nodes.first().map_or(0.0, |node| node.score);
        let walk = Walk {
            depth_max: depth,
            closed_too: self.closed_too,
            scheduled_too: self.scheduled_too,
            now: self.at,
            project: self.project.clone(),
            may_cross: false,
        };
        for reached in walk
            .from(rows, &seeds)
            .into_iter()
            .take(room.saturating_add(placed.len()))
        {
            let id = reached.memory.id;
            if placed.len() >= room.saturating_add(self.nodes_max)
                || shown_before.contains(&short_hash(Item::Memory(id)))
                || !placed.insert(id)
            {
                continue;
            }
            let strength = reached.strength_millionths as f32 / 1_000_000.0;
            let score = (best * strength).min(last);
            let mut node = self.node(rows, shown, &reached.memory, score);
            node.support = true;
            node.explain = self.explain.then(|| HitExplain {
                path: reached.path.iter().map(|link| link.bytes().to_vec()).collect(),
                ..HitExplain::default()
            });
            shown.ranking.push(fusion(false, &id.bytes(), score));
            shown.nodes.push(node);
            shown.memories.push(reached.memory);
        }
    }
}

/// Four bytes that stand for an item in a cursor.
pub(super) fn short_hash(item: Item) -> u32 {
    let (is_turn, bytes) = match item {
        Item::Memory(id) => (false, id.bytes()),
        Item::Turn(id) => (true, id.bytes()),
    };
    wire::short_hash(is_turn, &bytes)
}

fn fusion(is_turn: bool, id: &[u8], score: f32) -> FusionHit {
    FusionHit {
        is_turn,
        id: id.to_vec(),
        score,
    }
}

fn explained(hit: &Hit) -> HitExplain {
    let rank = |rank: Option<u32>| rank.unwrap_or(0);
    HitExplain {
        lexical: hit.bm25,
        lexical_rank: rank(hit.lexical_rank),
        dense: hit.cosine.unwrap_or(0.0),
        dense_rank: rank(hit.dense_rank),
        matched_words: hit.matched_terms.clone(),
        ..HitExplain::default()
    }
}

/// Words of three letters and more, in lower case.
pub(super) fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().nth(2).is_some())
        .map(str::to_lowercase)
        .collect()
}

fn turn_hit(turn: &Turn, hit: &Hit, superseded: bool, explain: bool) -> TurnHit {
    TurnHit {
        turn_id: turn.id.bytes().to_vec(),
        scope: Some(wire::scope(&turn.scope)),
        turn_index: turn.turn_index,
        role: u32::from(turn.role.number()),
        text: turn.text.clone(),
        observed_at: turn.observed_at.0,
        memory_ids: Vec::new(),
        score: hit.score,
        superseded,
        outside_period: false,
        explain: explain.then(|| explained(hit)),
    }
}

/// Shows the text that was recorded by a moment; true when nothing was, and the first text stands in.
fn show_as_recorded_by(rows: TenantRows<'_>, memory: &Memory, view: &mut wire::Memory, by: Millis) -> bool {
    if memory.updated_at <= by {
        return false;
    }
    let most = usize::try_from(Memory::VERSIONS_KEPT_MAX).unwrap_or(usize::MAX);
    let versions = rows.versions(memory.id, most);
    let known = versions.iter().find(|version| version.recorded_at <= by);
    if let Some(version) = known.or(versions.last()) {
        view.label.clone_from(&version.label);
        view.content.clone_from(&version.content);
        view.kind = u32::from(version.kind.number());
        view.version = version.version;
        view.tags.clone_from(&version.tags);
    }
    memory.recorded_at > by
}

/// Orders hits of one topic by time, where the query asks for it.
pub(super) fn order_by_time(hits: &mut [Hit], intent: &TimeIntent, start_of: impl Fn(Item) -> Option<(Millis, bool)>) {
    if intent.order == TimeOrder::None {
        return;
    }
    let best = hits.first().map_or(0.0, |hit| hit.score);
    let topic = hits.iter().take_while(|hit| hit.score >= best * TOPIC_GATE).count();
    let Some(topic) = hits.get_mut(..topic) else { return };
    // Both marks of a hit are looked up once: sorting asks often.
    let mut dated: Vec<(Hit, Millis, bool)> = topic
        .iter()
        .map(|hit| {
            let (start, closed) = start_of(hit.item).unwrap_or((Millis(0), false));
            (hit.clone(), start, closed)
        })
        .collect();
    match intent.order {
        TimeOrder::Latest => dated.sort_by_key(|(_, start, _)| std::cmp::Reverse(*start)),
        TimeOrder::Oldest => dated.sort_by_key(|(_, start, _)| *start),
        TimeOrder::Former => dated.sort_by_key(|(_, _, closed)| !*closed),
        TimeOrder::None => {}
    }
    // Ranks keep their scores, so that the list stays in the order of its scores.
    let scores: Vec<f32> = topic.iter().map(|hit| hit.score).collect();
    for ((place, (hit, ..)), score) in topic.iter_mut().zip(dated).zip(scores) {
        *place = Hit { score, ..hit };
    }
}
