use std::fmt;
use std::time::Duration;

use azera_breaker::Limits;
use reqwest::Url;

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI's chat completions and embeddings, nothing beyond: hosted services, vLLM, LM Studio, proxies.
    OpenAi,
    /// The same with what llama.cpp's `llama-server` adds to it: more samplers, grammars, a switch for thinking.
    LlamaCpp,
    /// Ollama's own.
    Ollama,
}

impl Api {
    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::LlamaCpp => "llama-cpp",
            Self::Ollama => "ollama",
        }
    }

    /// What people call such a server.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::OpenAi => "the OpenAI-compatible server",
            Self::LlamaCpp => "llama-server",
            Self::Ollama => "Ollama",
        }
    }

    /// Where such a server listens unless told otherwise; `None` where that could be anywhere.
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

/// How long a server is waited for, and how often it is asked again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// For the connection.
    pub connect: Duration,
    /// For the first piece of a reply, or a whole answer that is not streamed: loading a model and reading a long
    /// prompt happen in it.
    pub first: Duration,
    /// Between two pieces of a reply.
    pub idle: Duration,
    /// For embedding what somebody waits for: recall goes on without the vector rather than wait longer.
    pub foreground_embedding: Duration,
    /// For what a server is asked about itself.
    pub about: Duration,
    /// Times a request is sent again after a passing failure. A reply that has begun is never asked for again.
    pub retries: usize,
    /// Wait before the first of those; it doubles, and up to as much again is added by chance, so that many who failed
    /// at once do not come back at once.
    pub retry_delay: Duration,
    /// What a server may ask for by `Retry-After`; if it asks for more, the request fails.
    pub longest_retry_after: Duration,
    /// When a server that keeps failing is left alone, and how long.
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

/// A server and a model on it.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// How it is spoken to.
    pub api: Api,
    /// Its address. An OpenAI-compatible one with its path, as in `https://host/v1`; without a path, `/v1` is added.
    pub url: String,
    /// The model's name on the server.
    pub model: String,
    /// Its key, sent as a bearer token.
    pub key: Option<ApiKey>,
    /// The section of the configuration these stand in, for messages that say what to change.
    pub section: String,
    /// How long it is waited for.
    pub patience: RetryPolicy,
}

impl ServerConfig {
    /// What the model is called beside models of other places: its name and the server's host, as in
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

/// Bytes of a text taken for one token where nothing else is configured. UTF-8 is longer where tokens hold fewer
/// letters, so bytes fit many languages: English has more than 4 bytes a token in today's vocabularies, Chinese about 4,
/// Russian 4 to 6. What is counted so is rather too much than too little.
pub const DEFAULT_BYTES_PER_TOKEN: f32 = 3.0;

/// Requests that may wait for a slot.
pub const CHAT_QUEUE: usize = 64;

/// A chat model on a server, and its limits.
#[derive(Debug, Clone)]
pub struct RemoteChatConfig {
    /// The server.
    pub server: ServerConfig,
    /// The model's family, by which prompts are formed.
    pub family: String,
    /// Tokens one conversation may hold, prompt and reply together; cut to what the server says it can.
    pub context_tokens: usize,
    /// Replies asked for at the same time; further ones wait.
    pub slots: usize,
    /// Bytes of a text that count as one token.
    pub bytes_per_token: f32,
}

/// An embedding model on a server.
#[derive(Debug, Clone)]
pub struct RemoteEmbedderConfig {
    /// The server.
    pub server: ServerConfig,
    /// Cosine similarity below which a hit means nothing.
    pub similarity_floor: f32,
    /// Put before every text that looks for others, for models trained so.
    pub query_prefix: String,
    /// Put before every text to be found, for models trained so.
    pub document_prefix: String,
    /// Tokens the model reads of a text; longer ones are cut before they are sent.
    pub max_tokens: usize,
}
