//! Follows the gateway: who comes and goes, and where the bot itself is.

use std::sync::Arc;

use azera_voice_discord::Lost;
use serenity::all::{ChannelId, GuildId, UserId, VoiceServerUpdateEvent, VoiceState};

use super::joining::Entry;
use super::{CallKey, Ongoing, VoiceCalls};
use crate::id;

impl VoiceCalls {
    /// Tells a call that a person is in its channel. If their decision cannot be read, somebody new is not heard until it
    /// can be, and nothing changes for somebody who was there.
    pub(super) async fn joined(self: &Arc<Self>, guild: GuildId, channel: ChannelId, user: UserId) {
        let Some(call) = self.call_in(channel) else { return };
        let Ok(person) = id::person(user) else { return };
        let mut is_new = false;
        self.update(guild, |ongoing| is_new = ongoing.told.insert(user));
        if self.hearers(guild, channel).contains(&user) {
            self.attendance.came(channel, user, self.clock.now());
        }
        let Some(key) = self.call_of(guild, channel) else { return };
        let decision = match self.read_decision(key, &person).await {
            Ok(decision) => decision,
            Err(error) if is_new => {
                tracing::warn!(%error, "cannot read whether a person may be heard; they are not until it can be read");
                self.read_decision_later(key, user);
                Some(false)
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read whether a person may be heard; what was read before counts");
                return;
            }
        };
        if decision.is_none() {
            self.ask_soon(key, user);
        }
        call.joined(person, self.name(guild, user), decision);
    }

    /// Handles that somebody joined, left or changed channels, or hears the others or not.
    pub(super) async fn state(self: &Arc<Self>, state: VoiceState) {
        let (Some(guild), Ok(line)) = (state.guild_id, self.line()) else { return };
        if state.user_id == line.directory.me {
            return self.own_state(guild, state).await;
        }
        self.is_told_late(guild, &state);
        let Some(channel) = self.calls().get(&guild).map(|ongoing| ongoing.channel) else { return };
        let is_bot = state.member.as_ref().is_some_and(|member| member.user.bot);
        match (state.channel_id == Some(channel), is_bot) {
            (true, false) => self.is_there(guild, channel, state.user_id, state.deaf || state.self_deaf).await,
            (true, true) => self.recording_has_other_people(guild, channel).await,
            (false, _) => self.is_gone(guild, channel, state.user_id).await,
        }
    }

    /// Takes in that somebody is there, and whether they were deafened. They may hear again already.
    async fn is_there(self: &Arc<Self>, guild: GuildId, channel: ChannelId, user: UserId, is_deafened: bool) {
        let hears = !is_deafened && self.hearers(guild, channel).contains(&user);
        if hears
            && !self.attendance.is_there(channel, user)
            && let Some(call) = self.call_in(channel)
        {
            // What is being said may rest on what was said before they came. That a recording pauses is said after it.
            call.stop();
        }
        self.look_who_hears(guild, channel, None);
        // Nothing is kept while somebody is there who did not agree.
        self.recording_has_other_people(guild, channel).await;
        // Talk goes on without somebody who hears nothing.
        if hears || self.goes_on_without_others(guild, channel, is_deafened.then_some(user)).await {
            self.joined(guild, channel, user).await;
        }
    }

    async fn is_gone(self: &Arc<Self>, guild: GuildId, channel: ChannelId, user: UserId) {
        self.recording_is_left_by(channel, user);
        self.ask_no_more(channel, user);
        self.look_who_hears(guild, channel, Some(user));
        self.recording_has_other_people(guild, channel).await;
        if self.goes_on_without_others(guild, channel, Some(user)).await
            && let (Some(call), Ok(person)) = (self.call_in(channel), id::person(user))
        {
            self.update(guild, |ongoing| {
                ongoing.told.remove(&user);
            });
            call.left(person);
        }
    }

