//! How a log is walked: once, line by line, so that its size does not matter.

use std::io::{self, BufRead};

use super::found::{Found, StatusMap};
use super::table::{Parser, Rules, Split};
use super::{ParseError, text};

/// A Python exception that the reference parser raises at a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Raised(pub(super) &'static str);

/// Reads a log line by line and writes down what it finds. Lines come without their line break, after newline
/// translation; under strict rules, without terminal control sequences.
pub(super) trait Scan {
    /// The next line.
    ///
    /// # Errors
    /// Under upstream's rules, where the reference parser raises.
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised>;

    /// The log is over.
    ///
    /// # Errors
    /// Under upstream's rules, where the reference parser raises.
    fn end(&mut self, _found: &mut Found) -> Result<(), Raised> {
        Ok(())
    }
}

/// A rule that needs to know one line at a time.
struct Each(fn(&str, &mut Found));

impl Scan for Each {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        (self.0)(line, found);
        Ok(())
    }
}

/// A [`Scan`] of a rule that needs to know one line at a time.
pub(super) fn each(rule: fn(&str, &mut Found)) -> Box<dyn Scan> {
    Box::new(Each(rule))
}

/// A rule that needs the whole log.
struct Whole {
    log: String,
    rule: fn(&str, &mut Found) -> Result<(), Raised>,
}

impl Scan for Whole {
    fn line(&mut self, line: &str, found: &mut Found) -> Result<(), Raised> {
        if found.line() > 1 {
            self.log.push('\n');
        }
        self.log.push_str(line);
        Ok(())
    }

    fn end(&mut self, found: &mut Found) -> Result<(), Raised> {
        (self.rule)(&self.log, found)
    }
}

/// A [`Scan`] of a rule that needs the whole log (rows with [`Split::Lf`] only); it is held in memory.
pub(super) fn whole(rule: fn(&str, &mut Found) -> Result<(), Raised>) -> Box<dyn Scan> {
    Box::new(Whole { log: String::new(), rule })
}

/// The reference rule beside a strict one: tells what upstream calls the result of a line.
pub(super) struct Shadow {
    scan: Box<dyn Scan>,
    found: Found,
}

impl Shadow {
    pub(super) fn new(scan: Box<dyn Scan>) -> Self {
        Self { scan, found: Found::default() }
    }

    /// The name that upstream gives to what it finds in this line.
    pub(super) fn name(&mut self, line: &str) -> Option<String> {
        self.found.next_line();
        // A rule that raises has no name for this line; the next ones may.
        let _ = self.scan.line(line, &mut self.found);
        self.found.take_last()
    }
}

/// A structured format that a log may hold beside text, read under strict rules.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its usual name.
    pub name: &'static str,
    pub(super) open: fn() -> Box<dyn Structured>,
}

/// What a structured format makes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// It is none of its lines.
    No,
    /// It may be part of a document, which a later line decides. Until then no other rule sees the lines.
    Held,
    /// It, and what was held, is part of a document that has been read; text rules do not see it.
    Read,
    /// It, and what was held, is none of its lines after all: text rules get them.
    Back,
}

/// Reads one structured format out of a log.
pub(super) trait Structured {
    /// The next line.
    fn take(&mut self, line: &str, found: &mut Found) -> Take;

    /// The log is over. The answer concerns what is held.
    fn end(&mut self, found: &mut Found) -> Take;
}

/// A log that is being read.
pub(super) struct Reading {
    parser: &'static str,
    rules: Rules,
    split: Split,
    formats: Vec<Box<dyn Structured>>,
    /// The format that holds lines, and the lines with their numbers.
    held: Option<(usize, Vec<(usize, String)>)>,
    scan: Box<dyn Scan>,
    found: Found,
}

impl Reading {
    pub(super) fn new(parser: &Parser, rules: Rules) -> Result<Self, ParseError> {
        let (scan, split, formats) = match rules {
            Rules::Upstream => {
                let open = parser
                    .upstream
                    .ok_or_else(|| ParseError::NoUpstream { parser: parser.name.to_owned() })?;
                (open(), parser.split, Vec::new())
            }
            Rules::Strict => {
                let formats = parser.reads.iter().map(|format| (format.open)()).collect();
                ((parser.strict)(), Split::Lf, formats)
            }
        };
        Ok(Self { parser: parser.name, rules, split, formats, held: None, scan, found: Found::default() })
    }

    /// Reads by strict rules that stand in no table.
    pub(super) fn strict(parser: &'static str, scan: Box<dyn Scan>) -> Self {
        Self {
            parser,
            rules: Rules::Strict,
            split: Split::Lf,
            formats: Vec::new(),
            held: None,
            scan,
            found: Found::default(),
        }
    }

