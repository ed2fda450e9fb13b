use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use azera_model_api::{
    ChatModel, ChatRequest, Error as ModelError, Event, FinishReason, Grammar, ModelInfo, Opening, Priority, Reply,
    ReplyText, SessionKey, Usage,
};
use azera_server_messages::SentTexts;
use tokio::sync::{Semaphore, TryAcquireError, mpsc};
use tokio::time::{Instant, timeout};

use crate::about::About;
use crate::config::{Api, CHAT_QUEUE, RemoteChatConfig};
use crate::error::Error;
use crate::events::ReplyEvents;
use crate::server::Server;
use crate::stream::Stream;
use crate::tokens::Tokens;
use crate::wire::{Counts, End, Piece};
use crate::{ollama, openai};

/// The background requests that may run at the same time. A server does not know which of two requests is urgent, so
/// foreground requests must always find a slot.
pub const BACKGROUND_SLOTS: usize = 1;

/// The most tokens that a server's template adds to each message, in the known models.
const TEMPLATE_TOKENS: usize = 8;

/// The most bytes per token on average over a reply; the longest known tokens have 128. A server that continues beyond
/// `max_tokens` is stopped with this.
pub const LONGEST_TOKEN_BYTES: usize = 64;

/// A chat model on a server.
///
/// It cannot guarantee everything that an engine in this process can:
/// - Tokens are estimated before a request (see [`crate::DEFAULT_BYTES_PER_TOKEN`]), and the server counts them
///   afterwards. [`Usage::estimated`] is true if the server did not report both counts.
/// - [`Usage::cached_tokens`] is what the server reports as reused: `prompt_tokens_details.cached_tokens` or `cache_n`
///   in OpenAI's format, nothing with Ollama. [`ChatRequest::session`] and [`ChatRequest::shared_messages`] are not
///   sent, because servers find shared beginnings of prompts by themselves.
/// - The seed is sent, and the reply is as reproducible as the server makes it.
/// - Penalties are sent only to servers that apply them to the reply alone, as Azera does: the OpenAI kind.
///   `llama-server` and Ollama also apply them to the prompt, so there they stay neutral. The phrase penalty and the
///   repeat penalty are sent to no server.
/// - A stop string that the server finds ends a reply with [`FinishReason::Stop`], because the server does not say
///   which it was. One that is found here, because the server accepts fewer, gives [`FinishReason::StopString`].
/// - The server must keep to a JSON schema; this client checks only that the reply is JSON. Only `llama-server`
///   supports GBNF.
/// - [`ChatRequest::thinking`] is sent to `llama-server` and Ollama. The OpenAI kind has no common switch.
/// - A server counts thoughts and reply together, so it gets the sum of their limits. It cannot be told to end the
///   thoughts and begin to answer. If they take everything, the reply is empty and ends with [`FinishReason::Length`].
/// - [`ChatModel::forget_session`] does nothing, because a server decides itself what it keeps of a prompt.
pub struct RemoteChat {
    tokens: Tokens,
    /// Permits for running and waiting requests together.
    room: Arc<Semaphore>,
    inner: Arc<Inner>,
}

struct Inner {
    server: Arc<Server>,
    config: RemoteChatConfig,
    /// What the configuration and the model's name tell.
    assumed: ModelInfo,
    /// The same with what the server told, as soon as it did.
    asked: OnceLock<ModelInfo>,
    tokens: Tokens,
    running: Semaphore,
    background: Semaphore,
    /// Optional fields that the server rejected.
    left_out: Mutex<BTreeSet<String>>,
    /// True if the last reply held the end of a thinking block without its beginning: the server's template opens it in
    /// the prompt. The next reply is then shown only after that end.
    opens_thinking: AtomicBool,
    /// True after the warning that prompts are longer than estimated.
    warned: AtomicBool,
}

impl std::fmt::Debug for RemoteChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteChat").field("info", self.info()).finish_non_exhaustive()
    }
}

