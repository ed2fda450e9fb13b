//! The Gardener: background jobs that write the diary, journal, dreams, notes and garden pieces, send check-ins, and
//! extract and curate memories. They run in quiet times, and give way at once to live chat. `agenda` says what is due
//! for chats, `maintenance` what is due for places, `work` and `write` produce the texts. Training itself is in
//! `hearth`. Begin with [`BackgroundWriter`].
//!
//! Invariants:
//! - Each text is written under the [`azera_memory::ReadScope`] of the place it is for, and its readers need the right
//!   to every scope that its sources come from. Its sources are messages; those of a garden piece also posts of dreams.
//!   A text made of numbers has no sources, and is for those who are there when it is written.
//! - A persona's mind decides when it sleeps and when it reflects (`azera_affect`). It has one mind for the public
//!   channels of a realm, one for each private chat and one for each direct message. `agenda` decides what is due for
//!   single conversations; it is a hint in memory and may be lost.
//! - A text and the record that it was written are stored in one transaction, so nothing is written twice.
//! - A text with a flaw is discarded; no template stands in for a model that fails.

mod agenda;
mod by_model;
mod check_ins;
mod claims;
mod curation;
mod diary;
mod draft;
mod extract;
mod flaws;
mod imported;
mod imported_reading;
mod imported_search;
mod items;
mod learnt_here;
mod maintenance;
mod material;
mod notes;
mod open_matters;
mod pieces;
mod prompts;
mod quote;
mod review;
mod schedule;
mod search;
mod transcript;
mod work;
mod write;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azera_affect::{Activity, Event, MindId, Mood};
use azera_types::Timestamp;

use agenda::ChatTask;
pub(crate) use agenda::{Agenda, ChatActivity, HeardMessages, PersonaPlace};
pub use by_model::ModelExtraction;
pub use claims::{Claim, claim_prompt};
pub use items::ItemCounts;
pub(crate) use pieces::Unpublished;
pub use prompts::{WritingKind, writing_prompt};
pub(crate) use schedule::{after, is_past};
pub(crate) use work::WritingTask;

use crate::access::AccessControl;
use crate::engine::Engine;
use crate::error::Error;
use crate::hearth::Learning;
use crate::indexing::Indexer;
use crate::jobs::{Job, JobError};
use crate::minds::MindService;
use crate::minds::mind_id;
use crate::services::Services;
use crate::surprise::SurpriseMeter;
use crate::turn::{Judge, Turns};

/// Writes, extracts and tidies while nobody waits.
pub(crate) struct Background {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) minds: Arc<MindService>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) judge: Arc<Judge>,
    pub(crate) surprise: Arc<SurpriseMeter>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) turns: Arc<Turns>,
    /// Held while a background job writes, so that nothing is written twice for the same reason.
    pub(crate) writing: tokio::sync::Mutex<()>,
    /// Imported chats that wait to be searched or compared.
    imports: imported::WaitingImports,
}

/// Wait before the retry of something that failed for a passing reason.
const TRY_AGAIN: Duration = Duration::from_secs(10 * 60);

/// Time after a text within which another one would be for the same reason.
const SAME_REASON: Duration = Duration::from_secs(6 * 3_600);

/// How far back a start looks for conversations that were not handled, and for places whose minds may want something.
const LOOK_BACK: Duration = Duration::from_secs(14 * 24 * 3_600);

/// The background job of the Gardener.
pub struct BackgroundWriter {
    background: Arc<Background>,
}

impl std::fmt::Debug for BackgroundWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackgroundWriter").finish_non_exhaustive()
    }
}

impl BackgroundWriter {
    /// Creates the Gardener of an engine; add it as a job.
    pub fn of(engine: &Engine) -> Self {
        Self { background: Arc::clone(&engine.0.background) }
    }
}

#[async_trait]
impl Job for BackgroundWriter {
    fn name(&self) -> &'static str {
        "gardener"
    }

    fn next_due(&self) -> Option<Timestamp> {
        let Background { services, minds, surprise, learning, .. } = self.background.as_ref();
        let now = services.clock.now();
        let chores = minds.agenda.next_maintenance(now);
        let surprises = surprise.exchanges.next_due(now);
        let talks = minds.agenda.next_due(now);
        let offloaded_jobs = learning.state.get().and_then(|hearth| hearth.offloaded_jobs.next_look(now));
        talks.into_iter().chain(offloaded_jobs).chain(minds.states.next_due()).chain(chores).chain(surprises).min()
    }

    async fn run(&self, now: Timestamp) -> Result<(), JobError> {
        self.background.run_due_work(now).await;
        Ok(())
    }

    async fn finish(&self, _now: Timestamp) -> Result<(), JobError> {
        Ok(())
    }
}

