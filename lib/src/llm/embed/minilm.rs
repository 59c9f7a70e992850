//! Vectors from a small model inside this process: all-MiniLM-L6-v2, or another sentence model of BERT's shape.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use sha2::{Digest, Sha256};
use tokenizers::{Tokenizer, TruncationParams};

use super::wire::unit;
use super::{Embedded, Embedder};
use crate::llm::{Cost, LlmError};

/// Tokens of a text that the model sees, marks of begin and end included: what it was trained with. The rest is cut.
const LONGEST: usize = 256;

/// Texts that go through the model together.
const BATCH: usize = 16;

/// The files of a model's folder.
const FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

/// A model read from a folder (`scripts/fetch-minilm.sh` fetches one); cheap to clone. It runs on the processor, on a
/// thread that may block, and costs no money.
#[derive(Clone)]
pub struct MiniLm(Arc<Inner>);

struct Inner {
    model: BertModel,
    tokenizer: Tokenizer,
    pad: u32,
    name: String,
}

impl fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MiniLm").field(&self.0.name).finish()
    }
}

impl MiniLm {
    /// Reads `config.json`, `tokenizer.json` and `model.safetensors` (90 MB) of a folder.
    ///
    /// # Errors
    /// When one of them is missing or holds something else; each error names the file.
    pub fn open(folder: &Path) -> Result<Self, LlmError> {
        let mut hash = Sha256::new();
        let mut read = |file: &str| {
            let bytes = fs_err::read(folder.join(file)).map_err(|error| missing(folder, &error))?;
            hash.update(&bytes);
            Ok::<_, LlmError>(bytes)
        };
        let [config, tokenizer, weights] = FILES;
        let wrong = |file: &str, error: &dyn fmt::Display| LlmError::Vectors {
            name: folder.join(file).display().to_string(),
            reason: error.to_string(),
        };
        let shape: Config = serde_json::from_slice(&read(config)?).map_err(|error| wrong(config, &error))?;
        let heads = shape.num_attention_heads;
        if heads == 0 || !shape.hidden_size.is_multiple_of(heads) || shape.max_position_embeddings < LONGEST {
            let words = format!(
                "{heads} heads share {} numbers, over {} positions: no model that can work here",
                shape.hidden_size, shape.max_position_embeddings
            );
            return Err(wrong(config, &words));
        }
        let mut words = Tokenizer::from_bytes(read(tokenizer)?).map_err(|error| wrong(tokenizer, &error))?;
        let truncation = TruncationParams { max_length: LONGEST, ..TruncationParams::default() };
        words
            .with_padding(None)
            .with_truncation(Some(truncation))
            .map_err(|error| wrong(tokenizer, &error))?;
        let tensors = VarBuilder::from_buffered_safetensors(read(weights)?, DType::F32, &Device::Cpu);
        let model = tensors.and_then(|tensors| BertModel::load(tensors, &shape));
        let model = model.map_err(|error| wrong(weights, &error))?;
        let digest: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let pad = u32::try_from(shape.pad_token_id).unwrap_or_default();
        Ok(Self(Arc::new(Inner { model, tokenizer: words, pad, name: format!("minilm {digest}") })))
    }
}

fn missing(folder: &Path, error: &dyn fmt::Display) -> LlmError {
    LlmError::Vectors {
        name: folder.display().to_string(),
        reason: format!("{error}: the folder must hold {} (scripts/fetch-minilm.sh)", FILES.join(", ")),
    }
}

#[async_trait]
impl Embedder for MiniLm {
    async fn embed(&self, texts: &[String]) -> Result<Embedded, LlmError> {
        let (inner, texts) = (self.0.clone(), texts.to_vec());
        let wrong = |reason: String| LlmError::Vectors { name: self.0.name.clone(), reason };
        let vectors = tokio::task::spawn_blocking(move || inner.vectors(&texts))
            .await
            .map_err(|error| wrong(error.to_string()))?
            .map_err(wrong)?;
        Ok(Embedded { vectors, cost: Cost::ZERO })
    }

    fn name(&self) -> &str {
        &self.0.name
    }
}

impl Inner {
    fn vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let texts = texts.iter().map(String::as_str).collect();
        let encoded = self.tokenizer.encode_batch_fast(texts, true).map_err(|error| error.to_string())?;
        let tokens: Vec<&[u32]> = encoded.iter().map(|encoding| encoding.get_ids()).collect();
        // Texts of like length together, so that little of a batch is padding.
        let mut order: Vec<usize> = (0..tokens.len()).collect();
        order.sort_by_key(|&text| tokens[text].len());
        let mut vectors = vec![Vec::new(); tokens.len()];
        for batch in order.chunks(BATCH) {
            let batch_tokens: Vec<&[u32]> = batch.iter().map(|&text| tokens[text]).collect();
            let found = self.forward(&batch_tokens).map_err(|error| error.to_string())?;
            for (&text, vector) in batch.iter().zip(found) {
                let unit = unit(vector).map_err(|reason| format!("the vector of text {} {reason}", text + 1));
                vectors[text] = unit?;
            }
        }
        Ok(vectors)
    }

    /// The mean of the last layer over each text's own tokens.
    fn forward(&self, batch: &[&[u32]]) -> candle_core::Result<Vec<Vec<f32>>> {
        let width = batch.iter().map(|tokens| tokens.len()).max().unwrap_or(0).max(1);
        let mut ids = Vec::with_capacity(batch.len() * width);
        let mut mask = Vec::with_capacity(batch.len() * width);
        for tokens in batch {
            ids.extend_from_slice(tokens);
            ids.resize(ids.len() + width - tokens.len(), self.pad);
            mask.resize(mask.len() + tokens.len(), 1f32);
            mask.resize(mask.len() + width - tokens.len(), 0f32);
        }
        let shape = (batch.len(), width);
        let ids = Tensor::from_vec(ids, shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, shape, &Device::Cpu)?;
        let hidden = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let sums = hidden.broadcast_mul(&mask.unsqueeze(2)?)?.sum(1)?;
        sums.broadcast_div(&mask.sum_keepdim(1)?)?.to_vec2()
    }
}

#[cfg(test)]
#[path = "minilm_tests.rs"]
mod tests;
