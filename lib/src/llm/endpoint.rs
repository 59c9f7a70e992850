//! Where a model answers and how it is to be asked: a solver's settings.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::Price;

/// What stands in a text where a secret was.
const REDACTED: &str = "[redacted]";

/// Shorter keys are placeholders of local servers (`EMPTY`, `dummy`); taking them out of texts would only garble them.
const SHORTEST_SECRET: usize = 8;

/// An API key. It shows itself nowhere: not in `Debug`, not in `Display`, not when serialised; it cannot be read from
/// a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for the request's header.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key, should an endpoint echo it.
    pub(super) fn scrub(&self, text: &str) -> String {
        if self.0.len() < SHORTEST_SECRET {
            return text.to_owned();
        }
        let text = text.replace(&self.0, REDACTED);
        if !self.is_in(&text) {
            return text;
        }
        // what an endpoint masks in part
        let half = self.half();
        let beginnings = (half..self.0.len()).rev().filter_map(|length| self.0.get(..length));
        let ends = (1..=self.0.len() - half).filter_map(|start| self.0.get(start..));
        beginnings.chain(ends).fold(text, |text, part| text.replace(part, REDACTED))
    }

    /// Bytes of the beginning or the end of the key that are as good as the key.
    fn half(&self) -> usize {
        self.0.len().div_ceil(2).max(SHORTEST_SECRET)
    }

    /// Takes the key out of every text of a response, names of fields included.
    pub(super) fn scrub_all(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.is_in(text) => *text = self.scrub(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub_all(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|item| self.scrub_all(item));
                if map.keys().any(|key| self.is_in(key)) {
                    let fields = std::mem::take(map).into_iter();
                    *map = fields.map(|(key, item)| (self.scrub(&key), item)).collect();
                }
            }
            _ => {}
        }
    }

    fn is_in(&self, text: &str) -> bool {
        let half = self.half();
        let ends = [self.0.get(..half), self.0.len().checked_sub(half).and_then(|start| self.0.get(start..))];
        self.0.len() >= SHORTEST_SECRET && ends.into_iter().flatten().any(|part| text.contains(part))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

/// The wire format that an endpoint speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OpenAI chat completions, as most servers speak it: `POST <base>/chat/completions`.
    #[default]
    Openai,
    /// Anthropic messages: `POST <base>/v1/messages`.
    Anthropic,
}

impl Protocol {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A model endpoint and how it is asked, as a study file holds it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Endpoint {
    /// The wire format that it speaks.
    #[serde(default, skip_serializing_if = "Protocol::is_default")]
    pub api: Protocol,
    /// The address under which `/chat/completions` lies, which usually ends in `/v1`; for Anthropic's format the
    /// address with or without `/v1`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The *name* of the environment variable that holds the key; `None`: the endpoint takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The key, set by whoever may read the environment. Neither read from a file nor written to one.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// Sampling parameters and whatever else the endpoint takes, in its own format, merged into every request body.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// What its tokens cost; `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether the replicate's number is sent as `seed`.
    #[serde(default = "yes")]
    pub send_seed: bool,
    /// Whether replies are asked for as a stream (for endpoints that cut long silent connections).
    #[serde(default)]
    pub stream: bool,
    /// Requests under way at once, over all trials.
    #[serde(default = "default_in_flight")]
    pub max_in_flight: usize,
    /// The longest one try may take, in seconds in files.
    #[serde(default = "default_timeout", with = "seconds")]
    pub request_timeout: Duration,
    /// Tries for one call, the first included.
    #[serde(default = "default_attempts")]
    pub max_attempts: u32,
    /// The wait before the second try, in seconds in files; it doubles from try to try, with jitter.
    #[serde(default = "default_min_wait", with = "seconds")]
    pub min_wait: Duration,
    /// The longest wait between two tries, in seconds in files; it bounds `Retry-After` as well.
    #[serde(default = "default_max_wait", with = "seconds")]
    pub max_wait: Duration,
}

impl Endpoint {
    /// An endpoint with the defaults: no key, no parameters, ten tries, ten minutes for each.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            api: Protocol::default(),
            base_url: base_url.into(),
            model: model.into(),
            api_key_env: None,
            api_key: None,
            params: Map::new(),
            price: None,
            send_seed: true,
            stream: false,
            max_in_flight: default_in_flight(),
            request_timeout: default_timeout(),
            max_attempts: default_attempts(),
            min_wait: default_min_wait(),
            max_wait: default_max_wait(),
        }
    }

    /// With this key.
    #[must_use]
    pub fn with_key(mut self, key: Secret) -> Self {
        self.api_key = Some(key);
        self
    }
}

