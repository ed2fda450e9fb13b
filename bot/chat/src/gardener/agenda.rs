//! What was heard and is not taken up yet. A hint in memory: what it leads to is decided by the record.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_types::{ChatId, PersonaId, PlatformId, Scope, Timestamp};

use super::LOOK_BACK;
use super::chores::CHORES_EVERY;
use super::schedule::after;
use crate::config::GardenConfig;

/// Places of which something is known at most; with more, those in which least happened lately are let go.
const MAX_PLACES: usize = 20_000;

/// Time after which a platform is asked again what time it is somewhere.
const ASK_AGAIN: Duration = Duration::from_secs(24 * 3_600);

/// The public places of a realm, a private chat or a direct message, and a persona in it: where it has one mind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Home {
    pub(crate) platform: PlatformId,
    /// The place.
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
    pub(crate) at: Timestamp,
}

#[derive(Debug, Clone)]
struct TalkState {
    last_at: Timestamp,
    /// Messages since the diary was written.
    for_diary: usize,
    /// Messages since notes were made.
    for_notes: usize,
    /// Messages since what was said was looked through for what is worth keeping.
    for_sift: usize,
    not_before: Timestamp,
}

#[derive(Debug, Clone)]
struct HomeState {
    said: Timestamp,
    /// The chat of it in which something was said last.
    chat: Option<ChatId>,
    /// When its platform is to be asked what time it is there; `None` if it was lately.
    ask: Option<Timestamp>,
    asked: Option<Timestamp>,
    /// When it is looked after next; `None` if nothing was said there for long.
    chores: Option<Timestamp>,
    wants_check_ins: bool,
}

/// How it is in a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HomeStirred {
    /// When something was said there last.
    pub(crate) said: Timestamp,
    /// Whether somebody wants to be looked in on there.
    pub(crate) wants_check_ins: bool,
}

