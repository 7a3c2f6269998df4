//! The MCP methods. One server value per request, sharing one [`App`]; nothing of a request stays behind.

use std::future::ready;
use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, ContentBlock, DiscoverResult, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use waggle_config::limits::REQUEST_ID_BYTES_MAX;
use waggle_memory::meta::KeyScopes;

use crate::app::App;
use crate::auth::Caller;
use crate::fault::Fault;
use crate::http::gate::HttpRequestId;
use crate::http::transfer::base_url;
use crate::limits::Cost;
use crate::mcp::policy;
use crate::mcp::result::Fitted;
use crate::mcp::schema::{self, INSTRUCTIONS, ToolSet, ToolSpec, meant_arguments};
use crate::mcp::tools::{ToolCall, get_stats};
use crate::route::Call;

/// How long clients may keep lists, which depend on path and credential only.
const LIST_TTL_MS: u64 = 300_000;

pub(crate) type McpService = StreamableHttpService<Mcp, NeverSessionManager>;

/// The MCP side of one path.
#[derive(Clone)]
pub(crate) struct Mcp {
    app: Arc<App>,
    set: ToolSet,
}

/// The library's service for one path. Host, Origin and body size are the gate's business, which has passed every
/// request before.
pub(crate) fn service(app: Arc<App>, set: ToolSet, abandon: &CancellationToken) -> McpService {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_stateless_protocol_metadata_required(false)
        .with_max_request_body_bytes(app.limits.body_bytes_max())
        .with_cancellation_token(abandon.clone())
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let mcp = Mcp { app, set };
    StreamableHttpService::new(
        move || Ok(mcp.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    )
}

/// What the gate put into the request.
struct Asked<'a> {
    caller: &'a Caller,
    request_id: &'a str,
    parts: &'a Parts,
}

fn asked(context: &RequestContext<RoleServer>) -> Result<Asked<'_>, ErrorData> {
    let found = context.extensions.get::<Parts>().and_then(|parts| {
        let caller = parts.extensions.get::<Caller>()?;
        let HttpRequestId(request_id) = parts.extensions.get::<HttpRequestId>()?;
        Some(Asked {
            caller,
            request_id,
            parts,
        })
    });
    // Unreachable behind the gate.
    found.ok_or_else(|| ErrorData::internal_error("the request has no principal", None))
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

impl Mcp {
    /// One call, from its name to a fitted answer.
    async fn run_tool(
        &self,
        tool: &'static ToolSpec,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        asked: &Asked<'_>,
    ) -> Result<Fitted, Fault> {
        let (app, caller) = (&self.app, asked.caller);
        caller.require(tool.scopes)?;
        let _pass = app.rates.enter(caller, tool.cost())?;
        let empty = Default::default();
        let given = meant_arguments(&request.name, request.arguments.as_ref().unwrap_or(&empty));
        let mut call = ToolCall::begin(app, caller, tool, &given, request_id(context, asked)?)?;
        call.base_url = base_url(asked.parts);
        call.bounded = is_bounded(context)?;
        call.call.bounded = call.bounded && MAY_BE_BOUNDED.contains(&tool.name);
        call.read_after = read_after(app, context, caller)?;
        call.run().await
    }

    /// A read that is not a tool call: resources and completion.
    fn plain_read(&self, asked: &Asked<'_>) -> Call {
        Call {
            request_id: asked.request_id.to_owned(),
            fingerprint: 0,
            deadline: Instant::now() + self.app.limits.call_time_default(),
            writes: false,
            bounded: false,
        }
    }
}

/// The caller's id of a write, or the HTTP request's.
fn request_id(context: &RequestContext<RoleServer>, asked: &Asked<'_>) -> Result<String, Fault> {
    let in_meta = match context.meta.get("waggle/requestId") {
        None => None,
        Some(value) => Some(
            value
                .as_str()
                .ok_or_else(|| Fault::validation("waggle/requestId", "_meta 'waggle/requestId' must be a string"))?,
        ),
    };
    let in_header = match asked.parts.headers.get("idempotency-key") {
        None => None,
        Some(value) => Some(
            value
                .to_str()
                .map_err(|_| Fault::validation("Idempotency-Key", "the header Idempotency-Key must be plain text"))?,
        ),
    };
    let id = match (in_meta, in_header) {
        (Some(one), Some(two)) if one != two => {
            return Err(Fault::validation(
                "waggle/requestId",
                "_meta 'waggle/requestId' and the header Idempotency-Key differ; send one",
            ));
        }
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => return Ok(asked.request_id.to_owned()),
    };
    if id.is_empty() || id.len() > REQUEST_ID_BYTES_MAX {
        return Err(Fault::validation(
            "waggle/requestId",
            format!(
                "the request id has {} bytes; the limit is 1 to {REQUEST_ID_BYTES_MAX}",
                id.len()
            ),
        ));
    }
    Ok(id.to_owned())
}

/// Tools whose answers a replica that does not lead may give.
const MAY_BE_BOUNDED: [&str; 2] = ["query_graph", "prime_context"];

fn is_bounded(context: &RequestContext<RoleServer>) -> Result<bool, Fault> {
    match context
        .meta
        .get("waggle/consistency")
        .map(|value| value.as_str().unwrap_or_default())
    {
        None | Some("linearizable") => Ok(false),
        Some("bounded") => Ok(true),
        Some(_) => Err(Fault::validation(
            "waggle/consistency",
            "_meta 'waggle/consistency' must be bounded or linearizable",
        )),
    }
}

fn read_after(app: &App, context: &RequestContext<RoleServer>, caller: &Caller) -> Result<u64, Fault> {
    match context.meta.get("waggle/readAfter") {
        None => Ok(0),
        Some(value) => app
            .read_points
            .open(value.as_str().unwrap_or_default(), caller.tenant.as_str()),
    }
}

