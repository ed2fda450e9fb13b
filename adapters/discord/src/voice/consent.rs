//! The question whether people may be heard: one message for all who are there when the bot comes, and one for those who come
//! within a short time of each other. Each of them decides for themselves.

use std::collections::BTreeSet;
use std::sync::Arc;

use azera_adapter::{Choice, HostError};
use azera_types::PersonId;
use serenity::all::{ChannelId, CreateAllowedMentions, CreateMessage, Permissions, UserId};

use super::{CallKey, Ongoing, VoiceCalls};
use crate::commands::choices;
use crate::error::{Failure, failure, in_words};
use crate::id;

/// Most people who are asked in one message: their mentions fill over half of what Discord takes.
const MAX_CALLED: usize = 50;

/// What people are asked before they are heard.
const QUESTION: &str = "may I hear you in this voice channel? I recognise what you say, answer it aloud, and remember the \
                        words for those who were in the room. I keep no sound, and you can change your mind at any time: \
                        `/voice consent`.";

/// Added where several people are asked.
const EACH: &str = " A button decides for whoever presses it, and for nobody else.";

/// Said aloud where the question cannot be written.
const ASK_ALOUD: &str = "I cannot write into the chat of this voice channel, so I cannot ask you whether I may hear you. To be \
                         heard, use the command voice consent, and choose yes.";

/// What the bot needs to ask.
const NEEDED: Permissions = Permissions::VIEW_CHANNEL.union(Permissions::SEND_MESSAGES);

/// Who is to be asked in a call.
#[derive(Default)]
pub(super) struct Questions {
    /// Who waits for the next message.
    waiting: BTreeSet<UserId>,
    /// Whose question is on its way. They are not asked again before it is recorded that they were, also if they leave and come
    /// back meanwhile.
    on_its_way: BTreeSet<UserId>,
    /// Who of them came back meanwhile. They are asked if their question did not arrive.
    back: BTreeSet<UserId>,
    /// True until it is known who was there when the bot came.
    is_opening: bool,
    /// True once the next message is on its way.
    is_timed: bool,
    /// True once the people there heard that they cannot be asked.
    is_told: bool,
}

impl Questions {
    /// Begins with the people who are there.
    pub(super) fn opening() -> Self {
        Self { is_opening: true, ..Self::default() }
    }

    /// Adds somebody. Returns true if a message must be sent soon.
    fn add(&mut self, user: UserId) -> bool {
        let asked = if self.on_its_way.contains(&user) { &mut self.back } else { &mut self.waiting };
        asked.insert(user);
        let is_due = !self.waiting.is_empty() && !self.is_opening && !self.is_timed;
        self.is_timed |= is_due;
        is_due
    }

    /// Removes somebody who left or decided.
    fn remove(&mut self, user: UserId) {
        self.waiting.remove(&user);
        self.back.remove(&user);
    }

    /// Takes who is asked now.
    fn take(&mut self) -> Vec<UserId> {
        (self.is_opening, self.is_timed) = (false, false);
        self.on_its_way.extend(&self.waiting);
        std::mem::take(&mut self.waiting).into_iter().collect()
    }

    /// Takes in that it is recorded who was asked, or that it failed. Returns who came back meanwhile.
    fn note_asked(&mut self, users: &[UserId]) -> Vec<UserId> {
        self.on_its_way.retain(|user| !users.contains(user));
        let back = users.iter().filter(|user| self.back.remove(user));
        back.copied().collect()
    }
}

impl VoiceCalls {
    /// Returns true if the bot may write into a channel's text chat, where it asks.
    pub(super) fn may_ask(&self, channel: ChannelId) -> bool {
        self.line().is_ok_and(|line| line.directory.own_permissions(channel).contains(NEEDED))
    }

