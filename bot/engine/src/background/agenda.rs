//! The agenda: conversations that background jobs have not handled yet. It lives in memory and is only a hint; the
//! record decides what is done.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_types::{ChatId, PersonaId, PlatformId, Scope, Timestamp};

use super::LOOK_BACK;
use super::maintenance::MAINTENANCE_INTERVAL;
use super::schedule::{after, is_past};
use crate::config::Garden;

/// Maximum number of chats and places in memory; with more, those with the oldest messages are dropped.
const MAX_PLACES: usize = 20_000;

/// Time after which a platform is asked for a place's time zone again.
const ASK_AGAIN: Duration = Duration::from_secs(24 * 3_600);

/// Silence after which working notes are written.
const PAUSE: Duration = Duration::from_secs(20);

/// A persona in the public channels of a realm, in a private chat or in a direct message. It has one mind there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PersonaPlace {
    pub(crate) platform: PlatformId,
    pub(crate) place: Scope,
    pub(crate) persona: PersonaId,
}

/// A persona's conversation in one chat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ChatActivity {
    pub(crate) platform: PlatformId,
    pub(crate) chat: ChatId,
    pub(crate) persona: PersonaId,
}

/// Messages that were heard in a chat.
#[derive(Debug, Clone)]
pub(crate) struct HeardMessages {
    pub(crate) talk: ChatActivity,
    /// The place they were said in.
    pub(crate) scope: Scope,
    pub(crate) at: Timestamp,
    /// Messages between two working notes, if the persona defines it and was heard since the start.
    pub(crate) notes_every: Option<usize>,
    /// Settings of background jobs there.
    pub(crate) garden: Arc<Garden>,
}

/// A time at which something is due, and the time at which it was set. If the clock now shows an earlier time than the
/// latter, somebody set it back, and the wait cannot be computed. Then it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    noted: Timestamp,
    at: Timestamp,
}

impl Due {
    fn after(noted: Timestamp, wait: Duration) -> Self {
        Self { noted, at: after(noted, wait) }
    }

    /// Returns when it is due, seen from `now`.
    fn at(self, now: Timestamp) -> Timestamp {
        if self.noted > now { now } else { self.at }
    }
}

#[derive(Debug, Clone)]
struct TalkState {
    /// The place where messages were last heard, and its settings.
    place: Scope,
    garden: Arc<Garden>,
    last_at: Timestamp,
    /// Messages since the last diary entry.
    for_diary: usize,
    /// Messages since the last working notes.
    for_notes: usize,
    /// Messages between two working notes, if the persona defines it.
    notes_every: Option<usize>,
    /// Messages since memories were last extracted.
    for_extraction: usize,
    not_before: Option<Due>,
}

#[derive(Debug, Clone)]
struct PlaceState {
    said: Timestamp,
    /// The chat with the newest message.
    chat: Option<ChatId>,
    /// When to ask the platform for the time zone; `None` if that was done lately.
    zone_due: Option<Due>,
    zone_read_at: Option<Timestamp>,
    /// When maintenance is due; `None` if nothing was said there for long.
    maintenance_due: Option<Due>,
    wants_check_ins: bool,
}

/// What the agenda knows of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceActivity {
    /// Time of the newest message.
    pub(crate) said: Timestamp,
    /// Whether somebody wants check-ins there.
    pub(crate) wants_check_ins: bool,
}

/// A background task for one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChatTask {
    Notes,
    /// Extracts memories, before the diary entry is written.
    Extract,
    Diary,
}

#[derive(Default)]
struct State {
    talks: HashMap<ChatActivity, TalkState>,
    homes: HashMap<PersonaPlace, PlaceState>,
}

/// All conversations that background jobs have not handled yet.
#[derive(Default)]
pub(crate) struct Agenda(Mutex<State>);

impl Agenda {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that messages were heard. The newest may be older than `now`.
    pub(crate) fn hear(&self, heard: HeardMessages, messages: usize, now: Timestamp) {
        let HeardMessages { talk, scope: place, at, notes_every, garden } = heard;
        // A time later than now comes from a clock that was wrong.
        let at = at.min(now);
        let mut state = self.lock();
        let home =
            PersonaPlace { platform: talk.platform.clone(), place: place.clone(), persona: talk.persona.clone() };
        let entry = state.homes.entry(home).or_insert_with(|| PlaceState::first(at));
        entry.said = if entry.said > now { at } else { entry.said.max(at) };
        entry.maintenance_due.get_or_insert_with(|| Due::after(at, MAINTENANCE_INTERVAL));
        if entry.zone_read_at.is_none_or(|zone_read_at| is_past(zone_read_at, ASK_AGAIN, at)) {
            entry.zone_due.get_or_insert(Due { noted: at, at });
        }
        entry.chat = Some(talk.chat.clone());
        let entry = state.talks.entry(talk).or_insert_with(|| TalkState {
            place: place.clone(),
            garden: garden.clone(),
            last_at: at,
            for_diary: 0,
            for_notes: 0,
            notes_every,
            for_extraction: 0,
            not_before: None,
        });
        (entry.place, entry.garden) = (place, garden);
        entry.last_at = if entry.last_at > now { at } else { entry.last_at.max(at) };
        entry.for_diary += messages;
        entry.for_notes += messages;
        entry.notes_every = notes_every.or(entry.notes_every);
        entry.for_extraction += messages.max(1);
        state.keep_within_bounds();
    }

