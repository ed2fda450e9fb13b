//! What the Gardener looks after from time to time where something was said: marks, pieces, how it is doing, people who want to be
//! looked in on.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use azera_memory::BackgroundProgress;
use azera_types::{Scope, Timestamp};

use super::TRY_AGAIN;
use super::agenda::PersonaPlace;
use super::schedule::{self, after, before, days, is_past};
use super::work::{A_WEEK, WritingTask};
use crate::config::Garden;
use crate::engine::Engine;
use crate::error::Error;

/// Time between two looks at a home.
pub(super) const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(3_600);

/// Time that one look at what is due takes for homes, one that takes longer by itself aside: then whatever else is due has its turn.
/// One home a look would be 360 an hour, and there may be thousands.
const CHORES_FOR: Duration = Duration::from_secs(5);

/// How long those who talk hold up the next home.
const GIVE_WAY: Duration = Duration::from_millis(100);

/// Time between two goes through what people told.
const CURATE_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Time in which it is tried again to tell of something that came to nothing: not every try finds words.
const REPORT_WITHIN: Duration = Duration::from_secs(24 * 3_600);

/// Messages of people without which there is nothing to make a piece of; a choice of our own.
const MESSAGES_FOR_A_PIECE: usize = 8;

/// Energy below which nothing is made up: it takes more than a reflection does. A choice of our own.
const ENERGY_FOR_A_PIECE: f64 = 0.5;

/// A share that is the same for a home each time, and another for most others.
fn share_of(home: &PersonaPlace) -> f64 {
    let mut hasher = std::hash::DefaultHasher::new();
    home.hash(&mut hasher);
    (hasher.finish() % 1_000) as f64 / 1_000.0
}

impl Engine {
    /// Looks after the homes that it is time for, as many as there is time for.
    pub(super) async fn run_maintenance(&self, begun: Timestamp) {
        for home in self.0.agenda.due_maintenance(begun) {
            // Those before it may have taken long.
            let now = self.0.clock.now();
            if self.0.stopping.is_cancelled() || is_past(begun, CHORES_FOR, now) {
                return;
            }
            let again = match self.tend_home(&home, now).await {
                Ok(again) => again,
                Err(error) if error.is_transient() => {
                    tracing::info!(%error, "what is to be looked after waits");
                    after(now, TRY_AGAIN)
                }
                Err(error) => {
                    tracing::warn!(persona = %home.persona, %error, "a place could not be looked after");
                    after(now, MAINTENANCE_INTERVAL)
                }
            };
            self.0.agenda.look_again(&home, again, now);
            self.0.foreground.until_quiet(GIVE_WAY).await;
        }
    }

    /// Does what is due in a home; gives when to look at it again.
    async fn tend_home(&self, home: &PersonaPlace, now: Timestamp) -> Result<Timestamp, Error> {
        let again = after(now, MAINTENANCE_INTERVAL);
        let Some(activity) = self.0.agenda.place_activity(home) else { return Ok(again) };
        let overrides = self.overrides(&home.platform, &home.place).await?;
        let garden = &overrides.garden;
        let rested = after(activity.said, garden.rest);
        // What was said later than now was noted by a clock that was wrong.
        if activity.said <= now && rested > now {
            return Ok(rested);
        }
        let zone = &overrides.params.zone;
        // Where the persona never answered it has no mind, and nothing to tell.
        if self.0.minds.state(&home.persona, &home.place, now).is_some() {
            let _writing = self.0.writing.lock().await;
            if garden.extract_every > 0 {
                self.curate_if_due(home, activity.said, now).await?;
            }
            if !schedule::within(garden.quiet, now, zone) {
                self.review_if_due(home, garden, activity.said, now).await?;
                self.make_up_if_due(home, garden, now).await?;
                self.tell_of_setback_if_due(home, garden, now).await?;
                self.publish_if_due(home, &overrides, now).await?;
            }
            self.learn_if_due(home, &overrides, now).await?;
        }
        if activity.wants_check_ins && schedule::within(garden.check_in_hours, now, zone) {
            let _writing = self.0.writing.lock().await;
            self.check_in_if_due(home, &overrides, now).await?;
        }
        Ok(again)
    }

