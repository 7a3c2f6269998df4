//! waggle-node
