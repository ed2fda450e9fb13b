use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use async_trait::async_trait;
use azera_model_api::{
    ChatMessage, ChatModel, ChatRequest, Error, Lora, LoraId, ModelInfo, Opening, Reply, ReplyText, Role, Score,
    ScoreRequest, Scorer, SessionKey,
};
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use crate::attention::Attention;
use crate::backend;
use crate::cache::{Cache, SHARED_PREFIXES};
use crate::config::{Dates, LlamaChatConfig, MAX_SLOTS, STEP_TOKENS};
use crate::disk::PrefixDisk;
use crate::engine::Engine;
use crate::events::EventSink;
use crate::job::{Command, Job, ReplyWork, Work};
use crate::kv::{Kv, position};
use crate::length::{Length, Thoughts};
use crate::lora::{LoadedLoras, LoraPool, LoraSetKey};
use crate::prompt::{Prompt, PromptRequest, PromptTokenizer};
use crate::sampler::Sampler;
use crate::score::{MAX_CONTINUATIONS, SCORE_BRANCHES, ScoreWork};
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use crate::worker::{Inbox, Ticket, Worker};

/// The most stop strings in a request.
pub const MAX_STOP_STRINGS: usize = 32;

/// The longest stop string, in bytes. As much of a reply may be held back.
pub const MAX_STOP_BYTES: usize = 256;

/// The most commands other than requests in the channel to the engine.
const CONTROL_COMMANDS: usize = 16;

/// A chat model in llama.cpp, on a thread of its own.
///
/// Many requests run at once in one decode loop. The same request with the same seed gives the same reply if it runs
/// alone on the engine. With other requests beside it, or with another part of its prompt cached, sums are computed in
/// another order, and a near tie between two tokens may be decided differently.
///
/// Dropping it fails running requests with [`Error::Stopped`], and waits for the thread for at most one decode step.
#[derive(Debug)]
pub struct LlamaChat {
    info: ModelInfo,
    model: Arc<LlamaModel>,
    prompter: PromptTokenizer,
    pub(crate) pool: LoraPool,
    reading_lora: Option<Lora>,
    worker: Worker<Command>,
    waiting: Arc<AtomicUsize>,
    queue: usize,
}

impl LlamaChat {
    /// Loads a model and starts its engine. Blocks until it is ready, which takes as long as reading the file.
    ///
    /// # Errors
    /// [`Error::Load`] if the file cannot be read as a chat model, or a limit is invalid.
    pub fn load(config: LlamaChatConfig) -> Result<Arc<Self>, Error> {
        check_limits(&config)?;
        let mut model = backend::load(&config.path, config.gpu_layers)?;
        let pool = LoraPool::open(&config, &mut model)?;
        let attention = Attention::of(&config, &model)?;
        let model = Arc::new(model);
        let context_tokens = config.context_tokens.min(usize::try_from(model.n_ctx_train()).unwrap_or(usize::MAX));
        let prompter = PromptTokenizer {
            template: template(&model, config.dates.clone())?,
            tokenizer: Tokenizer::new(Arc::clone(&model)),
            state_identity: attention.identity(&config.identity),
        };
        let info = ModelInfo {
            name: config.name.clone(),
            family: config.family.clone(),
            parameters: Some(model.n_params()),
            context_tokens,
            thinks: Some(prompter.template.may_think()),
            trusted_in_danger: config.trusted_in_danger,
        };
        let (queue, reading_lora) = (config.queue, config.reading_lora.clone());
        let (engine_model, own) = (Arc::clone(&model), pool.own_set());
        let (worker, ()) = Worker::start("llama-chat", queue + CONTROL_COMMANDS, move |inbox, ready| {
            run(&engine_model, &config, attention, own, inbox, &mut || ready(()))
        })?;
        Ok(Arc::new(Self { info, model, prompter, pool, reading_lora, worker, waiting: Arc::default(), queue }))
    }

    fn check_room(&self, prompt: usize, reply: usize) -> Result<usize, Error> {
        let context = self.info.context_tokens;
        match prompt.checked_add(reply).filter(|room| *room <= context) {
            Some(room) => Ok(room),
            None => Err(Error::TooLong { prompt, reply, context }),
        }
    }

    /// Returns the tokens of the model's own replies in a prompt.
    fn said(&self, messages: &[ChatMessage], unsaid: &[String]) -> Vec<Vec<LlamaToken>> {
        let own = messages.iter().filter(|message| message.role == Role::Assistant);
        let texts = own.map(|message| message.content.as_str()).chain(unsaid.iter().map(String::as_str));
        texts.map(|text| self.prompter.tokenizer.content(text)).collect()
    }

