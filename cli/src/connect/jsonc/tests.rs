use serde_json::json;

use super::*;

const PATH: [&str; 2] = ["mcpServers", "waggle"];

fn entry() -> Value {
    json!({"url": "U", "headers": {"Authorization": "B"}})
}

/// Set gives the expected text, a second set changes nothing, and remove gives `back`.
fn check(before: &str, after: &str, back: &str) {
    let set_once = set(before, &PATH, &entry()).expect("JSON");
    assert_eq!(set_once, after);
    assert_eq!(set(after, &PATH, &entry()).expect("JSON"), after, "a second time");
    assert_eq!(get(after, &PATH).expect("JSON"), Some(entry()));
    assert_eq!(remove(after, &PATH).expect("JSON"), back);
}

#[test]
fn a_file_of_nothing_gets_an_object() {
    let made = "{\n  \"mcpServers\": {\n    \"waggle\": {\n      \"url\": \"U\",\n      \"headers\": {\n        \
                \"Authorization\": \"B\"\n      }\n    }\n  }\n}\n";
    check("", made, "{\n  \"mcpServers\": {}\n}\n");
    check("  \n", made, "{\n  \"mcpServers\": {}\n}\n");
    check("{}\n", made, "{\n  \"mcpServers\": {}\n}\n");
    let commented = set("// only words\n", &PATH, &entry()).expect("JSON");
    assert_eq!(commented, format!("// only words\n{made}"));
}

#[test]
fn neighbours_comments_commas_and_indentation_stay() {
    let ours = |indent: &str, unit: &str| {
        let one = format!("{indent}{unit}");
        format!(
            "{indent}\"waggle\": {{\n{one}\"url\": \"U\",\n{one}\"headers\": {{\n{one}{unit}\"Authorization\": \"B\"\n{one}}}\n{indent}}}"
        )
    };
    // No trailing comma, a comment behind the last one.
    let before = "{\n    // servers\n    \"mcpServers\": {\n        \"a\": {\"x\": 1} // mine\n        // end\n    },\n    \"z\": 0\n}";
    let after = format!(
        "{{\n    // servers\n    \"mcpServers\": {{\n        \"a\": {{\"x\": 1}}, // mine\n{}\n        // end\n    }},\n    \"z\": 0\n}}",
        ours("        ", "    ")
    );
    check(before, &after, before);
    // Trailing comma.
    let before = "{\n\t\"mcpServers\": {\n\t\t\"a\": 1, /* c */\n\t},\n}\n";
    let after = format!(
        "{{\n\t\"mcpServers\": {{\n\t\t\"a\": 1, /* c */\n{},\n\t}},\n}}\n",
        ours("\t\t", "\t")
    );
    check(before, &after, before);
    // The object on the way is missing.
    let before = "{\n  \"theme\": \"dark\"\n}\n";
    let after = format!(
        "{{\n  \"theme\": \"dark\",\n  \"mcpServers\": {{\n{}\n  }}\n}}\n",
        ours("    ", "  ")
    );
    check(before, &after, "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {}\n}\n");
    // Comments in an empty object.
    let before = "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n";
    let after = format!(
        "{{\n  \"mcpServers\": {{\n    // none yet\n{}\n  }}\n}}\n",
        ours("    ", "  ")
    );
    check(before, &after, before);
}

