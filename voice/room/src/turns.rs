//! Whether an utterance is for the bot.

use std::collections::BTreeMap;
use std::time::Duration;

use azera_types::PersonId;

use crate::words;

/// How long somebody counts as waiting for an answer, if none comes.
const ANSWER: Duration = Duration::from_secs(60);

/// Who talked with the bot last, and when.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    partner: Option<(PersonId, Duration)>,
    /// Who waits for an answer or hears it now, and when they asked.
    askers: BTreeMap<PersonId, Duration>,
}

impl Conversation {
    /// Records that the bot talks with somebody.
    pub(crate) fn with(&mut self, person: &PersonId, at: Duration) {
        self.partner = Some((person.clone(), at));
    }

    /// Records that somebody asked the bot something.
    pub(crate) fn asked(&mut self, person: &PersonId, at: Duration) {
        self.with(person, at);
        self.askers.insert(person.clone(), at);
    }

    /// Records that the bot said everything that it began at `since`. Who asked later still waits.
    pub(crate) fn answered(&mut self, since: Duration) {
        self.askers.retain(|_, asked| *asked > since);
    }

    /// Records that a person left.
    pub(crate) fn left(&mut self, person: &PersonId) {
        self.askers.remove(person);
    }

    /// Records that nobody gets an answer any more.
    pub(crate) fn stopped(&mut self) {
        self.askers.clear();
    }

    /// Returns true if what somebody says ends the reply that is being said: it is the answer to them, or to nobody and
    /// they speak to the bot. Talk of others with each other does not.
    pub(crate) fn interrupts(&self, person: &PersonId, is_for_bot: bool, at: Duration) -> bool {
        let mut waiting = self.askers.iter().filter(|(_, asked)| at.saturating_sub(**asked) <= ANSWER).peekable();
        if waiting.peek().is_none() { is_for_bot } else { waiting.any(|(asker, _)| asker == person) }
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
        let asked = self.askers.get(person);
        if asked.is_some_and(|asked| at.saturating_sub(*asked) <= ANSWER) {
            return true;
        }
        let partner = self.partner.as_ref();
        partner.is_some_and(|(partner, since)| partner == person && at.saturating_sub(*since) <= attention)
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
