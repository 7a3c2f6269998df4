//! `GET /api/graph`: nodes and edges by id, page by page, for programs that read a graph without a file of it. The same
//! order of checks as MCP: host and origin, credential, method, scope, arguments.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::routing::any;
use http::header::ALLOW;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use serde_json::{Map, Value};
use tokio::time::Instant;
use uuid::Uuid;
use waggle_config::limits::SCOPE_PART_BYTES_MAX;
use waggle_memory::kind::{Kind, Relationship};
use waggle_memory::meta::KeyScopes;
use waggle_proto::wire::list_request::What;
use waggle_proto::wire::{ListReply, ListRequest, Scope};
use xxhash_rust::xxh3::xxh3_64;

use super::answer::{json_response, rest_fault};
use super::entrance::caller_of;
use super::gate;
use crate::app::App;
use crate::auth::Caller;
use crate::cursor::{Binding, Position, Walk};
use crate::fault::Fault;
use crate::limits::Cost;
use crate::mcp::translate::{full_edge, full_node};
use crate::metric::InFlight;
use crate::route::{Call, timed};

/// Items of a page that says nothing of its size, and most of any.
const LIMIT_DEFAULT: u32 = 100;
const LIMIT_MAX: u32 = 200;

/// What a path lists, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listing {
    name: &'static str,
    lists: &'static [What],
}

const GRAPH: Listing = Listing {
    name: "graph",
    lists: &[What::Memories, What::Links],
};
const NODES: Listing = Listing {
    name: "graph/nodes",
    lists: &[What::Memories],
};
const EDGES: Listing = Listing {
    name: "graph/edges",
    lists: &[What::Links],
};

pub(crate) fn routes() -> Router<Arc<App>> {
    let route = |listing: Listing| {
        any(move |State(app): State<Arc<App>>, request: Request| async move { answer(&app, listing, request).await })
    };
    Router::new()
        .route("/api/graph", route(GRAPH))
        .route("/api/graph/nodes", route(NODES))
        .route("/api/graph/edges", route(EDGES))
}

async fn answer(app: &Arc<App>, listing: Listing, request: Request) -> Response<Body> {
    let (request, _) = request.into_parts();
    let request_id = Uuid::now_v7().to_string();
    let started = app.clock.monotonic();
    let in_flight = InFlight::enter();
    let mut response = match app.public_guard.check(&request.uri, &request.headers) {
        Err(fault) => rest_fault(&fault, &request_id),
        Ok(origin) if request.method == Method::OPTIONS => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            origin.mark_preflight(response.headers_mut(), "GET");
            response
        }
        Ok(origin) => {
            let mut response = match listed(app, listing, &request, &request_id).await {
                Ok(page) => json_response(StatusCode::OK, &page),
                Err(fault) => rest_fault(&fault, &request_id),
            };
            if response.status() == StatusCode::METHOD_NOT_ALLOWED {
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            }
            origin.mark(response.headers_mut());
            response
        }
    };
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    drop(in_flight);
    let spent = app.clock.monotonic().saturating_sub(started);
    gate::count("rest", "graph", response.status(), spent);
    response
}

async fn listed(app: &App, listing: Listing, request: &Parts, request_id: &str) -> Result<Value, Fault> {
    let caller = caller_of(app, &request.uri, &request.headers).await?;
    if request.method != Method::GET {
        return Err(Fault::new("method_not_allowed", "this path takes GET only"));
    }
    caller.require(KeyScopes::GRAPH_READ)?;
    let _pass = app.rates.enter(&caller, Cost::Read)?;
    let asked = Asked::read(listing, &request.uri)?;
    let now = app.clock.wall();
    let binding = Binding {
        tenant: caller.tenant.as_str(),
        key_id: &caller.key_id,
        tool: listing.name,
        arguments: asked.fingerprint,
    };
    let (mut list, mut after) = (0, None);
    if let Some(cursor) = &asked.cursor
        && let Position::Behind(number, id) = app.cursors.open(cursor, binding, now)?.position
    {
        (list, after) = (usize::from(number), Some(id));
    }
    let call = Call {
        request_id: request_id.to_owned(),
        fingerprint: asked.fingerprint,
        deadline: Instant::now() + app.limits.call_time_default(),
        writes: false,
        bounded: false,
    };
    let mut page = Map::new();
    for what in listing.lists {
        page.insert(name_of(*what).to_owned(), Value::Array(Vec::new()));
    }
    let mut left = asked.limit;
    let mut next = None;
    while let Some(what) = listing.lists.get(list) {
        let reply = read(app, &caller, &call, &asked, *what, after, left).await?;
        if let Some(point) = &reply.read_at {
            let read_at = app.read_points.seal(point, caller.tenant.as_str());
            page.insert("read_at".to_owned(), read_at.into());
        }
        let items = items_of(&reply, caller.tenant.as_str());
        left = left.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        page.insert(name_of(*what).to_owned(), items.into());
        if let Ok(id) = <[u8; 16]>::try_from(reply.next.as_slice()) {
            next = Some((list, id));
            break;
        }
        (list, after) = (list + 1, None);
        if left == 0 && list < listing.lists.len() {
            // The list before all others begins behind no id.
            next = Some((list, [0; 16]));
            break;
        }
    }
    if let Some((list, id)) = next {
        let walk = Walk {
            started: now,
            position: Position::Behind(u8::try_from(list).unwrap_or(u8::MAX), id),
            ..Walk::default()
        };
        page.insert("next_cursor".to_owned(), app.cursors.seal(&walk, binding, now).into());
    }
    Ok(Value::Object(page))
}