impl Background {
    /// Creates the component above the turns.
    pub(crate) fn over(turns: Arc<Turns>) -> Self {
        Self {
            services: Arc::clone(&turns.services),
            access: Arc::clone(&turns.access),
            minds: Arc::clone(&turns.minds),
            indexer: Arc::clone(&turns.indexer),
            judge: Arc::clone(&turns.judge),
            surprise: Arc::clone(&turns.surprise),
            learning: Arc::clone(&turns.learning),
            turns,
            writing: tokio::sync::Mutex::default(),
            imports: imported::WaitingImports::default(),
        }
    }

    /// Fills the agenda with what was said before this start and may not be handled yet.
    pub(crate) async fn hear_again(&self) -> Result<(), Error> {
        let since = self.services.clock.now().checked_sub(azera_types::Span::new().seconds(LOOK_BACK.as_secs() as i64));
        let since = since.unwrap_or(Timestamp::MIN);
        for platform in self.services.platform_ids() {
            self.load_check_ins(&platform).await?;
            let of = platform.clone();
            for active in self.services.blocking(move |memory| memory.progress().active_chats(&of, since)).await? {
                let talk = ChatActivity { platform: platform.clone(), chat: active.chat, persona: active.persona };
                let garden = self.minds.overrides(&platform, &active.scope).await?.garden.clone();
                // The diary counts the messages itself when its turn comes.
                let enough = garden.diary_messages;
                let heard = HeardMessages { talk, scope: active.scope, at: active.last_at, notes_every: None, garden };
                self.minds.agenda.hear(heard, enough, self.services.clock.now());
            }
        }
        Ok(())
    }

    async fn run_due_work(&self, now: Timestamp) {
        self.surprise.measure_surprise(now).await;
        self.run_chat_tasks(now).await;
        self.load_time_zones(now).await;
        self.run_activities(now).await;
        self.learning.poll_offloaded(now).await;
        self.learn_from_imports(now).await;
        self.run_maintenance(now).await;
    }

    async fn run_activities(&self, now: Timestamp) {
        for (id, activity) in self.minds.states.tick(now) {
            if self.services.stopping.is_cancelled() {
                return;
            }
            // The minds before this one may have taken long.
            let now = self.services.clock.now();
            let event = match self.home_of_mind(&id) {
                Some(home) => self.act_on(&home, activity, now).await,
                // Nobody has said anything there for long: the persona sleeps and has nothing to write.
                None => Event::Done(activity),
            };
            self.minds.ended(&id, event).await;
        }
    }

