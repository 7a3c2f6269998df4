//! Request ids: the same id and the same arguments within 24 h give the first outcome (I-10).

use crate::command::Request;
use crate::id::TenantId;
use crate::outcome::{Outcome, Rejection};
use crate::tables::{Key, ReadTables, RequestRow, Row, ShardKey, Tables, TenantKey};
use crate::time::Millis;

/// Most request ids forgotten by one entry.
const EXPIRE_MAX: usize = 1_000;

pub(super) fn first_outcome(tables: &dyn ReadTables, tenant: &TenantId, request: &Request) -> Option<Outcome> {
    let key = Key::Tenant(tenant.clone(), TenantKey::Request(request.id.clone()));
    match tables.get(&key) {
        Some(Row::Request(row)) if row.arguments == request.arguments => Some(row.outcome),
        Some(Row::Request(_)) => Some(Outcome::Rejected(Rejection::RequestIdReused)),
        _ => None,
    }
}

pub(super) fn record(tables: &mut dyn Tables, tenant: &TenantId, request: &Request, at: Millis, outcome: &Outcome) {
    let row = RequestRow {
        arguments: request.arguments,
        at,
        outcome: outcome.clone(),
    };
    tables.put(
        Key::Tenant(tenant.clone(), TenantKey::Request(request.id.clone())),
        Row::Request(row),
    );
    tables.put(
        Key::Shard(ShardKey::RequestAge(at, tenant.clone(), request.id.clone())),
        Row::Mark,
    );
}

pub(super) fn expire(tables: &mut dyn Tables, before: Millis) -> Outcome {
    let from = Key::Shard(ShardKey::RequestAge(
        Millis(i64::MIN),
        smallest_tenant(),
        crate::id::RequestId(String::new()),
    ));
    let to = Key::Shard(ShardKey::RequestAge(
        before,
        smallest_tenant(),
        crate::id::RequestId(String::new()),
    ));
    for (key, _) in tables.scan(&from, &to, EXPIRE_MAX) {
        if let Key::Shard(ShardKey::RequestAge(_, tenant, id)) = &key {
            tables.delete(Key::Tenant(tenant.clone(), TenantKey::Request(id.clone())));
        }
        tables.delete(key);
    }
    Outcome::Done
}

/// No valid tenant id sorts before it.
fn smallest_tenant() -> TenantId {
    // "0" is valid: the expression cannot fail, and a wrong bound would only forget a little less.
    #[expect(clippy::unwrap_used, reason = "a constant that the id's own test covers")]
    "0".parse().unwrap()
}