#[test]
fn an_object_on_one_line_stays_on_one_line() {
    check(
        r#"{"mcpServers":{"a":{}},"z":[1,2]}"#,
        r#"{"mcpServers":{"a":{}, "waggle": { "url": "U", "headers": { "Authorization": "B" } }},"z":[1,2]}"#,
        r#"{"mcpServers":{"a":{}},"z":[1,2]}"#,
    );
    let text = r#"{"mcpServers":{"waggle": 1, "b":2}}"#;
    assert_eq!(remove(text, &PATH).expect("JSON"), r#"{"mcpServers":{"b":2}}"#);
    let text = r#"{"mcpServers":{"a":1, "waggle": 1, "b":2}}"#;
    assert_eq!(remove(text, &PATH).expect("JSON"), r#"{"mcpServers":{"a":1, "b":2}}"#);
}

#[test]
fn line_ends_and_byte_order_mark_stay() {
    let before = "\u{feff}{\r\n  \"a\": 1\r\n}\r\n";
    let after = set(before, &["s"], &json!({"b": 2})).expect("JSON");
    assert_eq!(
        after,
        "\u{feff}{\r\n  \"a\": 1,\r\n  \"s\": {\r\n    \"b\": 2\r\n  }\r\n}\r\n"
    );
    assert_eq!(remove(&after, &["s"]).expect("JSON"), before);
}

#[test]
fn an_entry_in_the_middle_goes_without_a_trace() {
    let text = "{\n  \"a\": 1,\n  \"w\": {\n    \"x\": \"}, //\"\n  }, // gone\n  \"b\": 2 // stays\n}\n";
    assert_eq!(
        remove(text, &["w"]).expect("JSON"),
        "{\n  \"a\": 1,\n  \"b\": 2 // stays\n}\n"
    );
    assert_eq!(remove(text, &["nothing"]).expect("JSON"), text);
    assert_eq!(remove("{ }", &["a", "b"]).expect("JSON"), "{ }");
}

#[test]
fn a_value_is_replaced_where_it_stands() {
    let text = "{\n  \"mcpServers\": {\n    \"waggle\": {\"command\": \"old\"}, // ours\n    \"b\": 2\n  }\n}\n";
    let after = set(text, &PATH, &json!({"url": "U"})).expect("JSON");
    assert_eq!(
        after,
        "{\n  \"mcpServers\": {\n    \"waggle\": {\n      \"url\": \"U\"\n    }, // ours\n    \"b\": 2\n  }\n}\n"
    );
}

#[test]
fn items_of_a_list_are_known_by_their_id() {
    let item = json!({"id": "k", "password": true});
    let before = "{\n  \"inputs\": [\n    {\"id\": \"other\"}\n  ]\n}\n";
    let after = set_item(before, "inputs", "k", &item).expect("JSON");
    assert_eq!(
        after,
        "{\n  \"inputs\": [\n    {\"id\": \"other\"},\n    {\n      \"id\": \"k\",\n      \"password\": true\n    }\n  ]\n}\n"
    );
    assert_eq!(set_item(&after, "inputs", "k", &item).expect("JSON"), after);
    assert_eq!(remove_item(&after, "inputs", "k").expect("JSON"), before);
    let made = set_item("{}", "inputs", "k", &item).expect("JSON");
    assert_eq!(get(&made, &["inputs"]).expect("JSON"), Some(json!([item])));
    assert!(set_item("{\"inputs\": 3}", "inputs", "k", &item).is_err());
}

#[test]
fn what_is_malformed_is_refused_with_its_place() {
    for (text, line, column) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 2, 9),
        ("{\n  \"a\": [1, 2\n", 2, 8),
        ("[1]", 1, 1),
        ("{\n  \"mcpServers\": []\n}", 2, 17),
        ("{\"mcpServers\": {\"waggle\": 1, \"waggle\": 2}}", 1, 30),
        ("{'a': 1}", 1, 2),
    ] {
        let wrong = set(text, &PATH, &entry()).expect_err(text);
        assert_eq!((wrong.line, wrong.column), (line, column), "{text}: {wrong}");
    }
}

#[test]
fn another_parser_reads_the_same() {
    for before in [
        "{}",
        "{\"a\": [1, {\"b\": null}]}",
        "{\n  \"mcpServers\": {\"x\": {\"n\": 1.5e3}}\n}",
    ] {
        let after = set(before, &PATH, &entry()).expect("JSON");
        let mut read: Value = serde_json::from_str(&after).expect("JSON");
        assert_eq!(read["mcpServers"]["waggle"], entry());
        let mut was: Value = serde_json::from_str(before).expect("JSON");
        if let Some(servers) = read["mcpServers"].as_object_mut() {
            servers.remove("waggle");
        }
        if was["mcpServers"].is_null() {
            was["mcpServers"] = json!({});
        }
        assert_eq!(read, was);
    }
}
