//! Conformance vectors of the reference parsers, real runs, and hostile input.

use super::super::tests::{as_text, check_vectors};
use super::super::{Rules, parse_log};

/// Inputs and what the reference parsers made of them.
const VECTORS: &str = r##"
{"p": "parse_log_csharp", "log": "  Passed Foo(a: [1, 2]) [3 ms]\n  Failed B [< 1 ms]\n  Skipped C\nPassed D [1 ms]\n[xUnit.net 00:00:01.23]     B.x [FAIL]\n  Passed B [1 ms]\n  Skipped E [1 ms]", "out": {"Foo(a:": "PASSED", "B": "FAILED", "C": "SKIPPED", "B.x": "FAILED", "E": "SKIPPED"}}
"##;

#[test]
fn upstream_rules_equal_the_reference_parsers_on_every_vector() {
    assert_eq!(check_vectors(VECTORS), 1);
}

#[test]
fn strict_keeps_brackets_in_names_and_skips_what_tests_print() {
    let log = "  Passed Foo(a: [1, 2]) [3 ms]\n  Passed Cut [6 ms\n  Skipped C\n  Failed B [1 m 2 s]\n  Standard Output Messages:\n  Passed Ghost [1 ms]\n\n[xUnit.net 00:00:01.23]     B.x [FAIL]\n[xUnit.net 00:00:01.23]       printed [FAIL]\n[xUnit.net 00:00:01.23]     B.s [SKIP]\n/a/B.cs(1,2): error CS0103: no [/a/b.csproj]";
    let map = parse_log("parse_log_csharp", log, Rules::Strict).unwrap();
    let told: Vec<String> = as_text(&map).iter().map(|(name, status)| format!("{name}={status}")).collect();
    assert_eq!(told.join(" "), "B=FAILED B.s=SKIPPED B.x=FAILED C=SKIPPED Foo(a: [1, 2])=PASSED");
    assert_eq!(map.observations[0].alias.as_deref(), Some("Foo(a:"));
    assert!(map.suite_failures[0].build);
}

#[test]
fn xml_reports_tell_each_test_with_its_class() {
    for (log, truth) in [
        (
            "<TestRun xmlns='urn:x'><Results><UnitTestResult testId='1' testName='t(1)' outcome='Passed'/><UnitTestResult testId='2' testName='N.C.u' outcome='NotExecuted'/><UnitTestResult testName='v'/></Results><TestDefinitions><UnitTest id='1'><TestMethod className='N.C, A'/></UnitTest><UnitTest id='2'><TestMethod className='N.C'/></UnitTest></TestDefinitions></TestRun>",
            "N.C.t(1)=PASSED N.C.u=SKIPPED v=FAILED",
        ),
        (
            "<test-run><test-case name='a' fullname='N.a' result='Passed'/><test-case name='b' result='Failed' label='Error'/></test-run>",
            "N.a=PASSED b=ERROR",
        ),
        (
            "<assemblies><assembly><collection><test name='a' result='Pass'/><test name='b' result='Fail'/><test name='c' result='Skip'/></collection></assembly></assemblies>",
            "a=PASSED b=FAILED c=SKIPPED",
        ),
    ] {
        let map = parse_log("parse_log_csharp", &format!("text\n{log}\n"), Rules::Strict).unwrap();
        let told: Vec<String> =
            as_text(&map).iter().map(|(name, status)| format!("{name}={status}")).collect();
        assert_eq!(told.join(" "), truth);
    }
    let cut = parse_log(
        "parse_log_csharp",
        "<TestRun>\n<UnitTestResult testName='v' outcome='Passed'/>",
        Rules::Strict,
    );
    let cut = cut.unwrap();
    assert!(cut.statuses.is_empty() && cut.suite_failures.len() == 1);
}

#[test]
fn xml_reports_hold_as_many_results_as_golden_snapshots() {
    let Some(data) = std::env::var_os("MEMTRIAL_DATA") else { return };
    let folder = std::path::Path::new(&data).join("logs/multi_dorny-test-reporter");
    for (report, snapshot) in [
        ("dotnet-trx.trx", "dotnet-trx"),
        ("dotnet-xunitv3.trx", "dotnet-trx"),
        ("external/FluentValidation.Tests.trx", "dotnet-trx"),
        ("external/SilentNotes.trx", "dotnet-trx"),
        ("dotnet-nunit.xml", "dotnet-nunit"),
    ] {
        let snapshots =
            fs_err::read_to_string(folder.join(format!("__snapshots__/{snapshot}.test.ts.snap"))).unwrap();
        let path = format!("\"path\": \"fixtures/{report}\"");
        let golden = snapshots.split("exports[").find(|part| part.contains(&path)).unwrap();
        let log = fs_err::read_to_string(folder.join("fixtures").join(report)).unwrap();
        let map = parse_log("parse_log_csharp", &log, Rules::Strict).unwrap();
        let count = |keep: &dyn Fn(&str) -> bool| {
            map.observations.iter().filter(|seen| keep(seen.status.as_str())).count()
        };
        let told = [
            count(&|status| status == "PASSED"),
            count(&|status| status == "FAILED" || status == "ERROR"),
            count(&|status| status == "SKIPPED"),
        ];
        let wanted = ["success", "failed", "skipped"]
            .map(|result| golden.matches(&format!("\"result\": \"{result}\"")).count());
        assert_eq!(told, wanted, "{report}");
    }
}
