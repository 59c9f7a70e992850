//! Texts as vectors.

mod endpoint;
#[cfg(feature = "minilm")]
mod minilm;
pub(super) mod wire;

pub use endpoint::EndpointEmbedder;
#[cfg(feature = "minilm")]
pub use minilm::MiniLm;

use async_trait::async_trait;

use super::{Cost, LlmError};

/// Vectors of texts, and what they cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// Unit vectors, in the order of the texts.
    pub vectors: Vec<Vec<f32>>,
    /// What the call cost.
    pub cost: Cost,
}

/// Something that turns texts into vectors whose dot products say how alike the texts' meanings are.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Unit vectors of `texts`, in their order.
    async fn embed(&self, texts: &[String]) -> Result<Embedded, LlmError>;

    /// Its name, as stores carry it.
    fn name(&self) -> &str;
}