async fn read(
    app: &App,
    caller: &Caller,
    call: &Call,
    asked: &Asked,
    what: What,
    after: Option<[u8; 16]>,
    limit: u32,
) -> Result<ListReply, Fault> {
    let request = ListRequest {
        context: None,
        scope: Some(asked.scope.clone()),
        what: what.into(),
        after: after.map(|id| id.to_vec()).unwrap_or_default(),
        limit,
        kinds: match what {
            What::Memories => asked.kinds.clone(),
            What::Links => asked.relationships.clone(),
        },
        include_invalidated: asked.include_invalidated,
    };
    app.cluster
        .transfer(caller, call, |mut client, context, left| {
            let request = timed(
                ListRequest {
                    context: Some(context),
                    ..request.clone()
                },
                left,
            );
            async move { client.list(request).await }
        })
        .await
}

const fn name_of(what: What) -> &'static str {
    match what {
        What::Memories => "nodes",
        What::Links => "edges",
    }
}

fn items_of(reply: &ListReply, tenant: &str) -> Vec<Value> {
    let nodes = reply.memories.iter().map(|memory| full_node(memory, tenant).value());
    nodes
        .chain(reply.links.iter().map(|link| full_edge(link).value()))
        .collect()
}

/// The query of the address, checked.
struct Asked {
    scope: Scope,
    kinds: Vec<u32>,
    relationships: Vec<u32>,
    include_invalidated: bool,
    limit: u32,
    cursor: Option<String>,
    /// Of everything but cursor and limit.
    fingerprint: u64,
}

impl Asked {
    fn read(listing: Listing, uri: &Uri) -> Result<Self, Fault> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map(|Query(pairs)| pairs)
            .map_err(|why| Fault::validation("query", format!("the query of the address cannot be read: {why}")))?;
        let mut asked = Self {
            scope: Scope::default(),
            kinds: Vec::new(),
            relationships: Vec::new(),
            include_invalidated: false,
            limit: LIMIT_DEFAULT,
            cursor: None,
            fingerprint: 0,
        };
        let mut stated = String::new();
        for (name, value) in pairs {
            let list = |what| listing.lists.contains(&what);
            match name.as_str() {
                "project" => asked.scope.project = part("project", &value)?,
                "agent_id" => asked.scope.agent_id = part("agent_id", &value)?,
                "session_id" => asked.scope.session_id = part("session_id", &value)?,
                "node_type" if list(What::Memories) => {
                    let allowed: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
                    for word in words(&value) {
                        let kind: Kind = word.parse().map_err(|_| unknown_word("node_type", word, &allowed))?;
                        asked.kinds.push(kind.number().into());
                    }
                }
                "relationship" if list(What::Links) => {
                    let allowed: Vec<&str> = Relationship::ALL.iter().map(|kind| kind.word()).collect();
                    for word in words(&value) {
                        let found: Relationship =
                            word.parse().map_err(|_| unknown_word("relationship", word, &allowed))?;
                        asked.relationships.push(found.number().into());
                    }
                }
                "include_invalidated" => asked.include_invalidated = flag("include_invalidated", &value)?,
                "limit" => {
                    let limit: Option<u32> = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                    asked.limit = limit.ok_or_else(|| {
                        Fault::validation("limit", format!("'limit' must be a whole number from 1 to {LIMIT_MAX}"))
                    })?;
                    continue;
                }
                "cursor" => {
                    asked.cursor = Some(value);
                    continue;
                }
                other => {
                    let allowed = "project, agent_id, session_id, node_type, relationship, include_invalidated, limit, \
                                   cursor, where they fit the path";
                    let what = format!("'{}' is none of {allowed}", other.escape_debug());
                    return Err(Fault::validation(other, what));
                }
            }
            stated.push_str(&format!("{name}\0{value}\0"));
        }
        asked.fingerprint = xxh3_64(stated.as_bytes());
        Ok(asked)
    }
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn unknown_word(field: &str, word: &str, allowed: &[&str]) -> Fault {
    let what = format!("'{}' is none of {}", word.escape_debug(), allowed.join(", "));
    Fault::validation(field, what)
}

fn part(field: &str, value: &str) -> Result<String, Fault> {
    if value.len() > SCOPE_PART_BYTES_MAX || value.contains('\0') {
        let what = format!("'{field}' may have {SCOPE_PART_BYTES_MAX} bytes and no NUL");
        return Err(Fault::validation(field, what));
    }
    Ok(value.to_owned())
}

fn flag(field: &str, value: &str) -> Result<bool, Fault> {
    value
        .parse()
        .map_err(|_| Fault::validation(field, format!("'{field}' must be true or false")))
}
