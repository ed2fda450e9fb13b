//! The connection of a call to Discord's voice server.

use azera_types::Timestamp;
use azera_voice_discord::Server;
use serenity::all::{GuildId, UserId};
use tokio::sync::watch;

use super::Ongoing;

/// How long a renewed connection must hold until it counts as repaired.
const HELD_S: i64 = 5 * 60;

/// Whether the bot leaves its channel in order to come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    No,
    /// Discord was asked to take the bot out.
    Asked,
    /// Discord took it out, and was asked to let it in again.
    Out,
}

/// The connection of a call to Discord's voice server.
pub(super) struct Link {
    /// Counts the connections of the call. What an earlier one reports is not about this one.
    pub(super) number: u64,
    /// Id of the voice session, and the server with its secret, once Discord named them.
    pub(super) session: Option<String>,
    pub(super) server: Option<(String, String)>,
    pub(super) leaving: Leaving,
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
            leaving: Leaving::No,
            is_cut: false,
            arrived: watch::Sender::new(false),
            has_asked_to_speak: false,
            renewals: Renewals::default(),
        }
    }

    /// Forgets the connection, because it is made anew.
    pub(super) fn begin_anew(&mut self) {
        self.number += 1;
        (self.session, self.server, self.leaving) = (None, None, Leaving::No);
        (self.is_cut, self.has_asked_to_speak) = (false, false);
        self.arrived.send_replace(false);
    }

    /// Takes in that Discord moved the bot out of its channel. Returns false if the bot did not ask for that.
    pub(super) fn is_out(&mut self) -> bool {
        let was_asked = self.leaving != Leaving::No;
        if was_asked {
            // The next session has another id.
            (self.leaving, self.session) = (Leaving::Out, None);
        }
        was_asked
    }

    /// Takes in that the bot is in its channel, in this voice session.
    pub(super) fn is_in(&mut self, session: String) {
        self.session = Some(session);
        if self.leaving == Leaving::Out {
            self.leaving = Leaving::No;
        }
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
    fn only_a_leave_that_was_asked_for_is_no_end() {
        let mut link = Link::new();
        link.is_in("a".to_owned());
        assert!(!link.is_out(), "somebody threw it out");
        link.begin_anew();
        assert!(!link.is_out(), "Discord was not asked to take it out yet");
        link.leaving = Leaving::Asked;
        // Its mute changed just before.
        link.is_in("a".to_owned());
        assert!(link.is_out());
        assert_eq!(link.session, None, "that session is over");
        link.is_in("b".to_owned());
        assert!(!link.is_out(), "and then somebody threw it out");
    }
}
