//! `memtrial memory serve`: a memory index as tools of a working agent.

mod tools;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use memtrial::memory::index::Index;
use memtrial::memory::serve::{Feedbacks, Served};
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::asked::EmbedArgs;
use super::failure;
use crate::exit::{Exit, Failure, Outcome, interrupted};
use crate::ui;
use tools::Tools;

/// Serves a memory index to agents at work: they search it, read records and report what helped. Speaks the Model
/// Context Protocol over standard input and output, until its input ends; with --http over streamable HTTP, until
/// SIGTERM or Ctrl-C.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The index (`memtrial memory build` makes it). Reports are added to feedback.jsonl in it.
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// Speaks the Model Context Protocol (the only protocol there is).
    #[arg(long, required = true)]
    mcp: bool,
    /// Serves http://ADDRESS:PORT/mcp instead of standard input and output; port 0 is a free one. An address that
    /// others can reach must be asked for with --beyond-loopback.
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// Allows an address that other machines can reach. Whoever reaches it can read the index: there is no key.
    #[arg(long, requires = "http")]
    beyond_loopback: bool,
    #[command(flatten)]
    embed: EmbedArgs,
}

pub async fn run(args: Args) -> Outcome {
    let index = Index::open(&args.index).map_err(failure)?;
    let served = Served::load(&index, &args.embed.resources()?).await.map_err(failure)?;
    serve(Arc::new(served), &args).await
}

/// Serves an index as the command line says.
async fn serve(index: Arc<Served>, args: &Args) -> Outcome {
    let repos = index.repos().len();
    let tools = Tools::new(index, Feedbacks::beside(&args.index));
    match args.http {
        None => {
            ui::note(&format!("serving {} ({repos} repositories) over MCP", args.index.display()));
            stdio(tools).await
        }
        Some(address) => http(tools, address, args.beyond_loopback).await,
    }
}

/// Until the client closes standard input. A signal ends the process at once: reports are on disk before they are
/// answered.
async fn stdio(tools: Tools) -> Outcome {
    let running = match tools.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // A client that leaves without a word has asked for nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(Exit::Done),
        Err(error) => return Err(Failure::input(anyhow!("the client does not speak MCP: {error}"))),
    };
    running.waiting().await.map_err(Failure::environment)?;
    Ok(Exit::Done)
}

async fn http(tools: Tools, address: SocketAddr, beyond_loopback: bool) -> Outcome {
    if !address.ip().is_loopback() && !beyond_loopback {
        let words =
            format!("--http {address} can be reached from outside: say --beyond-loopback if it shall");
        return Err(Failure::usage(anyhow!(words)));
    }
    // No sessions: each request stands alone, so a client may come and go. Web pages of other hosts are kept out.
    let mut config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]);
    if beyond_loopback {
        config = config.disable_allowed_hosts();
    }
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(tools.clone()), sessions, config);
    let listener = TcpListener::bind(address).await.with_context(|| format!("--http {address}"));
    let listener = listener.map_err(Failure::environment)?;
    let address = listener.local_addr().map_err(Failure::environment)?;
    ui::data(&format!("listening on http://{address}/mcp"));
    let router = axum::Router::new().nest_service("/mcp", service);
    let served = axum::serve(listener, router).with_graceful_shutdown(interrupted()).await;
    served.map_err(Failure::environment)?;
    Ok(Exit::Done)
}
