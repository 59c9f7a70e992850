//! Server-sent events, cut out of bytes as they come from the network.

use serde_json::{Map, Value};

/// A line longer than this is a fault of the endpoint.
const LONGEST_LINE: usize = 16 << 20;

/// Finds the events of one stream; each is a JSON object.
#[derive(Default)]
pub(super) struct Events {
    /// Bytes of a line that has not ended yet.
    line: Vec<u8>,
    /// The data lines of an event that has not ended yet.
    data: String,
    /// Whether the end mark of chat completions has been seen: nothing after it counts.
    done: bool,
}

impl Events {
    /// Takes the next bytes, cut anywhere; gives the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Map<String, Value>>, String> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() > LONGEST_LINE {
                return Err(format!("a line of the stream is longer than {LONGEST_LINE} bytes"));
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                events.extend(self.line(&line)?);
            }
        }
        Ok(events)
    }

    /// The event that the end of the stream completes.
    pub fn finish(&mut self) -> Result<Vec<Map<String, Value>>, String> {
        let last = std::mem::take(&mut self.line);
        let within = self.line(&last)?;
        Ok(within.into_iter().chain(self.event()?).collect())
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Map<String, Value>>, String> {
        let line = std::str::from_utf8(line).map_err(|_| "the stream holds bytes that are no UTF-8")?;
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            return self.event();
        }
        // Other fields (`event`, `id`, `retry`) and comments carry nothing for us.
        if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        }
        Ok(None)
    }

    fn event(&mut self) -> Result<Option<Map<String, Value>>, String> {
        let data = std::mem::take(&mut self.data);
        if data.is_empty() || self.done {
            return Ok(None);
        }
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(None);
        }
        let chunk: Value = serde_json::from_str(&data)
            .map_err(|error| format!("a chunk of the stream is no JSON: {error}"))?;
        match chunk {
            Value::Object(chunk) => Ok(Some(chunk)),
            _ => Err("a chunk of the stream is no object".into()),
        }
    }
}
