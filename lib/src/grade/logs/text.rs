//! What Python does to text, where Rust differs: newlines, white space, line splitting.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// A pattern's stand-in for one white-space character of Python (29 of them; Rust's `\s` lacks U+001C to
/// U+001F).
const SPACE: &str =
    r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]";

/// A pattern's stand-in for one word character of Python: alphanumeric or `_`. Rust's `\w` has combining marks
/// and joiners as well, and lacks numbers that are no digits (`²`, `½`).
const WORD: &str = r"[\p{L}\p{N}_]";

/// A regular expression compiled at first use.
pub(in crate::grade) type Pattern = LazyLock<Regex>;

/// Compiles a literal pattern in which `ω` stands for one white-space character of Python and `\w` for one of
/// Python's word characters. `\b` is Rust's: behind a word, `(?:\W|$)` is Python's.
pub(in crate::grade) fn pattern(literal: &str) -> Regex {
    let not_word = format!("[^{}", &WORD[1..]);
    let literal = literal.replace('ω', SPACE).replace(r"\w", WORD).replace(r"\W", &not_word);
    match Regex::new(&literal) {
        Ok(regex) => regex,
        Err(error) => unreachable!("a literal pattern is wrong: {error}"),
    }
}

/// As [`pattern`], in any case of letters as Python sees it: an `i` (outside of classes and escapes) also matches
/// `ı` and `İ`.
pub(in crate::grade) fn pattern_any_case(literal: &str) -> Regex {
    let mut folded = String::from("(?i)");
    let mut chars = literal.chars();
    while let Some(c) = chars.next() {
        match c {
            'i' | 'I' => folded.push_str("[iıİ]"),
            '\\' => {
                folded.push(c);
                folded.extend(chars.next());
            }
            _ => folded.push(c),
        }
    }
    pattern(&folded)
}

/// Whether Python's `\w` matches the character.
pub fn is_word(c: char) -> bool {
    static ONE: Pattern = LazyLock::new(|| pattern(r"^\w$"));
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || c == '_'
    } else {
        ONE.is_match(c.encode_utf8(&mut [0; 4]))
    }
}

/// Whether Python's `\d` matches the character (category Nd).
pub fn is_digit(c: char) -> bool {
    static ONE: Pattern = LazyLock::new(|| pattern(r"^\d$"));
    if c.is_ascii() { c.is_ascii_digit() } else { ONE.is_match(c.encode_utf8(&mut [0; 4])) }
}

/// A whole number as Python's `int` reads it, of digits of any script: its ASCII digits without leading zeros (`0`
/// for zero). `None` where Python raises ValueError: another character, none at all, or more than 4300 of them.
pub fn integer(digits: &str) -> Option<String> {
    if digits.is_empty() || digits.chars().count() > 4300 {
        return None;
    }
    let ascii: String = digits.chars().map(digit).collect::<Option<_>>()?;
    let significant = ascii.trim_start_matches('0');
    Some(if significant.is_empty() { "0".to_owned() } else { significant.to_owned() })
}

/// The ASCII digit of the same value. Digits stand in runs of ten from U+xxx0 or U+xxx6, but for the five runs of
/// mathematical digits.
fn digit(c: char) -> Option<char> {
    if !is_digit(c) {
        return None;
    }
    let code = u32::from(c);
    let value = match code {
        0x1d7ce..=0x1d7ff => (code - 0x1d7ce) % 10,
        _ if char::from_u32(code & !0xf | 5).is_some_and(is_digit) => code & 0xf,
        _ => (code & 0xf).checked_sub(6)?,
    };
    char::from_digit(value, 10)
}

