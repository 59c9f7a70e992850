//! Python's notions of white space and lines, which the rules of mini-swe-agent are stated in.

use std::borrow::Cow;

/// `str.isspace` of one character.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `str.strip()`.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.splitlines(keepends=True)`, as the first line and the rest; `None` for an empty text.
fn split_first_line(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() {
        return None;
    }
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r'
                | '\u{b}'
                | '\u{c}'
                | '\u{1c}'
                | '\u{1d}'
                | '\u{1e}'
                | '\u{85}'
                | '\u{2028}'
                | '\u{2029}'
        )
    };
    let end = match text.char_indices().find(|&(_, c)| is_break(c)) {
        Some((at, '\r')) if text[at + 1..].starts_with('\n') => at + 2,
        Some((at, c)) => at + c.len_utf8(),
        None => text.len(),
    };
    Some(text.split_at(end))
}

/// A text as Python's text mode reads it: `\r\n` and `\r` become `\n`.
pub(super) fn universal(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The submission, where a command's output is one: its first line is a sentinel and its return code is 0. What
/// follows the first line is the submission, unchanged.
pub(super) fn submission<'a>(output: &'a str, returncode: i64, sentinels: &[&str]) -> Option<&'a str> {
    let (first, rest) = split_first_line(output.trim_start_matches(is_space))?;
    (returncode == 0 && sentinels.contains(&strip(first))).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: &str = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

    #[test]
    fn line_breaks_become_newlines() {
        assert_eq!(universal("a\r\nb\rc\n\r\n"), "a\nb\nc\n\n");
        assert!(matches!(universal("a\n\u{85}"), Cow::Borrowed(_)));
    }

    #[test]
    fn the_sentinel_stands_alone_on_the_first_line() {
        let submit = |output: &str| submission(output, 0, &[DONE]).map(str::to_owned);
        assert_eq!(submit(&format!("{DONE}\n")), Some(String::new()));
        assert_eq!(submit(DONE), Some(String::new()));
        assert_eq!(submit(&format!(" \n\t{DONE} \r\n  diff\r\n\n")), Some("  diff\r\n\n".into()));
        for separator in
            ["\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{85}", "\u{2028}", "\u{2029}", "\r"]
        {
            assert_eq!(submit(&format!("{DONE}{separator}x")), Some("x".into()), "{separator:?}");
        }
        assert_eq!(submit(&format!("\u{1f}{DONE}\u{1f}\nx")), Some("x".into()));
        assert_eq!(submit(&format!("{DONE} now\nx")), None);
        assert_eq!(submit(&format!("first\n{DONE}\n")), None);
        assert_eq!(submit(""), None);
        assert_eq!(submission(&format!("{DONE}\nx"), 1, &[DONE]), None);
    }
}
