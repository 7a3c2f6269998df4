//! What the index finds, in which order, and what it leaves out. Each test reads as: these documents, this query, these
//! answers.

use waggle_memory::id::{MemoryId, TurnId};
use waggle_memory::kind::{Confidence, Kind};
use waggle_memory::memory::Vector;
use waggle_memory::rank::Tuning;
use waggle_memory::tables::Item;
use waggle_memory::time::Millis;
use waggle_recall::index::{
    Document, Filter, IndexAnswer, IndexQuery, Items, Preferences, QueryVector, StateFilter, TenantIndex,
};

const NOW: Millis = Millis(1_700_000_000_000);
const MODEL: &str = "test";
const NOBODY: [u8; 0] = [];

fn id(number: u8) -> [u8; 16] {
    [number; 16]
}

fn turn(number: u8, text: &str) -> Document {
    Document {
        item: Item::Turn(TurnId::from_bytes(id(number))),
        namespace: String::new(),
        project_key: "p".to_owned(),
        session: "s".to_owned(),
        agent_key: String::new(),
        also_sessions: Vec::new(),
        also_agent_keys: Vec::new(),
        speaker: String::new(),
        kind: None,
        confidence: Confidence::Explicit,
        tags: Vec::new(),
        label: String::new(),
        text: text.to_owned(),
        aliases: Vec::new(),
        valid_from: NOW.plus(-Millis::DAY),
        valid_from_stated: false,
        valid_to: None,
        observed_at: NOW.plus(-Millis::DAY),
        recorded_at: NOW.plus(-Millis::DAY),
        // Apart, so that nobody is next to anybody unless a test wants it.
        turn_index: Some(u32::from(number) * 10),
        from_turns: Vec::new(),
        vector: None,
        awaits_vector: false,
    }
}

fn memory(number: u8, text: &str) -> Document {
    Document {
        item: Item::Memory(MemoryId::from_bytes(id(number))),
        kind: Some(Kind::Fact),
        turn_index: None,
        ..turn(number, text)
    }
}

/// A direction among the dimensions: cosine 1 with itself, `share` with what is mixed.
fn vector(parts: &[(usize, f32)]) -> Vector {
    let mut components = vec![0_i8; 8];
    let length = parts.iter().map(|(_, part)| part * part).sum::<f32>().sqrt();
    for (dimension, part) in parts {
        components[*dimension] = (part / length * 127.0).round() as i8;
    }
    Vector {
        model: MODEL.to_owned(),
        scale_bits: (1.0_f32 / 127.0).to_bits(),
        components,
    }
}

fn index(documents: &[Document]) -> TenantIndex {
    let mut index = TenantIndex::new(MODEL, 8);
    documents.iter().for_each(|document| index.upsert(document));
    index
}

fn ask_with(index: &TenantIndex, text: &str, filter: &Filter, vector: Option<&Vector>) -> IndexAnswer {
    let tuning = Tuning::default();
    index.search(&IndexQuery {
        text,
        vector: vector.map(|vector| QueryVector {
            components: &vector.components,
            scale: f32::from_bits(vector.scale_bits),
        }),
        filter,
        prefer: Preferences::default(),
        now: NOW,
        limit: 50,
        explain: true,
        tuning: &tuning,
    })
}

fn ask(index: &TenantIndex, text: &str) -> Vec<u8> {
    numbers(&ask_with(index, text, &Filter::current(NOW), None))
}

fn numbers(answer: &IndexAnswer) -> Vec<u8> {
    answer
        .hits
        .iter()
        .map(|hit| match hit.item {
            Item::Memory(memory) => memory.bytes()[0],
            Item::Turn(turn) => turn.bytes()[0],
        })
        .collect()
}

/// Texts are numbered from 1.
fn check(texts: &[&str], query: &str, expected: &[u8]) {
    let documents: Vec<Document> = (1..).zip(texts).map(|(number, text)| turn(number, text)).collect();
    assert_eq!(ask(&index(&documents), query), expected, "{query}");
}

#[test]
fn the_rarer_word_decides() {
    check(
        &["the red fox", "the red dog", "the red cat and the fox", "nothing"],
        "red fox",
        &[1, 3, 2],
    );
}

#[test]
fn inflections_meet() {
    check(
        &["We decided to use PostgreSQL", "Children were painting"],
        "which decision about using postgresql",
        &[1],
    );
    check(
        &["We decided to use PostgreSQL", "Children were painting"],
        "did the child paint?",
        &[2],
    );
    check(&["She bought a car", "He sells cars"], "who buys a car", &[1, 2]);
}

