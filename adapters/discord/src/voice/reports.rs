//! What happens in a room.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{Choice, ExpectedMessage};
use azera_types::{ChatId, Inbound, PersonId, Timestamp};
use azera_voice_discord::{Report, RoomReport};
use azera_voice_room::{Expected, Said};
use serenity::all::{ChannelId, CreateAllowedMentions, CreateMessage, GuildId};
use tokio::sync::mpsc;

use super::VoiceCalls;
use super::ending::Followed;
use super::utterances::Utterances;
use crate::commands::choices;
use crate::error::in_words;
use crate::id;
use crate::replies::nobody;
use crate::split::split;

/// How often a broken connection is renewed before the bot leaves.
const MAX_REJOINED: u32 = 3;

/// How long a renewed connection must hold until it counts as repaired.
const HELD_S: i64 = 5 * 60;

/// How often the connection of a call was renewed since it last held.
#[derive(Default)]
pub(super) struct Renewals {
    count: u32,
    last: Option<Timestamp>,
}

impl Renewals {
    /// Counts a renewal, and returns how many there were in a row.
    fn count(&mut self, now: Timestamp) -> u32 {
        if self.last.is_some_and(|last| now.as_second() - last.as_second() >= HELD_S) {
            self.count = 0;
        }
        (self.count, self.last) = (self.count + 1, Some(now));
        self.count
    }
}

/// What people read when the voice fails.
const VOICELESS: &str = "I could not say all of my answer: my voice does not work at the moment. The operator finds the \
                         reason in the log.";

/// What people are asked before they are heard.
const QUESTION: &str = "may I hear you in this voice channel? I recognise what you say, answer it aloud, and remember the \
                        words for those who were in the room. I keep no sound, and you can change your mind at any time: \
                        `/voice consent`.";

impl VoiceCalls {
    /// Handles the reports of a call until it is over and what was said in it is recorded.
    pub(super) async fn follow(
        self: Arc<Self>,
        guild: GuildId,
        channel: ChannelId,
        mut reports: mpsc::UnboundedReceiver<Report>,
        _followed: Followed,
    ) {
        let (mut number, mut utterances) = (0, Utterances::new(self.clone()));
        while let Some(report) = reports.recv().await {
            match report {
                Report::Room(RoomReport::Said(said, ago)) => {
                    number += 1;
                    self.said(&mut utterances, (guild, channel), (said, ago), number).await;
                }
                Report::Room(report) => self.in_room(guild, channel, report).await,
                Report::Deaf => self.rejoin(guild, channel, "nothing that people say can be decrypted").await,
                Report::Lost(why) => self.rejoin(guild, channel, &why).await,
                Report::RecordingEnded(why) => self.recording_ended(guild, channel, why).await,
            }
        }
        utterances.recorded().await;
    }

    async fn in_room(self: &Arc<Self>, guild: GuildId, channel: ChannelId, report: RoomReport) {
        match report {
            RoomReport::Said(..) => {}
            RoomReport::Expected(expected) => self.expect(channel, expected),
            RoomReport::Heard { reply, heard, is_whole } => self.heard(&reply, &heard, is_whole).await,
            RoomReport::Uttered { reply, heard, is_whole } => self.caption_reply(channel, &reply, &heard, is_whole),
            RoomReport::Voiceless => self.tell(channel, VOICELESS).await,
            RoomReport::Muted(is_muted) => {
                if let Err(error) = self.show_mute(guild, is_muted).await {
                    tracing::debug!(%error, "cannot show that the bot is quiet");
                }
            }
            RoomReport::Ask(person) => {
                // Discord may take long to show the question. What others say does not wait for it.
                tokio::spawn(self.clone().ask(channel, person));
            }
            RoomReport::Alone => {
                tracing::info!(%channel, "nobody else is in the voice channel");
                self.leave(guild).await;
            }
        }
    }

    /// Lets the engine prepare the answer to what somebody seems to be saying.
    fn expect(self: &Arc<Self>, channel: ChannelId, expected: Expected) {
        let Ok(chat) = id::voice_chat(channel) else { return };
        let Expected { person, name, text } = expected;
        let calls = self.clone();
        tokio::spawn(async move {
            let Some((_, host)) = calls.speech.get() else { return };
            if calls.may_be_heard(&chat, &person, calls.clock.now()).await {
                host.expect(&calls.platform, ExpectedMessage { chat, person, name, text }).await;
            }
        });
    }

    /// Hands in an utterance. Only the people who hear it may read it.
    async fn said(
        self: &Arc<Self>,
        utterances: &mut Utterances,
        (guild, channel): (GuildId, ChannelId),
        (said, ago): (Said, Duration),
        number: u64,
    ) {
        // Before the disk is waited for: whoever comes meanwhile did not hear it.
        let now = self.clock.now();
        let hearers = self.hearers(guild, channel);
        if let Err(error) = self.said_before(channel, &hearers).await {
            tracing::error!(%error, "cannot write who hears what is said; it is not recorded");
            return;
        }
        let at = now.checked_sub(ago).unwrap_or(now);
        let (Ok(id), Ok(chat)) = (id::utterance(channel, now, number), id::voice_chat(channel)) else { return };
        let inbound = Inbound {
            id,
            chat,
            person: said.person,
            name: said.name,
            text: said.text,
            at,
            parts: Vec::new(),
            mentions_bot: said.is_for_bot,
            mentions: Vec::new(),
            reply_to: None,
        };
        utterances.submit(inbound);
    }

