//! What a person or an index wants to know about a run, computed while streaming.

use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;
use serde::de::SeqAccess;
use serde_json::Value;

use super::error::TrajectoryError;
use super::experience::{Event, RunFormat, RunPart, read_runs};
use super::json::Counts;
use super::message::{Message, Role, Usage};
use super::skim::Keep;
use super::stream::{Limits, StreamReport, Taken, Taker, walk_file};

/// A run in brief.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The task's id, where the file states it (batch runs do, VibeMemBench's history does not).
    pub instance_id: Option<String>,
    /// The format; `None`: reading stopped before the end.
    pub format: Option<RunFormat>,
    /// Messages, system and exit included; events where the format has no messages.
    pub messages: usize,
    /// Model calls: as the run counted them, else replies counted here (those that could not be parsed included).
    pub api_calls: u64,
    /// US dollars: as the run counted them, else the sum over replies; `None`: unknown.
    pub instance_cost: Option<f64>,
    /// How the run ended; `None`: not stated. An empty text: the file was saved while the run went on.
    pub exit_status: Option<String>,
    /// The final patch, where the run submitted one. An exception's text never counts as a patch.
    pub submission: Option<String>,
    /// Whether the limits cut the submission: such a text can be read, not applied.
    pub submission_cut: bool,
    /// The issue text that the agent was given.
    pub issue: Option<String>,
    /// Tokens, summed over the replies whose response was kept; `None`: none was.
    pub usage: Option<Usage>,
    /// Bytes, and what was cut or repaired while reading.
    pub counts: Counts,
}

/// Collects a [`Summary`] from the parts of a trajectory.
#[derive(Debug, Default)]
pub struct SummaryBuilder {
    instance_id: Option<String>,
    info_calls: Option<u64>,
    info_cost: Option<f64>,
    info_status: Option<String>,
    info_submission: Option<String>,
    replies: u64,
    cost: Option<f64>,
    exit_status: Option<String>,
    exit_submission: Option<String>,
    issue: Option<String>,
    usage: Option<Usage>,
}

impl SummaryBuilder {
    /// Takes a top-level field.
    pub fn field(&mut self, key: &str, value: &Value) {
        match key {
            "instance_id" => self.instance_id = value.as_str().map(str::to_owned),
            "info" => {
                let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
                let stats = value.get("model_stats");
                self.info_calls = stats.and_then(|stats| stats.get("api_calls")?.as_u64());
                self.info_cost = stats.and_then(|stats| stats.get("instance_cost")?.as_f64());
                self.info_status = text("exit_status");
                self.info_submission = text("submission");
            }
            _ => {}
        }
    }

    /// Takes the next message.
    pub fn message(&mut self, message: &Message) {
        match message.role() {
            Role::User if self.issue.is_none() => self.issue = Some(issue_text(&message.text()).to_owned()),
            Role::Exit => {
                let text = |key| message.extra(key).and_then(Value::as_str).map(str::to_owned);
                self.exit_status = text("exit_status");
                self.exit_submission = text("submission").or_else(|| Some(message.text().into_owned()));
            }
            _ => {}
        }
        let is_reply =
            message.role() == Role::Assistant || (message.is_format_error() && message.response().is_some());
        if is_reply {
            self.replies += 1;
            self.usage = match (self.usage, message.usage()) {
                (Some(sum), Some(more)) => Some(sum.plus(more)),
                (sum, more) => sum.or(more),
            };
            self.cost = match (self.cost, message.cost()) {
                (Some(sum), Some(more)) => Some(sum + more),
                (sum, more) => sum.or(more),
            };
        }
    }

