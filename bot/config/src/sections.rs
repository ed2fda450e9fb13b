use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

// The comments of these fields are also the comments of azera.example.toml: they speak to the operator.

/// Where things are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// The folder of everything Azera keeps: messages, memories, personas, models. `~` is your home. When unset:
    /// `azera` in the XDG data folder, which is `~/.local/share/azera` for most people. AZERA_DATA sets it too.
    #[schemars(length(min = 1, max = 4096), example = "/srv/azera")]
    pub dir: Option<PathBuf>,
}

/// Which models run, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Models {
    /// The model that talks, by its name in the ledger. When unset: the one that `azera models use` chose.
    #[schemars(length(min = 1, max = 100), example = "smollm2-135m")]
    pub chat: Option<String>,
    /// The model that finds memories by their meaning, by its name in the ledger. When unset: the one that
    /// `azera models use` chose. After a change everything is embedded anew.
    #[schemars(length(min = 1, max = 100), example = "minilm-l6-v2")]
    pub embedding: Option<String>,
    /// The folder of the model files. When unset: `azera/models` in the user's cache folder, since
    /// models can be fetched again; without a home, `models` in the data folder.
    #[schemars(length(min = 1, max = 4096), example = "/srv/models")]
    pub dir: Option<PathBuf>,
    /// The model hub's address, for a mirror. When unset: the hub's own.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:8080")]
    pub hub_endpoint: Option<String>,
    /// The hub's access token, for models that want one. Better kept in AZERA__MODELS__HUB_TOKEN than in a file.
    #[schemars(length(min = 1, max = 1024), example = "hf_...", extend("writeOnly" = true))]
    pub hub_token: Option<Secret>,
    /// Replies written at the same time.
    #[schemars(range(min = 1, max = 64))]
    pub slots: u32,
    /// Tokens one conversation may hold, prompt and reply together; cut to what the model was trained on. More costs
    /// memory.
    #[schemars(range(min = 512, max = 1_048_576))]
    pub context_tokens: u32,
    /// Processor threads that compute; 0 takes as many as the machine has cores. Embedding takes half of the cores, and
    /// four at most.
    #[schemars(range(min = 0, max = 1024))]
    pub threads: u32,
    /// Layers of the model put on a GPU, in a build for one. When unset: all of them. With 0 nothing is learnt there either.
    #[schemars(range(min = 0, max = 1000), example = 20)]
    pub gpu_layers: Option<u32>,
    /// Megabytes on disk for evaluated prompts of personas, which make the first reply after a start quick; 0 keeps
    /// none.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub prefix_cache_mb: u32,
    /// Tokens one reply may have.
    #[schemars(range(min = 1, max = 65_536))]
    pub max_reply_tokens: u32,
    /// Let models that can think do so before they answer. Better answers, later.
    pub thinking: bool,
    /// The LoRA adapter that the model that talks answers with: the path of a GGUF file, made for that very model, or
    /// `none`. When unset: what comes with the model, if anything does; a file stands in the place of all of that.
    #[schemars(length(min = 1, max = 4096), example = "/srv/models/adapter.gguf")]
    pub adapter: Option<PathBuf>,
}

impl Default for Models {
    fn default() -> Self {
        Self {
            chat: None,
            embedding: None,
            dir: None,
            hub_endpoint: None,
            hub_token: None,
            slots: 8,
            context_tokens: 4096,
            threads: 0,
            gpu_layers: None,
            prefix_cache_mb: 1024,
            max_reply_tokens: 256,
            thinking: false,
            adapter: None,
        }
    }
}

/// How a server of models is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerApi {
    /// no server: a model on this machine
    None,
    /// OpenAI's interface and nothing beyond: hosted services, vLLM, LM Studio, proxies
    #[serde(rename = "openai")]
    OpenAi,
    /// the same with what llama.cpp's llama-server adds to it
    LlamaCpp,
    /// Ollama's own
    Ollama,
}

