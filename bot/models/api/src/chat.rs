use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{Error, Lora, LoraId, Scorer};

/// Events an engine may be ahead of the reader of a [`Reply`].
pub const REPLY_QUEUE: usize = 256;

/// Who speaks in a [`ChatMessage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The people it talks with.
    User,
    /// The model itself.
    Assistant,
}

impl Role {
    /// The name chat templates use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a prompt, before the model's chat template is applied.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said. Engines tokenize it as plain text: control tokens written in it stay harmless text.
    pub content: String,
}

impl ChatMessage {
    /// A message of `role`.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into() }
    }
}

impl fmt::Debug for ChatMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{} bytes]", self.role.as_str(), self.content.len())
    }
}

/// Names a conversation whose evaluated tokens are worth keeping between requests. Opaque to engines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey(Arc<str>);

impl SessionKey {
    /// A key; equal strings mean the same conversation with the same persona.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }

    /// The key as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a person waits for the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Priority {
    /// Work nobody waits for; gives way to live chat between decode steps.
    Background,
    /// A person waits.
    #[default]
    Foreground,
}

/// How the next token is chosen. Fields follow llama.cpp's samplers; a neutral value switches one off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// Softmax temperature; 0 is greedy.
    pub temperature: f32,
    /// Keep the k most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set of tokens whose probability reaches this; 1 keeps all.
    pub top_p: f32,
    /// Drop tokens less likely than this share of the likeliest; 0 keeps all.
    pub min_p: f32,
    /// Divide the logits of recently seen tokens by this; 1 is neutral.
    pub repeat_penalty: f32,
    /// Subtract this from the logit of a recent token for each time it was seen; 0 is neutral.
    pub frequency_penalty: f32,
    /// Subtract this once from the logit of a recent token; 0 is neutral.
    pub presence_penalty: f32,
    /// How many tokens back the penalties look. They look at the reply alone, never at the prompt: a remembered fact
    /// must stay sayable.
    pub penalty_last_n: u32,
    /// How strongly going on with a phrase that stands in an earlier reply of this conversation, or earlier in this
    /// one, is discouraged: subtracted from the logit, times [`Sampling::PHRASE_GROWTH`] for each token the phrase is
    /// longer than `phrase_tokens`. 0 is neutral. The idea of the DRY sampler, looking at the model's own words alone.
    pub phrase_penalty: f32,
    /// Tokens that may be repeated freely.
    pub phrase_tokens: u32,
    /// Seed of the sampler; `None` draws one.
    pub seed: Option<u32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.1,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            penalty_last_n: 64,
            phrase_penalty: 0.0,
            phrase_tokens: 4,
            seed: None,
        }
    }
}

impl Sampling {
    /// Growth of the phrase penalty for each repeated token beyond the free ones (DRY's usual base).
    pub const PHRASE_GROWTH: f32 = 1.75;

    /// The likeliest token each time.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repeat_penalty: 1.0, ..Self::default() }
    }
}

/// A constraint on the shape of the reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Grammar {
    /// GBNF, llama.cpp's grammar notation, with a rule named `root`.
    Gbnf(String),
    /// A JSON schema; the reply is one JSON value that satisfies it.
    JsonSchema(serde_json::Value),
}

/// One reply asked of a chat model.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The prompt, oldest first. The last message is the one to answer.
    pub messages: Vec<ChatMessage>,
    /// How many leading messages many conversations share (a persona's prompt). Their evaluation is shared between
    /// sessions and may be kept on disk, so nothing private may stand in them.
    pub shared_messages: usize,
    /// The conversation whose evaluated tokens to reuse and keep; `None` keeps nothing.
    pub session: Option<SessionKey>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Tokens the reply may have at most, thinking included.
    pub max_tokens: usize,
    /// Strings that end the reply; they are not part of it.
    pub stop: Vec<String>,
    /// A constraint on the reply's shape.
    pub grammar: Option<Grammar>,
    /// Who waits.
    pub priority: Priority,
    /// Whether a model that can think aloud may do so first.
    pub thinking: bool,
    /// Adapters to answer with, on top of those the model itself was loaded with. A reply keeps to the end those it was
    /// asked with; other adapters take effect with the next one. Nothing that was evaluated under one set of adapters is
    /// continued under another.
    pub loras: Vec<Lora>,
}

impl ChatRequest {
    /// A live request without session, grammar, adapters or stop strings, with default sampling and 512 tokens of reply.
    pub fn new(messages: Vec<ChatMessage>) -> Self {
        Self {
            messages,
            shared_messages: 0,
            session: None,
            sampling: Sampling::default(),
            max_tokens: 512,
            stop: Vec::new(),
            grammar: None,
            priority: Priority::Foreground,
            thinking: false,
            loras: Vec::new(),
        }
    }
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended it.
    Stop,
    /// A stop string was met.
    StopString,
    /// `max_tokens` or the context window was reached.
    Length,
}

