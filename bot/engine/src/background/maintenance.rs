//! Maintenance: hourly background work in places where something was said: curation, reviews, garden pieces, training
//! and check-ins.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use azera_memory::BackgroundProgress;
use azera_types::{Scope, Timestamp};

use super::TRY_AGAIN;
use super::agenda::PersonaPlace;
use super::schedule::{self, after, before, days, is_past};
use super::work::{A_WEEK, WritingTask};
use crate::background::Background;
use crate::config::Garden;
use crate::error::Error;

/// Time between two rounds of maintenance in one place.
pub(super) const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(3_600);

/// Time that one round spends on due places before other background work gets its turn; a single place may take longer.
/// One place per round would be only 360 an hour, and there may be thousands.
const ROUND_LIMIT: Duration = Duration::from_secs(5);

/// Longest wait for live chat before the next place.
const MAX_YIELD: Duration = Duration::from_millis(100);

/// Time between two curations of a place.
const CURATE_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Time in which a report of failed training is retried: not every attempt gives a good text.
const RETRY_SETBACK_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Minimum number of messages by people for a garden piece; our own choice.
const MESSAGES_FOR_A_PIECE: usize = 8;

/// Minimum energy for a garden piece, which takes more than a reflection; our own choice.
const ENERGY_FOR_A_PIECE: f64 = 0.5;

/// Returns a number from 0 to 1 that is fixed for a place and differs between most places.
fn hash_fraction(home: &PersonaPlace) -> f64 {
    let mut hasher = std::hash::DefaultHasher::new();
    home.hash(&mut hasher);
    (hasher.finish() % 1_000) as f64 / 1_000.0
}

impl Background {
    /// Maintains the places that are due, as many as time allows.
    pub(super) async fn run_maintenance(&self, begun: Timestamp) {
        for home in self.minds.agenda.due_maintenance(begun) {
            // The places before this one may have taken long.
            let now = self.services.clock.now();
            if self.services.stopping.is_cancelled() || is_past(begun, ROUND_LIMIT, now) {
                return;
            }
            let again = match self.tend_home(&home, now).await {
                Ok(again) => again,
                Err(error) if error.is_transient() => {
                    tracing::info!(%error, "maintenance of a place is postponed");
                    after(now, TRY_AGAIN)
                }
                Err(error) => {
                    tracing::warn!(persona = %home.persona, %error, "cannot maintain a place");
                    after(now, MAINTENANCE_INTERVAL)
                }
            };
            self.minds.agenda.look_again(&home, again, now);
            self.services.foreground.until_quiet(MAX_YIELD).await;
        }
        self.indexer.find_themes_if_due().await;
    }

    /// Does what is due in a place. Returns when to maintain it again.
    async fn tend_home(&self, home: &PersonaPlace, now: Timestamp) -> Result<Timestamp, Error> {
        let again = after(now, MAINTENANCE_INTERVAL);
        let Some(activity) = self.minds.agenda.place_activity(home) else { return Ok(again) };
        let overrides = self.minds.overrides(&home.platform, &home.place).await?;
        let garden = &overrides.garden;
        let rested = after(activity.said, garden.rest);
        // A time later than now comes from a clock that was wrong.
        if activity.said <= now && rested > now {
            return Ok(rested);
        }
        let zone = &overrides.params.zone;
        // A persona that never answered there has no mind and nothing to write.
        if self.minds.states.state(&home.persona, &home.place, now).is_some() {
            let _writing = self.writing.lock().await;
            if garden.extract_every > 0 {
                self.curate_if_due(home, activity.said, now).await?;
            }
            if !schedule::within(garden.quiet, now, zone) {
                self.review_if_due(home, garden, activity.said, now).await?;
                self.make_up_if_due(home, garden, now).await?;
                self.report_setback_if_due(home, garden, now).await?;
                self.publish_if_due(home, &overrides, now).await?;
            }
            self.learning.learn_if_due(home, &overrides, now).await?;
        }
        if activity.wants_check_ins && schedule::within(garden.check_in_hours, now, zone) {
            let _writing = self.writing.lock().await;
            self.check_in_if_due(home, &overrides, now).await?;
        }
        Ok(again)
    }

