//! p5.js: the list of mocha's failures, JSON and elements of the log removed. The reference searches the whole log again
//! for each element; here one pass does.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::super::found::Found;
use super::super::super::scan::Raised;
use super::super::super::status::Status;
use super::super::super::text::{is_digit, is_space, is_word, trim, trim_end};
use super::karma::without_escapes;

/// The whole log's failures: `a:b:c`.
pub(in super::super) fn failures(log: &str, found: &mut Found) -> Result<(), Raised> {
    let log = without_elements(&without_json(&without_escapes(log)));
    let mut cursor = Cursor::default();
    let mut at = 0;
    while let Some((start, end, next)) = failure(&log, at, &mut cursor) {
        if let Some(end) = end {
            let pieces: Vec<&str> = log[start..end].split('\n').collect();
            let indents = pieces.iter().map(|piece| piece.chars().take_while(|c| is_space(*c)).count());
            if std::iter::once(0).chain(indents).is_sorted_by(|a, b| a < b) {
                found.set(pieces.into_iter().map(trim).collect::<Vec<_>>().join(":"), Status::Failed);
            }
        }
        at = next;
    }
    Ok(())
}

/// Without lines that open and close brackets, and the lines between. Brackets do not nest.
fn without_json(log: &str) -> String {
    let (mut object, mut list) = (false, false);
    let mut kept = String::with_capacity(log.len());
    for line in log.split('\n') {
        let text = trim_end(line);
        if text.ends_with('{') {
            object = true;
        } else if text.ends_with('[') {
            list = true;
        } else if text == "}" && object {
            object = false;
        } else if text == "]" && list {
            list = false;
        } else if !(object
            || list
            || text.starts_with('{') && text.ends_with('}')
            || text.starts_with('[') && text.ends_with(']'))
        {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept.pop();
    kept
}

/// Removes elements (`<w>…</w>`, the same word) as if the leftmost were removed again and again, `<w>` written again for
/// each further `<w>` in it.
fn without_elements(log: &str) -> String {
    let mut closers = HashMap::new();
    for (at, _) in log.match_indices("</") {
        if let Some((word, _)) = tag(log, at + 2) {
            closers.insert(word, at);
        }
    }
    if closers.is_empty() {
        return log.to_owned();
    }
    let mut elements =
        Elements { log, at: 0, closers, kept: String::with_capacity(log.len()), ..Elements::default() };
    elements.run();
    elements.kept
}

/// The word that stands here before `>`, and where that ends.
fn tag(text: &str, at: usize) -> Option<(&str, usize)> {
    let rest = &text[at..];
    let length =
        rest.find(|c| !is_word(c)).filter(|length| *length > 0 && rest[*length..].starts_with('>'))?;
    Some((&rest[..length], at + length + 1))
}

/// The text is `kept` and what follows `at` in the log. `kept` holds no `<w>` that a later `</w>` closes.
#[derive(Default)]
struct Elements<'a> {
    log: &'a str,
    at: usize,
    /// The last `</w>` of each word.
    closers: HashMap<&'a str, usize>,
    kept: String,
    /// The tags that open in `kept`: where they begin and end, and what `tails` were before.
    open: Vec<(usize, usize, Vec<usize>)>,
    of_word: HashMap<String, Vec<usize>>,
    /// Where the pieces begin with which `kept` ends, each `<` or `</` and perhaps a word: begins of tags that the removal
    /// of what follows may complete.
    tails: Vec<usize>,
}

impl<'a> Elements<'a> {
    fn run(&mut self) {
        while let Some(found) = self.log[self.at..].find('<') {
            let opens = self.at + found;
            self.keep(&self.log[self.at..opens]);
            match tag(self.log, opens + 1) {
                Some((word, next)) => {
                    self.at = next;
                    self.opened(word, 1);
                }
                None => {
                    self.keep("<");
                    self.at = opens + 1;
                }
            }
        }
        self.keep(&self.log[self.at..]);
    }

    /// Appends text that holds no tag: `<`, or text without it.
    fn keep(&mut self, text: &str) {
        let end = self.kept.len();
        self.kept.push_str(text);
        if text == "<" {
            self.tails.push(end);
            return;
        }
        let slash = self.tails.last() == end.checked_sub(1).as_ref();
        let word = if slash { text.strip_prefix('/').unwrap_or(text) } else { text };
        if !word.chars().all(is_word) {
            self.tails.clear();
        }
    }

    /// This many `<word>` stand between `kept` and the rest.
    fn opened(&mut self, word: &str, mut count: usize) {
        let mut word = Cow::Borrowed(word);
        loop {
            while count > 0 && self.closers.get(&*word).is_some_and(|last| *last >= self.at) {
                let (opener, closer) = (format!("<{word}>"), format!("</{word}>"));
                let Some(length) = self.log[self.at..].find(&closer) else { break };
                count = count + self.log[self.at..self.at + length].matches(&opener).count() - 1;
                self.at += length + closer.len();
            }
            for _ in 0..count {
                self.open(&word);
            }
            match self.joined().filter(|_| count == 0) {
                Some((joined, copies)) => (word, count) = (Cow::Owned(joined), copies),
                None => return,
            }
        }
    }

    /// Appends `<word>`, which no `</word>` closes.
    fn open(&mut self, word: &str) {
        let at = self.kept.len();
        self.kept.extend(["<", word, ">"]);
        self.open.push((at, self.kept.len(), std::mem::take(&mut self.tails)));
        match self.of_word.get_mut(word) {
            Some(places) => places.push(at),
            None => {
                self.of_word.insert(word.to_owned(), vec![at]);
            }
        }
    }

    /// What was between `kept` and the rest is gone: they may form a tag together. The word and how many `<word>` then
    /// stand there.
    fn joined(&mut self) -> Option<(String, usize)> {
        let tail = self.tails.last().copied()?;
        let rest = &self.log[self.at..];
        let slash = usize::from(rest.starts_with('/') && self.kept.len() == tail + 1);
        let length = slash + rest[slash..].find(|c| !is_word(c))?;
        if !rest[length..].starts_with('>') {
            return None;
        }
        let text = format!("{}{}", &self.kept[tail + 1..], &rest[..length]);
        let joined = match text.strip_prefix('/') {
            None if text.is_empty() => return None,
            None => {
                self.tails.pop();
                self.kept.truncate(tail);
                (text, 1)
            }
            Some(word) => {
                let places = self.of_word.get(word).filter(|places| !places.is_empty())?;
                let (first, count) = (places[0], places.len() - 1);
                self.close(first);
                (word.to_owned(), count)
            }
        };
        self.at += length + 1;
        Some(joined)
    }

    /// Cuts `kept` here, with the tags that it holds behind.
    fn close(&mut self, at: usize) {
        while let Some((begin, end, tails)) = self.open.pop_if(|(place, ..)| *place >= at) {
            if let Some(places) = self.of_word.get_mut(&self.kept[begin + 1..end - 1]) {
                places.pop();
            }
            self.tails = tails;
        }
        self.kept.truncate(at);
    }
}

/// How many characters stand before two places that only move on.
#[derive(Default)]
struct Cursor {
    start: (usize, usize),
    colon: (usize, usize),
    next_colon: Option<usize>,
}

fn advance(place: &mut (usize, usize), log: &str, to: usize) -> usize {
    if to > place.0 {
        *place = (to, place.1 + log[place.0..to].chars().count());
    }
    place.1
}

/// The next numbered line: where its name begins, where it ends if a colon follows within 1000 characters, and where to
/// go on.
fn failure(log: &str, from: usize, cursor: &mut Cursor) -> Option<(usize, Option<usize>, usize)> {
    let mut line = if from == 0 { 0 } else { from + log[from..].find('\n')? + 1 };
    loop {
        let text = log[line..].trim_start_matches(is_space);
        let rest = text.trim_start_matches(is_digit);
        let start = log.len() - rest.len() + 1;
        if rest.len() < text.len() && rest.starts_with(')') {
            if cursor.next_colon.is_none_or(|colon| colon < start) {
                cursor.next_colon = Some(start + log[start..].find(':')?);
            }
            let colon = cursor.next_colon?;
            let within =
                advance(&mut cursor.colon, log, colon) - advance(&mut cursor.start, log, start) <= 1000;
            return Some(if within { (start, Some(colon), colon + 1) } else { (start, None, start) });
        }
        let blank = log.len() - text.len();
        line = blank + log[blank..].find('\n')? + 1;
    }
}
