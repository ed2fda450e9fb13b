//! Whether an utterance is for the bot, and whom the bot answers.

use std::collections::BTreeMap;
use std::time::Duration;

use azera_types::{MessageId, PersonId};

use crate::words;

/// How long somebody counts as waiting for an answer, if none comes and the bot says nothing else.
const ANSWER: Duration = Duration::from_secs(60);

/// Most questions that are kept. The oldest one is dropped for a newer one.
const MAX_QUESTIONS: usize = 32;

/// A question to the bot, until its answer was said.
#[derive(Debug)]
struct Question {
    /// Who asked.
    person: PersonId,
    /// True once they left. From then on it is nobody's.
    has_left: bool,
    at: Duration,
    /// The reply that answers it, once it comes.
    reply: Option<MessageId>,
    /// True if that reply came to nothing. It may be tried again.
    has_failed: bool,
}

/// Who talked with the bot last, and who waits for an answer.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// Who talked with the bot last, and when.
    partner: Option<(PersonId, Duration)>,
    /// The questions in the order in which they were asked. The replies to one person come in this order, too.
    questions: Vec<Question>,
    is_speaking: bool,
    /// The reply that is being said; `None` while the bot says something else.
    present: Option<MessageId>,
}

impl Conversation {
    /// Records that the bot talks with somebody.
    pub(crate) fn with(&mut self, person: &PersonId, at: Duration) {
        self.partner = Some((person.clone(), at));
    }

    /// Records that somebody asked the bot something.
    pub(crate) fn asked(&mut self, person: &PersonId, at: Duration) {
        self.with(person, at);
        self.push(person, at, None);
    }

    fn push(&mut self, person: &PersonId, at: Duration, reply: Option<MessageId>) {
        let is_speaking = self.is_speaking;
        self.questions.retain(|question| is_speaking || !question.is_old(at));
        if self.questions.len() >= MAX_QUESTIONS {
            self.questions.remove(0);
        }
        self.questions.push(Question { person: person.clone(), has_left: false, at, reply, has_failed: false });
    }

    /// Records that a reply comes. It answers the oldest question of `asker` that has no reply, or of anybody if nobody
    /// knows who asked. What `asker` said may have been taken for no question.
    pub(crate) fn replies(&mut self, reply: MessageId, asker: Option<&PersonId>, at: Duration) {
        if let Some(failed) = self.questions.iter_mut().find(|question| question.reply.as_ref() == Some(&reply)) {
            failed.has_failed = false;
            return;
        }
        let mut open = self.questions.iter_mut().filter(|question| question.reply.is_none());
        if let Some(question) = open.find(|question| question.is_of(asker)) {
            question.reply = Some(reply);
        } else if let Some(asker) = asker {
            self.push(asker, at, Some(reply));
        }
    }

    /// Records that the bot begins to say a part of a reply, or of something else. Returns true if that is another one
    /// than before.
    pub(crate) fn says(&mut self, reply: Option<MessageId>) -> bool {
        let is_new = !self.is_speaking || self.present != reply;
        (self.is_speaking, self.present) = (true, reply);
        is_new
    }

    /// Records that nothing more is said of a reply. Returns who asked for it.
    pub(crate) fn over(&mut self, reply: &MessageId) -> Option<PersonId> {
        let question = self.questions.iter().position(|question| question.reply.as_ref() == Some(reply))?;
        let Question { person, has_left, .. } = self.questions.remove(question);
        (!has_left).then_some(person)
    }

    /// Records that a reply came to nothing. Nobody waits for it, but it may be tried again.
    pub(crate) fn failed(&mut self, reply: &MessageId) {
        for question in self.questions.iter_mut().filter(|question| question.reply.as_ref() == Some(reply)) {
            question.has_failed = true;
        }
    }

    /// Records that a question gets no answer: the oldest one of `asker` that has none, or of anybody.
    pub(crate) fn unanswered(&mut self, asker: Option<&PersonId>) {
        if let Some(at) = self.questions.iter().position(|question| question.is_open() && question.is_of(asker)) {
            self.questions.remove(at);
        }
    }

    /// Records that a person left. Their questions keep their places, so that each reply finds its own.
    pub(crate) fn left(&mut self, person: &PersonId) {
        for question in &mut self.questions {
            question.has_left |= question.person == *person;
        }
    }

    /// Records that nothing more is said of what is being said.
    pub(crate) fn ended(&mut self, at: Duration) {
        if std::mem::take(&mut self.is_speaking) {
            self.replied(at);
        }
        if let Some(reply) = self.present.take()
            && let Some(asker) = self.over(&reply)
        {
            self.partner = Some((asker, at));
        }
    }

