//! Cross-encoders: they read a question and a text together, and score how well the text answers.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use async_trait::async_trait;
use azera_breaker::{Breaker, Limits};
use azera_model_api::{Error, Reranker, RerankerInfo};
use azera_model_gguf::GgufHeader;
use llama_cpp_2::context::params::LlamaPoolingType;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, timeout};

use crate::backend;
use crate::config::LlamaRerankerConfig;
use crate::encoder::{Engine, Request, context};
use crate::worker::{Inbox, Ticket, Worker};

/// The most questions at the same time. More are rejected as busy, because each would wait for those before it.
const QUESTIONS: usize = 4;

/// The most tokens that are read of a question. The rest of the window is for the text.
const QUESTION_TOKENS: usize = 48;

/// The special tokens of a pair: a start, one or two ends between the texts, and an end.
const MARKS: usize = 4;

/// The key of files by Azera's own conversion: where the vocabulary of the second segment begins.
const SECOND_SEGMENT: &str = "azera.second_segment";

/// A reranking model in llama.cpp, on a thread of its own. The texts stay in this process.
///
/// An answer after [`RerankerInfo::wait`] is dropped. The step that is read then ends, which is about one pair, and pairs
/// after it are left out. After several late answers in a row the model is left alone for a while.
///
/// Dropping it fails waiting requests with [`Error::Stopped`], and waits for the thread for at most one step.
#[derive(Debug)]
pub struct LlamaReranker {
    info: RerankerInfo,
    model: Arc<LlamaModel>,
    pairs: PairFormat,
    worker: Worker<Request>,
    waiting: Arc<AtomicUsize>,
    breaker: Breaker,
}

/// How a question and a text become one sequence of tokens.
#[derive(Debug)]
struct PairFormat {
    /// The most tokens of a pair.
    window: usize,
    start: LlamaToken,
    /// What stands between question and text.
    between: Vec<LlamaToken>,
    end: LlamaToken,
    /// What is added to a token after the question, to mark it as the second segment's; 0 in models without segments.
    second: i32,
}

impl PairFormat {
    /// Reads the format of a cross-encoder. `window` is the most tokens of a pair.
    fn of(model: &LlamaModel, window: usize) -> Result<Self, Error> {
        let key = |key: &str| model.meta_val_str(key).ok();
        let architecture = key("general.architecture").unwrap_or_default();
        let of_model = |name: &str| key(&format!("{architecture}.{name}"));
        if model.n_cls_out() != 1 || of_model("attention.causal").as_deref() != Some("false") {
            return Err(no_cross_encoder());
        }
        let vocab = model.vocab();
        // `LlamaVocab::vocab_type` panics for this type.
        let is_bert = key("tokenizer.ggml.model").as_deref() == Some("bert");
        let second = match key(SECOND_SEGMENT) {
            Some(first) => first.parse().ok().filter(|first| *first > 0 && *first <= vocab.n_tokens() / 2),
            None => Some(0),
        };
        let Some(second) = second else {
            return Err(Error::Load(format!("{SECOND_SEGMENT} of the file does not fit its vocabulary")));
        };
        let segments = key("tokenizer.ggml.token_type_count").and_then(|count| count.parse::<u32>().ok());
        if is_bert && second == 0 && segments.is_some_and(|segments| segments > 1) {
            // llama.cpp would take the text for a part of the question, and the order would be worthless.
            return Err(Error::Load(
                "the file does not tell question and text apart; import the model's original folder instead".into(),
            ));
        }
        let or = |token: LlamaToken, other: LlamaToken| if token.0 < 0 { other } else { token };
        let (end, separator) = match is_bert {
            true => (or(vocab.sep(), vocab.eos()), None),
            // XLM-RoBERTa ends the question, and separates it from the text.
            false => (or(vocab.eos(), vocab.sep()), Some(or(vocab.sep(), vocab.eos()))),
        };
        let start = vocab.bos();
        if start.0 < 0 || end.0 < 0 {
            return Err(Error::Load("the vocabulary has no token that starts a text, or none that ends it".into()));
        }
        Ok(Self { window, start, between: std::iter::once(end).chain(separator).collect(), end, second })
    }

    /// Returns the tokens of a pair, cut to the window.
    fn tokens(&self, question: &[LlamaToken], text: &[LlamaToken]) -> Vec<LlamaToken> {
        let question = question.iter().take(QUESTION_TOKENS.min(self.window.saturating_sub(MARKS)));
        let mut tokens: Vec<LlamaToken> = std::iter::once(&self.start).chain(question).copied().collect();
        tokens.extend(&self.between);
        let room = self.window.saturating_sub(tokens.len() + 1);
        let second = text.iter().take(room).chain(std::iter::once(&self.end));
        tokens.extend(second.map(|token| LlamaToken(token.0 + self.second)));
        tokens
    }
}

fn no_cross_encoder() -> Error {
    Error::Load("the file is no cross-encoder with one score for a pair".into())
}

