//! What was heard and is not taken up yet. A hint in memory: what it leads to is decided by the record.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_types::{ChatId, PersonaId, PlatformId, Scope, Timestamp};

use super::LOOK_BACK;
use super::maintenance::MAINTENANCE_INTERVAL;
use super::schedule::{after, is_past};
use crate::config::Garden;

/// Places of which something is known at most; with more, those in which least happened lately are let go.
const MAX_PLACES: usize = 20_000;

/// Time after which a platform is asked again what time it is somewhere.
const ASK_AGAIN: Duration = Duration::from_secs(24 * 3_600);

/// Silence after which working notes are made.
const PAUSE: Duration = Duration::from_secs(20);

/// The public places of a realm, a private chat or a direct message, and a persona in it: where it has one mind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PersonaPlace {
    pub(crate) platform: PlatformId,
    /// The place.
    pub(crate) place: Scope,
    pub(crate) persona: PersonaId,
}

/// A conversation of a persona.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ChatActivity {
    pub(crate) platform: PlatformId,
    pub(crate) chat: ChatId,
    pub(crate) persona: PersonaId,
}

/// What was said somewhere.
#[derive(Debug, Clone)]
pub(crate) struct HeardMessages {
    pub(crate) talk: ChatActivity,
    /// The place it was said in.
    pub(crate) scope: Scope,
    pub(crate) at: Timestamp,
    /// How many messages its persona wants between two notes, if it says so itself and was heard since the start.
    pub(crate) notes_every: Option<usize>,
    /// What is written there.
    pub(crate) garden: Arc<Garden>,
}

/// Something that is due at a time, which was noted earlier by the same clock. Once the clock shows a time before that, it was set
/// back, and by which of the two times to go is anybody's guess: then it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    noted: Timestamp,
    at: Timestamp,
}

impl Due {
    fn after(noted: Timestamp, wait: Duration) -> Self {
        Self { noted, at: after(noted, wait) }
    }

    /// When it is due, as it is now.
    fn at(self, now: Timestamp) -> Timestamp {
        if self.noted > now { now } else { self.at }
    }
}

#[derive(Debug, Clone)]
struct TalkState {
    /// The place it was heard in last, and what is written there.
    place: Scope,
    garden: Arc<Garden>,
    last_at: Timestamp,
    /// Messages since the diary was written.
    for_diary: usize,
    /// Messages since notes were made.
    for_notes: usize,
    /// How many its persona wants between two notes.
    notes_every: Option<usize>,
    /// Messages since what was said was looked through for what is worth keeping.
    for_extraction: usize,
    not_before: Option<Due>,
}

#[derive(Debug, Clone)]
struct HomeState {
    said: Timestamp,
    /// The chat of it in which something was said last.
    chat: Option<ChatId>,
    /// When its platform is to be asked what time it is there; `None` if it was lately.
    ask: Option<Due>,
    model_calls: Option<Timestamp>,
    /// When it is looked after next; `None` if nothing was said there for long.
    chores: Option<Due>,
    wants_check_ins: bool,
}

/// How it is in a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceActivity {
    /// When something was said there last.
    pub(crate) said: Timestamp,
    /// Whether somebody wants to be looked in on there.
    pub(crate) wants_check_ins: bool,
}

/// What is to be done in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChatTask {
    Notes,
    /// Looking for what is worth keeping, before the diary is written.
    Extract,
    Diary,
}

#[derive(Default)]
struct State {
    talks: HashMap<ChatActivity, TalkState>,
    homes: HashMap<PersonaPlace, HomeState>,
}

/// Everything that was heard.
#[derive(Default)]
pub(crate) struct Agenda(Mutex<State>);

impl Agenda {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many messages were heard, of which the newest may be older than now.
    pub(crate) fn hear(&self, heard: HeardMessages, messages: usize, now: Timestamp) {
        let HeardMessages { talk, scope: place, at, notes_every, garden } = heard;
        // What was heard later than now was so by a clock that was wrong.
        let at = at.min(now);
        let mut state = self.lock();
        let home =
            PersonaPlace { platform: talk.platform.clone(), place: place.clone(), persona: talk.persona.clone() };
        let held = state.homes.entry(home).or_insert_with(|| HomeState::first(at));
        held.said = if held.said > now { at } else { held.said.max(at) };
        held.chores.get_or_insert_with(|| Due::after(at, MAINTENANCE_INTERVAL));
        if held.model_calls.is_none_or(|model_calls| is_past(model_calls, ASK_AGAIN, at)) {
            held.ask.get_or_insert(Due { noted: at, at });
        }
        held.chat = Some(talk.chat.clone());
        let held = state.talks.entry(talk).or_insert_with(|| TalkState {
            place: place.clone(),
            garden: garden.clone(),
            last_at: at,
            for_diary: 0,
            for_notes: 0,
            notes_every,
            for_extraction: 0,
            not_before: None,
        });
        (held.place, held.garden) = (place, garden);
        held.last_at = if held.last_at > now { at } else { held.last_at.max(at) };
        held.for_diary += messages;
        held.for_notes += messages;
        held.notes_every = notes_every.or(held.notes_every);
        held.for_extraction += messages.max(1);
        state.keep_within_bounds();
    }

