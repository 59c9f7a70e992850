//! How a record's texts fit their room, and a run as it was as a record.

use super::changes::Changes;
use super::{Experience, estimate_tokens};

/// Two texts, each cut at its end so that both fit `tokens`: the first gets `head_share` of the room and what the second
/// leaves of its own; the second gets the rest.
pub(super) fn fit(head: &str, body: &str, tokens: u64, head_share: f64) -> String {
    let room = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let between = if head.is_empty() || body.is_empty() { "" } else { "\n\n" };
    let parts = room.saturating_sub(between.len());
    let length = |text: &str| text.chars().count();
    let share = (parts as f64 * head_share) as usize;
    let head = cut(head, share.max(parts.saturating_sub(length(body))));
    let body = cut(body, parts.saturating_sub(length(&head)));
    let text =
        if head.is_empty() || body.is_empty() { head + &body } else { format!("{head}{between}{body}") };
    debug_assert!(estimate_tokens(&text) <= tokens, "{tokens} tokens: {text:?}");
    text
}

/// A run as it was: what its record shows first, and then.
pub(super) fn issue_and_patch(experience: &Experience) -> (String, String) {
    (format!("Issue: {}", experience.issue.trim()), patch_part(experience))
}

fn patch_part(experience: &Experience) -> String {
    let ended = match experience.exit_status.as_deref() {
        Some(status) if status != "Submitted" => format!(" The run ended with {status}."),
        _ => String::new(),
    };
    let Some(patch) = experience.patch.as_deref().filter(|patch| !patch.trim().is_empty()) else {
        return format!("No patch was submitted.{ended}");
    };
    let files = match Changes::of(patch).paths() {
        paths if paths.is_empty() => String::new(),
        paths => format!(" to {}", paths.join(", ")),
    };
    let body: Vec<&str> = patch
        .lines()
        .filter(|line| !line.starts_with("index ") && !line.starts_with("diff --git "))
        .collect();
    format!("Patch submitted{files}.{ended}\n{}", body.join("\n"))
}

/// Keeps the head of a text, up to a line's end where one lies in the second half of it, and says what was cut.
pub(super) fn cut(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let note = "\n[cut here]";
    let Some(head) = room.checked_sub(note.len()).filter(|&head| head > 0) else {
        return String::new();
    };
    let end = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let end = text[..end].rfind('\n').filter(|&line_end| line_end > end / 2).unwrap_or(end);
    format!("{}{note}", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::task::InstanceId;

    const PATCH: &str = "diff --git a/src/a.py b/src/a.py\nindex 1..2 100644\n--- a/src/a.py\n+++ b/src/a.py\n\
        @@ -1,3 +1,3 @@ def f():\n context\n--- old comment\n+new line\n end\n\
        diff --git a/gone.txt b/gone.txt\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n\\ No newline at end of file\n";

    fn text(experience: &Experience, tokens: u64, share: f64) -> String {
        let (issue, patch) = issue_and_patch(experience);
        fit(&issue, &patch, tokens, share)
    }

    fn experience(issue: &str, patch: Option<&str>) -> Experience {
        Experience {
            instance_id: InstanceId::parse("acme__widget-1").unwrap(),
            issue: issue.into(),
            patch: patch.map(str::to_owned),
            exit_status: Some("Submitted".into()),
            outcome: None,
            events: Vec::new(),
        }
    }

    #[test]
    fn shows_issue_and_patch() {
        insta::assert_snapshot!(text(&experience("Title\nBody", Some(PATCH)), 500, 0.4), @r"
        Issue: Title
        Body

        Patch submitted to src/a.py, gone.txt.
        --- a/src/a.py
        +++ b/src/a.py
        @@ -1,3 +1,3 @@ def f():
         context
        --- old comment
        +new line
         end
        --- a/gone.txt
        +++ /dev/null
        @@ -1 +0,0 @@
        -bye
        \ No newline at end of file
        ");
        let mut ended = experience("T", None);
        ended.exit_status = Some("LimitsExceeded".into());
        assert_eq!(
            text(&ended, 100, 0.4),
            "Issue: T\n\nNo patch was submitted. The run ended with LimitsExceeded."
        );
    }

    #[test]
    fn cuts_both_parts_at_their_ends() {
        let long = "an issue line\n".repeat(100);
        let shown = text(&experience(&long, Some(&PATCH.replace("new line", &"x".repeat(3000)))), 200, 0.4);
        assert!(estimate_tokens(&shown) <= 200);
        assert!(
            shown.starts_with("Issue: an issue line") && shown.matches("[cut here]").count() == 2,
            "{shown}"
        );
        assert!(shown.contains("Patch submitted to src/a.py"), "{shown}");
        let no_patch = text(&experience(&long, None), 200, 0.4);
        assert!(no_patch.ends_with("No patch was submitted.") && estimate_tokens(&no_patch) > 150);
    }

    proptest! {
        #[test]
        fn fits_its_room(
            issue in any::<String>(),
            patch in proptest::option::of(any::<String>()),
            tokens in 0u64..300,
            share in 0.0f64..=1.0,
        ) {
            let shown = text(&experience(&issue, patch.as_deref()), tokens, share);
            prop_assert!(estimate_tokens(&shown) <= tokens);
        }
    }
}