#[test]
fn identifiers_are_found_exactly_and_in_parts() {
    let texts = [
        "WG-4031 is fixed",
        "WG-4032 is open",
        "see src/waggle/server.py",
        "version 3.10 is required",
        "3.1 is out",
    ];
    check(&texts, "WG-4031", &[1, 2]);
    check(&texts, "4032", &[2]);
    check(&texts, "wg4031", &[1]);
    check(&texts, "server.py", &[3]);
    check(&texts, "waggle server", &[3]);
    check(&texts, "3.10", &[4]);
    check(&texts, "3.1", &[5]);
    check(
        &["call getUserName first", "call user_name first"],
        "user name",
        &[2, 1],
    );
    check(&["call getUserName first", "nothing"], "get_user_name", &[1]);
}

#[test]
fn names_are_found_whatever_their_stem() {
    check(&["Rollins: hello there", "the rolling stone"], "rollins", &[1]);
    check(&["Zoë: hello", "a zoo"], "zoe", &[1]);
    check(&["Zoë: hello", "Zoe: hello"], "Zoë", &[1, 2]);
}

#[test]
fn scripts_without_spaces_are_found_by_words_alone() {
    let texts = [
        "我们使用数据库来存储记忆",
        "データベースはPostgreSQLを使います。",
        "เราใช้ฐานข้อมูลสำหรับการจัดเก็บ",
        "데이터베이스를 사용합니다",
        "Ｗａｇｇｌｅ　４０３１",
    ];
    check(&texts, "数据库", &[1]);
    check(&texts, "データベース", &[2]);
    check(&texts, "postgresql", &[2]);
    check(&texts, "ฐานข้อมูล", &[3]);
    check(&texts, "데이터베이스", &[4]);
    check(&texts, "waggle 4031", &[5]);
    check(&texts, "库", &[1]);
}

#[test]
fn dates_meet_whatever_their_spelling() {
    let mut said = turn(1, "I went to the concert yesterday");
    said.observed_at = Millis(1_683_500_000_000); // 7 May 2023
    let mut other = turn(2, "I went to the concert");
    other.observed_at = Millis(1_690_000_000_000); // 22 July 2023
    let index = index(&[said, other]);
    assert_eq!(ask(&index, "concert on May 6th, 2023"), [1, 2]);
    assert_eq!(ask(&index, "concert on 2023-05-06"), [1, 2]);
    assert_eq!(ask(&index, "concert in July"), [2, 1]);
}

#[test]
fn an_alias_is_found_like_the_text() {
    let mut with_alias = memory(1, "We keep data in PostgreSQL");
    with_alias.aliases = vec!["Postgres is our elephant".to_owned()];
    let index = index(&[with_alias, memory(2, "We keep cats")]);
    assert_eq!(ask(&index, "elephant"), [1]);
}

#[test]
fn a_query_about_what_is_forbidden_prefers_negated_memories() {
    let index = index(&[
        memory(1, "Deploying on Fridays works well"),
        memory(2, "Never deploy on Fridays, please, at all"),
    ]);
    assert_eq!(ask(&index, "is it forbidden to deploy on Fridays"), [2, 1]);
}

#[test]
fn the_answer_may_stand_beside_the_question() {
    let mut question = turn(1, "Bob: Which car do you drive to work?");
    let mut answer = turn(2, "Alice: A blue one, and I drive it daily");
    let elsewhere = turn(3, "Carol: I drive fast");
    (question.turn_index, answer.turn_index) = (Some(0), Some(1));
    assert_eq!(ask(&index(&[question, answer, elsewhere]), "car drive work"), [1, 2, 3]);
}

#[test]
fn what_the_named_speaker_said_goes_first() {
    let index = index(&[
        turn(1, "Alice: pizza is great with Bob"),
        turn(2, "Bob: pizza is great, I say"),
    ]);
    assert_eq!(ask(&index, "does Alice like pizza")[0], 1);
}

