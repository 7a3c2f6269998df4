//! REST for the shape of the cluster, for operators: who is in it, where shards are, who leads, who may join.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::routing::{get, post};
use http::{HeaderMap, Response, StatusCode, Uri};
use serde_json::{Value, json};
use waggle_memory::meta::{ClusterId, KeyScopes, NodeId, NodeState, ReplicaState};
use waggle_proto::wire;

use super::admin::{AdminCall, read_object, respond, text_field};
use crate::app::App;
use crate::fault::Fault;
use crate::join_token::{self, Token};
use crate::route::timed;

/// How long a join token works if nobody says otherwise, and at most.
const TOKEN_TIME: Duration = Duration::from_secs(3_600);
const TOKEN_TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
const DIGEST_TIME_MAX: Duration = Duration::from_secs(30);

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/admin/cluster", get(show))
        .route("/api/admin/join-tokens", post(create_join_token))
        .route("/api/admin/nodes/{id}/state", post(set_node_state))
        .route("/api/admin/shards/{id}/leader", post(transfer_leader))
        .route("/api/admin/shards/{id}/digests", get(digests))
}

/// What concerns the whole cluster is for operators only.
async fn operator(app: &App, uri: &Uri, headers: &HeaderMap, scope: KeyScopes) -> Result<AdminCall, Fault> {
    let call = AdminCall::begin(app, uri, headers, scope).await?;
    if call.caller.is_operator() {
        return Ok(call);
    }
    Err(Fault::new(
        "authorization_failed",
        "this key administers its own tenant only; use an operator's key",
    ))
}

async fn show(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Response<Body> {
    respond(StatusCode::OK, show_cluster(&app, &uri, &headers).await)
}

async fn show_cluster(app: &App, uri: &Uri, headers: &HeaderMap) -> Result<Value, Fault> {
    operator(app, uri, headers, KeyScopes::ADMIN_READ).await?;
    let placement = app
        .cluster
        .meta(|mut client, left| async move { client.get_placement(timed(wire::GetPlacementRequest {}, left)).await })
        .await?;
    let statuses = app.cluster.statuses().await;
    Ok(describe(&placement, &statuses))
}

/// Placement and what nodes say, shard by shard.
fn describe(placement: &wire::Placement, statuses: &[(NodeId, Option<wire::NodeStatusReply>)]) -> Value {
    let status_of = |node: u64| {
        let found = statuses.iter().find(|(known, _)| known.0 == node);
        found.and_then(|(_, status)| status.as_ref())
    };
    let shard_on = |node: u64, shard: u32| {
        let status = status_of(node)?;
        status.shards.iter().find(|known| known.shard == shard)
    };
    let shards: Vec<Value> = placement
        .shards
        .iter()
        .map(|shard| {
            let slots = placement.slots.iter().filter(|owner| **owner == shard.shard).count();
            let leader = statuses.iter().find_map(|(node, status)| {
                let led = status
                    .as_ref()?
                    .shards
                    .iter()
                    .find(|known| known.shard == shard.shard)?;
                led.is_leader.then_some((node.0, led))
            });
            let replicas: Vec<Value> = shard
                .replicas
                .iter()
                .map(|replica| {
                    let here = shard_on(replica.node, shard.shard);
                    json!({
                        "replica": replica.id,
                        "node": replica.node,
                        "state": replica_state(replica.state),
                        "role": here.map(|here| here.role.as_str()),
                        "applied_index": here.map(|here| here.applied_index),
                        "last_log_index": here.map(|here| here.last_log_index),
                        "snapshot_index": here.map(|here| here.snapshot_index),
                        "halted": here.map(|here| here.halted.as_str()).filter(|why| !why.is_empty()),
                    })
                })
                .collect();
            json!({
                "shard": shard.shard,
                "slots": slots,
                "leader": leader.map(|(node, _)| node),
                "term": leader.map(|(_, led)| led.term),
                "voters": leader.map(|(_, led)| led.voters.len()),
                "replicas": replicas,
            })
        })
        .collect();
    let nodes: Vec<Value> = placement
        .nodes
        .iter()
        .map(|node| {
            let status = status_of(node.id);
            let held = status.map(|status| status.shards.len());
            let led = status.map(|status| status.shards.iter().filter(|shard| shard.is_leader).count());
            json!({
                "node": node.id,
                "address": node.address,
                "zone": node.zone,
                "state": node_state(node.state),
                "joined_at": node.joined_at,
                "answers": status.is_some(),
                "version": status.map(|status| status.version.as_str()),
                "replicas": held,
                "leads": led,
                "degraded": status.map(|status| status.degraded.clone()).unwrap_or_default(),
            })
        })
        .collect();
    json!({
        "cluster_id": super::health::hex(&placement.cluster_id),
        "placement_version": placement.version,
        "replication": placement.replication,
        "nodes": nodes,
        "shards": shards,
    })
}

fn replica_state(number: u32) -> &'static str {
    let known = u8::try_from(number).ok().and_then(ReplicaState::from_number);
    known.map_or("unknown", ReplicaState::word)
}

fn node_state(number: u32) -> &'static str {
    let known = u8::try_from(number).ok().and_then(NodeState::from_number);
    known.map_or("unknown", NodeState::word)
}

async fn create_join_token(State(app): State<Arc<App>>, headers: HeaderMap, request: Request) -> Response<Body> {
    respond(StatusCode::CREATED, make_token(&app, &headers, request).await)
}

