//! Which parser reads a log: telltale lines name runners, then the parsers of those runners try.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::RegexSet;
use serde::Serialize;

use super::table::{Origin, Parser, Rules, parsers};
use super::telltales::{RUNNERS, Runner};
use super::{Status, text};

/// Runners whose parsers try the whole log.
const BEST: usize = 6;
/// Bytes that parsers of unknown runners try.
const SAMPLE: usize = 1 << 18;
/// Longer lines, in bytes, are no telltales.
const LINE: usize = 1 << 14;

/// What is known of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// Parsers that read results from it, best first.
    pub candidates: Vec<Candidate>,
    /// What else to know: runners that are seen but read by no parser.
    pub notes: Vec<String>,
}

/// A parser that reads results from a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Its name.
    pub name: &'static str,
    /// Its origin.
    pub origin: &'static str,
    /// Its language.
    pub language: &'static str,
    /// Its runner.
    pub framework: &'static str,
    /// How many tests it reads under strict rules.
    pub results: usize,
    /// Lines that look like results of its runner, and that it reads nothing from.
    pub unexplained: usize,
    /// Other parsers that read the very same.
    pub same: Vec<String>,
    /// What speaks for it.
    pub reasons: Vec<String>,
}

/// The telltales of all runners: one pass over the log looks for all.
struct Telltales {
    set: RegexSet,
    /// Of each pattern: the runner, and whether it is a frame.
    of: Vec<(usize, bool)>,
}

static TELLTALES: LazyLock<Telltales> = LazyLock::new(|| {
    let (mut patterns, mut of) = (Vec::<&str>::new(), Vec::new());
    for (number, runner) in RUNNERS.iter().enumerate() {
        for (list, frame) in [(runner.frames, true), (runner.results, false)] {
            patterns.extend(list);
            of.extend(list.iter().map(|_| (number, frame)));
        }
    }
    let set = RegexSet::new(patterns).unwrap_or_else(|_| unreachable!("the patterns are literals"));
    Telltales { set, of }
});

/// What a runner's telltales found.
#[derive(Default, Clone)]
struct Evidence {
    /// Kinds of frames seen.
    frames: BTreeSet<usize>,
    /// The first lines seen of each pattern.
    first: Vec<(usize, usize, String)>,
    /// The lines that look like results.
    results: Vec<usize>,
}

/// Says which parsers read this log.
pub fn detect(log: &str) -> Detection {
    let evidence = look(log);
    let mut order: Vec<usize> = (0..RUNNERS.len()).filter(|n| !evidence[*n].first.is_empty()).collect();
    order.sort_by_key(|n| (Reverse(evidence[*n].frames.len()), Reverse(evidence[*n].results.len())));
    let mut tried: Vec<Trial> = Vec::new();
    let mut names = BTreeSet::new();
    for parser in parsers() {
        if !names.insert(parser.name) {
            continue;
        }
        let known = RUNNERS.iter().any(|runner| reads(parser, runner));
        let seen = order.iter().take(BEST).find(|n| reads(parser, &RUNNERS[**n])).copied();
        match (known, seen) {
            (true, None) => {}
            (_, Some(runner)) => tried.extend(attempt(parser, log, Some(&evidence[runner]))),
            (false, None) => tried.extend(attempt(parser, sample(log), None)),
        }
    }
    tried.sort_by_key(|trial| trial.rank);
    let unread = order
        .iter()
        .filter(|n| evidence[**n].frames.len() > 1 && !parsers().any(|parser| reads(parser, &RUNNERS[**n])));
    let notes = unread.map(|n| format!("the log looks like {}, which no parser reads", RUNNERS[*n].words[0]));
    Detection { notes: notes.collect(), candidates: merge(tried) }
}

fn reads(parser: &Parser, runner: &Runner) -> bool {
    let framework = parser.framework.to_lowercase();
    runner.words.iter().any(|word| framework.contains(word) || parser.name.contains(word))
}

fn look(log: &str) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::default(); RUNNERS.len()];
    for (number, line) in (1..).zip(log.split('\n')) {
        if line.len() > LINE {
            continue;
        }
        let line = text::strip_ansi(line.trim_end_matches('\r'));
        for pattern in TELLTALES.set.matches(&line) {
            let (runner, frame) = TELLTALES.of[pattern];
            let one = &mut evidence[runner];
            if one.first.iter().all(|(seen, ..)| *seen != pattern) {
                one.first.push((pattern, number, line.trim().chars().take(100).collect()));
            }
            if frame {
                one.frames.insert(pattern);
            } else if one.results.last() != Some(&number) {
                one.results.push(number);
            }
        }
    }
    evidence
}

/// The begin of a log, whole lines.
fn sample(log: &str) -> &str {
    if log.len() <= SAMPLE {
        return log;
    }
    let cut = (0..=SAMPLE).rev().find(|at| log.is_char_boundary(*at)).unwrap_or(0);
    log[..cut].rsplit_once('\n').map_or("", |(whole, _)| whole)
}

struct Trial {
    /// Best first: frames seen, tests read, lines unexplained, how special the parser is, memtrial's own last.
    rank: (bool, Reverse<usize>, usize, usize, Origin),
    candidate: Candidate,
    /// What it reads.
    read: BTreeMap<String, Status>,
}

fn attempt(parser: &'static Parser, log: &str, evidence: Option<&Evidence>) -> Option<Trial> {
    let map = parser.parse(log, Rules::Strict).ok()?;
    if map.is_empty() {
        return None;
    }
    let read: BTreeSet<usize> = map.results().map(|seen| seen.line).collect();
    let evidence = evidence.cloned().unwrap_or_default();
    let unexplained = evidence.results.iter().filter(|line| !read.contains(line)).count();
    let special = parser.framework.matches(", ").count();
    let mut reasons: Vec<String> =
        evidence.first.iter().map(|(_, line, text)| format!("line {line}: {text}")).collect();
    if reasons.is_empty() {
        reasons.push("it reads results, though no line names its runner".to_owned());
    }
    let groups = map.groups.into_iter().map(|group| (group.name, group.status));
    let all: BTreeMap<String, Status> = groups.chain(map.statuses).collect();
    let results = all.len();
    Some(Trial {
        rank: (evidence.frames.is_empty(), Reverse(results), unexplained, special, parser.origin),
        candidate: Candidate {
            name: parser.name,
            origin: parser.origin.as_str(),
            language: parser.language,
            framework: parser.framework,
            results,
            unexplained,
            same: Vec::new(),
            reasons,
        },
        read: all,
    })
}

/// Puts parsers that read the same under the best of them.
fn merge(tried: Vec<Trial>) -> Vec<Candidate> {
    let mut kept: Vec<Trial> = Vec::new();
    for trial in tried {
        match kept.iter_mut().find(|best| best.read == trial.read) {
            Some(best) => best.candidate.same.push(trial.candidate.name.to_owned()),
            None => kept.push(trial),
        }
    }
    kept.into_iter().map(|trial| trial.candidate).collect()
}
