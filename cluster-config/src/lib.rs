//! waggle-config