    /// What is written in a place is another from now on.
    pub(crate) fn follow(&self, platform: &PlatformId, place: &Scope, garden: &Arc<Garden>) {
        let mut state = self.lock();
        let there = state.talks.iter_mut().filter(|(talk, held)| talk.platform == *platform && held.place == *place);
        there.for_each(|(_, held)| held.garden = garden.clone());
    }

    /// When something is to be done next.
    pub(crate) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let state = self.lock();
        let talks = state.talks.values().flat_map(|talk| talk.tasks(now)).map(|(at, _)| at);
        let homes = state.homes.values().filter_map(|home| Some(home.ask?.at(now)));
        talks.chain(homes).min()
    }

    /// What is to be done in conversations by now, that of the longest silence first.
    pub(crate) fn due_talks(&self, now: Timestamp) -> Vec<(ChatActivity, ChatTask, Timestamp)> {
        let state = self.lock();
        let mut due: Vec<_> = state
            .talks
            .iter()
            .flat_map(|(talk, held)| held.tasks(now).map(move |(at, task)| (at, talk, task, held.last_at)))
            .filter(|(at, ..)| *at <= now)
            .collect();
        due.sort_by(|a, b| (a.0, a.2, &a.1.chat).cmp(&(b.0, b.2, &b.1.chat)));
        due.into_iter().map(|(_, talk, task, last_at)| (talk.clone(), task, last_at)).collect()
    }

    /// Something was done in a conversation with what was heard up to `until`, or there was nothing to do.
    pub(crate) fn did(&self, talk: &ChatActivity, task: ChatTask, until: Timestamp) {
        let mut state = self.lock();
        let Some(held) = state.talks.get_mut(talk) else { return };
        // What was said meanwhile counts for the next time.
        let rest = usize::from(held.last_at > until);
        match task {
            ChatTask::Notes => held.for_notes = rest,
            ChatTask::Extract => held.for_extraction = rest,
            ChatTask::Diary => held.for_diary = rest,
        }
    }

    /// Something could not be done in a conversation yet.
    pub(crate) fn put_off(&self, talk: &ChatActivity, now: Timestamp, until: Timestamp) {
        if let Some(held) = self.lock().talks.get_mut(talk) {
            held.not_before = Some(Due { noted: now, at: until });
        }
    }

    /// The homes in which it is to be asked what time it is there.
    pub(crate) fn homes_to_ask(&self, now: Timestamp) -> Vec<PersonaPlace> {
        let state = self.lock();
        let mut ask: Vec<PersonaPlace> = state
            .homes
            .iter()
            .filter(|(_, held)| held.ask.is_some_and(|ask| ask.at(now) <= now))
            .map(|(home, _)| home.clone())
            .collect();
        ask.sort_by(|a, b| a.order().cmp(&b.order()));
        ask
    }

    /// It was asked at `now`, or is to be asked again at `again`.
    pub(crate) fn note_zone_read(&self, home: &PersonaPlace, now: Timestamp, again: Option<Timestamp>) {
        if let Some(held) = self.lock().homes.get_mut(home) {
            held.model_calls = Some(now);
            held.ask = again.map(|at| Due { noted: now, at });
        }
    }

    /// Somebody wants to be looked in on, in this chat.
    pub(crate) fn expect(&self, home: PersonaPlace, chat: ChatId, since: Timestamp) {
        let mut state = self.lock();
        let held = state.homes.entry(home).or_insert_with(|| HomeState::first(since));
        held.wants_check_ins = true;
        held.chat.get_or_insert(chat);
        held.chores.get_or_insert_with(|| Due::after(since, MAINTENANCE_INTERVAL));
    }

    /// Nobody does there any more.
    pub(crate) fn expect_no_more(&self, home: &PersonaPlace) {
        if let Some(held) = self.lock().homes.get_mut(home) {
            held.wants_check_ins = false;
        }
    }

    /// When a home is to be looked after next.
    pub(crate) fn next_maintenance(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().homes.values().filter_map(|home| Some(home.chores?.at(now))).min()
    }

    /// The homes that are to be looked after by now, the one that has waited longest first.
    pub(crate) fn due_maintenance(&self, now: Timestamp) -> Vec<PersonaPlace> {
        let state = self.lock();
        let chores = state.homes.iter().filter_map(|(home, held)| Some((held.chores?.at(now), home)));
        let mut due: Vec<(Timestamp, &PersonaPlace)> = chores.filter(|(at, _)| *at <= now).collect();
        due.sort_by(|(a, x), (b, y)| (a, x.order()).cmp(&(b, y.order())));
        due.into_iter().map(|(_, home)| home.clone()).collect()
    }

    /// A home is to be looked after again then, unless nothing was said there for so long that there is nothing to look after.
    pub(crate) fn look_again(&self, home: &PersonaPlace, at: Timestamp, now: Timestamp) {
        if let Some(held) = self.lock().homes.get_mut(home) {
            let is_over = after(held.said, LOOK_BACK) <= now && !held.wants_check_ins;
            held.chores = (!is_over).then_some(Due { noted: now, at });
        }
    }

    /// When something was said last in a place by `now`, to whichever persona.
    pub(crate) fn said_in(&self, platform: &PlatformId, place: &Scope, now: Timestamp) -> Option<Timestamp> {
        let state = self.lock();
        let there = state.homes.iter().filter(|(home, _)| home.platform == *platform && home.place == *place);
        there.map(|(_, held)| held.said).filter(|said| *said <= now).max()
    }

    /// How it is in a home of which something is known.
    pub(crate) fn place_activity(&self, home: &PersonaPlace) -> Option<PlaceActivity> {
        let state = self.lock();
        let held = state.homes.get(home)?;
        Some(PlaceActivity { said: held.said, wants_check_ins: held.wants_check_ins })
    }

    /// Whether something was heard in a home.
    pub(crate) fn knows(&self, home: &PersonaPlace) -> bool {
        self.lock().homes.contains_key(home)
    }

    /// The chat of a home in which something was said last.
    pub(crate) fn open_chat(&self, home: &PersonaPlace) -> Option<ChatId> {
        self.lock().homes.get(home).and_then(|held| held.chat.clone())
    }
}

