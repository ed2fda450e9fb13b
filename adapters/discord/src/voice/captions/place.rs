//! Where captions stand: in a thread of a text channel where the person who asks may write, or in the text chat of the
//! voice channel.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use azera_adapter::VoiceError;
use azera_types::{ChatId, PersonId};
use serde_json::json;
use serenity::all::{AutoArchiveDuration, ChannelId, ChannelType, CreateThread, GuildId, Permissions};
use tokio::time::Instant;

use super::{CALL_OVER, VoiceCalls};
use crate::error::in_words;
use crate::id;
use crate::voice::Ongoing;

/// Permissions that the bot needs in the text channel.
const NEEDED: Permissions = Permissions::VIEW_CHANNEL
    .union(Permissions::CREATE_PUBLIC_THREADS)
    .union(Permissions::SEND_MESSAGES_IN_THREADS)
    .union(Permissions::READ_MESSAGE_HISTORY);

/// Permissions that the bot needs in the text chat of the voice channel, to show captions there.
const NEEDED_IN_CHAT: Permissions =
    Permissions::VIEW_CHANNEL.union(Permissions::SEND_MESSAGES).union(Permissions::READ_MESSAGE_HISTORY);

/// Longest name of a thread, in characters.
const NAME_CHARS: usize = 100;

/// Shortest time between two beginnings of captions in a voice channel.
const COOLDOWN: Duration = Duration::from_secs(60);

impl VoiceCalls {
    /// Lets captions of a call begin once in a minute, because everybody there is called each time.
    pub(super) fn not_too_often(&self, channel: ChannelId) -> Result<(), VoiceError> {
        let mut begun = self.captions_begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|_, begun| begun.elapsed() < COOLDOWN);
        if begun.contains_key(&channel) {
            return Err(VoiceError::Unavailable(
                "Captions of this voice channel began less than a minute ago. Try again in a minute.".to_owned(),
            ));
        }
        begun.insert(channel, Instant::now());
        Ok(())
    }

    /// Returns the thread for captions of a call in a text channel: the one that it has, or else a new one.
    pub(super) async fn thread_for_captions(
        &self,
        channel: ChannelId,
        parent: ChannelId,
    ) -> Result<ChannelId, VoiceError> {
        let line = self.line()?;
        // The text chat of a voice channel has no threads.
        if parent == channel {
            return Ok(channel);
        }
        let find = |calls: &HashMap<GuildId, Ongoing>| {
            calls.values().find(|ongoing| ongoing.channel == channel)?.caption_threads.get(&parent).copied()
        };
        let known = find(&self.calls());
        if let Some(known) = known
            && line.http.edit_thread(known, &json!({"archived": false}), None).await.is_ok()
        {
            return Ok(known);
        }
        let room = line.directory.channel(channel).map_or_else(|| "the voice channel".to_owned(), |found| found.name);
        let name: String = format!("Captions of {room}").chars().take(NAME_CHARS).collect();
        let thread =
            CreateThread::new(name).kind(ChannelType::PublicThread).auto_archive_duration(AutoArchiveDuration::OneDay);
        let thread = line.http.create_thread(parent, &thread, None).await.map_err(|error| {
            tracing::warn!(error = in_words(&error), "cannot make a thread for captions");
            VoiceError::Unavailable("Discord does not let me make a thread here now. Try again in a minute.".to_owned())
        })?;
        if let Some(ongoing) = self.calls().values_mut().find(|ongoing| ongoing.channel == channel) {
            ongoing.caption_threads.insert(parent, thread.id);
        }
        Ok(thread.id)
    }

    /// Removes a thread whose call in a voice channel ended meanwhile.
    pub(super) async fn remove_thread(&self, channel: ChannelId, thread: ChannelId) {
        let Ok(line) = self.line() else { return };
        if thread == channel {
            return;
        }
        if let Err(error) = line.http.delete_channel(thread, None).await {
            tracing::debug!(error = in_words(&error), "cannot remove a thread for captions");
            self.tell(thread, CALL_OVER).await;
        }
    }

    /// Returns the text channel in which somebody asks for captions, if they may write there and captions may stand there.
    pub(super) async fn place_for_captions(
        &self,
        chat: &ChatId,
        (guild, channel): (GuildId, ChannelId),
        person: &PersonId,
    ) -> Result<ChannelId, VoiceError> {
        let unavailable = |why: &str| VoiceError::Unavailable(why.to_owned());
        let directory = &self.line()?.directory;
        let found = id::channel_of(chat).and_then(|parent| directory.channel(parent));
        let may_be = |kind: ChannelType, id: ChannelId| kind == ChannelType::Text || id == channel;
        let parent = found
            .filter(|found| may_be(found.kind, found.id) && found.guild_id == guild)
            .ok_or_else(|| {
                unavailable(
                    "Write `/voice captions on` in a text channel of this server, or in the text chat of your voice \
                     channel.",
                )
            })?
            .id;
        let user = id::user_of(person).ok_or(VoiceError::NotInChannel)?;
        if !directory.can_write(parent, user).await {
            return Err(unavailable("You may not write in this channel, so you cannot turn on captions here."));
        }
        if !directory.reads_within(parent, channel) {
            return Err(unavailable(
                "More people can read this channel than the chat of the voice channel, or I cannot tell. Write \
                 `/voice captions on` in a channel that only they can read.",
            ));
        }
        let (needed, why) = if parent == channel {
            (NEEDED_IN_CHAT, "I need the permissions Send Messages and Read Message History in this channel.")
        } else {
            let why = "I need the permissions Create Public Threads, Send Messages in Threads and Read Message History in \
                       this channel.";
            (NEEDED, why)
        };
        if !directory.own_permissions(parent).contains(needed) {
            return Err(unavailable(why));
        }
        Ok(parent)
    }
}
