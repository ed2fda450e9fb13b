//! Statements of the session's person in a form that tools read again, such as checkpoints. Each is a fact like any other: it
//! is kept by `/remember`, read under the read scope, and forgotten by its id.

use azera_adapter::{MemoryPage, Reading, ShownMemory};
use azera_types::MemoryId;

use crate::failure::Failure;
use crate::session::Caller;

/// Facts that are read at once.
const PAGE: usize = 500;

/// Most facts among which one call looks for statements: the newest ones.
const REACH: usize = 5_000;

/// A walk over what the person asked to keep, newest first.
pub(crate) struct Walk<'a> {
    caller: &'a Caller,
    at: &'a Reading,
    before: Option<MemoryId>,
    page: std::vec::IntoIter<ShownMemory>,
    is_last: bool,
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
                self.looked += 1;
                if fact.author.person() == Some(person)
                    && let Some(parsed) = parse(&fact)
                {
                    return Ok(Some((fact, parsed)));
                }
            }
            if self.is_last || self.looked >= REACH {
                return Ok(None);
            }
            let page = MemoryPage { kinds: vec!["fact".to_owned()], before: self.before, limit: PAGE };
            let Caller { engine, session } = self.caller;
            let facts = engine.memories.memories(&session.platform, self.at.clone(), page).await?;
            self.is_last = facts.len() < PAGE;
            self.page = facts.into_iter();
        }
    }

    /// Returns the last fact that was looked at, if there are more behind it.
    pub(crate) fn rest(&self) -> Option<MemoryId> {
        let is_over = self.is_last && self.page.as_slice().is_empty();
        self.before.filter(|_| !is_over)
    }
}

impl Caller {
    /// Begins to look through what the person asked to keep, behind one memory or from the newest on.
    pub(crate) fn walk<'a>(&'a self, at: &'a Reading, before: Option<MemoryId>) -> Walk<'a> {
        Walk { caller: self, at, before, page: Vec::new().into_iter(), is_last: false, looked: 0 }
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