    /// Puts together what was seen.
    pub fn finish(self, report: &StreamReport) -> Summary {
        let exit_status = self.info_status.or(self.exit_status);
        let submitted = exit_status.as_deref() == Some("Submitted");
        let submission = self.info_submission.or(self.exit_submission);
        let submission = submission.filter(|text| submitted && !text.is_empty());
        Summary {
            instance_id: self.instance_id,
            format: report.format.map(RunFormat::from),
            messages: report.messages,
            api_calls: self.info_calls.unwrap_or(self.replies),
            instance_cost: self.info_cost.or(self.cost),
            submission_cut: submission.as_deref().is_some_and(|text| report.limits.cap().has_cut(text)),
            submission,
            exit_status,
            issue: self.issue,
            usage: self.usage,
            counts: report.counts,
        }
    }
}

impl Taker for SummaryBuilder {
    fn field(&mut self, key: &str, value: &Value) -> ControlFlow<()> {
        self.field(key, value);
        ControlFlow::Continue(())
    }

    fn message<'de, A: SeqAccess<'de>>(&mut self, _: usize, list: &mut A) -> Result<Option<Taken>, A::Error> {
        let skim = Keep::Message { issue: self.issue.is_none() };
        let Some(raw) = list.next_element_seed(&skim)? else { return Ok(None) };
        Ok(Some(match Message::from_value(raw) {
            Ok(message) => {
                self.message(&message);
                Taken::Said(ControlFlow::Continue(()))
            }
            Err(reason) => Taken::Bad(reason),
        }))
    }
}

/// Summarises a file at bounded memory. Texts that a summary does not hold are skipped, not decoded.
///
/// # Errors
/// As [`stream_file`](super::stream_file).
pub fn summarize(path: &Path, limits: &Limits) -> Result<Summary, TrajectoryError> {
    let mut builder = SummaryBuilder::default();
    let report = walk_file(path, limits, &mut builder)?;
    Ok(builder.finish(&report))
}

/// Summarises the one run of a file of any format that is read as events.
///
/// # Errors
/// As [`read_runs`].
pub fn summarize_run(path: &Path, limits: &Limits) -> Result<Summary, TrajectoryError> {
    match summarize(path, limits) {
        Err(TrajectoryError::Format { .. } | TrajectoryError::Json { .. }) => {}
        known => return known,
    }
    let mut summary = Summary {
        instance_id: None,
        format: None,
        messages: 0,
        api_calls: 0,
        instance_cost: None,
        exit_status: None,
        submission: None,
        submission_cut: false,
        issue: None,
        usage: None,
        counts: Counts::default(),
    };
    let report = read_runs(path, limits, &mut |part| {
        match part {
            RunPart::Head(head) => summary.instance_id.clone_from(&head.instance_id),
            RunPart::Event(event) => {
                summary.messages += 1;
                match event {
                    Event::Issue { text } if summary.issue.is_none() => summary.issue = Some(text),
                    Event::Submission { patch } => summary.submission = Some(patch),
                    Event::Ended { status, .. } => summary.exit_status = status,
                    _ => {}
                }
            }
            RunPart::End(cost) => (summary.api_calls, summary.usage) = (cost.steps, cost.usage),
        }
        ControlFlow::Continue(())
    })?;
    summary.format = Some(report.format);
    summary.counts = report.counts;
    summary.submission_cut = summary.submission.as_deref().is_some_and(|text| limits.cap().has_cut(text));
    Ok(summary)
}

