//! Lines of code in a text, whatever their blanks, their wrapping and the names of their variables.

use std::collections::{BTreeMap, BTreeSet};

use super::super::diff::identifiers;

/// The fewest characters, without blanks, of a line that says something.
const SHORT: usize = 12;

/// The fewest letters and digits of such a line.
const FEW_LETTERS: usize = 8;

/// The fewest characters of a comment that says something.
const SHORT_COMMENT: usize = 30;

/// From this many characters on a line may stand in the middle of a longer one.
const LONG: usize = 24;

/// The fewest pieces of a line that is known again under other names.
const MANY_TOKENS: usize = 8;

/// Words that every program holds.
const KEYWORDS: [&str; 32] = [
    "and", "as", "async", "await", "break", "class", "const", "def", "elif", "else", "except", "false", "fn",
    "for", "from", "func", "function", "if", "import", "in", "is", "let", "none", "not", "null", "or",
    "pass", "raise", "return", "self", "true", "var",
];

/// How a line was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// As it is, but for blanks.
    Same,
    /// With some of its names changed.
    Renamed,
}

impl Match {
    pub(super) fn weight(self) -> f64 {
        match self {
            Self::Same => 1.0,
            Self::Renamed => 0.75,
        }
    }
}

/// A text that lines are looked for in: a block with its quoting and diff signs taken off.
pub(super) struct Haystack {
    /// The text without quoting, line by line.
    pub(super) text: String,
    words: BTreeSet<String>,
    lines: BTreeSet<String>,
    /// All lines without blanks, one behind the other.
    whole: String,
    /// Lines by their shape: names stand for each other.
    shapes: BTreeMap<String, Vec<Vec<String>>>,
}

impl Haystack {
    pub(super) fn new(text: &str) -> Self {
        let bare: Vec<&str> = text.lines().map(unquoted).collect();
        let mut found = Self {
            text: bare.join("\n"),
            words: bare.iter().flat_map(|line| identifiers(line)).map(str::to_owned).collect(),
            lines: BTreeSet::new(),
            whole: String::new(),
            shapes: BTreeMap::new(),
        };
        let mut pieces = Vec::new();
        for line in bare {
            let code = line.strip_prefix(['+', '-']).unwrap_or(line);
            let tokens = tokens(code);
            found.lines.insert(join(&tokens));
            // a line of prose that begins with a dash is also itself
            found.lines.insert(compact(line));
            if tokens.len() >= MANY_TOKENS {
                let names = tokens.iter().filter(|token| is_name(token)).map(|name| (*name).to_owned());
                found.shapes.entry(shape(&tokens)).or_default().push(names.collect());
            }
            pieces.extend(tokens);
        }
        found.whole = join(&pieces);
        found
    }

    /// Whether a name stands in it as a whole word.
    pub(super) fn has_word(&self, name: &str) -> bool {
        self.words.contains(name)
    }

    /// How it holds a line of code.
    pub(super) fn holds(&self, line: &str) -> Option<Match> {
        let tokens = tokens(line);
        let compact = join(&tokens);
        if compact.is_empty() {
            return None;
        }
        if self.lines.contains(&compact) || (compact.chars().count() >= LONG && self.has_piece(&compact)) {
            return Some(Match::Same);
        }
        if tokens.len() < MANY_TOKENS {
            return None;
        }
        let names: Vec<&str> = tokens.iter().copied().filter(|token| is_name(token)).collect();
        let alike = |other: &Vec<String>| {
            let same = names.iter().zip(other).filter(|(a, b)| **a == b.as_str()).count();
            names.len() >= 3 && same * 2 >= names.len()
        };
        self.shapes.get(&shape(&tokens))?.iter().any(alike).then_some(Match::Renamed)
    }

    /// Whether the whole text holds a piece of code that begins and ends where words do.
    fn has_piece(&self, piece: &str) -> bool {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        self.whole.match_indices(piece).any(|(at, found)| {
            let (before, behind) = (&self.whole[..at], &self.whole[at + found.len()..]);
            let open = word(before.chars().next_back()) && word(found.chars().next());
            let cut = word(found.chars().next_back()) && word(behind.chars().next());
            !open && !cut
        })
    }
}

/// A line of a block without the quoting of records.
fn unquoted(line: &str) -> &str {
    line.strip_prefix("> ").or_else(|| line.strip_prefix('>')).unwrap_or(line)
}

/// Words and single other characters, without blanks.
fn tokens(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in line.char_indices() {
        if c.is_alphanumeric() || c == '_' {
            start.get_or_insert(at);
            continue;
        }
        if let Some(start) = start.take() {
            found.push(&line[start..at]);
        }
        if !c.is_whitespace() {
            found.push(&line[at..at + c.len_utf8()]);
        }
    }
    found.extend(start.map(|start| &line[start..]));
    found
}

/// Tokens in one piece; two words keep a blank between them.
fn join(tokens: &[&str]) -> String {
    let word = |token: &str| token.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut joined = String::new();
    let mut after_word = false;
    for token in tokens {
        if after_word && word(token) {
            joined.push(' ');
        }
        joined.push_str(token);
        after_word = word(token);
    }
    joined
}

/// A line without the blanks that mean nothing.
pub(super) fn compact(line: &str) -> String {
    join(&tokens(line))
}

fn is_name(token: &str) -> bool {
    let named = token.starts_with(|c: char| c.is_alphabetic() || c == '_');
    named && KEYWORDS.binary_search(&token.to_lowercase().as_str()).is_err()
}

/// A line whose names are all alike.
fn shape(tokens: &[&str]) -> String {
    join(&tokens.iter().map(|token| if is_name(token) { "n" } else { token }).collect::<Vec<_>>())
}

/// Whether a line says something: no import, no brace, no short comment.
pub(super) fn is_telling(line: &str) -> bool {
    let line = line.trim();
    let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    if starts(&["#include", "import ", "from ", "use ", "using ", "package ", "require("]) {
        return false;
    }
    let compact = compact(line);
    let least = if starts(&["#", "//", "/*", "*", "--", "\"\"\"", "'''"]) { SHORT_COMMENT } else { SHORT };
    let letters = compact.chars().filter(|c| c.is_alphanumeric()).count();
    compact.chars().count() >= least && letters >= FEW_LETTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn tells_lines_from_filling() {
        for line in [
            "",
            "}",
            "    pass",
            "import os.path",
            "from a.b import cd_ef",
            "# fix it now",
            "return None",
            "x = 1",
        ] {
            assert!(!is_telling(line), "{line:?}");
        }
        for line in
            ["return self.value", "# a comment that is long enough to be known again", "raise ValueError(x)"]
        {
            assert!(is_telling(line), "{line:?}");
        }
    }

    #[test]
    fn finds_lines_whatever_their_blanks() {
        let block = Haystack::new(
            "> +  value=compute( a,b )\n>     total = first_operand +\n>         second_operand\n",
        );
        assert_eq!(block.holds("\tvalue = compute(a, b)"), Some(Match::Same));
        assert_eq!(block.holds("total = first_operand + second_operand"), Some(Match::Same));
        assert_eq!(block.holds("value = compute(a"), None, "a short piece of a line");
        assert_eq!(block.holds("total = first_operand + second_oper"), None, "a piece of a word");
        assert_eq!(block.holds(""), None);
    }

    #[test]
    fn finds_lines_under_other_names() {
        let block = Haystack::new("+ result = encoder.encode(item, strict=True)");
        assert_eq!(block.holds("value = encoder.encode(item, strict=True)"), Some(Match::Renamed));
        assert_eq!(block.holds("value = writer.write(line, append=True)"), None);
    }
}