impl RemoteChat {
    /// Asks a server about its model and creates a client. If the server is unreachable, the configuration is trusted,
    /// because the server may be back for the first reply. It is then asked again before each request.
    ///
    /// # Errors
    /// Errors that a person must fix: a wrong address or key, or a missing model.
    pub async fn connect(config: RemoteChatConfig) -> Result<Arc<Self>, Error> {
        let server = Arc::new(Server::new(config.server.clone())?);
        let about = match server.about().await {
            Ok(about) => Some(about),
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "cannot reach the chat model's server yet");
                None
            }
            Err(error) => return Err(error),
        };
        if about.as_ref().and_then(|about| about.names(&server.model)) == Some(false) {
            tracing::warn!(server = server.name(), model = server.model, "the server does not list the model");
        }
        let asked = about.map_or_else(OnceLock::new, |about| OnceLock::from(model_info(&config, &about)));
        let tokens = Tokens::new(config.bytes_per_token);
        let slots = config.slots.max(1);
        Ok(Arc::new(Self {
            tokens,
            room: Arc::new(Semaphore::new(slots + CHAT_QUEUE)),
            inner: Arc::new(Inner {
                server,
                assumed: model_info(&config, &About::default()),
                asked,
                config,
                tokens,
                running: Semaphore::new(slots),
                background: Semaphore::new(BACKGROUND_SLOTS),
                left_out: Mutex::default(),
                opens_thinking: AtomicBool::new(false),
                warned: AtomicBool::new(false),
            }),
        }))
    }
}

#[async_trait]
impl ChatModel for RemoteChat {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.tokens.of(text)
    }

    fn takes_gbnf(&self) -> bool {
        self.inner.takes_gbnf()
    }

    fn has_thinking_switch(&self) -> bool {
        self.inner.server.api != Api::OpenAi
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, ModelError> {
        let arrived = Instant::now();
        self.inner.check(&request)?;
        self.inner.ask_again().await;
        let prompt = request.messages.iter().map(|message| self.tokens.of(&message.content)).sum::<usize>();
        let context = self.info().context_tokens;
        let reply = most_tokens(self.inner.server.api, &request);
        if prompt.checked_add(reply).is_none_or(|room| room > context) {
            return Err(ModelError::TooLong { prompt, reply, context });
        }
        self.inner.server.check()?;
        let place = self.room.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => ModelError::Busy { waiting: CHAT_QUEUE },
            TryAcquireError::Closed => ModelError::Stopped,
        })?;
        tracing::debug!(model = self.info().name, prompt, "requesting a reply");
        let (sender, cancelled, reply) = Reply::channel();
        let inner = self.inner.clone();
        tokio::spawn(async move {
            let _place = place;
            let answer = inner.answer(&request, prompt, arrived, &sender);
            let answered = tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                answered = answer => answered,
            };
            // A reader that left does not want the end either.
            sender.send(answered.map(Event::Done)).await.ok();
        });
        Ok(reply)
    }

    async fn forget_session(&self, _session: &SessionKey) -> Result<(), ModelError> {
        Ok(())
    }
}

impl Inner {
    fn info(&self) -> &ModelInfo {
        self.asked.get().unwrap_or(&self.assumed)
    }

    /// Asks the server about its model if it could not be asked before.
    async fn ask_again(&self) {
        if self.asked.get().is_some() || self.server.check().is_err() {
            return;
        }
        match self.server.about().await {
            // Another request may have asked at the same time.
            Ok(about) => drop(self.asked.set(model_info(&self.config, &about))),
            Err(error) => tracing::warn!(%error, "cannot ask the chat model's server about its model"),
        }
    }

    fn takes_gbnf(&self) -> bool {
        self.server.api == Api::LlamaCpp
    }

    fn check(&self, request: &ChatRequest) -> Result<(), ModelError> {
        if request.max_tokens == 0 {
            return Err(ModelError::Invalid("max_tokens is 0".into()));
        }
        if request.stop.iter().any(String::is_empty) {
            return Err(ModelError::Invalid("a stop string is empty".into()));
        }
        if matches!(request.grammar, Some(Grammar::Gbnf(_))) && !self.takes_gbnf() {
            return Err(Error::Unsupported(format!("{} takes no GBNF grammar", self.server.name())).into());
        }
        if !request.loras.is_empty() {
            return Err(Error::Unsupported(format!("{} takes no adapters from here", self.server.name())).into());
        }
        Ok(())
    }

