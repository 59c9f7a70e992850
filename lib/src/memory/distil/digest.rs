//! A run as text.

use crate::memory::{Experience, estimate_tokens};
use crate::trajectory::Event;

/// Longest part of one observation in a digest, in characters.
const OBSERVATION: usize = 600;
/// Longest part of one command or thought.
const ACTION: usize = 800;
/// The shares of a digest that issue and patch may take.
const ISSUE_SHARE: f64 = 0.25;
const PATCH_SHARE: f64 = 0.25;

/// How a run ended, in one sentence.
pub(in crate::memory) fn outcome_words(run: &Experience) -> &'static str {
    match (run.outcome, run.exit_status.as_deref(), &run.patch) {
        (Some(true), ..) => "The task's tests passed with the submitted patch.",
        (Some(false), _, Some(_)) => "The task's tests failed with the submitted patch.",
        (Some(false), _, None) => "The task was not solved: no patch was submitted.",
        (None, _, Some(_)) => "A patch was submitted; whether it solves the task is not known.",
        (None, Some("Submitted"), None) => "An empty patch was submitted.",
        (None, ..) => "The run ended without a patch.",
    }
}

/// A run in at most `tokens`: the issue, the steps (where they do not fit, the first and the last ones), the patch, the end.
pub(in crate::memory) fn digest(run: &Experience, tokens: u64) -> String {
    let room = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let issue = shorten(run.issue.trim(), (room as f64 * ISSUE_SHARE) as usize);
    let patch =
        shorten(run.patch.as_deref().unwrap_or("(none)").trim_end(), (room as f64 * PATCH_SHARE) as usize);
    let frame = format!(
        "# Issue\n{issue}\n\n# Steps\n\n\n# Submitted patch\n{patch}\n\n# Outcome\n{}",
        outcome_words(run)
    );
    let left = room.saturating_sub(frame.chars().count() + 40);
    let steps: Vec<String> = run.events.iter().filter_map(step).collect();
    let steps = ends_of(&steps, left);
    format!(
        "# Issue\n{issue}\n\n# Steps\n{steps}\n\n# Submitted patch\n{patch}\n\n# Outcome\n{}",
        outcome_words(run)
    )
}

/// One event of a step, for a reader.
fn step(event: &Event) -> Option<String> {
    match event {
        Event::Thought { text } => Some(shorten(text, ACTION)),
        Event::Command { text, .. } => Some(format!("$ {}", shorten(text, ACTION))),
        Event::Observation { text, exit_code } => {
            let code = exit_code.filter(|code| *code != 0).map(|code| format!("[exit code {code}]\n"));
            Some(format!("{}{}", code.unwrap_or_default(), shorten(text.trim_end(), OBSERVATION)))
        }
        Event::Issue { .. } | Event::Submission { .. } | Event::Ended { .. } => None,
    }
}

/// As many first and last pieces as fit.
fn ends_of(pieces: &[String], room: usize) -> String {
    let length = |piece: &String| piece.chars().count() + 1;
    let mut left = room;
    let (mut head, mut tail) = (0, pieces.len());
    while head < tail {
        let next = if head <= pieces.len() - tail { head } else { tail - 1 };
        match left.checked_sub(length(&pieces[next])) {
            Some(rest) => left = rest,
            None => break,
        }
        if next == head { head += 1 } else { tail -= 1 }
    }
    let mut shown: Vec<&str> = pieces[..head].iter().map(String::as_str).collect();
    let left_out = format!("[{} pieces left out]", tail - head);
    if head < tail {
        shown.push(&left_out);
    }
    shown.extend(pieces[tail..].iter().map(String::as_str));
    shown.join("\n")
}

/// Head and tail of a text that is too long, with a word between them.
pub(in crate::memory) fn shorten(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let between = " [...] ";
    let keep = room.saturating_sub(between.len());
    let (head, tail) = (keep - keep / 3, keep / 3);
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    format!("{}{between}{}", &text[..at(head)], &text[at(length - tail)..])
}

/// A run cut into pieces of at most `tokens`, in order, each step whole where it fits.
pub(in crate::memory) fn chunks(run: &Experience, tokens: u64) -> Vec<String> {
    let room = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX).max(1);
    let mut pieces = vec![String::new()];
    let mut filled = 0;
    let mut put = |text: &str| {
        let mut text = text.trim_end();
        while !text.is_empty() {
            let length = text.chars().count();
            let Some(last) = pieces.last_mut() else { return };
            if filled + length < room || filled == 0 {
                let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
                last.push_str(&text[..end]);
                last.push('\n');
                filled += text[..end].chars().count() + 1;
                text = text[end..].trim_start_matches('\n');
            }
            if filled > 0 && !text.is_empty() {
                pieces.push(String::new());
                filled = 0;
            }
        }
    };
    put(&run.issue);
    for event in &run.events {
        match event {
            Event::Thought { text } => put(text),
            Event::Command { text, .. } => put(&format!("$ {text}")),
            Event::Observation { text, .. } => put(text),
            Event::Submission { patch } => put(patch),
            Event::Issue { .. } | Event::Ended { .. } => {}
        }
    }
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces.iter_mut().for_each(|piece| piece.truncate(piece.trim_end().len()));
    debug_assert!(pieces.iter().all(|piece| estimate_tokens(piece) <= tokens.max(1)));
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::tests::run;

    #[test]
    fn shows_issue_steps_patch_and_end() {
        let mut run = run(3, "Reader fails\nBody", "+x");
        run.events = vec![
            Event::Thought { text: "Look.".into() },
            Event::command("cat a.py"),
            Event::Observation { text: "no such file\n".into(), exit_code: Some(1) },
        ];
        run.patch = Some("+x".into());
        insta::assert_snapshot!(digest(&run, 1000), @r"
        # Issue
        Reader fails
        Body

        # Steps
        Look.
        $ cat a.py
        [exit code 1]
        no such file

        # Submitted patch
        +x

        # Outcome
        A patch was submitted; whether it solves the task is not known.
        ");
        run.events = (0..500).map(|n| Event::command(format!("step {n}"))).collect();
        let short = digest(&run, 200);
        assert!(
            estimate_tokens(&short) <= 200 && short.contains("step 0\n") && short.contains("step 499"),
            "{short}"
        );
        assert!(short.contains("pieces left out]"), "{short}");
    }

    #[test]
    fn chunks_hold_everything_in_order() {
        let mut run = run(3, "alpha", "+x");
        run.events =
            vec![Event::command("b".repeat(50)), Event::Observation { text: "c\nd".into(), exit_code: None }];
        let chunks = chunks(&run, 5);
        let all: String = chunks.concat().chars().filter(|c| !c.is_whitespace() && *c != '$').collect();
        assert_eq!(all, format!("alpha{}cd", "b".repeat(50)));
        assert!(chunks.iter().all(|chunk| estimate_tokens(chunk) <= 5), "{chunks:?}");
    }

    proptest! {
        #[test]
        fn chunks_and_digests_fit(texts in prop::collection::vec(any::<String>(), 0..8), tokens in 1u64..200) {
            let mut run = run(3, "issue", "+x");
            run.events = texts.into_iter().map(|text| Event::Thought { text }).collect();
            for chunk in chunks(&run, tokens) {
                prop_assert!(estimate_tokens(&chunk) <= tokens);
            }
            prop_assert!(estimate_tokens(&digest(&run, tokens + 150)) <= tokens + 150);
        }
    }
}
