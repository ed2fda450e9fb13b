//! What was learnt serves, is taken back, and is noted.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use azera_memory::{Memory, MindRow, Right, Roots};
use azera_model::Adapter;
use azera_types::{MessageId, PersonaId, PlatformId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use super::away::{Away, Aways};
use super::examine::{Change, Fault};
use super::kept::{Kept, Learnt};
use super::{Burning, Hearth};
use crate::azera::Azera;
use crate::error::Error;
use crate::gardener::Home;

/// Entries that are kept of what was learnt in a place.
const ENTRIES: usize = 50;

/// What came of learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It serves, or did.
    Kept,
    /// It was examined and dropped.
    Dropped(Fault),
    /// It could not be done.
    Failed,
    /// It is to be learnt on another machine.
    Away,
    /// Nothing of use came back from there in time.
    Lost,
    /// Too little was left to learn it again.
    TooLittle,
    /// Somebody took it back.
    RolledBack,
    /// Something that it rested on was forgotten or changed, or somebody does not want to be learnt from any more.
    Withdrawn,
}

/// That something was learnt, or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Number of the adapter it is about.
    pub(crate) number: u32,
    pub(crate) at: Timestamp,
    /// Exchanges that were to be learnt, of all that it learnt.
    pub(crate) exchanges: usize,
    pub(crate) outcome: Outcome,
    /// Their loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) learnt: Option<Change>,
    /// What people said in the exchanges that were taken back: those are not learnt over again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) said: BTreeSet<MessageId>,
}

impl Entry {
    /// One of which there is no more to say.
    pub(crate) fn new(number: u32, at: Timestamp, exchanges: usize, outcome: Outcome) -> Self {
        Self { number, at, exchanges, outcome, learnt: None, said: BTreeSet::new() }
    }
}

fn entries(
    memory: &Memory,
    platform: &PlatformId,
    place: &Scope,
    persona: &PersonaId,
) -> Result<Vec<Entry>, azera_memory::Error> {
    let kept = memory.lessons(platform, place, persona)?;
    // What another version wrote otherwise is nothing to build on.
    Ok(kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default())
}

impl Burning {
    /// Takes out of service what is not founded any more, or comes from where nothing may be learnt by now; gives it, and what is away.
    fn take_out_unfounded(&self, memory: &Memory, resting_on: Option<&MessageId>) -> (Vec<Learnt>, Vec<Away>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unfounded = |roots: &Roots| {
            if resting_on.is_some_and(|id| !roots.messages.contains_key(id)) {
                return false;
            }
            // What cannot be asked after is not founded.
            !memory.stand(roots).unwrap_or_else(|error| {
                tracing::warn!(%error, "what something learnt rests on cannot be read");
                false
            })
        };
        // What was taken back while its files could not be removed is found again by the next start.
        let is_taken_back = |learnt: &Learnt| {
            let is_it = |entry: &Entry| entry.number == learnt.number && entry.outcome == Outcome::RolledBack;
            let entries = entries(memory, &learnt.platform, &learnt.place, &learnt.persona).unwrap_or_else(|error| {
                tracing::warn!(%error, "what was taken back cannot be read");
                Vec::new()
            });
            entries.iter().any(is_it)
        };
        let (mut unfounded, mut away) = (self.kept.all(), self.aways.all());
        let is_void = |learnt: &Learnt, roots: &Roots| {
            let barred = self.hearth.barred.contains_key(&learnt.platform);
            barred || is_unfounded(roots) || resting_on.is_none() && is_taken_back(learnt)
        };
        unfounded.retain(|learnt| is_void(learnt, &learnt.roots));
        away.retain(|away| is_void(&away.learnt, &away.holds));
        self.break_off(|course| is_unfounded(&course.roots));
        unfounded.iter().for_each(|learnt| self.kept.drop_one(learnt));
        for away in &away {
            self.aways.drop_one(away);
        }
        (unfounded, away)
    }
}

impl Azera {
    /// Lets personas learn in their weights, or at least unlearn. Once, before [`Azera::start`].
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn light(&self, hearth: Hearth) -> std::io::Result<()> {
        let kept = Kept::open(&hearth.folder)?;
        let aways = Aways::open(&hearth.folder, hearth.trainer.is_some() && hearth.courier.is_some())?;
        let (learning, changing, noting) = (Arc::default(), std::sync::Mutex::default(), tokio::sync::Mutex::default());
        let course = std::sync::Mutex::default();
        // A second one changes nothing.
        self.0.hearth.set(Arc::new(Burning { hearth, kept, aways, learning, changing, noting, course })).ok();
        Ok(())
    }

    /// Waits until nobody learns.
    pub(crate) async fn until_nobody_learns(&self) {
        if let Some(burning) = self.0.hearth.get() {
            drop(burning.learning.lock().await);
        }
    }

    /// What a persona learnt in the place of a right, for the model that answers.
    pub(crate) fn learnt_for(&self, right: &Right) -> Vec<Adapter> {
        let Some(burning) = self.0.hearth.get() else { return Vec::new() };
        let ground = burning.ground(&self.model().info().name);
        let learnt = ground.and_then(|ground| burning.kept.serving(right, &ground));
        let learnt = learnt.filter(|learnt| !burning.hearth.barred.contains_key(&learnt.platform));
        learnt.and_then(|learnt| burning.kept.adapter(&learnt)).into_iter().collect()
    }

