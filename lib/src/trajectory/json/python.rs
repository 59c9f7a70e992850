//! JSON spelled as Python's `json.dumps` spells it, so that a file read and written again is the same file.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};

/// How a JSON file is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spelling {
    /// Blanks for each level, one item a line; `None`: everything on one line, `, ` and `: ` between.
    pub indent: Option<usize>,
    /// Whether everything beyond ASCII is written as `\uXXXX`.
    pub ascii: bool,
    /// Whether the file ends with a newline.
    pub newline: bool,
}

impl Spelling {
    /// mini-swe-agent's: `json.dumps(x, indent=2)`.
    pub const MINI: Self = Self { indent: Some(2), ascii: true, newline: false };

    /// Recognises how a JSON object or array is spelled from its bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let after_bracket = bytes.iter().skip_while(|b| !matches!(b, b'{' | b'[')).skip(1);
        let mut lead = after_bracket.take_while(|b| b.is_ascii_whitespace());
        let indent = match lead.next() {
            Some(b'\n') => Some(lead.filter(|b| **b == b' ').count()),
            _ => None,
        };
        Self { indent, ascii: bytes.is_ascii(), newline: bytes.ends_with(b"\n") }
    }
}

/// The value in the given spelling.
///
/// # Errors
/// When a map of the value has keys that are not texts.
pub fn to_bytes<T: Serialize>(value: &T, spelling: Spelling) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::new();
    let python = Python { spelling, level: 0, has_value: false };
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, python))?;
    if spelling.newline {
        out.push(b'\n');
    }
    Ok(out)
}

struct Python {
    spelling: Spelling,
    level: usize,
    has_value: bool,
}

impl Python {
    fn line<W: Write + ?Sized>(&self, out: &mut W) -> io::Result<()> {
        let Some(indent) = self.spelling.indent else { return Ok(()) };
        out.write_all(b"\n")?;
        (0..indent * self.level).try_for_each(|_| out.write_all(b" "))
    }

    fn begin<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.has_value = false;
        out.write_all(bracket)
    }

    fn end<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level -= 1;
        if self.has_value {
            self.line(out)?;
        }
        self.has_value = true;
        out.write_all(bracket)
    }

    fn item<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.has_value = true;
        match (first, self.spelling.indent) {
            (true, _) => {}
            (false, Some(_)) => out.write_all(b",")?,
            (false, None) => out.write_all(b", ")?,
        }
        self.line(out)
    }
}

impl Formatter for Python {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _out: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _out: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn write_f64<W: Write + ?Sized>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(float(value).as_bytes())
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        if !self.spelling.ascii {
            return out.write_all(text.as_bytes());
        }
        let mut plain = 0;
        for (at, char) in text.char_indices() {
            if char.is_ascii() && char != '\u{7f}' {
                continue;
            }
            out.write_all(&text.as_bytes()[plain..at])?;
            for unit in char.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            plain = at + char.len_utf8();
        }
        out.write_all(&text.as_bytes()[plain..])
    }

    fn write_char_escape<W: Write + ?Sized>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::Quote => out.write_all(b"\\\""),
            CharEscape::ReverseSolidus => out.write_all(b"\\\\"),
            CharEscape::Solidus => out.write_all(b"/"),
            CharEscape::Backspace => out.write_all(b"\\b"),
            CharEscape::FormFeed => out.write_all(b"\\f"),
            CharEscape::LineFeed => out.write_all(b"\\n"),
            CharEscape::CarriageReturn => out.write_all(b"\\r"),
            CharEscape::Tab => out.write_all(b"\\t"),
            CharEscape::AsciiControl(byte) => write!(out, "\\u{byte:04x}"),
        }
    }
}

/// A float as Python's `repr`: the shortest digits that read back the same; scientific below 1e-4 and from 1e16.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn spell(value: &Value, indent: Option<usize>) -> String {
        let spelling = Spelling { indent, ascii: true, newline: false };
        String::from_utf8(to_bytes(value, spelling).unwrap()).unwrap()
    }

    #[test]
    fn spells_texts_and_containers_like_python() {
        let value = json!({"é": "\u{1F600}\u{7f}\u{1}\n\"\\/", "empty": [{}, []], "n": [1, null, true]});
        assert_eq!(
            spell(&value, None),
            r#"{"\u00e9": "\ud83d\ude00\u007f\u0001\n\"\\/", "empty": [{}, []], "n": [1, null, true]}"#
        );
        assert_eq!(
            spell(&json!({"a": [1, {}], "b": {"c": []}}), Some(2)),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": []\n  }\n}"
        );
    }

    #[test]
    fn spells_floats_like_python() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e22, "1.25e+22"),
            (5e-324, "5e-324"),
            (1796054694.1946218, "1796054694.1946218"),
            (0.23051419999999997, "0.23051419999999997"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn recognises_a_spelling() {
        let value = json!({"a": "x"});
        for indent in [None, Some(2), Some(4)] {
            for newline in [true, false] {
                let spelling = Spelling { indent, ascii: true, newline };
                assert_eq!(Spelling::of(&to_bytes(&value, spelling).unwrap()), spelling);
            }
        }
    }

    proptest! {
        #[test]
        fn floats_read_back(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            prop_assert_eq!(float(value).parse::<f64>().unwrap(), value);
        }
    }
}
