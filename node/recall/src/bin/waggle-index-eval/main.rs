//! Measures the index on LoCoMo: each conversation is one tenant, each turn one document, and each question is asked of
//! its own conversation. Writes a run file for `score.py` and prints the headline figures.
//!
//!     waggle-index-eval DATA_DIR [--words-only] [--run FILE] [--set name=value]... [--explain QID]
//!     waggle-index-eval --speed DOCUMENTS
//!
//! DATA_DIR holds `memories.jsonl` and `queries.jsonl`. The data is CC BY-NC: it is evaluated on, never shipped, and
//! nothing that is derived from it may enter the repository.
//!
//! Vectors come from the model inside this program, as in a node; embedding everything takes some twenty seconds.
//! `--vectors FILE` keeps them between runs while tuning: the file is read if it is there and written if not. Delete it
//! when the model changes.

#![expect(clippy::print_stdout, reason = "a command line tool")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::Value;
use waggle_memory::id::TurnId;
use waggle_memory::kind::Confidence;
use waggle_memory::memory::Vector;
use waggle_memory::rank::Tuning;
use waggle_memory::tables::Item;
use waggle_memory::time::Millis;
use waggle_recall::index::{Document, Filter, IndexQuery, Preferences, QueryVector, TenantIndex};

mod speed;
mod vectors;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("waggle-index-eval: {failure}");
            ExitCode::FAILURE
        }
    }
}

struct Conversation {
    index: TenantIndex,
    /// Turn ids of the data set, by number.
    turns: Vec<String>,
}

fn run(arguments: Vec<String>) -> Result<(), Failure> {
    let mut tuning = Tuning::default();
    let (mut data, mut vectors_file, mut run_file, mut explained) = (None, None, None, None);
    let mut words_only = false;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--words-only" => words_only = true,
            "--vectors" => vectors_file = Some(value()?),
            "--speed" => {
                speed::print(value()?.parse()?);
                return Ok(());
            }
            "--run" => run_file = Some(value()?),
            "--explain" => explained = Some(value()?),
            "--set" => set(&mut tuning, &value()?)?,
            _ => data = Some(argument),
        }
    }
    let data = data.ok_or("give the directory that holds memories.jsonl and queries.jsonl")?;
    let data = Path::new(&data);
    if !data.join("memories.jsonl").is_file() {
        return Err(format!("{} holds no memories.jsonl: fetch the data set first", data.display()).into());
    }
    let vectors = match vectors_file.as_deref().map(Path::new) {
        _ if words_only => HashMap::new(),
        Some(file) if file.is_file() => vectors::read(file)?,
        Some(file) => {
            let vectors = vectors::embed(data)?;
            vectors::write(file, &vectors)?;
            vectors
        }
        None => vectors::embed(data)?,
    };
    let started = Instant::now();
    let conversations = index(data, &vectors)?;
    let documents: usize = conversations
        .values()
        .map(|conversation| conversation.index.len())
        .sum();
    let bytes: usize = conversations
        .values()
        .map(|conversation| conversation.index.resident_bytes())
        .sum();
    println!(
        "{documents} turns in {} tenants, indexed in {:?}; {} bytes a turn",
        conversations.len(),
        started.elapsed(),
        bytes / documents.max(1)
    );
    let mut ranked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut figures = Figures::default();
    let mut searching = std::time::Duration::ZERO;
    for question in lines(&data.join("queries.jsonl"))? {
        let (id, text) = (text_of(&question, "qid")?, text_of(&question, "question")?);
        let conversation = conversations
            .get(text_of(&question, "conv")?)
            .ok_or("a question about no conversation")?;
        let now = Millis(1_750_000_000_000);
        let filter = Filter::current(now);
        let query = IndexQuery {
            text,
            vector: vectors.get(id).map(|vector| QueryVector {
                components: &vector.components,
                scale: f32::from_bits(vector.scale_bits),
            }),
            filter: &filter,
            prefer: Preferences::default(),
            now,
            limit: 50,
            explain: explained.as_deref() == Some(id),
            tuning: &tuning,
        };
        let started = Instant::now();
        let answer = conversation.index.search(&query);
        searching += started.elapsed();
        let name = |item: &Item| match item {
            Item::Turn(turn) => conversation.turns[u32::from_be_bytes(last_bytes(*turn)) as usize].clone(),
            Item::Memory(memory) => memory.to_string(),
        };
        let gold: BTreeSet<&str> = question["gold"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let found: Vec<String> = answer.hits.iter().map(|hit| name(&hit.item)).collect();
        if query.explain {
            println!("{text}\ngold {gold:?}");
            for (hit, name) in answer.hits.iter().zip(&found) {
                let mark = if gold.contains(name.as_str()) { '*' } else { ' ' };
                println!(
                    "{mark} {name:8} {:.3} {:?} {:?}",
                    hit.score, hit.matched_terms, hit.parts
                );
            }
        }
        figures.add(question["category"].as_i64().unwrap_or(0), &gold, &found);
        ranked.insert(id.to_owned(), found);
    }
    println!("{:?} a search", searching / ranked.len().max(1) as u32);
    figures.print();
    if let Some(file) = run_file {
        std::fs::write(file, serde_json::to_vec(&ranked)?)?;
    }
    Ok(())
}