/// Whether Python's `str.splitlines` breaks a line at the character (CRLF is one break).
pub fn is_line_break(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Text as Python reads a file in text mode: CRLF and a lone CR become LF.
pub fn universal_newlines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether Python's `str.isspace` holds for the character.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Python's `str.strip`.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Python's `str.rstrip`.
pub fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// What follows one or more white-space characters at the start; `None` where there are none.
pub fn after_spaces(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(is_space);
    (rest.len() < text.len()).then_some(rest)
}

/// What follows one or more digits at the start; `None` where there are none.
pub fn after_digits(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(is_digit);
    (rest.len() < text.len()).then_some(rest)
}

/// What follows a word of lower-case ASCII letters at the start, in any case as Python sees it.
pub fn after_any_case<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for wanted in word.chars() {
        let c = rest.next()?;
        let same = c.eq_ignore_ascii_case(&wanted)
            || matches!((wanted, c), ('i', 'ı' | 'İ') | ('s', '\u{17f}') | ('k', '\u{212a}'));
        if !same {
            return None;
        }
    }
    Some(rest.as_str())
}

/// Python's `str.split()`.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// Python's `str.splitlines`: ten line breaks, CRLF counted once, no empty piece after a final break.
pub fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !is_line_break(c) {
            continue;
        }
        lines.push(&text[start..at]);
        start = at + c.len_utf8();
        if c == '\r' && chars.next_if(|&(_, next)| next == '\n').is_some() {
            start += 1;
        }
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// Text without terminal control sequences: CSI, OSC and two-character escapes.
pub fn strip_ansi(text: &str) -> Cow<'_, str> {
    static ANSI: Pattern =
        LazyLock::new(|| pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])"));
    if text.contains('\x1b') { ANSI.replace_all(text, "") } else { Cow::Borrowed(text) }
}

/// Text without escape sequences as upstream's wider expression removes them: two-character escapes (of an OSC
/// sequence just its beginning) and CSI sequences.
pub(in crate::grade) fn strip_escapes(text: &str) -> Cow<'_, str> {
    static ESCAPE: Pattern = LazyLock::new(|| pattern(r"\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])"));
    if text.contains('\x1b') { ESCAPE.replace_all(text, "") } else { Cow::Borrowed(text) }
}

/// Text with every colour sequence (`ESC [ … m`) replaced, as upstream's narrower expression finds them.
pub(in crate::grade) fn replace_colours<'t>(text: &'t str, replacement: &str) -> Cow<'t, str> {
    static COLOUR: Pattern = LazyLock::new(|| pattern(r"\x1b\[[0-9;]*m"));
    if text.contains('\x1b') { COLOUR.replace_all(text, replacement) } else { Cow::Borrowed(text) }
}

/// Whether a log says in this line that lines are left out.
pub fn is_cut(line: &str) -> bool {
    line.contains("....stripped due to length....")
}

