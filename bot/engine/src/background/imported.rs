//! Compares what is worth keeping in conversations that somebody imported with what they said elsewhere. A command that
//! imports has no chat model that could compare, so the running bot does it later. `imported_search` finds what is worth
//! keeping.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_memory::ReadScope;
use azera_types::{ChatId, MemoryId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, Scope, Timestamp};

use super::TRY_AGAIN;
use super::extract::Comparison;
use super::schedule::after;
use crate::background::Background;
use crate::error::Error;

/// Statements that are compared before other background work has its turn.
const AT_ONCE: usize = 24;

/// Comparisons that fail for a passing reason before the others wait, too. A model that is away is asked no more often.
const FAILURES: usize = 3;

/// The imported chats that wait to be searched or compared, as far as it is not in the record.
pub(super) struct WaitingImports {
    waiting: Mutex<WaitingState>,
    /// Held during a step of a search, so that no message is searched twice at once.
    pub(super) searching: tokio::sync::Mutex<()>,
}

struct WaitingState {
    /// When to look for chats that wait; `None` if none does.
    due: Option<Timestamp>,
    /// The chats whose comparison began, each with the last statement that was compared. A chat that gets more
    /// statements is not among them any more.
    begun: HashMap<ChatId, Option<(Timestamp, MemoryId)>>,
}

impl Default for WaitingImports {
    fn default() -> Self {
        // Another process may have left some.
        let waiting = WaitingState { due: Some(Timestamp::MIN), begun: HashMap::new() };
        Self { waiting: Mutex::new(waiting), searching: tokio::sync::Mutex::default() }
    }
}

impl WaitingImports {
    fn lock(&self) -> MutexGuard<'_, WaitingState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that statements came to a chat, so that its comparison begins anew.
    pub(super) fn note_grown(&self, chat: &ChatId) {
        self.lock().begun.remove(chat);
    }

    /// Lets somebody look for chats that wait.
    pub(super) fn wake(&self, now: Timestamp) {
        self.lock().due = Some(now);
    }

    /// Returns true if it is time to look. What comes meanwhile wakes again.
    fn take_due(&self, now: Timestamp) -> bool {
        let mut state = self.lock();
        let is_due = state.due.is_some_and(|due| due <= now);
        if is_due {
            state.due = None;
        }
        is_due
    }

    /// Looks again at a time, unless something came meanwhile that says when.
    fn look_again(&self, at: Timestamp) {
        self.lock().due.get_or_insert(at);
    }

    /// Begins the comparison of a chat, or goes on with it. Returns the last statement that was compared.
    fn go_on(&self, chat: &ChatId) -> Option<(Timestamp, MemoryId)> {
        *self.lock().begun.entry(chat.clone()).or_default()
    }

    fn note_compared(&self, chat: &ChatId, last: (Timestamp, MemoryId)) {
        if let Some(before) = self.lock().begun.get_mut(chat) {
            *before = Some(last);
        }
    }

    /// Ends the comparison of a chat. Returns false if statements came since it began.
    fn end(&self, chat: &ChatId) -> bool {
        self.lock().begun.remove(chat).is_some()
    }
}

/// Returns what may be read where an imported conversation counts as said, for the person who imported it alone.
pub(super) fn scope_of_import(persona: PersonaId, chat: &ChatId, person: &PersonId, scope: &Scope) -> ReadScope {
    ReadScope::in_place(persona, &place(chat, person, scope), &ReadableScopes::default())
}

/// Returns where an imported conversation counts as said.
fn place(chat: &ChatId, person: &PersonId, scope: &Scope) -> Place {
    let kind = match scope {
        Scope::Realm(realm) => PlaceKind::Public(realm.clone()),
        _ => PlaceKind::Dm(person.clone()),
    };
    Place { chat: chat.clone(), kind, since: None }
}

impl Background {
    pub(super) async fn set_waiting(&self, chat: &ChatId, is_waiting: bool) -> Result<(), Error> {
        let chat = chat.clone();
        self.services.blocking(move |memory| memory.imports().set_waiting(&chat, is_waiting)).await
    }

