//! Messages without what a summary does not look at: most of a trajectory's bytes are texts that are skipped, not
//! decoded.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// Which keys of an object are kept, and what of their values; keys that are not named are skipped.
pub(super) enum Keep {
    /// The whole value.
    All,
    /// Of an object these keys; any other value whole.
    Only(&'static [(&'static str, Keep)]),
    /// A message: [`MESSAGE`], its text only where it may be the issue (the flag: none was seen yet) or a submission.
    Message {
        /// Whether the issue's text is still to come.
        issue: bool,
    },
}

/// What a summary looks at in a message.
const MESSAGE: &[(&str, Keep)] = &[
    ("role", Keep::All),
    ("object", Keep::All),
    ("type", Keep::All),
    ("content", Keep::All),
    ("output", Keep::All),
    ("usage", Keep::All),
    (
        "extra",
        Keep::Only(&[
            ("cost", Keep::All),
            ("exit_status", Keep::All),
            ("interrupt_type", Keep::All),
            ("response", Keep::Only(&[("usage", Keep::All)])),
            ("submission", Keep::All),
            ("usage", Keep::All),
        ]),
    ),
];

impl Keep {
    /// What is kept of the value under `key`, given what stands before it.
    fn below(&self, key: &str, before: &Map<String, Value>) -> Option<&'static Keep> {
        let keys = match self {
            Self::All => return Some(&Self::All),
            Self::Only(keys) => keys,
            Self::Message { issue } => {
                let text = matches!(key, "content" | "output");
                let wanted = match before.get("role").and_then(Value::as_str) {
                    Some("user") => *issue,
                    Some("exit") | None => true,
                    Some(_) => false,
                };
                if text && !wanted {
                    return None;
                }
                MESSAGE
            }
        };
        keys.iter().find(|(name, _)| *name == key).map(|(_, keep)| keep)
    }
}

impl<'de> DeserializeSeed<'de> for &Keep {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Keep::All => Value::deserialize(deserializer),
            Keep::Only(_) | Keep::Message { .. } => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for &Keep {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match self.below(&key, &kept) {
                Some(keep) => {
                    let value = map.next_value_seed(keep)?;
                    kept.insert(key, value);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(kept))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(list))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn skim(issue: bool, message: &Value) -> Value {
        let text = message.to_string();
        let mut parser = serde_json::Deserializer::from_str(&text);
        (&Keep::Message { issue }).deserialize(&mut parser).unwrap()
    }

    #[test]
    fn keeps_what_a_summary_looks_at() {
        let message = json!({"role": "assistant", "content": "long", "tool_calls": [1], "extra": {
            "cost": 0.5, "raw_output": "long", "response": {"choices": [1], "usage": {"prompt_tokens": 1}}}});
        assert_eq!(
            skim(true, &message),
            json!({"role": "assistant", "extra": {"cost": 0.5, "response": {"usage": {"prompt_tokens": 1}}}})
        );
        let user = json!({"role": "user", "content": ["parts", null, true, -1, 2, 0.5]});
        assert_eq!(skim(true, &user), user);
        assert_eq!(skim(false, &user), json!({"role": "user"}));
        let exit =
            json!({"content": "diff", "role": "exit", "extra": {"response": "odd", "submission": null}});
        assert_eq!(skim(false, &exit), exit);
    }

    #[test]
    fn what_is_no_object_is_handed_on() {
        for odd in [json!(null), json!(true), json!(-1), json!(1), json!(0.5), json!("x"), json!([1, "y"])] {
            assert_eq!(skim(true, &odd), odd);
        }
    }
}