pub(crate) fn tool_result(outcome: Result<Fitted, Fault>, request_id: &str) -> CallToolResult {
    match outcome {
        Ok(fitted) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(fitted.text)]);
            if let Some(link) = fitted.link {
                let resource = Resource::new(link.uri, link.name).with_mime_type(link.mime_type);
                result.content.push(ContentBlock::resource_link(resource));
            }
            result.structured_content = Some(fitted.structured);
            result
        }
        Err(fault) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(fault.text())]);
            result.structured_content = Some(fault.fields(request_id).into());
            result
        }
    }
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_completions()
            .build();
        let mut identity = Implementation::new("waggle", env!("CARGO_PKG_VERSION"));
        identity.title = Some("Waggle memory".to_owned());
        ServerConfig::new(capabilities)
            .with_server_info(identity)
            .with_instructions(INSTRUCTIONS)
    }

    fn discover(
        &self,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<DiscoverResult, ErrorData>> + Send + '_ {
        let versions = self.supported_protocol_versions().into_owned();
        let answer = DiscoverResult::from_server_info(versions, self.get_info())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        ready(Ok(answer))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = schema::list_tools(self.set, asked(&context)?.caller.scopes);
        let list = ListToolsResult::with_all_items(tools);
        Ok(if is_modern(&context) {
            list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            list
        })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        schema::definition(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asked = asked(&context)?;
        let Some(tool) = schema::find_tool(&request.name) else {
            let name: String = request.name.chars().take(64).flat_map(char::escape_debug).collect();
            return Err(ErrorData::invalid_params(
                format!("unknown tool '{name}'; tools/list names all"),
                None,
            ));
        };
        if !self.set.has(tool) {
            let what = format!("tool '{}' is not on {}; call it on /mcp", tool.name, self.set.path());
            return Err(ErrorData::invalid_params(what, None));
        }
        let outcome = Box::pin(self.run_tool(tool, &request, &context, &asked)).await;
        let label = match &outcome {
            Ok(fitted) => {
                metrics::counter!("waggle_gateway_response_bytes").increment(fitted.bytes() as u64);
                "ok"
            }
            Err(fault) => {
                if fault.status >= 500 {
                    tracing::warn!(
                        tool = tool.name,
                        code = fault.code,
                        request_id = asked.request_id,
                        "a call failed"
                    );
                }
                fault.code
            }
        };
        metrics::counter!("waggle_mcp_tool_calls_total", "tool" => tool.name, "outcome" => label).increment(1);
        Ok(tool_result(outcome, asked.request_id).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let list = ListPromptsResult::with_all_items(vec![policy::prompt()]);
        Ok(if is_modern(&context) {
            list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            list
        })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        policy::get_prompt(&request).map(GetPromptResponse::from)
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let list = ListResourcesResult::with_all_items(policy::resources(asked(&context)?.caller.scopes));
        Ok(if is_modern(&context) {
            list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            list
        })
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let list = ListResourceTemplatesResult::with_all_items(Vec::new());
        Ok(if is_modern(&context) {
            list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            list
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let asked = asked(&context)?;
        let refused =
            |fault: Fault| ErrorData::internal_error(fault.text(), Some(fault.fields(asked.request_id).into()));
        let (text, ttl_ms) = match request.uri.as_str() {
            policy::POLICY_URI => (policy::POLICY.to_owned(), LIST_TTL_MS),
            uri @ (policy::STATS_URI | policy::RECENT_URI) => {
                // The caller's mistake, not ours: as for a resource that does not exist.
                asked.caller.require(policy::READ_SCOPE).map_err(|fault| {
                    ErrorData::invalid_params(fault.text(), Some(fault.fields(asked.request_id).into()))
                })?;
                let _pass = self.app.rates.enter(asked.caller, Cost::Read).map_err(refused)?;
                let reply = get_stats::ask(&self.app, asked.caller, &self.plain_read(&asked), "")
                    .await
                    .map_err(refused)?;
                let text = if uri == policy::STATS_URI {
                    policy::stats_text(&reply)
                } else {
                    policy::recent_text(&reply)
                };
                (text, 0)
            }
            _ => {
                let uri: String = request.uri.chars().take(256).collect();
                return Err(ErrorData::resource_not_found(
                    "unknown resource; resources/list names all",
                    Some(json!({"uri": uri})),
                ));
            }
        };
        let contents = vec![ResourceContents::text(text, request.uri)];
        let mut result = ReadResourceResult::new(contents);
        if is_modern(&context) {
            result = result.with_ttl_ms(ttl_ms).with_cache_scope(CacheScope::Private);
        }
        Ok(result.into())
    }

    /// Argument values of the prompt: names that the tenant uses.
    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let asked = asked(&context)?;
        let empty = || Ok(CompleteResult::new(CompletionInfo::default()));
        let known_prompt = request.r#ref.as_prompt_name() == Some(policy::PROMPT);
        if !known_prompt || !asked.caller.scopes.contains(KeyScopes::GRAPH_READ) {
            return empty();
        }
        let Ok(_pass) = self.app.rates.enter(asked.caller, Cost::Read) else {
            return empty();
        };
        let names = policy::known_names(
            &self.app,
            asked.caller,
            &self.plain_read(&asked),
            &request.argument.name,
        )
        .await;
        let prefix = request.argument.value.to_lowercase();
        let mut values: Vec<String> = names
            .unwrap_or_default()
            .into_iter()
            .filter(|name| name.to_lowercase().starts_with(&prefix))
            .collect();
        values.truncate(CompletionInfo::MAX_VALUES);
        let info = CompletionInfo::with_all_values(values).unwrap_or_default();
        Ok(CompleteResult::new(info))
    }
}
