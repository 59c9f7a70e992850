//! How long the program takes to start: `--version` and `--help`, from `exec` to exit, beside other programs.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark ends where it panics, and tells people"
)]

mod measure;

use measure::{Subject, is_there, rounds, table};

fn main() {
    let memtrial = env!("CARGO_BIN_EXE_memtrial");
    let mut subjects = vec![
        Subject::program("memtrial --version", memtrial, &["--version"]),
        Subject::program("memtrial --help", memtrial, &["--help"]),
        Subject::program("memtrial study run --help", memtrial, &["study", "run", "--help"]),
    ];
    for (program, arguments) in [
        ("true", ["--version"].as_slice()),
        ("git", &["--version"]),
        ("docker", &["--version"]),
        ("python3", &["-c", "pass"]),
    ] {
        if is_there(program) {
            subjects.push(Subject::program(
                &format!("{program} {}", arguments.join(" ")),
                program,
                arguments,
            ));
        }
    }
    // The agent that memtrial's equals: `mini` of mini-swe-agent, where it is installed.
    let mini = std::env::var("MINI_SWE_AGENT").unwrap_or_else(|_| "mini".to_owned());
    if is_there(&mini) {
        subjects.push(Subject::program("mini --help", &mini, &["--help"]));
    }
    table("start-up", rounds(30), subjects);
}
