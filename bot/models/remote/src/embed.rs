use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azera_model_api::{Embedder, EmbedderInfo, Error as ModelError, Priority, Purpose};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::timeout;

use crate::config::{Api, DEFAULT_BYTES_PER_TOKEN, RemoteEmbedderConfig};
use crate::error::Error;
use crate::server::Server;
use crate::tokens::{Tokens, cut_bytes};

/// The most texts in one request.
pub const BATCH_TEXTS: usize = 64;

/// The most foreground requests at the same time. One background request, such as for the index, can run beside them,
/// so that the index never delays them.
pub const EMBED_REQUESTS: usize = 4;

/// The most texts that may wait for their embedding. More are rejected as busy.
pub const EMBED_QUEUE: usize = 4_096;

/// A text of at most this many bytes is not cut further if the server finds it too long; the cause must be another.
const SHORTEST_CUT: usize = 64;

/// Replaces a text without words, which servers reject.
const BLANK: &str = ".";

/// The text whose embedding shows the size of the server's vectors.
const TEST_TEXT: &str = "Azera";

/// An embedding model on a server.
///
/// The identity of its vectors is the model's name with a hash over its content, the prefixes and the vectors' size.
/// Ollama reports a digest of the content. Other servers report none; then the address replaces it. So another server
/// counts as another model. A model that is replaced under the same name on the same server with the same size is *not*
/// noticed: rename it there, or configure another name.
///
/// Texts are cut by estimate before they are sent, and cut further if the server still finds them too long. A text that
/// the server rejects for another reason is an error.
pub struct RemoteEmbedder {
    info: EmbedderInfo,
    source: Source,
    /// Permits for texts.
    room: Semaphore,
    foreground: Semaphore,
    background: Semaphore,
    /// Set after the server has returned the vectors that `info` describes.
    verified: OnceCell<()>,
}

impl std::fmt::Debug for RemoteEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteEmbedder").field("info", &self.info).finish_non_exhaustive()
    }
}

impl RemoteEmbedder {
    /// Asks a server about its vectors and creates a client.
    ///
    /// # Errors
    /// [`Error`] if the server is unreachable, rejects the key, does not have the model or cannot embed with it.
    pub async fn connect(config: RemoteEmbedderConfig) -> Result<Arc<Self>, Error> {
        let source = Source::new(config)?;
        let info = source.server.retrying(|| source.server.guarded(source.identify())).await?;
        Ok(Self::ready(source, info, OnceCell::new_with(Some(()))))
    }

    /// Creates a client for an unreachable server without asking it; `info` comes from an earlier connection. Before
    /// the first vector is used, the server is asked whether `info` is still right.
    ///
    /// # Errors
    /// Only [`Error::Config`].
    pub fn resume(config: RemoteEmbedderConfig, info: EmbedderInfo) -> Result<Arc<Self>, Error> {
        let source = Source::new(config)?;
        Ok(Self::ready(source, info, OnceCell::new()))
    }

    fn ready(source: Source, info: EmbedderInfo, verified: OnceCell<()>) -> Arc<Self> {
        let (foreground, background) = (Semaphore::new(EMBED_REQUESTS), Semaphore::new(1));
        Arc::new(Self { info, source, room: Semaphore::new(EMBED_QUEUE), foreground, background, verified })
    }

    async fn embed_now(
        &self,
        texts: &[String],
        purpose: Purpose,
        priority: Priority,
        wait: Duration,
    ) -> Result<Vec<Vec<f32>>, Error> {
        // Twice as long, because another request may be verifying already, with its own limit.
        let verified = timeout(2 * wait, self.verified.get_or_try_init(|| self.verify(wait))).await;
        verified.map_err(|_| self.source.server.silent(2 * wait))??;
        let texts: Vec<String> = texts.iter().map(|text| self.source.prepared(text, purpose)).collect();
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH_TEXTS) {
            vectors.extend(self.source.batch(batch, self.info.dimension, priority, wait).await?);
        }
        Ok(vectors)
    }

    async fn verify(&self, wait: Duration) -> Result<(), Error> {
        let server = &self.source.server;
        let question = async { timeout(wait, self.source.identify()).await.map_err(|_| server.silent(wait))? };
        let now = server.guarded(question).await?.id;
        let was = self.info.id.clone();
        if now == was { Ok(()) } else { Err(Error::OtherVectors { server: server.name(), was, now }) }
    }
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    async fn embed(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
        priority: Priority,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        self.source.server.check()?;
        let count = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let busy = || ModelError::Busy { waiting: EMBED_QUEUE - self.room.available_permits() };
        let _room = self.room.try_acquire_many(count).map_err(|_| busy())?;
        let patience = &self.source.server.patience;
        let (turn, wait) = match priority {
            Priority::Foreground => {
                let turn =
                    timeout(patience.foreground_embedding, self.foreground.acquire()).await.map_err(|_| busy())?;
                (turn, patience.foreground_embedding)
            }
            Priority::Background => (self.background.acquire().await, patience.first),
        };
        let _turn = turn.map_err(|_| ModelError::Stopped)?;
        match self.embed_now(&texts, purpose, priority, wait).await {
            Ok(vectors) => Ok(vectors),
            Err(error) => Err(self.source.server.with_known_models(error).await.into()),
        }
    }
}

/// A server, and how texts are prepared for it.
struct Source {
    server: Server,
    config: RemoteEmbedderConfig,
}

