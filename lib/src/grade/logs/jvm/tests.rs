//! Conformance vectors of the reference parsers, and small logs whose truth is known.

use super::super::tests::check_vectors;
use super::super::{Rules, parse_log};

/// Inputs and what the reference parsers made of them.
const VECTORS: &str = r##"
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\"?>\n<testsuite name=\"s\">\n<testcase name=\"a\" classname=\"C\"/>\n<testcase name=\"b\" classname=\"C\"><failure/><skipped/></testcase>\n</testsuite>\n", "out": {"a (C)": "PASSED", "b (C)": "SKIPPED"}}
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\"?><testsuite><testcase name=\"a\" classname=\"C\"/></testsuite>", "out": {}}
{"p": "parse_log_gradlew_v1", "log": "  <?xml version=\"1.0\"?>\n<testsuite>\n<testcase name=\"a\" classname=\"C\"/>\n</testsuite>", "out": {}}
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\"?>\n<testsuites>\n<testsuite>\n<testcase name=\"a\" classname=\"C\"/>\n</testsuite>\n</testsuites>", "out": {}}
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\"?>\n<testsuites>\n<testsuite>\n<testcase name=\"a\" classname=\"C\"/>\n</testsuite></testsuites>", "out": {"a (C)": "PASSED"}}
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\"?>\n<testsuite>\n<testcase name=\"a\" classname=\"C\"/>\n</testsuite><?xml version=\"1.0\"?>\n<testsuite>\n<testcase name=\"b\" classname=\"C\"/>\n</testsuite>\n", "out": {}}
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\"?>\n<testsuite>\n<testcase classname=\"C\"/>\n<testcase name=\"n\"/>\n<testcase name=\"e\" classname=\"C\"><error/></testcase>\n</testsuite>", "out": {"": "PASSED", "n": "PASSED", "e (C)": "ERROR"}}
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\"?>\n<testsuite xmlns=\"u\">\n<testcase name=\"a\" classname=\"C\"/>\n</testsuite>", "out": {}}
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<testsuite>\n<testcase name=\"é&#10;x\ty\" classname=\"C\"/>\n</testsuite>", "out": {"é\nx y (C)": "PASSED"}}
{"p": "parse_log_gradlew_v1", "log": "<?xml version=\"1.0\"?>\n<testsuite>\n<system-out>\u001b[0m</system-out><testcase name=\"a\" classname=\"C\"/>\n</testsuite>", "out": {}}
{"p": "parse_log_junit", "log": "<testcase name=\"a\" classname=\"C\" time=\"1\"/><testcase classname=\"C\" name=\"b &amp; c\"><failure>x</failure></testcase>", "out": {"C a": "PASSED", "C b &amp; c": "FAILED"}}
{"p": "parse_log_junit", "log": "<testcase name=\"a > b\" classname=\"C\"/>", "out": {}}
{"p": "parse_log_junit", "log": "<testcase name=\"n\" classname=\"A>B\"/>", "out": {"n": "PASSED"}}
{"p": "parse_log_junit", "log": "<testcase name='q' classname='C'/>", "out": {}}
{"p": "parse_log_junit", "log": "<testcase name=\"n\" file-name=\"y\"/>", "out": {"y": "PASSED"}}
{"p": "parse_log_junit", "log": "<testcase name=\"n\"><system-out>a <error b</system-out></testcase><testcase name=\" m \"></testcase><testcases name=\"z\"/><testcase-x name=\"w\"/>", "out": {"n": "ERROR", " m ": "PASSED", "w": "PASSED"}}
{"p": "parse_log_junit", "log": "<testcase name=\"open\"> blah <skipped", "out": {"open": "SKIPPED"}}
{"p": "parse_log_gradle_custom", "log": "a PASSED\na  PASSED\nBUILD FAILED\n> Task :test FAILED\ncom.F > t() PASSED (1.2s)\nx SKIPPED\nab cd PASSED FAILED", "out": {"a ": "PASSED", "BUILD": "FAILED", "com.F > t()": "PASSED", "ab cd PASSED": "FAILED"}}
{"p": "parse_logs_kotlin_junit", "log": "Running a.B\nTests run: 3, Failures: 0, Errors: 0, Skipped: 1\n[INFO] Running c.D\nTests run: 1, Failures: 0, Errors: 0, Skipped: 0", "out": {"a.B": "SKIPPED"}}
{"p": "parse_log_swift", "log": "Test Case 'A.b' passed (0.1 seconds)\nTest Case '-[M.A b]' passed (0.1 seconds).\nTest Case 'A.c' skipped (0.1 seconds)\nTest Case 'A.d' failed (1.2.3 seconds)", "out": {"A.b": "PASSED", "A.d": "FAILED"}}
{"p": "parse_java_mvn", "log": "[INFO] Running a.BTest\n[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in a.BTest\n[ERROR] Foo.java:12 bad\n[ERROR] a.CTest.t1:33 NullPointerException\n[ERROR] pkg.Outer$Inner\n[INFO] BUILD SUCCESS", "out": {"a.BTest": "PASSED", "Foo.java": "FAILED", "Foo": "FAILED", "a.CTest.t1": "ERROR", "a.CTest": "FAILED", "pkg.Outer": "FAILED", "pkg": "FAILED", "---NO TEST NAME FOUND YET---": "PASSED"}}
{"p": "parse_java_mvn", "log": "Running a.B\nRunning c.D", "out": {"a.B": "PASSED", "c.D": "PASSED"}}
{"p": "parse_java_mvn", "log": "Tests run: ٣, Failures: ٠, Errors: 0, Skipped: ١, Time elapsed: 1 s - in a.B", "out": {"a.B": "SKIPPED"}}
{"p": "parse_java_mvn_v2", "log": "[INFO] Tests run: 0, Failures: 0, Errors: 0, Skipped: 0\n[INFO] Mod - A ....... SUCCESS [ 1.2 s]\n[INFO] B .. FAILURE\n[INFO] C ... SKIPPED", "out": {"__suite__": "SKIPPED", "Mod - A": "PASSED", "B": "FAILED", "C": "SKIPPED"}}
{"p": "parse_log_maven", "log": "+ mvn -Dtest=A test\n[INFO] BUILD SUCCESS\nmvn -Dtest=B -Dtest=C#d x\nBUILD FAILURE\n BUILD SUCCESS ", "out": {"A": "PASSED", "C#d": "PASSED"}}
{"p": "parse_log_ant", "log": "  [junit] [PASS] a(b)\n [junit]   [FAIL] c d\n[junit] [ERR] e\n[junit] [PASS]", "out": {"a(b)": "PASSED", "c d": "FAILED", "e": "FAILED"}}
{"p": "parse_log_lein", "log": "lein test a.b c.d\nFAIL in (x)\nlein test :only a.b/t\nERROR in (y)\nlein test e.f", "out": {"a.b": "ERROR", "c.d": "FAILED", "e.f": "PASSED"}}
{"p": "parse_log_scala", "log": "[info] - a (3 milliseconds)\n[info] - b *** FAILED *** (1 second, 2 milliseconds)\n[info] - c !!! IGNORED !!!\n[info] - d !!! CANCELED !!! (1 ms)\n[info] - e\n[info] - f (x) (3 ms)\n[info] - b (1 ms)", "out": {"a": "PASSED", "b": "FAILED", "c": "SKIPPED", "d": "SKIPPED", "f (x)": "PASSED"}}
{"p": "parse_log_scala", "log": "[info] - a *** FAILED ***", "out": {}}
{"p": "parse_log_scala_v2", "log": "\u001b[32m  + \u001b[0m\u001b[32mname a\u001b[0m \u001b[90m0.01s\u001b[0m\n  x bad 1.2ms\n + u 3μs\n + v 3µs\n==> X s.t  0.1s\n[32m  + [0m[32mn2[0m [90m5ms[0m", "out": {"name a": "PASSED", "bad": "FAILED", "u": "PASSED", "n2": "PASSED"}}
{"p": "parse_log_scala_v3", "log": "[info] Suite:\n[info] - a (3 milliseconds)\n[info] - b *** FAILED *** (3 milliseconds)\n[info] - c *** FAILED ***\n[info]   - nested\n[info] - d\n[info] - e *** FOO ***\n[info] Run completed in 1 s\n[info] - f !!! IGNORED !!!\n[info] - a", "out": {"Suite:: a": "PASSED", "Suite:: b *** FAILED ***": "PASSED", "Suite:: c": "FAILED", "- nested: d": "PASSED", "- nested: e": "FOO", "- nested: f !!! IGNORED !!!": "PASSED", "- nested: a": "PASSED"}}
"##;

