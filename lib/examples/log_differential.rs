//! Compares the upstream rules of the log parsers with the reference parsers, on generated logs.
//!
//! `scripts/test-log-parsers.sh` says how to run it and what the options are. It prints a line a parser, and for differences the smallest log that
//! still shows them. With `--record FILE` it writes seeds and samples with the reference's answers instead.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use memtrial::grade::logs::{ParseError, Parser, Rules, parser};
use memtrial_testkit::logs::{Generator, seeds};
use serde_json::{Value, json};

type Failure = Box<dyn Error + Send + Sync>;

/// Logs that the reference gets at once.
const BATCH: usize = 500;
/// After so many logs on which the reference took too long, a parser gets no more.
const SLOW: usize = 60;
/// Longer logs are not recorded, in bytes.
const LONGEST: usize = 1200;

struct Options {
    peer: Vec<String>,
    families: Vec<String>,
    parsers: Vec<String>,
    origins: Vec<String>,
    count: usize,
    seed: u64,
    show: usize,
    record: Option<String>,
}

fn options() -> Result<Options, Failure> {
    let mut options = Options {
        peer: Vec::new(),
        families: Vec::new(),
        parsers: Vec::new(),
        origins: Vec::new(),
        count: 5000,
        seed: 1,
        show: 3,
        record: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--family" => options.families.push(value()?),
            "--parser" => options.parsers.push(value()?),
            "--origin" => options.origins.push(value()?),
            "--count" => options.count = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--show" => options.show = value()?.parse()?,
            "--record" => options.record = Some(value()?),
            _ if word.starts_with('-') => return Err(format!("unknown option {word}").into()),
            _ => options.peer.push(word),
        }
    }
    Ok(options)
}

/// The reference, in a process of its own.
struct Peer {
    child: Child,
    questions: mpsc::Sender<String>,
    answers: BufReader<ChildStdout>,
    /// Origin → name → function.
    names: BTreeMap<String, BTreeMap<String, String>>,
}

