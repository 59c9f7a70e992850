//! Logs of seeds, with everything that may go wrong.

use super::odd::{BREAKS, COLOURS, JOINTS, JSON, NUMBERS, SIGNS, SPACES, WORDS, XML};
use super::{Random, Seed, seeds};

/// Makes logs for one parser.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    /// The parser's own seeds, or where it has none, all of its family.
    own: Vec<String>,
    /// Their lines.
    lines: Vec<String>,
    /// Lines of every parser.
    all: Vec<String>,
    kinds: Vec<&'static [&'static str]>,
}

fn lines(seeds: &[Seed], of: impl Fn(&Seed) -> bool) -> Vec<String> {
    let logs = seeds.iter().filter(|seed| of(seed));
    logs.flat_map(|seed| seed.log.split('\n').map(str::to_owned)).collect()
}

impl Generator {
    /// Logs for a parser of a family; other seeds and names give others.
    pub fn new(family: &str, parser: &str, seed: u64) -> Self {
        let seeds = seeds();
        let has_own = seeds.iter().any(|seed| seed.parsers.contains(&parser));
        let own = |seed: &Seed| if has_own { seed.parsers.contains(&parser) } else { seed.family == family };
        let logs: Vec<String> = seeds.iter().filter(|seed| own(seed)).map(|seed| seed.log.clone()).collect();
        let mut kinds = vec![SPACES, SPACES, SIGNS, SIGNS, COLOURS, WORDS, WORDS, NUMBERS, JOINTS];
        // Where a format has its own ways to break, half of the insertions are of them.
        for (mark, odd) in [("</", XML), ("{\"", JSON)] {
            if logs.iter().any(|log| log.contains(mark)) {
                kinds.extend(std::iter::repeat_n(odd, 9));
            }
        }
        let (lines, all) = (lines(&seeds, own), lines(&seeds, |_| true));
        Self { random: Random::new(seed, parser), own: logs, lines, all, kinds }
    }

    /// The parser's seeds as they are.
    pub fn seeds(&self) -> &[String] {
        &self.own
    }

    /// The next log.
    pub fn log(&mut self) -> String {
        let mut log = self.start();
        // Some logs stay right: a mutation that breaks everything tests nothing else.
        for _ in 0..self.random.below(6) {
            self.mutate(&mut log);
        }
        let separator = self.random.of(BREAKS);
        let mixed = self.random.once_in(6);
        let mut text = String::new();
        for (at, line) in log.iter().enumerate() {
            if at > 0 {
                text.push_str(if mixed { self.random.of(BREAKS) } else { separator });
            }
            text.push_str(line);
        }
        if self.random.once_in(3) {
            text.push_str(separator);
        }
        text
    }

    fn start(&mut self) -> Vec<String> {
        if self.random.once_in(2) {
            let log = &self.own[self.random.below(self.own.len())];
            return log.split('\n').map(str::to_owned).collect();
        }
        (0..=self.random.below(10)).map(|_| self.line()).collect()
    }

    fn line(&mut self) -> String {
        let from = if self.random.once_in(8) { &self.all } else { &self.lines };
        from[self.random.below(from.len())].clone()
    }

    fn piece(&mut self) -> String {
        if self.random.once_in(400) {
            return "9".repeat(4299 + self.random.below(4));
        }
        if self.random.once_in(300) {
            return self.random.of(&[" ", "A", "a (", "0", "[ OK ] ", "</a>", "é"]).repeat(60);
        }
        let kind = self.random.below(self.kinds.len());
        let piece = self.random.of(self.kinds[kind]);
        if self.random.once_in(8) { piece.repeat(2) } else { piece.to_owned() }
    }

