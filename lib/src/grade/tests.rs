//! Grading on real repositories with real git, in a folder that plays the sandbox.

use std::time::Duration;

use super::expect::{Expected, Found, ResolveRule};
use super::fixture::{Folder, GOLD, task};
use super::logs::{Rules, Status};
use super::patch::apply::Step;
use super::*;
use crate::sandbox::SandboxError;
use crate::task::Task;

async fn graded(folder: &mut Folder, task: &Task, patch: Option<&str>, options: &Options) -> Graded {
    let place = folder.place();
    grade(folder, &place, task, patch, options).await
}

async fn graded_fresh(patch: &str) -> Graded {
    graded(&mut Folder::new(), &task(), Some(patch), &Options::default()).await
}

#[tokio::test]
async fn gold_is_resolved_and_leaves_a_readable_log() {
    let found = graded_fresh(GOLD).await;
    assert_eq!((found.class, found.applied), (VerdictClass::Resolved, Some(Step::Plain)), "{found:?}");
    assert_eq!(found.f2p.success, ["tests/new.t::ok"]);
    assert_eq!(found.p2p.success, ["tests/old.t::ok"]);
    insta::assert_snapshot!(String::from_utf8(found.log).unwrap(), @r"
    $ bash run_tests.sh
    === short test summary info ===
    PASSED tests/new.t::ok
    PASSED tests/old.t::ok
    === done in 0.01s ===
    [exit status 0]
    ");
    assert_eq!(found.results.observations[0].line, 3);
}

#[tokio::test]
async fn without_a_change_nothing_runs_unless_asked_for() {
    for (patch, class) in [
        (None, VerdictClass::NoPrediction),
        (Some(""), VerdictClass::EmptyPatch),
        (Some(" \n"), VerdictClass::EmptyPatch),
    ] {
        let found = graded(&mut Folder::new(), &task(), patch, &Options::default()).await;
        assert_eq!((found.class, found.log.len()), (class, 0));
    }
    let run = Options { run_empty: true, ..Options::default() };
    let found = graded(&mut Folder::new(), &task(), Some(""), &run).await;
    assert_eq!((found.class, found.applied), (VerdictClass::Unresolved, None));
    insta::assert_snapshot!(
        found.reason.unwrap(),
        @"1 of 1 FAIL_TO_PASS and 0 of 1 PASS_TO_PASS did not pass: tests/new.t::ok (FAILED)"
    );
    assert_eq!(found.tests["tests/new.t::ok"].status, Found::Seen(Status::Failed));
}

#[tokio::test]
async fn patches_in_odd_dress_are_applied_and_the_step_is_told() {
    let crlf = GOLD.replace('\n', "\r\n");
    let no_end = GOLD.trim_end();
    let wrong_counts = GOLD.replace("@@ -1,3 +1,3 @@", "@@ -1,7 +1,9 @@");
    for (patch, step) in [
        (crlf.as_str(), Step::IgnoreWhitespace),
        (no_end, Step::Plain),
        (wrong_counts.as_str(), Step::ThreeWay),
    ] {
        let found = graded_fresh(patch).await;
        assert_eq!(
            (found.class, found.applied),
            (VerdictClass::Resolved, Some(step)),
            "{patch:?}: {found:?}"
        );
        assert_eq!(found.refusals.is_empty(), step == Step::Plain);
    }
}

#[tokio::test]
async fn a_crlf_patch_for_a_crlf_file_is_applied_as_it_is() {
    let mut folder = Folder::new();
    folder.write("src.txt", b"one\r\ntwo\r\nthree\r\n");
    folder.git(&["commit", "-q", "-a", "-m", "crlf"]);
    let patch = folder.diff(|folder| folder.write("src.txt", b"one\r\ntwo fixed\r\nthree\r\n"));
    let found = graded(&mut folder, &task(), Some(&patch), &Options::default()).await;
    assert_eq!((found.class, found.applied), (VerdictClass::Resolved, Some(Step::Plain)), "{found:?}");
    assert_eq!(folder.read("src.txt").unwrap(), b"one\r\ntwo fixed\r\nthree\r\n");
}

#[tokio::test]
async fn final_newlines_and_their_markers_in_all_four_combinations() {
    for marker in [false, true] {
        for end in [false, true] {
            let mut folder = Folder::new();
            let text: &[u8] = if marker { b"one\ntwo fixed\nthree" } else { b"one\ntwo fixed\nthree\n" };
            let mut patch = folder.diff(|folder| folder.write("src.txt", text));
            assert_eq!(patch.contains("\\ No newline"), marker);
            if !end {
                patch.pop();
            }
            let found = graded(&mut folder, &task(), Some(&patch), &Options::default()).await;
            assert_eq!(found.class, VerdictClass::Resolved, "{marker} {end}: {found:?}");
            assert_eq!(folder.read("src.txt").unwrap(), text);
        }
    }
}

#[tokio::test]
async fn binary_files_are_patched() {
    let mut folder = Folder::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
    let patch = folder.diff(|folder| {
        folder.write("data.bin", &bytes);
        folder.write("src.txt", b"one\ntwo fixed\nthree\n");
    });
    assert!(patch.contains("GIT binary patch"));
    let found = graded(&mut folder, &task(), Some(&patch), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::Resolved, "{found:?}");
    assert_eq!(folder.read("data.bin").unwrap(), bytes);
}

#[tokio::test]
async fn a_conflict_is_named_and_leaves_no_trace() {
    let mut folder = Folder::new();
    let patch = folder.diff(|folder| folder.write("src.txt", b"one\nzwei\nthree\n"));
    folder.write("src.txt", b"one\ndeux\nthree\n");
    folder.git(&["commit", "-q", "-a", "-m", "other"]);
    let found = graded(&mut folder, &task(), Some(&patch), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::PatchNotApplied);
    insta::assert_snapshot!(
        found.reason.unwrap(),
        @"no step took the patch; git apply: patch failed: src.txt:1; src.txt: patch does not apply"
    );
    assert_eq!(
        found.refusals.iter().map(|refusal| refusal.step).collect::<Vec<_>>(),
        [Step::Plain, Step::ThreeWay, Step::IgnoreWhitespace]
    );
    assert_eq!(folder.read("src.txt").unwrap(), b"one\ndeux\nthree\n");
    assert_eq!(folder.git(&["status", "--porcelain"]), "");
    assert!(folder.read("installed/marker").is_some(), "what the installation left stays");
}

#[tokio::test]
async fn a_patch_that_the_tree_already_holds_changes_nothing() {
    let mut folder = Folder::new();
    folder.write("src.txt", b"one\ntwo fixed\nthree\n");
    folder.git(&["commit", "-q", "-a", "-m", "fixed"]);
    let found = graded(&mut folder, &task(), Some(GOLD), &Options::default()).await;
    assert_eq!((found.class, found.applied), (VerdictClass::Resolved, Some(Step::AlreadyApplied)));
    assert_eq!(folder.read("src.txt").unwrap(), b"one\ntwo fixed\nthree\n");
}

#[tokio::test]
async fn changes_of_the_installation_survive() {
    let mut folder = Folder::new();
    folder.write("src.txt", b"one\ntwo\nthree\ninstalled\n");
    let wrong_counts = GOLD.replace("@@ -1,3 +1,3 @@", "@@ -1,7 +1,9 @@");
    let found = graded(&mut folder, &task(), Some(&wrong_counts), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::Resolved, "{found:?}");
    assert_eq!(folder.read("src.txt").unwrap(), b"one\ntwo fixed\nthree\ninstalled\n");
}

#[tokio::test]
async fn edits_to_tests_are_reverted() {
    let mut folder = Folder::new();
    let patch = folder.diff(|folder| {
        folder.write("tests/new.t", b"one\n"); // would pass without a fix
        folder.write("tests/old.t", b"whatever\n"); // would keep the test patch from applying
        folder.write("tests/extra.t", b"two\n"); // no file of the test patch: stays
    });
    let found = graded(&mut folder, &task(), Some(&patch), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::Unresolved, "{found:?}");
    assert_eq!(found.f2p.failure, ["tests/new.t::ok"]);
    let restored = |path: &str| found.flags.contains(&Flag::TestFileRestored { path: path.into() });
    assert!(restored("tests/new.t") && restored("tests/old.t"));
    assert_eq!(folder.read("tests/new.t").unwrap(), b"fixed\n");
    assert!(folder.read("tests/extra.t").is_some());
}

#[tokio::test]
async fn forged_settings_are_put_back_and_mixed_ones_are_suspect() {
    let mut folder = Folder::new();
    let patch = folder.diff(|folder| {
        folder.write("conftest.py", b"grep() { true; }\n");
        folder.write("pyproject.toml", b"[tool.pytest.ini_options]\naddopts = '-p evil'\n");
        folder.write("run_tests.sh", b"echo 'PASSED tests/new.t::ok'; echo 'PASSED tests/old.t::ok'\n");
        folder.write("package.json", b"{}\n");
    });
    let found = graded(&mut folder, &task(), Some(&patch), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::Unresolved, "{found:?}");
    for path in ["conftest.py", "pyproject.toml", "run_tests.sh"] {
        assert!(found.flags.contains(&Flag::ConfigRestored { path: path.into() }), "{path}: {found:?}");
    }
    assert!(found.flags.contains(&Flag::ConfigTouched { path: "package.json".into() }));
    assert!(folder.read("conftest.py").is_none() && folder.read("pyproject.toml").is_none());
    assert!(folder.read("package.json").is_some());

    // Where gold changes it, it is part of the solution.
    let mut folder = Folder::new();
    let mut task = task();
    task.evaluator.patch = patch.clone();
    let found = graded(&mut folder, &task, Some(&patch), &Options::default()).await;
    assert!(found.flags.is_empty(), "{:?}", found.flags);
}

/// As `python -m pytest` does: a module of the working folder comes first.
const SHADOWABLE: &str = "cat pytest.py pytest/__init__.py 2>/dev/null || bash run_tests.sh";

#[tokio::test]
async fn a_module_in_the_runners_place_is_removed_unless_it_is_the_projects_own() {
    let forged = b"=== short test summary info ===\nPASSED tests/new.t::ok\nPASSED tests/old.t::ok\n";
    let mut task = task();
    task.solver.recipe.test_cmd = vec![SHADOWABLE.into()];
    for path in ["pytest.py", "pytest/__init__.py", "argparse.py", "node_modules/mocha/index.js"] {
        let mut folder = Folder::new();
        let patch = folder.diff(|folder| folder.write(path, forged));
        let found = graded(&mut folder, &task, Some(&patch), &Options::default()).await;
        assert_eq!(found.class, VerdictClass::Unresolved, "{path}: {found:?}");
        assert!(found.flags.contains(&Flag::ConfigRestored { path: path.into() }), "{path}: {found:?}");
        assert!(folder.read(path).is_none(), "{path}");
    }
    let mut folder = Folder::new();
    folder.write("src/_pytest/__init__.py", b"1\n");
    folder.git(&["add", "-A"]);
    folder.git(&["commit", "-q", "-m", "pytest's own repository"]);
    let patch = folder.diff(|folder| folder.write("src/_pytest/__init__.py", b"2\n"));
    let found = graded(&mut folder, &task, Some(&patch), &Options::default()).await;
    assert!(found.flags.is_empty(), "{found:?}");
    assert_eq!(folder.read("src/_pytest/__init__.py").unwrap(), b"2\n");
}

#[tokio::test]
async fn code_that_reaches_into_the_runner_is_suspect_unless_golds_does() {
    let mut folder = Folder::new();
    let patch = folder.diff(|folder| {
        folder.write("src/width.py", b"import _pytest.reports as reports\n");
        folder.write("tests/test_width.py", b"import pytest\n");
        folder.write("src/plain.py", b"import os\n");
    });
    let suspect = Flag::Suspect { path: "src/width.py".into(), word: "_pytest".into() };
    let found = graded(&mut folder, &task(), Some(&patch), &Options::default()).await;
    assert_eq!(found.flags.iter().collect::<Vec<_>>(), [&suspect], "{found:?}");
    let mut task = task();
    task.evaluator.patch = patch.clone();
    let found = graded(&mut Folder::new(), &task, Some(&patch), &Options::default()).await;
    assert!(found.flags.is_empty(), "{found:?}");
}

#[tokio::test]
async fn a_tree_bent_out_of_shape_is_no_failure_of_the_harness() {
    // A file, or a link, where the tests' folder was.
    for link in [false, true] {
        let mut folder = Folder::new();
        let patch = folder.diff(|folder| {
            let tests = folder.repo().join("tests");
            fs_err::remove_dir_all(&tests).unwrap();
            if link {
                fs_err::os::unix::fs::symlink("..", tests).unwrap();
            } else {
                folder.write("tests", b"no folder\n");
            }
            folder.write("src.txt", b"one\ntwo fixed\nthree\n");
        });
        let found = graded(&mut folder, &task(), Some(&patch), &Options::default()).await;
        assert_eq!(found.class, VerdictClass::Resolved, "{link}: {found:?}");
        assert_eq!(folder.read("tests/new.t").unwrap(), b"fixed\n");
        assert!(folder.repo().join("tests").symlink_metadata().unwrap().is_dir());
    }
}

#[tokio::test]
async fn an_all_pass_log_with_a_failing_status_is_suspect() {
    let mut task = task();
    task.solver.recipe.test_cmd = vec!["bash run_tests.sh; exit 3".into()];
    let found = graded(&mut Folder::new(), &task, Some(GOLD), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::Unresolved);
    assert!(found.reason.as_deref().unwrap().starts_with("suspect: "), "{found:?}");
    assert!(found.flags.iter().any(|flag| matches!(flag, Flag::ExitStatus { code: 3, .. })));
    // A failure that nobody expects explains the status.
    task.solver.recipe.test_cmd = vec![
        "echo '=== short test summary info ==='; echo 'FAILED x.py::other - no'; exit 1".into(),
        "bash run_tests.sh".into(),
    ];
    let found = graded(&mut Folder::new(), &task, Some(GOLD), &Options::default()).await;
    assert_eq!(
        found.class,
        VerdictClass::Resolved,
        "the second command runs although the first failed: {found:?}"
    );
}

#[tokio::test]
async fn a_time_out_keeps_what_ran_before() {
    let mut task = task();
    task.solver.recipe.test_cmd = vec!["bash run_tests.sh".into(), "sleep 60".into(), "echo never".into()];
    let options = Options { timeout: Duration::from_secs(2), ..Options::default() };
    let found = graded(&mut Folder::new(), &task, Some(GOLD), &options).await;
    assert_eq!(found.class, VerdictClass::TestTimeout, "{found:?}");
    assert_eq!(found.f2p.success, ["tests/new.t::ok"]);
    assert!(found.seconds < 20.0);
    assert!(String::from_utf8_lossy(&found.log).ends_with("$ sleep 60\n[time limit reached: killed]\n"));
}

#[tokio::test]
async fn builds_that_fail_are_told_from_tests_without_results() {
    let mut task = task();
    task.solver.recipe.build = vec!["cd tests".into(), "echo broken; false".into(), "echo never".into()];
    let found = graded(&mut Folder::new(), &task, Some(GOLD), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::BuildFailed);
    assert_eq!(found.reason.unwrap(), "a command between patch and tests failed: broken");

    task.solver.recipe.build.clear();
    for (command, class) in [
        ("echo nothing to see", VerdictClass::NoResults),
        ("echo \"E   ModuleNotFoundError: No module named 'x'\"; exit 2", VerdictClass::BuildFailed),
        ("echo 'src/a.ts(1,1): error TS2304: Cannot find name'; exit 2", VerdictClass::BuildFailed),
        ("echo 'error: could not compile `x`'; exit 101", VerdictClass::BuildFailed),
        (
            "echo '=== short test summary info ==='; echo 'ERROR tests/new.py - ImportError: x'; exit 2",
            VerdictClass::BuildFailed,
        ),
    ] {
        task.solver.recipe.test_cmd = vec![command.into()];
        let found = graded(&mut Folder::new(), &task, Some(GOLD), &Options::default()).await;
        assert_eq!(found.class, class, "{command}: {found:?}");
    }
}

#[tokio::test]
async fn a_test_patch_that_does_not_apply_is_the_rows_fault_only_if_it_never_does() {
    let mut broken = task();
    broken.evaluator.test_patch = broken.evaluator.test_patch.replace("-one", "-eins");
    let found = graded(&mut Folder::new(), &broken, Some(GOLD), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::GoldFails, "{found:?}");

    let mut folder = Folder::new();
    let mut task = task();
    task.evaluator.test_patch = task.evaluator.test_patch.replace("tests/new.t", "deep/new.t");
    let patch = folder.diff(|folder| folder.write("deep", b"a file where the tests need a folder\n"));
    let found = graded(&mut folder, &task, Some(&patch), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::PatchNotApplied, "{found:?}");
}

#[tokio::test]
async fn a_test_patch_with_other_line_ends_is_applied_and_flagged() {
    let mut task = task();
    task.evaluator.test_patch = task.evaluator.test_patch.replace("@@ -1 +1 @@", "@@ -1,5 +1,5 @@");
    let found = graded(&mut Folder::new(), &task, Some(GOLD), &Options::default()).await;
    assert_eq!(found.class, VerdictClass::Resolved, "{found:?}");
    assert!(found.flags.contains(&Flag::TestPatchStep { step: Step::ThreeWay }), "{:?}", found.flags);
}

#[test]
fn unusable_rows_say_why() {
    let verdict = |change: fn(&mut Task)| {
        let mut task = task();
        change(&mut task);
        let found = without_sandbox(&task, Some(GOLD), &Options::default()).unwrap();
        assert_eq!(found.class, VerdictClass::Unparseable);
        found.reason.unwrap()
    };
    assert!(verdict(|task| task.evaluator.fail_to_pass.clear()).contains("FAIL_TO_PASS is empty"));
    assert!(
        verdict(|task| task.evaluator.pass_to_pass.push("tests/new.t::ok".into()))
            .contains("tests/new.t::ok")
    );
    assert!(
        verdict(|task| task.solver.recipe.log_parser = Some("parse_log_x".into())).contains("parse_log_x")
    );
    assert!(verdict(|task| task.solver.recipe.log_parser = None).contains("log_parser"));
    assert!(verdict(|task| task.solver.recipe.test_cmd.clear()).contains("test_cmd"));
}

#[test]
fn failures_of_sandboxes_are_no_failures_of_tasks() {
    let lost = |reason: &str| SandboxError::Lost { backend: "b", reason: reason.into() };
    let class = |error| of_sandbox_error(&error, &Options::default()).class;
    assert_eq!(class(SandboxError::DiskFull { path: "/x".into() }), VerdictClass::Infrastructure);
    assert_eq!(class(lost("killed by someone")), VerdictClass::Infrastructure);
    assert_eq!(class(lost("its memory limit was reached")), VerdictClass::Unresolved);
}

#[test]
fn what_gold_does_not_resolve_leaves_every_arm() {
    let of_gold = |class| Graded::without_run(class, Some("why".into()), &Options::default()).of_gold();
    assert_eq!(of_gold(VerdictClass::Resolved).class, VerdictClass::Resolved);
    assert_eq!(of_gold(VerdictClass::Infrastructure).class, VerdictClass::Infrastructure);
    assert_eq!(of_gold(VerdictClass::NoResults).class, VerdictClass::Unparseable);
    let timed_out = of_gold(VerdictClass::TestTimeout);
    assert_eq!(
        (timed_out.class, timed_out.reason.as_deref()),
        (VerdictClass::GoldFails, Some("gold is test-timeout: why"))
    );
}

#[test]
fn verdicts_survive_being_written() {
    let mut found = Graded::without_run(VerdictClass::Unresolved, Some("why".into()), &Options::default());
    found.flags.insert(Flag::ExitStatus { command: "x".into(), code: 1 });
    found.flags.insert(Flag::TestPatchStep { step: Step::ThreeWay });
    found
        .tests
        .insert("t".into(), Outcome { status: Found::Ambiguous, expected: expect::Expected::FailToPass });
    (found.rules, found.resolve_rule) = (Rules::Upstream, ResolveRule::SweRebench2);
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Graded>(&text).unwrap(), found);
}