#[test]
fn scope_state_kind_and_tags_filter_inside_the_scan() {
    let mut other_project = memory(1, "deploy target is kubernetes");
    other_project.project_key = "q".to_owned();
    let mut tenant_wide = memory(2, "deploy target is nomad");
    tenant_wide.project_key = String::new();
    let mut closed = memory(3, "deploy target was heroku");
    closed.valid_to = Some(NOW.plus(-Millis::DAY / 2));
    let mut scheduled = memory(4, "deploy target will be fargate");
    scheduled.valid_from = NOW.plus(Millis::DAY);
    let mut tagged = memory(5, "deploy target is metal");
    tagged.tags = vec!["ops".to_owned(), "infra".to_owned()];
    tagged.kind = Some(Kind::Decision);
    let mut hidden = memory(6, "deploy target is secret");
    hidden.namespace = "team/secret".to_owned();
    let said = turn(7, "what is our deploy target");
    let index = index(&[other_project, tenant_wide, closed, scheduled, tagged, hidden, said]);

    let all = Filter::current(NOW);
    let sorted = |filter: &Filter| {
        let mut found = numbers(&ask_with(&index, "deploy target", filter, None));
        found.sort_unstable();
        found
    };
    let state = |closed, scheduled| StateFilter::At {
        at: NOW,
        closed,
        scheduled,
    };
    assert_eq!(sorted(&all), [1, 2, 5, 6, 7]);
    assert_eq!(
        sorted(&Filter {
            projects: Some(vec!["p".into()]),
            ..all.clone()
        }),
        [2, 5, 6, 7]
    );
    assert_eq!(
        sorted(&Filter {
            projects: Some(vec!["p".into()]),
            tenant_wide: false,
            ..all.clone()
        }),
        [5, 6, 7]
    );
    assert_eq!(
        sorted(&Filter {
            projects: Some(vec!["none".into()]),
            tenant_wide: false,
            ..all.clone()
        }),
        NOBODY
    );
    assert_eq!(
        sorted(&Filter {
            state: state(true, false),
            ..all.clone()
        }),
        [1, 2, 3, 5, 6, 7]
    );
    assert_eq!(
        sorted(&Filter {
            state: state(false, true),
            ..all.clone()
        }),
        [1, 2, 4, 5, 6, 7]
    );
    assert_eq!(
        sorted(&Filter {
            state: StateFilter::AsOf(NOW.plus(-Millis::DAY * 3 / 4)),
            ..all.clone()
        }),
        [1, 2, 3, 5, 6, 7]
    );
    assert_eq!(
        sorted(&Filter {
            state: StateFilter::AsOf(NOW.plus(-2 * Millis::DAY)),
            ..all.clone()
        }),
        NOBODY
    );
    assert_eq!(
        sorted(&Filter {
            known_at: Some(NOW.plus(-2 * Millis::DAY)),
            ..all.clone()
        }),
        NOBODY
    );
    assert_eq!(
        sorted(&Filter {
            kinds: vec![Kind::Decision],
            ..all.clone()
        }),
        [5]
    );
    assert_eq!(
        sorted(&Filter {
            tags: vec!["ops".into(), "infra".into()],
            ..all.clone()
        }),
        [5]
    );
    assert_eq!(
        sorted(&Filter {
            tags: vec!["ops".into(), "unknown".into()],
            ..all.clone()
        }),
        NOBODY
    );
    assert_eq!(
        sorted(&Filter {
            items: Items::Turns,
            ..all.clone()
        }),
        [7]
    );
    assert_eq!(
        sorted(&Filter {
            namespaces: Some(vec!["team/other".into()]),
            ..all.clone()
        }),
        NOBODY
    );
    assert_eq!(
        sorted(&Filter {
            namespaces: Some(vec!["team".into()]),
            ..all.clone()
        }),
        [6]
    );
    assert_eq!(
        sorted(&Filter {
            session: Some("unknown".into()),
            ..all.clone()
        }),
        NOBODY
    );
    assert_eq!(
        sorted(&Filter {
            period: Some((NOW.plus(-2 * Millis::DAY), NOW)),
            ..all.clone()
        }),
        [1, 2, 5, 6, 7]
    );
    assert_eq!(
        sorted(&Filter {
            period: Some((NOW, NOW.plus(1))),
            ..all.clone()
        }),
        NOBODY
    );

    let counts = ask_with(
        &index,
        "deploy target",
        &Filter {
            projects: Some(vec!["p".into()]),
            ..all.clone()
        },
        None,
    )
    .counts;
    assert_eq!(
        (counts.removed_by_scope, counts.removed_closed, counts.removed_scheduled),
        (1, 1, 1)
    );
    let counts = ask_with(&index, "fargate", &all, None).counts;
    assert_eq!(
        (counts.removed_closed, counts.removed_scheduled, counts.passed),
        (0, 1, 5)
    );
    let only_secret = Filter {
        namespaces: Some(vec!["team/secret".into()]),
        ..all.clone()
    };
    let counts = ask_with(&index, "kubernetes", &only_secret, None).counts;
    assert_eq!(
        (counts.in_scope, counts.removed_by_scope),
        (1, 0),
        "what may not be read is not counted either"
    );
}

