//! `memtrial compare`.

use std::path::PathBuf;

use memtrial::report::compare::{self, Comparison, compare, read_run};

use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Compares two graded runs, paired by task.
///
/// A is the run under test, B the run that it is measured against: all differences are A - B, so a positive one means
/// that A solved more. Each is the `--out` folder of `memtrial grade`, or a summary report of SWE-bench (versions 4 and
/// 5). Tasks that only one run lists are left out and counted.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run under test: a folder with report.json, or a summary report
    a: PathBuf,
    /// The run that it is measured against: the same
    b: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also write one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exit with 1 if the 95 % interval of the difference (Newcombe) lies below 0
    #[arg(long)]
    fail_if_worse: bool,
    /// Seed of the bootstrap
    #[arg(long, default_value_t = compare::SEED)]
    seed: u64,
}

pub async fn run(args: Args) -> Outcome {
    let a = read_run(&args.a).map_err(Failure::input)?;
    let b = read_run(&args.b).map_err(Failure::input)?;
    let comparison = compare(&a, &b, args.seed);
    check(&comparison)?;
    if let Some(path) = &args.html {
        memtrial::grade::files::write(path, comparison.html().as_bytes())?;
        ui::note(&format!("wrote {}", path.display()));
    }
    if args.json {
        ui::json(&comparison)?;
    } else {
        ui::data(comparison.text().trim_end());
    }
    if args.fail_if_worse && comparison.worse() {
        ui::note("A is worse than B: the 95 % interval of the difference lies below 0");
        return Ok(Exit::Negative);
    }
    Ok(Exit::Done)
}

/// Without a common task there is nothing to compare, and a gate must not pass.
fn check(comparison: &Comparison) -> Result<(), Failure> {
    if comparison.paired.targets > 0 {
        return Ok(());
    }
    Err(Failure::input(anyhow::anyhow!(
        "no task has a verdict in both runs: A lists {} ({}), B lists {} ({}), both list {}; \
         compare two runs over the same tasks",
        comparison.a.listed,
        comparison.a.path,
        comparison.b.listed,
        comparison.b.path,
        comparison.common,
    )))
}
