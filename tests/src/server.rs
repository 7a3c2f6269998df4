//! One `waggle dev` process: start it, know when it is ready, end it gently or not.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use crate::workspace;

/// Longest time from the start of the process to its ready line, recovery of a killed one included.
pub const READY_MAX: Duration = Duration::from_secs(60);
/// Longest time from SIGTERM to the end of the process.
pub const STOP_MAX: Duration = Duration::from_secs(30);

/// A running server. Dropping it kills it.
pub struct Dev {
    child: Child,
    log: PathBuf,
    pub mcp_url: String,
    pub admin_url: String,
    pub api_key: String,
    /// The whole ready line.
    pub ready: Value,
    /// From the start of the process to its ready line.
    pub ready_after: Duration,
}

impl Dev {
    /// Starts a server on a free loopback port with its data in `data`, and waits until it is ready. Its log goes to a
    /// file beside the data, which a later start on the same data continues.
    pub fn start(data: &Path) -> Result<Self> {
        Self::start_with(data, &[])
    }

    pub fn start_with(data: &Path, options: &[&str]) -> Result<Self> {
        let binary = workspace::binary()?;
        let log = data.with_extension("log");
        let errors = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .context("open the server's log")?;
        let began = Instant::now();
        let mut child = Command::new(&binary)
            .args(["dev", "--json", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        let output = child.stdout.take().context("take the server's output")?;
        let first = match first_line(output) {
            Ok(line) => line,
            Err(problem) => {
                let _ = child.kill();
                let ended = child.wait();
                bail!("waggle dev: {problem} ({ended:?}); its log ends with\n{}", tail(&log));
            }
        };
        let ready_after = began.elapsed();
        // From here on the child is killed when anything fails.
        let mut dev = Self {
            child,
            log,
            mcp_url: String::new(),
            admin_url: String::new(),
            api_key: String::new(),
            ready: Value::Null,
            ready_after,
        };
        let ready: Value = serde_json::from_str(&first).with_context(|| format!("read the ready line {first:?}"))?;
        dev.mcp_url = text(&ready, "mcp_url")?;
        dev.admin_url = text(&ready, "admin_url")?;
        dev.api_key = text(&ready, "api_key")?;
        dev.ready = ready;
        Ok(dev)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub fn kill_nine(mut self) -> Result<()> {
        self.child.kill().context("kill the server")?;
        self.child.wait().context("wait for the killed server")?;
        Ok(())
    }

    /// SIGTERM; the server must end by itself, in time, with 0.
    pub fn stop(mut self) -> Result<()> {
        let sent = Command::new("kill")
            .arg("-TERM")
            .arg(self.pid().to_string())
            .status()
            .context("send SIGTERM")?;
        ensure!(
            sent.success(),
            "the server was gone before SIGTERM; its log ends with\n{}",
            tail(&self.log)
        );
        let status = self.wait(STOP_MAX)?;
        ensure!(
            status.success(),
            "the server ended with {status} after SIGTERM; its log ends with\n{}",
            tail(&self.log)
        );
        Ok(())
    }

    /// Log lines that mean that a person must look. End-to-end tests expect none.
    pub fn errors(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(&self.log).context("read the server's log")?;
        Ok(log.lines().filter(|line| is_error(line)).map(str::to_owned).collect())
    }

    fn wait(&mut self, longest: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + longest;
        loop {
            if let Some(status) = self.child.try_wait().context("look after the server")? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!(
                    "the server did not end within {longest:?}; its log ends with\n{}",
                    tail(&self.log)
                );
            }
            pause();
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Between two looks at a state that has no event to wait for.
#[expect(
    clippy::disallowed_methods,
    reason = "the only sleep of the tests, inside loops with a deadline"
)]
pub(crate) fn pause() {
    thread::sleep(Duration::from_millis(10));
}

/// The first line; what follows is read and dropped, so that the server never waits for its reader.
fn first_line(output: impl std::io::Read + Send + 'static) -> Result<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut lines = BufReader::new(output).lines();
        let _ = sender.send(lines.next());
        for _ in lines {}
    });
    match receiver.recv_timeout(READY_MAX) {
        Ok(Some(line)) => Ok(line.context("read its output")?),
        Ok(None) => Err(anyhow!("it ended before it was ready")),
        Err(_) => Err(anyhow!("it was not ready within {READY_MAX:?}")),
    }
}

fn text(ready: &Value, field: &str) -> Result<String> {
    let value = ready.get(field).and_then(Value::as_str);
    Ok(value
        .with_context(|| format!("find {field} in the ready line {ready}"))?
        .to_owned())
}

/// JSON lines where the output is no terminal; text lines are understood, too.
fn is_error(line: &str) -> bool {
    match serde_json::from_str::<Value>(line) {
        Ok(entry) => entry
            .get("level")
            .and_then(Value::as_str)
            .is_some_and(|level| level.eq_ignore_ascii_case("error")),
        Err(_) => line.split_whitespace().take(3).any(|word| word == "ERROR"),
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
