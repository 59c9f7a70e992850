use super::*;
use crate::memory::{BlockTemplate, Record};
use crate::task::{EvaluatorView, HiddenView, Recipe, SolverView};

const GOLD: &str = "\
diff --git a/src/reader.py b/src/reader.py
--- a/src/reader.py
+++ b/src/reader.py
@@ -10,3 +10,6 @@ class Reader:
     def retry(self, request):
-        self.handle = open_handle(request)
+        if self.handle is not None:
+            self.handle.close()
+        handle_guard = acquire_guard(request, timeout=self.timeout)
+        self.handle = open_handle(request, handle_guard)
         return self.handle
";

const TESTS: &str = "\
diff --git a/tests/test_reader.py b/tests/test_reader.py
--- a/tests/test_reader.py
+++ b/tests/test_reader.py
@@ -1,1 +1,6 @@
 import pytest
+# a handle that nobody closes is kept until the process ends
+def test_retry_closes_previous_handle(reader):
+    first_handle = reader.retry('first request')
+    reader.retry('second request')
+    assert first_handle.closed is True
";

const ISSUE: &str = "\
Reader leaks a handle on every retry

When a request fails and the reader tries again, the handle of the first try stays open. After some hours the
process has no handles left. I call it like this:

    reader.retry(request_of_mine)

Expected: the number of open handles stays the same.";

fn id(text: &str) -> InstanceId {
    InstanceId::parse(text).unwrap()
}

fn task_of(gold: &str, tests: &str, issue: &str, fail_to_pass: &[&str]) -> Task {
    Task {
        solver: SolverView {
            instance_id: id("acme__widget-77"),
            repo: "acme/widget".into(),
            base_commit: "0".repeat(40),
            problem_statement: issue.into(),
            language: None,
            image_name: None,
            version: None,
            recipe: Recipe::default(),
        },
        hidden: HiddenView::default(),
        evaluator: EvaluatorView {
            patch: gold.into(),
            test_patch: tests.into(),
            fail_to_pass: fail_to_pass.iter().map(|&test| test.to_owned()).collect(),
            pass_to_pass: Vec::new(),
        },
    }
}

fn task() -> Task {
    let tests = ["tests/test_reader.py::test_retry_closes_previous_handle[x-1]"];
    task_of(GOLD, TESTS, ISSUE, &tests)
}

/// What an earlier run's records look like when they are injected.
fn block(records: &[&str]) -> String {
    let record = |(number, text): (usize, &&str)| Record {
        id: None,
        why: None,
        source: id(&format!("acme__widget-{}", number + 1)),
        score: None,
        text: (*text).to_owned(),
        tokens: 1,
    };
    BlockTemplate::default().render(&records.iter().enumerate().map(record).collect::<Vec<_>>()).unwrap()
}

/// The verdict and the kinds of findings, sorted.
fn judged(scan: &LeakScan) -> String {
    let mut kinds: Vec<&str> = scan.findings.iter().map(|found| found.kind.name()).collect();
    kinds.sort_unstable();
    format!("{}: {}", scan.verdict.name(), kinds.join(" "))
}

fn of_block(records: &[&str]) -> String {
    judged(&scan(&block(records), &[], &task(), None))
}

fn of_source(issue: Option<&str>, patch: Option<&str>) -> String {
    let source =
        Source { id: id("acme__widget-3"), issue: issue.map(str::to_owned), patch: patch.map(str::to_owned) };
    judged(&scan("", &[source], &task(), None))
}

