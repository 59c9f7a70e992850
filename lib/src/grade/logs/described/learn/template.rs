//! What surrounds a name in a line, made general.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::file::Ended;
use super::Sightings;

/// How many different ends of a line make them free text.
const FREE: usize = 3;

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    /// As it is.
    Word(String),
    /// As it is.
    Mark(char),
    /// Twice or more the same.
    Run(char),
    /// One blank.
    Blank,
    /// Several blanks.
    Blanks,
    /// A number, and blanks before it.
    Number,
    /// A duration, and blanks before it.
    Duration,
    /// Anything.
    Rest,
}

const UNITS: [&str; 16] = [
    "ns",
    "us",
    "µs",
    "μs",
    "ms",
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "m",
    "min",
    "mins",
    "h",
    "msec",
    "milliseconds",
];

fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let run = |holds: fn(char) -> bool| chars[at..].iter().take_while(|c| holds(**c)).count();
        let c = chars[at];
        if c.is_whitespace() {
            let length = run(char::is_whitespace);
            tokens.push(if length == 1 && c == ' ' { Token::Blank } else { Token::Blanks });
            at += length;
        } else if c.is_ascii_digit() {
            at += run(|c| c.is_ascii_digit() || c == '.' || c == ',');
            if matches!(tokens.last(), Some(Token::Blank | Token::Blanks)) {
                tokens.pop();
            }
            let gap = usize::from(chars.get(at) == Some(&' '));
            let unit: String =
                chars[(at + gap).min(chars.len())..].iter().take_while(|c| c.is_alphabetic()).collect();
            if UNITS.contains(&unit.as_str()) {
                at += gap + unit.chars().count();
                tokens.push(Token::Duration);
            } else {
                tokens.push(Token::Number);
            }
        } else if c.is_alphabetic() {
            let length = run(char::is_alphabetic);
            tokens.push(Token::Word(chars[at..at + length].iter().collect()));
            at += length;
        } else {
            let length = chars[at..].iter().take_while(|next| **next == c).count();
            tokens.push(if length > 1 { Token::Run(c) } else { Token::Mark(c) });
            at += length;
        }
    }
    tokens
}

fn as_pattern(token: &Token) -> String {
    match token {
        Token::Word(word) => regex::escape(word),
        Token::Mark(mark) => regex::escape(mark.encode_utf8(&mut [0; 4])),
        Token::Run(mark) => format!("{}+", regex::escape(mark.encode_utf8(&mut [0; 4]))),
        Token::Blank => " ".to_owned(),
        Token::Blanks => r"\s+".to_owned(),
        Token::Number => r"\s*\d[\d.,]*".to_owned(),
        Token::Duration => r"\s*\d[\d.,]* ?\p{L}+".to_owned(),
        Token::Rest => ".*".to_owned(),
    }
}

/// What surrounds a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Template {
    before: Vec<Token>,
    after: Vec<Token>,
    /// Whether names hold blanks.
    blanks: bool,
    /// Whether the line is indented.
    indented: bool,
}

impl Template {
    pub(super) fn new(indented: bool, before: &str, after: &str) -> Self {
        Self { before: tokens(before), after: tokens(after), blanks: false, indented }
    }

    pub(super) fn with_blanks(self, blanks: bool) -> Self {
        Self { blanks, ..self }
    }

    fn all(&self) -> impl Iterator<Item = &Token> {
        self.before.iter().chain(&self.after)
    }

    /// How much of it is literal.
    pub(super) fn literals(&self) -> usize {
        self.all()
            .map(|token| match token {
                Token::Word(word) => word.len(),
                Token::Mark(_) | Token::Run(_) => 1,
                _ => 0,
            })
            .sum()
    }

    /// Whether a word or a mark tells this status.
    pub(super) fn tells(&self, status: Ended) -> bool {
        let (words, marks): (&[&str], &[char]) = match status {
            Ended::Passed => (&["pass", "ok", "success", "succe"], &['✓', '✔', '√', '✅', '•', '+']),
            Ended::Failed => (&["fail", "not", "ko"], &['✗', '✘', '✕', '✖', '×', '❌', ')', '⨯', '-']),
            Ended::Error => (&["error", "err", "exception", "abort", "crash"], &['✗', '✘', '✖', '❌']),
            Ended::Skipped => {
                (&["skip", "ignor", "pend", "disab", "todo", "not"], &['○', '↓', '-', '⚠', '∅'])
            }
            Ended::Xfail => (&["xfail", "expected", "todo"], &[]),
            Ended::Xpass => (&["xpass", "unexpected"], &[]),
        };
        self.all().any(|token| match token {
            Token::Word(word) => {
                let word = word.to_lowercase();
                words.iter().any(|known| word.starts_with(known))
            }
            Token::Mark(mark) | Token::Run(mark) => marks.contains(mark),
            _ => false,
        })
    }

