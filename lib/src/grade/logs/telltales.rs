//! Lines by which runners are known.

/// A runner, and the lines that only it writes.
pub(super) struct Runner {
    /// Any of these in a parser's framework or name says that it reads this runner's logs.
    pub(super) words: &'static [&'static str],
    /// Lines that name the runner or frame its output.
    pub(super) frames: &'static [&'static str],
    /// Lines that look like results.
    pub(super) results: &'static [&'static str],
}

const fn runner(
    words: &'static [&'static str],
    frames: &'static [&'static str],
    results: &'static [&'static str],
) -> Runner {
    Runner { words, frames, results }
}

/// Marks in front of results in trees of JavaScript runners.
const MARKED: &str = r"^\s*(?:[✓✔✕✗✖×√○↓]|\d+\)) \S";

pub(super) const RUNNERS: &[Runner] = &[
    runner(
        &["pytest"],
        &[
            r"^=+ test session starts =+$",
            r"^=+ short test summary info =+$",
            r"^collect(?:ed|ing) \d+ items?",
        ],
        &[
            r"^(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) \S+\.py",
            r"^\S+\.py::.* (?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b",
        ],
    ),
    runner(
        &["unittest", "nose", "django"],
        &[r"^Ran \d+ tests? in [\d.]+s$", r"^(?:ERROR|FAIL): \w+ \(\w[\w.]*\)"],
        &[r"^\w+ \([\w.]+\)(?: \.\.\. .+|$)", r" \.\.\. (?:ok|FAIL|ERROR|skipped .*)$"],
    ),
    runner(
        &["django"],
        &[r"^Creating test database for alias ", r"^Testing against Django installed in "],
        &[],
    ),
    runner(
        &["sympy"],
        &[r"^=+ tests finished: \d+ passed", r"^cache:\s+yes$"],
        &[r"^test_\w+ (?:ok|f|F|E|s|X)\b"],
    ),
    runner(
        &["go test", "gotest"],
        &[
            r"^(?:ok|FAIL|---)\s+\S+\s+(?:[\d.]+s|\(cached\))",
            r"^\?\s+\S+\s+\[no test files\]",
            r#"^\{"(?:Time":"[^"]*","Action|Action)":"(?:run|start|output|pass)""#,
            r"^=== RUN\s",
        ],
        &[r"^\s*--- (?:PASS|FAIL|SKIP): \S", r#"^\{.*"Action":"(?:pass|fail|skip)".*"Test":"#],
    ),
    runner(
        &["cargo test", "parse_log_cargo"],
        &[
            r"^running \d+ tests?$",
            r"^test result: (?:ok|FAILED)\. \d+ passed",
            r"^\s+Running (?:unittests|tests/)\S* ?",
            r"^\s+Doc-tests \S",
        ],
        &[r"^test \S.* \.\.\. (?:ok|FAILED|ignored)\b", r#"^\{ ?"type": ?"test""#],
    ),
    runner(
        &["nextest"],
        &[r"^\s*Nextest run ID ", r"^\s*Starting \d+ tests? across \d+ binar"],
        &[r"^\s*(?:PASS|FAIL|SIGABRT|LEAK|TIMEOUT) \[\s*[\d.]+s\]"],
    ),
    runner(
        &["jest"],
        &[
            r"^Test Suites: .*\d+ total$",
            r"^Ran all test suites",
            r"^\s*(?:PASS|FAIL)\s+\S+\.(?:[cm]?[jt]sx?|vue)\b",
            r"^\[(?:PASSED|FAILED|PENDING)\] ",
        ],
        &[MARKED],
    ),
    runner(
        &["vitest"],
        &[
            r"^\s*RUN\s+v\d+\.\d+",
            r"^\s*Test Files\s+\d+ (?:passed|failed)",
            r"^\s*Tests\s+\d+ (?:passed|failed|skipped)",
        ],
        &[r"^\s*[✓×❯↓✗√] \S"],
    ),
    runner(&["mocha"], &[r"^\s*\d+ passing(?: \(\d+\w+\))?$", r"^\s*\d+ (?:failing|pending)$"], &[MARKED]),
    runner(&["ava"], &[r"^\s*\d+ (?:tests? (?:passed|failed)|known failures?)$"], &[r"^\s*[✔✖✘√×] \S"]),
    runner(
        &["node", "tap"],
        &[
            r"^# (?:tests|pass|fail|suites|cancelled|skipped|todo) \d+$",
            r"^ℹ (?:tests|suites|pass|fail) \d+$",
            r"^TAP version 1[34]$",
        ],
        &[r"^\s*(?:not )?ok \d+\b"],
    ),
    runner(&["tap", "bats"], &[r"^1\.\.\d+\b", r"^TAP version 1[34]$"], &[r"^\s*(?:not )?ok \d+\b"]),
    runner(
        &["karma"],
        &[r"\[karma(?:-server)?\]", r"Executed \d+ of \d+", r"\[karma\]: Karma v"],
        &[r"^\s*[✓✔✗✖] \S", r"^\S.* FAILED$"],
    ),
    runner(&["jasmine"], &[r"^\d+ specs?, \d+ failures?", r"^Jasmine started"], &[r"^\s*[✓✗✖✔] \S"]),
    runner(&["playwright"], &[r"^Running \d+ tests? using \d+ workers?"], &[r"^\s*(?:ok|x|-|✓|✘)\s+\d+ \S"]),
    runner(
        &["deno"],
        &[r"^running \d+ tests? from \S", r"^ok \| \d+ passed"],
        &[r" \.\.\. (?:ok|FAILED|ignored) \("],
    ),
    runner(&["bun"], &[r"^bun test v"], &[r"^\((?:pass|fail|skip|todo)\) "]),
    runner(
        &["maven", "surefire", "junit", "mvn", "java"],
        &[r"T E S T S$", r"maven-surefire-plugin", r"^(?:\[\w+\] )?Running [\w.$]+$", r"^\[INFO\] BUILD "],
        &[r"Tests run: *\d+, Failures: *\d+", r"^\[(?:INFO|ERROR)\] [\w.$]+[#.]\w+.*Time elapsed"],
    ),
    runner(
        &["gradle", "junit"],
        &[r"^> Task \S*[tT]est", r"^BUILD (?:SUCCESSFUL|FAILED) in ", r"^Gradle Test Executor "],
        &[r"^\S.* > .* (?:PASSED|FAILED|SKIPPED)$"],
    ),
    runner(
        &["sbt", "scalatest", "scala"],
        &[r"^\[info\] (?:Run completed in|Tests: succeeded)", r"^\[info\] compiling "],
        &[r"^\[info\] - \S"],
    ),
    runner(
        &["lein", "clojure"],
        &[r"^Ran \d+ tests containing \d+ assertions", r"^lein test "],
        &[r"^lein test \S"],
    ),
    runner(
        &["ctest"],
        &[r"^Test project /", r"^\d+% tests passed, \d+ tests failed out of"],
        &[r"^\s*\d+/\d+ Test\s+#\d+: "],
    ),
    runner(
        &["gtest", "google"],
        &[r"^\[==========\] ", r"^\[----------\] ", r"^Running main\(\) from "],
        &[r"^\[\s+(?:OK|FAILED|SKIPPED)\s+\] \S"],
    ),
    runner(
        &["catch2", "catch"],
        &[
            r"^All tests passed \(\d+ assertions?",
            r"^test cases: +\d+ ",
            r"is a Catch2? v",
            r"<Catch2?TestRun",
        ],
        &[r"^(?:All tests passed|test cases:)"],
    ),
    runner(
        &["meson"],
        &[r"^Ok: +\d+", r"^Full log written to \S*meson-logs"],
        &[r"^\s*\d+/\d+ \S.*\b(?:OK|FAIL|SKIP|TIMEOUT|EXPECTEDFAIL)\b"],
    ),
    runner(
        &["boost"],
        &[r"^\*\*\* (?:No errors detected|\d+ failures? )", r"^Running \d+ test cases?\.\.\."],
        &[],
    ),
    runner(
        &["phpunit"],
        &[r"^PHPUnit \d+\.\d+", r"^Runtime: +PHP "],
        &[r"^ *[✔✘∅↩☢⚠] \S", r"^OK \(\d+ tests?"],
    ),
    runner(
        &["pest"],
        &[r"^\s*Tests: +\d+ (?:passed|failed)"],
        &[r"^\s*(?:PASS|FAIL) +Tests\\", r"^\s*[✓⨯✗] \S"],
    ),
    runner(
        &["rspec", "ruby"],
        &[r"^\d+ examples?, \d+ failures?"],
        &[r"\((?:FAILED - \d+|PENDING: .*)\)$", r#"^\{"version":"[^"]*","(?:seed|examples)""#],
    ),
    runner(
        &["minitest", "ruby", "rails"],
        &[r"^\d+ (?:runs|tests), \d+ assertions, \d+ failures", r"^Run options: .*--seed"],
        &[r"^[\w:]+#test_\S+ = [\d.]+ s = [.FES]$", r"^\s*(?:PASS|FAIL|ERROR|SKIP)\b.*\([\d.]+s\)"],
    ),
    runner(
        &["dotnet", "vstest", "xunit", "nunit", "csharp", "c#"],
        &[
            r"^Test [Rr]un for \S+\.dll",
            r"^Total tests: \d+",
            r"^Microsoft \(R\) Test Execution",
            r"^(?:Passed|Failed)! +- Failed: ",
        ],
        &[r"^\s*(?:Passed|Failed|Skipped) \S.*"],
    ),
    runner(
        &["exunit", "mix", "elixir"],
        &[r"^\d+ (?:doctests?, )?(?:\d+ )?tests?, \d+ failures?", r"^Running ExUnit"],
        &[r"^\s*\* (?:test|doctest) "],
    ),
    runner(&["busted", "lua"], &[r"^\d+ success(?:es)? / \d+ failures?"], &[r"^\[\s+OK\s+\] \S"]),
    runner(&["testthat"], &[r"^\[ FAIL \d+ \| WARN \d+", r"^✔ \| F W"], &[r"^✔ \|"]),
    runner(&["julia"], &[r"^Test Summary: +\|"], &[r"^\S.* \| +\d+ +\d+"]),
    runner(
        &["hspec", "tasty", "cabal", "haskell", "stack"],
        &[
            r"^Test suite \S+: (?:RUNNING|PASS|FAIL)",
            r"^All \d+ tests passed",
            r"^Finished in [\d.]+ seconds$",
        ],
        &[r"^\s+\S.*(?:\[✔\]|\[✘\]|:\s+OK|:\s+FAIL)"],
    ),
    runner(
        &["xctest", "swift"],
        &[r"^Test Suite '.*' started at", r"^[◇􀟈] Test run started"],
        &[r"^Test Case '.*' (?:passed|failed|skipped)", r"^[✔✘] Test "],
    ),
    runner(
        &["dart", "flutter"],
        &[
            r"^\d\d:\d\d \+\d+(?: ~\d+)?(?: -\d+)?: (?:All tests passed|Some tests failed|loading )",
            r#"^\{"protocolVersion":"#,
        ],
        &[r"^\d\d:\d\d \+\d+"],
    ),
    runner(
        &["alcotest", "dune", "ocaml"],
        &[r"^Testing `?\S", r"^Test Successful in "],
        &[r"^\s*\[(?:OK|FAIL|SKIP)\]\s+\S"],
    ),
    runner(&["junit xml", "junit_xml"], &[r"<testsuites?[ >]"], &[r"<testcase "]),
];
