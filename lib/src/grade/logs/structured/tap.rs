//! TAP 13 and 14, of any language: subtests in both forms (indented before their result, or between braces behind
//! it), directives, plans and `Bail out!`.

use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Format, Structured, Take};
use super::super::status::Status;
use super::super::text::{Pattern, is_space, pattern, trim, trim_end};

/// TAP in the midst of a log, from a version line or a plan on; without one, where a plan at the end confirms the
/// results.
pub(in crate::grade::logs) const TAP: Format =
    Format { name: "TAP", open: || Box::new(Stream { tap: Tap::default(), state: State::Closed }) };

/// One result.
struct Point {
    path: Vec<String>,
    status: Status,
    line: usize,
    alias: Option<String>,
    /// Whether it only tells of its subtests.
    group: bool,
}

/// The results of one depth that no parent has claimed yet.
#[derive(Default)]
struct Level {
    indent: usize,
    points: Vec<Point>,
    seen: usize,
    last: usize,
    plan: Option<usize>,
}

/// A result behind which subtests stand between braces.
struct Brace {
    indent: usize,
    point: Point,
    failed: bool,
}

/// Reads lines of TAP.
#[derive(Default)]
pub(in crate::grade::logs) struct Tap {
    levels: Vec<Level>,
    braces: Vec<Brace>,
    /// The indentation of a block of YAML, which ends with `...`.
    yaml: Option<usize>,
    /// What was last read: diagnostics may only follow a result.
    after_result: Option<usize>,
    /// Whether a version began the stream, which then needs a plan.
    version: bool,
    /// Whether results are assertions of the test that the last comment names, as tape writes them.
    tape: bool,
    comment: Option<String>,
}

/// A line of TAP.
enum Line<'a> {
    Version,
    Plan { tests: usize, skipped: bool },
    Bail,
    Result { ok: bool, number: usize, name: &'a str, directive: Option<Directive>, opens: bool },
    Close,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Skip,
    Todo,
}

fn parse(text: &str) -> Option<Line<'_>> {
    static PLAN: Pattern = LazyLock::new(|| pattern(r"^1\.\.([0-9]{1,18})(?:ω+#ω*(.*))?$"));
    match text.as_bytes().first()? {
        b'}' if text.len() == 1 => Some(Line::Close),
        b'T' => text.starts_with("TAP version 1").then_some(Line::Version),
        b'B' => text.starts_with("Bail out!").then_some(Line::Bail),
        b'1' => {
            let plan = PLAN.captures(text)?;
            let skipped = plan.get(2).is_some_and(|why| directive(why.as_str()) == Some(Directive::Skip));
            Some(Line::Plan { tests: plan[1].parse().ok()?, skipped })
        }
        b'o' | b'n' => parse_result(text),
        _ => None,
    }
}

/// `ok 1 - name # directive`, of which only the first word is a must.
fn parse_result(text: &str) -> Option<Line<'_>> {
    let (ok, rest) = match text.strip_prefix("not ") {
        Some(rest) => (false, rest),
        None => (true, text),
    };
    let rest = rest.strip_prefix("ok").filter(|rest| rest.is_empty() || rest.starts_with(is_space))?;
    let rest = rest.trim_start_matches(is_space);
    let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = name.is_empty() || name.starts_with(is_space);
    let (digits, name) = if is_number { rest.split_at(rest.len() - name.len()) } else { ("", rest) };
    let (name, opens) = match trim(name).strip_suffix('{') {
        Some(name) if name.is_empty() || name.ends_with(' ') => (trim(name), true),
        _ => (trim(name), false),
    };
    let (name, directive) = split_directive(name);
    let name = trim(name.strip_prefix("- ").unwrap_or(if name == "-" { "" } else { name }));
    Some(Line::Result { ok, number: digits.parse().unwrap_or(0), name, directive, opens })
}

/// A description's backslash escapes `#` and itself.
fn unescaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next_if(|next| matches!(next, '#' | '\\')).unwrap_or(c) } else { c });
    }
    text
}

fn directive(comment: &str) -> Option<Directive> {
    let word = comment.get(..4)?;
    [("skip", Directive::Skip), ("todo", Directive::Todo)]
        .into_iter()
        .find_map(|(known, directive)| word.eq_ignore_ascii_case(known).then_some(directive))
}

