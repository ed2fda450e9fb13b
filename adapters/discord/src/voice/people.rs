//! Who is in a voice channel, as Discord told.

use std::collections::BTreeSet;

use serenity::all::{ChannelId, GuildId, UserId, VoiceState};

use super::VoiceCalls;

impl VoiceCalls {
    /// Returns the people in a voice channel now, without bots.
    pub(in crate::voice) fn people(&self, guild: GuildId, channel: ChannelId) -> BTreeSet<UserId> {
        self.known_people(guild, channel).unwrap_or_default()
    }

    /// Returns the people in a voice channel now, without bots; `None` if Discord did not describe the server yet.
    pub(in crate::voice) fn known_people(&self, guild: GuildId, channel: ChannelId) -> Option<BTreeSet<UserId>> {
        self.people_who(guild, channel, |_| true)
    }

    /// Returns the people in a voice channel who hear what is said there: those whom nobody deafened.
    pub(in crate::voice) fn hearers(&self, guild: GuildId, channel: ChannelId) -> BTreeSet<UserId> {
        self.known_hearers(guild, channel).unwrap_or_default()
    }

    /// Returns the same; `None` if Discord did not describe the server yet.
    pub(in crate::voice) fn known_hearers(&self, guild: GuildId, channel: ChannelId) -> Option<BTreeSet<UserId>> {
        self.people_who(guild, channel, |state| !state.deaf && !state.self_deaf)
    }

    fn people_who(
        &self,
        guild: GuildId,
        channel: ChannelId,
        are: impl Fn(&VoiceState) -> bool,
    ) -> Option<BTreeSet<UserId>> {
        let line = self.line.get()?;
        let guild = line.directory.cache.guild(guild)?;
        let is_bot = |user: &UserId| guild.members.get(user).is_some_and(|member| member.user.bot);
        let there = guild.voice_states.values().filter(|state| state.channel_id == Some(channel) && are(state));
        Some(there.map(|state| state.user_id).filter(|user| *user != line.directory.me && !is_bot(user)).collect())
    }

    /// Returns the displayed name of a person.
    pub(in crate::voice) fn name(&self, guild: GuildId, user: UserId) -> String {
        let guild = self.line.get().and_then(|line| line.directory.cache.guild(guild));
        let name = guild.and_then(|guild| Some(guild.members.get(&user)?.display_name().to_owned()));
        name.unwrap_or_else(|| "somebody".to_owned())
    }
}
