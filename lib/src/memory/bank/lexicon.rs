//! BM25 over a few fields of each record, exact for any part of the index.
//!
//! BM25 weighs a word by how many documents hold it and a document by the mean length: an index that held later runs
//! would leak them through the scores even if it never returned them (law 1). So every sum here is taken over the
//! documents that a search may see and over no other, in integers: the scores equal, to the bit, those of an index that
//! was built from these documents alone. That is why it is not a search library's index.
//!
//! Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009); k1 = 1.2, b = 0.75.

use std::collections::HashMap;

use super::super::tokenize::each_word;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Fields of a document.
pub(in crate::memory) const FIELD_COUNT: usize = 3;

/// One word in one field of one document.
#[derive(Debug, Clone, Copy)]
struct Posting {
    document: u32,
    count: u32,
}

/// The index. Documents have the numbers in which they were added, from 0.
#[derive(Debug, Default)]
pub(in crate::memory) struct Lexicon {
    words: HashMap<Box<str>, u32>,
    postings: Vec<[Vec<Posting>; FIELD_COUNT]>,
    lengths: Vec<[u32; FIELD_COUNT]>,
}

/// A document that shares words with the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::memory) struct Hit {
    /// Its number.
    pub document: u32,
    /// Its BM25 score, summed over the fields by their weights.
    pub score: f64,
    /// The share of the query that it holds: of the sum of the query's word weights (0 to 1).
    pub coverage: f64,
}

/// What is summed up for a document.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    score: f64,
    held: f64,
    /// The word that was counted last, and at which weight: in several fields it counts once, at the largest.
    word: u32,
    weight: f64,
}

impl Sums {
    fn take(&mut self, word: u32, weight: f64, score: f64) {
        self.score += score;
        if self.word != word {
            (self.word, self.weight) = (word, 0.0);
        }
        if weight > self.weight {
            self.held += weight - self.weight;
            self.weight = weight;
        }
    }
}

/// How a query is weighed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::memory) struct Weights {
    /// Distinct words of the query that are searched for: the first ones of it.
    pub words: usize,
    /// What a match in each field counts.
    pub fields: [f64; FIELD_COUNT],
}

