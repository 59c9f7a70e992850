use super::super::{Rules, parse_log};

fn strict(parser: &str, log: &str) -> Vec<(String, String)> {
    let map = parse_log(parser, log, Rules::Strict).unwrap();
    map.statuses.into_iter().map(|(name, status)| (name, status.to_string())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, status)| ((*name).to_owned(), (*status).to_owned())).collect()
}

#[test]
fn what_a_minitest_test_prints_is_no_test() {
    let log = "A#t = B#u = 0.00 s = .\n0.01 s = F\nA#v = x0.00 s = .\nA#w = \nB#x = 0.00 s = .\n";
    let found = strict("parse_log_minitest", log);
    assert_eq!(found, pairs(&[("A#t", "FAILED"), ("A#v", "PASSED"), ("A#w", "ERROR")]));
}

#[test]
fn origins_share_the_rules_of_ruby() {
    for name in ["parse_log_minitest", "parse_log_cucumber", "parse_log_ruby_unit"] {
        for origin in ["swe-bench-4", "swe-bench-5"] {
            let log = "A. = 1 = .\nb ..F\nc: O";
            let ours = parse_log(&format!("{origin}:{name}"), log, Rules::Upstream).unwrap();
            assert_eq!(ours, parse_log(name, log, Rules::Upstream).unwrap());
        }
    }
}

#[test]
fn an_rspec_tree_that_does_not_agree_with_its_count_shows_no_pass() {
    let tree = "\nA\n  b\n  c (FAILED - 1)\n  d (PENDING: no)\n\nPending: (Failures listed here are expected)\n\n  1) A d\n\nFailures:\n\n  1) A c\n\nFinished in 1 second\n";
    let told = strict("rspec", &format!("{tree}3 examples, 1 failure, 1 pending\n"));
    assert_eq!(told, pairs(&[("A b", "PASSED"), ("A c", "FAILED"), ("A d", "SKIPPED")]));
    let doubtful = strict("rspec", &format!("{tree}2 examples, 1 failure, 1 pending\n"));
    assert_eq!(doubtful, pairs(&[("A c", "FAILED"), ("A d", "SKIPPED")]));
    let cut = strict("rspec", tree);
    assert_eq!(cut, pairs(&[("A c", "FAILED"), ("A d", "SKIPPED")]));
}

#[test]
fn an_rspec_tree_that_the_list_of_failures_contradicts_shows_no_pass() {
    let log = "\nA\n  b\n\nFake\n  c (FAILED - 1)\n\nFailures:\n\n  1) A c\n\nFinished in 1 second\n2 examples, 1 failure\n";
    assert_eq!(strict("rspec", log), pairs(&[("A c", "FAILED")]));
}

#[test]
fn a_name_of_minitest_may_hold_an_equals_sign() {
    let log = "a b#test_0001_works. = F = 0.00 s = .\n";
    assert_eq!(strict("parse_log_minitest", log), pairs(&[("a b#test_0001_works. = F", "PASSED")]));
}

#[test]
fn a_run_that_is_not_verbose_has_no_verbose_lines() {
    let log = "Run options: --seed 1\n\n# Running:\n\n.A#fake = 0.00 s = .\n.A#other = 0.00 s = .\n";
    assert_eq!(strict("minitest", log), []);
}
