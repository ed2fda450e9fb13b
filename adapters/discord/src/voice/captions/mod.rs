//! Live captions: what is said in a call stands in a thread of a text channel while the call runs.
//!
//! Readers of the thread need not be in the room. So while captions run, the bot hears only people who agreed to them, and
//! nothing that was said before they began is used in the room (see [`VoiceCalls::captioned_since`]). Then whatever the
//! bot answers rests on what stands in the thread already. The thread is never readable by more people than the text
//! chat of the voice channel.
//!
//! `place` finds the thread, `board` holds the lines that wait, `post` posts them, and `log` knows where each caption
//! stands, so that it goes when its utterance is forgotten: `withdraw` takes it back. `intents` knows what is about to be
//! posted, for the case of a crash.

mod board;
mod forget;
mod intents;
mod log;
mod place;
mod post;
mod withdraw;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use azera_adapter::{CallWish, CaptionStatus, Choice, REPLY_MARK, VoiceError};
use azera_types::{ChatId, Inbound, MessageId, PersonId, Timestamp};
use serenity::all::{ChannelId, CreateAllowedMentions, CreateMessage, GuildId, UserId};
use tokio::sync::Mutex as AsyncMutex;

use super::VoiceCalls;
use crate::commands::choices;
use crate::error::in_words;
use crate::id;
use board::Board;

pub(super) use intents::Intents;
pub(super) use log::CaptionLog;
pub(super) use withdraw::Withdrawn;

/// Utterances whose answers are captions, too.
const MAX_SHOWN: usize = 256;

/// Most people who are called by name when captions begin. The others hear of it.
const MAX_CALLED: usize = 20;

/// Said aloud when captions begin.
const ALOUD: &str =
    "Captions are on. What I hear now stands in a text channel, and I hear only people who agree to that.";

/// Said aloud when they end.
const ALOUD_OVER: &str = "Captions are off.";

/// Written below the last caption.
const TURNED_OFF: &str = "*Somebody turned the captions off.*";
const CALL_OVER: &str = "*The call is over, and so are its captions.*";
const MORE_READERS: &str = "*The captions end: more people can read this channel than the chat of the voice channel.*";

/// The captions of a call.
pub(super) struct Captions {
    board: Arc<Board>,
    /// Who turned them on.
    by: String,
    since: Timestamp,
    /// Who agreed to them. They are heard while captions run, also if they refused it for other times.
    agreed: BTreeSet<PersonId>,
    asked: BTreeSet<PersonId>,
    /// The utterances that were shown lately.
    shown: VecDeque<MessageId>,
    /// The reply that was stopped last, with what was heard of it.
    stopped: Option<(MessageId, String)>,
}

impl Captions {
    /// Ends them, because the call is over.
    pub(super) fn call_is_over(self) {
        self.board.end(CALL_OVER);
    }

    /// Returns the name of these captions among those of the call.
    fn name(&self) -> String {
        self.board.name.clone()
    }

    /// Records that a person agrees no longer. What they said last may stand in no caption, so it is not used either.
    fn refused(&mut self, person: &PersonId, now: Timestamp) {
        if self.agreed.remove(person) {
            self.since = now;
        }
    }

    /// Returns whether what a person said at a time may be recorded: only those who agreed are heard since captions began.
    fn may_record(&mut self, person: &PersonId, at: Timestamp, decision: Option<bool>, now: Timestamp) -> bool {
        if decision.is_none() {
            // Whoever agreed was asked: they were forgotten since.
            self.refused(person, now);
        }
        self.agreed.contains(person) || (decision == Some(true) && at < self.since)
    }

    fn status(&self, person: &PersonId) -> CaptionStatus {
        CaptionStatus {
            name: self.name(),
            by: self.by.clone(),
            place: format!("<#{}>", self.board.thread),
            people: self.agreed.len(),
            shows_yours: self.agreed.contains(person),
        }
    }

