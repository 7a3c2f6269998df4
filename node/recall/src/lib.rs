//! waggle-recall