impl PersonaPlace {
    /// Homes in an order that is the same in every run.
    fn order(&self) -> (&str, &Scope, &str) {
        (self.platform.as_str(), &self.place, self.persona.as_str())
    }
}

impl HomeState {
    fn first(said: Timestamp) -> Self {
        Self { said, chat: None, ask: None, model_calls: None, chores: None, wants_check_ins: false }
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

#[cfg(test)]
mod tests {
    use azera_config::BackgroundWriter;

    use super::*;

    fn heard(at: Timestamp) -> (PersonaPlace, HeardMessages) {
        let platform = PlatformId::new("sim").unwrap();
        let persona = PersonaId::new("azera").unwrap();
        let scope = Scope::Dm(azera_types::PersonId::new("ann").unwrap());
        let talk =
            ChatActivity { platform: platform.clone(), chat: ChatId::new("dm").unwrap(), persona: persona.clone() };
        let garden = Arc::new(Garden::from(&BackgroundWriter::default()));
        (
            PersonaPlace { platform, place: scope.clone(), persona },
            HeardMessages { talk, scope, at, notes_every: None, garden },
        )
    }

    #[test]
    fn notes_are_made_as_often_as_the_persona_wants() {
        let now: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
        let later = after(now, Duration::from_secs(86_400));
        let every =
            |notes_every| Arc::new(Garden::from(&BackgroundWriter { notes_every, ..BackgroundWriter::default() }));
        let garden = every(8);
        let due = |own: Option<usize>, messages: usize, garden: &Arc<Garden>| {
            let agenda = Agenda::default();
            agenda.hear(HeardMessages { notes_every: own, garden: garden.clone(), ..heard(now).1 }, messages, now);
            // What it wants outlives what is heard again at a start.
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
    fn what_a_place_tunes_counts_at_once_and_there_alone() {
        let now: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
        let agenda = Agenda::default();
        let (home, said) = heard(now);
        agenda.hear(said, 3, now);
        let due = || agenda.due_talks(after(now, PAUSE)).iter().any(|(_, task, _)| *task == ChatTask::Notes);
        let often = Arc::new(Garden::from(&BackgroundWriter { notes_every: 3, ..BackgroundWriter::default() }));
        agenda.follow(&home.platform, &Scope::Realm(azera_types::RealmId::new("guild").unwrap()), &often);
        assert!(!due());
        agenda.follow(&home.platform, &home.place, &often);
        assert!(due());
    }

    #[test]
    fn what_was_noted_by_a_clock_that_was_ahead_is_due_once_it_is_set_back() {
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
        // The clock is set right: five years are not waited for.
        assert_eq!(next(now), (Some(now), Some(now)));
        assert_eq!(agenda.due_maintenance(now), std::slice::from_ref(&home));
        assert_eq!(agenda.homes_to_ask(now), std::slice::from_ref(&home));
        assert!(agenda.due_talks(now).iter().any(|(_, task, _)| *task == ChatTask::Notes));
        assert_eq!(agenda.said_in(&home.platform, &home.place, now), None);
        // From then on the hour is counted again.
        agenda.look_again(&home, after(now, MAINTENANCE_INTERVAL), now);
        assert_eq!(agenda.due_maintenance(now), []);
        assert_eq!(agenda.due_maintenance(after(now, MAINTENANCE_INTERVAL)), std::slice::from_ref(&home));
        agenda.note_zone_read(&home, now, None);
        agenda.hear(heard(now).1, 1, now);
        assert_eq!(agenda.place_activity(&home).map(|activity| activity.said), Some(now));
        // What was put off was so by the wrong clock, too; the silence counts from what was said now.
        assert_eq!(agenda.next_due(now), Some(after(now, PAUSE)));
    }
}
