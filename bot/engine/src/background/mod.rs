//! The Gardener: what a persona writes between messages, for itself and for those it talks with. It acts in quiet times
//! alone, asks the model in the background, and gives way at once to whoever wants an answer.
//!
//! Invariants:
//! - Whatever is written is made under the [`azera_memory::ReadScope`] of the place it is for, and needs the right to every place that
//!   what it rests on comes from. It rests on messages; a piece also on posted dreams, by their posts; what is made of numbers
//!   rests on none, and is for those who are there when it is written.
//! - When a persona sleeps and when it reflects its mind decides (`azera_affect`), which it has one of for the public places of a
//!   realm, for each private chat and each direct message; what is due for single conversations, `agenda`, which is a hint in
//!   memory and may be lost.
//! - That something was written is noted with what was written, in one transaction: nothing is written twice.
//! - What has a flaw is not kept: no template stands in for a model that fails.

mod agenda;
mod check_ins;
mod claims;
mod curation;
mod diary;
mod draft;
mod extract;
mod flaws;
mod maintenance;
mod material;
mod notes;
mod pieces;
mod prompts;
mod review;
mod schedule;
mod work;
mod write;

use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use azera_affect::{Activity, Event, MindId, Mood};
use azera_types::{PlaceKind, Scope, Timestamp};
use jiff::tz::TimeZone;

use agenda::ChatTask;
pub(crate) use agenda::{Agenda, ChatActivity, HeardMessages, PersonaPlace};
pub use claims::{Claim, claim_prompt};
pub(crate) use pieces::Unpublished;
pub use prompts::{WritingKind, writing_prompt};
pub(crate) use schedule::{after, is_past};
pub(crate) use work::WritingTask;

use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::jobs::{Job, JobError};
use crate::minds::{mind_id, place_of};

/// Time after which something that failed for a reason that may pass is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(10 * 60);

/// Time within which something written was written for the same reason.
const JUST_NOW: Duration = Duration::from_secs(6 * 3_600);

/// How far back a start looks for conversations that nobody took up, and for places whose minds may want something.
const LOOK_BACK: Duration = Duration::from_secs(14 * 24 * 3_600);

/// The job of the Gardener.
pub struct BackgroundWriter {
    /// The core holds its jobs, so that a job that held it would keep it for ever.
    core: Weak<Inner>,
}

impl std::fmt::Debug for BackgroundWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackgroundWriter").finish_non_exhaustive()
    }
}

impl BackgroundWriter {
    /// The Gardener of a core; add it as a job.
    pub fn of(core: &Engine) -> Self {
        Self { core: std::sync::Arc::downgrade(&core.0) }
    }
}

#[async_trait]
impl Job for BackgroundWriter {
    fn name(&self) -> &'static str {
        "gardener"
    }

    fn next_due(&self) -> Option<Timestamp> {
        let core = self.core.upgrade()?;
        let now = core.clock.now();
        let chores = core.agenda.next_maintenance(now);
        let surprises = core.exchanges.next_due(now);
        let talks = core.agenda.next_due(now);
        let offloaded_jobs = core.hearth.get().and_then(|burning| burning.offloaded_jobs.next_look(now));
        talks.into_iter().chain(offloaded_jobs).chain(core.minds.next_due()).chain(chores).chain(surprises).min()
    }

    async fn run(&self, now: Timestamp) -> Result<(), JobError> {
        if let Some(core) = self.core.upgrade() {
            Engine(core).tend(now).await;
        }
        Ok(())
    }

    async fn finish(&self, _now: Timestamp) -> Result<(), JobError> {
        Ok(())
    }
}

impl Engine {
    /// Takes note of what was said before this start and may not be taken up yet.
    pub(crate) async fn hear_again(&self) -> Result<(), Error> {
        let platforms: Vec<_> = {
            let platforms = self.0.platforms.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            platforms.keys().cloned().collect()
        };
        let since = self.0.clock.now().checked_sub(azera_types::Span::new().seconds(LOOK_BACK.as_secs() as i64));
        let since = since.unwrap_or(Timestamp::MIN);
        for platform in platforms {
            self.load_check_ins(&platform).await?;
            let of = platform.clone();
            for active in self.blocking(move |memory| memory.active_chats(&of, since)).await? {
                let talk = ChatActivity { platform: platform.clone(), chat: active.chat, persona: active.persona };
                let garden = self.overrides(&platform, &active.scope).await?.garden.clone();
                // How many messages there are the diary sees when it looks.
                let enough = garden.diary_messages;
                let heard = HeardMessages { talk, scope: active.scope, at: active.last_at, notes_every: None, garden };
                self.0.agenda.hear(heard, enough, self.0.clock.now());
            }
        }
        Ok(())
    }

