//! End to end: the binary as a user runs it. One module an area, one binary for all.
mod compare;
