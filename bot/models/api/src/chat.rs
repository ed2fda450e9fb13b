use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{Error, Lora, LoraId, Scorer};

/// How many events an engine may be ahead of the reader of a [`Reply`].
pub const REPLY_QUEUE: usize = 256;

/// The speaker of a [`ChatMessage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The people who talk with the model.
    User,
    /// The model itself.
    Assistant,
}

impl Role {
    /// Returns the name that chat templates use.
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
    /// The speaker.
    pub role: Role,
    /// The text. Engines tokenize it as plain text, so control tokens written in it have no effect.
    pub content: String,
}

impl ChatMessage {
    /// Creates a message of `role`.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into() }
    }
}

impl fmt::Debug for ChatMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{} bytes]", self.role.as_str(), self.content.len())
    }
}

/// The name of a conversation whose evaluated tokens an engine keeps between requests. Opaque to engines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey(Arc<str>);

impl SessionKey {
    /// Creates a key. Equal strings mean the same conversation with the same persona.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }

    /// Returns the key as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a person waits for the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Priority {
    /// Nobody waits. The engine gives way to live chat between decode steps.
    Background,
    /// A person waits.
    #[default]
    Foreground,
}

/// How the next token is chosen. The fields follow llama.cpp's samplers. A neutral value disables a sampler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// The softmax temperature; 0 is greedy.
    pub temperature: f32,
    /// Keep the k likeliest tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set of tokens whose probability reaches this; 1 keeps all.
    pub top_p: f32,
    /// Drop tokens that are less likely than this share of the likeliest; 0 keeps all.
    pub min_p: f32,
    /// Divide the logits of recent tokens by this; 1 is neutral.
    pub repeat_penalty: f32,
    /// Subtract this from the logit of a recent token once for each time it occurred; 0 is neutral.
    pub frequency_penalty: f32,
    /// Subtract this once from the logit of a recent token; 0 is neutral.
    pub presence_penalty: f32,
    /// How many tokens the penalties look back. They look only at the reply, never at the prompt, so that a remembered
    /// fact can still be said.
    pub penalty_last_n: u32,
    /// The penalty for continuing a phrase from an earlier reply of this conversation or from earlier in this reply. It
    /// is subtracted from the logit, and grows by the factor [`Sampling::PHRASE_GROWTH`] for each token that the phrase
    /// is longer than `phrase_tokens`; 0 is neutral. This is the idea of the DRY sampler, applied only to the model's
    /// own words and to [`ChatRequest::unsaid`].
    pub phrase_penalty: f32,
    /// The length of a phrase, in tokens, that may be repeated freely.
    pub phrase_tokens: u32,
    /// The seed of the sampler; `None` draws a random one.
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
    /// The growth of the phrase penalty for each repeated token beyond the free ones (the usual base of DRY).
    pub const PHRASE_GROWTH: f32 = 1.75;

    /// Returns settings that take the likeliest token each time.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repeat_penalty: 1.0, ..Self::default() }
    }
}

/// A constraint on the form of the reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Grammar {
    /// GBNF, llama.cpp's grammar notation, with a rule named `root`.
    Gbnf(String),
    /// A JSON schema. The reply is one JSON value that satisfies it.
    JsonSchema(serde_json::Value),
}

impl Grammar {
    /// Returns a grammar for one paragraph that begins with `lead`. Control characters are left out of it.
    pub fn paragraph(lead: &str) -> Self {
        Self::Gbnf(format!("root ::= {} [^\\n]+", Self::quoted(lead)))
    }

    /// Returns a grammar for one English sentence without numbers that begins with `lead`.
    pub fn sentence(lead: &str) -> Self {
        Self::Gbnf(format!("root ::= {} [A-Za-z ,']* [.!]", Self::quoted(lead)))
    }

    fn quoted(lead: &str) -> String {
        let quoted: String = lead.chars().filter(|c| !c.is_control()).fold(String::new(), |mut quoted, c| {
            if matches!(c, '"' | '\\') {
                quoted.push('\\');
            }
            quoted.push(c);
            quoted
        });
        format!("\"{quoted}\"")
    }
}

