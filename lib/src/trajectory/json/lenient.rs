//! A filter between a file and the JSON parser.
//!
//! Python writes lone surrogates (`\ud800`) and the Rust parser refuses them: they become U+FFFD and are counted. A
//! text longer than a limit is cut in the middle *before* the parser sees it, so that a file whose single text takes
//! 90 MB costs no more memory than the limit.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::Serialize;

const REPLACEMENT: &[u8] = br"\ufffd";
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How much of one text is kept, in Unicode code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextCap {
    /// Code points kept at the beginning.
    pub head: usize,
    /// Code points kept at the end.
    pub tail: usize,
}

impl TextCap {
    /// Keeps `chars` code points in all, half at each end.
    pub fn total(chars: usize) -> Self {
        Self { head: chars - chars / 2, tail: chars / 2 }
    }

    /// Whether this text is what a cut under this cap leaves.
    pub fn has_cut(self, text: &str) -> bool {
        let Some((start, _)) = text.char_indices().nth(self.head) else { return false };
        let after_mark = text[start..]
            .strip_prefix("\n[")
            .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        let tail = after_mark.and_then(|rest| rest.strip_prefix(" characters cut]\n"));
        tail.is_some_and(|tail| tail.chars().count() == self.tail)
    }
}

/// Whether the filter would hand this JSON text on as it is: no byte order mark, no lone surrogate, and no text that
/// could be longer than the cap. A look at quotes and backslashes alone, several times quicker than the filter.
pub fn passes(bytes: &[u8], cap: TextCap) -> bool {
    let longest = cap.head.saturating_add(cap.tail);
    let mut opened = None;
    let mut at = 0;
    while let Some(rest) = bytes.get(at..) {
        let Some(found) = memchr::memchr2(b'"', b'\\', rest) else { break };
        let place = at + found;
        at = place + 1;
        if bytes[place] == b'\\' {
            // outside a text it is an error, which the parser names
            let Some(length) = escape_length(&bytes[place..]).filter(|_| opened.is_some()) else {
                return false;
            };
            at = place + length;
            continue;
        }
        opened = match opened {
            None => Some(at),
            Some(start) if place - start > longest => return false,
            Some(_) => None,
        };
    }
    opened.is_none() && !bytes.starts_with(BOM)
}

/// Bytes of the escape that `bytes` begins with, both halves of a surrogate pair counted; `None`: a lone surrogate.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    let half = |bytes: &[u8], kinds: &[u8]| match bytes {
        [b'\\', b'u', b'd' | b'D', kind, _, _, ..] => kinds.contains(&kind.to_ascii_lowercase()),
        _ => false,
    };
    if half(bytes, b"89ab") {
        return half(&bytes[6..], b"cdef").then_some(12);
    }
    (!half(bytes, b"cdef")).then_some(2)
}

/// What the filter changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Lone surrogate escapes that became U+FFFD.
    pub repaired: u64,
    /// Texts that were cut.
    pub cut_texts: u64,
    /// Code points that the cuts left out.
    pub cut_chars: u64,
    /// Bytes read from the file.
    pub bytes: u64,
}

/// One code point as the file spells it: raw UTF-8 (1 to 4 bytes) or an escape (2, 6 or, for a pair, 12 bytes).
#[derive(Debug, Clone, Copy)]
struct Unit {
    bytes: [u8; 12],
    len: u8,
}

impl Unit {
    fn new(bytes: &[u8]) -> Self {
        let mut unit = Self { bytes: [0; 12], len: bytes.len().min(12) as u8 };
        unit.bytes[..usize::from(unit.len)].copy_from_slice(&bytes[..usize::from(unit.len)]);
        unit
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Outside,
    Text,
    /// A backslash was read; `high` says that a high surrogate waits before it.
    Escape {
        high: bool,
    },
    /// Inside the four digits after `\u`.
    Hex {
        high: bool,
    },
    /// A high surrogate waits for its partner.
    High,
}

/// The filter. Read the parser's input from it.
#[derive(Debug)]
pub struct Lenient<R> {
    inner: R,
    cap: Option<TextCap>,
    state: State,
    /// The escapes read so far that are not decided yet: up to two `\uXXXX`.
    pending: Vec<u8>,
    /// Code points of the current text.
    units: usize,
    /// The last `cap.tail` code points of the current text beyond the head.
    tail: VecDeque<Unit>,
    out: Vec<u8>,
    read: usize,
    counts: Rc<Cell<Counts>>,
}

impl<R: BufRead> Lenient<R> {
    /// Filters `inner`; without a cap no text is cut. A byte order mark at the start is skipped.
    pub fn new(inner: R, cap: Option<TextCap>) -> Self {
        Self {
            inner,
            cap,
            state: State::Start,
            pending: Vec::new(),
            units: 0,
            tail: VecDeque::new(),
            out: Vec::new(),
            read: 0,
            counts: Rc::default(),
        }
    }