/// A server that answers in the place of a model on this machine. What is said in a chat is then sent to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChatServer {
    /// How it is spoken to.
    pub api: ServerApi,
    /// Its address; for OpenAI's interface with its path. When unset: where Ollama or llama-server listen on this machine.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:11434")]
    pub url: Option<String>,
    /// The model's name on the server.
    #[schemars(length(min = 1, max = 200), example = "qwen3:8b")]
    pub model: Option<String>,
    /// Its key, if it wants one. Better kept in AZERA__CHAT_SERVER__KEY than in a file.
    #[schemars(length(min = 1, max = 1024), example = "sk-...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// The family whose prompt form is used, as in the ledger; `generic` suits capable models. How many tokens a
    /// conversation holds, how many replies are written at once and whether the model may think say the keys of [models].
    #[schemars(length(min = 1, max = 48))]
    pub family: String,
    /// Bytes of text that count as one token when room in a prompt is reckoned: a server's tokenizer cannot be asked. Less
    /// is safer and fits less.
    #[schemars(range(min = 1.0, max = 8.0))]
    pub bytes_per_token: f32,
    /// Seconds until the first word of a reply must have come; loading the model falls into them.
    #[schemars(range(min = 1, max = 3600))]
    pub first_word_timeout_s: u64,
}

impl Default for ChatServer {
    fn default() -> Self {
        Self {
            api: ServerApi::None,
            url: None,
            model: None,
            key: None,
            family: "generic".into(),
            bytes_per_token: 3.0,
            first_word_timeout_s: 120,
        }
    }
}

/// A server that embeds in the place of a model on this machine. All that is remembered is then sent to it, and after a
/// change of model or server everything is embedded anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingServer {
    /// How it is spoken to.
    pub api: ServerApi,
    /// Its address; for OpenAI's interface with its path. When unset: where Ollama or llama-server listen on this machine.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:11434")]
    pub url: Option<String>,
    /// The model's name on the server.
    #[schemars(length(min = 1, max = 200), example = "nomic-embed-text")]
    pub model: Option<String>,
    /// Its key, if it wants one. Better kept in AZERA__EMBEDDING_SERVER__KEY than in a file.
    #[schemars(length(min = 1, max = 1024), example = "sk-...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// Put before every question, for models trained so.
    #[schemars(length(min = 0, max = 1000))]
    pub query_prefix: String,
    /// Put before every text to be found, for models trained so.
    #[schemars(length(min = 0, max = 1000))]
    pub document_prefix: String,
    /// Tokens the model reads of a text; longer ones are cut. How similar a hit must be says memory.similarity_floor.
    #[schemars(range(min = 32, max = 131_072))]
    pub max_tokens: u32,
}

impl Default for EmbeddingServer {
    fn default() -> Self {
        Self {
            api: ServerApi::None,
            url: None,
            model: None,
            key: None,
            query_prefix: String::new(),
            document_prefix: String::new(),
            max_tokens: 512,
        }
    }
}

/// A Redis or Dragonfly server that holds working memory (embeddings of the last days) in the place of files on this machine.
/// Who runs it can guess much of a text from its embedding. While it is away, those files stand in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkingServer {
    /// Its address: redis://HOST:PORT/DATABASE, or rediss:// for TLS; a user's name may stand in it, a password not. When
    /// unset: no server.
    #[schemars(length(min = 1, max = 2048), example = "redis://127.0.0.1:6379/0")]
    pub url: Option<String>,
    /// Its password. Better kept in AZERA__WORKING_SERVER__PASSWORD than in a file.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub password: Option<Secret>,
    /// What the names of Azera's keys begin with: letters, digits and -_.: alone. Behind it stands a mark of the data folder,
    /// so that several may share a server.
    #[schemars(length(min = 1, max = 48))]
    pub prefix: String,
}

impl Default for WorkingServer {
    fn default() -> Self {
        Self { url: None, password: None, prefix: "azera".into() }
    }
}

