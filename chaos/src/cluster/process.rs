//! One process of the cluster: started, killed, stopped for a while, ended.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// Between two looks at a state that has no event to wait for.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// What to start, and where its output goes.
pub struct Process {
    name: String,
    binary: PathBuf,
    arguments: Vec<OsString>,
    home: PathBuf,
    log: PathBuf,
    /// Variables of the next start.
    environment: Vec<(String, String)>,
    child: Option<Child>,
    paused: bool,
    /// How a process ended that nobody asked to.
    ended: Vec<ExitStatus>,
}

impl Process {
    pub fn new(name: &str, binary: &Path, arguments: Vec<OsString>, home: &Path, log: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            binary: binary.to_owned(),
            arguments,
            home: home.to_owned(),
            log,
            environment: Vec::new(),
            child: None,
            paused: false,
            ended: Vec::new(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// For the starts that follow; None takes a variable away.
    pub fn set_variable(&mut self, name: &str, value: Option<String>) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.extend(value.map(|value| (name.to_owned(), value)));
    }

    /// Does nothing if it runs.
    pub fn start(&mut self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("open {}", self.log.display()))?;
        let mut command = command(&self.binary, &self.home);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("share the log")?)
            .stderr(log);
        let child = command.spawn().with_context(|| format!("start {}", self.name))?;
        self.child = Some(child);
        self.paused = false;
        Ok(())
    }

    /// Whether it is there, paused or not. One that ended by itself is noted.
    pub fn is_running(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                self.ended.push(status);
                self.child = None;
                false
            }
            Err(_) => false,
        }
    }

    /// How it ended without having been asked, since the last call.
    pub fn take_ended(&mut self) -> Vec<ExitStatus> {
        self.is_running();
        std::mem::take(&mut self.ended)
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub fn kill_nine(&mut self) -> Result<()> {
        if !self.is_running() {
            return Ok(());
        }
        if let Some(mut child) = self.child.take() {
            child.kill().with_context(|| format!("kill {}", self.name))?;
            child
                .wait()
                .with_context(|| format!("wait for the killed {}", self.name))?;
        }
        self.paused = false;
        Ok(())
    }

    /// SIGSTOP: to others it is there and silent.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)?;
        self.paused = true;
        Ok(())
    }

    pub fn resume(&mut self) -> Result<()> {
        if self.paused && self.is_running() {
            self.signal(Signal::CONT)?;
        }
        self.paused = false;
        Ok(())
    }

    /// SIGTERM, and its own end within the time; else it is killed, which is an error.
    pub async fn stop(&mut self, longest: Duration) -> Result<()> {
        self.resume()?;
        if !self.is_running() {
            return Ok(());
        }
        self.signal(Signal::TERM)?;
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let deadline = Instant::now() + longest;
        loop {
            if let Some(status) = child.try_wait().with_context(|| format!("look after {}", self.name))? {
                ensure!(status.success(), "{} ended with {status} after SIGTERM", self.name);
                return Ok(());
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                bail!("{} did not end within {longest:?} after SIGTERM", self.name);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.pid().with_context(|| format!("{} does not run", self.name))?;
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("a process id")?;
        kill_process(pid, signal).with_context(|| format!("send {signal:?} to {}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The binary with a home of its own and nothing of our environment that it would listen to.
fn command(binary: &Path, home: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("WAGGLE_") || text.starts_with("XDG_") {
            command.env_remove(&name);
        }
    }
    command.env("HOME", home);
    command
}

/// Runs a command of the binary to its end and gives its output.
pub async fn run(binary: &Path, home: &Path, arguments: &[&str], longest: Duration) -> Result<String> {
    run_with(binary, home, &[], arguments, longest).await
}

/// The same with variables in its environment.
pub async fn run_with(
    binary: &Path,
    home: &Path,
    variables: &[(&str, &str)],
    arguments: &[&str],
    longest: Duration,
) -> Result<String> {
    let said = || format!("waggle {}", arguments.join(" "));
    let (out, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = command(binary, home)
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(errors.try_clone()?)
        .spawn()
        .with_context(said)?;
    let deadline = Instant::now() + longest;
    let status = loop {
        if let Some(status) = child.try_wait().with_context(said)? {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            bail!("{} took longer than {longest:?}", said());
        }
        tokio::time::sleep(PAUSE).await;
    };
    ensure!(
        status.success(),
        "{} ended with {status}: {}{}",
        said(),
        all(errors)?,
        all(out)?
    );
    all(out)
}

fn all(mut file: File) -> Result<String> {
    use std::io::{Read as _, Seek as _};
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}