    /// Returns the limit of a request's thoughts, if it has one. Where it is unknown what ends them, they go on to the
    /// limit of thoughts and reply together.
    fn thoughts(&self, request: &ChatRequest) -> Option<Thoughts> {
        let end = self.prompter.template.end_of_thinking();
        let closing = || end.map_or_else(Vec::new, |end| self.prompter.tokenizer.markup(end));
        (request.thinking && request.thinking_tokens > 0)
            .then(|| Thoughts { most: request.thinking_tokens, closing: closing() })
    }

    /// Returns the LoRAs of a request, and reads them from their files if they are not in memory.
    async fn lora(&self, loras: &[Lora]) -> Result<Option<Arc<LoadedLoras>>, Error> {
        let lora = self.pool.set(loras).await?;
        if self.pool.make_room(lora.as_ref().map(|lora| &lora.key)) {
            // If the channel is full, the engine is not idle and needs no wake-up.
            self.worker.commands()?.try_send(Command::ReleaseLoras).ok();
        }
        Ok(lora)
    }

    fn submit(&self, job: Job) -> Result<(), Error> {
        self.worker.commands()?.try_send(Command::Work(Box::new(job))).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy { waiting: self.queue },
            TrySendError::Closed(_) => Error::Stopped,
        })
    }
}

#[async_trait]
impl ChatModel for LlamaChat {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.prompter.tokenizer.content(text).len()
    }

    fn reading_lora(&self) -> Option<&Lora> {
        self.reading_lora.as_ref()
    }

    async fn chat(&self, request: ChatRequest) -> Result<Reply, Error> {
        let arrived = Instant::now();
        check_request(&request)?;
        let ticket = Ticket::take(&self.waiting, 1, self.queue)?;
        let said = match request.sampling.phrase_penalty > 0.0 {
            true => self.said(&request.messages, &request.unsaid),
            false => Vec::new(),
        };
        let lora = self.lora(&request.loras).await?;
        let is_shaped = request.grammar.is_some();
        let sampler = Sampler::new(&self.model, &request.sampling, request.grammar.as_ref(), said)?;
        let Prompt { tokens, shared, inside_thinking } = self.prompter.prompt(&PromptRequest {
            messages: &request.messages,
            shared_messages: request.shared_messages,
            thinking: request.thinking,
            must_think: sampler.has_grammar(),
            within: false,
            set: lora.as_ref().map(|lora| &lora.key),
        })?;
        let length = Length::new(request.max_tokens, self.thoughts(&request));
        let room = self.check_room(tokens.len(), length.most())?;
        let (sender, cancelled, reply) = Reply::channel();
        self.submit(Job {
            priority: request.priority,
            arrived,
            ticket: Some(ticket),
            session: request.session,
            keep: true,
            prompt_len: tokens.len(),
            tokens,
            shared,
            lora,
            room,
            parked: None,
            work: Work::Reply(Box::new(ReplyWork {
                sampler,
                text: ReplyText::new(request.stop, if inside_thinking { Opening::Thinking } else { Opening::Reply })
                    .of_json(is_shaped),
                sink: EventSink::new(sender),
                cancelled,
                length,
                cached: None,
                first_token: None,
            })),
        })?;
        Ok(reply)
    }

    async fn warm(&self, request: ChatRequest) -> Result<(), Error> {
        // The token is of no use; the evaluated prompt is.
        self.chat(ChatRequest { max_tokens: 1, thinking_tokens: 0, ..request }).await?.collect().await.map(drop)
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(self)
    }

    async fn forget_session(&self, session: &SessionKey) -> Result<(), Error> {
        let (done, forgotten) = oneshot::channel();
        self.worker.commands()?.send(Command::Forget(session.clone(), done)).await.map_err(|_| Error::Stopped)?;
        forgotten.await.map_err(|_| Error::Stopped)
    }

    async fn forget_lora(&self, lora: &LoraId) -> Result<(), Error> {
        self.pool.forget(lora);
        let (done, forgotten) = oneshot::channel();
        self.worker.commands()?.send(Command::ForgetLora(*lora, done)).await.map_err(|_| Error::Stopped)?;
        forgotten.await.map_err(|_| Error::Stopped)
    }
}

