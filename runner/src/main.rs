//! The program inside a sandbox.
//!
//! `serve [ROOT]` answers requests, without a root as a container's first process (`--gateway`: with a way out besides);
//! `enter` makes a sandbox of namespaces around itself and serves it; `probe` tries what a sandbox must refuse.

mod capture;
mod disk;
mod exec;
mod fault;
mod files;
mod fork;
mod hand;
mod inherited;
mod inner;
mod limits;
mod network;
mod oom;
mod outer;
mod privileges;
mod probe;
mod relay;
mod root;
mod seccomp;
mod serve;
mod tree;

use std::io::Write;
use std::process::ExitCode;

use memtrial_runner::enter::exit;
use memtrial_runner::gateway;

use crate::fault::Fault;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["serve"] => seccomp::apply().and_then(|()| serve("/", false)),
        ["serve", gateway::FLAG] => seccomp::apply().and_then(|()| serve("/", true)),
        ["serve", root] => serve(root, false),
        ["enter"] => inherited::keep_back().and_then(|()| outer::run()),
        ["probe", what @ ..] => probe::run(what).map(|()| exit::DONE),
        _ => Err(Fault("usage: memtrial-runner serve [ROOT | --gateway] | enter | probe WHAT".into())),
    };
    ExitCode::from(code_of(outcome))
}

/// The exit code; a fault is told on standard error.
fn code_of(outcome: fault::Result<u8>) -> u8 {
    outcome.unwrap_or_else(|fault| {
        let _ = writeln!(std::io::stderr(), "memtrial-runner: {fault}");
        exit::FAILED
    })
}

fn serve(root: &str, gateway: bool) -> Result<u8, Fault> {
    inherited::keep_back()?;
    let serve = serve::Serve { root: root.into(), limits: None, oom: None, gateway };
    serve::serve(serve).map(|()| exit::DONE)
}
