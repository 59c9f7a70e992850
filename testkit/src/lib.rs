//! Fixtures for memtrial's own tests and its demonstration.
