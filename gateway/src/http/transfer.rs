//! REST for whole graphs, on the public listener: links of exports, uploads, and export and import as one request each.
//! Bodies are streams in both directions.

use std::io::{self, Write};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::routing::{get, post};
use bytes::Bytes;
use futures::StreamExt;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;
use waggle_config::limits::{SCOPE_PART_BYTES_MAX, TRANSFER_TIME_MAX};
use waggle_formats::abhi::Importer;
use waggle_memory::id::Principal;
use waggle_memory::meta::KeyScopes;

use super::answer::{json_response, rest_fault};
use super::entrance::caller_of;
use super::host_origin::PageOrigin;
use crate::app::App;
use crate::auth::Caller;
use crate::fault::Fault;
use crate::limits::{Cost, Pass};
use crate::mcp::tools::import_graph_backup::{done_json, strategy};
use crate::route::Call;
use crate::transfer::description::{Description, Format, SecretsPolicy, offered_name};
use crate::transfer::export::{Incoming, Writing, open};
use crate::transfer::import::{Import, blocking, run as import};
use crate::transfer::source::Source;
use crate::transfer::vault_import;

/// Bytes sent at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that wait for the reader.
const CHUNKS_AHEAD: usize = 8;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/exports/{sealed}", get(fetch))
        .route("/api/uploads", post(upload))
        .route("/api/graph/export", get(export))
        .route("/api/graph/import", post(take_in))
}

/// Where this gateway is reached, as the caller of a request named it.
pub(crate) fn base_url(parts: &Parts) -> String {
    let host = parts
        .headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| parts.uri.authority().map(http::uri::Authority::as_str))
        .unwrap_or("localhost");
    // A balancer that ends TLS says so; whoever lies gets a link that does not work, and nobody else sees it.
    let secure = parts.uri.scheme_str() == Some("https")
        || parts
            .headers
            .get("x-forwarded-proto")
            .is_some_and(|proto| proto == "https");
    format!("{}://{host}", if secure { "https" } else { "http" })
}

/// Who asks, and the place that the call takes.
struct Entered {
    caller: Caller,
    origin: PageOrigin,
    _pass: Pass,
}

async fn enter(app: &App, parts: &Parts, scopes: KeyScopes, cost: Cost) -> Result<Entered, Fault> {
    let origin = app.public_guard.check(&parts.uri, &parts.headers)?;
    let caller = caller_of(app, &parts.uri, &parts.headers).await?;
    caller.require(scopes)?;
    let pass = app.rates.enter(&caller, cost)?;
    Ok(Entered {
        caller,
        origin,
        _pass: pass,
    })
}

fn call_of(parts: &Parts, writes: bool) -> Call {
    let given = parts.headers.get("idempotency-key").and_then(|id| id.to_str().ok());
    Call {
        request_id: given
            .filter(|id| (1..=waggle_config::limits::REQUEST_ID_BYTES_MAX).contains(&id.len()))
            .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned),
        fingerprint: xxhash_rust::xxh3::xxh3_64(parts.uri.to_string().as_bytes()),
        deadline: Instant::now() + TRANSFER_TIME_MAX,
        writes,
        bounded: false,
    }
}

fn refused(fault: &Fault) -> Response<Body> {
    rest_fault(fault, &Uuid::now_v7().to_string())
}