#[async_trait]
impl Scorer for LlamaChat {
    async fn score(&self, request: ScoreRequest) -> Result<Vec<Score>, Error> {
        let arrived = Instant::now();
        if request.continuations.len() > MAX_CONTINUATIONS {
            return Err(Error::Invalid(format!("there are more than {MAX_CONTINUATIONS} continuations")));
        }
        let ticket = Ticket::take(&self.waiting, 1, self.queue)?;
        let lora = self.lora(&request.loras).await?;
        let prompt = self.prompter.prompt(&PromptRequest {
            messages: &request.messages,
            shared_messages: 0,
            thinking: false,
            must_think: false,
            within: request.within,
            set: lora.as_ref().map(|lora| &lora.key),
        })?;
        let continuations: Vec<_> =
            request.continuations.iter().map(|text| self.prompter.tokenizer.content(text)).collect();
        let prompt_len = prompt.tokens.len();
        self.check_room(prompt_len, continuations.iter().map(Vec::len).max().unwrap_or(0))?;
        let (result, scores) = oneshot::channel();
        let (work, cells) = ScoreWork::new(continuations, self.info.context_tokens - prompt_len, result);
        self.submit(Job {
            priority: request.priority,
            arrived,
            ticket: Some(ticket),
            keep: request.session.is_some(),
            session: request.session,
            prompt_len,
            tokens: prompt.tokens,
            shared: None,
            lora,
            room: prompt_len + cells,
            parked: None,
            work: Work::Score(Box::new(work)),
        })?;
        scores.await.map_err(|_| Error::Stopped)?
    }
}

fn check_limits(config: &LlamaChatConfig) -> Result<(), Error> {
    let wrong = |what: String| Err(Error::Load(what));
    if !(1..=MAX_SLOTS).contains(&config.slots) {
        return wrong(format!("slots is {}, outside 1 to {MAX_SLOTS}", config.slots));
    }
    if config.queue == 0 {
        return wrong("queue is 0; a request must be able to wait for its turn".into());
    }
    if config.context_tokens == 0 || config.cache_tokens < config.context_tokens {
        return wrong(format!(
            "cache_tokens is {} and context_tokens is {}; one conversation must fit",
            config.cache_tokens, config.context_tokens
        ));
    }
    Ok(())
}

fn check_request(request: &ChatRequest) -> Result<(), Error> {
    if request.max_tokens == 0 {
        return Err(Error::Invalid("max_tokens is 0".into()));
    }
    if request.stop.len() > MAX_STOP_STRINGS {
        return Err(Error::Invalid(format!("there are more than {MAX_STOP_STRINGS} stop strings")));
    }
    if request.stop.iter().any(|stop| stop.is_empty() || stop.len() > MAX_STOP_BYTES) {
        return Err(Error::Invalid(format!("a stop string is empty or has more than {MAX_STOP_BYTES} bytes")));
    }
    Ok(())
}

/// Reads the model's chat template. One that takes no conversation is reported now, and not by every reply.
pub(crate) fn template(model: &LlamaModel, dates: Dates) -> Result<ChatTemplate, Error> {
    let none = || Error::Load("the model has no chat template; it is not made for chat".into());
    let source = model.chat_template(None).map_err(|_| none())?.to_string().map_err(|_| none())?;
    let vocab = model.vocab();
    let text = |token| vocab.text(token).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    ChatTemplate::new(source, text(vocab.bos()), text(vocab.eos()), dates).map_err(|error| {
        Error::Load(format!(
            "the chat template in the model's file does not work here: {error}; choose another file of this model, or \
             another model (`azera models list` names some)"
        ))
    })
}

/// The body of the engine's thread: creates the context and runs the engine until it is stopped.
fn run(
    model: &LlamaModel,
    config: &LlamaChatConfig,
    attention: Attention,
    own: Option<LoraSetKey>,
    inbox: Inbox<Command>,
    ready: &mut dyn FnMut(),
) -> Result<(), Error> {
    let disk = config.prefix_dir.clone().and_then(|dir| {
        PrefixDisk::open(dir, config.prefix_disk_bytes)
            .inspect_err(|error| tracing::warn!(%error, "cannot open the prefix folder; prefixes stay in memory only"))
            .ok()
    });
    // Running and resting conversations, shared prefixes, branches of a score, and the scratch sequence.
    let sequences = position(2 * config.slots + SHARED_PREFIXES + SCORE_BRANCHES + 1)?;
    let batch = position(STEP_TOKENS)?;
    let threads = backend::threads(config.threads);
    let params = LlamaContextParams::default()
        .with_n_ctx(std::num::NonZeroU32::new(position(config.cache_tokens)?))
        .with_n_batch(batch)
        .with_n_seq_max(sequences)
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_kv_unified(true)
        .with_no_perf(true);
    let context = model
        .new_context(backend::backend()?, attention.set(params))
        .map_err(|error| Error::Load(format!("no context could be made: {error}")))?;
    let sequences = i32::try_from(sequences).unwrap_or(i32::MAX);
    let cuttable = !model.is_recurrent() && !model.is_hybrid();
    let cells = usize::try_from(context.n_ctx()).unwrap_or(config.cache_tokens).min(config.cache_tokens);
    let cache = Cache::new(Kv::new(context, sequences), cells, config.parked_bytes, disk, own, cuttable);
    let engine = Engine::new(model, cache, inbox, config.slots);
    ready();
    engine.run();
    Ok(())
}
