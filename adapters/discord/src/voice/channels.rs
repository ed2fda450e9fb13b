//! What commands ask for.

use async_trait::async_trait;
use azera_adapter::{
    CallManner, CallWish, CaptionStatus, JoinedCall, PlatformError, RecordStatus, SentRecording, VoiceChannels,
    VoiceError, VoiceStatus,
};
use azera_types::{ChatId, MessageId, PersonId};
use serenity::all::{ChannelId, ChannelType, GuildId, UserId};

use super::code::code_of;
use super::{VoiceCalls, personas};
use crate::id;
use azera_voice_discord::Call;

/// The way to the calls for commands.
pub(crate) struct Channels(pub(crate) std::sync::Arc<VoiceCalls>);

impl Channels {
    /// Returns the guild of a chat, or `None` in a direct message.
    fn guild_of(&self, chat: &ChatId) -> Option<GuildId> {
        let channel = id::channel_of(chat).or_else(|| id::voice_channel_of(chat))?;
        Some(self.0.line.get()?.directory.locate(channel)?.guild)
    }

    /// Returns the voice channel that a person is in: in the guild where they ask, or, from a direct message, in any.
    fn whereabouts(&self, chat: &ChatId, user: UserId) -> Option<(GuildId, ChannelId)> {
        let cache = &self.0.line.get()?.directory.cache;
        let guilds = self.guild_of(chat).map_or_else(|| cache.guilds(), |guild| vec![guild]);
        guilds.into_iter().find_map(|id| {
            let guild = cache.guild(id)?;
            Some((id, guild.voice_states.get(&user)?.channel_id?))
        })
    }

    /// Returns the call that a person takes part in.
    fn call_with(&self, chat: &ChatId, person: &PersonId) -> Result<(GuildId, ChannelId, Call), VoiceError> {
        let user = id::user_of(person).ok_or(VoiceError::NotInChannel)?;
        let (guild, channel) = self.whereabouts(chat, user).ok_or(VoiceError::NotInChannel)?;
        let call = self.0.call_in(channel).ok_or(VoiceError::NotThere)?;
        Ok((guild, channel, call))
    }

    /// Returns the call that a person takes part in, with its channel, if people hear there what the bot says.
    fn heard_call(&self, chat: &ChatId, person: &PersonId) -> Result<(ChannelId, Call), VoiceError> {
        let (guild, channel, call) = self.call_with(chat, person)?;
        if self.0.is_silenced(channel) {
            return Err(VoiceError::Silenced);
        }
        if self.0.calls().get(&guild).is_some_and(|ongoing| ongoing.is_muted) {
            return Err(VoiceError::Muted);
        }
        Ok((channel, call))
    }

    /// Sends the code of a text that is said to whom asked for it.
    fn send_code_of(&self, channel: ChannelId, person: &PersonId, text: &str) {
        if let Some(code) = code_of(text) {
            tokio::spawn(self.0.clone().send_code(channel, Some(person.clone()), code));
        }
    }
}

#[async_trait]
impl VoiceChannels for Channels {
    async fn chat_of(&self, chat: &ChatId, person: &PersonId) -> Option<ChatId> {
        let here = || {
            let channel = id::channel_of(chat)?;
            let found = self.0.line.get()?.directory.channel(channel)?;
            matches!(found.kind, ChannelType::Voice | ChannelType::Stage).then_some(channel)
        };
        let there = || Some(self.whereabouts(chat, id::user_of(person)?)?.1);
        // A person who was asked in one voice channel may answer from another.
        id::voice_chat(here().or_else(there)?).ok()
    }

    fn text_chat_of(&self, voice_chat: &ChatId) -> Option<ChatId> {
        id::chat(id::voice_channel_of(voice_chat)?).ok()
    }

    async fn personas_changed(&self, chat: &ChatId) {
        self.0.personas_changed(chat).await;
    }

    async fn send_help(
        &self,
        question: &MessageId,
        voice_chat: &ChatId,
        person: &PersonId,
        lines: &str,
    ) -> Result<(), PlatformError> {
        self.0.send_help(question, voice_chat, person, lines).await
    }

    async fn join(&self, chat: &ChatId, person: &PersonId) -> Result<JoinedCall, VoiceError> {
        let user = id::user_of(person).ok_or(VoiceError::NotInChannel)?;
        let (guild, channel) = self.whereabouts(chat, user).ok_or(VoiceError::NotInChannel)?;
        self.0.join(guild, channel).await?;
        let found = self.0.line()?.directory.channel(channel);
        let name = found.map_or_else(|| "your voice channel".to_owned(), |found| found.name);
        Ok(JoinedCall { name, may_ask: self.0.may_ask(channel) })
    }

