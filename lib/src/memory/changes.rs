//! What a patch changed: files, symbols, lines.

use std::sync::LazyLock;

use regex::Regex;

/// A definition, in the languages that say so by a word.
static DEFINES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "def|class|fn|func|fun|function|struct|enum|trait|interface|impl|module|type|object|protocol";
    Regex::new(&format!(r"(?:^|\s)(?:{words})\s+(?:\([^)]*\)\s*)?([A-Za-z_$][\w$]*)")).ok()
});

/// One changed file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FileChange {
    /// Its path after the change; before it, where the file was deleted.
    pub path: String,
    /// The functions and classes that hunks lie in or that changed lines define, each once.
    pub symbols: Vec<String>,
    /// Removed lines without their sign.
    pub removed: Vec<String>,
    /// Added lines without their sign.
    pub added: Vec<String>,
}

/// What a unified diff changed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// The files in order, each once.
    pub files: Vec<FileChange>,
}

impl Changes {
    /// Reads a diff leniently: what is no diff gives no changes. Context lines are left out, so that a record is found
    /// by what a run changed and not by where.
    pub fn of(patch: &str) -> Self {
        let mut found = Self::default();
        let (mut old_left, mut new_left) = (0u64, 0u64);
        let mut before = "";
        for line in patch.lines() {
            if old_left == 0 && new_left == 0 {
                if let Some(path) = line.strip_prefix("--- ") {
                    before = path;
                } else if let Some(path) = line.strip_prefix("+++ ") {
                    found.open(if path.starts_with("/dev/null") { before } else { path });
                } else if let Some((old, new, place)) = hunk(line) {
                    (old_left, new_left) = (old, new);
                    found.define(place);
                }
                continue;
            }
            let sign = line.bytes().next();
            if sign != Some(b'+') && sign != Some(b'\\') {
                old_left = old_left.saturating_sub(1);
            }
            if sign != Some(b'-') && sign != Some(b'\\') {
                new_left = new_left.saturating_sub(1);
            }
            if let Some(file) = found.files.last_mut() {
                match sign {
                    Some(b'-') => file.removed.push(line[1..].to_owned()),
                    Some(b'+') => file.added.push(line[1..].to_owned()),
                    _ => continue,
                }
                found.define(&line[1..]);
            }
        }
        found
    }

    fn open(&mut self, path: &str) {
        let path = path.split('\t').next().unwrap_or(path);
        let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
        match self.files.iter().position(|file| file.path == path) {
            Some(at) => {
                let file = self.files.remove(at);
                self.files.push(file);
            }
            None => self.files.push(FileChange { path: path.to_owned(), ..FileChange::default() }),
        }
    }

    fn define(&mut self, code: &str) {
        let (Some(file), Some(defines)) = (self.files.last_mut(), DEFINES.as_ref()) else { return };
        for found in defines.captures_iter(code) {
            let symbol = &found[1];
            if !file.symbols.iter().any(|known| known == symbol) {
                file.symbols.push(symbol.to_owned());
            }
        }
    }

    /// The paths of all files.
    pub fn paths(&self) -> Vec<&str> {
        self.files.iter().map(|file| file.path.as_str()).collect()
    }

    /// Every symbol, each once for each file.
    pub fn symbols(&self) -> Vec<&str> {
        self.files.iter().flat_map(|file| file.symbols.iter().map(String::as_str)).collect()
    }

    /// Paths, symbols and changed lines, as they are searched.
    pub fn searched(&self) -> String {
        let mut lines: Vec<&str> = self.paths();
        lines.extend(self.symbols());
        for file in &self.files {
            lines.extend(file.removed.iter().chain(&file.added).map(String::as_str));
        }
        lines.join("\n")
    }
}

/// The lengths and the place in `@@ -start,old +start,new @@ place`; a missing length is 1.
fn hunk(line: &str) -> Option<(u64, u64, &str)> {
    let rest = line.strip_prefix("@@ ")?;
    let (ranges, place) = rest.split_once(" @@").unwrap_or((rest, ""));
    let mut ranges = ranges.split(' ');
    let length = |range: &str| match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => Some(1),
    };
    let old = length(ranges.next()?.strip_prefix('-')?)?;
    let new = length(ranges.next()?.strip_prefix('+')?)?;
    Some((old, new, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/src/a.py b/src/a.py\nindex 1..2 100644\n--- a/src/a.py\n+++ b/src/a.py\n\
        @@ -1,3 +1,3 @@ def f():\n context\n--- old comment\n+new line\n end\n\
        diff --git a/gone.txt b/gone.txt\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n\\ No newline at end of file\n";

    #[test]
    fn finds_files_symbols_and_changed_lines() {
        let found = Changes::of(PATCH);
        assert_eq!(found.paths(), ["src/a.py", "gone.txt"]);
        assert_eq!(found.symbols(), ["f"]);
        assert_eq!(
            (&found.files[0].removed[..], &found.files[0].added[..]),
            (&["-- old comment".to_owned()][..], &["new line".to_owned()][..])
        );
        assert_eq!(found.files[1].removed, ["bye"]);
        assert_eq!(found.searched(), "src/a.py\ngone.txt\nf\n-- old comment\nnew line\nbye");
        assert_eq!(Changes::of("no diff\n@@ -1,x +2,y @@\n+z"), Changes::default());
    }

    #[test]
    fn symbols_come_from_changed_definitions_too() {
        let patch = "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@ impl Reader {\n-    pub fn open(p: &str) {}\n+    pub fn open_at(p: &str) {}\n     fn same() {}\n\
            --- a/y.go\n+++ b/y.go\n@@ -3 +3 @@\n-func (r *Router) Walk() {\n+func (r *Router) WalkAll() {\n";
        assert_eq!(Changes::of(patch).symbols(), ["Reader", "open", "open_at", "Walk", "WalkAll"]);
    }
}