/// Real rows judged on real logs: before the gold patch and after it.
#[test]
fn real_logs_before_and_after_gold_give_the_expected_verdicts() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA").map(std::path::PathBuf::from) else { return };
    let tasks = crate::dataset::read_tasks(&data.join("tasks/verified-here.jsonl")).unwrap().tasks;
    let mut judged = 0;
    for task in &tasks {
        for rules in [Rules::Strict, Rules::Upstream] {
            for (when, class) in [("before", false), ("after", true)] {
                let stem = data.join("logs/verified-tasks").join(format!("{}.{when}", task.id()));
                let Ok(bytes) = std::fs::read(format!("{}.log", stem.display())) else { continue };
                let about = std::fs::read(format!("{}.expected.json", stem.display())).unwrap();
                let about: serde_json::Value = serde_json::from_slice(&about).unwrap();
                let code = i32::try_from(about["exit_code"].as_i64().unwrap()).unwrap();
                let output = crate::sandbox::Output {
                    ended: crate::sandbox::Ended::Exited(code),
                    bytes,
                    elided: None,
                    wall: Duration::ZERO,
                    out_of_memory: false,
                };
                let options = Options { rules, ..Options::default() };
                let command = task.solver.recipe.test_cmd.join("\n");
                let graded = Graded::without_run(VerdictClass::Unresolved, None, &options);
                let found =
                    judge(graded, task, &usable(task, None).unwrap(), &[Ran { command, output }], &options);
                let about = format!("{} {when} {rules:?}: {:?} {:?}", task.id(), found.class, found.reason);
                assert_eq!(found.class == VerdictClass::Resolved, class, "{about}");
                assert_eq!(found.class.coding() == Coding::Zero, !class, "{about}");
                judged += 1;
            }
        }
    }
    assert!(judged >= 2 * 2 * 30, "{judged} logs were judged");
}

