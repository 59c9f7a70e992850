//! The words in which Python's JSON decoder complains.
//!
//! A model reads them in the format error that answers a malformed tool call, so a run of ours shows what a run of
//! mini-swe-agent would show (texts of CPython 3.8 to 3.12).

/// Why Python's `json.loads` would refuse the text; `None` where it would accept it.
pub(super) fn complaint(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    if chars.first() == Some(&'\u{feff}') {
        return Some(Fault { what: "Unexpected UTF-8 BOM (decode using utf-8-sig)", at: 0 }.text(&chars));
    }
    let scanner = Scanner { chars: &chars };
    let end = match scanner.value(scanner.blanks(0), 0) {
        Ok(end) => scanner.blanks(end),
        Err(fault) => return Some(fault.text(&chars)),
    };
    (end != chars.len()).then(|| Fault { what: "Extra data", at: end }.text(&chars))
}

/// Python gives up at its recursion limit; we do before our stack does.
const MAX_DEPTH: usize = 500;

struct Fault {
    what: &'static str,
    at: usize,
}

impl Fault {
    fn text(&self, chars: &[char]) -> String {
        let before = &chars[..self.at.min(chars.len())];
        let line = before.iter().filter(|&&c| c == '\n').count() + 1;
        let column = self.at - before.iter().rposition(|&c| c == '\n').map_or(0, |newline| newline + 1) + 1;
        format!("{}: line {line} column {column} (char {})", self.what, self.at)
    }
}

/// Positions are code points; every function takes where to start and returns where it ended.
struct Scanner<'a> {
    chars: &'a [char],
}

