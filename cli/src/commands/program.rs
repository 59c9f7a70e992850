//! `memtrial agent run --agent-file`: another program as the agent.

use std::sync::Arc;

use memtrial::agent::{self, AgentError, CommandRun, Door, Finished};
use memtrial::llm::gateway::Caller;
use memtrial::llm::{Endpoint, Limiter};
use memtrial::study;
use memtrial::task::SolverView;
use serde_json::Map;

use super::agent::RunArgs;
use crate::exit::Failure;
use crate::ui;

/// Runs the program that `settings` name on the task.
pub async fn run(
    args: &RunArgs,
    settings: &study::Agent,
    endpoint: Endpoint,
    task: &SolverView,
    block: Option<&str>,
) -> Result<Result<Finished, AgentError>, Failure> {
    let wrong = |reason: String| Failure::input(anyhow::anyhow!(reason));
    let program = settings.program().map_err(wrong)?;
    let program = program.ok_or_else(|| wrong("the agent's file names no command".into()))?;
    let mut caps = settings.caps();
    caps.calls = args.step_limit.or(caps.calls).filter(|&steps| steps > 0);
    caps.tokens = Some(args.token_limit).filter(|&tokens| tokens > 0).or(caps.tokens);
    let environments = args.place.environments()?;
    let environment = match &program.install {
        Some(script) => environments.with_addition(task, script, &program.mounts).await,
        None => environments.prepare(task).await,
    }
    .map_err(Failure::environment)?;
    let (model, address) = (endpoint.model.clone(), endpoint.base_url.clone());
    let tell = Arc::new(move |reason: &str, wait: std::time::Duration| {
        ui::note(&format!("{address}: {reason}; asking again in {} s", wait.as_secs().max(1)));
    });
    let may_drop = settings.may_drop.iter().cloned().collect();
    let door = Door::open(endpoint, &Limiter::default(), may_drop, Some(tell)).await;
    let door = door.map_err(Failure::input)?;
    let caller = Caller {
        condition: args.memory.clone(),
        target: args.id.to_string(),
        solver: model.clone(),
        replicate: args.seed.and_then(|seed| u32::try_from(seed).ok()).unwrap_or(1),
        attempt: 1,
    };
    let journal = args.out.join("calls.jsonl");
    let admission = door.admit(caller, caps, &journal, &[]).map_err(Failure::environment)?;
    let sandbox = environment.start_with_gateway(&program.mounts, door.socket()).await;
    let mut sandbox = sandbox.map_err(Failure::environment)?;
    let outcome = agent::run_command(CommandRun {
        task,
        program: &program,
        model: &model,
        seed: args.seed,
        admission,
        journal,
        sandbox: sandbox.as_mut(),
        place: environment.place(),
        memory: block,
        time_limit: settings.program_time(),
        folder: &args.out,
        facts: Map::new(),
    })
    .await;
    // the run has ended: what a sandbox says at its end changes nothing
    let _ = sandbox.close().await;
    Ok(outcome)
}
