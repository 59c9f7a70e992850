//! `memtrial gateway`: a metered, journalled, capped way to one model.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use memtrial::llm::gateway::{Admission, Caller, Caps, Gateway, Listening, Settings, Tally};
use memtrial::llm::{Endpoint, Limiter, LlmError, Prices, Protocol, Secret};
use serde::Serialize;
use serde_json::{Value, json};

use super::{APIS, api, param};
use crate::exit::{Exit, Failure, Outcome, interrupted};
use crate::ui;

/// Serves one model to programs that speak OpenAI chat completions, OpenAI responses or Anthropic messages, streaming
/// or not. Every call is counted, written down before it is answered, and refused where it could exceed a cap. Ends
/// with SIGTERM or Ctrl-C, when the calls under way are answered.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The endpoint's base address, for example https://api.example.com/v1.
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// The model that answers, whatever model a client names.
    #[arg(long, value_name = "NAME")]
    model: String,
    /// The model that answers requests for embeddings; without it the model that a client names does, at an unknown
    /// price.
    #[arg(long, value_name = "NAME")]
    embedding_model: Option<String>,
    /// Where it answers (OpenAI-compatible), if not at the endpoint.
    #[arg(long, value_name = "URL", requires = "embedding_model")]
    embedding_endpoint: Option<String>,
    /// The environment variable that holds that address's key; the endpoint's own key is not sent there.
    #[arg(long, value_name = "NAME", requires = "embedding_endpoint")]
    embedding_key_env: Option<String>,
    /// What the endpoint speaks.
    #[arg(long, value_name = "API", default_value = "openai", value_parser = APIS)]
    api: String,
    /// The environment variable that holds the endpoint's key.
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// A parameter of every request in the endpoint's own format, as KEY=JSON (temperature=0.7). It wins over the
    /// client's.
    #[arg(long, value_name = "KEY=JSON", value_parser = param)]
    param: Vec<(String, Value)>,
    /// Asks the endpoint for streams, whatever the clients want.
    #[arg(long)]
    stream: bool,
    /// Requests under way at the endpoint at most; fewer while it says that they are too many.
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_in_flight: usize,
    /// Tries of one call at most; fewer where an endpoint may have charged for an answer that cannot be used (3), or
    /// where the client has left.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts: u32,
    /// Seconds between two tries at most, whatever `Retry-After` says.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    max_wait: u64,
    /// Prices of models, TOML or JSON, in US dollars per million tokens.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// The address to listen on; port 0 is a free one. An address that others can reach must be asked for with
    /// --beyond-loopback.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", conflicts_with = "unix")]
    listen: SocketAddr,
    /// A Unix socket to listen on instead.
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Allows an address that other machines can reach.
    #[arg(long)]
    beyond_loopback: bool,
    /// Writes the port into this file, once it is open.
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,
    /// The folder of calls.jsonl. The same folder again answers the same requests without paying for them.
    #[arg(long, value_name = "DIR", default_value = "gateway")]
    journal: PathBuf,
    /// A folder of replies for later journals: answers the same request at the same step.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Answered calls at most.
    #[arg(long, value_name = "N")]
    cap_calls: Option<u64>,
    /// Prompt and completion tokens of all calls together, at most.
    #[arg(long, value_name = "N")]
    cap_tokens: Option<u64>,
    /// US dollars at most; needs the model's price.
    #[arg(long, value_name = "USD")]
    cap_usd: Option<f64>,
    /// Request fields that may be left out where the endpoint's format cannot carry them (thinking,context_management).
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    drop: Vec<String>,
    /// Prints where it listens, and at the end what was spent, as one line of JSON each.
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let gateway = gateway(&args)?;
    let listening = match &args.unix {
        Some(path) => gateway.listen_unix(path).await.context("--unix"),
        None => gateway.listen_tcp(args.listen).await.with_context(|| format!("--listen {}", args.listen)),
    };
    let listening = listening.map_err(Failure::environment)?;
    fs_err::create_dir_all(&args.journal).context("--journal").map_err(Failure::environment)?;
    let admission = gateway.admit(caller(&args), caps(&args), &args.journal.join("calls.jsonl"));
    let admission = admission.map_err(failure)?;
    announce(&args, &admission, &listening)?;
    interrupted().await;
    ui::note("answering the calls under way; the next signal ends them");
    gateway.close();
    let ended = async {
        listening.drain().await;
        admission.finish().await;
    };
    tokio::select! {
        () = ended => summarise(&args, gateway.total()),
        () = interrupted() => summarise(&args, gateway.total()).map(|_| Exit::Interrupted),
    }
}

