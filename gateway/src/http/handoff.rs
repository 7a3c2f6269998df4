//! `POST /api/transcripts/handoff`: a whole transcript, stored and extracted from once.
//!
//! The answer is the report of the command `waggle ingest-transcript-handoff` without the files that it writes.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;
use waggle_config::limits::HANDOFF_BYTES_MAX;
use waggle_memory::meta::KeyScopes;
use waggle_proto::wire::{self, HandoffMessage, HandoffReply, HandoffRequest};

use std::sync::Arc;

use super::answer::{json_response, rest_fault};
use super::entrance::{caller_of, tenant_given};
use super::{body, gate};
use crate::app::App;
use crate::fault::Fault;
use crate::handoff::{Malformed, Message, Scope, Transcript, read_document};
use crate::limits::Cost;
use crate::metric::InFlight;
use crate::route::{Call, timed};

/// Where it is.
pub(crate) const PATH: &str = "/api/transcripts/handoff";
/// The node stops this much earlier than the answer is waited for.
const MARGIN: Duration = Duration::from_secs(2);

const NO_SESSION: &str = "no session_id: messages are told apart in the session without a name, which all hand-offs \
                          without one share, and a block does not go on from an earlier hand-off; give a session_id";

/// How a transcript is taken: the query of the address, so that the body is the transcript alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    dry_run: bool,
    tool_boundary_splits_blocks: bool,
    first_position: u64,
}

/// What an answer is made of: a report, or a fault with what was done until then.
enum Ended {
    Done(Value),
    Refused(Fault),
    Unfinished(Fault, Value),
}

pub(crate) async fn handle(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let request_id = Uuid::now_v7().to_string();
    let started = app.clock.monotonic();
    let in_flight = InFlight::enter();
    let mut response = match app.public_guard.check(request.uri(), request.headers()) {
        Err(fault) => rest_fault(&fault, &request_id),
        Ok(origin) if request.method() == Method::OPTIONS => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            origin.mark_preflight(response.headers_mut(), "POST");
            response
        }
        Ok(origin) => {
            let mut response = answer(handoff(&app, request, &request_id).await, &request_id);
            origin.mark(response.headers_mut());
            response
        }
    };
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    drop(in_flight);
    let spent = app.clock.monotonic().saturating_sub(started);
    gate::count("rest", "handoff", response.status(), spent);
    response
}

fn answer(ended: Ended, request_id: &str) -> Response<Body> {
    match ended {
        Ended::Done(report) => json_response(StatusCode::OK, &report),
        Ended::Refused(fault) => {
            let mut response = rest_fault(&fault, request_id);
            if fault.status == 413 {
                // What is left of the body is not read: the connection cannot be used again.
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(http::header::CONNECTION, close);
            }
            response
        }
        Ended::Unfinished(fault, done) => {
            let plain = rest_fault(&fault, request_id);
            let mut fields = fault.fields(request_id);
            fields.insert("details".into(), done);
            let mut response = json_response(plain.status(), &Value::Object(fields));
            for (name, value) in plain.headers() {
                response.headers_mut().insert(name, value.clone());
            }
            response
        }
    }
}

async fn handoff(app: &App, request: Request, request_id: &str) -> Ended {
    let read = match read_request(app, request).await {
        Ok(read) => read,
        Err(fault) => return Ended::Refused(fault),
    };
    let (caller, options, transcript, _pass) = read;
    let Transcript {
        scope,
        messages,
        ignored,
    } = transcript;
    let mut warnings = ignored.warnings();
    if scope.session_id.is_empty() {
        warnings.push(NO_SESSION.to_owned());
    }
    let count = messages.len();
    let call = Call {
        request_id: request_id.to_owned(),
        fingerprint: 0,
        deadline: Instant::now() + app.limits.call_time_default(),
        writes: !options.dry_run,
        bounded: false,
    };
    let wire_request = wire_request(&scope, messages, options);
    let reply = app
        .cluster
        .transcripts(&caller, &call, |mut client, context, left| {
            let mut request = wire_request.clone();
            request.context = Some(context);
            request.time_ms = u64::try_from(left.saturating_sub(MARGIN).as_millis()).unwrap_or(u64::MAX);
            let request = timed(request, left);
            async move { client.handoff(request).await }
        })
        .await;
    match reply {
        Err(fault) => Ended::Refused(fault),
        Ok(reply) => {
            let report = report(&scope, count, &reply, options, warnings);
            if reply.messages_left == 0 && reply.logical_turns_left == 0 {
                Ended::Done(report)
            } else {
                Ended::Unfinished(unfinished(&reply), report)
            }
        }
    }
}

type Read = (crate::auth::Caller, Options, Transcript, crate::limits::Pass);

/// Credential, scope of the key, method, options and body, in this order.
async fn read_request(app: &App, request: Request) -> Result<Read, Fault> {
    let (parts, body) = request.into_parts();
    let caller = caller_of(app, &parts.uri, &parts.headers).await?;
    caller.require(KeyScopes::GRAPH_WRITE)?;
    if parts.method != Method::POST {
        let what = format!("{PATH} is used with POST only");
        return Err(Fault::new("method_not_allowed", what));
    }
    gate::check_content_type(&parts.headers)?;
    let options = Options::read(parts.uri.query().unwrap_or_default())?;
    let pass = app.rates.enter(&caller, Cost::Write)?;
    let transcript = read_transcript(app, &parts.headers, body).await?;
    if transcript.ignored.names_tenant() {
        return Err(tenant_given());
    }
    Ok((caller, options, transcript, pass))
}