fn index(data: &Path, vectors: &HashMap<String, Vector>) -> Result<BTreeMap<String, Conversation>, Failure> {
    let mut conversations: BTreeMap<String, Conversation> = BTreeMap::new();
    for line in lines(&data.join("memories.jsonl"))? {
        let (name, id) = (text_of(&line, "conv")?, text_of(&line, "id")?);
        let conversation = conversations.entry(name.to_owned()).or_insert_with(|| Conversation {
            index: TenantIndex::new(vectors::MODEL, 384),
            turns: Vec::new(),
        });
        let said = moment(text_of(&line, "date")?).ok_or("a date that cannot be read")?;
        let mut number = [0; 16];
        number[12..].copy_from_slice(&(conversation.turns.len() as u32).to_be_bytes());
        conversation.turns.push(id.to_owned());
        let vector = vectors.get(&format!("{name}/{id}")).cloned();
        conversation.index.upsert(&Document {
            item: Item::Turn(TurnId::from_bytes(number)),
            namespace: String::new(),
            project_key: name.to_owned(),
            session: format!("session {}", line["session"]),
            agent_key: String::new(),
            also_sessions: Vec::new(),
            also_agent_keys: Vec::new(),
            speaker: String::new(),
            kind: None,
            confidence: Confidence::Explicit,
            tags: Vec::new(),
            label: String::new(),
            text: turn_text(&line)?,
            aliases: Vec::new(),
            valid_from: said,
            valid_from_stated: false,
            valid_to: None,
            observed_at: said,
            recorded_at: said,
            turn_index: line["pos"].as_u64().and_then(|pos| u32::try_from(pos).ok()),
            from_turns: Vec::new(),
            vector,
            awaits_vector: false,
        });
    }
    Ok(conversations)
}

/// As a client stores it: "speaker: text `[caption]`".
fn turn_text(line: &Value) -> Result<String, Failure> {
    let caption = text_of(line, "caption")?;
    let caption = if caption.is_empty() {
        String::new()
    } else {
        format!(" [{caption}]")
    };
    Ok(format!(
        "{}: {}{caption}",
        text_of(line, "speaker")?,
        text_of(line, "text")?
    ))
}

fn last_bytes(turn: TurnId) -> [u8; 4] {
    let bytes = turn.bytes();
    [bytes[12], bytes[13], bytes[14], bytes[15]]
}

