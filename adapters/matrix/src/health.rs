//! What an operator should know of a running bot: in its log, and in a file that `azera doctor` reads.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use matrix_sdk::Room;
use matrix_sdk::encryption::recovery::RecoveryState;
use matrix_sdk::ruma::{OwnedRoomId, RoomId};
use serde::{Deserialize, Serialize};

use crate::files::{self, Files};
use crate::{Error, Matrix};

/// How a bot is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Rooms it is in.
    pub rooms: usize,
    /// Whether other devices can tell that this one is the account's own.
    pub cross_signed: bool,
    /// Whether the account's keys are backed up and can be recovered.
    pub recoverable: bool,
    /// Messages it cannot read yet: their keys have not come, or, in strict mode, whoever wrote them did not verify the
    /// device. They are tried again.
    pub undecryptable: usize,
    /// Messages it will not try to read any more, because too many waited.
    pub given_up: u64,
}

impl Health {
    /// What should be looked after, if there is anything.
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

/// What the bot said of itself last, if it ever ran in this folder.
pub(crate) fn last_report(folder: &Path) -> Result<Option<Health>, Error> {
    let reported = files::read(&Files(folder).health())?;
    Ok(reported.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
}

/// What is known between two times it is told.
#[derive(Debug, Default)]
pub(crate) struct HealthTracker {
    /// Undecryptable messages by room, where there are any.
    late: Mutex<HashMap<OwnedRoomId, usize>>,
    /// Signed by the account, and its keys recoverable.
    keys: Mutex<(bool, bool)>,
    reported: tokio::sync::Mutex<Option<Health>>,
}

impl HealthTracker {
    /// Notes how many messages of a room cannot be read.
    pub(crate) fn note_late(&self, room: &RoomId, number: usize) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if number == 0 {
            late.remove(room);
        } else {
            late.insert(room.to_owned(), number);
        }
    }

    /// The rooms where messages cannot be read.
    pub(crate) fn late(&self) -> Vec<OwnedRoomId> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl Matrix {
    /// Learns how the keys stand. To be done after whatever changes that.
    pub(crate) async fn look_at_keys(&self) {
        let signed = match self.client.encryption().get_own_device().await {
            Ok(Some(device)) => device.is_cross_signed_by_owner(),
            _ => false,
        };
        let recoverable = self.client.encryption().recovery().state() == RecoveryState::Enabled;
        *self.vitals.keys.lock().unwrap_or_else(PoisonError::into_inner) = (signed, recoverable);
    }

    /// How the bot is doing.
    async fn health(&self) -> Result<Health, Error> {
        let (cross_signed, recoverable) = *self.vitals.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let undecryptable = self.vitals.late.lock().unwrap_or_else(PoisonError::into_inner).values().sum();
        let given_up = self.sync_state.given_up().await?;
        Ok(Health { rooms: self.client.joined_rooms().len(), cross_signed, recoverable, undecryptable, given_up })
    }

    /// How the bot is doing in a room, for those who are in it.
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

    /// Tells how the bot is doing, if that changed.
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
            tracing::warn!(%error, "how the bot is doing could not be noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_named() {
        let well = Health { rooms: 3, cross_signed: true, recoverable: true, ..Health::default() };
        assert_eq!(well.trouble(), None);
        let ill = Health { undecryptable: 1, given_up: 2, recoverable: false, ..well };
        let trouble = ill.trouble().unwrap();
        for part in ["1 message it cannot read yet", "2 messages it gave up", "not backed up"] {
            assert!(trouble.contains(part), "{trouble}");
        }
    }
}
