//! Surprise, measured in the background: how far what somebody said, and the answer to it, were from what the model expected where
//! they stood. Exchanges wait for it in memory alone: a stop loses how surprising they were, and nothing else.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_memory::{MessageRow, Provenance};
use azera_model_api::{ChatMessage, ChatModel, Lora, Priority, Score, ScoreRequest, SessionKey};
use azera_types::{MessageId, Timestamp};

use crate::background::after;
use crate::engine::Engine;
use crate::error::Error;

/// Exchanges that wait at most; with more, the oldest are let go.
const MOST: usize = 32;

/// Time after an exchange before it is measured, so that whoever goes on talking has the machine for themselves.
const QUIET: Duration = Duration::from_secs(60);

/// How long those who talk hold it up; then it is left for another time.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Something said and the answer to it, with all that stood before the model.
pub(crate) struct Exchange {
    pub(crate) said: MessageRow,
    pub(crate) prompt: Vec<ChatMessage>,
    pub(crate) reply: String,
    /// The name of the model that answered.
    pub(crate) model: String,
    /// What it had learnt there.
    pub(crate) loras: Vec<Lora>,
    pub(crate) at: Timestamp,
    /// What stood before the model, as it was then.
    pub(crate) provenance: Arc<Provenance>,
    /// The messages behind what was recalled.
    pub(crate) sources: HashSet<MessageId>,
}

/// Exchanges that wait to be measured.
#[derive(Default)]
pub(crate) struct Exchanges {
    waiting: Mutex<VecDeque<Exchange>>,
    /// How often something was changed.
    changes: AtomicU64,
}

impl Exchanges {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Exchange>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What [`Exchanges::wait`] is to be given of an exchange whose prompt is made now.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// One more waits, unless something was changed since its prompt was made.
    pub(crate) fn wait(&self, exchange: Exchange, changes: u64) {
        let mut waiting = self.lock();
        if self.changes() != changes {
            return;
        }
        if waiting.len() >= MOST {
            waiting.pop_front();
        }
        waiting.push_back(exchange);
    }

    /// When the next one is due.
    pub(crate) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().front().map(|first| if first.at > now { now } else { after(first.at, QUIET) })
    }

    /// The next one.
    fn take(&self) -> Option<Exchange> {
        self.lock().pop_front()
    }

    /// Lets go of those that a message stood in which says something else now.
    pub(crate) fn changed(&self, message: &MessageId) {
        let mut waiting = self.lock();
        self.changes.fetch_add(1, Ordering::SeqCst);
        waiting.retain(|it| !it.provenance.messages.contains_key(message) && !it.sources.contains(message));
    }

    fn provenances(&self) -> Vec<Arc<Provenance>> {
        self.lock().iter().map(|exchange| Arc::clone(&exchange.provenance)).collect()
    }
}

impl Engine {
    /// Lets go of exchanges that something stood in which is forgotten by now.
    pub(crate) async fn let_go_of_exchanges(&self) -> Result<(), Error> {
        let waiting = self.0.exchanges.provenances();
        if waiting.is_empty() {
            return Ok(());
        }
        let stand = self
            .blocking(move |memory| {
                let stand =
                    waiting.into_iter().map(|provenance| Ok((memory.provenance_holds(&provenance)?, provenance)));
                stand.collect::<Result<Vec<_>, azera_memory::Error>>()
            })
            .await;
        let gone = |of: &Arc<Provenance>| match &stand {
            Ok(answers) => answers.iter().any(|(stands, provenance)| !stands && Arc::ptr_eq(provenance, of)),
            // What cannot be asked after may be what was forgotten.
            Err(_) => true,
        };
        self.0.exchanges.lock().retain(|exchange| !gone(&exchange.provenance));
        stand.map(drop)
    }

    /// Measures what is due, and keeps it with what was said.
    pub(crate) async fn measure_surprise(&self, now: Timestamp) {
        let model = self.model();
        let mut begun: Vec<SessionKey> = Vec::new();
        while self.0.exchanges.next_due(now).is_some_and(|due| due <= now) {
            let still = tokio::select! {
                () = self.0.stopping.cancelled() => false,
                still = self.0.foreground.until_idle(LONGEST_WAIT) => still,
            };
            if !still {
                break;
            }
            // They may have been let go meanwhile.
            let Some(exchange) = self.0.exchanges.take() else { break };
            if exchange.model != model.info().name {
                continue;
            }
            // One conversation's exchanges begin alike, and the live ones keep what they have.
            let session =
                SessionKey::new(format!("surprise\u{1f}{}\u{1f}{}", exchange.said.persona, exchange.said.chat));
            if begun.last() != Some(&session) {
                begun.push(session.clone());
            }
            if let Err(error) = self.measure(model.as_ref(), exchange, session).await {
                tracing::info!(%error, "how surprising something was is not known");
            }
        }
        for session in begun {
            if let Err(error) = model.forget_session(&session).await {
                tracing::warn!(%error, "what was measured is still held by the model");
            }
        }
    }

    async fn measure(&self, model: &dyn ChatModel, exchange: Exchange, session: SessionKey) -> Result<(), Error> {
        let Exchange { said, mut prompt, reply, loras, provenance, .. } = exchange;
        // What was changed or forgotten meanwhile is nothing that the model is to see again.
        let as_then = said.clone();
        if !self
            .blocking(move |memory| Ok(memory.stands_as(&as_then)? && memory.provenance_holds(&provenance)?))
            .await?
        {
            return Ok(());
        }
        let (Some(scorer), Some(last)) = (model.scorer(), prompt.last_mut()) else { return Ok(()) };
        let words = said.text.as_str();
        // A long message may have been cut in its middle to fit; then nothing can be said of it as a whole.
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
        self.blocking(move |memory| memory.note_surprise(&said, words, whole)).await?;
        Ok(())
    }
}

/// Cross-entropy in nats a token; none of nothing.
fn loss(scores: &[Score]) -> Option<f64> {
    let tokens: usize = scores.iter().map(|score| score.tokens).sum();
    let log_prob: f64 = scores.iter().map(|score| score.log_prob).sum();
    (tokens > 0).then(|| -log_prob / tokens as f64)
}
