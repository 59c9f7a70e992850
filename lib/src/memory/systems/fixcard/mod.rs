//! `fixcard`, the default: four or five lines a run, anchored to files and identifiers.
//!
//! The form is that of the records that VibeMemBench found to help: short, an explicit fix, an anchor (file, directory or
//! identifier), from the same repository. A model writes them where one is given, rules where none is.

use async_trait::async_trait;
use serde::Deserialize;

use crate::memory::bank::{Bank, Distil, Kept, Learned, Ranking};
use crate::memory::changes::Changes;
use crate::memory::distil::{Asker, FixCard, by_rules, digest};
use crate::memory::registry::{About, Needs, RANKED, Setting, read_ranked};
use crate::memory::{Costed, Description, Experience, LearnsFrom, MemoryError, MemorySystem, Resources};

const PROMPT: &str = include_str!("prompt.txt");

pub(in crate::memory) const ABOUT: About = About {
    name: "fixcard",
    summary: "the default: a card of four or five lines for each run that changed something (bug class, root cause, fix \
              pattern, lesson, anchors), written by a model where one is given and by rules where none is",
    needs: Needs::MayAskModel,
    learns_from: LearnsFrom::History,
    shared: RANKED,
    settings: &[
        Setting {
            name: "digest-tokens",
            value: "500 to 200000",
            default: "8000",
            what: "tokens of a run that the model reads",
        },
        Setting {
            name: "outcome",
            value: "true or false",
            default: "true",
            what: "whether cards say if the run was resolved",
        },
        Setting {
            name: "only-resolved",
            value: "true or false",
            default: "false",
            what: "whether runs known to have failed are left out",
        },
    ],
    paper: "VibeMemBench, arXiv 2609.23570: the four fields and the anchors of its verified records",
    deviations: &[
        "its distillation prompt is not published: the words are memtrial's own",
        "its records were chosen by re-running tasks with them; these are not verified",
    ],
    open,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Settings {
    digest_tokens: u64,
    outcome: bool,
    only_resolved: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { digest_tokens: 8000, outcome: true, only_resolved: false }
    }
}

/// Abstains where the best card holds less of the query than this: see `memtrial memory eval`.
const MIN_COVERAGE: f64 = 0.12;

fn open(settings: &serde_json::Value, resources: &Resources) -> Result<Box<dyn MemorySystem>, String> {
    let defaults = Ranking { min_coverage: MIN_COVERAGE, ..Ranking::default() };
    let (ranking, settings): (_, Settings) = read_ranked(settings, defaults)?;
    if !(500..=200_000).contains(&settings.digest_tokens) {
        return Err(format!("digest-tokens is {}, not 500 to 200000", settings.digest_tokens));
    }
    if settings.only_resolved && !settings.outcome {
        return Err("only-resolved needs outcome = true".into());
    }
    let model = resources.model.clone().map(Asker::new);
    Ok(Box::new(Bank::new(Cards { settings, model }, ranking, resources.embedder.clone())))
}

struct Cards {
    settings: Settings,
    model: Option<Asker>,
}

impl Cards {
    async fn by_model(
        &self,
        model: &Asker,
        run: &Experience,
    ) -> Result<Costed<Result<FixCard, String>>, MemoryError> {
        let question = digest(run, self.settings.digest_tokens);
        model.ask(PROMPT, &question, FixCard::tidy).await.map_err(|error| MemoryError::System {
            system: ABOUT.name.into(),
            call: "ingest",
            reason: error.to_string(),
        })
    }
}

#[async_trait]
impl Distil for Cards {
    fn about(&self) -> Description {
        Description {
            uses_outcome: self.settings.outcome,
            reads_events: true,
            deterministic: self.model.is_none(),
            model: self.model.as_ref().map(|model| model.name().to_owned()),
            ..Description::built_in(ABOUT.name)
        }
    }

    fn weights(&self) -> [f64; 3] {
        [1.0, 1.0, 0.5]
    }

    async fn distil(&self, run: &Experience) -> Result<Costed<Learned>, MemoryError> {
        let failed = self.settings.only_resolved && run.outcome == Some(false);
        let Some(ruled) = by_rules(run).filter(|_| !failed) else {
            return Ok(Costed::free(Learned::default()));
        };
        let (card, unusable, cost) = match &self.model {
            None => (ruled, None, crate::llm::Cost::ZERO),
            Some(model) => {
                let asked = self.by_model(model, run).await?;
                match asked.value {
                    Ok(card) => (card, None, asked.cost),
                    // Rules stand in, and the store counts it.
                    Err(reason) => (ruled, Some(reason), asked.cost),
                }
            }
        };
        let change = Changes::of(run.patch.as_deref().unwrap_or_default()).searched();
        let text = card.text();
        let searched = Some([run.issue.clone(), change, text.clone()]);
        let records = vec![Kept { searched, head: text, ..Kept::default() }];
        Ok(Costed { value: Learned { records, unusable }, cost })
    }
}

#[cfg(test)]
mod tests;
