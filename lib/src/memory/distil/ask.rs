//! A model asked for a JSON answer, which is believed only as far as it can be checked.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::llm::{Api, Cost, LlmError, Model, Request};
use crate::memory::Costed;

/// Asks a model on behalf of one system.
#[derive(Clone)]
pub(in crate::memory) struct Asker {
    model: Arc<dyn Model>,
}

/// A checked answer, or why none of the replies could be used.
pub(in crate::memory) type Asked<T> = Costed<Result<T, String>>;

/// How often a reply that cannot be used is asked for again, with the reason.
const AGAIN: usize = 1;
/// Replies longer than this are not looked at: no answer is that long.
const LONGEST: usize = 1 << 20;

impl Asker {
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model }
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        self.model.name()
    }

    /// Asks; `check` says what is wrong with an answer of the right shape, and may put it in order.
    ///
    /// # Errors
    /// Where the model gives no reply at all. A reply that cannot be used is no error: it is the inner result.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        instructions: &str,
        question: &str,
        check: impl Fn(T) -> Result<T, String>,
    ) -> Result<Asked<T>, LlmError> {
        let mut messages = vec![
            json!({"role": "system", "content": instructions}),
            json!({"role": "user", "content": question}),
        ];
        let (mut cost, mut tries) = (Cost::ZERO, 0);
        loop {
            let request = Request {
                api: Api::Chat,
                messages: messages.clone(),
                tools: Vec::new(),
                params: Map::new(),
                seed: None,
            };
            let reply = self.model.complete(&request).await?;
            cost = cost.plus(reply.cost);
            let said = reply.message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
            let cut = if reply.finish_reason.as_deref() == Some("length") {
                " (it was cut at the limit of tokens)"
            } else {
                ""
            };
            let reason = match json_in(&said)
                .and_then(|answer| T::deserialize(answer).map_err(|error| error.to_string()).and_then(&check))
            {
                Ok(answer) => return Ok(Costed { value: Ok(answer), cost }),
                Err(reason) => format!("{reason}{cut}"),
            };
            if tries == AGAIN {
                return Ok(Costed { value: Err(reason), cost });
            }
            tries += 1;
            messages.push(json!({"role": "assistant", "content": said}));
            let again =
                format!("That reply cannot be used: {reason}. Answer again with the JSON object alone.");
            messages.push(json!({"role": "user", "content": again}));
        }
    }
}

/// The JSON object of a reply: the whole of it, that of its last fence, or what stands between its outermost braces.
fn json_in(said: &str) -> Result<Value, String> {
    if said.len() > LONGEST {
        return Err(format!("it has {} bytes", said.len()));
    }
    let fenced =
        said.rsplit_once("```json").and_then(|(_, rest)| rest.split_once("```")).map(|(inside, _)| inside);
    let braced = said.find('{').zip(said.rfind('}')).and_then(|(from, to)| said.get(from..=to));
    let mut last = "it holds no JSON object".to_owned();
    for candidate in [Some(said), fenced, braced].into_iter().flatten() {
        match serde_json::from_str::<Value>(candidate.trim()) {
            Ok(value @ Value::Object(_)) => return Ok(value),
            Ok(_) => {}
            Err(error) if candidate.trim_start().starts_with('{') => {
                last = format!("its JSON is broken: {error}")
            }
            Err(_) => {}
        }
    }
    Err(last)
}

/// One line of plain text: control characters and line breaks become spaces, and what is too long is cut.
pub(in crate::memory) fn one_line(text: &str, longest: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    super::digest::shorten(&plain, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_object_of_a_reply() {
        for said in [
            r#"{"a": 1}"#,
            "Here it is:\n```json\n{\"a\": 1}\n```\nDone.",
            "<think>{not this}</think> ```json\n{\"a\": 1}\n```",
            r#"Sure! {"a": 1} Hope that helps."#,
        ] {
            assert_eq!(json_in(said), Ok(json!({"a": 1})), "{said}");
        }
        assert_eq!(json_in("I cannot do that."), Err("it holds no JSON object".into()));
        assert_eq!(json_in("[1, 2]"), Err("it holds no JSON object".into()));
        assert!(
            json_in("{\"a\": ").unwrap_err().starts_with("it holds no JSON")
                || json_in("{\"a\": ").unwrap_err().starts_with("its JSON is broken")
        );
        assert!(json_in(&"x".repeat(LONGEST + 1)).unwrap_err().contains("bytes"));
    }

    #[test]
    fn lines_are_plain() {
        assert_eq!(one_line("a\n b\u{7}\tc", 100), "a b c");
        assert_eq!(one_line(&"x".repeat(50), 20).chars().count(), 20);
    }
}
