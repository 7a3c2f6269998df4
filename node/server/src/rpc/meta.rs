//! The meta shard's service: placement, tenants, keys, status.

use std::sync::Arc;
use std::time::Duration;

use tonic::{Request, Response, Status};
use waggle_memory::command::Command;
use waggle_memory::id::{Principal, TenantId};
use waggle_memory::meta::{ApiKey, KeyId, ShardId, Tenant};
use waggle_memory::outcome::Outcome;
use waggle_memory::tables::{Key, ReadTables, Row, ShardKey, typed};
use waggle_proto::wire::meta_service_server::MetaService;
use waggle_proto::wire::{
    self, CreateJoinTokenReply, CreateJoinTokenRequest, CreateKeyRequest, CreateTenantRequest, FindKeyReply,
    FindKeyRequest, GetPlacementRequest, KeyInfo, ListKeysReply, ListKeysRequest, ListTenantsReply, ListTenantsRequest,
    NodeStatusReply, NodeStatusRequest, Placement, PlanClusterReply, PlanClusterRequest, RevokeKeyRequest,
    SetNodeStateRequest, ShardDigestReply, ShardDigestRequest, TenantInfo, TransferLeaderReply, TransferLeaderRequest,
    WatchPlacementRequest,
};
use waggle_shard::Proposal;

use crate::engine::Engine;
use crate::error::CallError;

/// Most tenants or keys of one answer.
const LISTED_MAX: usize = 10_000;

/// MetaService.
#[derive(Clone)]
pub(crate) struct MetaCalls {
    pub(crate) engine: Arc<Engine>,
}

impl MetaCalls {
    async fn linearize(&self) -> Result<(), CallError> {
        let time_max: Duration = self.engine.options.call_time_max;
        self.engine.shard(ShardId::META)?.linearizable_read(time_max).await?;
        Ok(())
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn ReadTables) -> T + Send + 'static,
    ) -> Result<T, CallError> {
        self.engine
            .blocking(move |engine| {
                engine
                    .database
                    .read(ShardId::META, read)
                    .map_err(|fault| CallError::halted("read the meta shard", &fault))
            })
            .await
    }

    async fn propose(&self, principal: String, command: Command) -> Result<Outcome, CallError> {
        let proposal = Proposal {
            principal: Principal(principal),
            request: None,
            command,
        };
        let proposed = self
            .engine
            .shard(ShardId::META)?
            .propose(proposal, self.engine.options.call_time_max)
            .await?;
        match proposed.outcome {
            Outcome::Rejected(rejection) => Err(rejection.into()),
            outcome => Ok(outcome),
        }
    }

    async fn key(&self, id: KeyId) -> Result<Option<ApiKey>, CallError> {
        self.read(move |tables| typed::api_key(tables, &id)).await
    }
}

fn tenant_info(tenant: &Tenant, existed: bool) -> TenantInfo {
    TenantInfo {
        tenant_id: tenant.id.to_string(),
        name: tenant.name.clone(),
        status: "active".to_owned(),
        created_at: tenant.created_at.0,
        existed,
    }
}

fn tenant_of(text: &str) -> Result<TenantId, CallError> {
    text.parse()
        .map_err(|bad| CallError::invalid("tenant_id", format!("{bad}")))
}

fn smallest_tenant() -> Result<TenantId, CallError> {
    tenant_of("0")
}

#[tonic::async_trait]
impl MetaService for MetaCalls {
    async fn get_placement(&self, _: Request<GetPlacementRequest>) -> Result<Response<Placement>, Status> {
        Ok(Response::new(wire::placement(&self.engine.placement.load())))
    }

    type WatchPlacementStream = super::placement::Placements;

    async fn watch_placement(
        &self,
        request: Request<WatchPlacementRequest>,
    ) -> Result<Response<Self::WatchPlacementStream>, Status> {
        let known = request.into_inner().known_version;
        Ok(Response::new(super::placement::watch(&self.engine, known)))
    }

    async fn create_join_token(
        &self,
        request: Request<CreateJoinTokenRequest>,
    ) -> Result<Response<CreateJoinTokenReply>, Status> {
        let reply = super::placement::create_join_token(&self.engine, request.into_inner()).await?;
        Ok(Response::new(reply))
    }

    async fn set_node_state(&self, request: Request<SetNodeStateRequest>) -> Result<Response<Placement>, Status> {
        let reply = super::placement::set_node_state(&self.engine, request.into_inner()).await?;
        Ok(Response::new(reply))
    }

    async fn plan_cluster(&self, request: Request<PlanClusterRequest>) -> Result<Response<PlanClusterReply>, Status> {
        let reply = super::placement::plan(&self.engine, request.into_inner()).await?;
        Ok(Response::new(reply))
    }

    async fn transfer_leader(
        &self,
        request: Request<TransferLeaderRequest>,
    ) -> Result<Response<TransferLeaderReply>, Status> {
        let reply = super::placement::transfer_leader(&self.engine, request.into_inner()).await?;
        Ok(Response::new(reply))
    }

    async fn shard_digest(&self, request: Request<ShardDigestRequest>) -> Result<Response<ShardDigestReply>, Status> {
        let reply = super::placement::shard_digest(&self.engine, request.into_inner()).await?;
        Ok(Response::new(reply))
    }

    async fn find_key(&self, request: Request<FindKeyRequest>) -> Result<Response<FindKeyReply>, Status> {
        let id = KeyId(request.into_inner().key_id);
        self.linearize().await?;
        let found = self.key(id).await?;
        Ok(Response::new(FindKeyReply {
            key: found.as_ref().map(wire::key_info),
            secret_hash: found.map(|key| key.secret_hash).unwrap_or_default(),
        }))
    }

