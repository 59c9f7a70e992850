//! What a call cost: the usage an endpoint reports, the price list, and money where both are known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cost, LlmError};

/// No call uses more tokens; a larger count is a fault of the endpoint and must not enter a sum.
const MOST_TOKENS: u64 = 1_000_000_000;

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Prompt tokens.
    pub input: f64,
    /// Prompt tokens that the endpoint's cache held; `None`: they cost as much as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Prompt tokens that the endpoint puts into its cache; `None`: they cost as much as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Completion tokens, reasoning included.
    pub output: f64,
}

impl Price {
    /// What the counted tokens cost, in US dollars, where none of them was put into the endpoint's cache.
    pub fn usd(&self, cost: &Cost) -> f64 {
        self.usd_writing(cost, 0)
    }

    /// The same, where so many of the prompt tokens were put into the endpoint's cache.
    fn usd_writing(&self, cost: &Cost, written: u64) -> f64 {
        let cached = cost.cached_tokens.min(cost.prompt_tokens);
        let written = written.min(cost.prompt_tokens - cached);
        let fresh = cost.prompt_tokens - cached - written;
        (fresh as f64 * self.input
            + cached as f64 * self.cached_input.unwrap_or(self.input)
            + written as f64 * self.cache_write.unwrap_or(self.input)
            + cost.completion_tokens as f64 * self.output)
            / 1e6
    }

    /// Whether every price is a number that is not negative.
    pub fn is_sane(&self) -> bool {
        [Some(self.input), self.cached_input, self.cache_write, Some(self.output)]
            .into_iter()
            .flatten()
            .all(|usd| usd.is_finite() && usd >= 0.0)
    }
}

/// A price list: model → price, from a TOML or JSON file such as
///
/// ```toml
/// ["example-model"]
/// input = 0.25
/// cached-input = 0.025
/// output = 2.0
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// Reads a list; `origin` names it in errors. A text that starts with `{` is JSON, any other TOML.
    pub fn parse(text: &str, origin: &str) -> Result<Self, LlmError> {
        let wrong = |reason: String| LlmError::Prices { path: origin.to_owned(), reason };
        let prices: Self = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?
        } else {
            toml::from_str(text).map_err(|error| wrong(error.to_string()))?
        };
        match prices.0.iter().find(|(_, price)| !price.is_sane()) {
            Some((model, _)) => Err(wrong(format!("the price of {model} is negative or no number"))),
            None => Ok(prices),
        }
    }

    /// The price of a model by its exact name.
    pub fn get(&self, model: &str) -> Option<Price> {
        self.0.get(model).copied()
    }
}

/// Tokens that a response reports; `None`: not, or absurdly.
struct Usage {
    prompt: Option<u64>,
    cached: u64,
    written: u64,
    completion: Option<u64>,
}

impl Usage {
    /// Chat completions count cached tokens among the prompt's.
    fn of_chat(usage: &Value) -> Self {
        let cached = count(&usage["prompt_tokens_details"]["cached_tokens"])
            .or_else(|| count(&usage["prompt_cache_hit_tokens"]));
        Self {
            prompt: count(&usage["prompt_tokens"]),
            cached: cached.unwrap_or(0),
            written: 0,
            completion: count(&usage["completion_tokens"]),
        }
    }

    /// Vectors of texts: nothing is completed.
    fn of_vectors(usage: &Value) -> Self {
        let prompt = count(&usage["prompt_tokens"]).or_else(|| count(&usage["total_tokens"]));
        Self { prompt, cached: 0, written: 0, completion: Some(0) }
    }

    /// The Responses API counts as chat completions do, in other words.
    fn of_responses(usage: &Value) -> Self {
        Self {
            prompt: count(&usage["input_tokens"]),
            cached: count(&usage["input_tokens_details"]["cached_tokens"]).unwrap_or(0),
            written: 0,
            completion: count(&usage["output_tokens"]),
        }
    }