#[test]
fn code_of_the_fix_is_found_however_it_is_written() {
    for (name, records, expected) in [
        ("as it is", &[GOLD][..], "leak: gold-lines new-identifiers"),
        (
            "other blanks",
            &[
                "+if  self.handle  is not None :\n+\t\tself.handle.close( )\n+  handle_guard=acquire_guard( request,timeout = self.timeout )",
            ],
            "leak: gold-lines new-identifiers",
        ),
        (
            "no diff signs",
            &[
                "if self.handle is not None:\n    self.handle.close()\nhandle_guard = acquire_guard(request, timeout=self.timeout)",
            ],
            "leak: gold-lines new-identifiers",
        ),
        (
            "renamed variables",
            &[
                "guard = acquire_guard(request, timeout=self.timeout)\nself.fd = open_handle(request, guard)\nif self.fd is not None:\n    self.handle.close()",
            ],
            "suspicious: gold-lines new-identifiers",
        ),
        (
            "another order",
            &[
                "self.handle = open_handle(request, handle_guard)\nhandle_guard = acquire_guard(request, timeout=self.timeout)\nself.handle.close()",
            ],
            "leak: gold-lines new-identifiers",
        ),
        (
            "split over two records",
            &[
                "self.handle.close()\nhandle_guard = acquire_guard(request, timeout=self.timeout)",
                "self.handle = open_handle(request, handle_guard)",
            ],
            "leak: gold-lines new-identifiers",
        ),
        (
            "wrapped lines",
            &[
                "handle_guard = acquire_guard(\n    request,\n    timeout=self.timeout)\nself.handle = open_handle(\n    request, handle_guard)",
            ],
            "suspicious: gold-lines new-identifiers",
        ),
        (
            "among prose",
            &[
                "The fix was to write `self.handle = open_handle(request, handle_guard)` behind\n`handle_guard = acquire_guard(request, timeout=self.timeout)`.",
            ],
            "suspicious: gold-lines new-identifiers",
        ),
        (
            "one line of four",
            &["self.handle = open_handle(request, handle_guard)"],
            "none: gold-lines new-identifiers",
        ),
        (
            "shown as removed",
            &[
                "-        if self.handle is not None:\n-            self.handle.close()\n-        handle_guard = acquire_guard(request, timeout=self.timeout)",
            ],
            "leak: gold-lines new-identifiers",
        ),
        (
            "the tests",
            &[
                "+def test_retry_closes_previous_handle(reader):\n+    first_handle = reader.retry('first request')\n+    reader.retry('second request')",
            ],
            "suspicious: new-identifiers test-lines test-names",
        ),
        ("a test's name alone", &["I added test_retry_closes_previous_handle."], "none: test-names"),
        (
            "a test's id",
            &["FAILED tests/test_reader.py::test_retry_closes_previous_handle[x-1]"],
            "none: test-names",
        ),
        (
            "a comment alone",
            &["# a handle that nobody closes is kept until the process ends"],
            "none: test-lines",
        ),
        ("names alone", &["Use acquire_guard and a handle_guard."], "none: new-identifiers"),
    ] {
        assert_eq!(of_block(records), expected, "{name}");
    }
}

#[test]
fn the_base_commit_takes_away_what_is_no_news_and_gives_weight_to_what_is() {
    let at = |records: &[&str], has: &'static [&'static str]| {
        let at_base = move |text: &str| has.iter().any(|line| line.contains(text));
        judged(&scan(&block(records), &[], &task(), Some(&at_base)))
    };
    for (name, records, has, expected) in [
        ("a new name", &["Use acquire_guard."][..], &[][..], "suspicious: new-identifiers"),
        ("three new names", &["acquire_guard(handle_guard, first_handle)"], &[], "leak: new-identifiers"),
        ("an old name", &["Use acquire_guard."], &["acquire_guard"], "none: "),
        (
            "lines of the tests",
            &[
                "    first_handle = reader.retry('first request')\n    reader.retry('second request')\n    assert first_handle.closed is True",
            ],
            &[],
            "leak: new-identifiers test-lines",
        ),
        ("a new test", &["see test_retry_closes_previous_handle"], &[], "suspicious: test-names"),
        (
            "a test that is there",
            &["see test_retry_closes_previous_handle"],
            &["test_retry_closes_previous_handle"],
            "none: test-names",
        ),
        (
            "lines that are there",
            &["if self.handle is not None:\n    self.handle.close()"],
            &["if self.handle is not None:", "self.handle.close()"],
            "none: ",
        ),
    ] {
        assert_eq!(at(records, has), expected, "{name}");
    }
}

#[test]
fn the_base_commit_is_asked_about_nothing_that_the_block_lacks() {
    let asked = std::cell::RefCell::new(Vec::new());
    let at_base = |text: &str| {
        asked.borrow_mut().push(text.to_owned());
        false
    };
    scan("nothing of it", &[], &task(), Some(&at_base));
    assert_eq!(asked.take(), Vec::<String>::new());
}