impl fmt::Debug for Endpoint {
    /// Without the parts of the address that may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("api", &self.api)
            .field("base_url", &label(&self.base_url))
            .field("model", &self.model)
            .field("api_key_env", &self.api_key_env)
            .field("api_key", &self.api_key)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

/// An address as errors and logs show it: without credentials and query.
pub(super) fn label(address: &str) -> String {
    let Ok(mut shown) = reqwest::Url::parse(address) else { return "(its address)".into() };
    // Both fail only for addresses that cannot have credentials.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}

fn yes() -> bool {
    true
}

fn default_in_flight() -> usize {
    8
}

fn default_timeout() -> Duration {
    Duration::from_secs(600)
}

fn default_attempts() -> u32 {
    10
}

fn default_min_wait() -> Duration {
    Duration::from_secs(4)
}

fn default_max_wait() -> Duration {
    Duration::from_secs(60)
}

/// A duration as a number of seconds, fractions allowed.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| D::Error::custom(format!("{seconds} is no number of seconds")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "sk-canary-0123456789";

    #[test]
    fn a_key_shows_itself_nowhere() {
        let endpoint = Endpoint::new("http://127.0.0.1:1/v1", "m").with_key(Secret::new(CANARY));
        let shown = format!(
            "{endpoint:?} {endpoint:#?} {} {}",
            endpoint.api_key.clone().unwrap(),
            serde_json::to_string(&endpoint.api_key).unwrap()
        );
        assert!(!shown.contains(CANARY), "{shown}");
        assert!(shown.contains(REDACTED));
        assert!(!toml::to_string(&endpoint).unwrap().contains(CANARY));
    }

    #[test]
    fn scrubbing_takes_out_keys_and_leaves_placeholders() {
        assert_eq!(Secret::new(CANARY).scrub(&format!("bad key {CANARY}!")), "bad key [redacted]!");
        assert_eq!(Secret::new("EMPTY").scrub("EMPTY reply"), "EMPTY reply");
        let (begin, end) = (&CANARY[..CANARY.len() - 3], &CANARY[4..]);
        assert_eq!(
            Secret::new(CANARY).scrub(&format!("bad key {begin}***, or ***{end} or {}…", &CANARY[..5])),
            format!("bad key [redacted]***, or ***[redacted] or {}…", &CANARY[..5])
        );
    }

    #[test]
    fn scrubbing_reaches_every_text_of_a_response() {
        let mut value =
            serde_json::json!({"a": [{"b": format!("x{CANARY}")}], CANARY: 1, "n": 2, "t": "fine"});
        Secret::new(CANARY).scrub_all(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"a": [{"b": "x[redacted]"}], "[redacted]": 1, "n": 2, "t": "fine"})
        );
    }

    #[test]
    fn an_address_shows_itself_without_credentials() {
        let endpoint = Endpoint::new("https://user:pass-canary@h/v1?key=query-canary", "m");
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("https://h/v1") && !shown.contains("canary"), "{shown}");
    }

    #[test]
    fn read_from_a_study_file() {
        let text = "base-url = 'http://h/v1'\nmodel = 'm'\napi-key-env = 'KEY'\nrequest-timeout = 1.5\n\
                    params = { temperature = 0.7 }\nprice = { input = 1, output = 2.5 }";
        let endpoint: Endpoint = toml::from_str(text).unwrap();
        assert_eq!(endpoint.api_key_env.as_deref(), Some("KEY"));
        assert_eq!(endpoint.request_timeout, Duration::from_millis(1500));
        assert_eq!(endpoint.params["temperature"], 0.7);
        assert_eq!(endpoint.price.unwrap().output, 2.5);
        assert!(endpoint.send_seed && endpoint.max_attempts == 10 && endpoint.api == Protocol::Openai);
        let anthropic: Endpoint = toml::from_str(&format!("api = 'anthropic'\n{text}")).unwrap();
        assert_eq!(anthropic.api, Protocol::Anthropic);
        let again: Endpoint = toml::from_str(&toml::to_string(&endpoint).unwrap()).unwrap();
        assert_eq!(again, endpoint);
    }

    #[test]
    fn keys_typos_and_absurd_times_are_refused() {
        for (line, word) in [
            ("api-key = 'sk-1'", "unknown field"),
            ("api_key = 'sk-1'", "unknown field"),
            ("temprature = 1", "unknown field"),
            ("max-wait = -1", "no number of seconds"),
            ("max-wait = nan", "no number of seconds"),
        ] {
            let text = format!("base-url = 'http://h/v1'\nmodel = 'm'\n{line}");
            let error = toml::from_str::<Endpoint>(&text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