    /// Anthropic counts what its cache held or took beside the input.
    fn of_messages(usage: &Value) -> Self {
        let beside = |key: &str| if usage[key].is_null() { Some(0) } else { count(&usage[key]) };
        let (cached, written) = (beside("cache_read_input_tokens"), beside("cache_creation_input_tokens"));
        let prompt = count(&usage["input_tokens"]).zip(cached).zip(written).map(|((a, b), c)| a + b + c);
        Self {
            prompt,
            cached: cached.unwrap_or(0),
            written: written.unwrap_or(0),
            completion: count(&usage["output_tokens"]),
        }
    }
}

/// What one response reports about itself. Whatever is missing or absurd makes the call unmetered: what is known is
/// counted, the money is not.
pub(super) fn cost_of(response: &Value, price: Option<&Price>) -> Cost {
    let reported = &response["usage"];
    let usage = if is_vectors(response) {
        Usage::of_vectors(reported)
    } else if reported["input_tokens_details"].is_object() {
        Usage::of_responses(reported)
    } else if reported.get("input_tokens").is_some() {
        Usage::of_messages(reported)
    } else {
        Usage::of_chat(reported)
    };
    let prompt = usage.prompt.unwrap_or(0);
    let mut cost = Cost {
        calls: 1,
        prompt_tokens: prompt,
        cached_tokens: usage.cached.min(prompt),
        completion_tokens: usage.completion.unwrap_or(0),
        unmetered_calls: u64::from(usage.prompt.is_none() || usage.completion.is_none()),
        seconds: 0.0,
        list_usd: None,
        paid_usd: reported["cost"].as_f64().filter(|usd| usd.is_finite() && *usd >= 0.0),
    };
    if cost.unmetered_calls == 0 {
        cost.list_usd = price.map(|price| price.usd_writing(&cost, usage.written));
    }
    cost
}

/// Whether a response holds vectors of texts: no other format has a list `data`.
pub(super) fn is_vectors(response: &Value) -> bool {
    response["data"].is_array()
}

