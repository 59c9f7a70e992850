//! Which binary a test is of, kept in its name only where several have one of that name.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::status::Status;
use super::super::text::{Pattern, pattern};

/// The binaries of a log and their results.
#[derive(Default)]
pub(in crate::grade::logs) struct Homes {
    /// The binary whose tests the log is about to tell.
    current: Option<usize>,
    /// The names to show.
    labels: Vec<String>,
    /// By `cargo`'s line, folder and hash included.
    known: HashMap<String, usize>,
    /// How many binaries have the same name.
    same: HashMap<String, usize>,
    /// Line, binary, test, status.
    results: Vec<(usize, Option<usize>, String, Status)>,
}

impl Homes {
    /// The binary, or the package with its documentation, that a line says is run next.
    pub(in crate::grade::logs) fn header(&mut self, line: &str) -> Option<usize> {
        let text = line.trim_start_matches(' ');
        let indented = text.len() < line.len();
        let label = match text.strip_prefix("Running ").filter(|_| indented) {
            Some(target) => binary(target),
            None => text.strip_prefix("Doc-tests ").filter(|_| indented).map(|_| text.to_owned()),
        };
        let label = label?;
        Some(*self.known.entry(text.to_owned()).or_insert_with(|| {
            let count = self.same.entry(label.clone()).or_default();
            *count += 1;
            self.labels.push(if *count == 1 { label } else { format!("{label}#{count}") });
            self.labels.len() - 1
        }))
    }

    /// From here on results are of this binary.
    pub(in crate::grade::logs) fn enter(&mut self, home: usize) {
        self.current = Some(home);
    }

    /// A result of a test of the current binary.
    pub(in crate::grade::logs) fn add(&mut self, line: usize, name: String, status: Status) {
        self.results.push((line, self.current, name, status));
    }

    /// Writes down every result.
    pub(in crate::grade::logs) fn write(&mut self, found: &mut Found) {
        let mut first = HashMap::new();
        let mut shared = HashSet::new();
        for (_, home, name, _) in &self.results {
            if *first.entry(name.as_str()).or_insert(*home) != *home {
                shared.insert(name.as_str());
            }
        }
        for (line, home, name, status) in &self.results {
            let label =
                home.and_then(|home| self.labels.get(home)).filter(|_| shared.contains(name.as_str()));
            let strict = label.map_or_else(|| name.clone(), |label| format!("{label} {name}"));
            found.test_at(*line, strict, status.clone()).known_as(name.as_str());
        }
    }
}

/// `unittests src/lib.rs (target/debug/deps/one-83c54a1d134852c3)` without folder and hash; older versions of cargo
/// have the path alone.
fn binary(target: &str) -> Option<String> {
    static TARGET: Pattern = LazyLock::new(|| {
        pattern(r"^`?(?:(.+) )?\(?(?:[^()` ]*[/\\])?([^()`/\\ ]+?)-[0-9a-f]{16}(?:\.exe|\.wasm)?\)?`?$")
    });
    let found = TARGET.captures(target)?;
    let file = found.get(2)?.as_str();
    Some(match found.get(1) {
        Some(source) => format!("{} ({file})", source.as_str()),
        None => file.to_owned(),
    })
}
