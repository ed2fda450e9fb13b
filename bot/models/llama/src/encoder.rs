//! The engine of encoders: it reads texts in steps, and returns what the model pools each text to.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use azera_model_api::Error;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use tokio::sync::oneshot;

use crate::backend;
use crate::kv::position;
use crate::worker::{Inbox, Ticket};

/// The most texts in one step.
pub const EMBED_STEP_TEXTS: usize = 64;

/// The most tokens in one step of embedding, unless a single text has more. In an encoder, every token of a step looks
/// at every other before the tokens of other texts are masked out, so larger steps cost more than they save.
pub const EMBED_STEP_TOKENS: usize = 512;

/// What the model pools each text to, in the order of the texts.
pub(crate) type Pooled = Result<Vec<Vec<f32>>, Error>;

/// Texts of one caller. None of them is empty.
pub(crate) struct Request {
    texts: Vec<Vec<LlamaToken>>,
    vectors: Vec<Vec<f32>>,
    next: usize,
    done: usize,
    result: oneshot::Sender<Pooled>,
    _ticket: Ticket,
}

impl Request {
    /// Returns a request, and where its result comes: what the model pools each text to, in their order. If nobody waits
    /// for the result any more, the texts that were not read yet are left out.
    pub(crate) fn new(texts: Vec<Vec<LlamaToken>>, ticket: Ticket) -> (Self, oneshot::Receiver<Pooled>) {
        let (result, vectors) = oneshot::channel();
        (Self { vectors: vec![Vec::new(); texts.len()], texts, next: 0, done: 0, result, _ticket: ticket }, vectors)
    }

    fn answer(self, error: Option<Error>) {
        // A caller that left needs no result.
        self.result.send(error.map_or(Ok(self.vectors), Err)).ok();
    }
}

/// Returns a context for steps of at most `step_tokens` tokens, which pools as the file says or as `pooling`.
pub(crate) fn context(
    model: &LlamaModel,
    step_tokens: usize,
    threads: i32,
    pooling: LlamaPoolingType,
) -> Result<LlamaContext<'_>, Error> {
    let tokens = position(step_tokens)?;
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(tokens))
        .with_n_batch(tokens)
        .with_n_ubatch(tokens)
        .with_n_seq_max(position(EMBED_STEP_TEXTS)?)
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_kv_unified(true)
        .with_embeddings(true)
        .with_pooling_type(pooling)
        .with_no_perf(true);
    model
        .new_context(backend::backend()?, params)
        .map_err(|error| Error::Load(format!("no context could be made: {error}")))
}

pub(crate) struct Engine<'m> {
    context: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    /// The most tokens in one step, unless a single text has more. Whether anyone still waits is known between steps.
    step_tokens: usize,
    inbox: Inbox<Request>,
    queue: VecDeque<Request>,
}

impl<'m> Engine<'m> {
    pub(crate) fn new(context: LlamaContext<'m>, step_tokens: usize, inbox: Inbox<Request>) -> Self {
        let tokens = usize::try_from(context.n_batch()).unwrap_or(step_tokens);
        Self { context, batch: LlamaBatch::new(tokens, 1), step_tokens, inbox, queue: VecDeque::new() }
    }

    /// Reads texts until the worker stops.
    pub(crate) fn run(mut self) {
        while self.listen() {
            self.turn();
        }
        for request in self.queue.drain(..) {
            request.answer(Some(Error::Stopped));
        }
    }

    /// Forgets requests that nobody waits for, and reads the next texts if there are any.
    fn turn(&mut self) {
        self.queue.retain(|request| !request.result.is_closed());
        if !self.queue.is_empty() {
            self.step();
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

    /// Reads as many of the first texts as fit in one step.
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
                let fits = tokens == 0 || tokens + text.len() <= self.step_tokens;
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
        let failed = |error: &dyn std::error::Error| Error::Engine(format!("reading failed: {error}"));
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
            request.vectors[*text] = vector.to_vec();
            request.done += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::rerank;
    use crate::worker::Worker;

    #[test]
    fn pairs_that_nobody_waits_for_are_not_read() {
        const WINDOW: usize = 64;
        // It has no head that scores, but what the scores are does not matter here.
        let model = backend::load(&crate::tests::model("minilm-l6-v2"), None).unwrap();
        let waiting = Arc::new(AtomicUsize::new(0));
        let request = |pairs| {
            let ticket = Ticket::take(&waiting, pairs, 6).unwrap();
            Request::new(vec![vec![LlamaToken(2_000); WINDOW]; pairs], ticket)
        };
        let ((left, answer), (next, mut next_answer)) = (request(5), request(1));
        let read = move |inbox: Inbox<Request>, ready: &mut dyn FnMut((Option<usize>, usize))| {
            let mut engine = rerank::engine(&model, WINDOW, 1, inbox)?;
            engine.queue.extend([left, next]);
            engine.turn();
            let first = engine.queue.front().map(|request| request.done);
            drop(answer);
            engine.turn();
            ready((first, engine.queue.len()));
            Ok(())
        };
        let (_worker, (first, queued)) = Worker::start("test", 1, read).unwrap();
        assert_eq!(first, Some(1), "a step reads one pair");
        assert_eq!(queued, 0, "the other four pairs are left out");
        assert_eq!(next_answer.try_recv().unwrap().unwrap().len(), 1, "the next question is read instead");
        assert_eq!(waiting.load(Ordering::Acquire), 0);
    }
}
