//! Who may read which channel at this moment, from the guilds, channels, roles and members that the gateway sends.

use std::sync::Arc;

use azera_adapter::{Access, PlatformError};
use azera_types::{ChatId, IdError, PersonId, Place, PlaceKind, ReadableScopes, Timestamp};
use serenity::all::{
    Cache, Channel, ChannelId, ChannelType, Guild, GuildChannel, GuildId, Http, Member, PermissionOverwriteType,
    Permissions, RoleId, UserId,
};
use serenity::json::json;

use crate::error::{Failure, failure, in_words, refusal};
use crate::{dm_channels::DmChannels, id};

/// Most guilds that are asked about a person when Discord does not send members. With more guilds, a DM recalls nothing
/// from the others.
const MAX_GUILDS_QUERIED: usize = 20;

/// Permissions that allow reading a channel from its beginning.
const READS: Permissions = Permissions::VIEW_CHANNEL.union(Permissions::READ_MESSAGE_HISTORY);

/// Discord's servers as the gateway describes them.
pub(crate) struct Directory {
    pub(crate) cache: Arc<Cache>,
    pub(crate) http: Arc<Http>,
    /// True if Discord sends every change of members.
    pub(crate) members_known: bool,
    pub(crate) operators: Vec<UserId>,
    pub(crate) me: UserId,
    /// When this process connected.
    pub(crate) began: Timestamp,
    pub(crate) directs: DmChannels,
}

/// A channel in a guild.
#[derive(Debug, Clone)]
pub(crate) struct ChannelLocation {
    pub(crate) guild: GuildId,
    /// The channel whose permissions count: for a thread, its parent.
    pub(crate) channel: GuildChannel,
    /// True for a private thread, which only added people see.
    pub(crate) private_thread: bool,
}

/// The kind of a channel.
enum Found {
    Guild(Box<ChannelLocation>),
    Direct(UserId),
    Nothing,
}

impl Directory {
    /// Returns a channel of a guild.
    #[expect(deprecated, reason = "the cache knows in which guild it lies; else all of them would be gone through")]
    pub(crate) fn channel(&self, channel: ChannelId) -> Option<GuildChannel> {
        self.cache.channel(channel).map(|found| found.clone())
    }

    /// Returns the name of a role.
    pub(crate) fn role_name(&self, guild: GuildId, role: RoleId) -> Option<String> {
        self.cache.guild(guild)?.roles.get(&role).map(|role| role.name.clone())
    }

    /// Returns the name of a channel or thread of a guild.
    pub(crate) fn name_of(&self, channel: ChannelId) -> Option<String> {
        if let Some(found) = self.channel(channel) {
            return Some(found.name);
        }
        self.cache.guilds().into_iter().find_map(|id| {
            let guild = self.cache.guild(id)?;
            guild.threads.iter().find(|thread| thread.id == channel).map(|thread| thread.name.clone())
        })
    }

    /// Returns guild and channel; `None` for a DM or an unknown channel.
    pub(crate) fn locate(&self, channel: ChannelId) -> Option<ChannelLocation> {
        if let Some(found) = self.channel(channel) {
            return Some(ChannelLocation { guild: found.guild_id, channel: found, private_thread: false });
        }
        // The cache stores threads with their guild.
        self.cache.guilds().into_iter().find_map(|id| {
            let guild = self.cache.guild(id)?;
            let thread = guild.threads.iter().find(|thread| thread.id == channel)?;
            let parent = guild.channels.get(&thread.parent_id?)?;
            let private_thread = thread.kind == ChannelType::PrivateThread;
            Some(ChannelLocation { guild: id, channel: parent.clone(), private_thread })
        })
    }

