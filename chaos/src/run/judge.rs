//! The pass rule: all histories linearizable, nothing lost, nothing twice, equal digests, enough faults that really
//! happened, service after healing, clean logs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::report::{Coverage, Report};
use super::{Evidence, Options};
use crate::checker::{Verdict, domain, linear, lists, register};
use crate::cluster::{Cluster, STOP_MAX};
use crate::history::{Operation, Outcome};
use crate::nemesis::{Capability, Kind, Phase};

/// Of the operations under faults at least this part must succeed, or the faults left nothing to judge.
const SUCCEEDED_PERCENT_MIN: u64 = 30;

/// What the MCP library says, as an error, when a client did not wait for its answer. Impatient clients do not.
const HUNG_UP: [&str; 2] = ["\"target\":\"rmcp::service\"", "channel closed"];

pub(super) fn judge(options: &Options, capabilities: Vec<Capability>, evidence: &Evidence) -> Result<Report> {
    let history = &evidence.history;
    let mut checks = vec![
        ("every memory linearizable", register::check(history, linear::STEPS_MAX)),
        ("versions as a list", lists::check_versions(history)),
    ];
    match &evidence.graph {
        Some(graph) => checks.extend(domain::check(history, graph)),
        None => checks.push(("what is there at the end", Verdict::unknown("nobody could look"))),
    }
    checks.push((
        "equal digests",
        match &evidence.digests {
            Ok(seen) => domain::digests(seen, usize::try_from(options.nodes.min(3)).unwrap_or(3)),
            Err(problem) => Verdict::unknown(problem.clone()),
        },
    ));
    let coverage = coverage(evidence);
    let (under_faults, succeeded) = under_faults(evidence);
    checks.push(("coverage", covered(&coverage, under_faults, succeeded)));
    checks.push(("full service after healing", evidence.service.clone()));
    checks.push(("processes end as they should", evidence.ends.clone()));
    checks.push(("no unexpected answer", expected_answers(history)));
    checks.push(("no panic, no unexpected ERROR line", clean_logs(evidence)?));
    let verdict = checks
        .iter()
        .fold(Verdict::Pass, |sum, (_, verdict)| sum.and(verdict.clone()));
    Ok(Report {
        seed: options.seed,
        seconds: options.time.as_secs(),
        nodes: options.nodes,
        shards: options.shards,
        binary: options.binary.display().to_string(),
        operations: counts(history),
        under_faults,
        succeeded_under_faults: succeeded,
        coverage,
        capabilities,
        checks,
        verdict,
        kept: options.root.display().to_string(),
    })
}

/// How many operations of each kind, and how they came out: ok, fail, unknown.
fn counts(history: &[Operation]) -> BTreeMap<&'static str, [u64; 3]> {
    let mut counts: BTreeMap<&'static str, [u64; 3]> = BTreeMap::new();
    for operation in history {
        let count = counts.entry(operation.action.word()).or_default();
        match operation.outcome {
            Outcome::Ok { .. } => count[0] += 1,
            Outcome::Fail { .. } => count[1] += 1,
            Outcome::Unknown { .. } => count[2] += 1,
        }
    }
    counts
}

fn coverage(evidence: &Evidence) -> Vec<Coverage> {
    let mut kinds: BTreeMap<Kind, Coverage> = BTreeMap::new();
    for planned in &evidence.plan.faults {
        let entry = kinds.entry(planned.kind).or_insert_with(|| Coverage {
            kind: planned.kind,
            planned: 0,
            happened: 0,
            problems: Vec::new(),
        });
        entry.planned += 1;
        let own = || evidence.events.iter().filter(|event| event.number == planned.number);
        let failed: Vec<String> = own()
            .filter(|event| event.phase == Phase::Failed)
            .map(|event| event.note.clone())
            .collect();
        let began = own().any(|event| event.phase == Phase::Begin);
        entry.happened += u32::from(began && failed.is_empty());
        entry.problems.extend(failed);
    }
    kinds.into_values().collect()
}

