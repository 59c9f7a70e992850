//! Formats that runners write for programs, read under strict rules where a log holds them. Each file has one
//! [`Format`](super::Format); a parser lists in `reads` those that its runner can write.

pub(super) mod dart_json;
mod document;
pub(super) mod dotnet;
pub(super) mod go_test_json;
pub(super) mod javascript_json;
pub(super) mod junit;
pub(super) mod libtest_json;
pub(super) mod rspec_json;
pub(super) mod tap;