/// Checks that the file has a head that scores. Its pooling type says nothing: many files of cross-encoders have none,
/// and llama.cpp gives scores without a head, which are worthless.
fn require_head(path: &Path) -> Result<(), Error> {
    let file = File::open(path).map_err(|error| Error::Load(format!("{}: {error}", path.display())))?;
    let header = GgufHeader::read(file).map_err(|error| Error::Load(format!("{}: {error}", path.display())))?;
    if header.has_score_head { Ok(()) } else { Err(no_cross_encoder()) }
}

/// Returns an engine that reads about one pair in a step: what nobody waits for any more is not read.
pub(crate) fn engine(
    model: &LlamaModel,
    window: usize,
    threads: i32,
    inbox: Inbox<Request>,
) -> Result<Engine<'_>, Error> {
    Ok(Engine::new(context(model, window, threads, LlamaPoolingType::Rank)?, window, inbox))
}

impl LlamaReranker {
    /// Loads a model and starts its engine. Blocks until it is ready.
    ///
    /// # Errors
    /// [`Error::Load`] if the file cannot be read as a cross-encoder.
    pub fn load(config: LlamaRerankerConfig) -> Result<Arc<Self>, Error> {
        let LlamaRerankerConfig { path, name, candidates, weight, wait, window_tokens, threads, gpu_layers } = config;
        if window_tokens <= QUESTION_TOKENS + MARKS {
            return Err(Error::Load(format!("window_tokens is at most {}", QUESTION_TOKENS + MARKS)));
        }
        require_head(&path)?;
        let model = Arc::new(backend::load(&path, gpu_layers)?);
        let trained = usize::try_from(model.n_ctx_train()).unwrap_or(usize::MAX);
        let pairs = PairFormat::of(&model, window_tokens.min(trained))?;
        let (window, threads) = (pairs.window, backend::embedding_threads(threads));
        let worker = {
            let model = Arc::clone(&model);
            let read = move |inbox: Inbox<Request>, ready: &mut dyn FnMut(())| {
                let engine = engine(&model, window, threads, inbox)?;
                ready(());
                engine.run();
                Ok(())
            };
            Worker::start("llama-rerank", QUESTIONS, read)?.0
        };
        let info = RerankerInfo { name, candidates, weight, wait };
        let breaker = Breaker::new(Limits::default());
        Ok(Arc::new(Self { info, model, pairs, worker, waiting: Arc::default(), breaker }))
    }

    /// Returns the scores of the texts, however long it takes.
    async fn scores(&self, question: &str, texts: &[String], ticket: Ticket) -> Result<Vec<f32>, Error> {
        let vocab = self.model.vocab();
        let question = vocab.tokenize(question.as_bytes(), false, false);
        let pair = |text: &String| self.pairs.tokens(&question, &vocab.tokenize(text.as_bytes(), false, false));
        let (request, scores) = Request::new(texts.iter().map(pair).collect(), ticket);
        self.worker.commands()?.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy { waiting: QUESTIONS },
            TrySendError::Closed(_) => Error::Stopped,
        })?;
        let scores = scores.await.map_err(|_| Error::Stopped)??;
        let one = |score: &Vec<f32>| score.first().copied().filter(|score| score.is_finite());
        scores.iter().map(one).collect::<Option<_>>().ok_or_else(|| Error::Engine("a score is no number".into()))
    }

    /// Returns the scores of the texts, if they come in time.
    async fn in_time(&self, scores: impl Future<Output = Result<Vec<f32>, Error>>) -> Result<Vec<f32>, Error> {
        let (begun, wait) = (Instant::now(), self.info.wait);
        match timeout(wait, scores).await {
            Ok(scores) if begun.elapsed() < wait => scores,
            _ => Err(Error::TooSlow(format!("no answer within {} ms", wait.as_millis()))),
        }
    }
}

#[async_trait]
impl Reranker for LlamaReranker {
    fn info(&self) -> &RerankerInfo {
        &self.info
    }

    async fn rerank(&self, question: &str, texts: &[String]) -> Result<Vec<f32>, Error> {
        let most = self.info.candidates;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if texts.len() > most {
            return Err(Error::Invalid(format!("{} texts; at most {most}", texts.len())));
        }
        // Whoever finds no room did not make the model slow.
        let ticket = Ticket::take(&self.waiting, texts.len(), most.saturating_mul(QUESTIONS))?;
        let permit = self.breaker.admit(now()).map_err(|refused| left_alone(refused.retry_in))?;
        let scores = self.in_time(self.scores(question, texts, ticket)).await;
        match &scores {
            Ok(_) => permit.succeeded(),
            // It was not asked.
            Err(Error::Busy { .. }) => drop(permit),
            Err(_) => permit.failed(now()),
        }
        scores
    }
}

fn left_alone(retry_in: Duration) -> Error {
    Error::TooSlow(format!("it failed several times, and is left alone for {} s", retry_in.as_secs().max(1)))
}

fn now() -> std::time::Instant {
    // tokio's clock is the system clock, and stands still if a test paused it.
    Instant::now().into_std()
}