    /// Text that ends at a line feed (`last` false) or at the end of the log, without the line feed.
    fn piece(&mut self, piece: &str, last: bool) -> Result<(), ParseError> {
        // CRLF is one line break, and so is a lone CR.
        let piece = if last { piece } else { piece.strip_suffix('\r').unwrap_or(piece) };
        let mut rest = piece.split('\r').peekable();
        while let Some(part) = rest.next() {
            self.part(part, last && rest.peek().is_none())?;
        }
        Ok(())
    }

    fn part(&mut self, part: &str, last: bool) -> Result<(), ParseError> {
        self.found.next_line();
        match self.split {
            Split::Lf => self.line(part),
            Split::Unicode => {
                let mut rest = part.split(text::is_line_break).peekable();
                while let Some(line) = rest.next() {
                    if line.is_empty() && last && rest.peek().is_none() {
                        break;
                    }
                    self.line(line)?;
                }
                Ok(())
            }
        }
    }

    fn line(&mut self, line: &str) -> Result<(), ParseError> {
        match self.rules {
            Rules::Upstream => self.text_line(line),
            Rules::Strict => self.strict_line(&text::strip_ansi(line)),
        }
    }

    fn strict_line(&mut self, line: &str) -> Result<(), ParseError> {
        match self.held.as_ref().map(|(format, _)| *format) {
            Some(format) => self.offer(line, format, format + 1),
            None => self.offer(line, 0, self.formats.len()),
        }
    }

    /// Asks formats for a line, one after the other; what none takes is text.
    fn offer(&mut self, line: &str, first: usize, end: usize) -> Result<(), ParseError> {
        for format in first..end {
            match self.formats[format].take(line, &mut self.found) {
                Take::No => {}
                Take::Held => {
                    let (_, lines) = self.held.get_or_insert_with(|| (format, Vec::new()));
                    lines.push((self.found.line(), line.to_owned()));
                    return Ok(());
                }
                Take::Read => {
                    self.held = None;
                    return Ok(());
                }
                Take::Back => {
                    self.give_back(format)?;
                    return self.offer_after(line, format);
                }
            }
        }
        self.text_line(line)
    }

    /// Asks the formats behind one, or the one among them that holds lines.
    fn offer_after(&mut self, line: &str, format: usize) -> Result<(), ParseError> {
        match self.held.as_ref().map(|(holder, _)| *holder) {
            Some(holder) => self.offer(line, holder, holder + 1),
            None => self.offer(line, format + 1, self.formats.len()),
        }
    }

    /// Gives what a format held to those behind it, and what they do not take to the text rules.
    fn give_back(&mut self, format: usize) -> Result<(), ParseError> {
        let now = self.found.line();
        for (at, line) in self.held.take().map(|(_, lines)| lines).unwrap_or_default() {
            self.found.go_to(at);
            self.offer_after(&line, format)?;
        }
        self.found.go_to(now);
        Ok(())
    }

    fn text_line(&mut self, line: &str) -> Result<(), ParseError> {
        self.scan.line(line, &mut self.found).map_err(|raised| self.raised(raised, line))
    }

    fn end(mut self) -> Result<StatusMap, ParseError> {
        for format in 0..self.formats.len() {
            let answer = self.formats[format].end(&mut self.found);
            let holds = self.held.as_ref().is_some_and(|(holder, _)| *holder == format);
            if holds && answer != Take::Read {
                self.give_back(format)?;
            }
        }
        self.scan.end(&mut self.found).map_err(|raised| self.raised(raised, "the end of the log"))?;
        Ok(self.found.into_map())
    }

    fn raised(&self, Raised(exception): Raised, text: &str) -> ParseError {
        let text = text.chars().take(200).collect();
        ParseError::Raises { parser: self.parser, line: self.found.line(), text, exception }
    }

    /// Reads a log that is in memory.
    pub(super) fn text(mut self, log: &str) -> Result<StatusMap, ParseError> {
        let mut rest = log;
        while let Some((piece, after)) = rest.split_once('\n') {
            self.piece(piece, false)?;
            rest = after;
        }
        self.piece(rest, true)?;
        self.end()
    }

    /// Reads a log from a stream; bytes that are no UTF-8 become U+FFFD.
    pub(super) fn stream(mut self, mut log: impl BufRead) -> Result<StatusMap, ReadError> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            log.read_until(b'\n', &mut bytes)?;
            let ended = bytes.pop_if(|byte| *byte == b'\n').is_some();
            self.piece(&String::from_utf8_lossy(&bytes), !ended)?;
            if !ended {
                return Ok(self.end()?);
            }
        }
    }
}

/// Why a log could not be read from a stream.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream failed.
    #[error("the log cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The log could not be parsed.
    #[error(transparent)]
    Parse(#[from] ParseError),
}
