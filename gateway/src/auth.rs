//! Who asks. A credential becomes a [`Caller`] here and nowhere else; everything after reads tenant, author and scopes
//! from it.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use moka::sync::Cache;
use waggle_config::limits::KEYS_CACHED_MAX;
use waggle_config::runtime::clock::Clock;
use waggle_memory::id::TenantId;
use waggle_memory::meta::KeyScopes;
use waggle_proto::wire;

use crate::fault::Fault;
use crate::keys::{ApiKeyText, hash_matches};
use crate::options::Secret;
use crate::route::Cluster;

/// Keys of this tenant administer the whole cluster; keys of any other only their own tenant.
pub const OPERATOR_TENANT: &str = "system";

/// A row is believed this long without asking again.
const FRESH: Duration = Duration::from_secs(2);
/// While the meta shard does not answer, it is believed this long: a revocation is felt within five seconds.
const STALE: Duration = Duration::from_secs(4);

/// The holder of a valid credential.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: TenantId,
    pub(crate) key_id: String,
    /// The author of everything done with it.
    pub(crate) principal: String,
    pub(crate) scopes: KeyScopes,
    pub(crate) unlimited: bool,
}

impl Caller {
    pub(crate) fn is_operator(&self) -> bool {
        self.tenant.as_str() == OPERATOR_TENANT
    }

    pub(crate) fn require(&self, needed: KeyScopes) -> Result<(), Fault> {
        if self.scopes.contains(needed) {
            return Ok(());
        }
        metrics::counter!("waggle_gateway_rejected_requests_total", "reason" => "scope").increment(1);
        Err(Fault::new(
            "authorization_failed",
            format!(
                "this key lacks the scope {}; it has {}; use a key that has it",
                needed.words().join(" and "),
                if self.scopes.words().is_empty() {
                    "none".to_owned()
                } else {
                    self.scopes.words().join(", ")
                }
            ),
        ))
    }
}

/// What the request carries.
enum Presented<'a> {
    Nothing,
    Key(&'a str),
    /// A bearer token that is no key of ours.
    Other,
    Disagreeing,
}

struct CachedKey {
    reply: wire::FindKeyReply,
    fetched: Duration,
}

/// Checks credentials.
pub(crate) struct Auth {
    cluster: Arc<Cluster>,
    pepper: Secret,
    clock: Arc<dyn Clock>,
    rows: Cache<String, Arc<CachedKey>>,
}

impl Auth {
    pub(crate) fn new(cluster: Arc<Cluster>, pepper: Secret, clock: Arc<dyn Clock>) -> Self {
        let rows = Cache::builder()
            .max_capacity(KEYS_CACHED_MAX as u64)
            .time_to_live(STALE)
            .build();
        Self {
            cluster,
            pepper,
            clock,
            rows,
        }
    }

    pub(crate) async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Fault> {
        let outcome = self.check(headers).await;
        let (result, reason) = match &outcome {
            Ok(_) => ("ok", "none"),
            Err((_, reason)) => ("refused", *reason),
        };
        metrics::counter!("waggle_auth_attempts_total", "method" => "api_key", "outcome" => result, "reason" => reason)
            .increment(1);
        outcome.map_err(|(fault, _)| fault)
    }

    async fn check(&self, headers: &HeaderMap) -> Result<Caller, (Fault, &'static str)> {
        let text = match presented(headers) {
            Presented::Key(text) => text,
            Presented::Nothing => return Err((refused("no credential; send Authorization: Bearer <key>"), "missing")),
            Presented::Other => {
                return Err((
                    refused("the bearer token is not an API key of this cluster"),
                    "unsupported",
                ));
            }
            Presented::Disagreeing => {
                return Err((
                    refused("Authorization and X-API-Key name two different credentials; send one"),
                    "disagree",
                ));
            }
        };
        let key = ApiKeyText::parse(text).map_err(|why| (refused(&why.to_string()), "malformed"))?;
        let row = self.find(key.kid()).await.map_err(|fault| (fault, "unavailable"))?;
        let computed = key.keyed_hash(self.pepper.bytes());
        // An unknown id is compared with nothing at the same cost, and refused with the same words.
        let stored: &[u8] = if row.key.is_some() { &row.secret_hash } else { &[0; 32] };
        let matches = hash_matches(stored, &computed);
        let (true, Some(info)) = (matches, &row.key) else {
            return Err((
                refused("the API key is not valid; ask your administrator for a new one"),
                "unknown",
            ));
        };
        let now = self.clock.wall().0;
        if info.revoked_at.is_some_and(|at| at <= now) {
            return Err((
                refused("the API key was revoked; ask your administrator for a new one"),
                "revoked",
            ));
        }
        if info.expires_at.is_some_and(|at| at <= now) {
            return Err((
                refused("the API key has expired; ask your administrator for a new one"),
                "expired",
            ));
        }
        let Ok(tenant) = info.tenant_id.parse() else {
            tracing::error!(key = info.key_id, "key row names no valid tenant");
            return Err((Fault::internal(), "bad_row"));
        };
        Ok(Caller {
            tenant,
            principal: format!("key:{}", info.key_id),
            key_id: info.key_id.clone(),
            scopes: KeyScopes::from_bits(u8::try_from(info.scopes & 0xff).unwrap_or(0)),
            unlimited: info.unlimited,
        })
    }

