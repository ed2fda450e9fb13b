//! Lets the chat model read conversations that somebody imported, as it reads finished conversations (`search`): it quotes
//! what is worth keeping, and every quote is traced to the words of the person who imported. The classifiers searched them
//! before, so nothing is lost while the model is away, and a smaller model is not asked. The record knows how far it is: a
//! stop or a crash costs at most one request. `gardener.asks_per_day` limits the requests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_memory::{ExtractionProgress, MessageRow, PendingImport, UnsearchedPart};
use azera_types::{ChatId, PersonId, PersonaId, Timestamp};

use super::TRY_AGAIN;
use super::agenda::PersonaPlace;
use super::imported::scope_of_import;
use super::schedule::{after, day};
use super::search::{Origin, Search};
use super::transcript::CONTEXT_LINES;
use crate::background::Background;
use crate::error::Error;

/// Messages of one part. The model reads them in one request or more.
const PART: usize = 64;

/// Parts that are read before other background work has its turn.
const PARTS_AT_ONCE: usize = 2;

/// How many times the model was asked about the imports of each person today. A start begins anew: nothing about an import
/// is stored that its undo would leave behind.
#[derive(Default)]
pub(super) struct Requests(Mutex<Asked>);

#[derive(Default)]
struct Asked {
    day: String,
    times: HashMap<(PersonaId, PersonId), u32>,
    /// The chats whose reading failed, the last one last.
    failed: Vec<ChatId>,
}

impl Requests {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many there were on this day.
    fn on(&self, day: &str, import: &PendingImport) -> u32 {
        let mut asked = self.lock();
        if asked.day != day {
            (asked.day, asked.times) = (day.to_owned(), HashMap::new());
        }
        asked.times.get(&key(import)).copied().unwrap_or_default()
    }

    /// Counts one more.
    pub(super) fn note(&self, import: &PendingImport) {
        *self.lock().times.entry(key(import)).or_default() += 1;
    }

    /// Notes that the reading of a chat failed.
    fn note_failed(&self, chat: &ChatId) {
        let failed = &mut self.lock().failed;
        failed.retain(|one| one != chat);
        failed.push(chat.clone());
    }

    /// Puts the chats whose reading failed behind the others, the last one last. Forgets those that wait no more.
    fn sort(&self, unread: &mut [&PendingImport]) {
        let failed = &mut self.lock().failed;
        failed.retain(|chat| unread.iter().any(|import| import.chat == *chat));
        unread.sort_by_key(|import| failed.iter().position(|chat| *chat == import.chat));
    }
}

fn key(import: &PendingImport) -> (PersonaId, PersonId) {
    (import.persona.clone(), import.person.clone())
}

/// How far a turn of reading came.
enum TurnEnd {
    /// Nothing is left, or the model that answers now reads no imports.
    Whole,
    /// No request is left for this person today.
    NoRequestsLeft,
    /// Other background work has its turn.
    Full,
}

impl Background {
    /// Lets the model read as much as one turn allows. Returns false if something is left for the next turn.
    pub(super) async fn read_some_imports(&self, pending: &[PendingImport], now: Timestamp) -> Result<bool, Error> {
        let (mut room, mut failed) = (PARTS_AT_ONCE, None);
        let mut unread: Vec<&PendingImport> = pending.iter().filter(|import| !import.is_read).collect();
        self.imports.requests.sort(&mut unread);
        for import in unread {
            match self.read_import(import, now, &mut room).await {
                Ok(TurnEnd::Whole) => {}
                Ok(TurnEnd::NoRequestsLeft) => self.imports.look_again(after(now, TRY_AGAIN)),
                // What failed used up its part of the turn. A model that is away is not asked again at once.
                Ok(TurnEnd::Full) => return failed.map_or(Ok(false), Err),
                // Live chat comes first.
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                // One chat must not hold up the others.
                Err(error) => {
                    self.imports.requests.note_failed(&import.chat);
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(true), Err)
    }

    async fn read_import(&self, import: &PendingImport, now: Timestamp, room: &mut usize) -> Result<TurnEnd, Error> {
        let (platform, place) = (import.platform.clone(), import.scope.clone());
        let home = PersonaPlace { platform, place, persona: import.persona.clone() };
        let overrides = self.minds.overrides(&home.platform, &home.place).await?;
        if overrides.garden.extract_every == 0 || !self.model_extracts(overrides.garden.extract_with_model) {
            return Ok(TurnEnd::Whole);
        }
        let read_scope = scope_of_import(import);
        loop {
            if *room == 0 || self.services.stopping.is_cancelled() {
                return Ok(TurnEnd::Full);
            }
            if self.requests_about(import, &home, now).await? == 0 {
                return Ok(TurnEnd::NoRequestsLeft);
            }
            let (of, chat) = (read_scope.clone(), import.chat.clone());
            let read = move |memory: &azera_memory::Memory| memory.imports().to_read(&of, &chat, PART, CONTEXT_LINES);
            let Some(UnsearchedPart { rows, from, next }) = self.services.blocking(read).await? else {
                return Ok(TurnEnd::Whole);
            };
            *room -= 1;
            let is_new = |row: &MessageRow| row.seq >= from && row.author.person() == Some(&import.person);
            let search = Search {
                of: Origin::Import(import),
                home: home.clone(),
                read_scope: read_scope.clone(),
                is_new: rows.iter().map(is_new).collect(),
                rows: rows.iter().collect(),
                classified: Vec::new(),
                progress: ExtractionProgress { seq: from.saturating_sub(1), ..ExtractionProgress::none() },
                now,
            };
            if !self.search(search).await? {
                continue;
            }
            // What follows may be nobody's words, or forgotten.
            self.note_read(&import.chat, next).await?;
        }
    }

    /// Notes that a chat was read up to the message before the number `next`. Its statements wait to be compared when all
    /// of it was read: a comparison that fails then repeats no request about the chat.
    pub(super) async fn note_read(&self, chat: &ChatId, next: u64) -> Result<(), Error> {
        let of = chat.clone();
        if !self.services.blocking(move |memory| memory.imports().note_read(&of, next)).await? {
            // The record says that the chat waits. A comparison that began before is not enough.
            self.imports.note_grown(chat);
            self.imports.wake(self.services.clock.now());
        }
        Ok(())
    }

    /// Returns how many more requests about the imports of a person are allowed today.
    pub(super) async fn requests_about(
        &self,
        import: &PendingImport,
        home: &PersonaPlace,
        now: Timestamp,
    ) -> Result<u32, Error> {
        let overrides = self.minds.overrides(&home.platform, &home.place).await?;
        let today = day(now, &overrides.params.zone);
        // Half of them, as for other single conversations.
        let allowed = overrides.garden.per_day.div_ceil(2);
        Ok(allowed.saturating_sub(self.imports.requests.on(&today, import)))
    }
}
