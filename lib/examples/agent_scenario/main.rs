//! Plays scripted scenarios through the agent and prints the messages that they leave, as one JSON array.
//!
//! `agent_scenario FILE`: FILE holds a JSON array of
//! `{folder, config: [SPEC | {…}], task, uname, replies: [{message, finish_reason, cost}]}`. Commands run in `folder`
//! on this machine. `scripts/test-peers-agent.sh` compares the result with mini-swe-agent's.

mod fakes;

/// What the fakes use.
mod api {
    pub use async_trait::async_trait;
    pub use memtrial::llm::{Cost, LlmError, Model, Reply, Request};
    pub use memtrial::sandbox::{Elided, Ended, Exec, Output, OutputLimit, Sandbox, SandboxError};
}

use std::io::Write;
use std::path::PathBuf;

use memtrial::agent::{Config, Layer, Run, SystemClock, Uname, drive};
use memtrial::context::Full;
use memtrial::sandbox::{OutputLimit, Place};
use memtrial::task::{InstanceId, Recipe, SolverView};
use serde::Deserialize;
use serde_json::{Map, Value};

use fakes::{FolderSandbox, ScriptedModel, reply};

#[derive(Deserialize)]
struct Scenario {
    folder: PathBuf,
    config: Vec<Value>,
    task: String,
    uname: Uname,
    replies: Vec<Scripted>,
}

#[derive(Deserialize)]
struct Scripted {
    message: Value,
    finish_reason: String,
    cost: f64,
}

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let path = std::env::args().nth(1).ok_or("usage: agent_scenario FILE")?;
    let scenarios: Vec<Scenario> = serde_json::from_slice(&std::fs::read(path)?)?;
    let mut logs = Vec::new();
    for scenario in scenarios {
        logs.push(play(scenario).await?);
    }
    writeln!(std::io::stdout(), "{}", Value::Array(logs))?;
    Ok(())
}

/// The messages of one scenario. A script that ends too early ends the run: its messages count all the same.
async fn play(scenario: Scenario) -> Result<Value, Failure> {
    let layers = scenario
        .config
        .iter()
        .map(|layer| match layer {
            Value::String(spec) => Layer::from_spec(spec),
            inline => Layer::from_yaml("scenario", &inline.to_string()),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let config = Config::from_layers(&layers)?.config;
    let task = SolverView {
        instance_id: InstanceId::parse("acme__widget-7")?,
        repo: "acme/widget".into(),
        base_commit: String::new(),
        problem_statement: scenario.task,
        language: None,
        image_name: None,
        version: None,
        recipe: Recipe::default(),
    };
    let script = scenario.replies.into_iter().map(|r| Ok(reply(r.message, &r.finish_reason, Some(r.cost))));
    let model = ScriptedModel::new(script);
    let mut sandbox = FolderSandbox::within(scenario.folder.clone())?;
    let out = tempfile::tempdir()?;
    let place = Place { workdir: scenario.folder.display().to_string(), ..Place::default() };
    let outcome = drive(Run {
        task: &task,
        config: &config,
        model: &model,
        params: &Map::new(),
        seed: None,
        sandbox: &mut sandbox,
        place: &place,
        uname: scenario.uname,
        output: OutputLimit::default(),
        memory: None,
        policy: &Full::default(),
        folder: out.path(),
        clock: &SystemClock::start(),
        facts: Map::new(),
    })
    .await;
    let path = out.path().join("acme__widget-7.traj.json");
    match std::fs::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice::<Value>(&bytes)?["messages"].take()),
        Err(_) => Err(outcome.err().map_or_else(|| "no trajectory".into(), Failure::from)),
    }
}