#[test]
fn upstream_rules_equal_the_reference_parsers_on_every_vector() {
    assert_eq!(check_vectors(VECTORS), 31);
}

#[test]
fn counts_of_more_than_4300_digits_raise() {
    let log = format!("Running a\nTests run: {}, Failures: 0, Errors: 0, Skipped: 0", "1".repeat(4301));
    for parser in ["parse_java_mvn", "parse_java_mvn_v2", "parse_logs_kotlin_junit"] {
        assert!(parse_log(parser, &log, Rules::Upstream).is_err(), "{parser}");
        assert!(parse_log(parser, &log, Rules::Strict).is_ok(), "{parser}");
    }
}

fn strict(parser: &str, log: &str) -> (Vec<String>, Vec<String>) {
    let map = parse_log(parser, log, Rules::Strict).unwrap();
    let groups = map.groups.iter().map(|group| format!("{} {}", group.name, group.status)).collect();
    (map.statuses.iter().map(|(name, status)| format!("{name} {status}")).collect(), groups)
}

#[test]
fn strict_rules_tell_tests_from_builds() {
    let (tests, groups) = strict(
        "parse_log_gradle_custom",
        "> Task :test FAILED\na.B > c(int) > [1] x y PASSED (1.2s)\na.B > d SKIPPED\na.B > e FAILED\nBUILD FAILED",
    );
    assert_eq!(tests, ["a.B > c(int) > [1] x y PASSED", "a.B > d SKIPPED", "a.B > e FAILED"]);
    assert_eq!(groups, ["BUILD FAILED"]);
    let (tests, groups) = strict(
        "parse_java_mvn",
        "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE! -- in a.B\n\
         [ERROR] a.B.c -- Time elapsed: 0.01 s <<< FAILURE!\n\
         [ERROR] d(a.B)  Time elapsed: 0.01 s  <<< ERROR!\n[INFO] -------\n[INFO] BUILD SUCCESS",
    );
    assert_eq!(tests, ["a.B.c FAILED", "a.B.d ERROR"]);
    assert_eq!(groups, ["a.B FAILED", "BUILD FAILED"]);
}

