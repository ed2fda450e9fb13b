use std::sync::{Mutex, PoisonError};

use azera_types::Timestamp;

/// Why a connection broke or was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The server did not answer, or answered that it cannot work now.
    Unreachable,
    /// The server closed the connection.
    Closed,
    /// The server refused the bot.
    Refused,
}

/// Since when a platform's connection is as it is, and what was wrong last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionHistory {
    /// When it was made, or when it broke. `None` before the first.
    pub since: Option<Timestamp>,
    /// What was wrong last, and when. It stays after the connection came back.
    pub last_trouble: Option<(Trouble, Timestamp)>,
}

/// Where an adapter notes what happens to its connection.
#[derive(Debug, Default)]
pub struct ConnectionLog(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    is_up: bool,
    history: ConnectionHistory,
}

impl ConnectionLog {
    /// Notes that the connection stands.
    pub fn up(&self, now: Timestamp) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut noted.is_up, true) {
            noted.history.since = Some(now);
        }
    }

    /// Notes that the connection does not stand, and why.
    pub fn down(&self, trouble: Trouble, now: Timestamp) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut noted.is_up, false) || noted.history.since.is_none() {
            noted.history.since = Some(now);
        }
        noted.history.last_trouble = Some((trouble, now));
    }

    /// Returns whether the connection stands, as far as it was noted.
    pub fn is_up(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_up
    }

    /// Returns what was noted.
    pub fn history(&self) -> ConnectionHistory {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).history
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_is_that_of_the_last_change_and_the_last_trouble_stays() {
        let log = ConnectionLog::default();
        assert_eq!((log.is_up(), log.history()), (false, ConnectionHistory::default()));
        log.down(Trouble::Unreachable, at(1));
        log.down(Trouble::Refused, at(2));
        assert_eq!(log.history().since, Some(at(1)), "it is down since the first failure");
        log.up(at(3));
        log.up(at(4));
        let history = ConnectionHistory { since: Some(at(3)), last_trouble: Some((Trouble::Refused, at(2))) };
        assert_eq!((log.is_up(), log.history()), (true, history));
        log.down(Trouble::Closed, at(5));
        assert_eq!((log.is_up(), log.history().since), (false, Some(at(5))));
    }
}
