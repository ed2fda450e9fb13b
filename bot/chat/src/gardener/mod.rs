//! The Gardener: what a persona writes between messages, for itself and for those it talks with. It acts in quiet times
//! alone, asks the model in the background, and gives way at once to whoever wants an answer.
//!
//! Invariants:
//! - Whatever is written is made under the [`azera_memory::Right`] of the place it is for, and needs the right to every place that
//!   what it rests on comes from. It rests on messages; a piece also on posted dreams, by their posts; what is made of numbers
//!   rests on none, and is for those who are there when it is written.
//! - When a persona sleeps and when it reflects its mind decides (`azera_mind`), which it has one of for the public places of a
//!   realm, for each private chat and each direct message; what is due for single conversations, `agenda`, which is a hint in
//!   memory and may be lost.
//! - That something was written is noted with what was written, in one transaction: nothing is written twice.
//! - What has a flaw is not kept: no template stands in for a model that fails.

mod agenda;
mod chores;
mod claims;
mod compose;
mod curation;
mod diary;
mod flaws;
mod home;
mod material;
mod notes;
mod pieces;
mod prompts;
mod review;
mod schedule;
mod sift;
mod waking;
mod work;

use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use azera_mind::{Activity, Event, MindId, Mood};
use azera_types::{PlaceKind, Scope, Timestamp};
use jiff::tz::TimeZone;

use agenda::TalkTask;
pub(crate) use agenda::{Agenda, Heard, Home, Talk};
pub use claims::{Claim, asked_for_claim};
pub(crate) use pieces::Unpublished;
pub use prompts::{Writes, asked_to_write};
pub(crate) use schedule::{after, is_past};
pub(crate) use work::Work;

use crate::azera::{Azera, Inner};
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
pub struct Gardener {
    /// The core holds its jobs, so that a job that held it would keep it for ever.
    core: Weak<Inner>,
}

impl std::fmt::Debug for Gardener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gardener").finish_non_exhaustive()
    }
}

impl Gardener {
    /// The Gardener of a core; add it as a job.
    pub fn of(core: &Azera) -> Self {
        Self { core: std::sync::Arc::downgrade(&core.0) }
    }
}

#[async_trait]
impl Job for Gardener {
    fn name(&self) -> &'static str {
        "gardener"
    }

    fn next_due(&self) -> Option<Timestamp> {
        let core = self.core.upgrade()?;
        let now = core.clock.now();
        let chores = core.agenda.next_chore(now);
        let surprises = core.exchanges.next_due(now);
        let talks = core.agenda.next_due(now);
        let aways = core.hearth.get().and_then(|burning| burning.aways.next_look(now));
        talks.into_iter().chain(aways).chain(core.minds.next_due()).chain(chores).chain(surprises).min()
    }

    async fn run(&self, now: Timestamp) -> Result<(), JobError> {
        if let Some(core) = self.core.upgrade() {
            Azera(core).tend(now).await;
        }
        Ok(())
    }

    async fn finish(&self, _now: Timestamp) -> Result<(), JobError> {
        Ok(())
    }
}

