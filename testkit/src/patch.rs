//! Which files a diff touches: what the reader must name when it makes its patch.

use std::collections::BTreeSet;

/// The files of a diff.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// All, old and new names.
    pub touched: BTreeSet<String>,
    /// Those that it makes.
    pub new: BTreeSet<String>,
}

/// Reads the headers of a git diff. Names with quotes or spaces are more than fixtures need and are refused.
pub(crate) fn files(diff: &str) -> Result<Files, String> {
    let mut files = Files::default();
    let (mut in_hunk, mut old_is_null) = ((0, 0), false);
    for line in diff.lines() {
        if in_hunk.0 > 0 || in_hunk.1 > 0 {
            in_hunk = match line.bytes().next() {
                Some(b'-') => (in_hunk.0 - 1, in_hunk.1),
                Some(b'+') => (in_hunk.0, in_hunk.1 - 1),
                Some(b'\\') => in_hunk,
                _ => (in_hunk.0 - 1, in_hunk.1 - 1),
            };
        } else if let Some(ranges) = line.strip_prefix("@@ ") {
            in_hunk = hunk(ranges).ok_or_else(|| format!("bad hunk header {line:?}"))?;
        } else if let Some(name) = line.strip_prefix("--- ") {
            old_is_null = name == "/dev/null";
            if !old_is_null {
                files.touched.insert(plain(name, "a/")?);
            }
        } else if let Some(name) = line.strip_prefix("+++ ").filter(|name| *name != "/dev/null") {
            let name = plain(name, "b/")?;
            if old_is_null {
                files.new.insert(name.clone());
            }
            files.touched.insert(name);
        } else if let Some(name) = line.strip_prefix("rename from ") {
            files.touched.insert(plain(name, "")?);
        } else if let Some(name) = line.strip_prefix("rename to ").or(line.strip_prefix("copy to ")) {
            let name = plain(name, "")?;
            files.new.insert(name.clone());
            files.touched.insert(name);
        }
    }
    match files.touched.is_empty() && !diff.trim().is_empty() {
        true => Err("it holds no file header".into()),
        false => Ok(files),
    }
}

fn plain(name: &str, prefix: &str) -> Result<String, String> {
    let name = name.split('\t').next().unwrap_or(name);
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-/+@".contains(c);
    match name.strip_prefix(prefix).filter(|name| !name.is_empty() && name.chars().all(fine)) {
        Some(name) => Ok(name.to_owned()),
        None => Err(format!("file name {name:?} is not of the form {prefix}plain/name")),
    }
}

/// Lines of a hunk, before and after: `-1,2 +1,3 @@ …`.
fn hunk(ranges: &str) -> Option<(i64, i64)> {
    let mut words = ranges.split(' ');
    let mut length = |sign| {
        let range = words.next()?.strip_prefix(sign)?;
        range.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok())
    };
    Some((length('-')?, length('+')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn changed_new_deleted_and_renamed_files() {
        let diff = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n--- a/not.py\n+++ b/not.py\n+y\n\
                    diff --git a/n.py b/n.py\nnew file mode 100644\n--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+1\n\
                    diff --git a/d.py b/d.py\n--- a/d.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
                    diff --git a/o.py b/p.py\nsimilarity index 100%\nrename from o.py\nrename to p.py\n";
        let files = files(diff).unwrap();
        assert_eq!(files.touched, set(&["d.py", "n.py", "o.py", "p.py", "x.py"]));
        assert_eq!(files.new, set(&["n.py", "p.py"]));
    }

    #[test]
    fn empty_and_unreadable_diffs() {
        assert_eq!(files("\n").unwrap(), Files::default());
        assert!(files("hello\n").unwrap_err().contains("no file header"));
        assert!(files("--- a/it's\n+++ b/x\n").unwrap_err().contains("plain/name"));
        assert!(files("--- x\n+++ x\n").unwrap_err().contains("plain/name"));
    }
}
