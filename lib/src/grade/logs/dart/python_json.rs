//! JSON as Python's `json.loads` takes it: `NaN` and infinities, lone surrogates (here U+FFFD), whole numbers of at most
//! 4300 digits, and a bounded depth.

use std::collections::BTreeMap;

use super::super::scan::Raised;

/// Brackets that may be open at once. Python's limit is one of its call stack, of which the reference parser itself
/// uses a few frames.
const DEPTH: usize = 992;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// A number by its value: equal numbers have equal texts, whether whole or not.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Python's truth value.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(number) => number != "0",
            Self::Text(text) => !text.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Object(fields) => !fields.is_empty(),
        }
    }
}

/// Why a text is no value.
pub(super) enum Fault {
    /// It is malformed, which the reference parser passes over.
    Malformed,
    /// Python raises something else.
    Raised(Raised),
}

/// Reads a text that is one value.
pub(super) fn parse(text: &str) -> Result<Json, Fault> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.blanks();
    let value = reader.value()?;
    reader.blanks();
    if reader.at == text.len() { Ok(value) } else { Err(Fault::Malformed) }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn skip(&mut self, word: &str) -> bool {
        let there = self.rest().starts_with(word);
        self.at += if there { word.len() } else { 0 };
        there
    }

    fn value(&mut self) -> Result<Json, Fault> {
        match self.peek() {
            Some(b'"') => self.string().map(Json::Text),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'-' | b'0'..=b'9') if !self.rest().starts_with("-I") => self.number(),
            _ => {
                let words = [
                    ("null", Json::Null),
                    ("true", Json::Bool(true)),
                    ("false", Json::Bool(false)),
                    ("NaN", Json::Number("NaN".to_owned())),
                    ("Infinity", Json::Number("inf".to_owned())),
                    ("-Infinity", Json::Number("-inf".to_owned())),
                ];
                words
                    .into_iter()
                    .find_map(|(word, value)| self.skip(word).then_some(value))
                    .ok_or(Fault::Malformed)
            }
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json, Fault>) -> Result<Json, Fault> {
        if self.depth == DEPTH {
            return Err(Fault::Raised(Raised("RecursionError")));
        }
        self.depth += 1;
        self.at += 1;
        self.blanks();
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Result<Json, Fault> {
        let mut items = Vec::new();
        if self.skip("]") {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value()?);
            self.blanks();
            if self.skip("]") {
                return Ok(Json::List(items));
            }
            if !self.skip(",") {
                return Err(Fault::Malformed);
            }
            self.blanks();
        }
    }

    fn object(&mut self) -> Result<Json, Fault> {
        let mut fields = BTreeMap::new();
        if self.skip("}") {
            return Ok(Json::Object(fields));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(Fault::Malformed);
            }
            let key = self.string()?;
            self.blanks();
            if !self.skip(":") {
                return Err(Fault::Malformed);
            }
            self.blanks();
            let value = self.value()?;
            fields.insert(key, value);
            self.blanks();
            if self.skip("}") {
                return Ok(Json::Object(fields));
            }
            if !self.skip(",") {
                return Err(Fault::Malformed);
            }
            self.blanks();
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').ok_or(Fault::Malformed)?;
            text.push_str(&rest[..end]);
            let mark = rest.as_bytes()[end];
            self.at += end + 1;
            match mark {
                b'"' => return Ok(text),
                b'\\' => text.push(self.escape()?),
                _ => return Err(Fault::Malformed),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let c = self.rest().chars().next().ok_or(Fault::Malformed)?;
        self.at += c.len_utf8();
        Ok(match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.code_point()?,
            _ => return Err(Fault::Malformed),
        })
    }

    fn code_point(&mut self) -> Result<char, Fault> {
        let first = self.unit().ok_or(Fault::Malformed)?;
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            match self.unit() {
                Some(second @ 0xdc00..0xe000) => {
                    let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    return char::from_u32(code).ok_or(Fault::Malformed);
                }
                _ => self.at = before,
            }
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn unit(&mut self) -> Option<u32> {
        let digits =
            self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn digits(&mut self) -> usize {
        let before = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - before
    }

    fn number(&mut self) -> Result<Json, Fault> {
        let start = self.at;
        self.skip("-");
        let first = self.at;
        // A leading zero stands alone; what follows it is no part of the number.
        if !self.skip("0") && self.digits() == 0 {
            return Err(Fault::Malformed);
        }
        let whole = self.at;
        let mut end = whole;
        if self.skip(".") && self.digits() > 0 {
            end = self.at;
        }
        self.at = end;
        if self.skip("e") || self.skip("E") {
            let _ = self.skip("+") || self.skip("-");
            if self.digits() > 0 {
                end = self.at;
            }
        }
        self.at = end;
        if end == whole {
            if whole - first > 4300 {
                return Err(Fault::Raised(Raised("ValueError")));
            }
            let digits = self.text[first..whole].to_owned();
            let sign = if start == first || digits == "0" { "" } else { "-" };
            return Ok(Json::Number(format!("{sign}{digits}")));
        }
        let value: f64 = self.text[start..end].parse().map_err(|_| Fault::Malformed)?;
        Ok(Json::Number(match value {
            0.0 => "0".to_owned(),
            value if value.is_finite() && value.fract() == 0.0 => format!("{value:.0}"),
            value => value.to_string(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Json> {
        parse(text).ok()
    }

    #[test]
    fn reads_what_python_reads() {
        assert_eq!(read("NaN"), Some(Json::Number("NaN".to_owned())));
        assert_eq!(read("-Infinity"), Some(Json::Number("-inf".to_owned())));
        assert_eq!(read(r#""\ud83d\ude00\ud800x""#), Some(Json::Text("😀\u{fffd}x".to_owned())));
        assert_eq!(read(r#"{"a": 1, "a": 2}"#), read(r#"{"a":2}"#));
        for text in
            ["01", "1.", "[1,]", "{\"a\":1,}", "'a'", "\u{a0}1", "\"\t\"", "+1", ".5", "nul", "1 2", ""]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_equal_by_value() {
        assert_eq!(read("3"), read("3.0"));
        assert_eq!(read("3"), read("30e-1"));
        assert_eq!(read("0"), read("-0.0"));
        assert_eq!(read("100000000000000000000"), read("1e20"));
        assert_ne!(read("9007199254740993"), read("9007199254740992.0"));
    }

    #[test]
    fn depth_and_digits_are_bounded() {
        let raised = |text: &str| match parse(text) {
            Err(Fault::Raised(Raised(exception))) => Some(exception),
            _ => None,
        };
        assert_eq!(raised(&"[".repeat(993)), Some("RecursionError"));
        assert_eq!(raised(&"[".repeat(992)), None);
        assert!(read(&format!("{}{}", "[".repeat(992), "]".repeat(992))).is_some());
        assert_eq!(raised(&"1".repeat(4301)), Some("ValueError"));
        assert!(read(&"1".repeat(4300)).is_some());
    }
}
