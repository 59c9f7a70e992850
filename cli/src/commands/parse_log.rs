//! `memtrial parse-log`.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use memtrial::grade::logs::described::learn::{Example, Learnt, learn};
use memtrial::grade::logs::detect::{Detection, detect};
use memtrial::grade::logs::{LogParser, Parser, Rules, Status, aliases, parsers};
use serde::Serialize;

use super::grade::RulesName;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui;

/// Reads a test log: what each test's result was.
///
/// Prints {test: status} as JSON. NAME is a parser of `--list`, with its origin before it where several projects have one
/// of that name (`swe-bench-5:parse_log_jest`), or a .toml file that describes one.
#[derive(Debug, clap::Args)]
#[command(override_usage = "memtrial parse-log [OPTIONS] <NAME> [FILE]
       memtrial parse-log --list [--json]
       memtrial parse-log --detect <FILE> [--json]
       memtrial parse-log --learn <LOG=OUTCOMES>... [-o <FILE>]")]
pub struct Args {
    /// The parser: a name, or a .toml file that describes it
    #[arg(required_unless_present_any = ["list", "detect", "learn"])]
    name: Option<String>,
    /// The log; - is standard input
    #[arg(default_value = "-", requires = "name")]
    file: PathBuf,
    /// How the log is read
    #[arg(long, value_enum, default_value_t = RulesName::Strict)]
    rules: RulesName,
    /// Print every result with its line, what upstream calls it, groups and failures of suites
    #[arg(long, conflicts_with_all = ["list", "detect", "learn"])]
    full: bool,
    /// List the parsers
    #[arg(long, conflicts_with_all = ["name", "detect", "learn"])]
    list: bool,
    /// Tell which parsers read this log, and why; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "learn"])]
    detect: Option<PathBuf>,
    /// Propose a description of a parser from logs whose outcomes, {test: status} as JSON, are known
    #[arg(long, value_name = "LOG=OUTCOMES", num_args = 1.., value_parser = pair, conflicts_with = "name")]
    learn: Vec<(PathBuf, PathBuf)>,
    /// Where the proposed description goes [default: standard output]
    #[arg(short, long, value_name = "FILE", requires = "learn")]
    output: Option<PathBuf>,
    /// Print JSON (of --list, --detect and --learn)
    #[arg(long)]
    json: bool,
}

fn pair(text: &str) -> Result<(PathBuf, PathBuf), String> {
    let (log, outcomes) = text.split_once('=').ok_or("expected LOG=OUTCOMES.json")?;
    Ok((log.into(), outcomes.into()))
}

pub async fn run(args: Args) -> Outcome {
    if args.list {
        return list(args.json);
    }
    if let Some(file) = &args.detect {
        return detected(file, args.json);
    }
    if !args.learn.is_empty() {
        return learnt(&args);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let parser = LogParser::choose(name).map_err(Failure::input)?;
    let rules = Rules::from(args.rules);
    let mut log = Utf8Watch { inner: open(&args.file)?, tail: Vec::new(), lossy: false };
    let map = parser.read(BufReader::with_capacity(1 << 16, &mut log), rules).map_err(Failure::input)?;
    if log.lossy() {
        ui::note(&format!("warning: {} is not all UTF-8; other bytes became U+FFFD", args.file.display()));
    }
    if args.full {
        ui::json(&map)?;
    } else {
        ui::json(&map.statuses)?;
    }
    Ok(Exit::Done)
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(fs_err::File::open(path).map_err(Failure::input)?))
}

/// Passes a stream on and sees whether it is UTF-8.
struct Utf8Watch<R> {
    inner: R,
    /// The begin of a character that the next piece may end.
    tail: Vec<u8>,
    lossy: bool,
}

impl<R> Utf8Watch<R> {
    fn lossy(&self) -> bool {
        self.lossy || !self.tail.is_empty()
    }
}

impl<R: Read> Read for Utf8Watch<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if !self.lossy {
            let mut seen = std::mem::take(&mut self.tail);
            seen.extend_from_slice(&buffer[..read]);
            match std::str::from_utf8(&seen) {
                Ok(_) => {}
                Err(error) if error.error_len().is_none() => self.tail = seen.split_off(error.valid_up_to()),
                Err(_) => self.lossy = true,
            }
        }
        Ok(read)
    }
}

