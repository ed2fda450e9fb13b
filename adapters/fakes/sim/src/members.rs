use std::collections::{BTreeMap, BTreeSet};

use azera_types::{PersonId, Timestamp};
use serde::Deserialize;

/// How far back newcomers can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// To the beginning.
    #[default]
    Shared,
    /// To the time when they joined.
    Joined,
}

/// The members of a realm or a private chat, and when they joined.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Members {
    history: History,
    came: BTreeMap<PersonId, Timestamp>,
}

impl Members {
    pub(crate) fn new(history: History) -> Self {
        Self { history, came: BTreeMap::new() }
    }

    /// Sets the members; existing ones keep their time of joining. Returns those who are no longer members.
    pub(crate) fn set(&mut self, people: &BTreeSet<PersonId>, at: Timestamp) -> Vec<PersonId> {
        let gone: Vec<_> = self.came.keys().filter(|person| !people.contains(*person)).cloned().collect();
        self.came.retain(|person, _| people.contains(person));
        people.iter().for_each(|person| self.join(person, at));
        gone
    }

    pub(crate) fn join(&mut self, person: &PersonId, at: Timestamp) {
        self.came.entry(person.clone()).or_insert(at);
    }

    /// Removes a person; returns true if they were a member.
    pub(crate) fn leave(&mut self, person: &PersonId) -> bool {
        self.came.remove(person).is_some()
    }

    pub(crate) fn has(&self, person: &PersonId) -> bool {
        self.came.contains_key(person)
    }

    pub(crate) fn people(&self) -> impl Iterator<Item = &PersonId> {
        self.came.keys()
    }

    /// Returns the time from which a member can read; `None` is the beginning.
    pub(crate) fn since(&self, person: &PersonId) -> Option<Timestamp> {
        match self.history {
            History::Shared => None,
            History::Joined => self.came.get(person).copied(),
        }
    }

    /// Returns the time from which all of these members can read.
    pub(crate) fn since_for_all<'a>(&self, people: impl Iterator<Item = &'a PersonId>) -> Option<Timestamp> {
        people.filter_map(|person| self.since(person)).max()
    }
}
