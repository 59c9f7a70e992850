//! The memtrial command.
mod commands;
mod exit;
mod progress;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}
