//! What people say in a call, on its way to the engine. The utterances of one person stay in their order, and nobody
//! waits for somebody else.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use azera_adapter::{HostError, InboundEvent, Outcome, Receipt};
use azera_types::{ChatId, Inbound, PersonId};
use tokio::sync::mpsc;

use super::VoiceCalls;
use crate::id;

/// Most utterances of one person that wait to be recorded.
const MAX_WAITING: usize = 64;

/// The utterances of a call, in a queue for each person.
pub(super) struct Utterances {
    calls: Arc<VoiceCalls>,
    queues: HashMap<PersonId, mpsc::Sender<Inbound>>,
}

impl Utterances {
    pub(super) fn new(calls: Arc<VoiceCalls>) -> Self {
        Self { calls, queues: HashMap::new() }
    }

    /// Hands an utterance to the engine after those that its person said before.
    pub(super) fn submit(&mut self, inbound: Inbound) {
        let queue = match self.queues.entry(inbound.person.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (queue, waiting) = mpsc::channel(MAX_WAITING);
                tokio::spawn(self.calls.clone().record(waiting));
                new.insert(queue)
            }
        };
        if let Err(lost) = queue.try_send(inbound) {
            self.calls.caption_is_missing(&lost.into_inner());
            tracing::error!("too many utterances of one person wait; one of them is not recorded");
        }
    }
}

impl VoiceCalls {
    /// Records the utterances of one person, one after the other.
    async fn record(self: Arc<Self>, mut waiting: mpsc::Receiver<Inbound>) {
        while let Some(inbound) = waiting.recv().await {
            let Some(host) = self.host.get() else { return };
            if !self.may_be_heard(&inbound.chat, &inbound.person, inbound.at).await {
                continue;
            }
            let (chat, is_asked) = (inbound.chat.clone(), inbound.mentions_bot);
            let said = inbound.clone();
            let recorded = host.submit(&self.platform, InboundEvent::Message(inbound)).await;
            if recorded.is_ok() {
                self.caption_said(&said);
            } else {
                self.caption_is_missing(&said);
            }
            tokio::spawn(self.clone().answered(recorded, chat, is_asked));
        }
    }

    /// Waits for the answer to an utterance. Tells the call if there is none.
    async fn answered(self: Arc<Self>, recorded: Result<Receipt, HostError>, chat: ChatId, is_asked: bool) {
        let outcome = async { recorded?.outcome().await };
        match outcome.await {
            Ok(Outcome::Replied(_)) => return,
            Ok(Outcome::Skipped(reason)) => tracing::debug!(why = reason.why(), "an utterance is not answered"),
            Err(error) => tracing::warn!(%error, "cannot answer an utterance"),
        }
        let call = id::voice_channel_of(&chat).and_then(|channel| self.call_in(channel));
        if let Some(call) = call.filter(|_| is_asked) {
            call.unanswered();
        }
    }
}
