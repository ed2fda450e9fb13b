//! What is known about a recording.

use std::time::Duration;

use azera_types::{ChatId, PersonId, RealmId, Timestamp};
use azera_voice_api::{CallRecording, ForgottenCalls};
use serde::{Deserialize, Serialize};

/// What is known about a recording. Everybody named in it was there all the time, and agreed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The chat of the call, and the realm that it belongs to.
    pub chat: ChatId,
    /// See `chat`.
    pub realm: Option<RealmId>,
    /// The displayed name of the place.
    pub place: String,
    /// When it began.
    pub began: Timestamp,
    /// How many milliseconds its sound lasts; 0 while it is being made.
    #[serde(default)]
    pub milliseconds: u64,
    /// Who is in it, with their displayed names.
    pub people: Vec<(PersonId, String)>,
}

/// Leaves out the names.
impl std::fmt::Debug for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "About[{}, {} people]", self.chat, self.people.len())
    }
}

impl About {
    pub(crate) fn is_of(&self, person: &PersonId) -> bool {
        self.people.iter().any(|(there, _)| there == person)
    }

    /// Returns true if it is one of those that are forgotten. A recording that is being made has no end yet.
    pub(crate) fn is_forgotten_by(&self, what: &ForgottenCalls) -> bool {
        match what {
            ForgottenCalls::Person(person) => self.is_of(person),
            ForgottenCalls::Chat(chat, from, to) => {
                let lasted = Duration::from_millis(self.milliseconds);
                let is_open = self.milliseconds == 0;
                let is_before = !is_open && self.began.checked_add(lasted).is_ok_and(|ended| ended < *from);
                self.chat == *chat && self.began <= *to && !is_before
            }
            ForgottenCalls::Realm(realm) => self.realm.as_ref() == Some(realm),
        }
    }

    pub(crate) fn with_number(self, number: u32) -> CallRecording {
        let Self { chat, realm, place, began, milliseconds, people } = self;
        CallRecording { number, chat, realm, place, began, duration: Duration::from_millis(milliseconds), people }
    }
}
