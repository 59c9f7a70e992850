//! Runs of every readable format, as a head, events and an end.

use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Map, Value};

use super::claude_code::ClaudeCode;
use super::codex::Codex;
use super::detect::{Detected, detect};
use super::mini::MiniEvents;
use super::run::{RunCost, RunFormat, RunHead, RunPart, RunsReport};
use super::source::{Elements, Lines, Source};
use super::teller::Teller;
use super::{atif, claude_code, codex, nemo_gym, openhands, swe_agent};
use crate::trajectory::json::Counts;
use crate::trajectory::skim::Keep;
use crate::trajectory::{Limits, Part, TrajectoryError, stream_file};

/// Takes the parts and counts them.
pub(super) struct Sink<'o> {
    on: &'o mut dyn FnMut(RunPart<'_>) -> ControlFlow<()>,
    runs: usize,
    events: usize,
    stopped: bool,
}

impl Sink<'_> {
    fn give(&mut self, part: RunPart<'_>) -> ControlFlow<()> {
        if self.stopped {
            return ControlFlow::Break(());
        }
        let said = (self.on)(part);
        self.stopped = said.is_break();
        said
    }

    pub fn head(&mut self, head: &RunHead) -> ControlFlow<()> {
        self.give(RunPart::Head(head))
    }

    /// Hands over what was told so far.
    pub fn events(&mut self, teller: &mut Teller) -> ControlFlow<()> {
        for event in teller.out.drain(..) {
            self.events += 1;
            self.give(RunPart::Event(event))?;
        }
        ControlFlow::Continue(())
    }

    pub fn end(&mut self, cost: RunCost) -> ControlFlow<()> {
        self.runs += 1;
        self.give(RunPart::End(cost))
    }
}

/// A session whose lines are events of one run.
pub(super) trait Session {
    fn line(&mut self, line: &Map<String, Value>, sink: &mut Sink<'_>) -> ControlFlow<()>;
    fn finish(self, sink: &mut Sink<'_>) -> ControlFlow<()>;
}

/// Reads the runs of a file; its format is told by its content, never by its name. A file larger than the limit is
/// refused; in a format with a run a line, a line that is. The callback may stop early.
///
/// Fields that hold a task's answer (`golden_patch`, `patch`, `test_patch`, `instance_dict` and the like) are not
/// looked at: each format names the fields that are read.
///
/// # Errors
/// When the file cannot be read, is too large, is no valid JSON or of no readable format. Parts before the error were
/// handed over.
pub fn read_runs(
    path: &Path,
    limits: &Limits,
    on: &mut dyn FnMut(RunPart<'_>) -> ControlFlow<()>,
) -> Result<RunsReport, TrajectoryError> {
    let source = Source::open(path, limits)?;
    let Detected { format, top } = detect(&source)?;
    if !format.is_run_a_line() {
        source.check_size()?;
    }
    let mut sink = Sink { on, runs: 0, events: 0, stopped: false };
    let mut lines = Lines::default();
    let counts = match format {
        RunFormat::Mini1_1 | RunFormat::Mini1 | RunFormat::MiniUnversioned | RunFormat::MessagesOnly => {
            mini(&source, format, &top, &mut sink)?
        }
        RunFormat::SweAgent => swe_agent::read(&source, &top, &mut sink)?,
        RunFormat::Atif => atif::read(&source, &top, &mut sink)?,
        RunFormat::ClaudeCode => {
            lines = session(&source, &claude_code::LINE, ClaudeCode::new(&top), &mut sink)?;
            lines.counts
        }
        RunFormat::Codex => {
            lines = session(&source, &codex::LINE, Codex::default(), &mut sink)?;
            lines.counts
        }
        RunFormat::OpenHands => {
            lines = rows(&source, &openhands::ROW, &mut |line, row| openhands::row(line, &row, &mut sink))?;
            lines.counts
        }
        RunFormat::NemoGym => {
            lines = rows(&source, &nemo_gym::ROW, &mut |line, row| nemo_gym::row(line, &row, &mut sink))?;
            lines.counts
        }
    };
    Ok(RunsReport {
        format,
        runs: sink.runs,
        events: sink.events,
        bad_lines: lines.bad_lines,
        bad: lines.bad,
        counts,
        stopped: sink.stopped,
    })
}

fn session<S: Session>(
    source: &Source<'_>,
    keep: &Keep,
    mut session: S,
    sink: &mut Sink<'_>,
) -> Result<Lines, TrajectoryError> {
    let lines = source.lines(keep, &mut |_, line| session.line(&line, sink))?;
    if !sink.stopped {
        let _ = session.finish(sink);
    }
    Ok(lines)
}

/// The rows of a file with a run a line, or the one row that is the whole file.
fn rows(
    source: &Source<'_>,
    keep: &'static Keep,
    on: &mut dyn FnMut(Option<usize>, Map<String, Value>) -> ControlFlow<()>,
) -> Result<Lines, TrajectoryError> {
    if source.is_lines()? {
        return source.lines(keep, &mut |line, row| on(Some(line), row));
    }
    source.check_size()?;
    let (row, counts) = source.parse(keep, true)?;
    match row {
        Value::Object(row) => {
            let stopped = on(None, row).is_break();
            Ok(Lines { good: 1, counts, stopped, ..Lines::default() })
        }
        _ => Err(source.format_error("holds no object")),
    }
}

/// Hands over the elements of one list of a document.
pub(super) fn elements(
    source: &Source<'_>,
    key: &'static str,
    keep: &'static Keep,
    on: &mut dyn FnMut(Value) -> ControlFlow<()>,
) -> Result<Counts, TrajectoryError> {
    let mut stopped = false;
    match source.parse(Elements { key, keep, on, stopped: &mut stopped }, true) {
        Ok(((), counts)) => Ok(counts),
        Err(_) if stopped => Ok(Counts::default()),
        Err(error) => Err(error),
    }
}

fn mini(
    source: &Source<'_>,
    format: RunFormat,
    top: &Map<String, Value>,
    sink: &mut Sink<'_>,
) -> Result<Counts, TrajectoryError> {
    let info = top.get("info");
    let mut head = RunHead::new(format).of_task(top.get("instance_id").and_then(Value::as_str));
    let model = info.and_then(|info| info.pointer("/config/model/model_name")).and_then(Value::as_str);
    head.model = model.map(str::to_owned);
    let mut events = MiniEvents::of_run(info).map_err(|reason| source.format_error(reason))?;
    if sink.head(&head).is_break() {
        return Ok(Counts::default());
    }
    let give = |sink: &mut Sink<'_>, event| {
        sink.events += 1;
        let _ = sink.give(RunPart::Event(event));
    };
    let report = stream_file(source.path, &source.limits, &mut |part| {
        if let Part::Message { message, .. } = part {
            events.message(&message, &mut |event| give(sink, event));
        }
        if sink.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if !sink.stopped {
        events.finish(&mut |event| give(sink, event));
        let (steps, usage) = events.cost();
        let _ = sink.end(RunCost { steps, usage });
    }
    Ok(report.counts)
}
