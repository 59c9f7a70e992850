//! Does an injected block give its target's answer away?
//!
//! Memory may hold what earlier runs did, and an earlier pull request may hold the target's fix: a backport, a first
//! attempt that was reopened, a change that the target repeats. The causal rule lets such runs pass. [`scan`] compares the
//! block and the runs that it derives from with what only the evaluator knows.
//!
//! Each finding has a weight in `[0, 1]`; together they give the verdict: [`SUSPICIOUS`] and [`LEAK`] are its
//! thresholds.
//!
//! | kind | what counts | weight |
//! |---|---|---|
//! | shared lines | telling lines that the gold or test patch adds and the block holds | 0.2 for one, 0.6 for two in a row, 1 for three; the share of the patch, where that is more; lines of tests at most 0.5 where the base commit cannot be asked |
//! | new identifiers | names that only the fix brings | 0.4 for each that says something, 0.15 for others; 0.1 and at most 0.3 where the base commit cannot be asked |
//! | test names | names of tests that must flip | 0.4 each for tests that the base commit lacks, 0.1 for others; 0.3 where it cannot be asked |
//! | similar issue | the source's issue says what the target's says | 0.5 from 60 % of common shingles, 1 from 80 %, or where the titles are the same |
//! | refers to target | the source's issue or the block names the target's pull request | 0.5; 1 as a backport of it |
//! | similar patch | share of the gold patch's changed lines that the source changed too | 0.6 from [`PATCH_OVERLAP`], 1 from 0.6 |

mod issue;
mod lines;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::diff::{Diff, Sign, identifiers};
use crate::task::{InstanceId, Task};
use lines::{Haystack, is_telling};

/// From this sum of weights on a block is suspicious.
pub const SUSPICIOUS: f64 = 0.4;

/// From this sum of weights on a block is a leak.
pub const LEAK: f64 = 1.0;

/// From this share of common changed lines on a source's patch is a near-duplicate of the gold patch.
pub const PATCH_OVERLAP: f64 = 0.3;

/// The most that lines of tests weigh where the base commit cannot be asked.
const UNASKED: f64 = 0.5;

/// A run that a block derives from, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The task of the run.
    pub id: InstanceId,
    /// The issue text that it was given.
    pub issue: Option<String>,
    /// The patch that it submitted.
    pub patch: Option<String>,
}

/// What a finding rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeakKind {
    /// Lines that the gold patch adds stand in the block.
    GoldLines,
    /// Lines that the test patch adds stand in the block.
    TestLines,
    /// Names that exist only after the fix stand in the block.
    NewIdentifiers,
    /// Names of tests that must flip stand in the block.
    TestNames,
    /// A source's issue is nearly the target's.
    SimilarIssue,
    /// A source's issue or the block names the target's pull request.
    RefersToTarget,
    /// A source's patch is nearly the gold patch.
    SimilarPatch,
}

impl LeakKind {
    /// Its name as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::GoldLines => "gold-lines",
            Self::TestLines => "test-lines",
            Self::NewIdentifiers => "new-identifiers",
            Self::TestNames => "test-names",
            Self::SimilarIssue => "similar-issue",
            Self::RefersToTarget => "refers-to-target",
            Self::SimilarPatch => "similar-patch",
        }
    }
}

/// One sign of a leak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeakFinding {
    /// What it rests on.
    pub kind: LeakKind,
    /// What was found, short.
    pub evidence: String,
    /// How much it weighs, in `[0, 1]`.
    pub weight: f64,
}

/// What a block is, by the sum of its findings' weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeakVerdict {
    /// Below [`SUSPICIOUS`].
    #[default]
    None,
    /// From [`SUSPICIOUS`] on.
    Suspicious,
    /// From [`LEAK`] on.
    Leak,
}

impl LeakVerdict {
    /// Its name as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Suspicious => "suspicious",
            Self::Leak => "leak",
        }
    }
}

/// What a scan came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LeakScan {
    /// What the block is.
    pub verdict: LeakVerdict,
    /// Why, the heaviest first.
    pub findings: Vec<LeakFinding>,
}

impl LeakScan {
    fn of(mut findings: Vec<LeakFinding>) -> Self {
        findings.sort_by(|a, b| {
            b.weight.total_cmp(&a.weight).then(a.kind.cmp(&b.kind)).then_with(|| a.evidence.cmp(&b.evidence))
        });
        // in hundredths: sums of tenths must not miss a threshold by their last bit
        let sum: f64 = findings.iter().map(|finding| (finding.weight * 100.0).round()).sum();
        let verdict = match sum / 100.0 {
            sum if sum >= LEAK => LeakVerdict::Leak,
            sum if sum >= SUSPICIOUS => LeakVerdict::Suspicious,
            _ => LeakVerdict::None,
        };
        Self { verdict, findings }
    }