    /// Returns what is new of a reply that was heard so far.
    fn new_words(&mut self, reply: &MessageId, heard: &str, is_whole: bool) -> String {
        let before = self.stopped.take().filter(|(stopped, _)| stopped == reply);
        let new = before.as_ref().and_then(|(_, before)| heard.strip_prefix(before.as_str())).unwrap_or(heard);
        let new = new.trim();
        if is_whole || new.is_empty() {
            return new.to_owned();
        }
        self.stopped = Some((reply.clone(), heard.to_owned()));
        format!("{new}\u{2026}")
    }
}

impl VoiceCalls {
    /// Reads or changes the captions of the call in a channel, on behalf of a person who takes part in it.
    pub(super) async fn captions(
        self: &Arc<Self>,
        chat: &ChatId,
        (guild, channel): (GuildId, ChannelId),
        person: &PersonId,
        wish: CallWish,
    ) -> Result<Option<CaptionStatus>, VoiceError> {
        let turn = self.captions_turn(channel).ok_or(VoiceError::NotThere)?;
        let turn = turn.lock().await;
        match wish {
            CallWish::Show => {}
            CallWish::On => self.turn_on(chat, (guild, channel), person).await?,
            CallWish::Off => self.turn_off((guild, channel), None, TURNED_OFF).await,
            CallWish::Agree(name) => self.agree(channel, person, name.as_deref()).await?,
            CallWish::Refuse => {
                if let Some(call) = self.call_in(channel).filter(|_| self.refuse_captions(channel, person)) {
                    call.decided(person.clone(), false);
                }
            }
        }
        let status = self.change(channel, |captions| captions.status(person));
        drop(turn);
        Ok(status)
    }

    /// Returns what is held while captions of a call begin or end; `None` without a call.
    fn captions_turn(&self, channel: ChannelId) -> Option<Arc<AsyncMutex<()>>> {
        let calls = self.calls();
        calls.values().find(|ongoing| ongoing.channel == channel).map(|ongoing| ongoing.captions_turn.clone())
    }

    /// Changes the captions of a call; returns `None` if there are none.
    fn change<T>(&self, channel: ChannelId, change: impl FnOnce(&mut Captions) -> T) -> Option<T> {
        let mut calls = self.calls();
        let captions = calls.values_mut().find(|ongoing| ongoing.channel == channel)?.captions.as_mut()?;
        Some(change(captions))
    }

    /// Returns since when the captions of a call run. What was said before is not used in the room while they do.
    pub(super) fn captioned_since(&self, channel: ChannelId) -> Option<Timestamp> {
        self.change(channel, |captions| captions.since)
    }

    /// Lets a person be heard while captions run. Nothing of it is recorded, so it ends with them.
    async fn agree(&self, channel: ChannelId, person: &PersonId, name: Option<&str>) -> Result<(), VoiceError> {
        let unavailable = || VoiceError::Unavailable("I cannot look up your choice now. Try again.".to_owned());
        let is_meant = |captions: &mut Captions| name.is_none_or(|name| captions.name() == name);
        match self.change(channel, is_meant) {
            None if name.is_none() => return Ok(()),
            None | Some(false) => return Err(VoiceError::CaptionsEnded),
            Some(true) => {}
        }
        let (Ok(chat), Some((_, host))) = (id::voice_chat(channel), self.speech.get()) else {
            return Err(unavailable());
        };
        // From now on a person who is unknown to the record was forgotten, see `heard_now`.
        host.was_asked(&chat, person).await.map_err(|error| {
            tracing::warn!(%error, "cannot record that a person was asked; they are not heard");
            unavailable()
        })?;
        let agreed = self.change(channel, |captions| {
            let is_meant = is_meant(captions);
            if is_meant {
                captions.agreed.insert(person.clone());
            }
            is_meant
        });
        if agreed != Some(true) {
            return Err(VoiceError::CaptionsEnded);
        }
        if let Some(call) = self.call_in(channel) {
            call.decided(person.clone(), true);
        }
        Ok(())
    }

