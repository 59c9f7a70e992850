//! Memory in the middle of trials: which ways a condition asks it, the live stores that answer, and what a trial's
//! files and record tell of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::bench::{Bench, Target};
use super::design::Condition;
use super::remember::{NO_HISTORY, RememberError, build_host};
use super::shift::Shift;
use super::trial::Trial;
use super::{MemoryNote, StudyError, TrialKey};
use crate::agent::{self, Asking, OnDemand, Question, Recall, Recalled};
use crate::context;
use crate::grade::files::write_json;
use crate::llm::{Api, Cost};
use crate::memory::host::{Host, Injection, Outcome, Retrieved};
use crate::memory::{self, Budget, MemoryError, Query};
use crate::task::InstanceId;

/// A way for memory to reach a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A block with the task message, pinned.
    Start,
    /// A tool that the agent calls.
    Tool,
    /// A block at the first edit, at the first test run after an edit, before the submission.
    Phases,
}

/// The ways of a condition: one name, or a list of names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Names", into = "Names")]
pub struct Inject(BTreeSet<Way>);

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected \"start\", \"tool\" or \"phases\", or a list of these")]
enum Names {
    One(Way),
    Several(Vec<Way>),
}

impl From<Names> for Inject {
    fn from(names: Names) -> Self {
        match names {
            Names::One(way) => Self(BTreeSet::from([way])),
            Names::Several(ways) => Self(ways.into_iter().collect()),
        }
    }
}

impl From<Inject> for Names {
    fn from(inject: Inject) -> Self {
        match inject.0.iter().collect::<Vec<_>>()[..] {
            [way] => Self::One(*way),
            _ => Self::Several(inject.0.into_iter().collect()),
        }
    }
}

impl Default for Inject {
    fn default() -> Self {
        Self(BTreeSet::from([Way::Start]))
    }
}

impl Inject {
    /// Whether memory reaches a run this way.
    pub fn has(&self, way: Way) -> bool {
        self.0.contains(&way)
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn in_the_run(&self) -> bool {
        self.has(Way::Tool) || self.has(Way::Phases)
    }
}

impl Condition {
    /// When a run under this condition asks memory while it goes on.
    pub(super) fn asking(&self) -> Asking {
        let most = self.tool_calls.unwrap_or(agent::TOOL_CALLS);
        Asking {
            tool_calls: self.inject.has(Way::Tool).then_some(most),
            phases: self.inject.has(Way::Phases),
        }
    }

    /// What one delivery may hold.
    pub(super) fn budget(&self) -> Budget {
        Budget { records: self.records, tokens: self.tokens }
    }

    /// What is wrong with its ways, and under which key. `program`: another program is the agent.
    pub(super) fn check_ways(&self, program: bool) -> Result<(), String> {
        if self.inject.0.is_empty() {
            return Err("inject: name at least one of start, tool and phases".into());
        }
        if self.tool_calls.is_some() && !self.inject.has(Way::Tool) {
            return Err("tool-calls: it is for inject = \"tool\"".into());
        }
        if self.tool_calls == Some(0) {
            return Err("tool-calls: at least 1; without the tool in inject it is not offered".into());
        }
        if !self.inject.in_the_run() {
            return Ok(());
        }
        if self.memory == "off" {
            return Err("inject: with memory = \"off\" there is nothing to ask in the run".into());
        }
        if program {
            return Err(
                "inject: with agent.command memory reaches a run at the start alone; tool and phases are \
                        the built-in agent's"
                    .into(),
            );
        }
        Ok(())
    }

    /// What an arm of this condition shows the model besides what `off` shows, its records left open.
    pub(super) fn difference(&self, api: Api) -> String {
        if self.memory == "off" {
            return String::new();
        }
        let mut parts = Vec::new();
        if self.inject.has(Way::Start) {
            parts.push(context::memory_section(Some(memory::DEFAULT_TEMPLATE)));
        }
        if self.inject.has(Way::Tool) {
            let (tool, nothing) = (agent::memory_tool(api), agent::NOTHING_FOUND);
            parts
                .push(format!("a tool:\n{tool}\nits answers:\n{}\nor:\n{nothing}", memory::DEFAULT_TEMPLATE));
        }
        if self.inject.has(Way::Phases) {
            let (block, withheld) = (memory::DEFAULT_TEMPLATE, agent::WITHHELD);
            parts.push(format!(
                "a message at the first edit, at the first test run after an edit, before the first submission:\n\
                 {block}\nand in place of that submission's output:\n{withheld}"
            ));
        }
        parts.join("\n\n")
    }
}

/// A store that answers the runs of one target while they go on.
pub(super) struct Live {
    /// `None`: the study names no history, and every question is answered with that.
    host: Option<Mutex<Host>>,
    /// The store and what building it cost.
    unasked: Retrieved,
}

#[async_trait]
impl Recall for Live {
    async fn recall(&self, query: &Query) -> Result<Retrieved, MemoryError> {
        match &self.host {
            Some(host) => host.lock().await.recall(query).await,
            None => Ok(Retrieved::abstained(NO_HISTORY.into())),
        }
    }
}

type Slot = Arc<Mutex<Option<Arc<Live>>>>;

/// The live stores of a worker, one for each (condition, target). Another worker builds its own.
#[derive(Default)]
pub(super) struct Hosts(Mutex<BTreeMap<(String, InstanceId), Slot>>);

impl Hosts {
    async fn get(
        &self,
        shift: &Shift<'_>,
        condition: &str,
        target: &Target,
    ) -> Result<Arc<Live>, RememberError> {
        let key = (condition.to_owned(), target.task.id().clone());
        let slot = self.0.lock().await.entry(key).or_default().clone();
        let mut slot = slot.lock().await;
        if let Some(live) = slot.as_ref() {
            return Ok(live.clone());
        }
        let live = Arc::new(build(shift, condition, target).await?);
        *slot = Some(live.clone());
        Ok(live)
    }

