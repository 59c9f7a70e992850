//! Replies kept beyond a journal's life, for a study that is run again.
//!
//! A reply is filed under everything that it may depend on (condition, target, solver, replicate, step, request), so
//! that none ever crosses from one condition or replicate to another.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Caller;
use crate::llm::journal::digest_of;
use crate::llm::kept;
use crate::llm::{Cost, LlmError, Reply};

/// Where the reply to a request lies.
pub(super) fn place(folder: &Path, caller: &Caller, step: u64, request_sha256: &str) -> PathBuf {
    let Caller { condition, target, solver, replicate, .. } = caller;
    let name = digest_of(json!({"condition": condition, "target": target, "solver": solver,
        "replicate": replicate, "step": step, "request": request_sha256}));
    folder.join(&name[..2]).join(format!("{name}.json"))
}

/// The reply kept there. It is a call that costs nothing: what it cost when it was made stays in the response.
pub(super) fn get(place: &Path) -> Result<Option<Reply>, LlmError> {
    let kept = kept::read(place)?;
    Ok(kept.map(|reply| Reply { cost: Cost { calls: 1, ..Cost::ZERO }, ..reply }))
}

pub(super) use kept::write as put;