/// A request for one reply from a chat model.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The prompt, oldest message first. The last message is the one to answer.
    pub messages: Vec<ChatMessage>,
    /// The number of leading messages that many conversations share (a persona's prompt). Engines share their
    /// evaluation between sessions and may store it on disk, so they must contain nothing private.
    pub shared_messages: usize,
    /// The conversation whose evaluated tokens are reused and kept; `None` keeps nothing.
    pub session: Option<SessionKey>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// The most tokens in the reply.
    pub max_tokens: usize,
    /// Strings that end the reply. They are not part of it.
    pub stop: Vec<String>,
    /// Texts that the reply should not say back. [`Sampling::phrase_penalty`] treats their phrases like those of earlier
    /// replies. Models on servers do not read them.
    pub unsaid: Vec<String>,
    /// A constraint on the form of the reply.
    pub grammar: Option<Grammar>,
    /// Whether a person waits for the reply.
    pub priority: Priority,
    /// True if a model that can think may do so first.
    pub thinking: bool,
    /// The most tokens of its thoughts, besides `max_tokens`. At this limit an engine ends the thoughts, and the reply
    /// begins. A server gets the sum of both limits and cannot end them apart; one that does not know whether its model
    /// thinks gets the sum without `thinking`, too. With 0, the thoughts count as part of the reply.
    pub thinking_tokens: usize,
    /// LoRAs for this request, in addition to those that the model was loaded with. A reply uses the LoRAs of its
    /// request to the end; others take effect with the next request. Tokens that were evaluated under one set of LoRAs
    /// are never reused under another.
    pub loras: Vec<Lora>,
}

impl ChatRequest {
    /// Creates a foreground request with default sampling, 512 tokens of reply, and no session, grammar, LoRAs or stop
    /// strings.
    pub fn new(messages: Vec<ChatMessage>) -> Self {
        Self {
            messages,
            shared_messages: 0,
            session: None,
            sampling: Sampling::default(),
            max_tokens: 512,
            stop: Vec::new(),
            unsaid: Vec::new(),
            grammar: None,
            priority: Priority::Foreground,
            thinking: false,
            thinking_tokens: 0,
            loras: Vec::new(),
        }
    }
}

/// The reason why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended it.
    Stop,
    /// A stop string occurred.
    StopString,
    /// `max_tokens` or the context window was reached.
    Length,
}

/// The cost of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens whose evaluation was reused, as far as the engine reports it.
    pub cached_tokens: usize,
    /// Prompt tokens evaluated for this reply: `prompt_tokens - cached_tokens`.
    pub evaluated_tokens: usize,
    /// Generated tokens.
    pub completion_tokens: usize,
    /// Milliseconds from the arrival of the request at the engine to the first token, including the time in the queue.
    pub ttft_ms: f64,
    /// Generated tokens per second after the first one; 0 if there was only one.
    pub tokens_per_s: f64,
    /// The reason why the reply ended.
    pub finish: FinishReason,
    /// True if the token counts are estimates because the engine reported none.
    #[serde(default)]
    pub estimated: bool,
}

/// The events of a reply, in order.
#[derive(Clone, PartialEq)]
pub enum Event {
    /// The model begins to think.
    ThinkingStart,
    /// A piece of the thinking.
    Thinking(String),
    /// The thinking is over.
    ThinkingEnd,
    /// A piece of the reply: never empty, only whole characters.
    Content(String),
    /// All content so far was thinking: it is no part of the reply. Content that follows is.
    Retracted,
    /// The reply is complete. This is the last event of every reply that did not fail.
    Done(Usage),
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThinkingStart => f.write_str("ThinkingStart"),
            Self::Thinking(t) => write!(f, "Thinking[{} bytes]", t.len()),
            Self::ThinkingEnd => f.write_str("ThinkingEnd"),
            Self::Content(t) => write!(f, "Content[{} bytes]", t.len()),
            Self::Retracted => f.write_str("Retracted"),
            Self::Done(u) => write!(f, "Done({u:?})"),
        }
    }
}

