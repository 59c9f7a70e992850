//! The headers of a unified diff, with or without git's extended ones.

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its content (or nothing: see [`FileChange::is_nothing`]).
    Modified,
    /// It is new.
    Added,
    /// It goes.
    Deleted,
    /// It gets another name.
    Renamed,
    /// It is copied.
    Copied,
}

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path before; `None` for a new file.
    pub old: Option<String>,
    /// Its path after; `None` for a deleted one.
    pub new: Option<String>,
    /// What happens to it.
    pub change: Change,
    /// Hunks of text.
    pub hunks: usize,
    /// Whether the change is binary.
    pub binary: bool,
    /// Whether its permission bits change.
    pub mode: bool,
    /// The lines that hunks of text add, each with its line end.
    pub added: String,
}

impl FileChange {
    fn new(old: Option<String>, new: Option<String>) -> Self {
        Self {
            old,
            new,
            change: Change::Modified,
            hunks: 0,
            binary: false,
            mode: false,
            added: String::new(),
        }
    }

    /// Whether `---` and `+++` lines with these paths may belong to it.
    fn may_be(&self, old: &Option<String>, new: &Option<String>) -> bool {
        let fits =
            |own: &Option<String>, line: &Option<String>| own.is_none() || line.is_none() || own == line;
        fits(&self.old, old) && fits(&self.new, new)
    }

    /// Whether the header is followed by no change at all.
    pub fn is_nothing(&self) -> bool {
        self.change == Change::Modified && self.hunks == 0 && !self.binary && !self.mode
    }
}

/// Lines that are left in the hunk at hand.
#[derive(Default)]
struct Hunk {
    old: u64,
    new: u64,
}

impl Hunk {
    /// `@@ -1,2 +3 @@`: a count that is left out is 1.
    fn parse(line: &str) -> Option<Self> {
        let mut ranges = line.strip_prefix("@@ -")?.split(" @@").next()?.split(" +");
        let mut count = || {
            let range = ranges.next()?;
            range.split_once(',').map_or(Some(1), |(_, count)| count.trim().parse().ok())
        };
        Some(Self { old: count()?, new: count()? })
    }

    fn is_done(&self) -> bool {
        self.old == 0 && self.new == 0
    }

    fn take(&mut self, line: &str) {
        match line.as_bytes().first() {
            Some(b'-') => self.old = self.old.saturating_sub(1),
            Some(b'+') => self.new = self.new.saturating_sub(1),
            Some(b'\\') => {}
            _ => {
                self.old = self.old.saturating_sub(1);
                self.new = self.new.saturating_sub(1);
            }
        }
    }
}

/// The files of a patch, in its order. Tolerant: what is no header and no hunk is passed over.
pub fn changes(patch: &str) -> Vec<FileChange> {
    let mut files: Vec<FileChange> = Vec::new();
    let mut hunk = Hunk::default();
    let mut lines = patch.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).peekable();
    // Whether the current file began with `diff --git`: then `---` and `+++` belong to it.
    let mut git = false;
    while let Some(line) = lines.next() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let (old, new) = git_names(names);
            files.push(FileChange::new(old, new));
            (hunk, git) = (Hunk::default(), true);
        } else if let Some(next) = Hunk::parse(line) {
            if let Some(file) = files.last_mut() {
                file.hunks += 1;
            }
            (hunk, git) = (next, false);
        } else if !hunk.is_done() {
            hunk.take(line);
            add(files.last_mut(), line);
        } else if let Some(old) = line.strip_prefix("--- ")
            && let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ "))
        {
            let (old, new) = (path(old), path(new));
            if !git || files.last().is_none_or(|file| !file.may_be(&old, &new)) {
                files.push(FileChange::new(None, None));
            }
            if let Some(file) = files.last_mut() {
                file.change = match (&old, &new) {
                    (None, _) => Change::Added,
                    (_, None) => Change::Deleted,
                    _ => file.change,
                };
                (file.old, file.new) = (old, new);
            }
            lines.next();
            git = false;
        } else if let Some(file) = files.last_mut() {
            // A hunk may hold more lines than it says.
            extended(file, line);
            add(Some(file), line);
        }
    }
    files
}

fn add(file: Option<&mut FileChange>, line: &str) {
    if let (Some(file), Some(added)) = (file.filter(|file| file.hunks > 0), line.strip_prefix('+')) {
        file.added.push_str(added);
        file.added.push('\n');
    }
}

fn extended(file: &mut FileChange, line: &str) {
    let whole = |name: &str| Some(unquote(name));
    if line.starts_with("new file mode ") {
        (file.change, file.old) = (Change::Added, None);
    } else if line.starts_with("deleted file mode ") {
        (file.change, file.new) = (Change::Deleted, None);
    } else if let Some(name) = line.strip_prefix("rename from ") {
        (file.change, file.old) = (Change::Renamed, whole(name));
    } else if let Some(name) = line.strip_prefix("copy from ") {
        (file.change, file.old) = (Change::Copied, whole(name));
    } else if let Some(name) = line.strip_prefix("rename to ").or_else(|| line.strip_prefix("copy to ")) {
        file.new = whole(name);
    } else if line.starts_with("old mode ") || line.starts_with("new mode ") {
        file.mode = true;
    } else if line == "GIT binary patch" || (line.starts_with("Binary files ") && line.ends_with(" differ")) {
        file.binary = true;
    }
}

