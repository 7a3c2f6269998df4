//! InsightService of the scripted node.

use super::*;
use waggle_proto::wire::insight_service_server::InsightService;

/// Turns of a replay: more than one page of the node holds.
pub const TURNS: u64 = 250;
/// Entries that the node gives at once.
const PAGE: usize = 200;
/// A memory whose only turn was erased.
pub const ERASED: u64 = 400;
/// No memory.
pub const MISSING: u64 = 404;

#[tonic::async_trait]
impl InsightService for Shared {
    async fn decompose(&self, request: Request<DecomposeRequest>) -> Answer<DecomposeReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let stored = |number, created| StoredMemory {
            memory: Some(memory(number, 40)),
            created,
            dedup_reason: if created {
                String::new()
            } else {
                "canonical_form".to_owned()
            },
            ..StoredMemory::default()
        };
        Ok(Response::new(DecomposeReply {
            stored: vec![stored(1, true), stored(2, false), stored(3, true)],
            links: vec![link(50, 1, 3, 4)],
            conflicts: vec![link(51, 1, 8, 2)],
            about_id: if request.about.is_empty() {
                Vec::new()
            } else {
                uuid_bytes(3)
            },
            ..DecomposeReply::default()
        }))
    }

    async fn topics(&self, request: Request<TopicsRequest>) -> Answer<TopicsReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let topic = |number: u64| Topic {
            id: uuid_bytes(number),
            words: vec!["postgresql".to_owned(), format!("word{number}")],
            memory_count: 30,
            tags: vec!["observed".to_owned(), "speaker:user".to_owned(), "db".to_owned()],
            memories: (0..20)
                .map(|n| TopicMemory {
                    id: uuid_bytes(number * 100 + n),
                    label: format!("Memory {n}"),
                    kind: 1,
                })
                .collect(),
        };
        let mut topics: Vec<Topic> = (1..8).map(topic).collect();
        topics.push(Topic {
            memory_count: 1,
            ..Topic::default()
        });
        topics.truncate(request.topics_max as usize);
        Ok(Response::new(TopicsReply {
            topics_total: 8,
            topics,
            computed_at: T0,
            looked_at: 211,
            cut: false,
        }))
    }

    async fn duplicates(&self, request: Request<DuplicatesRequest>) -> Answer<DuplicatesReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        let pair = |a, b, blocked: &[&str]| DuplicatePair {
            a: Some(memory(a, 40)),
            b: Some(memory(b, 40)),
            similarity_thousandths: request.threshold_thousandths,
            blocked_by: blocked.iter().map(|word| (*word).to_owned()).collect(),
        };
        Ok(Response::new(DuplicatesReply {
            pairs: vec![pair(1, 2, &[]), pair(1, 3, &["quantity"])],
            scanned: 3,
            cut: true,
            awaiting_vectors: 0,
        }))
    }

    async fn replay(&self, request: Request<ReplayRequest>) -> Answer<ReplayReply> {
        let request = request.into_inner();
        self.0.enter(request.context)?;
        self.0.depths.lock().expect("depths").push(request.depth);
        if request.memory_id == uuid_bytes(MISSING) {
            return Ok(Response::new(ReplayReply {
                depth_cap: 3,
                ..ReplayReply::default()
            }));
        }
        let gone = request.memory_id == uuid_bytes(ERASED);
        let turns = if gone { 1 } else { TURNS };
        let all: Vec<ReplayEntry> = (0..turns)
            .map(|number| ReplayEntry {
                turn_id: uuid_bytes(1_000 + number),
                namespace: "shop".to_owned(),
                scope: Some(Scope {
                    session_id: "s1".to_owned(),
                    ..Scope::default()
                }),
                role: 1,
                turn_index: number as u32,
                created_at: T0,
                observed_at: T0,
                memory_ids: vec![request.memory_id.clone()],
                original_bytes: 100,
                spans: vec![ReplaySpan { start: 0, end: 10 }; 1 + (number % 2) as usize],
                text: format!("turn {number}"),
                cut: number == 3,
                gone,
                ..ReplayEntry::default()
            })
            .filter(|entry| !request.shown.contains(&short_hash(true, &entry.turn_id)))
            .skip(request.skip as usize)
            .collect();
        Ok(Response::new(ReplayReply {
            found: true,
            depth_cap: 3,
            rows_total: turns as u32,
            rows_left: all.len() as u32,
            entries: all.into_iter().take(PAGE).collect(),
            ..ReplayReply::default()
        }))
    }
}
