//! `waggle mcp`: lets clients that only start programs talk to a gateway. One JSON-RPC message a line on stdin and stdout,
//! each forwarded by itself; nothing is remembered but the protocol version that was agreed on, because the gateway keeps
//! no sessions. Logs go to stderr only.
//!
//! One task owns everything: requests under way, standard output, and the end. A line that is no message, a gateway that is
//! away, an answer that is too large: each is answered as a JSON-RPC error, and the next line is served.

mod forward;
mod lines;
mod message;
mod sse;

use std::collections::BTreeMap;

use anyhow::Result;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::output::print;

pub(crate) use forward::Gateway;
use lines::Line;
use message::Message;

/// The gateway takes no larger message, and no client has a use for one.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Requests that wait for the gateway at once.
const REQUESTS_MAX: usize = 64;
/// Messages that wait for standard output.
const ANSWERS_MAX: usize = 64;

/// Serves until standard input ends and every request is answered.
pub(crate) async fn serve(gateway: &Gateway) -> Result<()> {
    let mut input = lines::read(MESSAGE_BYTES_MAX)?;
    let (answers, mut written) = mpsc::channel::<Value>(ANSWERS_MAX);
    let mut running = FuturesUnordered::new();
    let mut cancels: BTreeMap<String, CancellationToken> = BTreeMap::new();
    let mut open = true;
    while open || !running.is_empty() {
        tokio::select! {
            Some(answer) = written.recv() => write(&answer)?,
            Some(done) = running.next(), if !running.is_empty() => {
                if let Some(id) = done {
                    cancels.remove(&id);
                }
            }
            line = input.recv(), if open => {
                let message = match line {
                    None => {
                        open = false;
                        continue;
                    }
                    Some(Line::TooLong) => {
                        write(&message::too_large(MESSAGE_BYTES_MAX))?;
                        continue;
                    }
                    Some(Line::Text(text)) => match Message::parse(&text) {
                        Ok(None) => continue,
                        Ok(Some(message)) => message,
                        Err(answer) => {
                            write(&answer)?;
                            continue;
                        }
                    },
                };
                if let Some(cancelled) = message.cancels().and_then(|id| cancels.get(&id)) {
                    cancelled.cancel();
                }
                if running.len() >= REQUESTS_MAX {
                    match message.error(message::REFUSED, &format!("{REQUESTS_MAX} requests are under way; try again")) {
                        Some(busy) => write(&busy)?,
                        None => eprintln!("waggle mcp: dropped a notification: {REQUESTS_MAX} requests are under way"),
                    }
                    continue;
                }
                let cancelled = CancellationToken::new();
                let id = message.id_text();
                if let Some(id) = &id {
                    cancels.insert(id.clone(), cancelled.clone());
                }
                let answers = answers.clone();
                running.push(async move {
                    tokio::select! {
                        () = cancelled.cancelled() => {}
                        () = gateway.forward(&message, &answers) => {}
                    }
                    id
                });
            }
        }
    }
    drop(answers);
    while let Some(answer) = written.recv().await {
        write(&answer)?;
    }
    Ok(())
}

/// One line; JSON has no line ends outside of strings, and escapes them inside.
fn write(answer: &Value) -> Result<()> {
    print(&format!("{answer}\n"))
}
