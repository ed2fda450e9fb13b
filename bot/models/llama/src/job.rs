use std::sync::Arc;
use std::time::Instant;

use azera_model_api::{Error, Event, FinishReason, LoraId, Priority, ReplyText, SessionKey, Usage};
use llama_cpp_2::token::LlamaToken;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::events::EventSink;
use crate::length::Length;
use crate::lora::{LoadedLoras, LoraSetKey};
use crate::prompt::Shared;
use crate::sampler::Sampler;
use crate::score::ScoreWork;
use crate::swap::SwappedKv;
use crate::worker::Ticket;

/// A command to a chat engine.
pub(crate) enum Command {
    Work(Box<Job>),
    Forget(SessionKey, oneshot::Sender<()>),
    ForgetLora(LoraId, oneshot::Sender<()>),
    /// LoRAs may have left the pool: an idle engine must not keep the last of them in memory.
    ReleaseLoras,
}

/// A request in the engine.
pub(crate) struct Job {
    pub(crate) priority: Priority,
    pub(crate) arrived: Instant,
    /// The request's place in the queue, until it first runs.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) session: Option<SessionKey>,
    /// True if its tokens may be kept for the session afterwards.
    pub(crate) keep: bool,
    /// The tokens of the prompt, then those of the reply.
    pub(crate) tokens: Vec<LlamaToken>,
    pub(crate) prompt_len: usize,
    pub(crate) shared: Option<Shared>,
    /// The LoRAs of the request.
    pub(crate) lora: Option<Arc<LoadedLoras>>,
    /// The most tokens in its sequence.
    pub(crate) room: usize,
    /// Its evaluated tokens while it is preempted.
    pub(crate) parked: Option<SwappedKv>,
    pub(crate) work: Work,
}

impl Job {
    /// Returns true if nobody waits for the result any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        match &self.work {
            Work::Reply(reply) => reply.cancelled.is_cancelled(),
            Work::Score(score) => score.is_cancelled(),
        }
    }

    /// Returns the key of its LoRAs.
    pub(crate) fn set(&self) -> Option<&LoraSetKey> {
        self.lora.as_ref().map(|lora| &lora.key)
    }

    /// Fails the job with an error.
    pub(crate) fn fail(self, error: Error) {
        match self.work {
            Work::Reply(reply) => reply.sink.fail(error),
            Work::Score(score) => score.fail(error),
        }
    }
}

/// The work of a job.
pub(crate) enum Work {
    Reply(Box<ReplyWork>),
    Score(Box<ScoreWork>),
}

/// A reply in progress.
pub(crate) struct ReplyWork {
    pub(crate) sampler: Sampler,
    pub(crate) text: ReplyText,
    pub(crate) sink: EventSink,
    pub(crate) cancelled: CancellationToken,
    pub(crate) length: Length,
    /// Prompt tokens that needed no evaluation; `None` before the job first runs.
    pub(crate) cached: Option<usize>,
    pub(crate) first_token: Option<Instant>,
}

impl ReplyWork {
    /// Adds the next token: the end of the reply if `end` is true, else its text. Returns the finish reason if the
    /// reply is over.
    pub(crate) fn take(&mut self, end: bool, piece: &[u8], now: Instant) -> Option<FinishReason> {
        self.first_token.get_or_insert(now);
        let was_thinking = self.text.is_thinking();
        if end {
            self.length.count(was_thinking, false);
            return Some(FinishReason::Stop);
        }
        let mut events: Vec<Event> = Vec::new();
        let stopped = self.text.push(piece, &mut events);
        self.sink.send(events);
        let is_over = self.length.count(was_thinking, self.text.is_thinking());
        if stopped { Some(FinishReason::StopString) } else { is_over.then_some(FinishReason::Length) }
    }

    /// Sends the end of the reply.
    pub(crate) fn finish(mut self, finish: FinishReason, prompt_tokens: usize, arrived: Instant, now: Instant) {
        if finish != FinishReason::StopString {
            let mut events = Vec::new();
            self.text.finish(finish == FinishReason::Length, &mut events);
            self.sink.send(events);
        }
        let first = self.first_token.unwrap_or(now);
        let seconds = (now - first).as_secs_f64();
        let cached_tokens = self.cached.unwrap_or(0);
        let generated = self.length.generated();
        let usage = Usage {
            prompt_tokens,
            cached_tokens,
            evaluated_tokens: prompt_tokens - cached_tokens,
            completion_tokens: generated,
            ttft_ms: (first - arrived).as_secs_f64() * 1_000.0,
            tokens_per_s: if generated > 1 && seconds > 0.0 { (generated - 1) as f64 / seconds } else { 0.0 },
            finish,
            estimated: false,
        };
        tracing::debug!(?usage, "reply");
        self.sink.finish(usage);
    }
}
