//! `task audit`: every planted leak is found where it lies, and nothing in a clean environment.

mod cases;
mod image;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use memtrial::audit::{self, DETECTORS, Finding, Report, Subject};
use memtrial::sandbox::environment::{Environment, Environments, Settings};
use memtrial::sandbox::{Exec, Image, Namespaces, Sandbox};
use memtrial::task::{EvaluatorView, HiddenView, InstanceId, Recipe, SolverView, Task};
use serde_json::Value;

use super::memtrial;
use cases::{CASES, Case};

/// Where a case finds what it plants: the future as a bundle, the fixed files, the row.
const PLANT: &str = "/plant";

/// A repository with a past, a base commit, its fix and a release after it.
const HISTORY: &str = r#"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
  GIT_COMMITTER_EMAIL=a@b
git init -qb main work; cd work; mkdir src tests
printf '[project]\nname = "widget"\nversion = "1.2.0"\n' > pyproject.toml
printf 'A widget.\n' > README.md
printf 'def turn(items):\n    return [item for item in items]\n' > src/widget.py
printf 'from widget import turn\n\ndef test_turn():\n    assert turn([1]) == [1]\n' > tests/test_widget.py
git add .; git commit -qm 'A widget'; git tag v1.1.0
echo 'It turns.' >> README.md; git commit -qam 'Say what it does'; git tag -a -m 'The release' v1.2.0
git rev-parse HEAD > ../base
cat >> src/widget.py <<'PY'

def turn_around_axis(items, quarter_turns):
    """Turns every item by so many quarters."""
    remaining_quarters = quarter_turns % 4
    return [rotate_one_item(item, remaining_quarters) for item in items]
PY
cat >> tests/test_widget.py <<'PY'

def test_turning_around_the_axis():
    assert turn_around_axis(["north"], quarter_turns=5) == ["east of north"]
PY
git commit -qam 'Turn around an axis'; git rev-parse HEAD > ../fix
sed -i 's/1.2.0/1.3.0/' pyproject.toml; git commit -qam 'Release 1.3.0'; git tag v1.3.0
base=$(cat ../base) fix=$(cat ../fix)
git diff $base $fix -- src > ../gold.patch; git diff $base $fix -- tests > ../test.patch
git bundle create -q ../future.bundle HEAD main v1.3.0
cp src/widget.py ../widget.py; cp tests/test_widget.py ../test_widget.py
cd ..; git clone -q --bare work repos/acme__widget.git
"#;

