//! A target's history as the host takes it.

use std::ops::ControlFlow;

use super::host::Experiences;
use super::{Experience, Turn};
use crate::dataset::{Entry, History};
use crate::task::InstanceId;
use crate::trajectory::{Limits, Part, Role, Summary, SummaryBuilder};

impl Experiences for History {
    fn target(&self) -> &InstanceId {
        History::target(self)
    }

    fn eligible(&self) -> Vec<InstanceId> {
        self.entries().iter().map(|entry| entry.id().clone()).collect()
    }

    fn read(&self, id: &InstanceId, with_messages: bool) -> Result<Experience, String> {
        let entry = self.entries().iter().find(|entry| entry.id() == id).ok_or("it is not in the history")?;
        let (summary, messages) = read(entry, with_messages).map_err(|error| error.to_string())?;
        Ok(Experience {
            instance_id: id.clone(),
            issue: summary.issue.unwrap_or_default(),
            patch: summary.submission.filter(|patch| !patch.trim().is_empty()),
            exit_status: summary.exit_status,
            outcome: entry.resolved(),
            messages,
        })
    }
}

fn read(entry: &Entry, with_messages: bool) -> Result<(Summary, Vec<Turn>), crate::dataset::DatasetError> {
    let mut builder = SummaryBuilder::default();
    let mut turns = Vec::new();
    let report = entry.stream(&Limits::default(), &mut |part| {
        match part {
            Part::Field { key, value } => builder.field(key, value),
            Part::Message { message, .. } => {
                if with_messages && message.role() != Role::System {
                    turns.push(Turn {
                        role: message.role().as_str().to_owned(),
                        text: message.text().into_owned(),
                    });
                }
                builder.message(&message);
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok((builder.finish(&report), turns))
}
