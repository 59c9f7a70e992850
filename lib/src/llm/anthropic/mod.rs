//! Anthropic messages, from and to the wire format of chat completions.
//!
//! Thinking comes back as `thinking_blocks` beside `reasoning_content`, and is sent again unchanged and before all else
//! of its turn, as the endpoint demands. Parts of a prompt that come again with the next call are marked for its cache.

mod reply;
mod request;
mod stream;

pub(super) use reply::{finish_reason, message};
pub(super) use request::{input, request};
pub(super) use stream::Joiner;

#[cfg(test)]
mod tests;