    async fn find(&self, kid: &str) -> Result<wire::FindKeyReply, Fault> {
        let cached = self.rows.get(kid);
        let now = self.clock.monotonic();
        if let Some(row) = &cached {
            let age = now.saturating_sub(row.fetched);
            metrics::gauge!("waggle_auth_key_cache_age_seconds").set(age.as_secs_f64());
            if age < FRESH {
                return Ok(row.reply.clone());
            }
        }
        match self.cluster.find_key(kid).await {
            Ok(reply) => {
                // Only what exists is kept: a key made just now must work at once.
                if reply.key.is_some() {
                    let row = CachedKey {
                        reply: reply.clone(),
                        fetched: now,
                    };
                    self.rows.insert(kid.to_owned(), Arc::new(row));
                } else {
                    self.rows.invalidate(kid);
                }
                Ok(reply)
            }
            Err(fault) => match cached {
                Some(row) if now.saturating_sub(row.fetched) < STALE => Ok(row.reply.clone()),
                _ => Err(fault),
            },
        }
    }

    /// Forgets a key that was revoked through this gateway.
    pub(crate) fn forget(&self, kid: &str) {
        self.rows.invalidate(kid);
    }
}

fn refused(what: &str) -> Fault {
    metrics::counter!("waggle_gateway_rejected_requests_total", "reason" => "auth").increment(1);
    Fault::new("authentication_failed", what)
}

fn presented(headers: &HeaderMap) -> Presented<'_> {
    let mut bearers = headers.get_all(AUTHORIZATION).iter();
    let mut keys = headers.get_all("x-api-key").iter();
    let (authorization, api_key) = (bearers.next(), keys.next());
    if bearers.next().is_some() || keys.next().is_some() {
        return Presented::Disagreeing;
    }
    let bearer = match authorization.map(|value| value.to_str().ok().and_then(bearer_token)) {
        Some(None) => return Presented::Other,
        Some(Some(token)) => Some(token),
        None => None,
    };
    let key = match api_key.map(|value| value.to_str().map(str::trim)) {
        Some(Err(_)) => return Presented::Other,
        Some(Ok(key)) => Some(key),
        None => None,
    };
    match (bearer, key) {
        (None, None) => Presented::Nothing,
        (Some(one), Some(two)) if one != two => Presented::Disagreeing,
        (Some(text), _) | (None, Some(text)) if text.starts_with("wg_") => Presented::Key(text),
        _ => Presented::Other,
    }
}

fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pairs: &[(&'static str, &str)]) -> &'static str {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("header"));
        }
        match presented(&headers) {
            Presented::Nothing => "nothing",
            Presented::Key(_) => "key",
            Presented::Other => "other",
            Presented::Disagreeing => "disagreeing",
        }
    }

    #[test]
    fn a_credential_is_found_in_either_header_and_must_agree() {
        assert_eq!(seen(&[]), "nothing");
        assert_eq!(seen(&[("authorization", "Bearer wg_a")]), "key");
        assert_eq!(seen(&[("authorization", "bearer  wg_a")]), "key");
        assert_eq!(seen(&[("x-api-key", "wg_a")]), "key");
        assert_eq!(seen(&[("authorization", "Bearer wg_a"), ("x-api-key", "wg_a")]), "key");
        assert_eq!(
            seen(&[("authorization", "Bearer wg_a"), ("x-api-key", "wg_b")]),
            "disagreeing"
        );
        assert_eq!(
            seen(&[("authorization", "Bearer wg_a"), ("authorization", "Bearer wg_b")]),
            "disagreeing"
        );
        assert_eq!(seen(&[("authorization", "Basic wg_a")]), "other");
        assert_eq!(seen(&[("authorization", "Bearer eyJ.x.y")]), "other");
    }
}
