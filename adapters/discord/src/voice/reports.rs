//! What happens in a room.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{ExpectedMessage, HostError};
use azera_types::{ChatId, Inbound, PersonId, Timestamp};
use azera_voice_discord::{Lost, RecordingEnd, Report, RoomReport};
use azera_voice_room::{Expected, Said};
use serenity::all::{ChannelId, CreateMessage, GuildId};
use tokio::sync::mpsc;

use super::ending::Followed;
use super::joining::Entry;
use super::utterances::Utterances;
use super::{CallKey, VoiceCalls};
use crate::error::in_words;
use crate::id;
use crate::replies::nobody;

/// How often a broken connection is renewed before the bot leaves.
const MAX_REJOINED: u32 = 3;

/// What people read when the connection is renewed, and when it was renewed too often.
const ANEW: &str = "I cannot hear you just now, so I connect anew.";
const GIVEN_UP: &str = "I left this voice channel: my connection broke again and again. `/voice join` tries again.";

/// What people read when the voice fails.
const VOICELESS: &str = "I could not say all of my answer: my voice does not work at the moment. The operator finds the \
                         reason in the log.";

/// What people read when the voice fails that somebody chose for a text.
const CHOSEN_VOICE_AWAY: &str = "I could not say all of that text: the voice that was chosen for it does not work at the moment, \
                                 and I take no other in its place. The operator finds the reason in the log.";

/// What people read when nothing that they say is recognised.
const CANNOT_HEAR: &str = "I cannot hear you: my recognition of speech does not work at the moment. The operator finds the \
                           reason in the log.";

impl VoiceCalls {
    /// Handles the reports of a call until it is over and what was said in it is recorded.
    pub(super) async fn follow(
        self: Arc<Self>,
        key: CallKey,
        mut reports: mpsc::UnboundedReceiver<Report>,
        _followed: Followed,
    ) {
        let (mut number, mut utterances) = (0, Utterances::new(self.clone()));
        let room = (key.guild, key.channel);
        while let Some(report) = reports.recv().await {
            match report {
                Report::Room(RoomReport::Said(said, ago)) => {
                    number += 1;
                    self.said(&mut utterances, room, (said, ago), number).await;
                }
                Report::Room(report) => self.in_room(key, report).await,
                // Discord sends it no sound, and that is no fault of the connection.
                Report::Deaf(_) if self.with_call(key, |ongoing| ongoing.is_deafened) == Some(true) => {}
                Report::Deaf(link) => {
                    let why = "nothing that people say can be decrypted".to_owned();
                    self.was_lost(key, Lost { why, was_cut: false, link }).await;
                }
                Report::Lost(lost) => self.was_lost(key, lost).await,
                Report::RecordingEnded(RecordingEnd::CallOver) => {
                    self.recording_ended(room.0, room.1, RecordingEnd::CallOver);
                }
                Report::RecordingEnded(why) if self.goes_on(key) => self.recording_ended(room.0, room.1, why),
                Report::RecordingEnded(_) => {}
            }
        }
        utterances.recorded().await;
    }

    /// Returns true until a call is over. Then another one may be in its channel.
    fn goes_on(&self, key: CallKey) -> bool {
        self.with_call(key, |_| ()).is_some()
    }

    async fn in_room(self: &Arc<Self>, key: CallKey, report: RoomReport) {
        let CallKey { guild, channel, .. } = key;
        match report {
            RoomReport::Said(..) => {}
            RoomReport::Expected(expected) => self.expect(channel, expected),
            RoomReport::Heard { reply, heard, is_whole } => self.heard(&reply, &heard, is_whole).await,
            RoomReport::Uttered { reply, heard, is_whole } => {
                self.uttered(key).await;
                self.caption_reply(channel, &reply, &heard, is_whole);
            }
            RoomReport::CannotHear => self.tell_soon(channel, CANNOT_HEAR),
            RoomReport::Voiceless => self.tell_soon(channel, VOICELESS),
            RoomReport::ChosenVoiceAway => self.tell_soon(channel, CHOSEN_VOICE_AWAY),
            // What an earlier call in the channel asked for is not about this one.
            RoomReport::Muted(_) | RoomReport::Alone if !self.goes_on(key) => {}
            RoomReport::Muted(is_muted) => {
                if let Err(error) = self.show_mute(guild, is_muted).await {
                    tracing::debug!(%error, "cannot show that the bot is quiet");
                }
            }
            RoomReport::Alone => {
                tracing::info!(%channel, "nobody else is in the voice channel");
                self.leave(key).await;
            }
        }
    }

