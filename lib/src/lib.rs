//! memtrial answers one question with a controlled trial: does memory make a coding agent solve more real repository
//! tasks, and what does it cost?
//!
//! The modules stand in pipeline order. A later one may use an earlier one, never the other way round
//! (`cargo xtask layering` checks it).

pub mod task;
pub mod trajectory;
pub mod dataset;
pub mod stats;
pub mod sandbox;
pub mod llm;
pub mod context;
pub mod memory;
pub mod agent;
pub mod grade;
pub mod audit;
pub mod study;
pub mod report;
