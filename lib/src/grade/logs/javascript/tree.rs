//! Trees of suites that reporters print by indentation.

use super::super::text::trim;

/// How many blanks a line begins with.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The file and the suites that a line stands in.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) file: Option<String>,
    suites: Vec<(usize, String)>,
}

impl Tree {
    /// A tree below a file.
    pub(super) fn of(file: String) -> Self {
        Self { file: Some(file), suites: Vec::new() }
    }

    /// A line that is no test opens a suite.
    pub(super) fn enter(&mut self, line: &str) {
        let indent = indent(line);
        self.leave(indent);
        self.suites.push((indent, trim(line).to_owned()));
    }

    /// Leaves the suites at this indentation and deeper.
    pub(super) fn leave(&mut self, indent: usize) {
        while self.suites.pop_if(|(outer, _)| *outer >= indent).is_some() {}
    }

    /// The full name of a test at this indentation.
    pub(super) fn name(&mut self, indent: usize, title: &str) -> String {
        self.leave(indent);
        let suites = self.suites.iter().map(|(_, suite)| suite.as_str());
        self.file.as_deref().into_iter().chain(suites).chain([title]).collect::<Vec<_>>().join(" > ")
    }
}

/// A tree in which each depth is indented by two more, and whose lines stand between lines that tests printed. Only a
/// result shows which of the lines before it are its suites.
#[derive(Debug, Default)]
pub(super) struct Loose {
    suites: Vec<(usize, String)>,
    /// Unmarked lines since the last result.
    lines: Vec<(usize, String)>,
}

impl Loose {
    /// A line that may open a suite.
    pub(super) fn line(&mut self, line: &str) {
        let text = trim(line);
        if !text.is_empty() {
            self.lines.push((indent(line), text.to_owned()));
        }
    }

    /// The full name of a test at this indentation: at each depth above it, the last suite before the one below. Whether it
    /// has a suite at each depth.
    pub(super) fn name(&mut self, indent: usize, title: &str) -> (String, bool) {
        let mut suites = Vec::new();
        let mut wanted = indent.checked_sub(2);
        let mut fresh = self.lines.drain(..).rev();
        while let Some(depth) = wanted.filter(|depth| *depth > 0) {
            let Some(line) = fresh.find(|(at, _)| *at == depth) else { break };
            suites.push(line);
            wanted = depth.checked_sub(2);
        }
        drop(fresh);
        let known = wanted.unwrap_or(0);
        while self.suites.pop_if(|(at, _)| *at > known).is_some() {}
        suites.reverse();
        self.suites.append(&mut suites);
        let whole = self.suites.len() + 1 == indent / 2;
        let suites = self.suites.iter().map(|(_, suite)| suite.as_str());
        (suites.chain([title]).collect::<Vec<_>>().join(" > "), whole)
    }
}