    async fn curate_if_due(&self, home: &PersonaPlace, said: Timestamp, now: Timestamp) -> Result<(), Error> {
        let progress = self.background_progress(home).await?;
        let last = progress.curated;
        if last.is_some_and(|last| said <= last || !is_past(last, CURATE_EVERY, now)) {
            return Ok(());
        }
        // A message from before the last curation may have been marked after it.
        self.curate(home, last.map_or(Timestamp::MIN, |last| before(last, CURATE_EVERY))).await?;
        self.set_background_progress(home, BackgroundProgress { curated: Some(now), ..progress }, now).await
    }

    async fn review_if_due(
        &self,
        home: &PersonaPlace,
        garden: &Garden,
        said: Timestamp,
        now: Timestamp,
    ) -> Result<(), Error> {
        let progress = self.background_progress(home).await?;
        match progress.reviewed {
            // A direct message gets no reviews with numbers.
            _ if !garden.reviews || matches!(home.place, Scope::Dm(_)) => Ok(()),
            // The first week begins at a different hour in each place.
            None => {
                let begun = before(now, days(1).mul_f64(hash_fraction(home)));
                self.set_background_progress(home, BackgroundProgress { reviewed: Some(begun), ..progress }, now).await
            }
            Some(last) if said <= last || !is_past(last, A_WEEK, now) => Ok(()),
            Some(_) => self.write_unless_spent(home, WritingTask::Review, now).await,
        }
    }

    /// Writes a journal entry about failed training, if the persona keeps a journal there.
    async fn report_setback_if_due(&self, home: &PersonaPlace, garden: &Garden, now: Timestamp) -> Result<(), Error> {
        if !garden.reflections {
            return Ok(());
        }
        let Some((at, _)) = self.learning.setback(home).await? else { return Ok(()) };
        let reported_at = self.background_progress(home).await?.set_back;
        if reported_at.is_some_and(|reported_at| reported_at >= at) || self.budget_by_day(home, now).await? == 0 {
            return Ok(());
        }
        // Training may have failed after this round began.
        let now = now.max(at);
        if self.write_for(home, WritingTask::Setback, now).await?.is_none() && is_past(at, RETRY_SETBACK_FOR, now) {
            let mut progress = self.background_progress(home).await?;
            WritingTask::Setback.did(&mut progress, now);
            self.set_background_progress(home, progress, now).await?;
        }
        Ok(())
    }

    async fn make_up_if_due(&self, home: &PersonaPlace, garden: &Garden, now: Timestamp) -> Result<(), Error> {
        let every = garden.piece_days;
        let progress = self.background_progress(home).await?;
        if every == 0 || progress.created.is_some_and(|last| !is_past(last, days(every), now)) {
            return Ok(());
        }
        let rested = self.minds.states.state(&home.persona, &home.place, now);
        if rested.is_none_or(|state| state.energy < ENERGY_FOR_A_PIECE) {
            return Ok(());
        }
        let Some(at) = self.writing_context(home).await? else { return Ok(()) };
        let since = before(now, WritingTask::Piece.reach()).max(progress.created.unwrap_or(Timestamp::MIN));
        let recent = self
            .services
            .blocking(move |memory| memory.writings().recent(&at.read_scope, since, 4 * MESSAGES_FOR_A_PIECE))
            .await?;
        if recent.iter().filter(|row| row.author.person().is_some()).count() < MESSAGES_FOR_A_PIECE {
            return Ok(());
        }
        self.write_unless_spent(home, WritingTask::Piece, now).await
    }

    /// Writes a text if enough of the day's model calls is left. A failed attempt counts as one, because the next hour
    /// gives nothing new to write about.
    async fn write_unless_spent(&self, home: &PersonaPlace, work: WritingTask, now: Timestamp) -> Result<(), Error> {
        if self.budget_by_day(home, now).await? == 0 {
            return Ok(());
        }
        if self.write_for(home, work, now).await?.is_none() {
            let mut progress = self.background_progress(home).await?;
            work.did(&mut progress, now);
            self.set_background_progress(home, progress, now).await?;
        }
        Ok(())
    }

    /// Stores the progress of background work, unless the place was forgotten meanwhile.
    pub(super) async fn set_background_progress(
        &self,
        home: &PersonaPlace,
        progress: BackgroundProgress,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.minds.states.state(&home.persona, &home.place, now).is_none() {
            return Ok(());
        }
        let home = home.clone();
        self.services
            .blocking(move |memory| memory.progress().set(&home.platform, &home.place, &home.persona, &progress))
            .await
    }
}