    /// Records that a person agrees to captions no longer. Returns whether some run.
    pub(super) fn refuse_captions(&self, channel: ChannelId, person: &PersonId) -> bool {
        let now = self.clock.now();
        self.change(channel, |captions| captions.refused(person, now)).is_some()
    }

    async fn turn_on(
        self: &Arc<Self>,
        chat: &ChatId,
        (guild, channel): (GuildId, ChannelId),
        person: &PersonId,
    ) -> Result<(), VoiceError> {
        if self.captioned_since(channel).is_some() {
            return Ok(());
        }
        let parent = self.place_for_captions(chat, (guild, channel), person).await?;
        self.not_too_often(channel)?;
        self.has_room_for_captions(channel).await?;
        let thread = self.thread_for_captions(channel, parent).await?;
        let name = format!("{thread}-{}", self.clock.now().as_millisecond());
        let board = Arc::new(Board::new(name, channel, parent, thread));
        let by = id::user_of(person).map_or_else(|| "somebody".to_owned(), |user| self.name(guild, user));
        // Who turns them on agrees to them, but not to being heard.
        let voice_chat = id::voice_chat(channel).map_err(|_| VoiceError::NotThere)?;
        let is_heard = self.may_be_heard(&voice_chat, person, self.clock.now()).await.unwrap_or(false);
        let begun = self.begin_captions((guild, channel), (person, is_heard), &by, board.clone());
        let Some(others) = begun else {
            self.remove_thread(channel, thread).await;
            return Err(VoiceError::NotThere);
        };
        self.tell(
            board.thread,
            &format!(
                "Captions of what is said in <#{channel}>. {by} turned them on. They show what people say who agreed to it, \
                 and what I answer. They end with the call, or by `/voice captions off`."
            ),
        )
        .await;
        self.followed().spawn(self.clone().post_captions(guild, board.clone()));
        self.announce(&board, &by, &others).await;
        Ok(())
    }

    /// Lets captions begin: nobody but the person who asked is heard until they agree. Returns the others who are there,
    /// or `None` if the call is over.
    fn begin_captions(
        &self,
        (guild, channel): (GuildId, ChannelId),
        (person, is_heard): (&PersonId, bool),
        by: &str,
        board: Arc<Board>,
    ) -> Option<Vec<UserId>> {
        let people = self.people(guild, channel).into_iter().filter_map(|user| Some((user, id::person(user).ok()?)));
        let others: Vec<(UserId, PersonId)> = people.filter(|(_, other)| other != person).collect();
        let call = {
            let mut calls = self.calls();
            let ongoing = calls.values_mut().find(|ongoing| ongoing.channel == channel)?;
            let captions = Captions {
                board,
                by: by.to_owned(),
                since: self.clock.now(),
                agreed: is_heard.then(|| person.clone()).into_iter().collect(),
                asked: others.iter().map(|(_, other)| other.clone()).collect(),
                shown: VecDeque::new(),
                stopped: None,
            };
            if let Some(before) = ongoing.captions.replace(captions) {
                before.board.end(TURNED_OFF);
            }
            ongoing.call.clone()
        };
        // What is being said may rest on what was said before.
        call.stop();
        for (_, other) in &others {
            call.decided(other.clone(), false);
        }
        call.say(ALOUD);
        Some(others.into_iter().map(|(user, _)| user).collect())
    }

    /// Tells the readers of the voice channel's text chat about captions, and asks those who are in the room.
    async fn announce(&self, board: &Board, by: &str, others: &[UserId]) {
        let called: Vec<UserId> = others.iter().take(MAX_CALLED).copied().collect();
        let names: String = called.iter().map(|user| format!("<@{user}> ")).collect();
        let text = format!(
            "{names}{by} turned on captions: what I hear in this call, and what I answer, now stands in <#{}>, for \
             everybody who can read it there. While they run, I hear only people who agree to that. \
             `/voice captions off` ends them.",
            board.thread
        );
        self.ask_with_buttons(board, text, called).await;
    }