/// A Qdrant server that the vector index is mirrored to and that searches it. It gets numbers, times, vectors, and tokens in
/// the place of personas and places; no text and no id. Who runs it can guess much of a text, names in it included, from its
/// vector. While it is away, the index of this machine is searched, which is always whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VectorServer {
    /// The address of its gRPC interface. When unset: no server.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:6334")]
    pub url: Option<String>,
    /// Its key. Better kept in AZERA__VECTOR_SERVER__KEY than in a file.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// The collection: letters, digits, - and _ alone. Each data folder needs its own: one that another folder filled is left
    /// alone.
    #[schemars(length(min = 1, max = 64))]
    pub collection: String,
}

impl Default for VectorServer {
    fn default() -> Self {
        Self { url: None, key: None, collection: "azera".into() }
    }
}

/// How the next word is chosen. What is unset here follows the model's family, which was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// How adventurous the choice is; 0 always takes the likeliest.
    #[schemars(range(min = 0.0, max = 2.0), example = 0.7)]
    pub temperature: Option<f32>,
    /// Choose among this many of the likeliest tokens; 0 among all.
    #[schemars(range(min = 0, max = 1000), example = 40)]
    pub top_k: Option<u32>,
    /// Choose among the likeliest tokens that together reach this probability; 1 among all.
    #[schemars(range(min = 0.0, max = 1.0), example = 0.95)]
    pub top_p: Option<f32>,
    /// Leave out tokens less likely than this share of the likeliest; 0 leaves out none.
    #[schemars(range(min = 0.0, max = 1.0), example = 0.05)]
    pub min_p: Option<f32>,
    /// Divides the score of tokens used lately; 1 is neutral.
    #[schemars(range(min = 1.0, max = 2.0), example = 1.1)]
    pub repeat_penalty: Option<f32>,
    /// Taken off the score of a token for each time it was used lately; 0 is neutral.
    #[schemars(range(min = -2.0, max = 2.0), example = 0.2)]
    pub frequency_penalty: Option<f32>,
    /// Taken off the score of a token that was used lately at all; 0 is neutral.
    #[schemars(range(min = -2.0, max = 2.0), example = 0.2)]
    pub presence_penalty: Option<f32>,
    /// How many tokens of the reply count as lately.
    #[schemars(range(min = 0, max = 8192), example = 64)]
    pub penalty_last_n: Option<u32>,
}

/// What is remembered, and how it is found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Memories put into a prompt. When unset: what suits the model's family. A persona may set its own.
    #[schemars(range(min = 0, max = 50), example = 10)]
    pub top_k: Option<u32>,
    /// Memories each arm of the search puts forward before the arms are fused. Less is quicker and finds less.
    #[schemars(range(min = 10, max = 1000))]
    pub candidates: u32,
    /// Characters of one memory as shown to the model.
    #[schemars(range(min = 40, max = 4000))]
    pub snippet_chars: u32,
    /// Seconds a message must be old before it counts as a memory.
    #[schemars(range(min = 0, max = 86_400))]
    pub min_age_s: u64,
    /// Similarity from which two memories of one scope count as the same thing said twice, unless numbers, names or
    /// rare words differ.
    #[schemars(range(min = 0.5, max = 1.0))]
    pub near_duplicate: f32,
    /// Minutes of silence after which a new session begins.
    #[schemars(range(min = 1, max = 10_080))]
    pub session_gap_minutes: u32,
    /// Similarity below which a hit by meaning is dropped. When unset: the embedding model's own, from the ledger; none with
    /// an embedding server.
    #[schemars(range(min = 0.0, max = 1.0), example = 0.2)]
    pub similarity_floor: Option<f32>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            top_k: None,
            candidates: 100,
            snippet_chars: 400,
            min_age_s: 60,
            near_duplicate: 0.95,
            session_gap_minutes: 60,
            similarity_floor: None,
        }
    }
}