    /// Takes out of service, and removes, what rests on something that is gone, or on somebody who does not want it any more; of
    /// what rests on one message, if only that may be gone. Whether all of it could be removed: what could not does not serve.
    pub async fn withdraw_unfounded(&self, resting_on: Option<&MessageId>) -> bool {
        let Some(burning) = self.0.hearth.get() else { return true };
        let (of, only, memory) = (Arc::clone(burning), resting_on.cloned(), self.0.memory.clone());
        let found = tokio::task::spawn_blocking(move || of.take_out_unfounded(&memory, only.as_ref())).await;
        let mut all_gone = found.is_ok();
        let (unfounded, away) = found.unwrap_or_default();
        for learnt in unfounded {
            all_gone &= self.unlearn(burning, &learnt, Outcome::Withdrawn, BTreeSet::new()).await;
        }
        for away in away {
            all_gone &= self.wait_no_longer(burning, &away).await;
            self.note_unlearnt(burning, &away.learnt, away.exchanges, Outcome::Withdrawn, BTreeSet::new()).await;
        }
        all_gone
    }

    /// Takes back what serves in a home or, if nothing does, what is away; gives its number.
    pub(crate) async fn roll_back(&self, home: &Home) -> Option<u32> {
        let burning = self.0.hearth.get()?;
        let ground = burning.ground(&self.model().info().name)?;
        let (newest, before, away) = {
            let _changing = burning.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let versions = burning.kept.of(&home.persona, &home.place);
            let mut versions = versions.into_iter().rev().filter(|learnt| learnt.ground == ground);
            let (newest, before) = (versions.next(), versions.next());
            newest.iter().for_each(|newest| burning.kept.drop_one(newest));
            // What is learnt beside it, here or elsewhere, has nothing to stand beside any more.
            burning
                .break_off(|course| newest.as_ref().is_some_and(|newest| course.beside.as_ref() == Some(&newest.id)));
            let away = burning.aways.of(&home.persona, &home.place);
            (newest, before, away.filter(|away| burning.aways.drop_one(away)))
        };
        // Without what it was learnt beside, which stays.
        let own = |learnt: &Learnt, beside: Option<&Learnt>| match beside {
            Some(beside) => learnt.said.difference(&beside.said).cloned().collect(),
            None => learnt.said.clone(),
        };
        if let Some(away) = &away {
            self.wait_no_longer(burning, away).await;
        }
        let Some(newest) = newest else {
            // Nothing serves: so it is waited for that which is away no more.
            let away = away?;
            let said = own(&away.learnt, away.beside.as_ref());
            self.note_unlearnt(burning, &away.learnt, away.exchanges, Outcome::RolledBack, said).await;
            return Some(away.learnt.number);
        };
        let said = own(&newest, before.as_ref());
        self.unlearn(burning, &newest, Outcome::RolledBack, said).await;
        Some(newest.number)
    }

    /// Removes what serves no more, and notes it. Whether it is gone.
    async fn unlearn(
        &self,
        burning: &Arc<Burning>,
        learnt: &Learnt,
        outcome: Outcome,
        said: BTreeSet<MessageId>,
    ) -> bool {
        let (of, files) = (Arc::clone(burning), learnt.clone());
        let removed = tokio::task::spawn_blocking(move || of.kept.remove_files(&files)).await;
        // After its file: whoever was about to be answered with it cannot have it read again.
        self.let_go(learnt).await;
        let is_gone = matches!(removed, Ok(Ok(())));
        if !is_gone {
            tracing::error!(adapter = %learnt.id, "what was learnt could not be removed; it serves no more");
        }
        self.note_unlearnt(burning, learnt, learnt.said.len(), outcome, said).await;
        is_gone
    }

    async fn note_unlearnt(
        &self,
        burning: &Burning,
        learnt: &Learnt,
        exchanges: usize,
        outcome: Outcome,
        said: BTreeSet<MessageId>,
    ) {
        let home =
            Home { platform: learnt.platform.clone(), place: learnt.place.clone(), persona: learnt.persona.clone() };
        let (number, at) = (learnt.number, self.0.clock.now());
        let entry = Entry { said, ..Entry::new(number, at, exchanges, outcome) };
        if let Err(error) = self.note_lesson(burning, &home, entry).await {
            tracing::warn!(%error, "that something was unlearnt is not noted");
        }
    }

    /// Has the engine drop an adapter, and what it evaluated with it.
    pub(super) async fn let_go(&self, learnt: &Learnt) {
        let Ok(id) = learnt.id.parse() else { return };
        if let Err(error) = self.model().forget_adapter(&id).await {
            tracing::error!(%error, "an adapter that is removed is still held by the model");
        }
    }

    /// What was learnt in a home and what came of it, oldest first.
    pub(crate) async fn lessons_of(&self, home: &Home) -> Result<Vec<Entry>, Error> {
        let home = home.clone();
        self.blocking(move |memory| entries(memory, &home.platform, &home.place, &home.persona)).await
    }

    /// Notes what came of something, unless the place is forgotten by now.
    pub(super) async fn note_lesson(&self, burning: &Burning, home: &Home, entry: Entry) -> Result<(), Error> {
        let _noting = burning.noting.lock().await;
        // Minds sleep where a command forgets while Azera does not run.
        if self.0.minds.state(&home.persona, &home.place, entry.at).is_none() {
            let (persona, place) = (home.persona.clone(), home.place.clone());
            let is_its = move |row: &MindRow| row.persona == persona && row.scope == place;
            if !self.blocking(move |memory| Ok(memory.minds()?.iter().any(is_its))).await? {
                return Ok(());
            }
        }
        let mut entries = self.lessons_of(home).await?;
        entries.push(entry);
        while entries.len() > ENTRIES {
            // What somebody took back says what is not to be learnt again.
            entries.remove(entries.iter().position(|entry| entry.outcome != Outcome::RolledBack).unwrap_or(0));
        }
        let (home, entries) = (home.clone(), serde_json::to_value(entries).unwrap_or_default());
        self.blocking(move |memory| memory.set_lessons(&home.platform, &home.place, &home.persona, &entries)).await
    }
}
