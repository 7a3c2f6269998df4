//! Commands of the meta shard: the cluster's first entry, tenants, API keys. Each may be repeated: the same content
//! again is a success, other content under the same id is refused.

use crate::id::TenantId;
use crate::meta::{ApiKey, KeyId, Placement, Tenant};
use crate::outcome::{Outcome, Rejection};
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
