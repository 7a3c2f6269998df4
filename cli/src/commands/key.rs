//! `waggle key`: API keys. A key is shown once, by the command that makes it.

use anyhow::Result;
use serde_json::{Map, Value, json};
use waggle_config::runtime::clock::{Clock as _, System};

use crate::client::ClientArgs;
use crate::output::{JsonArgs, OutputArgs, cell, table};

#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Make a key. JSON on stdout; `raw_api_key` is shown only now.
    Create(Create),
    /// List keys, without what opens them.
    List(List),
    /// End a key; felt everywhere within five seconds.
    Revoke(Revoke),
}

#[derive(clap::Args)]
pub(crate) struct Create {
    /// The tenant that the key opens. Default: that of the credential.
    #[arg(long)]
    tenant_id: Option<String>,
    /// What the key is for.
    #[arg(long)]
    name: String,
    /// Days until it ends; 0: it does not end by itself.
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    expires_in_days: u32,
    /// Who asked for it: a label only, the audit has the credential.
    #[arg(long, value_name = "LABEL")]
    created_by: Option<String>,
    /// What it may do: graph:read, graph:write, admin:read, admin:write.
    #[arg(long, value_delimiter = ',', default_value = "graph:read,graph:write")]
    scopes: Vec<String>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: JsonArgs,
}

#[derive(clap::Args)]
pub(crate) struct List {
    /// Only keys of this tenant.
    #[arg(long)]
    tenant_id: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
pub(crate) struct Revoke {
    /// The id of the key: the third part of its text.
    #[arg(long, alias = "key-id")]
    api_key_id: String,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    output: JsonArgs,
}

pub(crate) fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Create(args) => create(&args),
        Verb::List(args) => list(&args),
        Verb::Revoke(args) => {
            check_id("api-key-id", &args.api_key_id)?;
            let answer = args
                .client
                .admin()?
                .delete(&format!("/api/admin/keys/{}", args.api_key_id))?;
            let shown = json!({
                "api_key_id": answer["key_id"],
                "revoked": !answer["revoked_at"].is_null(),
                "revoked_at": answer["revoked_at"],
            });
            args.output.show(&shown)
        }
    }
}

fn create(args: &Create) -> Result<()> {
    let mut body = Map::new();
    if let Some(tenant) = &args.tenant_id {
        body.insert("tenant_id".into(), json!(tenant));
    }
    body.insert("name".into(), json!(args.name));
    body.insert("scopes".into(), json!(args.scopes));
    body.insert("expires_in_days".into(), json!(args.expires_in_days));
    if let Some(label) = &args.created_by {
        body.insert("created_by".into(), json!(label));
    }
    let answer = args.client.admin()?.post("/api/admin/keys", &Value::Object(body))?;
    args.output.show(&shape(&answer, &now()))
}

fn list(args: &List) -> Result<()> {
    let path = match &args.tenant_id {
        None => "/api/admin/keys".to_owned(),
        Some(tenant) => {
            check_id("tenant-id", tenant)?;
            format!("/api/admin/keys?tenant_id={tenant}")
        }
    };
    let answer = args.client.admin()?.get(&path)?;
    let now = now();
    let keys: Vec<Value> = answer["keys"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|key| shape(key, &now))
        .collect();
    let data = json!({"api_keys": keys, "truncated": answer["truncated"]});
    args.output.show(&data, || {
        let fields = [
            "api_key_id",
            "tenant_id",
            "name",
            "status",
            "scopes",
            "expires_at",
            "created_by",
        ];
        let rows: Vec<_> = keys
            .iter()
            .map(|key| fields.map(|field| cell(&key[field])).to_vec())
            .collect();
        table(&["KEY", "TENANT", "NAME", "STATUS", "SCOPES", "EXPIRES", "BY"], &rows)
    })
}

/// The fields of the command line's contract, from those of the REST answer.
fn shape(key: &Value, now: &str) -> Value {
    let after = |field: &str| key[field].as_str().is_some_and(|at| at <= now);
    let status = match () {
        () if after("revoked_at") => "revoked",
        () if after("expires_at") => "expired",
        () => "active",
    };
    let mut shaped = Map::new();
    let mut put = |name: &str, value: Value| shaped.insert(name.to_owned(), value);
    put("api_key_id", key["key_id"].clone());
    put("tenant_id", key["tenant_id"].clone());
    if let Some(raw) = key["key"].as_str() {
        put("prefix", json!(raw.split('_').take(3).collect::<Vec<_>>().join("_")));
    }
    put("name", key["name"].clone());
    put("status", json!(status));
    for field in [
        "expires_at",
        "created_by",
        "scopes",
        "created_at",
        "revoked_at",
        "unlimited",
    ] {
        put(field, key[field].clone());
    }
    if !key["last_used_at"].is_null() {
        put("last_used_at", key["last_used_at"].clone());
    }
    if !key["key"].is_null() {
        put("raw_api_key", key["key"].clone());
    }
    Value::Object(shaped)
}

/// RFC 3339 in UTC with milliseconds, as answers write times: such texts sort by time.
fn now() -> String {
    System::new().wall().to_string()
}

/// What goes into a path is checked here: a slash would ask for another one.
fn check_id(flag: &str, id: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !id.is_empty() && id.len() <= 64 && id.bytes().all(plain) {
        return Ok(());
    }
    Err(crate::failure::Failure::new(
        crate::failure::USAGE,
        format!("--{flag}: '{}' is no id", id.escape_debug()),
    )
    .next("`waggle key list` shows ids")
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_key_follows_from_its_times() {
        let now = "2026-11-30T12:00:00.000Z";
        let status = |revoked: Value, expires: Value| {
            let key = json!({"key_id": "k", "revoked_at": revoked, "expires_at": expires});
            shape(&key, now)["status"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(status(Value::Null, Value::Null), "active");
        assert_eq!(status(Value::Null, json!("2026-12-30T12:00:00.000Z")), "active");
        assert_eq!(status(Value::Null, json!("2026-11-30T11:59:59.999Z")), "expired");
        assert_eq!(status(json!("2026-11-30T11:00:00.000Z"), Value::Null), "revoked");
    }

    #[test]
    fn a_new_key_is_shown_with_its_prefix() {
        let shaped = shape(&json!({"key_id": "abc", "key": "wg_dev_abc_secret_check"}), "");
        assert_eq!(shaped["prefix"], "wg_dev_abc");
        assert_eq!(shaped["raw_api_key"], "wg_dev_abc_secret_check");
    }
}