    async fn create_tenant(&self, request: Request<CreateTenantRequest>) -> Result<Response<TenantInfo>, Status> {
        let request = request.into_inner();
        let id = tenant_of(&request.tenant_id)?;
        if request.name.is_empty() || request.name.len() > 256 {
            return Err(CallError::invalid("name", "1 to 256 bytes").into());
        }
        let wanted = id.clone();
        let existed = self
            .read(move |tables| typed::tenant_info(tables, &wanted).is_some())
            .await?;
        let tenant = Tenant {
            id: id.clone(),
            name: request.name,
            created_at: self.engine.clock.wall(),
        };
        self.propose(request.principal, Command::CreateTenant(tenant)).await?;
        let stored = self.read(move |tables| typed::tenant_info(tables, &id)).await?;
        let stored = stored.ok_or_else(|| CallError::halted("read a tenant", &"it is not there after its creation"))?;
        Ok(Response::new(tenant_info(&stored, existed)))
    }

    async fn list_tenants(&self, _: Request<ListTenantsRequest>) -> Result<Response<ListTenantsReply>, Status> {
        self.linearize().await?;
        let smallest = smallest_tenant()?;
        let rows = self
            .read(move |tables| {
                let from = Key::Shard(ShardKey::TenantInfo(smallest));
                let to = Key::Shard(ShardKey::ApiKey(KeyId(String::new())));
                tables.scan(&from, &to, LISTED_MAX)
            })
            .await?;
        let tenants: Vec<TenantInfo> = rows
            .iter()
            .filter_map(|(_, row)| {
                if let Row::TenantInfo(tenant) = row {
                    Some(tenant_info(tenant, true))
                } else {
                    None
                }
            })
            .collect();
        let truncated = tenants.len() == LISTED_MAX;
        Ok(Response::new(ListTenantsReply { tenants, truncated }))
    }

    async fn create_key(&self, request: Request<CreateKeyRequest>) -> Result<Response<KeyInfo>, Status> {
        let request = request.into_inner();
        let info = request.key.ok_or_else(|| CallError::invalid("key", "is missing"))?;
        if request.secret_hash.len() != 32 {
            return Err(CallError::invalid("secret_hash", "has 32 bytes").into());
        }
        let key = wire::key_of(info, request.secret_hash).map_err(CallError::from)?;
        let id = key.id.clone();
        self.propose(request.principal, Command::CreateKey(key)).await?;
        let stored = self
            .key(id.clone())
            .await?
            .ok_or_else(|| CallError::not_found("key", &id.0))?;
        Ok(Response::new(wire::key_info(&stored)))
    }

    async fn list_keys(&self, request: Request<ListKeysRequest>) -> Result<Response<ListKeysReply>, Status> {
        let asked = request.into_inner().tenant_id;
        // Empty: the keys of every tenant, in the order of tenants.
        let (first, last) = if asked.is_empty() {
            (smallest_tenant()?, tenant_of(&"z".repeat(TenantId::BYTES_MAX))?)
        } else {
            (tenant_of(&asked)?, tenant_of(&asked)?)
        };
        self.linearize().await?;
        let keys: Vec<KeyInfo> = self
            .read(move |tables| {
                let from = Key::Shard(ShardKey::KeyOfTenant(first, KeyId(String::new())));
                // '~' sorts after every letter and digit of a key id.
                let to = Key::Shard(ShardKey::KeyOfTenant(last, KeyId("~".to_owned())));
                let ids = tables
                    .scan(&from, &to, LISTED_MAX)
                    .into_iter()
                    .filter_map(|(key, _)| match key {
                        Key::Shard(ShardKey::KeyOfTenant(_, id)) => Some(id),
                        _ => None,
                    });
                ids.filter_map(|id| typed::api_key(tables, &id))
                    .map(|key| wire::key_info(&key))
                    .collect()
            })
            .await?;
        let truncated = keys.len() == LISTED_MAX;
        Ok(Response::new(ListKeysReply { keys, truncated }))
    }

    async fn revoke_key(&self, request: Request<RevokeKeyRequest>) -> Result<Response<KeyInfo>, Status> {
        let request = request.into_inner();
        let id = KeyId(request.key_id);
        let of_tenant = if request.of_tenant.is_empty() {
            None
        } else {
            Some(tenant_of(&request.of_tenant)?)
        };
        self.propose(
            request.principal,
            Command::RevokeKey {
                id: id.clone(),
                of_tenant,
            },
        )
        .await?;
        let stored = self
            .key(id.clone())
            .await?
            .ok_or_else(|| CallError::not_found("key", &id.0))?;
        Ok(Response::new(wire::key_info(&stored)))
    }

    async fn node_status(&self, _: Request<NodeStatusRequest>) -> Result<Response<NodeStatusReply>, Status> {
        let status = self.engine.blocking(|engine| Ok(crate::status::of(engine))).await?;
        Ok(Response::new(NodeStatusReply {
            node_id: status.node.0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            shards: status.shards.iter().map(crate::status::ShardSummary::to_wire).collect(),
            disk_free_bytes: status.disk_free_bytes,
            disk_total_bytes: status.disk_total_bytes,
            read_only: status.read_only,
            degraded: status.degraded(),
            encoder_queue: u64::try_from(status.encoder_queue).unwrap_or(u64::MAX),
            encoder_kernel: status.encoder_kernel.clone(),
            encoder_model: status.encoder_model.clone(),
            index_bytes: u64::try_from(status.index_bytes).unwrap_or(u64::MAX),
            index_tenants: u64::try_from(status.index_tenants).unwrap_or(u64::MAX),
        }))
    }
}