    async fn leave(&self, chat: &ChatId, person: &PersonId) -> Result<(), VoiceError> {
        let (guild, ..) = self.call_with(chat, person)?;
        self.0.end(guild);
        self.0.ask_to_move(guild, None).await
    }

    async fn say(&self, chat: &ChatId, person: &PersonId, text: &str) -> Result<(), VoiceError> {
        let (channel, call) = self.heard_call(chat, person)?;
        call.say(text);
        self.send_code_of(channel, person, text);
        Ok(())
    }

    async fn say_in(&self, chat: &ChatId, person: &PersonId, text: &str, manner: CallManner) -> Result<(), VoiceError> {
        let (channel, call) = self.heard_call(chat, person)?;
        if let Some(voice) = manner.voice.as_ref().filter(|_| manner.needs_voice)
            && !self.0.has_voice(voice).await?
        {
            return Err(VoiceError::NoVoice);
        }
        call.say_in(text, personas::manner(manner));
        self.send_code_of(channel, person, text);
        Ok(())
    }

    async fn mute(&self, chat: &ChatId, person: &PersonId, is_muted: bool) -> Result<(), VoiceError> {
        let (guild, _, call) = self.call_with(chat, person)?;
        call.mute(is_muted);
        self.0.show_mute(guild, is_muted).await
    }

    async fn stop(&self, chat: &ChatId, person: &PersonId) -> Result<(), VoiceError> {
        self.call_with(chat, person).map(|(.., call)| call.stop())
    }

    async fn decided(&self, voice_chat: &ChatId, person: &PersonId, may_be_heard: bool) -> bool {
        let Some(channel) = id::voice_channel_of(voice_chat) else { return may_be_heard };
        if !may_be_heard {
            self.0.refuse_captions(channel, person);
        }
        if let Some(user) = id::user_of(person) {
            self.0.ask_no_more(channel, user);
        }
        let is_heard = self.0.heard_now(channel, person, Some(may_be_heard)) == Some(true);
        if let Some(call) = self.0.call_in(channel) {
            call.decided(person.clone(), is_heard);
        }
        is_heard
    }

    async fn captions(
        &self,
        chat: &ChatId,
        person: &PersonId,
        wish: CallWish,
    ) -> Result<Option<CaptionStatus>, VoiceError> {
        let (guild, channel, _) = self.call_with(chat, person)?;
        self.0.captions(chat, (guild, channel), person, wish).await
    }

    async fn withdraw(&self, gone: &[(ChatId, MessageId)]) {
        self.0.withdraw_captions(gone);
    }

    async fn record(
        &self,
        chat: &ChatId,
        person: &PersonId,
        wish: CallWish,
    ) -> Result<Option<RecordStatus>, VoiceError> {
        // Whoever takes their agreement back need not be there.
        let took_back = wish == CallWish::Refuse && self.0.forget_agreement(person).await;
        let (guild, channel) = match self.call_with(chat, person) {
            Ok((guild, channel, _)) => (guild, channel),
            Err(_) if took_back => return Ok(None),
            Err(error) => return Err(error),
        };
        self.0.recording((guild, channel), person, wish).await
    }

    async fn sees(&self, voice_chat: &ChatId, person: &PersonId) -> bool {
        let (Some(channel), Some(user)) = (id::voice_channel_of(voice_chat), id::user_of(person)) else { return false };
        match self.0.line() {
            Ok(line) => line.directory.can_see(channel, user).await,
            Err(_) => false,
        }
    }

    async fn send_recording(&self, recording: SentRecording<'_>) -> Result<usize, PlatformError> {
        self.0.send_recording(recording).await
    }

    async fn forgotten(&self, person: &PersonId) {
        self.0.forget_agreement(person).await;
    }

    async fn status(&self, chat: &ChatId, person: &PersonId) -> Result<VoiceStatus, VoiceError> {
        let (guild, channel, call) = self.call_with(chat, person)?;
        let counts = call.counts().await.ok_or(VoiceError::NotThere)?;
        Ok(VoiceStatus {
            voice_chat: id::voice_chat(channel).map_err(|_| VoiceError::NotThere)?,
            people: self.0.people(guild, channel).len(),
            packets_heard: counts.admitted,
            packets_dropped: counts.refused,
            packets_decoded: counts.decoded,
        })
    }
}
