//! Descriptions: what they read, what is refused, what is learnt.

use std::collections::BTreeMap;
use std::path::Path;

use super::learn::{Example, learn};
use super::{Description, Rules};

fn read(description: &str, log: &str) -> BTreeMap<String, String> {
    let description = Description::from_toml(Path::new("a.toml"), description).unwrap();
    let map = description.parse(log, Rules::Strict).unwrap();
    map.statuses.into_iter().map(|(name, status)| (name, status.as_str().to_owned())).collect()
}

fn known(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, status)| ((*name).to_owned(), (*status).to_owned())).collect()
}

const GTEST: &str = r#"
name = "gtest"
[status]
OK = "passed"
FAILED = "failed"
[[section]]
name = "test"
begin = '^\[ RUN      \] (?<name>\S+)$'
end = '^\[  ?(?:     OK|FAILED)  ?\] (?<name>\S+) \('
unfinished = "error"
ignore = true
[[line]]
pattern = '^\[ +(?<status>OK|FAILED) +\] (?<name>\S+) \(\d+ ms\)$'
"#;

#[test]
fn ignored_sections_hide_what_tests_print_and_unfinished_tests_fail_closed() {
    let log = "[ RUN      ] A.a\n[       OK ] B.forged (0 ms)\n\x1b[32m[       OK ] A.a (3 ms)\x1b[0m\n\
               [ RUN      ] A.b\n[ RUN      ] A.c\n[  FAILED  ] A.c (1 ms)\n[ RUN      ] A.d\n";
    let expected = [("A.a", "PASSED"), ("A.b", "ERROR"), ("A.c", "FAILED"), ("A.d", "ERROR")];
    assert_eq!(read(GTEST, log), known(&expected));
}

#[test]
fn contexts_nest_by_indentation_level_and_end() {
    let by_indent = "name = 'a'\n[[context]]\npattern = '^(?<indent> *)(?<name>\\w+)$'\n[[line]]\nstatus = 'passed'\npattern = '^(?<indent> *)\\+ (?<name>\\w+)$'";
    let log = "a\n  b\n    + x\n  + y\nc\n  + x\n";
    assert_eq!(
        read(by_indent, log),
        known(&[("a > b > x", "PASSED"), ("a > y", "PASSED"), ("c > x", "PASSED")])
    );
    let by_end = "name = 'a'\njoiner = '/'\n[[context]]\npattern = '^begin (?<name>\\w+)'\nend = '^end'\n[[line]]\nstatus = 'failed'\npattern = '^\\+ (?<name>\\w+)$'";
    let log = "begin a\nbegin b\n+ x\nend b\n+ y\nend a\n+ z\n";
    assert_eq!(read(by_end, log), known(&[("a/b/x", "FAILED"), ("a/y", "FAILED"), ("z", "FAILED")]));
    let by_level = "name = 'a'\n[[context]]\npattern = '^# (?<name>\\w+)'\n[[context]]\npattern = '^- (?<name>\\w+)'\n[[line]]\nstatus = 'passed'\npattern = '^\\+ (?<name>\\w+)$'";
    let log = "# a\n- b\n+ x\n- c\n+ x\n# d\n+ x\n";
    assert_eq!(
        read(by_level, log),
        known(&[("a > b > x", "PASSED"), ("a > c > x", "PASSED"), ("d > x", "PASSED")])
    );
}

#[test]
fn policies_for_duplicates_differ() {
    let log = "ok a\nno a\nok a\n";
    for (policy, status) in [("worst", "FAILED"), ("last", "PASSED"), ("keep-failure", "FAILED")] {
        let description = format!(
            "name = 'a'\nduplicates = '{policy}'\n[status]\nok = 'passed'\nno = 'failed'\n[[line]]\npattern = '^(?<status>ok|no) (?<name>.+)$'"
        );
        assert_eq!(read(&description, log), known(&[("a", status)]), "{policy}");
    }
}

#[test]
fn mistakes_are_told_with_file_and_field() {
    for (text, message) in [
        ("name = 'a'", "a.toml: line: there is none"),
        (
            "name = 'a'\n[[line]]\npattern = '(?<name>x'\nstatus = 'passed'",
            "a.toml: line[1].pattern: no regular expression",
        ),
        (
            "name = 'a'\n[[line]]\npattern = 'x'\nstatus = 'passed'",
            "a.toml: line[1].pattern: it has no group",
        ),
        ("name = 'a'\n[[line]]\npattern = '(?<name>x)'", "a.toml: line[1].status: nothing tells"),
        (
            "name = 'a'\n[[line]]\npattern = '(?<status>x)(?<name>x)'",
            "a.toml: status: line[1].pattern captures a status",
        ),
        (
            "name = 'a'\n[[line]]\npattern = '(?<name>\\w{900}){900}'\nstatus = 'passed'",
            "it is too large once compiled",
        ),
        (
            "name = 'a'\n[[line]]\npattern = '(?<name>x)'\nstatus = 'passed'\nin = 'b'",
            "line[1].in: there is no [[section]] named \"b\"",
        ),
        ("name = 'a'\ncolour = 1", "unknown field `colour`"),
    ] {
        let error = Description::from_toml(Path::new("a.toml"), text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn learning_tells_words_numbers_and_durations() {
    let log =
        "=== RUN T1\n--- PASS: T1 (0.01s)\n=== RUN T2\n--- FAIL: T2 (12.5s)\n=== RUN T3\n--- SKIP: T3 (0s)\n";
    let outcomes = [("T1", "PASSED"), ("T2", "FAILED"), ("T3", "SKIPPED")];
    let outcomes =
        outcomes.iter().map(|(name, status)| ((*name).to_owned(), (*status).to_owned().into())).collect();
    let learnt = learn(&[Example { name: "log".into(), log: log.into(), outcomes }]).unwrap();
    assert!(learnt.report[0].is_perfect(), "{}", learnt.report[0]);
    let text = learnt.description.to_toml().unwrap();
    let unseen = "=== RUN N9\n--- FAIL: N9 (100.25s)\n--- PASS: Other (3s)\n=== RUN Lost\n";
    assert_eq!(read(&text, unseen), known(&[("N9", "FAILED"), ("Other", "PASSED")]));
}
