//! Permissions as the reference reckons them
//! (<https://discord.com/developers/docs/topics/permissions#permission-overwrites>).

use crate::world::{Channel, Guild};

/// Permissions as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bits(pub u64);

impl Bits {
    /// Everything.
    pub const ADMINISTRATOR: Self = Self(1 << 3);
    /// To change the server's settings.
    pub const MANAGE_GUILD: Self = Self(1 << 5);
    /// To delete what others say.
    pub const MESSAGES: Self = Self(1 << 13);
    /// To see a channel.
    pub const VIEW: Self = Self(1 << 10);
    /// To speak.
    pub const SEND: Self = Self(1 << 11);
    /// To attach files.
    pub const ATTACH: Self = Self(1 << 15);
    /// To read what was said before.
    pub const HISTORY: Self = Self(1 << 16);
    /// To make webhooks.
    pub const WEBHOOKS: Self = Self(1 << 29);
    /// To speak in threads.
    pub const SEND_IN_THREADS: Self = Self(1 << 38);

    /// What everybody may do in a new server, as far as this peer knows it.
    pub const EVERYBODY: Self =
        Self(Self::VIEW.0 | Self::SEND.0 | Self::HISTORY.0 | Self::SEND_IN_THREADS.0 | Self::ATTACH.0);

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is there.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What a channel grants or takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overwrite {
    /// A role's or a user's id; the server's own stands for everybody.
    pub id: u64,
    /// Whether it is a user's.
    pub user: bool,
    /// What is granted.
    pub allow: Bits,
    /// What is taken.
    pub deny: Bits,
}

/// What a member may do in a channel, or in the server as a whole.
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