/// A reply in progress. Dropping it cancels the work.
#[derive(Debug)]
pub struct Reply {
    events: mpsc::Receiver<Result<Event, Error>>,
    _cancel: DropGuard,
}

impl Reply {
    /// Creates the engine's end and the reader's end of a reply. The engine sends events until [`Event::Done`] or an
    /// error, and stops early if the token is cancelled.
    pub fn channel() -> (mpsc::Sender<Result<Event, Error>>, CancellationToken, Self) {
        let (sender, events) = mpsc::channel(REPLY_QUEUE);
        let token = CancellationToken::new();
        let reply = Self { events, _cancel: token.clone().drop_guard() };
        (sender, token, reply)
    }

    /// Returns the next event, or `None` after [`Event::Done`] or an error.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        self.events.recv().await
    }

    /// Waits for the whole reply and returns its content without the thinking.
    pub async fn collect(mut self) -> Result<(String, Usage), Error> {
        let mut text = String::new();
        while let Some(event) = self.next().await {
            match event? {
                Event::Content(piece) => text.push_str(&piece),
                Event::Retracted => text.clear(),
                Event::Done(usage) => return Ok((text, usage)),
                Event::ThinkingStart | Event::Thinking(_) | Event::ThinkingEnd => {}
            }
        }
        Err(Error::Stopped)
    }
}

/// Facts about a chat model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The model's name in the registry.
    pub name: String,
    /// The model's family in the registry (`smollm2`, `qwen3`, ...), which selects the prompt form.
    pub family: String,
    /// The number of weights, if it is known. The prompt form depends on it, too.
    pub parameters: Option<u64>,
    /// Tokens in one conversation, prompt and reply together.
    pub context_tokens: usize,
    /// Whether the model can think before it replies; `None` if that is unknown.
    pub thinks: Option<bool>,
    /// True if this very model passed the safety check, so that it may answer somebody in danger. With any other model,
    /// the help lines are the whole reply.
    pub trusted_in_danger: bool,
}

/// A model that answers.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Returns facts about the model.
    fn info(&self) -> &ModelInfo;

    /// Returns the number of tokens in `text` as the content of a message, without the template around it. Equal texts
    /// have equal counts. If the engine's tokenizer cannot be asked, this is an estimate that tends to be too high.
    fn count_tokens(&self, text: &str) -> usize;

    /// Returns true if the engine takes grammars in GBNF.
    fn takes_gbnf(&self) -> bool {
        true
    }

    /// Returns true if [`ChatRequest::thinking`] decides whether a model that can think does so.
    fn has_thinking_switch(&self) -> bool {
        true
    }

    /// Starts a reply. Returns as soon as the request is queued, and fails at once if it can never be served.
    async fn chat(&self, request: ChatRequest) -> Result<Reply, Error>;

    /// Evaluates a prompt before its reply is wanted, so that a request of the same session whose prompt begins alike
    /// starts sooner. Dropping the future ends it, and what was evaluated stays of use. Engines that keep no evaluated
    /// tokens do nothing.
    async fn warm(&self, _request: ChatRequest) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the scorer, if the engine can rate how likely texts are.
    fn scorer(&self) -> Option<&dyn Scorer> {
        None
    }

    /// Returns the LoRA for requests that extract JSON from people's messages, if the model has one. It is added to the
    /// LoRAs that the model was loaded with.
    fn reading_lora(&self) -> Option<&Lora> {
        None
    }

    /// Drops every evaluated token that this process keeps for `session`, in memory and on disk.
    async fn forget_session(&self, session: &SessionKey) -> Result<(), Error>;

    /// Drops a LoRA that requests named, and everything that this process evaluated under it. Running replies keep it
    /// to their end. A later request that names it loads it again.
    async fn forget_lora(&self, _lora: &LoraId) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_of_a_paragraph_is_quoted() {
        let Grammar::Gbnf(grammar) = Grammar::paragraph("\"A\\\nnn\" told me") else { panic!("another grammar") };
        assert_eq!(grammar, r#"root ::= "\"A\\nn\" told me" [^\n]+"#);
    }
}
