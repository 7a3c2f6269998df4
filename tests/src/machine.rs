//! Reading the machine: CPU time, bytes, and numbers fit for a report. Linux only.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// User and system time of a process; Linux only.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
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

pub fn resident_bytes(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("read the server's memory")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("find VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().next().context("read VmRSS")?.parse()?;
    Ok(kilobytes * 1024)
}

/// The load averages as the kernel says them.
pub fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// What a durable write costs where `folder` lies: milliseconds of 4 KiB appends, each synced, sorted.
pub fn sync_millis(folder: &Path, count: usize) -> Result<Vec<f64>> {
    let path = folder.join("sync-cost");
    let mut file = File::create(&path).context("make a file to sync")?;
    let block = [0x5a; 4096];
    let mut taken = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        file.write_all(&block).context("write")?;
        file.sync_data().context("sync")?;
        taken.push(millis(began.elapsed()));
    }
    std::fs::remove_file(&path).context("remove the file")?;
    taken.sort_by(f64::total_cmp);
    Ok(taken)
}

/// The type of the file system that holds `folder`: on tmpfs a sync costs nothing.
pub fn file_system(folder: &Path) -> Result<String> {
    let output = Command::new("stat").args(["-f", "-c", "%T"]).arg(folder).output();
    Ok(String::from_utf8_lossy(&output.context("run stat")?.stdout)
        .trim()
        .to_owned())
}

/// What the files take on disk, holes not counted.
pub fn disk_bytes(folder: &Path) -> Result<u64> {
    let output = Command::new("du").arg("-sk").arg(folder).output().context("run du")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let kilobytes = text.split_whitespace().next().context("read the output of du")?;
    Ok(kilobytes.parse::<u64>()? * 1024)
}

pub fn millis(time: Duration) -> f64 {
    round(time.as_secs_f64() * 1e3)
}

pub fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// In milliseconds, of sorted microseconds.
pub fn quantile(micros: &[u64], percent: usize) -> f64 {
    let at = (micros.len() * percent / 100).min(micros.len().saturating_sub(1));
    round(micros.get(at).copied().unwrap_or(0) as f64 / 1e3)
}
