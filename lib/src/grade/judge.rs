//! From what the test commands left to a verdict: pure, so that saved logs can be judged again.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::VerdictClass;
use super::execute::{Log, Ran};
use super::expect::{Expected, Found, ResolveRule, Results};
use super::explain::explain;
use super::graded::{Flag, Graded, Options, Outcome, Split};
use super::logs::{LogParser, ParseError, Rules, Status, StatusMap, parser, text};
use crate::sandbox::Ended;
use crate::task::Task;

/// The parser of a row: the one that was chosen for all, the one it names, or the one its test command calls for.
///
/// # Errors
/// What to say of a row that no verdict can be reached on.
pub fn usable(task: &Task, chosen: Option<&LogParser>) -> Result<LogParser, String> {
    let (f2p, p2p) = (&task.evaluator.fail_to_pass, &task.evaluator.pass_to_pass);
    if f2p.is_empty() {
        return Err("FAIL_TO_PASS is empty: the row decides nothing".to_owned());
    }
    if let Some(both) = f2p.iter().find(|name| p2p.contains(name)) {
        return Err(format!("{both:?} stands in FAIL_TO_PASS and in PASS_TO_PASS"));
    }
    let recipe = &task.solver.recipe;
    if recipe.test_cmd.iter().all(|command| command.trim().is_empty()) {
        return Err("install_config has no test_cmd".to_owned());
    }
    if let Some(chosen) = chosen {
        return Ok(chosen.clone());
    }
    let name = match &recipe.log_parser {
        Some(name) => name.as_str(),
        None => parser_of_command(&recipe.test_cmd.join("\n"))
            .ok_or("install_config names no log_parser, and test_cmd calls no runner that memtrial knows")?,
    };
    parser(name).map(LogParser::Named).map_err(|error| error.to_string())
}

fn parser_of_command(commands: &str) -> Option<&'static str> {
    let known = [
        ("pytest", "parse_log_pytest"),
        ("py.test", "parse_log_pytest"),
        ("go test", "parse_log_gotest"),
        ("cargo test", "parse_log_cargo"),
        ("vitest", "parse_log_vitest"),
        ("jest", "parse_log_jest"),
        ("mocha", "parse_log_js_2"),
    ];
    known.iter().find(|(runner, _)| commands.contains(runner)).map(|(_, parser)| *parser)
}

/// Reads what the commands left, looks the expected tests up and decides. `graded` holds what came before the
/// tests.
pub fn judge(mut graded: Graded, task: &Task, parser: &LogParser, ran: &[Ran], options: &Options) -> Graded {
    let mut log = Log::after(std::mem::take(&mut graded.log));
    let texts: Vec<(usize, String)> = ran.iter().map(|ran| (log.push(ran), ran.output.text())).collect();
    graded.log = log.bytes;
    graded.parser = Some(parser.name().to_owned());
    flag_output(&mut graded, ran);
    let whole: String = texts.iter().map(|(_, text)| text.as_str()).collect();
    let upstream = parser.parse(&whole, Rules::Upstream).map(|map| at_log_lines(map, &texts));
    let strict = match read_each(parser, &texts) {
        Ok(strict) => strict,
        Err(error) => return graded.verdict(VerdictClass::NoResults, error.to_string()),
    };
    let log = String::from_utf8_lossy(&graded.log);
    let lines = LazyCell::new(|| log.split('\n').collect::<Vec<_>>());
    let line = |at: usize| lines.get(at - 1).copied().unwrap_or_default().to_owned();
    graded.explanation = explain(&task.evaluator, options.resolve_rule, &strict.0, &upstream, line);
    let (map, per_command) = match (options.rules, upstream) {
        (Rules::Strict, _) => strict,
        (Rules::Upstream, Ok(map)) => (map.clone(), vec![map; ran.len()]),
        (Rules::Upstream, Err(error)) => {
            return graded.verdict(VerdictClass::NoResults, error.to_string());
        }
    };
    find_expected(&mut graded, task, &map, options);
    let graded = decide(graded, ran, &map, &per_command);
    Graded { results: map, ..graded }
}

/// Results of all texts together, with the lines of the log in place of their own.
fn at_log_lines(mut map: StatusMap, texts: &[(usize, String)]) -> StatusMap {
    let mut starts = Vec::new();
    let mut line = 1;
    for (before, text) in texts {
        starts.push((line, before + 1));
        line += text::universal_newlines(text).matches('\n').count();
    }
    for seen in &mut map.observations {
        let start = starts.iter().rev().find(|(start, _)| *start <= seen.line);
        seen.line = start.map_or(seen.line, |(start, log)| seen.line - start + log);
    }
    map
}

/// Each command's results on their own, and all together.
fn read_each(
    parser: &LogParser,
    texts: &[(usize, String)],
) -> Result<(StatusMap, Vec<StatusMap>), ParseError> {
    let mut all = StatusMap::default();
    let mut each = Vec::new();
    for (before, text) in texts {
        let map = parser.parse(text, Rules::Strict)?;
        all.add(&map, *before);
        each.push(map);
    }
    Ok((all, each))
}

fn flag_output(graded: &mut Graded, ran: &[Ran]) {
    for Ran { output, .. } in ran {
        if let Some(cut) = output.elided {
            graded.flags.insert(Flag::OutputCut { bytes: cut.bytes });
        } else if std::str::from_utf8(&output.bytes).is_err() {
            graded.flags.insert(Flag::OutputLossy);
        }
        if output.out_of_memory {
            graded.flags.insert(Flag::MemoryLimit);
        }
    }
}

