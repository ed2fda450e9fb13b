//! What was heard and is not taken up yet. A hint in memory: what it leads to is decided by the record.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::{ChatId, PersonaId, PlatformId, Scope, Timestamp};

use super::schedule::{Activity, after};
use crate::config::GardenConfig;

/// Places of which something is known at most; with more, those in which least happened lately are let go.
const MAX_PLACES: usize = 20_000;

/// A realm, a room outside any or a direct message, and a persona in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Home {
    pub(crate) platform: PlatformId,
    /// The realm, room or person.
    pub(crate) place: Scope,
    pub(crate) persona: PersonaId,
}

/// A conversation of a persona.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Talk {
    pub(crate) platform: PlatformId,
    pub(crate) chat: ChatId,
    pub(crate) persona: PersonaId,
}

/// What was said somewhere.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) talk: Talk,
    /// The place it was said in.
    pub(crate) scope: Scope,
    /// The realm, room or person it belongs to.
    pub(crate) home: Scope,
    pub(crate) at: Timestamp,
}

#[derive(Debug, Clone)]
struct TalkState {
    last_at: Timestamp,
    /// Messages since the diary was written.
    for_diary: usize,
    /// Messages since notes were made.
    for_notes: usize,
    not_before: Timestamp,
}

#[derive(Debug, Clone)]
struct HomeState {
    said: Timestamp,
    /// The chat that everybody of the home reads in which something was said last.
    chat: Option<ChatId>,
    due: Due,
}

/// When something is to be done for a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// It is to be worked out, from then on: something was said since.
    Unknown(Timestamp),
    At(Timestamp, Activity),
    Never,
}

/// What is to be done in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TalkTask {
    Notes,
    Diary,
}

#[derive(Default)]
struct State {
    talks: HashMap<Talk, TalkState>,
    homes: HashMap<Home, HomeState>,
}

/// Everything that was heard.
#[derive(Default)]
pub(crate) struct Agenda(Mutex<State>);

impl Agenda {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many messages were heard.
    pub(crate) fn hear(&self, heard: Heard, messages: usize) {
        let Heard { talk, scope, home: place, at } = heard;
        let mut state = self.lock();
        let home = Home { platform: talk.platform.clone(), place, persona: talk.persona.clone() };
        let open = (scope == home.place).then(|| talk.chat.clone());
        let held = state.homes.entry(home).or_insert(HomeState { said: at, chat: None, due: Due::Unknown(at) });
        held.said = held.said.max(at);
        held.due = Due::Unknown(at);
        if open.is_some() {
            held.chat = open;
        }
        let first = TalkState { last_at: at, for_diary: 0, for_notes: 0, not_before: Timestamp::MIN };
        let held = state.talks.entry(talk).or_insert(first);
        held.last_at = held.last_at.max(at);
        held.for_diary += messages;
        held.for_notes += messages;
        state.keep_within_bounds();
    }

    /// When something is to be done next.
    pub(crate) fn next_due(&self, config: &GardenConfig) -> Option<Timestamp> {
        let state = self.lock();
        let talks = state.talks.values().flat_map(|talk| talk.tasks(config)).map(|(at, _)| at);
        let homes = state.homes.values().filter_map(|home| match home.due {
            Due::Unknown(at) | Due::At(at, _) => Some(at),
            Due::Never => None,
        });
        talks.chain(homes).min()
    }

    /// What is to be done in conversations by now, that of the longest silence first.
    pub(crate) fn due_talks(&self, now: Timestamp, config: &GardenConfig) -> Vec<(Talk, TalkTask, Timestamp)> {
        let state = self.lock();
        let mut due: Vec<_> = state
            .talks
            .iter()
            .flat_map(|(talk, held)| held.tasks(config).map(move |(at, task)| (at, talk, task, held.last_at)))
            .filter(|(at, ..)| *at <= now)
            .collect();
        due.sort_by(|a, b| (a.0, a.2, &a.1.chat).cmp(&(b.0, b.2, &b.1.chat)));
        due.into_iter().map(|(_, talk, task, last_at)| (talk.clone(), task, last_at)).collect()
    }

