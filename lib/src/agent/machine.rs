//! The agent as a state machine without input or output: `(State, Event) → (State, Effects)`.
//!
//! Every event carries the moment at which it happened, so the machine never asks a clock: the same events give the
//! same messages. The state can be written down and read back between any two events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asking::{Asked, Asking, Question, WITHHELD, memory_tool, submits};
use super::config::{Config, ConfigError, Dialect, Mode};
use super::event::{Effect, Event, Exception, Moment, Observation, Uname};
use super::exit;
use super::message::{self, Style};
use super::parse::{self, Action};
use super::render;
use super::shown::Shown;
use super::template::{self, TemplateError};
use super::text;
use crate::context::{self, Policy, View};
use crate::llm::{Cost, Reply};
use crate::memory;

/// What ends a run with a submission, alone on the first line of a command's output.
pub const SENTINEL: &str = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";
/// 1.x knows a second one.
pub(super) const SENTINELS: [&str; 2] = [SENTINEL, "MINI_SWE_AGENT_FINAL_OUTPUT"];

/// Where the machine stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Phase {
    New,
    /// A model call is under way.
    Asked,
    /// Action `turn.seen.len()` is under way: a command.
    Running(Turn),
    /// Memory is being asked.
    Recalling {
        /// What.
        question: Question,
        /// The turn in which it is asked; with nothing left to do where it is asked after a turn.
        turn: Turn,
        /// Phases at which it is asked next.
        due: Vec<memory::Phase>,
    },
    Finished {
        exit_status: String,
        submission: String,
        /// What the run failed under, where it did.
        exception: Option<Exception>,
    },
}

/// What the model asked for in one turn, and what came of it so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) actions: Vec<Action>,
    pub(super) seen: Vec<(Seen, Moment)>,
}

/// What came of one action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Seen {
    /// The command ended.
    Ran(Observation),
    /// The command was held back.
    Withheld,
    /// The memory tool answered this.
    Recalled(String),
}

/// Why an event led nowhere.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A template failed; end the run with [`Event::Failed`].
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The configuration in the state is unusable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The event does not fit the state.
    #[error("the agent cannot take the event `{event}` now: it is {phase}")]
    Unexpected {
        /// The event.
        event: &'static str,
        /// Where the machine stands.
        phase: &'static str,
    },
}

/// What a run starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The configuration.
    pub config: Config,
    /// The issue text.
    pub task: String,
    /// The memory block; none: memory is off or abstained.
    pub memory: Option<String>,
    /// The sandbox's names.
    pub uname: Uname,
    /// When memory is asked while the run goes on.
    #[serde(default, skip_serializing_if = "Asking::is_never")]
    pub asking: Asking,
}

/// A run between two events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(super) setup: Setup,
    pub(super) log: Vec<Value>,
    pub(super) calls: u64,
    cost: Cost,
    pub(super) usd: f64,
    format_errors: u64,
    pub(super) now: Moment,
    pub(super) phase: Phase,
    #[serde(default)]
    pub(super) asked: Asked,
    #[serde(skip)]
    shown: Shown,
}

