//! The suite's prompts.

use rmcp::model::{ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult, Prompt};
use serde_json::{Value, json};

use super::from_json;
use super::input_required::elicit;
use super::tools::PNG;

pub(super) fn list() -> Result<Vec<Prompt>, ErrorData> {
    let argument = |name: &str| json!({"name": name, "description": "Fixture argument", "required": true});
    from_json(json!([
        {"name": "test_input_required_result_prompt", "description": "Asks for input"},
        {"name": "test_prompt_with_arguments", "description": "Two arguments", "arguments": [argument("arg1"), argument("arg2")]},
        {"name": "test_prompt_with_embedded_resource", "description": "A resource", "arguments": [argument("resourceUri")]},
        {"name": "test_prompt_with_image", "description": "An image"},
        {"name": "test_simple_prompt", "description": "One message"},
    ]))
}

pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        request
            .arguments
            .as_ref()
            .and_then(|given| given.get(name))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let user = |content: Value| json!({"role": "user", "content": content});
    let text = |text: String| json!({"type": "text", "text": text});
    let messages = match request.name.as_str() {
        "test_simple_prompt" => json!([user(text("This is a simple prompt for testing.".to_owned()))]),
        "test_prompt_with_arguments" => {
            json!([user(text(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1"),
                argument("arg2")
            )))])
        }
        "test_prompt_with_embedded_resource" => json!([
            user(json!({"type": "resource", "resource": {
                "uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing.",
            }})),
            user(text("Please process the embedded resource above.".to_owned())),
        ]),
        "test_prompt_with_image" => json!([
            user(json!({"type": "image", "data": PNG, "mimeType": "image/png"})),
            user(text("Please analyze the image above.".to_owned())),
        ]),
        "test_input_required_result_prompt" => {
            let answer = request
                .input_responses
                .as_ref()
                .and_then(|answers| answers.get("user_context"));
            let Some(context) = answer.and_then(|answer| answer["content"]["context"].as_str()) else {
                let asked = json!({"user_context": elicit("What context should the prompt use?", "context", "string")});
                return Ok(InputRequiredResult::from_input_requests(from_json(asked)?).into());
            };
            json!([user(text(format!("Prompt with context: {context}")))])
        }
        _ => return Err(ErrorData::invalid_params("unknown prompt", None)),
    };
    let result: GetPromptResult = from_json(json!({"resultType": "complete", "messages": messages}))?;
    Ok(result.into())
}