#[test]
fn sources_that_are_the_target_by_another_number_are_found() {
    let reworded = ISSUE.replace("I call it like this:", "Here is my call:").replace("some hours", "a day");
    for (name, issue, expected) in [
        ("a re-opened issue", ISSUE.to_owned(), "leak: similar-issue"),
        ("reworded here and there", reworded, "leak: similar-issue"),
        (
            "a backport's title",
            "[Backport] Reader leaks a handle on every retry (#1234)".to_owned(),
            "leak: similar-issue",
        ),
        (
            "a port to a branch",
            "[2.x] Reader leaks a handle on every retry\n\nSee the title.".to_owned(),
            "leak: similar-issue",
        ),
        (
            "quoted with a word more",
            format!("Still there in 2.1\n\n> {}", ISSUE.replace('\n', "\n> ")),
            "leak: similar-issue",
        ),
        ("a backport by number", "Backport of #77 to 2.x".to_owned(), "leak: refers-to-target"),
        (
            "a cherry-pick",
            "Close handles\n\ncherry-picked from acme/widget#77".to_owned(),
            "leak: refers-to-target",
        ),
        (
            "a mention",
            "Follows up what https://github.com/acme/widget/pull/77 began.".to_owned(),
            "suspicious: refers-to-target",
        ),
        ("a backport of another", "[Backport] Faster start (#1234)\n\nBackport of #12".to_owned(), "none: "),
    ] {
        assert_eq!(of_source(Some(&issue), None), expected, "{name}");
    }
}

#[test]
fn sources_that_made_the_same_change_are_found() {
    let ported =
        GOLD.replace("@@ -10,3 +10,6 @@", "@@ -90,3 +70,6 @@").replace("src/reader.py", "lib/reader.py");
    let other = GOLD
        .replace("acquire_guard", "make_lock")
        .replace("handle_guard", "lock_of_handle")
        .replace(".close()", ".shut_down()");
    for (name, patch, expected) in [
        ("elsewhere", ported.as_str(), "leak: similar-patch"),
        ("a part of it", &other, "suspicious: similar-patch"),
        (
            "another change",
            "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a_long_line_of_code()\n+another_line_of_code()\n",
            "none: ",
        ),
        ("no diff", "I could not do it: self.handle.close()", "none: "),
    ] {
        assert_eq!(of_source(None, Some(patch)), expected, "{name}");
    }
}

#[test]
fn a_whole_short_fix_is_a_leak() {
    let gold = "--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-    cright[-right.shape[0]:, -right.shape[1]:] = 1\n+    cright[-right.shape[0]:, -right.shape[1]:] = right\n";
    let task = task_of(gold, "", "Nested models are wrong", &[]);
    let line = "    cright[-right.shape[0]:, -right.shape[1]:] = right";
    assert_eq!(judged(&scan(line, &[], &task, None)), "leak: gold-lines");
    assert_eq!(judged(&scan(&line.replace("right", "left"), &[], &task, None)), "none: ");
}

#[test]
fn clean_blocks_raise_no_alarm() {
    let quoted = format!("Issue: {ISSUE}");
    let imports = "import pytest\n+import os\n+}\n+    pass\n+\n+# TODO\n";
    let old = "     def retry(self, request):\n-        self.handle = open_handle(request)\n         return self.handle";
    let near = "The reader of another module keeps a handle:\n+        if self.cache is not None:\n+            return self.cache";
    for (name, records) in [
        ("nothing", &[][..]),
        ("the target's own issue", &[quoted.as_str()]),
        ("imports and braces", &[imports]),
        ("the code as it is today", &[old]),
        ("code of its kind", &[near]),
        ("common names", &["request timeout handle closed first second"]),
        (
            "an issue of its kind",
            &["Issue: Writer leaks a handle when it is closed twice\n\nNo patch was submitted."],
        ),
        ("another's number", &["see #770, #7 and other/thing#77"]),
    ] {
        let found = scan(&block(records), &[], &task(), None);
        assert!(!found.is_flagged(), "{name}: {found:?}");
    }
    // what moves within the patch is no news
    let gold = "--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,3 @@\n+if ready_to_go():\n+    call_the_old_function(argument)\n-call_the_old_function(argument)\n";
    let moved = scan("call_the_old_function(argument)", &[], &task_of(gold, "", "x", &[]), None);
    assert_eq!(judged(&moved), "none: ");
    // templates and headings are the same in every issue
    let form = "<!-- This comment is hidden when you submit the issue, so you do not need to remove it! Please be sure to \
        check out our contributing guidelines and our code of conduct before you submit -->\n### Expected behaviour\n";
    let (a, b) = (format!("Plots are empty\n{form}bars"), format!("Logs are long\n{form}lines"));
    let source = Source { id: id("acme__widget-3"), issue: Some(a), patch: None };
    assert_eq!(judged(&scan("", &[source], &task_of(GOLD, TESTS, &b, &[]), None)), "none: ");
}