    async fn ask_with_buttons(&self, board: &Board, text: String, called: Vec<UserId>) {
        let Ok(line) = self.line() else { return };
        let choice = |label: &str, line: &str| Choice { label: label.to_owned(), line: line.to_owned() };
        let buttons = choices(&[
            choice("Hear me and show my words", &format!("/voice captions yes {}", board.name)),
            choice("Do not hear me", "/voice captions no"),
        ]);
        let question = CreateMessage::new()
            .content(text)
            .components(buttons)
            .allowed_mentions(CreateAllowedMentions::new().users(called));
        if let Err(error) = line.http.send_message(board.voice, Vec::new(), &question).await {
            tracing::warn!(error = in_words(&error), "cannot ask people about captions");
        }
    }

    /// Ends captions whose turn nobody else has: those of a board, if they still run, or else any.
    async fn end_in_turn(self: &Arc<Self>, guild: GuildId, board: &Board, farewell: &'static str) {
        let Some(turn) = self.captions_turn(board.voice) else { return };
        let _turn = turn.lock().await;
        self.turn_off((guild, board.voice), Some(board), farewell).await;
    }

    /// Ends the captions of a call, and hears everybody again who agreed to be heard. With a board, it ends no others.
    /// The caller holds the turn.
    async fn turn_off(
        self: &Arc<Self>,
        (guild, channel): (GuildId, ChannelId),
        board: Option<&Board>,
        farewell: &'static str,
    ) {
        let is_meant =
            |captions: &mut Captions| board.is_none_or(|board| std::ptr::eq(&raw const *captions.board, board));
        let ended = {
            let mut calls = self.calls();
            let ongoing = calls.get_mut(&guild).filter(|ongoing| ongoing.channel == channel);
            ongoing.and_then(|ongoing| Some((ongoing.captions.take_if(is_meant)?, ongoing.call.clone())))
        };
        let Some((captions, call)) = ended else { return };
        captions.board.end(farewell);
        call.say(ALOUD_OVER);
        let (Ok(chat), Some((_, host))) = (id::voice_chat(channel), self.speech.get()) else { return };
        for person in self.people(guild, channel).into_iter().filter_map(|user| id::person(user).ok()) {
            match host.may_be_heard(&chat, &person).await {
                Ok(Some(decision)) => call.decided(person, decision),
                Ok(None) => {
                    call.decided(person.clone(), false);
                    if let (Some(key), Some(user)) = (self.call_of(guild, channel), id::user_of(&person)) {
                        self.ask_soon(key, user);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read whether a person may be heard; they are not until then");
                    call.decided(person.clone(), false);
                    if let (Some(key), Some(user)) = (self.call_of(guild, channel), id::user_of(&person)) {
                        self.read_decision_later(key, user);
                    }
                }
            }
        }
    }

    /// Returns whether a person who is in the room is heard now, from what they decided for other times. While captions
    /// run, those who agreed to them are heard, and nobody else; each of the others is asked once.
    pub(super) fn heard_now(
        self: &Arc<Self>,
        channel: ChannelId,
        person: &PersonId,
        decision: Option<bool>,
    ) -> Option<bool> {
        let now = self.clock.now();
        let state = |captions: &mut Captions| {
            if decision.is_none() {
                // Whoever agreed was asked: they were forgotten since.
                captions.refused(person, now);
            }
            let is_agreed = captions.agreed.contains(person);
            let is_new = !is_agreed && decision != Some(false) && captions.asked.insert(person.clone());
            (is_agreed, is_new.then(|| (captions.by.clone(), captions.board.clone())))
        };
        let Some((is_agreed, asked)) = self.change(channel, state) else { return decision };
        if is_agreed {
            return Some(true);
        }
        if let (Some((by, board)), Some(user)) = (asked, id::user_of(person)) {
            let calls = self.clone();
            tokio::spawn(async move { calls.announce(&board, &by, &[user]).await });
        }
        Some(false)
    }

    /// Returns whether what a person said at a time may be recorded, from what they decided for other times.
    pub(super) fn may_record(
        &self,
        channel: ChannelId,
        person: &PersonId,
        at: Timestamp,
        decision: Option<bool>,
    ) -> bool {
        let now = self.clock.now();
        let may = |captions: &mut Captions| captions.may_record(person, at, decision, now);
        self.change(channel, may).unwrap_or(decision == Some(true))
    }

    /// Shows what a person said, if they agreed to it.
    pub(super) fn caption_said(&self, said: &Inbound) {
        let Some(channel) = id::voice_channel_of(&said.chat) else { return };
        self.change(channel, |captions| {
            if captions.agreed.contains(&said.person) && said.at >= captions.since {
                if captions.shown.len() >= MAX_SHOWN {
                    captions.shown.pop_front();
                }
                captions.shown.push_back(said.id.clone());
                captions.board.add(&said.id, &said.name, &said.text);
            }
        });
    }

    /// Records that something a person said cannot be shown, if they agreed to captions.
    pub(super) fn caption_is_missing(&self, said: &Inbound) {
        let Some(channel) = id::voice_channel_of(&said.chat) else { return };
        self.change(channel, |captions| {
            if captions.agreed.contains(&said.person) && said.at >= captions.since {
                captions.board.miss();
            }
        });
    }

    /// Shows what was heard of a reply, if what it answers stands there, too.
    pub(super) fn caption_reply(&self, channel: ChannelId, reply: &MessageId, heard: &str, is_whole: bool) {
        let Some((question, _)) = reply.as_str().rsplit_once(REPLY_MARK) else { return };
        let name = self.speaker_of(channel, reply);
        self.change(channel, |captions| {
            if captions.shown.iter().any(|shown| shown.as_str() == question) {
                let words = captions.new_words(reply, heard, is_whole);
                captions.board.add(reply, &name, &words);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captions() -> Captions {
        Captions {
            board: Arc::new(Board::new(String::new(), ChannelId::new(1), ChannelId::new(2), ChannelId::new(3))),
            by: "Ann".to_owned(),
            since: Timestamp::UNIX_EPOCH,
            agreed: BTreeSet::new(),
            asked: BTreeSet::new(),
            shown: VecDeque::new(),
            stopped: None,
        }
    }

    #[test]
    fn only_those_who_agreed_are_recorded_since_captions_began() {
        let (ann, robert) = (PersonId::new("ann").unwrap(), PersonId::new("robert").unwrap());
        let [before, since, after] = [1, 2, 3].map(|second| Timestamp::from_second(second).unwrap());
        let mut captions = Captions { since, agreed: BTreeSet::from([ann.clone()]), ..captions() };
        assert!(captions.may_record(&ann, after, Some(false), after), "she agreed to captions alone");
        assert!(!captions.may_record(&robert, since, Some(true), after), "he agreed to be heard at other times");
        assert!(captions.may_record(&robert, before, Some(true), after));
        assert!(!captions.may_record(&robert, before, Some(false), after));
        // Forgetting her takes her agreement away.
        assert!(!captions.may_record(&ann, after, None, after));
        assert!(!captions.may_record(&ann, after, Some(false), after));
    }

    #[test]
    fn a_reply_that_goes_on_is_not_shown_twice() {
        let id = |text: &str| MessageId::new(text).unwrap();
        let mut captions = captions();
        assert_eq!(captions.new_words(&id("a"), "First you walk", false), "First you walk\u{2026}");
        assert_eq!(captions.new_words(&id("a"), "First you walk to the bay.", true), "to the bay.");
        assert_eq!(captions.new_words(&id("b"), "", false), "");
        assert_eq!(captions.new_words(&id("b"), "All of it.", true), "All of it.");
    }
}
