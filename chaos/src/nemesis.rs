//! Who hurts the cluster: a plan that follows from a seed, and its execution.

mod execute;
mod plan;
mod probe;
mod wires;

use serde::{Deserialize, Serialize};

pub use execute::{Event, Nemesis, Phase};
pub use plan::{Plan, Planned, Wishes};
pub use probe::{Capability, probe};

/// A kind of fault. Coverage is counted by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    KillOne,
    KillLeader,
    KillMajority,
    KillAll,
    PowerCut,
    Pause,
    PauseLeader,
    Restart,
    RestartStorm,
    Isolate,
    IsolateLeader,
    Bridge,
    OneWay,
    DeafLeader,
    Delay,
    Bandwidth,
    Resets,
    DiskFull,
    Clock,
    LeaderTransfer,
    GatewayKill,
}

impl Kind {
    pub const ALL: [Self; 21] = [
        Self::KillOne,
        Self::KillLeader,
        Self::KillMajority,
        Self::KillAll,
        Self::PowerCut,
        Self::Pause,
        Self::PauseLeader,
        Self::Restart,
        Self::RestartStorm,
        Self::Isolate,
        Self::IsolateLeader,
        Self::Bridge,
        Self::OneWay,
        Self::DeafLeader,
        Self::Delay,
        Self::Bandwidth,
        Self::Resets,
        Self::DiskFull,
        Self::Clock,
        Self::LeaderTransfer,
        Self::GatewayKill,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Self::KillOne => "kill one",
            Self::KillLeader => "kill the leader",
            Self::KillMajority => "kill a majority",
            Self::KillAll => "kill all",
            Self::PowerCut => "power cut",
            Self::Pause => "pause one",
            Self::PauseLeader => "pause the leader",
            Self::Restart => "restart one",
            Self::RestartStorm => "restart storm",
            Self::Isolate => "isolate one",
            Self::IsolateLeader => "isolate the leader",
            Self::Bridge => "bridge",
            Self::OneWay => "one-way cut",
            Self::DeafLeader => "deaf leader",
            Self::Delay => "delay",
            Self::Bandwidth => "bandwidth",
            Self::Resets => "connection resets",
            Self::DiskFull => "disk full",
            Self::Clock => "clock offset",
            Self::LeaderTransfer => "leader transfers",
            Self::GatewayKill => "kill a gateway",
        }
    }

    /// Whether it happens on the wires, where two faults at once add up.
    pub const fn is_wire(self) -> bool {
        matches!(
            self,
            Self::Isolate
                | Self::IsolateLeader
                | Self::Bridge
                | Self::OneWay
                | Self::DeafLeader
                | Self::Delay
                | Self::Bandwidth
                | Self::Resets
        )
    }
}

/// One fault with all that chance decides about it. A leader is known only when it is hurt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// SIGKILL; started again at the end.
    Kill {
        nodes: Vec<u64>,
    },
    KillLeader,
    /// SIGKILL of all, and what was not synced is gone, or garbage.
    PowerCut {
        garbage: bool,
    },
    /// SIGSTOP; SIGCONT at the end.
    Pause {
        node: u64,
    },
    PauseLeader,
    /// SIGTERM and a start.
    Restart {
        node: u64,
    },
    /// Kill and start, node after node, until the end.
    RestartStorm,
    /// No bytes between this node and any other; with `gateways`, between it and anybody.
    Isolate {
        node: u64,
        gateways: bool,
    },
    IsolateLeader {
        gateways: bool,
    },
    /// The leader and the others see one node only, so many places behind the leader, and it sees all.
    Bridge {
        place: u64,
    },
    /// What the leader sends does not arrive at the node so many places behind it, or the other way round, whoever
    /// dialled. Between two followers nothing may be said for a long time.
    OneWay {
        outward: bool,
        place: u64,
    },
    /// The leader is heard and hears no other node.
    DeafLeader,
    /// On every wire between nodes.
    Delay {
        delay_ms: u64,
        jitter_ms: u64,
    },
    Bandwidth {
        bytes_per_second: u64,
    },
    /// Every connection between any two, again and again until the end.
    Resets,
    /// Not one byte is left on the disk of this node.
    DiskFull {
        node: u64,
    },
    /// The node is started again with a clock that is wrong by so much, and at the end with a right one.
    Clock {
        node: u64,
        offset_ms: i64,
    },
    /// Leadership is asked for by node after node until the end.
    LeaderTransfer,
    GatewayKill {
        gateway: u64,
    },
}