async fn read_transcript(app: &App, headers: &HeaderMap, body: Body) -> Result<Transcript, Fault> {
    let bytes = body::read(headers, body, HANDOFF_BYTES_MAX).await?;
    let now = app.clock.wall();
    // 16 MiB of JSON take a tenth of a second: not on a thread that others wait for.
    let read = tokio::task::spawn_blocking(move || {
        read_document(body::text(&bytes)?, now).map_err(|malformed| match malformed {
            Malformed::Json { line, column, why } => Fault::new(
                "malformed_request",
                format!("the body is not a transcript: {why} (line {line}, column {column})"),
            ),
            Malformed::Content(problem) => Fault::validation(&problem.place(), problem.to_string()),
        })
    });
    read.await.map_err(|_| Fault::internal())?
}

impl Options {
    const NAMES: [&str; 3] = ["dry_run", "tool_boundary_splits_blocks", "first_position"];

    fn read(query: &str) -> Result<Self, Fault> {
        let mut options = Self::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, "true"));
            let wrong = |what: &str| Fault::validation(name, format!("'{name}' in the address must be {what}"));
            match name {
                "dry_run" => options.dry_run = flag(value).ok_or_else(|| wrong("true or false"))?,
                "tool_boundary_splits_blocks" => {
                    options.tool_boundary_splits_blocks = flag(value).ok_or_else(|| wrong("true or false"))?;
                }
                "first_position" => {
                    let number = value.parse().ok().filter(|number| *number <= u64::from(u32::MAX));
                    options.first_position = number.ok_or_else(|| wrong("a whole number"))?;
                }
                unknown => return Err(crate::mcp::arguments::unknown_field(unknown, &Self::NAMES)),
            }
        }
        Ok(options)
    }
}

fn flag(value: &str) -> Option<bool> {
    match value {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn wire_request(scope: &Scope, messages: Vec<Message>, options: Options) -> HandoffRequest {
    let messages = messages.into_iter().map(|message| HandoffMessage {
        role: u32::from(message.role.number()),
        text: message.content,
        timestamp: message.timestamp.map(|at| at.0),
        message_id: message.message_id,
    });
    HandoffRequest {
        context: None,
        scope: Some(wire::Scope {
            project: scope.project.clone(),
            agent_id: scope.agent_id.clone(),
            session_id: scope.session_id.clone(),
        }),
        messages: messages.collect(),
        first_position: options.first_position,
        tool_boundary_splits_blocks: options.tool_boundary_splits_blocks,
        dry_run: options.dry_run,
        time_ms: 0,
    }
}

fn report(scope: &Scope, count: usize, reply: &HandoffReply, options: Options, mut warnings: Vec<String>) -> Value {
    if reply.over_limit > 0 {
        warnings.push(format!(
            "extraction_limit: {} logical turns hold more statements than are extracted from one; their text is stored",
            reply.over_limit
        ));
    }
    if reply.redactions > 0 {
        warnings.push(format!(
            "secrets in {} places were left out of what was extracted; the messages are stored as they are",
            reply.redactions
        ));
    }
    let reason = if count == 0 {
        "no_messages"
    } else {
        "no_files_over_rest"
    };
    let mut report = Map::new();
    for (name, value) in [
        (
            "scope",
            json!({"project": scope.project, "agent_id": scope.agent_id, "session_id": scope.session_id}),
        ),
        ("input_message_count", json!(count)),
        ("transcript_records_written", json!(reply.records_written)),
        ("transcript_records_skipped", json!(reply.records_skipped)),
        ("logical_turns_processed", json!(reply.logical_turns)),
        ("unpaired_trailing_blocks", json!(reply.unpaired_trailing_blocks)),
        ("assistant_blocks_skipped", json!(reply.assistant_blocks_skipped)),
        ("nodes_created", json!(reply.memories_created)),
        ("nodes_reused", json!(reply.memories_reused)),
        ("conflicts", json!(reply.conflicts)),
        ("dry_run", json!(options.dry_run)),
        ("export_skipped", json!(true)),
        ("export_skipped_reason", json!(reason)),
        ("warnings", json!(warnings)),
    ] {
        report.insert(name.to_owned(), value);
    }
    Value::Object(report)
}

/// The time of one call did not suffice. What was done is kept, and counted in the details.
fn unfinished(reply: &HandoffReply) -> Fault {
    Fault::unavailable(
        format!(
            "the time of one call did not suffice: {} messages are still to be stored and {} logical turns to be \
             extracted from; nothing is lost: send the same transcript again, and it goes on from there",
            reply.messages_left, reply.logical_turns_left
        ),
        Duration::from_secs(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_in_the_address_and_are_checked() {
        let read = |query| Options::read(query).map_err(|fault| fault.what);
        assert_eq!(read(""), Ok(Options::default()));
        assert_eq!(
            read("dry_run=true&first_position=7&tool_boundary_splits_blocks=1"),
            Ok(Options {
                dry_run: true,
                tool_boundary_splits_blocks: true,
                first_position: 7
            })
        );
        for (query, expect) in [
            ("dry_run=maybe", "'dry_run' in the address must be true or false"),
            (
                "first_position=-1",
                "'first_position' in the address must be a whole number",
            ),
            ("dryrun=true", "unknown field 'dryrun'"),
        ] {
            let refused = read(query).expect_err(query);
            assert!(refused.starts_with(expect), "{refused}");
        }
    }
}
