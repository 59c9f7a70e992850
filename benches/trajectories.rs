//! Reading trajectories beside Python's `json`, in one run: `cargo bench -p memtrial --bench trajectories -- FOLDER`.
//!
//! Prints medians of five rounds in MB/s of file bytes, from bytes in memory (the limits: what a scan, a UTF-8 check
//! and a parser alone reach) and from files (what a user waits for), and the peak of memory.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use memtrial::dataset::{Chronology, History, HistoryStore, MergeDates};
use memtrial::task::InstanceId;
use memtrial::trajectory::{Limits, Trajectory, summarize};

const ROUNDS: usize = 5;

const PYTHON: &str = "
import json, sys, time
files = sys.stdin.read().split('\\n')
rounds = []
for _ in range(5):
    begun, size = time.perf_counter(), 0
    for name in files:
        with open(name, encoding='utf-8') as file:
            json.load(file)
            size += file.tell()
    rounds.append(size / (time.perf_counter() - begun) / 1e6)
print(sorted(rounds)[2])
";

fn main() {
    let Some(folder) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        println!("usage: cargo bench -p memtrial --bench trajectories -- FOLDER_OF_TRAJECTORIES");
        return;
    };
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files);
    files.sort();
    let sizes = files.iter().map(|path| path.metadata().expect("a file").len());
    let size = sizes.sum::<u64>() as f64;
    println!("{} files, {:.1} MB", files.len(), size / 1e6);
    let rate = |name: &str, run: &dyn Fn()| {
        let mut rounds: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begun = Instant::now();
                run();
                size / begun.elapsed().as_secs_f64() / 1e6
            })
            .collect();
        rounds.sort_by(f64::total_cmp);
        let median = rounds[ROUNDS / 2];
        println!("{name:<46} {median:>7.0} MB/s");
        median
    };

    let limits = Limits::default();
    let one = rate("memtrial: summaries, files, one thread", &|| {
        files.iter().for_each(|path| drop(black_box(summarize(path, &limits))));
    });
    let histories = histories(Path::new(&folder));
    let all = rate("memtrial: summaries, files, all processors", &|| {
        histories.iter().for_each(|history| drop(black_box(history.summaries(&limits))));
    });
    println!("{:<46} {:>7} MB", "memtrial: peak of memory so far", peak_mb());
    rate("memtrial: whole runs, files, one thread", &|| {
        files.iter().for_each(|path| drop(black_box(Trajectory::read(path))));
    });

    let texts: Vec<Vec<u8>> =
        files.iter().map(|path| std::fs::read(path).expect("a readable file")).collect();
    let each = |of: &dyn Fn(&[u8])| texts.iter().for_each(|text| of(text));
    rate("limit: find quotes and backslashes", &|| {
        each(&|text| {
            black_box(memchr::memchr2_iter(b'"', b'\\', text).count());
        });
    });
    rate("limit: serde_json, everything skipped", &|| {
        each(&|text| drop(black_box(serde_json::from_slice::<serde::de::IgnoredAny>(text))));
    });
    rate("limit: serde_json, values built", &|| {
        each(&|text| drop(black_box(serde_json::from_slice::<serde_json::Value>(text))));
    });
    match python(&files) {
        Some(python) => {
            println!("{:<46} {python:>7.0} MB/s", "python3: json.load, files");
            println!("ratio: one thread {:.1}, all processors {:.1}", one / python, all / python);
        }
        None => println!("no python3 here to compare with"),
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.to_string_lossy().ends_with(".traj.json") {
            files.push(path);
        }
    }
}

/// Every stored run of every repository, as the history of a task that comes after all of them.
fn histories(folder: &Path) -> Vec<History> {
    let store = HistoryStore::open(folder).expect("a folder of runs");
    let mut targets: Vec<InstanceId> = Vec::new();
    for id in store.ids() {
        if !targets.iter().any(|target| target.same_repo(id)) {
            let last = format!("{}__{}-{}", id.owner(), id.name(), u64::MAX);
            targets.push(InstanceId::parse(&last).expect("an instance id"));
        }
    }
    let of = |target: &InstanceId| {
        History::for_target(&store, target, Chronology::Number, &MergeDates::default()).expect("a history")
    };
    targets.iter().map(of).collect()
}

fn python(files: &[PathBuf]) -> Option<f64> {
    use std::io::Write;
    let mut child = Command::new("python3")
        .args(["-c", PYTHON])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .ok()?;
    let names: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
    child.stdin.take()?.write_all(names.join("\n").as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}
