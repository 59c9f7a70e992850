//! Checks and generated files of the workspace: `cargo xtask layering|cli-reference|licences`.

mod cli_reference;
mod layering;
mod licences;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Checks and generated files of the workspace.
#[derive(Debug, Parser)]
enum Task {
    /// Checks that no module of the library uses a later one, and what each may name.
    Layering,
    /// Writes docs/reference/cli.md from the program's own help.
    CliReference {
        /// Only checks that the file is up to date.
        #[arg(long)]
        check: bool,
    },
    /// Checks that every dependency's licence allows MIT OR Apache-2.0.
    Licences,
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Layering => layering::check(&root()),
        Task::CliReference { check } => cli_reference::run(&root(), check),
        Task::Licences => licences::check(&root()),
    };
    match outcome {
        Ok(summary) => {
            say(&summary);
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "xtask speaks to people")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// The workspace's folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
