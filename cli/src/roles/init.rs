//! Making a cluster: its first node starts without a listener, writes the first entry and the first operator's key, and
//! ends. From then on it starts like any other node.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use waggle_config::NodeConfig;
use waggle_config::certificates::Subject;
use waggle_config::limits::DRAIN_TIME_MAX;
use waggle_config::runtime::clock::Clock;
use waggle_memory::meta::{ClusterId, NodeId};
use waggle_node::{ClusterOrigin, NoPeers, Node};

use super::node::{self, Place};
use super::prepare::{self, WhenNew};
use super::{dev, logging};
use crate::failure::{self, Failure};

/// What is there now.
pub(crate) struct Made {
    pub(crate) cluster: ClusterId,
    pub(crate) node: NodeId,
    pub(crate) operator_key: PathBuf,
    pub(crate) pepper: PathBuf,
    pub(crate) cluster_secret: PathBuf,
}

/// May be repeated after it was interrupted, and is refused once it is done.
pub(crate) fn run(
    config: &NodeConfig,
    subject: Subject,
    shard_count: u32,
    replication: u32,
    clock: Arc<dyn Clock>,
) -> Result<Made> {
    dev::keep_files_private();
    logging::start("warn", config.log().format())?;
    let claimed = prepare::claim(config.data_dir(), WhenNew::Create(NodeId(subject.id)))?;
    if !claimed.is_new {
        return Err(Failure::new(
            failure::CONFLICT,
            format!(
                "{} belongs to cluster {} already",
                claimed.dir.root().display(),
                claimed.identity.cluster
            ),
        )
        .next("start it with `waggle node`, or name an empty directory")
        .into());
    }
    if claimed.identity.node.0 != subject.id {
        bail!(
            "{} was begun for {}, but the certificate is for node {}",
            claimed.dir.root().display(),
            claimed.identity.node,
            subject.id
        );
    }
    let place = Place {
        address: config.advertise().to_owned(),
        zone: config.zone().to_owned(),
        origin: ClusterOrigin::New {
            shard_count,
            replication,
        },
        dial: Arc::new(NoPeers),
    };
    let options = node::options(
        &claimed,
        node::store(config, false),
        place,
        config.raft(),
        config.recall(),
    )?;
    dev::runtime()?.block_on(async {
        let node = Node::start(options, Arc::clone(&clock))
            .await
            .context("start the node")?;
        node::init(&claimed, &node, &*clock).await?;
        match node.shutdown(DRAIN_TIME_MAX).await {
            Ok(()) => Ok(()),
            Err(held) => bail!("stop the node: {held}"),
        }
    })?;
    claimed.mark_started()?;
    Ok(Made {
        cluster: claimed.identity.cluster,
        node: claimed.identity.node,
        operator_key: claimed.dir.operator_key(),
        pepper: claimed.dir.pepper(),
        cluster_secret: claimed.dir.cluster_secret(),
    })
}
