//! Glob patterns and path clean-up.

mod matcher;
mod path;

pub use matcher::matches;
pub use path::normalize;
