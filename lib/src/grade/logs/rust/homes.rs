//! Which binary a test is of, kept in its name only where several have one of that name.

use std::collections::{HashMap, HashSet};

use super::super::found::Found;
use super::super::status::Status;

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
    results: Vec<Result>,
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
        let results = std::mem::take(&mut self.results);
        let shared = shared(&results);
        for (line, home, name, status) in &results {
            let home = home.filter(|_| shared.contains(name.as_str())).and_then(|home| self.labels.get(home));
            match home {
                Some(home) => {
                    found.test_at(*line, format!("{home} {name}"), status.clone()).known_as(name.as_str())
                }
                None => {
                    found.test_at(*line, name.as_str(), status.clone());
                }
            }
        }
    }
}

/// The names that several binaries have.
fn shared(results: &[Result]) -> HashSet<&str> {
    let mut first = HashMap::new();
    let mut shared = HashSet::new();
    if results.iter().any(|(_, home, ..)| *home != results[0].1) {
        for (_, home, name, _) in results {
            if *first.entry(name.as_str()).or_insert(*home) != *home {
                shared.insert(name.as_str());
            }
        }
    }
    shared
}

/// Line, binary, test, status.
type Result = (usize, Option<usize>, String, Status);

/// `unittests src/lib.rs (target/debug/deps/one-83c54a1d134852c3)` without folder and hash; older versions of cargo
/// have the path alone.
fn binary(target: &str) -> Option<String> {
    let sourced = target.strip_suffix(')').and_then(|target| target.rsplit_once(" ("));
    let path = sourced.map_or(target, |(_, path)| path);
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = [".exe", ".wasm"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file);
    let (name, hash) = stem.rsplit_once('-')?;
    if hash.len() != 16 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match sourced {
        Some((source, _)) => Some(format!("{source} ({name})")),
        None => (!target.contains(' ')).then(|| name.to_owned()),
    }
}
