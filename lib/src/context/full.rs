//! The policy that shows everything.

use serde_json::{Value, json};

use super::{Overflow, Policy, View, measure, wire};

/// Every message, always. When the limit is reached the run ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Full {
    /// The most prompt tokens that a call may have; `None`: only the endpoint's own limit holds.
    pub context_limit: Option<u64>,
}

impl Policy for Full {
    fn name(&self) -> &'static str {
        "full"
    }

    fn settings(&self) -> Value {
        json!({"name": self.name(), "context_limit": self.context_limit})
    }

    fn view(&self, log: &[Value], tools: &[Value]) -> Result<View, Overflow> {
        self.grow(View::default(), 0, log, tools)
    }

    fn grow(&self, before: View, seen: usize, log: &[Value], tools: &[Value]) -> Result<View, Overflow> {
        let tokens = measure(log, tools);
        match self.context_limit {
            Some(limit) if tokens > limit => Err(Overflow { policy: self.name(), tokens, limit }),
            _ => {
                let mut messages = before.messages;
                messages.extend(log.iter().skip(seen).flat_map(wire));
                Ok(View { messages, tokens })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::pin;

    #[test]
    fn shows_everything_without_local_keys() {
        let log = [
            json!({"role": "user", "content": "t"}),
            json!({"role": "assistant", "content": "a", "reasoning_content": "r", "extra": {"cost": 1}}),
            json!({"role": "exit", "content": ""}),
        ];
        let view = Full::default().view(&log, &[]).unwrap();
        assert_eq!(
            view.messages,
            [
                json!({"role": "user", "content": "t"}),
                json!({"role": "assistant", "content": "a", "reasoning_content": "r"})
            ]
        );
    }

    #[test]
    fn a_view_that_grew_is_the_view_of_the_whole() {
        let message = |n: usize| json!({"role": "user", "content": n.to_string(), "extra": {"n": n}});
        let log: Vec<Value> = (0..9).map(message).collect();
        let policy = Full::default();
        let mut view = policy.view(&log[..2], &[]).unwrap();
        for (seen, length) in [(2, 3), (3, 3), (3, 9)] {
            view = policy.grow(view, seen, &log[..length], &[]).unwrap();
            assert_eq!(view, policy.view(&log[..length], &[]).unwrap());
        }
        assert!(Full { context_limit: Some(1) }.grow(view, 9, &log, &[]).is_err());
    }

    #[test]
    fn the_memory_block_counts_against_the_limit() {
        let log = |block| [json!({"role": "user", "content": pin("Fix it.", block)})];
        let policy = Full { context_limit: Some(50) };
        assert!(policy.view(&log(None), &[]).is_ok());
        let overflow = policy.view(&log(Some(&"x".repeat(200))), &[]).unwrap_err();
        assert!(overflow.tokens > 50 && overflow.to_string().contains("limit of 50 tokens"), "{overflow}");
    }
}
