//! Replies kept beyond a journal's life, for a study that is run again.
//!
//! A reply is filed under everything that it may depend on (condition, target, solver, replicate, step, request), so
//! that none ever crosses from one condition or replicate to another.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Caller;
use crate::llm::journal::digest_of;
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
    let text = match fs_err::read_to_string(place) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(place, error.to_string())),
    };
    let reply: Reply = serde_json::from_str(&text)
        .map_err(|error| wrong(place, format!("{error}: remove the file to ask again")))?;
    Ok(Some(Reply { cost: Cost { calls: 1, ..Cost::ZERO }, ..reply }))
}

/// Keeps a reply, whole or not at all.
pub(super) fn put(place: &Path, reply: &Reply) -> Result<(), LlmError> {
    let io = |error: std::io::Error| wrong(place, error.to_string());
    let folder = place.parent().unwrap_or(Path::new(""));
    fs_err::create_dir_all(folder).map_err(io)?;
    let file = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    serde_json::to_writer(&file, reply).map_err(|error| wrong(place, error.to_string()))?;
    file.persist(place).map_err(|error| io(error.error))?;
    Ok(())
}

fn wrong(place: &Path, reason: String) -> LlmError {
    LlmError::Cache { path: place.display().to_string(), reason }
}
