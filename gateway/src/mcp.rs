//! The Model Context Protocol: the tool table, argument checks, translation between memories and the words that agents
//! know (node, edge), and answers that fit a budget.

pub(crate) mod server;

pub(crate) mod schema;

pub(crate) mod arguments;
pub(crate) mod times;

pub(crate) mod overview;
pub(crate) mod policy;
pub(crate) mod translate;

pub(crate) mod read_point;
pub(crate) mod result;
pub(crate) mod text;

pub(crate) mod tools;
