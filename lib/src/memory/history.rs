//! A target's history as the host takes it: one experience at a time, streamed from its trajectory.

use std::ops::ControlFlow;

use super::Experience;
use super::host::Experiences;
use crate::dataset::{Entry, History, OtherRepositories};
use crate::task::InstanceId;
use crate::trajectory::{Event, Limits, RunPart};

impl Experiences for History {
    fn target(&self) -> &InstanceId {
        self.target()
    }

    fn eligible(&self) -> Vec<InstanceId> {
        self.entries().iter().map(|entry| entry.id().clone()).collect()
    }

    fn read(&self, id: &InstanceId, with_events: bool) -> Result<Experience, String> {
        read(entry(self.entries(), id)?, with_events)
    }

    fn digest(&self, id: &InstanceId) -> Result<(String, Option<bool>), String> {
        digest(entry(self.entries(), id)?)
    }
}

impl Experiences for OtherRepositories {
    fn target(&self) -> &InstanceId {
        self.target()
    }

    fn eligible(&self) -> Vec<InstanceId> {
        self.entries().iter().map(|entry| entry.id().clone()).collect()
    }

    fn read(&self, id: &InstanceId, with_events: bool) -> Result<Experience, String> {
        read(entry(self.entries(), id)?, with_events)
    }

    fn digest(&self, id: &InstanceId) -> Result<(String, Option<bool>), String> {
        digest(entry(self.entries(), id)?)
    }
}

fn entry<'e>(entries: &'e [Entry], id: &InstanceId) -> Result<&'e Entry, String> {
    entries.iter().find(|entry| entry.id() == id).ok_or_else(|| "it is not in the history".to_owned())
}

fn digest(entry: &Entry) -> Result<(String, Option<bool>), String> {
    let content = entry.sha256().map_err(|error| error.to_string())?;
    Ok((content, entry.resolved()))
}

fn read(entry: &Entry, with_events: bool) -> Result<Experience, String> {
    let no_issue = || format!("{}: it holds no issue text", entry.path().display());
    if !with_events {
        let summary = entry.summary(&Limits::default()).map_err(|error| error.to_string())?;
        return Ok(Experience {
            instance_id: entry.id().clone(),
            issue: summary.issue.ok_or_else(no_issue)?,
            patch: summary.submission,
            exit_status: summary.exit_status,
            outcome: entry.resolved(),
            events: Vec::new(),
        });
    }
    let (mut issue, mut patch, mut exit_status) = (None, None, None);
    let mut events = Vec::new();
    entry
        .events(&Limits::default(), &mut |part| {
            if let RunPart::Event(event) = part {
                match &event {
                    Event::Issue { text } if issue.is_none() => issue = Some(text.clone()),
                    Event::Submission { patch: submitted } => patch = Some(submitted.clone()),
                    Event::Ended { status, .. } => exit_status.clone_from(status),
                    _ => {}
                }
                events.push(event);
            }
            ControlFlow::Continue(())
        })
        .map_err(|error| error.to_string())?;
    Ok(Experience {
        instance_id: entry.id().clone(),
        issue: issue.ok_or_else(no_issue)?,
        patch,
        exit_status,
        outcome: entry.resolved(),
        events,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dataset::{Chronology, HistoryStore, MergeDates};

    #[test]
    fn reads_issue_patch_ending_and_turns() {
        let folder = tempfile::tempdir().unwrap();
        let run = json!({"messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "<pr_description>\nTitle\nBody\n</pr_description>\nGo."},
            {"role": "assistant", "content": "Look.", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}]},
            {"role": "tool", "content": "a.py", "tool_call_id": "c"},
            {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}},
        ]});
        fs_err::write(folder.path().join("acme__widget-3.traj.json"), run.to_string()).unwrap();
        let store = HistoryStore::open(folder.path()).unwrap();
        let target = InstanceId::parse("acme__widget-7").unwrap();
        let history =
            History::for_target(&store, &target, Chronology::Number, &MergeDates::default()).unwrap();
        let [id] = &history.eligible()[..] else { panic!("{history:?}") };
        let read = history.read(id, true).unwrap();
        assert_eq!((read.issue.as_str(), read.patch.as_deref()), ("Title\nBody", Some("diff")));
        assert_eq!(read.exit_status.as_deref(), Some("Submitted"));
        assert_eq!(
            read.events,
            [
                Event::Issue { text: "Title\nBody".into() },
                Event::Thought { text: "Look.".into() },
                Event::Command { text: "ls".into(), edits: Vec::new(), tests: false },
                Event::Observation { text: "a.py".into(), exit_code: None },
                Event::Submission { patch: "diff".into() },
                Event::Ended { status: Some("Submitted".into()), resolved: None },
            ]
        );
        let log = [
            json!({"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": "Other"}}),
            json!({"type": "assistant", "uuid": "2", "sessionId": "s", "message": {"role": "assistant", "id": "m",
                "content": [{"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": "/testbed/a.py"}}]}}),
        ];
        fs_err::write(
            folder.path().join("acme__widget-4.jsonl"),
            log.map(|line| format!("{line}\n")).concat(),
        )
        .unwrap();
        fs_err::write(folder.path().join("tasks.jsonl"), "{}\n").unwrap();
        let store = HistoryStore::open(folder.path()).unwrap();
        let both = History::for_target(&store, &target, Chronology::Number, &MergeDates::default()).unwrap();
        let session = both.read(&InstanceId::parse("acme__widget-4").unwrap(), true).unwrap();
        assert_eq!((session.issue.as_str(), session.events.len()), ("Other", 3));
        assert_eq!(both.entries()[1].summary(&Limits::default()).unwrap().api_calls, 1);
        assert_eq!(history.read(id, false).unwrap().events, Vec::new());
        assert_eq!(history.read(&target, false).unwrap_err(), "it is not in the history");
    }
}
