//! A run of any format: what stands at its head, its events, what stands at its end.

use std::fmt;

use serde::{Serialize, Serializer};

use super::event::Event;
use crate::trajectory::json::Counts;
use crate::trajectory::{Format, Usage};

/// The formats whose runs are read as experience.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunFormat {
    /// mini-swe-agent 2.x: chat messages or Responses-API items.
    Mini1_1,
    /// mini-swe-agent 1.x.
    Mini1,
    /// mini-swe-agent before it named its format.
    MiniUnversioned,
    /// VibeMemBench's history: messages alone.
    MessagesOnly,
    /// SWE-agent's `.traj`.
    SweAgent,
    /// OpenHands' `output.jsonl`: a run a line.
    OpenHands,
    /// Agent Trajectory Interchange Format, `ATIF-v1.x`.
    Atif,
    /// A session of Claude Code.
    ClaudeCode,
    /// A rollout of Codex.
    Codex,
    /// Rollouts of NeMo Gym: a run a line.
    NemoGym,
}

impl RunFormat {
    /// Its name, as output shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mini1_1 => "mini-swe-agent-1.1",
            Self::Mini1 => "mini-swe-agent-1",
            Self::MiniUnversioned => "mini-swe-agent-unversioned",
            Self::MessagesOnly => "messages-only",
            Self::SweAgent => "swe-agent",
            Self::OpenHands => "openhands",
            Self::Atif => "atif",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::NemoGym => "nemo-gym",
        }
    }

    /// Whether a file of this format may hold several runs.
    pub fn is_run_a_line(self) -> bool {
        matches!(self, Self::OpenHands | Self::NemoGym)
    }
}

impl From<Format> for RunFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Mini1_1 => Self::Mini1_1,
            Format::Mini1 => Self::Mini1,
            Format::MiniUnversioned => Self::MiniUnversioned,
            Format::MessagesOnly => Self::MessagesOnly,
        }
    }
}

impl fmt::Display for RunFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RunFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What is known of a run before its first event; each `None`: its file does not state it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunHead {
    /// The format.
    pub format: RunFormat,
    /// The task's id.
    pub instance_id: Option<String>,
    /// The agent's own name for the run.
    pub session: Option<String>,
    /// `owner/name` of the repository.
    pub repo: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// When it began: ISO 8601 as the file has it.
    pub started: Option<String>,
    /// The line it stands in, from 1, in a file of many runs.
    pub line: Option<usize>,
}

impl RunHead {
    /// A head that states nothing but its format.
    pub(super) fn new(format: RunFormat) -> Self {
        Self { format, instance_id: None, session: None, repo: None, model: None, started: None, line: None }
    }

    /// With the task's id; the repository follows from it.
    pub(super) fn of_task(mut self, id: Option<&str>) -> Self {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return self };
        let repo = id.rsplit_once('-').and_then(|(repo, _)| repo.split_once("__"));
        self.repo = repo.map(|(owner, name)| format!("{owner}/{name}")).or(self.repo);
        self.instance_id = Some(id.to_owned());
        self
    }
}

/// What a run cost, as far as its file tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RunCost {
    /// Turns of the model.
    pub steps: u64,
    /// Tokens; `None`: not recorded.
    pub usage: Option<Usage>,
}

/// A part of a file of runs, in its order: each run is a head, its events, an end.
#[derive(Debug)]
pub enum RunPart<'a> {
    /// A run begins.
    Head(&'a RunHead),
    /// What happens in it.
    Event(Event),
    /// It is over.
    End(RunCost),
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadLine {
    /// Which, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunsReport {
    /// Its format.
    pub format: RunFormat,
    /// Runs that were handed over whole.
    pub runs: usize,
    /// Their events.
    pub events: usize,
    /// Lines that could not be read; a line that a crash tore off counts.
    pub bad_lines: usize,
    /// The first of them.
    pub bad: Vec<BadLine>,
    /// Bytes, repairs and cuts.
    pub counts: Counts,
    /// Whether the caller stopped before the end.
    pub stopped: bool,
}
