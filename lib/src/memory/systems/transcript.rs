//! `transcript`: pieces of the raw transcripts, found by words: the naive baseline.

use async_trait::async_trait;
use serde::Deserialize;

use crate::memory::bank::{Bank, Distil, Kept, Learned, Ranking};
use crate::memory::distil::chunks;
use crate::memory::registry::{About, Needs, RANKED, Setting, read_ranked};
use crate::memory::{Costed, Description, Experience, LearnsFrom, MemoryError, MemorySystem, Resources};

pub(in crate::memory) const ABOUT: About = About {
    name: "transcript",
    summary: "pieces of the raw transcripts (issue, thoughts, commands, outputs, patch): the naive baseline",
    needs: Needs::Nothing,
    learns_from: LearnsFrom::History,
    shared: RANKED,
    settings: &[Setting {
        name: "chunk-tokens",
        value: "16 to 65536",
        default: "400",
        what: "tokens of a piece, at most",
    }],
    paper: "",
    deviations: &[],
    open,
};

/// The pieces are many and their words common: the first words of an issue say what it is about.
const QUERY_TERMS: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Transcript {
    chunk_tokens: u64,
}

impl Default for Transcript {
    fn default() -> Self {
        Self { chunk_tokens: 400 }
    }
}

fn open(settings: &serde_json::Value, resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let (ranking, transcript): (_, Transcript) =
        read_ranked(settings, Ranking { query_terms: QUERY_TERMS, ..Ranking::default() })?;
    if !(16..=65536).contains(&transcript.chunk_tokens) {
        return Err(format!("chunk-tokens is {}, not 16 to 65536", transcript.chunk_tokens));
    }
    Ok(Box::new(Bank::new(transcript, ranking, resources.embedder.clone())))
}

#[async_trait]
impl Distil for Transcript {
    fn about(&self) -> Description {
        Description { reads_events: true, ..Description::built_in(ABOUT.name) }
    }

    async fn distil(&self, run: &Experience) -> Result<Costed<Learned>, MemoryError> {
        let chunks = chunks(run, self.chunk_tokens).into_iter();
        let records = chunks.map(|body| Kept { body, ..Kept::default() }).collect();
        Ok(Costed::free(Learned { records, unusable: None }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::conformance;
    use crate::memory::tests::{ask, run, sources};
    use crate::trajectory::Event;

    #[tokio::test]
    async fn conforms() {
        let open = || Ok(open(&json!({}), &Resources::default()).unwrap());
        assert_eq!(conformance::check(&open, true).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn finds_a_step() {
        let mut one = run(1, "Reader fails", "x");
        one.events = vec![
            Event::command("grep quarantine src"),
            Event::Observation { text: "nothing".into(), exit_code: None },
        ];
        let system = open(&json!({"chunk-tokens": 16}), &Resources::default()).unwrap();
        let answer = ask(system, &[one, run(2, "Writer fails", "y")], "quarantine", 3).await;
        assert_eq!(sources(&answer), [1]);
    }
}