    /// Drops the store that a finished trial asked, where no other trial of the grid needs it.
    pub(super) async fn finished(&self, bench: &Bench, key: &TrialKey) {
        let same =
            |other: &&TrialKey| other.condition == key.condition && other.instance_id == key.instance_id;
        if bench.grid().iter().filter(same).any(|other| !bench.layout.record(other).is_file()) {
            return;
        }
        let slot = self.0.lock().await.remove(&(key.condition.clone(), key.instance_id.clone()));
        let Some(live) = (match slot {
            Some(slot) => slot.lock().await.take(),
            None => None,
        }) else {
            return;
        };
        if let Some(host) = Arc::into_inner(live).and_then(|live| live.host) {
            // all its trials have their records: a store that cannot be dropped changes none of them
            let _ = host.into_inner().cleanup().await;
        }
    }
}

async fn build(shift: &Shift<'_>, condition: &str, target: &Target) -> Result<Live, RememberError> {
    // one store at a time learns from a repository's runs
    let _turn = shift.deliveries.turn(condition, target).await;
    let budget = shift.bench.design.conditions.get(condition).map(Condition::budget).unwrap_or_default();
    let Some(mut host) = build_host(shift, condition, target, budget).await? else {
        return Ok(Live { host: None, unasked: Retrieved::abstained(NO_HISTORY.into()) });
    };
    let at_start = |condition: &Condition| condition.inject.has(Way::Start);
    // whoever delivers at the start keeps what it knew
    if !shift.bench.design.conditions.get(condition).is_some_and(at_start) {
        keep(shift, condition, target.task.id(), &mut host).await?;
    }
    let unasked = host.unasked("memory was not asked at the start");
    Ok(Live { host: Some(Mutex::new(host)), unasked })
}

/// Writes down what the store holds, once for all workers.
async fn keep(
    shift: &Shift<'_>,
    condition: &str,
    id: &InstanceId,
    host: &mut Host,
) -> Result<(), RememberError> {
    let folder = shift.bench.layout.memory(condition, id).join("store");
    let result = folder.join("store.json");
    let name = Path::new("memory").join(condition).join(id.as_str());
    if result.exists() {
        return Ok(());
    }
    let Some(claim) = shift.worker.take(&name, &result)? else { return Ok(()) };
    // between the look and the claim it may have been kept
    let kept = if result.exists() { Ok(Cost::ZERO) } else { host.snapshot(&folder).await };
    claim.release()?;
    kept?;
    Ok(())
}

/// What memory has for a trial before its first step, and who answers it later.
pub(super) struct Remembered {
    start: Arc<Retrieved>,
    asked_at_start: bool,
    asking: Asking,
    live: Option<Arc<Live>>,
}

impl Remembered {
    /// What a run may ask while it goes on.
    pub(super) fn on_demand(&self) -> Option<OnDemand<'_>> {
        let start = match &self.start.outcome {
            Outcome::Injected(injection) => Some(injection),
            Outcome::Abstained { .. } => None,
        };
        let memory = self.live.as_deref()?;
        Some(OnDemand { asking: self.asking, memory, start })
    }

    /// What was delivered at the start.
    pub(super) fn start(&self) -> &Retrieved {
        &self.start
    }

    /// The text to inject at the start, where there is one.
    pub(super) fn block(&self) -> Option<&str> {
        super::remember::block(&self.start)
    }

    /// What the stores cost, to be shared by all trials that they serve.
    pub(super) fn shared_cost(&self) -> Cost {
        let start = self.start.build.plus(self.start.retrieve);
        match &self.live {
            // a store of its own answered at the start
            Some(live) if self.asked_at_start => start.plus(live.unasked.build),
            _ => start,
        }
    }

