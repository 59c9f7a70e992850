//! karma: the tree of its mocha reporter, and failures behind a browser's name.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::super::super::found::Found;
use super::super::super::scan::Raised;
use super::super::super::status::Status;
use super::super::super::text::{Pattern, is_digit, is_space, pattern, trim};
use super::super::rule::{Hit, Rule};

/// The tree between the browser's start and the summary.
pub(in super::super) fn tree() -> Rule {
    let mut tree = Tree { part: Part::Before, indent: -1, suites: Vec::new() };
    Box::new(move |line| Ok(tree.line(line)?.into_iter().collect()))
}

enum Part {
    Before,
    Results,
    Over,
}

struct Tree {
    part: Part,
    indent: i64,
    suites: Vec<String>,
}

impl Tree {
    fn line(&mut self, line: &str) -> Result<Option<Hit>, Raised> {
        if line.starts_with("SUMMARY:") {
            self.part = Part::Over;
        }
        match self.part {
            Part::Over => Ok(None),
            _ if line.contains("Starting browser") => {
                self.part = Part::Results;
                Ok(None)
            }
            Part::Before => Ok(None),
            Part::Results => self.result(line),
        }
    }

    fn result(&mut self, line: &str) -> Result<Option<Hit>, Raised> {
        let text = line.trim_start_matches(is_space);
        let marked = text.strip_prefix('✔').map(|rest| (rest, Status::Passed));
        let marked = marked.or_else(|| text.strip_prefix('✖').map(|rest| (rest, Status::Failed)));
        if let Some((name, status)) =
            marked.and_then(|(rest, status)| Some((rest.strip_prefix(is_space)?, status)))
        {
            let name = self.suites.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(" > ");
            return Ok(Some((name, status)));
        }
        // The pattern needs one blank, which it takes from the indentation.
        let indent = line[..line.len() - text.len()].chars().count() as i64 - 1;
        if indent < 1 {
            return Ok(None);
        }
        if indent > self.indent {
            self.indent = indent;
            self.suites.push(text.to_owned());
        } else if indent < self.indent {
            self.indent = indent;
            self.suites.pop().ok_or(Raised("IndexError"))?;
        }
        Ok(None)
    }
}

/// Text without what Python's harness takes for control sequences: CSI and two-character escapes; of an OSC sequence
/// its first two characters alone.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    static ESCAPE: Pattern = LazyLock::new(|| pattern(r"\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])"));
    if text.contains('\x1b') { ESCAPE.replace_all(text, "") } else { Cow::Borrowed(text) }
}

/// Failures behind `Chrome <version> (<system>)`, where the first two may stand in two lines.
pub(in super::super) fn chrome() -> Rule {
    let mut broken = false;
    Box::new(move |line| {
        let line = without_escapes(line);
        let name = chrome_failure(&line, broken);
        broken = line.ends_with("Chrome");
        Ok(name.map(|name| (name.to_owned(), Status::Failed)).into_iter().collect())
    })
}

/// What stands between the first `) ` behind a browser and the last `FAILED`.
fn chrome_failure(line: &str, broken: bool) -> Option<&str> {
    let text = line.strip_suffix("FAILED")?;
    let starts =
        text.match_indices("Chrome").filter_map(|(at, word)| text[at + word.len()..].strip_prefix(is_space));
    let system = broken.then_some(text).into_iter().chain(starts).find_map(|rest| {
        let version = rest.trim_start_matches(|c| c == '.' || is_digit(c));
        let rest = version.strip_prefix(is_blank).filter(|_| version.len() < rest.len())?;
        rest.strip_prefix('(')
    })?;
    let mut inside = system.chars();
    inside.next()?;
    let inside = inside.as_str();
    inside.match_indices(')').find_map(|(at, _)| inside[at + 1..].strip_prefix(is_blank))
}

/// White space within a line.
fn is_blank(c: char) -> bool {
    is_space(c) && c != '\n' && c != '\r'
}

