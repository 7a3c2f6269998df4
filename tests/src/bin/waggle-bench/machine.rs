//! Reading the machine: CPU time, bytes, and numbers fit for a report. Linux only.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

/// User and system time of a process; Linux only.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("read the server's CPU time")?;
    // The name in brackets may hold blanks; the times are the 12th and 13th word after it.
    let words: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
    let (user, system) = (ticks(11).context("no user time")?, ticks(12).context("no system time")?);
    Ok((user + system) / ticks_per_second())
}

/// A constant of the kernel that every common Linux has set to 100.
fn ticks_per_second() -> f64 {
    100.0
}

pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("read the server's memory")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("find VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().next().context("read VmRSS")?.parse()?;
    Ok(kilobytes * 1024)
}

/// What the files take on disk, holes not counted.
pub(crate) fn disk_bytes(folder: &Path) -> Result<u64> {
    let output = Command::new("du").arg("-sk").arg(folder).output().context("run du")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let kilobytes = text.split_whitespace().next().context("read the output of du")?;
    Ok(kilobytes.parse::<u64>()? * 1024)
}

pub(crate) fn millis(time: Duration) -> f64 {
    round(time.as_secs_f64() * 1e3)
}

pub(crate) fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// In milliseconds, of sorted microseconds.
pub(crate) fn quantile(micros: &[u64], percent: usize) -> f64 {
    let at = (micros.len() * percent / 100).min(micros.len().saturating_sub(1));
    round(micros.get(at).copied().unwrap_or(0) as f64 / 1e3)
}
