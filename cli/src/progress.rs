//! A study's progress, for people: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use memtrial::study::{Event, TrialRecord};

use crate::ui;

/// Shows the events of a study on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar where standard error is a terminal.
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template(
                "{bar:30} {pos}/{len} trials  {elapsed} elapsed, {eta} left  {msg}",
            );
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self { bar }
    }

    /// Says something besides the bar.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| ui::note(line)),
            None => ui::note(line),
        }
    }

    /// Ends the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Shows an event.
    pub fn show(&self, event: &Event) {
        match event {
            Event::Planned { gold, trials, finished } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(*trials as u64);
                    bar.set_position(*finished as u64);
                }
                self.say(&format!(
                    "{trials} trials, {finished} finished already; {gold} gold patches to check"
                ));
            }
            Event::Gold { target, verdict, reason } => {
                if *verdict != memtrial::grade::VerdictClass::Resolved {
                    self.say(&format!("gold {target}: {verdict}{}", because(reason.as_deref())));
                }
            }
            Event::Started { key, .. } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("{} {} #{}", key.instance_id, key.condition, key.replicate));
                }
            }
            Event::Again { key, reason } => {
                self.say(&format!("again {} {}: {}", key.instance_id, key.condition, first_line(reason)));
            }
            Event::TakenOver { key, worker } => {
                self.say(&format!(
                    "taking over {} {} from {worker}, which is silent",
                    key.instance_id, key.condition
                ));
            }
            Event::Lost { key } => {
                self.say(&format!(
                    "{} {} was taken over by another worker while this one was silent",
                    key.instance_id, key.condition
                ));
            }
            Event::Elsewhere { .. } => {
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                }
            }
            Event::Waiting { elsewhere } => {
                self.say(&format!("nothing else is left: waiting for {elsewhere} that other workers are at"));
            }
            Event::Finished { record } => {
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                }
                self.say(&line(record));
            }
        }
    }
}

fn line(record: &TrialRecord) -> String {
    let key = &record.key;
    format!(
        "{} {} {} #{}: {}{}",
        key.instance_id,
        key.condition,
        key.solver,
        key.replicate,
        record.verdict,
        because(record.reason.as_deref())
    )
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(" ({})", first_line(reason))).unwrap_or_default()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
