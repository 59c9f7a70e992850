//! Reading test logs beside the reference parsers: every parser on the same log, what is known to be slow there, and the
//! most memory that reading a stream takes.
//!
//! `benches/logs.sh V2 [MB] [PARSER]...` runs it; V2 is a folder of sources of SWE-rebench V2. Logs are made of the
//! testkit's seeds, each time with other names. The reference gets 20 seconds.

use std::fmt::Write as _;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use memtrial::grade::logs::{Origin, Parser, Rules, parser, parsers};
use memtrial_testkit::logs::{Generator, seeds};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const LIMIT_S: u32 = 20;

/// A log of so many bytes: the parser's seeds again and again, with other names, between lines that tell nothing.
fn log(family: &str, name: &str, bytes: usize) -> String {
    let generator = Generator::new(family, name, 1);
    let mut log = String::with_capacity(bytes + 4096);
    let mut round = 0;
    while log.len() < bytes {
        for seed in generator.seeds() {
            let ours =
                seed.replace("adds", &format!("adds{round}")).replace("breaks", &format!("breaks{round}"));
            log.push_str(&ours);
            log.push('\n');
        }
        for line in 0..10 {
            let _ = writeln!(
                log,
                "   Compiling part {line} of {round}: nothing of note at src/part_{line}.x:{round}:7"
            );
        }
        round += 1;
    }
    log
}

/// What grading.md's section on slow inputs knows: parser, begin, unit, how many the reference gets, end.
const KILLERS: &[(&str, &str, &str, usize, &str)] = &[
    ("parse_log_ruby_v1", "", "A", 28, "-"),
    ("parse_log_p5js", "", "at <anonymous>\n", 27_000, ""),
    ("parse_log_chart_js", "", "Chrome 1 (x) ", 800, ""),
    ("parse_log_googletest", "", "[ OK ] (", 800, ""),
    ("parse_log_gotest", "--- PASS: ", "a (", 6_700, ""),
    ("parse_log_haskell", "  a", " ", 20_000, "b"),
    ("parse_log_haskell_v2", "  a", " ", 20_000, "b"),
    ("parse_log_cpp", "a", " ", 20_000, "b"),
    ("parse_log_cpp_v3", "a", " ", 20_000, "b"),
    ("parse_log_gradle_custom", "a", " ", 20_000, "b"),
    ("parse_log_pytest_nebo", "a", " ", 20_000, "b"),
    ("parse_log_php_v1", "x a", " ", 20_000, "b"),
    ("parse_log_js", "✔ a", "1", 20_000, "b"),
    ("parse_log_js_2", "✔ a", "1", 20_000, "b"),
    ("parse_log_js_4", "✓ a", "1", 20_000, "b"),
];

fn seconds(action: impl Fn()) -> f64 {
    // The least of three; one that takes long is measured once.
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let began = Instant::now();
        action();
        least = least.min(began.elapsed().as_secs_f64());
        if least > 2.0 {
            break;
        }
    }
    least
}

fn ours(parser: &Parser, log: &str) -> (f64, f64) {
    let of = |rules| seconds(|| drop(std::hint::black_box(parser.parse(log, rules))));
    (of(Rules::Upstream), of(Rules::Strict))
}

/// Seconds of the reference, or none where it took more than the limit.
fn theirs(v2: &str, name: &str, path: &Path) -> Result<Option<f64>, Failure> {
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/logs_peer.py");
    let arguments = [&peer, Path::new(v2), Path::new(name), path];
    let output = Command::new("python3").args(arguments).arg(LIMIT_S.to_string()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse().ok())
}

fn shown(theirs: Option<f64>, ours: f64) -> (String, f64) {
    match theirs {
        Some(time) => (format!("{time:9.3}"), time / ours),
        None => (format!("{:>9}", format!("> {LIMIT_S}")), f64::from(LIMIT_S) / ours),
    }
}

/// The most memory that this process has had, in KiB.
fn peak() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// KiB that reading a file adds to the most that a process of its own has had: under both rules.
fn memory(name: &str, path: &Path) -> Result<(u64, u64), Failure> {
    let of = |rules: &str| -> Result<u64, Failure> {
        let read = Command::new(std::env::current_exe()?).args(["--read", name, rules]).arg(path).output()?;
        Ok(String::from_utf8(read.stdout)?.trim().parse()?)
    };
    Ok((of("upstream")?, of("strict")?))
}

