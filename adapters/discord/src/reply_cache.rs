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

/// The latest messages of a kind, at most [`MAX_REMEMBERED`].
#[derive(Default)]
struct Latest {
    ids: HashSet<MessageId>,
    order: VecDeque<MessageId>,
}

impl Latest {
    fn insert(&mut self, message: MessageId) {
        if self.ids.insert(message) {
            self.order.push_back(message);
        }
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

/// The cache of recent replies.
#[derive(Default)]
pub(crate) struct ReplyCache {
    answers: HashMap<Spot, CachedReply>,
    order: VecDeque<Spot>,
    /// Messages of others that were new when this process received them; no reply to them can exist yet.
    fresh: Latest,
    /// The bot's own messages that were deleted.
    deleted: Latest,
}

impl ReplyCache {
    /// Records that a message of somebody else is new.
    pub(crate) fn fresh(&mut self, question: MessageId) {
        self.fresh.insert(question);
    }

    /// Records that a message of the bot was deleted.
    pub(crate) fn note_deleted(&mut self, message: MessageId) {
        self.deleted.insert(message);
    }

    /// Returns true if a message of the bot was deleted recently, as far as this process knows.
    pub(crate) fn was_deleted(&self, message: MessageId) -> bool {
        self.deleted.ids.contains(&message)
    }

    /// Returns the messages shown at a spot, if known.
    pub(crate) fn known(&self, spot: Spot) -> Option<CachedReply> {
        let known = self.answers.get(&spot).cloned();
        known.or_else(|| match spot {
            Spot::Answers(question) => self.fresh.ids.contains(&question).then(CachedReply::default),
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
            self.fresh.ids.remove(&question);
        }
    }

    /// Records that a message has the sound of its reply.
    pub(crate) fn note_sound(&mut self, spot: Spot, message: MessageId) {
        let parts = self.answers.get_mut(&spot).map(|answer| answer.parts.iter_mut());
        for part in parts.into_iter().flatten().filter(|part| part.id == message) {
            part.has_passing_file = true;
        }
    }

    /// Returns true for a message that shows a reply, and false for a recent one of somebody else; `None` for others.
    pub(crate) fn is_own(&self, message: MessageId) -> Option<bool> {
        let is_shown = self.answers.values().any(|answer| answer.shows(message));
        (is_shown || self.fresh.ids.contains(&message)).then_some(is_shown)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_tells_whose_a_recent_message_is() {
        let mut cache = ReplyCache::default();
        let [question, reply, older] = [1, 2, 3].map(MessageId::new);
        cache.fresh(question);
        let part = Part { id: reply, content: String::new(), of: Some(1), face: None, has_passing_file: false };
        cache.remember(Spot::Answers(question), CachedReply { number: Some(0), parts: vec![part] });
        assert_eq!([question, reply, older].map(|message| cache.is_own(message)), [Some(false), Some(true), None]);
    }
}