/// `a/x b/x`: the two names are equal but for their first component, or quoted.
fn git_names(names: &str) -> (Option<String>, Option<String>) {
    if let Some(rest) = names.strip_prefix('"') {
        let mut escaped = false;
        let end = rest.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        if let Some(end) = end {
            return (path(&names[..end + 2]), path(names[end + 2..].trim_start()));
        }
    }
    let same = names.match_indices(' ').find_map(|(at, _)| {
        let (old, new) = (path(&names[..at])?, path(&names[at + 1..])?);
        (old == new).then_some((old, new))
    });
    match same.or_else(|| names.split_once(' ').and_then(|(old, new)| Some((path(old)?, path(new)?)))) {
        Some((old, new)) => (Some(old), Some(new)),
        None => (None, None),
    }
}

/// A path of a header: without quotes, time stamp and first component; `None` for `/dev/null`.
fn path(text: &str) -> Option<String> {
    let name = unquote(text.split('\t').next().unwrap_or(text));
    if name == "/dev/null" {
        return None;
    }
    match name.split_once('/') {
        Some((_, rest)) => Some(rest.to_owned()),
        None => Some(name),
    }
}

/// Undoes git's C-style quoting (`"a/\303\244"`).
fn unquote(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut code = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = rest.next_if(|next| (b'0'..=b'7').contains(next)) {
                        code = code * 8 + u32::from(digit - b'0');
                    }
                }
                bytes.push(u8::try_from(code & 0xff).unwrap_or(b'?'));
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b'f') => bytes.push(12),
            Some(b'v') => bytes.push(11),
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn summary(patch: &str) -> Vec<String> {
        changes(patch)
            .iter()
            .map(|file| {
                let name = |path: &Option<String>| path.clone().unwrap_or_else(|| "-".into());
                let binary = if file.binary { " binary" } else { "" };
                format!("{:?} {} {} {}{binary}", file.change, name(&file.old), name(&file.new), file.hunks)
            })
            .collect()
    }

    #[test]
    fn collects_what_is_added_also_where_a_hunk_holds_more_than_it_says() {
        let patch = "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-a\n+b\n+c\n x\n\
                     --- a/n.py\n+++ b/n.py\n@@ -0,0 +1 @@\n+++ d\n";
        let added: Vec<_> = changes(patch).into_iter().map(|file| file.added).collect();
        assert_eq!(added, ["b\nc\n", "++ d\n"]);
    }

    #[test]
    fn reads_every_kind_of_header() {
        let patch = "\
diff --git a/m.py b/m.py
index 1..2 100644
--- a/m.py
+++ b/m.py
@@ -1,2 +1,2 @@
 x
--- a/not a header
+++ b/not a header
@@ -9 +9 @@
-a
+b
diff --git a/new dir/n.py b/new dir/n.py
new file mode 100644
--- /dev/null
+++ b/new dir/n.py
@@ -0,0 +1 @@
+a
diff --git a/old.py b/moved.py
similarity index 100%
rename from old.py
rename to moved.py
diff --git \"a/\\303\\244 \\\"q\\\".bin\" \"b/\\303\\244 \\\"q\\\".bin\"
index 1..2
GIT binary patch
literal 1
Ic${Nk

diff --git a/gone b/gone
deleted file mode 100644
index e69de29..0000000
--- a/plain.txt\t2020-01-01
+++ b/plain.txt\t2020-01-02
@@ -1 +1 @@
-a
+b
";
        insta::assert_snapshot!(summary(patch).join("\n"), @r#"
        Modified m.py m.py 2
        Added - new dir/n.py 1
        Renamed old.py moved.py 0
        Modified ä "q".bin ä "q".bin 0 binary
        Deleted gone - 0
        Modified plain.txt plain.txt 1
        "#);
    }

    #[test]
    fn reads_carriage_returns_and_wrong_counts() {
        let patch = "diff --git a/x b/x\r\n--- a/x\r\n+++ b/x\r\n@@ -1,9 +1,9 @@\r\n-a\r\n+b\r\n\
                     diff --git a/y b/y\r\n--- a/y\r\n+++ b/y\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n";
        assert_eq!(summary(patch), ["Modified x x 1", "Modified y y 1"]);
    }

    proptest! {
        #[test]
        fn is_total(patch in "(diff --git |--- |\\+\\+\\+ |@@ -1,2 \\+1 @@|rename from |a/x |b/y|\"|\\\\|\n|[a-zé]| ){0,30}") {
            changes(&patch);
        }
    }
}
