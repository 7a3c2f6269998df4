//! The first tenants and keys of a cluster, made over the same service that gateways use. Every step can be repeated:
//! a key is written to its file first and announced second, so a crash in between is made up for by the next start.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tonic::transport::Channel;
use waggle_config::identity::{self, Access};
use waggle_config::runtime::clock::Clock;
use waggle_gateway::OPERATOR_TENANT;
use waggle_gateway::keys::{ApiKeyText, hash_matches};
use waggle_memory::meta::KeyScopes;
use waggle_proto::wire::meta_service_client::MetaServiceClient;
use waggle_proto::wire::{CreateKeyRequest, CreateTenantRequest, FindKeyRequest, KeyInfo};

const PRINCIPAL: &str = "system";

/// A key that lives in a file.
struct FileKey<'a> {
    file: &'a Path,
    tenant: &'a str,
    name: &'a str,
    scopes: KeyScopes,
    environment: &'a str,
}

pub(crate) struct Bootstrap<'a> {
    pub(crate) meta: MetaServiceClient<Channel>,
    pub(crate) pepper: &'a str,
    pub(crate) clock: &'a dyn Clock,
}

impl Bootstrap<'_> {
    /// The operators' tenant, and a key of it in `file`.
    pub(crate) async fn operator(&mut self, file: &Path, environment: &str) -> Result<String> {
        self.tenant(OPERATOR_TENANT, "Operators").await?;
        let scopes = KeyScopes::ADMIN_READ.with(KeyScopes::ADMIN_WRITE);
        self.key(&FileKey {
            file,
            tenant: OPERATOR_TENANT,
            name: "first operator",
            scopes,
            environment,
        })
        .await
    }

    /// The tenant of `waggle dev`, and the key that it prints.
    pub(crate) async fn developer(&mut self, file: &Path, tenant: &str) -> Result<String> {
        self.tenant(tenant, "Development").await?;
        self.key(&FileKey {
            file,
            tenant,
            name: "waggle dev",
            scopes: KeyScopes::ALL,
            environment: "dev",
        })
        .await
    }

    async fn tenant(&mut self, id: &str, name: &str) -> Result<()> {
        let request = CreateTenantRequest {
            principal: PRINCIPAL.to_owned(),
            tenant_id: id.to_owned(),
            name: name.to_owned(),
        };
        self.meta
            .create_tenant(request)
            .await
            .with_context(|| format!("make the tenant '{id}'"))?;
        Ok(())
    }

    async fn key(&mut self, wanted: &FileKey<'_>) -> Result<String> {
        let doing = || format!("make the key in {}", wanted.file.display());
        if wanted.file.exists() {
            let text = identity::read_secret(wanted.file)?;
            let key = ApiKeyText::parse(&text).with_context(|| {
                format!(
                    "read {}; remove it, the next start makes a new one",
                    wanted.file.display()
                )
            })?;
            let request = FindKeyRequest {
                key_id: key.kid().to_owned(),
            };
            let found = self.meta.find_key(request).await.with_context(doing)?.into_inner();
            let Some(info) = found.key else {
                self.announce(wanted, &key).await.with_context(doing)?;
                return Ok(text);
            };
            if !hash_matches(&found.secret_hash, &key.keyed_hash(self.pepper.as_bytes())) {
                bail!(
                    "the key in {} does not fit this cluster: key or pepper was exchanged; put the old file back, or \
                     remove it for a new key",
                    wanted.file.display()
                );
            }
            let now = self.clock.wall().0;
            if info.revoked_at.is_none_or(|at| at > now) {
                return Ok(text);
            }
            tracing::info!(file = %wanted.file.display(), "the key was revoked; making a new one");
        }
        let key = ApiKeyText::make(wanted.environment).with_context(doing)?;
        identity::write(wanted.file, format!("{}\n", key.reveal()).as_bytes(), Access::Owner)?;
        self.announce(wanted, &key).await.with_context(doing)?;
        Ok(key.reveal())
    }

    async fn announce(&mut self, wanted: &FileKey<'_>, key: &ApiKeyText) -> Result<()> {
        let info = KeyInfo {
            key_id: key.kid().to_owned(),
            tenant_id: wanted.tenant.to_owned(),
            name: wanted.name.to_owned(),
            scopes: u32::from(wanted.scopes.bits()),
            created_by: PRINCIPAL.to_owned(),
            created_at: self.clock.wall().0,
            expires_at: None,
            revoked_at: None,
            unlimited: true,
        };
        let secret_hash = key.keyed_hash(self.pepper.as_bytes()).to_vec();
        let request = CreateKeyRequest {
            principal: PRINCIPAL.to_owned(),
            key: Some(info),
            secret_hash,
        };
        self.meta.create_key(request).await?;
        Ok(())
    }
}
