//! One call through the gateway: from the journal, from the cache, or from the endpoint.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::ledger::{Hold, Tally};
use super::trial::Trial;
use super::{Estimate, Inner, cache};
use crate::llm::client::{Ask, Route, Unanswered, Wanted};
use crate::llm::journal::{Entry, digest_of};
use crate::llm::{Client, Cost, LlmError, Reply};

/// Request fields that ask nothing of the model: names of users and sessions, hints to caches and billing. They change
/// from run to run, so that the same request is recognised without them.
pub(super) const HINTS: [&str; 8] = [
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "user",
];

/// Completion tokens that are set aside for a call at most; most replies are shorter than what requests allow.
const COMPLETION_HELD: u64 = 4096;

/// Characters of a token, about.
const CHARACTERS: usize = 4;

/// Tokens by the length of a value's text.
pub(super) fn estimated(value: &Value) -> u64 {
    value.to_string().len().div_ceil(CHARACTERS) as u64
}

impl Inner {
    /// Makes the call on a task of its own: if the caller hangs up, the reply is written down all the same and answers
    /// the next equal request.
    pub async fn call(self: Arc<Self>, trial: Arc<Trial>, ask: Ask) -> Result<Reply, LlmError> {
        let step = trial.next_step();
        let open = trial.enter().await.ok_or(LlmError::Capped { reason: "the trial has ended".into() })?;
        let (taker, taken) = oneshot::channel();
        let keeper = trial.clone();
        let here = Arc::new(());
        let (caller, gateway) = (Arc::downgrade(&here), self.clone());
        let wanted: Wanted =
            Arc::new(move || caller.strong_count() > 0 && !gateway.closing.load(Ordering::Relaxed));
        tokio::spawn(async move {
            let _open = open;
            let digest = digest(&ask);
            let turn = keeper.turn(&digest);
            let _turn = turn.lock().await;
            let outcome = self.answer(&keeper, step, digest, &ask, wanted).await;
            let outcome = keeper.noted(self.client.endpoint().api, ask, outcome).await;
            if let Err(Ok(entry)) = taker.send(outcome) {
                keeper.put_back(entry);
            }
        });
        let outcome = taken.await;
        drop(here);
        match outcome {
            Ok(outcome) => outcome.map(|entry| entry.reply),
            Err(_) => Err(trial.wrong("the call was broken off".into())),
        }
    }

    async fn answer(
        &self,
        trial: &Trial,
        step: u64,
        digest: String,
        ask: &Ask,
        wanted: Wanted,
    ) -> Result<Entry, LlmError> {
        if let Some(entry) = trial.claim(&digest) {
            return Ok(Entry { replayed: true, ..entry });
        }
        let place = self.settings.cache.as_ref();
        let place = place.map(|folder| cache::place(folder, &trial.caller, step, &digest));
        if let Some(reply) = place.as_deref().map(cache::get).transpose()?.flatten() {
            let (free, entry) = (Hold { calls: 1, ..Hold::default() }, Entry::answered(digest, reply));
            self.ledger().hold(&trial.journal, &trial.caps, free)?;
            return self.enter(trial, ask, free, Entry { cached: true, ..entry }).await;
        }
        let hold = self.hold_for(ask);
        self.ledger().hold(&trial.journal, &trial.caps, hold)?;
        match self.asked(ask).ask_while(ask, wanted).await {
            Ok(reply) => {
                let estimate = estimate(ask, &reply.message, &reply.cost);
                let entry = Entry { estimate, ..Entry::answered(digest, reply) };
                let entry = self.enter(trial, ask, hold, entry).await?;
                if let Some(place) = place {
                    cache::put(&place, &entry.reply)?;
                }
                Ok(entry)
            }
            Err(Unanswered { error, cost }) => {
                let nothing =
                    Reply { message: Value::Null, finish_reason: None, response: Value::Null, cost };
                let (estimate, failure) = (estimate(ask, &Value::Null, &cost), Some(error.to_string()));
                let entry = Entry { estimate, failure, ..Entry::answered(digest, nothing) };
                self.enter(trial, ask, hold, entry).await?;
                Err(error)
            }
        }
    }

    /// Enters a call into the books and writes it down. It is spent even where the disk refuses it.
    async fn enter(&self, trial: &Trial, ask: &Ask, hold: Hold, entry: Entry) -> Result<Entry, LlmError> {
        let tally = Tally::of(&entry, self.asked(ask).endpoint().price.as_ref());
        self.ledger().settle(&trial.journal, hold, tally);
        trial.write(entry).await
    }

    fn asked(&self, ask: &Ask) -> &Client {
        self.client_for(ask.route == Route::Vectors)
    }

    fn hold_for(&self, ask: &Ask) -> Hold {
        let allowed =
            ["max_tokens", "max_completion_tokens"].iter().filter_map(|key| ask.body.get(*key)?.as_u64());
        let cost = Cost {
            prompt_tokens: prompt_tokens(ask),
            completion_tokens: match ask.route {
                Route::Vectors => 0,
                Route::Answer(_) => allowed.min().unwrap_or(COMPLETION_HELD).min(COMPLETION_HELD),
            },
            ..Cost::ZERO
        };
        let usd = self.asked(ask).endpoint().price.map_or(0.0, |price| price.usd(&cost));
        Hold { calls: 1, tokens: cost.prompt_tokens + cost.completion_tokens, usd }
    }
}

fn prompt_tokens(ask: &Ask) -> u64 {
    let parts = ["system", "messages", "tools", "input"].iter().filter_map(|key| ask.body.get(*key));
    parts.map(estimated).sum()
}

/// What the unmetered requests of a call may have used.
fn estimate(ask: &Ask, message: &Value, cost: &Cost) -> Option<Estimate> {
    let times = cost.unmetered_calls;
    let said = if message.is_null() { 0 } else { estimated(message) };
    (times > 0).then(|| Estimate { prompt_tokens: times * prompt_tokens(ask), completion_tokens: said })
}

fn digest(ask: &Ask) -> String {
    let body = ask.body.iter().filter(|(key, _)| !HINTS.contains(&key.as_str()));
    let body: serde_json::Map<_, _> = body.map(|(key, value)| (key.clone(), value.clone())).collect();
    digest_of(json!({"body": body, "beta": ask.beta}))
}