fn feed(mut stdin: ChildStdin, questions: mpsc::Receiver<String>) {
    for text in questions {
        if stdin.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

impl Peer {
    fn start(arguments: &[String]) -> Result<Self, Failure> {
        let (stdin, stdout) = (Stdio::piped(), Stdio::piped());
        let mut child = Command::new("python3").args(arguments).stdin(stdin).stdout(stdout).spawn()?;
        let stdin = child.stdin.take().ok_or("no standard input")?;
        let mut answers = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let (questions, waiting) = mpsc::channel();
        thread::spawn(move || feed(stdin, waiting));
        let mut line = String::new();
        answers.read_line(&mut line)?;
        Ok(Self { child, questions, answers, names: serde_json::from_str(&line)? })
    }

    /// The answers for some logs; `meanwhile` runs while the reference works.
    fn ask<T>(
        &mut self,
        origin: &str,
        name: &str,
        logs: &[String],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(Vec<Value>, T), Failure> {
        let mut text = String::new();
        for (at, log) in logs.iter().enumerate() {
            let last = at + 1 == logs.len();
            text.push_str(&json!({"o": origin, "p": name, "log": log, "last": last}).to_string());
            text.push('\n');
        }
        self.questions.send(text)?;
        let other = meanwhile();
        let mut answers = Vec::new();
        for _ in logs {
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(format!("the reference ended at {origin}:{name}").into());
            }
            answers.push(serde_json::from_str(&line)?);
        }
        Ok((answers, other))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ours(parser: &Parser, log: &str) -> Value {
    match parser.parse(log, Rules::Upstream) {
        Ok(map) => {
            let out = map.statuses.iter().map(|(name, status)| (name.clone(), Value::from(status.as_str())));
            json!({"out": out.collect::<serde_json::Map<_, _>>()})
        }
        Err(ParseError::Raises { exception, .. }) => json!({"raises": exception}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// The smallest log found that still differs: without lines, then without characters.
fn shrink(peer: &mut Peer, origin: &str, parser: &Parser, name: &str, log: &str) -> Result<String, Failure> {
    let mut log = log.to_owned();
    for by_line in [true, false] {
        let mut parts: Vec<String> = match by_line {
            true => log.split_inclusive(['\n', '\r']).map(str::to_owned).collect(),
            false => log.chars().map(String::from).collect(),
        };
        let mut step = parts.len().div_ceil(2);
        while step > 0 {
            let mut at = 0;
            while at < parts.len() && parts.len() > 1 {
                let rest = [&parts[..at], &parts[(at + step).min(parts.len())..]].concat();
                let text = rest.concat();
                let (theirs, mine) =
                    peer.ask(origin, name, std::slice::from_ref(&text), || ours(parser, &text))?;
                if differ(&theirs[0], &mine) {
                    parts = rest;
                } else {
                    at += step;
                }
            }
            step = if step == 1 { 0 } else { step.div_ceil(2) };
        }
        log = parts.concat();
    }
    Ok(log)
}

fn differ(theirs: &Value, ours: &Value) -> bool {
    theirs.get("slow").is_none() && theirs != ours
}

#[derive(Default)]
struct Tally {
    compared: usize,
    differing: Vec<String>,
    raised: usize,
    slow: usize,
}

fn compare(
    peer: &mut Peer,
    origin: &str,
    name: &str,
    parser: &Parser,
    logs: &mut dyn Iterator<Item = String>,
) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    loop {
        let batch: Vec<String> = logs.take(BATCH).collect();
        if batch.is_empty() || tally.slow > SLOW {
            return Ok(tally);
        }
        let mine = || batch.iter().map(|log| ours(parser, log)).collect::<Vec<_>>();
        let (theirs, mine) = peer.ask(origin, name, &batch, mine)?;
        for ((log, theirs), mine) in batch.into_iter().zip(theirs).zip(mine) {
            if theirs.get("slow").is_some() {
                tally.slow += 1;
                continue;
            }
            tally.compared += 1;
            tally.raised += usize::from(theirs.get("raises").is_some());
            if differ(&theirs, &mine) {
                tally.differing.push(log);
            }
        }
    }
}

/// The family of each name that has seeds.
fn families() -> BTreeMap<&'static str, &'static str> {
    seeds()
        .into_iter()
        .flat_map(|seed| seed.parsers.into_iter().map(move |name| (name, seed.family)))
        .collect()
}

fn wanted(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|word| word == name)
}

/// The seeds, and without end what the generator makes of them.
fn logs_of(family: &str, name: &str, seed: u64) -> impl Iterator<Item = String> + use<> {
    let mut generator = Generator::new(family, name, seed);
    let mut first = generator.seeds().to_vec();
    first.push(String::new());
    first.into_iter().chain(std::iter::from_fn(move || Some(generator.log())))
}

fn check(options: &Options, out: &mut impl Write) -> Result<bool, Failure> {
    let mut peer = Peer::start(&options.peer)?;
    let families = families();
    let mut totals: BTreeMap<&str, Tally> = BTreeMap::new();
    let names = peer.names.clone();
    for (origin, names) in names.iter().filter(|(origin, _)| wanted(&options.origins, origin)) {
        for name in names.keys().filter(|name| wanted(&options.parsers, name)) {
            let Some(family) = families.get(name.as_str()) else {
                writeln!(out, "{origin}:{name}: no seeds")?;
                continue;
            };
            if !wanted(&options.families, family) {
                continue;
            }
            let Ok(parser) = parser(&format!("{origin}:{name}")) else {
                writeln!(out, "{origin}:{name}: not there")?;
                continue;
            };
            let mut logs = logs_of(family, name, options.seed).take(options.count);
            let tally = compare(&mut peer, origin, name, parser, &mut logs)?;
            let Tally { compared, differing, raised, slow } = &tally;
            let differ = differing.len();
            writeln!(
                out,
                "{origin}:{name}: {compared} compared, {differ} differ, {raised} raise, {slow} slow"
            )?;
            for log in differing.iter().take(options.show) {
                let log = shrink(&mut peer, origin, parser, name, log)?;
                let (theirs, mine) =
                    peer.ask(origin, name, std::slice::from_ref(&log), || ours(parser, &log))?;
                let log = Value::from(log.chars().take(1000).collect::<String>());
                writeln!(out, "    log       {log}\n    reference {}\n    memtrial  {mine}", theirs[0])?;
            }
            out.flush()?;
            let total = totals.entry(family).or_default();
            total.compared += tally.compared;
            total.raised += tally.raised;
            total.slow += tally.slow;
            total.differing.extend(tally.differing);
        }
    }
    for (family, Tally { compared, differing, raised, slow }) in &totals {
        let differ = differing.len();
        writeln!(out, "family {family}: {compared} compared, {differ} differ, {raised} raise, {slow} slow")?;
    }
    Ok(totals.values().all(|total| total.differing.is_empty()))
}

/// Writes logs with the reference's answers, one JSON line each: every parser of the first origin, and what the others
/// answer differently. Other names of a function get a few logs.
fn record(options: &Options, path: &str) -> Result<(), Failure> {
    let mut peer = Peer::start(&options.peer)?;
    let families = families();
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut first: BTreeMap<(String, String), Value> = BTreeMap::new();
    let order = ["swe-rebench-2", "swe-bench-4", "swe-bench-5"];
    let names = peer.names.clone();
    for origin in order {
        let Some(names) = names.get(origin) else { continue };
        for (name, function) in names {
            let Some(family) = families.get(name.as_str()) else { continue };
            let seeds = Generator::new(family, name, options.seed).seeds().len();
            let only_name = name == function || !names.contains_key(function);
            let count = if only_name { options.count + seeds } else { seeds + 4 };
            let logs = logs_of(family, name, options.seed);
            let logs: Vec<String> = logs.filter(|log| log.len() < LONGEST).take(count).collect();
            let (answers, ()) = peer.ask(origin, name, &logs, || ())?;
            for (log, answer) in logs.into_iter().zip(answers) {
                let key = (name.clone(), log);
                if answer.get("slow").is_some() || first.get(&key) == Some(&answer) {
                    continue;
                }
                let mut line = json!({"origin": origin, "parser": name, "log": key.1});
                if let (Some(line), Some(answer)) = (line.as_object_mut(), answer.as_object()) {
                    line.extend(answer.clone());
                }
                writeln!(file, "{line}")?;
                first.entry(key).or_insert(answer);
            }
        }
    }
    Ok(file.flush()?)
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    let mut out = std::io::stdout().lock();
    if let Some(path) = &options.record {
        return record(&options, path);
    }
    if check(&options, &mut out)? { Ok(()) } else { Err("there are differences".into()) }
}
