//! What a repository holds at a task's base commit.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A bare clone at one commit. Each text is looked for once.
pub struct AtBase {
    clone: PathBuf,
    commit: String,
    known: RefCell<BTreeMap<String, bool>>,
}

impl AtBase {
    /// Opens a clone; `None` where it does not hold the commit or git cannot be run.
    pub fn open(clone: &Path, commit: &str) -> Option<Self> {
        let commit = format!("{commit}^{{commit}}");
        let at = Self { clone: clone.to_owned(), commit, known: RefCell::default() };
        (at.git(&["cat-file", "-e", &at.commit]) == Some(0)).then_some(at)
    }

    /// Whether a text stands in some file as whole words. True as well where git cannot tell: what is not known to be
    /// new is no sign of anything.
    pub fn has(&self, text: &str) -> bool {
        if let Some(&known) = self.known.borrow().get(text) {
            return known;
        }
        let has = self.git(&["grep", "-q", "-I", "-w", "-F", "-e", text, &self.commit]) != Some(1);
        self.known.borrow_mut().insert(text.to_owned(), has);
        has
    }

    /// git's exit code; deaf to the user's configuration.
    fn git(&self, args: &[&str]) -> Option<i32> {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.clone).args(["-c", "safe.directory=*"]).args(args);
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().ok()?.code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_whole_words_at_the_commit_alone() {
        let folder = tempfile::tempdir().unwrap();
        let script = "git init -q . && git config user.email a@b && git config user.name a \
            && echo 'def open_reader(): return a - b' > a.py && git add . && git commit -qm 1 \
            && echo 'def later(): pass' > b.py && git add . && git commit -qm 2 && git rev-parse HEAD~1";
        let output = Command::new("bash").args(["-ec", script]).current_dir(folder.path()).output().unwrap();
        let base = String::from_utf8(output.stdout).unwrap();
        let at = AtBase::open(&folder.path().join(".git"), base.trim()).unwrap();
        assert_eq!(
            ["open_reader", "open_read", "later", "return a - b", "-e", "-e"].map(|text| at.has(text)),
            [true, false, false, true, false, false]
        );
        assert!(AtBase::open(&folder.path().join(".git"), &"0".repeat(40)).is_none());
        assert!(AtBase::open(folder.path(), base.trim()).is_none());
    }
}
