//! A sandbox without isolation over a real repository in a temporary folder, and a task in it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use async_trait::async_trait;
use tokio::io::AsyncWriteExt;

use crate::sandbox::{Ended, Exec, Output, Place, Sandbox, SandboxError};
use crate::task::{EvaluatorView, HiddenView, InstanceId, Recipe, SolverView, Task};

/// The base commit's tests: every file of `tests/` holds a text that `src.txt` must hold.
const RUNNER: &str = "\
if [ -e conftest.py ]; then . ./conftest.py; fi
echo '=== short test summary info ==='
code=0
failed=
for t in tests/*.t; do
  if grep -qF \"$(cat \"$t\")\" src.txt; then echo \"PASSED $t::ok\"; else failed=\"$failed $t\"; code=1; fi
done
for t in $failed; do echo \"FAILED $t::ok - no\"; done
echo '=== done in 0.01s ==='
exit $code
";

/// The gold patch of [`task`].
pub(super) const GOLD: &str = "diff --git a/src.txt b/src.txt\n--- a/src.txt\n+++ b/src.txt\n@@ -1,3 +1,3 @@\n one\n\
                               -two\n+two fixed\n three\n";

const TEST_PATCH: &str = "diff --git a/tests/new.t b/tests/new.t\nnew file mode 100644\n--- /dev/null\n\
                          +++ b/tests/new.t\n@@ -0,0 +1 @@\n+fixed\ndiff --git a/tests/old.t b/tests/old.t\n\
                          --- a/tests/old.t\n+++ b/tests/old.t\n@@ -1 +1 @@\n-one\n+on\n";

/// A task: `tests/new.t` must come to pass, `tests/old.t` must stay so.
pub(super) fn task() -> Task {
    Task {
        solver: SolverView {
            instance_id: InstanceId::parse("acme__widget-7").unwrap(),
            repo: "acme/widget".into(),
            base_commit: "HEAD".into(),
            problem_statement: "two is not fixed".into(),
            language: None,
            image_name: None,
            version: None,
            recipe: Recipe {
                test_cmd: vec!["bash run_tests.sh".into()],
                log_parser: Some("parse_log_pytest".into()),
                ..Recipe::default()
            },
        },
        hidden: HiddenView::default(),
        evaluator: EvaluatorView {
            patch: GOLD.into(),
            test_patch: TEST_PATCH.into(),
            fail_to_pass: vec!["tests/new.t::ok".into()],
            pass_to_pass: vec!["tests/old.t::ok".into()],
        },
    }
}

/// A folder of the host as a sandbox.
pub(super) struct Folder {
    home: tempfile::TempDir,
}

impl Folder {
    /// A repository with the base commit of [`task`].
    pub(super) fn new() -> Self {
        let folder = Self { home: tempfile::tempdir().unwrap() };
        let repo = folder.repo();
        for (path, text) in
            [("src.txt", "one\ntwo\nthree\n"), ("tests/old.t", "one\n"), ("run_tests.sh", RUNNER)]
        {
            folder.write(path, text.as_bytes());
        }
        folder.git(&["init", "-q"]);
        folder.git(&["add", "-A"]);
        folder.git(&["commit", "-q", "-m", "base"]);
        fs_err::write(repo.join(".git/info/exclude"), "installed/\n").unwrap();
        folder.write("installed/marker", b"left by the installation");
        folder
    }

    pub(super) fn repo(&self) -> PathBuf {
        self.home.path().join("repo")
    }

    pub(super) fn place(&self) -> Place {
        Place { workdir: self.repo().to_str().unwrap().to_owned(), ..Place::default() }
    }

    pub(super) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.repo().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, bytes).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> Option<Vec<u8>> {
        fs_err::read(self.repo().join(path)).ok()
    }

    /// Runs git and returns what it prints.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.autocrlf=false"])
            .args(arguments)
            .current_dir(self.repo())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The patch that git makes of these changes; the folder is left as it was.
    pub(super) fn diff(&self, change: impl FnOnce(&Self)) -> String {
        change(self);
        self.git(&["add", "-A"]);
        let patch = self.git(&["diff", "--cached", "--binary"]);
        self.git(&["reset", "-q", "--hard"]);
        patch
    }
}

#[async_trait]
impl Sandbox for Folder {
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        let failed = |error: std::io::Error| SandboxError::Failed {
            backend: "folder",
            action: command.argv.join(" "),
            reason: error.to_string(),
        };
        let began = Instant::now();
        // One pipe for both streams keeps their order.
        let mut child = tokio::process::Command::new("bash")
            .args(["-c", "exec \"$0\" \"$@\" 2>&1"])
            .args(&command.argv)
            .current_dir(Path::new(&command.cwd))
            .env("HOME", self.home.path())
            .envs(&command.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let mut stdin = child.stdin.take().unwrap();
        let input = command.stdin.clone();
        let feed = async move {
            let _ = stdin.write_all(&input).await;
        };
        let both = async { tokio::join!(feed, child.wait_with_output()).1 };
        let (ended, bytes) = match tokio::time::timeout(command.timeout, both).await {
            Err(_) => (Ended::TimedOut, Vec::new()),
            Ok(output) => {
                let output = output.map_err(failed)?;
                (output.status.code().map_or(Ended::Signaled(9), Ended::Exited), output.stdout)
            }
        };
        Ok(Output { ended, bytes, elided: None, wall: began.elapsed(), out_of_memory: false })
    }

    async fn put(&mut self, path: &str, bytes: &[u8], _mode: u32) -> Result<(), SandboxError> {
        fs_err::write(path, bytes).unwrap();
        Ok(())
    }

    async fn get(&mut self, path: &str, _limit: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        Ok(fs_err::read(path).ok())
    }

    async fn close(self: Box<Self>) -> Result<(), SandboxError> {
        Ok(())
    }

    fn as_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}
