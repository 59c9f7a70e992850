//! What a patch is and touches. Only headers are read here: git itself applies it ([`apply`]).

pub mod apply;
mod header;

pub use header::{Change, FileChange, changes};

use std::borrow::Cow;
use std::collections::BTreeSet;

/// A patch as git wants it: with a line end behind its last line, except behind `\ No newline at end of
/// file`. Nothing else is changed: carriage returns stay.
pub fn normalise(patch: &str) -> Cow<'_, str> {
    let last = patch.rsplit('\n').next().unwrap_or_default();
    if last.is_empty() || last.starts_with("\\ ") {
        Cow::Borrowed(patch)
    } else {
        Cow::Owned(format!("{patch}\n"))
    }
}

/// Whether a prediction changes nothing: no patch, a blank one, or text without any file change.
pub fn is_empty(patch: Option<&str>) -> bool {
    patch.is_none_or(|patch| changes(patch).iter().all(FileChange::is_nothing))
}

/// Every path that a patch touches, before and after.
pub fn paths(patch: &str) -> BTreeSet<String> {
    changes(patch).into_iter().flat_map(|change| change.old.into_iter().chain(change.new)).collect()
}

/// Endings of files that are data of tests rather than tests. `csv` has no dot upstream either.
const NO_TESTS: [&str; 11] =
    [".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml"];

/// The test files of a test patch, as SWE-bench's v1 harnesses append them to the test command: files that
/// exist after it, without data files, in the order of the patch.
pub fn directives(test_patch: &str) -> Vec<String> {
    changes(test_patch)
        .into_iter()
        .filter_map(|change| change.new)
        .filter(|path| !NO_TESTS.iter().any(|ending| path.ends_with(ending)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_a_patch_with_a_line_end() {
        for (patch, normal) in [
            ("+a", "+a\n"),
            ("+a\n", "+a\n"),
            ("+a\n\\ No newline at end of file", "+a\n\\ No newline at end of file"),
            ("+a\n\\ No newline at end of file\n", "+a\n\\ No newline at end of file\n"),
            ("+a\r", "+a\r\n"),
            ("", ""),
        ] {
            assert_eq!(normalise(patch), normal);
        }
    }

    #[test]
    fn tells_an_empty_patch() {
        assert!(is_empty(None));
        assert!(is_empty(Some(" \n\n")));
        assert!(is_empty(Some("I could not solve it.\n")));
        assert!(is_empty(Some("diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n")));
        assert!(!is_empty(Some("diff --git a/x b/x\nnew file mode 100644\nindex 0000000..e69de29\n")));
        assert!(!is_empty(Some("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n")));
        assert!(!is_empty(Some("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")));
    }

    #[test]
    fn finds_the_test_files() {
        let patch = "diff --git a/t/a.py b/t/a.py\n--- a/t/a.py\n+++ b/t/a.py\n@@ -1 +1 @@\n-a\n+b\n\
                     diff --git a/t/d.json b/t/d.json\n--- a/t/d.json\n+++ b/t/d.json\n@@ -1 +1 @@\n-a\n+b\n\
                     diff --git a/t/gone.py b/t/gone.py\ndeleted file mode 100644\n--- a/t/gone.py\n+++ /dev/null\n\
                     @@ -1 +0,0 @@\n-a\n";
        assert_eq!(directives(patch), ["t/a.py"]);
        assert_eq!(paths(patch).len(), 3);
    }
}