/// What a reply cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens whose evaluation was reused, as far as the engine tells.
    pub cached_tokens: usize,
    /// Prompt tokens evaluated for this reply; `prompt_tokens - cached_tokens`.
    pub evaluated_tokens: usize,
    /// Tokens generated.
    pub completion_tokens: usize,
    /// Milliseconds from the request's arrival at the engine to its first token, waiting included.
    pub ttft_ms: f64,
    /// Generated tokens a second after the first one; 0 when there was only one.
    pub tokens_per_s: f64,
    /// Why it ended.
    pub finish: FinishReason,
    /// Whether the counts of tokens are estimates, because the engine told none.
    #[serde(default)]
    pub estimated: bool,
}

/// What happens while a reply is made, in order.
#[derive(Clone, PartialEq)]
pub enum Event {
    /// The model begins to think aloud.
    ThinkingStart,
    /// A piece of its thinking.
    Thinking(String),
    /// The thinking is over.
    ThinkingEnd,
    /// A piece of the reply; never empty, whole characters.
    Content(String),
    /// The reply is complete. Always the last event of a reply that did not fail.
    Done(Usage),
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThinkingStart => f.write_str("ThinkingStart"),
            Self::Thinking(t) => write!(f, "Thinking[{} bytes]", t.len()),
            Self::ThinkingEnd => f.write_str("ThinkingEnd"),
            Self::Content(t) => write!(f, "Content[{} bytes]", t.len()),
            Self::Done(u) => write!(f, "Done({u:?})"),
        }
    }
}

/// A reply being made. Dropping it cancels the work.
#[derive(Debug)]
pub struct Reply {
    events: mpsc::Receiver<Result<Event, Error>>,
    _cancel: DropGuard,
}

impl Reply {
    /// The reader's and the engine's ends: the engine sends events until [`Event::Done`] or an error, and stops early
    /// when the token is cancelled.
    pub fn channel() -> (mpsc::Sender<Result<Event, Error>>, CancellationToken, Self) {
        let (sender, events) = mpsc::channel(REPLY_QUEUE);
        let token = CancellationToken::new();
        let reply = Self { events, _cancel: token.clone().drop_guard() };
        (sender, token, reply)
    }

    /// The next event; `None` after [`Event::Done`] or an error.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        self.events.recv().await
    }

    /// Waits for the whole reply and gives its content without the thinking.
    pub async fn collect(mut self) -> Result<(String, Usage), Error> {
        let mut text = String::new();
        while let Some(event) = self.next().await {
            match event? {
                Event::Content(piece) => text.push_str(&piece),
                Event::Done(usage) => return Ok((text, usage)),
                Event::ThinkingStart | Event::Thinking(_) | Event::ThinkingEnd => {}
            }
        }
        Err(Error::Stopped)
    }
}

/// What a chat model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its name in the ledger.
    pub name: String,
    /// Its family in the ledger (`smollm2`, `qwen3`, ...); prompt forms are chosen by it.
    pub family: String,
    /// Tokens one conversation can hold, prompt and reply together.
    pub context_tokens: usize,
    /// Whether this very model passed the safety check, so that it may speak to somebody in danger. For every other the help
    /// lines are the whole reply.
    pub trusted_in_danger: bool,
}

/// A model that answers.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// What it is.
    fn info(&self) -> &ModelInfo;

    /// Tokens of `text` as content of a message, without the template around it. The same text always counts the same;
    /// where the engine's tokenizer cannot be asked it is an estimate that rather counts too much.
    fn count_tokens(&self, text: &str) -> usize;

    /// Starts a reply. Returns once the request is queued; fails at once when it can never be served.
    async fn chat(&self, request: ChatRequest) -> Result<Reply, Error>;

    /// How likely it finds texts, where the engine can say so.
    fn scorer(&self) -> Option<&dyn Scorer> {
        None
    }

    /// The adapter with which requests have it read what people say as JSON, where it has one; it is added to those that the model
    /// was loaded with.
    fn reading_lora(&self) -> Option<&Lora> {
        None
    }

    /// Drops every evaluated token kept for `session`, in memory and on disk, as far as that is this process's to do.
    async fn forget_session(&self, session: &SessionKey) -> Result<(), Error>;

    /// Drops an adapter that requests named, and everything evaluated under it, as far as that is this process's to do.
    /// Replies under way keep it to their end. A request that names it later loads it again.
    async fn forget_lora(&self, _lora: &LoraId) -> Result<(), Error> {
        Ok(())
    }
}