    /// A view of the counts that stays valid while a parser holds the filter.
    pub fn counts(&self) -> Rc<Cell<Counts>> {
        Rc::clone(&self.counts)
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Filters the next piece of the input into `out`; false at its end.
    fn fill(&mut self) -> io::Result<bool> {
        self.out.clear();
        self.read = 0;
        while self.out.is_empty() {
            let mut chunk = std::mem::take(&mut self.out);
            let piece = self.inner.fill_buf()?;
            let length = piece.len();
            chunk.extend_from_slice(piece);
            self.inner.consume(length);
            self.count(|c| c.bytes += length as u64);
            if length == 0 {
                let rest = std::mem::take(&mut self.pending);
                self.out.extend_from_slice(&rest);
                return Ok(!self.out.is_empty());
            }
            let body = match self.state {
                State::Start => {
                    self.state = State::Outside;
                    chunk.strip_prefix(BOM).unwrap_or(&chunk)
                }
                _ => &chunk,
            };
            self.filter(body);
        }
        Ok(true)
    }

    fn filter(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                State::Start | State::Outside => {
                    let run = rest.iter().position(|b| *b == b'"').map_or(rest.len(), |quote| quote + 1);
                    self.out.extend_from_slice(&rest[..run]);
                    if rest[run - 1] == b'"' {
                        (self.state, self.units) = (State::Text, 0);
                    }
                    at += run;
                }
                State::Text => {
                    let run = rest.iter().position(|b| matches!(b, b'"' | b'\\')).unwrap_or(rest.len());
                    self.plain(&rest[..run]);
                    at += run;
                    match rest.get(run) {
                        Some(b'"') => {
                            self.close();
                            at += 1;
                        }
                        Some(_) => {
                            self.pending.push(b'\\');
                            self.state = State::Escape { high: false };
                            at += 1;
                        }
                        None => {}
                    }
                }
                _ => at += usize::from(self.escape(rest[0])),
            }
        }
    }

    /// Takes one byte of an escape; false when the byte has to be looked at again in the new state.
    fn escape(&mut self, byte: u8) -> bool {
        match self.state {
            State::High if byte == b'\\' => {
                self.pending.push(byte);
                self.state = State::Escape { high: true };
                true
            }
            State::High => {
                self.replace_high();
                self.state = State::Text;
                false
            }
            State::Escape { high } if byte == b'u' => {
                self.pending.push(byte);
                self.state = State::Hex { high };
                true
            }
            State::Escape { high } => {
                if high {
                    self.replace_high();
                }
                self.pending.push(byte);
                self.flush_unit();
                true
            }
            State::Hex { high } if byte.is_ascii_hexdigit() => {
                self.pending.push(byte);
                let digits = self.pending.len() - if high { 8 } else { 2 };
                if digits == 4 {
                    self.decide(high);
                }
                true
            }
            // Not hexadecimal: pass what came, the parser names the error.
            _ => {
                self.flush_unit();
                false
            }
        }
    }

    /// Decides about a complete `\uXXXX`, with a high surrogate before it or not.
    fn decide(&mut self, high: bool) {
        let last = self.pending.len() - 4;
        let digits = std::str::from_utf8(&self.pending[last..]).unwrap_or_default();
        let value = u32::from_str_radix(digits, 16).unwrap_or_default();
        let low = (0xDC00..0xE000).contains(&value);
        if high && !low {
            self.replace_high();
        }
        if (0xD800..0xDC00).contains(&value) {
            self.state = State::High;
        } else if low && !high {
            self.pending.clear();
            self.count(|c| c.repaired += 1);
            self.unit(Unit::new(REPLACEMENT));
            self.state = State::Text;
        } else {
            self.flush_unit();
        }
    }

