//! Records in JSON-lines files: an index that is written by hand or by another program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{FEEDBACK_FILE, Hit, Served, ServedRecord};
use crate::memory::MemoryError;

/// The constants of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Characters of a record that a search shows.
const SHOWN: usize = 1200;

/// Words that explain a hit.
const EXPLAINING: usize = 5;

/// A folder of files `<owner>__<name>.jsonl`, one a repository. A line is an object with `id`, `text`,
/// `source_instance_id` and whatever else the record holds. Ranked by BM25 over all files' words, in memory.
#[derive(Debug)]
pub struct Lines {
    repos: BTreeSet<String>,
    records: Vec<ServedRecord>,
    /// For each word, the records that hold it, and how often.
    holders: BTreeMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    by_id: BTreeMap<String, usize>,
}

/// What each word of a query adds to a record's score.
type Shares = Vec<(f64, String)>;

#[derive(Deserialize)]
struct Line {
    id: String,
    source_instance_id: String,
    text: String,
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl Lines {
    /// Reads the files of a folder.
    ///
    /// # Errors
    /// When the folder cannot be read or holds no such file, when a line is no record, or two records have one id.
    pub fn open(folder: &Path) -> Result<Self, MemoryError> {
        let wrong = |path: &Path, reason: String| MemoryError::Index { path: path.to_owned(), reason };
        let io = |error: std::io::Error| wrong(folder, error.to_string());
        let mut files = Vec::new();
        for entry in fs_err::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if let Some(stem) = name.strip_suffix(".jsonl").filter(|_| name != FEEDBACK_FILE) {
                files.push((stem.replacen("__", "/", 1), path));
            }
        }
        if files.is_empty() {
            return Err(wrong(folder, "it holds no store (owner__name.jsonl)".into()));
        }
        files.sort();
        let mut index = Self {
            repos: BTreeSet::new(),
            records: Vec::new(),
            holders: BTreeMap::new(),
            lengths: Vec::new(),
            by_id: BTreeMap::new(),
        };
        for (repo, path) in files {
            let text = fs_err::read_to_string(&path).map_err(|error| wrong(&path, error.to_string()))?;
            for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let at_line = |reason: String| wrong(&path, format!("line {}: {reason}", n + 1));
                let line: Line = serde_json::from_str(line).map_err(|error| at_line(error.to_string()))?;
                let id = line.id.clone();
                if !index.add(&repo, line) {
                    return Err(at_line(format!("the id {id} stands twice in the index")));
                }
            }
            index.repos.insert(repo);
        }
        Ok(index)
    }

    /// Takes a record in; false: its id is taken.
    fn add(&mut self, repo: &str, line: Line) -> bool {
        let place = self.records.len();
        if self.by_id.insert(line.id.clone(), place).is_some() {
            return false;
        }
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        words(&line.text).for_each(|word| *counts.entry(word).or_default() += 1.0);
        self.lengths.push(counts.values().sum());
        for (word, count) in counts {
            self.holders.entry(word).or_default().push((place, count));
        }
        let Line { id, source_instance_id, text, more } = line;
        self.records.push(ServedRecord { id, repo: repo.to_owned(), source_instance_id, text, more });
        true
    }
}

impl Served for Lines {
    fn repos(&self) -> Vec<String> {
        self.repos.iter().cloned().collect()
    }