    /// Where two templates differ in one word only: its place, and both words.
    pub(super) fn differs_in<'a>(&'a self, other: &'a Self) -> Option<(usize, &'a str, &'a str)> {
        if (self.before.len(), self.after.len(), self.blanks, self.indented)
            != (other.before.len(), other.after.len(), other.blanks, other.indented)
        {
            return None;
        }
        let mut differing = self.all().zip(other.all()).enumerate().filter(|(_, (a, b))| a != b);
        let (at, (Token::Word(own), Token::Word(theirs))) = differing.next()? else { return None };
        differing.next().is_none().then_some((at, own.as_str(), theirs.as_str()))
    }

    /// The regular expression; `status` puts a group with these alternatives in the place of a word.
    pub(super) fn pattern(&self, status: Option<&(usize, String)>, by_indent: bool) -> String {
        let mut pattern = match (by_indent, self.indented) {
            (true, _) => r"^(?<indent>\s*)".to_owned(),
            (false, true) => r"^\s*".to_owned(),
            (false, false) => "^".to_owned(),
        };
        for (at, token) in self.all().enumerate() {
            if at == self.before.len() {
                pattern.push_str(self.name());
            }
            match status.filter(|(place, _)| *place == at) {
                Some((_, words)) => {
                    let _ = write!(pattern, "(?<status>{words})");
                }
                None => pattern.push_str(&as_pattern(token)),
            }
        }
        if self.after.is_empty() {
            pattern.push_str(self.name());
        }
        pattern.push_str(r"\s*$");
        pattern
    }

    fn name(&self) -> &'static str {
        if self.blanks { r"(?<name>\S.*?)" } else { r"(?<name>\S+?)" }
    }
}

/// What stands before and after a name.
type Around = (Vec<Token>, Vec<Token>);

/// Puts templates together that are one: names with and without blanks, lines with and without indentation, lines
/// that end in free text.
pub(super) fn generalise(seen: BTreeMap<Template, Sightings>) -> BTreeMap<Template, Sightings> {
    let mut alike: BTreeMap<Around, (bool, bool, Sightings)> = BTreeMap::new();
    for (template, sightings) in seen {
        let one = alike.entry((template.before, template.after)).or_default();
        (one.0, one.1) = (one.0 | template.blanks, one.1 | template.indented);
        one.2.join(sightings);
    }
    let mut ends: BTreeMap<Around, usize> = BTreeMap::new();
    let open = |before: &Vec<Token>, after: &[Token]| {
        let word =
            after.iter().position(|token| matches!(token, Token::Word(_) | Token::Number | Token::Duration));
        let head = &after[..word?];
        (!head.is_empty()).then(|| (before.clone(), head.to_vec()))
    };
    for (before, after) in alike.keys() {
        if let Some(key) = open(before, after) {
            *ends.entry(key).or_default() += 1;
        }
    }
    let mut all: BTreeMap<Template, Sightings> = BTreeMap::new();
    for ((before, after), (blanks, indented, sightings)) in alike {
        let free = open(&before, &after).filter(|key| ends.get(key).is_some_and(|count| *count > FREE));
        let after = match free {
            Some((_, mut head)) => {
                head.push(Token::Rest);
                head
            }
            None => after,
        };
        let mut template = Template { before, after, blanks, indented };
        let same = all
            .keys()
            .find(|other| other.before == template.before && other.after == template.after)
            .cloned();
        let mut joined = Sightings::default();
        if let Some(other) = same {
            template =
                Template { blanks: blanks | other.blanks, indented: indented | other.indented, ..template };
            joined = all.remove(&other).unwrap_or_default();
        }
        joined.join(sightings);
        all.insert(template, joined);
    }
    all
}
