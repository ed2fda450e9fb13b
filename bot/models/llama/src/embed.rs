use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use azera_model_api::{Embedder, EmbedderInfo, Error, Priority, Purpose};
use llama_cpp_2::context::params::LlamaPoolingType;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use tokio::sync::mpsc::error::TrySendError;

use crate::backend;
use crate::config::LlamaEmbedderConfig;
use crate::encoder::{EMBED_STEP_TOKENS, Engine, Request, context};
use crate::worker::{Inbox, Ticket, Worker};

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
                let context = context(&model, step_tokens, threads, LlamaPoolingType::Unspecified)?;
                ready(());
                Engine::new(context, EMBED_STEP_TOKENS, inbox).run();
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
        let (request, vectors) = Request::new(texts, ticket);
        let worker = match priority {
            Priority::Foreground => &self.foreground,
            Priority::Background => &self.background,
        };
        worker.commands()?.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy { waiting: self.queue },
            TrySendError::Closed(_) => Error::Stopped,
        })?;
        let vectors = vectors.await.map_err(|_| Error::Stopped)??;
        vectors.iter().map(|vector| normalized(vector)).collect()
    }
}

fn normalized(vector: &[f32]) -> Result<Vec<f32>, Error> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return Err(Error::Engine("the model gave a vector without direction".into()));
    }
    Ok(vector.iter().map(|x| (f64::from(*x) / length) as f32).collect())
}
