use std::sync::Arc;
use std::time::Instant;

use azera_model_api::{Error, Event, FinishReason, LoraId, Priority, ReplyText, SessionKey, Usage};
use llama_cpp_2::token::LlamaToken;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::events::EventSink;
use crate::lora::{LoadedLoras, LoraSetKey};
use crate::prompt::Shared;
use crate::sampler::Sampler;
use crate::score::ScoreWork;
use crate::swap::SwappedKv;
use crate::worker::Ticket;

/// What a chat engine is told.
pub(crate) enum Command {
    Work(Box<Job>),
    Forget(SessionKey, oneshot::Sender<()>),
    ForgetLora(LoraId, oneshot::Sender<()>),
    /// Adapters may have left the shelf: an idle engine shall not keep the last of them.
    LetGo,
}

/// A request on its way through the engine.
pub(crate) struct Job {
    pub(crate) priority: Priority,
    pub(crate) arrived: Instant,
    /// Its place in the queue, until it is taken up for the first time.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) session: Option<SessionKey>,
    /// Whether its tokens may be kept for the session afterwards.
    pub(crate) keep: bool,
    /// The prompt and what has been generated.
    pub(crate) tokens: Vec<LlamaToken>,
    pub(crate) prompt_len: usize,
    pub(crate) shared: Option<Shared>,
    /// The adapters it is done with.
    pub(crate) lora: Option<Arc<LoadedLoras>>,
    /// Tokens its sequence holds at most.
    pub(crate) room: usize,
    /// Its evaluated tokens while it gives way to others.
    pub(crate) parked: Option<SwappedKv>,
    pub(crate) work: Work,
}

impl Job {
    /// Whether nobody waits for it any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        match &self.work {
            Work::Reply(reply) => reply.cancelled.is_cancelled(),
            Work::Score(score) => score.is_cancelled(),
        }
    }

    /// The adapters it is done with, by their name.
    pub(crate) fn set(&self) -> Option<&LoraSetKey> {
        self.lora.as_ref().map(|lora| &lora.key)
    }

    /// Ends it with an error.
    pub(crate) fn fail(self, error: Error) {
        match self.work {
            Work::Reply(reply) => reply.sink.fail(error),
            Work::Score(score) => score.fail(error),
        }
    }
}

/// What a job is for.
pub(crate) enum Work {
    Reply(Box<ReplyWork>),
    Score(Box<ScoreWork>),
}

/// A reply in the making.
pub(crate) struct ReplyWork {
    pub(crate) sampler: Sampler,
    pub(crate) text: ReplyText,
    pub(crate) sink: EventSink,
    pub(crate) cancelled: CancellationToken,
    pub(crate) max_tokens: usize,
    pub(crate) generated: usize,
    /// Prompt tokens that needed no evaluation; `None` before it was first taken up.
    pub(crate) cached: Option<usize>,
    pub(crate) first_token: Option<Instant>,
}

impl ReplyWork {
    /// Takes the next token: `end` if the model ended its reply with it, else its text. Tells why the reply is over, if
    /// it is.
    pub(crate) fn take(&mut self, end: bool, piece: &[u8], now: Instant) -> Option<FinishReason> {
        self.first_token.get_or_insert(now);
        self.generated += 1;
        if end {
            return Some(FinishReason::Stop);
        }
        let mut events: Vec<Event> = Vec::new();
        let stopped = self.text.push(piece, &mut events);
        self.sink.send(events);
        if stopped {
            Some(FinishReason::StopString)
        } else {
            (self.generated >= self.max_tokens).then_some(FinishReason::Length)
        }
    }

    /// Sends the end of the reply.
    pub(crate) fn finish(mut self, finish: FinishReason, prompt_tokens: usize, arrived: Instant, now: Instant) {
        if finish != FinishReason::StopString {
            let mut events = Vec::new();
            self.text.finish(&mut events);
            self.sink.send(events);
        }
        let first = self.first_token.unwrap_or(now);
        let seconds = (now - first).as_secs_f64();
        let cached_tokens = self.cached.unwrap_or(0);
        let usage = Usage {
            prompt_tokens,
            cached_tokens,
            evaluated_tokens: prompt_tokens - cached_tokens,
            completion_tokens: self.generated,
            ttft_ms: (first - arrived).as_secs_f64() * 1_000.0,
            tokens_per_s: if self.generated > 1 && seconds > 0.0 { (self.generated - 1) as f64 / seconds } else { 0.0 },
            finish,
            estimated: false,
        };
        tracing::debug!(?usage, "reply");
        self.sink.finish(usage);
    }
}
