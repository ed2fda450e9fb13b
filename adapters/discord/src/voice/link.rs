//! The connection of a call to Discord's voice server.

use std::collections::HashMap;

use azera_types::Timestamp;
use azera_voice_discord::Server;
use serenity::all::{GuildId, UserId};
use tokio::sync::watch;

use super::Ongoing;

/// How long a renewed connection must hold until it counts as repaired.
const HELD_S: i64 = 5 * 60;

/// What Discord was asked for in a server, over one connection of the gateway.
#[derive(Debug, Default)]
struct Moves {
    /// True if the bot asked last to be let into a channel.
    is_in: bool,
    /// True while Discord did not tell yet that the bot left, as it was asked to.
    is_leaving: bool,
}

impl Moves {
    fn ask(&mut self, wants_in: bool, was_in: bool) {
        // Discord tells nothing to a bot that leaves and is nowhere.
        self.is_leaving |= !wants_in && (self.is_in || was_in);
        self.is_in = wants_in;
    }

    fn left(&mut self) -> bool {
        let was_asked = std::mem::take(&mut self.is_leaving);
        self.is_in &= was_asked;
        was_asked
    }
}

/// What Discord was asked for. Connections of the gateway are counted for each shard. What is asked over a connection is
/// answered by its events, also if these are handled after the next one began.
#[derive(Debug, Default)]
pub(super) struct AskedMoves {
    moves: HashMap<(GuildId, u64), Moves>,
    /// The connections whose events are handled.
    handled: HashMap<u32, u64>,
}

impl AskedMoves {
    /// Takes in that the bot asks for something, over a connection. `was_in` tells whether it is in a channel, as Discord
    /// told until now.
    pub(super) fn ask(&mut self, guild: GuildId, connection: u64, wants_in: bool, was_in: bool) {
        self.moves.entry((guild, connection)).or_default().ask(wants_in, was_in);
    }

    /// Takes in that the bot left. Returns true if it asked for that, and false if somebody threw it out.
    pub(super) fn left(&mut self, guild: GuildId, shard: u32) -> bool {
        let connection = self.handled(shard);
        self.moves.get_mut(&(guild, connection)).is_some_and(Moves::left)
    }

    /// Returns how many connections of a shard began whose events are handled.
    pub(super) fn handled(&self, shard: u32) -> u64 {
        self.handled.get(&shard).copied().unwrap_or_default()
    }

    /// Takes in that events of the next connection of a shard follow. What was asked over an earlier one may be lost.
    pub(super) fn begin_connection(&mut self, shard: u32, is_on: impl Fn(GuildId) -> bool) {
        let handled = self.handled.entry(shard).or_default();
        *handled += 1;
        self.moves.retain(|(guild, connection), _| !is_on(*guild) || *connection >= *handled);
    }
}

/// The connection of a call to Discord's voice server.
pub(super) struct Link {
    /// Counts the connections of the call. What an earlier one reports is not about this one.
    pub(super) number: u64,
    /// Id of the voice session, and the server with its secret, once Discord named them.
    pub(super) session: Option<String>,
    pub(super) server: Option<(String, String)>,
    /// True from the moment in which Discord cut the connection until it names a server again.
    pub(super) is_cut: bool,
    /// True once Discord let the bot in and named a server.
    pub(super) arrived: watch::Sender<bool>,
    /// True once the bot asked to speak on the stage, or brought itself onto it. It does so once for each arrival.
    pub(super) has_asked_to_speak: bool,
    pub(super) renewals: Renewals,
}

impl Link {
    pub(super) fn new() -> Self {
        Self {
            number: 0,
            session: None,
            server: None,
            is_cut: false,
            arrived: watch::Sender::new(false),
            has_asked_to_speak: false,
            renewals: Renewals::default(),
        }
    }

    /// Forgets the connection, because it is made anew.
    pub(super) fn begin_anew(&mut self) {
        self.number += 1;
        (self.session, self.server) = (None, None);
        (self.is_cut, self.has_asked_to_speak) = (false, false);
        self.arrived.send_replace(false);
    }
}

impl Ongoing {
    /// Connects the call once everything is known.
    pub(super) fn connect(&mut self, guild: GuildId, me: UserId) {
        let link = &mut self.link;
        let (Some(session), Some((endpoint, token))) = (&link.session, &link.server) else { return };
        link.number += 1;
        self.call.connect(Server {
            guild: guild.get(),
            channel: self.channel.get(),
            user: me.get(),
            endpoint: endpoint.clone(),
            session: session.clone(),
            token: token.clone(),
            link: link.number,
        });
        (link.server, link.is_cut) = (None, false);
        link.arrived.send_replace(true);
    }
}

/// How often the connection of a call was renewed since it last held.
#[derive(Default)]
pub(super) struct Renewals {
    count: u32,
    last: Option<Timestamp>,
}

impl Renewals {
    /// Counts a renewal, and returns how many there were in a row.
    pub(super) fn count(&mut self, now: Timestamp) -> u32 {
        if self.last.is_some_and(|last| now.as_second() - last.as_second() >= HELD_S) {
            self.count = 0;
        }
        (self.count, self.last) = (self.count + 1, Some(now));
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_held_may_break_as_often_again() {
        let at = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
        let mut renewals = Renewals::default();
        let counted: Vec<u32> = [0, 1, 2, 60, 61, 120, 180].map(|minutes| renewals.count(at(minutes))).into();
        assert_eq!(counted, [1, 2, 3, 1, 2, 1, 1]);
    }

    #[test]
    fn only_a_leave_that_was_asked_for_is_no_kick() {
        let mut moves = Moves::default();
        moves.ask(true, false);
        assert!(!moves.left(), "somebody threw it out");
        moves.ask(true, false);
        moves.ask(false, true);
        // It comes again before Discord tells that it left.
        moves.ask(true, true);
        assert!(moves.left());
        assert!(!moves.left(), "and then somebody threw it out");
        // It gave up before Discord told that it was in.
        moves.ask(true, false);
        moves.ask(false, false);
        moves.ask(true, false);
        assert!(moves.left());
        moves.ask(false, false);
        assert!(moves.left());
        moves.ask(false, false);
        assert!(!moves.left(), "it was nowhere");
    }

    #[test]
    fn a_leave_is_answered_by_the_events_of_its_own_connection() {
        let (ours, other) = (GuildId::new(1), GuildId::new(2));
        let is_ours = |guild: GuildId| guild == ours;
        let mut asked = AskedMoves::default();
        asked.begin_connection(0, is_ours);
        asked.begin_connection(1, |guild| guild == other);
        asked.ask(ours, 1, false, true);
        asked.ask(other, 1, false, true);
        // The gateway was lost, and another connection asked for, before Discord's answer is handled.
        asked.ask(ours, 2, true, true);
        assert!(asked.left(ours, 0));
        asked.ask(ours, 1, false, true);
        asked.begin_connection(0, is_ours);
        assert!(!asked.left(ours, 0), "that it should leave is lost with the first connection");
        asked.ask(ours, 2, false, true);
        asked.begin_connection(1, |guild| guild == other);
        assert!(asked.left(ours, 0), "another shard says nothing about this server");
        assert!(!asked.left(other, 1));
    }
}
