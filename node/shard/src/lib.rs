//! waggle-shard
