//! Whether all readers of one channel read another one, too.

use serenity::all::{ChannelId, Guild, GuildChannel, Permissions, RoleId};

use crate::directory::Directory;

/// Permissions that allow reading the text chat of a voice channel.
const READS_CHAT: Permissions = Permissions::VIEW_CHANNEL.union(Permissions::CONNECT);

impl Directory {
    /// Returns true if everybody who can see a channel can also read the text chat of a voice channel of the same guild.
    /// If that cannot be told, it is false.
    pub(crate) fn reads_within(&self, channel: ChannelId, voice: ChannelId) -> bool {
        let (Some(inner), Some(outer)) = (self.locate(channel), self.locate(voice)) else { return false };
        let Some(guild) = self.cache.guild(inner.guild).filter(|_| inner.guild == outer.guild) else { return false };
        if is_open(&guild, &outer.channel) {
            return true;
        }
        let are_all_known = self.members_known && guild.members.len() as u64 >= guild.member_count;
        are_all_known
            && guild.members.values().filter(|member| member.user.id != self.me).all(|member| {
                let sees = guild.user_permissions_in(&inner.channel, member).contains(Permissions::VIEW_CHANNEL);
                !sees || guild.user_permissions_in(&outer.channel, member).contains(READS_CHAT)
            })
    }
}

/// Returns true if everyone in the guild reads the text chat of a voice channel.
fn is_open(guild: &Guild, channel: &GuildChannel) -> bool {
    let everyone = guild.roles.get(&RoleId::new(guild.id.get()));
    let base = everyone.map_or(Permissions::empty(), |role| role.permissions);
    base.contains(READS_CHAT)
        && channel.permission_overwrites.iter().all(|overwrite| !overwrite.deny.intersects(READS_CHAT))
}
