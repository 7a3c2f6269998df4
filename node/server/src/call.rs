//! One call of one tenant: who, on which shard, and the two things that calls do: read and propose.

use std::sync::Arc;
use std::time::Duration;

use waggle_memory::command::{Command, Request};
use waggle_memory::id::{Principal, RequestId, TenantId};
use waggle_memory::meta::ShardId;
use waggle_memory::outcome::Outcome;
use waggle_memory::tables::typed::TenantRows;
use waggle_proto::wire::CallContext;
use waggle_shard::Proposal;

use crate::engine::Engine;
use crate::error::CallError;

/// Longest wait of a bounded read for a replica that lags.
const BOUNDED_WAIT_MAX: Duration = Duration::from_millis(250);
const BOUNDED_POLL: Duration = Duration::from_millis(5);
/// Longest request id in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// A call whose tenant this node serves.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) engine: Arc<Engine>,
    pub(crate) tenant: TenantId,
    pub(crate) principal: Principal,
    pub(crate) shard: ShardId,
    request: Option<Request>,
}

/// A write that is in the log.
pub(crate) struct Written {
    pub(crate) outcome: Outcome,
}

impl Call {
    /// Checks that the caller named everything and that this tenant's shard is here.
    pub(crate) fn new(engine: &Arc<Engine>, context: Option<CallContext>) -> Result<Self, CallError> {
        let context = context.ok_or_else(|| CallError::invalid("context", "is missing"))?;
        let tenant: TenantId = context
            .tenant
            .parse()
            .map_err(|bad| CallError::invalid("context.tenant", format!("{bad}")))?;
        if context.principal.is_empty() || context.principal.len() > 512 {
            return Err(CallError::invalid("context.principal", "1 to 512 bytes"));
        }
        if context.request_id.len() > REQUEST_ID_BYTES_MAX || context.request_id.contains('\0') {
            return Err(CallError::invalid(
                "context.request_id",
                format!("at most {REQUEST_ID_BYTES_MAX} bytes, no NUL"),
            ));
        }
        let placement = engine.placement.load();
        // The owner of this very tenant decides, not equality of versions: an old table may be right about it.
        let owner = placement
            .shard_of(&tenant)
            .ok_or_else(|| CallError::invalid("context.tenant", "has no shard"))?;
        if context.shard != owner.0 || engine.shards.get(owner).is_none() {
            return Err(CallError::wrong_shard(owner.0, placement.version));
        }
        let request = (!context.request_id.is_empty()).then_some(Request {
            id: RequestId(context.request_id),
            arguments: context.arguments_fingerprint,
        });
        Ok(Self {
            engine: Arc::clone(engine),
            tenant,
            principal: Principal(context.principal),
            shard: owner,
            request,
        })
    }

    /// The same caller for a step that is harmless to repeat: its outcome is not kept under the request id.
    pub(crate) fn without_request(&self) -> Self {
        Self {
            request: None,
            ..self.clone()
        }
    }

    /// The same call as one of several commands: each has a request id of its own, the same on every repetition.
    pub(crate) fn step(&self, number: u32) -> Self {
        let request = self.request.as_ref().map(|request| Request {
            id: RequestId(format!("{}\u{1}{number}", request.id.0)),
            arguments: request.arguments,
        });
        Self {
            request,
            ..self.clone()
        }
    }

    fn time_max(&self) -> Duration {
        self.engine.options.call_time_max
    }

    /// Waits until the tables show every write acknowledged before this call began (I-11).
    pub(crate) async fn linearize(&self) -> Result<u64, CallError> {
        let point = self
            .engine
            .shard(self.shard)?
            .linearizable_read(self.time_max())
            .await?;
        Ok(point.applied_index)
    }

    /// For a bounded read: waits a moment until the tables of this replica, which need not lead, show an entry that the
    /// caller has seen. One that lags more is refused, and the caller goes to the leader.
    pub(crate) async fn at_least(&self, index: u64) -> Result<u64, CallError> {
        let shard = self.engine.shard(self.shard)?;
        let deadline = tokio::time::Instant::now() + BOUNDED_WAIT_MAX;
        loop {
            let status = shard.status();
            // Without a leader nobody can say how old this replica is.
            let leader = status.leader.map(|(_, member)| member.node);
            match (status.applied_index, leader) {
                (Some(applied), Some(_)) if applied >= index => return Ok(applied),
                (_, leader) if tokio::time::Instant::now() >= deadline => {
                    return Err(CallError::not_leader(leader.unwrap_or(0)));
                }
                _ => tokio::time::sleep(BOUNDED_POLL).await,
            }
        }
    }

    /// Reads the tenant's rows on a blocking thread.
    pub(crate) async fn read<T, F>(&self, read: F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: FnOnce(&Engine, TenantRows<'_>) -> Result<T, CallError> + Send + 'static,
    {
        let (shard, tenant) = (self.shard, self.tenant.clone());
        self.engine
            .blocking(move |engine| engine.with_rows(shard, &tenant, |rows| read(engine, rows)))
            .await
    }

    /// Proposes a command that adds data; refused while the disk is below its reserve.
    pub(crate) async fn propose(&self, command: Command) -> Result<Written, CallError> {
        if self.engine.database.is_below_reserve().unwrap_or(true) {
            return Err(CallError::storage_full(
                "the disk has reached its reserve: only reads and deletions are possible; free space on this node or add a disk",
            ));
        }
        self.propose_always(command).await
    }

    /// Proposes a command that frees data: deletions work on a full disk, too.
    pub(crate) async fn propose_always(&self, command: Command) -> Result<Written, CallError> {
        let proposal = Proposal {
            principal: self.principal.clone(),
            request: self.request.clone(),
            command,
        };
        let proposed = self
            .engine
            .shard(self.shard)?
            .propose(proposal, self.time_max())
            .await?;
        match proposed.outcome {
            Outcome::Rejected(rejection) => Err(rejection.into()),
            outcome => Ok(Written { outcome }),
        }
    }
}
