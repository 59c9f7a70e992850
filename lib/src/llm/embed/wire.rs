//! The wire format of OpenAI-compatible `/embeddings`.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// How many vectors a request asks for. The input is a text, a list of texts, a text's tokens or a list of such.
pub(in crate::llm) fn inputs(body: &Value) -> usize {
    match &body["input"] {
        Value::Array(items) if !items.first().is_some_and(Value::is_number) => items.len(),
        _ => 1,
    }
}

/// The unit vectors of a reply in the order of the texts, or why they are none of `wanted` texts.
///
/// Each is a list of numbers or base64 of little-endian `f32`; `index` says whose it is, where it stands.
pub(in crate::llm) fn vectors(response: &Value, wanted: usize) -> Result<Vec<Vec<f32>>, String> {
    let data = response["data"].as_array().ok_or("the reply holds no list of vectors (data)")?;
    if data.len() != wanted {
        return Err(format!("the reply holds {} vectors for {wanted} texts", data.len()));
    }
    let mut placed = vec![None; wanted];
    for (number, item) in data.iter().enumerate() {
        let place = match item.get("index") {
            None | Some(Value::Null) => number,
            Some(index) => index
                .as_u64()
                .and_then(|index| usize::try_from(index).ok())
                .filter(|index| *index < wanted)
                .ok_or_else(|| format!("a vector's index is {index}, of {wanted} texts"))?,
        };
        let read = numbers(&item["embedding"]).and_then(unit);
        let vector = read.map_err(|reason| format!("the vector of text {} {reason}", place + 1))?;
        if placed[place].replace(vector).is_some() {
            return Err(format!("the reply holds two vectors of text {}", place + 1));
        }
    }
    let vectors: Vec<Vec<f32>> = placed.into_iter().flatten().collect();
    match vectors.iter().find(|vector| vector.len() != vectors[0].len()) {
        Some(odd) => Err(format!("the reply's vectors have {} and {} numbers", vectors[0].len(), odd.len())),
        None => Ok(vectors),
    }
}

fn numbers(embedding: &Value) -> Result<Vec<f32>, Unfit> {
    match embedding {
        Value::Array(items) => {
            items.iter().map(|item| item.as_f64().map(|n| n as f32).ok_or(Unfit::NoNumber)).collect()
        }
        Value::String(text) => {
            let bytes = STANDARD.decode(text).map_err(|_| Unfit::NoBase64)?;
            let (words, []) = bytes.as_chunks::<4>() else { return Err(Unfit::NoBase64) };
            Ok(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
        }
        _ => Err(Unfit::Missing),
    }
}

/// The vector of length 1 that points the same way.
pub(in crate::llm) fn unit(mut vector: Vec<f32>) -> Result<Vec<f32>, Unfit> {
    if vector.is_empty() {
        return Err(Unfit::Empty);
    }
    if vector.iter().any(|n| !n.is_finite()) {
        return Err(Unfit::NotFinite);
    }
    let length = vector.iter().map(|n| f64::from(*n).powi(2)).sum::<f64>().sqrt();
    if length == 0.0 {
        return Err(Unfit::Zero);
    }
    vector.iter_mut().for_each(|n| *n = (f64::from(*n) / length) as f32);
    Ok(vector)
}

/// Why something is no vector with a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) enum Unfit {
    Missing,
    NoNumber,
    NoBase64,
    Empty,
    NotFinite,
    Zero,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "is missing (embedding)",
            Self::NoNumber => "holds something that is no number",
            Self::NoBase64 => "is a text, but no base64 of 32-bit numbers",
            Self::Empty => "is empty",
            Self::NotFinite => "holds NaN or infinity",
            Self::Zero => "is zero and points nowhere",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn packed(numbers: &[f32]) -> String {
        STANDARD.encode(numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn both_encodings_in_any_order_become_unit_vectors() {
        let reply = json!({"data": [{"index": 1, "embedding": packed(&[0.0, -2.0])},
            {"index": 0, "embedding": [3, 4.0]}]});
        assert_eq!(vectors(&reply, 2).unwrap(), [vec![0.6, 0.8], vec![0.0, -1.0]]);
        let reply = json!({"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]});
        assert_eq!(vectors(&reply, 2).unwrap(), [vec![1.0, 0.0], vec![0.0, 1.0]], "no index: as they come");
        assert_eq!(vectors(&json!({"data": []}), 0).unwrap(), Vec::<Vec<f32>>::new());
    }

    #[test]
    fn what_is_no_vector_is_named() {
        let one = |embedding: Value| json!({"data": [{"index": 0, "embedding": embedding}]});
        for (reply, wanted, words) in [
            (json!({}), 1, "the reply holds no list of vectors (data)"),
            (one(json!([1])), 2, "the reply holds 1 vectors for 2 texts"),
            (one(json!([])), 1, "the vector of text 1 is empty"),
            (one(json!([1, null])), 1, "the vector of text 1 holds something that is no number"),
            (one(json!([1e300])), 1, "the vector of text 1 holds NaN or infinity"),
            (one(json!(packed(&[f32::NAN]))), 1, "the vector of text 1 holds NaN or infinity"),
            (one(json!("AAA")), 1, "the vector of text 1 is a text, but no base64 of 32-bit numbers"),
            (one(json!("AAAA")), 1, "the vector of text 1 is a text, but no base64 of 32-bit numbers"),
            (one(json!([0, 0])), 1, "the vector of text 1 is zero and points nowhere"),
            (json!({"data": [{}]}), 1, "the vector of text 1 is missing (embedding)"),
            (json!({"data": [{"index": 3, "embedding": [1]}]}), 1, "a vector's index is 3, of 1 texts"),
            (
                json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}),
                2,
                "the reply holds two vectors of text 1",
            ),
            (
                json!({"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}),
                2,
                "the reply's vectors have 1 and 2 numbers",
            ),
        ] {
            assert_eq!(vectors(&reply, wanted).unwrap_err(), words, "{reply}");
        }
    }

    #[test]
    fn inputs_are_counted_as_they_are_sent() {
        for (input, count) in [
            (json!("a"), 1),
            (json!(["a", "b"]), 2),
            (json!([1, 2, 3]), 1),
            (json!([[1], [2, 3]]), 2),
            (json!([]), 0),
        ] {
            assert_eq!(inputs(&json!({"input": input})), count, "{input}");
        }
    }
}