    /// Returns what a channel is. Asks Discord about channels that the gateway does not describe: DMs, and inactive
    /// threads.
    async fn find(&self, channel: ChannelId) -> Result<Found, PlatformError> {
        if let Some(at) = self.locate(channel) {
            return Ok(Found::Guild(Box::new(at)));
        }
        if let Some(user) = self.directs.known(channel) {
            return Ok(Found::Direct(user));
        }
        match self.http.get_channel(channel).await {
            Ok(Channel::Private(private)) => {
                self.directs.note(channel, private.recipient.id);
                Ok(Found::Direct(private.recipient.id))
            }
            Ok(Channel::Guild(thread)) => {
                let parent = thread.parent_id.and_then(|parent| self.channel(parent));
                let Some(parent) = parent else { return Err(unavailable()) };
                let private_thread = thread.kind == ChannelType::PrivateThread;
                Ok(Found::Guild(Box::new(ChannelLocation { guild: thread.guild_id, channel: parent, private_thread })))
            }
            Ok(_) => Ok(Found::Nothing),
            Err(error) => match failure(&error) {
                Failure::Gone | Failure::Refused => Ok(Found::Nothing),
                Failure::Token | Failure::Unknown => Err(refusal(&error)),
            },
        }
    }

    /// Returns a person's permissions in a channel; `None` if they are not in the guild.
    async fn permissions(&self, at: &ChannelLocation, user: UserId) -> Result<Option<Permissions>, PlatformError> {
        let Some(member) = self.member(at.guild, user).await? else { return Ok(None) };
        let Some(guild) = self.cache.guild(at.guild) else { return Err(unavailable()) };
        Ok(Some(guild.user_permissions_in(&at.channel, &member)))
    }

    /// Returns true if a person sees a channel of a guild now. If that cannot be told, they do not.
    #[cfg(feature = "voice")]
    pub(crate) async fn can_see(&self, channel: ChannelId, user: UserId) -> bool {
        self.has(channel, user, Permissions::VIEW_CHANNEL).await
    }

    /// Returns true if a person may write in a channel of a guild now. If that cannot be told, they may not.
    #[cfg(feature = "voice")]
    pub(crate) async fn can_write(&self, channel: ChannelId, user: UserId) -> bool {
        self.has(channel, user, Permissions::VIEW_CHANNEL | Permissions::SEND_MESSAGES).await
    }

    #[cfg(feature = "voice")]
    async fn has(&self, channel: ChannelId, user: UserId, needed: Permissions) -> bool {
        let Some(at) = self.locate(channel) else { return false };
        let granted = self.permissions(&at, user).await;
        granted.is_ok_and(|granted| granted.is_some_and(|granted| granted.contains(needed)))
    }

    /// Returns the current member.
    pub(crate) async fn member(&self, guild: GuildId, user: UserId) -> Result<Option<Member>, PlatformError> {
        if self.members_known || user == self.me {
            let known = self.cache.guild(guild).and_then(|guild| {
                let complete = guild.members.len() as u64 >= guild.member_count;
                match guild.members.get(&user) {
                    Some(member) => Some(Some(member.clone())),
                    None => complete.then_some(None),
                }
            });
            if let Some(known) = known {
                return Ok(known);
            }
        }
        match self.http.get_member(guild, user).await {
            Ok(member) => Ok(Some(member)),
            Err(error) if failure(&error) == Failure::Gone => Ok(None),
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Returns a person's DM channel with the bot; `None` if it cannot be opened now.
    pub(crate) async fn direct_with(&self, user: UserId) -> Option<ChannelId> {
        if let Some(known) = self.directs.of(user) {
            return Some(known);
        }
        match self.http.create_private_channel(&json!({"recipient_id": user})).await {
            Ok(dm) => {
                self.directs.note(dm.id, user);
                Some(dm.id)
            }
            Err(error) => {
                tracing::debug!(error = in_words(&error), "cannot open direct messages");
                None
            }
        }
    }

    /// Returns the bot's own permissions in a channel; in a DM, all that exist there.
    pub(crate) fn own_permissions(&self, channel: ChannelId) -> Permissions {
        let Some(at) = self.locate(channel) else { return Permissions::dm_permissions() };
        let Some(guild) = self.cache.guild(at.guild) else { return Permissions::empty() };
        let Some(member) = guild.members.get(&self.me) else { return Permissions::empty() };
        guild.user_permissions_in(&at.channel, member)
    }

    pub(crate) async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        let (Some(channel), Some(user)) = (id::channel_of(chat), id::user_of(asker)) else { return Ok(None) };
        let at = match self.find(channel).await? {
            Found::Guild(at) => at,
            Found::Direct(whose) if whose == user => return direct(chat, whose),
            Found::Direct(_) | Found::Nothing => return Ok(None),
        };
        let Some(granted) = self.permissions(&at, user).await? else { return Ok(None) };
        if !granted.contains(Permissions::VIEW_CHANNEL) || !self.in_thread(channel, &at, user, granted).await? {
            return Ok(None);
        }
        self.place_at(chat, &at)
    }

    /// Returns what a channel is for all who read it. It is the same for all of them.
    pub(crate) async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        let Some(channel) = id::channel_of(chat) else { return Ok(None) };
        match self.find(channel).await? {
            Found::Guild(at) => self.place_at(chat, &at),
            Found::Direct(whose) => direct(chat, whose),
            Found::Nothing => Ok(None),
        }
    }