/// The repository, its task, and the environments built from it.
struct Fixture {
    home: tempfile::TempDir,
    task: Task,
    rooms: Environments,
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

fn sh(folder: &Path, script: &str) -> String {
    let output = Command::new("bash").args(["-ec", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Fixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        sh(home.path(), HISTORY);
        let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
        let task = Task {
            solver: SolverView {
                instance_id: InstanceId::parse("acme__widget-7").unwrap(),
                repo: "acme/widget".into(),
                base_commit: read("base").trim().into(),
                problem_statement: "It cannot turn around an axis.".into(),
                language: Some("python".into()),
                image_name: None,
                version: None,
                recipe: Recipe::default(),
            },
            hidden: HiddenView {
                hints_text: Some("The maintainers agreed to take the quarters modulo four.".into()),
                ..HiddenView::default()
            },
            evaluator: EvaluatorView {
                patch: read("gold.patch"),
                test_patch: read("test.patch"),
                fail_to_pass: vec!["tests/test_widget.py::test_turning_around_the_axis".into()],
                pass_to_pass: vec!["tests/test_widget.py::test_turn".into()],
            },
        };
        let backend = Arc::new(Namespaces::new(home.path().join("cache")));
        let rooms = Environments::new(backend, Settings::new(home.path().join("repos"), Image::Host));
        Self { home, task, rooms }
    }

    fn row(&self) -> String {
        let task = &self.task;
        serde_json::json!({
            "instance_id": task.solver.instance_id, "repo": task.solver.repo, "base_commit": task.solver.base_commit,
            "problem_statement": task.solver.problem_statement, "hints_text": task.hidden.hints_text,
            "patch": task.evaluator.patch, "test_patch": task.evaluator.test_patch,
            "FAIL_TO_PASS": task.evaluator.fail_to_pass, "PASS_TO_PASS": task.evaluator.pass_to_pass,
        })
        .to_string()
    }

    async fn environment(&self) -> Environment {
        self.rooms.prepare(&self.task.solver).await.unwrap()
    }

    /// Runs the scripts of cases in a fresh sandbox.
    async fn plant(&self, environment: &Environment, cases: &[&Case]) -> Box<dyn Sandbox> {
        let mut sandbox = environment.start_to_change().await.unwrap();
        for name in ["future.bundle", "gold.patch", "test.patch", "widget.py", "test_widget.py"] {
            let bytes = std::fs::read(self.home.path().join(name)).unwrap();
            sandbox.put(&format!("{PLANT}/{name}"), &bytes, 0o644).await.unwrap();
        }
        sandbox.put(&format!("{PLANT}/row.json"), self.row().as_bytes(), 0o644).await.unwrap();
        let fix = std::fs::read_to_string(self.home.path().join("fix")).unwrap();
        for case in cases {
            let head = format!(
                "set -eu; export FIX={} BASE={}; fetch() {{ git fetch -q --no-write-fetch-head /plant/future.bundle \
                 \"$@\"; }}; ",
                fix.trim(),
                self.task.solver.base_commit
            );
            let output = sandbox.exec(&Exec::bash(head + case.script, "/testbed")).await.unwrap();
            assert!(output.success(), "{}: {}", case.name, output.text());
        }
        sandbox.exec(&Exec::bash("rm -rf /plant", "/")).await.unwrap();
        sandbox
    }

    /// What a test looks into: not the host's own packages, which are not the test's.
    fn subject(&self) -> Subject<'_> {
        let subject = Subject::environment(&self.task, "/testbed").on_the_host();
        Subject { roots: vec!["/".into()], ..subject }
    }
}

fn is_of(finding: &Finding, case: &Case) -> bool {
    finding.detector == case.detector && finding.place.contains(case.place)
}

fn expect(report: &Report, case: &Case) {
    assert!(report.findings.iter().any(|finding| is_of(finding, case)), "{}: {report:#?}", case.name);
}

#[test]
fn every_detector_has_a_case_and_every_case_a_name_of_its_own() {
    let planted: BTreeSet<&str> = CASES.iter().map(|case| case.detector).collect();
    let around = ["environment-variable", "image-metadata"];
    for detector in DETECTORS {
        assert!(planted.contains(detector.name) || around.contains(&detector.name), "{}", detector.name);
    }
    let names: BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len());
    assert!(CASES.len() >= 60, "{}", CASES.len());
}

#[test]
fn a_clean_environment_raises_no_alarm() {
    let fixture = Fixture::new();
    let report = block_on(async {
        let environment = fixture.environment().await;
        let mut sandbox = environment.start().await.unwrap();
        let subject = Subject::environment(&fixture.task, "/testbed").on_the_host();
        audit::audit(sandbox.as_mut(), &subject).await.unwrap()
    });
    assert!(report.is_clean() && report.notes.is_empty(), "{report:#?}");
    assert!(report.files > 10 && report.searched > 0, "{report:#?}");
}