#[test]
fn evidence_is_short_and_says_where() {
    let source =
        Source { id: id("acme__widget-3"), issue: Some("Backport of #77".into()), patch: Some(GOLD.into()) };
    let found = scan(&block(&[GOLD]), &[source], &task(), Some(&|_| false));
    let lines: Vec<String> =
        found.findings.iter().map(|f| format!("{} {} {}", f.weight, f.kind.name(), f.evidence)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    1 gold-lines 4 of 4 lines of the gold patch, as "handle_guard = acquire_guard(request, timeout=self.timeout)"
    1 new-identifiers names that only the fix brings: acquire_guard, handle_guard, timeout, close
    1 refers-to-target the issue of acme__widget-3 is a port of the target: "Backport of #77"
    1 similar-patch acme__widget-3 changed 5 of 5 lines that the gold patch changes
    "#);
}

#[test]
fn weights_that_add_up_to_a_threshold_reach_it() {
    let of = |weights: &[f64]| {
        let findings = weights.iter().map(|&weight| finding(LeakKind::TestNames, String::new(), weight));
        LeakScan::of(findings.collect()).verdict
    };
    assert_eq!(of(&[]), LeakVerdict::None);
    assert_eq!(of(&[0.1, 0.29]), LeakVerdict::None);
    assert_eq!(of(&[0.1, 0.3]), LeakVerdict::Suspicious);
    assert_eq!(of(&[0.7, 0.2, 0.1]), LeakVerdict::Leak);
}

/// Where `MEMTRIAL_DATA` names the folder of real data: what `bm25` delivers from real runs to the rows of one
/// repository.
#[tokio::test]
async fn real_blocks_are_flagged_for_a_reason() {
    use crate::dataset::{Chronology, History, HistoryStore, MergeDates, read_tasks};
    use crate::memory::host::{Host, Outcome, Setup};
    use crate::memory::{Budget, Query, Resources, Target, open};
    use crate::trajectory::Limits;

    let Some(data) = std::env::var_os("MEMTRIAL_DATA").map(std::path::PathBuf::from) else { return };
    let runs = HistoryStore::open(&data.join("trajectories/swebench-verified_gemini3pro_mini-1.15")).unwrap();
    let rows = read_tasks(&data.join("tasks/swebench-lite.jsonl")).unwrap();
    let (mut blocks, mut flagged) = (0, Vec::new());
    for task in rows.tasks.iter().filter(|task| REAL.contains(&task.id().repo_key())) {
        let history =
            History::for_target(&runs, task.id(), Chronology::Number, &MergeDates::default()).unwrap();
        let setup = Setup {
            condition: "bm25".into(),
            seed: 0,
            budget: Budget::default(),
            template: BlockTemplate::default(),
        };
        let system = open("bm25", &serde_json::Value::Null, &Resources::default()).unwrap();
        let mut host = Host::build(system, &history, setup).await.unwrap();
        let answer = host.retrieve(&Query::at_start(Target::from(&task.solver))).await.unwrap();
        let Outcome::Injected(injection) = answer.outcome else { continue };
        blocks += 1;
        let of = |id: &InstanceId| {
            let entry = history.entries().iter().find(|entry| entry.id() == id).unwrap();
            let summary = entry.summary(&Limits::default()).unwrap();
            Source { id: id.clone(), issue: summary.issue, patch: summary.submission }
        };
        let sources: Vec<Source> = injection.sources.iter().map(of).collect();
        let found = scan(&injection.block, &sources, task, None);
        if found.is_flagged() {
            flagged.push((task.id().clone(), found));
        }
    }
    assert!(blocks >= 20 && flagged.len() * 10 <= blocks, "{flagged:?}");
}

/// The repositories whose rows are looked at.
const REAL: [&str; 1] = ["matplotlib__matplotlib"];
