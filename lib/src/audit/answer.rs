//! What the answer would look like if it stood in a file: the texts that are searched for.
//!
//! A line that the gold patch adds is searched for if it is long enough to mean something and stands in no file of the
//! base commit. One such line is often a coincidence, so a file is an alarm only where it holds a good part of what the
//! patch adds to one file (see [`Answer::judge`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::grade::patch::changes;
use crate::task::Task;

/// The fewest characters of a line that is searched for.
const SHORT_LINE: usize = 10;

/// The fewest characters that the lines found in a file must have together.
const FEW_CHARACTERS: usize = 40;

/// The fewest characters of a lone line: of a patch that adds no other.
const LONE_LINE: usize = 20;

/// The fewest characters of a line of hidden text.
const HIDDEN_LINE: usize = 40;

/// At most this many lines of one file of a patch are searched for, the longest first.
const MOST_LINES: usize = 60;

/// What a text that is searched for is a piece of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Piece {
    /// A line that the gold patch adds, to this file.
    Gold(String),
    /// A line that the test patch adds, to this file.
    Test(String),
    /// The name of a test that must flip to passing.
    TestName,
    /// A line of the hidden fields: hints, the pull request's text.
    Hidden,
    /// The task's id.
    Id,
    /// A column's name that only rows of tasks have.
    Column,
    /// The pull request's address.
    PullRequest,
    /// The header of a diff of a file of the patches.
    DiffHeader,
    /// The head of a git bundle.
    Bundle,
    /// A piece of the address of the package's own tarballs.
    Tarball,
}

/// What is searched for.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    /// Each text, with what it is a piece of and the text it stands for (an escaped line stands for the line).
    texts: BTreeMap<String, (Piece, String)>,
    /// How many lines of each file of a patch are searched for.
    lines: BTreeMap<Piece, BTreeSet<String>>,
    /// Names that the gold patch brings into a source file, by the file's name without ending.
    words: BTreeMap<String, BTreeSet<String>>,
}

/// What was found in one file.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    pieces: BTreeMap<&'a Piece, BTreeSet<&'a str>>,
}

impl Found<'_> {
    /// Whether some text of this kind was found.
    pub(super) fn any(&self, is: impl Fn(&Piece) -> bool) -> bool {
        self.pieces.keys().any(|piece| is(piece))
    }
}