    /// A place between two characters.
    fn place(&mut self, line: &str) -> usize {
        let at = self.random.below(line.chars().count() + 1);
        // Ends and places beside blanks are where rules look.
        match self.random.below(8) {
            3 | 4 => line
                .match_indices(['"', '<', '>', ':', ',', '[', '(', '|', '='])
                .nth(at % 16)
                .map_or(line.len(), |(at, _)| at),
            0 => 0,
            1 => line.len(),
            2 => line.match_indices(' ').nth(at % 5).map_or(line.len(), |(at, _)| at),
            _ => line.char_indices().nth(at).map_or(line.len(), |(at, _)| at),
        }
    }

    fn mutate(&mut self, log: &mut Vec<String>) {
        if log.is_empty() {
            log.push(self.line());
        }
        let at = self.random.below(log.len());
        match self.random.below(20) {
            0 => log.insert(self.random.below(log.len() + 1), log[at].clone()),
            1 => drop(log.remove(at)),
            2 => {
                let other = self.random.below(log.len());
                log.swap(at, other);
            }
            3 => log.insert(at, self.line()),
            4 => {
                // A line that another one tears apart.
                let cut = self.place(&log[at]);
                let tail = log[at].split_off(cut);
                let other = self.line();
                log.splice(at + 1..at + 1, [other, tail]);
            }
            5 => {
                let cut = self.place(&log[at]);
                let tail = log[at].split_off(cut);
                log.insert(at + 1, tail);
            }
            _ => self.mutate_line(&mut log[at]),
        }
    }

    fn mutate_line(&mut self, line: &mut String) {
        if line.contains("{\"") && self.random.once_in(2) {
            return self.swap_value(line);
        }
        let at = self.place(line);
        match self.random.below(16) {
            0 => line.truncate(at),
            1 => drop(line.drain(..at)),
            2 => line.push_str(&self.line()),
            3 => line.insert_str(at, &self.line()),
            4 => drop(line[at..].chars().next().map(|next| line.replace_range(at..at + next.len_utf8(), ""))),
            5 => {
                let piece = self.piece();
                let end = line[at..].chars().next().map_or(at, |next| at + next.len_utf8());
                line.replace_range(at..end, &piece);
            }
            6 => self.swap_word(line),
            7 => *line = if self.random.once_in(2) { line.to_uppercase() } else { line.to_lowercase() },
            8 => line.insert_str(
                0,
                self.random.of(&[" ", "  ", "    ", "\t", "      ", "[INFO] ", "1: ", "E   "]),
            ),
            9 => {
                let colour = self.random.of(COLOURS);
                *line = format!("{colour}{line}{}", self.random.of(COLOURS));
            }
            10 => {
                let other = self.random.of(SPACES);
                *line = line.replacen(' ', other, 1 + self.random.below(2));
            }
            11 => {
                let digit = self.random.of(&["٣", "²", "12", "0", "", "1.5", "x"]);
                if let Some(found) = line.find(|c: char| c.is_ascii_digit()) {
                    line.replace_range(found..=found, digit);
                }
            }
            _ => {
                let piece = self.piece();
                line.insert_str(at, &piece);
            }
        }
    }

    /// Another value in JSON.
    fn swap_value(&mut self, line: &mut String) {
        let colon = self.random.below(line.matches(':').count());
        let Some((colon, _)) = line.match_indices(':').nth(colon) else { return };
        let end = line[colon..].find([',', '}']).map_or(line.len(), |end| colon + end);
        let value = match self.random.below(40) {
            0 => "[".repeat(3000),
            1 => "9".repeat(4299 + self.random.below(4)),
            _ => self.random.of(JSON).to_owned(),
        };
        line.replace_range(colon + 1..end, &value);
    }

    /// Another word for a result.
    fn swap_word(&mut self, line: &mut String) {
        let words: Vec<&str> =
            WORDS.iter().copied().filter(|word| word.len() > 1 && line.contains(word)).collect();
        if !words.is_empty() {
            let (old, new) = (self.random.of(&words), self.random.of(WORDS));
            *line = line.replacen(old, new, 1);
        }
    }
}
