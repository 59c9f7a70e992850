//! Proposes a description from logs whose outcomes are known.
//!
//! Lines that hold a known test become templates ([`template`]): what surrounds the name, with numbers, durations and
//! blanks made general. The templates that explain most are tried one after another; one is kept where it explains
//! tests that nothing explained before and adds next to no false result. Names that no line holds whole are looked
//! for as suite headers, by indentation, and a title.

mod names;
mod report;
mod template;

use std::collections::{BTreeMap, BTreeSet};

pub use report::{Report, Wrong};

use super::super::status::Status;
use super::super::text;
use super::file::{Context, Duplicates, Ended, File, Line};
use super::{Description, Rules};
use names::Names;
use template::Template;

/// Templates that are tried.
const TRIED: usize = 60;
/// How many right results a rule must add for each wrong one; the second where nothing meets the first.
const TOLERANCES: [usize; 2] = [20, 2];
/// Longer lines, in bytes, are no examples.
const LINE: usize = 4000;
/// What may stand between the parts of a name.
const JOINERS: [&str; 9] = [" > ", " › ", " | ", " / ", " - ", "::", ".", "/", " "];

/// A log and what it should be read as.
#[derive(Debug, Clone)]
pub struct Example {
    /// What reports call it.
    pub name: String,
    /// The log.
    pub log: String,
    /// Each test's status.
    pub outcomes: BTreeMap<String, Status>,
}

/// A proposed description, and what it makes of the examples.
#[derive(Debug)]
pub struct Learnt {
    /// The proposal.
    pub description: Description,
    /// One for each example.
    pub report: Vec<Report>,
}

/// How names are put together.
#[derive(Clone, Copy)]
struct Shape {
    joiner: &'static str,
    /// The least indentation of a suite's header; `None` where lines hold whole names.
    headers: Option<usize>,
}

/// Proposes a description; `None` where no line tells a known outcome.
pub fn learn(examples: &[Example]) -> Option<Learnt> {
    let whole = Shape { joiner: JOINERS[0], headers: None };
    let known: usize = examples.iter().map(|example| example.outcomes.len()).sum();
    let mut best = propose(examples, whole);
    let good = |found: &Option<(Score, File)>| {
        found.as_ref().is_some_and(|(score, _)| score.right * 20 >= known * 19)
    };
    if !good(&best) {
        let holds = |joiner: &&str| {
            examples.iter().any(|example| example.outcomes.keys().any(|name| name.contains(*joiner)))
        };
        'all: for joiner in JOINERS.into_iter().filter(|joiner| holds(joiner)) {
            for least in [0, 1, 2, 4] {
                let found = propose(examples, Shape { joiner, headers: Some(least) });
                if rank(&found) > rank(&best) {
                    best = found;
                }
                if good(&best) {
                    break 'all;
                }
            }
        }
    }
    let (_, file) = best.map(|(score, file)| settle_duplicates(examples, score, file))?;
    let description = Description::new(file).ok()?;
    let report = examples.iter().map(|example| Report::new(&description, example)).collect();
    Some(Learnt { description, report })
}

/// What a description makes of all examples together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Score {
    right: usize,
    wrong: usize,
}

fn rank(found: &Option<(Score, File)>) -> isize {
    let value = |count: usize| isize::try_from(count).unwrap_or(isize::MAX);
    found.as_ref().map_or(0, |(score, _)| value(score.right) - 2 * value(score.wrong))
}

fn score(examples: &[Example], file: &File) -> Option<Score> {
    let description = Description::new(file.clone()).ok()?;
    let mut score = Score { right: 0, wrong: 0 };
    for example in examples {
        let map = description.parse(&example.log, Rules::Strict).ok()?;
        let right =
            map.statuses.iter().filter(|(name, status)| example.outcomes.get(*name) == Some(status)).count();
        score.right += right;
        score.wrong += map.statuses.len() - right;
    }
    Some(score)
}

/// The policy for several results of a test that fits best.
fn settle_duplicates(examples: &[Example], score_now: Score, file: File) -> (Score, File) {
    let policies =
        [Duplicates::Last, Duplicates::KeepFailure].map(|duplicates| File { duplicates, ..file.clone() });
    let scored = policies.into_iter().filter_map(|file| Some((score(examples, &file)?, file)));
    scored.fold((score_now, file), |best, next| if next.0.right > best.0.right { next } else { best })
}

/// The best description of this shape.
fn propose(examples: &[Example], shape: Shape) -> Option<(Score, File)> {
    let mut seen: BTreeMap<Template, Sightings> = BTreeMap::new();
    for (number, example) in examples.iter().enumerate() {
        sight(number, example, shape, &mut seen);
    }
    let statuses: Vec<BTreeSet<Ended>> = examples
        .iter()
        .map(|example| example.outcomes.values().filter_map(|status| Ended::try_from(status).ok()).collect())
        .collect();
    let mut candidates: Vec<Candidate> = template::generalise(seen)
        .into_iter()
        .filter_map(|(template, sightings)| Candidate::new(template, &sightings, &statuses))
        .collect();
    candidates.sort_by_key(|candidate| std::cmp::Reverse((candidate.telling, candidate.tests)));
    candidates.truncate(TRIED);
    TOLERANCES.iter().find_map(|tolerance| select(examples, shape, &candidates, *tolerance))
}

