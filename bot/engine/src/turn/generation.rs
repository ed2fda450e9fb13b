//! Calls the model for the stage *generate*: streams its reply and removes what is not part of it. `generate` decides
//! before that whether the model may answer.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{Making, Platform, StreamEvent};
use azera_model_api::{ChatModel, ChatRequest, Event, FinishReason, Grammar, Lora, Priority, Reply, Sampling, Usage};
use azera_pictures::PictureTag;
use azera_prompt::{Prompt, prompt_headings};
use azera_types::MessageId;

use crate::error::Error;
use crate::interruptions::Interruptions;
use crate::turn::shaping::Shaping;

/// How often a blank answer is asked for again, each time with another seed.
const ATTEMPTS: u32 = 3;

/// The same where the model cannot be told to answer without thinking: its thoughts may take all the room each time.
const ATTEMPTS_WITHOUT_SWITCH: u32 = 2;

/// How often a busy model is asked again.
const BUSY_ATTEMPTS: u32 = 40;

/// The first wait before a busy model is asked again, and the longest: together a little more than a minute.
const BUSY_WAITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// Names whose line beginnings end a reply: a model that goes on to write the other side's next line has finished.
const MAX_STOP_NAMES: usize = 8;

/// The longest name in such a line, in bytes.
const MAX_STOP_NAME: usize = 128;

/// What the model is asked besides the prompt.
#[derive(Debug, Clone)]
pub(crate) struct GenerationRequest<'a> {
    pub(crate) session: azera_model_api::SessionKey,
    pub(crate) sampling: Sampling,
    /// The same while the model thinks first.
    pub(crate) thinking_sampling: Sampling,
    pub(crate) seed: u32,
    pub(crate) max_tokens: usize,
    pub(crate) thinking: bool,
    /// The most tokens of the thoughts, besides `max_tokens`.
    pub(crate) thinking_tokens: usize,
    /// The persona's name: a reply that begins with it as a label loses the label.
    pub(crate) persona: &'a str,
    /// What it learned in this place.
    pub(crate) loras: Vec<Lora>,
    /// What ends a reply, by the form of the model's family.
    pub(crate) stop: &'static [&'static str],
    /// The reply is shown by whoever asked, after it was checked: nothing of it is streamed.
    pub(crate) held: bool,
    /// Pictures that the reply asks for are drawn.
    pub(crate) draws: bool,
    /// Other speakers of the conversation.
    pub(crate) speakers: Vec<String>,
}

/// A finished reply.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) text: String,
    pub(crate) usage: Usage,
    pub(crate) seed: u32,
    /// What it was made with.
    pub(crate) loras: Vec<Lora>,
    /// The pictures that it asks for.
    pub(crate) pictures: Vec<PictureTag>,
    /// Whether no model wrote it.
    fixed: bool,
}

impl Generated {
    /// A reply of fixed words, none of them a model's; it may be empty.
    pub(crate) fn fixed(text: &str, seed: u32) -> Self {
        let usage = Usage {
            prompt_tokens: 0,
            cached_tokens: 0,
            evaluated_tokens: 0,
            completion_tokens: 0,
            ttft_ms: 0.0,
            tokens_per_s: 0.0,
            finish: FinishReason::Stop,
            estimated: false,
        };
        Self { text: text.to_owned(), usage, seed, loras: Vec::new(), pictures: Vec::new(), fixed: true }
    }

    /// A reply that people interrupted while the model wrote it.
    fn interrupted(text: &str, seed: u32, loras: Vec<Lora>) -> Self {
        let started = Self::fixed(text.trim(), seed);
        let usage = Usage { estimated: true, ..started.usage };
        Self { usage, loras, fixed: false, ..started }
    }

    /// Whether no model wrote it.
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed
    }
}

/// Where a reply is shown while it is made.
pub(crate) struct StreamTarget<'a> {
    pub(crate) platform: &'a dyn Platform,
    pub(crate) making: Making<'a>,
    pub(crate) interruptions: &'a Interruptions,
    /// The reply is shown when it is complete, and not before.
    pub(crate) is_silent: bool,
}

impl StreamTarget<'_> {
    pub(crate) async fn event(&self, event: StreamEvent) {
        if self.is_silent && !matches!(event, StreamEvent::Done { .. }) {
            return;
        }
        if let Some(streaming) = self.platform.streaming() {
            streaming.event(self.making, &event).await;
        }
    }

    /// Returns the next event of a reply; `None` at its end, or as soon as people interrupt it.
    async fn next(&self, reply: &mut Reply) -> Option<Result<Event, azera_model_api::Error>> {
        tokio::select! {
            event = reply.next() => event,
            () = self.interruptions.interrupted(self.making.reply) => None,
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interruptions.has(self.making.reply)
    }
}

