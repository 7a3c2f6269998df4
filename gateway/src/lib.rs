//! waggle-gateway
