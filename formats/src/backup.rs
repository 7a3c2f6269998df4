//! The JSON backup, `waggle-cluster-backup`.