/// Generates a reply. A model that thought and then said nothing is asked again without thinking where it has a switch,
/// because its thoughts may have taken all the room. `may_show` is asked before the first event, and again before the
/// first words of each attempt, unless they are that event: meanwhile people may have come. If false, returns `None`, and
/// withdraws what was streamed. Ends early if people interrupt the reply while it is spoken.
pub(crate) async fn generate<F: Future<Output = Result<bool, Error>>>(
    model: &Arc<dyn ChatModel>,
    prompt: &Prompt,
    mut asking: GenerationRequest<'_>,
    shown: &StreamTarget<'_>,
    may_show: impl Fn() -> F,
) -> Result<Option<Generated>, Error> {
    let mut has_begun = false;
    let attempts = if model.has_thinking_switch() { ATTEMPTS } else { ATTEMPTS_WITHOUT_SWITCH };
    for attempt in 0..attempts {
        let seed = asking.seed.wrapping_add(attempt);
        let mut request = chat_request(prompt, &asking, seed);
        request.grammar = prompt.beginning.filter(|_| model.takes_gbnf()).map(Grammar::sentence);
        let (mut reply, loras) = ask(model, request).await?;
        let mut shaping = Shaping::new(asking.persona, asking.max_tokens);
        let mut text = String::new();
        // People may have come during an earlier attempt.
        let mut has_words = false;
        while let Some(event) = shown.next(&mut reply).await {
            let event = event?;
            let is_end = matches!(event, Event::Done(_));
            let is_words = is_end || matches!(event, Event::Content(_));
            if !has_begun || (is_words && !has_words) {
                if !may_show().await? {
                    if has_begun && !asking.held {
                        shown.event(StreamEvent::Withdrawn).await;
                    }
                    return Ok(None);
                }
                // The end of a blank attempt shows nothing.
                (has_begun, has_words) = (has_begun || !is_end, is_words);
            }
            let usage = match event {
                Event::ThinkingStart | Event::Thinking(_) | Event::ThinkingEnd => {
                    if let Some(event) = thinking_event(event).filter(|_| !asking.held) {
                        shown.event(event).await;
                    }
                    continue;
                }
                Event::Retracted => {
                    shaping = Shaping::new(asking.persona, asking.max_tokens);
                    if !std::mem::take(&mut text).is_empty() && !asking.held {
                        shown.event(StreamEvent::Retracted).await;
                    }
                    continue;
                }
                Event::Content(piece) => {
                    let piece = shaping.pass(&piece);
                    text.push_str(&piece);
                    if !asking.held && !piece.is_empty() {
                        shown.event(StreamEvent::Content { text: piece }).await;
                    }
                    if !shaping.is_over() {
                        continue;
                    }
                    tracing::debug!("the reply repeats itself and ends here");
                    usage_of_ended(model, prompt, &text)
                }
                Event::Done(usage) => usage,
            };
            // Where nothing is drawn, a reply of a tag alone is as good as none.
            let may_be_picture = asking.draws || attempt + 1 == attempts;
            let (rest, pictures) = shaping.finish(&text, may_be_picture, usage.finish == FinishReason::Length);
            text.push_str(&rest);
            if !asking.held && !rest.is_empty() {
                shown.event(StreamEvent::Content { text: rest }).await;
            }
            let text = text.trim().to_owned();
            if text.is_empty() {
                break;
            }
            return Ok(Some(Generated { text, usage, seed, loras, pictures, fixed: false }));
        }
        if shown.is_interrupted() {
            return Ok(Some(Generated::interrupted(&text, seed, loras)));
        }
        asking.thinking = false;
    }
    Err(Error::NoAnswer)
}

/// Returns how thinking is shown.
fn thinking_event(event: Event) -> Option<StreamEvent> {
    match event {
        Event::ThinkingStart => Some(StreamEvent::ThinkingStart),
        Event::Thinking(text) => Some(StreamEvent::Thinking { text }),
        Event::ThinkingEnd => Some(StreamEvent::ThinkingEnd),
        Event::Content(_) | Event::Retracted | Event::Done(_) => None,
    }
}

