//! What a node does by itself: vectors that follow their text, request ids that are forgotten, numbers for the metrics.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use waggle_memory::command::{AttachVectors, Command, LateVector};
use waggle_memory::id::{Principal, TenantId};
use waggle_memory::meta::ShardId;
use waggle_memory::tables::Item;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_shard::Proposal;

use crate::engine::Engine;
use crate::error::CallError;
use crate::plan;

/// Items embedded for one AttachVectors: about a third of a second of one core.
const LATE_BATCH: usize = 32;
/// How long the encoder is left alone after it took nothing.
const LATE_EVERY: Duration = Duration::from_millis(500);
/// How often request ids are forgotten.
const EXPIRE_EVERY: Duration = Duration::from_secs(60);
/// How long a request id is kept.
const REQUEST_KEPT: i64 = 24 * 60 * 60 * 1_000;
/// How often gauges are set.
const GAUGES_EVERY: Duration = Duration::from_secs(5);

/// Who proposes the system's own commands.
fn system() -> Principal {
    Principal("system".to_owned())
}

/// Embeds what was stored as text first. Work that a former process left is found at start in the tables.
pub(crate) async fn late_vectors(
    engine: Arc<Engine>,
    mut announced: mpsc::Receiver<(ShardId, TenantId)>,
    waiting_at_start: Vec<(ShardId, TenantId)>,
    stop: CancellationToken,
) {
    let mut waiting: BTreeSet<(ShardId, TenantId)> = waiting_at_start.into_iter().collect();
    // Work goes on at once while batches succeed; after a failure, and with nothing to do, it pauses.
    let mut go_on = true;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            next = announced.recv() => match next {
                Some(next) => { waiting.insert(next); }
                None => return,
            },
            () = tokio::time::sleep(if go_on { Duration::ZERO } else { LATE_EVERY }), if !waiting.is_empty() => {}
        }
        while let Ok(next) = announced.try_recv() {
            waiting.insert(next);
        }
        go_on = true;
        for (shard, tenant) in waiting.clone() {
            if stop.is_cancelled() {
                return;
            }
            match attach_batch(&engine, shard, &tenant, &stop).await {
                Ok(Attached::All) => {
                    waiting.remove(&(shard, tenant));
                }
                Ok(Attached::Some) => {}
                Ok(Attached::None) => go_on = false,
                Err(error) => {
                    go_on = false;
                    tracing::warn!(?error, %shard, "vectors that follow their text wait a little longer");
                }
            }
        }
    }
}

/// How far the waiting items of a tenant are.
enum Attached {
    /// Nothing waits any more.
    All,
    /// A batch is done; there may be more.
    Some,
    /// The encoder takes nothing right now.
    None,
}

/// Embeds some waiting items of a tenant.
async fn attach_batch(
    engine: &Arc<Engine>,
    shard: ShardId,
    tenant: &TenantId,
    stop: &CancellationToken,
) -> Result<Attached, CallError> {
    let reading = tenant.clone();
    let texts = engine
        .blocking(move |engine| engine.with_rows(shard, &reading, |rows| Ok(waiting_texts(rows))))
        .await?;
    if texts.is_empty() {
        return Ok(Attached::All);
    }
    // The leader does it; here it waits in case this replica leads next.
    if !engine.shard(shard)?.leads() {
        return Ok(Attached::None);
    }
    let (items, texts): (Vec<(Item, u32)>, Vec<String>) = texts.into_iter().map(|(i, v, t)| ((i, v), t)).unzip();
    // Long texts take their time, and nobody waits for them at the end: they are found again at the next start. Only this
    // wait is given up; a read that was dropped would still hold the node.
    let vectors = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(Attached::None),
        vectors = engine.embedder.late(texts) => vectors,
    };
    let Some(vectors) = vectors else {
        return Ok(Attached::None);
    };
    let items = items
        .into_iter()
        .zip(vectors)
        .map(|((item, text_version), vector)| LateVector {
            item,
            text_version,
            vector,
        })
        .collect();
    let command = Command::AttachVectors(AttachVectors {
        tenant: tenant.clone(),
        items,
    });
    let proposal = Proposal {
        principal: system(),
        request: None,
        command,
    };
    engine
        .shard(shard)?
        .propose(proposal, engine.options.call_time_max)
        .await?;
    Ok(Attached::Some)
}

fn waiting_texts(rows: TenantRows<'_>) -> Vec<(Item, u32, String)> {
    let items = rows.awaiting_vectors(None, LATE_BATCH);
    items
        .into_iter()
        .map(|item| match item {
            Item::Memory(id) => rows
                .memory(id)
                .map(|memory| {
                    (
                        item,
                        memory.text_version,
                        plan::meaning_of(&memory.label, &memory.content),
                    )
                })
                .unwrap_or((item, 0, String::new())),
            Item::Turn(id) => (item, 0, rows.turn(id).map(|turn| turn.text).unwrap_or_default()),
        })
        .collect()
}

/// Forgets request ids after their time, on every shard.
pub(crate) async fn expire_requests(engine: Arc<Engine>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EXPIRE_EVERY) => {}
        }
        let before: Millis = engine.clock.wall().plus(-REQUEST_KEPT);
        let led = engine.shards.handles().into_iter().filter(|handle| handle.leads());
        for shard in led.map(|handle| handle.shard()).collect::<Vec<_>>() {
            // Most of the time nothing is due, and then nothing goes into the log.
            let due = engine
                .blocking(move |engine| Ok(crate::engine::requests_due(engine, shard, before)))
                .await;
            if !matches!(due, Ok(true)) {
                continue;
            }
            let proposal = Proposal {
                principal: system(),
                request: None,
                command: Command::ExpireRequests { before },
            };
            let Ok(handle) = engine.shard(shard) else { continue };
            if let Err(error) = handle.propose(proposal, engine.options.call_time_max).await {
                tracing::debug!(%error, %shard, "request ids are forgotten later");
            }
        }
    }
}

/// Sets the gauges of storage, index and encoder.
pub(crate) async fn gauges(engine: Arc<Engine>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(GAUGES_EVERY) => {}
        }
        let _ = engine
            .blocking(|engine| {
                crate::status::set_gauges(engine);
                Ok(())
            })
            .await;
    }
}
