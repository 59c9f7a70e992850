//! The direction of the library: a later module of `lib/src/lib.rs` may use an earlier one, never the other way round.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use regex::Regex;

/// Modules that see the solver's view of a task alone (law 2).
const SOLVER_SIDE: [&str; 5] = ["sandbox", "llm", "context", "memory", "agent"];

/// What they may not name.
const EVALUATOR_SIDE: [&str; 3] = ["HiddenView", "EvaluatorView", "task::Task"];

/// What the library may not do: print, read the environment by itself, or exit.
const NOT_IN_LIBRARY: [&str; 7] =
    ["println!", "eprintln!", "env::var", "env::args", "env::home_dir", "env::current_dir", "process::exit"];

/// Checks every file of the library.
pub fn check(root: &Path) -> Result<String> {
    let source = root.join("lib/src");
    let order = modules(&fs_err::read_to_string(source.join("lib.rs"))?);
    let mut faults = Vec::new();
    let mut files = 0;
    for (place, module) in order.iter().enumerate() {
        for file in rust_files(&source, module)? {
            if file.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.ends_with("tests")) {
                continue;
            }
            files += 1;
            let text = fs_err::read_to_string(&file)?;
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            faults.extend(faults_of(&text, place, &order).into_iter().map(|fault| format!("{name}:{fault}")));
        }
    }
    if !faults.is_empty() {
        bail!("{} faults of layering:\n{}", faults.len(), faults.join("\n"));
    }
    Ok(format!("layering: {files} files in {} modules, no fault", order.len()))
}

/// The public modules in the order of `lib.rs`.
fn modules(lib: &str) -> Vec<String> {
    lib.lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';').map(str::to_owned))
        .collect()
}

fn rust_files(source: &Path, module: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![source.join(module)];
    let single = source.join(format!("{module}.rs"));
    if single.is_file() {
        found.push(single);
    }
    while let Some(folder) = open.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs_err::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The faults of one file, as `LINE: what`.
fn faults_of(text: &str, place: usize, order: &[String]) -> Vec<String> {
    let module = order[place].as_str();
    let mut faults = Vec::new();
    let Ok(uses) = Regex::new(r"\bcrate::(?:\{([^}]*)\}|([a-z_]+))").context("the pattern of module paths")
    else {
        return faults;
    };
    // tests may look around as they like
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    for (number, line) in code.lines().enumerate() {
        let number = number + 1;
        if line.trim_start().starts_with("//") {
            continue;
        }
        for captures in uses.captures_iter(line) {
            let named = captures.get(1).or_else(|| captures.get(2)).map_or("", |m| m.as_str());
            for other in named.split(',').filter_map(|path| path.trim().split("::").next()) {
                if order.iter().position(|m| m == other).is_some_and(|later| later > place) {
                    faults.push(format!("{number}: {module} uses the later module {other}"));
                }
            }
        }
        let code = line.split("//").next().unwrap_or(line);
        if SOLVER_SIDE.contains(&module) {
            faults.extend(
                EVALUATOR_SIDE
                    .iter()
                    .filter(|name| names(code, name))
                    .map(|name| format!("{number}: {module} names {name}, which only grading may see")),
            );
        }
        faults.extend(
            NOT_IN_LIBRARY
                .iter()
                .filter(|name| names(code, name))
                .map(|name| format!("{number}: {name} is the binary's, not the library's")),
        );
    }
    faults
}

/// Whether `code` holds `name` as whole words.
fn names(code: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        !code[..at].chars().next_back().is_some_and(word)
            && (name.ends_with('!') || !code[at + name.len()..].chars().next().is_some_and(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(module: &str, text: &str) -> Vec<String> {
        let order: Vec<String> = ["task", "dataset", "memory", "grade"].map(str::to_owned).into();
        let place = order.iter().position(|m| m == module).unwrap();
        faults_of(text, place, &order)
    }

    #[test]
    fn finds_later_modules_and_the_evaluators_types() {
        assert_eq!(faults("grade", "use crate::memory::Host;\nuse crate::task::Task;"), Vec::<String>::new());
        assert_eq!(
            faults("memory", "\nuse crate::grade::Verdict;"),
            ["2: memory uses the later module grade"]
        );
        assert_eq!(faults("memory", "use crate::{task, grade::Verdict};").len(), 1);
        assert_eq!(faults("memory", "fn f(task: &crate::task::Task) {}").len(), 1);
        assert_eq!(
            faults("memory", "use crate::task::SolverView; // not EvaluatorView"),
            Vec::<String>::new()
        );
        assert_eq!(faults("dataset", "println!(\"x\")").len(), 1);
    }
}
