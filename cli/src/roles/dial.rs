//! How a process reaches nodes: with its own certificate, and only a node whose certificate is for the number that was
//! asked for.

use std::collections::HashMap;

use tonic::transport::Channel;
use waggle_config::certificates::{Role, Subject};
use waggle_config::checked::NodeAddress;
use waggle_config::peer_tls::PeerTls;
use waggle_memory::meta::NodeId;
use waggle_node::{Dial, DialError};

pub(super) struct TlsDial {
    tls: PeerTls,
    /// Addresses that are better from here than what nodes advertise.
    better: HashMap<u64, String>,
}

impl TlsDial {
    pub(super) fn new(tls: PeerTls, better: &[NodeAddress]) -> Self {
        let better = better.iter().map(|node| (node.node, node.address.clone())).collect();
        Self { tls, better }
    }
}

impl Dial for TlsDial {
    fn channel(&self, node: NodeId, address: &str) -> Result<Channel, DialError> {
        let address = self.better.get(&node.0).map_or(address, String::as_str);
        let subject = Subject {
            role: Role::Node,
            id: node.0,
        };
        if address.is_empty() {
            return Err(DialError(format!("nobody knows where {node} is")));
        }
        self.tls
            .channel(subject, address)
            .map_err(|error| DialError(format!("{node} at {address}: {error}")))
    }
}