#[test]
fn a_narrow_scope_is_not_emptied_by_better_matches_outside() {
    let mut documents: Vec<Document> = (0..1_500_u32)
        .map(|number| {
            let mut document = turn(0, "red fox");
            let mut bytes = id(0);
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            document.item = Item::Turn(TurnId::from_bytes(bytes));
            document.turn_index = Some(number * 10);
            document.vector = Some(vector(&[(0, 1.0)]));
            document
        })
        .collect();
    let mut inside = turn(
        9,
        "a fox, perhaps, of some colour that nobody ever saw or would call red",
    );
    inside.project_key = "narrow".to_owned();
    inside.vector = Some(vector(&[(0, 0.5), (1, 0.9)]));
    documents.push(inside);
    let index = index(&documents);
    let narrow = Filter {
        projects: Some(vec!["narrow".into()]),
        ..Filter::current(NOW)
    };
    assert_eq!(numbers(&ask_with(&index, "red fox", &narrow, None)), [9]);
    assert_eq!(numbers(&ask_with(&index, "", &narrow, Some(&vector(&[(0, 1.0)])))), [9]);
}

#[test]
fn a_memory_and_its_turn_are_one_hit() {
    let mut from_turn = memory(1, "the database is postgresql");
    from_turn.from_turns = vec![TurnId::from_bytes(id(2)), TurnId::from_bytes(id(77))];
    let said = turn(2, "so, after long talks, the database is postgresql for us");
    let other = turn(3, "postgresql was mentioned");
    let index = index(&[from_turn, said, other]);
    let answer = ask_with(&index, "database postgresql", &Filter::current(NOW), None);
    assert_eq!(numbers(&answer), [1, 3]);
    assert_eq!(answer.hits[0].turns, [TurnId::from_bytes(id(2))]);
    let turns = Filter {
        items: Items::Turns,
        ..Filter::current(NOW)
    };
    assert_eq!(numbers(&ask_with(&index, "database postgresql", &turns, None)), [2, 3]);
}

