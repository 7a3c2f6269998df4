//! Commands of the meta shard: the cluster's first entry, tenants, API keys. Each may be repeated: the same content
//! again is a success, other content under the same id is refused.

use crate::command::JoinNode;
use crate::id::TenantId;
use crate::meta::{ApiKey, JoinToken, KeyId, NodeState, Placement, Tenant};
use crate::outcome::{Outcome, Rejection};
use crate::placement;
use crate::tables::{Key, Row, ShardKey, Tables, typed};
use crate::time::Millis;

pub(super) fn init_cluster(tables: &mut dyn Tables, placement: &Placement) -> Result<Outcome, Rejection> {
    match typed::placement(&*tables) {
        Some(there) if there.cluster != placement.cluster => Err(Rejection::AlreadyExists {
            what: "cluster",
            id: there.cluster.to_string(),
        }),
        Some(_) => Ok(Outcome::Done),
        None => {
            tables.put(Key::Shard(ShardKey::Placement), Row::Placement(placement.clone()));
            Ok(Outcome::Done)
        }
    }
}

/// The placement that follows the stored one. One that is stored already is a success, so that a retry is harmless.
pub(super) fn change_placement(tables: &mut dyn Tables, next: &Placement) -> Result<Outcome, Rejection> {
    let Some(now) = typed::placement(&*tables) else {
        return Err(no_cluster());
    };
    if now == *next {
        return Ok(Outcome::Done);
    }
    if Some(next.version) != now.version.checked_add(1) {
        return Err(Rejection::VersionConflict {
            current: u32::try_from(now.version).unwrap_or(u32::MAX),
        });
    }
    placement::check(&now, next).map_err(|refused| Rejection::Invalid {
        field: "placement",
        why: refused.0,
    })?;
    tables.put(Key::Shard(ShardKey::Placement), Row::Placement(next.clone()));
    Ok(Outcome::Done)
}

fn no_cluster() -> Rejection {
    Rejection::NotFound {
        what: "cluster",
        id: "placement".to_owned(),
    }
}

/// Tokens that wait for a node; one that is over or used makes room for a new one.
const JOIN_TOKENS_MAX: usize = 64;

pub(super) fn create_join_token(tables: &mut dyn Tables, token: &JoinToken, now: Millis) -> Result<Outcome, Rejection> {
    let key = |id: KeyId| Key::Shard(ShardKey::JoinToken(id));
    // '~' sorts after every letter and digit of an id.
    let (from, to) = (key(KeyId(String::new())), key(KeyId("~".to_owned())));
    let mut kept = 0;
    for (key, row) in tables.scan(&from, &to, 2 * JOIN_TOKENS_MAX) {
        match row {
            Row::JoinToken(old) if old.id == token.id => return Ok(Outcome::Done),
            Row::JoinToken(old) if old.expires_at > now && old.used_by.is_none() => kept += 1,
            _ => tables.delete(key),
        }
    }
    if kept >= JOIN_TOKENS_MAX {
        return Err(Rejection::LimitExceeded {
            why: format!("{JOIN_TOKENS_MAX} join tokens wait for a node; use one of them, or let them end"),
        });
    }
    tables.put(key(token.id.clone()), Row::JoinToken(token.clone()));
    Ok(Outcome::Done)
}

/// A node joins once. The same data directory with the same token again is a success: its first answer may have been
/// lost. The same number with another data directory is not: see [`crate::meta::NodeInfo::incarnation`].
pub(super) fn join_node(tables: &mut dyn Tables, join: &JoinNode, now: Millis) -> Result<Outcome, Rejection> {
    let refuse = |why: String| Rejection::Invalid {
        field: "join_token",
        why,
    };
    let Some(mut placement) = typed::placement(&*tables) else {
        return Err(no_cluster());
    };
    let token = typed::join_token(&*tables, &join.token).filter(|token| token.secret_hash == join.secret_hash);
    let Some(mut token) = token else {
        return Err(refuse(
            "is not known; make one with `waggle cluster join-token`".to_owned(),
        ));
    };
    let known = placement.node(join.node.id);
    match token.used_by {
        Some(_) if known.is_some_and(|known| known.incarnation == join.node.incarnation) => return Ok(Outcome::Done),
        Some(node) => return Err(refuse(format!("was used by node {}; make another one", node.0))),
        None if token.expires_at <= now => {
            return Err(refuse(
                "is over; make another one with `waggle cluster join-token`".to_owned(),
            ));
        }
        None => {}
    }
    if known.is_some() {
        return Err(Rejection::AlreadyExists {
            what: "node",
            id: join.node.id.0.to_string(),
        });
    }
    token.used_by = Some(join.node.id);
    let mut node = join.node.clone();
    (node.state, node.joined_at) = (NodeState::Active, now);
    placement.nodes.push(node);
    placement.nodes.sort_by_key(|node| node.id);
    placement.version = placement.version.saturating_add(1);
    tables.put(Key::Shard(ShardKey::JoinToken(token.id.clone())), Row::JoinToken(token));
    tables.put(Key::Shard(ShardKey::Placement), Row::Placement(placement));
    Ok(Outcome::Done)
}

pub(super) fn create_tenant(tables: &mut dyn Tables, tenant: &Tenant, now: Millis) -> Result<Outcome, Rejection> {
    match typed::tenant_info(&*tables, &tenant.id) {
        Some(there) if there.name != tenant.name => Err(Rejection::AlreadyExists {
            what: "tenant",
            id: tenant.id.to_string(),
        }),
        Some(_) => Ok(Outcome::Done),
        None => {
            let row = Tenant {
                created_at: now,
                ..tenant.clone()
            };
            tables.put(
                Key::Shard(ShardKey::TenantInfo(tenant.id.clone())),
                Row::TenantInfo(row),
            );
            Ok(Outcome::Done)
        }
    }
}

pub(super) fn create_key(tables: &mut dyn Tables, key: &ApiKey, now: Millis) -> Result<Outcome, Rejection> {
    if typed::tenant_info(&*tables, &key.tenant).is_none() {
        return Err(Rejection::NotFound {
            what: "tenant",
            id: key.tenant.to_string(),
        });
    }
    match typed::api_key(&*tables, &key.id) {
        Some(there) if there.secret_hash == key.secret_hash && there.tenant == key.tenant => Ok(Outcome::Done),
        Some(_) => Err(Rejection::AlreadyExists {
            what: "key",
            id: key.id.to_string(),
        }),
        None => {
            let row = ApiKey {
                created_at: now,
                revoked_at: None,
                ..key.clone()
            };
            tables.put(
                Key::Shard(ShardKey::KeyOfTenant(key.tenant.clone(), key.id.clone())),
                Row::Mark,
            );
            tables.put(Key::Shard(ShardKey::ApiKey(key.id.clone())), Row::ApiKey(row));
            Ok(Outcome::Done)
        }
    }
}

pub(super) fn revoke_key(
    tables: &mut dyn Tables,
    id: &KeyId,
    of_tenant: Option<&TenantId>,
    now: Millis,
) -> Result<Outcome, Rejection> {
    // A key of another tenant looks like an unknown one.
    let found = typed::api_key(&*tables, id).filter(|key| of_tenant.is_none_or(|tenant| key.tenant == *tenant));
    let Some(mut key) = found else {
        return Err(Rejection::NotFound {
            what: "key",
            id: id.to_string(),
        });
    };
    if key.revoked_at.is_none() {
        key.revoked_at = Some(now);
        tables.put(Key::Shard(ShardKey::ApiKey(id.clone())), Row::ApiKey(key));
    }
    Ok(Outcome::Done)
}
