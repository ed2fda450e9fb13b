use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use azera_model_api::Lora;

/// The default number of replies generated at the same time.
pub const DEFAULT_SLOTS: usize = 8;

/// The most replies that can be generated at the same time. Twice as many conversations, the shared prefixes and the
/// branches of a score must stay below llama.cpp's 256 sequences.
pub const MAX_SLOTS: usize = 64;

/// The default number of requests that may wait for a slot.
pub const DEFAULT_QUEUE: usize = 64;

/// The default number of tokens in one conversation, prompt and reply together.
pub const DEFAULT_CONTEXT_TOKENS: usize = 4_096;

/// The default number of conversations of full length that fit in the key-value cache. Conversations that share a
/// prefix store it once, so far more of them fit.
pub const DEFAULT_FULL_CONVERSATIONS: usize = 4;

/// The default size, in bytes of main memory, of swapped-out conversations.
pub const DEFAULT_SWAP_BYTES: usize = 512 << 20;

/// The default size, in bytes, of evaluated prefixes on disk.
pub const DEFAULT_PREFIX_DISK_BYTES: u64 = 1 << 30;

/// The default size, in bytes of memory, of LoRAs that requests named and that are kept for the next request.
pub const DEFAULT_LORA_BYTES: u64 = 512 << 20;

/// The most prompt tokens in one step of live work while nobody waits for a next token.
pub const STEP_TOKENS: usize = 512;

/// The default number of texts that may wait for their embedding.
pub const DEFAULT_EMBED_QUEUE: usize = 4_096;

/// Writes the present day for chat templates that name it.
#[derive(Clone)]
pub struct Dates(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl Dates {
    /// Creates a source of dates. `write` gets a format of `strftime`, and returns the present day and time in it.
    pub fn new(write: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    pub(crate) fn write(&self, format: &str) -> String {
        (self.0)(format)
    }
}

impl Default for Dates {
    /// Returns a source that knows no day and writes nothing.
    fn default() -> Self {
        Self::new(|_| String::new())
    }
}

impl fmt::Debug for Dates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dates").finish_non_exhaustive()
    }
}

/// The model file of a [`crate::LlamaChat`], and its limits.
#[derive(Debug, Clone)]
pub struct LlamaChatConfig {
    /// The GGUF file.
    pub path: PathBuf,
    /// The model's name in the registry.
    pub name: String,
    /// The model's family in the registry.
    pub family: String,
    /// True if this file passed the safety check.
    pub trusted_in_danger: bool,
    /// The present day, for chat templates that name it.
    pub dates: Dates,
    /// An identifier of the file's content, such as its SHA-256. Prefixes on disk are used only with the file that they
    /// were made with.
    pub identity: String,
    /// Tokens in one conversation, prompt and reply together. Limited to the model's trained context.
    pub context_tokens: usize,
    /// Tokens in the key-value cache for all conversations together; at least `context_tokens`.
    pub cache_tokens: usize,
    /// Replies generated at the same time, 1 to [`MAX_SLOTS`].
    pub slots: usize,
    /// The most requests that may wait for a slot. More are rejected as busy.
    pub queue: usize,
    /// Threads that compute; `None` uses as many as the process may run on.
    pub threads: Option<usize>,
    /// Layers on the GPU; `None` puts all of them there, in a build with GPU support.
    pub gpu_layers: Option<u32>,
    /// Bytes of main memory for swapped-out conversations.
    pub parked_bytes: usize,
    /// The folder for evaluated prefixes, which survive a restart there; `None` keeps them only in memory.
    pub prefix_dir: Option<PathBuf>,
    /// The largest size of `prefix_dir`, in bytes. The least recently used prefixes are deleted first.
    pub prefix_disk_bytes: u64,
    /// The LoRAs of every request.
    pub loras: Vec<Lora>,
    /// The LoRA that [`azera_model_api::ChatModel::reading_lora`] returns. It is loaded when a request names it. This
    /// needs `adaptable`, or LoRAs in `loras`.
    pub reading_lora: Option<Lora>,
    /// True if requests may name LoRAs of their own. Room for them is reserved when the model is loaded: two bytes for
    /// every row and column of its weights.
    pub adaptable: bool,
    /// The largest size, in bytes of memory, of the requests' LoRAs. The least recently used are dropped first.
    pub lora_bytes: u64,
}