    /// Records that nothing more is said of all replies that came.
    pub(crate) fn all_ended(&mut self, at: Duration) {
        self.ended(at);
        self.questions.retain(Question::is_open);
    }

    /// Returns true if what somebody says ends the reply that is being said: it is the answer to them, or to nobody and
    /// they speak to the bot. Talk of others with each other does not.
    pub(crate) fn interrupts(&self, person: &PersonId, is_for_bot: bool) -> bool {
        let is_present = |question: &&Question| self.present.is_some() && question.reply == self.present;
        let asker = self.questions.iter().find(is_present).and_then(Question::asker);
        asker.map_or(is_for_bot, |asker| asker == person)
    }

    /// Records that the bot ended its reply.
    pub(crate) fn replied(&mut self, at: Duration) {
        if let Some((_, since)) = &mut self.partner {
            *since = at;
        }
    }

    /// Returns true if an utterance is for the bot: its name is called, the person is alone with it, or they were just
    /// talking with it and call nobody else.
    pub(crate) fn is_for_bot(
        &self,
        person: &PersonId,
        text: &str,
        names: &[String],
        present: &BTreeMap<PersonId, String>,
        at: Duration,
        attention: Duration,
    ) -> bool {
        if words::calls(text, names) {
            return true;
        }
        let others: Vec<String> =
            present.iter().filter(|(other, _)| *other != person).map(|(_, name)| name.clone()).collect();
        others.is_empty() || (self.is_with(person, at, attention) && !words::calls(text, &others))
    }

    /// Returns true if what a person begins to say is probably for the bot.
    pub(crate) fn may_be_for_bot(
        &self,
        person: &PersonId,
        present: &BTreeMap<PersonId, String>,
        at: Duration,
        attention: Duration,
    ) -> bool {
        present.keys().all(|other| other == person) || self.is_with(person, at, attention)
    }

    /// Returns true if the bot just talked with a person.
    fn is_with(&self, person: &PersonId, at: Duration, attention: Duration) -> bool {
        let waits = |question: &Question| question.asker() == Some(person) && self.is_waiting(question, at);
        if self.questions.iter().any(waits) {
            return true;
        }
        let partner = self.partner.as_ref();
        partner.is_some_and(|(partner, since)| partner == person && at.saturating_sub(*since) <= attention)
    }

    /// Returns true if the answer to a question may still come, or is being said. A long answer to somebody else comes
    /// before.
    fn is_waiting(&self, question: &Question, at: Duration) -> bool {
        !question.has_failed && (self.is_speaking || !question.is_old(at))
    }
}

impl Question {
    /// Returns who asked; `None` once they left.
    fn asker(&self) -> Option<&PersonId> {
        (!self.has_left).then_some(&self.person)
    }

    /// Returns true if `asker` asked it, whether they left or not, or if it may be anybody's.
    fn is_of(&self, asker: Option<&PersonId>) -> bool {
        asker.is_none_or(|asker| *asker == self.person)
    }

    /// Returns true if there is no reply to it that is or will be said.
    fn is_open(&self) -> bool {
        self.has_failed || self.reply.is_none()
    }

    /// Returns true if nobody waits for a reply any more, because none came for long.
    fn is_old(&self, at: Duration) -> bool {
        self.is_open() && at.saturating_sub(self.at) > ANSWER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_group_it_answers_when_called_or_in_conversation() {
        let (ann, bob) = (PersonId::new("ann").unwrap(), PersonId::new("bob").unwrap());
        let names = ["Azera".to_owned()];
        let both = BTreeMap::from([(ann.clone(), "Ann".to_owned()), (bob.clone(), "Robert".to_owned())]);
        let alone = BTreeMap::from([(ann.clone(), "Ann".to_owned())]);
        let mut conversation = Conversation::default();
        let attention = Duration::from_secs(15);
        let check = |conversation: &Conversation, person, text, present, second, want| {
            let at = Duration::from_secs(second);
            assert_eq!(conversation.is_for_bot(person, text, &names, present, at, attention), want, "{text}");
        };
        check(&conversation, &ann, "When does the ferry leave?", &alone, 0, true);
        check(&conversation, &ann, "When does the ferry leave?", &both, 0, false);
        check(&conversation, &ann, "Azera, when does the ferry leave?", &both, 0, true);
        conversation.with(&ann, Duration::from_secs(1));
        check(&conversation, &ann, "And the next one?", &both, 10, true);
        check(&conversation, &bob, "And the next one?", &both, 10, false);
        check(&conversation, &ann, "Robert, are you coming?", &both, 10, false);
        check(&conversation, &ann, "And the next one?", &both, 17, false);
        conversation.replied(Duration::from_secs(12));
        check(&conversation, &ann, "And the next one?", &both, 27, true);
    }
}