    /// Whether the block is suspicious or a leak.
    pub fn is_flagged(&self) -> bool {
        self.verdict != LeakVerdict::None
    }
}

/// Compares an injected block, and the runs that it derives from, with a target's answer.
///
/// `exists_at_base` says whether a text stands somewhere in the repository at the base commit, as whole words
/// (`git grep -w -F`): what stands there is no news. Without it names and tests weigh less. It is asked only about
/// texts that stand in the block.
pub fn scan(
    block: &str,
    sources: &[Source],
    task: &Task,
    exists_at_base: Option<&dyn Fn(&str) -> bool>,
) -> LeakScan {
    let (gold, test) = (Diff::read(&task.evaluator.patch), Diff::read(&task.evaluator.test_patch));
    let known = Known { issue: &task.solver.problem_statement, at_base: exists_at_base };
    let block = Haystack::new(block);
    let mut findings = Vec::new();
    findings.extend(shared_lines(&block, &gold, LeakKind::GoldLines, &known));
    findings.extend(shared_lines(&block, &test, LeakKind::TestLines, &known));
    let tests = test_names(&task.evaluator.fail_to_pass);
    findings.extend(named_tests(&block, &tests, &known));
    findings.extend(new_identifiers(&block, &[&gold, &test], &tests, &known));
    findings.extend(issue::refers(&block.text, &task.solver.instance_id, &task.solver.repo, "the block"));
    for source in sources {
        if let Some(text) = &source.issue {
            findings.extend(issue::similar(&source.id, text, &task.solver.problem_statement));
            let place = format!("the issue of {}", source.id);
            findings.extend(issue::refers(text, &task.solver.instance_id, &task.solver.repo, &place));
        }
        if let Some(patch) = &source.patch {
            findings.extend(similar_patch(&source.id, &Diff::read(patch), &gold));
        }
    }
    LeakScan::of(findings)
}

/// What is no news to the solver.
struct Known<'a> {
    issue: &'a str,
    at_base: Option<&'a dyn Fn(&str) -> bool>,
}

impl Known<'_> {
    fn is_at_base(&self, text: &str) -> bool {
        self.at_base.is_some_and(|at_base| at_base(text))
    }
}

/// Lines that a patch adds and the block holds. Lines that are next to each other in the patch make a run, wherever in the
/// block they stand: neither another order nor another record hides them.
fn shared_lines(block: &Haystack, patch: &Diff, kind: LeakKind, known: &Known<'_>) -> Option<LeakFinding> {
    let issue = Haystack::new(known.issue);
    let old: BTreeSet<String> = patch.lines(&[Sign::Removed, Sign::Context]).map(lines::compact).collect();
    let (mut points, mut telling, mut shared, mut characters) = (0.0, 0usize, 0usize, 0usize);
    let mut sample = "";
    for file in &patch.files {
        let mut run = 0usize;
        for line in file.lines.iter().filter(|line| line.sign == Sign::Added) {
            let compact = lines::compact(&line.text);
            if !is_telling(&line.text) || old.contains(&compact) {
                continue;
            }
            telling += 1;
            let Some(found) = block.holds(&line.text).filter(|_| issue.holds(&line.text).is_none()) else {
                run = 0;
                continue;
            };
            if known.is_at_base(line.text.trim()) {
                run = 0;
                continue;
            }
            shared += 1;
            run += 1;
            characters += compact.chars().count();
            points += found.weight() * if run == 1 { 0.2 } else { 0.4 };
            if line.text.trim().len() > sample.len() {
                sample = line.text.trim();
            }
        }
    }
    if shared == 0 {
        return None;
    }
    let share = shared as f64 / telling as f64;
    // the whole of a short patch is the answer
    let whole = if characters >= 20 { share } else { 0.0 };
    let which = if kind == LeakKind::GoldLines { "gold" } else { "test" };
    let evidence = format!("{shared} of {telling} lines of the {which} patch, as {}", quoted(sample));
    // much of what tests add is common to all tests
    let most = if kind == LeakKind::TestLines && known.at_base.is_none() { UNASKED } else { 1.0 };
    Some(finding(kind, evidence, f64::max(points, whole).min(most)))
}

/// The own names of tests, without file, class and parameters.
fn test_names(tests: &[String]) -> BTreeSet<&str> {
    let own = tests.iter().map(|test| {
        let name = test.rsplit("::").next().unwrap_or(test);
        let name = name.split(['[', '(']).next().unwrap_or(name).trim();
        name.rsplit(['/', '.']).next().unwrap_or(name)
    });
    own.filter(|name| is_specific(name)).collect()
}

