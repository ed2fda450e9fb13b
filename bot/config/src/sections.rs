use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// Where Azera stores its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// The folder of what Azera stores: messages, memories, personas, backups. Models are in models.dir. `~` is your
    /// home. When unset: `azera` in the XDG data folder, usually `~/.local/share/azera`. AZERA_DATA sets it too.
    #[schemars(length(min = 1, max = 4096), example = "/srv/azera")]
    pub dir: Option<PathBuf>,
    /// Megabytes that stay free on the disk of this folder. With less, Azera takes no new message, says so, and goes on
    /// when there is more; 0 uses the disk to its end.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub min_free_mb: u32,
}

impl Default for Data {
    fn default() -> Self {
        Self { dir: None, min_free_mb: 100 }
    }
}

/// Which models run, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Models {
    /// The chat model, by its name in the registry. When unset: the choice of `azera models use`.
    #[schemars(length(min = 1, max = 100), example = "smollm2-135m")]
    pub chat: Option<String>,
    /// The embedding model, which finds memories by their meaning, by its name in the registry. When unset: the choice
    /// of `azera models use`. After a change, Azera embeds all memories again.
    #[schemars(length(min = 1, max = 100), example = "minilm-l6-v2")]
    pub embedding: Option<String>,
    /// The folder of the model files. When unset: `azera/models` in your cache folder, because models can be downloaded
    /// again; without a home folder, `models` in the data folder.
    #[schemars(length(min = 1, max = 4096), example = "/srv/models")]
    pub dir: Option<PathBuf>,
    /// The address of a mirror of the model hub. When unset: the hub itself.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:8080")]
    pub hub_endpoint: Option<String>,
    /// The hub's access token, for models that require one. Better set AZERA__MODELS__HUB_TOKEN than write it here.
    #[schemars(length(min = 1, max = 1024), example = "hf_...", extend("writeOnly" = true))]
    pub hub_token: Option<Secret>,
    /// Replies generated at the same time.
    #[schemars(range(min = 1, max = 64))]
    pub slots: u32,
    /// Tokens in one conversation, prompt and reply together. Azera lowers it to what the model was trained for. More
    /// tokens need more memory.
    #[schemars(range(min = 512, max = 1_048_576))]
    pub context_tokens: u32,
    /// Processor threads for the models; 0 uses one for each core. Embedding and reranking use half of the cores each,
    /// and at most four.
    #[schemars(range(min = 0, max = 1024))]
    pub threads: u32,
    /// Layers of the model on the GPU, in a build with GPU support. When unset: all of them. With 0, training does not
    /// use the GPU either.
    #[schemars(range(min = 0, max = 1000), example = 20)]
    pub gpu_layers: Option<u32>,
    /// Megabytes on disk for evaluated prompts of personas, which speed up the first reply after a start; 0 stores none.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub prefix_cache_mb: u32,
    /// The longest reply, in tokens. When unset: 512, or a quarter of a small context. Small models have a lower limit
    /// of their own. A reply that reaches its limit is shown to its last whole sentence.
    #[schemars(range(min = 1, max = 65_536), example = 512)]
    pub max_reply_tokens: Option<u32>,
    /// Let models that can think do so before they answer. Answers get better, and take longer.
    pub thinking: bool,
    /// The longest thoughts before a reply, in tokens, besides `max_reply_tokens`; at most a quarter of the model's
    /// context. A model on this machine then begins to answer; one on a server is asked again without thinking.
    #[schemars(range(min = 1, max = 65_536))]
    pub thinking_tokens: u32,
    /// The LoRA of the chat model: the path of a GGUF file made for exactly this model, or `none`. When unset: the LoRA
    /// that comes with the model, if there is one. A file replaces everything that comes with the model.
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
            max_reply_tokens: None,
            thinking: false,
            thinking_tokens: 1024,
            adapter: None,
        }
    }
}

/// The interface of a model server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerApi {
    /// no server: a model on this machine
    None,
    /// OpenAI's interface without extensions: hosted services, vLLM, LM Studio, proxies
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's interface with the extensions of llama.cpp's llama-server
    LlamaCpp,
    /// Ollama's own interface
    Ollama,
}

/// A server whose model answers instead of a model on this machine. Azera sends it the conversations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChatServer {
    /// The interface of the server.
    pub api: ServerApi,
    /// The server's address; with its path for OpenAI's interface. When unset: the default address of Ollama or
    /// llama-server on this machine.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:11434")]
    pub url: Option<String>,
    /// The model's name on the server.
    #[schemars(length(min = 1, max = 200), example = "qwen3:8b")]
    pub model: Option<String>,
    /// The server's key, if it requires one. Better set AZERA__CHAT_SERVER__KEY than write it here.
    #[schemars(length(min = 1, max = 1024), example = "sk-...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// The model family whose prompt format is used, as in the registry; with `auto`, the one that the server or the
    /// model's name tells. The keys of [models] set the tokens in a conversation, the replies at the same time, and
    /// whether the model may think.
    #[schemars(length(min = 1, max = 48))]
    pub family: String,
    /// Bytes of text that count as one token when Azera fits a prompt, because a server's tokenizer cannot be asked. A
    /// lower value is safer and fits less text.
    #[schemars(range(min = 1.0, max = 8.0))]
    pub bytes_per_token: f32,
    /// Seconds to wait for the first word of a reply. The time to load the model counts.
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
            family: "auto".into(),
            bytes_per_token: 3.0,
            first_word_timeout_s: 120,
        }
    }
}

