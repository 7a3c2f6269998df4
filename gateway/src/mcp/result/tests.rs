//! Answers that fit, and what is cut where one item alone does not.

use super::*;

fn answer(count: usize, content_bytes: usize) -> Answer {
    let mut answer = Answer {
        lists: vec!["nodes", "edges"],
        ..Answer::default()
    };
    answer.put("query", "q");
    for number in 0..count {
        let id = [u8::try_from(number % 256).unwrap_or(0); 16];
        let value = json!({"id": format!("id-{number}"), "content": "ü\"".repeat(content_bytes / 3)});
        let mut item = Item::listed("nodes", value, &id);
        item.also.push(("fusion_hits", json!({"rank": number})));
        item.count = Count::Node;
        answer.items.push(item);
    }
    answer
}

#[test]
fn no_budget_is_ever_passed() {
    let seal = |hashes: &[u32], _: Left, _: i64| "c".repeat(60 + 6 * hashes.len());
    for count in [0, 1, 2, 7, 60, 200] {
        for content_bytes in [3, 90, 600, 5_000, 65_000] {
            for tokens in [200, 350, 2_000, 20_000] {
                let fitted = answer(count, content_bytes).fit(tokens, Some(&seal));
                assert!(
                    fitted.bytes() <= tokens * 4,
                    "{count} x {content_bytes} in {tokens}: {}",
                    fitted.bytes()
                );
                let nodes = fitted.structured["nodes"].as_array().map_or(0, Vec::len);
                assert_eq!(nodes == 0, count == 0, "{count} x {content_bytes} in {tokens}");
                assert_eq!(fitted.structured["truncated"], nodes < count);
                assert_eq!(fitted.structured.get("next_cursor").is_some(), nodes < count);
            }
        }
    }
}

#[test]
fn links_and_conflicts_go_before_the_only_item() {
    let seal = |_: &[u32], _: Left, _: i64| "c".repeat(100);
    for count in [1, 3] {
        let mut answer = answer(count, 30);
        for number in 0..40 {
            answer.attached.push(Attached {
                list: "edges",
                value: json!({"id": format!("edge-{number}"), "target": "t".repeat(30)}),
                needs: Needs::Either([0; 16], [9; 16]),
            });
        }
        let conflicts: Vec<Value> = (0..40).map(|_| json!({"id": "c".repeat(32)})).collect();
        answer.items[0].value["conflicts"] = conflicts.into();
        let fitted = answer.fit(200, Some(&seal));
        assert!(fitted.bytes() <= 800, "{}", fitted.bytes());
        let node = &fitted.structured["nodes"][0];
        assert_eq!(node["id"], "id-0");
        assert_eq!(node["content_truncated"], true);
        assert_eq!(node["content"], "ü\"".repeat(10), "content is cut last");
        assert_eq!(fitted.structured["truncated"], count > 1);
    }
}

#[test]
fn what_fits_is_not_left_out() {
    let seal = |_: &[u32], _: Left, _: i64| String::from("c");
    let fitted = answer(20, 90).fit(2_000, Some(&seal));
    assert_eq!(fitted.structured["nodes"].as_array().map(Vec::len), Some(20));
    let some = answer(200, 90).fit(2_000, Some(&seal));
    assert!(some.bytes() > 6_500, "the budget is used: {}", some.bytes());
}

#[test]
fn links_come_with_their_ends() {
    let seal = |_: &[u32], _: Left, _: i64| "c".repeat(100);
    let mut answer = answer(100, 90);
    answer.attached.push(Attached {
        list: "edges",
        value: json!({"id": "e1"}),
        needs: Needs::Both([0; 16], [1; 16]),
    });
    answer.attached.push(Attached {
        list: "edges",
        value: json!({"id": "e2"}),
        needs: Needs::Both([0; 16], [99; 16]),
    });
    let fitted = answer.fit(2_000, Some(&seal));
    assert_eq!(fitted.structured["edges"], json!([{"id": "e1"}]));
}
