//! Checks a description and compiles its patterns.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};

use super::Fault;
use super::file::{self, Ended, File};

/// The most rules of one kind.
const RULES: usize = 200;
/// The longest pattern, in bytes.
const PATTERN: usize = 4000;
/// The largest compiled pattern, in bytes.
const COMPILED: usize = 1 << 20;

/// A checked description.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) joiner: String,
    pub(super) duplicates: file::Duplicates,
    pub(super) strip_durations: bool,
    pub(super) status: BTreeMap<String, Ended>,
    pub(super) sections: Vec<Section>,
    pub(super) contexts: Vec<Context>,
    pub(super) lines: Vec<Line>,
    pub(super) failures: Vec<(Regex, bool)>,
}

#[derive(Debug)]
pub(super) struct Section {
    pub(super) begin: Regex,
    pub(super) end: Option<Regex>,
    /// The groups that must hold the same text in both.
    pub(super) same: Vec<String>,
    pub(super) ignore: bool,
    pub(super) unfinished: Option<Ended>,
}

#[derive(Debug)]
pub(super) struct Context {
    pub(super) pattern: Regex,
    pub(super) end: Option<Regex>,
    pub(super) by_indent: bool,
    pub(super) within: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) pattern: Regex,
    /// The groups that make the name.
    pub(super) parts: Vec<String>,
    pub(super) status: Option<Ended>,
    pub(super) within: Option<usize>,
    pub(super) not_in: Option<usize>,
    pub(super) context: bool,
    pub(super) group: bool,
}

fn fault(field: impl Into<String>, reason: impl Into<String>) -> Fault {
    Fault { field: field.into(), reason: reason.into() }
}

pub(super) fn rules(file: &File) -> Result<Rules, Fault> {
    if file.name.trim().is_empty() {
        return Err(fault("name", "it is empty; say what the parser is called"));
    }
    if file.line.is_empty() {
        return Err(fault("line", "there is none; describe at least one result line in a [[line]]"));
    }
    for (kind, count) in [
        ("section", file.section.len()),
        ("context", file.context.len()),
        ("line", file.line.len()),
        ("failure", file.failure.len()),
    ] {
        if count > RULES {
            return Err(fault(kind, format!("there are {count}; at most {RULES} are read")));
        }
    }
    let numbered = 1..;
    Ok(Rules {
        joiner: file.joiner.clone(),
        duplicates: file.duplicates,
        strip_durations: file.strip_durations,
        status: file.status.clone(),
        sections: numbered
            .clone()
            .zip(&file.section)
            .map(|(n, one)| section(n, one))
            .collect::<Result<_, _>>()?,
        contexts: numbered
            .clone()
            .zip(&file.context)
            .map(|(n, one)| context(n, one, file))
            .collect::<Result<_, _>>()?,
        lines: numbered
            .clone()
            .zip(&file.line)
            .map(|(n, one)| line(n, one, file))
            .collect::<Result<_, _>>()?,
        failures: numbered
            .zip(&file.failure)
            .map(|(n, one)| Ok((regex(&format!("failure[{n}].pattern"), &one.pattern)?, one.build)))
            .collect::<Result<_, _>>()?,
    })
}

fn regex(field: &str, pattern: &str) -> Result<Regex, Fault> {
    if pattern.len() > PATTERN {
        return Err(fault(field, format!("it has {} bytes; at most {PATTERN} are allowed", pattern.len())));
    }
    RegexBuilder::new(pattern).size_limit(COMPILED).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            fault(field, "it is too large once compiled; repeat less, such as `+` in the place of `{1,1000}`")
        }
        error => fault(field, format!("no regular expression: {error}")),
    })
}

fn has(regex: &Regex, group: &str) -> bool {
    regex.capture_names().flatten().any(|name| name == group)
}

fn section(n: usize, section: &file::Section) -> Result<Section, Fault> {
    let begin = regex(&format!("section[{n}].begin"), &section.begin)?;
    let end = section.end.as_ref().map(|end| regex(&format!("section[{n}].end"), end)).transpose()?;
    if section.unfinished.is_some() && (end.is_none() || !has(&begin, "name")) {
        let reason = "it needs an `end`, and a group `name` in `begin`: (?<name>…)";
        return Err(fault(format!("section[{n}].unfinished"), reason));
    }
    let same = end.iter().flat_map(|end| end.capture_names().flatten().map(str::to_owned));
    let same = same.filter(|name| has(&begin, name)).collect();
    Ok(Section { begin, end, same, ignore: section.ignore, unfinished: section.unfinished })
}

/// The section of this name.
fn place(field: &str, name: Option<&String>, file: &File) -> Result<Option<usize>, Fault> {
    let Some(name) = name else { return Ok(None) };
    let found = file.section.iter().position(|section| section.name == *name);
    found.map(Some).ok_or_else(|| {
        let known: Vec<_> = file.section.iter().map(|section| section.name.as_str()).collect();
        fault(field, format!("there is no [[section]] named {name:?}; there are: {}", known.join(", ")))
    })
}

fn context(n: usize, context: &file::Context, file: &File) -> Result<Context, Fault> {
    let field = format!("context[{n}].pattern");
    let pattern = regex(&field, &context.pattern)?;
    if !has(&pattern, "name") {
        return Err(fault(field, "it has no group for the name; write (?<name>…)"));
    }
    let end = context.end.as_ref().map(|end| regex(&format!("context[{n}].end"), end)).transpose()?;
    let by_indent = has(&pattern, "indent");
    if by_indent && end.is_some() {
        let reason = "a context with a group `indent` ends where the indentation does; leave one of them out";
        return Err(fault(format!("context[{n}].end"), reason));
    }
    let within = place(&format!("context[{n}].in"), context.within.as_ref(), file)?;
    Ok(Context { pattern, end, by_indent, within })
}

fn line(n: usize, line: &file::Line, file: &File) -> Result<Line, Fault> {
    let field = format!("line[{n}].pattern");
    let pattern = regex(&field, &line.pattern)?;
    let numbered = (1..=9).map(|part| format!("name{part}"));
    let parts: Vec<String> =
        std::iter::once("name".to_owned()).chain(numbered).filter(|part| has(&pattern, part)).collect();
    if parts.is_empty() {
        return Err(fault(field, "it has no group for the test's name; write (?<name>…)"));
    }
    match (line.status, has(&pattern, "status")) {
        (None, false) => {
            let reason =
                "nothing tells how the test ended; give `status`, or a group (?<status>…) in the pattern";
            return Err(fault(format!("line[{n}].status"), reason));
        }
        (Some(_), true) => {
            let reason = "the pattern has a group `status` as well; leave one of them out";
            return Err(fault(format!("line[{n}].status"), reason));
        }
        (None, true) if file.status.is_empty() => {
            return Err(fault(
                "status",
                format!("{field} captures a status, but the table [status] is empty"),
            ));
        }
        _ => {}
    }
    Ok(Line {
        pattern,
        parts,
        status: line.status,
        within: place(&format!("line[{n}].in"), line.within.as_ref(), file)?,
        not_in: place(&format!("line[{n}].not-in"), line.not_in.as_ref(), file)?,
        context: line.context,
        group: line.group,
    })
}
