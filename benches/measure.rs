//! What all benchmarks share: subjects measured in turn, and the table that tells of them.

#![allow(dead_code, reason = "each benchmark uses its part")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Something to measure.
pub struct Subject<'a> {
    name: String,
    round: Box<dyn FnMut() -> Duration + 'a>,
    times: Vec<Duration>,
}

impl<'a> Subject<'a> {
    /// `round` does it once and returns how long that took.
    pub fn new(name: &str, round: impl FnMut() -> Duration + 'a) -> Self {
        Self { name: name.to_owned(), round: Box::new(round), times: Vec::new() }
    }

    /// A program, from its start to its end.
    pub fn program(name: &str, program: &str, arguments: &[&str]) -> Self {
        let (program, arguments) = (program.to_owned(), arguments.iter().map(|&text| text.to_owned()));
        let arguments: Vec<String> = arguments.collect();
        Self::new(name, move || timed(|| run(&program, &arguments)))
    }
}

/// Runs a program to its end.
pub fn run(program: &str, arguments: &[impl AsRef<str>]) {
    let arguments = arguments.iter().map(AsRef::as_ref);
    let status =
        Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{program}: {status}");
}

/// Whether a program can be started here.
pub fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// How long something took.
pub fn timed(action: impl FnOnce()) -> Duration {
    let began = Instant::now();
    action();
    began.elapsed()
}

/// How many rounds: the first word of the command line, else `usual`.
pub fn rounds(usual: usize) -> usize {
    std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(usual)
}

/// Measures all subjects in turn, so that what else the machine does meets each alike; a round before the first is not
/// counted. Prints least, median, 95th percentile in milliseconds, and each median against the first's.
pub fn table(title: &str, rounds: usize, mut subjects: Vec<Subject>) {
    for round in 0..=rounds {
        for subject in &mut subjects {
            let took = (subject.round)();
            if round > 0 {
                subject.times.push(took);
            }
        }
    }
    let width = subjects.iter().map(|subject| subject.name.len()).max().unwrap_or(0);
    println!("{title}: {rounds} rounds in turn, ms\n{:width$}      least   median      p95   × first", "");
    let mut first = None;
    for subject in &mut subjects {
        subject.times.sort();
        let at = |share: f64| milliseconds(subject.times[(share * (rounds - 1) as f64).round() as usize]);
        let ratio = at(0.5) / *first.get_or_insert(at(0.5));
        println!("{:width$}   {:8.2} {:8.2} {:8.2} {:9.1}", subject.name, at(0.0), at(0.5), at(0.95), ratio);
    }
    println!();
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