async fn fetch(State(app): State<Arc<App>>, Path(sealed): Path<String>, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let answered = async {
        let entered = enter(&app, &parts, KeyScopes::GRAPH_READ, Cost::Read).await?;
        let export = app.transfer.links.open(&sealed, &entered.caller, app.clock.wall())?;
        send(&app, entered, &parts, export).await
    };
    answered.await.unwrap_or_else(|fault: Fault| refused(&fault))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ExportQuery {
    format: String,
    project: String,
    agent_id: String,
    session_id: String,
    secrets: String,
    include_low_confidence_edges: bool,
    include_physics: bool,
    name: String,
}

impl Default for ExportQuery {
    fn default() -> Self {
        Self {
            format: "json".to_owned(),
            project: String::new(),
            agent_id: String::new(),
            session_id: String::new(),
            secrets: "refuse".to_owned(),
            include_low_confidence_edges: false,
            include_physics: true,
            name: String::new(),
        }
    }
}

impl ExportQuery {
    fn described(self, now: i64) -> Result<Description, Fault> {
        let wrong =
            |field: &str, allowed: &str| Fault::validation(field, format!("field '{field}' is none of {allowed}"));
        for (field, value) in [
            ("project", &self.project),
            ("agent_id", &self.agent_id),
            ("session_id", &self.session_id),
        ] {
            if value.len() > SCOPE_PART_BYTES_MAX || value.contains('\0') {
                let what = format!("field '{field}' may have {SCOPE_PART_BYTES_MAX} bytes and no NUL");
                return Err(Fault::validation(field, what));
            }
        }
        Ok(Description {
            format: Format::from_word(&self.format)
                .ok_or_else(|| wrong("format", "json, abhi, graphml, html, bundle, vault"))?,
            secrets: SecretsPolicy::from_word(&self.secrets)
                .ok_or_else(|| wrong("secrets", "refuse, redact, include"))?,
            project: self.project,
            agent_id: self.agent_id,
            session_id: self.session_id,
            weak_links: self.include_low_confidence_edges,
            physics: self.include_physics,
            exported_at: now,
            name: offered_name(&self.name),
        })
    }
}

async fn export(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let answered = async {
        let entered = enter(&app, &parts, KeyScopes::GRAPH_READ, Cost::Read).await?;
        let query: ExportQuery = query_of(&parts)?;
        let export = query.described(app.clock.wall().0)?;
        send(&app, entered, &parts, export).await
    };
    answered.await.unwrap_or_else(|fault: Fault| refused(&fault))
}

fn query_of<T: serde::de::DeserializeOwned>(parts: &Parts) -> Result<T, Fault> {
    Query::try_from_uri(&parts.uri)
        .map(|Query(query)| query)
        .map_err(|why| Fault::validation("query", format!("the query of the address cannot be read: {why}")))
}

/// Streams an export. What is wrong before the first bytes is answered as such; later the stream breaks off. A secret
/// that is refused is always found before the first byte.
async fn send(app: &Arc<App>, entered: Entered, parts: &Parts, export: Description) -> Result<Response<Body>, Fault> {
    if export.secrets == SecretsPolicy::Include {
        entered.caller.require(KeyScopes::GRAPH_WRITE)?;
    }
    let permit = app.transfer.enter()?;
    let call = call_of(parts, false);
    let incoming = open(app, &entered.caller, &call, &export, call.deadline).await?;
    let (chunks, mut reader) = mpsc::channel(CHUNKS_AHEAD);
    let (running, job) = (Arc::clone(app), export.clone());
    let Entered {
        caller,
        origin,
        _pass: pass,
    } = entered;
    let runtime = Handle::current();
    // Not awaited: it ends with its reader, or at its deadline.
    tokio::task::spawn_blocking(move || {
        let _held = (permit, pass);
        let out = Chunks {
            chunks: chunks.clone(),
            runtime: runtime.clone(),
            deadline: call.deadline,
            buffer: Vec::new(),
        };
        if let Err(fault) = write(&running, caller.tenant.as_str(), &job, incoming, out) {
            // Nobody reads it when the reader went away.
            let _ = runtime.block_on(chunks.send(Err(fault)));
        }
    });
    let first = match reader.recv().await {
        Some(Ok(first)) => first,
        Some(Err(fault)) => return Err(fault),
        None => return Err(Fault::internal()),
    };
    let rest = ReceiverStream::new(reader).map(|chunk| {
        chunk.map_err(|fault: Fault| {
            tracing::warn!(code = fault.code, "an export broke off");
            io::Error::other("the export broke off")
        })
    });
    let stream = futures::stream::once(std::future::ready(Ok::<Bytes, io::Error>(first))).chain(rest);
    let mut response = Response::new(Body::from_stream(stream));
    describe(&mut response, &export);
    origin.mark(response.headers_mut());
    Ok(response)
}

fn write(app: &App, tenant: &str, export: &Description, incoming: Incoming, mut out: Chunks) -> Result<(), Fault> {
    let writing = Writing {
        app,
        tenant,
        export,
        inline: false,
    };
    if export.may_be_refused_late() {
        writing.write_whole(incoming, &mut out)?;
    } else {
        writing.write(incoming, &mut out)?;
    }
    out.flush_all().map_err(|_| Fault::internal())
}

fn describe(response: &mut Response<Body>, export: &Description) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(export.format.mime_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let name = export.file_name();
    let ascii: String = name.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{ascii}\"")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
}

