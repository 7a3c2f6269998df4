//! get_topics: what a scope is about. Worked out once for each state of the shard and kept, since it looks at many
//! memories.

use std::collections::BTreeMap;
use std::sync::Arc;

use waggle_memory::id::{MemoryId, TenantId};
use waggle_memory::kind::Kind;
use waggle_memory::memory::State;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_memory::topics::{Group, Tie, groups, words_of};
use waggle_proto::wire::{self, Topic, TopicMemory, TopicsReply, TopicsRequest};

use super::scoped::Scoped;
use super::views::LINKS_READ_MAX;
use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;

/// Memories of the tenant that are looked through for those of the scope.
const LOOKED_THROUGH_MAX: usize = 50_000;
/// Memories that topics are made of; the newest.
const MEMORIES_MAX: usize = 10_000;
/// Links between them that are used.
const TIES_MAX: usize = 100_000;
/// Topics that are kept and shown.
const TOPICS_MAX: usize = 100;
/// Memories shown of one topic.
const SHOWN_MAX: usize = 20;
/// Tags given of one topic, bookkeeping ones among them.
const TAGS_MAX: usize = 64;
/// Longest label shown in bytes.
const LABEL_BYTES_MAX: usize = 200;
const HOUR_MILLIS: i64 = 3_600 * Millis::SECOND;
/// Answers that are kept, each at most some 600 KiB.
const KEPT_MAX: u64 = 32;

/// What an answer belongs to: anything else is another answer. The hour lets validity that ends without a write show.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    tenant: TenantId,
    scope: Scoped,
    applied_index: u64,
    hour: i64,
}

/// Answers of this node, the most recently used ones.
pub(crate) struct TopicCache {
    answers: moka::sync::Cache<Asked, Arc<TopicsReply>>,
}

impl TopicCache {
    pub(crate) fn new() -> Self {
        Self {
            answers: moka::sync::Cache::new(KEPT_MAX),
        }
    }
}

pub(super) async fn handle(engine: &Arc<Engine>, request: TopicsRequest) -> Result<TopicsReply, CallError> {
    let call = Call::new(engine, request.context)?;
    let scope = Scoped::of(&wire::scope_of(request.scope)?);
    let applied_index = call.linearize().await?;
    let asked = Asked {
        tenant: call.tenant.clone(),
        scope,
        applied_index,
        hour: engine.clock.wall().0 / HOUR_MILLIS,
    };
    let shown = match usize::try_from(request.topics_max).unwrap_or(TOPICS_MAX) {
        0 => TOPICS_MAX,
        topics => topics.min(TOPICS_MAX),
    };
    call.read(move |engine, rows| {
        // Equal questions wait for one answer instead of each making it.
        let scope = asked.scope.clone();
        let answer = engine
            .topics
            .answers
            .get_with(asked, || Arc::new(found(rows, &scope, engine.clock.wall())));
        let mut reply = TopicsReply::clone(&answer);
        reply.topics.truncate(shown);
        Ok(reply)
    })
    .await
}

/// One memory, as far as topics need it.
struct Seen {
    id: MemoryId,
    label: String,
    kind: Kind,
    tags: Vec<String>,
    links: u32,
}

fn found(rows: TenantRows<'_>, scope: &Scoped, now: Millis) -> TopicsReply {
    let mut seen: Vec<Seen> = Vec::new();
    let mut words: Vec<Vec<String>> = Vec::new();
    let walked = scope.newest(
        rows,
        LOOKED_THROUGH_MAX,
        MEMORIES_MAX,
        |memory| memory.state_at(now) != State::Closed,
        |memory| {
            words.push(words_of(&format!("{}. {}", memory.label, memory.content)));
            seen.push(Seen {
                id: memory.id,
                label: shortened(memory.label),
                kind: memory.kind,
                tags: memory.tags,
                links: memory.link_count,
            });
        },
    );
    // Oldest first: a topic keeps its name and its place while it grows.
    seen.reverse();
    words.reverse();
    let (ties, all_ties) = ties(rows, &seen);
    let groups = groups(&words, &ties);
    TopicsReply {
        topics_total: u32::try_from(groups.len()).unwrap_or(u32::MAX),
        topics: groups
            .iter()
            .take(TOPICS_MAX)
            .map(|group| topic(group, &seen))
            .collect(),
        computed_at: now.0,
        looked_at: u32::try_from(walked.taken).unwrap_or(u32::MAX),
        cut: walked.cut || !all_ties,
    }
}

/// Links among the memories, each once, and whether those are all.
fn ties(rows: TenantRows<'_>, seen: &[Seen]) -> (Vec<Tie>, bool) {
    let numbers: BTreeMap<MemoryId, usize> = seen.iter().enumerate().map(|(at, seen)| (seen.id, at)).collect();
    let mut ties = Vec::new();
    for (a, from) in seen.iter().enumerate().filter(|(_, from)| from.links > 0) {
        for link in rows.links_from(from.id, LINKS_READ_MAX) {
            if let Some(b) = numbers.get(&link.target) {
                if ties.len() == TIES_MAX {
                    return (ties, false);
                }
                ties.push(Tie {
                    a,
                    b: *b,
                    strength: link.strength_millionths(),
                });
            }
        }
    }
    (ties, true)
}

fn topic(group: &Group, seen: &[Seen]) -> Topic {
    let members = || group.members.iter().filter_map(|at| seen.get(*at));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in members().flat_map(|seen| &seen.tags) {
        *counts.entry(tag).or_insert(0) += 1;
    }
    let mut tags: Vec<(&str, usize)> = counts.into_iter().collect();
    tags.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let oldest = group.members.iter().min().and_then(|at| seen.get(*at));
    Topic {
        id: match oldest {
            Some(oldest) if !group.unlinked => oldest.id.bytes().to_vec(),
            _ => Vec::new(),
        },
        words: group.words.clone(),
        memory_count: u32::try_from(group.members.len()).unwrap_or(u32::MAX),
        tags: tags.into_iter().take(TAGS_MAX).map(|(tag, _)| tag.to_owned()).collect(),
        memories: members()
            .take(SHOWN_MAX)
            .map(|seen| TopicMemory {
                id: seen.id.bytes().to_vec(),
                label: seen.label.clone(),
                kind: u32::from(seen.kind.number()),
            })
            .collect(),
    }
}

fn shortened(mut label: String) -> String {
    let mut end = label.len().min(LABEL_BYTES_MAX);
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    label.truncate(end);
    label
}