impl Lexicon {
    /// Adds a document.
    pub fn add(&mut self, fields: [&str; FIELD_COUNT]) {
        let document = self.lengths.len() as u32;
        let mut lengths = [0u32; FIELD_COUNT];
        for (field, text) in fields.into_iter().enumerate() {
            each_word(text, |word| {
                lengths[field] += 1;
                let number = match self.words.get(word) {
                    Some(number) => *number,
                    None => {
                        let number = self.postings.len() as u32;
                        self.words.insert(word.into(), number);
                        self.postings.push(Default::default());
                        number
                    }
                };
                let list = &mut self.postings[number as usize][field];
                match list.last_mut() {
                    Some(last) if last.document == document => last.count += 1,
                    _ => list.push(Posting { document, count: 1 }),
                }
            });
        }
        self.lengths.push(lengths);
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// The documents that share a word with the query, among those that `may_see` allows, in the order of their numbers.
    pub fn search(&self, query: &str, weights: &Weights, may_see: &[bool]) -> Vec<Hit> {
        let seen = |posting: &&Posting| may_see.get(posting.document as usize).copied().unwrap_or(false);
        let (mut documents, mut totals) = (0u64, [0u64; FIELD_COUNT]);
        for (lengths, _) in self.lengths.iter().zip(may_see).filter(|(_, may)| **may) {
            documents += 1;
            totals.iter_mut().zip(lengths).for_each(|(total, length)| *total += u64::from(*length));
        }
        let means = totals.map(|total| total as f64 / documents.max(1) as f64);
        let mut sums = vec![Sums::default(); self.len()];
        let mut held: Vec<Posting> = Vec::new();
        let mut whole = 0.0;
        for (word, number) in (1u32..).zip(self.query_words(query, weights.words)) {
            let mut heaviest = 0.0f64;
            for (field, list) in number.iter().flat_map(|&n| self.postings[n as usize].iter().enumerate()) {
                held.clear();
                held.extend(list.iter().filter(seen));
                if held.is_empty() {
                    continue;
                }
                let idf = weight_of_word(documents, held.len() as u64);
                heaviest = heaviest.max(idf);
                for posting in &held {
                    let at = posting.document as usize;
                    let count = f64::from(posting.count);
                    let length = f64::from(self.lengths[at][field]) / means[field];
                    let saturated = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
                    sums[at].take(word, idf, weights.fields[field] * idf * saturated);
                }
            }
            whole += if heaviest == 0.0 { weight_of_word(documents, 0) } else { heaviest };
        }
        let found = (0u32..).zip(sums).filter(|(_, sums)| sums.score > 0.0);
        found
            .map(|(document, sums)| Hit { document, score: sums.score, coverage: sums.held / whole })
            .collect()
    }

    /// The first distinct words of a query: their numbers, or `None` where no document holds one.
    fn query_words(&self, query: &str, most: usize) -> Vec<Option<u32>> {
        let mut distinct: Vec<String> = Vec::new();
        each_word(query, |word| {
            if distinct.len() < most && !distinct.iter().any(|known| known == word) {
                distinct.push(word.to_owned());
            }
        });
        distinct.iter().map(|word| self.words.get(word.as_str()).copied()).collect()
    }
}

/// A word's weight by how many of the documents hold it (never negative).
fn weight_of_word(documents: u64, holders: u64) -> f64 {
    let (documents, holders) = (documents as f64, holders as f64);
    (1.0 + (documents - holders + 0.5) / (holders + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WEIGHTS: Weights = Weights { words: 64, fields: [1.0, 1.0, 0.5] };

    fn search(documents: &[[String; FIELD_COUNT]], may_see: &[bool], query: &str) -> Vec<Hit> {
        let mut lexicon = Lexicon::default();
        documents.iter().for_each(|fields| lexicon.add(fields.each_ref().map(String::as_str)));
        lexicon.search(query, &WEIGHTS, may_see)
    }

    #[test]
    fn scores_are_bm25() {
        let text = |text: &str| [text.to_owned(), String::new(), String::new()];
        let hits =
            search(&[text("alpha beta"), text("beta beta gamma delta")], &[true, true], "alpha beta omega");
        // alpha: idf ln(1 + 1.5/1.5) = ln 2; beta: ln(1 + 0.5/2.5); omega: ln(1 + 2.5/0.5); mean length 3.
        let (alpha, beta, omega) = (2f64.ln(), 1.2f64.ln(), 6f64.ln());
        let saturated = |count: f64, length: f64| count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / 3.0));
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(hits[0].score, (alpha + beta) * saturated(1.0, 2.0));
        close(hits[1].score, beta * saturated(2.0, 4.0));
        close(hits[0].coverage, (alpha + beta) / (alpha + beta + omega));
    }

    proptest! {
        /// Law 1: scores over a part of an index equal those of an index of that part, to the bit.
        #[test]
        fn what_may_not_be_seen_leaves_no_trace(
            documents in prop::collection::vec(prop::array::uniform3("[a-e]{1,2}( [a-e]{1,2}){0,6}"), 1..12),
            seed in any::<u64>(),
            query in "[a-f]{1,2}( [a-f]{1,2}){0,5}",
        ) {
            let may_see: Vec<bool> = (0..documents.len()).map(|at| seed >> (at % 64) & 1 == 1).collect();
            let part: Vec<_> =
                documents.iter().zip(&may_see).filter(|(_, may)| **may).map(|(d, _)| d.clone()).collect();
            let numbers: Vec<u32> = (0..documents.len() as u32).filter(|&n| may_see[n as usize]).collect();
            let masked = search(&documents, &may_see, &query);
            let rebuilt = search(&part, &vec![true; part.len()], &query);
            let renumbered: Vec<Hit> =
                rebuilt.into_iter().map(|hit| Hit { document: numbers[hit.document as usize], ..hit }).collect();
            prop_assert_eq!(masked, renumbered);
        }
    }
}