#[test]
fn a_turn_whose_memory_was_ended_goes_last_and_is_marked() {
    let mut ended = memory(1, "the database is mysql");
    ended.from_turns = vec![TurnId::from_bytes(id(2))];
    ended.valid_to = Some(NOW.plus(-1));
    let said = turn(2, "the database is mysql");
    let other = turn(
        3,
        "mysql, a database that some people outside of our team were talking about at length",
    );
    let answer = ask_with(
        &index(&[ended, said, other]),
        "mysql database",
        &Filter::current(NOW),
        None,
    );
    assert_eq!(numbers(&answer), [3, 2]);
    assert_eq!(
        answer.hits.iter().map(|hit| hit.superseded).collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn the_limit_is_honoured_and_is_no_floor() {
    let mut documents: Vec<Document> = (1..=60)
        .map(|number| memory(number, &format!("wombat number {number}")))
        .collect();
    documents.extend((61..=80).map(|number| memory(number, "nothing to see")));
    let index = index(&documents);
    let tuning = Tuning::default();
    let filter = Filter::current(NOW);
    for (limit, expected) in [(5, 5), (20, 20), (50, 50), (200, 60)] {
        let answer = index.search(&IndexQuery {
            text: "wombat",
            vector: None,
            filter: &filter,
            prefer: Preferences::default(),
            now: NOW,
            limit,
            explain: false,
            tuning: &tuning,
        });
        assert_eq!(answer.hits.len(), expected);
    }
}

#[test]
fn equal_scores_are_ordered_by_time_and_then_by_id() {
    let mut documents: Vec<Document> = (1..=4).map(|number| memory(number, "wombat")).collect();
    documents[2].valid_from = NOW.plus(-1);
    documents.reverse();
    assert_eq!(ask(&index(&documents), "wombat"), [3, 1, 2, 4]);
}

#[test]
fn meaning_finds_what_shares_no_word_and_says_when_nothing_does() {
    let mut civic = turn(1, "I got my Civic washed");
    civic.vector = Some(vector(&[(0, 0.9), (1, 0.3)]));
    let mut lunch = turn(2, "lunch was fine");
    lunch.vector = Some(vector(&[(5, 1.0)]));
    let index = index(&[civic, lunch]);
    let all = Filter::current(NOW);
    let answer = ask_with(&index, "what car does she drive", &all, Some(&vector(&[(0, 1.0)])));
    assert_eq!(numbers(&answer), [1]);
    assert!(!answer.no_match && answer.best_cosine.is_some_and(|cosine| cosine > 0.9));
    let answer = ask_with(&index, "quantum", &all, Some(&vector(&[(3, 1.0)])));
    assert!(answer.no_match && answer.hits.is_empty());
    let answer = ask_with(&index, "what is it?", &all, None);
    assert!(answer.no_match && answer.query_terms == 0);
}

#[test]
fn what_waits_for_its_vector_does_not_sink_and_is_counted() {
    let mut waiting = turn(1, "wombat house");
    waiting.awaits_vector = true;
    let mut other_model = turn(2, "wombat burrow");
    other_model.vector = Some(Vector {
        model: "another".to_owned(),
        ..vector(&[(0, 1.0)])
    });
    let mut done = turn(3, "a wombat");
    done.vector = Some(vector(&[(0, 0.5), (1, 0.8)]));
    let mut unrelated = turn(4, "lunch");
    unrelated.vector = Some(vector(&[(5, 1.0)]));
    let mut index = index(&[waiting.clone(), other_model, done, unrelated]);
    let all = Filter::current(NOW);
    let answer = ask_with(&index, "wombat house", &all, Some(&vector(&[(0, 1.0)])));
    assert_eq!(numbers(&answer)[0], 1);
    assert_eq!(
        (
            answer.awaiting_vectors,
            index.awaiting_in_scope(&all),
            index.vector_count()
        ),
        (1, 1, 2)
    );
    waiting.vector = Some(vector(&[(0, 1.0)]));
    waiting.awaits_vector = false;
    index.upsert(&waiting);
    assert_eq!((index.awaiting_count(), index.vector_count(), index.len()), (0, 3, 4));
    assert!(index.has_vector(waiting.item));
}

#[test]
fn a_preference_decides_between_near_equals_only() {
    let mut mine = turn(2, "wombat news");
    mine.session = "mine".to_owned();
    let better = turn(3, "wombat wombat burrow");
    let index = index(&[turn(1, "wombat news"), mine, better]);
    let tuning = Tuning::default();
    let filter = Filter::current(NOW);
    let query = |text| IndexQuery {
        text,
        vector: None,
        filter: &filter,
        prefer: Preferences {
            session: "mine",
            agent_key: "",
        },
        now: NOW,
        limit: 10,
        explain: false,
        tuning: &tuning,
    };
    assert_eq!(numbers(&index.search(&query("wombat news")))[..2], [2, 1]);
    assert_eq!(numbers(&index.search(&query("wombat burrow")))[0], 3);
}

#[test]
fn a_blank_query_lists_what_the_filter_leaves_newest_first() {
    let mut newer = memory(2, "second");
    newer.valid_from = NOW.plus(-5);
    let index = index(&[memory(1, "first"), newer, turn(3, "said")]);
    let memories = Filter {
        items: Items::Memories,
        ..Filter::current(NOW)
    };
    let answer = ask_with(&index, " ", &memories, None);
    assert_eq!(numbers(&answer), [2, 1]);
    assert!(!answer.no_match);
}

#[test]
fn an_explanation_names_words_and_places_and_changes_nothing() {
    let index = index(&[turn(1, "red fox"), turn(2, "red dog")]);
    let answer = ask_with(&index, "red fox", &Filter::current(NOW), None);
    assert_eq!(answer.hits[0].matched_terms, ["red", "fox"]);
    assert_eq!(
        (answer.hits[0].lexical_rank, answer.hits[1].lexical_rank),
        (Some(1), Some(2))
    );
    assert_eq!(answer.hits[0].dense_rank, None);
}

#[test]
fn one_word_of_a_mebibyte_costs_little() {
    let index = index(&[turn(1, &"x".repeat(1 << 20)), turn(2, "red fox")]);
    assert_eq!(ask(&index, "fox"), [2]);
    assert_eq!(ask(&index, &"x".repeat(1 << 20)), [1]);
    assert!(index.resident_bytes() < 100_000);
}
