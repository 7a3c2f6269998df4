//! The table keeps its promises: budgets, names, flat schemas.

use super::*;

fn tokens(set: ToolSet) -> usize {
    tool_list_bytes(set).div_ceil(4)
}

#[test]
fn tool_lists_fit_their_budgets() {
    let counts = ToolSet::ALL.map(|set| (set.path(), tokens(set)));
    assert!(tokens(ToolSet::All) <= 4_500, "{counts:?}");
    assert!(tokens(ToolSet::Core) <= 1_500, "{counts:?}");
    assert!(tokens(ToolSet::ReadOnly) <= 2_800, "{counts:?}");
    let core = TOOLS.iter().filter(|tool| tool.core).count();
    assert_eq!(core, 7);
}

#[test]
fn names_are_sorted_short_and_plain() {
    assert!(TOOLS.iter().is_sorted_by_key(|tool| tool.name));
    for tool in &TOOLS {
        assert!(tool.name.len() <= 40);
        assert!(
            tool.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{}",
            tool.name
        );
        assert!(!tool.title.is_empty() && !tool.description.is_empty());
    }
}

#[test]
fn schemas_are_flat_and_complete() {
    // Described once in the instructions, or said by the name alone.
    let shared = [
        "project",
        "agent_id",
        "session_id",
        "token_budget",
        "cursor",
        "node_id",
        "memory_id",
        "max_depth",
        "max_nodes",
        "limit",
        "include_invalidated",
        "confirm",
        "dry_run",
        "source_id",
        "target_id",
        "max_topics",
        "threshold",
        "tags",
        "weight",
    ];
    for tool in &TOOLS {
        let schema = Value::Object(input_schema(tool));
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["additionalProperties"], false);
        let text = schema.to_string();
        for word in [
            "$ref",
            "$defs",
            "anyOf",
            "oneOf",
            "allOf",
            "\"null\"",
            "\"format\":\"",
            "nullable",
        ] {
            assert!(!text.contains(word), "{} has {word}", tool.name);
        }
        let mut names = std::collections::BTreeSet::new();
        for field in tool.fields() {
            assert!(names.insert(field.name), "{} has {} twice", tool.name, field.name);
            let property = field.schema();
            assert!(property["type"].is_string(), "{}.{}", tool.name, field.name);
            let described = !field.description.is_empty() || shared.contains(&field.name) || !field.listed;
            assert!(described, "{}.{} is not described", tool.name, field.name);
        }
    }
}

#[test]
fn every_alias_leads_to_a_tool() {
    for (alias, kind) in NAME_ALIASES {
        assert_eq!(find_tool(alias).map(|tool| tool.kind), Some(*kind));
        assert!(TOOLS.iter().all(|tool| tool.name != *alias));
    }
    assert!(find_tool("no_such_tool").is_none());
}