/// A token count, where the value is one. Whole numbers written as `12.0` are.
fn count(value: &Value) -> Option<u64> {
    let whole = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..=MOST_TOKENS as f64).contains(n));
    value.as_u64().or(whole.map(|n| n as u64)).filter(|n| *n <= MOST_TOKENS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const PRICE: Price = Price { input: 1.0, cached_input: Some(0.1), cache_write: Some(1.25), output: 4.0 };

    #[test]
    fn cached_tokens_have_their_own_price() {
        let response = json!({"usage": {"prompt_tokens": 900, "completion_tokens": 41, "total_tokens": 941,
            "prompt_tokens_details": {"cached_tokens": 512}, "cost": 0.0004}});
        let cost = cost_of(&response, Some(&PRICE));
        assert_eq!((cost.prompt_tokens, cost.cached_tokens, cost.completion_tokens), (900, 512, 41));
        // (388 × 1 + 512 × 0.1 + 41 × 4) / 10⁶
        assert!((cost.list_usd.unwrap() - 0.000_603_2).abs() < 1e-12);
        assert_eq!(cost.paid_usd, Some(0.0004));
        assert_eq!(cost.unmetered_calls, 0);
    }

    #[test]
    fn anthropic_counts_its_cache_beside_the_input_and_writing_has_a_price() {
        let usage = json!({"input_tokens": 12, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 800,
            "output_tokens": 40});
        let cost = cost_of(&json!({ "usage": usage }), Some(&PRICE));
        assert_eq!((cost.prompt_tokens, cost.cached_tokens, cost.completion_tokens), (912, 800, 40));
        // (12 × 1 + 800 × 0.1 + 100 × 1.25 + 40 × 4) / 10⁶
        assert!((cost.list_usd.unwrap() - 0.000_377).abs() < 1e-12);
        for (key, absurd) in
            [("cache_read_input_tokens", json!(-1)), ("cache_creation_input_tokens", json!("7"))]
        {
            let mut usage = usage.clone();
            usage[key] = absurd;
            let cost = cost_of(&json!({ "usage": usage }), Some(&PRICE));
            assert_eq!((cost.unmetered_calls, cost.list_usd), (1, None), "{key}");
        }
        let plain =
            json!({"usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": null}});
        assert_eq!(cost_of(&plain, None).prompt_tokens, 3);
    }

    #[test]
    fn other_spellings() {
        let deepseek = json!({"usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4,
            "prompt_cache_miss_tokens": 6, "prompt_tokens_details": null}});
        assert_eq!(cost_of(&deepseek, None).cached_tokens, 4);
        let responses = json!({"usage": {"input_tokens": 10, "output_tokens": 2, "input_tokens_details":
            {"cached_tokens": 3}}});
        let cost = cost_of(&responses, None);
        assert_eq!((cost.prompt_tokens, cost.completion_tokens, cost.cached_tokens), (10, 2, 3));
        let floats = json!({"usage": {"prompt_tokens": 10.0, "completion_tokens": 2.0}});
        assert_eq!(cost_of(&floats, None).prompt_tokens, 10);
        let more_cached_than_sent = json!({"usage": {"prompt_tokens": 10, "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 99}}});
        assert_eq!(cost_of(&more_cached_than_sent, None).cached_tokens, 10);
    }

    #[test]
    fn an_unknown_price_is_unknown() {
        let response = json!({"usage": {"prompt_tokens": 1, "completion_tokens": 1}});
        assert_eq!(cost_of(&response, None).list_usd, None);
        assert_eq!(cost_of(&response, None).paid_usd, None);
    }

    #[test]
    fn absurd_usage_is_unmetered_never_free() {
        for usage in [
            json!(null),
            json!("many"),
            json!([]),
            json!({}),
            json!({"prompt_tokens": null, "completion_tokens": null}),
            json!({"prompt_tokens": -5, "completion_tokens": 3}),
            json!({"prompt_tokens": "12", "completion_tokens": "3"}),
            json!({"prompt_tokens": 12}),
            json!({"prompt_tokens": 1.5, "completion_tokens": 3}),
            json!({"prompt_tokens": u64::MAX, "completion_tokens": 3}),
            json!({"prompt_tokens": 1e300, "completion_tokens": 3}),
        ] {
            let cost = cost_of(&json!({"usage": usage}), Some(&PRICE));
            assert_eq!((cost.calls, cost.unmetered_calls, cost.list_usd), (1, 1, None), "{usage}");
        }
        assert_eq!(cost_of(&json!({}), Some(&PRICE)).unmetered_calls, 1);
        let negative = json!({"usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": -1}});
        assert_eq!(cost_of(&negative, None).paid_usd, None);
    }

    proptest! {
        #[test]
        fn money_is_never_negative_and_grows_with_tokens(p in 0u64..1_000_000, c in 0u64..2_000_000, o in 0u64..100_000) {
            let cost = |o| Cost { prompt_tokens: p, cached_tokens: c, completion_tokens: o, ..Cost::ZERO };
            prop_assert!(PRICE.usd(&cost(o)) >= 0.0);
            prop_assert!(PRICE.usd(&cost(o + 1)) > PRICE.usd(&cost(o)));
            prop_assert!(PRICE.usd(&cost(o)) <= (p as f64 + 4.0 * o as f64) / 1e6 + 1e-9);
        }
    }

    #[test]
    fn a_list_is_toml_or_json() {
        let toml = Prices::parse(
            "['a/b-1.0']\ninput = 1\ncached-input = 0.1\ncache-write = 1.25\noutput = 4\n",
            "p.toml",
        )
        .unwrap();
        let json = Prices::parse(
            r#"{"a/b-1.0": {"input": 1, "cached-input": 0.1, "cache-write": 1.25, "output": 4}}"#,
            "p.json",
        )
        .unwrap();
        assert_eq!(toml, json);
        assert_eq!(toml.get("a/b-1.0"), Some(PRICE));
        assert_eq!(toml.get("b"), None);
    }

    #[test]
    fn a_bad_list_is_named() {
        for text in [
            "['m']\ninput = -1\noutput = 1",
            "['m']\ninput = nan\noutput = 1",
            "{\"m\": {\"input\": 1}}",
            "x",
        ] {
            let error = Prices::parse(text, "prices.toml").unwrap_err().to_string();
            assert!(error.starts_with("price list prices.toml: "), "{error}");
        }
    }
}
