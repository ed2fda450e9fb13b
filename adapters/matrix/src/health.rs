//! The health of a running bot: in its log, and in a file that `azera doctor` reads.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use azera_adapter::ConnectionLog;
use matrix_sdk::Room;
use matrix_sdk::encryption::recovery::RecoveryState;
use matrix_sdk::ruma::{OwnedRoomId, RoomId};
use serde::{Deserialize, Serialize};

use crate::files::{self, Files};
use crate::{Error, Matrix};

/// The health of a bot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Number of rooms.
    pub rooms: usize,
    /// True if other devices can verify this one as the account's own.
    pub cross_signed: bool,
    /// True if the account's keys are backed up and recoverable.
    pub recoverable: bool,
    /// Messages that cannot be read yet: their keys are missing or, in strict mode, the sender did not verify the
    /// device. The bot tries them again.
    pub undecryptable: usize,
    /// Messages that were given up because too many waited.
    pub given_up: u64,
}

impl Health {
    /// Returns the problems in words, if there are any.
    pub fn trouble(&self) -> Option<String> {
        let mut troubles = Vec::new();
        if self.undecryptable > 0 {
            troubles.push(format!("{} it cannot read yet, for want of keys or of trust", messages(self.undecryptable)));
        }
        if self.given_up > 0 {
            let number = usize::try_from(self.given_up).unwrap_or(usize::MAX);
            troubles.push(format!("{} it gave up reading", messages(number)));
        }
        if !self.cross_signed {
            troubles.push("its device is not signed by its account, so others are warned of it".into());
        }
        if !self.recoverable {
            troubles.push("its keys are not backed up".into());
        }
        (!troubles.is_empty()).then(|| troubles.join("; "))
    }
}

fn messages(number: usize) -> String {
    if number == 1 { "1 message".into() } else { format!("{number} messages") }
}

/// Returns the last health report in this folder, if there is one.
pub(crate) fn last_report(folder: &Path) -> Result<Option<Health>, Error> {
    let reported = files::read(&Files(folder).health())?;
    Ok(reported.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
}

/// Health data between two reports.
#[derive(Debug, Default)]
pub(crate) struct HealthTracker {
    /// Number of undecryptable messages by room.
    late: Mutex<HashMap<OwnedRoomId, usize>>,
    /// Whether the device is cross-signed, and whether the keys are recoverable.
    keys: Mutex<(bool, bool)>,
    reported: tokio::sync::Mutex<Option<Health>>,
    /// Whether the homeserver answered last time, since when, and what was wrong last.
    pub(crate) connection: ConnectionLog,
}

impl HealthTracker {
    /// Records the number of undecryptable messages of a room.
    pub(crate) fn note_late(&self, room: &RoomId, number: usize) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if number == 0 {
            late.remove(room);
        } else {
            late.insert(room.to_owned(), number);
        }
    }

    /// Returns the rooms with undecryptable messages.
    pub(crate) fn late(&self) -> Vec<OwnedRoomId> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl Matrix {
    /// Updates the state of the keys. Call it after anything that may change it.
    pub(crate) async fn look_at_keys(&self) {
        let signed = match self.client.encryption().get_own_device().await {
            Ok(Some(device)) => device.is_cross_signed_by_owner(),
            _ => false,
        };
        let recoverable = self.client.encryption().recovery().state() == RecoveryState::Enabled;
        *self.vitals.keys.lock().unwrap_or_else(PoisonError::into_inner) = (signed, recoverable);
    }

    /// Returns the current health.
    async fn health(&self) -> Result<Health, Error> {
        let (cross_signed, recoverable) = *self.vitals.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let undecryptable = self.vitals.late.lock().unwrap_or_else(PoisonError::into_inner).values().sum();
        let given_up = self.sync_state.given_up().await?;
        Ok(Health { rooms: self.client.joined_rooms().len(), cross_signed, recoverable, undecryptable, given_up })
    }

    /// Returns the health in a room as text for its members.
    pub(crate) async fn doctor(&self, room: &Room) -> Result<String, Error> {
        let health = self.health().await?;
        let late = self.sync_state.late(room.room_id()).await?.len();
        let mark = |well: bool| if well { "ok" } else { "note" };
        let mut text = String::new();
        let mut line = |well: bool, reported: String| text.push_str(&format!("- {}: {reported}\n", mark(well)));
        line(true, format!("I am {}, and the homeserver answers", self.own));
        if room.latest_encryption_state().await?.is_encrypted() {
            let strict = if self.settings.strict { ", with devices alone that their owners have verified" } else { "" };
            line(true, format!("this room is encrypted, and I talk in it{strict}"));
        } else {
            line(true, "this room is not encrypted: the homeserver can read what is said".into());
        }
        line(late == 0, format!("{} here I cannot read yet", messages(late)));
        let signed = if health.cross_signed { "is signed by my account" } else { "is not signed by my account" };
        line(health.cross_signed, format!("my device {signed}"));
        let backed_up = if health.recoverable { "are backed up" } else { "are not backed up" };
        line(health.recoverable, format!("my keys {backed_up}"));
        Ok(text)
    }

    /// Logs and writes the health, if it changed.
    pub(crate) async fn tell_health(&self) {
        let mut reported = self.vitals.reported.lock().await;
        let done = async {
            let now = self.health().await?;
            if reported.as_ref() == Some(&now) {
                return Ok(());
            }
            files::write(&Files(&self.settings.folder).health(), &serde_json::to_vec(&now)?)?;
            *reported = Some(now);
            Ok::<_, Error>(())
        };
        if let Err(error) = done.await {
            tracing::warn!(%error, "cannot write the health report");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_named() {
        let well = Health { rooms: 3, cross_signed: true, recoverable: true, ..Health::default() };
        assert_eq!(well.trouble(), None);
        let ill = Health { undecryptable: 1, given_up: 2, recoverable: false, ..well };
        let trouble = ill.trouble().unwrap();
        for part in ["1 message it cannot read yet", "2 messages it gave up", "not backed up"] {
            assert!(trouble.contains(part), "{trouble}");
        }
    }
}
