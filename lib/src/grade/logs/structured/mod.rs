//! Formats that runners write for programs, read under strict rules where a log holds them. Each file has one
//! [`Format`](super::Format); a parser lists in `reads` those that its runner can write.

mod document;
pub(super) mod junit;
