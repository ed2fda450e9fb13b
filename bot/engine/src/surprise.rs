//! Measures surprise in the background: how far a message, and the reply to it, were from what the model expected in
//! that context. Exchanges wait in memory only; a stop loses their surprise, and nothing else.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_memory::{MessageRow, Provenance};
use azera_model_api::{ChatMessage, ChatModel, Lora, Priority, Score, ScoreRequest, SessionKey};
use azera_types::{MessageId, Timestamp};

use crate::background::after;
use crate::error::Error;
use crate::services::Services;

/// Measures how surprising exchanges were.
pub(crate) struct SurpriseMeter {
    services: Arc<Services>,
    pub(crate) exchanges: Exchanges,
}

/// Maximum number of waiting exchanges. With more, the oldest is dropped.
const MAX_WAITING: usize = 32;

/// Time after an exchange before it is measured, so that a conversation in progress has the machine for itself.
const QUIET: Duration = Duration::from_secs(60);

/// Longest wait for live chat to pause; then measuring is postponed.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// A message and its reply, with the prompt that the model saw.
pub(crate) struct Exchange {
    pub(crate) said: MessageRow,
    pub(crate) prompt: Vec<ChatMessage>,
    pub(crate) reply: String,
    /// The name of the model that answered.
    pub(crate) model: String,
    /// The LoRAs that it answered with.
    pub(crate) loras: Vec<Lora>,
    pub(crate) at: Timestamp,
    /// What the prompt was built on, as it was then.
    pub(crate) provenance: Arc<Provenance>,
    /// The messages behind the recalled memories.
    pub(crate) sources: HashSet<MessageId>,
}

/// Exchanges that wait to be measured.
#[derive(Default)]
pub(crate) struct Exchanges {
    waiting: Mutex<VecDeque<Exchange>>,
    /// Counts changes of messages.
    changes: AtomicU64,
}

impl Exchanges {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Exchange>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the count of changes to pass to [`Exchanges::wait`] for a prompt that is being composed now.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Queues an exchange, unless a message changed since its prompt was composed.
    pub(crate) fn wait(&self, exchange: Exchange, changes: u64) {
        let mut waiting = self.lock();
        if self.changes() != changes {
            return;
        }
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(exchange);
    }

    /// Returns when the next exchange is due.
    pub(crate) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().front().map(|first| if first.at > now { now } else { after(first.at, QUIET) })
    }

    fn take(&self) -> Option<Exchange> {
        self.lock().pop_front()
    }

    /// Drops the exchanges whose prompt held a message that was edited since.
    pub(crate) fn changed(&self, message: &MessageId) {
        let mut waiting = self.lock();
        self.changes.fetch_add(1, Ordering::SeqCst);
        waiting.retain(|it| !it.provenance.messages.contains_key(message) && !it.sources.contains(message));
    }

    fn provenances(&self) -> Vec<Arc<Provenance>> {
        self.lock().iter().map(|exchange| Arc::clone(&exchange.provenance)).collect()
    }
}

impl SurpriseMeter {
    pub(crate) fn new(services: Arc<Services>) -> Self {
        Self { services, exchanges: Exchanges::default() }
    }

    /// Drops the exchanges whose prompt held something that was forgotten since.
    pub(crate) async fn let_go_of_exchanges(&self) -> Result<(), Error> {
        let waiting = self.exchanges.provenances();
        if waiting.is_empty() {
            return Ok(());
        }
        let checked = self
            .services
            .blocking(move |memory| {
                let checked = waiting
                    .into_iter()
                    .map(|provenance| Ok((memory.training().provenance_holds(&provenance)?, provenance)));
                checked.collect::<Result<Vec<_>, azera_memory::Error>>()
            })
            .await;
        let gone = |of: &Arc<Provenance>| match &checked {
            Ok(checked_pairs) => checked_pairs.iter().any(|(holds, provenance)| !holds && Arc::ptr_eq(provenance, of)),
            // Without an answer from the record, any of them may have been forgotten.
            Err(_) => true,
        };
        self.exchanges.lock().retain(|exchange| !gone(&exchange.provenance));
        checked.map(drop)
    }

    /// Measures the exchanges that are due, and stores their surprise with their messages.
    pub(crate) async fn measure_surprise(&self, now: Timestamp) {
        let model = self.services.model();
        let mut begun: Vec<SessionKey> = Vec::new();
        while self.exchanges.next_due(now).is_some_and(|due| due <= now) {
            let still = tokio::select! {
                () = self.services.stopping.cancelled() => false,
                still = self.services.foreground.until_idle(MAX_WAIT) => still,
            };
            if !still {
                break;
            }
            // It may have been dropped meanwhile.
            let Some(exchange) = self.exchanges.take() else { break };
            if exchange.model != model.info().name {
                continue;
            }
            // Exchanges of one conversation share the beginning of their prompts. A session of their own leaves the
            // live chat's cached tokens alone.
            let session =
                SessionKey::new(format!("surprise\u{1f}{}\u{1f}{}", exchange.said.persona, exchange.said.chat));
            if begun.last() != Some(&session) {
                begun.push(session.clone());
            }
            if let Err(error) = self.measure(model.as_ref(), exchange, session).await {
                tracing::info!(%error, "cannot measure the surprise of an exchange");
            }
        }
        for session in begun {
            if let Err(error) = model.forget_session(&session).await {
                tracing::warn!(%error, "cannot drop the evaluated tokens of measured exchanges");
            }
        }
    }

    async fn measure(&self, model: &dyn ChatModel, exchange: Exchange, session: SessionKey) -> Result<(), Error> {
        let Exchange { said, mut prompt, reply, loras, provenance, .. } = exchange;
        // The model must not see again what was edited or forgotten meanwhile.
        let as_then = said.clone();
        if !self
            .services
            .blocking(move |memory| {
                Ok(memory.training().stands_as(&as_then)? && memory.training().provenance_holds(&provenance)?)
            })
            .await?
        {
            return Ok(());
        }
        let (Some(scorer), Some(last)) = (model.scorer(), prompt.last_mut()) else { return Ok(()) };
        let words = said.text.as_str();
        // The middle of a long message may have been cut to fit the prompt; then nothing can be said of it as a whole.
        let Some(before) = last.content.strip_suffix(words).filter(|_| !words.trim().is_empty()) else { return Ok(()) };
        let (before, whole) = (before.to_owned(), last.content.clone());
        let ask = |messages, text: &str, within| {
            let (continuations, session) = (vec![text.to_owned()], Some(session.clone()));
            let loras = loras.clone();
            scorer.score(ScoreRequest {
                messages,
                continuations,
                within,
                session,
                priority: Priority::Background,
                loras,
            })
        };
        last.content = before;
        let of_words = ask(prompt.clone(), words, true).await?.pop();
        if let Some(last) = prompt.last_mut() {
            last.content = whole;
        }
        let of_reply = ask(prompt, &reply, false).await?.pop();
        let (Some(of_words), Some(of_reply)) = (of_words, of_reply) else { return Ok(()) };
        let (Some(words), Some(whole)) = (loss(&[of_words]), loss(&[of_words, of_reply])) else { return Ok(()) };
        self.services.blocking(move |memory| memory.training().note_surprise(&said, words, whole)).await?;
        Ok(())
    }
}

/// Returns the cross-entropy in nats per token; `None` without tokens.
fn loss(scores: &[Score]) -> Option<f64> {
    let tokens: usize = scores.iter().map(|score| score.tokens).sum();
    let log_prob: f64 = scores.iter().map(|score| score.log_prob).sum();
    (tokens > 0).then(|| -log_prob / tokens as f64)
}
