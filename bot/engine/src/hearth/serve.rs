//! Puts LoRAs into service, withdraws them, and keeps the training log.

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
use crate::error::Error;
use crate::hearth::Learning;

/// Maximum number of entries in the training log of a place.
const ENTRIES: usize = 50;

/// The result of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrainingOutcome {
    /// The LoRA serves, or did.
    #[serde(rename = "kept")]
    Serving,
    /// The LoRA failed its evaluation.
    Dropped(EvaluationFault),
    /// Training was impossible.
    Failed,
    /// The job waits for another machine.
    #[serde(rename = "away")]
    Offloaded,
    /// No usable result came back in time.
    Lost,
    /// Too few exchanges were left to train again.
    TooLittle,
    /// Somebody rolled it back.
    RolledBack,
    /// A source was forgotten or changed, or somebody withdrew their consent.
    Withdrawn,
}

/// An entry of the training log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrainingLogEntry {
    /// Number of the LoRA.
    pub(crate) number: u32,
    pub(crate) at: Timestamp,
    /// Number of exchanges in the job; for a withdrawn or rolled back LoRA, of all that it was trained on.
    pub(crate) exchanges: usize,
    pub(crate) outcome: TrainingOutcome,
    /// Their loss.
    #[serde(rename = "learnt", default, skip_serializing_if = "Option::is_none")]
    pub(crate) learned: Option<LossChange>,
    /// People's messages in the exchanges that were rolled back, which are not trained on again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) said: BTreeSet<MessageId>,
}

impl TrainingLogEntry {
    /// Creates an entry without loss and messages.
    pub(crate) fn new(number: u32, at: Timestamp, exchanges: usize, outcome: TrainingOutcome) -> Self {
        Self { number, at, exchanges, outcome, learned: None, said: BTreeSet::new() }
    }
}

fn entries(
    memory: &Memory,
    platform: &PlatformId,
    place: &Scope,
    persona: &PersonaId,
) -> Result<Vec<TrainingLogEntry>, azera_memory::Error> {
    let log = memory.places().training_log(platform, place, persona)?;
    // Entries in another version's format are ignored.
    Ok(log.and_then(|log| serde_json::from_value(log).ok()).unwrap_or_default())
}

impl HearthState {
    /// Takes LoRAs and offloaded jobs out of service whose sources are gone or whose platform is barred now. Returns
    /// them.
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
            // Sources that cannot be checked count as gone.
            !memory.training().provenance_holds(provenance).unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot check the sources of a LoRA");
                false
            })
        };
        // A rolled back LoRA whose files could not be removed is found again by the next start.
        let is_taken_back = |learned: &LoraRecord| {
            let is_it = |entry: &TrainingLogEntry| {
                entry.number == learned.number && entry.outcome == TrainingOutcome::RolledBack
            };
            let entries =
                entries(memory, &learned.platform, &learned.place, &learned.persona).unwrap_or_else(|error| {
                    tracing::warn!(%error, "cannot read the training log");
                    Vec::new()
                });
            entries.iter().any(is_it)
        };
        let (mut unfounded, mut offloaded_jobs) = (self.lora_store.all(), self.offloaded_jobs.all());
        let is_void = |learned: &LoraRecord, provenance: &Provenance| {
            let barred = self.setup.barred.contains_key(&learned.platform);
            barred || is_unfounded(provenance) || resting_on.is_none() && is_taken_back(learned)
        };
        unfounded.retain(|learned| is_void(learned, &learned.provenance));
        offloaded_jobs.retain(|offloaded_job| is_void(&offloaded_job.learned, &offloaded_job.holds));
        self.break_off(|job| is_unfounded(&job.provenance));
        unfounded.iter().for_each(|learned| self.lora_store.drop_one(learned));
        for offloaded_job in &offloaded_jobs {
            self.offloaded_jobs.drop_one(offloaded_job);
        }
        (unfounded, offloaded_jobs)
    }
}

impl Learning {
    /// Enables training in the weights, or at least the withdrawal of existing LoRAs. Call it once, before
    /// [`crate::Engine::start`].
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn light(&self, hearth: Hearth) -> std::io::Result<()> {
        let lora_store = LoraStore::open(&hearth.folder)?;
        let offloaded_jobs =
            OffloadedJobs::open(&hearth.folder, hearth.trainer.is_some() && hearth.transport.is_some())?;
        let (learning, changing, noting) = (Arc::default(), std::sync::Mutex::default(), tokio::sync::Mutex::default());
        let job = std::sync::Mutex::default();
        // A second call changes nothing.
        self.state
            .set(Arc::new(HearthState { setup: hearth, lora_store, offloaded_jobs, learning, changing, noting, job }))
            .ok();
        Ok(())
    }

