//! Documents of several lines in the midst of a log: where one begins, and where it ends.

use super::super::found::Found;
use super::super::scan::{Structured, Take};
use super::super::text;

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grade::logs) enum Syntax {
    /// It begins at a line that begins with `<`, and ends with its root element.
    Xml,
    /// It begins at a line that begins with `{` or `[`, and ends with the bracket that closes it.
    Json,
}

/// Reads a whole document: whether it is one of the format at all, or what is wrong with it.
pub(in crate::grade::logs) type Read =
    fn(document: &str, first_line: usize, &mut Found) -> Result<bool, String>;

/// A format of whole documents.
pub(in crate::grade::logs) struct Documents {
    syntax: Syntax,
    /// Whether a line, blanks before it removed, may begin a document.
    begins: fn(&str) -> bool,
    read: Read,
    open: Option<Open>,
}

struct Open {
    first_line: usize,
    text: String,
    depth: Depth,
}

impl Documents {
    /// A format whose documents begin with a line for which `begins` holds.
    pub(in crate::grade::logs) fn open(
        syntax: Syntax,
        begins: fn(&str) -> bool,
        read: Read,
    ) -> Box<dyn Structured> {
        Box::new(Self { syntax, begins, read, open: None })
    }
}

impl Structured for Documents {
    fn take(&mut self, line: &str, found: &mut Found) -> Take {
        if self.open.is_none() {
            if !(self.begins)(text::trim(line)) {
                return Take::No;
            }
            let depth = Depth::new(self.syntax);
            self.open = Some(Open { first_line: found.line(), text: String::new(), depth });
        }
        let Some(open) = &mut self.open else { return Take::No };
        open.text.push_str(line);
        let closed = open.depth.after(line);
        open.text.push('\n');
        if !closed {
            return Take::Held;
        }
        let Some(done) = self.open.take() else { return Take::No };
        match (self.read)(text::trim(&done.text), done.first_line, found) {
            Ok(true) => Take::Read,
            Ok(false) => Take::Back,
            Err(why) => {
                found.broken(why, false);
                Take::Read
            }
        }
    }

    fn end(&mut self, found: &mut Found) -> Take {
        let Some(open) = self.open.take() else { return Take::No };
        // A cut XML document is a report that cannot be believed; a brace that nothing closes is just text.
        if self.syntax == Syntax::Xml {
            found.broken(
                format!("the XML document that begins in line {} is not complete", open.first_line),
                false,
            );
        }
        Take::Back
    }
}

/// How deep in elements or brackets a text is.
struct Depth {
    syntax: Syntax,
    depth: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between marks.
    Text,
    /// In a JSON string, or in a quoted attribute of a tag (which quote).
    Quoted(u8),
    /// In a tag; whether it closes an element, and whether the last byte was a slash.
    Tag { closing: bool, slash: bool },
    /// Up to this end: a comment, CDATA, an instruction or a declaration.
    Until(&'static str),
}

impl Depth {
    fn new(syntax: Syntax) -> Self {
        Self { syntax, depth: 0, state: State::Text }
    }

    /// Whether the document is complete after this line. What follows its end in the line belongs to it.
    fn after(&mut self, line: &str) -> bool {
        match self.syntax {
            Syntax::Json => self.after_json(line.as_bytes()),
            Syntax::Xml => self.after_xml(line),
        }
    }

    fn after_json(&mut self, line: &[u8]) -> bool {
        let mut bytes = line.iter();
        while let Some(byte) = bytes.next() {
            match (self.state, byte) {
                (State::Quoted(_), b'\\') => {
                    bytes.next();
                }
                (State::Quoted(_), b'"') => self.state = State::Text,
                (State::Quoted(_), _) => {}
                (_, b'"') => self.state = State::Quoted(b'"'),
                (_, b'{' | b'[') => self.depth += 1,
                (_, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return true;
                    }
                }
                _ => {}
            }
        }
        false
    }

    fn after_xml(&mut self, line: &str) -> bool {
        let mut rest = line;
        loop {
            match self.state {
                State::Text => {
                    let Some(at) = rest.find('<') else { return false };
                    rest = self.open_mark(&rest[at..]);
                }
                State::Until(end) => {
                    let Some(at) = rest.find(end) else { return false };
                    rest = &rest[at + end.len()..];
                    self.state = State::Text;
                }
                State::Quoted(quote) => {
                    let Some(at) = rest.find(char::from(quote)) else { return false };
                    rest = &rest[at + 1..];
                    self.state = State::Tag { closing: false, slash: false };
                }
                State::Tag { closing, slash } => match rest.as_bytes().first() {
                    None => return false,
                    Some(b'>') => {
                        rest = &rest[1..];
                        self.state = State::Text;
                        if closing {
                            self.depth = self.depth.saturating_sub(1);
                        } else if !slash {
                            self.depth += 1;
                        }
                        if self.depth == 0 {
                            return true;
                        }
                    }
                    Some(quote @ (b'"' | b'\'')) => {
                        rest = &rest[1..];
                        self.state = State::Quoted(*quote);
                    }
                    Some(byte) => {
                        self.state = State::Tag { closing, slash: *byte == b'/' };
                        let step = rest.chars().next().map_or(1, char::len_utf8);
                        rest = &rest[step..];
                    }
                },
            }
        }
    }

    /// Enters what begins with `<`.
    fn open_mark<'a>(&mut self, text: &'a str) -> &'a str {
        let marks = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")];
        for (mark, end) in marks {
            if let Some(rest) = text.strip_prefix(mark) {
                self.state = State::Until(end);
                return rest;
            }
        }
        let closing = text.starts_with("</");
        self.state = State::Tag { closing, slash: false };
        &text[1 + usize::from(closing)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_until_complete(syntax: Syntax, document: &str) -> Option<usize> {
        let mut depth = Depth::new(syntax);
        document.lines().position(|line| depth.after(line)).map(|at| at + 1)
    }

    #[test]
    fn xml_ends_with_its_root() {
        for (document, lines) in [
            ("<a/>", Some(1)),
            ("<?xml version='1.0'?>\n<a>\n<b x='>' y=\"</a>\"/>\n</a>\n<c/>", Some(4)),
            ("<a><!-- </a> -->\n<![CDATA[</a>]]>\n</a>", Some(3)),
            ("<a\n b='1'\n/>", Some(3)),
            ("<a>\n<a>\n</a>\n", None),
            ("<!DOCTYPE a>\n<a></a>", Some(2)),
        ] {
            assert_eq!(lines_until_complete(Syntax::Xml, document), lines, "{document}");
        }
    }

    #[test]
    fn a_document_that_is_not_of_one_format_goes_to_the_next() {
        use super::super::super::{Rules, parser};
        let log = "<?xml version='1.0'?>\n<testsuites>\n<testsuite name='s'>\n<testcase classname='A' name='b'/>\n</testsuite>\n</testsuites>\n\
                   \x20 Passed C.d [3 ms]\n";
        let map = parser("parse_log_csharp").unwrap().parse(log, Rules::Strict).unwrap();
        assert_eq!(map.statuses.keys().collect::<Vec<_>>(), ["A::b", "C.d"]);
        assert_eq!(map.observations.iter().map(|seen| seen.line).collect::<Vec<_>>(), [4, 7]);
    }

    #[test]
    fn json_ends_with_its_bracket() {
        for (document, lines) in
            [("{}", Some(1)), ("{\n\"a\": \"}\\\"}\",\n\"b\": [{}]\n}\n{}", Some(4)), ("[\n[]", None)]
        {
            assert_eq!(lines_until_complete(Syntax::Json, document), lines, "{document}");
        }
    }
}
