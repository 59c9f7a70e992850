//! A model whose replies are kept by what was asked, for work that is done in pieces and must pay for none of them twice.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::json;

use super::journal::digest_of;
use super::{LlmError, Model, Reply, Request};

/// Writes each reply into a folder before it is used, under the digest of its request; asked the same again, it answers
/// from there, at the cost that the reply had.
pub struct Kept<M> {
    model: M,
    folder: PathBuf,
}

impl<M: Model> Kept<M> {
    /// Keeps replies in `folder`, which is made when the first one comes.
    pub fn new(model: M, folder: &Path) -> Self {
        Self { model, folder: folder.to_owned() }
    }
}

#[async_trait]
impl<M: Model> Model for Kept<M> {
    async fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        let name = digest_of(json!({"model": self.model.name(), "request": request}));
        let place = self.folder.join(format!("{name}.json"));
        if let Some(reply) = read(&place)? {
            return Ok(reply);
        }
        let reply = self.model.complete(request).await?;
        write(&place, &reply)?;
        Ok(reply)
    }

    fn name(&self) -> &str {
        self.model.name()
    }
}

/// The reply kept at a place; `None`: there is none.
pub(super) fn read(place: &Path) -> Result<Option<Reply>, LlmError> {
    let text = match fs_err::read_to_string(place) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(place, error.to_string())),
    };
    let reply = serde_json::from_str(&text);
    reply.map(Some).map_err(|error| wrong(place, format!("{error}: remove the file to ask again")))
}

/// Keeps a reply, whole or not at all.
pub(super) fn write(place: &Path, reply: &Reply) -> Result<(), LlmError> {
    let io = |error: std::io::Error| wrong(place, error.to_string());
    let folder = place.parent().unwrap_or(Path::new(""));
    fs_err::create_dir_all(folder).map_err(io)?;
    let file = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    serde_json::to_writer(&file, reply).map_err(|error| wrong(place, error.to_string()))?;
    file.persist(place).map_err(|error| io(error.error))?;
    Ok(())
}

fn wrong(place: &Path, reason: String) -> LlmError {
    LlmError::Cache { path: place.display().to_string(), reason }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::{Map, Value};

    use super::*;
    use crate::llm::{Api, Cost};

    struct Counting(AtomicU64);

    #[async_trait]
    impl Model for &Counting {
        async fn complete(&self, _request: &Request) -> Result<Reply, LlmError> {
            let n = self.0.fetch_add(1, Ordering::Relaxed);
            let cost = Cost { calls: 1, prompt_tokens: 5, ..Cost::ZERO };
            Ok(Reply { message: json!({"content": n}), finish_reason: None, response: Value::Null, cost })
        }

        fn name(&self) -> &str {
            "counting"
        }
    }

    #[tokio::test]
    async fn pays_for_a_reply_once_and_counts_it_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let counting = Counting(AtomicU64::new(0));
        let request = |text: &str| Request {
            api: Api::Chat,
            messages: vec![json!({"role": "user", "content": text})],
            tools: Vec::new(),
            params: Map::new(),
            seed: None,
        };
        let place = folder.path().join("replies");
        let first = Kept::new(&counting, &place).complete(&request("a")).await.unwrap();
        let again = Kept::new(&counting, &place).complete(&request("a")).await.unwrap();
        assert_eq!(first, again);
        Kept::new(&counting, &place).complete(&request("b")).await.unwrap();
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
        let file = fs_err::read_dir(&place).unwrap().next().unwrap().unwrap().path();
        fs_err::write(&file, "{").unwrap();
        for text in ["a", "b"] {
            if let Err(error) = Kept::new(&counting, &place).complete(&request(text)).await {
                assert!(error.to_string().contains("remove the file"), "{error}");
            }
        }
    }
}
