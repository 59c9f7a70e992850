//! Which format a file of runs has, told by its content.

use serde_json::{Map, Value};

use super::run::RunFormat;
use super::source::{Source, Top};
use crate::trajectory::skim::Keep;
use crate::trajectory::{Format, TrajectoryError};

/// What a look at a file told.
pub(super) struct Detected {
    pub format: RunFormat,
    /// The small fields at the top of a document, or of a file's first line that tells its format.
    pub top: Map<String, Value>,
}

/// Logs may begin with lines that tell nothing; the format is told by one of the first so many.
const LINES: usize = 200;

const READABLE: &str = "memtrial reads runs of mini-swe-agent (1, 1.1), VibeMemBench's messages, SWE-agent's .traj, OpenHands' \
                        output.jsonl, ATIF, sessions of Claude Code and Codex (JSONL), rollouts of NeMo Gym";

/// Looks at a file.
///
/// # Errors
/// When it cannot be read, is no JSON, or is of no readable format: the error names what was seen.
pub(super) fn detect(source: &Source<'_>) -> Result<Detected, TrajectoryError> {
    let first = source.first_bytes()?;
    for (magic, what) in [
        (&b"PK\x03\x04"[..], "a ZIP archive, as inspect's .eval is; export its samples as JSON"),
        (b"PAR1", "parquet; convert its rows to JSONL"),
        (b"\x1f\x8b", "gzip; unpack it"),
        (b"\x28\xb5\x2f\xfd", "zstd; unpack it"),
    ] {
        if first.starts_with(magic) {
            return Err(source.format_error(format!("{what} first; {READABLE}")));
        }
    }
    let whole = source.parse(Top, false);
    if let Ok((Some(top), _)) = &whole
        && let Some(format) = decide(top)
    {
        return Ok(Detected { format, top: top.clone() });
    }
    let mut found = None;
    let mut looked = 0;
    source.lines(&LINE, &mut |_, top| {
        looked += 1;
        found = decide(&top).map(|format| Detected { format, top });
        if found.is_some() || looked == LINES {
            return std::ops::ControlFlow::Break(());
        }
        std::ops::ControlFlow::Continue(())
    })?;
    match (found, whole) {
        (Some(found), _) => Ok(found),
        (None, Err(error)) => Err(error),
        (None, Ok((Some(top), _))) => {
            // the words for files that look like something else are there already
            let reason = match Format::detect(&top) {
                Err(known) if known.contains("(these are") => known,
                _ => format!("the keys {} are of no run", keys(&top)),
            };
            Err(source.format_error(format!("{reason}; {READABLE}")))
        }
        (None, Ok((None, _))) => {
            Err(source.format_error(format!("holds no object with the fields of a run; {READABLE}")))
        }
    }
}

/// What tells the format of a line.
const LINE: Keep = Keep::Only(&[
    ("type", Keep::All),
    ("sessionId", Keep::All),
    ("uuid", Keep::All),
    ("leafUuid", Keep::All),
    ("messageId", Keep::All),
    ("snapshot", Keep::Only(&[])),
    ("payload", Keep::Only(&[("type", Keep::All)])),
    ("timestamp", Keep::All),
    ("instance_id", Keep::All),
    ("test_result", Keep::Only(&[])),
    ("history", Keep::Only(&[])),
    ("instruction", Keep::Only(&[])),
    ("responses_create_params", Keep::Only(&[])),
    ("response", Keep::Only(&[])),
]);

fn keys(top: &Map<String, Value>) -> String {
    let named: Vec<_> = top.keys().take(8).map(|key| format!("`{key}`")).collect();
    let more = top.len().saturating_sub(named.len());
    match (named.is_empty(), more) {
        (true, _) => "(none)".to_owned(),
        (false, 0) => named.join(", "),
        (false, more) => format!("{} and {more} more", named.join(", ")),
    }
}

/// The format of an object with these top-level fields.
fn decide(top: &Map<String, Value>) -> Option<RunFormat> {
    let text = |key: &str| top.get(key).and_then(Value::as_str);
    let is_list = |key: &str| top.get(key).is_some_and(Value::is_array);
    let has = |key: &str| top.contains_key(key);
    if text("schema_version").is_some_and(|version| version.starts_with("ATIF-v1")) && is_list("steps") {
        return Some(RunFormat::Atif);
    }
    if has("responses_create_params") && has("response") {
        return Some(RunFormat::NemoGym);
    }
    if has("instance_id") && has("history") && (has("test_result") || has("instruction") || has("git_patch"))
    {
        return Some(RunFormat::OpenHands);
    }
    if is_list("messages") {
        return Format::detect(top).ok().map(RunFormat::from);
    }
    if is_list("trajectory") && (has("info") || has("history")) {
        return Some(RunFormat::SweAgent);
    }
    let is_message = |message: &Value| message.get("role").is_some();
    if top.get("history").and_then(Value::as_array).is_some_and(|all| all.iter().any(is_message)) {
        return Some(RunFormat::SweAgent);
    }
    let kind = text("type").unwrap_or_default();
    if has("payload")
        && has("timestamp")
        && matches!(kind, "session_meta" | "turn_context" | "response_item" | "event_msg" | "compacted")
    {
        return Some(RunFormat::Codex);
    }
    let claude = has("sessionId") && (has("uuid") || has("leafUuid") || !kind.is_empty());
    if claude
        || (kind == "summary" && has("leafUuid"))
        || (kind == "file-history-snapshot" && has("messageId"))
    {
        return Some(RunFormat::ClaudeCode);
    }
    None
}
