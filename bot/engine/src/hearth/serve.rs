//! What was learnt serves, is taken back, and is noted.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use azera_memory::{Memory, MindRow, Provenance, ReadScope};
use azera_model_api::Lora;
use azera_types::{MessageId, PersonaId, PlatformId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use super::evaluate::{EvaluationFault, LossChange};
use super::lora_store::{LoraRecord, LoraStore};
use super::offloaded::{OffloadedJob, OffloadedJobs};
use super::{Hearth, HearthState};
use crate::background::PersonaPlace;
use crate::engine::Engine;
use crate::error::Error;

/// Entries that are kept of what was learnt in a place.
const ENTRIES: usize = 50;

/// What came of learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrainingOutcome {
    /// It serves, or did.
    #[serde(rename = "kept")]
    Serving,
    /// It was examined and dropped.
    Dropped(EvaluationFault),
    /// It could not be done.
    Failed,
    /// It is to be learnt on another machine.
    #[serde(rename = "away")]
    Offloaded,
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
pub(crate) struct TrainingLogEntry {
    /// Number of the adapter it is about.
    pub(crate) number: u32,
    pub(crate) at: Timestamp,
    /// Exchanges that were to be learnt, of all that it learnt.
    pub(crate) exchanges: usize,
    pub(crate) outcome: TrainingOutcome,
    /// Their loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) learnt: Option<LossChange>,
    /// What people said in the exchanges that were taken back: those are not learnt over again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) said: BTreeSet<MessageId>,
}

impl TrainingLogEntry {
    /// One of which there is no more to say.
    pub(crate) fn new(number: u32, at: Timestamp, exchanges: usize, outcome: TrainingOutcome) -> Self {
        Self { number, at, exchanges, outcome, learnt: None, said: BTreeSet::new() }
    }
}

fn entries(
    memory: &Memory,
    platform: &PlatformId,
    place: &Scope,
    persona: &PersonaId,
) -> Result<Vec<TrainingLogEntry>, azera_memory::Error> {
    let lora_store = memory.training_log(platform, place, persona)?;
    // What another version wrote otherwise is nothing to build on.
    Ok(lora_store.and_then(|lora_store| serde_json::from_value(lora_store).ok()).unwrap_or_default())
}

impl HearthState {
    /// Takes out of service what is not founded any more, or comes from where nothing may be learnt by now; gives it, and what is away.
    fn take_out_unfounded(
        &self,
        memory: &Memory,
        resting_on: Option<&MessageId>,
    ) -> (Vec<LoraRecord>, Vec<OffloadedJob>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unfounded = |provenance: &Provenance| {
            if resting_on.is_some_and(|id| !provenance.messages.contains_key(id)) {
                return false;
            }
            // What cannot be asked after is not founded.
            !memory.provenance_holds(provenance).unwrap_or_else(|error| {
                tracing::warn!(%error, "what something learnt rests on cannot be read");
                false
            })
        };
        // What was taken back while its files could not be removed is found again by the next start.
        let is_taken_back = |learnt: &LoraRecord| {
            let is_it = |entry: &TrainingLogEntry| {
                entry.number == learnt.number && entry.outcome == TrainingOutcome::RolledBack
            };
            let entries = entries(memory, &learnt.platform, &learnt.place, &learnt.persona).unwrap_or_else(|error| {
                tracing::warn!(%error, "what was taken back cannot be read");
                Vec::new()
            });
            entries.iter().any(is_it)
        };
        let (mut unfounded, mut offloaded_job) = (self.lora_store.all(), self.offloaded_jobs.all());
        let is_void = |learnt: &LoraRecord, provenance: &Provenance| {
            let barred = self.hearth.barred.contains_key(&learnt.platform);
            barred || is_unfounded(provenance) || resting_on.is_none() && is_taken_back(learnt)
        };
        unfounded.retain(|learnt| is_void(learnt, &learnt.provenance));
        offloaded_job.retain(|offloaded_job| is_void(&offloaded_job.learnt, &offloaded_job.holds));
        self.break_off(|job| is_unfounded(&job.provenance));
        unfounded.iter().for_each(|learnt| self.lora_store.drop_one(learnt));
        for offloaded_job in &offloaded_job {
            self.offloaded_jobs.drop_one(offloaded_job);
        }
        (unfounded, offloaded_job)
    }
}

impl Engine {
    /// Lets personas learn in their weights, or at least unlearn. Once, before [`Engine::start`].
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn light(&self, hearth: Hearth) -> std::io::Result<()> {
        let lora_store = LoraStore::open(&hearth.folder)?;
        let offloaded_jobs =
            OffloadedJobs::open(&hearth.folder, hearth.trainer.is_some() && hearth.transport.is_some())?;
        let (learning, changing, noting) = (Arc::default(), std::sync::Mutex::default(), tokio::sync::Mutex::default());
        let job = std::sync::Mutex::default();
        // A second one changes nothing.
        self.0
            .hearth
            .set(Arc::new(HearthState { hearth, lora_store, offloaded_jobs, learning, changing, noting, job }))
            .ok();
        Ok(())
    }

    /// Waits until nobody learns.
    pub(crate) async fn until_nobody_learns(&self) {
        if let Some(burning) = self.0.hearth.get() {
            drop(burning.learning.lock().await);
        }
    }

    /// What a persona learnt in the place of a right, for the model that answers.
    pub(crate) fn loras_for(&self, read_scope: &ReadScope) -> Vec<Lora> {
        let Some(burning) = self.0.hearth.get() else { return Vec::new() };
        let base_fingerprint = burning.base_fingerprint(&self.model().info().name);
        let learnt =
            base_fingerprint.and_then(|base_fingerprint| burning.lora_store.serving(read_scope, &base_fingerprint));
        let learnt = learnt.filter(|learnt| !burning.hearth.barred.contains_key(&learnt.platform));
        learnt.and_then(|learnt| burning.lora_store.lora(&learnt)).into_iter().collect()
    }

    /// Takes out of service, and removes, what rests on something that is gone, or on somebody who does not want it any more; of
    /// what rests on one message, if only that may be gone. Whether all of it could be removed: what could not does not serve.
    pub async fn withdraw_unfounded(&self, resting_on: Option<&MessageId>) -> bool {
        let Some(burning) = self.0.hearth.get() else { return true };
        let (of, only, memory) = (Arc::clone(burning), resting_on.cloned(), self.0.memory.clone());
        let found = tokio::task::spawn_blocking(move || of.take_out_unfounded(&memory, only.as_ref())).await;
        let mut all_gone = found.is_ok();
        let (unfounded, offloaded_job) = found.unwrap_or_default();
        for learnt in unfounded {
            all_gone &= self.unlearn(burning, &learnt, TrainingOutcome::Withdrawn, BTreeSet::new()).await;
        }
        for offloaded_job in offloaded_job {
            all_gone &= self.drop_offloaded(burning, &offloaded_job).await;
            self.note_unlearnt(
                burning,
                &offloaded_job.learnt,
                offloaded_job.exchanges,
                TrainingOutcome::Withdrawn,
                BTreeSet::new(),
            )
            .await;
        }
        all_gone
    }

    /// Takes back what serves in a home or, if nothing does, what is away; gives its number.
    pub(crate) async fn roll_back(&self, home: &PersonaPlace) -> Option<u32> {
        let burning = self.0.hearth.get()?;
        let base_fingerprint = burning.base_fingerprint(&self.model().info().name)?;
        let (newest, before, offloaded_job) = {
            let _changing = burning.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let versions = burning.lora_store.of(&home.persona, &home.place);
            let mut versions = versions.into_iter().rev().filter(|learnt| learnt.base_fingerprint == base_fingerprint);
            let (newest, before) = (versions.next(), versions.next());
            newest.iter().for_each(|newest| burning.lora_store.drop_one(newest));
            // What is learnt beside it, here or elsewhere, has nothing to stand beside any more.
            burning.break_off(|job| newest.as_ref().is_some_and(|newest| job.beside.as_ref() == Some(&newest.id)));
            let offloaded_job = burning.offloaded_jobs.of(&home.persona, &home.place);
            (newest, before, offloaded_job.filter(|offloaded_job| burning.offloaded_jobs.drop_one(offloaded_job)))
        };
        // Without what it was learnt beside, which stays.
        let own = |learnt: &LoraRecord, beside: Option<&LoraRecord>| match beside {
            Some(beside) => learnt.said.difference(&beside.said).cloned().collect(),
            None => learnt.said.clone(),
        };
        if let Some(offloaded_job) = &offloaded_job {
            self.drop_offloaded(burning, offloaded_job).await;
        }
        let Some(newest) = newest else {
            // Nothing serves: so it is waited for that which is away no more.
            let offloaded_job = offloaded_job?;
            let said = own(&offloaded_job.learnt, offloaded_job.beside.as_ref());
            self.note_unlearnt(
                burning,
                &offloaded_job.learnt,
                offloaded_job.exchanges,
                TrainingOutcome::RolledBack,
                said,
            )
            .await;
            return Some(offloaded_job.learnt.number);
        };
        let said = own(&newest, before.as_ref());
        self.unlearn(burning, &newest, TrainingOutcome::RolledBack, said).await;
        Some(newest.number)
    }

    /// Removes what serves no more, and notes it. Whether it is gone.
    async fn unlearn(
        &self,
        burning: &Arc<HearthState>,
        learnt: &LoraRecord,
        outcome: TrainingOutcome,
        said: BTreeSet<MessageId>,
    ) -> bool {
        let (of, files) = (Arc::clone(burning), learnt.clone());
        let removed = tokio::task::spawn_blocking(move || of.lora_store.remove_files(&files)).await;
        // After its file: whoever was about to be answered with it cannot have it read again.
        self.let_go(learnt).await;
        let is_gone = matches!(removed, Ok(Ok(())));
        if !is_gone {
            tracing::error!(lora = %learnt.id, "what was learnt could not be removed; it serves no more");
        }
        self.note_unlearnt(burning, learnt, learnt.said.len(), outcome, said).await;
        is_gone
    }

    async fn note_unlearnt(
        &self,
        burning: &HearthState,
        learnt: &LoraRecord,
        exchanges: usize,
        outcome: TrainingOutcome,
        said: BTreeSet<MessageId>,
    ) {
        let home = PersonaPlace {
            platform: learnt.platform.clone(),
            place: learnt.place.clone(),
            persona: learnt.persona.clone(),
        };
        let (number, at) = (learnt.number, self.0.clock.now());
        let entry = TrainingLogEntry { said, ..TrainingLogEntry::new(number, at, exchanges, outcome) };
        if let Err(error) = self.log_training(burning, &home, entry).await {
            tracing::warn!(%error, "that something was unlearnt is not noted");
        }
    }

    /// Has the engine drop an adapter, and what it evaluated with it.
    pub(super) async fn let_go(&self, learnt: &LoraRecord) {
        let Ok(id) = learnt.id.parse() else { return };
        if let Err(error) = self.model().forget_lora(&id).await {
            tracing::error!(%error, "an adapter that is removed is still held by the model");
        }
    }

    /// What was learnt in a home and what came of it, oldest first.
    pub(crate) async fn training_log_of(&self, home: &PersonaPlace) -> Result<Vec<TrainingLogEntry>, Error> {
        let home = home.clone();
        self.blocking(move |memory| entries(memory, &home.platform, &home.place, &home.persona)).await
    }

    /// Notes what came of something, unless the place is forgotten by now.
    pub(super) async fn log_training(
        &self,
        burning: &HearthState,
        home: &PersonaPlace,
        entry: TrainingLogEntry,
    ) -> Result<(), Error> {
        let _noting = burning.noting.lock().await;
        // Minds sleep where a command forgets while Azera does not run.
        if self.0.minds.state(&home.persona, &home.place, entry.at).is_none() {
            let (persona, place) = (home.persona.clone(), home.place.clone());
            let is_its = move |row: &MindRow| row.persona == persona && row.scope == place;
            if !self.blocking(move |memory| Ok(memory.minds()?.iter().any(is_its))).await? {
                return Ok(());
            }
        }
        let mut entries = self.training_log_of(home).await?;
        entries.push(entry);
        while entries.len() > ENTRIES {
            // What somebody took back says what is not to be learnt again.
            entries.remove(entries.iter().position(|entry| entry.outcome != TrainingOutcome::RolledBack).unwrap_or(0));
        }
        let (home, entries) = (home.clone(), serde_json::to_value(entries).unwrap_or_default());
        self.blocking(move |memory| memory.set_training_log(&home.platform, &home.place, &home.persona, &entries)).await
    }
}