/// What is to be done in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TalkTask {
    Notes,
    /// Looking for what is worth keeping, before the diary is written.
    Sift,
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
        let Heard { talk, scope: place, at } = heard;
        let mut state = self.lock();
        let home = Home { platform: talk.platform.clone(), place, persona: talk.persona.clone() };
        let held = state.homes.entry(home).or_insert_with(|| HomeState::first(at));
        held.said = held.said.max(at);
        held.chores.get_or_insert_with(|| after(at, CHORES_EVERY));
        if held.asked.is_none_or(|asked| after(asked, ASK_AGAIN) <= at) {
            held.ask.get_or_insert(at);
        }
        held.chat = Some(talk.chat.clone());
        let first = TalkState { last_at: at, for_diary: 0, for_notes: 0, for_sift: 0, not_before: Timestamp::MIN };
        let held = state.talks.entry(talk).or_insert(first);
        held.last_at = held.last_at.max(at);
        held.for_diary += messages;
        held.for_notes += messages;
        held.for_sift += messages.max(1);
        state.keep_within_bounds();
    }

    /// When something is to be done next.
    pub(crate) fn next_due(&self, config: &GardenConfig) -> Option<Timestamp> {
        let state = self.lock();
        let talks = state.talks.values().flat_map(|talk| talk.tasks(config)).map(|(at, _)| at);
        let homes = state.homes.values().filter_map(|home| home.ask);
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
            TalkTask::Sift => held.for_sift = rest,
            TalkTask::Diary => held.for_diary = rest,
        }
    }

    /// Something could not be done in a conversation yet.
    pub(crate) fn put_off(&self, talk: &Talk, until: Timestamp) {
        if let Some(held) = self.lock().talks.get_mut(talk) {
            held.not_before = until;
        }
    }

    /// The homes in which it is to be asked what time it is there.
    pub(crate) fn homes_to_ask(&self, now: Timestamp) -> Vec<Home> {
        let state = self.lock();
        let mut ask: Vec<Home> = state
            .homes
            .iter()
            .filter(|(_, held)| held.ask.is_some_and(|at| at <= now))
            .map(|(home, _)| home.clone())
            .collect();
        ask.sort_by(|a, b| a.order().cmp(&b.order()));
        ask
    }

    /// It was asked at `now`, or is to be asked again at `again`.
    pub(crate) fn asked(&self, home: &Home, now: Timestamp, again: Option<Timestamp>) {
        if let Some(held) = self.lock().homes.get_mut(home) {
            held.asked = Some(now);
            held.ask = again;
        }
    }

    /// Somebody wants to be looked in on, in this chat.
    pub(crate) fn expect(&self, home: Home, chat: ChatId, since: Timestamp) {
        let mut state = self.lock();
        let held = state.homes.entry(home).or_insert_with(|| HomeState::first(since));
        held.wants_check_ins = true;
        held.chat.get_or_insert(chat);
        held.chores.get_or_insert_with(|| after(since, CHORES_EVERY));
    }

    /// Nobody does there any more.
    pub(crate) fn expect_no_more(&self, home: &Home) {
        if let Some(held) = self.lock().homes.get_mut(home) {
            held.wants_check_ins = false;
        }
    }

    /// When a home is to be looked after next.
    pub(crate) fn next_chore(&self) -> Option<Timestamp> {
        self.lock().homes.values().filter_map(|home| home.chores).min()
    }

    /// The home that has waited longest to be looked after by now.
    pub(crate) fn due_chore(&self, now: Timestamp) -> Option<Home> {
        let state = self.lock();
        let due = state.homes.iter().filter_map(|(home, held)| Some((held.chores.filter(|at| *at <= now)?, home)));
        due.min_by(|(a, x), (b, y)| (a, x.order()).cmp(&(b, y.order()))).map(|(_, home)| home.clone())
    }

    /// A home is to be looked after again then, unless nothing was said there for so long that there is nothing to look after.
    pub(crate) fn look_again(&self, home: &Home, at: Timestamp, now: Timestamp) {
        if let Some(held) = self.lock().homes.get_mut(home) {
            let is_over = after(held.said, LOOK_BACK) <= now && !held.wants_check_ins;
            held.chores = (!is_over).then_some(at);
        }
    }

    /// When something was said last in a place, to whichever persona.
    pub(crate) fn said_in(&self, platform: &PlatformId, place: &Scope) -> Option<Timestamp> {
        let state = self.lock();
        let there = state.homes.iter().filter(|(home, _)| home.platform == *platform && home.place == *place);
        there.map(|(_, held)| held.said).max()
    }

    /// How it is in a home of which something is known.
    pub(crate) fn stirred(&self, home: &Home) -> Option<HomeStirred> {
        let state = self.lock();
        let held = state.homes.get(home)?;
        Some(HomeStirred { said: held.said, wants_check_ins: held.wants_check_ins })
    }

    /// Whether something was heard in a home.
    pub(crate) fn knows(&self, home: &Home) -> bool {
        self.lock().homes.contains_key(home)
    }

    /// The chat of a home in which something was said last.
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

impl HomeState {
    fn first(said: Timestamp) -> Self {
        Self { said, chat: None, ask: None, asked: None, chores: None, wants_check_ins: false }
    }
}

impl TalkState {
    fn tasks(&self, config: &GardenConfig) -> impl Iterator<Item = (Timestamp, TalkTask)> + use<> {
        let enough = |count: usize, least: usize| least > 0 && count >= least;
        let notes = enough(self.for_notes, config.notes_every).then(|| after(self.last_at, config.pause));
        let diary = enough(self.for_diary, config.diary_messages).then(|| after(self.last_at, config.rest));
        let sift = enough(self.for_sift, config.sift_every).then(|| after(self.last_at, config.rest));
        let not_before = self.not_before;
        let tasks = [(notes, TalkTask::Notes), (sift, TalkTask::Sift), (diary, TalkTask::Diary)];
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
            self.homes.retain(|_, held| held.said >= middle || held.wants_check_ins);
        }
    }
}
