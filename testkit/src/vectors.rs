//! Embeddings without a model: the words of a text, hashed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Numbers of a vector where the request does not say.
pub const DIMENSION: usize = 64;

/// Counts of the text's words (letters and digits, in lower case), each at the place and with the sign that its hash
/// gives. Texts with the same words have the same vector; a text without words points along the first axis.
pub fn vector(text: &str, dimension: usize) -> Vec<f32> {
    let mut counts = vec![0.0; dimension];
    let lower = text.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = fnv(word);
        counts[(hash >> 1) as usize % dimension] += if hash & 1 == 0 { 1.0 } else { -1.0 };
    }
    if counts.iter().all(|count| *count == 0.0) {
        counts[0] = 1.0;
    }
    counts
}

/// FNV-1a: the same on every machine and in every version.
fn fnv(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The response to a request for embeddings. Tests that want a faulty one change this.
pub fn reply(request: &Value) -> Value {
    let texts = texts(request);
    let dimension = request["dimensions"].as_u64().map_or(DIMENSION, |n| n.clamp(1, 4096) as usize);
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let vector = vector(text, dimension);
            let embedding = if request["encoding_format"] == "base64" {
                json!(STANDARD.encode(vector.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>()))
            } else {
                json!(vector)
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let tokens: usize = texts.iter().map(|text| text.chars().count().div_ceil(4)).sum();
    json!({"object": "list", "data": data, "model": request["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
}

fn texts(request: &Value) -> Vec<&str> {
    match &request["input"] {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        input => input.as_str().into_iter().collect(),
    }
}

/// What is wrong with a request: what real endpoints refuse.
pub(crate) fn violations(request: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if request["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model is named".to_owned());
    }
    let items = match &request["input"] {
        Value::Array(items) => items.as_slice(),
        input => std::slice::from_ref(input),
    };
    if items.is_empty() || items.len() > 2048 {
        found.push(format!("input has {} texts, not 1 to 2048", items.len()));
    }
    if items.iter().any(|item| item.as_str().is_none_or(str::is_empty)) {
        found.push("input holds what is no text, or an empty one".to_owned());
    }
    if !matches!(request["encoding_format"].as_str(), None | Some("float" | "base64")) {
        found.push("encoding_format is neither float nor base64".to_owned());
    }
    for key in ["stream", "seed", "messages"].iter().filter(|key| request.get(**key).is_some()) {
        found.push(format!("{key} has no meaning here"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_count_words_and_are_the_same_everywhere() {
        assert_eq!(vector("Fix the parser", 8), vector("parser: the FIX", 8));
        assert_ne!(vector("fix the parser", 64), vector("fix the lexer", 64));
        assert_eq!(vector("…", 3), [1.0, 0.0, 0.0]);
        // FNV-1a of "a" is af63dc4c8601ec8c: even, so +1, and its half is 6 modulo 8.
        assert_eq!(vector("a a", 8), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
    }
}
