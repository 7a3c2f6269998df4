//! I-24: after any history an index answers as one that was built anew from what is left, bit for bit.

use std::collections::BTreeMap;

use waggle_memory::id::{MemoryId, TurnId};
use waggle_memory::kind::{Confidence, Kind};
use waggle_memory::memory::Vector;
use waggle_memory::rank::Tuning;
use waggle_memory::tables::Item;
use waggle_memory::time::Millis;
use waggle_recall::index::{Document, Filter, IndexQuery, Preferences, QueryVector, StateFilter, TenantIndex};

const NOW: Millis = Millis(1_700_000_000_000);
const WORDS: [&str; 16] = [
    "fox",
    "dog",
    "cats",
    "painting",
    "Caroline",
    "deploy",
    "never",
    "user_name",
    "WG-4031",
    "数据库",
    "yesterday",
    "café",
    "went",
    "two",
    "Friday",
    "red",
];

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn text(&mut self) -> String {
        let count = 1 + self.below(8);
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.below(16) as usize]).collect();
        let speaker = ["", "Caroline: ", "Bob: "][self.below(3) as usize];
        format!("{speaker}{}", words.join(" "))
    }

    fn vector(&mut self) -> Vector {
        Vector {
            model: if self.below(10) == 0 { "other" } else { "test" }.to_owned(),
            scale_bits: 0.01_f32.to_bits(),
            components: (0..32).map(|_| self.below(100) as i8 - 50).collect(),
        }
    }

    fn document(&mut self, numbers: u64) -> Document {
        let number = self.below(numbers);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let is_turn = !number.is_multiple_of(3);
        let vector = (self.below(4) != 0).then(|| self.vector());
        let at = |random: &mut Self| NOW.plus((random.below(40) as i64 - 20) * Millis::DAY);
        let (valid_from, observed_at) = (at(self), at(self));
        Document {
            item: if is_turn {
                Item::Turn(TurnId::from_bytes(id))
            } else {
                Item::Memory(MemoryId::from_bytes(id))
            },
            namespace: ["", "team/a", "team/b"][self.below(3) as usize].to_owned(),
            project_key: format!("p{}", number % 2),
            session: format!("s{}", number % 5),
            agent_key: format!("a{}", self.below(2)),
            also_sessions: vec![format!("s{}", 5 + self.below(3)); usize::from(self.below(4) == 0)],
            also_agent_keys: vec![format!("a{}", 2 + self.below(2)); usize::from(self.below(4) == 0)],
            speaker: String::new(),
            kind: (!is_turn).then(|| Kind::ALL[self.below(7) as usize]),
            confidence: Confidence::ALL[self.below(3) as usize],
            tags: if is_turn {
                Vec::new()
            } else {
                vec![format!("t{}", self.below(3))]
            },
            label: if is_turn { String::new() } else { self.text() },
            text: self.text(),
            aliases: if self.below(5) == 0 {
                vec![self.text()]
            } else {
                Vec::new()
            },
            valid_from,
            valid_from_stated: self.below(2) == 0,
            valid_to: (self.below(4) == 0).then(|| valid_from.plus(5 * Millis::DAY)),
            observed_at,
            recorded_at: observed_at,
            turn_index: is_turn.then_some((number / 5) as u32),
            from_turns: if is_turn {
                Vec::new()
            } else {
                (1..=self.below(3))
                    .map(|step| {
                        let mut turn = [0; 16];
                        turn[..8].copy_from_slice(&(number + step).to_be_bytes());
                        TurnId::from_bytes(turn)
                    })
                    .collect()
            },
            awaits_vector: vector.is_none() && self.below(2) == 0,
            vector,
        }
    }
}

fn assert_same(random: &mut Random, index: &TenantIndex, living: &BTreeMap<Item, Document>) {
    let mut rebuilt = TenantIndex::new("test", 32);
    living.values().for_each(|document| rebuilt.upsert(document));
    assert_eq!(index.len(), living.len());
    assert_eq!(
        (index.vector_count(), index.awaiting_count(), index.len()),
        (rebuilt.vector_count(), rebuilt.awaiting_count(), rebuilt.len())
    );
    let tuning = Tuning {
        candidates_per_lane: 20,
        neighbours_of: 5,
        ..Tuning::default()
    };
    for _ in 0..20 {
        let text = random.text();
        let vector = random.vector();
        let mut filter = Filter::current(NOW);
        match random.below(7) {
            0 => filter.projects = Some(vec!["p1".to_owned()]),
            1 => filter.state = StateFilter::AsOf(NOW.plus(-5 * Millis::DAY)),
            2 => filter.kinds = vec![Kind::Fact, Kind::Decision],
            3 => filter.namespaces = Some(vec!["team".to_owned()]),
            4 => filter.session = Some(format!("s{}", random.below(8))),
            5 => filter.agent_key = Some(format!("a{}", random.below(4))),
            _ => {}
        }
        let query = IndexQuery {
            text: &text,
            vector: (random.below(3) != 0).then_some(QueryVector {
                components: &vector.components,
                scale: f32::from_bits(vector.scale_bits),
            }),
            filter: &filter,
            prefer: Preferences {
                session: "s2",
                agent_key: "a1",
            },
            now: NOW,
            limit: 30,
            explain: true,
            tuning: &tuning,
        };
        assert_eq!(index.search(&query), rebuilt.search(&query), "{text}");
    }
}

#[test]
fn an_index_equals_its_rebuild_after_any_history() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut index = TenantIndex::new("test", 32);
        let mut living: BTreeMap<Item, Document> = BTreeMap::new();
        for step in 0..600 {
            let document = random.document(150);
            let item = document.item;
            match random.below(5) {
                0 => assert_eq!(index.remove(item), living.remove(&item).is_some()),
                // The same words with another validity or vector: changed in place.
                1 => {
                    if let Some(known) = living.get_mut(&item) {
                        (known.vector, known.awaits_vector) = (document.vector, document.awaits_vector);
                        (known.valid_to, known.confidence) = (document.valid_to, document.confidence);
                        index.upsert(known);
                    }
                }
                _ => {
                    index.upsert(&document);
                    living.insert(item, document);
                }
            }
            if step % 150 == 149 {
                assert_same(&mut random, &index, &living);
            }
        }
    }
}

#[test]
fn a_compaction_changes_no_answer_and_gives_bytes_back() {
    let mut random = Random(99);
    let mut index = TenantIndex::new("test", 32);
    let mut living: BTreeMap<Item, Document> = BTreeMap::new();
    let mut compactions = 0;
    for _ in 0..6_000 {
        let document = random.document(900);
        index.upsert(&document);
        living.insert(document.item, document);
        compactions += usize::from(index.compact_if_needed());
    }
    assert!(compactions > 0);
    assert_same(&mut random, &index, &living);
    let before = index.resident_bytes();
    living.keys().for_each(|item| {
        index.remove(*item);
    });
    living.clear();
    while index.compact_if_needed() {}
    assert_eq!(index.len(), 0);
    assert_same(&mut random, &index, &living);
    assert!(index.resident_bytes() <= before);
}
