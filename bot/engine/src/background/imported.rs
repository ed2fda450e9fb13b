//! Compares what is worth keeping in conversations that somebody imported with what they said elsewhere. A command that
//! imports has no chat model that could compare, so the running bot does it later. `imported_search` finds what is worth
//! keeping.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_memory::{PendingImport, ReadScope};
use azera_types::{ChatId, MemoryId, PersonId, Place, PlaceKind, ReadableScopes, Scope, Timestamp};

use super::TRY_AGAIN;
use super::extract::Comparison;
use super::imported_reading::Requests;
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
    /// What the chat model was asked about imported chats today.
    pub(super) requests: Requests,
}

struct WaitingState {
    /// When to look for chats that wait; `None` if none does.
    due: Option<Timestamp>,
    /// True until chats of older versions were looked for.
    may_be_older: bool,
    /// The chats whose comparison began, each with the statements that are left, the oldest first, if they were read. A
    /// chat that gets more statements is not among them any more.
    begun: HashMap<ChatId, Option<VecDeque<MemoryId>>>,
}

impl Default for WaitingImports {
    fn default() -> Self {
        // Another process may have left some.
        let waiting = WaitingState { due: Some(Timestamp::MIN), may_be_older: true, begun: HashMap::new() };
        Self { waiting: Mutex::new(waiting), searching: tokio::sync::Mutex::default(), requests: Requests::default() }
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

    /// Looks again at a time, or before that if something else wants it.
    pub(super) fn look_again(&self, at: Timestamp) {
        let mut state = self.lock();
        state.due = Some(state.due.map_or(at, |due| due.min(at)));
    }

    /// Drops the comparisons of chats that wait no more, such as undone ones.
    fn keep_begun(&self, pending: &[PendingImport]) {
        self.lock().begun.retain(|chat, _| pending.iter().any(|import| import.chat == *chat));
    }

    /// Begins the comparison of a chat, or goes on with it. Returns the statements that are left; `None` if they are to be
    /// read.
    fn go_on(&self, chat: &ChatId) -> Option<VecDeque<MemoryId>> {
        self.lock().begun.entry(chat.clone()).or_default().take()
    }

    /// Notes which statements of a chat are left, unless more came since its comparison began.
    fn note_left(&self, chat: &ChatId, left: VecDeque<MemoryId>) {
        if let Some(before) = self.lock().begun.get_mut(chat) {
            *before = Some(left);
        }
    }

    /// Ends the comparison of a chat. Returns false if statements came since it began.
    fn end(&self, chat: &ChatId) -> bool {
        self.lock().begun.remove(chat).is_some()
    }
}

/// Returns what may be read where an imported conversation counts as said, for the person who imported it alone.
pub(super) fn scope_of_import(import: &PendingImport) -> ReadScope {
    let place = place(&import.chat, &import.person, &import.scope);
    ReadScope::in_place(import.persona.clone(), &place, &ReadableScopes::default())
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

    /// Searches, compares and reads what waits, if it is time to look for it.
    pub(super) async fn learn_from_imports(&self, now: Timestamp) {
        if !self.imports.take_due(now) {
            return;
        }
        let searched = self.search_some_imports().await;
        let (compared, read) = match self.searched_imports().await {
            Ok(pending) => (self.compare_waiting(&pending).await, self.read_some_imports(&pending, now).await),
            Err(error) => (Err(error), Ok(true)),
        };
        let done = [searched, compared, read];
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

    /// Lets the chats be searched once more that an older version searched.
    pub(super) async fn search_older_imports(&self) -> Result<(), Error> {
        if !self.imports.lock().may_be_older {
            return Ok(());
        }
        // A step that runs now would note its place over the beginning.
        let _none_runs = self.imports.searching.lock().await;
        let chats = self.services.blocking(|memory| memory.imports().search_older()).await?;
        if chats > 0 {
            tracing::info!(chats, "imports of an older version are searched once more");
        }
        self.imports.lock().may_be_older = false;
        Ok(())
    }

    /// Searches what was imported in the next turn of the background.
    pub(crate) fn search_imports_soon(&self) {
        self.imports.wake(self.services.clock.now());
    }

    /// Returns the chats that wait and were searched to their end. More statements may come to the others, and a comparison
    /// would begin anew with each part.
    async fn searched_imports(&self) -> Result<Vec<PendingImport>, Error> {
        let mut pending = self.services.blocking(|memory| memory.imports().pending()).await?;
        self.imports.keep_begun(&pending);
        pending.retain(|import| import.is_searched);
        Ok(pending)
    }

    /// Compares as much of what waits as one turn allows. Returns false if something is left for the next turn.
    async fn compare_waiting(&self, pending: &[PendingImport]) -> Result<bool, Error> {
        let (mut room, mut failed, mut failures) = (AT_ONCE, None, 0);
        for import in pending.iter().filter(|import| import.waits) {
            match self.compare_chat(import, &mut room).await {
                Ok(true) => self.end_comparison(&import.chat).await?,
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
    async fn compare_chat(&self, import: &PendingImport, room: &mut usize) -> Result<bool, Error> {
        let read_scope = scope_of_import(import);
        let mut left = match self.imports.go_on(&import.chat) {
            Some(left) => left,
            None => {
                let (of, chat, person) = (read_scope.clone(), import.chat.clone(), import.person.clone());
                let marked = self.services.blocking(move |memory| memory.imports().marked(&of, &chat, &person)).await?;
                marked.into_iter().map(|(_, id)| id).collect()
            }
        };
        let compared = self.compare_statements(import, &read_scope, &mut left, room).await;
        self.imports.note_left(&import.chat, left);
        compared
    }

    /// Compares statements of an imported chat, and takes each of them from `left`. Returns false if some are left.
    async fn compare_statements(
        &self,
        import: &PendingImport,
        read_scope: &ReadScope,
        left: &mut VecDeque<MemoryId>,
        room: &mut usize,
    ) -> Result<bool, Error> {
        while let Some(id) = left.front().copied() {
            if *room == 0 || self.services.stopping.is_cancelled() {
                return Ok(false);
            }
            // One before it may have replaced it.
            let of = read_scope.clone();
            let read = move |memory: &azera_memory::Memory| {
                let Some(row) = memory.memories().get(&of, id)? else { return Ok(None) };
                let Some(source) = row.sources.first() else { return Ok(None) };
                let stands = row.salience.filter(azera_memory::Salience::stands);
                Ok(memory.messages().get(&of, source)?.zip(stands))
            };
            if let Some((row, salience)) = self.services.blocking(read).await? {
                *room -= 1;
                self.mark_salient(read_scope, &import.person, &row, salience, Comparison::Again).await?;
            }
            left.pop_front();
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
        assert_eq!(imports.go_on(&chat), None, "nothing was read yet");
        imports.note_left(&chat, [MemoryId(7)].into());
        assert_eq!(imports.go_on(&chat), Some([MemoryId(7)].into()), "the next turn goes on with the rest");
        imports.note_grown(&chat);
        imports.note_left(&chat, VecDeque::new());
        imports.wake(now);
        imports.look_again(after(now, TRY_AGAIN));
        assert!(!imports.end(&chat), "the chat still waits");
        assert!(imports.take_due(now), "and is looked at now");
        assert_eq!(imports.go_on(&chat), None, "from its beginning");
        assert!(imports.end(&chat));
    }
}