    /// Replaces the high surrogate at the front of `pending`, which found no partner.
    fn replace_high(&mut self) {
        self.pending.drain(..6);
        self.count(|c| c.repaired += 1);
        self.unit(Unit::new(REPLACEMENT));
    }

    fn flush_unit(&mut self) {
        let unit = Unit::new(&self.pending);
        self.pending.clear();
        self.unit(unit);
        self.state = State::Text;
    }

    /// Takes bytes of a text that hold no escape and no quote.
    fn plain(&mut self, bytes: &[u8]) {
        let Some(cap) = self.cap else {
            self.out.extend_from_slice(bytes);
            return;
        };
        // In one piece what is ASCII and surely kept.
        let room = cap.head.saturating_sub(self.units).min(bytes.len());
        let ascii = bytes[..room].iter().position(|byte| !byte.is_ascii()).unwrap_or(room);
        self.out.extend_from_slice(&bytes[..ascii]);
        self.units += ascii;
        for byte in &bytes[ascii..] {
            if byte & 0xC0 == 0x80 && self.extend_last(*byte) {
                continue;
            }
            self.unit(Unit::new(&[*byte]));
        }
    }

    /// Adds a UTF-8 continuation byte to the code point before it.
    fn extend_last(&mut self, byte: u8) -> bool {
        match self.tail.back_mut() {
            Some(unit) if usize::from(unit.len) < unit.bytes.len() => {
                unit.bytes[usize::from(unit.len)] = byte;
                unit.len += 1;
                true
            }
            Some(_) => false,
            None => {
                // With an empty tail the last unit went straight to the output, unless nothing is kept at the end.
                if self.cap.is_none_or(|cap| self.units <= cap.head) {
                    self.out.push(byte);
                }
                true
            }
        }
    }

    fn unit(&mut self, unit: Unit) {
        self.units += 1;
        match self.cap {
            Some(cap) if self.units > cap.head => {
                self.tail.push_back(unit);
                if self.tail.len() > cap.tail {
                    self.tail.pop_front();
                }
            }
            _ => self.out.extend_from_slice(unit.as_slice()),
        }
    }

    /// The text ends: the mark of a cut, the tail and the closing quote.
    fn close(&mut self) {
        if let Some(cap) = self.cap {
            let left_out = self.units.saturating_sub(cap.head + cap.tail);
            if left_out > 0 {
                self.out.extend_from_slice(format!("\\n[{left_out} characters cut]\\n").as_bytes());
                self.count(|c| {
                    c.cut_texts += 1;
                    c.cut_chars += left_out as u64;
                });
            }
        }
        for unit in self.tail.drain(..) {
            self.out.extend_from_slice(unit.as_slice());
        }
        self.out.push(b'"');
        self.state = State::Outside;
    }
}