impl LlamaChatConfig {
    /// Returns the defaults for a model file.
    pub fn new(path: impl Into<PathBuf>, name: impl Into<String>, family: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            path: path.into(),
            trusted_in_danger: false,
            dates: Dates::default(),
            identity: name.clone(),
            name,
            family: family.into(),
            context_tokens: DEFAULT_CONTEXT_TOKENS,
            cache_tokens: DEFAULT_CONTEXT_TOKENS * DEFAULT_FULL_CONVERSATIONS,
            slots: DEFAULT_SLOTS,
            queue: DEFAULT_QUEUE,
            threads: None,
            gpu_layers: None,
            parked_bytes: DEFAULT_SWAP_BYTES,
            prefix_dir: None,
            prefix_disk_bytes: DEFAULT_PREFIX_DISK_BYTES,
            loras: Vec::new(),
            reading_lora: None,
            adaptable: false,
            lora_bytes: DEFAULT_LORA_BYTES,
        }
    }
}

/// The model file of a [`crate::LlamaEmbedder`], and its limits.
#[derive(Debug, Clone)]
pub struct LlamaEmbedderConfig {
    /// The GGUF file.
    pub path: PathBuf,
    /// The identity of the vectors: the model's name and content. See [`azera_model_api::EmbedderInfo::id`].
    pub id: String,
    /// The cosine similarity below which a hit means nothing, from the model's registry entry.
    pub similarity_floor: f32,
    /// The prefix of every query, for models that were trained with one.
    pub query_prefix: String,
    /// The prefix of every document, for models that were trained with one.
    pub document_prefix: String,
    /// The most tokens that are read of a text. Limited to the model's trained context.
    pub window_tokens: usize,
    /// The most texts that may wait. More are rejected as busy.
    pub queue: usize,
    /// Threads that compute, at most half of the cores and four; `None` uses that many.
    pub threads: Option<usize>,
    /// Layers on the GPU; `None` puts all of them there, in a build with GPU support.
    pub gpu_layers: Option<u32>,
}

impl LlamaEmbedderConfig {
    /// Returns the defaults for a model file.
    pub fn new(path: impl Into<PathBuf>, id: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            id: id.into(),
            similarity_floor: 0.0,
            query_prefix: String::new(),
            document_prefix: String::new(),
            window_tokens: 512,
            queue: DEFAULT_EMBED_QUEUE,
            threads: None,
            gpu_layers: None,
        }
    }
}

/// The model file of a [`crate::LlamaReranker`], and its limits.
#[derive(Debug, Clone)]
pub struct LlamaRerankerConfig {
    /// The GGUF file.
    pub path: PathBuf,
    /// The name for people.
    pub name: String,
    /// The most texts of one question.
    pub candidates: usize,
    /// The share of the model's opinion in the order, 0 to 1.
    pub weight: f32,
    /// The longest wait for an answer.
    pub wait: Duration,
    /// The most tokens that are read of a question and a text together. Limited to the model's trained context.
    pub window_tokens: usize,
    /// Threads that compute, at most half of the cores and at most four; `None` uses that many.
    pub threads: Option<usize>,
    /// Layers on the GPU; `None` puts all of them there, in a build with GPU support.
    pub gpu_layers: Option<u32>,
}

impl LlamaRerankerConfig {
    /// Returns the defaults for a model file.
    pub fn new(path: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            name: name.into(),
            candidates: 10,
            weight: 0.5,
            wait: Duration::from_millis(100),
            window_tokens: 128,
            threads: None,
            gpu_layers: None,
        }
    }
}
