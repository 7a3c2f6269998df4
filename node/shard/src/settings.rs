//! Settings of consensus, with the reason for each. Defaults suit one site on ordinary machines; waggle-config proves
//! the relations again for values that an operator sets.

use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use crate::error::StartError;

/// Settings of every replica on this node. They must agree on all members of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A follower waits the upper value (the lease) and a random time between both before it asks for votes, so a lost
    /// leader is replaced after 1.8 to 2.4 s. Shorter would elect on a loaded machine for no reason: threads there wake
    /// up 100 to 230 ms late at worst. A shard with one voter does not wait at all (see `replica.rs`).
    pub election_timeout: (Duration, Duration),
    /// Time between heartbeats, and between two signs of life that make a heartbeat superfluous.
    pub heartbeat_interval: Duration,
    /// Entries after which a snapshot is built.
    pub snapshot_after_entries: u64,
    /// Entries kept behind a snapshot for followers that lag a little.
    pub log_entries_kept: u64,
    /// Time for a whole snapshot to be sent and installed. Derive it from the size; 200 ms (openraft's default) resends
    /// the first piece for ever.
    pub snapshot_timeout: Duration,
    /// Proposals of one shard in flight, by count and by bytes; beyond, callers are told to come back.
    pub proposals_max: usize,
    /// See `proposals_max`.
    pub proposal_bytes_max: usize,
    /// Largest command. At most what the log decodes (`waggle_proto::log::limits`).
    pub command_bytes_max: usize,
    /// What a refused caller is told.
    pub overload_retry_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            election_timeout: (Duration::from_millis(600), Duration::from_millis(1200)),
            heartbeat_interval: Duration::from_millis(200),
            snapshot_after_entries: 20_000,
            log_entries_kept: 5_000,
            snapshot_timeout: Duration::from_secs(120),
            proposals_max: 4096,
            proposal_bytes_max: 32 << 20,
            // An import is one command as long as it fits; everything else is far smaller.
            command_bytes_max: 16 << 20,
            overload_retry_after: Duration::from_millis(50),
        }
    }
}

impl Settings {
    pub(crate) fn config(&self, name: String) -> Result<Config, StartError> {
        let (election_timeout_min, election_timeout_max) =
            (millis(self.election_timeout.0), millis(self.election_timeout.1));
        let heartbeat_interval = millis(self.heartbeat_interval);
        let tick = heartbeat_interval * 13 / 64;
        if heartbeat_interval * 2 + tick >= election_timeout_min {
            return Err(StartError::Settings(format!(
                "two heartbeat intervals and a tick ({} ms) must be shorter than the shortest election timeout ({election_timeout_min} ms)",
                heartbeat_interval * 2 + tick
            )));
        }
        if self.command_bytes_max > self.proposal_bytes_max {
            return Err(StartError::Settings(format!(
                "a command may have {} bytes, but all in flight together only {}",
                self.command_bytes_max, self.proposal_bytes_max
            )));
        }
        let config = Config {
            cluster_name: name,
            election_timeout_min,
            election_timeout_max,
            heartbeat_interval,
            // No heartbeats while writes flow.
            heartbeat_min_interval: Some(heartbeat_interval),
            // A node that returns must not disturb a healthy leader.
            enable_pre_vote: Some(true),
            // Apply is not synced: a restarted leader that took its office back without a vote could serve old state.
            enable_leader_restore: Some(false),
            // A follower whose log went back has lost data: stop it.
            allow_log_reversion: Some(false),
            install_snapshot_timeout: millis(self.snapshot_timeout),
            // openraft counts entries; bytes are capped where the log is read.
            max_payload_entries: 300,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_after_entries),
            // More than the distance between snapshots, else a follower is sent a snapshot that it does not need.
            replication_lag_threshold: self.snapshot_after_entries + self.log_entries_kept,
            max_in_snapshot_log_to_keep: self.log_entries_kept,
            // Purge by range, not entry by entry.
            purge_batch_size: 512,
            // Twice what admission lets in, so that consensus' own messages always find room.
            api_channel_size: Some(8192),
            notification_channel_size: Some(8192),
            state_machine_channel_size: Some(256),
            ..Config::default()
        };
        config
            .validate()
            .map_err(|error| StartError::Settings(error.to_string()))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_possible() {
        assert!(Settings::default().config("shd_0".to_owned()).is_ok());
    }

    #[test]
    fn a_heartbeat_that_could_come_too_late_is_refused_with_both_numbers() {
        let settings = Settings {
            heartbeat_interval: Duration::from_millis(300),
            ..Settings::default()
        };
        let error = settings
            .config("shd_0".to_owned())
            .expect_err("660 ms are longer than 600");
        assert_eq!(
            error.to_string(),
            "the Raft settings are impossible: two heartbeat intervals and a tick (660 ms) must be shorter than the \
             shortest election timeout (600 ms)"
        );
    }
}