impl<'a> Answer {
    /// What would give a task away. Nothing of it was compared with the base commit yet.
    pub(super) fn of(task: &Task) -> Self {
        let mut answer = Self::default();
        let solver = &task.solver;
        for (patch, gold) in [(&task.evaluator.patch, true), (&task.evaluator.test_patch, false)] {
            for change in changes(patch) {
                let Some(path) = change.new.or(change.old) else { continue };
                answer.add(&format!("diff --git a/{path} "), Piece::DiffHeader);
                answer.add(&format!("+++ b/{path}"), Piece::DiffHeader);
                let piece = if gold { Piece::Gold(path.clone()) } else { Piece::Test(path.clone()) };
                answer.add_lines(&change.added, &piece);
                if gold {
                    answer.add_words(&change.added, stem(&path));
                }
            }
        }
        for test in &task.evaluator.fail_to_pass {
            answer.add_test(test);
        }
        let hidden = &task.hidden;
        let seen: BTreeSet<&str> = solver.problem_statement.lines().map(str::trim).collect();
        for text in [&hidden.hints_text, &hidden.pr_description, &hidden.interface].into_iter().flatten() {
            for line in text.lines().map(str::trim) {
                if line.chars().count() >= HIDDEN_LINE && !seen.contains(line) {
                    answer.add(line, Piece::Hidden);
                }
            }
        }
        answer.add(solver.instance_id.as_str(), Piece::Id);
        for column in ["FAIL_TO_PASS", "PASS_TO_PASS", "test_patch", "hints_text"] {
            answer.add(column, Piece::Column);
        }
        let number = solver.instance_id.number();
        for middle in ["pull", "pulls"] {
            answer.add(&format!("{}/{middle}/{number}", solver.repo), Piece::PullRequest);
        }
        answer.also_bundles()
    }

    /// Bundles alone: where no task is known.
    pub(super) fn unknown() -> Self {
        Self::default().also_bundles()
    }

    fn also_bundles(mut self) -> Self {
        for version in 2..=3 {
            self.add(&format!("# v{version} git bundle"), Piece::Bundle);
        }
        self
    }

    /// The id of a test, and its own name without parameters where that says something. A test whose own name the base
    /// commit has is no news.
    fn add_test(&mut self, test: &str) {
        let own = test.rsplit("::").next().unwrap_or(test);
        let own = own.split('[').next().unwrap_or(own).trim();
        if own.len() >= LONE_LINE / 2 && own != test {
            self.add(own, Piece::TestName);
        }
        if test.chars().count() >= SHORT_LINE && !test.contains(['\n', '\r', '\0']) {
            self.texts.entry(test.to_owned()).or_insert_with(|| (Piece::TestName, own.to_owned()));
        }
    }

    /// Also search for the addresses of the package's own tarballs at npm's registry.
    pub(super) fn also_tarballs(&mut self, names: &BTreeSet<String>) {
        for name in names {
            self.add(&format!("/{name}/-/"), Piece::Tarball);
        }
    }

    fn add_lines(&mut self, added: &str, piece: &Piece) {
        let mut lines: Vec<&str> = added.lines().map(str::trim).filter(|line| is_telling(line)).collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(line.len()), *line));
        lines.dedup();
        for line in lines.into_iter().take(MOST_LINES) {
            if self.texts.contains_key(line) {
                continue;
            }
            self.add(line, piece.clone());
            // as it stands in a JSON text
            let escaped = serde_json::Value::from(line).to_string();
            let escaped = escaped[1..escaped.len() - 1].to_owned();
            self.texts.entry(escaped).or_insert_with(|| (piece.clone(), line.to_owned()));
            self.lines.entry(piece.clone()).or_default().insert(line.to_owned());
        }
    }

    fn add_words(&mut self, added: &str, stem: &str) {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let words = added.lines().filter(|line| !line.trim_start().starts_with('#'));
        let words = words.flat_map(|line| line.split(|c: char| !word(c)));
        let long = words.filter(|word| word.len() >= 7 && !word.starts_with(|c: char| c.is_ascii_digit()));
        self.words.entry(stem.to_owned()).or_default().extend(long.map(str::to_owned));
    }

    fn add(&mut self, text: &str, piece: Piece) {
        let text = text.replace(['\n', '\r', '\0'], " ");
        if !text.trim().is_empty() {
            self.texts.entry(text.clone()).or_insert((piece, text));
        }
    }

    /// Every text that must not stand in the base commit to tell something.
    pub(super) fn questions(&self) -> Vec<&str> {
        let searched = self.texts.iter().filter(|(_, (piece, _))| *piece != Piece::Bundle);
        let texts = searched.flat_map(|(text, (_, stands_for))| [text, stands_for]);
        texts.chain(self.words.values().flatten()).map(String::as_str).collect()
    }

    /// Forgets the texts that stand in a file of the base commit.
    pub(super) fn forget(&mut self, at_base: &BTreeSet<String>) {
        let common = |text: &str| at_base.iter().any(|said| said.contains(text));
        self.texts.retain(|text, (piece, stands_for)| {
            // a row's columns are alarms only together with the id
            matches!(piece, Piece::Column | Piece::Bundle) || !(common(text) || common(stands_for))
        });
        self.lines.values_mut().for_each(|lines| lines.retain(|line| !common(line)));
        self.words.values_mut().for_each(|words| words.retain(|word| !common(word)));
    }

    /// The texts to search for.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }

    /// Those that count at a file's head alone.
    pub(super) fn heads(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().filter(|(_, (piece, _))| *piece == Piece::Bundle).map(|(text, _)| text.as_str())
    }

    /// Those that count anywhere.
    pub(super) fn texts_but_heads(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().filter(|(_, (piece, _))| *piece != Piece::Bundle).map(|(text, _)| text.as_str())
    }

    /// Whether nothing that the gold patch adds can be told from other text.
    pub(super) fn has_no_lines(&self) -> bool {
        !self
            .lines
            .iter()
            .any(|(piece, lines)| matches!(piece, Piece::Gold(_)) && self.is_enough(piece, lines))
    }

    /// Takes in a text that was found; false for one that was not searched for.
    pub(super) fn note(&'a self, found: &mut Found<'a>, text: &str) -> bool {
        let Some((piece, stands_for)) = self.texts.get(text) else { return false };
        found.pieces.entry(piece).or_default().insert(stands_for);
        true
    }

    /// What a file is that holds what was found, in words; `None`: no alarm. In a file of a foreign package
    /// (`foreign`), a lone name of a test says nothing.
    pub(super) fn judge(&self, found: &Found<'_>, foreign: bool) -> Option<Verdict> {
        let of = |wanted: &Piece| found.pieces.get(wanted);
        if of(&Piece::Id).is_some() && of(&Piece::Column).is_some() {
            return Some(Verdict { kind: Kind::Fields, what: "a row of the task's data".into() });
        }
        for (kind, is_kind) in [
            (Kind::Gold, (|p| matches!(p, Piece::Gold(_))) as fn(&Piece) -> bool),
            (Kind::Tests, |p| matches!(p, Piece::Test(_))),
        ] {
            let mut most: Option<(usize, usize, &str, &str)> = None;
            for (piece, lines) in found.pieces.iter().filter(|(piece, _)| is_kind(piece)) {
                let lines: BTreeSet<String> = lines.iter().map(|&line| line.to_owned()).collect();
                let (Piece::Gold(path) | Piece::Test(path)) = piece else { continue };
                if self.is_enough(piece, &lines) && most.is_none_or(|(count, ..)| lines.len() > count) {
                    let total = self.lines.get(piece).map_or(0, BTreeSet::len);
                    let sample = found.pieces.get(piece).and_then(|lines| lines.first()).copied();
                    most = Some((lines.len(), total, path, sample.unwrap_or_default()));
                }
            }
            if let Some((count, total, path, sample)) = most {
                let patch = if kind == Kind::Gold { "gold" } else { "test" };
                let what = format!(
                    "{count} of {total} lines that the {patch} patch adds to {path}, for example {:?}",
                    shorten(sample)
                );
                return Some(Verdict { kind, what });
            }
        }
        let lone = |kind, text: &str, samples: &BTreeSet<&str>| {
            let sample = samples.first().copied().unwrap_or_default();
            Some(Verdict { kind, what: format!("{text}: {:?}", shorten(sample)) })
        };
        if let Some(lines) = of(&Piece::Hidden) {
            return lone(Kind::Hidden, "hidden text of the task", lines);
        }
        if let Some(addresses) = of(&Piece::PullRequest) {
            return lone(Kind::PullRequest, "the address of the pull request", addresses);
        }
        match of(&Piece::TestName) {
            Some(names) if !foreign => lone(Kind::TestNames, "the name of a test that is to come", names),
            _ => None,
        }
    }

    /// Whether these lines of one file of a patch are too many for a coincidence.
    fn is_enough(&self, piece: &Piece, lines: &BTreeSet<String>) -> bool {
        let total = self.lines.get(piece).map_or(0, BTreeSet::len);
        let characters: usize = lines.iter().map(|line| line.chars().count()).sum();
        match (total, lines.len()) {
            (_, 0) => false,
            (1, _) => characters >= LONE_LINE,
            (_, 1) => false,
            (total, found) => characters >= FEW_CHARACTERS && found * 5 >= total,
        }
    }

    /// Of the names that the gold patch brings into the source file of this name (without ending), those in compiled
    /// code; too few for an alarm: none.
    pub(super) fn words_in(&self, stem: &str, code: &[u8]) -> Vec<&str> {
        let Some(words) = self.words.get(stem).filter(|words| !words.is_empty()) else { return Vec::new() };
        let holds = |word: &&String| code.windows(word.len()).any(|window| window == word.as_bytes());
        let found: Vec<&str> = words.iter().filter(holds).map(String::as_str).collect();
        if found.len() >= words.len().min(2) { found } else { Vec::new() }
    }

    /// The names, without ending, of source files that gain names.
    pub(super) fn has_words(&self, stem: &str) -> bool {
        self.words.get(stem).is_some_and(|words| !words.is_empty())
    }
}

/// What a file that holds a piece of the answer is.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) kind: Kind,
    pub(super) what: String,
}

/// Which piece of the answer weighs most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fields,
    Gold,
    Tests,
    Hidden,
    PullRequest,
    TestNames,
}

/// Whether a line is long enough, and made of words, to mean something elsewhere.
fn is_telling(line: &str) -> bool {
    let letters = line.chars().filter(|c| c.is_alphanumeric()).count();
    line.chars().count() >= SHORT_LINE && letters >= 6
}

/// `a/b.py` → `b`.
pub(super) fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// A piece of evidence on one short line.
fn shorten(text: &str) -> String {
    shorten_to(text, 80)
}

/// A text on one line of at most so many characters.
pub(crate) fn shorten_to(text: &str, most: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() <= most { text } else { text.chars().take(most - 1).chain(['…']).collect() }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
