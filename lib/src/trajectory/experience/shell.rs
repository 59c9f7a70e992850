//! A shell command line as the simple commands that it runs: words, redirections, here-documents.
//!
//! It is read for what it tells, not run: nothing is expanded, and a line that no shell would take is read as far as
//! it goes.

use std::iter::Peekable;
use std::str::Chars;

/// One simple command: `name argument … > file`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its words without quotes, the name first.
    pub words: Vec<String>,
    /// Files that its output is redirected to.
    pub writes: Vec<String>,
    /// The file that its input comes from.
    pub reads: Option<String>,
    /// The here-document that is its input.
    pub input: Option<String>,
}

impl Simple {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.writes.is_empty() && self.input.is_none()
    }
}

/// What the next word is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Word,
    Write,
    Read,
    /// The end mark of a here-document; whether its lines may be indented by tabs.
    Here(bool),
    Nothing,
}

struct Reader<'t> {
    text: Peekable<Chars<'t>>,
    done: Vec<Simple>,
    now: Simple,
    /// The word that is being read; `None`: none has begun.
    word: Option<String>,
    /// What it is for.
    use_: Use,
    /// Here-documents whose lines come after this line: the command's place, the end mark, whether tabs are stripped.
    waiting: Vec<(usize, String, bool)>,
}

/// The simple commands of a command line, in order, whatever joins them.
pub(super) fn simple_commands(text: &str) -> Vec<Simple> {
    let mut reader = Reader {
        text: text.chars().peekable(),
        done: Vec::new(),
        now: Simple::default(),
        word: None,
        use_: Use::Word,
        waiting: Vec::new(),
    };
    reader.read();
    reader.done.retain(|simple| !simple.is_empty());
    reader.done
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(next) = self.text.next() {
            match next {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => {
                    self.end_command();
                    self.here_documents();
                }
                ';' | '|' | '(' | ')' => self.end_command(),
                '&' if self.text.peek() == Some(&'>') => self.end_word(),
                '&' => self.end_command(),
                '#' if self.word.is_none() => while self.text.next_if(|c| *c != '\n').is_some() {},
                '>' => self.redirect_out(),
                '<' => self.redirect_in(),
                '\\' => match self.text.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '$' if self.text.peek() == Some(&'\'') => {}
                other => self.push(other),
            }
        }
        self.end_command();
        self.here_documents();
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn single_quoted(&mut self) {
        let word = self.word.get_or_insert_default();
        for c in self.text.by_ref() {
            if c == '\'' {
                return;
            }
            word.push(c);
        }
    }

    fn double_quoted(&mut self) {
        let word = self.word.get_or_insert_default();
        while let Some(c) = self.text.next() {
            match c {
                '"' => return,
                '\\' => match self.text.next() {
                    Some('\n') | None => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                    Some(other) => word.extend(['\\', other]),
                },
                other => word.push(other),
            }
        }
    }

    fn redirect_out(&mut self) {
        // the number before it names the stream
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        while self.text.next_if(|c| matches!(c, '>' | '|')).is_some() {}
        self.use_ = match self.text.next_if(|c| matches!(c, '&' | '(')) {
            Some(_) => Use::Nothing,
            None => Use::Write,
        };
    }

    fn redirect_in(&mut self) {
        self.end_word();
        let mut signs = 1;
        while self.text.next_if_eq(&'<').is_some() {
            signs += 1;
        }
        let dash = signs == 2 && self.text.next_if_eq(&'-').is_some();
        self.use_ = match (signs, self.text.peek()) {
            (1, Some('(' | '&')) => Use::Nothing,
            (1, _) => Use::Read,
            (2, _) => Use::Here(dash),
            _ => Use::Nothing,
        };
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::replace(&mut self.use_, Use::Word) {
            Use::Word => self.now.words.push(word),
            Use::Write => self.now.writes.push(word),
            Use::Read => self.now.reads = Some(word),
            Use::Here(dash) => self.waiting.push((self.done.len(), word, dash)),
            Use::Nothing => {}
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.use_ = Use::Word;
        let now = std::mem::take(&mut self.now);
        // here-documents count places: a command that one waits for keeps its place though it be empty
        if !now.is_empty() || self.waiting.iter().any(|(place, ..)| *place == self.done.len()) {
            self.done.push(now);
        }
    }

    fn here_documents(&mut self) {
        for (place, end, dash) in std::mem::take(&mut self.waiting) {
            let mut body = String::new();
            while self.text.peek().is_some() {
                let line: String = self.text.by_ref().take_while(|c| *c != '\n').collect();
                let stripped = if dash { line.trim_start_matches('\t') } else { &line };
                if stripped.trim_end_matches('\r') == end {
                    break;
                }
                body.push_str(stripped);
                body.push('\n');
            }
            if let Some(command) = self.done.get_mut(place) {
                command.input = Some(body);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        simple_commands(text).into_iter().map(|simple| simple.words).collect()
    }

    #[test]
    fn splits_what_operators_join_and_quotes_do_not() {
        assert_eq!(
            words("cd /a && ls -l|wc; echo 'x; y' \"a && \\\"b\" # no > more"),
            [vec!["cd", "/a"], vec!["ls", "-l"], vec!["wc"], vec!["echo", "x; y", "a && \"b"]]
        );
    }

    #[test]
    fn tells_redirections_from_words() {
        let all = simple_commands("a > x 2>&1 >> 'y z' &> w <in 2>/dev/null <<< here b");
        let [only] = &all[..] else { panic!("{all:?}") };
        assert_eq!(only.words, ["a", "b"]);
        assert_eq!(only.writes, ["x", "y z", "w", "/dev/null"]);
        assert_eq!(only.reads.as_deref(), Some("in"));
    }

    #[test]
    fn here_documents_are_input() {
        let all = simple_commands("cat <<'A' > f && python - <<B\n1 > 2\nA\nx\nB\nls");
        let inputs: Vec<_> = all.iter().map(|simple| simple.input.as_deref()).collect();
        assert_eq!(inputs, [Some("1 > 2\n"), Some("x\n"), None]);
        assert_eq!((all[0].writes[0].as_str(), all[2].words[0].as_str()), ("f", "ls"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in r#"[a-z<>&|;'"\\$#()\n \t0-9]{0,60}"#) {
            simple_commands(&text);
        }
    }
}
