//! Fixtures for memtrial's own tests and its demonstration.

pub mod bundle;
pub mod plant;
