//! Recordings of calls that people asked for, and who may have them.

use std::io;
use std::time::Duration;

use azera_types::{ChatId, PersonId, RealmId, Timestamp};

/// A recording of a call. Everybody in it was there all the time, and agreed.
#[derive(Clone, PartialEq, Eq)]
pub struct CallRecording {
    /// The number by which people choose it.
    pub number: u32,
    /// The chat of the call, and the realm that it belongs to.
    pub chat: ChatId,
    /// See `chat`.
    pub realm: Option<RealmId>,
    /// The displayed name of the place.
    pub place: String,
    /// When it began.
    pub began: Timestamp,
    /// How long its sound lasts.
    pub duration: Duration,
    /// Who is in it, with their displayed names.
    pub people: Vec<(PersonId, String)>,
}

impl CallRecording {
    /// Returns true if a person is in it.
    pub fn is_of(&self, person: &PersonId) -> bool {
        self.people.iter().any(|(there, _)| there == person)
    }
}

/// Leaves out the names.
impl std::fmt::Debug for CallRecording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallRecording[{}, {} people, {:?}]", self.number, self.people.len(), self.duration)
    }
}

/// Whose or what recordings are forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgottenCalls {
    /// All that a person is in.
    Person(PersonId),
    /// All of a chat between two moments, both included.
    Chat(ChatId, Timestamp, Timestamp),
    /// All of a realm.
    Realm(RealmId),
}

/// The recordings that are kept. Only a person who is in a recording can see, have or remove it.
///
/// The calls block for as long as the disk takes.
pub trait CallRecordings: Send + Sync {
    /// Returns the recordings that a person is in, the newest first.
    ///
    /// # Errors
    /// The disk fails.
    fn of(&self, person: &PersonId) -> io::Result<Vec<CallRecording>>;

    /// Returns the sound of a recording as Ogg Opus files of at most `max_bytes`, each of which plays alone. `None` if
    /// the person is in no recording of that number.
    ///
    /// # Errors
    /// The disk fails, or the file is damaged.
    fn sound(&self, person: &PersonId, number: u32, max_bytes: usize) -> io::Result<Option<Vec<Vec<u8>>>>;

    /// Removes a recording for everybody. Returns false if the person is in no recording of that number.
    ///
    /// # Errors
    /// The disk fails.
    fn remove(&self, person: &PersonId, number: u32) -> io::Result<bool>;

    /// Removes recordings, also those that are being made. Returns how many there were.
    ///
    /// # Errors
    /// The disk fails. Then some of them may still be there.
    fn forget(&self, what: &ForgottenCalls) -> io::Result<usize>;
}
