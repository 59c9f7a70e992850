use super::*;
use crate::task::{EvaluatorView, HiddenView, InstanceId, Recipe, SolverView};

const PATCH: &str = r#"diff --git a/src/widget.py b/src/widget.py
--- a/src/widget.py
+++ b/src/widget.py
@@ -1,1 +1,7 @@
 def turn(items):
+    """Turns a "whole" widget around."""
+    remaining_quarters = quarter_turns % 4
+    rotated = rotate_one_item(remaining_quarters)
+    return [rotated for item in items]
+    x = 1
+    pass
"#;

const TEST_PATCH: &str = r"diff --git a/tests/test_widget.py b/tests/test_widget.py
--- a/tests/test_widget.py
+++ b/tests/test_widget.py
@@ -1,1 +1,2 @@
 from widget import turn
+assert turn_around(quarters=5) == 'one quarter'
";

fn task() -> Task {
    Task {
        solver: SolverView {
            instance_id: InstanceId::parse("acme__widget-7").unwrap(),
            repo: "acme/widget".into(),
            base_commit: "0".repeat(40),
            problem_statement: "What the statement says is known to everybody by now.".into(),
            language: None,
            image_name: None,
            version: None,
            recipe: Recipe::default(),
        },
        hidden: HiddenView {
            hints_text: Some(
                "The maintainers agreed to take the quarters modulo four.\nShort.\n\
                 What the statement says is known to everybody by now."
                    .into(),
            ),
            ..HiddenView::default()
        },
        evaluator: EvaluatorView {
            patch: PATCH.into(),
            test_patch: TEST_PATCH.into(),
            fail_to_pass: vec!["tests/test_widget.py::test_turning_around[5]".into()],
            pass_to_pass: vec![],
        },
    }
}

fn has(answer: &Answer, text: &str) -> bool {
    answer.texts().any(|searched| searched == text)
}

/// The kind of a file that holds these texts.
fn kind(answer: &Answer, texts: &[&str], foreign: bool) -> Option<Kind> {
    let mut found = Found::default();
    texts.iter().for_each(|text| assert!(answer.note(&mut found, text), "{text} is not searched for"));
    answer.judge(&found, foreign).map(|verdict| verdict.kind)
}

const LINES: [&str; 4] = [
    r#""""Turns a "whole" widget around.""""#,
    "remaining_quarters = quarter_turns % 4",
    "rotated = rotate_one_item(remaining_quarters)",
    "return [rotated for item in items]",
];

