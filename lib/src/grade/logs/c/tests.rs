//! Conformance vectors of the reference parsers, real runs, and hostile input.

use super::super::tests::{as_text, check_real_logs, check_vectors};
use super::super::{Rules, parse_log};

/// Inputs and what the reference parsers made of them.
const VECTORS: &str = r##"
{"p": "parse_log_jq", "log": "PASS: a\nFAIL: b\nXFAIL: c\nSKIP: d\n  PASS:  e\n", "out": {"a": "PASSED", "b": "FAILED", " e": "PASSED"}}
{"p": "parse_log_redis", "log": "[ok]: a (12 ms)\n[err]: b in tests/x.tcl\n[skip]: c\n[ignore]: d\n[ok]: e (1.2 s)", "out": {"a": "PASSED", "b": "FAILED", "c": "SKIPPED", "d": "SKIPPED", "e (1.2 s)": "PASSED"}}
{"p": "parse_log_micropython_test", "log": "pass  a/b.py\nFAIL  c.py\nskip  d.py\nPASS x", "out": {"a/b.py": "PASSED", "c.py": "FAILED", "d.py": "SKIPPED"}}
{"p": "parse_log_googletest", "log": "[       OK ] A.b (3 ms)\n[  FAILED  ] A.c (1 ms)\n[  FAILED  ] A.c\n[  FAILED  ] P/1, where GetParam() = (1, 2)\n1: [       OK ] D.e (0 ms)", "out": {"A.b": "PASSED", "A.c": "FAILED", "P/1, where GetParam() =": "FAILED", "D.e": "PASSED"}}
{"p": "parse_log_cpp", "log": "tests/a.py::t PASSED [ 1%]\nx PASSEDfoo\ntests/a.py::u FAILED\nu SKIPPED\nERROR here ERROR\n=================================== FAILURES ===================================\n___________________________ t ___________________________\nz PASSED", "out": {"t": "FAILED", "x": "PASSED", "u": "SKIPPED", "ERROR here": "ERROR"}}
{"p": "parse_log_cpp_v2", "log": "Test a b  passed\nTest c failed\nTest d skipped\nTest a b passed", "out": {"a b": "PASSED", "c": "FAILED", "d": "SKIPPED"}}
{"p": "parse_log_cpp_v3", "log": "[12/414] File: x... OK\n[1/2] y... FAILED\nBuilding foo... done\nAES ran 10 tests in 3.1 msec all ok\nChaCha ran 2 tests in 1 sec 1 tests failed\n... OK\n100% tests passed\nsome Failure here\nfoo....OK\nit was skipped\nok a... FAIL no", "out": {"File: x": "PASSED", "y": "FAILED", "Building foo": "ERROR", "AES ran 10 tests all ok": "PASSED", "ChaCha ran 2 tests 1 tests failed": "FAILED", "": "PASSED", "100% tests passed": "PASSED", "some Failure here": "FAILED", "foo.": "PASSED", "it was skipped": "SKIPPED", "ok a... FAIL no": "FAILED"}}
{"p": "parse_log_cpp_v3", "log": "a... SKIPPED OK\n[1/2] b... weird passed\nfoo.. OK\n[3/4]... OK\nname ran 3 tests in 1 msec", "out": {"a... SKIPPED OK": "SKIPPED", "[1/2] b... weird passed": "PASSED", "foo.. OK": "PASSED", "": "PASSED"}}
{"p": "parse_log_cpp_v3", "log": "foo... ²\nbar... e\u0301\nbaz... ok", "out": {"foo": "ERROR", "baz": "PASSED"}}
{"p": "parse_log_cpp_v4", "log": " 1/2 Test  #1: foo ........   Passed    0.01 sec\n 2/2 Test  #2: bar .....***Failed 0.1 sec\n3/3 Test #3: baz ...... Skipped\n4/4 Test #4: q .. Timeout", "out": {"foo": "PASSED", "baz": "SKIPPED", "q": "FAILED"}}
"##;

#[test]
fn upstream_rules_equal_the_reference_parsers_on_every_vector() {
    assert_eq!(check_vectors(VECTORS), 10);
}

/// The folder of real logs, where the environment names one.
fn logs() -> Option<std::path::PathBuf> {
    std::env::var_os("MEMTRIAL_DATA").map(|data| std::path::Path::new(&data).join("logs"))
}