impl State {
    /// A run before its first event, [`Event::Started`].
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            log: Vec::new(),
            calls: 0,
            cost: Cost::ZERO,
            usd: 0.0,
            format_errors: 0,
            now: Moment::default(),
            phase: Phase::New,
            asked: Asked::default(),
            shown: Shown::default(),
        }
    }

    /// Gives the view of an answered call back, so that the next one need not be made from the start.
    pub fn give_back(&mut self, view: View) {
        self.shown.view = Some(view);
    }

    /// All messages so far.
    pub fn log(&self) -> &[Value] {
        &self.log
    }

    /// What the run starts from.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Model calls begun.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// What the answered calls cost.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// US dollars that count against the limit; calls of unknown price add nothing.
    pub fn usd(&self) -> f64 {
        self.usd
    }

    /// The moment of the last event.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Exit status and submission of a finished run.
    pub fn finished(&self) -> Option<(&str, &str)> {
        match &self.phase {
            Phase::Finished { exit_status, submission, .. } => Some((exit_status, submission)),
            _ => None,
        }
    }

    /// What a finished run failed under.
    pub(super) fn exception(&self) -> Option<&Exception> {
        match &self.phase {
            Phase::Finished { exception, .. } => exception.as_ref(),
            _ => None,
        }
    }

    pub(super) fn style(&self) -> Style {
        Style::of(&self.setup.config)
    }

    /// The tools that go with every call.
    pub fn tools(&self) -> Vec<Value> {
        match self.setup.config.mode {
            Mode::Tools => {
                let api = self.setup.config.api;
                let memory = self.offers_memory().then(|| memory_tool(api));
                [parse::bash_tool(api)].into_iter().chain(memory).collect()
            }
            Mode::Text { .. } => Vec::new(),
        }
    }

    /// Takes one event and says what is to be done.
    ///
    /// # Errors
    /// When a template fails, or the event does not answer what was asked for. The log then holds what it held before,
    /// and costs are counted: go on with [`Event::Failed`].
    pub fn step(&mut self, event: Event, policy: &dyn Policy) -> Result<Vec<Effect>, StepError> {
        let mut effects = Vec::new();
        match (event, &self.phase) {
            (Event::Started { at }, Phase::New) => {
                self.now = at;
                self.begin(policy, &mut effects)?;
            }
            (Event::Replied { reply, at }, Phase::Asked) => {
                self.now = at;
                self.replied(*reply, policy, &mut effects)?;
            }
            (Event::Ran { observation, at }, Phase::Running(_)) => {
                self.now = at;
                self.ran(observation, policy, &mut effects)?;
            }
            (Event::Recalled { text, at }, Phase::Recalling { .. }) => {
                self.now = at;
                self.recalled(text, policy, &mut effects)?;
            }
            (
                Event::Failed { exception },
                Phase::New | Phase::Asked | Phase::Running(_) | Phase::Recalling { .. },
            ) => {
                if self.phase == Phase::Asked && self.setup.config.dialect == Dialect::V1 {
                    // 1.x counts calls when they are answered.
                    self.calls -= 1;
                }
                self.fail(exception, &mut effects);
            }
            (event, _) => {
                return Err(StepError::Unexpected { event: event.name(), phase: self.phase.name() });
            }
        }
        Ok(effects)
    }

    fn begin(&mut self, policy: &dyn Policy, effects: &mut Vec<Effect>) -> Result<(), StepError> {
        let variables = self.variables();
        let templates = &self.setup.config.templates;
        let system = template::render("agent.system_template", &templates.system, &variables)?;
        let instance = template::render("agent.instance_template", &templates.instance, &variables)?;
        let task = context::pin(&instance, self.setup.memory.as_deref());
        let (style, now) = (self.style(), self.now);
        self.append(style.head("system", &system, now), effects);
        self.append(style.head("user", &task, now), effects);
        self.ask(policy, effects);
        Ok(())
    }

    /// Checks the limits and asks the model, or ends the run.
    pub(super) fn ask(&mut self, policy: &dyn Policy, effects: &mut Vec<Effect>) {
        let limits = self.setup.config.limits;
        let tokens = self.cost.prompt_tokens + self.cost.completion_tokens;
        let reached = |limit: u64, value: u64| 0 < limit && limit <= value;
        if reached(limits.steps, self.calls)
            || (0.0 < limits.cost_usd && limits.cost_usd <= self.usd)
            || reached(limits.tokens, tokens)
        {
            return self.stop(exit::LIMITS_EXCEEDED, effects);
        }
        if reached(limits.wall_seconds, self.now.elapsed.max(0.0) as u64) {
            return self.stop(exit::TIME_EXCEEDED, effects);
        }
        let (shown, tools) = (std::mem::take(&mut self.shown), self.tools());
        let view = match shown.view {
            Some(before) => policy.grow(before, shown.seen, &self.log, &tools),
            None => policy.view(&self.log, &tools),
        };
        match view {
            Ok(view) => {
                self.shown.seen = self.log.len();
                self.calls += 1;
                self.phase = Phase::Asked;
                effects.push(Effect::CallModel(view));
            }
            Err(overflow) => {
                let text = overflow.to_string();
                self.fail(Exception { class: exit::CONTEXT_WINDOW_EXCEEDED.into(), text }, effects);
            }
        }
    }

    fn replied(
        &mut self,
        reply: Reply,
        policy: &dyn Policy,
        effects: &mut Vec<Effect>,
    ) -> Result<(), StepError> {
        // The call is answered, whatever the answer leads to.
        self.phase = Phase::Running(Turn::default());
        let parsed = match &self.setup.config.mode {
            Mode::Tools => parse::tool_calls(&reply.message, self.setup.config.api, self.offers_memory()),
            Mode::Text { action_regex } => {
                parse::text_action(&reply.message, &Config::pattern(action_regex)?)
            }
        };
        match parsed {
            Ok(actions) => {
                self.charge(&reply);
                self.append(self.style().assistant(&reply, &actions, self.now), effects);
                self.phase = Phase::Running(Turn { actions, seen: Vec::new() });
                self.advance(policy, effects)
            }
            Err(malformed) => {
                self.charge(&reply);
                let style = self.style();
                if style == Style::V1 {
                    self.append(style.assistant(&reply, &[], self.now), effects);
                }
                let content = self.format_error_text(&malformed, &reply)?;
                self.append(style.format_error(&reply, &malformed, &content, self.now), effects);
                self.format_errors += 1;
                let limit = self.setup.config.limits.format_errors;
                if 0 < limit && limit <= self.format_errors {
                    self.stop(exit::REPEATED_FORMAT_ERROR, effects);
                } else {
                    self.ask(policy, effects);
                }
                Ok(())
            }
        }
    }

    fn charge(&mut self, reply: &Reply) {
        self.cost = self.cost.plus(reply.cost);
        self.usd += message::usd(&reply.cost);
    }

    fn ran(
        &mut self,
        mut observation: Observation,
        policy: &dyn Policy,
        effects: &mut Vec<Effect>,
    ) -> Result<(), StepError> {
        let submission = self.submission(&observation);
        if submission.is_some() && observation.elided > 0 {
            // A patch without its middle is not what the agent submitted.
            observation.output.insert_str(0, &render::too_long(observation.elided));
        } else if let Some(submission) = submission {
            let submission = submission.to_owned();
            let message = self.style().submitted(&submission, self.now);
            self.append(message, effects);
            self.finish(exit::SUBMITTED.into(), submission, None, effects);
            return Ok(());
        }
        let now = self.now;
        if let Phase::Running(turn) = &mut self.phase {
            turn.seen.push((Seen::Ran(observation), now));
        }
        self.advance(policy, effects)
    }

    /// What a command submits; 1.x knows a second sentinel and does not ask how the command ended.
    fn submission<'a>(&self, seen: &'a Observation) -> Option<&'a str> {
        match self.setup.config.dialect {
            Dialect::V1 if seen.exception.is_some() => None,
            Dialect::V1 => text::submission(&seen.output, 0, &SENTINELS),
            Dialect::V2 => text::submission(&seen.output, seen.returncode, &[SENTINEL]),
        }
    }

    /// Goes to the next action of the turn, or closes the turn.
    pub(super) fn advance(
        &mut self,
        policy: &dyn Policy,
        effects: &mut Vec<Effect>,
    ) -> Result<(), StepError> {
        let Phase::Running(turn) = &mut self.phase else { return Ok(()) };
        let mut turn = std::mem::take(turn);
        while let Some(action) = turn.actions.get(turn.seen.len()) {
            let Action::Command { command, tool_call_id } = action else {
                match self.asked.tool(action, &self.setup.asking) {
                    Ok(question) => {
                        self.recall(question, turn, Vec::new(), effects);
                        return Ok(());
                    }
                    Err(refusal) => turn.seen.push((Seen::Recalled(refusal), self.now)),
                }
                continue;
            };
            let Some(exception) = parse::not_a_command(command) else {
                let command = command.as_str().unwrap_or_default().to_owned();
                if submits(&command) && self.asked.before_submission(&self.setup.asking) {
                    let question = Question::Phase(memory::Phase::BeforeSubmission);
                    self.recall(question, turn, Vec::new(), effects);
                    return Ok(());
                }
                effects.push(Effect::Run { command, tool_call_id: tool_call_id.clone() });
                self.phase = Phase::Running(turn);
                return Ok(());
            };
            if self.setup.config.dialect == Dialect::V1 {
                // 1.x catches no exception of a command but its time-out.
                self.fail(exception, effects);
                return Ok(());
            }
            let refused =
                Observation { returncode: -1, exception: Some(exception), ..Observation::default() };
            turn.seen.push((Seen::Ran(refused), self.now));
        }
        let due = self.asked.due(&turn, &self.setup.asking);
        self.close(&turn, effects)?;
        self.ask_memory_or_model(due, policy, effects);
        Ok(())
    }

    /// Closes the turn: what came of its actions enters the log together.
    pub(super) fn close(&mut self, turn: &Turn, effects: &mut Vec<Effect>) -> Result<(), StepError> {
        let mut messages = Vec::new();
        for (action, (seen, at)) in turn.actions.iter().zip(&turn.seen) {
            messages.push(self.result(action, seen, *at)?);
        }
        for message in messages {
            self.append(message, effects);
        }
        self.format_errors = 0;
        Ok(())
    }

    fn result(&self, action: &Action, seen: &Seen, at: Moment) -> Result<Value, StepError> {
        let held_back;
        let observation = match seen {
            Seen::Recalled(text) => return Ok(self.style().recalled(action, text, at)),
            Seen::Ran(observation) => observation,
            Seen::Withheld => {
                held_back =
                    Observation { output: WITHHELD.to_owned(), returncode: -1, ..Observation::default() };
                &held_back
            }
        };
        let content = self.observation_text(action.command().unwrap_or(&Value::Null), observation)?;
        Ok(self.style().observation(action, observation, &content, at))
    }

    fn stop(&mut self, exit_status: &'static str, effects: &mut Vec<Effect>) {
        let message = self.style().stopped(exit_status, self.now);
        self.append(message, effects);
        self.finish(exit_status.into(), String::new(), None, effects);
    }

    fn fail(&mut self, exception: Exception, effects: &mut Vec<Effect>) {
        if let Some(message) = self.style().crash(&exception) {
            self.append(message, effects);
        }
        self.finish(exception.class.clone(), String::new(), Some(exception), effects);
    }

    fn finish(
        &mut self,
        exit_status: String,
        submission: String,
        exception: Option<Exception>,
        effects: &mut Vec<Effect>,
    ) {
        self.phase =
            Phase::Finished { exit_status: exit_status.clone(), submission: submission.clone(), exception };
        effects.push(Effect::Finish { exit_status, submission });
    }

    pub(super) fn append(&mut self, message: Value, effects: &mut Vec<Effect>) {
        self.log.push(message.clone());
        effects.push(Effect::Append(message));
    }
}

impl Phase {
    fn name(&self) -> &'static str {
        match self {
            Self::New => "not begun",
            Self::Asked => "waiting for the model",
            Self::Running(_) => "waiting for a command",
            Self::Recalling { .. } => "waiting for memory",
            Self::Finished { .. } => "finished",
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