    async fn curate_if_due(&self, home: &PersonaPlace, said: Timestamp, now: Timestamp) -> Result<(), Error> {
        let tended = self.background_progress(home).await?;
        let last = tended.curated;
        if last.is_some_and(|last| said <= last || !is_past(last, CURATE_EVERY, now)) {
            return Ok(());
        }
        // What was said before the last time may have been marked after it.
        self.curate(home, last.map_or(Timestamp::MIN, |last| before(last, CURATE_EVERY))).await?;
        self.set_background_progress(home, BackgroundProgress { curated: Some(now), ..tended }, now).await
    }

    async fn review_if_due(
        &self,
        home: &PersonaPlace,
        garden: &Garden,
        said: Timestamp,
        now: Timestamp,
    ) -> Result<(), Error> {
        let tended = self.background_progress(home).await?;
        match tended.reviewed {
            // What is between two people needs no numbers.
            _ if !garden.reviews || matches!(home.place, Scope::Dm(_)) => Ok(()),
            // The first week begins, for each place at another hour.
            None => {
                let begun = before(now, days(1).mul_f64(share_of(home)));
                self.set_background_progress(home, BackgroundProgress { reviewed: Some(begun), ..tended }, now).await
            }
            Some(last) if said <= last || !is_past(last, A_WEEK, now) => Ok(()),
            Some(_) => self.write_unless_spent(home, WritingTask::Review, now).await,
        }
    }

    /// Writes into the journal that something learnt came to nothing, where one is kept.
    async fn tell_of_setback_if_due(&self, home: &PersonaPlace, garden: &Garden, now: Timestamp) -> Result<(), Error> {
        if !garden.reflections {
            return Ok(());
        }
        let Some((at, _)) = self.setback(home).await? else { return Ok(()) };
        let stated = self.background_progress(home).await?.set_back;
        if stated.is_some_and(|stated| stated >= at) || self.budget_by_day(home, now).await? == 0 {
            return Ok(());
        }
        // It may have come to nothing since these chores began.
        let now = now.max(at);
        if self.write_for(home, WritingTask::Setback, now).await?.is_none() && is_past(at, REPORT_WITHIN, now) {
            let mut tended = self.background_progress(home).await?;
            WritingTask::Setback.did(&mut tended, now);
            self.set_background_progress(home, tended, now).await?;
        }
        Ok(())
    }

    async fn make_up_if_due(&self, home: &PersonaPlace, garden: &Garden, now: Timestamp) -> Result<(), Error> {
        let every = garden.piece_days;
        let tended = self.background_progress(home).await?;
        if every == 0 || tended.created.is_some_and(|last| !is_past(last, days(every), now)) {
            return Ok(());
        }
        let rested = self.0.minds.state(&home.persona, &home.place, now);
        if rested.is_none_or(|state| state.energy < ENERGY_FOR_A_PIECE) {
            return Ok(());
        }
        let Some(at) = self.writing_context(home).await? else { return Ok(()) };
        let since = before(now, WritingTask::Piece.reach()).max(tended.created.unwrap_or(Timestamp::MIN));
        let recent =
            self.blocking(move |memory| memory.recent(&at.read_scope, since, 4 * MESSAGES_FOR_A_PIECE)).await?;
        if recent.iter().filter(|row| row.author.person().is_some()).count() < MESSAGES_FOR_A_PIECE {
            return Ok(());
        }
        self.write_unless_spent(home, WritingTask::Piece, now).await
    }

    /// Writes something if enough of the day's asking is left. What came to nothing waits as long as what did come: the next hour
    /// has no more to tell.
    async fn write_unless_spent(&self, home: &PersonaPlace, work: WritingTask, now: Timestamp) -> Result<(), Error> {
        if self.budget_by_day(home, now).await? == 0 {
            return Ok(());
        }
        if self.write_for(home, work, now).await?.is_none() {
            let mut tended = self.background_progress(home).await?;
            work.did(&mut tended, now);
            self.set_background_progress(home, tended, now).await?;
        }
        Ok(())
    }

    /// Notes what was done, unless the place is forgotten by now.
    pub(super) async fn set_background_progress(
        &self,
        home: &PersonaPlace,
        tended: BackgroundProgress,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.0.minds.state(&home.persona, &home.place, now).is_none() {
            return Ok(());
        }
        let home = home.clone();
        self.blocking(move |memory| memory.set_background_progress(&home.platform, &home.place, &home.persona, &tended))
            .await
    }
}