/// "1:56 pm on 8 May, 2023".
fn moment(date: &str) -> Option<Millis> {
    let (clock, day) = date.split_once(" on ")?;
    let mut day = day.split([' ', ',']).filter(|word| !word.is_empty());
    let (of_month, month, year) = (
        day.next()?.parse::<u32>().ok()?,
        day.next()?,
        day.next()?.parse::<i64>().ok()?,
    );
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = months.iter().position(|name| month.starts_with(name))? as u32 + 1;
    let (clock, half) = clock.split_once(' ')?;
    let (hour, minute) = clock.split_once(':')?;
    let hour = hour.parse::<i64>().ok()? % 12 + if half == "pm" { 12 } else { 0 };
    let minutes = hour * 60 + minute.parse::<i64>().ok()?;
    let days = waggle_recall::text::calendar::Day::of_date(year, month, of_month).number();
    Some(Millis(days * Millis::DAY + minutes * 60_000))
}

fn lines(file: &Path) -> Result<Vec<Value>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn text_of<'a>(value: &'a Value, key: &str) -> Result<&'a str, Failure> {
    value[key].as_str().ok_or_else(|| format!("no text '{key}'").into())
}

#[derive(Default)]
struct Figures {
    by_category: BTreeMap<i64, [f64; 6]>,
}

impl Figures {
    fn add(&mut self, category: i64, gold: &BTreeSet<&str>, found: &[String]) {
        if gold.is_empty() {
            return;
        }
        let recall = |most: usize| {
            found.iter().take(most).filter(|id| gold.contains(id.as_str())).count() as f64 / gold.len() as f64
        };
        let first = found.iter().position(|id| gold.contains(id.as_str()));
        let session = |id: &str| id.split(':').next().unwrap_or("").to_owned();
        let wanted: BTreeSet<String> = gold.iter().map(|id| session(id)).collect();
        let mut sessions: Vec<String> = Vec::new();
        for id in found {
            let session = session(id);
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        let session_hit = sessions.iter().take(5).any(|session| wanted.contains(session));
        let sums = self.by_category.entry(category).or_default();
        let added = [
            1.0,
            recall(5),
            recall(10),
            recall(20),
            first.map_or(0.0, |place| 1.0 / (place + 1) as f64),
            if session_hit { 1.0 } else { 0.0 },
        ];
        sums.iter_mut().zip(added).for_each(|(sum, more)| *sum += more);
    }

    fn print(&self) {
        println!("group      n    R@5   R@10   R@20    MRR  session@5");
        let show = |name: &str, which: &dyn Fn(i64) -> bool| {
            let mut sums = [0.0; 6];
            for (_, more) in self.by_category.iter().filter(|(category, _)| which(**category)) {
                sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
            let n = sums[0];
            let [_, r5, r10, r20, mrr, session] = sums.map(|sum| sum / n.max(1.0));
            println!("{name:7} {n:4} {r5:.4} {r10:.4} {r20:.4} {mrr:.4} {session:.4}");
        };
        show("1-4", &|category| category != 5);
        show("5", &|category| category == 5);
        show("all", &|_| true);
        for one in 1..5 {
            show(&one.to_string(), &|category| category == one);
        }
    }
}

fn set(tuning: &mut Tuning, assignment: &str) -> Result<(), Failure> {
    let (name, value) = assignment.split_once('=').ok_or("--set name=value")?;
    let numbers = value.split(',').map(str::parse).collect::<Result<Vec<f32>, _>>()?;
    let number = *numbers.first().ok_or("no value")?;
    let four = || <[f32; 4]>::try_from(numbers.as_slice()).map_err(|_| "four numbers, please");
    match name {
        "k1" => tuning.k1 = number,
        "b" => tuning.b = number,
        "written_form_weight" => tuning.written_form_weight = number,
        "lexical_weight" => tuning.lexical_weight = number,
        "dense_weight" => tuning.dense_weight = number,
        "lexical_spread" => tuning.lexical_spread = four()?,
        "dense_spread" => tuning.dense_spread = four()?,
        "speaker_boost" => tuning.speaker_boost = number,
        "answer_boost" => tuning.answer_boost = number,
        "meaning_per_words" => tuning.meaning_per_words = number,
        "meaning_floor" => tuning.meaning_floor = number,
        "candidates_per_lane" => tuning.candidates_per_lane = number as usize,
        "neighbours_of" => tuning.neighbours_of = number as usize,
        _ => return Err(format!("no constant '{name}'").into()),
    }
    Ok(())
}
