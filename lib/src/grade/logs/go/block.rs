//! The tests of one package, up to the line that names it.

use std::collections::{HashMap, HashSet};

use super::super::status::Status;
use super::results::{Told, is_benchmark, root};

/// The tests of the package whose end has not come yet.
#[derive(Default)]
pub(in crate::grade::logs) struct Block {
    mode: Mode,
    tests: HashMap<String, Test>,
    results: Vec<Seen>,
    /// Whether a result is a failure.
    failed: bool,
    /// The test at the top that has the stage: until it ends or pauses no other one begins.
    current: Option<String>,
    /// How many tests at the top have begun and not ended.
    open: usize,
    /// How often the stage was taken. What ended before its last change has really ended.
    acts: usize,
    /// Whether tests have begun while another one had the stage.
    doubts: bool,
    /// Tests that another one printed.
    printed: HashSet<String>,
    /// Failures that were told of tests that had ended before.
    late: Vec<(usize, String)>,
    /// Results of a test before this index do not count.
    forgotten: HashMap<String, usize>,
    /// Lines are left out, in which any test may have begun.
    cut: bool,
    /// The package is said to have ended, with tests that have not.
    over: Option<String>,
}

/// What the log shows of the package, as its first line of a test has it.
#[derive(Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Unknown,
    /// With `-v`: tests begin before they end.
    Verbose,
    /// Results alone: the failures of a run without `-v`, or a log of which only such lines are left.
    Results,
    /// Results amid the output of tests: a run without `-v`, which tells of failures only.
    Failures,
}

struct Test {
    line: usize,
    state: State,
    /// It has paused, so that it ends at any time.
    parallel: bool,
    /// It began while another one had the stage.
    doubtful: bool,
}

impl Test {
    fn is_open(&self) -> bool {
        !matches!(self.state, State::Ended(_))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Paused,
    /// In which act.
    Ended(usize),
}

struct Seen {
    line: usize,
    name: String,
    status: Status,
    doubtful: bool,
}

impl Block {
    /// Whether no test was seen to begin.
    pub(in crate::grade::logs) fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// The tests that are but the output of another one.
    pub(in crate::grade::logs) fn take_printed(&mut self) -> HashSet<String> {
        std::mem::take(&mut self.printed)
    }

    /// Whether the package cannot have passed yet: a test has no end, or failures have been told of.
    pub(super) fn is_unfinished(&self) -> bool {
        self.open > 0 || self.failed || (self.mode == Mode::Failures && !self.results.is_empty())
    }

    /// The test that runs alone, if one does.
    pub(super) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Lines are left out of the log here.
    pub(super) fn cut(&mut self) {
        self.cut = true;
        self.current = None;
    }

    /// A line that tells of no test.
    pub(super) fn text(&mut self) {
        if self.mode == Mode::Results {
            self.mode = Mode::Failures;
        }
    }

    /// What a line tells of a test.
    pub(in crate::grade::logs) fn told(&mut self, told: Told, name: &str, after_text: bool, line: usize) {
        if self.mode == Mode::Unknown {
            let result = matches!(told, Told::Result(_)) && !self.cut && !after_text;
            self.mode = if result { Mode::Results } else { Mode::Verbose };
        }
        match told {
            Told::Result(status) if self.mode != Mode::Verbose && !after_text => {
                self.see(name, status, false, line);
            }
            _ if self.mode != Mode::Verbose => self.text(),
            Told::Run => self.run(name, after_text, line),
            Told::Pause => self.turn(name, State::Running, State::Paused),
            Told::Cont => self.turn(name, State::Paused, State::Running),
            Told::Result(status) => self.result(name, status, after_text, line),
        }
    }

    fn run(&mut self, name: &str, after_text: bool, line: usize) {
        let top = root(name);
        let doubtful = match self.tests.get(top) {
            // Behind other text only what fits is believed.
            None if after_text && (top != name || self.current.is_some()) => return,
            Some(test) if top != name && test.state != State::Running => return,
            Some(test) if top != name => test.doubtful,
            _ if top != name => false,
            known => {
                if self.over.take().is_some() {
                    *self = Self::default();
                } else if self.current.is_some() && known.is_some() {
                    return;
                }
                self.current.is_some()
            }
        };
        self.doubts |= doubtful;
        if top == name && !doubtful {
            self.current = Some(name.to_owned());
            self.acts += 1;
        }
        let test = Test { line, state: State::Running, parallel: false, doubtful };
        let before = self.tests.insert(name.to_owned(), test);
        self.open += usize::from(top == name && !before.is_some_and(|test| test.is_open()));
    }

    fn turn(&mut self, name: &str, from: State, to: State) {
        if let Some(test) = self.tests.get_mut(name).filter(|test| test.state == from) {
            test.state = to;
            test.parallel = true;
            self.current = self.current.take().filter(|current| current != name);
        }
    }

