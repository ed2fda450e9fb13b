use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::config::{Api, ServerConfig};
use crate::error::Error;
use crate::server::Server;

/// The facts that a server reports about itself and the configured model. `None` means that it does not report the
/// fact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The server and its address, in words.
    pub server: String,
    /// True if others can read the traffic: a plain connection to another machine.
    pub readable: bool,
    /// The server's models, in its order.
    pub models: Option<Vec<String>>,
    /// Tokens that fit in the model's context.
    pub context_tokens: Option<usize>,
    /// True if the model can think.
    pub thinks: Option<bool>,
    /// The model's number of weights.
    pub parameters: Option<u64>,
    /// The model's architecture, such as `qwen3`.
    pub architecture: Option<String>,
    /// A digest of the model's content.
    pub digest: Option<String>,
}

impl About {
    /// Returns true if the server lists the model. Many servers also accept names that they do not list.
    pub fn names(&self, model: &str) -> Option<bool> {
        let models = self.models.as_ref()?;
        Some(models.iter().any(|name| same(name, model)))
    }
}

/// Asks a server about itself and the configured model.
///
/// # Errors
/// [`Error`] if the server is unreachable, rejects the key, or does not have the model.
pub async fn about(config: ServerConfig) -> Result<About, Error> {
    Arc::new(Server::new(config)?).about().await
}

/// Ollama omits the tag `latest`.
fn same(name: &str, model: &str) -> bool {
    name == model || name.strip_suffix(":latest") == Some(model)
}

#[derive(Deserialize)]
struct OllamaModels {
    models: Vec<OllamaModel>,
}

#[derive(Deserialize)]
struct OllamaModel {
    name: String,
    #[serde(default)]
    digest: Option<String>,
}

#[derive(Deserialize)]
struct OllamaShown {
    #[serde(default)]
    model_info: Option<Map<String, Value>>,
    #[serde(default)]
    capabilities: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct OpenAiModels {
    data: Vec<Value>,
}

impl Server {
    pub(crate) async fn about(&self) -> Result<About, Error> {
        let mut about = match self.api {
            Api::Ollama => self.about_ollama().await?,
            Api::OpenAi | Api::LlamaCpp => self.about_openai().await?,
        };
        about.server = self.name();
        about.readable = self.is_plain() && !self.is_here();
        Ok(about)
    }

    async fn about_ollama(&self) -> Result<About, Error> {
        let wait = self.patience.about;
        let listed: OllamaModels = self.ask(self.get("/api/tags"), wait).await?;
        let names: Vec<String> = listed.models.iter().map(|model| model.name.clone()).collect();
        let shown = self.ask(self.post("/api/show", &json!({"model": self.model})), wait).await;
        let shown: OllamaShown = shown.map_err(|error| match error {
            Error::NoModel { server, model, .. } => Error::NoModel { server, model, known: names.clone() },
            other => other,
        })?;
        let digest = listed.models.into_iter().find(|model| same(&model.name, &self.model));
        let info = shown.model_info.unwrap_or_default();
        let context =
            info.iter().find(|(key, _)| key.ends_with(".context_length")).and_then(|(_, tokens)| size(tokens));
        Ok(About {
            models: Some(names),
            context_tokens: context,
            parameters: info.get("general.parameter_count").and_then(Value::as_u64).filter(|count| *count > 0),
            architecture: info.get("general.architecture").and_then(Value::as_str).map(str::to_owned),
            thinks: shown.capabilities.map(|able| able.iter().any(|name| name == "thinking")),
            digest: digest.and_then(|model| model.digest),
            ..About::default()
        })
    }

    async fn about_openai(&self) -> Result<About, Error> {
        let wait = self.patience.about;
        let listed = match self.ask::<OpenAiModels>(self.get("/models"), wait).await {
            Ok(listed) => listed.data,
            // Not every such server has a list. The first request will show whether the model is there.
            Err(Error::Protocol { .. } | Error::Refused { .. }) => return Ok(About::default()),
            Err(error) => return Err(error),
        };
        let name = |model: &Value| model["id"].as_str().map(str::to_owned);
        let ours = listed.iter().find(|model| model["id"].as_str().is_some_and(|id| same(id, &self.model)));
        // vLLM, routers and llama-server each use a field of their own.
        let mut context = ours.and_then(|model| {
            [&model["max_model_len"], &model["context_length"], &model["meta"]["n_ctx"]].into_iter().find_map(size)
        });
        if self.api == Api::LlamaCpp
            && context.is_none()
            && let Ok(props) = self.ask::<Value>(self.get_outside("/props"), wait).await
        {
            context = size(&props["default_generation_settings"]["n_ctx"]);
        }
        let models = Some(listed.iter().filter_map(name).collect());
        // An extension of llama-server.
        let parameters = ours.and_then(|model| model["meta"]["n_params"].as_u64()).filter(|count| *count > 0);
        Ok(About { models, context_tokens: context, parameters, ..About::default() })
    }

    /// Adds the names of the known models to an error about a missing model.
    pub(crate) async fn with_known_models(&self, error: Error) -> Error {
        let Error::NoModel { server, model, known } = error else { return error };
        let known = match self.api {
            _ if !known.is_empty() => known,
            Api::Ollama => {
                let listed = self.ask::<OllamaModels>(self.get("/api/tags"), self.patience.about).await;
                listed.map_or(known, |listed| listed.models.into_iter().map(|model| model.name).collect())
            }
            Api::OpenAi | Api::LlamaCpp => {
                self.about_openai().await.ok().and_then(|about| about.models).unwrap_or(known)
            }
        };
        Error::NoModel { server, model, known }
    }
}

fn size(value: &Value) -> Option<usize> {
    value.as_u64().filter(|size| *size > 0).and_then(|size| usize::try_from(size).ok())
}
