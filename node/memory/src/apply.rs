//! What commands do. Pure and total: a rejected command is a successful apply, and no decodable command panics (I-07).
//!
//! One command, one file. Every command checks first and writes afterwards, so a rejection leaves nothing behind.

mod canonicalize;
mod changes;
mod clear;
mod conflicts;
mod delete;
mod duplicates;
mod handoff;
pub(crate) mod import;
mod links;
mod meta;
mod remember;
mod requests;
mod resolve;
mod transaction;
mod update;
mod vectors;

use crate::command::{Command, Entry};
use crate::outcome::{Applied, Effects, Outcome, Rejection};
use crate::tables::{Key, Row, ShardKey, Tables, typed};
use crate::time::Stamp;
use transaction::Transaction;

/// Applies one entry to the tables of its shard.
pub fn apply(tables: &mut dyn Tables, entry: &Entry) -> Applied {
    let stamp = next_stamp(typed::last_stamp(&*tables), entry.stamp);
    tables.put(Key::Shard(ShardKey::LastStamp), Row::Stamp(stamp));
    let request = entry.request.as_ref().zip(entry.command.tenant());
    if let Some((request, tenant)) = request
        && let Some(outcome) = requests::first_outcome(&*tables, tenant, request)
    {
        return Applied {
            outcome,
            effects: Effects::default(),
        };
    }
    let mut effects = Effects {
        tenant: entry.command.tenant().cloned(),
        ..Effects::default()
    };
    let outcome = match execute(tables, stamp, entry, &mut effects) {
        Ok(outcome) => outcome,
        Err(rejection) => Outcome::Rejected(rejection),
    };
    if let Some((request, tenant)) = request {
        requests::record(tables, tenant, request, stamp.wall, &outcome);
    }
    effects.changed.sort_unstable();
    effects.changed.dedup();
    Applied { outcome, effects }
}

/// Stamps increase strictly per shard, also across leaders whose clocks differ (I-08).
fn next_stamp(last: Stamp, proposed: Stamp) -> Stamp {
    proposed.max(last.next())
}

fn execute(tables: &mut dyn Tables, stamp: Stamp, entry: &Entry, effects: &mut Effects) -> Result<Outcome, Rejection> {
    let now = stamp.wall;
    let Some(tenant) = entry.command.tenant() else {
        return match &entry.command {
            Command::ExpireRequests { before } => Ok(requests::expire(tables, *before)),
            Command::InitCluster(placement) => meta::init_cluster(tables, placement),
            Command::ChangePlacement(placement) => meta::change_placement(tables, placement),
            Command::CreateJoinToken(token) => meta::create_join_token(tables, token, now),
            Command::JoinNode(join) => meta::join_node(tables, join, now),
            Command::CreateTenant(tenant) => meta::create_tenant(tables, tenant, now),
            Command::CreateKey(key) => meta::create_key(tables, key, now),
            Command::RevokeKey { id, of_tenant } => meta::revoke_key(tables, id, of_tenant.as_ref(), now),
            _ => Ok(Outcome::Done),
        };
    };
    let mut tx = Transaction::begin(tables, tenant, now, &entry.principal, effects);
    let outcome = match &entry.command {
        Command::Remember(command) => remember::apply_remember(&mut tx, command),
        Command::UpdateMemory(command) => update::apply_update(&mut tx, command),
        Command::DeleteMemory { id, .. } => delete::apply_delete(&mut tx, *id),
        Command::DeleteLink { id, .. } => Ok(links::apply_delete_link(&mut tx, *id)),
        Command::StoreLink(command) => links::apply_store_link(&mut tx, command),
        Command::ResolveConflict(command) => resolve::apply_resolve(&mut tx, command),
        Command::ImportRecords(command) => import::apply_import(&mut tx, command),
        Command::Canonicalize(command) => canonicalize::apply_canonicalize(&mut tx, command),
        Command::Clear(command) => Ok(clear::apply_clear(&mut tx, command)),
        Command::AttachVectors(command) => Ok(vectors::apply_attach(&mut tx, command)),
        Command::StoreMessages(command) => handoff::apply_store(&mut tx, command),
        Command::RememberMessages(command) => handoff::apply_remember(&mut tx, command),
        _ => Ok(Outcome::Done),
    }?;
    tx.finish();
    Ok(outcome)
}
