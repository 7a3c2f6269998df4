//! The suite's tools: fixed answers, progress, logging, and questions to the client in the older revisions.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateMessageRequestParams, ElicitRequestParams, ElicitationSchema, ErrorData, InputRequiredResult, JsonObject,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, SamplingMessage, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::from_json;

/// One red pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A wave file without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const STEP: Duration = Duration::from_millis(50);

const PLAIN: [&str; 21] = [
    "test_audio_content",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_embedded_resource",
    "test_error_handling",
    "test_image_content",
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
    "test_logging_tool",
    "test_missing_capability",
    "test_multiple_content_types",
    "test_reconnection",
    "test_simple_text",
    "test_streaming_elicitation",
    "test_tool_with_logging",
];

pub(super) fn list() -> Vec<Tool> {
    let schema = |value: Value| Arc::new(value.as_object().cloned().unwrap_or_default());
    let nothing = schema(json!({"type": "object", "properties": {}}));
    let text =
        |name: &str| schema(json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}));
    let mut tools: Vec<Tool> = PLAIN
        .iter()
        .map(|name| Tool::new(*name, "Fixture of the conformance suite", Arc::clone(&nothing)))
        .collect();
    tools.push(Tool::new("test_tool_with_progress", "Reports progress", nothing));
    tools.push(Tool::new("test_sampling", "Asks the client's model", text("prompt")));
    tools.push(Tool::new("test_elicitation", "Asks the user", text("message")));
    tools.push(Tool::new(
        "json_schema_2020_12_tool",
        "Tool with JSON Schema 2020-12 features",
        schema(rich_schema()),
    ));
    tools.sort_by(|one, two| one.name.cmp(&two.name));
    tools
}

fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
            "street": {"type": "string"}, "city": {"type": "string"},
        }}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let argument = |name: &str| {
        request
            .arguments
            .as_ref()
            .and_then(|given| given.get(name))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let content = match &*request.name {
        "test_simple_text" => json!([{"type": "text", "text": "This is a simple text response for testing."}]),
        "test_image_content" => json!([{"type": "image", "data": PNG, "mimeType": "image/png"}]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => json!([{"type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content.",
        }}]),
        "test_multiple_content_types" => json!([
            {"type": "text", "text": "Multiple content types test:"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "resource", "resource": {
                "uri": "test://mixed-content-resource", "mimeType": "application/json",
                "text": "{\"test\":\"data\",\"value\":123}",
            }},
        ]),
        "test_error_handling" => {
            let words = "This tool intentionally returns an error for testing";
            return Ok(CallToolResult::error(vec![ContentBlock::text(words)]).into());
        }
        "json_schema_2020_12_tool" | "test_reconnection" => return said("done"),
        "test_tool_with_progress" => return progress(context).await,
        "test_tool_with_logging" | "test_logging_tool" => return logging(context).await,
        "test_missing_capability" => return missing_capability(context),
        "test_streaming_elicitation" => return streaming_elicitation(request),
        "test_sampling" => return sampling(context, argument("prompt")).await,
        "test_elicitation" => {
            let schema = json!({"type": "object", "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            }, "required": ["username", "email"]});
            return elicitation(context, argument("message"), schema, "User response: ").await;
        }
        "test_elicitation_sep1034_defaults" => {
            return elicitation(
                context,
                "Check the defaults".to_owned(),
                defaults_schema(),
                "Elicitation completed: ",
            )
            .await;
        }
        "test_elicitation_sep1330_enums" => {
            return elicitation(context, "Choose".to_owned(), enums_schema(), "Elicitation completed: ").await;
        }
        _ => return Err(ErrorData::invalid_params("unknown tool", None)),
    };
    let result: CallToolResult = from_json(json!({"resultType": "complete", "content": content}))?;
    Ok(result.into())
}

fn said(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn failed(what: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(format!("fixture: {what}"), None)
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let token = context.meta.get_progress_token();
    for step in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let report = ProgressNotificationParam::new(token.clone(), step).with_total(100.0);
            context.peer.notify_progress(report).await.map_err(failed)?;
        }
        tokio::time::sleep(STEP).await;
    }
    said("progress reported")
}

/// In the newest revision only a request that names a level gets log messages.
async fn logging(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let modern = context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let wanted = !modern || context.meta.log_level().is_some();
    for words in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        if wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(words));
            context.peer.notify_logging_message(message).await.map_err(failed)?;
        }
        tokio::time::sleep(STEP).await;
    }
    said("logged")
}

fn missing_capability(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    if context
        .client_capabilities()
        .is_some_and(|capabilities| capabilities.sampling.is_some())
    {
        return said("the client can sample");
    }
    let mut needed = ClientCapabilities::default();
    needed.sampling = Some(from_json(json!({}))?);
    Err(ErrorData::missing_required_client_capability(needed))
}

fn streaming_elicitation(request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    if request.input_responses.is_some() {
        return said("elicited");
    }
    let asked = from_json(json!({"answer": {"method": "elicitation/create", "params": {
        "mode": "form",
        "message": "What is your answer?",
        "requestedSchema": {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
    }}}))?;
    Ok(InputRequiredResult::from_input_requests(asked).into())
}

async fn sampling(context: &RequestContext<RoleServer>, prompt: String) -> Result<CallToolResponse, ErrorData> {
    let question = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    let answer = context.peer.create_message(question).await.map_err(failed)?;
    let text = answer
        .message
        .content
        .first()
        .and_then(|content| content.as_text())
        .map(|text| text.text.clone());
    said(format!("LLM response: {}", text.unwrap_or_default()))
}

async fn elicitation(
    context: &RequestContext<RoleServer>,
    message: String,
    schema: Value,
    lead: &str,
) -> Result<CallToolResponse, ErrorData> {
    let schema: JsonObject = from_json(schema)?;
    let requested_schema = ElicitationSchema::from_json_schema(schema).map_err(failed)?;
    let question = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    };
    let answer = context.peer.create_elicitation(question).await.map_err(failed)?;
    let action = serde_json::to_value(&answer.action).map_err(failed)?;
    let content = answer.content.unwrap_or_default();
    said(format!(
        "{lead}action={}, content={content}",
        action.as_str().unwrap_or_default()
    ))
}

fn defaults_schema() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }})
}

fn enums_schema() -> Value {
    let titled = |prefix: &str, words: [&str; 3]| -> Vec<Value> {
        words
            .iter()
            .enumerate()
            .map(|(at, word)| json!({"const": format!("{prefix}{}", at + 1), "title": word}))
            .collect()
    };
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled("value", ["First Option", "Second Option", "Third Option"])},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {
            "type": "array",
            "items": {"anyOf": titled("value", ["First Choice", "Second Choice", "Third Choice"])},
        },
    }})
}
