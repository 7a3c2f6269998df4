//! Which fault when: all of it follows from the seed and the shape of the cluster.

use serde::{Deserialize, Serialize};

use super::{Fault, Kind};
use crate::dice::Dice;

/// Time without faults at both ends of the plan: the cluster shall be seen working.
const CALM_MS: u64 = 1_500;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    pub number: usize,
    pub kind: Kind,
    pub fault: Fault,
    pub at_ms: u64,
    pub for_ms: u64,
}

impl Planned {
    pub fn end_ms(&self) -> u64 {
        self.at_ms + self.for_ms
    }
}

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct Wishes {
    pub seed: u64,
    pub millis: u64,
    pub nodes: u64,
    pub gateways: u64,
    /// The node whose disk can be filled.
    pub small_disk: Option<u64>,
    pub kinds: Vec<Kind>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub seed: u64,
    pub millis: u64,
    pub faults: Vec<Planned>,
}

impl Plan {
    /// Every kind once in an order of chance, then again, until the time is over. Now and then a fault of the wires goes
    /// on while processes are hurt.
    pub fn new(wishes: &Wishes) -> Self {
        let mut dice = Dice::new(wishes.seed).fork(1);
        let mut faults = Vec::new();
        let mut deck: Vec<Kind> = Vec::new();
        let mut at = CALM_MS;
        // Short runs hurt shortly, or they would see two faults.
        let (short, long) = if wishes.millis < 40_000 {
            (800, 2_500)
        } else {
            (1_000, 8_000)
        };
        while at + short + CALM_MS < wishes.millis {
            if deck.is_empty() {
                deck.clone_from(&wishes.kinds);
                dice.shuffle(&mut deck);
            }
            let Some(kind) = deck.pop() else { break };
            let mut lasts = dice.between(short, long);
            if matches!(kind, Kind::Pause | Kind::PauseLeader) {
                lasts = match dice.below(4) {
                    0 => dice.between(100, 600), // within a lease
                    1 if wishes.millis > 120_000 => dice.between(8_000, 30_000),
                    _ => lasts,
                };
            }
            if matches!(kind, Kind::KillAll | Kind::KillMajority | Kind::PowerCut) {
                // Nobody can be served meanwhile, and nothing is learned from it.
                lasts = dice.between(300, 1_500);
            }
            let lasts = lasts.min(wishes.millis - CALM_MS - at);
            let planned = |kind, fault, at_ms, for_ms, number| Planned {
                number,
                kind,
                fault,
                at_ms,
                for_ms,
            };
            let fault = fault(kind, wishes, &mut dice);
            faults.push(planned(kind, fault, at, lasts, faults.len()));
            let wires: Vec<Kind> = wishes.kinds.iter().copied().filter(|kind| kind.is_wire()).collect();
            if !kind.is_wire() && !wires.is_empty() && lasts > 400 && dice.below(3) == 0 {
                let second = wires[dice.index(wires.len())];
                let delay = dice.below(lasts / 2);
                let fault = self::fault(second, wishes, &mut dice);
                faults.push(planned(second, fault, at + delay, lasts - delay, faults.len()));
            }
            at += lasts + dice.between(short, long * 2 / 3);
        }
        Self {
            seed: wishes.seed,
            millis: wishes.millis,
            faults,
        }
    }
}

fn fault(kind: Kind, wishes: &Wishes, dice: &mut Dice) -> Fault {
    let mut nodes: Vec<u64> = (1..=wishes.nodes).collect();
    dice.shuffle(&mut nodes);
    let node = nodes[0];
    let majority = nodes.len() / 2 + 1;
    match kind {
        Kind::KillOne => Fault::Kill { nodes: vec![node] },
        Kind::KillLeader => Fault::KillLeader,
        Kind::KillMajority => {
            nodes.truncate(majority);
            Fault::Kill { nodes }
        }
        Kind::KillAll => Fault::Kill { nodes },
        Kind::PowerCut => Fault::PowerCut {
            garbage: dice.below(2) == 0,
        },
        Kind::Pause => Fault::Pause { node },
        Kind::PauseLeader => Fault::PauseLeader,
        Kind::Restart => Fault::Restart { node },
        Kind::RestartStorm => Fault::RestartStorm,
        Kind::Isolate => Fault::Isolate {
            node,
            gateways: dice.below(2) == 0,
        },
        Kind::IsolateLeader => Fault::IsolateLeader {
            gateways: dice.below(2) == 0,
        },
        Kind::Bridge => Fault::Bridge {
            place: dice.between(1, wishes.nodes.max(2) - 1),
        },
        Kind::OneWay => Fault::OneWay {
            outward: dice.below(2) == 0,
            place: dice.between(1, wishes.nodes.max(2) - 1),
        },
        Kind::DeafLeader => Fault::DeafLeader,
        Kind::Delay => Fault::Delay {
            delay_ms: dice.between(5, 150),
            jitter_ms: dice.between(0, 100),
        },
        Kind::Bandwidth => Fault::Bandwidth {
            bytes_per_second: dice.between(20_000, 300_000),
        },
        Kind::Resets => Fault::Resets,
        Kind::DiskFull => Fault::DiskFull {
            node: wishes.small_disk.unwrap_or(node),
        },
        Kind::Clock => {
            let size = i64::try_from(dice.between(1_000, 600_000)).unwrap_or(1_000);
            let offset_ms = if dice.below(2) == 0 { size } else { -size };
            Fault::Clock { node, offset_ms }
        }
        Kind::LeaderTransfer => Fault::LeaderTransfer,
        Kind::GatewayKill => Fault::GatewayKill {
            gateway: dice.between(1, wishes.gateways.max(1)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(seed: u64, seconds: u64) -> Wishes {
        Wishes {
            seed,
            millis: seconds * 1_000,
            nodes: 3,
            gateways: 2,
            small_disk: Some(3),
            kinds: Kind::ALL.to_vec(),
        }
    }

    #[test]
    fn a_seed_gives_one_plan() {
        assert_eq!(Plan::new(&wishes(1, 300)), Plan::new(&wishes(1, 300)));
        assert_ne!(Plan::new(&wishes(1, 300)), Plan::new(&wishes(2, 300)));
    }

    #[test]
    fn plans_keep_within_their_time_and_hurt_processes_one_after_the_other() {
        for seed in 0..200 {
            for seconds in [10, 20, 60, 300] {
                let plan = Plan::new(&wishes(seed, seconds));
                assert!(!plan.faults.is_empty(), "{seed} {seconds}");
                assert!(
                    plan.faults.iter().all(|fault| fault.end_ms() <= plan.millis),
                    "{seed} {seconds}"
                );
                let processes: Vec<_> = plan.faults.iter().filter(|fault| !fault.kind.is_wire()).collect();
                for pair in processes.windows(2) {
                    assert!(pair[0].end_ms() < pair[1].at_ms, "{seed} {seconds}: {pair:?}");
                }
            }
        }
    }

    #[test]
    fn a_long_plan_has_every_kind() {
        let plan = Plan::new(&wishes(7, 600));
        for kind in Kind::ALL {
            assert!(plan.faults.iter().any(|fault| fault.kind == kind), "{kind:?}");
        }
    }
}