#[test]
fn upstream_rules_equal_the_reference_parsers_on_real_logs() {
    let Some(logs) = logs() else { return };
    for folder in ["ctest", "gtest", "dotnet_test"] {
        check_real_logs(&logs.join(folder));
    }
}

#[test]
fn strict_rules_find_the_truth_in_the_shared_suite_of_ctest() {
    let Some(logs) = logs() else { return };
    let truth = [
        ("passes", "PASSED"),
        ("fails", "FAILED"),
        ("with", "FAILED"),
        ("slow", "FAILED"),
        ("notfound", "FAILED"),
        ("disabled", "SKIPPED"),
        ("skipped", "SKIPPED"),
    ];
    for log in ["default", "verbose", "output_on_failure"] {
        let score = super::super::truth_tests::Truth {
            log: logs.join(format!("awkward-suites/ctest/{log}.log")),
            parser: "parse_log_cpp_v4".into(),
            tests: truth.map(|(name, status)| (name.to_owned(), status.to_owned())).into(),
        }
        .check();
        super::super::truth_tests::tell(format_args!(
            "ctest/{log}: upstream {} of {}",
            score.right, score.of
        ));
    }
}

#[test]
fn plain_results_have_every_status_and_no_look_alike() {
    for (parser, log, truth) in [
        (
            "parse_log_jq",
            "PASS: a b\nXFAIL: c\nXPASS: d\nSKIP: e\nERROR: f\n FAIL: printed\n# PASS:  1\nFAIL: t.sh 1 - x",
            "a b=PASSED c=XFAIL d=FAILED e=SKIPPED f=ERROR t.sh 1 - x=FAILED",
        ),
        (
            "parse_log_redis",
            "[ok]: a (12 ms)\n[err]: b in tests/x.tcl\n[skip]: c\n[ignore]: d\n[ok]: e (1.2 s)\n [ok]: printed",
            "a=PASSED b=FAILED c=SKIPPED d=SKIPPED e=PASSED",
        ),
        ("parse_log_micropython_test", "pass  a.py\nFAIL  b.py\npass c", "a.py=PASSED b.py=FAILED"),
        (
            "meson",
            " 1/9 s - p:a b   OK   1.06s\n2/9 c  FAIL  0.01s   exit status 1\n3/9 d SKIP 0.1s\n4/9 e EXPECTEDFAIL 0.1s\n5/9 f UNEXPECTEDPASS 0.1s\n6/9 g TIMEOUT 30.02s\n7/9 h RUNNING 1.0s",
            "c=FAILED d=SKIPPED e=XFAIL f=FAILED g=FAILED s - p:a b=PASSED",
        ),
        (
            "parse_log_cpp_v3",
            "[1/2] x... OK\n[2/2] y... FAILED\nBuilding foo... done\n100% tests passed\nAES ran 2 tests in 1 msec all ok",
            "AES ran 2 tests all ok=PASSED x=PASSED y=FAILED",
        ),
        (
            "parse_log_cpp_v2",
            "Test a b  passed\nTest c failed\nTest c passed\nTest  passed",
            "a b=PASSED c=FAILED",
        ),
        (
            "parse_log_cpp",
            "a.py::T::t[x PASSED] PASSED [ 1%]\na.py::u FAILED\nb SKIPPED\n==== FAILURES ====\nc.py::z PASSED [ 2%]",
            "a.py::T::t[x PASSED]=PASSED a.py::u=FAILED",
        ),
        (
            "boost",
            "Entering test module \"m\"\na.cpp(3): Entering test suite \"s\"\na.cpp(4): Entering test case \"x\"\na.cpp(5): error: in \"s/x\": check 1 == 2 has failed [1 != 2]\na.cpp(4): Leaving test case \"x\"; testing time: 12us\na.cpp(7): Entering test case \"y\"\nLeaving test case \"ghost\"\na.cpp(7): Leaving test case \"y\"; testing time: 1us\na.cpp(9): Test case \"s/z\" is skipped because disabled\na.cpp(11): Entering test case \"w\"",
            "s/w=FAILED s/x=FAILED s/y=PASSED s/z=SKIPPED",
        ),
    ] {
        let map = parse_log(parser, log, Rules::Strict).unwrap();
        let told: Vec<String> =
            as_text(&map).iter().map(|(name, status)| format!("{name}={status}")).collect();
        assert_eq!(told.join(" "), truth, "{parser}");
    }
}
