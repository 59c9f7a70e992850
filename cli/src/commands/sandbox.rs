//! `memtrial sandbox`: does a back end hold what it promises here?

use std::path::{Path, PathBuf};
use std::time::Duration;

use memtrial::sandbox::conformance::{self, Canary, Case, Holder, Options, Outcome};
use memtrial::sandbox::environment::Base;
use memtrial::sandbox::{self, Backend, Exec, Image, Limits, Network, Spec};

use super::rooms::{CacheArgs, backend};
use crate::exit::{Exit, Failure, Outcome as Done};
use crate::ui;

/// Tries sandboxes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Tries, case by case, whether a back end holds what it promises here; exit code 4 if it does not.
    Check(Check),
    /// Runs a command in a sandbox until this process is killed: `check` kills it.
    #[command(hide = true)]
    Hold(Hold),
}

/// Tries, case by case, whether a back end holds what it promises here; exit code 4 if it does not.
#[derive(Debug, clap::Args)]
struct Check {
    #[command(flatten)]
    room: Room,
    /// Only this case; may be given several times
    #[arg(long = "case", value_name = "NAME",
          value_parser = clap::builder::PossibleValuesParser::new(conformance::names()), hide_possible_values = true)]
    cases: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where commands run.
#[derive(Debug, clap::Args)]
struct Room {
    /// The back end
    #[arg(long, value_name = "BACKEND", default_value = "namespaces",
          value_parser = clap::builder::PossibleValuesParser::new(sandbox::BACKENDS))]
    sandbox: String,
    /// What sandboxes start on: host, rootfs:FOLDER (namespaces) or image:NAME (docker)
    #[arg(long, value_name = "BASE", default_value = "host")]
    base: String,
    #[command(flatten)]
    cache: CacheArgs,
}

#[derive(Debug, clap::Args)]
struct Hold {
    #[command(flatten)]
    room: Room,
    /// What `sleep` is given
    #[arg(long)]
    number: String,
}

/// Runs the verb.
pub async fn run(args: Args) -> Done {
    match args.verb {
        Verb::Check(check) => self::check(check).await,
        Verb::Hold(args) => hold(args).await,
    }
}

async fn check(args: Check) -> Done {
    let (backend, image) = args.room.open()?;
    let health = backend.check().await;
    if !health.works {
        let mend = health.mend.map(|mend| format!("; mend: {mend}")).unwrap_or_default();
        let error =
            anyhow::anyhow!("{} does not work here: {}{mend}", backend.name(), health.notes.join("; "));
        return Err(Failure::environment(error));
    }
    let scratch = tempfile::tempdir().map_err(Failure::environment)?;
    let planted = Planted::new();
    let options = Options {
        canaries: planted.0.clone(),
        environment: std::env::vars().collect(),
        holder: Some(args.room.holder()?),
        unclaimed: health.unclaimed,
        only: args.cases,
        ..Options::new(image, scratch.path().to_owned())
    };
    ui::note(&format!("{}: {}", backend.name(), health.notes.join("; ")));
    let show = |case: &Case| {
        if !args.json {
            ui::data(&case.to_string());
        }
    };
    let table = conformance::run(backend.as_ref(), &options, show).await;
    let count = |outcome| table.iter().filter(|case| case.outcome == outcome).count();
    if args.json {
        ui::json(&table)?;
    }
    let failed = count(Outcome::Failed);
    ui::note(&format!(
        "{}: {} cases: {} passed, {failed} failed, {} not promised here",
        backend.name(),
        table.len(),
        count(Outcome::Passed),
        count(Outcome::Unclaimed)
    ));
    Ok(if failed == 0 { Exit::Done } else { Exit::Environment })
}

impl Room {
    fn open(&self) -> Result<(std::sync::Arc<dyn Backend>, Image), Failure> {
        let usage = |reason: String| Failure::usage(anyhow::anyhow!(reason));
        match Base::parse(&self.base).map_err(usage)? {
            Base::Image(image) => Ok((backend(&self.sandbox, &self.cache)?, image)),
            Base::Published(_) => {
                Err(usage("a published image is a task's: name one with image:NAME".into()))
            }
        }
    }

    /// This program again, in a sandbox of the same kind.
    fn holder(&self) -> Result<Holder, Failure> {
        let program = std::env::current_exe().map_err(Failure::environment)?;
        let path = |path: &Path| path.display().to_string();
        let arguments = [
            ["--sandbox".to_owned(), self.sandbox.clone()],
            ["--base".to_owned(), self.base.clone()],
            ["--cache".to_owned(), path(&self.cache.folder()?)],
            ["--engine".to_owned(), path(&self.cache.engine)],
            ["--number".to_owned(), "{number}".to_owned()],
        ];
        let arguments =
            ["sandbox".to_owned(), "hold".to_owned()].into_iter().chain(arguments.into_iter().flatten());
        Ok(Holder { program, arguments: arguments.collect(), environment: Default::default() })
    }
}

async fn hold(args: Hold) -> Done {
    let (backend, image) = args.room.open()?;
    let spec = Spec {
        image,
        limits: Limits::default(),
        network: Network::None,
        mounts: Vec::new(),
        keep: false,
        gateway: None,
    };
    let mut sandbox = backend.start(&spec).await.map_err(Failure::environment)?;
    let number = args.number;
    let script = format!("trap '' TERM HUP; setsid sleep {number} & sleep {number}");
    let sleep = Exec::bash(script, "/").timeout(Duration::from_secs(600));
    sandbox.exec(&sleep).await.map_err(Failure::environment)?;
    Ok(Exit::Done)
}

/// Files that no sandbox may see, in the home folder and in `/var`; removed at the end.
struct Planted(Vec<Canary>);

impl Planted {
    fn new() -> Self {
        let word = format!("canary{:x}", std::process::id());
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let mut planted = Self(Vec::new());
        for folder in home.into_iter().chain([PathBuf::from("/var/tmp")]) {
            let path = folder.join(format!(".memtrial-{word}"));
            // Where this user may not write, nothing can be planted.
            if std::fs::write(&path, format!("{word}\n")).is_ok() {
                planted.0.push(Canary { path, word: word.clone() });
            }
        }
        planted
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        for canary in &self.0 {
            let _ = std::fs::remove_file(&canary.path);
        }
    }
}