/// Writes down the failures that a pattern's last group names, with white space reduced if `squeezed`.
fn all(log: &str, regex: &Regex, squeezed: bool, found: &mut Found) {
    for captures in regex.captures_iter(log) {
        let name = captures.iter().flatten().last().map_or("", |group| group.as_str());
        let name = if squeezed { squeeze(name) } else { name.to_owned() };
        found.set(name, Status::Failed);
    }
}

/// Runs of white space reduced to a blank each, none at the ends.
pub(super) fn squeeze(text: &str) -> String {
    super::super::super::text::words(text).collect::<Vec<_>>().join(" ")
}

/// bpmn-js's four forms of browser.
static BROWSERS: [Pattern; 4] = [
    LazyLock::new(|| pattern(r"2KPhantomJSω[\d.]+ω\(Linuxω[\d.]+\)ω(.*)FAILED\n")),
    LazyLock::new(|| pattern(r"2KPhantomJSω[\d.]+ω\(Linuxωx86_64\)ω(.*)FAILED\n")),
    LazyLock::new(|| pattern(r"ChromeωHeadlessω(?:.*)ω\(Linuxωx86_64\)ω(.*)FAILED\n")),
    LazyLock::new(|| pattern(r"HeadlessChromeω[\d.]+ω\(Linuxω[\d.]+\)ω(.*)FAILED\n")),
];

/// Failures of bpmn-js.
pub(in super::super) fn bpmn(log: &str, found: &mut Found) -> Result<(), Raised> {
    for browser in &BROWSERS {
        all(log, browser, false, found);
    }
    Ok(())
}

/// What OpenLayers fails in: two forms of browser, mocha's list, and rendering.
static KINDS: [Pattern; 4] = [
    LazyLock::new(|| pattern(r"ChromeωHeadlessω[\d.]+ω\(Linuxω[^ω]+\)ω(.*)ωFAILED\n")),
    LazyLock::new(|| pattern(r"Chromeω[\d.]+ω\(Linuxω[^ω]+\)ω(.*)FAILED\n")),
    LazyLock::new(|| pattern(r"(?m)^ω{2}\d+\)((?s:.)*?)Error:")),
    LazyLock::new(|| pattern(r"(?m)^caseω(.*):ωmismatch")),
];

/// Failures of OpenLayers.
pub(in super::super) fn openlayers(log: &str, found: &mut Found) -> Result<(), Raised> {
    for kind in &KINDS {
        all(log, kind, true, found);
    }
    Ok(())
}

/// A failure behind a browser's name that the whole-log rule finds in this line.
fn in_line(line: &str, forms: &[Pattern], squeezed: bool) -> Option<Hit> {
    let mut found = Found::default();
    if line.ends_with("FAILED") {
        let line = format!("{line}\n");
        forms.iter().for_each(|form| all(&line, form, squeezed, &mut found));
    }
    found.into_map().statuses.pop_first()
}

/// The line's part of [`bpmn`].
pub(in super::super) fn bpmn_line(line: &str) -> Option<Hit> {
    in_line(line, &BROWSERS, false)
}

/// The line's part of [`openlayers`].
pub(in super::super) fn openlayers_line(line: &str) -> Option<Hit> {
    in_line(line, &KINDS[..2], true)
}

/// Grommet's files: failures first, then passes, whose name may stand in the next line.
pub(in super::super) fn grommet(log: &str, found: &mut Found) -> Result<(), Raised> {
    static FAILED: Pattern = LazyLock::new(|| pattern(r"(?m)^FAILω(.*)"));
    static PASSED: Pattern = LazyLock::new(|| pattern(r"(?m)^PASSω(.*)"));
    static TIME: Pattern = LazyLock::new(|| pattern(r"ω\([\d.]+ω?(?:ms|s)\)$"));
    for (files, status) in [(&FAILED, Status::Failed), (&PASSED, Status::Passed)] {
        for captures in files.captures_iter(log) {
            let name = trim(captures.get(1).map_or("", |name| name.as_str()));
            let end = TIME.find(name).map_or(name.len(), |time| time.start());
            found.set(&name[..end], status.clone());
        }
    }
    Ok(())
}
