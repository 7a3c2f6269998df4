//! Who asks over REST. The tenant is always the one of the credential: a request that names one is refused whatever it
//! names, so that nobody believes to have chosen.

use axum::extract::Query;
use http::{HeaderMap, Uri};

use crate::app::App;
use crate::auth::Caller;
use crate::fault::Fault;

/// What clients call a tenant.
const NAMES: [&str; 3] = ["tenant_id", "tenant", "tenantId"];

/// Whether an argument would choose a tenant.
pub(crate) fn names_tenant(argument: &str) -> bool {
    NAMES.iter().any(|name| name.eq_ignore_ascii_case(argument))
}

/// The tenants that an address names.
pub(super) fn named_tenants(uri: &Uri) -> Vec<String> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let pairs = pairs.map(|Query(pairs)| pairs).unwrap_or_default().into_iter();
    pairs
        .filter(|(name, _)| names_tenant(name))
        .map(|(_, value)| value)
        .collect()
}

/// The caller of a request on the public listener.
pub(super) async fn caller_of(app: &App, uri: &Uri, headers: &HeaderMap) -> Result<Caller, Fault> {
    let caller = app.auth.authenticate(headers).await?;
    if named_tenants(uri).is_empty() {
        Ok(caller)
    } else {
        Err(tenant_given())
    }
}

/// Refuses a tenant among the members of a body.
pub(super) fn refuse_tenant<'a>(mut members: impl Iterator<Item = &'a String>) -> Result<(), Fault> {
    if members.any(|name| names_tenant(name)) {
        return Err(tenant_given());
    }
    Ok(())
}

pub(super) fn tenant_given() -> Fault {
    Fault::new(
        "authorization_failed",
        "the tenant is the one of the credential and cannot be chosen; leave 'tenant_id' out",
    )
    .with_field("tenant_id")
}
