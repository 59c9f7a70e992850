//! The program inside a sandbox.
//!
//! `serve [ROOT]` answers requests, `serve --gateway` with a way out besides; `enter` makes a sandbox of namespaces around itself and serves it.

mod capture;
mod disk;
mod exec;
mod fault;
mod files;
mod inherited;
mod inner;
mod limits;
mod network;
mod oom;
mod outer;
mod privileges;
mod relay;
mod root;
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
        ["serve"] => serve("/", false),
        ["serve", gateway::FLAG] => serve("/", true),
        ["serve", root] => serve(root, false),
        ["enter"] => inherited::keep_back().and_then(|()| outer::run()),
        ["inner", pipe] => inner::run(pipe).map(|()| exit::DONE),
        _ => Err(Fault("usage: memtrial-runner serve [ROOT | --gateway] | enter".into())),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(fault) => {
            let _ = writeln!(std::io::stderr(), "memtrial-runner: {fault}");
            ExitCode::from(exit::FAILED)
        }
    }
}

fn serve(root: &str, gateway: bool) -> Result<u8, Fault> {
    inherited::keep_back()?;
    let serve = serve::Serve { root: root.into(), limits: None, oom: None, gateway };
    serve::serve(serve).map(|()| exit::DONE)
}