    /// Takes in that the bot said something.
    async fn uttered(self: &Arc<Self>, key: CallKey) {
        if let Err(error) = self.is_uttered(key.guild, key.channel).await {
            tracing::error!(%error, "cannot write who hears what is said; ending the call");
            self.end_call(key);
        }
    }

    /// Lets the engine prepare the answer to what somebody seems to be saying.
    fn expect(self: &Arc<Self>, channel: ChannelId, expected: Expected) {
        let Ok(chat) = id::voice_chat(channel) else { return };
        let Expected { person, name, text } = expected;
        let calls = self.clone();
        tokio::spawn(async move {
            let Some((_, host)) = calls.speech.get() else { return };
            if matches!(calls.may_be_heard(&chat, &person, calls.clock.now()).await, Ok(true)) {
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
        if let Err(error) = self.is_said(guild, channel).await {
            tracing::error!(%error, "cannot write who hears what is said; it is not recorded");
            return self.note_lost(&inbound, &HostError::Storage(error.into()));
        }
        utterances.submit(inbound);
    }

    /// Returns whether what a person says at a time may still be heard. Forgetting a person takes their consent away.
    ///
    /// # Errors
    /// Their decision cannot be read. What they say now must be dropped; they are heard again once it can be read.
    pub(super) async fn may_be_heard(
        &self,
        chat: &ChatId,
        person: &PersonId,
        at: Timestamp,
    ) -> Result<bool, HostError> {
        let (Some((_, host)), Some(channel)) = (self.speech.get(), id::voice_channel_of(chat)) else {
            return Ok(false);
        };
        let decision = host.may_be_heard(chat, person).await.inspect_err(|error| {
            tracing::warn!(%error, "cannot read whether a person may be heard; something that they said is dropped");
        })?;
        let may = self.may_record(channel, person, at, decision);
        if !may && let Some(call) = self.call_in(channel) {
            call.decided(person.clone(), false);
        }
        Ok(may)
    }

    async fn leave(&self, key: CallKey) {
        self.end_call(key);
        if let Err(error) = self.ask_to_move(key.guild, None).await {
            tracing::debug!(%error, "cannot leave a voice channel");
        }
    }

    /// Renews a broken connection: leaves the channel and comes again.
    pub(super) async fn rejoin(self: &Arc<Self>, key: CallKey, why: &str) {
        let rejoined = self.with_call(key, |ongoing| {
            ongoing.link.begin_anew();
            ongoing.link.renewals.count(self.clock.now())
        });
        let Some(rejoined) = rejoined else { return };
        tracing::warn!(channel = %key.channel, why, rejoined, "the connection to a voice channel is broken");
        if rejoined > MAX_REJOINED {
            self.leave(key).await;
            return self.tell_soon(key.channel, GIVEN_UP);
        }
        self.expect_arrival(key, Entry::Again);
        if rejoined == 1 {
            self.tell_soon(key.channel, ANEW);
        }
    }

    /// Writes a notice into the channel's text chat. Discord may take long to show it, and the bot must not miss meanwhile
    /// that it is thrown out.
    pub(super) fn tell_soon(self: &Arc<Self>, channel: ChannelId, notice: impl Into<String>) {
        let (calls, notice) = (self.clone(), notice.into());
        tokio::spawn(async move { calls.tell(channel, &notice).await });
    }

    /// Writes a notice into the channel's text chat.
    pub(super) async fn tell(&self, channel: ChannelId, notice: &str) {
        self.write_notice(channel, notice).await;
    }

    /// Does the same. Returns false if Discord does not take the notice.
    pub(super) async fn write_notice(&self, channel: ChannelId, notice: &str) -> bool {
        let Ok(line) = self.line() else { return false };
        let message = CreateMessage::new().content(notice).allowed_mentions(nobody());
        let written = line.http.send_message(channel, Vec::new(), &message).await;
        if let Err(error) = &written {
            tracing::debug!(error = in_words(error), "cannot write a notice");
        }
        written.is_ok()
    }
}
