//! waggle-store