fn gateway(args: &Args) -> Result<Gateway, Failure> {
    let mut endpoint = Endpoint::new(&args.endpoint, &args.model);
    endpoint.api = api(&args.api);
    endpoint.params = args.param.iter().cloned().collect();
    endpoint.stream = args.stream;
    endpoint.send_seed = false;
    endpoint.max_in_flight = args.max_in_flight;
    endpoint.max_attempts = args.max_attempts;
    endpoint.max_wait = Duration::from_secs(args.max_wait);
    if let Some(name) = &args.api_key_env {
        endpoint = endpoint.with_key(key(name)?);
    }
    let mut embeddings = embeddings(args, &endpoint)?;
    if let Some(path) = &args.prices {
        let text = fs_err::read_to_string(path).map_err(Failure::input)?;
        let prices = Prices::parse(&text, &path.display().to_string()).map_err(Failure::input)?;
        endpoint.price = prices.get(&args.model);
        if let Some(embeddings) = &mut embeddings {
            embeddings.price = prices.get(&embeddings.model);
        }
    }
    let settings = Settings {
        cache: args.cache.clone(),
        embeddings,
        may_drop: args.drop.iter().cloned().collect(),
        beyond_loopback: args.beyond_loopback,
        on_retry: Some(Arc::new(|reason, wait| {
            ui::note(&format!("{reason}; asking again in {:.1} s", wait.as_secs_f64()));
        })),
        ..Settings::default()
    };
    Gateway::new(endpoint, &Limiter::default(), settings).map_err(failure)
}

/// Who embeds, where the command line says so.
fn embeddings(args: &Args, endpoint: &Endpoint) -> Result<Option<Endpoint>, Failure> {
    let Some(model) = &args.embedding_model else { return Ok(None) };
    let shared = Endpoint { model: model.clone(), params: Default::default(), ..endpoint.clone() };
    let Some(url) = &args.embedding_endpoint else { return Ok(Some(shared)) };
    let embeddings = Endpoint { base_url: url.clone(), api: Protocol::Openai, api_key: None, ..shared };
    match &args.embedding_key_env {
        Some(name) => Ok(Some(embeddings.with_key(key(name)?))),
        None => Ok(Some(embeddings)),
    }
}

fn key(name: &str) -> Result<Secret, Failure> {
    let missing = |_| Failure::environment(anyhow::anyhow!("the environment variable {name} is not set"));
    std::env::var(name).map(Secret::new).map_err(missing)
}

fn caller(args: &Args) -> Caller {
    Caller {
        condition: "gateway".into(),
        target: "gateway".into(),
        solver: args.model.clone(),
        replicate: 1,
        attempt: 1,
    }
}

fn caps(args: &Args) -> Caps {
    Caps { calls: args.cap_calls, tokens: args.cap_tokens, usd: args.cap_usd }
}

fn failure(error: LlmError) -> Failure {
    match error {
        LlmError::Setup { .. } => Failure::input(error),
        error => Failure::environment(error),
    }
}

fn announce(args: &Args, admission: &Admission, listening: &Listening) -> Result<(), Failure> {
    let place = match (listening.address(), listening.path()) {
        (Some(address), _) => format!("http://{address}"),
        (None, path) => format!("unix:{}", path.unwrap_or(Path::new("")).display()),
    };
    if let (Some(path), Some(address)) = (&args.port_file, listening.address()) {
        // Renamed into place, so that whoever waits for the file never reads half of it.
        let partial = path.with_extension("partial");
        fs_err::write(&partial, address.port().to_string()).map_err(Failure::environment)?;
        fs_err::rename(&partial, path).map_err(Failure::environment)?;
    }
    let token = admission.token();
    if args.json {
        ui::data(&json!({"listening": place, "token": token}).to_string());
    } else {
        ui::data(&format!("listening on {place}"));
        ui::data(&format!("token {token}"));
        ui::note(&format!("OpenAI clients:    OPENAI_BASE_URL={place}/v1 OPENAI_API_KEY={token}"));
        ui::note(&format!("Anthropic clients: ANTHROPIC_BASE_URL={place} ANTHROPIC_API_KEY={token}"));
    }
    Ok(())
}

/// What `--json` prints at the end.
#[derive(Serialize)]
struct Summary {
    spent: Tally,
    journal: PathBuf,
}

fn summarise(args: &Args, spent: Tally) -> Outcome {
    if args.json {
        let summary = Summary { spent, journal: args.journal.join("calls.jsonl") };
        ui::data(&serde_json::to_string(&summary).map_err(Failure::input)?);
        return Ok(Exit::Done);
    }
    let cost = spent.cost;
    let money = cost.list_usd.map_or_else(|| "price unknown".into(), |usd| format!("${usd:.4}"));
    ui::note(&format!(
        "{} calls, {} prompt ({} cached) + {} completion tokens, {money}",
        cost.calls, cost.prompt_tokens, cost.cached_tokens, cost.completion_tokens
    ));
    if cost.unmetered_calls > 0 {
        let guess = spent.estimate;
        ui::note(&format!(
            "{} more requests may have been charged though the endpoint did not say what they used: about {} prompt \
             + {} completion tokens by the length of their texts",
            cost.unmetered_calls, guess.prompt_tokens, guess.completion_tokens
        ));
    }
    Ok(Exit::Done)
}
