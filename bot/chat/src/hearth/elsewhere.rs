//! Learning on another machine: a course is laid out for it, and what comes back is examined as if it had been learnt here.
//!
//! What is away rests on what it was made of, like what is kept: it goes with it, and what comes back later is not taken in.

use std::fs;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use azera_memory::Roots;
use azera_types::Timestamp;

use super::away::{Away, Back, COURSE, Courier, LEARNT, Unreceived};
use super::choose::School;
use super::kept::Learnt;
use super::serve::{Entry, Outcome};
use super::{Burning, Candidate, Course, LearnError};
use crate::azera::Azera;
use crate::error::Error;
use crate::gardener::{Home, is_past};
use crate::generate::any_seed;

/// How long is waited for something of use to come back.
const PATIENCE: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How long what came back must have been of no use before it is given up for that.
const SECOND_THOUGHTS: Duration = Duration::from_secs(24 * 3_600);

impl Azera {
    /// Lays out a course for another machine.
    pub(super) async fn send_away(
        &self,
        burning: &Arc<Burning>,
        (home, school): (&Home, &School),
        courier: Arc<dyn Courier>,
        course: Course,
        (learnt, holds): (Learnt, Roots),
    ) -> Result<(), Error> {
        let (number, at, exchanges) = (learnt.number, learnt.at, course.lessons.len());
        let (name, chat) = (format!("{:08x}{:08x}", any_seed(), any_seed()), school.chat.clone());
        let away = Away { name, chat, learnt, holds, beside: school.serving.clone(), exchanges };
        let entry = |outcome| Entry::new(number, at, exchanges, outcome);
        // Before it is kept: from then on forgetting may end it, and notes that.
        self.note_lesson(burning, home, entry(Outcome::Away)).await?;
        let of = Arc::clone(burning);
        let sent = self
            .blocking(move |memory| {
                let file = of.aways.file(&away.name, COURSE);
                let sent = courier.send(&course, &away.learnt.ground, &file).and_then(|()| {
                    let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                    let failed = |error: &dyn std::fmt::Display| LearnError::Failed(error.to_string());
                    let founded = memory.stand(&away.holds).map_err(|error| failed(&error))?
                        && away.beside.as_ref().is_none_or(|beside| of.kept.has(beside));
                    if founded {
                        of.aways.keep(away.clone()).map_err(|error| failed(&error))?;
                    }
                    Ok(founded)
                });
                if !matches!(sent, Ok(true))
                    && let Err(error) = of.aways.remove_files(&away)
                {
                    tracing::error!(%error, "what is left of a course could not be removed");
                }
                Ok(sent)
            })
            .await?;
        match sent {
            Ok(true) => {
                tracing::info!(persona = %home.persona, exchanges, "a course waits to be learnt elsewhere: azera hearth pack");
                Ok(())
            }
            // Something that it rests on went meanwhile.
            Ok(false) => self.note_lesson(burning, home, entry(Outcome::Withdrawn)).await,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "a course for another machine could not be laid out");
                self.note_lesson(burning, home, entry(Outcome::Failed)).await
            }
        }
    }

    /// Whether nothing is learnt in a home because what serves there may not go to the other machine.
    pub(crate) async fn is_held_up(&self, burning: &Burning, home: &Home) -> Result<bool, Error> {
        match self.school(burning, home).await? {
            Some(school) => Ok(!self.may_be_sent(&school).await?),
            None => Ok(false),
        }
    }

    /// Whether what serves in a place may go where its courses go: a course goes on from it.
    pub(super) async fn may_be_sent(&self, school: &School) -> Result<bool, Error> {
        let Some(serving) = school.serving.clone().filter(|_| school.elsewhere) else { return Ok(true) };
        self.blocking(move |memory| memory.may_go_elsewhere(&serving.roots)).await
    }

    /// Looks, if it is time to, whether something came back or was waited for long enough. It goes on by itself.
    pub(crate) async fn look_after_aways(&self, now: Timestamp) {
        let Some(burning) = self.0.hearth.get() else { return };
        if burning.aways.next_look(now).is_none_or(|next| next > now) {
            return;
        }
        burning.aways.note_look(now);
        let Ok(held) = Arc::clone(&burning.learning).try_lock_owned() else { return };
        let arrived =
            burning.aways.all().into_iter().filter_map(|away| Some((self.arrival(burning, &away, now)?, away)));
        let arrived: Vec<(Arrival, Away)> = arrived.collect();
        if arrived.is_empty() {
            return;
        }
        let (core, burning) = (self.clone(), Arc::clone(burning));
        self.0.tasks.spawn(async move {
            let _held = held;
            for (arrival, away) in arrived {
                if core.0.stopping.is_cancelled() {
                    return;
                }
                let done = match arrival {
                    Arrival::Back { is_overdue } => core.take_in(&burning, &away, is_overdue).await,
                    Arrival::Lost => core.give_up(&burning, &away).await,
                };
                match done {
                    Ok(()) => {}
                    Err(error) if error.is_transient() => tracing::info!(%error, "what came back waits"),
                    Err(error) => {
                        tracing::warn!(persona = %away.learnt.persona, %error, "what came back could not be looked at");
                    }
                }
            }
        });
    }

    /// What is to be done about what is away; `None` if it is to be waited for.
    fn arrival(&self, burning: &Burning, away: &Away, now: Timestamp) -> Option<Arrival> {
        // What was laid out much later than now was laid out by a clock that was wrong.
        let is_overdue = now.duration_since(away.learnt.at).unsigned_abs() >= PATIENCE;
        if burning.aways.file(&away.name, LEARNT).exists() {
            Some(Arrival::Back { is_overdue })
        } else {
            is_overdue.then_some(Arrival::Lost)
        }
    }

    /// Examines what came back as if it had been learnt here; what could not be examined for too long is given up.
    async fn take_in(&self, burning: &Arc<Burning>, away: &Away, is_overdue: bool) -> Result<(), Error> {
        if self.is_talked_in(&away.home()).await? {
            return Ok(());
        }
        let examination = self.examine(burning, away).await;
        match examination {
            Ok(Examination::Over) => drop(self.wait_no_longer(burning, away).await),
            Ok(Examination::Useless) => self.give_up(burning, away).await?,
            Ok(Examination::NotNow) | Err(_) => {
                let now = self.0.clock.now();
                let of_no_use = burning.aways.of_no_use_since(away, now);
                if is_overdue && !self.0.stopping.is_cancelled() && is_past(of_no_use, SECOND_THOUGHTS, now) {
                    self.give_up(burning, away).await?;
                }
            }
        }
        examination.map(drop)
    }

    /// Whether somebody talks in a home, or did just now.
    async fn is_talked_in(&self, home: &Home) -> Result<bool, Error> {
        let Some(stirred) = self.0.agenda.stirred(home) else { return Ok(false) };
        let rest = self.customs(&home.platform, &home.place).await?.garden.rest;
        Ok(!is_past(stirred.said, rest, self.0.clock.now()))
    }

    async fn examine(&self, burning: &Arc<Burning>, away: &Away) -> Result<Examination, Error> {
        let home = away.home();
        let model = self.model().info().name.clone();
        let (Some(courier), Some(ground)) = (burning.hearth.courier.clone(), burning.ground(&model)) else {
            return Ok(Examination::NotNow);
        };
        // Another model answers at the moment: this may be of use again.
        if ground != away.learnt.ground {
            return Ok(Examination::NotNow);
        }
        // The chat spoken in last may be gone, and so may the one in which it was laid out.
        let school = match self.school(burning, &home).await? {
            None => self.school_in(burning, &home, away.chat.clone()).await?,
            school => school,
        };
        let Some(school) = school else { return Ok(Examination::NotNow) };
        let (of, names) = (Arc::clone(burning), away.name.clone());
        let received = self
            .blocking(move |_| {
                let (course, learnt) = (of.aways.file(&names, COURSE), of.aways.file(&names, LEARNT));
                let received = courier.receive(&course, &learnt, &of.kept.draft());
                if let Err(error) = &received {
                    let of_no_use = matches!(error, Unreceived::NotOfIt(_));
                    let removed = if of_no_use { fs::remove_file(&learnt) } else { Ok(()) };
                    let removing = azera_memory::Error::io("removing what is of no use");
                    of.kept.clear_draft().and(removed).map_err(removing)?;
                }
                Ok(received)
            })
            .await?;
        let Back { lessons, older, trained } = match received {
            Ok(back) => back,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "what came back from another machine is not taken in");
                let is_lost = matches!(error, Unreceived::NoCourse(_));
                return Ok(if is_lost { Examination::Useless } else { Examination::NotNow });
            }
        };
        let learnt = Learnt { id: trained.id.to_string(), at: self.0.clock.now(), ..away.learnt.clone() };
        // Kept, and broken off before that was noted.
        if burning.kept.has(&learnt) {
            let of = Arc::clone(burning);
            self.blocking(move |_| of.kept.clear_draft().map_err(azera_memory::Error::io("removing a draft"))).await?;
            return Ok(Examination::Over);
        }
        let candidate = Candidate { trained, learnt, beside: away.beside.clone(), away: Some(away) };
        let is_settled = self.keep_or_drop(burning, &home, &school, &candidate, &lessons, &older).await?;
        Ok(if is_settled { Examination::Over } else { Examination::NotNow })
    }

    /// Gives up on what nothing of use came back of, if it is still waited for.
    async fn give_up(&self, burning: &Arc<Burning>, away: &Away) -> Result<(), Error> {
        if !burning.aways.drop_one(away) {
            return Ok(());
        }
        self.wait_no_longer(burning, away).await;
        let (number, at, exchanges) = (away.learnt.number, self.0.clock.now(), away.exchanges);
        let entry = Entry::new(number, at, exchanges, Outcome::Lost);
        self.note_lesson(burning, &away.home(), entry).await
    }

    /// Whether nothing is left of what was away.
    pub(super) async fn wait_no_longer(&self, burning: &Arc<Burning>, away: &Away) -> bool {
        burning.aways.drop_one(away);
        let (of, gone) = (Arc::clone(burning), away.clone());
        let removed = tokio::task::spawn_blocking(move || of.aways.remove_files(&gone)).await;
        let is_gone = matches!(removed, Ok(Ok(())));
        if !is_gone {
            tracing::error!(course = %away.name, "a course for another machine could not be removed");
        }
        is_gone
    }
}

/// What is to be done about what is away.
enum Arrival {
    /// It came back.
    Back {
        /// It was waited for long enough: if it is of no use now, it is given up.
        is_overdue: bool,
    },
    /// It was waited for long enough, and is not back.
    Lost,
}

/// How the examination of what came back went.
enum Examination {
    /// It was kept or dropped, or what it rests on is gone.
    Over,
    /// It can't be now: another model answers, the key is gone, it was no such file, or something failed.
    NotNow,
    /// It can't ever be.
    Useless,
}
