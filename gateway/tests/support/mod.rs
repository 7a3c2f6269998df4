//! A gateway before a scripted node: both services in this process, over an in-memory pipe.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

pub mod graphs;
pub mod records;
pub mod stub;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use waggle_config::limits::CallLimits;
use waggle_config::runtime::clock::System;
use waggle_gateway::keys::ApiKeyText;
use waggle_gateway::{Connect, Gateway, GatewayOptions, Listen, Secret};
use waggle_memory::meta::{KeyScopes, NodeId};

use stub::Stub;

pub const PEPPER: [u8; 32] = [7; 32];

pub struct Running {
    pub public: SocketAddr,
    pub admin: SocketAddr,
    pub stub: Arc<Stub>,
    pub shutdown: CancellationToken,
    client: Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: http::HeaderMap,
    pub body: Value,
}

pub fn options(channel: tonic::transport::Channel) -> GatewayOptions {
    let local: SocketAddr = ([127, 0, 0, 1], 0).into();
    GatewayOptions {
        public: Listen::plain(local),
        admin: Some(Listen::plain(local)),
        public_hosts: Vec::new(),
        browser_origins: vec!["https://app.example.com:443".to_owned()],
        environment: "test".to_owned(),
        pepper: Secret::new(PEPPER),
        cluster_secret: Secret::new([9; 32]),
        nodes: vec![(NodeId(1), channel)],
        connect: Connect::nowhere(),
        limits: CallLimits::standard(),
        limits_for_all: false,
        clock: Arc::new(System::new()),
        metrics: None,
        spool_dir: spool_dir(),
        drain_time: Duration::from_secs(5),
        conformance: false,
    }
}

/// A directory of uploads for each gateway.
fn spool_dir() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("waggle-gateway-test-{}", uuid::Uuid::now_v7()))
}

impl Running {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut GatewayOptions)) -> Self {
        let stub = Arc::new(Stub::default());
        let channel = stub::serve(Arc::clone(&stub)).await;
        let mut options = options(channel);
        change(&mut options);
        let gateway = Gateway::bind(options).await.expect("the gateway binds");
        let public = gateway.public_address();
        let admin = gateway.admin_address().expect("an admin listener");
        let shutdown = CancellationToken::new();
        tokio::spawn(gateway.serve(shutdown.clone()));
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self {
            public,
            admin,
            stub,
            shutdown,
            client,
        }
    }

    /// A key of tenant `acme` with these scopes.
    pub fn key(&self, scopes: KeyScopes) -> String {
        self.key_of("acme", scopes)
    }

    pub fn key_of(&self, tenant: &str, scopes: KeyScopes) -> String {
        let key = ApiKeyText::make("test").expect("a key");
        self.stub.add_key(&key, tenant, scopes, &PEPPER);
        key.reveal()
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Reply {
        let response = self.client.request(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).as_ref()))
        };
        Reply {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    pub fn request(&self, method: Method, path: &str, key: Option<&str>) -> http::request::Builder {
        let builder = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.public));
        match key {
            Some(key) => builder.header("authorization", format!("Bearer {key}")),
            None => builder,
        }
    }

    pub async fn post(&self, path: &str, key: &str, body: impl Into<Bytes>) -> Reply {
        let request = self
            .request(Method::POST, path, Some(key))
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .expect("a request");
        self.send(request).await
    }

    pub async fn rpc(&self, path: &str, key: &str, method: &str, params: Value) -> Reply {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(path, key, message.to_string()).await
    }

    /// The result of a tool call.
    pub async fn call(&self, key: &str, tool: &str, arguments: Value) -> Value {
        let reply = self
            .rpc("/mcp", key, "tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        assert_eq!(reply.status, StatusCode::OK, "{:?}", reply.body);
        let result = reply.body["result"].clone();
        assert!(result.is_object(), "{:?}", reply.body);
        result
    }

    pub async fn admin(&self, method: Method, path: &str, key: Option<&str>, body: Value) -> Reply {
        let mut builder = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.admin));
        if let Some(key) = key {
            builder = builder.header("authorization", format!("Bearer {key}"));
        }
        let bytes = if body.is_null() {
            Bytes::new()
        } else {
            Bytes::from(body.to_string())
        };
        self.send(builder.body(Full::new(bytes)).expect("a request")).await
    }
}

/// An in-memory way to a tonic server.
pub fn pipe() -> (tokio::io::DuplexStream, TokioIo<tokio::io::DuplexStream>) {
    let (server, client) = tokio::io::duplex(1 << 20);
    (server, TokioIo::new(client))
}