    /// Sets new settings of background jobs for a place.
    pub(crate) fn follow(&self, platform: &PlatformId, place: &Scope, garden: &Arc<Garden>) {
        let mut state = self.lock();
        let there = state.talks.iter_mut().filter(|(talk, entry)| talk.platform == *platform && entry.place == *place);
        there.for_each(|(_, entry)| entry.garden = garden.clone());
    }

    /// Returns when the next task or time zone request is due.
    pub(crate) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let state = self.lock();
        let talks = state.talks.values().flat_map(|talk| talk.tasks(now)).map(|(at, _)| at);
        let homes = state.homes.values().filter_map(|home| Some(home.zone_due?.at(now)));
        talks.chain(homes).min()
    }

    /// Returns the tasks that are due, earliest first, each with the time of its chat's newest message.
    pub(crate) fn due_talks(&self, now: Timestamp) -> Vec<(ChatActivity, ChatTask, Timestamp)> {
        let state = self.lock();
        let mut due: Vec<_> = state
            .talks
            .iter()
            .flat_map(|(talk, entry)| entry.tasks(now).map(move |(at, task)| (at, talk, task, entry.last_at)))
            .filter(|(at, ..)| *at <= now)
            .collect();
        due.sort_by(|a, b| (a.0, a.2, &a.1.chat).cmp(&(b.0, b.2, &b.1.chat)));
        due.into_iter().map(|(_, talk, task, last_at)| (talk.clone(), task, last_at)).collect()
    }

    /// Records that a task was done, or had nothing to do, for messages up to `until`.
    pub(crate) fn did(&self, talk: &ChatActivity, task: ChatTask, until: Timestamp) {
        let mut state = self.lock();
        let Some(entry) = state.talks.get_mut(talk) else { return };
        // Messages since then count for the next time.
        let rest = usize::from(entry.last_at > until);
        match task {
            ChatTask::Notes => entry.for_notes = rest,
            ChatTask::Extract => entry.for_extraction = rest,
            ChatTask::Diary => entry.for_diary = rest,
        }
    }

    /// Postpones the tasks of a conversation until `until`.
    pub(crate) fn put_off(&self, talk: &ChatActivity, now: Timestamp, until: Timestamp) {
        if let Some(entry) = self.lock().talks.get_mut(talk) {
            entry.not_before = Some(Due { noted: now, at: until });
        }
    }

    /// Returns the places whose time zone is to be asked for.
    pub(crate) fn homes_to_ask(&self, now: Timestamp) -> Vec<PersonaPlace> {
        let state = self.lock();
        let mut zone_due: Vec<PersonaPlace> = state
            .homes
            .iter()
            .filter(|(_, entry)| entry.zone_due.is_some_and(|zone_due| zone_due.at(now) <= now))
            .map(|(home, _)| home.clone())
            .collect();
        zone_due.sort_by(|a, b| a.order().cmp(&b.order()));
        zone_due
    }

    /// Records that the time zone was asked for at `now`, and when to ask again, if that failed.
    pub(crate) fn note_zone_read(&self, home: &PersonaPlace, now: Timestamp, again: Option<Timestamp>) {
        if let Some(entry) = self.lock().homes.get_mut(home) {
            entry.zone_read_at = Some(now);
            entry.zone_due = again.map(|at| Due { noted: now, at });
        }
    }

    /// Records that somebody wants check-ins in this chat.
    pub(crate) fn expect(&self, home: PersonaPlace, chat: ChatId, since: Timestamp) {
        let mut state = self.lock();
        let entry = state.homes.entry(home).or_insert_with(|| PlaceState::first(since));
        entry.wants_check_ins = true;
        entry.chat.get_or_insert(chat);
        entry.maintenance_due.get_or_insert_with(|| Due::after(since, MAINTENANCE_INTERVAL));
    }

    /// Records that nobody wants check-ins there any more.
    pub(crate) fn expect_no_more(&self, home: &PersonaPlace) {
        if let Some(entry) = self.lock().homes.get_mut(home) {
            entry.wants_check_ins = false;
        }
    }

    /// Returns when the next maintenance is due.
    pub(crate) fn next_maintenance(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().homes.values().filter_map(|home| Some(home.maintenance_due?.at(now))).min()
    }

    /// Returns the places whose maintenance is due, the longest overdue first.
    pub(crate) fn due_maintenance(&self, now: Timestamp) -> Vec<PersonaPlace> {
        let state = self.lock();
        let maintenance_due =
            state.homes.iter().filter_map(|(home, entry)| Some((entry.maintenance_due?.at(now), home)));
        let mut due: Vec<(Timestamp, &PersonaPlace)> = maintenance_due.filter(|(at, _)| *at <= now).collect();
        due.sort_by(|(a, x), (b, y)| (a, x.order()).cmp(&(b, y.order())));
        due.into_iter().map(|(_, home)| home.clone()).collect()
    }

    /// Schedules the next maintenance of a place, unless nothing was said there for so long that there is nothing to
    /// maintain.
    pub(crate) fn look_again(&self, home: &PersonaPlace, at: Timestamp, now: Timestamp) {
        if let Some(entry) = self.lock().homes.get_mut(home) {
            let is_over = after(entry.said, LOOK_BACK) <= now && !entry.wants_check_ins;
            entry.maintenance_due = (!is_over).then_some(Due { noted: now, at });
        }
    }

    /// Returns when something was last said in a place by `now`, to any persona.
    pub(crate) fn said_in(&self, platform: &PlatformId, place: &Scope, now: Timestamp) -> Option<Timestamp> {
        let state = self.lock();
        let there = state.homes.iter().filter(|(home, _)| home.platform == *platform && home.place == *place);
        there.map(|(_, entry)| entry.said).filter(|said| *said <= now).max()
    }

    /// Returns what is known of a place, if anything is.
    pub(crate) fn place_activity(&self, home: &PersonaPlace) -> Option<PlaceActivity> {
        let state = self.lock();
        let entry = state.homes.get(home)?;
        Some(PlaceActivity { said: entry.said, wants_check_ins: entry.wants_check_ins })
    }

    /// Returns true if anything was heard in a place.
    pub(crate) fn knows(&self, home: &PersonaPlace) -> bool {
        self.lock().homes.contains_key(home)
    }

    /// Returns the place's chat with the newest message.
    pub(crate) fn open_chat(&self, home: &PersonaPlace) -> Option<ChatId> {
        self.lock().homes.get(home).and_then(|entry| entry.chat.clone())
    }
}

