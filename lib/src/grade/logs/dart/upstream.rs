//! The reference rules for Dart's runners.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::super::found::Found;
use super::super::scan::{Raised, Scan};
use super::super::status::Status;
use super::super::text::{Pattern, integer, pattern, trim};
use super::python_json::{Fault, Json, parse};

/// The machine-readable events.
#[derive(Default)]
pub(in crate::grade::logs) struct Events {
    /// By id, as far as ids can be told apart.
    names: BTreeMap<String, String>,
    /// What an event raises. The reference parser decodes every line first, so that a line that cannot be decoded
    /// raises before.
    raised: Option<Raised>,
}

impl Scan for Events {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        let line = trim(line);
        if line.is_empty() {
            return Ok(());
        }
        let events = match parse(line) {
            Ok(Json::List(items)) => items,
            Ok(value) => vec![value],
            Err(Fault::Malformed) => return Ok(()),
            Err(Fault::Raised(raised)) => return Err(raised),
        };
        for event in events {
            if self.raised.is_none()
                && let Json::Object(event) = event
            {
                self.raised = self.event(&event, found).err();
            }
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Found) -> Result<(), Raised> {
        self.raised.map_or(Ok(()), Err)
    }
}

type Fields = BTreeMap<String, Json>;

fn is_true(fields: &Fields, key: &str) -> bool {
    fields.get(key).is_some_and(Json::is_true)
}

/// What Python's dictionaries go by: numbers and truth values by their value.
fn key(id: &Json) -> Result<String, Raised> {
    match id {
        Json::Text(text) => Ok(format!("\"{text}")),
        Json::Number(number) => Ok(number.clone()),
        Json::Bool(value) => Ok(u8::from(*value).to_string()),
        Json::Null | Json::List(_) | Json::Object(_) => Err(Raised("TypeError")),
    }
}

impl Events {
    fn event(&mut self, event: &Fields, found: &mut Found) -> Result<(), Raised> {
        let Some(Json::Text(kind)) = event.get("type") else { return Ok(()) };
        match kind.as_str() {
            "testStart" => self.start(event),
            "testDone" => self.done(event, found),
            _ => Ok(()),
        }
    }

    fn start(&mut self, event: &Fields) -> Result<(), Raised> {
        let Some(Json::Object(test)) = event.get("test") else { return Ok(()) };
        let id = test.get("id").filter(|id| **id != Json::Null);
        let (Some(id), Some(name)) = (id, test.get("name").filter(|name| name.is_true())) else {
            return Ok(());
        };
        let Json::Text(name) = name else { return Err(Raised("AttributeError")) };
        if !name.starts_with("loading ") {
            self.names.insert(key(id)?, name.clone());
        }
        Ok(())
    }

    fn done(&self, event: &Fields, found: &mut Found) -> Result<(), Raised> {
        let Some(id) = event.get("testID").filter(|id| **id != Json::Null) else { return Ok(()) };
        if is_true(event, "hidden") {
            return Ok(());
        }
        let Some(name) = self.names.get(&key(id)?) else { return Ok(()) };
        let result = match event.get("result") {
            Some(Json::Text(result)) => result.as_str(),
            _ => "",
        };
        let status = match result {
            "success" => Status::Passed,
            "failure" => Status::Failed,
            "error" => Status::Error,
            _ if is_true(event, "skipped") => Status::Skipped,
            _ => return Ok(()),
        };
        found.set(name, status);
        Ok(())
    }
}

/// Expanded output behind melos: a test that is seen twice has passed.
#[derive(Default)]
pub(in crate::grade::logs) struct Melos {
    seen: BTreeMap<String, (usize, usize)>,
}

impl Scan for Melos {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        static TEST: Pattern =
            LazyLock::new(|| pattern(r"^\[\w+\]:ω+\d{2}:\d{2}ω+\+(\d+):ω+(/[^:]+\.dart):ω+(.+)$"));
        let line = trim(line);
        if !line.starts_with('[') || line.to_lowercase().contains("loading") {
            return Ok(());
        }
        if let Some(test) = TEST.captures(line) {
            integer(&test[1]).ok_or(Raised("ValueError"))?;
            let (times, at) = self.seen.entry(format!("{}: {}", &test[2], &test[3])).or_default();
            *times += 1;
            *at = found.line();
        }
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        for (name, (times, line)) in std::mem::take(&mut self.seen) {
            found.go_to(line);
            found.set(name, if times > 1 { Status::Passed } else { Status::Error });
        }
        Ok(())
    }
}

/// Expanded output.
pub(super) fn expanded(line: &str, found: &mut Found) {
    static BROKEN: Pattern =
        LazyLock::new(|| pattern(r"^\d+:\d+ω+\+\d+ω+-\d+:ω+loadingω+(/[^:]+\.dart)ω+\[E\]$"));
    static TEST: Pattern =
        LazyLock::new(|| pattern(r"^\d+:\d+ω+\+\d+(?:ω+-\d+)?:ω+(/[^:]+\.dart):ω+(.+?)(?:ω+\[E\])?$"));
    let line = trim(line);
    if !line.contains(".dart") {
        return;
    }
    if let Some(broken) = BROKEN.captures(line) {
        found.set(&broken[1], Status::Error);
    } else if let Some(test) = TEST.captures(line) {
        let status = if line.contains("[E]") { Status::Failed } else { Status::Passed };
        found.set_keeping_failures(format!("{}: {}", &test[1], trim(&test[2])), status);
    }
}
