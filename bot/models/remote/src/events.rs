use azera_model_api::{Event, FinishReason, ReplyText, Usage};
use tokio::time::Instant;

use crate::wire::Counts;

/// Turns the pieces of a stream into the events of a reply, checks for stop strings, and measures.
pub(crate) struct ReplyEvents {
    text: ReplyText,
    /// True while the server sends thinking in a separate field.
    thinking: bool,
    arrived: Instant,
    first: Option<Instant>,
    /// Bytes of thinking and content, to estimate the tokens.
    bytes: usize,
}

impl ReplyEvents {
    pub(crate) fn new(text: ReplyText, arrived: Instant) -> Self {
        Self { text, thinking: false, arrived, first: None, bytes: 0 }
    }

    /// Adds a piece of thinking.
    pub(crate) fn thinking(&mut self, piece: String, out: &mut Vec<Event>) {
        self.measure(&piece);
        if !std::mem::replace(&mut self.thinking, true) {
            out.push(Event::ThinkingStart);
        }
        out.push(Event::Thinking(piece));
    }

    /// Adds a piece of content. Returns true if a stop string ended the reply.
    pub(crate) fn content(&mut self, piece: &str, out: &mut Vec<Event>) -> bool {
        self.measure(piece);
        self.end_thinking(out);
        self.text.push(piece.as_bytes(), out)
    }

    /// Ends the reply, unless a stop string did.
    pub(crate) fn end(&mut self, finish: FinishReason, out: &mut Vec<Event>) {
        self.end_thinking(out);
        self.text.finish(finish == FinishReason::Length, out);
    }

    /// Returns true if an end of thinking came without its beginning.
    pub(crate) fn found_lone_end(&self) -> bool {
        self.text.found_lone_end()
    }

    /// Returns the bytes of thinking and content so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the cost of the reply. Counts that the server did not report are replaced by estimates.
    pub(crate) fn usage(&self, finish: FinishReason, counts: Counts, estimates: [usize; 2]) -> Usage {
        let now = Instant::now();
        let first = self.first.unwrap_or(now);
        let seconds = (now - first).as_secs_f64();
        let [prompt, completion] = estimates;
        let estimated = counts.prompt.is_none() || counts.completion.is_none();
        let (prompt, completion) = (counts.prompt.unwrap_or(prompt), counts.completion.unwrap_or(completion));
        let later = completion.saturating_sub(1);
        Usage {
            prompt_tokens: prompt,
            cached_tokens: counts.cached,
            evaluated_tokens: prompt.saturating_sub(counts.cached),
            completion_tokens: completion,
            ttft_ms: (first - self.arrived).as_secs_f64() * 1_000.0,
            tokens_per_s: if later > 0 && seconds > 0.0 { later as f64 / seconds } else { 0.0 },
            finish,
            estimated,
        }
    }

    fn measure(&mut self, piece: &str) {
        self.first.get_or_insert_with(Instant::now);
        self.bytes += piece.len();
    }

    fn end_thinking(&mut self, out: &mut Vec<Event>) {
        if std::mem::replace(&mut self.thinking, false) {
            out.push(Event::ThinkingEnd);
        }
    }
}