    async fn answer(
        &self,
        request: &ChatRequest,
        prompt: usize,
        arrived: Instant,
        sender: &mpsc::Sender<Result<Event, ModelError>>,
    ) -> Result<Usage, ModelError> {
        let _background = match request.priority {
            Priority::Background => Some(self.background.acquire().await.map_err(|_| ModelError::Stopped)?),
            Priority::Foreground => None,
        };
        let _slot = self.running.acquire().await.map_err(|_| ModelError::Stopped)?;
        let opened = self.server.retrying(|| self.open(request)).await;
        let (mut stream, first) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(self.server.with_known_models(error).await.into()),
        };
        Ok(self.pass_on(&mut stream, first, request, prompt, arrived, sender).await?)
    }

    /// Requests the reply and waits for its first piece. Nothing is shown before that, so this may be repeated.
    async fn open(&self, request: &ChatRequest) -> Result<(Stream, Piece), Error> {
        loop {
            match self.server.guarded(self.open_once(request)).await {
                Err(Error::Refused { parameter: Some(name), .. }) if self.leave_out(&name) => {
                    tracing::warn!(
                        server = self.server.name(),
                        field = name,
                        "the server rejects a field; omitting it from now on"
                    );
                }
                other => return other,
            }
        }
    }

    async fn open_once(&self, request: &ChatRequest) -> Result<(Stream, Piece), Error> {
        let server = &self.server;
        let (path, body) = match server.api {
            Api::Ollama => {
                // A model that cannot think rejects the option.
                let think = Some(request.thinking).filter(|think| !think || self.info().thinks != Some(false));
                ("/api/chat", ollama::body(&server.model, request, self.info().context_tokens, think))
            }
            Api::OpenAi | Api::LlamaCpp => {
                let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner).clone();
                ("/chat/completions", openai::body(server.api, &server.model, request, &left_out))
            }
        };
        let wait = server.patience.first;
        let first = timeout(wait, async {
            let response = server.send(server.post(path, &body), wait).await?;
            let mut stream = Stream::new(server.clone(), response, SentTexts::of(&body))?;
            let piece = stream.next().await?;
            Ok((stream, piece))
        });
        first.await.map_err(|_| server.silent(wait))?
    }

    /// Leaves out an optional field from now on. Returns false if the field is not optional or was left out before.
    fn leave_out(&self, field: &str) -> bool {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        openai::OPTIONAL.contains(&field) && left_out.insert(field.to_owned())
    }

    async fn pass_on(
        &self,
        stream: &mut Stream,
        first: Piece,
        request: &ChatRequest,
        prompt: usize,
        arrived: Instant,
        sender: &mpsc::Sender<Result<Event, ModelError>>,
    ) -> Result<Usage, Error> {
        let opens = self.opens_thinking.load(Ordering::Relaxed);
        let text = ReplyText::new(request.stop.clone(), if opens { Opening::Either } else { Opening::Reply });
        let mut events = ReplyEvents::new(text.of_json(request.grammar.is_some()), arrived);
        let mut whole = String::new();
        let mut piece = first;
        let end = loop {
            let mut out = Vec::new();
            let end = match piece {
                Piece::Thinking(text) => {
                    events.thinking(text, &mut out);
                    None
                }
                Piece::Content(text) => {
                    let stopped = events.content(&text, &mut out);
                    stopped.then_some(End { finish: FinishReason::StopString, counts: Counts::default() })
                }
                Piece::End(end) => {
                    events.end(end.finish, &mut out);
                    Some(end)
                }
            };
            for event in out {
                match &event {
                    Event::Content(text) if request.grammar.is_some() => whole.push_str(text),
                    Event::Retracted => whole.clear(),
                    _ => {}
                }
                // A reader that left has cancelled this too.
                sender.send(Ok(event)).await.ok();
            }
            if let Some(end) = end {
                break end;
            }
            if events.bytes() > most_tokens(self.server.api, request).saturating_mul(LONGEST_TOKEN_BYTES) {
                break End { finish: FinishReason::Length, counts: Counts::default() };
            }
            let idle = self.server.patience.idle;
            piece = timeout(idle, stream.next()).await.map_err(|_| self.server.silent(idle))??;
        };
        // A reply that was cut may have ended before its thinking did.
        let opens = events.found_lone_end() || (opens && end.finish == FinishReason::Length);
        self.opens_thinking.store(opens, Ordering::Relaxed);
        let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(&whole).is_ok();
        if matches!(request.grammar, Some(Grammar::JsonSchema(_))) && end.finish == FinishReason::Stop && !is_json() {
            return Err(self.server.protocol("the reply is not the JSON that was requested".to_owned()));
        }
        self.compare(prompt, end.counts.prompt, request);
        let usage = events.usage(end.finish, end.counts, [prompt, self.tokens.of_bytes(events.bytes())]);
        tracing::debug!(?usage, "reply");
        Ok(usage)
    }

    /// Warns once if prompts turn out longer than estimated, because they may not fit one day.
    fn compare(&self, estimated: usize, counted: Option<usize>, request: &ChatRequest) {
        let Some(counted) = counted else { return };
        let marks = TEMPLATE_TOKENS * request.messages.len();
        if counted > estimated + marks && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                server = self.server.name(),
                estimated,
                counted,
                "prompts have more tokens than estimated; a smaller bytes_per_token keeps long ones from being cut"
            );
        }
    }
}