/// The body of an answer, as something to write to.
struct Chunks {
    chunks: mpsc::Sender<Result<Bytes, Fault>>,
    runtime: Handle,
    deadline: Instant,
    buffer: Vec<u8>,
}

impl Chunks {
    fn flush_all(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::take(&mut self.buffer));
        let sent = self
            .runtime
            .block_on(tokio::time::timeout_at(self.deadline, self.chunks.send(Ok(chunk))));
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Write for &mut Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush_all()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn upload(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let answered = async {
        let entered = enter(&app, &parts, KeyScopes::GRAPH_WRITE, Cost::Write).await?;
        let upload = app
            .transfer
            .uploads
            .receive(&entered.caller, body, app.clock.wall())
            .await?;
        let answer = json!({
            "upload_id": upload.id,
            "size": upload.size,
            "sha256": upload.sha256,
            "expires_at": upload.expires_at.to_string(),
        });
        Ok(marked(json_response(StatusCode::CREATED, &answer), &entered))
    };
    answered.await.unwrap_or_else(|fault: Fault| closing(&fault))
}

/// What is left of a body that was refused is not read: the connection cannot be used again.
fn closing(fault: &Fault) -> Response<Body> {
    let mut response = refused(fault);
    response
        .headers_mut()
        .insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn marked(mut response: Response<Body>, entered: &Entered) -> Response<Body> {
    entered.origin.mark(response.headers_mut());
    response
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ImportQuery {
    format: String,
    strategy: String,
    project: Option<String>,
    allow_dangling: bool,
    dry_run: bool,
}

async fn take_in(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let answered = async {
        let entered = enter(&app, &parts, KeyScopes::GRAPH_WRITE, Cost::Write).await?;
        let query: ImportQuery = query_of(&parts)?;
        let _permit = app.transfer.enter()?;
        let uploads = &app.transfer.uploads;
        let upload = uploads.receive(&entered.caller, body, app.clock.wall()).await?;
        let imported = imported(&app, &entered.caller, &parts, query, &upload.id).await;
        uploads.remove(&upload.id);
        Ok(marked(json_response(StatusCode::OK, &imported?), &entered))
    };
    answered.await.unwrap_or_else(|fault: Fault| closing(&fault))
}

async fn imported(
    app: &Arc<App>,
    caller: &Caller,
    parts: &Parts,
    query: ImportQuery,
    upload: &str,
) -> Result<Value, Fault> {
    let source = app.transfer.uploads.find(upload, caller, app.clock.wall())?;
    let call = call_of(parts, true);
    if is_vault(&query, &source).await? {
        let done = Box::pin(vault_import::run(app, caller, &call, source, query.dry_run)).await?;
        return Ok(done.json(query.dry_run));
    }
    let wanted = Import {
        source,
        strategy: strategy(&query.strategy)?,
        project: query.project,
        allow_dangling: query.allow_dangling,
        dry_run: query.dry_run,
        importer: Importer {
            author: Principal(caller.principal.clone()),
            at: app.clock.wall(),
        },
    };
    let done = import(app, caller, &call, &wanted).await?;
    Ok(done_json(&done, &wanted))
}

/// Whether the file is a vault. What has no meaning for one is refused with it.
async fn is_vault(query: &ImportQuery, source: &Source) -> Result<bool, Fault> {
    let stated = match query.format.as_str() {
        "" | "auto" => None,
        "vault" => Some(true),
        "backup" => Some(false),
        other => {
            let what = format!("format '{}' is none of auto, backup, vault", other.escape_debug());
            return Err(Fault::validation("format", what));
        }
    };
    let source = source.clone();
    let is_vault = match stated {
        Some(stated) => stated,
        None => blocking(move || vault_import::looks_like_one(&source)).await?,
    };
    if !is_vault {
        return Ok(false);
    }
    let given = [
        ("strategy", !matches!(query.strategy.as_str(), "" | "merge")),
        ("project", query.project.is_some()),
        ("allow_dangling", query.allow_dangling),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(Fault::validation(
            field,
            format!("'{field}' is for backups; a vault is compared field by field, and its files say their projects"),
        )),
        None => Ok(true),
    }
}
