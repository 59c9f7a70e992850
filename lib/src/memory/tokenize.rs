//! Words of issues and code: identifiers are split where people split them.

/// Runs of letters and digits longer than this are no words.
const LONGEST: usize = 64;

/// English words that say nothing about a problem, and words that stand in every issue.
const STOP_WORDS: [&str; 63] = [
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "how", "i", "if", "in", "instead", "into", "is", "it", "its",
    "just", "me", "my", "no", "not", "of", "on", "or", "our", "should", "so", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "to", "was", "we", "were", "what", "when", "which",
    "while", "will", "with", "would", "you", "your",
];

/// Hands over the words of text and code, lower-case: `parseHTTPHeader2` gives `parse`, `http`, `header`, `2`;
/// `src/flat_map.rs` gives `src`, `flat`, `map`, `rs`. English stop words and single letters are left out, numbers are
/// kept; what is longer than 64 bytes (keys, encoded data) is no word.
pub(super) fn each_word(text: &str, mut on: impl FnMut(&str)) {
    let mut lower = String::new();
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        if run.len() > LONGEST {
            continue;
        }
        each_part(run, |part| {
            lower.clear();
            if part.is_ascii() {
                lower.push_str(part);
                lower.make_ascii_lowercase();
            } else {
                lower.extend(part.chars().flat_map(char::to_lowercase));
            }
            if tells_something(&lower) {
                on(&lower);
            }
        });
    }
}

/// Whether a lower-case word says nothing about a problem.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

fn tells_something(word: &str) -> bool {
    match word.as_bytes() {
        [only] => only.is_ascii_digit(),
        // the longest stop word has seven letters
        bytes if bytes.len() > 7 => true,
        _ => !is_stop_word(word),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Upper,
    Lower,
    Digit,
}

fn kind(c: char) -> Kind {
    if c.is_numeric() {
        Kind::Digit
    } else if c.is_uppercase() {
        Kind::Upper
    } else {
        Kind::Lower
    }
}

/// Cuts before an upper-case letter that follows a lower-case one, before the last upper-case letter of a run that a
/// lower-case one follows, and between letters and digits.
fn each_part<'t>(run: &'t str, mut on: impl FnMut(&'t str)) {
    let (mut start, mut before) = (0, None::<(usize, Kind)>);
    let mut before_that = None::<Kind>;
    for (at, c) in run.char_indices() {
        let here = kind(c);
        if let Some((last_at, last)) = before {
            let acronym_ended = before_that == Some(Kind::Upper)
                && last == Kind::Upper
                && here == Kind::Lower
                && last_at > start;
            let changes = last != here && !(last == Kind::Upper && here == Kind::Lower);
            let cut = if acronym_ended { Some(last_at) } else { changes.then_some(at) };
            if let Some(cut) = cut {
                on(&run[start..cut]);
                start = cut;
            }
        }
        before_that = before.map(|(_, kind)| kind);
        before = Some((at, here));
    }
    on(&run[start..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn splits_identifiers_and_paths() {
        for (text, expected) in [
            ("parseHTTPHeader2", "parse http header 2"),
            ("src/flat_map.rs:12", "src flat map rs 12"),
            ("The XMLParser is not a parser", "xml parser parser"),
            ("MAX_SIZE __init__ x y1", "max size init 1"),
            ("UTF8 v2.10", "utf 8 2 10"),
            ("Größe ÄrgerÜber", "größe ärger über"),
            ("", ""),
            ("HTTPServerX AbC ABCd", "http server ab ab cd"),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn never_fails_and_never_invents(text in any::<String>()) {
            let lower = text.to_lowercase();
            for word in words(&text) {
                prop_assert!(!word.is_empty());
                prop_assert!(lower.contains(&word) || !word.is_ascii());
            }
        }
    }
}
