//! Who spent what, and what may still be spent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Estimate;
use crate::llm::journal::Entry;
use crate::llm::{Client, Cost, LlmError, Price};

/// What may be spent at most; `None`: as much as is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Caps {
    /// Answered calls.
    pub calls: Option<u64>,
    /// Prompt and completion tokens together.
    pub tokens: Option<u64>,
    /// US dollars: by the price list, or what the endpoint says it charged where that is more.
    pub usd: Option<f64>,
}

impl Caps {
    /// Whether these caps can be held before this endpoint.
    pub(super) fn check(&self, client: &Client) -> Result<(), LlmError> {
        let setup = |reason: String| LlmError::Setup { endpoint: client.label().to_owned(), reason };
        let Some(usd) = self.usd else { return Ok(()) };
        if !usd.is_finite() || usd < 0.0 {
            return Err(setup(format!("a cap of {usd} US dollars is no amount")));
        }
        if client.endpoint().price.is_none() {
            let model = &client.endpoint().model;
            return Err(setup(format!(
                "money is capped, but the price of {model} is not known: state it (--prices FILE, or the solver's price)"
            )));
        }
        Ok(())
    }
}

/// What calls cost, and what they may have cost where the endpoint said nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tally {
    /// What is known.
    pub cost: Cost,
    /// Tokens of the unmetered requests by the length of their texts: no part of `cost`.
    pub estimate: Estimate,
    /// US dollars that caps count: the list price or what was charged, whichever is more, and the list price of the
    /// estimated tokens; 0 where the price is unknown. In files `capped_usd`: what is spent stands in `cost`.
    #[serde(rename = "capped_usd")]
    pub usd: f64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { cost: Cost::ZERO, estimate: Estimate::default(), usd: 0.0 }
    }
}

impl Tally {
    /// What one line of a journal stands for.
    pub(super) fn of(entry: &Entry, price: Option<&Price>) -> Self {
        let (cost, estimate) = (entry.reply.cost, entry.estimate.unwrap_or_default());
        let list = price.map_or(0.0, |price| price.usd(&cost));
        let guessed = Cost {
            prompt_tokens: estimate.prompt_tokens,
            completion_tokens: estimate.completion_tokens,
            ..Cost::ZERO
        };
        let known = [Some(list), cost.list_usd, cost.paid_usd].into_iter().flatten().fold(0.0, f64::max);
        Self { cost, estimate, usd: known + price.map_or(0.0, |price| price.usd(&guessed)) }
    }

    /// The sum of two tallies.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (a, b) = (self.estimate, other.estimate);
        let estimate = Estimate {
            prompt_tokens: a.prompt_tokens + b.prompt_tokens,
            completion_tokens: a.completion_tokens + b.completion_tokens,
        };
        Self { cost: self.cost.plus(other.cost), estimate, usd: self.usd + other.usd }
    }

    fn hold(&self) -> Hold {
        let (cost, guessed) = (&self.cost, &self.estimate);
        let known = cost.prompt_tokens + cost.completion_tokens;
        let tokens = known + guessed.prompt_tokens + guessed.completion_tokens;
        Hold { calls: cost.calls, tokens, usd: self.usd }
    }
}

/// What a call under way may come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Hold {
    pub calls: u64,
    pub tokens: u64,
    pub usd: f64,
}

impl Hold {
    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            tokens: self.tokens + other.tokens,
            usd: self.usd + other.usd,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            usd: (self.usd - other.usd).max(0.0),
        }
    }
}

/// The books: one account a journal, so that a trial admitted twice is counted once.
#[derive(Debug)]
pub(super) struct Ledger {
    caps: Caps,
    before: Tally,
    accounts: BTreeMap<PathBuf, Account>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    tally: Tally,
    held: Hold,
}

impl Ledger {
    pub fn new(caps: Caps, spent: Cost) -> Self {
        let usd = spent.list_usd.unwrap_or(0.0).max(spent.paid_usd.unwrap_or(0.0));
        let before = Tally { cost: spent, estimate: Estimate::default(), usd };
        Self { caps, before, accounts: BTreeMap::new() }
    }

    /// Begins an account with what its journal holds.
    pub fn open(&mut self, journal: &Path, recorded: Tally) {
        self.accounts.insert(journal.to_owned(), Account { tally: recorded, held: Hold::default() });
    }

    /// What one trial spent.
    pub fn of(&self, journal: &Path) -> Tally {
        self.accounts.get(journal).map(|account| account.tally).unwrap_or_default()
    }

    /// What all spent.
    pub fn total(&self) -> Tally {
        self.accounts.values().fold(self.before, |sum, account| sum.plus(account.tally))
    }

    /// Sets aside what a call may come to, if no cap forbids it.
    pub fn hold(&mut self, journal: &Path, caps: &Caps, call: Hold) -> Result<(), LlmError> {
        let own = self.accounts.get(journal).copied().unwrap_or_default();
        within(caps, "this trial", own.tally.hold(), own.held, call)?;
        let held = self.accounts.values().fold(Hold::default(), |sum, account| sum.plus(account.held));
        within(&self.caps, "all trials together", self.total().hold(), held, call)?;
        let account = self.accounts.entry(journal.to_owned()).or_default();
        account.held = account.held.plus(call);
        Ok(())
    }