    /// What the trial's record tells of memory, given what the run asked.
    pub(super) fn note(&self, during: &[Recalled]) -> MemoryNote {
        let mut sources = BTreeSet::new();
        let (mut injected_tokens, mut abstained) = (0, None);
        match &self.start.outcome {
            Outcome::Injected(injection) => {
                injected_tokens = injection.injected_tokens;
                sources.extend(&injection.sources);
            }
            Outcome::Abstained { reason } if self.asked_at_start => abstained = Some(reason.clone()),
            Outcome::Abstained { .. } => {}
        }
        let (mut tool, mut phases) = (Asks::default(), Asks::default());
        for recalled in during {
            let asks = match recalled.question {
                Question::Tool(_) => &mut tool,
                Question::Phase(_) => &mut phases,
            };
            asks.asked += 1;
            if let Some(injection) = delivered(recalled) {
                asks.delivered += 1;
                asks.tokens += injection.injected_tokens;
                sources.extend(&injection.sources);
            }
        }
        MemoryNote {
            eligible: self.start.eligible,
            injected_tokens,
            abstained,
            sources: sources.into_iter().cloned().collect(),
            tool: self.asking.tool_calls.map(|_| tool),
            phases: self.asking.phases.then_some(phases),
        }
    }
}

/// What the model read of an answer.
fn delivered(recalled: &Recalled) -> Option<&Injection> {
    match &recalled.retrieved.outcome {
        Outcome::Injected(injection) if recalled.text.is_some() => Some(injection),
        _ => None,
    }
}

/// How often runs asked memory, and what they were told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asks {
    /// Questions that reached the memory system.
    pub asked: u64,
    /// Answers that the model was shown; the others were abstentions, or at a phase what it had been shown before.
    pub delivered: u64,
    /// Tokens of these answers.
    pub tokens: u64,
}

impl Asks {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            asked: self.asked + other.asked,
            delivered: self.delivered + other.delivered,
            tokens: self.tokens + other.tokens,
        }
    }
}

/// `memory.json` of a trial.
#[derive(Serialize)]
struct Account<'a> {
    #[serde(flatten)]
    start: &'a Retrieved,
    /// What was asked in the run, in its order.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    during: Vec<Asked<'a>>,
}

#[derive(Serialize)]
struct Asked<'a> {
    /// `tool`, or the phase.
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    step: u64,
    /// Whether the model read what was delivered.
    shown: bool,
    sources: &'a [InstanceId],
    tokens: u64,
    outcome: &'a Outcome,
    store: &'a str,
    retrieve: Cost,
}

impl<'a> Asked<'a> {
    fn of(recalled: &'a Recalled) -> Self {
        let Recalled { question, step, text, retrieved } = recalled;
        let (sources, tokens) = match &retrieved.outcome {
            Outcome::Injected(injection) => (&injection.sources[..], injection.injected_tokens),
            Outcome::Abstained { .. } => (&[][..], 0),
        };
        Self {
            phase: question.name(),
            query: match question {
                Question::Tool(query) => Some(query),
                Question::Phase(_) => None,
            },
            step: *step,
            shown: text.is_some(),
            sources,
            tokens,
            outcome: &retrieved.outcome,
            store: &retrieved.store.digest,
            retrieve: retrieved.retrieve,
        }
    }
}

impl Trial<'_> {
    /// What memory delivers before the first step, and the live store where the run may ask it.
    pub(super) async fn remember(&self) -> Result<Remembered, RememberError> {
        let (shift, name) = (self.shift, &self.key.condition);
        let condition = self.bench().design.conditions.get(name);
        let (inject, asking) =
            condition.map(|condition| (condition.inject.clone(), condition.asking())).unwrap_or_default();
        let live = match inject.in_the_run() {
            true => Some(shift.hosts.get(shift, name, self.target).await?),
            false => None,
        };
        let start = match &live {
            Some(live) if !inject.has(Way::Start) => Arc::new(live.unasked.clone()),
            _ => shift.deliveries.get(shift, name, self.target).await?,
        };
        Ok(Remembered { start, asked_at_start: inject.has(Way::Start), asking, live })
    }

    /// Writes down all that memory did for the trial, and tells what this attempt asked.
    pub(super) fn account(&self, remembered: &Remembered) -> Result<Vec<Recalled>, StudyError> {
        let folder = self.bench().layout.attempt(self.key, self.attempt);
        let during = asked_in(&folder);
        let account = Account { start: &remembered.start, during: during.iter().map(Asked::of).collect() };
        write_json(&folder.join("memory.json"), &account)?;
        Ok(during)
    }

    /// What memory cost the trial: its share of the stores, and every question of every attempt.
    pub(super) fn memory_cost(&self, remembered: &Remembered, during: &[Recalled]) -> Cost {
        let design = &self.bench().design;
        let served = design.solvers.len() as u64 * u64::from(design.replicates);
        let earlier = self.bench().earlier_attempts(self.key, self.attempt);
        let given_up = earlier.iter().flat_map(|folder| asked_in(folder));
        let asked = during.iter().map(|recalled| recalled.retrieved.retrieve);
        asked
            .chain(given_up.map(|recalled| recalled.retrieved.retrieve))
            .fold(remembered.shared_cost().divided(served), Cost::plus)
    }
}

/// A journal that cannot be read is told of when its run is taken up.
fn asked_in(folder: &Path) -> Vec<Recalled> {
    agent::recalled(folder).unwrap_or_default()
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
