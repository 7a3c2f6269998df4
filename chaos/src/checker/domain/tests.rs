use super::*;

fn operation(request: &str, key: &str, action: Action, start: u64, outcome: Outcome) -> Operation {
    let known = !matches!(outcome, Outcome::Unknown { .. });
    Operation {
        process: 1,
        request_id: request.to_owned(),
        key: key.to_owned(),
        action,
        start,
        end: known.then_some(start + 1),
        attempts: 1,
        repeat: false,
        outcome,
    }
}

fn ok(answer: Answer) -> Outcome {
    Outcome::Ok { answer }
}

fn created(id: &str) -> Outcome {
    ok(Answer::Created {
        id: id.to_owned(),
        version: 1,
        fresh: true,
    })
}

fn unknown() -> Outcome {
    Outcome::Unknown {
        why: "no answer".to_owned(),
    }
}

fn linked(id: &str) -> Outcome {
    ok(Answer::Linked {
        id: id.to_owned(),
        fresh: true,
    })
}

fn memory(key: &str, id: &str, value: u64) -> Memory {
    Memory {
        key: key.to_owned(),
        id: id.to_owned(),
        version: 1,
        value,
    }
}

/// `a` is stored as A and linked to `b`, stored as B; `c` was never answered; `d` was stored and deleted.
fn story() -> (Vec<Operation>, Graph) {
    let history = vec![
        operation("1", "a", Action::Create { value: 1 }, 0, created("A")),
        operation("2", "b", Action::Create { value: 2 }, 10, created("B")),
        operation("3", "c", Action::Create { value: 3 }, 20, unknown()),
        operation("4", "d", Action::Create { value: 4 }, 30, created("D")),
        operation("5", "d", Action::Delete, 40, ok(Answer::Deleted { now: true })),
        operation("6", "a", Action::Link { to: "b".to_owned() }, 50, linked("L")),
        operation(
            "7",
            "a",
            Action::Query,
            60,
            ok(Answer::Found {
                ids: vec!["A".to_owned()],
            }),
        ),
        operation("8", "d", Action::Read, 70, ok(Answer::Absent)),
    ];
    let graph = Graph {
        memories: vec![memory("a", "A", 1), memory("b", "B", 2)],
        links: vec![Link {
            id: "L".to_owned(),
            source: "A".to_owned(),
            target: "B".to_owned(),
        }],
    };
    (history, graph)
}

fn failing(history: &[Operation], graph: &Graph) -> Vec<&'static str> {
    let checks = check(history, graph);
    let failed = checks.into_iter().filter(|(_, verdict)| *verdict != Verdict::Pass);
    failed.map(|(name, _)| name).collect()
}

/// What is changed in the story, and how.
type Change = fn(&mut Vec<Operation>, &mut Graph);

#[test]
fn a_good_story_passes_and_each_change_is_noticed_by_the_right_check() {
    let (history, graph) = story();
    assert_eq!(failing(&history, &graph), Vec::<&str>::new());
    let changes: &[(&str, Change, &[&str])] = &[
        (
            "the unknown one is there: fine",
            |_, graph| graph.memories.push(memory("c", "C", 3)),
            &[],
        ),
        (
            "a is lost",
            |_, graph| {
                graph.memories.remove(0);
                graph.links.clear();
            },
            &["no acknowledged memory lost", "links have both ends"],
        ),
        (
            "nobody said e",
            |_, graph| graph.memories.push(memory("e", "E", 9)),
            &["no phantom"],
        ),
        (
            "b is there twice",
            |_, graph| graph.memories.push(memory("b", "B2", 2)),
            &["no phantom"],
        ),
        (
            "nobody wrote 77",
            |_, graph| graph.memories[0].value = 77,
            &["no phantom"],
        ),
        (
            "an answer for the second time, and another one",
            |history, _| {
                let mut again = history[0].clone();
                again.repeat = true;
                again.outcome = ok(Answer::Created {
                    id: "A".to_owned(),
                    version: 1,
                    fresh: false,
                });
                history.push(again);
            },
            &["one effect per request id"],
        ),
        (
            "the link is lost",
            |_, graph| graph.links.clear(),
            &["links have both ends"],
        ),
        (
            "the link is there twice",
            |_, graph| graph.links.push(graph.links[0].clone()),
            &["links have both ends"],
        ),
        (
            "what was deleted is there",
            |_, graph| graph.memories.push(memory("d", "D", 4)),
            &["deleted memories never answer again"],
        ),
        (
            "what was deleted is found",
            |history, _| {
                let found = ok(Answer::Found {
                    ids: vec!["D".to_owned()],
                });
                history.push(operation("9", "d", Action::Query, 80, found));
            },
            &["deleted memories never answer again"],
        ),
        (
            "a question finds nothing",
            |history, _| {
                history.push(operation(
                    "9",
                    "a",
                    Action::Query,
                    80,
                    ok(Answer::Found { ids: vec![] }),
                ))
            },
            &["found exactly once"],
        ),
        (
            "a question finds it under two ids",
            |history, _| {
                let ids = vec!["A".to_owned(), "A2".to_owned()];
                history.push(operation("9", "a", Action::Query, 80, ok(Answer::Found { ids })));
            },
            &["found exactly once"],
        ),
    ];
    for (what, change, noticed) in changes {
        let (mut history, mut graph) = story();
        change(&mut history, &mut graph);
        assert_eq!(failing(&history, &graph), *noticed, "{what}");
    }
}

#[test]
fn digests_are_compared_at_equal_indexes_only() {
    let digest = |node, applied_index, digest: &str| Digest {
        node,
        shard: "shd_1".to_owned(),
        applied_index,
        digest: digest.to_owned(),
    };
    let same = [digest(1, 9, "x"), digest(2, 9, "x"), digest(3, 9, "x")];
    assert_eq!(digests(&same, 3), Verdict::Pass);
    let behind = [digest(1, 9, "x"), digest(2, 9, "x"), digest(3, 8, "y")];
    assert_eq!(digests(&behind, 3).word(), "unknown");
    let other = [digest(1, 9, "x"), digest(2, 9, "z"), digest(3, 8, "y")];
    assert_eq!(digests(&other, 3).word(), "fail");
    assert_eq!(digests(&[], 3).word(), "unknown");
}