    fn place_at(&self, chat: &ChatId, at: &ChannelLocation) -> Result<Option<Place>, PlatformError> {
        let place = |kind, since| Ok(Some(Place { chat: chat.clone(), kind, since }));
        let Some(guild) = self.cache.guild(at.guild) else { return Err(unavailable()) };
        let realm = id::realm(at.guild).map_err(unusable)?;
        if !at.private_thread && open_to_all(&guild, &at.channel) {
            return place(PlaceKind::Public(realm), None);
        }
        let since = self.horizon(&guild, &at.channel);
        // Only people in the guild see a channel of the guild.
        place(PlaceKind::Private { realm: Some(realm), all_in_realm: true, realm_since: None }, since)
    }

    /// Returns true if a person who may read a thread's channel may also read the thread.
    async fn in_thread(
        &self,
        thread: ChannelId,
        at: &ChannelLocation,
        user: UserId,
        granted: Permissions,
    ) -> Result<bool, PlatformError> {
        if !at.private_thread || granted.contains(Permissions::MANAGE_THREADS) {
            return Ok(true);
        }
        let members = self.http.get_channel_thread_members(thread).await.map_err(|error| refusal(&error))?;
        Ok(members.iter().any(|member| member.user_id == user))
    }

    /// Returns the time from which all readers are taken to have read along, if some see the channel but cannot scroll
    /// back. Discord does not tell since when a person sees a channel. So this is the start of this process, or the
    /// time when the newest of them joined, if that is later.
    fn horizon(&self, guild: &Guild, channel: &GuildChannel) -> Option<Timestamp> {
        let mut blind = guild.members.values().filter(|member| member.user.id != self.me).filter(|member| {
            let granted = guild.user_permissions_in(channel, member);
            granted.contains(Permissions::VIEW_CHANNEL) && !granted.contains(Permissions::READ_MESSAGE_HISTORY)
        });
        let complete = self.members_known && guild.members.len() as u64 >= guild.member_count;
        let first = blind.next();
        if first.is_none() && (complete || everybody_scrolls_back(guild, channel)) {
            return None;
        }
        let joined = first
            .into_iter()
            .chain(blind)
            .filter_map(|member| Timestamp::from_second(member.joined_at?.unix_timestamp()).ok());
        Some(joined.fold(self.began, Timestamp::max))
    }