    /// Waits until no training runs.
    pub(crate) async fn until_nobody_learns(&self) {
        if let Some(hearth) = self.state.get() {
            drop(hearth.learning.lock().await);
        }
    }

    /// Returns the LoRA that serves under a read scope, for the model that answers.
    pub(crate) fn loras_for(&self, read_scope: &ReadScope) -> Vec<Lora> {
        let Some(hearth) = self.state.get() else { return Vec::new() };
        let base_fingerprint = hearth.base_fingerprint(&self.services.model().info().name);
        let learned =
            base_fingerprint.and_then(|base_fingerprint| hearth.lora_store.serving(read_scope, &base_fingerprint));
        let learned = learned.filter(|learned| !hearth.setup.barred.contains_key(&learned.platform));
        learned.and_then(|learned| hearth.lora_store.lora(&learned)).into_iter().collect()
    }

    /// Takes LoRAs out of service, and removes them, if a source is gone or a person withdrew their consent. With
    /// `resting_on`, only LoRAs with this message among their sources are checked. Returns true if all files could be
    /// removed; a LoRA whose file remains does not serve.
    pub(crate) async fn withdraw_unfounded(&self, resting_on: Option<&MessageId>) -> bool {
        let Some(hearth) = self.state.get() else { return true };
        let (of, only, memory) = (Arc::clone(hearth), resting_on.cloned(), self.services.memory.clone());
        let found = tokio::task::spawn_blocking(move || of.take_out_unfounded(&memory, only.as_ref())).await;
        let mut all_gone = found.is_ok();
        let (unfounded, offloaded_jobs) = found.unwrap_or_default();
        for learned in unfounded {
            all_gone &= self.unlearn(hearth, &learned, TrainingOutcome::Withdrawn, BTreeSet::new()).await;
        }
        for offloaded_job in offloaded_jobs {
            all_gone &= self.drop_offloaded(hearth, &offloaded_job).await;
            self.note_unlearned(
                hearth,
                &offloaded_job.learned,
                offloaded_job.exchanges,
                TrainingOutcome::Withdrawn,
                BTreeSet::new(),
            )
            .await;
        }
        all_gone
    }

    /// Rolls back the LoRA in service in a place or, if there is none, the offloaded job. Returns its number.
    pub(crate) async fn roll_back(&self, home: &PersonaPlace) -> Option<u32> {
        let hearth = self.state.get()?;
        let base_fingerprint = hearth.base_fingerprint(&self.services.model().info().name)?;
        let (newest, before, offloaded_job) = {
            let _changing = hearth.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let versions = hearth.lora_store.of(&home.persona, &home.place);
            let mut versions =
                versions.into_iter().rev().filter(|learned| learned.base_fingerprint == base_fingerprint);
            let (newest, before) = (versions.next(), versions.next());
            newest.iter().for_each(|newest| hearth.lora_store.drop_one(newest));
            // A job that trains beside it, here or on another machine, has lost its base.
            hearth.break_off(|job| newest.as_ref().is_some_and(|newest| job.beside.as_ref() == Some(&newest.id)));
            let offloaded_job = hearth.offloaded_jobs.of(&home.persona, &home.place);
            (newest, before, offloaded_job.filter(|offloaded_job| hearth.offloaded_jobs.drop_one(offloaded_job)))
        };
        // Without the messages of the LoRA it was trained beside, which stays.
        let own = |learned: &LoraRecord, beside: Option<&LoraRecord>| match beside {
            Some(beside) => learned.said.difference(&beside.said).cloned().collect(),
            None => learned.said.clone(),
        };
        if let Some(offloaded_job) = &offloaded_job {
            self.drop_offloaded(hearth, offloaded_job).await;
        }
        let Some(newest) = newest else {
            // Nothing serves, so only the offloaded job was rolled back.
            let offloaded_job = offloaded_job?;
            let said = own(&offloaded_job.learned, offloaded_job.beside.as_ref());
            self.note_unlearned(
                hearth,
                &offloaded_job.learned,
                offloaded_job.exchanges,
                TrainingOutcome::RolledBack,
                said,
            )
            .await;
            return Some(offloaded_job.learned.number);
        };
        let said = own(&newest, before.as_ref());
        self.unlearn(hearth, &newest, TrainingOutcome::RolledBack, said).await;
        Some(newest.number)
    }

