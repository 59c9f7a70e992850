use super::super::{Rules, parse_log};

#[test]
fn tests_of_a_module_whose_set_up_failed_did_not_pass() {
    let log = "M [m.exs]\n  * test a [L#3]\r  * test a (0.00ms) [L#3]\n\n  0) M: failure on setup_all callback, all tests have been invalidated\n";
    let map = parse_log("parse_log_elixir", log, Rules::Strict).unwrap();
    assert_eq!(map.statuses["M: test a"].as_str(), "ERROR");
    assert_eq!(map.observations[0].alias.as_deref(), Some("a"));
}

#[test]
fn a_result_of_a_test_that_did_not_begin_is_output() {
    let log = "M [m.exs]\n  * test a [L#3]\r  * test a (0.00ms) [L#3]\n  * test fake (0.1ms) [L#1]\n  * test b [L#4]\n";
    let map = parse_log("parse_log_elixir", log, Rules::Strict).unwrap();
    assert_eq!(map.statuses.keys().collect::<Vec<_>>(), ["M: test a", "M: test b"]);
    assert_eq!(map.statuses["M: test b"].as_str(), "ERROR");
}

#[test]
fn a_name_may_end_like_a_result() {
    let log = "M [m.exs]\n  * test a [L#3]\r  * test a (0.00ms) [L#3]\n  * test b (1.5ms) [L#5]\r  * test b (1.5ms) (0.00ms) [L#5]\n";
    let map = parse_log("parse_log_elixir", log, Rules::Strict).unwrap();
    assert_eq!(map.statuses["M: test b (1.5ms)"].as_str(), "PASSED");
}
