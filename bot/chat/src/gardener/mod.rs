//! The Gardener: what a persona writes between messages, for itself and for those it talks with. It acts in quiet times
//! alone, asks the model in the background, and gives way at once to whoever wants an answer.
//!
//! Invariants:
//! - Whatever is written is made under the [`azera_memory::Right`] of the place it is for, rests on messages, and needs the
//!   right to every place these come from.
//! - Whether something is due is decided in `schedule` for realms and in `agenda` for conversations, by what the record
//!   holds: the agenda in memory is a hint and may be lost.
//! - What has a flaw is not kept: no template stands in for a model that fails.

mod agenda;
mod compose;
mod diary;
mod flaws;
mod home;
mod material;
mod notes;
mod prompts;
mod schedule;

use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use azera_types::{Place, PlaceKind, Scope, Timestamp};
use jiff::tz::TimeZone;

use agenda::TalkTask;
pub(crate) use agenda::{Agenda, Heard, Home, Talk};
use schedule::{Activity, after};

use crate::azera::{Azera, Inner};
use crate::error::Error;
use crate::jobs::{Job, JobError};

/// Time after which something that failed for a reason that may pass is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(10 * 60);

/// How often a look is taken at what is due for realms: once for each kind.
const ROUNDS: usize = 2;

/// How far back a start looks for conversations that nobody took up.
const LOOK_BACK: Duration = Duration::from_secs(2 * 24 * 3_600);

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
        core.agenda.next_due(&core.config.garden)
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

/// The realm, room or person that a place belongs to.
pub(crate) fn home_of(place: &Place) -> Scope {
    match &place.kind {
        PlaceKind::Private { realm: Some(realm), .. } => Scope::Realm(realm.clone()),
        PlaceKind::Public(_) | PlaceKind::Private { .. } | PlaceKind::Dm(_) => place.scope(),
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
            let of = platform.clone();
            for stirred in self.blocking(move |memory| memory.stirred(&of, since)).await? {
                let talk = Talk { platform: platform.clone(), chat: stirred.chat, persona: stirred.persona };
                // How many messages there are the diary sees when it looks.
                let enough = self.0.config.garden.diary_messages;
                let home = stirred.scope.clone();
                self.0.agenda.hear(Heard { talk, scope: stirred.scope, home, at: stirred.last_at }, enough);
            }
        }
        Ok(())
    }

    /// Does what is due.
    async fn tend(&self, now: Timestamp) {
        self.tend_talks(now).await;
        self.look_at_homes(now).await;
        // Behind one thing that is due there may be another.
        for _ in 0..ROUNDS {
            self.tend_homes(now).await;
            self.look_at_homes(now).await;
        }
    }

    async fn tend_homes(&self, now: Timestamp) {
        for (home, activity) in self.0.agenda.due_homes(now) {
            if self.0.stopping.is_cancelled() {
                return;
            }
            let done = match activity {
                Activity::Dream => self.dream(&home, now, None).await.map(drop),
                Activity::Reflect => self.reflect(&home, now, None).await.map(drop),
            };
            match done {
                Ok(()) => self.0.agenda.look_again(&home, now),
                Err(error) if error.is_transient() => {
                    tracing::info!(%error, "what was to be written waits");
                    self.0.agenda.look_again(&home, after(now, TRY_AGAIN));
                }
                Err(error) => {
                    tracing::warn!(persona = %home.persona, %error, "nothing could be written");
                    self.note_tried(&home, activity, now).await;
                }
            }
        }
    }

    async fn tend_talks(&self, now: Timestamp) {
        for (talk, task, until) in self.0.agenda.due_talks(now, &self.0.config.garden) {
            if self.0.stopping.is_cancelled() {
                return;
            }
            let done = match task {
                TalkTask::Diary => self.write_diary(&talk, now).await.map(drop),
                TalkTask::Notes => self.take_notes(&talk, now).await.map(drop),
            };
            match done {
                Ok(()) => self.0.agenda.did(&talk, task, until),
                Err(error) if error.is_transient() => {
                    tracing::info!(%error, "what was to be written waits");
                    self.0.agenda.put_off(&talk, after(now, TRY_AGAIN));
                }
                Err(error) => {
                    tracing::warn!(chat = %talk.chat, %error, "nothing could be written");
                    self.0.agenda.did(&talk, task, until);
                }
            }
        }
    }

    /// Works out when something is due for the homes in which something was said.
    async fn look_at_homes(&self, now: Timestamp) {
        for (home, said) in self.0.agenda.unknown_homes(now) {
            let due = async {
                let (zone, tended) = (self.zone(&home).await?, self.tended(&home).await?);
                Ok::<_, Error>(schedule::next_due(said, &tended, &self.0.config.garden, &zone))
            };
            match due.await {
                Ok(due) => self.0.agenda.settle(&home, said, due),
                Err(error) => {
                    tracing::warn!(%error, "it is not known what is due");
                    self.0.agenda.look_again(&home, after(now, TRY_AGAIN));
                }
            }
        }
    }

    /// The time zone of a home, the configured one where nobody says or it is none.
    async fn zone(&self, home: &Home) -> Result<TimeZone, Error> {
        let named = match (&home.place, self.platform(&home.platform)) {
            (Scope::Realm(realm), Ok(platform)) => platform.realm(realm).await?.time_zone,
            _ => None,
        };
        let named = named.and_then(|name| TimeZone::get(&name).ok());
        Ok(named.or_else(|| TimeZone::get(&self.0.config.garden.time_zone).ok()).unwrap_or(TimeZone::UTC))
    }

    async fn tended(&self, home: &Home) -> Result<azera_memory::Tended, Error> {
        let home = home.clone();
        self.blocking(move |memory| memory.tended(&home.platform, &home.place, &home.persona)).await
    }

    /// Notes that something was tried, whatever came of it, and how often the model was asked.
    async fn note_done(
        &self,
        home: &Home,
        activity: Option<Activity>,
        now: Timestamp,
        asked: u32,
    ) -> Result<(), Error> {
        let day = schedule::day(now, &self.zone(home).await?);
        let mut tended = self.tended(home).await?;
        match activity {
            Some(Activity::Dream) => tended.dreamt = Some(now),
            Some(Activity::Reflect) => tended.reflected = Some(now),
            None => {}
        }
        tended.asked = if tended.day == day { tended.asked + asked } else { asked };
        tended.day = day;
        let home = home.clone();
        self.blocking(move |memory| memory.set_tended(&home.platform, &home.place, &home.persona, &tended)).await
    }

    async fn note_tried(&self, home: &Home, activity: Activity, now: Timestamp) {
        if let Err(error) = self.note_done(home, Some(activity), now, 0).await {
            tracing::warn!(%error, "that something was tried cannot be noted");
        }
        self.0.agenda.look_again(home, now);
    }

    /// How often the model may still be asked today.
    async fn budget(&self, home: &Home, now: Timestamp) -> Result<u32, Error> {
        let tended = self.tended(home).await?;
        let today = tended.day == schedule::day(now, &self.zone(home).await?);
        Ok(self.0.config.garden.per_day.saturating_sub(if today { tended.asked } else { 0 }))
    }
}