    /// Removes a LoRA that no longer serves, and logs that. Returns true if its files are gone.
    async fn unlearn(
        &self,
        hearth: &Arc<HearthState>,
        learned: &LoraRecord,
        outcome: TrainingOutcome,
        said: BTreeSet<MessageId>,
    ) -> bool {
        let (of, files) = (Arc::clone(hearth), learned.clone());
        let removed = tokio::task::spawn_blocking(move || of.lora_store.remove_files(&files)).await;
        // After the file, so that a turn in progress cannot make the model load it again.
        self.let_go(learned).await;
        let is_gone = matches!(removed, Ok(Ok(())));
        if !is_gone {
            tracing::error!(lora = %learned.id, "cannot remove a LoRA; it no longer serves");
        }
        self.note_unlearned(hearth, learned, learned.said.len(), outcome, said).await;
        is_gone
    }

    async fn note_unlearned(
        &self,
        hearth: &HearthState,
        learned: &LoraRecord,
        exchanges: usize,
        outcome: TrainingOutcome,
        said: BTreeSet<MessageId>,
    ) {
        let home = PersonaPlace {
            platform: learned.platform.clone(),
            place: learned.place.clone(),
            persona: learned.persona.clone(),
        };
        let (number, at) = (learned.number, self.services.clock.now());
        let entry = TrainingLogEntry { said, ..TrainingLogEntry::new(number, at, exchanges, outcome) };
        if let Err(error) = self.log_training(hearth, &home, entry).await {
            tracing::warn!(%error, "cannot log that a LoRA was withdrawn");
        }
    }

    /// Makes the model drop a LoRA, and the tokens evaluated with it.
    pub(super) async fn let_go(&self, learned: &LoraRecord) {
        let Ok(id) = learned.id.parse() else { return };
        if let Err(error) = self.services.model().forget_lora(&id).await {
            tracing::error!(%error, "the model cannot drop a removed LoRA");
        }
    }

    /// Returns the training log of a persona in a place, oldest first.
    pub(crate) async fn training_log_of(&self, home: &PersonaPlace) -> Result<Vec<TrainingLogEntry>, Error> {
        let home = home.clone();
        self.services.blocking(move |memory| entries(memory, &home.platform, &home.place, &home.persona)).await
    }

    /// Adds an entry to the training log, unless the place was forgotten meanwhile.
    pub(super) async fn log_training(
        &self,
        hearth: &HearthState,
        home: &PersonaPlace,
        entry: TrainingLogEntry,
    ) -> Result<(), Error> {
        let _noting = hearth.noting.lock().await;
        // Minds are not loaded when a command forgets while Azera is not running.
        if self.minds.states.state(&home.persona, &home.place, entry.at).is_none() {
            let (persona, place) = (home.persona.clone(), home.place.clone());
            let is_its = move |row: &MindRow| row.persona == persona && row.scope == place;
            if !self.services.blocking(move |memory| Ok(memory.minds().list()?.iter().any(is_its))).await? {
                return Ok(());
            }
        }
        let mut entries = self.training_log_of(home).await?;
        entries.push(entry);
        while entries.len() > ENTRIES {
            // Entries of rollbacks stay, because they say what must not be trained on again.
            entries.remove(entries.iter().position(|entry| entry.outcome != TrainingOutcome::RolledBack).unwrap_or(0));
        }
        let (home, entries) = (home.clone(), serde_json::to_value(entries).unwrap_or_default());
        self.services
            .blocking(move |memory| {
                memory.places().set_training_log(&home.platform, &home.place, &home.persona, &entries)
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_entry_of_an_earlier_version_is_read_and_written_as_it_was() {
        let stored = serde_json::json!({
            "number": 3, "at": "2026-01-01T00:00:00Z", "exchanges": 8, "outcome": {"dropped": "nothing_learnt"},
            "learnt": {"before": 2.0, "after": 2.5},
        });
        let entry: TrainingLogEntry = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(entry.outcome, TrainingOutcome::Dropped(EvaluationFault::NothingLearned));
        assert_eq!(entry.learned, Some(LossChange { before: 2.0, after: 2.5 }));
        assert_eq!(serde_json::to_value(entry).unwrap(), stored);
    }
}