    /// Returns whether what a person says at a time may still be heard. Forgetting a person takes their consent away.
    pub(super) async fn may_be_heard(&self, chat: &ChatId, person: &PersonId, at: Timestamp) -> bool {
        let (Some((_, host)), Some(channel)) = (self.speech.get(), id::voice_channel_of(chat)) else { return false };
        let decision = host.may_be_heard(chat, person).await;
        let may = decision.is_ok_and(|decision| self.may_record(channel, person, at, decision));
        if !may && let Some(call) = self.call_in(channel) {
            call.decided(person.clone(), false);
        }
        may
    }

    /// Asks a person in the channel's text chat whether they may be heard.
    pub(super) async fn ask(self: Arc<Self>, channel: ChannelId, person: PersonId) {
        let (Ok(line), Some((_, host))) = (self.line(), self.speech.get()) else { return };
        let (Some(user), Ok(chat)) = (id::user_of(&person), id::voice_chat(channel)) else { return };
        let choice = |label: &str, line: &str| Choice { label: label.to_owned(), line: line.to_owned() };
        let buttons = choices(&[choice("Hear me", "/voice consent yes"), choice("No", "/voice consent no")]);
        let question = CreateMessage::new()
            .content(format!("<@{user}>, {QUESTION}"))
            .components(buttons)
            .allowed_mentions(CreateAllowedMentions::new().users([user]));
        match line.http.send_message(channel, Vec::new(), &question).await {
            Ok(_) => {
                if let Err(error) = host.was_asked(&chat, &person).await {
                    tracing::warn!(%error, "cannot record that a person was asked");
                }
            }
            Err(error) => tracing::warn!(error = in_words(&error), "cannot ask a person whether they may be heard"),
        }
    }

    async fn leave(&self, guild: GuildId) {
        self.end(guild);
        if let Err(error) = self.ask_to_move(guild, None).await {
            tracing::debug!(%error, "cannot leave a voice channel");
        }
    }

    /// Renews a broken connection: leaves the channel and comes again.
    async fn rejoin(&self, guild: GuildId, channel: ChannelId, why: &str) {
        let rejoined = {
            let mut calls = self.calls();
            let Some(ongoing) = calls.get_mut(&guild).filter(|ongoing| ongoing.channel == channel) else { return };
            let rejoined = ongoing.renewals.count(self.clock.now());
            (ongoing.session, ongoing.server, ongoing.is_rejoining) = (None, None, true);
            rejoined
        };
        tracing::warn!(%channel, why, rejoined, "the connection to a voice channel is broken");
        if rejoined == 1 {
            self.tell(channel, "I cannot hear you just now, so I connect anew.").await;
        }
        if rejoined > MAX_REJOINED {
            self.tell(channel, "I cannot connect to this voice channel. `/voice join` tries again.").await;
            return self.leave(guild).await;
        }
        for channel in [None, Some(channel)] {
            if let Err(error) = self.ask_to_move(guild, channel).await {
                tracing::warn!(%error, "cannot join a voice channel again");
                return self.end(guild);
            }
        }
    }

    /// Writes a notice into the channel's text chat.
    pub(super) async fn tell(&self, channel: ChannelId, notice: &str) {
        let Ok(line) = self.line() else { return };
        let message = CreateMessage::new().content(notice).allowed_mentions(nobody());
        if let Err(error) = line.http.send_message(channel, Vec::new(), &message).await {
            tracing::debug!(error = in_words(&error), "cannot write a notice");
        }
    }

    /// Sends the code of a reply to the person who asked. Others who read the channel's text chat were not in the room.
    pub(super) async fn send_code(self: Arc<Self>, asker: Option<PersonId>, code: String) {
        let user = asker.as_ref().and_then(id::user_of);
        let (Ok(line), Some(user)) = (self.line(), user) else { return };
        let Some(channel) = line.directory.direct_with(user).await else { return };
        for part in split(&code) {
            let message = CreateMessage::new().content(part).allowed_mentions(nobody());
            if let Err(error) = line.http.send_message(channel, Vec::new(), &message).await {
                tracing::warn!(error = in_words(&error), "cannot send the code of a reply");
                return;
            }
        }
    }
}

/// Returns the code blocks of a text.
pub(super) fn code_of(text: &str) -> Option<String> {
    /// What begins and ends a code block.
    const FENCE: &str = "```";
    let blocks = text.split(FENCE).skip(1).step_by(2).filter(|block| !block.trim().is_empty());
    let code: Vec<String> = blocks.map(|block| format!("{FENCE}{}\n{FENCE}", block.trim_end())).collect();
    (!code.is_empty()).then(|| code.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_held_may_break_as_often_again() {
        let at = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
        let mut renewals = Renewals::default();
        let counted: Vec<u32> = [0, 1, 2, 60, 61, 120, 180].map(|minutes| renewals.count(at(minutes))).into();
        assert_eq!(counted, [1, 2, 3, 1, 2, 1, 1]);
    }

    #[test]
    fn code_is_found_in_a_reply() {
        assert_eq!(code_of("Hello there."), None);
        assert_eq!(
            code_of("Run:\n```sh\nls\n```\nor\n```\nls -l\n```").as_deref(),
            Some("```sh\nls\n```\n```\nls -l\n```")
        );
        assert_eq!(code_of("An open one:\n```sh\nls").as_deref(), Some("```sh\nls\n```"));
    }
}
