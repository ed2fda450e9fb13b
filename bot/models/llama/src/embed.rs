use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use azera_model_api::{Embedder, EmbedderInfo, Error, Priority, Purpose};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use crate::backend;
use crate::config::LlamaEmbedderConfig;
use crate::kv::position;
use crate::worker::{Inbox, Ticket, Worker};

/// The most texts in one step.
pub const EMBED_STEP_TEXTS: usize = 64;

/// The most tokens in one step, unless a single text has more. In an encoder, every token of a step looks at every
/// other before the tokens of other texts are masked out, so larger steps cost more than they save.
pub const EMBED_STEP_TOKENS: usize = 512;

/// The most requests in the channel to the engine.
const COMMANDS: usize = 256;

/// An embedding model in llama.cpp, with one thread for foreground texts and one for background texts. So a person's
/// query does not wait until earlier messages are embedded. Texts of different requests share steps.
///
/// Dropping it fails waiting requests with [`Error::Stopped`], and waits for the threads for at most one step.
#[derive(Debug)]
pub struct LlamaEmbedder {
    info: EmbedderInfo,
    model: Arc<LlamaModel>,
    query_prefix: String,
    document_prefix: String,
    window: usize,
    foreground: Worker<Request>,
    background: Worker<Request>,
    waiting: Arc<AtomicUsize>,
    queue: usize,
}

impl LlamaEmbedder {
    /// Loads a model and starts its engine. Blocks until it is ready.
    ///
    /// # Errors
    /// [`Error::Load`] if the file cannot be read as an embedding model.
    pub fn load(config: LlamaEmbedderConfig) -> Result<Arc<Self>, Error> {
        if config.window_tokens < 2 {
            return Err(Error::Load("window_tokens is less than 2".into()));
        }
        let model = Arc::new(backend::load(&config.path, config.gpu_layers)?);
        let trained = usize::try_from(model.n_ctx_train()).unwrap_or(usize::MAX);
        let window = config.window_tokens.min(trained);
        let dimension = usize::try_from(model.n_embd_out())
            .map_err(|_| Error::Load("the model tells no size of its vectors".into()))?;
        let info = EmbedderInfo {
            id: config.id,
            dimension,
            similarity_floor: config.similarity_floor,
            asks_otherwise: !config.query_prefix.is_empty(),
        };
        let threads = backend::embedding_threads(config.threads);
        let start = |name, niceness| {
            let model = Arc::clone(&model);
            let engine = move |inbox: Inbox<Request>, ready: &mut dyn FnMut(())| {
                backend::give_way(niceness);
                let step_tokens = window.max(EMBED_STEP_TOKENS);
                let context = context(&model, step_tokens, threads)?;
                ready(());
                Engine::new(context, inbox).run();
                Ok(())
            };
            Ok(Worker::start(name, COMMANDS, engine)?.0)
        };
        let (foreground, background) =
            (start("llama-embed-live", 0)?, start("llama-embed", backend::BACKGROUND_NICENESS)?);
        Ok(Arc::new(Self {
            info,
            model,
            query_prefix: config.query_prefix,
            document_prefix: config.document_prefix,
            window,
            foreground,
            background,
            waiting: Arc::default(),
            queue: config.queue,
        }))
    }

    /// Returns the tokens of a text with its prefix and the model's special tokens, cut to the window. Never empty.
    fn tokens(&self, text: &str, purpose: Purpose) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        let prefix = match purpose {
            Purpose::Query => &self.query_prefix,
            Purpose::Document => &self.document_prefix,
        };
        let mut tokens = if prefix.is_empty() {
            vocab.tokenize(text.as_bytes(), true, false)
        } else {
            vocab.tokenize(format!("{prefix}{text}").as_bytes(), true, false)
        };
        if tokens.len() > self.window {
            let end = tokens.last().copied().filter(|last| vocab.is_control(*last));
            tokens.truncate(self.window);
            if let (Some(end), Some(last)) = (end, tokens.last_mut()) {
                *last = end;
            }
        }
        if tokens.is_empty() {
            tokens.push(vocab.eos());
        }
        tokens
    }
}

#[async_trait]
impl Embedder for LlamaEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    async fn embed(&self, texts: Vec<String>, purpose: Purpose, priority: Priority) -> Result<Vec<Vec<f32>>, Error> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let ticket = Ticket::take(&self.waiting, texts.len(), self.queue)?;
        let texts: Vec<_> = texts.iter().map(|text| self.tokens(text, purpose)).collect();
        let (result, vectors) = oneshot::channel();
        let request =
            Request { vectors: vec![Vec::new(); texts.len()], texts, next: 0, done: 0, result, _ticket: ticket };
        let worker = match priority {
            Priority::Foreground => &self.foreground,
            Priority::Background => &self.background,
        };
        worker.commands()?.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy { waiting: self.queue },
            TrySendError::Closed(_) => Error::Stopped,
        })?;
        vectors.await.map_err(|_| Error::Stopped)?
    }
}

