//! The record of VibeMemBench's verified experience: bug class, root cause, fix pattern, lesson, anchors.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::ask::one_line;

/// Longest line of a card, in characters.
const LINE: usize = 320;
/// Most anchors of a card.
const ANCHORS: usize = 8;

/// A record of four or five lines (arXiv 2609.23570).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::memory) struct FixCard {
    /// What kind of fault it was, and in what.
    pub bug_class: String,
    /// Why it happened.
    pub root_cause: String,
    /// What was changed.
    pub fix_pattern: String,
    /// What the next one should know.
    pub lesson: String,
    /// Files, directories and identifiers that it is about, the closest first.
    #[serde(default)]
    pub anchors: Vec<String>,
}

impl FixCard {
    /// Puts a card in order: one line a field, as long as a line may be.
    ///
    /// # Errors
    /// Names a field that is empty.
    pub fn tidy(self) -> Result<Self, String> {
        let line = |name: &str, text: &str| match one_line(text, LINE) {
            empty if empty.is_empty() => Err(format!("{name} is empty")),
            text => Ok(text),
        };
        let mut anchors: Vec<String> = Vec::new();
        for anchor in self.anchors.iter().map(|anchor| one_line(anchor, LINE / 2)) {
            if !anchor.is_empty() && !anchors.contains(&anchor) && anchors.len() < ANCHORS {
                anchors.push(anchor);
            }
        }
        Ok(Self {
            bug_class: line("bug_class", &self.bug_class)?,
            root_cause: line("root_cause", &self.root_cause)?,
            fix_pattern: line("fix_pattern", &self.fix_pattern)?,
            lesson: line("lesson", &self.lesson)?,
            anchors,
        })
    }

    /// The card as it is injected.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Bug class: {}\nRoot cause: {}\nFix pattern: {}\nLesson: {}",
            self.bug_class, self.root_cause, self.fix_pattern, self.lesson
        );
        if !self.anchors.is_empty() {
            let _ = write!(text, "\nAnchors: {}", self.anchors.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_put_in_order() {
        let card = FixCard {
            bug_class: "wrong\nresult".into(),
            root_cause: "x".repeat(2000),
            fix_pattern: "f".into(),
            lesson: "l".into(),
            anchors: vec!["a.py".into(), "a.py".into(), String::new()],
        };
        let card = card.tidy().unwrap();
        assert_eq!((card.bug_class.as_str(), card.root_cause.chars().count()), ("wrong result", LINE));
        assert_eq!(card.anchors, ["a.py"]);
        assert_eq!(card.text().lines().count(), 5);
        assert_eq!(FixCard::default().tidy().unwrap_err(), "bug_class is empty");
    }
}