/// Keeps the candidates that explain more than they get wrong, this many times over.
fn select(
    examples: &[Example],
    shape: Shape,
    candidates: &[Candidate],
    tolerance: usize,
) -> Option<(Score, File)> {
    let (mut kept, mut best): (Vec<Candidate>, _) = (Vec::new(), Score { right: 0, wrong: 0 });
    for candidate in candidates {
        let mut trial = kept.clone();
        trial.push(candidate.clone());
        let Some(now) = score(examples, &write(&trial, shape)) else { continue };
        let (gain, loss) = (now.right.saturating_sub(best.right), now.wrong.saturating_sub(best.wrong));
        if gain > tolerance * loss {
            (kept, best) = (trial, now);
        }
    }
    (!kept.is_empty()).then(|| (best, write(&kept, shape)))
}

/// The tests that stand in lines of one template.
#[derive(Default, Clone)]
struct Sightings {
    /// Example, test, status.
    tests: BTreeSet<(usize, String, Ended)>,
}

impl Sightings {
    fn join(&mut self, other: Self) {
        self.tests.extend(other.tests);
    }
}

/// Looks for known tests in the lines of an example.
fn sight(number: usize, example: &Example, shape: Shape, seen: &mut BTreeMap<Template, Sightings>) {
    let names = Names::new(example.outcomes.keys());
    let mut headers: Vec<(usize, String)> = Vec::new();
    for line in example.log.split(['\n', '\r']) {
        let line = text::strip_ansi(line);
        let line = line.trim_end();
        if line.is_empty() || line.len() > LINE {
            continue;
        }
        let body = line.trim_start();
        let indent = line.chars().count() - body.chars().count();
        let mut above = String::new();
        if shape.headers.is_some() {
            headers.retain(|(own, _)| *own < indent);
            for (_, header) in &headers {
                above.push_str(header);
                above.push_str(shape.joiner);
            }
        }
        match names.in_line(&above, body) {
            Some((start, name)) => {
                let end = start + name.len() - above.len();
                let template = Template::new(indent > 0, &body[..start], &body[end..]);
                if let Ok(status) = Ended::try_from(&example.outcomes[name]) {
                    let spaced = body[start..end].contains(char::is_whitespace);
                    let template = template.with_blanks(spaced);
                    seen.entry(template).or_default().tests.insert((number, name.to_owned(), status));
                }
            }
            None if shape.headers.is_some_and(|least| indent >= least) => {
                headers.push((indent, body.to_owned()))
            }
            None => {}
        }
    }
}

/// A rule that may be kept.
#[derive(Debug, Clone)]
struct Candidate {
    template: Template,
    status: Ended,
    tests: usize,
    /// Whether a word or a mark of it tells the status.
    telling: bool,
}

impl Candidate {
    /// `None` where the template does not tell a status: its tests ended in different ways, or nothing but the
    /// absence of other outcomes speaks for it.
    fn new(template: Template, sightings: &Sightings, statuses: &[BTreeSet<Ended>]) -> Option<Self> {
        let mut counts: BTreeMap<Ended, usize> = BTreeMap::new();
        for (_, _, status) in &sightings.tests {
            *counts.entry(*status).or_default() += 1;
        }
        let (status, most) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let telling = template.tells(status);
        let others = sightings.tests.iter().any(|(example, ..)| statuses[*example].len() > 1);
        let pure = most * 10 >= sightings.tests.len() * 9;
        (pure && (telling || others)).then_some(Self { template, status, tests: most, telling })
    }
}

/// Writes rules as a description: special ones first, rules that differ in one word as one.
fn write(rules: &[Candidate], shape: Shape) -> File {
    let mut rules = rules.to_vec();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.template.literals()));
    let (mut line, mut status) = (Vec::new(), BTreeMap::new());
    let mut done = vec![false; rules.len()];
    for first in 0..rules.len() {
        if done[first] {
            continue;
        }
        let mut words = BTreeMap::new();
        let mut place = None;
        for other in first + 1..rules.len() {
            let Some((at, own, theirs)) = rules[first].template.differs_in(&rules[other].template) else {
                continue;
            };
            let fits = |word: &str, ended| status.get(word).is_none_or(|known| *known == ended);
            if place.is_none_or(|place| place == at)
                && fits(own, rules[first].status)
                && fits(theirs, rules[other].status)
                && !done[other]
            {
                place = Some(at);
                words.insert(own.to_owned(), rules[first].status);
                words.insert(theirs.to_owned(), rules[other].status);
                done[other] = true;
            }
        }
        let alternatives: Vec<String> = words.keys().map(|word| regex::escape(word)).collect();
        let place = place.map(|at| (at, alternatives.join("|")));
        line.push(Line {
            pattern: rules[first].template.pattern(place.as_ref(), shape.headers.is_some()),
            status: place.is_none().then_some(rules[first].status),
            within: None,
            not_in: None,
            context: true,
            group: false,
        });
        status.extend(words);
    }
    let headers = shape.headers.map(|least| Context {
        pattern: format!(r"^(?<indent>\s{{{least},}})(?<name>\S.*?)\s*$"),
        end: None,
        within: None,
    });
    File {
        name: "learnt".to_owned(),
        language: String::new(),
        framework: String::new(),
        joiner: shape.joiner.to_owned(),
        duplicates: Duplicates::Worst,
        strip_durations: false,
        status,
        section: Vec::new(),
        context: headers.into_iter().collect(),
        line,
        failure: Vec::new(),
    }
}
