//! A target's history as the host takes it: one experience at a time, streamed from its trajectory.

use std::ops::ControlFlow;

use super::Experience;
use super::host::Experiences;
use crate::dataset::{Entry, History, OtherRepositories};
use crate::task::InstanceId;
use crate::trajectory::{ActionPattern, Limits, MiniEvents, Part, SummaryBuilder};

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
    let mut events = Vec::new();
    let summary = match with_events {
        false => entry.summary(&Limits::default()),
        true => {
            let mut builder = SummaryBuilder::default();
            let mut reader = MiniEvents::new(ActionPattern::of(None)?);
            let report = entry.stream(&Limits::default(), &mut |part| {
                match part {
                    Part::Field { key, value } => builder.field(key, value),
                    Part::Message { message, .. } => {
                        builder.message(&message);
                        reader.message(&message, &mut |event| events.push(event));
                    }
                }
                ControlFlow::Continue(())
            });
            report.map(|report| builder.finish(&report))
        }
    }
    .map_err(|error| error.to_string())?;
    Ok(Experience {
        instance_id: entry.id().clone(),
        issue: summary.issue.ok_or_else(|| format!("{}: it holds no issue text", entry.path().display()))?,
        patch: summary.submission,
        exit_status: summary.exit_status,
        outcome: entry.resolved(),
        events,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dataset::{Chronology, HistoryStore, MergeDates};
    use crate::trajectory::Event;

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
        assert_eq!(history.read(id, false).unwrap().events, Vec::new());
        assert_eq!(history.read(&target, false).unwrap_err(), "it is not in the history");
    }
}