fn read(name: &str, rules: &str, path: &str) -> Result<u64, Failure> {
    let rules = if rules == "strict" { Rules::Strict } else { Rules::Upstream };
    // Patterns are compiled before, so that the log alone is counted.
    drop(parser(name)?.parse("x\n", rules));
    let before = peak()?;
    drop(std::hint::black_box(parser(name)?.read(BufReader::new(std::fs::File::open(path)?), rules)));
    Ok(peak()? - before)
}

fn every(
    out: &mut impl Write,
    v2: &str,
    bytes: usize,
    wanted: &[String],
    folder: &Path,
) -> Result<(), Failure> {
    writeln!(out, "{:32} upstream    strict reference  ratio strict's  KiB: upstream    strict", "seconds")?;
    let (mut ratios, mut slowest) = (Vec::new(), Duration::ZERO);
    let seeds = seeds();
    for parser in parsers().filter(|parser| parser.origin == Origin::SweRebench2) {
        let name = parser.name;
        let seed = seeds.iter().find(|seed| seed.parsers.contains(&name));
        let Some(seed) = seed.filter(|_| wanted.is_empty() || wanted.iter().any(|word| word == name)) else {
            continue;
        };
        let path: PathBuf = folder.join("log");
        let text = log(seed.family, name, bytes);
        std::fs::write(&path, &text)?;
        let (upstream, strict) = ours(parser, &text);
        let (reference, ratio) = shown(theirs(v2, name, &path)?, upstream);
        let (memory, strict_memory) = memory(name, &path)?;
        let of_strict = ratio * upstream / strict;
        writeln!(
            out,
            "{name:32} {upstream:8.3} {strict:9.3} {reference} {ratio:6.1} {of_strict:8.1} {memory:14} {strict_memory:9}"
        )?;
        out.flush()?;
        slowest = slowest.max(Duration::from_secs_f64(upstream.max(strict)));
        ratios.push((ratio, of_strict));
    }
    let mut median = |of: fn(&(f64, f64)) -> f64| {
        ratios.sort_by(|a, b| of(a).total_cmp(&of(b)));
        ratios.get(ratios.len() / 2).map_or(0.0, of)
    };
    let (ratio, of_strict) = (median(|pair| pair.0), median(|pair| pair.1));
    writeln!(
        out,
        "median ratio {ratio:.1}, of strict rules {of_strict:.1}; slowest {:.3} s",
        slowest.as_secs_f64()
    )?;
    Ok(())
}

fn killers(
    out: &mut impl Write,
    v2: &str,
    bytes: usize,
    wanted: &[String],
    folder: &Path,
) -> Result<(), Failure> {
    writeln!(
        out,
        "\n{:32} upstream    strict reference | so long as a log: upstream strict",
        "known to be slow, seconds"
    )?;
    for (name, begin, unit, count, end) in KILLERS {
        let Ok(parser) = parser(name) else { continue };
        if !wanted.is_empty() && !wanted.iter().any(|word| word == name) {
            continue;
        }
        let path = folder.join("log");
        let text = format!("{begin}{}{end}", unit.repeat(*count));
        std::fs::write(&path, &text)?;
        let (upstream, strict) = ours(parser, &text);
        let (reference, _) = shown(theirs(v2, name, &path)?, upstream);
        let (long, long_strict) = ours(parser, &format!("{begin}{}{end}", unit.repeat(bytes / unit.len())));
        writeln!(out, "{name:32} {upstream:8.3} {strict:9.3} {reference} | {long:27.3} {long_strict:6.3}")?;
        out.flush()?;
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let mut out = std::io::stdout().lock();
    if let [flag, name, rules, path] = &words[..]
        && flag == "--read"
    {
        writeln!(out, "{}", read(name, rules, path)?)?;
        return Ok(());
    }
    let v2 = words.first().ok_or("usage: logs V2 [MB] [PARSER]...")?;
    let megabytes = words.get(1).map_or(Ok(20), |word| word.parse::<usize>())?;
    let wanted = words.get(2..).unwrap_or_default();
    let folder = tempfile::tempdir()?;
    every(&mut out, v2, megabytes << 20, wanted, folder.path())?;
    killers(&mut out, v2, megabytes << 20, wanted, folder.path())
}
