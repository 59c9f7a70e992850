//! The log parsers alone are instrumented, not all of memtrial with what it needs.

#[path = "../../lib/src/grade/logs/mod.rs"]
pub mod logs;
