//! Statements of the session's person in a form that tools read again, such as checkpoints. Each is a fact like any other: it
//! is kept by `/remember`, read under the read scope, and forgotten by its id.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, Weak};

use azera_adapter::{FactPage, Reading, ShownMemory};
use azera_types::{MemoryId, PersonId};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::failure::Failure;
use crate::session::Caller;

/// Facts that are read first, and most that are read at once. What is looked for is mostly new.
const FIRST_PAGE: usize = 16;
const PAGE: usize = 512;

/// Most facts of a label that one call looks at: the newest ones of the person.
const REACH: usize = 5_000;

/// The locks of people for whom a statement is looked for and kept now. All sessions of a process share them.
static STATING: LazyLock<std::sync::Mutex<HashMap<PersonId, Weak<Mutex<()>>>>> = LazyLock::new(Default::default);

fn lock_of(person: &PersonId) -> Arc<Mutex<()>> {
    let mut people = STATING.lock().unwrap_or_else(PoisonError::into_inner);
    people.retain(|_, lock| lock.strong_count() > 0);
    let lock = people.get(person).and_then(Weak::upgrade).unwrap_or_default();
    people.insert(person.clone(), Arc::downgrade(&lock));
    lock
}

/// Waits until no other statement of the person is looked for and kept: two at once would not see each other.
pub(crate) async fn stating(person: &PersonId) -> OwnedMutexGuard<()> {
    lock_of(person).lock_owned().await
}

/// Returns true if the person asked to keep a fact. Parts of long files are facts, too.
pub(crate) fn is_kept_by(fact: &ShownMemory, person: &PersonId) -> bool {
    fact.kind == "fact" && fact.sources.is_empty() && fact.author.person() == Some(person)
}

/// A walk over what the person asked to keep with a label, newest first.
pub(crate) struct Walk<'a> {
    caller: &'a Caller,
    at: &'a Reading,
    label: &'static str,
    /// The last fact that was looked at.
    before: Option<MemoryId>,
    page: std::vec::IntoIter<ShownMemory>,
    /// Where the next page begins; `None` if there is none.
    next: Option<Option<MemoryId>>,
    size: usize,
    looked: usize,
}

impl Walk<'_> {
    /// Returns the next own fact that `parse` takes; `None` at the end, or after [`REACH`] facts.
    pub(crate) async fn next<T>(
        &mut self,
        parse: impl Fn(&ShownMemory) -> Option<T>,
    ) -> Result<Option<(ShownMemory, T)>, Failure> {
        let person = &self.caller.session.person;
        loop {
            for fact in self.page.by_ref() {
                self.before = Some(fact.id);
                if is_kept_by(&fact, person)
                    && let Some(parsed) = parse(&fact)
                {
                    return Ok(Some((fact, parsed)));
                }
            }
            let Some(before) = self.next.filter(|_| self.looked < REACH) else { return Ok(None) };
            let Caller { engine, session } = self.caller;
            let page = FactPage { label: Some(self.label), before, limit: self.size };
            let found = engine.memories.own_facts(&session.platform, self.at.clone(), page).await?;
            self.size = PAGE.min(self.size * 2);
            self.looked += found.looked;
            self.next = found.rest.map(Some);
            self.page = found.facts.into_iter();
        }
    }

    /// Returns what the next walk begins behind, if there may be more.
    pub(crate) fn rest(&self) -> Option<MemoryId> {
        if self.page.as_slice().is_empty() { self.next.flatten() } else { self.before }
    }
}

impl Caller {
    /// Begins to look through what the person asked to keep with a label, which is the word that a statement begins with:
    /// behind one memory, or from the newest on.
    pub(crate) fn walk<'a>(&'a self, at: &'a Reading, label: &'static str, before: Option<MemoryId>) -> Walk<'a> {
        let page = Vec::new().into_iter();
        Walk { caller: self, at, label, before, page, next: Some(before), size: FIRST_PAGE, looked: 0 }
    }
}

/// Returns a name that can stand in a statement: it has one line, no quotation mark, and at most `most` characters.
pub(crate) fn name(given: &str, field: &str, most: usize) -> Result<String, Failure> {
    // Stored texts have composed letters, too.
    let name = azera_types::Text::new(given.trim()).to_string();
    let is_plain = !name.is_empty() && !name.contains('"') && !name.contains(char::is_control);
    if is_plain && name.chars().count() <= most {
        return Ok(name);
    }
    Err(Failure::invalid(format!("`{field}` must be on one line, without `\"`, and have at most {most} characters.")))
}

#[cfg(test)]
mod tests {
    use azera_types::PersonId;

    use super::{lock_of, stating};

    #[tokio::test]
    async fn a_statement_waits_for_those_of_its_person_alone() {
        let [ann, bob] = ["ann of a lock", "bob of a lock"].map(|id| PersonId::new(id).unwrap());
        let one = stating(&ann).await;
        assert!(lock_of(&ann).try_lock().is_err());
        assert!(lock_of(&bob).try_lock().is_ok());
        drop(one);
        assert!(lock_of(&ann).try_lock().is_ok());
    }
}
