//! A unified diff by files, hunks and signs, and what it touches.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

/// The files of a diff, in its order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Diff {
    pub files: Vec<File>,
}

/// One file of a diff.
#[derive(Debug, Default, PartialEq)]
pub(super) struct File {
    /// Its path after the change; before it, where it is deleted.
    pub path: String,
    /// What stands behind the ranges of each hunk's header.
    pub headings: Vec<String>,
    /// The lines of its hunks.
    pub lines: Vec<Line>,
}

/// One line of a hunk without its sign.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub sign: Sign,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    Added,
    Removed,
    Context,
}

/// `@@ -start,length +start,length @@ heading`.
static HUNK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?(.*)$").ok());

/// The name that a line of code defines.
static DEFINITION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"\b(?:def|class|fn|func|function|struct|enum|trait|interface|module|macro_rules!)\s+(?:\([^)]*\)\s*)?\*?([A-Za-z_$][\w$]*)",
    )
    .ok()
});

impl Diff {
    /// Reads a diff leniently: what is no diff has no files.
    pub(super) fn read(patch: &str) -> Self {
        let mut files: Vec<File> = Vec::new();
        let (mut old_left, mut new_left) = (0u64, 0u64);
        let mut before = "";
        for line in patch.lines() {
            if old_left > 0 || new_left > 0 {
                let sign = match line.bytes().next() {
                    Some(b'+') => Sign::Added,
                    Some(b'-') => Sign::Removed,
                    Some(b'\\') => continue,
                    _ => Sign::Context,
                };
                old_left = old_left.saturating_sub(u64::from(sign != Sign::Added));
                new_left = new_left.saturating_sub(u64::from(sign != Sign::Removed));
                if let Some(file) = files.last_mut() {
                    let text = line.get(1..).unwrap_or_default().to_owned();
                    file.lines.push(Line { sign, text });
                }
            } else if let Some(path) = line.strip_prefix("--- ") {
                before = path;
            } else if let Some(path) = line.strip_prefix("+++ ") {
                let path = if path.starts_with("/dev/null") { before } else { path };
                let path = path.split('\t').next().unwrap_or(path);
                let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
                files.push(File { path: path.to_owned(), ..File::default() });
            } else if let Some(parts) = HUNK.as_ref().and_then(|hunk| hunk.captures(line)) {
                let length =
                    |group| parts.get(group).map_or(1, |m: regex::Match<'_>| m.as_str().parse().unwrap_or(1));
                (old_left, new_left) = (length(1), length(2));
                if let Some(file) = files.last_mut() {
                    file.headings.push(parts.get(3).map_or("", |m| m.as_str()).to_owned());
                }
            }
        }
        Self { files }
    }

    /// Lines of these signs, of all files.
    pub(super) fn lines<'a>(&'a self, signs: &'a [Sign]) -> impl Iterator<Item = &'a str> {
        let lines = self.files.iter().flat_map(|file| &file.lines);
        lines.filter(|line| signs.contains(&line.sign)).map(|line| line.text.as_str())
    }

    /// Paths, each once.
    pub(super) fn paths(&self) -> BTreeSet<String> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Functions and classes that hunk headers and changed lines name, as `path::name`.
    pub(super) fn symbols(&self) -> BTreeSet<String> {
        let mut symbols = BTreeSet::new();
        for file in &self.files {
            let changed = file.lines.iter().filter(|line| line.sign != Sign::Context);
            let lines = file.headings.iter().chain(changed.map(|line| &line.text));
            for name in lines.filter_map(|line| defined(line)) {
                symbols.insert(format!("{}::{name}", file.path));
            }
        }
        symbols
    }
}

/// The name that a line defines.
pub(super) fn defined(line: &str) -> Option<&str> {
    let found = DEFINITION.as_ref()?.captures(line)?;
    found.get(1).map(|name| name.as_str())
}

/// The folder of a path; empty for a file in the root.
pub(super) fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Names in code: each run of letters, digits and underscores that begins with no digit.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n\
        @@ -1,2 +1,3 @@ class Reader:\n x = 1\n-    def close(self):\n+    def shut(self):\n+        pass\n\
        --- a/gone.go\n+++ /dev/null\n@@ -3 +0,0 @@\n-func (r *T) Name(a int) {\n\\ No newline at end of file\n";

    #[test]
    fn reads_files_signs_and_headings() {
        let diff = Diff::read(PATCH);
        assert_eq!(diff.paths().into_iter().collect::<Vec<_>>(), ["gone.go", "src/a.py"]);
        assert_eq!(diff.files[0].headings, ["class Reader:"]);
        let of = |signs: &[Sign]| diff.lines(signs).map(str::trim).collect::<Vec<_>>().join("|");
        assert_eq!(of(&[Sign::Added]), "def shut(self):|pass");
        assert_eq!(of(&[Sign::Removed]), "def close(self):|func (r *T) Name(a int) {");
        assert_eq!(of(&[Sign::Context]), "x = 1");
        assert_eq!(Diff::read("no diff\n@@ -1 +1 @@\n-a\n+b\n"), Diff::default());
    }

    #[test]
    fn names_what_is_touched() {
        let symbols: Vec<_> = Diff::read(PATCH).symbols().into_iter().collect();
        assert_eq!(symbols, ["gone.go::Name", "src/a.py::Reader", "src/a.py::close", "src/a.py::shut"]);
        assert_eq!([directory("a/b.py"), directory("setup.py")], ["a", ""]);
        assert_eq!(defined("pub fn scan(a: &str)"), Some("scan"));
        assert_eq!(defined("a class of errors"), Some("of"), "words of prose are read as code");
        assert_eq!(identifiers("x1 = _y.zé + 2a").collect::<Vec<_>>(), ["x1", "_y", "zé"]);
    }
}