fn named_tests(block: &Haystack, tests: &BTreeSet<&str>, known: &Known<'_>) -> Option<LeakFinding> {
    let issue = words(known.issue);
    let mut found: Vec<&str> =
        tests.iter().copied().filter(|test| block.has_word(test) && !issue.contains(test)).collect();
    let weight: f64 = found
        .iter()
        .map(|test| match known.at_base {
            None => 0.3,
            Some(at_base) if at_base(test) => 0.1,
            Some(_) => 0.4,
        })
        .sum();
    found.truncate(3);
    let evidence = format!("names of tests that must flip: {}", found.join(", "));
    (!found.is_empty()).then(|| finding(LeakKind::TestNames, evidence, weight))
}

/// Names in added lines that stand neither in the other lines of the patches, nor in the issue, nor at the base commit.
fn new_identifiers(
    block: &Haystack,
    patches: &[&Diff],
    tests: &BTreeSet<&str>,
    known: &Known<'_>,
) -> Option<LeakFinding> {
    let of = |signs: &'static [Sign]| {
        patches.iter().flat_map(move |patch| patch.lines(signs)).flat_map(identifiers)
    };
    let issue = words(known.issue);
    let mut old: BTreeSet<&str> = of(&[Sign::Removed, Sign::Context]).collect();
    let headings = patches.iter().flat_map(|patch| &patch.files).flat_map(|file| &file.headings);
    old.extend(headings.flat_map(|heading| identifiers(heading)));
    let new: BTreeSet<&str> = of(&[Sign::Added])
        .filter(|name| {
            name.len() >= 5 && !old.contains(name) && !issue.contains(name) && !tests.contains(name)
        })
        .collect();
    let mut found: Vec<&str> = new.into_iter().filter(|name| block.has_word(name)).collect();
    let weight = match known.at_base {
        Some(at_base) => {
            found.retain(|name| !at_base(name));
            found.iter().map(|name| if is_specific(name) { 0.4 } else { 0.15 }).sum()
        }
        None => {
            found.retain(|name| is_specific(name));
            f64::min(0.3, 0.1 * found.len() as f64)
        }
    };
    found.sort_by_key(|name| (std::cmp::Reverse(name.len()), *name));
    found.truncate(4);
    let which =
        if known.at_base.is_some() { "names that only the fix brings" } else { "names that the fix adds" };
    let evidence = format!("{which}: {}", found.join(", "));
    (!found.is_empty()).then(|| finding(LeakKind::NewIdentifiers, evidence, weight))
}

/// The share of the gold patch's telling changed lines that a source changed in the same way.
fn similar_patch(source: &InstanceId, patch: &Diff, gold: &Diff) -> Option<LeakFinding> {
    let changed = |diff: &Diff| -> BTreeSet<(Sign, String)> {
        let lines = diff.files.iter().flat_map(|file| &file.lines);
        let changed = lines.filter(|line| line.sign != Sign::Context && is_telling(&line.text));
        changed.map(|line| (line.sign, lines::compact(&line.text))).collect()
    };
    let (own, gold) = (changed(patch), changed(gold));
    let common = own.intersection(&gold).count();
    let share = common as f64 / gold.len().max(1) as f64;
    if common == 0 || share < PATCH_OVERLAP {
        return None;
    }
    let evidence = format!("{source} changed {common} of {} lines that the gold patch changes", gold.len());
    // one line of a short patch may be a coincidence
    let weight = match (common, share) {
        (2.., 0.6..) => 1.0,
        (1, ..0.6) => 0.3,
        _ => 0.6,
    };
    Some(finding(LeakKind::SimilarPatch, evidence, weight))
}

fn words(text: &str) -> BTreeSet<&str> {
    identifiers(text).collect()
}

/// Whether a name is made of several words and long enough not to be met by chance.
fn is_specific(name: &str) -> bool {
    let inner = name.trim_matches('_');
    let joined = inner.contains('_');
    let humps = inner.chars().zip(inner.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    inner.chars().count() >= 8 && (joined || humps)
}

fn finding(kind: LeakKind, evidence: String, weight: f64) -> LeakFinding {
    // two digits are all that it means
    LeakFinding { kind, evidence, weight: (weight.clamp(0.0, 1.0) * 100.0).round() / 100.0 }
}

fn quoted(text: &str) -> String {
    format!("{:?}", crate::audit::answer::shorten_to(text, 80))
}

#[cfg(test)]
#[path = "leak_tests.rs"]
mod tests;