impl PersonaPlace {
    /// A sort key that is the same in every run.
    fn order(&self) -> (&str, &Scope, &str) {
        (self.platform.as_str(), &self.place, self.persona.as_str())
    }
}

impl PlaceState {
    fn first(said: Timestamp) -> Self {
        Self { said, chat: None, zone_due: None, zone_read_at: None, maintenance_due: None, wants_check_ins: false }
    }
}

impl TalkState {
    fn tasks(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, ChatTask)> + use<> {
        let garden = &self.garden;
        let enough = |count: usize, least: usize| least > 0 && count >= least;
        let silent_for = |wait| Due::after(self.last_at, wait).at(now);
        let notes_every = self.notes_every.filter(|_| garden.notes_every > 0).unwrap_or(garden.notes_every);
        let notes = enough(self.for_notes, notes_every).then(|| silent_for(PAUSE));
        let diary = enough(self.for_diary, garden.diary_messages).then(|| silent_for(garden.rest));
        let extract = enough(self.for_extraction, garden.extract_every).then(|| silent_for(garden.rest));
        let not_before = self.not_before.map_or(Timestamp::MIN, |due| due.at(now));
        let tasks = [(notes, ChatTask::Notes), (extract, ChatTask::Extract), (diary, ChatTask::Diary)];
        tasks.into_iter().filter_map(move |(at, task)| at.map(|at| (at.max(not_before), task)))
    }
}

impl State {
    fn keep_within_bounds(&mut self) {
        if self.talks.len() > MAX_PLACES {
            let mut times: Vec<Timestamp> = self.talks.values().map(|entry| entry.last_at).collect();
            let (_, middle, _) = times.select_nth_unstable(MAX_PLACES / 2);
            let middle = *middle;
            self.talks.retain(|_, entry| entry.last_at >= middle);
        }
        if self.homes.len() > MAX_PLACES {
            let mut times: Vec<Timestamp> = self.homes.values().map(|entry| entry.said).collect();
            let (_, middle, _) = times.select_nth_unstable(MAX_PLACES / 2);
            let middle = *middle;
            self.homes.retain(|_, entry| entry.said >= middle || entry.wants_check_ins);
        }
    }
}

#[cfg(test)]
mod tests {
    use azera_config::Gardener;

