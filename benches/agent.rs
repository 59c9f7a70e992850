//! What the agent itself costs: no model, no commands, everything else as in a run. Each step is journalled.
//!
//! `cargo bench --bench agent -- steps 500` measures one run of so many steps; `-- many 500 20` measures 500 runs of 20
//! steps at once. `benches/agent.sh` puts mini-swe-agent beside the first.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use memtrial::agent::{self, Config, SENTINEL, SystemClock, TrajectoryFormat, Uname};
use memtrial::context::Full;
use memtrial::llm::{Cost, Journaled, LlmError, Model, Reply, Request};
use memtrial::sandbox::{Ended, Exec, Output, OutputLimit, Place, Sandbox, SandboxError};
use memtrial::task::{InstanceId, Recipe, SolverView};
use serde_json::{Map, Value, json};

/// Commands end at once and print nothing, but for the submission.
struct Null;

#[async_trait]
impl Sandbox for Null {
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        let submits = command.argv.last().is_some_and(|text| text.contains(SENTINEL));
        let bytes = if submits { format!("{SENTINEL}\n").into_bytes() } else { Vec::new() };
        Ok(Output {
            ended: Ended::Exited(0),
            bytes,
            elided: None,
            wall: Duration::ZERO,
            out_of_memory: false,
        })
    }

    async fn put(&mut self, _: &str, _: &[u8], _: u32) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn get(&mut self, _: &str, _: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        Ok(None)
    }

    async fn close(self: Box<Self>) -> Result<(), SandboxError> {
        Ok(())
    }

    fn as_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}

/// Answers at once: `true`, and at the end the submission.
struct Instantly {
    steps: u64,
    asked: AtomicU64,
}

#[async_trait]
impl Model for Instantly {
    async fn complete(&self, _: &Request) -> Result<Reply, LlmError> {
        let step = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let command = if step < self.steps { "true".to_owned() } else { format!("echo {SENTINEL}") };
        let arguments = json!({ "command": command }).to_string();
        let call = json!({"id": format!("call_{step}"), "type": "function",
            "function": {"name": "bash", "arguments": arguments}});
        let message =
            json!({"role": "assistant", "content": "I look at the next file.", "tool_calls": [call]});
        let usage =
            json!({"prompt_tokens": 100 * step, "completion_tokens": 20, "total_tokens": 100 * step + 20});
        let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
        let response = json!({"id": "r", "object": "chat.completion", "created": 1, "model": "null",
            "choices": [choice], "usage": usage});
        let cost = Cost { calls: 1, prompt_tokens: 100 * step, completion_tokens: 20, ..Cost::ZERO };
        Ok(Reply { message, finish_reason: Some("tool_calls".into()), response, cost })
    }

    fn name(&self) -> &str {
        "null"
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn one(steps: u64) -> Result<u64, Failure> {
    let folder = tempfile::tempdir()?;
    let config = Config::load(&["memtrial", "agent.step_limit=0", "agent.cost_limit=0"])?.config;
    let task = SolverView {
        instance_id: InstanceId::parse("acme__widget-7")?,
        repo: "acme/widget".into(),
        base_commit: String::new(),
        problem_statement: "x should be 2".into(),
        language: None,
        image_name: None,
        version: None,
        recipe: Recipe::default(),
    };
    let model = Instantly { steps, asked: AtomicU64::new(0) };
    let model = Journaled::open(&folder.path().join("calls.jsonl"), model)?;
    let finished = agent::drive(agent::Run {
        task: &task,
        config: &config,
        model: &model,
        params: &Map::new(),
        seed: None,
        sandbox: &mut Null,
        place: &Place { workdir: "/testbed".into(), ..Place::default() },
        uname: Uname::default(),
        output: OutputLimit::default(),
        memory: None,
        recall: None,
        policy: &Full::default(),
        folder: folder.path(),
        format: TrajectoryFormat::Mini,
        clock: &SystemClock::start(),
        facts: Map::new(),
    })
    .await?;
    Ok(finished.calls)
}

/// Seconds of CPU that all threads of this process have used.
fn cpu() -> Result<f64, Failure> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanoseconds += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(nanoseconds as f64 / 1e9)
}

/// The most memory that this process has had, in KiB.
fn peak() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |index: usize, usual: u64| words.get(index).map_or(Ok(usual), |word| word.parse());
    let (before, wall) = (cpu()?, Instant::now());
    let (runs, steps) = match words.first().map(String::as_str) {
        Some("many") => (number(1, 500)?, number(2, 20)?),
        _ => (1, number(1, 500)?),
    };
    let base = peak()?;
    let tasks: Vec<_> = (0..runs).map(|_| tokio::spawn(one(steps))).collect();
    let mut done = 0;
    for task in tasks {
        done += task.await??;
    }
    let (used, wall) = (cpu()? - before, wall.elapsed().as_secs_f64());
    let report: Value = json!({
        "agent": "memtrial", "runs": runs, "steps": done,
        "cpu_ms_per_step": used * 1e3 / done as f64,
        "steps_per_second": done as f64 / wall,
        "peak_kib_per_run": peak()?.saturating_sub(base) / runs,
    });
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}