/// A parser, as `--list` shows it.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    aliases: Vec<&'static str>,
    origin: &'static str,
    language: &'static str,
    framework: &'static str,
    upstream_rules: bool,
    reads: Vec<&'static str>,
}

impl Row {
    fn new(parser: &'static Parser) -> Self {
        Self {
            name: parser.name,
            aliases: aliases(parser),
            origin: parser.origin.as_str(),
            language: parser.language,
            framework: parser.framework,
            upstream_rules: parser.has_upstream(),
            reads: parser.reads.iter().map(|format| format.name).collect(),
        }
    }
}

fn list(json: bool) -> Outcome {
    let rows: Vec<Row> = parsers().map(Row::new).collect();
    if json {
        ui::json(&rows)?;
        return Ok(Exit::Done);
    }
    let width = |text: fn(&Row) -> usize| rows.iter().map(text).max().unwrap_or(0);
    let name = width(|row| row.origin.len() + 1 + row.name.len());
    let (language, framework) = (width(|row| row.language.len()), width(|row| row.framework.len()));
    for row in &rows {
        let full = format!("{}:{}", row.origin, row.name);
        let mut more = vec![if row.upstream_rules { "upstream, strict" } else { "strict" }.to_owned()];
        if !row.reads.is_empty() {
            more.push(format!("reads {}", row.reads.join(", ")));
        }
        if !row.aliases.is_empty() {
            more.push(format!("also {}", row.aliases.join(", ")));
        }
        let more = more.join("; ");
        ui::data(&format!("{full:name$}  {:language$}  {:framework$}  {more}", row.language, row.framework));
    }
    Ok(Exit::Done)
}

fn detected(file: &Path, json: bool) -> Outcome {
    let mut log = Vec::new();
    open(file)?.read_to_end(&mut log).map_err(Failure::input)?;
    let found = detect(&String::from_utf8_lossy(&log));
    if json {
        ui::json(&found)?;
    } else {
        tell(&found);
    }
    Ok(if found.candidates.is_empty() { Exit::Negative } else { Exit::Done })
}

fn tell(found: &Detection) {
    if found.candidates.is_empty() {
        ui::data("no parser reads a result from this log");
    }
    for candidate in &found.candidates {
        ui::data(&format!(
            "{}:{}  {}: {} results, {} lines unexplained",
            candidate.origin, candidate.name, candidate.framework, candidate.results, candidate.unexplained
        ));
        for reason in &candidate.reasons {
            ui::data(&format!("    {reason}"));
        }
    }
    for reason in &found.notes {
        ui::note(reason);
    }
}

fn learnt(args: &Args) -> Outcome {
    let mut examples = Vec::new();
    for (log, outcomes) in &args.learn {
        let bytes = fs_err::read(log).map_err(Failure::input)?;
        examples.push(Example {
            name: log.display().to_string(),
            log: String::from_utf8_lossy(&bytes).into_owned(),
            outcomes: read_outcomes(outcomes)?,
        });
    }
    let Learnt { description, report } = learn(&examples).ok_or_else(|| {
        Failure::input(anyhow!("no line of these logs tells an outcome that is known; nothing to learn"))
    })?;
    let text = description.to_toml().map_err(Failure::input)?;
    match &args.output {
        Some(path) => memtrial::grade::files::write(path, text.as_bytes())?,
        None if !args.json => ui::data(text.trim_end()),
        None => {}
    }
    if args.json {
        ui::json(&report)?;
    }
    for one in &report {
        ui::note(&one.to_string());
    }
    Ok(if report.iter().all(|one| one.is_perfect()) { Exit::Done } else { Exit::Negative })
}

fn read_outcomes(path: &Path) -> Result<BTreeMap<String, Status>, Failure> {
    let file = BufReader::new(fs_err::File::open(path).map_err(Failure::input)?);
    serde_json::from_reader(file).map_err(|error| {
        Failure::input(anyhow!("{}: no object of tests and statuses: {error}", path.display()))
    })
}