async fn make_token(app: &App, headers: &HeaderMap, request: Request) -> Result<Value, Fault> {
    let call = operator(app, request.uri(), headers, KeyScopes::ADMIN_WRITE).await?;
    let fields = read_object(request, &["ttl_seconds"]).await?;
    let time = match fields.get("ttl_seconds") {
        None | Some(Value::Null) => TOKEN_TIME,
        Some(given) => given
            .as_u64()
            .map(Duration::from_secs)
            .filter(|time| !time.is_zero() && *time <= TOKEN_TIME_MAX)
            .ok_or_else(|| Fault::validation("ttl_seconds", "is a number from 1 to 604800"))?,
    };
    let (id, secret) = join_token::draw().map_err(|_| Fault::internal())?;
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let expires_at = app.clock.wall().plus(millis);
    let reply = app
        .cluster
        .meta(|mut client, left| {
            let request = wire::CreateJoinTokenRequest {
                principal: call.caller.principal.clone(),
                id: id.0.clone(),
                secret_hash: join_token::hash(&secret),
                expires_at: expires_at.0,
            };
            async move { client.create_join_token(timed(request, left)).await }
        })
        .await?;
    let cluster = reply.cluster_id.try_into().map_err(|_| Fault::internal())?;
    let token = Token {
        cluster: ClusterId(cluster),
        id,
        secret,
        contacts: reply
            .nodes
            .iter()
            .map(|node| (NodeId(node.id), node.address.clone()))
            .collect(),
    };
    Ok(json!({"token": token.text(), "id": token.id.0, "expires_at": expires_at.to_string()}))
}

async fn set_node_state(
    State(app): State<Arc<App>>,
    Path(node): Path<u64>,
    headers: HeaderMap,
    request: Request,
) -> Response<Body> {
    respond(StatusCode::OK, change_node(&app, node, &headers, request).await)
}

async fn change_node(app: &App, node: u64, headers: &HeaderMap, request: Request) -> Result<Value, Fault> {
    let call = operator(app, request.uri(), headers, KeyScopes::ADMIN_WRITE).await?;
    let fields = read_object(request, &["state"]).await?;
    let words = [NodeState::Active, NodeState::Draining, NodeState::Decommissioning];
    let state = text_field(&fields, "state")?
        .and_then(|word| words.into_iter().find(|state| state.word() == word))
        .ok_or_else(|| Fault::validation("state", "is one of active, draining, decommissioning"))?;
    let placement = app
        .cluster
        .meta(|mut client, left| {
            let request = wire::SetNodeStateRequest {
                principal: call.caller.principal.clone(),
                node,
                state: state.number().into(),
            };
            async move { client.set_node_state(timed(request, left)).await }
        })
        .await?;
    Ok(json!({"node": node, "state": state.word(), "placement_version": placement.version}))
}

async fn transfer_leader(
    State(app): State<Arc<App>>,
    Path(shard): Path<u32>,
    headers: HeaderMap,
    request: Request,
) -> Response<Body> {
    respond(StatusCode::OK, move_leader(&app, shard, &headers, request).await)
}

async fn move_leader(app: &App, shard: u32, headers: &HeaderMap, request: Request) -> Result<Value, Fault> {
    operator(app, request.uri(), headers, KeyScopes::ADMIN_WRITE).await?;
    let fields = read_object(request, &["to_node"]).await?;
    let to_node = match fields.get("to_node") {
        None | Some(Value::Null) => 0,
        Some(node) => node
            .as_u64()
            .filter(|node| *node > 0)
            .ok_or_else(|| Fault::validation("to_node", "is the number of a node"))?,
    };
    let reply = app
        .cluster
        .at_leader(shard, |mut client, left| {
            let request = wire::TransferLeaderRequest { shard, to_node };
            async move { client.transfer_leader(timed(request, left)).await }
        })
        .await?;
    Ok(json!({"shard": shard, "leader": reply.leader_node, "took_ms": reply.took_ms}))
}

async fn digests(State(app): State<Arc<App>>, Path(shard): Path<u32>, uri: Uri, headers: HeaderMap) -> Response<Body> {
    respond(StatusCode::OK, compare(&app, shard, &uri, &headers).await)
}

async fn compare(app: &App, shard: u32, uri: &Uri, headers: &HeaderMap) -> Result<Value, Fault> {
    operator(app, uri, headers, KeyScopes::ADMIN_READ).await?;
    let found = app.cluster.digests(shard, DIGEST_TIME_MAX).await?;
    let hashes: Vec<(u64, Vec<u8>)> = found
        .iter()
        .filter_map(|(_, reply)| reply.as_ref().ok())
        .map(|reply| (reply.applied_index, reply.digest.clone()))
        .collect();
    let complete = hashes.len() == found.len() && !hashes.is_empty();
    let equal = complete && hashes.windows(2).all(|pair| pair[0] == pair[1]);
    let replicas: Vec<Value> = found
        .iter()
        .map(|(node, reply)| match reply {
            Ok(reply) => json!({
                "node": node.0,
                "applied_index": reply.applied_index,
                "digest": super::health::hex(&reply.digest),
            }),
            Err(why) => json!({"node": node.0, "problem": why}),
        })
        .collect();
    Ok(json!({"shard": shard, "equal": equal, "replicas": replicas}))
}