/// A server that computes embeddings instead of a model on this machine. Azera sends it every memory. After a change of
/// model or server, Azera embeds all memories again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingServer {
    /// The interface of the server.
    pub api: ServerApi,
    /// The server's address; with its path for OpenAI's interface. When unset: the default address of Ollama or
    /// llama-server on this machine.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:11434")]
    pub url: Option<String>,
    /// The model's name on the server.
    #[schemars(length(min = 1, max = 200), example = "nomic-embed-text")]
    pub model: Option<String>,
    /// The server's key, if it requires one. Better set AZERA__EMBEDDING_SERVER__KEY than write it here.
    #[schemars(length(min = 1, max = 1024), example = "sk-...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// A prefix for every query, for models that were trained with one.
    #[schemars(length(min = 0, max = 1000))]
    pub query_prefix: String,
    /// A prefix for every stored text, for models that were trained with one.
    #[schemars(length(min = 0, max = 1000))]
    pub document_prefix: String,
    /// Tokens of a text that the model reads; the rest is cut. memory.similarity_floor sets how similar a hit must be.
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

/// A Redis or Dragonfly server that stores working memory (the embeddings of the last days) instead of files on this
/// machine. The operator of that server can guess much of a text from its embedding. While the server is unreachable,
/// Azera uses the files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkingServer {
    /// The server's address: redis://HOST:PORT/DATABASE, or rediss:// for TLS. It may contain a user name, but no
    /// password. When unset: no server.
    #[schemars(length(min = 1, max = 2048), example = "redis://127.0.0.1:6379/0")]
    pub url: Option<String>,
    /// The server's password. Better set AZERA__WORKING_SERVER__PASSWORD than write it here.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub password: Option<Secret>,
    /// The prefix of Azera's keys: only letters, digits and -_.: are allowed. An identifier of the data folder follows
    /// it, so that several installations can share a server.
    #[schemars(length(min = 1, max = 48))]
    pub prefix: String,
}

impl Default for WorkingServer {
    fn default() -> Self {
        Self { url: None, password: None, prefix: "azera".into() }
    }
}

/// A Qdrant server that holds a copy of the vector index and searches it. It receives numbers, times, vectors, and
/// tokens that stand for personas and places, but no text and no id. The operator of that server can guess much of a
/// text, including names, from its vector. While the server is unreachable, Azera searches its own index, which is
/// always complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VectorServer {
    /// The address of the server's gRPC interface. When unset: no server.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:6334")]
    pub url: Option<String>,
    /// The server's key. Better set AZERA__VECTOR_SERVER__KEY than write it here.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// The collection's name: only letters, digits, - and _ are allowed. Each data folder needs its own collection.
    /// Azera does not touch a collection that another data folder filled.
    #[schemars(length(min = 1, max = 64))]
    pub collection: String,
}

impl Default for VectorServer {
    fn default() -> Self {
        Self { url: None, key: None, collection: "azera".into() }
    }
}

/// How the next token is chosen. A key that is unset takes the measured value of the model's family.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// The temperature: higher values choose more freely; 0 always takes the likeliest token.
    #[schemars(range(min = 0.0, max = 2.0), example = 0.7)]
    pub temperature: Option<f32>,
    /// Choose among this many of the likeliest tokens; 0 among all.
    #[schemars(range(min = 0, max = 1000), example = 40)]
    pub top_k: Option<u32>,
    /// Choose among the likeliest tokens that together reach this probability; 1 among all.
    #[schemars(range(min = 0.0, max = 1.0), example = 0.95)]
    pub top_p: Option<f32>,
    /// Leave out tokens that are less likely than this share of the likeliest; 0 leaves out none.
    #[schemars(range(min = 0.0, max = 1.0), example = 0.05)]
    pub min_p: Option<f32>,
    /// Divides the score of recently used tokens; 1 is neutral.
    #[schemars(range(min = 1.0, max = 2.0), example = 1.1)]
    pub repeat_penalty: Option<f32>,
    /// Subtracted from the score of a token for each recent use; 0 is neutral.
    #[schemars(range(min = -2.0, max = 2.0), example = 0.2)]
    pub frequency_penalty: Option<f32>,
    /// Subtracted once from the score of a recently used token; 0 is neutral.
    #[schemars(range(min = -2.0, max = 2.0), example = 0.2)]
    pub presence_penalty: Option<f32>,
    /// How many tokens of the reply count as recent.
    #[schemars(range(min = 0, max = 8192), example = 64)]
    pub penalty_last_n: Option<u32>,
}