/// What is wrong with a report on these plants: each must be found where it lies and be as fixable as it is; where
/// they only wrote files, nothing may be found elsewhere.
fn wrong(report: &Report, cases: &[&'static Case]) -> Vec<String> {
    let mut wrong: Vec<String> = report.unchecked.iter().map(|it| format!("not looked at: {it:?}")).collect();
    for case in cases {
        let found: Vec<&Finding> = report.findings.iter().filter(|finding| is_of(finding, case)).collect();
        if found.is_empty() || found.iter().any(|finding| finding.fixable != case.fixable) {
            wrong.push(format!("{}: {found:#?} of {report:#?}", case.name));
        }
    }
    let is_planted = |finding: &&Finding| cases.iter().any(|case| finding.place.contains(case.place));
    if cases.iter().all(|case| case.is_files()) {
        let strays = report.findings.iter().filter(|finding| !is_planted(finding));
        wrong.extend(strays.map(|finding| format!("found besides: {finding:?}")));
    }
    wrong
}

#[test]
fn each_leak_alone_is_found_where_it_lies() {
    let fixture = Fixture::new();
    // plants that only write files share a sandbox: each finding can be told by its place
    let (files, others): (Vec<&Case>, Vec<&Case>) = CASES.iter().partition(|case| case.is_files());
    let mut rounds: Vec<Vec<&'static Case>> = others.into_iter().map(|case| vec![case]).collect();
    rounds.push(files);
    block_on(async {
        let environment = fixture.environment().await;
        let rounds = std::sync::Mutex::new(rounds);
        let all = std::sync::Mutex::new(Vec::new());
        let work = async || {
            loop {
                let Some(cases) = rounds.lock().unwrap().pop() else { return };
                let mut sandbox = fixture.plant(&environment, &cases).await;
                let report = audit::audit(sandbox.as_mut(), &fixture.subject()).await.unwrap();
                sandbox.close().await.unwrap();
                all.lock().unwrap().extend(wrong(&report, &cases));
            }
        };
        tokio::join!(work(), work());
        let all = all.into_inner().unwrap();
        assert!(all.is_empty(), "{}", all.join("\n"));
    });
}

#[test]
fn all_leaks_at_once_are_found_and_what_can_be_fixed_is() {
    let fixture = Fixture::new();
    block_on(async {
        let environment = fixture.environment().await;
        let together: Vec<&Case> = CASES.iter().filter(|case| !case.alone).collect();
        let mut sandbox = fixture.plant(&environment, &together).await;
        let subject = fixture.subject();
        let report = audit::audit(sandbox.as_mut(), &subject).await.unwrap();
        let is_as_planted =
            |case: &&Case| report.findings.iter().any(|it| is_of(it, case) && it.fixable == case.fixable);
        let missed: Vec<&str> =
            together.iter().filter(|case| !is_as_planted(case)).map(|case| case.name).collect();
        assert!(missed.is_empty(), "{missed:?} are missed in {report:#?}");
        audit::fix(sandbox.as_mut(), &subject, &report.findings).await.unwrap();
        let left = audit::audit(sandbox.as_mut(), &subject).await.unwrap();
        let fixable: Vec<&Finding> = left.findings.iter().filter(|finding| finding.fixable).collect();
        assert_eq!(fixable, Vec::<&Finding>::new());
        let stay: BTreeSet<&str> =
            together.iter().filter(|case| !case.fixable).map(|case| case.detector).collect();
        assert_eq!(left.findings.iter().map(|finding| finding.detector).collect::<BTreeSet<_>>(), stay);
        let git = "git fsck --strict && git status --porcelain --untracked-files=no && git log --format=%s && git tag";
        let output = sandbox.exec(&Exec::bash(git, "/testbed")).await.unwrap();
        assert!(output.text().ends_with("Say what it does\nA widget\nv1.1.0\nv1.2.0\n"), "{}", output.text());
        // later runs start on the fixed environment
        fixture.rooms.replace(&environment, sandbox).await.unwrap();
        let again = Environments::new(
            Arc::new(Namespaces::new(fixture.home.path().join("cache"))),
            Settings::new(fixture.home.path().join("repos"), Image::Host),
        );
        for rooms in [&fixture.rooms, &again] {
            let mut sandbox = rooms.prepare(&fixture.task.solver).await.unwrap().start().await.unwrap();
            let report = audit::audit(sandbox.as_mut(), &subject).await.unwrap();
            assert_eq!(report.findings, left.findings);
        }
    });
}

#[test]
fn what_an_image_says_of_itself_is_searched() {
    let fixture = Fixture::new();
    let report = block_on(async {
        let environment = fixture.environment().await;
        let mut sandbox = environment.start().await.unwrap();
        let mut subject = fixture.subject();
        for (place, text) in [
            ("i label data", "test_patch".to_owned()),
            ("i step 3", format!("RUN echo '{}'", fixture.task.evaluator.patch)),
            ("i variable GIT_ALTERNATE_OBJECT_DIRECTORIES", "/opt/objects".to_owned()),
            ("i variable PATH", "/usr/bin".to_owned()),
            ("i step 1", "COPY README.md pyproject.toml /testbed".to_owned()),
        ] {
            subject.facts.push((place.to_owned(), text));
        }
        audit::audit(sandbox.as_mut(), &subject).await.unwrap()
    });
    let found: Vec<(&str, &str)> =
        report.findings.iter().map(|finding| (finding.detector, finding.place.as_str())).collect();
    assert_eq!(
        found,
        [
            ("environment-variable", "i variable GIT_ALTERNATE_OBJECT_DIRECTORIES"),
            ("image-metadata", "i label data"),
            ("image-metadata", "i step 3"),
        ]
    );
}

#[test]
fn a_hostile_repository_runs_nothing_and_is_still_seen() {
    let fixture = Fixture::new();
    let report = block_on(async {
        let environment = fixture.environment().await;
        let hostile = Case {
            name: "hostile",
            detector: "branch",
            place: "refs/heads/feature",
            fixable: true,
            alone: true,
            script: "fetch main:refs/heads/feature
                printf '#!/bin/sh\\ntouch /tmp/ran\\n' > /opt/evil; chmod +x /opt/evil
                for hook in post-checkout reference-transaction post-index-change pre-auto-gc; do
                  mkdir -p .git/hooks; cp /opt/evil .git/hooks/$hook; done
                printf '[core]\\n\\tfsmonitor = /opt/evil\\n\\tpager = /opt/evil\\n\\tsshCommand = /opt/evil\\n[filter \"x\"]\\n\\tclean = /opt/evil\\n\\tsmudge = /opt/evil\\n[diff]\\n\\texternal = /opt/evil\\n' > /opt/more
                git config include.path /opt/more; git config core.commitGraph true
                git config remote.o.promisor true; git config remote.o.url 'ext::/opt/evil'
                echo '* filter=x' > .git/info/attributes
                git config alias.rev-list '!/opt/evil'; rm -f /tmp/ran",
        };
        let mut sandbox = fixture.plant(&environment, &[&hostile]).await;
        let report = audit::audit(sandbox.as_mut(), &fixture.subject()).await.unwrap();
        audit::fix(sandbox.as_mut(), &fixture.subject(), &report.findings).await.unwrap();
        let ran = sandbox.exec(&Exec::bash("ls /tmp/ran", "/")).await.unwrap();
        assert!(!ran.success(), "{}", ran.text());
        expect(&report, &hostile);
        report
    });
    assert!(report.findings.iter().any(|finding| finding.detector == "promisor"), "{report:#?}");
}

/// A checkout with its whole future.
fn checkout(fixture: &Fixture) -> PathBuf {
    let script = "export GIT_CONFIG_GLOBAL=/dev/null; git clone -q repos/acme__widget.git clone; cd clone; git reset -q \
                  --hard $(cat ../base); cp ../gold.patch notes.patch; git branch later origin/main -q; pwd";
    PathBuf::from(sh(fixture.home.path(), script))
}

#[test]
fn a_folder_is_audited_and_fixed_in_place() {
    let fixture = Fixture::new();
    let folder = checkout(&fixture);
    let home = fixture.home.path();
    std::fs::write(home.join("tasks.jsonl"), fixture.row()).unwrap();
    let place = folder.to_str().unwrap();
    let base = ["task", "audit", "tasks.jsonl", "--folder", "clone", "--cache", "cache", "--json"];
    let (code, said, _) = memtrial(home, &base);
    assert_eq!(code, 1, "{said}");
    let all: Value = serde_json::from_str(&said).unwrap();
    let detectors = |all: &Value| -> BTreeSet<String> {
        let findings = all[0]["findings"].as_array().unwrap().iter();
        findings.map(|finding| finding["detector"].as_str().unwrap().to_owned()).collect()
    };
    for detector in ["branch", "remote-ref", "tag", "remote", "reflog", "special-head", "patch-file"] {
        assert!(detectors(&all).contains(detector), "{detector} in {said}");
    }
    // without --yes nothing changes
    let before = sh(&folder, "find . -type f | sort | xargs sha256sum | sha256sum");
    let (code, _, told) = memtrial(home, &[&base[..], &["--fix"]].concat());
    assert_eq!((code, told.contains("nothing is changed yet")), (1, true), "{told}");
    assert_eq!(sh(&folder, "find . -type f | sort | xargs sha256sum | sha256sum"), before);
    let (code, said, told) = memtrial(home, &[&base[..], &["--fix", "--yes"]].concat());
    assert_eq!(code, 0, "{said} {told}");
    assert!(!folder.join("notes.patch").exists());
    assert_eq!(
        sh(&folder, "git fsck && git status --porcelain && git log --all --format=%s"),
        "Say what it does\nA widget"
    );
    let (code, said, _) = memtrial(home, &["task", "audit", "--folder", place, "--cache", "cache"]);
    assert_eq!(code, 0, "{said}");
    // a HEAD past the base commit is not ours to move
    sh(
        &folder,
        "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; echo x >> README.md; git -c user.name=a -c user.email=a@b commit -qam later",
    );
    let (code, _, told) = memtrial(home, &[&base[..], &["--fix", "--yes"]].concat());
    assert_eq!((code, told.contains("check the base commit out first")), (4, true), "{told}");
}

#[test]
fn a_strip_killed_at_any_moment_leaves_a_usable_repository() {
    let fixture = Fixture::new();
    let script = memtrial::sandbox::environment::history::strip_command(&fixture.task.solver.base_commit);
    let lines = sh(&checkout(&fixture), "git fsck");
    assert_eq!(lines, "");
    let mut moments = 0;
    for step in 1..=12 {
        sh(fixture.home.path(), "rm -rf clone");
        let folder = checkout(&fixture);
        let mut child = strip(&script, &folder);
        std::thread::sleep(std::time::Duration::from_millis(step * 12));
        if child.try_wait().unwrap().is_none() {
            moments += 1;
        }
        // with the script's own children, or the shell alone: then they run on, and the next strip waits for them
        let group = if step % 2 == 0 { "-" } else { "" };
        let target = format!("{group}{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &target]).output();
        child.wait().unwrap();
        if step % 2 == 0 {
            sh(&folder, "git fsck && git status && git log");
        }
        // the same command goes on
        assert_stripped(&folder, [strip(&script, &folder)], &format!("killed at step {step}"));
    }
    assert!(moments > 0, "no run was killed on its way");
}

#[test]
fn strips_at_the_same_time_take_turns() {
    let fixture = Fixture::new();
    let script = memtrial::sandbox::environment::history::strip_command(&fixture.task.solver.base_commit);
    let folder = checkout(&fixture);
    let children: Vec<Child> = (0..3).map(|_| strip(&script, &folder)).collect();
    assert_stripped(&folder, children, "three at once");
}

#[test]
fn a_strip_without_one_of_its_tools_changes_nothing() {
    let fixture = Fixture::new();
    let script = memtrial::sandbox::environment::history::strip_command(&fixture.task.solver.base_commit);
    let folder = checkout(&fixture);
    let refs = "git for-each-ref; git count-objects -v";
    let before = sh(&folder, refs);
    sh(
        fixture.home.path(),
        "mkdir bin; ln -s $(ls -d /usr/bin/* /bin/*) bin/ 2> /dev/null || true; rm bin/comm",
    );
    let mut command = Command::new("sh");
    command.args(&script).current_dir(&folder).env("PATH", fixture.home.path().join("bin"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "there is no comm here\n");
    assert_eq!(sh(&folder, refs), before);
}

/// A strip under way, in a process group of its own.
fn strip(script: &[String], folder: &Path) -> Child {
    let mut command = Command::new("sh");
    command.args(script).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0).spawn().unwrap()
}

/// Once these strips are done, nothing but the past is there.
fn assert_stripped(folder: &Path, strips: impl IntoIterator<Item = Child>, when: &str) {
    for child in strips {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{when}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let left = sh(folder, "git fsck --unreachable --no-reflogs && git log --all --format=%s");
    assert_eq!(left, "Say what it does\nA widget", "{when}");
}

#[test]
fn the_command_tells_a_clean_environment_and_a_missing_repository() {
    let fixture = Fixture::new();
    let home = fixture.home.path();
    std::fs::write(home.join("tasks.jsonl"), fixture.row()).unwrap();
    let (code, said, told) = memtrial(home, &["task", "audit", "tasks.jsonl", "--cache", "cache"]);
    assert_eq!(code, 0, "{said} {told}");
    assert!(said.starts_with("acme__widget-7: clean"), "{said}");
    let (code, _, told) =
        memtrial(home, &["task", "audit", "tasks.jsonl", "--cache", "new", "--repos", "none"]);
    assert_eq!((code, told.contains("git clone --bare")), (4, true), "{told}");
    let (code, _, told) = memtrial(home, &["task", "audit", "tasks.jsonl", "--sandbox", "local"]);
    assert_eq!((code, told.contains("use namespaces or docker")), (2, true), "{told}");
}