    use super::*;

    fn heard(at: Timestamp) -> (PersonaPlace, HeardMessages) {
        let platform = PlatformId::new("sim").unwrap();
        let persona = PersonaId::new("azera").unwrap();
        let scope = Scope::Dm(azera_types::PersonId::new("ann").unwrap());
        let talk =
            ChatActivity { platform: platform.clone(), chat: ChatId::new("dm").unwrap(), persona: persona.clone() };
        let garden = Arc::new(Garden::from(&Gardener::default()));
        (
            PersonaPlace { platform, place: scope.clone(), persona },
            HeardMessages { talk, scope, at, notes_every: None, garden },
        )
    }

    #[test]
    fn working_notes_are_due_as_often_as_the_persona_wants() {
        let now: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
        let later = after(now, Duration::from_secs(86_400));
        let every = |notes_every| Arc::new(Garden::from(&Gardener { notes_every, ..Gardener::default() }));
        let garden = every(8);
        let due = |own: Option<usize>, messages: usize, garden: &Arc<Garden>| {
            let agenda = Agenda::default();
            agenda.hear(HeardMessages { notes_every: own, garden: garden.clone(), ..heard(now).1 }, messages, now);
            // The persona's wish survives messages that are heard again at a start.
            agenda.hear(HeardMessages { garden: garden.clone(), ..heard(now).1 }, 0, now);
            agenda.due_talks(later).iter().any(|(_, task, _)| *task == ChatTask::Notes)
        };
        assert!(!due(None, 7, &garden) && due(None, 8, &garden));
        assert!(!due(Some(2), 1, &garden) && due(Some(2), 2, &garden));
        assert!(!due(Some(12), 11, &garden) && due(Some(12), 12, &garden));
        assert!(!due(Some(0), 50, &garden), "it wants none");
        assert!(!due(Some(2), 50, &every(0)), "nobody gets any");
    }

    #[test]
    fn new_settings_of_a_place_apply_at_once_and_only_there() {
        let now: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
        let agenda = Agenda::default();
        let (home, said) = heard(now);
        agenda.hear(said, 3, now);
        let due = || agenda.due_talks(after(now, PAUSE)).iter().any(|(_, task, _)| *task == ChatTask::Notes);
        let often = Arc::new(Garden::from(&Gardener { notes_every: 3, ..Gardener::default() }));
        agenda.follow(&home.platform, &Scope::Realm(azera_types::RealmId::new("guild").unwrap()), &often);
        assert!(!due());
        agenda.follow(&home.platform, &home.place, &often);
        assert!(due());
    }

    #[test]
    fn times_set_by_a_clock_that_was_ahead_are_due_once_it_is_set_back() {
        let now: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
        let ahead: Timestamp = "2031-01-01T00:00:00Z".parse().unwrap();
        let agenda = Agenda::default();
        let (home, said) = heard(ahead);
        let talk = said.talk.clone();
        agenda.hear(said, 8, ahead);
        agenda.put_off(&talk, ahead, after(ahead, MAINTENANCE_INTERVAL));
        agenda.note_zone_read(&home, ahead, Some(after(ahead, ASK_AGAIN)));
        agenda.look_again(&home, after(ahead, MAINTENANCE_INTERVAL), ahead);
        let next = |now| (agenda.next_maintenance(now), agenda.next_due(now));
        assert!(agenda.due_maintenance(ahead).is_empty() && agenda.due_talks(ahead).is_empty());
        assert_eq!(next(ahead).0, Some(after(ahead, MAINTENANCE_INTERVAL)));
        // The clock is set right: nothing waits for five years.
        assert_eq!(next(now), (Some(now), Some(now)));
        assert_eq!(agenda.due_maintenance(now), std::slice::from_ref(&home));
        assert_eq!(agenda.homes_to_ask(now), std::slice::from_ref(&home));
        assert!(agenda.due_talks(now).iter().any(|(_, task, _)| *task == ChatTask::Notes));
        assert_eq!(agenda.said_in(&home.platform, &home.place, now), None);
        // From then on the hour counts again.
        agenda.look_again(&home, after(now, MAINTENANCE_INTERVAL), now);
        assert_eq!(agenda.due_maintenance(now), []);
        assert_eq!(agenda.due_maintenance(after(now, MAINTENANCE_INTERVAL)), std::slice::from_ref(&home));
        agenda.note_zone_read(&home, now, None);
        agenda.hear(heard(now).1, 1, now);
        assert_eq!(agenda.place_activity(&home).map(|activity| activity.said), Some(now));
        // The wrong clock had postponed it, too; the silence counts from the newest message.
        assert_eq!(agenda.next_due(now), Some(after(now, PAUSE)));
    }
}