    fn search(&self, repo: Option<&str>, query: &str, k: usize) -> Result<Vec<Hit>, MemoryError> {
        let count = self.records.len() as f64;
        let mean = (self.lengths.iter().sum::<f64>() / count.max(1.0)).max(1.0);
        let mut scores: BTreeMap<usize, Shares> = BTreeMap::new();
        for word in words(query).collect::<BTreeSet<_>>() {
            let Some(holders) = self.holders.get(&word) else { continue };
            let holding = holders.len() as f64;
            let rarity = (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln();
            for &(place, times) in holders {
                if repo.is_none_or(|repo| self.records[place].repo == repo) {
                    let norm = K1 * (1.0 - B + B * self.lengths[place] / mean);
                    let score = rarity * times * (K1 + 1.0) / (times + norm);
                    scores.entry(place).or_default().push((score, word.clone()));
                }
            }
        }
        let mut hits: Vec<(f64, usize, Shares)> = scores
            .into_iter()
            .map(|(place, words)| (words.iter().map(|(score, _)| score).sum(), place, words))
            .collect();
        // Equal ones in the index's order.
        hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let hits = hits.into_iter().take(k).map(|(score, place, mut words)| {
            words.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            let words: Vec<String> = words.into_iter().take(EXPLAINING).map(|(_, word)| word).collect();
            let record = &self.records[place];
            Hit {
                id: record.id.clone(),
                source_instance_id: record.source_instance_id.clone(),
                score,
                text: shortened(&record.text),
                why: format!("shares {}", words.join(", ")),
            }
        });
        Ok(hits.collect())
    }

    fn read(&self, id: &str) -> Result<Option<ServedRecord>, MemoryError> {
        Ok(self.by_id.get(id).map(|&place| self.records[place].clone()))
    }
}

/// Runs of letters and digits of two bytes at least, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).map(str::to_lowercase)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… (read gives the whole)", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(files: &[(&str, &str)]) -> Result<Lines, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs_err::write(folder.path().join(name), text).unwrap();
        }
        let cut = format!("{}/", folder.path().display());
        Lines::open(folder.path()).map_err(|error| error.to_string().replace(&cut, ""))
    }

    fn line(id: &str, text: &str) -> String {
        json!({"id": id, "source_instance_id": "acme__widget-1", "text": text, "kind": "lesson"}).to_string()
            + "\n"
    }

    #[test]
    fn the_rarer_word_wins_and_a_repository_bounds_the_search() {
        let widget = line("w1", "Dates of the parser") + &line("w2", "The parser of time zones") + "\n";
        let gadget = line("g1", "Time zones, too") + &line("g2", &"zones ".repeat(400));
        let index = index(&[
            ("acme__widget.jsonl", &widget),
            ("acme__gadget.jsonl", &gadget),
            ("feedback.jsonl", "not a store"),
        ])
        .unwrap();
        assert_eq!(index.repos(), ["acme/gadget", "acme/widget"]);
        let ids = |repo, query, k| {
            let hits = index.search(repo, query, k).unwrap();
            hits.into_iter().map(|hit| hit.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(Some("acme/widget"), "parser dates", 5), ["w1", "w2"]);
        assert_eq!(ids(None, "DATES?", 5), ["w1"]);
        assert_eq!(ids(None, "zones", 2).len(), 2);
        assert_eq!(ids(Some("acme/other"), "zones", 2), Vec::<String>::new());
        let hit = &index.search(None, "which dates of the parser", 1).unwrap()[0];
        assert_eq!(
            (hit.why.as_str(), hit.source_instance_id.as_str()),
            ("shares dates, of, parser, the", "acme__widget-1")
        );
        // one of 4 records holds the word; 4 words of 410 / 4 on average
        let expected = (1.0f64 + 3.5 / 1.5).ln() * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * 4.0 / 103.0));
        assert!((index.search(None, "dates", 1).unwrap()[0].score - expected).abs() < 1e-12);
        let long = &index.search(Some("acme/gadget"), "zones", 9).unwrap();
        assert!(long.iter().any(|hit| hit.text.ends_with("… (read gives the whole)")));
        let record = index.read("w1").unwrap().unwrap();
        assert_eq!((record.repo.as_str(), &record.more["kind"]), ("acme/widget", &json!("lesson")));
        assert_eq!(index.read("none").unwrap(), None);
    }

    #[test]
    fn what_is_no_index_is_named() {
        assert!(index(&[]).unwrap_err().ends_with("it holds no store (owner__name.jsonl)"));
        let error = index(&[("a__b.jsonl", "\n{\"id\": 1}\n")]).unwrap_err();
        assert!(error.starts_with("memory index a__b.jsonl: line 2: invalid type"), "{error}");
        let twice = line("x", "a") + &line("x", "b");
        let error = index(&[("a__b.jsonl", &twice)]).unwrap_err();
        assert_eq!(error, "memory index a__b.jsonl: line 2: the id x stands twice in the index");
    }
}
