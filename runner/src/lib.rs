//! What memtrial and the runner, the program inside a sandbox, say to each other.
//!
//! The runner reads requests on its standard input and answers each on its standard output ([`wire`]). Started as
//! `enter` it first makes the sandbox that it then serves, as described by an [`enter::Enter`].

pub mod enter;
pub mod gateway;
pub mod tidy;
pub mod wire;