#[test]
fn strict_rules_of_lein_scala_and_swift() {
    let lein = "lein test a.b\nlein test :only a.b/t\nFAIL in (t) (x.clj:1)\nlein test c.d\nRan 3 tests containing 3 assertions.";
    let (tests, groups) = strict("parse_log_lein", lein);
    assert_eq!(
        (tests, groups),
        (vec!["a.b/t FAILED".to_owned()], vec!["a.b FAILED".to_owned(), "c.d PASSED".to_owned()])
    );
    let scala = "[info] S:\n[info] - a (3 milliseconds)\n[info] - b *** FAILED *** (1 second, 2 milliseconds)\n[info]   - c !!! IGNORED !!!";
    assert_eq!(strict("parse_log_scala_v3", scala).0, ["S > a PASSED", "S > b FAILED", "S > c SKIPPED"]);
    let swift = "Test Case '-[M.A b]' passed (0.1 seconds).\nTest Case 'A.c' skipped (0.1 seconds)\n\
                 ✔ Test d() passed after 0.001 seconds.\n✘ Test \"e f\" failed after 0.1 seconds with 1 issue.\n\
                 ✔ Test run with 2 tests passed after 0.1 seconds.";
    assert_eq!(
        strict("parse_log_swift", swift).0,
        ["-[M.A b] PASSED", "A.c SKIPPED", "d() PASSED", "e f FAILED"]
    );
}
