use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azera_model_api::{Error as ModelError, Reranker, RerankerInfo};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::config::{Api, ApiKey, RetryPolicy, ServerConfig};
use crate::error::Error;
use crate::server::Server;
use crate::tokens::cut_bytes;

/// The most requests at the same time. More are rejected as busy, so that nobody waits for the opinion of a slow server.
const REQUESTS: usize = 8;

/// The most bytes that are sent of a question, and of each text.
const MAX_TEXT_BYTES: usize = 4_096;

/// What [`RemoteReranker::try_out`] asks, and the texts that it sends.
const TEST_QUESTION: &str = "What sleeps on the sofa?";
const TEST_TEXTS: [&str; 2] = ["The grey cat sleeps on the sofa.", "The train to the coast leaves at nine."];

/// The interface of a server that reranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RerankApi {
    /// llama.cpp's `llama-server` with a reranking model.
    LlamaCpp,
    /// Hugging Face's Text Embeddings Inference.
    Tei,
    /// Jina's interface, which vLLM, Infinity and others have, too.
    Jina,
    /// Cohere's second interface.
    Cohere,
}

impl RerankApi {
    fn title(self) -> &'static str {
        match self {
            Self::LlamaCpp => "llama-server",
            Self::Tei => "Text Embeddings Inference",
            Self::Jina => "the rerank server",
            Self::Cohere => "the rerank server of Cohere's kind",
        }
    }

    /// Returns the path in front of `/rerank` where the address names none.
    fn usual_path(self) -> &'static str {
        match self {
            Self::Tei => "/",
            Self::LlamaCpp | Self::Jina => "/v1",
            Self::Cohere => "/v2",
        }
    }
}

/// A server that reranks, and how much it counts.
#[derive(Debug, Clone)]
pub struct RemoteRerankerConfig {
    /// The interface.
    pub api: RerankApi,
    /// The address. Without a path, the usual one of the interface is added.
    pub url: String,
    /// The model's name on the server. A server with one model needs none.
    pub model: Option<String>,
    /// The key, which is sent as a bearer token.
    pub key: Option<ApiKey>,
    /// The configuration section of these values, for messages that say what to change.
    pub section: String,
    /// The most texts of one request.
    pub candidates: usize,
    /// The share of the server's opinion in the order, 0 to 1.
    pub weight: f32,
    /// The longest wait for an answer, connection included.
    pub wait: Duration,
    /// Timeouts of questions about the server, and the limits of its breaker. Nothing is sent again.
    pub patience: RetryPolicy,
}

/// A model on a server that reranks.
///
/// A request gets one try, and an answer counts only if it has exactly one finite score for each text. An answer that
/// comes too late is dropped, and counts as a failure of the server.
pub struct RemoteReranker {
    info: RerankerInfo,
    api: RerankApi,
    model: Option<String>,
    server: Server,
    room: Semaphore,
}

impl std::fmt::Debug for RemoteReranker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteReranker").field("info", &self.info).finish_non_exhaustive()
    }
}

/// A score in an answer: of `index` in the request.
#[derive(Deserialize)]
struct Scored {
    index: usize,
    #[serde(alias = "relevance_score")]
    score: f64,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Scored>,
}

impl RemoteReranker {
    /// Creates a client. Sends nothing.
    ///
    /// # Errors
    /// Only [`Error::Config`].
    pub fn new(config: RemoteRerankerConfig) -> Result<Arc<Self>, Error> {
        let RemoteRerankerConfig { api, url, model, key, section, candidates, weight, wait, patience } = config;
        let server =
            ServerConfig { api: Api::OpenAi, url, model: model.clone().unwrap_or_default(), key, section, patience };
        let server = Server::titled(server, api.title(), api.usual_path())?;
        let info = RerankerInfo { name: server.name(), candidates, weight, wait };
        Ok(Arc::new(Self { info, api, model, server, room: Semaphore::new(REQUESTS) }))
    }

