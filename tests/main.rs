//! End to end: the binary as a user runs it. One module an area, one binary for all.

#![expect(clippy::unwrap_used, reason = "a test ends where it panics")]

mod agent;
mod audit;
mod compare;
mod gateway;
mod grade;
mod history;
mod images;
mod kills;
mod memory;
mod parse_log;
mod program;
mod sandbox;
mod serve;
mod study;
mod tasks;
mod workers;

use std::path::Path;

/// What a run of the binary left behind: the exit code, stdout and stderr, the folder's name cut from both.
fn memtrial(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output =
        assert_cmd::cargo::cargo_bin_cmd!("memtrial").current_dir(folder).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&format!("{}/", folder.display()), "");
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
