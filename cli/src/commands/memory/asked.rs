//! Flags that name the model that a system asks while it learns.

use std::path::Path;
use std::sync::Arc;

use memtrial::llm::{Client, Endpoint, EndpointEmbedder, Kept, Secret};
use memtrial::memory::{self, Resources};
use serde_json::{Map, Value};

use super::super::{APIS, api, param};
use crate::exit::Failure;

/// The model.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The model that distils")]
pub struct ModelArgs {
    /// Its name and address; without it systems that can work by rules do, the others are refused
    #[arg(long, value_name = "MODEL@URL", value_parser = model)]
    pub model: Option<(String, String)>,
    /// What its endpoint speaks: OpenAI chat completions or Anthropic messages
    #[arg(long, value_name = "API", default_value = "openai", value_parser = APIS)]
    pub api: String,
    /// The environment variable that holds the endpoint's key
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// A parameter of every request, as KEY=JSON (temperature=0.7)
    #[arg(long, value_name = "KEY=JSON", value_parser = param)]
    pub param: Vec<(String, Value)>,
}

fn model(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('@').filter(|(model, _)| !model.is_empty());
    parts
        .map(|(model, url)| (model.to_owned(), url.to_owned()))
        .ok_or_else(|| "expected MODEL@URL".to_owned())
}

/// A plugged-in system as a file describes it: `program` or `mcp`, and its settings.
pub fn plugged(path: &Path) -> Result<(String, Map<String, Value>), Failure> {
    let text = fs_err::read_to_string(path).map_err(Failure::input)?;
    let wrong = |reason: String| Failure::input(anyhow::anyhow!("{}: {reason}", path.display()));
    let mut table = memory::plugged::read_settings(&text).map_err(wrong)?;
    let kind = table.remove("memory").and_then(|kind| Some(kind.as_str()?.to_owned()));
    let kind = kind.unwrap_or_else(|| "program".to_owned());
    if !["program", "mcp"].contains(&kind.as_str()) {
        return Err(wrong(format!("memory = {kind:?}: it is program or mcp")));
    }
    // As in a study's condition they may lie in a table of their own.
    if let Some(Value::Object(inner)) = table.remove("settings") {
        table = inner;
    }
    Ok((kind, table))
}

/// What embeds.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Search by meaning")]
pub struct EmbedArgs {
    /// An OpenAI-compatible endpoint with embeddings; without it records are found by words alone
    #[arg(long, value_name = "MODEL@URL", value_parser = model)]
    pub embedder: Option<(String, String)>,
    /// The environment variable that holds the embedder's key
    #[arg(long, value_name = "NAME", requires = "embedder")]
    pub embedder_key_env: Option<String>,
}

impl EmbedArgs {
    /// Adds the embedder to what a system may use.
    pub fn add(&self, resources: &mut Resources) -> Result<(), Failure> {
        let Some((model, url)) = &self.embedder else { return Ok(()) };
        let mut endpoint = Endpoint::new(url, model);
        if let Some(name) = &self.embedder_key_env {
            endpoint = endpoint.with_key(key(name)?);
        }
        resources.embedder = Some(Arc::new(EndpointEmbedder::new(endpoint).map_err(Failure::input)?));
        Ok(())
    }

    /// An index is asked with the embedder that it was built with.
    pub fn resources(&self) -> Result<Resources, Failure> {
        let mut resources = Resources::default();
        self.add(&mut resources)?;
        Ok(resources)
    }
}

fn key(name: &str) -> Result<Secret, Failure> {
    let missing = |_| Failure::environment(anyhow::anyhow!("the environment variable {name} is not set"));
    std::env::var(name).map(Secret::new).map_err(missing)
}

impl ModelArgs {
    /// What the flags give a system. Replies are kept below `folder`, so that none is paid for twice.
    pub fn resources(&self, folder: &Path) -> Result<Resources, Failure> {
        let Some((model, url)) = &self.model else { return Ok(Resources::default()) };
        let mut endpoint = Endpoint::new(url, model);
        endpoint.api = api(&self.api);
        endpoint.params = self.param.iter().cloned().collect();
        if let Some(name) = &self.api_key_env {
            endpoint = endpoint.with_key(key(name)?);
        }
        let client = Client::new(endpoint).map_err(Failure::input)?;
        let model = Arc::new(Kept::new(client, &folder.join("replies")));
        Ok(Resources { model: Some(model), ..Resources::default() })
    }
}
