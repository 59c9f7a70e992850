//! Plays scenarios through the agent against an endpoint and keeps the runs that they leave.
//!
//! `agent_scenario FILE OUT`: FILE holds a JSON array of
//! `{folder, config: [SPEC | {…}], task, uname, address, model, price}`. Commands run in `folder` on this machine; run
//! number n goes to `OUT/n`. `scripts/test-peers-agent.sh` compares the runs with mini-swe-agent's.

mod fakes;

/// What the fakes use.
mod api {
    pub use async_trait::async_trait;
    pub use memtrial::llm::{Cost, LlmError, Model, Reply, Request};
    pub use memtrial::sandbox::{Elided, Ended, Exec, Output, OutputLimit, Sandbox, SandboxError};
}

use std::path::{Path, PathBuf};
use std::time::Duration;

use memtrial::agent::{Config, Layer, Run, SystemClock, TrajectoryFormat, Uname, drive};
use memtrial::context::Full;
use memtrial::llm::{Client, Endpoint, Price};
use memtrial::sandbox::{OutputLimit, Place};
use memtrial::task::{InstanceId, Recipe, SolverView};
use serde::Deserialize;
use serde_json::{Map, Value};

use fakes::FolderSandbox;

#[derive(Deserialize)]
struct Scenario {
    folder: PathBuf,
    config: Vec<Value>,
    task: String,
    uname: Uname,
    address: String,
    model: String,
    price: Price,
}

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let [_, path, out] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("usage: agent_scenario FILE OUT".into());
    };
    let scenarios: Vec<Scenario> = serde_json::from_slice(&std::fs::read(path)?)?;
    for (number, scenario) in scenarios.into_iter().enumerate() {
        play(scenario, &Path::new(out).join(number.to_string())).await?;
    }
    Ok(())
}

/// One scenario. A run that a failure ended has its trajectory all the same.
async fn play(scenario: Scenario, out: &Path) -> Result<(), Failure> {
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
    let model = Client::new(Endpoint {
        price: Some(scenario.price),
        min_wait: Duration::from_millis(1),
        max_wait: Duration::from_millis(20),
        max_attempts: 4,
        ..Endpoint::new(scenario.address, scenario.model)
    })?;
    let mut sandbox = FolderSandbox::within(scenario.folder.clone())?;
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
        recall: None,
        policy: &Full::default(),
        folder: out,
        format: TrajectoryFormat::Both,
        clock: &SystemClock::start(),
        facts: Map::new(),
    })
    .await;
    match outcome {
        Err(error) if !out.join("acme__widget-7.traj.json").is_file() => Err(error.into()),
        _ => Ok(()),
    }
}