#[test]
fn lines_that_say_something_are_searched_for_also_as_json_has_them() {
    let answer = Answer::of(&task());
    for line in LINES {
        assert!(has(&answer, line), "{line}");
    }
    assert!(has(&answer, r#"\"\"\"Turns a \"whole\" widget around.\"\"\""#), "{answer:#?}");
    for line in ["x = 1", "pass", "def turn(items):", "Short."] {
        assert!(!has(&answer, line), "{line}");
    }
    // what everybody reads is no secret
    assert!(!has(&answer, "What the statement says is known to everybody by now."));
    assert!(!answer.has_no_lines() && Answer::unknown().has_no_lines());
}

#[test]
fn one_line_is_a_coincidence_and_a_good_part_of_the_patch_is_not() {
    let answer = Answer::of(&task());
    assert_eq!(kind(&answer, &LINES[1..2], false), None);
    assert_eq!(kind(&answer, &LINES[1..3], false), Some(Kind::Gold));
    // twice the same line, once as JSON, is one line
    assert_eq!(kind(&answer, &[LINES[0], r#"\"\"\"Turns a \"whole\" widget around.\"\"\""#], false), None);
    // the only line of a file of a patch counts alone, where it is long
    assert_eq!(kind(&answer, &["assert turn_around(quarters=5) == 'one quarter'"], true), Some(Kind::Tests));
    let mut found = Found::default();
    LINES.iter().for_each(|line| assert!(answer.note(&mut found, line)));
    let verdict = answer.judge(&found, false).unwrap();
    assert!(
        verdict.what.starts_with("4 of 4 lines that the gold patch adds to src/widget.py"),
        "{verdict:?}"
    );
}

#[test]
fn few_lines_of_many_and_short_ones_are_no_alarm() {
    let mut answer = Answer::default();
    let piece = Piece::Gold("a.py".into());
    let lines: Vec<String> = (0..20).map(|n| format!("result_of_step_{n:02} = compute({n})")).collect();
    answer.add_lines(&lines.join("\n"), &piece);
    let first = |count: usize| lines[..count].iter().map(String::as_str).collect::<Vec<_>>();
    // a fifth of them
    assert_eq!(kind(&answer, &first(3), false), None);
    assert_eq!(kind(&answer, &first(4), false), Some(Kind::Gold));
    let mut short = Answer::default();
    short.add_lines("if not value:\nreturn empty\nbreak_loop()", &piece);
    assert_eq!(kind(&short, &["if not value:", "return empty", "break_loop()"], false), None);
    assert!(short.has_no_lines());
}

#[test]
fn what_the_base_commit_says_is_forgotten() {
    let mut answer = Answer::of(&task());
    let said = [format!("    {} # as before", LINES[1]), LINES[2].to_owned(), "FAIL_TO_PASS".to_owned()];
    answer.forget(&said.into());
    assert!(!has(&answer, LINES[1]) && !has(&answer, LINES[2]) && has(&answer, LINES[3]));
    assert!(has(&answer, "FAIL_TO_PASS"), "a row is known by its columns and its id");
    // two lines are left of the patch, and both are needed
    assert_eq!(kind(&answer, &[LINES[3]], false), None);
    assert_eq!(kind(&answer, &[LINES[3], LINES[0]], false), Some(Kind::Gold));
}

#[test]
fn rows_hidden_text_addresses_and_names_of_tests_are_told_apart() {
    let answer = Answer::of(&task());
    let hint = "The maintainers agreed to take the quarters modulo four.";
    let test = "tests/test_widget.py::test_turning_around[5]";
    for (texts, foreign, expected) in [
        (vec!["acme__widget-7", "FAIL_TO_PASS"], false, Some(Kind::Fields)),
        (vec!["acme__widget-7"], false, None),
        (vec!["FAIL_TO_PASS", "test_patch"], false, None),
        (vec![hint], false, Some(Kind::Hidden)),
        (vec!["acme/widget/pull/7"], false, Some(Kind::PullRequest)),
        (vec![hint, "acme/widget/pulls/7", LINES[1], LINES[2]], false, Some(Kind::Gold)),
        (vec![test], false, Some(Kind::TestNames)),
        (vec!["test_turning_around"], false, Some(Kind::TestNames)),
        (vec!["test_turning_around"], true, None),
    ] {
        assert_eq!(kind(&answer, &texts, foreign), expected, "{texts:?}");
    }
    assert!(!answer.note(&mut Found::default(), "acme/widget/pull/8"));
}

#[test]
fn compiled_code_is_known_by_its_names() {
    let answer = Answer::of(&task());
    assert!(answer.has_words("widget") && !answer.has_words("test_widget"));
    assert_eq!(
        answer.words_in("widget", b"\0remaining_quarters\0rotate_one_item\0"),
        ["remaining_quarters", "rotate_one_item"]
    );
    assert!(answer.words_in("widget", b"\0remaining_quarters\0").is_empty(), "one name of many");
    assert!(answer.words_in("gadget", b"\0remaining_quarters\0rotate_one_item\0").is_empty());
}

#[test]
fn evidence_is_one_short_line() {
    assert_eq!(shorten_to("a\tb\nc", 5), "a b c");
    assert_eq!(shorten_to("äöüäöü", 4), "äöü…");
    assert_eq!((stem("a/b.test.py"), stem("Makefile")), ("b", "Makefile"));
}
