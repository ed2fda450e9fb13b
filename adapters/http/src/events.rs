//! What happens in each person's chats, for the clients that follow it. All clients of a person read one short list, each
//! at its own pace: a slow client costs nothing and delays nobody. What a client missed is sent again when it comes back.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_types::PersonId;
use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

/// Events that are kept for a person. A client that missed more loads its lists anew.
const KEPT: usize = 64;

/// Something that happened. It holds no words of anybody: clients fetch messages by their ids.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Happened {
    /// Its number among the events of the person since the start, from 1.
    pub(crate) number: u64,
    pub(crate) name: &'static str,
    pub(crate) data: Value,
}

/// The events of everybody.
pub(crate) struct Events {
    /// Tells this start from others, whose numbers mean something else.
    start: Uuid,
    people: Mutex<HashMap<PersonId, Arc<PersonEvents>>>,
}

/// The events of one person.
pub(crate) struct PersonEvents {
    recent: Mutex<VecDeque<Happened>>,
    last: watch::Sender<u64>,
}

impl Default for Events {
    fn default() -> Self {
        Self { start: Uuid::now_v7(), people: Mutex::default() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Events {
    /// Returns the events of a person.
    pub(crate) fn of(&self, person: &PersonId) -> Arc<PersonEvents> {
        lock(&self.people).entry(person.clone()).or_default().clone()
    }

    /// Forgets the events of a person whose account is gone.
    pub(crate) fn forget(&self, person: &PersonId) {
        lock(&self.people).remove(person);
    }

    /// Returns the id of an event, which a client sends back to go on from there.
    pub(crate) fn id(&self, number: u64) -> String {
        format!("{}.{number}", self.start.simple())
    }

    /// Returns the number in an id of this start.
    pub(crate) fn number(&self, id: &str) -> Option<u64> {
        let (start, number) = id.split_once('.')?;
        let is_this = start == self.start.simple().to_string();
        number.parse().ok().filter(|_| is_this)
    }
}

impl Default for PersonEvents {
    fn default() -> Self {
        Self { recent: Mutex::default(), last: watch::Sender::new(0) }
    }
}

impl PersonEvents {
    /// Adds an event.
    pub(crate) fn push(&self, name: &'static str, data: Value) {
        let mut recent = lock(&self.recent);
        let number = *self.last.borrow() + 1;
        if recent.len() == KEPT {
            recent.pop_front();
        }
        recent.push_back(Happened { number, name, data });
        self.last.send_replace(number);
    }

    /// Returns a receiver of the number of the last event.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Returns the events after a number, oldest first; `None` if some of them are no longer kept.
    pub(crate) fn after(&self, number: u64) -> Option<Vec<Happened>> {
        let recent = lock(&self.recent);
        let last = *self.last.borrow();
        let oldest = recent.front().map_or(last + 1, |oldest| oldest.number);
        let is_known = number <= last && number + 1 >= oldest;
        is_known.then(|| recent.iter().filter(|event| event.number > number).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_what_it_missed_or_is_told_that_it_missed_too_much() {
        let events = PersonEvents::default();
        assert_eq!(events.after(0), Some(Vec::new()));
        for number in 0..KEPT {
            events.push("message", number.into());
        }
        let all = events.after(0).unwrap();
        assert_eq!((all.len(), all[0].number, all[KEPT - 1].number), (KEPT, 1, KEPT as u64));
        assert_eq!(events.after(KEPT as u64 - 1).unwrap()[0].data, Value::from(KEPT - 1));
        events.push("message", Value::Null);
        assert_eq!((events.after(0), events.after(1).map(|missed| missed.len())), (None, Some(KEPT)));
        assert_eq!(events.after(KEPT as u64 + 2), None, "a number that is not given yet");
    }

    #[test]
    fn an_id_of_an_earlier_start_means_nothing() {
        let (before, now) = (Events::default(), Events::default());
        assert_eq!(now.number(&now.id(7)), Some(7));
        for id in [before.id(7).as_str(), "7", "", "x.7", &now.id(7).replace(".7", ".-7")] {
            assert_eq!(now.number(id), None, "{id}");
        }
    }
}
