//! Statements of the session's person in a form that tools read again, such as checkpoints. Each is a fact like any other: it
//! is kept by `/remember`, read under the read scope, and forgotten by its id.

use azera_adapter::{Reading, ShownMemory};
use azera_types::{MemoryId, PersonId};
use tokio::sync::{Mutex, MutexGuard};

use crate::failure::Failure;
use crate::session::Caller;

/// Facts that are read first, and most that are read at once. What is looked for is mostly new.
const FIRST_PAGE: usize = 16;
const PAGE: usize = 512;

/// Most facts of the person among which one call looks for statements: the newest ones.
const REACH: usize = 5_000;

/// Most memories of the record that one call looks at to find these facts. Those of all people stand in one row.
const ROWS: usize = 50_000;

/// Held while a statement is looked for and kept: two at once would not see each other. All sessions of a process share it.
static STATING: Mutex<()> = Mutex::const_new(());

/// Waits until no other statement is looked for and kept.
pub(crate) async fn stating() -> MutexGuard<'static, ()> {
    STATING.lock().await
}

/// Returns true if the person asked to keep a fact. Parts of long files are facts, too.
pub(crate) fn is_kept_by(fact: &ShownMemory, person: &PersonId) -> bool {
    fact.kind == "fact" && fact.sources.is_empty() && fact.author.person() == Some(person)
}

/// A walk over what the person asked to keep, newest first.
pub(crate) struct Walk<'a> {
    caller: &'a Caller,
    at: &'a Reading,
    /// The last fact that was looked at.
    before: Option<MemoryId>,
    page: std::vec::IntoIter<ShownMemory>,
    /// Where the next page begins; `None` if there is none.
    next: Option<Option<MemoryId>>,
    size: usize,
    facts: usize,
    rows: usize,
}

impl Walk<'_> {
    /// Returns the next own fact that `parse` takes; `None` at the end, after [`REACH`] facts, or among [`ROWS`] memories.
    pub(crate) async fn next<T>(
        &mut self,
        parse: impl Fn(&ShownMemory) -> Option<T>,
    ) -> Result<Option<(ShownMemory, T)>, Failure> {
        let person = &self.caller.session.person;
        loop {
            for fact in self.page.by_ref() {
                self.before = Some(fact.id);
                self.facts += 1;
                if is_kept_by(&fact, person)
                    && let Some(parsed) = parse(&fact)
                {
                    return Ok(Some((fact, parsed)));
                }
            }
            let Some(begin) = self.next.filter(|_| self.facts < REACH && self.rows < ROWS) else {
                return Ok(None);
            };
            let Caller { engine, session } = self.caller;
            let found = engine.memories.own_facts(&session.platform, self.at.clone(), begin, self.size).await?;
            self.size = PAGE.min(self.size * 2);
            self.rows += found.looked;
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
    /// Begins to look through what the person asked to keep, behind one memory or from the newest on.
    pub(crate) fn walk<'a>(&'a self, at: &'a Reading, before: Option<MemoryId>) -> Walk<'a> {
        let page = Vec::new().into_iter();
        Walk { caller: self, at, before, page, next: Some(before), size: FIRST_PAGE, facts: 0, rows: 0 }
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
