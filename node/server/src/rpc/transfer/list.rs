//! A page of memories or links, by id. What is written while somebody walks shows where its id comes later.

use std::sync::Arc;

use waggle_memory::id::{LinkId, MemoryId};
use waggle_memory::link::Link;
use waggle_memory::memory::Memory;
use waggle_memory::tables::typed::TenantRows;
use waggle_memory::time::Millis;
use waggle_proto::wire::list_request::What;
use waggle_proto::wire::{self, ListReply, ListRequest, ReadPoint};

use crate::call::Call;
use crate::engine::Engine;
use crate::error::CallError;
use crate::rpc::scoped::Scoped;
use crate::rpc::views;

/// Most items of one page.
const LISTED_MAX: u32 = 200;
/// Rows that are looked at for one page, and how many are read at once.
const LOOKED_AT_MAX: usize = 5_000;
const ROWS_AT_ONCE: usize = 200;
/// About as many bytes are enough for one page.
const PAGE_BYTES: usize = 1024 * 1024;

pub(super) async fn handle(engine: &Arc<Engine>, request: ListRequest) -> Result<ListReply, CallError> {
    let call = Call::new(engine, request.context.clone())?;
    if !(1..=LISTED_MAX).contains(&request.limit) {
        return Err(CallError::invalid(
            "limit",
            format!("{}; 1 to {LISTED_MAX}", request.limit),
        ));
    }
    let scoped = Scoped::of(&wire::scope_of(request.scope.clone())?);
    let after = match request.after.as_slice() {
        [] => None,
        bytes => Some(
            <[u8; 16]>::try_from(bytes).map_err(|_| CallError::invalid("after", "an id has 16 bytes".to_owned()))?,
        ),
    };
    let what = request.what();
    let applied_index = call.linearize().await?;
    let shard = call.shard;
    call.read(move |engine, rows| {
        let page = Page {
            rows,
            scoped: &scoped,
            request: &request,
            now: engine.clock.wall(),
        };
        let mut reply = match what {
            What::Memories => page.memories(after.map(MemoryId::from_bytes)),
            What::Links => page.links(after.map(LinkId::from_bytes)),
        };
        reply.read_at = Some(ReadPoint {
            shard: shard.0,
            applied_index,
            stamp: engine.clock.wall().0,
        });
        Ok(reply)
    })
    .await
}

struct Page<'a> {
    rows: TenantRows<'a>,
    scoped: &'a Scoped,
    request: &'a ListRequest,
    now: Millis,
}

impl Page<'_> {
    fn memories(&self, mut after: Option<MemoryId>) -> ListReply {
        let mut reply = ListReply::default();
        let mut bytes = 0;
        for _ in 0..LOOKED_AT_MAX / ROWS_AT_ONCE {
            let rows = self.rows.memories_after(after, ROWS_AT_ONCE);
            let is_last = rows.len() < ROWS_AT_ONCE;
            for memory in rows {
                if self.is_full(reply.memories.len(), bytes) {
                    reply.next = after.map(|id| id.bytes().to_vec()).unwrap_or_default();
                    return reply;
                }
                after = Some(memory.id);
                if self.wants(memory.kind.number()) && self.has(&memory) {
                    bytes += memory.content.len() + memory.source_prompt.len();
                    reply.memories.push(views::full(self.rows, &memory, self.now));
                }
            }
            if is_last {
                return reply;
            }
        }
        reply.next = after.map(|id| id.bytes().to_vec()).unwrap_or_default();
        reply
    }

    fn links(&self, mut after: Option<LinkId>) -> ListReply {
        let mut reply = ListReply::default();
        let mut bytes = 0;
        for _ in 0..LOOKED_AT_MAX / ROWS_AT_ONCE {
            let rows = self.rows.links_after(after, ROWS_AT_ONCE);
            let is_last = rows.len() < ROWS_AT_ONCE;
            for link in rows {
                if self.is_full(reply.links.len(), bytes) {
                    reply.next = after.map(|id| id.bytes().to_vec()).unwrap_or_default();
                    return reply;
                }
                after = Some(link.id);
                if self.wants(link.relationship.number()) && self.joins(&link) {
                    bytes += link.reason.len();
                    reply.links.push(wire::link(&link));
                }
            }
            if is_last {
                return reply;
            }
        }
        reply.next = after.map(|id| id.bytes().to_vec()).unwrap_or_default();
        reply
    }

    fn is_full(&self, count: usize, bytes: usize) -> bool {
        count >= usize::try_from(self.request.limit).unwrap_or(usize::MAX) || bytes >= PAGE_BYTES
    }

    fn wants(&self, number: u8) -> bool {
        self.request.kinds.is_empty() || self.request.kinds.contains(&u32::from(number))
    }

    fn has(&self, memory: &Memory) -> bool {
        let holds = self.request.include_invalidated || memory.valid_to.is_none_or(|to| to > self.now);
        holds && self.scoped.holds(self.rows, memory)
    }

    /// Both ends are in the listing.
    fn joins(&self, link: &Link) -> bool {
        let has = |end| self.rows.memory(end).is_some_and(|memory| self.has(&memory));
        has(link.source) && has(link.target)
    }
}
