//! What people say in a call, on its way to the engine. The utterances of one person stay in their order, and nobody
//! waits for somebody else.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use azera_adapter::{HostError, InboundEvent, Outcome, Receipt};
use azera_types::{Inbound, PersonId};
use serenity::all::ChannelId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::VoiceCalls;
use crate::id;

/// What people read when a question is not answered, because people came or went since, or hear again.
const OTHERS_HEAR: &str = "Who hears this call has changed, so I did not answer. Please ask me again.";

/// What people read when answers fail.
const CANNOT_ANSWER: &str = "I cannot answer you at the moment. The operator finds the reason in the log.";

/// What people read when a question cannot be answered, mostly because it is too long or the model gives no answer to it. To wait
/// does not help.
const NO_ANSWER: &str =
    "I have no answer to that. Fewer words may help; if not, the operator finds the reason in the log.";

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
        match self.may_be_heard(&inbound.chat, &inbound.person, inbound.at).await {
            Ok(true) => {}
            // Nobody is told anything about what somebody said who does not agree.
            Ok(false) => return self.gets_no_answer(&inbound),
            Err(error) => return self.note_lost(&inbound, &error),
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

    /// Waits for the answer to an utterance. Tells the call if there is none, and people why if it failed.
    async fn answered(self: Arc<Self>, recorded: Result<Receipt, HostError>, said: Inbound) {
        let failed = match recorded {
            Ok(receipt) => match receipt.outcome().await {
                Ok(Outcome::Replied(_)) => {
                    if let Some(channel) = id::voice_channel_of(&said.chat) {
                        self.note_answer(channel);
                    }
                    return;
                }
                Ok(Outcome::Skipped(reason)) => {
                    tracing::debug!(why = reason.why(), "an utterance is not answered");
                    None
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot answer an utterance");
                    Some(error)
                }
            },
            Err(error) => Some(error),
        };
        self.gets_no_answer(&said);
        let Some(error) = failed.filter(|_| said.mentions_bot) else { return };
        // What was forgotten meanwhile needs no answer.
        if !self.is_forgotten(&said).await {
            self.tell_failure(&said, &error);
        }
    }

    async fn is_forgotten(&self, said: &Inbound) -> bool {
        let Some((_, host)) = self.speech.get() else { return false };
        matches!(host.stands(&said.id).await, Ok(Some(false)))
    }

    /// Notes that something a person said cannot be recorded. They agreed to be heard when they said it. Captions lack it,
    /// and a question gets no answer.
    pub(super) fn note_lost(self: &Arc<Self>, said: &Inbound, error: &HostError) {
        self.caption_is_missing(said);
        self.gets_no_answer(said);
        if said.mentions_bot {
            self.tell_failure(said, error);
        }
    }

    /// Tells people in the text chat why a question is not answered. Each reason is told once until an answer works.
    fn tell_failure(self: &Arc<Self>, said: &Inbound, error: &HostError) {
        let notice = match error {
            HostError::Stopping | HostError::Interrupted => return,
            HostError::NotAllowed => OTHERS_HEAR,
            HostError::Refused(_) => NO_ANSWER,
            _ => CANNOT_ANSWER,
        };
        let Some(channel) = id::voice_channel_of(&said.chat) else { return };
        let (calls, person) = (self.clone(), said.person.clone());
        tokio::spawn(async move {
            if notice == OTHERS_HEAR && !calls.helps_to_ask_again(channel, &person).await {
                return;
            }
            if calls.is_news(channel, notice) && !calls.write_notice(channel, notice).await {
                calls.note_untold(channel, notice);
            }
        });
    }

    /// Returns true if a person may get an answer when they ask again, after the people who hear have changed. They must be
    /// there and hear, and it must be known who else does.
    async fn helps_to_ask_again(&self, channel: ChannelId, person: &PersonId) -> bool {
        let (Some(guild), Some(user)) = (self.guild_of_room(channel), id::user_of(person)) else { return false };
        let knows_who_hears = self.is_told_connected(guild) && !self.attendance.is_in_doubt(channel);
        knows_who_hears && self.is_connected(guild).await && self.hearers(guild, channel).contains(&user)
    }

    /// Returns true if people in a call were not told this since the last answer. From now on they were. A call that is
    /// over has no news.
    fn is_news(&self, channel: ChannelId, notice: &'static str) -> bool {
        let mut calls = self.calls();
        let ongoing = calls.values_mut().find(|ongoing| ongoing.channel == channel);
        ongoing.is_some_and(|ongoing| ongoing.told_failures.insert(notice))
    }

    /// Notes that people in a call could not be told this. The next failure tells them.
    fn note_untold(&self, channel: ChannelId, notice: &'static str) {
        if let Some(ongoing) = self.calls().values_mut().find(|ongoing| ongoing.channel == channel) {
            ongoing.told_failures.remove(notice);
        }
    }

    /// Notes that answers work in a call.
    pub(super) fn note_answer(&self, channel: ChannelId) {
        if let Some(ongoing) = self.calls().values_mut().find(|ongoing| ongoing.channel == channel) {
            ongoing.told_failures.clear();
        }
    }

    /// Tells the call that an utterance gets no answer. Nobody waits for one to what was not for the bot.
    fn gets_no_answer(&self, said: &Inbound) {
        let channel = id::voice_channel_of(&said.chat).filter(|_| said.mentions_bot);
        if let Some(call) = channel.and_then(|channel| self.call_in(channel)) {
            call.unanswered(Some(said.person.clone()));
        }
    }
}