    /// The call is over: what was set aside is free again, what it came to is spent.
    pub fn settle(&mut self, journal: &Path, call: Hold, spent: Tally) {
        let account = self.accounts.entry(journal.to_owned()).or_default();
        account.held = account.held.minus(call);
        account.tally = account.tally.plus(spent);
    }
}

fn within(caps: &Caps, who: &str, spent: Hold, held: Hold, call: Hold) -> Result<(), LlmError> {
    let would = spent.plus(held).plus(call);
    let over = |what: String| Err(LlmError::Capped { reason: format!("cap reached: {who} may {what}") });
    if let Some(cap) = caps.calls.filter(|cap| would.calls > *cap) {
        return over(format!("make {cap} calls; {} are made, {} under way", spent.calls, held.calls));
    }
    if let Some(cap) = caps.tokens.filter(|cap| would.tokens > *cap) {
        return over(format!(
            "use {cap} tokens; {} are used, {} set aside for calls under way, and this call may use {}",
            spent.tokens, held.tokens, call.tokens
        ));
    }
    if let Some(cap) = caps.usd.filter(|cap| would.usd > *cap) {
        return over(format!(
            "spend ${cap}; ${:.6} are spent, ${:.6} set aside for calls under way, and this call may cost ${:.6}",
            spent.usd, held.usd, call.usd
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tokens: u64, usd: f64) -> Hold {
        Hold { calls: 1, tokens, usd }
    }

    fn spent(tokens: u64, usd: f64) -> Tally {
        let cost = Cost { calls: 1, prompt_tokens: tokens, ..Cost::ZERO };
        Tally { cost, usd, ..Tally::default() }
    }

    fn refusal(ledger: &mut Ledger, name: &str, caps: Caps, hold: Hold) -> String {
        ledger.hold(Path::new(name), &caps, hold).map_or_else(|error| error.to_string(), |()| "held".into())
    }

    #[test]
    fn calls_under_way_are_set_aside_and_freed() {
        let caps = Caps { calls: Some(2), ..Caps::default() };
        let mut ledger = Ledger::new(Caps::default(), Cost::ZERO);
        assert_eq!(refusal(&mut ledger, "a", caps, call(1, 0.0)), "held");
        assert_eq!(refusal(&mut ledger, "a", caps, call(1, 0.0)), "held");
        let words = "cap reached: this trial may make 2 calls; 0 are made, 2 under way";
        assert_eq!(refusal(&mut ledger, "a", caps, call(1, 0.0)), words);
        assert_eq!(refusal(&mut ledger, "b", caps, call(1, 0.0)), "held", "another trial's cap");
        ledger.settle(Path::new("a"), call(1, 0.0), Tally::default());
        assert_eq!(refusal(&mut ledger, "a", caps, call(1, 0.0)), "held", "a failed call is none");
    }

    #[test]
    fn tokens_and_money_count_estimates() {
        let mut ledger = Ledger::new(Caps::default(), Cost::ZERO);
        let tokens = Caps { tokens: Some(100), ..Caps::default() };
        let guess = Estimate { prompt_tokens: 30, completion_tokens: 10 };
        ledger.settle(Path::new("a"), Hold::default(), Tally { estimate: guess, ..spent(50, 0.4) });
        assert_eq!(refusal(&mut ledger, "a", tokens, call(10, 0.0)), "held");
        assert!(refusal(&mut ledger, "a", tokens, call(1, 0.0)).contains("90 are used, 10 set aside"));
        let usd = Caps { usd: Some(0.5), ..Caps::default() };
        assert_eq!(refusal(&mut ledger, "a", usd, call(0, 0.1)), "held");
        assert!(refusal(&mut ledger, "a", usd, call(0, 0.01)).contains("$0.400000 are spent"));
    }

    #[test]
    fn the_studys_caps_hold_over_all_trials_and_what_was_spent_before() {
        let before = Cost { calls: 3, ..Cost::ZERO };
        let mut ledger = Ledger::new(Caps { calls: Some(5), ..Caps::default() }, before);
        ledger.settle(Path::new("a"), Hold::default(), spent(1, 0.0));
        assert_eq!(refusal(&mut ledger, "b", Caps::default(), call(1, 0.0)), "held");
        let words = refusal(&mut ledger, "c", Caps::default(), call(1, 0.0));
        assert_eq!(words, "cap reached: all trials together may make 5 calls; 4 are made, 1 under way");
    }

    #[test]
    fn a_journal_opened_again_is_counted_once() {
        let mut ledger = Ledger::new(Caps::default(), Cost::ZERO);
        ledger.open(Path::new("a"), spent(5, 0.1));
        ledger.settle(Path::new("a"), Hold::default(), spent(2, 0.1));
        ledger.open(Path::new("a"), spent(5, 0.1).plus(spent(2, 0.1)));
        assert_eq!(ledger.total().cost.prompt_tokens, 7);
    }
}
