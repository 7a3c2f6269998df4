//! Flows of the newest revision: a result asks for input, the client calls again with the answers and an opaque state
//! that is sealed, so that any gateway could finish it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, InputRequiredResult,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq;

use super::from_json;
use crate::seal::keyed_hash;

/// Fixtures hold no secret; the point is that a change is seen.
const KEY: &[u8] = b"fixtures of the conformance suite";

pub(super) fn call(
    flow: &str,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answers = Answers(request.input_responses.as_ref());
    let state = request.request_state.as_deref();
    match flow {
        "elicitation" => match answers.accepted("user_name", "name") {
            Some(name) => said(format!("Hello, {name}!")),
            None => ask(
                json!({"user_name": elicit("What is your name?", "name", "string")}),
                None,
            ),
        },
        "sampling" => match answers.sampled("capital_question") {
            Some(text) => said(text),
            None => ask(
                json!({"capital_question": sample("What is the capital of France?", 100)}),
                None,
            ),
        },
        "list_roots" => match answers.get("client_roots").filter(|roots| roots["roots"].is_array()) {
            Some(roots) => said(format!("Roots: {}", roots["roots"])),
            None => ask(json!({"client_roots": {"method": "roots/list", "params": {}}}), None),
        },
        "request_state" | "tampered_state" => {
            let confirmed = answers.get("confirm").is_some();
            match state {
                Some(state) => {
                    open(state, flow)?;
                    if confirmed {
                        said("state-ok")
                    } else {
                        ask(confirm(), Some(seal(flow)))
                    }
                }
                None if confirmed && flow == "tampered_state" => Err(refused()),
                None => ask(confirm(), Some(seal(flow))),
            }
        }
        "multiple_inputs" => {
            let complete = ["user_name", "greeting", "client_roots"]
                .iter()
                .all(|name| answers.get(name).is_some());
            if complete {
                open(state.unwrap_or_default(), flow)?;
                return said("all inputs received");
            }
            let asked = json!({
                "user_name": elicit("What is your name?", "name", "string"),
                "greeting": sample("Generate a greeting", 50),
                "client_roots": {"method": "roots/list", "params": {}},
            });
            ask(asked, Some(seal(flow)))
        }
        "multi_round" => multi_round(&answers, state),
        "capabilities" => capabilities(&answers, context),
        _ => Err(ErrorData::invalid_params("unknown tool", None)),
    }
}

fn multi_round(answers: &Answers<'_>, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    let first = || {
        ask(
            json!({"step1": elicit("Step 1: What is your name?", "name", "string")}),
            Some(seal("round-1")),
        )
    };
    match state {
        None => first(),
        Some(state) if open(state, "round-2").is_ok() && answers.get("step2").is_some() => said("both rounds done"),
        Some(state) if open(state, "round-2").is_ok() => second(),
        Some(state) => {
            open(state, "round-1")?;
            if answers.get("step1").is_some() {
                second()
            } else {
                first()
            }
        }
    }
}

fn second() -> Result<CallToolResponse, ErrorData> {
    ask(
        json!({"step2": elicit("Step 2: What is your favorite color?", "color", "string")}),
        Some(seal("round-2")),
    )
}

/// Asks only what the client said it can answer.
fn capabilities(answers: &Answers<'_>, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    if answers.0.is_some_and(|answers| !answers.is_empty()) {
        return said("inputs received");
    }
    let can = context.client_capabilities().unwrap_or_default();
    let mut asked = Map::new();
    if can.elicitation.is_some() {
        asked.insert("user_name".into(), elicit("What is your name?", "name", "string"));
    }
    if can.sampling.is_some() {
        asked.insert("greeting".into(), sample("Generate a greeting", 50));
    }
    if can.roots.is_some() {
        asked.insert("client_roots".into(), json!({"method": "roots/list", "params": {}}));
    }
    if asked.is_empty() {
        said("the client can answer nothing")
    } else {
        ask(Value::Object(asked), None)
    }
}

/// What the client sent, which may be anything.
struct Answers<'a>(Option<&'a rmcp::model::InputResponses>);

impl Answers<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0?.get(name).filter(|answer| answer.is_object())
    }

    fn accepted(&self, name: &str, field: &str) -> Option<&str> {
        let answer = self.get(name)?;
        (answer["action"] == "accept")
            .then(|| answer["content"][field].as_str())
            .flatten()
    }

    fn sampled(&self, name: &str) -> Option<String> {
        let content = &self.get(name)?["content"];
        content["text"]
            .as_str()
            .or(content[0]["text"].as_str())
            .map(str::to_owned)
    }
}

pub(super) fn elicit(message: &str, field: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": {field: {"type": kind}}, "required": [field]},
    }})
}

fn confirm() -> Value {
    json!({"confirm": elicit("Please confirm", "ok", "boolean")})
}

fn sample(question: &str, max_tokens: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": question}}],
        "maxTokens": max_tokens,
    }})
}

fn ask(asked: Value, state: Option<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(InputRequiredResult::new(Some(from_json(asked)?), state).into())
}

fn said(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn seal(what: &str) -> String {
    let tag = keyed_hash(KEY, &[what.as_bytes()]);
    format!("{}.{}", URL_SAFE_NO_PAD.encode(what), URL_SAFE_NO_PAD.encode(tag))
}

fn open(state: &str, what: &str) -> Result<(), ErrorData> {
    if bool::from(seal(what).as_bytes().ct_eq(state.as_bytes())) {
        Ok(())
    } else {
        Err(refused())
    }
}

fn refused() -> ErrorData {
    ErrorData::invalid_params("requestState is not one that this server gave out", None)
}
