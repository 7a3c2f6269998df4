//! Three etcd nodes on loopback, and its key-value service in as few messages as the measure needs.

use std::env;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::drive::{Call, connections, drive, noise, plain};
use crate::report::{Point, Report};
use crate::settings::{Settings, VALUE_BYTES};

const NODES: usize = 3;
const READY_MAX: Duration = Duration::from_secs(30);

/// The binary.
pub(crate) struct Etcd(PathBuf);

impl Etcd {
    /// `ETCD`, or the one in PATH.
    pub(crate) fn find() -> Option<Self> {
        if let Some(named) = env::var_os("ETCD") {
            return Some(Self(PathBuf::from(named)));
        }
        let path = env::var_os("PATH")?;
        let found = env::split_paths(&path).map(|folder| folder.join("etcd"));
        found.into_iter().find(|file| file.is_file()).map(Self)
    }

    pub(crate) fn version(&self) -> Result<String> {
        let output = Command::new(&self.0).arg("--version").output();
        let output = output.with_context(|| format!("run {}", self.0.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// A fresh cluster, its points, and its end.
    pub(crate) async fn measure(
        &self,
        settings: &Settings,
        data: &Path,
        round: u32,
        report: &mut Report,
    ) -> Result<()> {
        report.say(&format!("round {round}: etcd"));
        let members = self.start(data)?;
        let leader = members.leader().await?;
        let pids: Vec<u32> = members.nodes.iter().map(|node| node.child.id()).collect();
        let keys = u64::try_from(settings.keys)?;
        for operation in ["put", "get"].into_iter().filter(|operation| settings.wants(operation)) {
            for &clients in &settings.clients {
                let mut channels = Vec::new();
                for _ in 0..connections(clients) {
                    channels.push(plain(&leader).await?);
                }
                let call: Call = match operation {
                    "put" => Arc::new(move |client, number| {
                        let channel = channels[client % channels.len()].clone();
                        Box::pin(put(channel, key(number, keys), noise(number, VALUE_BYTES)))
                    }),
                    _ => Arc::new(move |client, number| {
                        let channel = channels[client % channels.len()].clone();
                        Box::pin(get(channel, key(number, keys)))
                    }),
                };
                let seen = drive(clients, settings.seconds, &pids, call).await?;
                report.point(Point::new("etcd", operation, operation, clients, round, seen));
            }
        }
        drop(members);
        std::fs::remove_dir_all(data).context("remove etcd's data")
    }

    fn start(&self, data: &Path) -> Result<Members> {
        let mut ports = Vec::new();
        for _ in 0..NODES {
            ports.push((free_port()?, free_port()?));
        }
        let peers: Vec<String> = ports
            .iter()
            .enumerate()
            .map(|(at, (_, peer))| format!("n{at}=http://127.0.0.1:{peer}"))
            .collect();
        let peers = peers.join(",");
        let mut members = Members { nodes: Vec::new() };
        std::fs::create_dir_all(data).context("make a directory for etcd")?;
        for (at, (client, peer)) in ports.iter().enumerate() {
            let (client_url, peer_url) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
            let log = std::fs::File::create(data.join(format!("n{at}.log"))).context("make a log file")?;
            let child = Command::new(&self.0)
                .args(["--name", &format!("n{at}"), "--log-level", "warn"])
                .arg("--data-dir")
                .arg(data.join(format!("n{at}")))
                .args([
                    "--listen-client-urls",
                    &client_url,
                    "--advertise-client-urls",
                    &client_url,
                ])
                .args([
                    "--listen-peer-urls",
                    &peer_url,
                    "--initial-advertise-peer-urls",
                    &peer_url,
                ])
                .args(["--initial-cluster", &peers, "--initial-cluster-state", "new"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .with_context(|| format!("start {}", self.0.display()))?;
            members.nodes.push(Member {
                child,
                address: format!("127.0.0.1:{client}"),
            });
        }
        Ok(members)
    }
}

struct Members {
    nodes: Vec<Member>,
}

/// Killed when dropped: its data go, too.
struct Member {
    child: Child,
    address: String,
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Members {
    /// Waits for an election; gives the address of who won it.
    async fn leader(&self) -> Result<String> {
        let deadline = Instant::now() + READY_MAX;
        while Instant::now() < deadline {
            for node in &self.nodes {
                let Ok(channel) = plain(&node.address).await else {
                    continue;
                };
                let asked = unary::<_, StatusReply>(channel, "/etcdserverpb.Maintenance/Status", Nothing {}).await;
                if let Ok(StatusReply {
                    header: Some(header),
                    leader,
                }) = asked
                    && leader != 0
                    && leader == header.member_id
                {
                    return Ok(node.address.clone());
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("no etcd leader after {READY_MAX:?}")
    }
}

fn free_port() -> Result<u16> {
    let socket = TcpListener::bind("127.0.0.1:0").context("find a free port")?;
    Ok(socket.local_addr()?.port())
}

/// Keys are visited in a scattered order.
fn key(number: u64, keys: u64) -> Vec<u8> {
    format!("k{:012}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys).into_bytes()
}

async fn put(channel: Channel, key: Vec<u8>, value: String) -> Result<()> {
    let request = PutRequest {
        key,
        value: value.into_bytes(),
    };
    unary::<_, Nothing>(channel, "/etcdserverpb.KV/Put", request)
        .await
        .map(drop)
}

/// Linearizable, which is etcd's default.
async fn get(channel: Channel, key: Vec<u8>) -> Result<()> {
    unary::<_, Nothing>(channel, "/etcdserverpb.KV/Range", RangeRequest { key })
        .await
        .map(drop)
}

async fn unary<Q, A>(channel: Channel, path: &'static str, request: Q) -> Result<A>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut client = Grpc::new(channel);
    client.ready().await?;
    let answer = client
        .unary(
            tonic::Request::new(request),
            PathAndQuery::from_static(path),
            ProstCodec::default(),
        )
        .await?;
    Ok(answer.into_inner())
}

#[derive(Clone, PartialEq, Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

/// Of an answer that is only waited for, every field is skipped.
#[derive(Clone, PartialEq, Message)]
struct Nothing {}

#[derive(Clone, PartialEq, Message)]
struct StatusReply {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(uint64, tag = "4")]
    leader: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(uint64, tag = "2")]
    member_id: u64,
}
