//! Whether people can hear the bot, and it them: a moderator can mute or deafen it, on a stage it comes as one of the
//! audience, and everybody may have left or be deafened.

use std::sync::Arc;

use serde_json::json;
use serenity::all::{ChannelId, ChannelType, GuildId, Permissions, UserId, VoiceState};

use super::{CallKey, Ongoing, VoiceCalls};
use crate::error::in_words;

/// Written when nobody can hear the bot: what happened, why, and what to do.
const MUTED: &str = "Nobody can hear me in this voice channel, because a moderator muted me. I say nothing until a moderator \
                     unmutes me.";
const MAY_NOT_SPEAK: &str = "Nobody can hear me in this voice channel, because I may not speak here. Give me the permission \
                             Speak in this channel; until then I say nothing.";
const IN_AFK_CHANNEL: &str = "Nobody can hear me in this voice channel, because it is the server's AFK channel, where nobody \
                              may speak. Move me to another channel; until then I say nothing.";
const ASKED: &str = "Nobody can hear me on this stage, because I am in its audience. I asked to speak. A moderator of the \
                     stage can accept that.";
const MAY_NOT_ASK: &str = "Nobody can hear me on this stage, because I am in its audience and may not ask to speak. A \
                           moderator of the stage can let me speak. Or give me the permission Request to Speak in this \
                           channel, and let me leave and join again.";
const NOT_ASKED: &str = "Nobody can hear me on this stage, because I am in its audience. I could not ask to speak: Discord did \
                         not take my request. A moderator of the stage can let me speak.";
const PUT_INTO_AUDIENCE: &str = "Nobody can hear me on this stage any more, because I was put into its audience. I do not ask to \
                                 speak again. A moderator of the stage can let me speak.";

/// Written when the bot can hear nobody.
const DEAFENED: &str = "I can hear nobody in this voice channel, because a moderator deafened me. I answer nothing that is said \
                        here until a moderator undeafens me.";

/// Why nobody can hear the bot, as its own state says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    Muted,
    MayNotSpeak,
    InAfkChannel,
    /// It is in the audience of a stage, and can still ask to speak.
    InAudience,
    PutIntoAudience,
}

impl VoiceCalls {
    /// Takes in from the bot's own state whether people can hear it, and whether it can hear them.
    pub(super) fn may_be_silenced(self: &Arc<Self>, guild: GuildId, state: &VoiceState) {
        self.may_be_deafened(guild, state.deaf);
        let is_silenced = state.mute || state.suppress;
        let is_stage = state.channel_id.is_some_and(|channel| self.is_stage(channel));
        let is_afk = state.channel_id.is_some_and(|channel| self.is_afk_channel(guild, channel));
        let news = {
            let mut calls = self.calls();
            let Some(ongoing) = calls.get_mut(&guild) else { return };
            let was_silenced = ongoing.is_silenced;
            ongoing.change_silence(|ongoing| ongoing.is_silenced = is_silenced);
            let silence = match (state.mute, state.suppress, is_stage) {
                (true, ..) => Some(Silence::Muted),
                (false, true, false) if is_afk => Some(Silence::InAfkChannel),
                (false, true, false) => Some(Silence::MayNotSpeak),
                (false, true, true) if !std::mem::replace(&mut ongoing.link.has_asked_to_speak, true) => {
                    Some(Silence::InAudience)
                }
                (false, true, true) => Some(Silence::PutIntoAudience),
                (false, false, _) => None,
            };
            let is_new = !was_silenced || silence == Some(Silence::InAudience);
            silence.filter(|_| is_new).map(|silence| (ongoing.key(guild), silence))
        };
        if let Some((key, silence)) = news {
            let calls = self.clone();
            tokio::spawn(async move { calls.say_that_nobody_hears(key, silence).await });
        }
    }

