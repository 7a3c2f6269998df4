//! Times and bytes on made-up documents: words by Zipf's law, random vectors, sessions of forty turns.

use std::time::{Duration, Instant};

use waggle_memory::id::TurnId;
use waggle_memory::kind::Confidence;
use waggle_memory::memory::Vector;
use waggle_memory::rank::Tuning;
use waggle_memory::tables::Item;
use waggle_memory::time::Millis;
use waggle_recall::index::{Document, Filter, IndexQuery, Preferences, QueryVector, TenantIndex};

const MODEL: &str = "random";
const WORDS: u64 = 60_000;
const SEARCHES: u32 = 200;

pub(crate) fn print(documents: u32) {
    let mut random = Random(1);
    let made: Vec<Document> = (0..documents).map(|number| document(number, &mut random)).collect();
    let mut index = TenantIndex::new(MODEL, 384);
    let started = Instant::now();
    made.iter().for_each(|document| index.upsert(document));
    let elapsed = started.elapsed();
    println!(
        "{documents} documents: upsert {:?} each, {} bytes each",
        elapsed / documents.max(1),
        index.resident_bytes() / documents.max(1) as usize
    );
    drop(made);

    let now = Millis(1_750_000_000_000);
    let tuning = Tuning::default();
    let everything = Filter::current(now);
    let one_project = Filter {
        projects: Some(vec!["p3".to_owned()]),
        ..Filter::current(now)
    };
    for (name, filter) in [("whole tenant", &everything), ("one project of ten", &one_project)] {
        for (lanes, with_vector) in [("words", false), ("both lanes", true)] {
            let mut times: Vec<Duration> = (0..SEARCHES)
                .map(|_| {
                    let (text, vector) = (random.sentence(8), random.vector());
                    let query = IndexQuery {
                        text: &text,
                        vector: with_vector.then_some(QueryVector {
                            components: &vector,
                            scale: 1.0 / 1_400.0,
                        }),
                        filter,
                        prefer: Preferences::default(),
                        now,
                        limit: 50,
                        explain: false,
                        tuning: &tuning,
                    };
                    let started = Instant::now();
                    std::hint::black_box(index.search(&query));
                    started.elapsed()
                })
                .collect();
            times.sort_unstable();
            let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
            println!(
                "  {name}, {lanes}: best {:?}, median {:?}, 99th {:?}",
                at(0),
                at(50),
                at(99)
            );
        }
    }
    let mut scratch = random.document_again(documents);
    let started = Instant::now();
    for number in 0..1_000_u32 {
        scratch.item = Item::Turn(id(number % documents));
        scratch.text.push('x');
        index.upsert(&scratch);
    }
    println!("  an upsert that replaces: {:?}", started.elapsed() / 1_000);
}

fn id(number: u32) -> TurnId {
    let mut bytes = [0; 16];
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    TurnId::from_bytes(bytes)
}

fn document(number: u32, random: &mut Random) -> Document {
    let said = Millis(1_600_000_000_000 + i64::from(number) * 60_000);
    Document {
        item: Item::Turn(id(number)),
        namespace: String::new(),
        project_key: format!("p{}", number / 40 % 10),
        session: format!("session {}", number / 40),
        agent_key: format!("agent {}", number % 3),
        also_sessions: Vec::new(),
        also_agent_keys: Vec::new(),
        speaker: String::new(),
        kind: None,
        confidence: Confidence::Explicit,
        tags: Vec::new(),
        label: String::new(),
        text: random.sentence(24),
        aliases: Vec::new(),
        valid_from: said,
        valid_from_stated: false,
        valid_to: None,
        observed_at: said,
        recorded_at: said,
        turn_index: Some(number % 40),
        from_turns: Vec::new(),
        vector: Some(Vector {
            model: MODEL.to_owned(),
            scale_bits: (1.0_f32 / 1_400.0).to_bits(),
            components: random.vector(),
        }),
        awaits_vector: false,
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Words whose frequency falls with their rank, as in any language; every other one is a stop word in English.
    fn sentence(&mut self, words: u32) -> String {
        let mut text = String::new();
        for _ in 0..words {
            let rank = (WORDS as f64).powf(self.unit()) as u64;
            text.push_str(&word(rank));
            text.push_str(if self.next().is_multiple_of(2) { " the " } else { " " });
        }
        text
    }

    fn vector(&mut self) -> Vec<i8> {
        (0..384).map(|_| ((self.next() >> 56) as i8).clamp(-127, 127)).collect()
    }

    fn document_again(&mut self, number: u32) -> Document {
        document(number, self)
    }
}

/// A pronounceable word for a rank.
fn word(mut rank: u64) -> String {
    let mut word = String::from("z");
    loop {
        word.push(char::from(b"bdfgklmnprstv"[(rank % 13) as usize]));
        rank /= 13;
        word.push(char::from(b"aeiou"[(rank % 5) as usize]));
        rank /= 5;
        if rank == 0 {
            return word;
        }
    }
}
