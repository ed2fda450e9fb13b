use std::fmt;
use std::time::Duration;

use azera_breaker::Limits;
use reqwest::Url;

/// The interface of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI's chat completions and embeddings without extensions: hosted services, vLLM, LM Studio, proxies.
    OpenAi,
    /// OpenAI's interface with the extensions of llama.cpp's `llama-server`: more samplers, grammars, a switch for
    /// thinking.
    LlamaCpp,
    /// Ollama's own interface.
    Ollama,
}

impl Api {
    /// Returns the name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::LlamaCpp => "llama-cpp",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the name of such a server for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::OpenAi => "the OpenAI-compatible server",
            Self::LlamaCpp => "llama-server",
            Self::Ollama => "Ollama",
        }
    }

    /// Returns the default address of such a server, or `None` if it has none.
    pub fn usual_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => None,
            Self::LlamaCpp => Some("http://127.0.0.1:8080"),
            Self::Ollama => Some("http://127.0.0.1:11434"),
        }
    }
}

/// A key for a server. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Timeouts and retries for a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// The timeout of the connection.
    pub connect: Duration,
    /// The timeout of the first piece of a reply, or of a whole response that is not streamed. It includes loading the
    /// model and reading a long prompt.
    pub first: Duration,
    /// The timeout between two pieces of a reply.
    pub idle: Duration,
    /// The timeout of foreground embeddings. After it, recall goes on without the vector.
    pub foreground_embedding: Duration,
    /// The timeout of questions about the server itself.
    pub about: Duration,
    /// The most retries after a temporary failure. A reply that has begun is never requested again.
    pub retries: usize,
    /// The delay before the first retry. It doubles with each one, and a random delay of at most the same length is
    /// added, so that many failed clients do not return at once.
    pub retry_delay: Duration,
    /// The longest `Retry-After` that is honoured. If the server asks for more, the request fails.
    pub longest_retry_after: Duration,
    /// The limits of the circuit breaker.
    pub breaker: Limits,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            foreground_embedding: Duration::from_secs(5),
            about: Duration::from_secs(10),
            retries: 2,
            retry_delay: Duration::from_millis(250),
            longest_retry_after: Duration::from_secs(30),
            breaker: Limits::default(),
        }
    }
}

/// A server, and a model on it.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The interface.
    pub api: Api,
    /// The address. For an OpenAI-compatible server it includes the path, such as `https://host/v1`; without a path,
    /// `/v1` is added.
    pub url: String,
    /// The model's name on the server.
    pub model: String,
    /// The key, which is sent as a bearer token.
    pub key: Option<ApiKey>,
    /// The configuration section of these values, for messages that say what to change.
    pub section: String,
    /// Timeouts and retries.
    pub patience: RetryPolicy,
}

impl ServerConfig {
    /// Returns a name that is unique among all models: the model's name and the server's host, such as
    /// `qwen3:8b@127.0.0.1:11434`.
    pub fn full_name(&self) -> String {
        let url = Url::parse(&self.url).ok();
        let host = url.as_ref().and_then(|url| Some(host(url.host_str()?, url.port())));
        host.map_or_else(|| self.model.clone(), |host| format!("{}@{host}", self.model))
    }
}

fn host(name: &str, port: Option<u16>) -> String {
    port.map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

/// The default number of bytes that count as one token. In languages whose letters take more bytes in UTF-8, a token
/// holds fewer letters, so bytes suit many languages. With today's vocabularies English has more than 4 bytes per
/// token, Chinese about 4, Russian 4 to 6. The estimate is rather too high than too low.
pub const DEFAULT_BYTES_PER_TOKEN: f32 = 3.0;

/// The most requests that may wait for a slot.
pub const CHAT_QUEUE: usize = 64;

/// A chat model on a server, with its limits.
#[derive(Debug, Clone)]
pub struct RemoteChatConfig {
    /// The server.
    pub server: ServerConfig,
    /// The model's family, which selects the prompt form; with `auto`, the one that the server or the model's name
    /// tells.
    pub family: String,
    /// Tokens in one conversation, prompt and reply together. The server's own limit may lower it.
    pub context_tokens: usize,
    /// Replies requested at the same time. Further requests wait.
    pub slots: usize,
    /// Bytes of a text that count as one token.
    pub bytes_per_token: f32,
}

/// An embedding model on a server.
#[derive(Debug, Clone)]
pub struct RemoteEmbedderConfig {
    /// The server.
    pub server: ServerConfig,
    /// The cosine similarity below which a hit means nothing.
    pub similarity_floor: f32,
    /// The prefix of every query, for models that were trained with one.
    pub query_prefix: String,
    /// The prefix of every document, for models that were trained with one.
    pub document_prefix: String,
    /// The most tokens that the model reads of a text. Longer texts are cut before they are sent.
    pub max_tokens: usize,
}