/// Removes the duration that JavaScript runners put behind a name (`5ms`, `(1.5 s)`), as the upstream parsers
/// do: once, a separating blank not required.
pub fn strip_duration(name: &str) -> &str {
    static DURATION: Pattern = LazyLock::new(|| pattern(r"(?i)ω*(?:\(ω*)?\d+(?:\.\d+)?ω*(?:ms|s)ω*\)?ω*$"));
    let end = DURATION.find(name).map_or(name.len(), |found| found.start());
    trim(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_pythons() {
        for c in ['a', '_', '9', 'é', 'ß', '²', '½', 'Ⅷ', '٣', '漢'] {
            assert!(is_word(c), "{c:?}");
        }
        for c in ['-', ' ', '\u{301}', '\u{200d}', '\u{203f}'] {
            assert!(!is_word(c), "{c:?}");
        }
        assert!(pattern(r"^[\w.]+$").is_match("a²._") && !pattern(r"\w").is_match("\u{301}"));
        assert!(pattern(r"^E(?:\W|$)").is_match("E\u{301}") && !pattern(r"^E(?:\W|$)").is_match("E²"));
    }

    #[test]
    fn case_is_folded_as_python_does() {
        let skip = pattern_any_case(r"^skip\w$");
        for text in ["skipx", "SKIPx", "SKıPx", "sKİpX", "\u{17f}kip1", "s\u{212a}ip1"] {
            assert!(skip.is_match(text), "{text}");
        }
    }

    #[test]
    fn integers_are_of_any_script_and_bounded() {
        for (text, value) in [
            ("0", "0"),
            ("007", "7"),
            ("٣", "3"),
            ("१२", "12"),
            ("𝟡𝟘", "90"),
            ("૯", "9"),
            ("0".repeat(4300).as_str(), "0"),
        ] {
            assert_eq!(integer(text).as_deref(), Some(value), "{text}");
        }
        for text in ["", "²", "1x", " 1", "1".repeat(4301).as_str()] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn translates_every_kind_of_newline() {
        assert_eq!(universal_newlines("a\r\nb\rc\nd\r\r\n"), "a\nb\nc\nd\n\n");
        assert!(matches!(universal_newlines("a\nb"), Cow::Borrowed(_)));
    }

    #[test]
    fn knows_the_29_white_space_characters_of_python() {
        let spaces = (0..=0x10_ffff).filter_map(char::from_u32).filter(|&c| is_space(c)).collect::<Vec<_>>();
        assert_eq!(spaces.len(), 29);
        let class = pattern("^ω$");
        for c in (0..=0x3100).filter_map(char::from_u32) {
            assert_eq!(class.is_match(&c.to_string()), is_space(c), "{c:?}");
        }
        assert_eq!(trim("\u{1c}\u{a0} a\u{200b} \u{1f}"), "a\u{200b}");
        assert_eq!(trim_end(" a\u{85}"), " a");
        assert_eq!(words("\u{1e}a \u{2003}b\u{feff}").collect::<Vec<_>>(), ["a", "b\u{feff}"]);
    }

    #[test]
    fn splits_lines_as_python_does() {
        let text = "a\r\nb\rc\u{b}d\u{c}e\u{1c}f\u{1d}g\u{1e}h\u{85}i\u{2028}j\u{2029}k\u{1f}l\n\n";
        assert_eq!(split_lines(text), ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k\u{1f}l", ""]);
        assert_eq!(split_lines(""), Vec::<&str>::new());
        assert_eq!(split_lines("\n"), [""]);
        assert_eq!(split_lines("\r"), [""]);
    }

    #[test]
    fn prefixes_are_taken_off_as_python_does() {
        assert_eq!(after_spaces("\u{1c} a "), Some("a "));
        assert_eq!(after_spaces("a"), None);
        assert_eq!(after_digits("1٣x"), Some("x"));
        assert_eq!(after_digits("²"), None);
        assert_eq!(after_any_case("\u{17f}KİPx", "skip"), Some("x"));
        assert_eq!(after_any_case("ski", "skip"), None);
    }

    #[test]
    fn strips_control_sequences() {
        assert_eq!(strip_ansi("\x1b[1;32mPASSED\x1b[0m a\x1b[K \x1b]8;;u\x1b\\x\x1b]0;t\x07"), "PASSED a x");
        assert_eq!(strip_ansi("t[10m]"), "t[10m]");
    }

    #[test]
    fn sees_where_lines_are_left_out() {
        assert!(is_cut("=== RUN   Te....stripped due to length....") && !is_cut("=== RUN   TestCut"));
    }

    #[test]
    fn strips_one_duration() {
        for (name, rest) in [
            ("handles v2s", "handles v"),
            ("foo 200ms (5ms)", "foo 200ms"),
            ("a (3 tests)", "a (3 tests)"),
            ("a (1.5 s)", "a"),
            ("12ms", ""),
            ("a 5µs", "a 5µs"),
        ] {
            assert_eq!(strip_duration(name), rest);
        }
    }

    proptest! {
        #[test]
        fn splitting_loses_only_line_breaks(text in "[a-c\r\n\u{b}\u{85}\u{2028} ]{0,20}") {
            let kept = split_lines(&text).concat();
            let expected = text.replace(['\r', '\n', '\u{b}', '\u{85}', '\u{2028}'], "");
            prop_assert_eq!(kept, expected);
        }
    }
}