impl Scanner<'_> {
    fn at(&self, position: usize) -> Option<char> {
        self.chars.get(position).copied()
    }

    fn blanks(&self, from: usize) -> usize {
        from + self.chars[from.min(self.chars.len())..]
            .iter()
            .take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'))
            .count()
    }

    fn value(&self, from: usize, depth: usize) -> Result<usize, Fault> {
        let word = ["null", "true", "false", "NaN", "Infinity", "-Infinity"]
            .into_iter()
            .find(|word| word.chars().enumerate().all(|(i, c)| self.at(from + i) == Some(c)));
        match (self.at(from), word) {
            (_, Some(word)) => Ok(from + word.len()),
            (Some('"'), _) => self.string(from + 1),
            (Some('{' | '['), _) if depth >= MAX_DEPTH => {
                Err(Fault { what: "Nested too deeply to be decoded", at: from })
            }
            (Some('{'), _) => self.object(from + 1, depth + 1),
            (Some('['), _) => self.array(from + 1, depth + 1),
            _ => self.number(from),
        }
    }

    fn object(&self, from: usize, depth: usize) -> Result<usize, Fault> {
        let mut at = self.blanks(from);
        if self.at(at) == Some('}') {
            return Ok(at + 1);
        }
        loop {
            if self.at(at) != Some('"') {
                return Err(Fault { what: "Expecting property name enclosed in double quotes", at });
            }
            at = self.blanks(self.string(at + 1)?);
            if self.at(at) != Some(':') {
                return Err(Fault { what: "Expecting ':' delimiter", at });
            }
            at = self.blanks(self.value(self.blanks(at + 1), depth)?);
            match self.at(at) {
                Some('}') => return Ok(at + 1),
                Some(',') => at = self.blanks(at + 1),
                _ => return Err(Fault { what: "Expecting ',' delimiter", at }),
            }
        }
    }

    fn array(&self, from: usize, depth: usize) -> Result<usize, Fault> {
        let mut at = self.blanks(from);
        if self.at(at) == Some(']') {
            return Ok(at + 1);
        }
        loop {
            at = self.blanks(self.value(at, depth)?);
            match self.at(at) {
                Some(']') => return Ok(at + 1),
                Some(',') => at = self.blanks(at + 1),
                _ => return Err(Fault { what: "Expecting ',' delimiter", at }),
            }
        }
    }

    /// From after the opening quote.
    fn string(&self, from: usize) -> Result<usize, Fault> {
        let unterminated = || Fault { what: "Unterminated string starting at", at: from - 1 };
        let mut at = from;
        loop {
            match self.at(at).ok_or_else(unterminated)? {
                '"' => return Ok(at + 1),
                '\\' => at = self.escape(at + 1).map_err(|fault| fault.unwrap_or_else(unterminated))?,
                '\0'..='\u{1f}' => return Err(Fault { what: "Invalid control character at", at }),
                _ => at += 1,
            }
        }
    }

    /// From after the backslash. `Err(None)`: the text ended.
    fn escape(&self, from: usize) -> Result<usize, Option<Fault>> {
        match self.at(from).ok_or(None)? {
            'u' => {
                let digits = from + 1;
                let hex = (digits..digits + 4).all(|at| self.at(at).is_some_and(|c| c.is_ascii_hexdigit()));
                // Python also wants one more character after the digits.
                if hex && digits + 4 < self.chars.len() {
                    Ok(digits + 4)
                } else {
                    Err(Some(Fault { what: "Invalid \\uXXXX escape", at: from }))
                }
            }
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => Ok(from + 1),
            _ => Err(Some(Fault { what: "Invalid \\escape", at: from - 1 })),
        }
    }

    fn number(&self, from: usize) -> Result<usize, Fault> {
        let digits = |at: usize| {
            at + self.chars[at.min(self.chars.len())..].iter().take_while(|c| c.is_ascii_digit()).count()
        };
        let start = if self.at(from) == Some('-') { from + 1 } else { from };
        let mut end = match self.at(start) {
            Some('0') => start + 1,
            Some('1'..='9') => digits(start),
            _ => return Err(Fault { what: "Expecting value", at: from }),
        };
        if self.at(end) == Some('.') && digits(end + 1) > end + 1 {
            end = digits(end + 1);
        }
        if matches!(self.at(end), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.at(end + 1), Some('+' | '-')));
            if digits(end + 1 + sign) > end + 1 + sign {
                end = digits(end + 1 + sign);
            }
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_as_python_does() {
        // Each right-hand side was printed by CPython 3.11.
        for (text, expected) in [
            ("", "Expecting value: line 1 column 1 (char 0)"),
            ("ls -la", "Expecting value: line 1 column 1 (char 0)"),
            ("{\"command\": \"ls\"", "Expecting ',' delimiter: line 1 column 17 (char 16)"),
            ("{\"command\": \"ls", "Unterminated string starting at: line 1 column 13 (char 12)"),
            ("{\"command\": }", "Expecting value: line 1 column 13 (char 12)"),
            ("{\"command\" 1}", "Expecting ':' delimiter: line 1 column 12 (char 11)"),
            ("{'command': 1}", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
            ("{\"a\": 1,}", "Expecting property name enclosed in double quotes: line 1 column 9 (char 8)"),
            ("{\"a\": \"x\ny\"}", "Invalid control character at: line 1 column 9 (char 8)"),
            ("{\"a\": \"\\d\"}", "Invalid \\escape: line 1 column 8 (char 7)"),
            ("{\"a\": \"\\u12\"}", "Invalid \\uXXXX escape: line 1 column 9 (char 8)"),
            ("{}\n{}", "Extra data: line 2 column 1 (char 3)"),
            ("[1,\n 2\n 3]", "Expecting ',' delimiter: line 3 column 2 (char 8)"),
            ("\"é\" x", "Extra data: line 1 column 5 (char 4)"),
        ] {
            assert_eq!(complaint(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn accepts_what_python_accepts_and_never_panics() {
        for text in ["{}", " [1, -0.5e+3, NaN, -Infinity] ", "\"\\ud800\"", "{\"a\": {\"b\": [true, null]}}"]
        {
            assert_eq!(complaint(text), None, "{text:?}");
        }
        let text = "{\"a\": [\"\\u00e9\", -1.5e3, nul]}";
        for end in 0..text.len() {
            assert!(complaint(&text[..end]).is_some());
        }
        assert!(complaint(&"[".repeat(100_000)).is_some());
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_serde_on_what_is_json(text in "[\\[\\]{}\":,\\\\0-9a-fnul. eE+-]{0,12}") {
            let ours = complaint(&text).is_none();
            let serde = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            // Python takes more (a lone surrogate), never less.
            proptest::prop_assert!(ours || !serde, "{text:?}");
            proptest::prop_assert!(serde || !ours || text.contains("\\u") || text.contains(['e', 'E']), "{text:?}");
        }
    }
}