/// What is remembered, and how it is found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Memories in one prompt. When unset: a number that suits the model's family. A persona may set its own.
    #[schemars(range(min = 0, max = 50), example = 10)]
    pub top_k: Option<u32>,
    /// Memories that each signal of the search contributes before the results are fused. Fewer are faster and find
    /// less.
    #[schemars(range(min = 10, max = 1000))]
    pub candidates: u32,
    /// Characters of one memory that the model is shown: of a longer one, the parts that answer.
    #[schemars(range(min = 40, max = 4000))]
    pub snippet_chars: u32,
    /// Seconds after which a message counts as a memory for replies. Searches by command find it at once.
    #[schemars(range(min = 0, max = 86_400))]
    pub min_age_s: u64,
    /// The similarity from which two memories of one scope count as the same statement, unless a word differs that may
    /// tell them apart.
    #[schemars(range(min = 0.5, max = 1.0))]
    pub near_duplicate: f32,
    /// Minutes of silence after which a new session begins.
    #[schemars(range(min = 1, max = 10_080))]
    pub session_gap_minutes: u32,
    /// The similarity below which a hit by meaning is dropped. When unset: the embedding model's own, from the
    /// registry; with an embedding server, none.
    #[schemars(range(min = 0.0, max = 1.0), example = 0.2)]
    pub similarity_floor: Option<f32>,
    /// The largest file of a message that is kept, in bytes. Larger ones are only mentioned.
    #[schemars(range(min = 0, max = 1_073_741_824))]
    pub blob_max_bytes: u64,
    /// Most bytes of kept files in total; the oldest files go first. 0 keeps none.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub blobs_max_bytes: u64,
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
            blob_max_bytes: 8 << 20,
            blobs_max_bytes: 512 << 20,
        }
    }
}

/// When Azera answers in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// when mentioned, replied to or called by name
    Addressed,
    /// every message that is not meant for somebody else
    Always,
    /// no message
    Never,
}

/// Conversations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Chat {
    /// The persona that answers if nothing else was chosen.
    #[schemars(length(min = 1, max = 48))]
    pub persona: String,
    /// The role that people play towards the persona if nothing else was chosen.
    #[schemars(length(min = 1, max = 48))]
    pub user_persona: String,
    /// Names that call the persona in a group, in addition to its own.
    #[schemars(length(max = 16), inner(length(min = 1, max = 32)))]
    pub wake_names: Vec<String>,
    /// When Azera answers in groups whose channel sets nothing else. It answers direct messages unless `/answer never`
    /// was said there.
    pub answer: Answer,
    /// Messages of one chat that may wait for an answer. Azera rejects more.
    #[schemars(range(min = 1, max = 1000))]
    pub queue_per_chat: u32,
    /// Past messages of a chat in one prompt, as far as its tokens allow.
    #[schemars(range(min = 0, max = 1000))]
    pub history_messages: u32,
    /// The longest prompt, in tokens. When unset: the context minus the reply, or less if the model's family does
    /// better with less.
    #[schemars(range(min = 256, max = 1_048_576), example = 2048)]
    pub prompt_tokens: Option<u32>,
    /// The language and country of the help lines for somebody in danger, such as `en-GB` or `de-AT`, unless a place
    /// chose another. When unset: a page that finds help lines in any country.
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

/// Backups of the memory. `azera restore` brings one back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Backup {
    /// Make backups while Azera runs.
    pub enabled: bool,
    /// The folder of the backups. Choose another disk, so that backups survive the loss of this one. When unset:
    /// `backups` in the data folder.
    #[schemars(length(min = 1, max = 4096), example = "/mnt/other/azera")]
    pub dir: Option<PathBuf>,
    /// Minutes between two backups, if anything changed. After a slow backup Azera waits longer, so that backups take
    /// at most a twentieth of the time.
    #[schemars(range(min = 1, max = 10_080))]
    pub every_minutes: u32,
    /// Hours for which every backup is kept.
    #[schemars(range(min = 0, max = 8760))]
    pub keep_all_hours: u32,
    /// Hours for which the first backup of each hour is kept.
    #[schemars(range(min = 0, max = 87_600))]
    pub keep_hourly_hours: u32,
    /// Days for which the first backup of each day is kept. The newest backup is always kept.
    #[schemars(range(min = 0, max = 3650))]
    pub keep_daily_days: u32,
    /// The most backups to keep; the oldest are deleted first.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_count: u32,
    /// The most megabytes of backups to keep; the oldest are deleted first.
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
    /// failures
    Error,
    /// also conditions that may need attention
    Warn,
    /// also events
    Info,
    /// also details of how they happen
    Debug,
    /// everything
    Trace,
}

impl LogLevel {
    /// Returns the level as it is written in the configuration.
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

/// The format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// for people
    Text,
    /// one JSON object per line, for programs
    Json,
}

/// The log. It never contains what people say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// How much is logged. AZERA_LOG overrides it, also for single parts: `AZERA_LOG=warn,azera_engine=debug`.
    pub level: LogLevel,
    /// The format of a log line.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text }
    }
}
