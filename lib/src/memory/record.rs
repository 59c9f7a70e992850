//! What of an earlier run is searched, and what of it is shown.

use super::{Experience, estimate_tokens};

/// The files and changed lines of a unified diff.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// Paths after the change (before it, where a file was deleted), in order, each once.
    pub files: Vec<String>,
    /// Added and removed lines without their sign.
    pub lines: Vec<String>,
}

/// Reads a diff leniently: what is no diff gives no changes. Context lines are left out, so that a record is found by
/// what a run changed and not by where.
pub(super) fn changes(patch: &str) -> Changes {
    let mut found = Changes::default();
    let (mut old_left, mut new_left) = (0u64, 0u64);
    let mut before = "";
    for line in patch.lines() {
        if old_left > 0 || new_left > 0 {
            match line.bytes().next() {
                Some(b'-') => old_left = old_left.saturating_sub(1),
                Some(b'+') => new_left = new_left.saturating_sub(1),
                Some(b'\\') => continue,
                _ => {
                    old_left = old_left.saturating_sub(1);
                    new_left = new_left.saturating_sub(1);
                    continue;
                }
            }
            found.lines.push(line[1..].to_owned());
        } else if let Some(path) = line.strip_prefix("--- ") {
            before = path;
        } else if let Some(path) = line.strip_prefix("+++ ") {
            let path = if path.starts_with("/dev/null") { before } else { path };
            let path = path.split('\t').next().unwrap_or(path);
            let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path).to_owned();
            if !found.files.contains(&path) {
                found.files.push(path);
            }
        } else if let Some((old, new)) = hunk_lengths(line) {
            (old_left, new_left) = (old, new);
        }
    }
    found
}

/// The lengths in `@@ -start,old +start,new @@`; a missing length is 1.
fn hunk_lengths(line: &str) -> Option<(u64, u64)> {
    let mut ranges = line.strip_prefix("@@ ")?.split(' ');
    let length = |range: &str| match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => Some(1),
    };
    let old = length(ranges.next()?.strip_prefix('-')?)?;
    let new = length(ranges.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

/// The text of a record: the issue, then the patch, each cut at its end so that both fit `tokens`.
///
/// The issue gets `issue_share` of the room and what the patch leaves of its own; the patch gets the rest.
pub(super) fn text(experience: &Experience, tokens: u64, issue_share: f64) -> String {
    let room = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let issue = format!("Issue: {}", experience.issue.trim());
    let patch = patch_part(experience);
    let between = "\n\n";
    let parts = room.saturating_sub(between.len());
    let length = |text: &str| text.chars().count();
    let share = (parts as f64 * issue_share) as usize;
    let issue_room = share.max(parts.saturating_sub(length(&patch)));
    let issue = cut(&issue, issue_room);
    let patch = cut(&patch, parts.saturating_sub(length(&issue)));
    let text = if patch.is_empty() { issue } else { format!("{issue}{between}{patch}") };
    debug_assert!(estimate_tokens(&text) <= tokens, "{tokens} tokens: {text:?}");
    text
}

fn patch_part(experience: &Experience) -> String {
    let ended = match experience.exit_status.as_deref() {
        Some(status) if status != "Submitted" => format!(" The run ended with {status}."),
        _ => String::new(),
    };
    let Some(patch) = experience.patch.as_deref().filter(|patch| !patch.trim().is_empty()) else {
        return format!("No patch was submitted.{ended}");
    };
    let files = match changes(patch).files {
        files if files.is_empty() => String::new(),
        files => format!(" to {}", files.join(", ")),
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
    fn finds_files_and_changed_lines() {
        let found = changes(PATCH);
        assert_eq!(found.files, ["src/a.py", "gone.txt"]);
        assert_eq!(found.lines, ["-- old comment", "new line", "bye"]);
        assert_eq!(changes("no diff\n@@ -1,x +2,y @@\n+z"), Changes::default());
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
