//! What faults make of wires.

use std::time::Duration;

use super::Fault;
use crate::cluster::Peer;
use crate::proxy::Wire;

/// What one fault adds to one wire. `from` dials `to`.
pub(super) fn bent(mut wire: Wire, fault: &Fault, leader: u64, nodes: u64, from: Peer, to: Peer) -> Wire {
    let behind = |place: u64| (leader.saturating_sub(1) + place) % nodes.max(1) + 1;
    let has = |node: u64| from == Peer::Node(node) || to == Peer::Node(node);
    let between_nodes = matches!(from, Peer::Node(_));
    let mut hold = |forward: bool, backward: bool| {
        wire.hold_forward |= forward;
        wire.hold_backward |= backward;
    };
    match fault {
        Fault::Isolate { node, gateways } => {
            let cut = has(*node) && (between_nodes || *gateways);
            hold(cut, cut);
        }
        Fault::IsolateLeader { gateways } => {
            let cut = has(leader) && (between_nodes || *gateways);
            hold(cut, cut);
        }
        Fault::Bridge { place } => {
            let cut = between_nodes && !has(behind(*place));
            hold(cut, cut);
        }
        Fault::OneWay { outward, place } => {
            let (sender, deaf) = if *outward {
                (leader, behind(*place))
            } else {
                (behind(*place), leader)
            };
            hold(
                (from, to) == (Peer::Node(sender), Peer::Node(deaf)),
                (from, to) == (Peer::Node(deaf), Peer::Node(sender)),
            );
        }
        Fault::DeafLeader => {
            hold(
                between_nodes && to == Peer::Node(leader),
                between_nodes && from == Peer::Node(leader),
            );
        }
        Fault::Delay { delay_ms, jitter_ms } if between_nodes => {
            wire.delay += Duration::from_millis(*delay_ms);
            wire.jitter += Duration::from_millis(*jitter_ms);
        }
        Fault::Bandwidth { bytes_per_second } if between_nodes => {
            let least = wire.bytes_per_second.unwrap_or(u64::MAX).min(*bytes_per_second);
            wire.bytes_per_second = Some(least);
        }
        _ => {}
    }
    wire
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The held directions among three nodes and a gateway, as `who hears whom not`.
    fn silence(fault: &Fault, leader: u64) -> Vec<String> {
        let peers = [Peer::Node(1), Peer::Node(2), Peer::Node(3), Peer::Gateway(1)];
        let name = |peer: Peer| match peer {
            Peer::Node(id) => id.to_string(),
            Peer::Gateway(id) => format!("g{id}"),
        };
        let mut found = Vec::new();
        for from in peers {
            for to in peers
                .into_iter()
                .filter(|to| matches!(to, Peer::Node(_)) && *to != from)
            {
                let wire = bent(Wire::default(), fault, leader, 3, from, to);
                if wire.hold_forward {
                    found.push(format!("{}>{}", name(from), name(to)));
                }
                if wire.hold_backward {
                    found.push(format!("{}>{}", name(to), name(from)));
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn cuts_hold_what_they_say() {
        let isolated = ["1>2", "1>3", "2>1", "3>1"];
        let alone = Fault::Isolate {
            node: 1,
            gateways: false,
        };
        assert_eq!(silence(&alone, 0), isolated);
        let all = Fault::IsolateLeader { gateways: true };
        assert_eq!(silence(&all, 1), ["1>2", "1>3", "1>g1", "2>1", "3>1", "g1>1"]);
        assert_eq!(silence(&Fault::Bridge { place: 1 }, 1), ["1>3", "3>1"]);
        let outward = |outward| Fault::OneWay { outward, place: 2 };
        assert_eq!(silence(&outward(true), 1), ["1>3"]);
        assert_eq!(silence(&outward(false), 2), ["1>2"]);
        assert_eq!(silence(&Fault::DeafLeader, 2), ["1>2", "3>2"]);
        assert!(silence(&Fault::Resets, 2).is_empty());
    }
}