    /// Records that talk goes on without those who left or hear nothing, and without `gone`, who may be back or hear again
    /// already. Returns false if that ended the call.
    async fn goes_on_without_others(
        self: &Arc<Self>,
        guild: GuildId,
        channel: ChannelId,
        gone: Option<UserId>,
    ) -> bool {
        let mut hearers = self.hearers(guild, channel);
        if let Some(gone) = gone {
            hearers.remove(&gone);
        }
        // The bot says nothing to nobody, so nobody misses anything.
        if hearers.is_empty() {
            let was_there = |user: &UserId| self.calls().get(&guild).is_some_and(|ongoing| ongoing.told.contains(user));
            if let Some(gone) = gone.filter(was_there) {
                self.was_last((guild, channel), gone);
            }
            return true;
        }
        let key = self.call_of(guild, channel);
        let written = self.said_before(channel, &hearers).await;
        if let Err(error) = &written {
            tracing::error!(%error, "cannot write who hears no more in a voice channel; ending the call");
            if let Some(key) = key {
                self.end_call(key);
            }
        }
        written.is_ok()
    }

    /// Handles that the bot itself was moved, or has arrived or left.
    async fn own_state(self: &Arc<Self>, guild: GuildId, state: VoiceState) {
        let known = self.calls().get(&guild).map(|ongoing| (ongoing.key(guild), ongoing.is_muted));
        let shard = self.line().map(|line| line.shard_of(guild));
        let has_left = state.channel_id.is_none() && shard.is_ok_and(|shard| self.asked_moves().left(guild, shard));
        match (state.channel_id, known) {
            (None, None) => {}
            (None, Some((key, _))) if has_left => {
                // It comes again, in another session.
                self.with_call(key, |ongoing| ongoing.link.session = None);
            }
            (None, Some((key, _))) => self.end_call(key),
            (Some(channel), Some((before, _))) if channel == before.channel => {
                self.update(guild, |ongoing| ongoing.link.session = Some(state.session_id.clone()));
                self.may_be_silenced(guild, &state);
            }
            // Somebody moved the bot: the people there are others. It stays as quiet as it was asked to be.
            (Some(channel), Some((before, is_muted))) => match self.open(guild, channel, is_muted).await {
                Ok(()) => {
                    self.update(guild, |ongoing| ongoing.link.session = Some(state.session_id.clone()));
                    self.may_be_silenced(guild, &state);
                    if let Some(key) = self.call_of(guild, channel) {
                        self.expect_arrival(key, Entry::Moved);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot follow to another voice channel");
                    self.end_call(before);
                }
            },
            // A call of an earlier process.
            (Some(_), None) => {
                if let Err(error) = self.ask_to_move(guild, None).await {
                    tracing::debug!(%error, "cannot leave a voice channel");
                }
            }
        }
    }

    pub(super) fn server(&self, server: VoiceServerUpdateEvent) {
        // Without an endpoint, another event follows.
        if let (Some(guild), Some(endpoint)) = (server.guild_id, server.endpoint) {
            self.update(guild, |ongoing| ongoing.link.server = Some((endpoint, server.token)));
        }
    }

    /// Changes a call, and connects it once everything is known.
    fn update(&self, guild: GuildId, change: impl FnOnce(&mut Ongoing)) {
        let mut calls = self.calls();
        let (Some(ongoing), Ok(line)) = (calls.get_mut(&guild), self.line()) else { return };
        change(ongoing);
        ongoing.connect(guild, line.directory.me);
    }

    /// Handles that a connection of a call was lost. If Discord cut it and wants no other one for now, the gateway says why:
    /// the bot was moved or thrown out. If it says nothing, the connection is renewed.
    pub(super) async fn was_lost(self: &Arc<Self>, key: CallKey, lost: Lost) {
        let Lost { why, was_cut, link } = lost;
        // A connection that is made anew was lost before.
        let is_news = |ongoing: &mut Ongoing| ongoing.link.number == link && *ongoing.link.arrived.borrow();
        if self.with_call(key, is_news) != Some(true) {
            return;
        }
        if !was_cut {
            return self.rejoin(key, &why).await;
        }
        self.with_call(key, |ongoing| ongoing.link.is_cut = true);
        let calls = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(calls.waits().reason).await;
            // Without the gateway, nobody knows where the bot is. The next session tells.
            if calls.is_connected(key.guild).await {
                calls.look_at_cut(key, &why).await;
            }
        });
    }

    async fn look_at_cut(self: &Arc<Self>, key: CallKey, why: &str) {
        if self.with_call(key, |ongoing| ongoing.link.is_cut) != Some(true) {
            return;
        }
        // Until Discord describes the server, nobody knows where the bot is.
        let (Some(_), Ok(line)) = (self.known_people(key.guild, key.channel), self.line()) else { return };
        match self.state_of(key.guild, line.directory.me) {
            Some(state) if state.channel_id == Some(key.channel) => self.rejoin(key, why).await,
            // It was moved. The event about that is on its way, and the call follows.
            Some(_) => {}
            // A new session describes the server anew, and what was before it is looked at then.
            None if !self.is_caught_up(key.guild) => {}
            // It was thrown out. The event about that is on its way, or was lost.
            None => self.end_call(key),
        }
    }

    /// Compares who is in the channels of calls with what was told, after a session was lost.
    pub(super) async fn look(self: &Arc<Self>) {
        let calls: Vec<CallKey> = self.calls().iter().map(|(guild, ongoing)| ongoing.key(*guild)).collect();
        for key in calls {
            self.look_at_call(key).await;
        }
        self.leave_where_no_call_is().await;
        self.look_at_recordings().await;
    }

    /// Leaves the voice channels in which Discord still shows the bot after its calls there ended: a wish to leave may be
    /// lost with the connection.
    async fn leave_where_no_call_is(&self) {
        let Ok(line) = self.line() else { return };
        for guild in line.directory.cache.guilds() {
            let is_over = || !self.calls().contains_key(&guild);
            if !is_over() || !self.is_in_voice(guild) {
                continue;
            }
            // A call may begin until the shard can be asked.
            if let Err(error) = self.ask_to_move_if(guild, None, is_over).await {
                tracing::debug!(%error, "cannot leave a voice channel");
            }
        }
    }

    async fn look_at_call(self: &Arc<Self>, key: CallKey) {
        let CallKey { guild, channel, .. } = key;
        let Some(people) = self.known_people(guild, channel) else { return };
        let has_arrived = self.with_call(key, |ongoing| *ongoing.link.arrived.borrow()) == Some(true);
        // A bot that is on its way asks again by itself.
        if has_arrived && !self.look_at_own_state(key, people.is_empty()).await {
            return;
        }
        let Some(told) = self.with_call(key, |ongoing| ongoing.told.clone()) else { return };
        for user in told.difference(&people) {
            self.is_gone(guild, channel, *user).await;
        }
        for user in people {
            self.is_there(guild, channel, user, false).await;
        }
    }

    /// Looks where the bot itself is. Returns false if its call is over.
    async fn look_at_own_state(self: &Arc<Self>, key: CallKey, is_alone: bool) -> bool {
        let Ok(line) = self.line() else { return false };
        match self.state_of(key.guild, line.directory.me) {
            Some(state) if state.channel_id == Some(key.channel) => {
                self.own_state(key.guild, state).await;
                self.look_at_cut(key, "the session was lost").await;
                true
            }
            Some(state) => {
                self.own_state(key.guild, state).await;
                false
            }
            None if is_alone => {
                self.end_call(key);
                false
            }
            None => {
                self.rejoin(key, "the session was lost").await;
                true
            }
        }
    }

    /// Returns true if the bot is in a voice channel of a server, as Discord told.
    pub(super) fn is_in_voice(&self, guild: GuildId) -> bool {
        self.line().is_ok_and(|line| self.state_of(guild, line.directory.me).is_some())
    }

    /// Returns the voice state of a user in a server, if they are in one of its voice channels.
    fn state_of(&self, guild: GuildId, user: UserId) -> Option<VoiceState> {
        let line = self.line.get()?;
        let guild = line.directory.cache.guild(guild)?;
        guild.voice_states.get(&user).filter(|state| state.channel_id.is_some()).cloned()
    }
}