    pub(crate) async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        let Some(user) = id::user_of(person) else { return Ok(ReadableScopes::default()) };
        let mut reach = ReadableScopes::default();
        let guilds = self.cache.guilds();
        let question = if self.members_known { guilds.len() } else { MAX_GUILDS_QUERIED };
        for guild in guilds.into_iter().take(question) {
            let Some(member) = self.member(guild, user).await? else { continue };
            self.reach_in(guild, &member, &mut reach).map_err(unusable)?;
        }
        Ok(reach)
    }

    fn reach_in(&self, guild: GuildId, member: &Member, reach: &mut ReadableScopes) -> Result<(), IdError> {
        let Some(guild) = self.cache.guild(guild) else { return Ok(()) };
        reach.realms.push((id::realm(guild.id)?, None));
        for channel in guild.channels.values().filter(|channel| !open_to_all(&guild, channel)) {
            if !guild.user_permissions_in(channel, member).contains(READS) {
                continue;
            }
            let since = self.horizon(&guild, channel);
            reach.private_chats.push((id::chat(channel.id)?, since));
            let threads = guild
                .threads
                .iter()
                .filter(|thread| thread.parent_id == Some(channel.id) && thread.kind != ChannelType::PrivateThread);
            for thread in threads {
                reach.private_chats.push((id::chat(thread.id)?, since));
            }
        }
        Ok(())
    }

    pub(crate) async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        let (Some(channel), Some(user)) = (id::channel_of(chat), id::user_of(person)) else {
            return Ok(Access::Member);
        };
        if self.operators.contains(&user) {
            return Ok(Access::Operator);
        }
        let at = match self.find(channel).await? {
            Found::Guild(at) => at,
            // A DM is a realm of its own, and its person manages it.
            Found::Direct(whose) if whose == user => return Ok(Access::Admin),
            Found::Direct(_) | Found::Nothing => return Ok(Access::Member),
        };
        let granted = self.permissions(&at, user).await?.unwrap_or(Permissions::empty());
        let manages = granted.intersects(Permissions::MANAGE_GUILD | Permissions::ADMINISTRATOR);
        Ok(if manages { Access::Admin } else { Access::Member })
    }

    /// Returns true if Discord marks the chat's channel as age-restricted.
    pub(crate) fn is_for_adults(&self, chat: &ChatId) -> bool {
        id::channel_of(chat).and_then(|channel| self.locate(channel)).is_some_and(|at| at.channel.nsfw)
    }

    /// Returns the guild of a channel that everyone in it can read.
    pub(crate) fn open_in(&self, channel: ChannelId) -> Option<GuildId> {
        let at = self.locate(channel).filter(|at| !at.private_thread)?;
        let guild = self.cache.guild(at.guild)?;
        open_to_all(&guild, &at.channel).then_some(at.guild)
    }

    /// Returns true for the bot's own role; people mention it like the bot.
    pub(crate) fn is_own_role(&self, guild: GuildId, role: RoleId) -> bool {
        let guild = self.cache.guild(guild);
        guild.and_then(|guild| guild.roles.get(&role)?.tags.bot_id) == Some(self.me)
    }
}

/// Returns true if everyone in the guild reads the channel from its beginning. Only then do its messages have the
/// guild's scope. A channel that anyone is excluded from is private.
pub(crate) fn open_to_all(guild: &Guild, channel: &GuildChannel) -> bool {
    everybodys(guild, channel).contains(READS)
        && channel.permission_overwrites.iter().all(|overwrite| {
            !overwrite.deny.intersects(READS) || {
                // The permissions of @everyone were checked above.
                matches!(overwrite.kind, PermissionOverwriteType::Role(role) if role.get() == guild.id.get())
            }
        })
}

fn everybody_scrolls_back(guild: &Guild, channel: &GuildChannel) -> bool {
    everybodys(guild, channel).contains(Permissions::READ_MESSAGE_HISTORY)
        && channel
            .permission_overwrites
            .iter()
            .all(|overwrite| !overwrite.deny.contains(Permissions::READ_MESSAGE_HISTORY))
}

/// Returns the permissions of a person without any role.
fn everybodys(guild: &Guild, channel: &GuildChannel) -> Permissions {
    let everyone = RoleId::new(guild.id.get());
    let base = guild.roles.get(&everyone).map_or(Permissions::empty(), |role| role.permissions);
    if base.contains(Permissions::ADMINISTRATOR) {
        return Permissions::all();
    }
    let overwrite = channel
        .permission_overwrites
        .iter()
        .find(|overwrite| overwrite.kind == PermissionOverwriteType::Role(everyone));
    overwrite.map_or(base, |overwrite| (base & !overwrite.deny) | overwrite.allow)
}

/// Returns the place of a DM.
fn direct(chat: &ChatId, whose: UserId) -> Result<Option<Place>, PlatformError> {
    let kind = PlaceKind::Dm(id::person(whose).map_err(unusable)?);
    Ok(Some(Place { chat: chat.clone(), kind, since: None }))
}

fn unavailable() -> PlatformError {
    PlatformError::Transient("Discord has not described that server yet, or it has an outage".to_owned())
}

fn unusable(error: IdError) -> PlatformError {
    PlatformError::Refused(error.to_string())
}
