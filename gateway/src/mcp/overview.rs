//! What this build can do, read from the tables that it works by.

use serde_json::{Value, json};

use crate::mcp::schema::{FieldKind, TOOLS, ToolSet, tool_list_bytes};

/// Tools with their toolsets, and the toolsets with what their lists cost.
pub fn overview() -> Value {
    let tools: Vec<Value> = TOOLS
        .iter()
        .map(|tool| {
            let sets: Vec<_> = ToolSet::ALL
                .into_iter()
                .filter(|set| set.has(tool))
                .map(ToolSet::path)
                .collect();
            // A tool that reads or writes files says which forms in a field of this name.
            let formats: Vec<&str> = tool
                .fields()
                .filter(|field| field.name == "format")
                .flat_map(|field| match &field.kind {
                    FieldKind::Word { allowed, .. } => allowed(),
                    _ => Vec::new(),
                })
                .collect();
            json!({
                "name": tool.name,
                "title": tool.title,
                "scopes": tool.scopes.words(),
                "paths": sets,
                "read_only": tool.hints.read_only,
                "destructive": tool.hints.destructive,
                "formats": formats,
            })
        })
        .collect();
    let sets: Vec<Value> = ToolSet::ALL
        .into_iter()
        .map(|set| {
            let count = TOOLS.iter().filter(|tool| set.has(tool)).count();
            json!({"path": set.path(), "tools": count, "tokens": tool_list_bytes(set).div_ceil(4)})
        })
        .collect();
    json!({"tools": tools, "toolsets": sets})
}
