//! Fixtures as programs: what demonstrations and end-to-end tests start beside memtrial.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use memtrial_testkit::{FakeServer, Player, Reader, Slow, bundle, check, garbage, plant, tool_user};
use tokio::signal::unix::{SignalKind, signal};

/// Fixtures for memtrial's tests and its demonstration.
#[derive(Debug, Parser)]
#[command(name = "memtrial-testkit", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Builds the bundled study: repositories, tasks, histories, what the reader knows
    Bundle(bundle::Args),
    /// Plants needles into the histories of real tasks
    Plant(plant::Args),
    /// Says whether a study's report shows exactly the planted effects
    Check(check::Args),
    /// Serves a model that solves a task exactly when its request holds that task's needle
    Reader {
        /// What it knows of each task, a JSON line each
        #[arg(long, value_name = "FILE")]
        tasks: PathBuf,
        #[command(flatten)]
        serve: Serve,
    },
    /// Serves a model that uses the tool it is offered once and says what came of it
    ToolUser {
        #[command(flatten)]
        serve: Serve,
    },
    /// Serves a model that never answers well
    Garbage {
        #[command(flatten)]
        serve: Serve,
    },
}

/// How a model is served: on loopback, until SIGTERM or SIGINT. The first line on standard output is its base address.
#[derive(Debug, clap::Args)]
struct Serve {
    /// The port; 0: a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Also writes the port into this file, once it is open
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,
    /// Ends when standard input is closed, so that it does not outlive its parent
    #[arg(long)]
    until_stdin_closes: bool,
    /// Waits this long before each answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    delay_ms: u64,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Bundle(args) => bundle::run(&args),
        Command::Plant(args) => plant::run(&args),
        Command::Check(args) => {
            writeln!(std::io::stdout(), "{}", check::run(&args)?)?;
            Ok(())
        }
        Command::Reader { tasks, serve } => serve.run(Reader::from_file(&tasks)?),
        Command::ToolUser { serve } => serve.run(tool_user::play),
        Command::Garbage { serve } => serve.run(garbage::play),
    }
}

impl Serve {
    fn run(self, player: impl Player) -> Result<()> {
        let delay = Duration::from_millis(self.delay_ms);
        let server = FakeServer::start_on(self.port, Slow { player, delay })
            .with_context(|| format!("cannot listen on port {} of 127.0.0.1", self.port))?;
        let url = server.url();
        if let Some(path) = &self.port_file {
            // Renamed into place, so that whoever waits for the file never reads half of it.
            let port = url.trim_end_matches("/v1").rsplit(':').next().unwrap_or_default();
            let partial = path.with_extension("partial");
            fs_err::write(&partial, port)?;
            fs_err::rename(&partial, path)?;
        }
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{url}")?;
        stdout.flush()?;
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(self.ended())
    }

    async fn ended(&self) -> Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let (closed, mut stdin_closed) = tokio::sync::mpsc::channel::<()>(1);
        if self.until_stdin_closes {
            // A thread of its own: a blocking read cannot be called off, and must not hold up the end.
            std::thread::spawn(move || {
                let mut stdin = std::io::stdin();
                while matches!(stdin.read(&mut [0; 256]), Ok(1..)) {}
                drop(closed);
            });
        }
        tokio::select! {
            _ = terminate.recv() => {}
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = stdin_closed.recv(), if self.until_stdin_closes => {}
        }
        Ok(())
    }
}