#[test]
fn published_verdicts_are_reached_from_published_logs() {
    #[derive(serde::Deserialize)]
    struct Published {
        parser: String,
        #[serde(rename = "FAIL_TO_PASS")]
        fail_to_pass: Vec<String>,
        #[serde(rename = "PASS_TO_PASS")]
        pass_to_pass: Vec<String>,
        resolved_in_published_report: bool,
    }
    let Some(data) = std::env::var_os("MEMTRIAL_DATA").map(std::path::PathBuf::from) else { return };
    let folder = data.join("logs/swebench_eval/pytest_swebench");
    let mut others = Vec::new();
    let mut all = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(id) = name.strip_suffix(".expected.json") else { continue };
        let published: Published =
            serde_json::from_slice(&std::fs::read(folder.join(&name)).unwrap()).unwrap();
        let Ok(parser) = logs::parser(published.parser.rsplit(':').next().unwrap()) else { continue };
        let log = std::fs::read(folder.join(format!("{id}.eval.log"))).unwrap();
        all += 1;
        for rules in [Rules::Upstream, Rules::Strict] {
            let map = parser.parse(&String::from_utf8_lossy(&log), rules).unwrap();
            let rule = ResolveRule::default();
            let (f2p, p2p) = (&published.fail_to_pass, &published.pass_to_pass);
            let results = expect::Results::new(&map, rules, rule, f2p.iter().chain(p2p));
            let passes = |names: &[String], list| {
                names.iter().all(|name| rule.passes(&results.find(name, list).found, list))
            };
            let resolved = passes(f2p, Expected::FailToPass) && passes(p2p, Expected::PassToPass);
            if resolved != published.resolved_in_published_report {
                others.push(format!("{id} {rules:?}"));
            }
        }
    }
    assert!(all > 30, "{all} logs");
    // This row expects tests named `[` and `[100%]`: pieces of output that upstream took for ids.
    assert_eq!(others, ["pytest-dev__pytest-5227 Strict"]);
}
