use std::path::PathBuf;

use azera_model_api::Lora;

/// Replies generated at the same time when nothing else is configured.
pub const DEFAULT_SLOTS: usize = 8;

/// Most replies that can be generated at the same time. Twice as many conversations, the shared prefixes and the
/// branches of a score must stay below llama.cpp's 256 sequences.
pub const MAX_SLOTS: usize = 64;

/// Requests that may wait for a slot when nothing else is configured.
pub const DEFAULT_QUEUE: usize = 64;

/// Tokens one conversation may hold when nothing else is configured, prompt and reply together.
pub const DEFAULT_CONTEXT_TOKENS: usize = 4_096;

/// Conversations of full length the key-value cache has room for when nothing else is configured. Conversations that
/// share a prefix hold it once, so far more of them fit than this.
pub const DEFAULT_FULL_CONVERSATIONS: usize = 4;

/// Bytes of main memory for the evaluated tokens of conversations that had to leave the key-value cache.
pub const DEFAULT_SWAP_BYTES: usize = 512 << 20;

/// Bytes of evaluated prefixes kept on disk.
pub const DEFAULT_PREFIX_DISK_BYTES: u64 = 1 << 30;

/// Bytes of adapters that requests named and that are kept in memory for the next request.
pub const DEFAULT_LORA_BYTES: u64 = 512 << 20;

/// Prompt tokens evaluated in one step when nobody waits for a next token.
pub const STEP_TOKENS: usize = 512;

/// Texts that may wait for their embedding.
pub const DEFAULT_EMBED_QUEUE: usize = 4_096;

/// What a [`crate::LlamaChat`] is loaded from, and its limits.
#[derive(Debug, Clone)]
pub struct LlamaChatConfig {
    /// The GGUF file.
    pub path: PathBuf,
    /// The model's name in the ledger.
    pub name: String,
    /// The model's family in the ledger.
    pub family: String,
    /// Whether this file passed the safety check.
    pub trusted_in_danger: bool,
    /// What tells this file from every other, such as its SHA-256. Prefixes on disk are only used with the file they
    /// were made by.
    pub identity: String,
    /// Tokens one conversation may hold, prompt and reply together. Cut to what the model was trained on.
    pub context_tokens: usize,
    /// Tokens the key-value cache holds for all conversations together; at least `context_tokens`.
    pub cache_tokens: usize,
    /// Replies generated at the same time, 1 to [`MAX_SLOTS`].
    pub slots: usize,
    /// Requests that may wait for a slot; more are refused as busy.
    pub queue: usize,
    /// Threads that compute; `None` takes as many as the machine lets this process run.
    pub threads: Option<usize>,
    /// Layers put on a GPU; `None` puts all there that such a build can.
    pub gpu_layers: Option<u32>,
    /// Bytes of main memory for conversations that had to leave the key-value cache.
    pub parked_bytes: usize,
    /// Where evaluated prefixes are kept across restarts; `None` keeps them in memory only.
    pub prefix_dir: Option<PathBuf>,
    /// Bytes `prefix_dir` may hold; the least recently used prefixes go first.
    pub prefix_disk_bytes: u64,
    /// Adapters that everything is done with.
    pub loras: Vec<Lora>,
    /// What [`azera_model_api::ChatModel::reading_lora`] names. It is loaded when a request comes with it, for which there must be
    /// room: `adaptable`, or adapters of the model's own.
    pub reading_lora: Option<Lora>,
    /// Whether requests may name adapters of their own. Room for them is made when the model is loaded: two bytes for
    /// every row and column of its weights.
    pub adaptable: bool,
    /// Bytes of requests' adapters that are kept in memory; those used longest ago go first.
    pub lora_bytes: u64,
}

impl LlamaChatConfig {
    /// The defaults for a model file.
    pub fn new(path: impl Into<PathBuf>, name: impl Into<String>, family: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            path: path.into(),
            trusted_in_danger: false,
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

/// What a [`crate::LlamaEmbedder`] is loaded from, and its limits.
#[derive(Debug, Clone)]
pub struct LlamaEmbedderConfig {
    /// The GGUF file.
    pub path: PathBuf,
    /// Identity of the vectors: the model's name and content. See [`azera_model_api::EmbedderInfo::id`].
    pub id: String,
    /// Cosine similarity below which a hit means nothing, from the model's ledger entry.
    pub similarity_floor: f32,
    /// Put before every text that looks for others, for models trained so.
    pub query_prefix: String,
    /// Put before every text to be found, for models trained so.
    pub document_prefix: String,
    /// Tokens of a text that are looked at; cut to what the model was trained on.
    pub window_tokens: usize,
    /// Texts that may wait; more are refused as busy.
    pub queue: usize,
    /// Threads that compute, half of the machine's cores and four at most; `None` takes these.
    pub threads: Option<usize>,
    /// Layers put on a GPU; `None` puts all there that such a build can.
    pub gpu_layers: Option<u32>,
}

impl LlamaEmbedderConfig {
    /// The defaults for a model file.
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
