//! `memtrial memory describe`.

use memtrial::memory::{self, About, Needs, Setting};

use super::super::task::table;
use super::failure;
use crate::exit::{Exit, Outcome};
use crate::ui;

/// Which system.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its name; without one all systems are listed
    system: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    match (&args.system, args.json) {
        (None, true) => ui::json(&memory::SYSTEMS)?,
        (None, false) => {
            let row =
                |about: &&About| [about.name, asks(about.needs), about.summary].map(str::to_owned).to_vec();
            table(&["SYSTEM", "ASKS A MODEL", "WHAT IT DOES"], memory::SYSTEMS.iter().map(row));
        }
        (Some(name), true) => ui::json(memory::describe(name).map_err(failure)?)?,
        (Some(name), false) => print(memory::describe(name).map_err(failure)?),
    }
    Ok(Exit::Done)
}

fn asks(needs: Needs) -> &'static str {
    match needs {
        Needs::Nothing => "no",
        Needs::MayAskModel => "may",
        Needs::AsksModel => "yes",
    }
}

fn print(about: &About) {
    ui::data(&format!("{}: {}", about.name, about.summary));
    ui::data(match about.needs {
        Needs::Nothing => "It asks no model.",
        Needs::MayAskModel => "It asks a model where one is given, and works by rules where none is.",
        Needs::AsksModel => "It asks a model while it learns, and cannot be used without one.",
    });
    if !about.paper.is_empty() {
        ui::data(&format!("After: {}", about.paper));
    }
    about.deviations.iter().for_each(|deviation| ui::data(&format!("  differs: {deviation}")));
    let settings: Vec<&Setting> = about.settings.iter().chain(about.shared).collect();
    if settings.is_empty() {
        ui::data("It has no settings.");
        return;
    }
    ui::data("Settings:");
    let row = |key: &&Setting| [key.name, key.value, key.default, key.what].map(str::to_owned).to_vec();
    table(&["KEY", "TAKES", "DEFAULT", "WHAT IT DOES"], settings.iter().map(row));
}
