//! What people say in a call, on its way to the engine. The utterances of one person stay in their order, and nobody
//! waits for somebody else.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter::{HostError, InboundEvent, Outcome, Receipt};
use azera_types::{Inbound, PersonId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::VoiceCalls;
use crate::id;

/// Most utterances of one person that wait to be recorded.
const MAX_WAITING: usize = 64;

/// The utterances of a call, in a queue for each person.
pub(super) struct Utterances {
    calls: Arc<VoiceCalls>,
    queues: HashMap<PersonId, mpsc::Sender<Inbound>>,
    /// The tasks that record, one for each queue.
    recording: JoinSet<()>,
}

impl Utterances {
    pub(super) fn new(calls: Arc<VoiceCalls>) -> Self {
        Self { calls, queues: HashMap::new(), recording: JoinSet::new() }
    }

    /// Hands an utterance to the engine after those that its person said before.
    pub(super) fn submit(&mut self, inbound: Inbound) {
        let queue = match self.queues.entry(inbound.person.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (queue, waiting) = mpsc::channel(MAX_WAITING);
                self.recording.spawn(self.calls.clone().record(waiting));
                new.insert(queue)
            }
        };
        self.calls.unrecorded.fetch_add(1, Ordering::AcqRel);
        if let Err(lost) = queue.try_send(inbound) {
            self.calls.unrecorded.fetch_sub(1, Ordering::AcqRel);
            let lost = lost.into_inner();
            self.calls.caption_is_missing(&lost);
            self.calls.gets_no_answer(&lost);
            tracing::error!("too many utterances of one person wait; one of them is not recorded");
        }
    }

    /// Waits until everything is recorded that was said.
    pub(super) async fn recorded(mut self) {
        self.queues.clear();
        while self.recording.join_next().await.is_some() {}
    }
}

impl VoiceCalls {
    /// Records the utterances of one person, one after the other.
    async fn record(self: Arc<Self>, mut waiting: mpsc::Receiver<Inbound>) {
        while let Some(inbound) = waiting.recv().await {
            self.record_one(inbound).await;
            self.unrecorded.fetch_sub(1, Ordering::AcqRel);
        }
    }

    async fn record_one(self: &Arc<Self>, inbound: Inbound) {
        let Some(host) = self.host.get() else { return self.gets_no_answer(&inbound) };
        if !self.may_be_heard(&inbound.chat, &inbound.person, inbound.at).await {
            return self.gets_no_answer(&inbound);
        }
        let said = inbound.clone();
        let recorded = host.submit(&self.platform, InboundEvent::Message(inbound)).await;
        if let Err(error) = &recorded {
            tracing::warn!(%error, "an utterance is not recorded");
            self.caption_is_missing(&said);
        } else {
            self.caption_said(&said);
        }
        tokio::spawn(self.clone().answered(recorded, said));
    }

    /// Waits for the answer to an utterance. Tells the call if there is none.
    async fn answered(self: Arc<Self>, recorded: Result<Receipt, HostError>, said: Inbound) {
        if let Ok(receipt) = recorded {
            match receipt.outcome().await {
                Ok(Outcome::Replied(_)) => return,
                Ok(Outcome::Skipped(reason)) => tracing::debug!(why = reason.why(), "an utterance is not answered"),
                Err(error) => tracing::warn!(%error, "cannot answer an utterance"),
            }
        }
        self.gets_no_answer(&said);
    }

    /// Tells the call that an utterance gets no answer. Nobody waits for one to what was not for the bot.
    fn gets_no_answer(&self, said: &Inbound) {
        let channel = id::voice_channel_of(&said.chat).filter(|_| said.mentions_bot);
        if let Some(call) = channel.and_then(|channel| self.call_in(channel)) {
            call.unanswered(Some(said.person.clone()));
        }
    }
}