    /// Does what is due.
    async fn tend(&self, now: Timestamp) {
        self.measure_surprise(now).await;
        self.tend_talks(now).await;
        self.ask_for_time_zones(now).await;
        self.tend_minds(now).await;
        self.poll_offloaded(now).await;
        self.run_maintenance(now).await;
    }

    async fn tend_minds(&self, now: Timestamp) {
        for (id, activity) in self.0.minds.tick(now) {
            if self.0.stopping.is_cancelled() {
                return;
            }
            // Those before it may have taken long.
            let now = self.0.clock.now();
            let event = match self.home_of_mind(&id) {
                Some(home) => self.act_on(&home, activity, now).await,
                // Nobody said anything there for a long time: it sleeps, and there is nothing to tell.
                None => Event::Done(activity),
            };
            self.ended(&id, event).await;
        }
    }

    /// Does what a mind wants, and tells what came of it.
    async fn act_on(&self, home: &PersonaPlace, activity: Activity, now: Timestamp) -> Event {
        match self.write_if_it_may(home, activity, now).await {
            Ok(true) => Event::Done(activity),
            Ok(false) => Event::PutOff(activity),
            Err(error) if error.is_transient() => {
                tracing::info!(%error, "what was to be written waits");
                Event::PutOff(activity)
            }
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "nothing could be written");
                Event::Done(activity)
            }
        }
    }

    /// Whether what a mind wants is over: it was done, there was nothing to do, or nobody wants to hear of it.
    async fn write_if_it_may(&self, home: &PersonaPlace, activity: Activity, now: Timestamp) -> Result<bool, Error> {
        let overrides = self.overrides(&home.platform, &home.place).await?;
        let (params, garden) = (&overrides.params, &overrides.garden);
        let (work, wanted) = match activity {
            Activity::Dream | Activity::Nap => (WritingTask::Dream, garden.dreams),
            Activity::Reflection => (WritingTask::Reflection, garden.reflections),
        };
        if !wanted {
            return Ok(true);
        }
        let night_is_over = activity == Activity::Dream && !params.is_night(now);
        if night_is_over || schedule::within(garden.quiet, now, &params.zone) {
            return Ok(false);
        }
        let _writing = self.0.writing.lock().await;
        // It may have been written meanwhile, because somebody asked for it or before a crash that came between what was written
        // and the mind's rest after it.
        let written = work.last(&self.background_progress(home).await?);
        let state = self.0.minds.state(&home.persona, &home.place, now);
        let rested = match work {
            WritingTask::Dream => state.and_then(|state| state.last_dream),
            _ => state.and_then(|state| state.last_reflection),
        };
        let lately = |at: Timestamp| at <= now && now.duration_since(at).unsigned_abs() < JUST_NOW;
        if written.is_some_and(lately) && written > rested {
            return Ok(true);
        }
        if self.budget(home, now).await? == 0 {
            return Ok(false);
        }
        self.write_for(home, work, now).await?;
        Ok(true)
    }

    /// Writes an entry of the journal now, because somebody asked for it.
    pub(crate) async fn reflect_now(&self, home: &PersonaPlace) -> Result<Option<azera_memory::MemoryRow>, Error> {
        let _writing = self.0.writing.lock().await;
        let written = self.write_for(home, WritingTask::Reflection, self.0.clock.now()).await?;
        if written.is_some()
            && let Some(id) = mind_id(&home.persona, &home.place)
        {
            self.ended(&id, Event::Done(Activity::Reflection)).await;
        }
        Ok(written)
    }

    /// Makes something up now, because somebody asked for it.
    pub(crate) async fn make_up_now(&self, home: &PersonaPlace) -> Result<Option<azera_memory::MemoryRow>, Error> {
        let _writing = self.0.writing.lock().await;
        self.write_for(home, WritingTask::Piece, self.0.clock.now()).await
    }

    /// The mood of a persona in a home, unless it is an even one.
    fn mood_of(&self, home: &PersonaPlace, now: Timestamp) -> Option<Mood> {
        let state = self.0.minds.state(&home.persona, &home.place, now)?;
        Some(state.mood).filter(|mood| *mood != Mood::Calm)
    }

    fn home_of_mind(&self, id: &MindId) -> Option<PersonaPlace> {
        let place = place_of(id)?;
        let platforms = self.0.platforms.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let home = |platform: &azera_types::PlatformId| PersonaPlace {
            platform: platform.clone(),
            place: place.clone(),
            persona: id.persona.clone(),
        };
        platforms.keys().map(home).find(|home| self.0.agenda.knows(home))
    }

    async fn tend_talks(&self, now: Timestamp) {
        for (talk, task, until) in self.0.agenda.due_talks(now) {
            if self.0.stopping.is_cancelled() {
                return;
            }
            let done = match task {
                ChatTask::Diary => self.write_diary(&talk, now).await.map(drop),
                ChatTask::Notes => self.take_notes(&talk, now).await.map(drop),
                ChatTask::Extract => self.extract(&talk, now).await,
            };
            match done {
                Ok(()) => self.0.agenda.did(&talk, task, until),
                Err(error) if error.is_transient() => {
                    tracing::info!(%error, "what was to be written waits");
                    self.0.agenda.put_off(&talk, now, after(now, TRY_AGAIN));
                }
                Err(error) => {
                    tracing::warn!(chat = %talk.chat, %error, "nothing could be written");
                    self.0.agenda.did(&talk, task, until);
                }
            }
        }
    }

    /// Learns what time it is where something was said.
    async fn ask_for_time_zones(&self, now: Timestamp) {
        for home in self.0.agenda.homes_to_ask(now) {
            let learned = async { self.apply_overrides(&home, self.zone(&home).await?).await };
            let again = match learned.await {
                Ok(()) => None,
                Err(error) => {
                    tracing::warn!(%error, "it is not known what time it is somewhere");
                    Some(after(now, TRY_AGAIN))
                }
            };
            self.0.agenda.note_zone_read(&home, now, again);
        }
    }

    /// The time zone of a home, the configured one where nobody says or it is none.
    async fn zone(&self, home: &PersonaPlace) -> Result<TimeZone, Error> {
        let Ok(platform) = self.platform(&home.platform) else { return Ok(TimeZone::UTC) };
        let realm = match &home.place {
            Scope::Realm(realm) => Some(realm.clone()),
            Scope::Chat(chat) => match self.place_unasked(platform.as_ref(), chat).await?.map(|place| place.kind) {
                Some(PlaceKind::Private { realm, .. }) => realm,
                _ => None,
            },
            _ => None,
        };
        let named = match realm {
            Some(realm) => platform.realm(&realm).await?.time_zone,
            None => None,
        };
        let named = named.and_then(|name| TimeZone::get(&name).ok());
        Ok(named.or_else(|| TimeZone::get(&self.0.config.garden.time_zone).ok()).unwrap_or(TimeZone::UTC))
    }

    async fn background_progress(&self, home: &PersonaPlace) -> Result<azera_memory::BackgroundProgress, Error> {
        let home = home.clone();
        self.blocking(move |memory| memory.background_progress(&home.platform, &home.place, &home.persona)).await
    }

    /// What was done for a home, if the model was asked so often now and something was written.
    async fn tended_then(
        &self,
        home: &PersonaPlace,
        written: Option<WritingTask>,
        now: Timestamp,
        model_calls: u32,
    ) -> Result<azera_memory::BackgroundProgress, Error> {
        let day = schedule::day(now, &self.overrides(&home.platform, &home.place).await?.params.zone);
        let mut tended = self.background_progress(home).await?;
        if let Some(work) = written {
            work.did(&mut tended, now);
        }
        tended.model_calls = if tended.day == day { tended.model_calls + model_calls } else { model_calls };
        tended.day = day;
        Ok(tended)
    }

    /// Notes how often the model was asked, unless the place is forgotten by now.
    async fn note_model_calls(&self, home: &PersonaPlace, now: Timestamp, model_calls: u32) -> Result<(), Error> {
        if model_calls == 0 {
            return Ok(());
        }
        let tended = self.tended_then(home, None, now, model_calls).await?;
        self.set_background_progress(home, tended, now).await
    }

    /// How often the model may still be asked today.
    async fn budget(&self, home: &PersonaPlace, now: Timestamp) -> Result<u32, Error> {
        self.left_of(home, now, |per_day| per_day).await
    }

    /// The same for what is written about a single conversation, which leaves something for the night.
    async fn budget_by_day(&self, home: &PersonaPlace, now: Timestamp) -> Result<u32, Error> {
        self.left_of(home, now, |per_day| per_day.div_ceil(2)).await
    }

    async fn left_of(&self, home: &PersonaPlace, now: Timestamp, part: impl FnOnce(u32) -> u32) -> Result<u32, Error> {
        let tended = self.background_progress(home).await?;
        let overrides = self.overrides(&home.platform, &home.place).await?;
        let today = tended.day == schedule::day(now, &overrides.params.zone);
        Ok(part(overrides.garden.per_day).saturating_sub(if today { tended.model_calls } else { 0 }))
    }
}
