//! waggle-tests
