//! Points as they come, then their medians and how they stand to etcd.
#![expect(clippy::print_stdout, reason = "the figures are the output")]

use std::time::Instant;

use serde_json::{Value, json};
use waggle_tests::machine::round as rounded;

use crate::drive::{Seen, connections};

/// One measure.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) system: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) command: &'static str,
    pub(crate) clients: usize,
    pub(crate) tenants: usize,
    pub(crate) shards: usize,
    round: u32,
    seen: Seen,
}

impl Point {
    pub(crate) fn new(
        system: &'static str,
        operation: &'static str,
        command: &'static str,
        clients: usize,
        round: u32,
        seen: Seen,
    ) -> Self {
        Self {
            system,
            operation,
            command,
            clients,
            tenants: 1,
            shards: 1,
            round,
            seen,
        }
    }

    fn json(&self) -> Value {
        json!({
            "system": self.system, "operation": self.operation, "command": self.command,
            "clients": self.clients, "connections": connections(self.clients),
            "tenants": self.tenants, "shards": self.shards, "round": self.round,
            "calls": self.seen.calls, "ops_s": self.seen.ops_s,
            "p50_ms": self.seen.p50_ms, "p99_ms": self.seen.p99_ms,
            "cpu_ms_per_op": self.seen.cpu_ms, "errors": self.seen.errors, "first_error": self.seen.first_error,
        })
    }

    /// Whether it is another round of the same.
    fn is_like(&self, other: &Self) -> bool {
        let of = |point: &Self| {
            let what = (point.system, point.operation, point.command);
            (what, point.clients, point.tenants, point.shards)
        };
        of(self) == of(other)
    }
}

pub(crate) struct Report {
    began: Instant,
    points: Vec<Point>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            points: Vec::new(),
        }
    }
}

impl Report {
    pub(crate) fn say(&self, text: &str) {
        eprintln!("[{:6.1}s] {text}", self.began.elapsed().as_secs_f64());
    }

    pub(crate) fn line(&self, line: &Value) {
        println!("{line}");
    }

    pub(crate) fn point(&mut self, point: Point) {
        println!("{}", point.json());
        self.points.push(point);
    }

    pub(crate) fn summary(&self) {
        eprintln!(
            "\n{:7} {:7} {:14} {:>7} {:>7} {:>6} {:>9} {:>8} {:>8} {:>7} {:>6} {:>8} {:>8}",
            "system",
            "op",
            "command",
            "clients",
            "tenants",
            "shards",
            "ops/s",
            "p50 ms",
            "p99 ms",
            "CPU ms",
            "errors",
            "x etcd",
            "p99 x"
        );
        let mut shown: Vec<&Point> = Vec::new();
        for point in &self.points {
            if shown.iter().any(|earlier| earlier.is_like(point)) {
                continue;
            }
            shown.push(point);
            let ours = self.medians(|other| other.is_like(point));
            let yardstick = match point.operation {
                "get" => Some("get"),
                "put" | "store" => Some("put"),
                _ => None,
            };
            let etcd = yardstick.filter(|_| point.system != "etcd").and_then(|operation| {
                self.medians(|other| {
                    other.system == "etcd" && other.operation == operation && other.clients == point.clients
                })
            });
            let Some(ours) = ours else { continue };
            let ratio = etcd.map(|etcd| (rounded(ours.ops_s / etcd.ops_s), rounded(ours.p99_ms / etcd.p99_ms)));
            let text = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            eprintln!(
                "{:7} {:7} {:14} {:>7} {:>7} {:>6} {:>9.0} {:>8.2} {:>8.2} {:>7.3} {:>6} {:>8} {:>8}",
                point.system,
                point.operation,
                point.command,
                point.clients,
                point.tenants,
                point.shards,
                ours.ops_s,
                ours.p50_ms,
                ours.p99_ms,
                ours.cpu_ms,
                ours.errors,
                text(ratio.map(|(ops, _)| ops)),
                text(ratio.map(|(_, p99)| p99)),
            );
            println!(
                "{}",
                json!({"median": {
                    "system": point.system, "operation": point.operation, "command": point.command,
                    "clients": point.clients, "tenants": point.tenants, "shards": point.shards,
                    "ops_s": ours.ops_s, "p50_ms": ours.p50_ms, "p99_ms": ours.p99_ms,
                    "cpu_ms_per_op": ours.cpu_ms, "errors": ours.errors,
                    "ops_s_to_etcd": ratio.map(|(ops, _)| ops), "p99_to_etcd": ratio.map(|(_, p99)| p99),
                }})
            );
        }
    }

    /// Of each figure by itself; the errors of all rounds.
    fn medians(&self, like: impl Fn(&Point) -> bool) -> Option<Seen> {
        let found: Vec<&Seen> = self
            .points
            .iter()
            .filter(|point| like(point))
            .map(|point| &point.seen)
            .collect();
        let first = *found.first()?;
        let median = |of: fn(&Seen) -> f64| {
            let mut values: Vec<f64> = found.iter().map(|seen| of(seen)).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        Some(Seen {
            ops_s: median(|seen| seen.ops_s),
            p50_ms: median(|seen| seen.p50_ms),
            p99_ms: median(|seen| seen.p99_ms),
            cpu_ms: median(|seen| seen.cpu_ms),
            errors: found.iter().map(|seen| seen.errors).sum(),
            ..first.clone()
        })
    }
}
