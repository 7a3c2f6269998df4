//! Every bound of the formats in one place.