    fn result(&mut self, name: &str, status: Status, after_text: bool, line: usize) {
        let act = self.acts;
        let parallel = self.tests.get(root(name)).is_some_and(|top| top.parallel);
        let Some(test) = self.tests.get_mut(name) else {
            if after_text {
                return;
            }
            if self.cut || (self.current.is_none() && is_benchmark(name)) {
                self.see(name, status, false, line);
            } else if status == Status::Failed {
                self.late.push((line, name.to_owned()));
            }
            return;
        };
        match test.state {
            State::Running => {}
            State::Paused if self.cut && !after_text => {}
            State::Ended(then) if !after_text && (parallel || then == act) => {}
            // Its pass was printed, unless this is: then there is a test that prints it.
            State::Ended(_) if status == Status::Failed && !after_text && self.current.is_none() => {}
            State::Ended(_) if status == Status::Failed && !after_text => {
                self.late.push((line, name.to_owned()));
                return;
            }
            _ => return,
        }
        self.open -= usize::from(test.is_open() && root(name) == name);
        test.state = State::Ended(act);
        let doubtful = test.doubtful;
        self.see(name, status, doubtful, line);
        if self.current.as_deref() == Some(name) {
            self.current = None;
            if std::mem::take(&mut self.doubts) {
                // It had the stage all the time: what began meanwhile was its own output.
                self.results.retain(|seen| !seen.doubtful);
                for (name, test) in self.tests.extract_if(|_, test| test.doubtful) {
                    self.open -= usize::from(test.is_open() && root(&name) == name);
                    self.printed.insert(name);
                }
            }
        }
    }

    fn see(&mut self, name: &str, status: Status, doubtful: bool, line: usize) {
        self.failed |= status == Status::Failed;
        self.results.push(Seen { line, name: name.to_owned(), status, doubtful });
    }

    /// Forgets what is known of a test.
    pub(super) fn forget(&mut self, name: &str) {
        let known = self.tests.remove(name);
        self.open -= usize::from(root(name) == name && known.is_some_and(|test| test.is_open()));
        self.forgotten.insert(name.to_owned(), self.results.len());
        self.current = self.current.take().filter(|current| current != name);
    }

    /// Ends the block, of this package if it is known: the results, and the tests of a failed package that began and
    /// have no end.
    pub(in crate::grade::logs) fn close(
        &mut self,
        package: Option<&str>,
        failed: bool,
    ) -> Vec<(usize, String, Status)> {
        let mut block = std::mem::take(self);
        if block.over.as_deref().is_some_and(|over| Some(over) != package) {
            block.tests.clear();
        }
        let counts =
            |(at, seen): &(usize, Seen)| block.forgotten.get(&seen.name).is_none_or(|from| at >= from);
        let results = std::mem::take(&mut block.results).into_iter().enumerate().filter(counts);
        let mut results: Vec<_> = results.map(|(_, seen)| (seen.line, seen.name, seen.status)).collect();
        if block.mode == Mode::Failures {
            results.retain(|(_, _, status)| failed && *status == Status::Failed);
        }
        if block.mode != Mode::Verbose {
            add_roots(&mut results);
        }
        if failed {
            block.fail(&mut results);
            return results;
        }
        block.tests.retain(|_, test| test.is_open());
        if !block.tests.is_empty() && block.over.is_none() {
            // Perhaps it was a test that said so: the package's end is still to come.
            self.open = block.tests.keys().filter(|name| root(name) == name.as_str()).count();
            (self.mode, self.tests, self.current) = (block.mode, block.tests, block.current);
            self.over = package.map(str::to_owned);
        }
        results
    }

    /// Adds what has begun and has no end, but for subtests of a test that has ended without failure: how they ended
    /// is not told. A package in which no test is seen to fail has one whose failure came late, and so may one have in
    /// which the last test has no end: perhaps it never was.
    fn fail(self, results: &mut Vec<(usize, String, Status)>) {
        let state = |name: &str| self.tests.get(name).map(|test| test.state);
        let ended = |name: &str| matches!(state(name), Some(State::Ended(_)));
        let failed: Vec<&str> =
            results.iter().filter(|seen| seen.2 == Status::Failed).map(|seen| seen.1.as_str()).collect();
        let failed: HashSet<&str> = failed.into_iter().collect();
        let unfinished: Vec<_> = self
            .tests
            .iter()
            .filter(|(name, test)| {
                let top = root(name);
                let open = top == name.as_str() || !ended(top) || failed.contains(top);
                !ended(name) && !test.doubtful && open
            })
            .map(|(name, test)| (test.line, name.clone(), Status::Failed))
            .collect();
        results.extend(unfinished);
        if self.current.is_some() || results.iter().all(|(_, _, status)| *status != Status::Failed) {
            results.extend(self.late.into_iter().map(|(line, name)| (line, name, Status::Failed)));
        }
        results.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    }
}

/// A test fails with its subtests, even if its own line is lost in output.
fn add_roots(results: &mut Vec<(usize, String, Status)>) {
    let known: HashSet<&str> = results.iter().map(|(_, name, _)| name.as_str()).collect();
    let failed = results.iter().filter(|(_, _, status)| *status == Status::Failed);
    let roots = failed.map(|(line, name, _)| (root(name), *line)).filter(|(top, _)| !known.contains(top));
    let roots: HashMap<&str, usize> = roots.collect();
    let roots: Vec<_> = roots.into_iter().map(|(top, line)| (line, top.to_owned(), Status::Failed)).collect();
    results.extend(roots);
}
