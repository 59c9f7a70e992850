//! The built-in systems, one small module each.

pub(super) mod bm25;
pub(super) mod fixcard;
pub(super) mod frozen;
pub(super) mod fs_grep;
pub(super) mod irrelevant;
pub(super) mod mcp;
pub(super) mod off;
pub(super) mod placebo;
pub(super) mod playbook;
pub(super) mod program;
pub(super) mod reasoning_bank;
pub(super) mod repo_notes;
pub(super) mod transcript;
pub(super) mod workflow;