    /// Does what a mind wants, and returns the result as an event for it.
    async fn act_on(&self, home: &PersonaPlace, activity: Activity, now: Timestamp) -> Event {
        match self.settle_activity(home, activity, now).await {
            Ok(true) => Event::Done(activity),
            Ok(false) => Event::PutOff(activity),
            Err(error) if error.is_transient() => {
                tracing::info!(%error, "a text is postponed");
                Event::PutOff(activity)
            }
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "cannot write a text");
                Event::Done(activity)
            }
        }
    }

    /// Returns true if what a mind wants is settled: it was done, there was nothing to do, or it is turned off.
    async fn settle_activity(&self, home: &PersonaPlace, activity: Activity, now: Timestamp) -> Result<bool, Error> {
        let overrides = self.minds.overrides(&home.platform, &home.place).await?;
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
        let _writing = self.writing.lock().await;
        // It may have been written meanwhile, either because somebody asked for it, or before a crash that came between
        // the text and the mind's rest.
        let written = work.last(&self.background_progress(home).await?);
        let state = self.minds.states.state(&home.persona, &home.place, now);
        let rested = match work {
            WritingTask::Dream => state.and_then(|state| state.last_dream),
            _ => state.and_then(|state| state.last_reflection),
        };
        let lately = |at: Timestamp| at <= now && now.duration_since(at).unsigned_abs() < SAME_REASON;
        if written.is_some_and(lately) && written > rested {
            return Ok(true);
        }
        if self.budget(home, now).await? == 0 {
            return Ok(false);
        }
        self.write_for(home, work, now).await?;
        Ok(true)
    }

    /// Writes a journal entry now, because somebody asked for it.
    pub(crate) async fn reflect_now(&self, home: &PersonaPlace) -> Result<Option<azera_memory::MemoryRow>, Error> {
        let _writing = self.writing.lock().await;
        let written = self.write_for(home, WritingTask::Reflection, self.services.clock.now()).await?;
        if written.is_some() {
            self.minds.ended(&mind_id(&home.persona, &home.place), Event::Done(Activity::Reflection)).await;
        }
        Ok(written)
    }

    /// Writes a garden piece now, because somebody asked for it.
    pub(crate) async fn make_up_now(&self, home: &PersonaPlace) -> Result<Option<azera_memory::MemoryRow>, Error> {
        let _writing = self.writing.lock().await;
        self.write_for(home, WritingTask::Piece, self.services.clock.now()).await
    }

    /// Returns the mood of a persona in a place, unless it is calm.
    fn mood_of(&self, home: &PersonaPlace, now: Timestamp) -> Option<Mood> {
        let state = self.minds.states.state(&home.persona, &home.place, now)?;
        Some(state.mood).filter(|mood| *mood != Mood::Calm)
    }

    fn home_of_mind(&self, id: &MindId) -> Option<PersonaPlace> {
        let MindId { persona, place } = id;
        let home = |platform| PersonaPlace { platform, place: place.clone(), persona: persona.clone() };
        self.services.platform_ids().into_iter().map(home).find(|home| self.minds.agenda.knows(home))
    }

    async fn run_chat_tasks(&self, now: Timestamp) {
        for (talk, task, until) in self.minds.agenda.due_talks(now) {
            if self.services.stopping.is_cancelled() {
                return;
            }
            let done = match task {
                ChatTask::Diary => self.write_diary(&talk, now).await.map(drop),
                ChatTask::Notes => self.take_notes(&talk, now).await.map(drop),
                ChatTask::Extract => self.extract(&talk, now).await,
            };
            match done {
                Ok(()) => self.minds.agenda.did(&talk, task, until),
                Err(error) if error.is_transient() => {
                    tracing::info!(%error, "background work of a chat is postponed");
                    self.minds.agenda.put_off(&talk, now, after(now, TRY_AGAIN));
                }
                Err(error) => {
                    tracing::warn!(chat = %talk.chat, %error, "background work of a chat failed");
                    self.minds.agenda.did(&talk, task, until);
                }
            }
        }
    }

    /// Asks platforms for the time zones of places where something was said.
    async fn load_time_zones(&self, now: Timestamp) {
        for home in self.minds.agenda.homes_to_ask(now) {
            let learned = async {
                let zone = self.minds.ask_time_zone(&self.access, &home.platform, &home.place).await?;
                self.minds.apply_overrides(&home, zone).await
            };
            let again = match learned.await {
                Ok(()) => None,
                Err(error) => {
                    tracing::warn!(%error, "cannot get the time zone of a place");
                    Some(after(now, TRY_AGAIN))
                }
            };
            self.minds.agenda.note_zone_read(&home, now, again);
        }
    }

    async fn background_progress(&self, home: &PersonaPlace) -> Result<azera_memory::BackgroundProgress, Error> {
        let home = home.clone();
        self.services.blocking(move |memory| memory.progress().get(&home.platform, &home.place, &home.persona)).await
    }

    /// Returns the progress of background work in a place after `model_calls` more requests and, perhaps, a new text.
    async fn progress_after(
        &self,
        home: &PersonaPlace,
        written: Option<WritingTask>,
        now: Timestamp,
        model_calls: u32,
    ) -> Result<azera_memory::BackgroundProgress, Error> {
        let day = schedule::day(now, &self.minds.overrides(&home.platform, &home.place).await?.params.zone);
        let mut progress = self.background_progress(home).await?;
        if let Some(work) = written {
            work.did(&mut progress, now);
        }
        progress.model_calls = if progress.day == day { progress.model_calls + model_calls } else { model_calls };
        progress.day = day;
        Ok(progress)
    }

    /// Records requests to the model, unless the place was forgotten meanwhile.
    async fn note_model_calls(&self, home: &PersonaPlace, now: Timestamp, model_calls: u32) -> Result<(), Error> {
        if model_calls == 0 {
            return Ok(());
        }
        let progress = self.progress_after(home, None, now, model_calls).await?;
        self.set_background_progress(home, progress, now).await
    }

    /// Returns how many more requests to the model are allowed today.
    async fn budget(&self, home: &PersonaPlace, now: Timestamp) -> Result<u32, Error> {
        self.calls_left(home, now, |per_day| per_day).await
    }

    /// Returns how many more requests are allowed today for single conversations, which leave half for the night.
    async fn budget_by_day(&self, home: &PersonaPlace, now: Timestamp) -> Result<u32, Error> {
        self.calls_left(home, now, |per_day| per_day.div_ceil(2)).await
    }

    async fn calls_left(
        &self,
        home: &PersonaPlace,
        now: Timestamp,
        part: impl FnOnce(u32) -> u32,
    ) -> Result<u32, Error> {
        let progress = self.background_progress(home).await?;
        let overrides = self.minds.overrides(&home.platform, &home.place).await?;
        let today = progress.day == schedule::day(now, &overrides.params.zone);
        Ok(part(overrides.garden.per_day).saturating_sub(if today { progress.model_calls } else { 0 }))
    }
}
