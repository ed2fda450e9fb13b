//! A cache of where replies are shown.

use std::collections::{HashMap, HashSet, VecDeque};

use serenity::all::MessageId;

use crate::id::{ReplyKey, Spot};
use crate::webhooks::WebhookIdentity;

/// Most replies in the cache.
const MAX_REMEMBERED: usize = 4_096;

/// The messages that show a reply or a post, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedReply {
    /// Number of the reply, if the messages tell.
    pub(crate) number: Option<u32>,
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) id: MessageId,
    pub(crate) content: String,
    /// Total number of parts according to its buttons; `None` while the reply is being generated.
    pub(crate) of: Option<usize>,
    /// The webhook and name that it was posted with; `None` for the bot itself.
    pub(crate) face: Option<WebhookIdentity>,
    /// Whether it has a file that goes with the next text: the sound of the reply, or a preview of a picture.
    pub(crate) has_passing_file: bool,
}

impl CachedReply {
    fn shows(&self, message: MessageId) -> bool {
        self.parts.iter().any(|part| part.id == message)
    }
}

/// The cache of recent replies.
#[derive(Default)]
pub(crate) struct ReplyCache {
    answers: HashMap<Spot, CachedReply>,
    order: VecDeque<Spot>,
    /// Messages that were new when this process received them; no reply to them can exist yet.
    fresh: HashSet<MessageId>,
    fresh_order: VecDeque<MessageId>,
}

impl ReplyCache {
    /// Records that a message is new.
    pub(crate) fn fresh(&mut self, question: MessageId) {
        if self.fresh.insert(question) {
            self.fresh_order.push_back(question);
        }
        if self.fresh_order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.fresh_order.pop_front()
        {
            self.fresh.remove(&oldest);
        }
    }

    /// Returns the messages shown at a spot, if known.
    pub(crate) fn known(&self, spot: Spot) -> Option<CachedReply> {
        let known = self.answers.get(&spot).cloned();
        known.or_else(|| match spot {
            Spot::Answers(question) => self.fresh.contains(&question).then(CachedReply::default),
            Spot::Post(_) => None,
        })
    }

    pub(crate) fn remember(&mut self, spot: Spot, answer: CachedReply) {
        if self.answers.insert(spot, answer).is_none() {
            self.order.push_back(spot);
        }
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.doubt(oldest);
        }
    }

    /// Removes a spot, because its messages are unknown.
    pub(crate) fn doubt(&mut self, spot: Spot) {
        self.answers.remove(&spot);
        if let Spot::Answers(question) = spot {
            self.fresh.remove(&question);
        }
    }

    /// Records that a message has the sound of its reply.
    pub(crate) fn note_sound(&mut self, spot: Spot, message: MessageId) {
        let parts = self.answers.get_mut(&spot).map(|answer| answer.parts.iter_mut());
        for part in parts.into_iter().flatten().filter(|part| part.id == message) {
            part.has_passing_file = true;
        }
    }

    /// Returns the reply that a message shows.
    pub(crate) fn reply_of(&self, message: MessageId) -> Option<ReplyKey> {
        let (spot, answer) = self.answers.iter().find(|(_, answer)| answer.shows(message))?;
        Some(ReplyKey { spot: *spot, number: answer.number? })
    }

    /// Removes a deleted message; returns its reply.
    pub(crate) fn forget_message(&mut self, message: MessageId) -> Option<ReplyKey> {
        let (spot, answer) = self.answers.iter_mut().find(|(_, answer)| answer.shows(message))?;
        let reply = ReplyKey { spot: *spot, number: answer.number? };
        answer.parts.retain(|part| part.id != message);
        Some(reply)
    }
}
