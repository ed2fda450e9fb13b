//! What is known about a recording.

use std::time::{Duration, SystemTime};

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
    /// When it ended. Its sound may be shorter, because it holds no pauses. `None` while it is being made, or if nobody knows.
    #[serde(default)]
    pub ended: Option<Timestamp>,
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

    /// Records how long its sound lasts, and when it ended.
    pub(crate) fn end(&mut self, lasts: Duration, ended: Option<Timestamp>) {
        self.milliseconds = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        // A clock that was set back says nothing about the end.
        let earliest = self.began.checked_add(lasts).ok();
        self.ended = ended.filter(|ended| earliest.is_some_and(|earliest| *ended >= earliest));
    }

    /// Records that it ended when its file was written last.
    pub(crate) fn end_at(&mut self, lasts: Duration, written: std::io::Result<SystemTime>) {
        self.end(lasts, written.ok().and_then(|written| Timestamp::try_from(written).ok()));
    }

    pub(crate) fn lasts(&self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }

    /// Returns true if it is one of those that are forgotten. A recording without a known end may hold what was said at
    /// any later time.
    pub(crate) fn is_forgotten_by(&self, what: &ForgottenCalls) -> bool {
        match what {
            ForgottenCalls::Person(person) => self.is_of(person),
            ForgottenCalls::Chat(chat, from, to) => {
                let is_before = self.ended.is_some_and(|ended| ended < *from);
                self.chat == *chat && self.began <= *to && !is_before
            }
            ForgottenCalls::Realm(realm) => self.realm.as_ref() == Some(realm),
        }
    }

    pub(crate) fn with_number(self, number: u32) -> CallRecording {
        let Self { chat, realm, place, began, milliseconds, ended: _, people } = self;
        CallRecording { number, chat, realm, place, began, duration: Duration::from_millis(milliseconds), people }
    }
}