    /// Returns true if others can read the traffic: a plain connection to another machine.
    pub fn is_readable(&self) -> bool {
        self.server.is_plain() && !self.server.is_here()
    }

    /// Sends as many fixed texts as recall would. Returns how long the second of two answers took, when the connection
    /// stands.
    ///
    /// # Errors
    /// [`Error`] if the server is unreachable, rejects the key or the number of texts, or sends no usable answer within
    /// [`RetryPolicy::about`].
    pub async fn try_out(&self) -> Result<Duration, Error> {
        let texts: Vec<String> =
            TEST_TEXTS.iter().cycle().take(self.info.candidates).map(|text| (*text).to_owned()).collect();
        let wait = self.server.patience.about;
        self.ask(TEST_QUESTION, &texts, wait).await?;
        let begun = Instant::now();
        self.ask(TEST_QUESTION, &texts, wait).await?;
        Ok(begun.elapsed())
    }

    /// Sends one request and returns its scores.
    async fn ask(&self, question: &str, texts: &[String], wait: Duration) -> Result<Vec<f32>, Error> {
        let request = self.server.post("/rerank", &self.body(question, texts));
        let answered = async {
            match self.api {
                RerankApi::Tei => self.server.ask::<Vec<Scored>>(request, wait).await,
                _ => self.server.ask::<Results>(request, wait).await.map(|answer| answer.results),
            }
        };
        // The limit holds for the head and the body of an answer together.
        let scored = timeout(wait, answered).await.map_err(|_| self.server.silent(wait))??;
        self.in_order(&scored, texts.len())
    }

    fn body(&self, question: &str, texts: &[String]) -> Value {
        let question = cut_bytes(question, MAX_TEXT_BYTES);
        let documents: Vec<&str> = texts.iter().map(|text| cut_bytes(text, MAX_TEXT_BYTES)).collect();
        let mut body = match self.api {
            RerankApi::Tei => {
                return json!({
                    "query": question, "texts": documents, "truncate": true, "raw_scores": false, "return_text": false
                });
            }
            RerankApi::Jina => json!({"return_documents": false}),
            RerankApi::LlamaCpp | RerankApi::Cohere => json!({}),
        };
        body["query"] = question.into();
        body["top_n"] = documents.len().into();
        body["documents"] = documents.into();
        if let Some(model) = &self.model {
            body["model"] = model.as_str().into();
        }
        body
    }

    /// Returns the scores in the order of the texts.
    fn in_order(&self, scored: &[Scored], texts: usize) -> Result<Vec<f32>, Error> {
        let wrong = |what: String| Err(self.server.protocol(what));
        if scored.len() != texts {
            return wrong(format!("it has {} scores for {texts} texts", scored.len()));
        }
        let mut scores = vec![None; texts];
        for Scored { index, score } in scored {
            let score = *score as f32;
            match scores.get_mut(*index) {
                None => return wrong(format!("it has a score for text {index} of {texts}")),
                Some(Some(_)) => return wrong(format!("it has two scores for text {index}")),
                Some(_) if !score.is_finite() => return wrong("a score is no number".to_owned()),
                Some(slot) => *slot = Some(score),
            }
        }
        Ok(scores.into_iter().flatten().collect())
    }
}

#[async_trait]
impl Reranker for RemoteReranker {
    fn info(&self) -> &RerankerInfo {
        &self.info
    }

    async fn rerank(&self, question: &str, texts: &[String]) -> Result<Vec<f32>, ModelError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if texts.len() > self.info.candidates {
            return Err(ModelError::Invalid(format!("{} texts; at most {}", texts.len(), self.info.candidates)));
        }
        let _room = self.room.try_acquire().map_err(|_| ModelError::Busy { waiting: REQUESTS })?;
        Ok(self.server.guarded(self.ask(question, texts, self.info.wait)).await?)
    }
}