/// The description without its directive and time: what follows the last ` # ` that has one.
fn split_directive(text: &str) -> (&str, Option<Directive>) {
    static TIME: Pattern = LazyLock::new(|| pattern(r"^(?:time=)?[0-9.]+ω*(?:ms|s|m)$"));
    if !text.contains('#') {
        return (text, None);
    }
    let mut rest = text;
    let mut found = None;
    while let Some((before, comment)) = last_comment(rest) {
        match directive(comment) {
            Some(known) => found = Some(known),
            None if TIME.is_match(comment) => {}
            None => break,
        }
        rest = before;
    }
    // A directive may stand before a comment that belongs to its reason.
    if found.is_none()
        && let Some((at, known)) = text
            .match_indices(" #")
            .find_map(|(at, _)| directive(text[at + 2..].trim_start()).map(|known| (at, known)))
    {
        return (trim_end(&text[..at]), Some(known));
    }
    (rest, found)
}

fn last_comment(text: &str) -> Option<(&str, &str)> {
    if let Some(comment) = text.strip_prefix('#') {
        return Some(("", trim(comment)));
    }
    let at = text.rfind(" #")?;
    Some((trim_end(&text[..at]), trim(&text[at + 2..])))
}

impl Tap {
    /// Whether the line is TAP: results are written down, with `alias` for the name of the reference.
    pub(in crate::grade::logs) fn line(
        &mut self,
        line: &str,
        alias: Option<String>,
        found: &mut Found,
    ) -> bool {
        let text = trim_end(line).trim_start_matches([' ', '\t']);
        let indent = trim_end(line).len() - text.len();
        if let Some(block) = self.yaml {
            if indent > block || text.is_empty() || indent == block && text != "..." {
                return true;
            }
            self.yaml = None;
            if text == "..." {
                return true;
            }
        }
        if text == "---" && self.after_result.is_some_and(|result| indent > result) {
            self.yaml = Some(indent);
            return true;
        }
        let Some(parsed) = parse(text).filter(|_| indent.is_multiple_of(4)) else {
            if let Some(comment) = text.strip_prefix("# ").filter(|_| self.tape && indent == 0) {
                self.comment(comment, found);
            }
            // Diagnostics without marks, as mocha writes them, are indented.
            return text.starts_with('#')
                || self.after_result.is_some_and(|result| text.is_empty() || indent > result);
        };
        self.after_result = None;
        match parsed {
            Line::Version => {
                self.flush(found);
                self.version = true;
            }
            Line::Plan { tests, skipped } => self.plan(indent, if skipped { 0 } else { tests }, found),
            Line::Bail => found.broken(line, false),
            Line::Close => self.close(indent, found),
            Line::Result { ok, number, name, directive, opens } => {
                self.after_result = Some(indent);
                self.close(indent, found);
                if indent == 0 && number == 1 && self.is_complete() {
                    self.flush(found);
                    self.after_result = Some(0);
                }
                let children = self.children(indent, found);
                let name = match &self.comment {
                    Some(test) => test.clone(),
                    None if name.is_empty() => format!("#{number}"),
                    None => unescaped(name),
                };
                let level = self.level(indent);
                level.seen += 1;
                level.last = level.last.max(number);
                let status = status(ok, directive);
                let group = !children.is_empty()
                    && (status != Status::Failed
                        || children.iter().any(|child| child.status == Status::Failed));
                let point = Point { path: vec![name], status, line: found.line(), alias, group };
                if opens {
                    self.braces.push(Brace { indent, point, failed: false });
                } else {
                    self.result(indent, point, children, found);
                }
            }
        }
        true
    }

    /// tape's name of the test that follows.
    fn comment(&mut self, comment: &str, found: &mut Found) {
        match comment.strip_prefix("SKIP ") {
            Some(test) => {
                found.test(test, Status::Skipped);
            }
            None => self.comment = Some(comment.strip_prefix("TODO ").unwrap_or(comment).to_owned()),
        }
    }

    /// A second plan at the line start, or a first result behind all that were planned, begins another stream.
    fn plan(&mut self, indent: usize, tests: usize, found: &mut Found) {
        self.close(indent, found);
        if indent == 0 && self.outermost().1.is_some() {
            self.flush(found);
        }
        self.level(indent).plan = Some(tests);
    }

    fn is_complete(&self) -> bool {
        let (seen, plan) = self.outermost();
        plan == Some(seen) && seen > 0
    }

    fn level(&mut self, indent: usize) -> &mut Level {
        let at = match self.levels.iter().position(|level| level.indent >= indent) {
            Some(at) if self.levels[at].indent == indent => at,
            at => {
                let at = at.unwrap_or(self.levels.len());
                self.levels.insert(at, Level { indent, ..Level::default() });
                at
            }
        };
        &mut self.levels[at]
    }

    /// The results deeper than a result, which are its subtests.
    fn children(&mut self, indent: usize, found: &mut Found) -> Vec<Point> {
        let mut children = Vec::new();
        while let Some(level) = self.levels.pop_if(|level| level.indent > indent) {
            check_plan(&level, found);
            children.splice(0..0, level.points);
        }
        children
    }