fn find_expected(graded: &mut Graded, task: &Task, map: &StatusMap, options: &Options) {
    let (f2p, p2p) = (&task.evaluator.fail_to_pass, &task.evaluator.pass_to_pass);
    let results = Results::new(map, options.rules, options.resolve_rule, f2p.iter().chain(p2p));
    for (names, expected) in [(p2p, Expected::PassToPass), (f2p, Expected::FailToPass)] {
        for name in names {
            let found = results.find(name, expected);
            graded.flags.extend(found.defect(name).map(|defect| Flag::Name { defect }));
            graded.tests.insert(name.clone(), Outcome { status: found.found, expected });
        }
    }
    graded.f2p = split(f2p, &graded.tests, options.resolve_rule);
    graded.p2p = split(p2p, &graded.tests, options.resolve_rule);
}

fn split(names: &[String], tests: &BTreeMap<String, Outcome>, rule: ResolveRule) -> Split {
    let passes = |name: &String| tests.get(name).is_some_and(|test| rule.passes(&test.status, test.expected));
    let (success, failure) = names.iter().cloned().partition(passes);
    Split { success, failure }
}

fn decide(mut graded: Graded, ran: &[Ran], map: &StatusMap, per_command: &[StatusMap]) -> Graded {
    if let Some(late) = ran.iter().find(|ran| ran.output.ended == Ended::TimedOut) {
        let reason = format!("the time limit ended {:?}; {}", late.command, summary(&graded));
        return graded.verdict(VerdictClass::TestTimeout, reason);
    }
    let build = map.suite_failures.iter().find(|failure| failure.build).map(|failure| failure.text.clone());
    let memory = graded.flags.contains(&Flag::MemoryLimit);
    if map.is_empty() && !memory {
        return match build.or_else(|| build_error(&graded.log)) {
            Some(line) => graded.verdict(VerdictClass::BuildFailed, format!("no test ran: {}", line.trim())),
            None => {
                let ended = ran.iter().map(|ran| format!("{:?} {:?}", ran.command, ran.output.ended));
                let ended = ended.collect::<Vec<_>>().join(", ");
                graded.verdict(VerdictClass::NoResults, format!("the log holds no result; {ended}"))
            }
        };
    }
    let failures = graded.f2p.failure.len() + graded.p2p.failure.len();
    if failures > 0 {
        let missing = graded.tests.values().all(|outcome| outcome.status == Found::Missing);
        if let Some(line) = build.filter(|_| missing && !memory) {
            return graded
                .verdict(VerdictClass::BuildFailed, format!("no expected test ran: {}", line.trim()));
        }
        let limit = if memory { "; the sandbox's memory limit killed a process" } else { "" };
        let reason = format!("{}{limit}", summary(&graded));
        return graded.verdict(VerdictClass::Unresolved, reason);
    }
    match unexplained_exit(ran, per_command) {
        None => graded.verdict(VerdictClass::Resolved, None),
        Some((command, code)) => {
            let reason = format!(
                "suspect: every expected test passed, but {command:?} ended with status {code} and shows no failure"
            );
            graded.flags.insert(Flag::ExitStatus { command, code });
            graded.verdict(VerdictClass::Unresolved, reason)
        }
    }
}

/// How many tests did not pass, and the first of them.
fn summary(graded: &Graded) -> String {
    let (f2p, p2p) = (&graded.f2p, &graded.p2p);
    let count = |split: &Split| (split.failure.len(), split.failure.len() + split.success.len());
    let ((f2p_bad, f2p_all), (p2p_bad, p2p_all)) = (count(f2p), count(p2p));
    let named: Vec<String> = f2p
        .failure
        .iter()
        .chain(&p2p.failure)
        .take(3)
        .filter_map(|name| Some(format!("{name} ({})", graded.tests.get(name)?.status)))
        .collect();
    let more = if f2p_bad + p2p_bad > named.len() { ", …" } else { "" };
    let colon = if named.is_empty() { "" } else { ": " };
    let list = named.join(", ");
    format!(
        "{f2p_bad} of {f2p_all} FAIL_TO_PASS and {p2p_bad} of {p2p_all} PASS_TO_PASS did not pass{colon}{list}{more}"
    )
}

/// A command that failed although its log shows no failed test, package or file. Forged result lines look so.
fn unexplained_exit(ran: &[Ran], per_command: &[StatusMap]) -> Option<(String, i32)> {
    ran.iter().zip(per_command).find_map(|(ran, map)| {
        let code = ran.output.ended.code().filter(|code| *code != 0)?;
        let failed = map.results().any(|seen| matches!(seen.status, Status::Failed | Status::Error));
        // pytest ends with 5 where it selected no test: another command may hold them all.
        let nothing_selected = code == 5 && map.is_empty();
        let explained = failed || !map.suite_failures.is_empty() || nothing_selected || below_coverage(ran);
        (!explained).then(|| (ran.command.clone(), code))
    })
}

/// Runners fail, too, where the tests cover too little code.
fn below_coverage(ran: &Ran) -> bool {
    let output = ran.output.text();
    ["Required test coverage of ", "coverage threshold for ", "Coverage failure: total of "]
        .iter()
        .any(|message| output.contains(message))
}

/// The first line that tells of code that could not be built or loaded.
fn build_error(log: &[u8]) -> Option<String> {
    static ERROR: LazyLock<regex::Regex> = LazyLock::new(|| {
        text::pattern(concat!(
            r"(?m)^.*(?:error: could not compile|^error\[E\d{4}\]|^error: failed to |\[build failed\]|",
            r"\[setup failed\]|error TS\d+:|Transform failed with|Failed to parse source|Cannot find module |",
            r"ERR_MODULE_NOT_FOUND|\b(?:ImportError|ModuleNotFoundError|SyntaxError|IndentationError): ).*$",
        ))
    });
    ERROR.find(&String::from_utf8_lossy(log)).map(|line| line.as_str().to_owned())
}
