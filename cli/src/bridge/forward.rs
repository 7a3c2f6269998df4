//! One message to the gateway, and what comes back.

use std::sync::OnceLock;

use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::MESSAGE_BYTES_MAX;
use super::message::{Message, REFUSED};
use super::sse::Events;

/// Where messages go.
pub(crate) struct Gateway {
    http: reqwest::Client,
    url: String,
    key: String,
    /// What `initialize` agreed on; later messages name it.
    version: OnceLock<String>,
}

/// Why there is no answer of the gateway.
type Refusal = String;

impl Gateway {
    pub(crate) fn new(http: reqwest::Client, url: String, key: String) -> Self {
        Self {
            http,
            url,
            key,
            version: OnceLock::new(),
        }
    }

    /// Sends a message and hands on everything that it is answered with. A request always gets an answer.
    pub(super) async fn forward(&self, message: &Message, answers: &Sender<Value>) {
        let outcome = self.exchange(message, answers).await;
        let refusal = match outcome {
            Ok(true) => return,
            Ok(false) if message.id().is_none() => return,
            Ok(false) => "the gateway did not answer the request".to_owned(),
            Err(refusal) => refusal,
        };
        match message.error(REFUSED, &refusal) {
            // The other end is this program: it goes away only when nothing is read any more.
            Some(answer) => drop(answers.send(answer).await),
            None => eprintln!("waggle mcp: {}: {refusal}", message.method()),
        }
    }

    /// True when the request got its answer.
    async fn exchange(&self, message: &Message, answers: &Sender<Value>) -> Result<bool, Refusal> {
        let mut request = self
            .http
            .post(&self.url)
            .bearer_auth(&self.key)
            .header("accept", "application/json, text/event-stream")
            .json(&message.body);
        for (name, value) in message.headers(self.version.get().map(String::as_str)) {
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type");
        let streams = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if streams {
            return self.stream(message, response, answers).await;
        }
        let body = self.body(response).await?;
        match serde_json::from_slice::<Value>(&body) {
            Ok(answer) if is_answer(&answer) => self.hand_on(message, answer, answers).await,
            Ok(problem) if !(200..300).contains(&status) => Err(refused(status, &problem)),
            _ if (200..300).contains(&status) => Ok(false),
            _ => Err(refused(status, &Value::Null)),
        }
    }

    async fn stream(
        &self,
        message: &Message,
        mut response: reqwest::Response,
        answers: &Sender<Value>,
    ) -> Result<bool, Refusal> {
        let mut events = Events::new(MESSAGE_BYTES_MAX);
        let mut answered = false;
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            for data in events.push(&piece).map_err(|_| too_large())? {
                match serde_json::from_str::<Value>(&data) {
                    Ok(answer) => answered |= self.hand_on(message, answer, answers).await?,
                    Err(error) => eprintln!("waggle mcp: an event of the gateway is not JSON: {error}"),
                }
            }
        }
        Ok(answered)
    }

    async fn body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Refusal> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if body.len() + piece.len() > MESSAGE_BYTES_MAX {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// True when it is the answer to the request. An error that names no request is the answer to this one.
    async fn hand_on(&self, message: &Message, mut answer: Value, answers: &Sender<Value>) -> Result<bool, Refusal> {
        let Some(id) = message.id() else {
            eprintln!("waggle mcp: {}: {}", message.method(), answer["error"]["message"]);
            return Ok(true);
        };
        let ends = answer.get("method").is_none();
        if ends && answer.get("error").is_some() && answer["id"].is_null() {
            answer["id"] = id.clone();
        }
        let ends = ends && answer.get("id") == Some(id);
        if ends
            && message.method() == "initialize"
            && let Some(version) = answer.pointer("/result/protocolVersion").and_then(Value::as_str)
        {
            // A second initialize of one client agrees on the same version.
            drop(self.version.set(version.to_owned()));
        }
        answers
            .send(answer)
            .await
            .map_err(|_| "nobody reads any more".to_owned())?;
        Ok(ends)
    }

    fn unreachable(&self, error: &reqwest::Error) -> Refusal {
        if error.is_timeout() {
            return format!("{} did not answer in time; a change may have happened", self.url);
        }
        let mut why: &dyn std::error::Error = error;
        while let Some(source) = why.source() {
            why = source;
        }
        format!("reach {}: {why}; is the gateway running?", self.url)
    }
}

fn is_answer(value: &Value) -> bool {
    value.get("jsonrpc").is_some() && (value.get("result").is_some() || value.get("error").is_some())
}

fn too_large() -> Refusal {
    format!("the answer of the gateway has more than {MESSAGE_BYTES_MAX} bytes")
}

fn refused(status: u16, problem: &Value) -> Refusal {
    let what = ["error", "detail", "message"]
        .iter()
        .find_map(|name| problem.get(name).and_then(Value::as_str));
    match what {
        Some(what) => format!("the gateway answered {status}: {what}"),
        None => format!("the gateway answered {status}"),
    }
}