    fn result(&mut self, indent: usize, point: Point, mut points: Vec<Point>, found: &mut Found) {
        for child in &mut points {
            child.path.splice(0..0, point.path.iter().cloned());
        }
        points.push(point);
        if indent > 0 && self.braces.is_empty() {
            self.level(indent).points.append(&mut points);
            return;
        }
        let names: Vec<String> = self.braces.iter().flat_map(|brace| brace.point.path.clone()).collect();
        for mut point in points {
            for brace in &mut self.braces {
                brace.failed |= point.status == Status::Failed;
            }
            point.path.splice(0..0, names.iter().cloned());
            write(point, found);
        }
    }

    /// Closes the braces at this indentation and deeper.
    fn close(&mut self, indent: usize, found: &mut Found) {
        while let Some(brace) = self.braces.pop_if(|brace| brace.indent >= indent) {
            while let Some(level) = self.levels.pop_if(|level| level.indent > brace.indent) {
                check_plan(&level, found);
            }
            let group = brace.failed || brace.point.status != Status::Failed;
            self.result(brace.indent, Point { group, ..brace.point }, Vec::new(), found);
        }
    }

    /// Writes down what no parent has claimed, and what plans miss.
    pub(in crate::grade::logs) fn flush(&mut self, found: &mut Found) {
        self.close(0, found);
        if self.version && self.outermost().1.is_none() {
            found.broken("the TAP stream has no plan, so that its end is missing", false);
        }
        for level in std::mem::take(&mut self.levels) {
            check_plan(&level, found);
            level.points.into_iter().for_each(|point| write(point, found));
        }
        *self = Self { tape: self.tape, ..Self::default() };
    }

    /// Reads what tape writes: comments name the tests, results are their assertions.
    pub(in crate::grade::logs) fn tape() -> Self {
        Self { tape: true, ..Self::default() }
    }

    /// How many results stand at the line start, and how many are planned.
    fn outermost(&self) -> (usize, Option<usize>) {
        self.levels.iter().find(|level| level.indent == 0).map_or((0, None), |level| (level.seen, level.plan))
    }
}

/// A result of a test that is to fail: an `ok` may stand for a test without body.
fn status(ok: bool, directive: Option<Directive>) -> Status {
    match (ok, directive) {
        (_, Some(Directive::Skip)) | (true, Some(Directive::Todo)) => Status::Skipped,
        (false, Some(Directive::Todo)) => Status::Xfail,
        (true, None) => Status::Passed,
        (false, None) => Status::Failed,
    }
}

fn check_plan(level: &Level, found: &mut Found) {
    let planned = level.plan.unwrap_or(level.last);
    if planned != level.seen {
        found.broken(format!("{planned} tests were planned, {} ran", level.seen), false);
    }
}

fn write(point: Point, found: &mut Found) {
    let name = point.path.join(" > ");
    let seen = match point.group {
        true => found.group(name, point.status),
        false => found.test_at(point.line, name, point.status),
    };
    if let Some(alias) = point.alias {
        seen.known_as(alias);
    }
}

enum State {
    Closed,
    /// Results without a version or a plan so far.
    Unconfirmed(Box<Found>),
    Open,
}

struct Stream {
    tap: Tap,
    state: State,
}

impl Structured for Stream {
    fn take(&mut self, line: &str, found: &mut Found) -> Take {
        match &mut self.state {
            State::Open => {
                if self.tap.line(line, None, found) {
                    Take::Read
                } else {
                    Take::No
                }
            }
            State::Closed => match parse(line) {
                Some(Line::Version | Line::Plan { .. }) => {
                    self.state = State::Open;
                    self.tap.line(line, None, found);
                    Take::Read
                }
                Some(Line::Result { .. }) if line.starts_with("ok 1 ") || line.starts_with("not ok 1 ") => {
                    let mut own = Box::new(Found::default());
                    own.go_to(found.line());
                    self.tap.line(line, None, &mut own);
                    self.state = State::Unconfirmed(own);
                    Take::Held
                }
                _ => Take::No,
            },
            State::Unconfirmed(own) => {
                own.go_to(found.line());
                self.tap.line(line, None, own);
                let (seen, plan) = self.tap.outermost();
                match plan {
                    None => Take::Held,
                    Some(plan) if plan == seen => {
                        self.tap.flush(own);
                        let State::Unconfirmed(own) = std::mem::replace(&mut self.state, State::Closed)
                        else {
                            return Take::Back;
                        };
                        found.absorb(*own);
                        Take::Read
                    }
                    Some(_) => {
                        self.tap = Tap::default();
                        self.state = State::Closed;
                        Take::Back
                    }
                }
            }
        }
    }

    fn end(&mut self, found: &mut Found) -> Take {
        if let State::Open = self.state {
            self.tap.flush(found);
        }
        Take::Back
    }
}
