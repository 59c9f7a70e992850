//! What grading costs besides the tests: from the call until the sandbox is closed, less the time of the test command
//! itself. Environments are cached, as they are from the second grading of a task on. Beside it the same steps with
//! Docker's own commands, as SWE-bench's harness goes about it.
//!
//! `MEMTRIAL_DOCKER_IMAGE` names an image with bash and git; without it Docker is left out.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark ends where it panics, and tells people"
)]

mod measure;

use std::any::Any;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use measure::{Subject, rounds, run, table};
use memtrial::grade::{Options, VerdictClass, grade};
use memtrial::sandbox::environment::{Environments, Settings};
use memtrial::sandbox::{Exec, Image, Namespaces, Output, Sandbox, SandboxError};
use memtrial::task::{EvaluatorView, HiddenView, InstanceId, Recipe, SolverView, Task};
use tokio::runtime::Runtime;

/// Passes a test for each file of `tests/` whose text `src.txt` holds.
const RUN_TESTS: &str = "\
echo '=== short test summary info ==='
for t in tests/*.t; do
  if grep -qF \"$(cat \"$t\")\" src.txt; then echo \"PASSED $t::ok\"; else echo \"FAILED $t::ok\"; fi
done
";

const FIX: &str = "diff --git a/src.txt b/src.txt\n--- a/src.txt\n+++ b/src.txt\n@@ -1,3 +1,3 @@\n one\n-two\n\
                   +two fixed\n three\n";

const TESTS: &str = "diff --git a/tests/new.t b/tests/new.t\nnew file mode 100644\n--- /dev/null\n+++ b/tests/new.t\n\
                     @@ -0,0 +1 @@\n+fixed\ndiff --git a/tests/old.t b/tests/old.t\n--- a/tests/old.t\n\
                     +++ b/tests/old.t\n@@ -1 +1 @@\n-one\n+on\n";

const COMMAND: &str = "bash run_tests.sh";

fn main() {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let few = Case::new(&runtime, folder.path(), "few", 0);
    let many = Case::new(&runtime, folder.path(), "many", 5000);
    let container =
        std::env::var("MEMTRIAL_DOCKER_IMAGE").ok().map(|image| Container::new(folder.path(), &image));
    let mut subjects = vec![
        Subject::new("memtrial, 3 files", || runtime.block_on(few.overhead())),
        Subject::new("memtrial, 5,003 files", || runtime.block_on(many.overhead())),
    ];
    if let Some(container) = &container {
        subjects.push(Subject::new("docker's commands, 3 files", || container.overhead()));
    }
    table("grading less the tests' own time", rounds(20), subjects);
}

/// A task with its repository and a prepared environment.
struct Case {
    environments: Environments,
    task: Task,
}

impl Case {
    fn new(runtime: &Runtime, folder: &Path, name: &str, more: u32) -> Self {
        let work = folder.join(name);
        std::fs::create_dir_all(work.join("tests")).unwrap();
        std::fs::write(work.join("src.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(work.join("tests/old.t"), "one\n").unwrap();
        std::fs::write(work.join("run_tests.sh"), RUN_TESTS).unwrap();
        for number in 0..more {
            let sub = work.join(format!("more/{}", number % 100));
            std::fs::create_dir_all(&sub).unwrap();
            std::fs::write(sub.join(format!("{number}.txt")), format!("{number}\n").repeat(1000)).unwrap();
        }
        let bare = folder.join(format!("repos/bench__{name}.git"));
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
            let output =
                Command::new("git").args(identity).args(arguments).current_dir(&work).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "--quiet", "--initial-branch=main", "."]);
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message=base"]);
        git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
        let task = task(name, git(&["rev-parse", "HEAD"]));
        let backend = Arc::new(Namespaces::new(folder.join("cache")));
        let environments = Environments::new(backend, Settings::new(folder.join("repos"), Image::Host));
        runtime.block_on(environments.prepare(&task.solver)).unwrap();
        Self { environments, task }
    }

    async fn overhead(&self) -> Duration {
        let began = Instant::now();
        let environment = self.environments.prepare(&self.task.solver).await.unwrap();
        let mut watched = Watched { sandbox: environment.start().await.unwrap(), tests: Duration::ZERO };
        let patch = Some(self.task.evaluator.patch.as_str());
        let graded = grade(&mut watched, environment.place(), &self.task, patch, &Options::default()).await;
        assert_eq!(graded.class, VerdictClass::Resolved, "{graded:?}");
        watched.sandbox.close().await.unwrap();
        began.elapsed() - watched.tests
    }
}

fn task(name: &str, base_commit: String) -> Task {
    Task {
        solver: SolverView {
            instance_id: InstanceId::parse(&format!("bench__{name}-1")).unwrap(),
            repo: format!("bench/{name}"),
            base_commit,
            problem_statement: "two is not fixed".into(),
            language: None,
            image_name: None,
            version: None,
            recipe: Recipe {
                test_cmd: vec![COMMAND.into()],
                log_parser: Some("parse_log_pytest".into()),
                ..Recipe::default()
            },
        },
        hidden: HiddenView::default(),
        evaluator: EvaluatorView {
            patch: FIX.into(),
            test_patch: TESTS.into(),
            fail_to_pass: vec!["tests/new.t::ok".into()],
            pass_to_pass: vec!["tests/old.t::ok".into()],
        },
    }
}

/// A sandbox whose test command is timed.
struct Watched {
    sandbox: Box<dyn Sandbox>,
    tests: Duration,
}

#[async_trait]
impl Sandbox for Watched {
    async fn exec(&mut self, command: &Exec) -> Result<Output, SandboxError> {
        let output = self.sandbox.exec(command).await?;
        if command.argv.last().is_some_and(|script| script == COMMAND) {
            self.tests += output.wall;
        }
        Ok(output)
    }

    async fn put(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        self.sandbox.put(path, bytes, mode).await
    }

    async fn get(&mut self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SandboxError> {
        self.sandbox.get(path, limit).await
    }

    async fn close(self: Box<Self>) -> Result<(), SandboxError> {
        self.sandbox.close().await
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self.sandbox.as_any()
    }
}

/// An image that holds the small repository, removed at the end, and the files that are copied in.
struct Container<'a> {
    folder: &'a Path,
    image: String,
}

impl<'a> Container<'a> {
    fn new(folder: &'a Path, base: &str) -> Self {
        let image = format!("memtrial-bench:{}", std::process::id());
        let name = image.replace(':', "-");
        run("docker", &["create", "--name", &name, base, "true"]);
        run("docker", &["cp", folder.join("few").to_str().unwrap(), &format!("{name}:/testbed")]);
        run("docker", &["commit", &name, &image]);
        run("docker", &["rm", &name]);
        std::fs::write(folder.join("patch.diff"), FIX).unwrap();
        let evaluate = format!(
            "git apply -v - <<'EOF'\n{TESTS}EOF\nbegan=$(date +%s%N)\n{COMMAND}\necho TOOK $(($(date +%s%N) - began))\n"
        );
        std::fs::write(folder.join("eval.sh"), evaluate).unwrap();
        Self { folder, image }
    }

    /// Create, start, copy the patch, apply it, copy the script, run it, stop, remove.
    fn overhead(&self) -> Duration {
        let began = Instant::now();
        let name = format!("{}-run", self.image.replace(':', "-"));
        let copy = |file: &str| {
            run("docker", &["cp", self.folder.join(file).to_str().unwrap(), &format!("{name}:/")])
        };
        run("docker", &["create", "--name", &name, "--network=none", &self.image, "tail", "-f", "/dev/null"]);
        run("docker", &["start", &name]);
        copy("patch.diff");
        let inside = ["exec", "--workdir", "/testbed", &name];
        run("docker", &[&inside[..], &["git", "-c", "safe.directory=*", "apply", "/patch.diff"]].concat());
        copy("eval.sh");
        let output = Command::new("docker").args(inside).args(["bash", "/eval.sh"]).output().unwrap();
        let log = String::from_utf8(output.stdout).unwrap();
        assert!(log.contains("PASSED tests/new.t::ok"), "{log}");
        let took = log.lines().find_map(|line| line.strip_prefix("TOOK ")?.parse().ok()).unwrap();
        run("docker", &["rm", "--force", &name]);
        began.elapsed() - Duration::from_nanos(took)
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        run("docker", &["rmi", "--force", &self.image]);
    }
}