    /// Asks somebody soon who is in a call and did not decide, together with others.
    pub(super) fn ask_soon(self: &Arc<Self>, key: CallKey, user: UserId) {
        if self.with_call(key, |ongoing| ongoing.questions.add(user)) != Some(true) {
            return;
        }
        let calls = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(calls.waits().others).await;
            calls.ask_those_who_wait(key).await;
        });
    }

    /// Asks nobody any more who left a call, or decided.
    pub(super) fn ask_no_more(&self, channel: ChannelId, user: UserId) {
        if let Some(ongoing) = self.calls().values_mut().find(|ongoing| ongoing.channel == channel) {
            ongoing.questions.remove(user);
        }
    }

    /// Asks all who wait, in as few messages as possible.
    pub(super) async fn ask_those_who_wait(self: &Arc<Self>, key: CallKey) {
        let waiting = self.with_call(key, |ongoing| ongoing.questions.take()).unwrap_or_default();
        let mut called = Vec::new();
        for user in &waiting {
            if self.is_unasked(key.channel, *user).await {
                called.push(*user);
            }
        }
        for called in called.chunks(MAX_CALLED) {
            self.ask(key, called).await;
        }
        // Whoever was asked is not asked again.
        for back in self.with_call(key, |ongoing| ongoing.questions.note_asked(&waiting)).unwrap_or_default() {
            self.ask_soon(key, back);
        }
    }

    /// Returns true if somebody neither decided nor was asked. They may have been since they came.
    async fn is_unasked(&self, channel: ChannelId, user: UserId) -> bool {
        let (Some((_, host)), Ok(chat), Ok(person)) = (self.speech.get(), id::voice_chat(channel), id::person(user))
        else {
            return false;
        };
        match host.may_be_heard(&chat, &person).await {
            Ok(decision) => decision.is_none(),
            Err(error) => {
                tracing::warn!(%error, "cannot read whether a person was asked; they are not asked now");
                false
            }
        }
    }

    /// Returns whether somebody in a call is heard now; `None` if they did not decide.
    ///
    /// # Errors
    /// That cannot be read.
    pub(super) async fn read_decision(
        self: &Arc<Self>,
        key: CallKey,
        person: &PersonId,
    ) -> Result<Option<bool>, HostError> {
        let (Some((_, host)), Ok(chat)) = (self.speech.get(), id::voice_chat(key.channel)) else {
            return Ok(Some(false));
        };
        let decision = host.may_be_heard(&chat, person).await?;
        Ok(self.heard_now(key.channel, person, decision))
    }

    /// Reads in a while what somebody in a call decided, until that works. Until then they are not heard.
    pub(super) fn read_decision_later(self: &Arc<Self>, key: CallKey, user: UserId) {
        let calls = self.clone();
        tokio::spawn(async move {
            let is_there = |ongoing: &mut Ongoing| ongoing.told.contains(&user);
            loop {
                tokio::time::sleep(calls.waits().reread).await;
                if calls.with_call(key, is_there) != Some(true) {
                    return;
                }
                match calls.hear_if_agreed(key, user).await {
                    Ok(()) => return,
                    Err(error) => tracing::debug!(%error, "still cannot read whether a person may be heard"),
                }
            }
        });
    }

    /// Hears somebody in a call from now on if they agreed, and asks them if they did not decide.
    async fn hear_if_agreed(self: &Arc<Self>, key: CallKey, user: UserId) -> Result<(), HostError> {
        let Ok(person) = id::person(user) else { return Ok(()) };
        let decision = self.read_decision(key, &person).await?;
        if decision.is_none() {
            self.ask_soon(key, user);
        }
        let call = self.with_call(key, |ongoing| ongoing.call.clone());
        let Some(call) = call.filter(|_| decision == Some(true)) else { return Ok(()) };
        call.decided(person.clone(), true);
        // They may have refused since it was read. The call learns of a later refusal after this.
        let again = self.read_decision(key, &person).await;
        if !matches!(again, Ok(Some(true))) {
            call.decided(person, false);
        }
        again.map(drop)
    }

    /// Asks people in the channel's text chat whether they may be heard.
    async fn ask(&self, key: CallKey, called: &[UserId]) {
        let channel = key.channel;
        if !self.may_ask(channel) {
            return self.cannot_ask(key);
        }
        let (Ok(line), Some((_, host)), Ok(chat)) = (self.line(), self.speech.get(), id::voice_chat(channel)) else {
            return;
        };
        let names: Vec<String> = called.iter().map(|user| format!("<@{user}>")).collect();
        let choice = |label: &str, line: &str| Choice { label: label.to_owned(), line: line.to_owned() };
        let buttons = choices(&[choice("Hear me", "/voice consent yes"), choice("No", "/voice consent no")]);
        let each = if called.len() > 1 { EACH } else { "" };
        let question = CreateMessage::new()
            .content(format!("{}, {QUESTION}{each}", names.join(" ")))
            .components(buttons)
            .allowed_mentions(CreateAllowedMentions::new().users(called.to_vec()));
        if let Err(error) = line.http.send_message(channel, Vec::new(), &question).await {
            tracing::warn!(error = in_words(&error), "cannot ask people whether they may be heard");
            // The permissions that are known here may be older.
            if failure(&error) == Failure::Refused {
                self.cannot_ask(key);
            }
            return;
        }
        for person in called.iter().filter_map(|user| id::person(*user).ok()) {
            if let Err(error) = host.was_asked(&chat, &person).await {
                tracing::warn!(%error, "cannot record that a person was asked");
            }
        }
    }

    /// Says aloud, once in a call and not while the bot is muted, that people cannot be asked. They are asked when they
    /// come again, or when somebody asks the bot to come although it is there.
    fn cannot_ask(&self, key: CallKey) {
        let call = self.with_call(key, |ongoing| {
            if ongoing.is_muted {
                return None;
            }
            let is_news = !std::mem::replace(&mut ongoing.questions.is_told, true);
            is_news.then(|| ongoing.call.clone())
        });
        if let Some(call) = call.flatten() {
            call.say(ASK_ALOUD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_come_together_are_asked_together_and_once() {
        let [ann, bob, cid] = [1, 2, 3].map(UserId::new);
        let mut questions = Questions::opening();
        assert!(!questions.add(ann) && !questions.add(bob) && !questions.add(ann), "the bot has not come yet");
        assert_eq!(questions.take(), [ann, bob]);
        questions.remove(ann);
        assert!(!questions.add(ann), "she left and came back, and her question is on its way");
        assert_eq!(questions.note_asked(&[ann, bob]), [ann], "she is asked again if her question did not arrive");
        assert!(questions.add(cid), "one message is sent soon");
        assert!(!questions.add(bob));
        questions.remove(bob);
        assert!(!questions.add(bob), "he came again, and is asked in the same one");
        questions.remove(cid);
        assert_eq!(questions.take(), [bob], "Cid decided, or left");
        assert!(questions.add(cid));
    }
}