impl Azera {
    /// Takes note of what was said before this start and may not be taken up yet.
    pub(crate) async fn hear_again(&self) -> Result<(), Error> {
        let platforms: Vec<_> = {
            let platforms = self.0.platforms.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            platforms.keys().cloned().collect()
        };
        let since = self.0.clock.now().checked_sub(azera_types::Span::new().seconds(LOOK_BACK.as_secs() as i64));
        let since = since.unwrap_or(Timestamp::MIN);
        for platform in platforms {
            self.hear_who_wants_check_ins(&platform).await?;
            let of = platform.clone();
            for stirred in self.blocking(move |memory| memory.stirred(&of, since)).await? {
                let talk = Talk { platform: platform.clone(), chat: stirred.chat, persona: stirred.persona };
                let garden = self.customs(&platform, &stirred.scope).await?.garden.clone();
                // How many messages there are the diary sees when it looks.
                let enough = garden.diary_messages;
                let heard = Heard { talk, scope: stirred.scope, at: stirred.last_at, notes_every: None, garden };
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
        self.look_after_aways(now).await;
        self.do_chores(now).await;
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
    async fn act_on(&self, home: &Home, activity: Activity, now: Timestamp) -> Event {
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
    async fn write_if_it_may(&self, home: &Home, activity: Activity, now: Timestamp) -> Result<bool, Error> {
        let customs = self.customs(&home.platform, &home.place).await?;
        let (nature, garden) = (&customs.nature, &customs.garden);
        let (work, wanted) = match activity {
            Activity::Dream | Activity::Nap => (Work::Dream, garden.dreams),
            Activity::Reflection => (Work::Reflection, garden.reflections),
        };
        if !wanted {
            return Ok(true);
        }
        let night_is_over = activity == Activity::Dream && !nature.is_night(now);
        if night_is_over || schedule::within(garden.quiet, now, &nature.zone) {
            return Ok(false);
        }
        let _writing = self.0.writing.lock().await;
        // It may have been written meanwhile, because somebody asked for it or before a crash that came between what was written
        // and the mind's rest after it.
        let written = work.last(&self.tended(home).await?);
        let state = self.0.minds.state(&home.persona, &home.place, now);
        let rested = match work {
            Work::Dream => state.and_then(|state| state.last_dream),
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
    pub(crate) async fn reflect_now(&self, home: &Home) -> Result<Option<azera_memory::MemoryRow>, Error> {
        let _writing = self.0.writing.lock().await;
        let written = self.write_for(home, Work::Reflection, self.0.clock.now()).await?;
        if written.is_some()
            && let Some(id) = mind_id(&home.persona, &home.place)
        {
            self.ended(&id, Event::Done(Activity::Reflection)).await;
        }
        Ok(written)
    }

    /// Makes something up now, because somebody asked for it.
    pub(crate) async fn make_up_now(&self, home: &Home) -> Result<Option<azera_memory::MemoryRow>, Error> {
        let _writing = self.0.writing.lock().await;
        self.write_for(home, Work::Piece, self.0.clock.now()).await
    }

    /// The mood of a persona in a home, unless it is an even one.
    fn mood_of(&self, home: &Home, now: Timestamp) -> Option<Mood> {
        let state = self.0.minds.state(&home.persona, &home.place, now)?;
        Some(state.mood).filter(|mood| *mood != Mood::Calm)
    }

    fn home_of_mind(&self, id: &MindId) -> Option<Home> {
        let place = place_of(id)?;
        let platforms = self.0.platforms.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let home = |platform: &azera_types::PlatformId| Home {
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
                TalkTask::Diary => self.write_diary(&talk, now).await.map(drop),
                TalkTask::Notes => self.take_notes(&talk, now).await.map(drop),
                TalkTask::Sift => self.sift(&talk, now).await,
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
            let learned = async { self.acclimatise(&home, self.zone(&home).await?).await };
            let again = match learned.await {
                Ok(()) => None,
                Err(error) => {
                    tracing::warn!(%error, "it is not known what time it is somewhere");
                    Some(after(now, TRY_AGAIN))
                }
            };
            self.0.agenda.asked(&home, now, again);
        }
    }

    /// The time zone of a home, the configured one where nobody says or it is none.
    async fn zone(&self, home: &Home) -> Result<TimeZone, Error> {
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

    async fn tended(&self, home: &Home) -> Result<azera_memory::Tended, Error> {
        let home = home.clone();
        self.blocking(move |memory| memory.tended(&home.platform, &home.place, &home.persona)).await
    }

    /// What was done for a home, if the model was asked so often now and something was written.
    async fn tended_then(
        &self,
        home: &Home,
        written: Option<Work>,
        now: Timestamp,
        asked: u32,
    ) -> Result<azera_memory::Tended, Error> {
        let day = schedule::day(now, &self.customs(&home.platform, &home.place).await?.nature.zone);
        let mut tended = self.tended(home).await?;
        if let Some(work) = written {
            work.did(&mut tended, now);
        }
        tended.asked = if tended.day == day { tended.asked + asked } else { asked };
        tended.day = day;
        Ok(tended)
    }

    /// Notes how often the model was asked, unless the place is forgotten by now.
    async fn note_asked(&self, home: &Home, now: Timestamp, asked: u32) -> Result<(), Error> {
        if asked == 0 {
            return Ok(());
        }
        let tended = self.tended_then(home, None, now, asked).await?;
        self.set_tended(home, tended, now).await
    }

    /// How often the model may still be asked today.
    async fn budget(&self, home: &Home, now: Timestamp) -> Result<u32, Error> {
        self.left_of(home, now, |per_day| per_day).await
    }

    /// The same for what is written about a single conversation, which leaves something for the night.
    async fn budget_by_day(&self, home: &Home, now: Timestamp) -> Result<u32, Error> {
        self.left_of(home, now, |per_day| per_day.div_ceil(2)).await
    }

    async fn left_of(&self, home: &Home, now: Timestamp, part: impl FnOnce(u32) -> u32) -> Result<u32, Error> {
        let tended = self.tended(home).await?;
        let customs = self.customs(&home.platform, &home.place).await?;
        let today = tended.day == schedule::day(now, &customs.nature.zone);
        Ok(part(customs.garden.per_day).saturating_sub(if today { tended.asked } else { 0 }))
    }
}