/// Operations that overlap a fault, and how many of them succeeded.
fn under_faults(evidence: &Evidence) -> (u64, u64) {
    let mut windows: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for event in &evidence.events {
        let window = windows.entry(event.number).or_insert((event.at, event.at));
        window.0 = window.0.min(event.at);
        window.1 = window.1.max(event.at);
    }
    let hurt = evidence.history.iter().filter(|operation| {
        let end = operation.end.unwrap_or(operation.start);
        windows
            .values()
            .any(|(from, to)| operation.start <= *to && end >= *from)
    });
    hurt.fold((0, 0), |(all, ok), operation| {
        (all + 1, ok + u64::from(operation.is_ok()))
    })
}

fn covered(coverage: &[Coverage], under_faults: u64, succeeded: u64) -> Verdict {
    let mut missing: Vec<String> = coverage
        .iter()
        .filter(|kind| kind.happened < kind.planned)
        .map(|kind| {
            let why = kind.problems.join("; ");
            format!(
                "{}: {} of {} happened ({why})",
                kind.kind.word(),
                kind.happened,
                kind.planned
            )
        })
        .collect();
    if coverage.is_empty() {
        missing.push("no fault was planned".to_owned());
    }
    if succeeded * 100 < under_faults * SUCCEEDED_PERCENT_MIN || under_faults == 0 {
        missing.push(format!(
            "{succeeded} of {under_faults} operations under faults succeeded"
        ));
    }
    if missing.is_empty() {
        return Verdict::Pass;
    }
    // What was not tried was not seen to fail.
    Verdict::unknown(missing.join("; "))
}

/// Clients know what to do with every refusal that a fault may cause; any other one is a fault of ours.
fn expected_answers(history: &[Operation]) -> Verdict {
    let mut violations = Vec::new();
    for operation in history {
        if let Outcome::Fail { code } = &operation.outcome
            && code.starts_with("unexpected")
        {
            violations.push(format!("{} of {}: {code}", operation.action.word(), operation.key));
        }
    }
    Verdict::of(violations)
}

fn clean_logs(evidence: &Evidence) -> Result<Verdict> {
    let full: Vec<String> = evidence
        .plan
        .faults
        .iter()
        .filter_map(|planned| match planned.fault {
            crate::nemesis::Fault::DiskFull { node } => Some(format!("node-{node}.log")),
            _ => None,
        })
        .collect();
    let mut violations = Vec::new();
    for log in &evidence.logs {
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for line in lines_of_errors(log)? {
            if HUNG_UP.iter().all(|part| line.contains(part)) {
                continue;
            }
            // A node that cannot write says so.
            if full.contains(&name) && !line.contains("panic") {
                continue;
            }
            violations.push(format!("{name}: {}", line.chars().take(600).collect::<String>()));
        }
    }
    Ok(Verdict::of(violations))
}

/// Lines that mean that a person must look.
fn lines_of_errors(log: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(log).with_context(|| format!("read {}", log.display()))?;
    let bad = text.lines().filter(|line| match serde_json::from_str::<Value>(line) {
        Ok(entry) => entry["level"]
            .as_str()
            .is_some_and(|level| level.eq_ignore_ascii_case("error")),
        // kill -9 may leave half a line.
        Err(_) => line.contains("panicked at") || line.starts_with("error"),
    });
    Ok(bad.map(str::to_owned).collect())
}

/// Nobody died of a fault that leaves it alive, and SIGTERM ends everybody in time.
pub(super) async fn ends(cluster: &mut Cluster) -> Verdict {
    let mut violations = Vec::new();
    let full = cluster.shape.small_disk.map(|(node, _)| node);
    for (id, member) in cluster.nodes.iter_mut().map(|(id, member)| (Some(*id), member)) {
        for status in member.process.take_ended() {
            if id != full {
                violations.push(format!("{} ended by itself: {status}", member.process.name()));
            }
        }
    }
    for member in cluster.gateways.values_mut() {
        for status in member.process.take_ended() {
            violations.push(format!("{} ended by itself: {status}", member.process.name()));
        }
    }
    for member in cluster.gateways.values_mut().chain(cluster.nodes.values_mut()) {
        if let Err(problem) = member.process.stop(STOP_MAX).await {
            violations.push(format!("{problem:#}"));
        }
    }
    Verdict::of(violations)
}