    /// Searches and compares what waits, if it is time to look for it.
    pub(super) async fn learn_from_imports(&self, now: Timestamp) {
        if !self.imports.take_due(now) {
            return;
        }
        let done = [self.search_some_imports().await, self.compare_waiting().await];
        for error in done.iter().filter_map(|done| done.as_ref().err()) {
            tracing::info!(%error, "an import is searched and compared later");
        }
        // What fails must not hold up the rest.
        if done.iter().any(|done| matches!(done, Ok(false))) {
            self.imports.look_again(now);
        } else if done.iter().any(Result::is_err) {
            self.imports.look_again(after(now, TRY_AGAIN));
        }
    }

    /// Searches what was imported in the next turn of the background.
    pub(crate) fn search_imports_soon(&self) {
        self.imports.wake(self.services.clock.now());
    }

    /// Compares as much of what waits as one turn allows. Returns false if something is left for the next turn.
    async fn compare_waiting(&self) -> Result<bool, Error> {
        let (mut room, mut failed, mut failures) = (AT_ONCE, None, 0);
        let read = |memory: &azera_memory::Memory| Ok((memory.imports().unsearched()?, memory.imports().waiting()?));
        let (unsearched, waiting) = self.services.blocking(read).await?;
        for (chat, persona, person, scope) in waiting {
            // More statements may come, and a comparison would begin anew with each part.
            if unsearched.iter().any(|(other, ..)| *other == chat) {
                continue;
            }
            let read_scope = scope_of_import(persona, &chat, &person, &scope);
            match self.compare_chat(&chat, &read_scope, &person, &mut room).await {
                Ok(true) => self.end_comparison(&chat).await?,
                Ok(false) => return Ok(false),
                // One chat must not hold up the others.
                Err(error) => {
                    failures += usize::from(error.is_transient());
                    failed = Some(error);
                }
            }
            if failures == FAILURES {
                break;
            }
        }
        failed.map_or(Ok(true), Err)
    }

    /// Compares the statements of an imported chat that stand, the oldest first. Returns false if some are left for the
    /// next turn.
    async fn compare_chat(
        &self,
        chat: &ChatId,
        read_scope: &ReadScope,
        person: &PersonId,
        room: &mut usize,
    ) -> Result<bool, Error> {
        let last = self.imports.go_on(chat);
        let (of, who) = (read_scope.clone(), person.clone());
        let mut marked = self.services.blocking(move |memory| memory.memories().salient(&of, &who, usize::MAX)).await?;
        marked.retain(|memory| memory.chat.as_ref() == Some(chat));
        marked.retain(|memory| last.is_none_or(|last| (memory.at, memory.id) > last));
        marked.sort_by_key(|memory| (memory.at, memory.id));
        for memory in marked {
            if *room == 0 || self.services.stopping.is_cancelled() {
                return Ok(false);
            }
            // One before it may have replaced it.
            let (of, id) = (read_scope.clone(), memory.id);
            let read = move |memory: &azera_memory::Memory| {
                let Some(row) = memory.memories().get(&of, id)? else { return Ok(None) };
                let Some(source) = row.sources.first() else { return Ok(None) };
                let stands = row.salience.filter(|salience| salience.superseded.is_none());
                Ok(memory.messages().get(&of, source)?.zip(stands))
            };
            if let Some((row, salience)) = self.services.blocking(read).await? {
                *room -= 1;
                self.mark_salient(read_scope, person, &row, salience, Comparison::Again).await?;
            }
            self.imports.note_compared(chat, (memory.at, memory.id));
        }
        Ok(true)
    }

    /// Notes that all statements of a chat were compared, unless more came meanwhile.
    async fn end_comparison(&self, chat: &ChatId) -> Result<(), Error> {
        self.set_waiting(chat, false).await?;
        if !self.imports.end(chat) {
            self.set_waiting(chat, true).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_during_a_comparison_is_compared_too() {
        let (imports, chat) = (WaitingImports::default(), ChatId::new("import:a").unwrap());
        let now = Timestamp::UNIX_EPOCH;
        assert!(imports.take_due(now) && !imports.take_due(now), "a start looks once");
        assert_eq!(imports.go_on(&chat), None);
        imports.note_compared(&chat, (now, MemoryId(7)));
        assert_eq!(imports.go_on(&chat), Some((now, MemoryId(7))), "the next turn goes on behind it");
        imports.note_grown(&chat);
        imports.wake(now);
        imports.look_again(after(now, TRY_AGAIN));
        assert!(!imports.end(&chat), "the chat still waits");
        assert!(imports.take_due(now), "and is looked at now");
        assert_eq!(imports.go_on(&chat), None, "from its beginning");
        assert!(imports.end(&chat));
    }
}