    /// Lets the bot say nothing while nobody in its channel hears it, because everybody left or is deafened. `gone` left or
    /// hears nothing, whatever else is known.
    pub(super) fn look_who_hears(&self, guild: GuildId, channel: ChannelId, gone: Option<UserId>) {
        let Some(mut hearers) = self.known_hearers(guild, channel) else { return };
        if let Some(gone) = gone {
            hearers.remove(&gone);
        }
        let mut calls = self.calls();
        if let Some(ongoing) = calls.get_mut(&guild).filter(|ongoing| ongoing.channel == channel) {
            ongoing.change_silence(|ongoing| ongoing.is_unheard = hearers.is_empty());
        }
    }

    /// Returns true while nobody can hear the bot in a channel.
    pub(super) fn is_silenced(&self, channel: ChannelId) -> bool {
        self.calls().values().any(|ongoing| ongoing.channel == channel && ongoing.has_no_hearers())
    }

    fn is_stage(&self, channel: ChannelId) -> bool {
        let found = self.line.get().and_then(|line| line.directory.channel(channel));
        found.is_some_and(|found| found.kind == ChannelType::Stage)
    }

    fn is_afk_channel(&self, guild: GuildId, channel: ChannelId) -> bool {
        let guild = self.line.get().and_then(|line| line.directory.cache.guild(guild));
        guild.is_some_and(|guild| guild.afk_metadata.as_ref().is_some_and(|afk| afk.afk_channel_id == channel))
    }

    /// Takes in whether a moderator deafened the bot. Says so once.
    fn may_be_deafened(self: &Arc<Self>, guild: GuildId, is_deafened: bool) {
        let told = {
            let mut calls = self.calls();
            let Some(ongoing) = calls.get_mut(&guild) else { return };
            let was_deafened = std::mem::replace(&mut ongoing.is_deafened, is_deafened);
            if was_deafened && !is_deafened {
                ongoing.call.hears_again();
            }
            (is_deafened && !was_deafened).then_some(ongoing.channel)
        };
        if let Some(channel) = told {
            self.tell_soon(channel, DEAFENED);
        }
    }

    async fn say_that_nobody_hears(&self, key: CallKey, silence: Silence) {
        let words = match silence {
            Silence::Muted => Some(MUTED),
            Silence::MayNotSpeak => Some(MAY_NOT_SPEAK),
            Silence::InAfkChannel => Some(IN_AFK_CHANNEL),
            Silence::PutIntoAudience => Some(PUT_INTO_AUDIENCE),
            Silence::InAudience => self.get_onto_stage(key).await,
        };
        if let Some(words) = words {
            self.tell(key.channel, words).await;
        }
    }

    /// Speaks on a stage, or asks to. Returns what is written about it.
    async fn get_onto_stage(&self, key: CallKey) -> Option<&'static str> {
        let line = self.line().ok()?;
        let own = line.directory.own_permissions(key.channel);
        let (wish, words) = if own.contains(Permissions::MUTE_MEMBERS) {
            (json!({"channel_id": key.channel, "suppress": false}), None)
        } else if own.contains(Permissions::REQUEST_TO_SPEAK) {
            let now = self.clock.now().to_string();
            (json!({"channel_id": key.channel, "request_to_speak_timestamp": now}), Some(ASKED))
        } else {
            return Some(MAY_NOT_ASK);
        };
        match line.http.edit_voice_state_me(key.guild, &wish).await {
            Ok(()) => words,
            Err(error) => {
                tracing::warn!(error = in_words(&error), "cannot ask to speak on a stage");
                Some(NOT_ASKED)
            }
        }
    }
}

impl Ongoing {
    fn has_no_hearers(&self) -> bool {
        self.is_silenced || self.is_unheard
    }

    /// Changes why nobody hears the bot, and lets the call stop or go on.
    fn change_silence(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.has_no_hearers();
        change(self);
        let after = self.has_no_hearers();
        if before != after {
            self.call.silence(after);
        }
    }
}