/// When Azera speaks up in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// when mentioned, replied to or called by name
    Addressed,
    /// to every message
    Always,
    /// to none
    Never,
}

/// Conversations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Chat {
    /// The persona that answers where nothing else was chosen.
    #[schemars(length(min = 1, max = 48))]
    pub persona: String,
    /// The role people play towards it where nothing else was chosen.
    #[schemars(length(min = 1, max = 48))]
    pub user_persona: String,
    /// Names that call it in a group, besides the persona's own.
    #[schemars(length(max = 16), inner(length(min = 1, max = 32)))]
    pub wake_names: Vec<String>,
    /// When it answers in groups, where a channel does not say otherwise. Direct messages are always answered.
    pub answer: Answer,
    /// Messages of one chat that may wait for their turn; more are refused.
    #[schemars(range(min = 1, max = 1000))]
    pub queue_per_chat: u32,
    /// Past messages of a chat put into a prompt, as far as its tokens allow.
    #[schemars(range(min = 0, max = 1000))]
    pub history_messages: u32,
    /// Tokens one prompt may have. When unset: what the context leaves beside the reply, or less where a model's family
    /// does better with less.
    #[schemars(range(min = 256, max = 1_048_576), example = 2048)]
    pub prompt_tokens: Option<u32>,
    /// The language and country whose help lines are named to somebody in danger, such as `en-GB` or `de-AT`, unless a place
    /// chose another. When unset, where to find those of any country.
    #[schemars(length(min = 2, max = 32), example = "en-GB")]
    pub locale: Option<String>,
}

impl Default for Chat {
    fn default() -> Self {
        Self {
            persona: "azera".into(),
            user_persona: "protag".into(),
            wake_names: Vec::new(),
            answer: Answer::Addressed,
            queue_per_chat: 32,
            history_messages: 100,
            prompt_tokens: None,
            locale: None,
        }
    }
}

/// Backups of what is remembered. `azera restore` brings one back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Backup {
    /// Make backups while Azera runs.
    pub enabled: bool,
    /// The folder of the backups; one on another disk outlives this one. When unset: `backups` in the data folder.
    #[schemars(length(min = 1, max = 4096), example = "/mnt/other/azera")]
    pub dir: Option<PathBuf>,
    /// Minutes between two backups, if anything changed. Where one takes long the next waits longer, so that backups
    /// take a twentieth of the time at most.
    #[schemars(range(min = 1, max = 10_080))]
    pub every_minutes: u32,
    /// Hours for which every backup is kept.
    #[schemars(range(min = 0, max = 8760))]
    pub keep_all_hours: u32,
    /// Hours for which the first backup of each hour is kept.
    #[schemars(range(min = 0, max = 87_600))]
    pub keep_hourly_hours: u32,
    /// Days for which the first backup of each day is kept. The newest is kept always.
    #[schemars(range(min = 0, max = 3650))]
    pub keep_daily_days: u32,
    /// Backups kept at most; the oldest go first.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_count: u32,
    /// Megabytes of backups kept at most; the oldest go first.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_mb: u32,
}

impl Default for Backup {
    fn default() -> Self {
        Self {
            enabled: true,
            dir: None,
            every_minutes: 5,
            keep_all_hours: 1,
            keep_hourly_hours: 24,
            keep_daily_days: 7,
            max_count: 100,
            max_mb: 10_000,
        }
    }
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// nothing
    Off,
    /// what failed
    Error,
    /// also what may need a look
    Warn,
    /// also what happens
    Info,
    /// also how it happens
    Debug,
    /// everything
    Trace,
}

impl LogLevel {
    /// The level as it is written in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// for people
    Text,
    /// one object a line, for programs
    Json,
}

/// The log. It never holds what people say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// How much is logged. AZERA_LOG overrides it, also part by part: `AZERA_LOG=warn,azera_engine=debug`.
    pub level: LogLevel,
    /// How a line looks.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text }
    }
}
