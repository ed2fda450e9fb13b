//! Permissions, computed as in the reference
//! (<https://discord.com/developers/docs/topics/permissions#permission-overwrites>).

use crate::world::{Channel, Guild};

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bits(pub u64);

impl Bits {
    /// Everything.
    pub const ADMINISTRATOR: Self = Self(1 << 3);
    /// Change the server's settings.
    pub const MANAGE_GUILD: Self = Self(1 << 5);
    /// Delete messages of others.
    pub const MESSAGES: Self = Self(1 << 13);
    /// See a channel.
    pub const VIEW: Self = Self(1 << 10);
    /// Write messages.
    pub const SEND: Self = Self(1 << 11);
    /// Attach files.
    pub const ATTACH: Self = Self(1 << 15);
    /// Read the history.
    pub const HISTORY: Self = Self(1 << 16);
    /// Join voice channels.
    pub const CONNECT: Self = Self(1 << 20);
    /// Speak in voice channels.
    pub const SPEAK: Self = Self(1 << 21);
    /// Mute others, and speak on a stage.
    pub const MUTE_MEMBERS: Self = Self(1 << 22);
    /// Ask to speak on a stage.
    pub const REQUEST_TO_SPEAK: Self = Self(1 << 32);
    /// Manage webhooks.
    pub const WEBHOOKS: Self = Self(1 << 29);
    /// Make threads that everyone in their channel sees.
    pub const CREATE_THREADS: Self = Self(1 << 35);
    /// Write in threads.
    pub const SEND_IN_THREADS: Self = Self(1 << 38);

    /// Permissions of everyone in a new server, as far as this fake knows them.
    pub const EVERYBODY: Self = Self(
        Self::VIEW.0
            | Self::SEND.0
            | Self::HISTORY.0
            | Self::SEND_IN_THREADS.0
            | Self::ATTACH.0
            | Self::CONNECT.0
            | Self::SPEAK.0,
    );

    /// Returns the union of both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if all of `other` is included.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A permission overwrite of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overwrite {
    /// Id of a role or user; the server's own id means everyone.
    pub id: u64,
    /// True for a user.
    pub user: bool,
    /// Granted permissions.
    pub allow: Bits,
    /// Denied permissions.
    pub deny: Bits,
}

/// Returns a member's permissions in a channel, or in the server as a whole.
pub(crate) fn granted(guild: &Guild, channel: Option<&Channel>, user: u64) -> Bits {
    let Some(member) = guild.members.get(&user) else { return Bits::default() };
    let role = |id: u64| guild.roles.get(&id).copied().unwrap_or_default();
    let base = member.roles.iter().fold(role(guild.id), |all, id| all.and(role(*id)));
    if guild.owner == user || base.has(Bits::ADMINISTRATOR) {
        return Bits(u64::MAX);
    }
    let Some(channel) = channel else { return base };
    let apply = |bits: Bits, chosen: &dyn Fn(&Overwrite) -> bool| {
        let chosen = channel.overwrites.iter().filter(|overwrite| chosen(overwrite));
        let (allow, deny) = chosen.fold((0, 0), |(allow, deny), one| (allow | one.allow.0, deny | one.deny.0));
        Bits(bits.0 & !deny | allow)
    };
    let bits = apply(base, &|one| !one.user && one.id == guild.id);
    let bits = apply(bits, &|one| !one.user && member.roles.contains(&one.id));
    let bits = apply(bits, &|one| one.user && one.id == user);
    if bits.has(Bits::VIEW) { bits } else { Bits::default() }
}