/// The issue in a task message: what stands between the tags of mini-swe-agent's or OpenHands' templates or in
/// SWE-agent's, without an agent's words around it; else the whole message.
pub fn issue_text(message: &str) -> &str {
    let between = |open: &str, close: &str| {
        let (_, rest) = message.split_once(open)?;
        // The issue itself may quote the tags: the last closing tag ends it.
        rest.rsplit_once(close).map(|(body, _)| body)
    };
    if let Some(body) = between("<pr_description>", "</pr_description>") {
        let body = body.trim_start_matches(['\r', '\n']);
        let body = body.strip_prefix("Consider the following PR description:").unwrap_or(body);
        let body = body.strip_prefix("\r\n").or_else(|| body.strip_prefix('\n')).unwrap_or(body);
        return body.strip_suffix('\n').unwrap_or(body);
    }
    if let Some(body) = between("<issue_description>", "</issue_description>") {
        return body.trim_matches(['\r', '\n']);
    }
    if message.trim_start().starts_with("We're currently solving the following issue")
        && let Some(body) = between("ISSUE:\n", "\nINSTRUCTIONS:")
    {
        return body.trim_matches(['\r', '\n']);
    }
    message
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::trajectory::stream::{Part, stream, walk_bytes};

    /// The summary of a run, which is the same from skimmed and from whole messages.
    fn summary(run: &Value) -> Summary {
        let (bytes, limits) = (serde_json::to_vec(run).unwrap(), Limits::default());
        let mut skimmed = SummaryBuilder::default();
        let report = walk_bytes(&bytes, Path::new("t"), &limits, &mut skimmed).unwrap();
        let mut whole = SummaryBuilder::default();
        let same = stream(bytes.as_slice(), Path::new("t"), &limits, &mut |part| {
            match part {
                Part::Field { key, value } => whole.field(key, value),
                Part::Message { message, .. } => whole.message(&message),
            }
            ControlFlow::Continue(())
        });
        let summary = skimmed.finish(&report);
        assert_eq!(whole.finish(&same.unwrap()), summary);
        summary
    }

    #[test]
    fn extracts_the_issue() {
        let message = "<pr_description>\nConsider the following PR description:\nTitle\r\nBody\n</pr_description>\n\nGo.";
        assert_eq!(issue_text(message), "Title\r\nBody");
        assert_eq!(issue_text("Just this."), "Just this.");
        assert_eq!(issue_text("<pr_description>\nOwn text\n</pr_description>"), "Own text");
        assert_eq!(issue_text("<pr_description> never closed"), "<pr_description> never closed");
        let hands =
            "<uploaded_files>\n/w\n</uploaded_files>\n<issue_description>\nTitle\n</issue_description>\nGo.";
        assert_eq!(issue_text(hands), "Title");
        let agent = "We're currently solving the following issue within our repository.\nISSUE:\nTitle\n\nINSTRUCTIONS:\nGo.";
        assert_eq!(issue_text(agent), "Title");
        let quoting = "<pr_description>\na </pr_description> b\n</pr_description>";
        assert_eq!(issue_text(quoting), "a </pr_description> b");
    }

    #[test]
    fn counts_what_the_file_does_not_state() {
        let summary = summary(&json!({"messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": "", "extra": {"cost": 0.25,
                "response": {"usage": {"prompt_tokens": 7, "completion_tokens": 2}}}},
            {"role": "user", "content": "no call", "extra": {"interrupt_type": "FormatError", "cost": 0.5,
                "response": {"usage": {"prompt_tokens": 3, "completion_tokens": 1}}}},
            {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}},
        ]}));
        assert_eq!(summary.format, Some(RunFormat::MessagesOnly));
        assert_eq!((summary.messages, summary.api_calls, summary.instance_cost), (5, 2, Some(0.75)));
        assert_eq!(summary.usage, Some(Usage { prompt_tokens: 10, cached_tokens: 0, completion_tokens: 3 }));
        assert_eq!(summary.submission.as_deref(), Some("diff"));
        assert_eq!(summary.issue.as_deref(), Some("fix it"));
    }

    #[test]
    fn an_exception_is_no_patch() {
        let summary = summary(&json!({"info": {"exit_status": "RuntimeError", "submission": "no disk",
            "model_stats": {"api_calls": 3, "instance_cost": 1.5}}, "messages": [], "instance_id": "a__b-1",
            "trajectory_format": "mini-swe-agent-1"}));
        assert_eq!(summary.submission, None);
        assert_eq!(summary.exit_status.as_deref(), Some("RuntimeError"));
        assert_eq!((summary.api_calls, summary.instance_cost), (3, Some(1.5)));
        assert_eq!(summary.instance_id.as_deref(), Some("a__b-1"));
    }
}
