//! Finds known names in lines.

use std::collections::BTreeSet;
use std::ops::Bound;

pub(super) struct Names<'a>(BTreeSet<&'a str>);

impl<'a> Names<'a> {
    pub(super) fn new(names: impl Iterator<Item = &'a String>) -> Self {
        Self(names.map(String::as_str).filter(|name| !name.trim().is_empty()).collect())
    }

    /// The longest known name that this text begins with and that no word goes on after.
    fn at_start(&self, text: &str) -> Option<&'a str> {
        let mut head = text;
        loop {
            let before = *self.0.range::<str, _>((Bound::Unbounded, Bound::Included(head))).next_back()?;
            let common = before.bytes().zip(head.bytes()).take_while(|(a, b)| a == b).count();
            if common == before.len() {
                if ends_word(before, &text[common..]) {
                    return Some(before);
                }
                // a shorter one may fit
                head = &head[..floor(head, common.saturating_sub(1))];
            } else {
                head = &head[..floor(head, common)];
            }
            if head.is_empty() {
                return None;
            }
        }
    }

    /// The longest known name in a line, where what stands above the line is the begin of the name: where its part in
    /// the line starts, and the name.
    pub(super) fn in_line(&self, above: &str, line: &str) -> Option<(usize, &'a str)> {
        let mut best: Option<(usize, &'a str)> = None;
        let mut before = ' ';
        let mut text = String::with_capacity(above.len() + line.len());
        for (at, c) in line.char_indices() {
            let starts = !c.is_whitespace() && (!word(before) || !word(c));
            before = c;
            if !starts {
                continue;
            }
            text.clear();
            text.push_str(above);
            text.push_str(&line[at..]);
            if let Some(name) = self.at_start(&text)
                && name.len() > above.len()
                && best.is_none_or(|(_, longest)| name.len() > longest.len())
            {
                best = Some((at, name));
            }
        }
        best
    }
}

fn word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn ends_word(name: &str, rest: &str) -> bool {
    !(name.ends_with(word) && rest.starts_with(word))
}

/// The last character boundary at or before this place.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