impl<R: BufRead> Read for Lenient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.out.len() && !self.fill()? {
            return Ok(0);
        }
        let count = buffer.len().min(self.out.len() - self.read);
        buffer[..count].copy_from_slice(&self.out[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn pass(text: &str, cap: Option<TextCap>, chunk: usize) -> (String, Counts) {
        let mut filter = Lenient::new(BufReader::with_capacity(chunk, text.as_bytes()), cap);
        let mut out = String::new();
        filter.read_to_string(&mut out).unwrap();
        (out, filter.counts.get())
    }

    #[test]
    fn lone_surrogates_become_the_replacement_character() {
        for (text, expected, repaired) in [
            (r#"["\ud83d\ude2c"]"#, r#"["\ud83d\ude2c"]"#, 0),
            (r#"["\ud800"]"#, r#"["\ufffd"]"#, 1),
            (r#"["\udc00x"]"#, r#"["\ufffdx"]"#, 1),
            (r#"["\ud800\ud83d\ude2c"]"#, r#"["\ufffd\ud83d\ude2c"]"#, 1),
            (r#"["\ud800\n\u0041"]"#, r#"["\ufffd\n\u0041"]"#, 1),
            (r#"["\ud800\u0041"]"#, r#"["\ufffd\u0041"]"#, 1),
            (r#"["\\ud800"]"#, r#"["\\ud800"]"#, 0),
            (r#"{"a\"": "\ud800\ud800"}"#, r#"{"a\"": "\ufffd\ufffd"}"#, 2),
        ] {
            for chunk in [1, 3, 64] {
                let (out, counts) = pass(text, None, chunk);
                assert_eq!(
                    (out.as_str(), counts.repaired),
                    (expected, repaired),
                    "{text} in pieces of {chunk}"
                );
                let wide = pass(text, Some(TextCap { head: 2, tail: 90 }), chunk).0;
                assert_eq!(wide, expected, "{text} under a cap that is never reached");
            }
        }
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let (out, counts) = pass(r#"{"k": "abcdé\n\ud83d\ude2cyz"}"#, Some(TextCap { head: 2, tail: 3 }), 2);
        assert_eq!(out, r#"{"k": "ab\n[4 characters cut]\n\ud83d\ude2cyz"}"#);
        assert_eq!((counts.cut_texts, counts.cut_chars), (1, 4));
        assert_eq!(
            pass(r#"["é€é"]"#, Some(TextCap { head: 1, tail: 0 }), 1).0,
            r#"["é\n[2 characters cut]\n"]"#
        );
    }

    #[test]
    fn what_passes_is_told_without_filtering() {
        let cap = TextCap::total(6);
        for (text, expected) in [
            (r#"{"k": ["\ud83d\ude2c", "\\ud83d", "\u00d8"]}"#, false),
            (r#"["\ud83d"]"#, false),
            (r#"["\uDE2C"]"#, false),
            (r#"["\\ud8a"]"#, true),
            (r#"["\u0041"]"#, true),
            (r#"["abcdef", "\"\n\\"]"#, true),
            (r#"["abcdefg"]"#, false),
            ("\u{feff}[]", false),
            (r#"["\"#, false),
        ] {
            assert_eq!(passes(text.as_bytes(), cap), expected, "{text}");
        }
        assert!(passes(br#"["\ud83d\ude2c"]"#, TextCap::total(12)));
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(pass("\u{feff}{}", None, 64).0, "{}");
    }

    proptest! {
        #[test]
        fn what_passes_is_left_as_it_is(text in r#"["\\\\ud8Dc0-9a-c\PC]{0,40}"#, room in 0usize..20) {
            let cap = TextCap::total(room);
            if passes(text.as_bytes(), cap) {
                let (out, counts) = pass(&text, Some(cap), 7);
                prop_assert_eq!((counts.repaired, counts.cut_texts), (0, 0));
                prop_assert_eq!(out, text);
            }
        }

        #[test]
        fn well_formed_json_passes_untouched(text in "\\PC{0,40}", chunk in 1usize..9, head in 0usize..99) {
            let json = serde_json::to_string(&Value::String(text)).unwrap();
            prop_assert_eq!(&pass(&json, None, chunk).0, &json);
            prop_assert_eq!(&pass(&json, Some(TextCap { head, tail: 99 }), chunk).0, &json);
        }

        #[test]
        fn a_capped_text_has_the_right_ends(text in "\\PC{0,60}", head in 0usize..9, tail in 0usize..9) {
            let json = serde_json::to_string(&text).unwrap();
            let cap = TextCap { head, tail };
            let (out, counts) = pass(&json, Some(cap), 5);
            let cut: String = serde_json::from_str(&out).unwrap();
            let chars: Vec<char> = text.chars().collect();
            if chars.len() > head + tail {
                let left_out = chars.len() - head - tail;
                let expected: String = chars[..head].iter().collect::<String>()
                    + &format!("\n[{left_out} characters cut]\n")
                    + &chars[chars.len() - tail..].iter().collect::<String>();
                prop_assert!(cap.has_cut(&cut));
                prop_assert_eq!(cut, expected);
                prop_assert_eq!(counts.cut_chars, left_out as u64);
            } else {
                prop_assert!(!cap.has_cut(&cut));
                prop_assert_eq!(cut, text);
            }
        }
    }
}
