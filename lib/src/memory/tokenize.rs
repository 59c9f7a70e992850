//! Words of issues and code: identifiers are split where people split them.

/// English words that say nothing about a problem, and words that stand in every issue.
const STOP_WORDS: [&str; 63] = [
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "how", "i", "if", "in", "instead", "into", "is", "it", "its",
    "just", "me", "my", "no", "not", "of", "on", "or", "our", "should", "so", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "to", "was", "we", "were", "what", "when", "which",
    "while", "will", "with", "would", "you", "your",
];

/// Splits text and code into lower-case words: `parseHTTPHeader2` gives `parse`, `http`, `header`, `2`;
/// `src/flat_map.rs` gives `src`, `flat`, `map`, `rs`. English stop words and single letters are left out, numbers are
/// kept.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .flat_map(split_identifier)
        .map(str::to_lowercase)
        .filter(|word| tells_something(word))
        .collect()
}

/// Whether a lower-case word says nothing about a problem.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

fn tells_something(word: &str) -> bool {
    let single_letter = word.len() == 1 && !word.as_bytes()[0].is_ascii_digit();
    !single_letter && !is_stop_word(word)
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
fn split_identifier(word: &str) -> Vec<&str> {
    let chars: Vec<(usize, Kind)> = word.char_indices().map(|(at, c)| (at, kind(c))).collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for i in 1..chars.len() {
        let (at, here) = chars[i];
        let before = chars[i - 1].1;
        let next = chars.get(i + 1).map(|&(_, kind)| kind);
        let ends_acronym = before == Kind::Upper && here == Kind::Upper && next == Some(Kind::Lower);
        let changes = before != here && !(before == Kind::Upper && here == Kind::Lower);
        if ends_acronym || changes {
            parts.push(&word[start..at]);
            start = at;
        }
    }
    if start < word.len() {
        parts.push(&word[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
