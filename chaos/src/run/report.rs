//! What a run says: JSON for machines, a table for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Serialize, Serializer};

use crate::checker::Verdict;
use crate::nemesis::{Capability, Kind};

#[derive(Clone, Debug, Serialize)]
pub struct Coverage {
    pub kind: Kind,
    pub planned: u32,
    pub happened: u32,
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub seed: u64,
    pub seconds: u64,
    pub nodes: u64,
    pub shards: u32,
    pub binary: String,
    /// Of each kind: ok, fail, unknown.
    pub operations: BTreeMap<&'static str, [u64; 3]>,
    pub under_faults: u64,
    pub succeeded_under_faults: u64,
    pub coverage: Vec<Coverage>,
    pub capabilities: Vec<Capability>,
    #[serde(serialize_with = "by_name")]
    pub checks: Vec<(&'static str, Verdict)>,
    pub verdict: Verdict,
    /// History, plan, events, logs and configuration.
    pub kept: String,
}

fn by_name<S: Serializer>(checks: &[(&'static str, Verdict)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(checks.iter().map(|(name, verdict)| (name, verdict)))
}

impl Report {
    /// 0 pass, 1 fail, 2 unknown.
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            Verdict::Pass => 0,
            Verdict::Fail { .. } => 1,
            Verdict::Unknown { .. } => 2,
        }
    }

    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{} nodes, {} shards, {} s, seed {}: {}\n",
            self.nodes, self.shards, self.seconds, self.seed, self.binary
        );
        let _ = writeln!(text, "{:<12} {:>8} {:>8} {:>8}", "OPERATION", "OK", "FAIL", "UNKNOWN");
        for (kind, [ok, fail, unknown]) in &self.operations {
            let _ = writeln!(text, "{kind:<12} {ok:>8} {fail:>8} {unknown:>8}");
        }
        let _ = writeln!(
            text,
            "\n{} of {} operations under faults succeeded\n",
            self.succeeded_under_faults, self.under_faults
        );
        let _ = writeln!(text, "{:<20} {:>8} {:>8}", "FAULT", "PLANNED", "HAPPENED");
        for kind in &self.coverage {
            let _ = writeln!(
                text,
                "{:<20} {:>8} {:>8}",
                kind.kind.word(),
                kind.planned,
                kind.happened
            );
        }
        let _ = writeln!(text);
        for capability in self.capabilities.iter().filter(|capability| !capability.works) {
            let _ = writeln!(text, "not covered: {} ({})", capability.what, capability.why);
        }
        let _ = writeln!(text, "\n{:<38} VERDICT", "CHECK");
        for (name, verdict) in &self.checks {
            let _ = writeln!(text, "{name:<38} {}", verdict.word());
            match verdict {
                Verdict::Pass => {}
                Verdict::Fail { violations } => {
                    for violation in violations.iter().take(10) {
                        let _ = writeln!(text, "    {violation}");
                    }
                }
                Verdict::Unknown { why } => {
                    let _ = writeln!(text, "    {why}");
                }
            }
        }
        let found = match &self.verdict {
            Verdict::Pass => format!(
                "no violation found in {} s with this workload and these faults",
                self.seconds
            ),
            Verdict::Fail { violations } => format!("{} violations", violations.len()),
            Verdict::Unknown { .. } => "nobody can say".to_owned(),
        };
        let _ = writeln!(
            text,
            "\n{}: {found}\nkept: {}",
            self.verdict.word().to_uppercase(),
            self.kept
        );
        text
    }
}