/// Estimates the cost of a reply that was ended here, so that its engine reported none.
fn usage_of_ended(model: &Arc<dyn ChatModel>, prompt: &Prompt, text: &str) -> Usage {
    let prompt_tokens = prompt.messages.iter().map(|message| model.count_tokens(&message.content)).sum();
    Usage {
        prompt_tokens,
        cached_tokens: 0,
        evaluated_tokens: prompt_tokens,
        completion_tokens: model.count_tokens(text),
        ttft_ms: 0.0,
        tokens_per_s: 0.0,
        finish: FinishReason::StopString,
        estimated: true,
    }
}

/// Returns the request for a reply.
pub(super) fn chat_request(prompt: &Prompt, asking: &GenerationRequest<'_>, seed: u32) -> ChatRequest {
    let names = asking.speakers.iter().take(MAX_STOP_NAMES).map(|name| format!("\n{name}:"));
    let headings =
        prompt_headings(asking.speakers.first().map(String::as_str).filter(|name| name.len() <= MAX_STOP_NAME));
    let headings = headings.iter().map(|heading| format!("\n{heading}"));
    ChatRequest {
        messages: prompt.messages.clone(),
        shared_messages: prompt.shared_messages,
        session: Some(asking.session.clone()),
        sampling: Sampling {
            seed: Some(seed),
            ..if asking.thinking { asking.thinking_sampling.clone() } else { asking.sampling.clone() }
        },
        max_tokens: asking.max_tokens,
        stop: names.chain(headings).chain(asking.stop.iter().map(|stop| (*stop).to_owned())).collect(),
        unsaid: prompt.unsaid.clone(),
        grammar: None,
        priority: Priority::Foreground,
        thinking: asking.thinking,
        thinking_tokens: asking.thinking_tokens,
        loras: asking.loras.clone(),
    }
}

/// Calls the model and retries while it is busy. Drops damaged LoRAs. Returns the reply and the LoRAs used.
async fn ask(model: &Arc<dyn ChatModel>, mut request: ChatRequest) -> Result<(Reply, Vec<Lora>), Error> {
    let [mut wait, longest] = BUSY_WAITS;
    for _ in 0..BUSY_ATTEMPTS {
        match model.chat(request.clone()).await {
            Err(error @ azera_model_api::Error::Lora { .. }) if !request.loras.is_empty() => {
                tracing::error!(%error, "the reply is made without what was learned");
                request.loras.clear();
            }
            Err(azera_model_api::Error::Busy { .. }) => {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(longest);
            }
            other => return Ok((other?, request.loras)),
        }
    }
    Ok((model.chat(request.clone()).await?, request.loras))
}

/// A seed nobody chose.
pub(crate) fn any_seed() -> u32 {
    // Each `RandomState` has fresh keys from the system's random source.
    (RandomState::new().hash_one(0_u8) >> 32) as u32
}

/// A seed that follows from another one and the message answered.
pub(crate) fn derived_seed(seed: u64, message: &MessageId, alternative: usize) -> u32 {
    // FNV-1a (Fowler, Noll, Vo): stable over versions, which the standard hashers do not promise.
    let bytes = message.as_str().bytes().chain(seed.to_le_bytes()).chain((alternative as u64).to_le_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most stop strings that the engine in this process accepts.
    const MOST_STOPS: usize = 32;

    #[test]
    fn the_stop_strings_of_a_crowded_chat_stay_below_the_limit() {
        let limit = include_str!("../../../models/llama/src/chat.rs");
        assert!(limit.contains(&format!("MAX_STOP_STRINGS: usize = {MOST_STOPS};")), "the engine has another limit");
        for parameters in [135_000_000, 494_000_000, 1_543_000_000, 8_000_000_000] {
            let form = azera_prompt::form_for("generic", Some(parameters));
            let stops = MAX_STOP_NAMES + prompt_headings(Some("Ann")).len() + form.stop.len();
            assert!(stops <= MOST_STOPS, "{stops} stop strings with {parameters} weights");
        }
    }

    #[test]
    fn seeds_follow_from_seed_message_and_alternative() {
        let message = MessageId::new("m").unwrap();
        let other = MessageId::new("n").unwrap();
        assert_eq!(derived_seed(1, &message, 0), derived_seed(1, &message, 0));
        assert_ne!(derived_seed(1, &message, 0), derived_seed(2, &message, 0));
        assert_ne!(derived_seed(1, &message, 0), derived_seed(1, &other, 0));
        assert_ne!(derived_seed(1, &message, 0), derived_seed(1, &message, 1));
    }
}