    /// Something was done in a conversation with what was heard up to `until`, or there was nothing to do.
    pub(crate) fn did(&self, talk: &Talk, task: TalkTask, until: Timestamp) {
        let mut state = self.lock();
        let Some(held) = state.talks.get_mut(talk) else { return };
        // What was said meanwhile counts for the next time.
        let rest = usize::from(held.last_at > until);
        match task {
            TalkTask::Notes => held.for_notes = rest,
            TalkTask::Diary => held.for_diary = rest,
        }
    }

    /// Something could not be done in a conversation yet.
    pub(crate) fn put_off(&self, talk: &Talk, until: Timestamp) {
        if let Some(held) = self.lock().talks.get_mut(talk) {
            held.not_before = until;
        }
    }

    /// The homes for which it is not known what is to be done, each with when something was said there.
    pub(crate) fn unknown_homes(&self, now: Timestamp) -> Vec<(Home, Timestamp)> {
        let state = self.lock();
        let unknown = state.homes.iter().filter(|(_, held)| matches!(held.due, Due::Unknown(at) if at <= now));
        let mut unknown: Vec<_> = unknown.map(|(home, held)| (home.clone(), held.said)).collect();
        unknown.sort_by(|a, b| a.0.order().cmp(&b.0.order()));
        unknown
    }

    /// What is to be done for a home, if nothing was said there since `said`.
    pub(crate) fn settle(&self, home: &Home, said: Timestamp, due: Option<(Timestamp, Activity)>) {
        if let Some(held) = self.lock().homes.get_mut(home).filter(|held| held.said == said) {
            held.due = due.map_or(Due::Never, |(at, activity)| Due::At(at, activity));
        }
    }

    /// The homes for which something is to be done by now.
    pub(crate) fn due_homes(&self, now: Timestamp) -> Vec<(Home, Activity)> {
        let state = self.lock();
        let mut due: Vec<_> = state
            .homes
            .iter()
            .filter_map(|(home, held)| match held.due {
                Due::At(at, activity) if at <= now => Some((at, home, activity)),
                _ => None,
            })
            .collect();
        due.sort_by(|a, b| (a.0, a.1.order()).cmp(&(b.0, b.1.order())));
        due.into_iter().map(|(_, home, activity)| (home.clone(), activity)).collect()
    }

    /// What is due for a home is to be worked out anew, at `at`.
    pub(crate) fn look_again(&self, home: &Home, at: Timestamp) {
        if let Some(held) = self.lock().homes.get_mut(home) {
            held.due = Due::Unknown(at);
        }
    }

    /// The chat of a home that everybody there reads in which something was said last.
    pub(crate) fn open_chat(&self, home: &Home) -> Option<ChatId> {
        self.lock().homes.get(home).and_then(|held| held.chat.clone())
    }
}

impl Home {
    /// Homes in an order that is the same in every run.
    fn order(&self) -> (&str, &Scope, &str) {
        (self.platform.as_str(), &self.place, self.persona.as_str())
    }
}

impl TalkState {
    fn tasks(&self, config: &GardenConfig) -> impl Iterator<Item = (Timestamp, TalkTask)> + use<> {
        let enough = |count: usize, least: usize| least > 0 && count >= least;
        let notes = enough(self.for_notes, config.notes_every).then(|| after(self.last_at, config.pause));
        let diary = enough(self.for_diary, config.diary_messages).then(|| after(self.last_at, config.rest));
        let not_before = self.not_before;
        let tasks = [(notes, TalkTask::Notes), (diary, TalkTask::Diary)];
        tasks.into_iter().filter_map(move |(at, task)| at.map(|at| (at.max(not_before), task)))
    }
}

impl State {
    fn keep_within_bounds(&mut self) {
        if self.talks.len() > MAX_PLACES {
            let mut times: Vec<Timestamp> = self.talks.values().map(|held| held.last_at).collect();
            let (_, middle, _) = times.select_nth_unstable(MAX_PLACES / 2);
            let middle = *middle;
            self.talks.retain(|_, held| held.last_at >= middle);
        }
        if self.homes.len() > MAX_PLACES {
            let mut times: Vec<Timestamp> = self.homes.values().map(|held| held.said).collect();
            let (_, middle, _) = times.select_nth_unstable(MAX_PLACES / 2);
            let middle = *middle;
            self.homes.retain(|_, held| held.said >= middle);
        }
    }
}