#[derive(Deserialize)]
struct OllamaVectors {
    embeddings: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct OpenAiVectors {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Source {
    fn new(config: RemoteEmbedderConfig) -> Result<Self, Error> {
        Ok(Self { server: Server::new(config.server.clone())?, config })
    }

    /// Returns facts about the server's present vectors.
    async fn identify(&self) -> Result<EmbedderInfo, Error> {
        let about = self.server.about().await?;
        let vectors = self.request(&[self.prepared(TEST_TEXT, Purpose::Document)], self.server.patience.first).await;
        let vectors = match vectors {
            Ok(vectors) => vectors,
            Err(error) => return Err(self.server.with_known_models(error).await),
        };
        let dimension = vectors.first().map_or(0, Vec::len);
        let content = about.digest.unwrap_or_else(|| self.server.base().to_owned());
        let mut hash = Sha256::new();
        for part in [&content, &self.config.query_prefix, &self.config.document_prefix, &dimension.to_string()] {
            hash.update(part.as_bytes());
            // This byte occurs in no UTF-8 text, so it separates the parts.
            hash.update([0xff]);
        }
        let digest = HEXLOWER.encode(&hash.finalize()[..8]);
        Ok(EmbedderInfo {
            id: format!("{}:{}@{digest}", self.server.api.as_str(), self.server.model),
            dimension,
            similarity_floor: self.config.similarity_floor,
            asks_otherwise: self.config.query_prefix != self.config.document_prefix,
        })
    }

    fn prepared(&self, text: &str, purpose: Purpose) -> String {
        let prefix = match purpose {
            Purpose::Query => &self.config.query_prefix,
            Purpose::Document => &self.config.document_prefix,
        };
        let text = if text.trim().is_empty() { BLANK } else { text };
        let whole = format!("{prefix}{text}");
        Tokens::new(DEFAULT_BYTES_PER_TOKEN).cut(&whole, self.config.max_tokens).to_owned()
    }

    /// Returns one vector for each text. If the server finds a text too long, the texts are sent one by one, so that it
    /// can be cut. The caller must find out which text the server rejects for another reason.
    async fn batch(
        &self,
        texts: &[String],
        dimension: usize,
        priority: Priority,
        wait: Duration,
    ) -> Result<Vec<Vec<f32>>, Error> {
        match self.embed_once(texts, dimension, priority, wait).await {
            Err(Error::TooLong { .. }) => {}
            other => return other,
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            vectors.extend(self.alone(text.clone(), dimension, priority, wait).await?);
        }
        Ok(vectors)
    }

    /// Returns the vector of one text. The text is cut as long as the server finds it too long, and for no other
    /// reason.
    async fn alone(
        &self,
        mut text: String,
        dimension: usize,
        priority: Priority,
        wait: Duration,
    ) -> Result<Vec<Vec<f32>>, Error> {
        loop {
            match self.embed_once(std::slice::from_ref(&text), dimension, priority, wait).await {
                Err(Error::TooLong { .. }) if text.len() > SHORTEST_CUT => {
                    text = cut_bytes(&text, text.len() / 2).to_owned();
                    tracing::warn!(bytes = text.len(), "cutting a text further for the embedding server");
                }
                other => return other,
            }
        }
    }

    async fn embed_once(
        &self,
        texts: &[String],
        dimension: usize,
        priority: Priority,
        wait: Duration,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let vectors = match priority {
            // For a person who waits, recall without the vector is better than another try.
            Priority::Foreground => self.server.guarded(self.request(texts, wait)).await?,
            Priority::Background => self.server.retrying(|| self.server.guarded(self.request(texts, wait))).await?,
        };
        let sizes = vectors.iter().map(Vec::len).find(|size| *size != dimension);
        match sizes {
            Some(size) => Err(Error::OtherVectors {
                server: self.server.name(),
                was: format!("{dimension} numbers"),
                now: format!("{size} numbers"),
            }),
            None => Ok(vectors),
        }
    }

    /// Sends one request.
    async fn request(&self, texts: &[String], wait: Duration) -> Result<Vec<Vec<f32>>, Error> {
        let (server, model) = (&self.server, &self.server.model);
        let vectors = match server.api {
            Api::Ollama => {
                let body = json!({"model": model, "input": texts, "truncate": true});
                server.ask::<OllamaVectors>(server.post("/api/embed", &body), wait).await?.embeddings
            }
            Api::OpenAi | Api::LlamaCpp => {
                let body = json!({"model": model, "input": texts, "encoding_format": "float"});
                let answer: OpenAiVectors = server.ask(server.post("/embeddings", &body), wait).await?;
                let mut vectors = vec![Vec::new(); answer.data.len()];
                for (place, item) in answer.data.into_iter().enumerate() {
                    if let Some(slot) = vectors.get_mut(item.index.unwrap_or(place)) {
                        *slot = item.embedding;
                    }
                }
                vectors
            }
        };
        if vectors.len() != texts.len() || vectors.iter().any(Vec::is_empty) {
            return Err(server.protocol(format!("it does not hold one vector for each of {} texts", texts.len())));
        }
        vectors.iter().map(|vector| self.normalized(vector)).collect()
    }

    fn normalized(&self, vector: &[f32]) -> Result<Vec<f32>, Error> {
        let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        if !length.is_finite() || length == 0.0 {
            return Err(self.server.protocol("a vector has no direction".to_owned()));
        }
        Ok(vector.iter().map(|x| (f64::from(*x) / length) as f32).collect())
    }
}
