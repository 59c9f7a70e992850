//! An Anthropic reply that arrives as server-sent events, joined into the response it stands for.
//!
//! Blocks have numbers, so that an event that is out of order or comes twice is seen and ends the try.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::llm::http::Join;
use crate::llm::sse::Events;

/// Joins the events of one stream.
#[derive(Default)]
pub struct Joiner {
    events: Events,
    message: Option<Map<String, Value>>,
    blocks: BTreeMap<u64, Block>,
    ended: bool,
    /// An error that the endpoint sent in place of the rest.
    error: Option<Value>,
}

struct Block {
    content: Value,
    /// The input of a tool's call so far.
    json: String,
    open: bool,
}

impl Join for Joiner {
    fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        let events = self.events.push(bytes)?;
        events.into_iter().try_for_each(|event| self.event(&Value::Object(event)))
    }

    fn finish(mut self) -> Result<Value, String> {
        let last = self.events.finish()?;
        last.into_iter().try_for_each(|event| self.event(&Value::Object(event)))?;
        if let Some(error) = self.error {
            return Ok(json!({ "error": error }));
        }
        let whole = self.ended && self.blocks.values().all(|block| !block.open);
        let mut message =
            self.message.filter(|_| whole).ok_or("the stream ended in the middle of the reply")?;
        message.insert("content".into(), self.blocks.into_values().map(|block| block.content).collect());
        Ok(Value::Object(message))
    }
}

impl Joiner {
    fn event(&mut self, event: &Value) -> Result<(), String> {
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "ping" {
            return Ok(());
        }
        if kind == "error" {
            self.error = Some(event["error"].clone());
            return Ok(());
        }
        if self.ended {
            return Err("the stream went on after the end of the reply".into());
        }
        match (kind, &event["message"]) {
            ("message_start", Value::Object(message)) if self.message.is_none() => {
                self.message = Some(message.clone());
                return Ok(());
            }
            ("message_start", _) => return Err("the stream's message_start comes twice or is empty".into()),
            _ => {}
        }
        let Some(message) = &mut self.message else {
            return Err(format!("the stream begins with {kind} in place of message_start"));
        };
        match kind {
            "content_block_start" => self.start(event),
            "content_block_delta" | "content_block_stop" => {
                let index = event["index"].as_u64();
                let block = index.and_then(|index| self.blocks.get_mut(&index)).filter(|block| block.open);
                let block = block.ok_or_else(|| format!("the stream's {kind} belongs to no open block"))?;
                if kind == "content_block_delta" { block.grow(&event["delta"]) } else { block.close() }
            }
            "message_delta" => {
                for (key, value) in event["delta"].as_object().into_iter().flatten() {
                    message.insert(key.clone(), value.clone());
                }
                // Usage is a running total: the last number counts.
                let usage = message.entry("usage").or_insert_with(|| json!({}));
                for (key, value) in event["usage"].as_object().into_iter().flatten() {
                    if let (Some(usage), false) = (usage.as_object_mut(), value.is_null()) {
                        usage.insert(key.clone(), value.clone());
                    }
                }
                Ok(())
            }
            "message_stop" => {
                self.ended = true;
                Ok(())
            }
            // New kinds of events may come; they carry nothing for us.
            _ => Ok(()),
        }
    }

    fn start(&mut self, event: &Value) -> Result<(), String> {
        let (index, content) = (event["index"].as_u64(), event["content_block"].clone());
        let index = index.filter(|index| *index == self.blocks.len() as u64 && content.is_object());
        let index = index.ok_or("the stream's blocks come out of order")?;
        self.blocks.insert(index, Block { content, json: String::new(), open: true });
        Ok(())
    }
}

impl Block {
    fn grow(&mut self, delta: &Value) -> Result<(), String> {
        let (key, text) = match delta["type"].as_str() {
            Some("text_delta") => ("text", &delta["text"]),
            Some("thinking_delta") => ("thinking", &delta["thinking"]),
            Some("signature_delta") => ("signature", &delta["signature"]),
            Some("input_json_delta") => {
                self.json.push_str(delta["partial_json"].as_str().unwrap_or_default());
                return Ok(());
            }
            _ => return Err(format!("the stream holds an unknown delta: {}", delta["type"])),
        };
        let known = self.content[key].as_str().unwrap_or_default();
        self.content[key] = json!(format!("{known}{}", text.as_str().unwrap_or_default()));
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        self.open = false;
        if !self.json.is_empty() {
            self.content["input"] = serde_json::from_str(&self.json)
                .map_err(|error| format!("the input of a tool's call is no JSON: {error}"))?;
        }
        Ok(())
    }
}
