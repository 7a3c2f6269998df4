//! Channels to nodes: those that the configuration names, and those that placements tell of.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use tonic::transport::Channel;
use waggle_memory::meta::{NodeId, NodeState};
use waggle_proto::wire;

use crate::options::Connect;

/// A way to a node.
struct Way {
    /// None: as the configuration names it.
    address: Option<String>,
    channel: Channel,
}

/// See the module.
pub(super) struct Nodes {
    ways: RwLock<BTreeMap<NodeId, Way>>,
    connect: Connect,
}

impl Nodes {
    pub(super) fn new(seeds: Vec<(NodeId, Channel)>, connect: Connect) -> Self {
        let ways = seeds
            .into_iter()
            .map(|(node, channel)| (node, Way { address: None, channel }))
            .collect();
        Self {
            ways: RwLock::new(ways),
            connect,
        }
    }

    pub(super) fn get(&self, node: NodeId) -> Option<Channel> {
        self.ways.read().get(&node).map(|way| way.channel.clone())
    }

    pub(super) fn all(&self) -> Vec<(NodeId, Channel)> {
        self.ways
            .read()
            .iter()
            .map(|(node, way)| (*node, way.channel.clone()))
            .collect()
    }

    /// Opens ways to nodes that are new or have moved; closes those to nodes that are gone. What the configuration names
    /// stays as it is: it may be the better address from here.
    pub(super) fn learn(&self, infos: &[wire::NodeInfo]) {
        let mut ways = self.ways.write();
        for info in infos {
            let node = NodeId(info.id);
            if info.state == u32::from(NodeState::Gone.number()) {
                ways.remove(&node);
                continue;
            }
            let known = ways.get(&node);
            let fits = known.is_some_and(|way| way.address.as_ref().is_none_or(|address| *address == info.address));
            if fits || info.address.is_empty() {
                continue;
            }
            match self.connect.open(node, &info.address) {
                Ok(channel) => {
                    let address = Some(info.address.clone());
                    ways.insert(node, Way { address, channel });
                }
                Err(why) => tracing::warn!(%node, why, "no way to a node of the cluster"),
            }
        }
    }
}
