//! `memtrial memory check`: does a plugged-in memory system hold what every system must?

use std::path::PathBuf;

use memtrial::llm::gateway::{Caps, Gateway, Settings};
use memtrial::llm::{Endpoint, Limiter, Secret};
use memtrial::memory::plugged::{Calls, ProgramSettings, Site, check};
use memtrial::memory::{self, Resources, conformance};
use memtrial::sandbox::{self, Limits};
use serde_json::{Map, Value, json};

use super::asked::plugged;
use crate::commands::rooms::{CacheArgs, backend};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Tries, check by check, whether a plugged-in memory system holds what every system must: it is run as a study runs
/// it, over a small invented history, and asked what a wire can bring. Exit code 4 if it does not hold.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The program and its arguments: it speaks memtrial-memory/1
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "settings")]
    command: Vec<String>,
    /// A TOML or JSON file with a condition's settings; with `memory = "mcp"` the settings of an MCP server
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// A file or folder of the host that the program may read, at its own path
    #[arg(long, value_name = "PATH")]
    mount: Vec<PathBuf>,
    /// It calls itself deterministic: equal input must give equal answers and files
    #[arg(long)]
    deterministic: bool,
    /// It may always abstain
    #[arg(long)]
    may_abstain: bool,
    /// Where it runs: `local` has no isolation
    #[arg(long, value_name = "BACKEND", default_value = "namespaces",
          value_parser = clap::builder::PossibleValuesParser::new(sandbox::BACKENDS))]
    sandbox: String,
    /// A model that it may ask: the endpoint's base address
    #[arg(long, value_name = "URL", requires = "model")]
    endpoint: Option<String>,
    /// The model's name
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    model: Option<String>,
    /// The environment variable that holds the endpoint's key
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let (kind, settings) = settings(&args)?;
    let folder = tempfile::tempdir().map_err(Failure::environment)?;
    let site = Site {
        backend: backend(&args.sandbox, &args.cache)?,
        state: folder.path().to_owned(),
        limits: Limits::default(),
        calls: calls(&args)?,
    };
    let resources = Resources { site: Some(site.clone()), ..Resources::default() };
    memory::open(&kind, &settings, &resources).map_err(Failure::input)?;
    let failures = if kind == "program" {
        let settings: ProgramSettings = serde_json::from_value(settings).map_err(Failure::input)?;
        check::program(&settings, &site, !args.may_abstain).await
    } else {
        let open = || memory::open(&kind, &settings, &resources);
        conformance::check(&open, !args.may_abstain).await
    };
    if args.json {
        ui::data(&json!({"conforms": failures.is_empty(), "failures": failures}).to_string());
    } else {
        failures.iter().for_each(|failure| ui::data(failure));
        ui::note(&match failures.len() {
            0 => "it conforms".to_owned(),
            1 => "1 check failed".to_owned(),
            many => format!("{many} checks failed"),
        });
    }
    Ok(if failures.is_empty() { Exit::Done } else { Exit::Environment })
}

/// The system's kind and its settings: those of the file, and what the command line says besides.
fn settings(args: &Args) -> Result<(String, Value), Failure> {
    let (kind, mut table) = match &args.settings {
        Some(path) => plugged(path)?,
        None => ("program".to_owned(), Map::new()),
    };
    if !args.command.is_empty() {
        table.insert("command".into(), json!(args.command));
    }
    if args.deterministic {
        table.insert("deterministic".into(), json!(true));
    }
    if !args.mount.is_empty() {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let mounts = table.entry("mounts").or_insert_with(|| json!([]));
        if let Some(mounts) = mounts.as_array_mut() {
            mounts.extend(args.mount.iter().map(|path| json!(absolute(path))));
        }
    }
    Ok((kind, Value::Object(table)))
}

fn calls(args: &Args) -> Result<Option<Calls>, Failure> {
    let (Some(address), Some(model)) = (&args.endpoint, &args.model) else { return Ok(None) };
    let mut endpoint = Endpoint::new(address, model);
    endpoint.send_seed = false;
    if let Some(name) = &args.api_key_env {
        let missing = || Failure::environment(anyhow::anyhow!("the environment variable {name} is not set"));
        endpoint = endpoint.with_key(Secret::new(std::env::var(name).map_err(|_| missing())?));
    }
    let gateway =
        Gateway::new(endpoint, &Limiter::default(), Settings::default()).map_err(Failure::environment)?;
    Ok(Some(Calls { gateway, journals: None, caps: Caps::default() }))
}