/// Returns the most tokens that a server may generate: a reply and its thoughts, which servers count together. The
/// OpenAI kind has no switch, so its model may think unasked.
pub(crate) fn most_tokens(api: Api, request: &ChatRequest) -> usize {
    let may_think = request.thinking || api == Api::OpenAi;
    request.max_tokens.saturating_add(if may_think { request.thinking_tokens } else { 0 })
}

/// Returns what is known of the configured model.
fn model_info(config: &RemoteChatConfig, about: &About) -> ModelInfo {
    ModelInfo {
        name: config.server.full_name(),
        family: match config.family.as_str() {
            AUTO_FAMILY => family_of(about.architecture.as_deref(), &config.server.model).to_owned(),
            family => family.to_owned(),
        },
        parameters: about.parameters.or_else(|| named_size(&config.server.model)),
        context_tokens: config.context_tokens.min(about.context_tokens.unwrap_or(usize::MAX)),
        thinks: about.thinks,
        trusted_in_danger: false,
    }
}

/// In a configuration: the family that the server or the model's name tells.
const AUTO_FAMILY: &str = "auto";

/// The family of a model of which nothing tells one.
const UNKNOWN_FAMILY: &str = "generic";

/// Parts of models' names, and their families.
const FAMILY_NAMES: [(&str, &str); 9] = [
    ("smollm2", "smollm2"),
    ("qwen3", "qwen3"),
    ("qwen2", "qwen2"),
    ("gemma", "gemma3"),
    ("ministral", "mistral"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("llama3", "llama3"),
    ("llamav3", "llama3"),
];

/// Returns the family of a model by its architecture, or else by its name on the server.
fn family_of(architecture: Option<&str>, name: &str) -> &'static str {
    let name = name.to_lowercase().replace([' ', '-', '_'], "");
    match architecture {
        Some(architecture) if architecture.starts_with("qwen3") => return "qwen3",
        Some(architecture) if architecture.starts_with("gemma") => return "gemma3",
        Some(architecture) if architecture.starts_with("mistral") => return "mistral",
        Some("qwen2") => return "qwen2",
        // Many models have this architecture, and many servers report none.
        Some("llama") | None => {}
        Some(_) => return UNKNOWN_FAMILY,
    }
    FAMILY_NAMES.iter().find(|(part, _)| name.contains(part)).map_or(UNKNOWN_FAMILY, |(_, family)| family)
}

/// Returns the number of weights that a model's name gives, as in `qwen3:8b` or `Llama-3.2-1B-Instruct`.
fn named_size(name: &str) -> Option<u64> {
    let lower = name.to_lowercase();
    let parts = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let mut sizes = parts.filter_map(|part| {
        let (number, unit) = match (part.strip_suffix('b'), part.strip_suffix('m')) {
            (Some(number), _) => (number, 1e9),
            (None, Some(number)) => (number, 1e6),
            (None, None) => return None,
        };
        number.parse::<f64>().ok().filter(|number| *number > 0.0).map(|number| (number * unit) as u64)
    });
    sizes.next_back()
}

#[cfg(test)]
mod tests {
    use super::{family_of, named_size};

    #[test]
    fn a_models_architecture_or_name_gives_its_family() {
        for (architecture, name, family) in [
            (Some("qwen3"), "my-model", "qwen3"),
            (Some("qwen3moe"), "qwen3:30b-a3b", "qwen3"),
            (Some("gemma3n"), "gemma3n:e2b", "gemma3"),
            (Some("llama"), "llama3.2:1b", "llama3"),
            (Some("llama"), "mistral-small:24b", "mistral"),
            (Some("phi3"), "phi3:mini", "generic"),
            (None, "qwen3:8b", "qwen3"),
            (None, "Qwen/Qwen2.5-7B-Instruct", "qwen2"),
            (None, "meta-llama/Llama-3.3-70B-Instruct", "llama3"),
            (None, "gpt-4o", "generic"),
        ] {
            assert_eq!(family_of(architecture, name), family, "{name}");
        }
    }

    #[test]
    fn a_models_name_gives_its_size() {
        for (name, size) in [
            ("qwen3:8b", Some(8_000_000_000)),
            ("qwen3:0.6b", Some(600_000_000)),
            ("Llama-3.2-1B-Instruct", Some(1_000_000_000)),
            ("smollm2:135m", Some(135_000_000)),
            ("gpt-4o", None),
            ("b", None),
        ] {
            assert_eq!(named_size(name), size, "{name}");
        }
    }
}