/// Texts to embed for one caller.
struct Request {
    texts: Vec<Vec<LlamaToken>>,
    vectors: Vec<Vec<f32>>,
    next: usize,
    done: usize,
    result: oneshot::Sender<Result<Vec<Vec<f32>>, Error>>,
    _ticket: Ticket,
}

impl Request {
    fn answer(self, error: Option<Error>) {
        // A caller that left needs no result.
        self.result.send(error.map_or(Ok(self.vectors), Err)).ok();
    }
}

fn context(model: &LlamaModel, step_tokens: usize, threads: i32) -> Result<LlamaContext<'_>, Error> {
    let tokens = position(step_tokens)?;
    let params = LlamaContextParams::default()
        .with_n_ctx(std::num::NonZeroU32::new(tokens))
        .with_n_batch(tokens)
        .with_n_ubatch(tokens)
        .with_n_seq_max(position(EMBED_STEP_TEXTS)?)
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_kv_unified(true)
        .with_embeddings(true)
        .with_no_perf(true);
    model
        .new_context(backend::backend()?, params)
        .map_err(|error| Error::Load(format!("no context could be made: {error}")))
}

struct Engine<'m> {
    context: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    inbox: Inbox<Request>,
    queue: VecDeque<Request>,
}

impl<'m> Engine<'m> {
    fn new(context: LlamaContext<'m>, inbox: Inbox<Request>) -> Self {
        let tokens = usize::try_from(context.n_batch()).unwrap_or(EMBED_STEP_TOKENS);
        Self { context, batch: LlamaBatch::new(tokens, 1), inbox, queue: VecDeque::new() }
    }

    fn run(mut self) {
        while self.listen() {
            self.queue.retain(|request| !request.result.is_closed());
            // The callers may have left.
            if !self.queue.is_empty() {
                self.step();
            }
        }
        for request in self.queue.drain(..) {
            request.answer(Some(Error::Stopped));
        }
    }

    /// Receives requests, and waits if there is no work. Returns false if the engine must stop.
    fn listen(&mut self) -> bool {
        loop {
            if self.inbox.is_stopped() {
                return false;
            }
            let request = match self.inbox.commands.try_recv() {
                Ok(request) => request,
                Err(_) if !self.queue.is_empty() => return true,
                Err(_) => match self.inbox.commands.blocking_recv() {
                    Some(request) => request,
                    None => return false,
                },
            };
            self.queue.push_back(request);
        }
    }

    /// Embeds as many of the first texts as fit in one step.
    fn step(&mut self) {
        let mut taken: Vec<Request> = Vec::new();
        // For each sequence, the request in `taken` and the text in it.
        let mut places: Vec<(usize, usize)> = Vec::new();
        self.batch.clear();
        let mut tokens = 0;
        let mut full = false;
        while !full && let Some(mut request) = self.queue.pop_front() {
            while let Some(text) = request.texts.get(request.next) {
                // A text longer than a step is a step of its own.
                let fits = tokens == 0 || tokens + text.len() <= EMBED_STEP_TOKENS;
                full = places.len() == EMBED_STEP_TEXTS || !fits;
                if full {
                    break;
                }
                tokens += text.len();
                places.push((taken.len(), request.next));
                request.next += 1;
            }
            taken.push(request);
        }
        let failed = self.evaluate(&mut taken, &places).err();
        let mut unfinished = Vec::new();
        for request in taken {
            match &failed {
                Some(error) => request.answer(Some(Error::Engine(error.to_string()))),
                None if request.done == request.texts.len() => request.answer(None),
                None => unfinished.push(request),
            }
        }
        for request in unfinished.into_iter().rev() {
            self.queue.push_front(request);
        }
    }

    fn evaluate(&mut self, requests: &mut [Request], places: &[(usize, usize)]) -> Result<(), Error> {
        let failed = |error: &dyn std::error::Error| Error::Engine(format!("embedding failed: {error}"));
        for (sequence, (request, text)) in (0..).zip(places) {
            for (position, token) in (0..).zip(&requests[*request].texts[*text]) {
                self.batch.add(*token, position, &[sequence], true).map_err(|error| failed(&error))?;
            }
        }
        self.context.clear_kv_cache();
        self.context.decode(&mut self.batch).map_err(|error| failed(&error))?;
        for (sequence, (request, text)) in (0..).zip(places) {
            let vector = self.context.embeddings_seq_ith(sequence).map_err(|error| failed(&error))?;
            let request = &mut requests[*request];
            request.vectors[*text] = normalized(vector)?;
            request.done += 1;
        }
        Ok(())
    }
}

fn normalized(vector: &[f32]) -> Result<Vec<f32>, Error> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return Err(Error::Engine("the model gave a vector without direction".into()));
    }
    Ok(vector.iter().map(|x| (f64::from(*x) / length) as f32).collect())
}
