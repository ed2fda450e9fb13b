//! Searches conversations that somebody imported for what is worth keeping, from their first message to their last. The
//! classifiers search them in steps, and the record knows how far they are: a stop or a crash costs at most one step, and
//! what was marked in it before is not marked again. Only the words of the person who imported count.

use std::collections::BTreeSet;
use std::time::Duration;

use azera_affect::Classifiers;
use azera_memory::{MessageRow, ReadScope};
use azera_types::{ChatId, PersonId};

use super::extract::Comparison;
use super::imported::scope_of_import;
use crate::background::Background;
use crate::error::Error;

/// Messages of one step.
const STEP: usize = 64;

/// The person's last messages before a step that stay in sight, so that a correction finds what it corrects.
const IN_SIGHT: usize = 2;

/// Messages in one turn of the background. Other work has its turn after them.
const AT_ONCE: usize = 128;

/// Longest wait of a step for people who wait for an answer.
const LONGEST_YIELD: Duration = Duration::from_secs(30);

/// A conversation that is searched.
struct Search<'a> {
    classifiers: &'a Classifiers,
    chat: ChatId,
    person: PersonId,
    read_scope: ReadScope,
}

impl Background {
    /// Marks what is worth keeping in imported chats that were not searched to their end: in those of `chats`, or in all.
    /// Does nothing without the classifiers. All statements stand until the running bot compares them.
    pub(crate) async fn search_imports(&self, chats: Option<&BTreeSet<ChatId>>) -> Result<(), Error> {
        self.judge.classifiers.settled().await;
        let _one = self.imports.searching.lock().await;
        self.search_unsearched(chats, usize::MAX).await.map(drop)
    }

    /// Searches as much of what was imported as one turn allows. Returns false if something is left for the next turn.
    pub(super) async fn search_some_imports(&self) -> Result<bool, Error> {
        match self.imports.searching.try_lock() {
            Ok(_one) => self.search_unsearched(None, AT_ONCE).await,
            Err(_) => Ok(false),
        }
    }

    /// Searches about `room` messages at most. Returns false if something is left to search.
    async fn search_unsearched(&self, chats: Option<&BTreeSet<ChatId>>, mut room: usize) -> Result<bool, Error> {
        let unsearched = self.services.blocking(|memory| memory.imports().unsearched()).await?;
        for (chat, persona, person, scope) in unsearched {
            if chats.is_some_and(|chats| !chats.contains(&chat)) {
                continue;
            }
            let Some(classifiers) = self.judge.classifiers.now() else { return Ok(false) };
            let read_scope = scope_of_import(persona, &chat, &person, &scope);
            let search = Search { classifiers: &classifiers, chat, person, read_scope };
            if !self.search_chat(&search, &mut room).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns false if some of the chat is left to search.
    async fn search_chat(&self, search: &Search<'_>, room: &mut usize) -> Result<bool, Error> {
        let mut before: Vec<MessageRow> = Vec::new();
        loop {
            if *room == 0 || self.services.stopping.is_cancelled() {
                return Ok(false);
            }
            let (of, chat) = (search.read_scope.clone(), search.chat.clone());
            let read = move |memory: &azera_memory::Memory| memory.imports().to_search(&of, &chat, STEP);
            let Some(part) = self.services.blocking(read).await? else { return Ok(true) };
            *room = room.saturating_sub(part.rows.len());
            self.services.foreground.until_quiet(LONGEST_YIELD).await;
            before = self.search_part(search, before, part.rows).await?;
            let (chat, next) = (search.chat.clone(), part.next);
            self.services.blocking(move |memory| memory.imports().note_searched(&chat, next)).await?;
        }
    }

    /// Searches a part of a chat behind some messages of the person. Returns the last messages of the person in it.
    async fn search_part(
        &self,
        search: &Search<'_>,
        before: Vec<MessageRow>,
        part: Vec<MessageRow>,
    ) -> Result<Vec<MessageRow>, Error> {
        let own = |row: &MessageRow| row.author.person() == Some(&search.person);
        let seen = before.len();
        let mut rows = before;
        rows.extend(part.into_iter().filter(own));
        let all: Vec<&MessageRow> = rows.iter().collect();
        let found = self.find_salient(search.classifiers, &all).await?;
        let is_new = |row: &MessageRow| rows.iter().skip(seen).any(|new| new.id == row.id);
        let found: Vec<_> = found.into_iter().filter(|(row, _)| is_new(row)).collect();
        let waits = !found.is_empty();
        for (row, salience) in found {
            // A step that broke off begins again.
            if !self.is_marked(&search.read_scope, row).await? {
                self.mark_salient(&search.read_scope, &search.person, row, salience, Comparison::Later).await?;
            }
        }
        if waits {
            // In this order a comparison that ends now does not take the new statements for compared.
            self.imports.note_grown(&search.chat);
            self.set_waiting(&search.chat, true).await?;
            self.imports.wake(self.services.clock.now());
        }
        let kept = rows.len().saturating_sub(IN_SIGHT);
        Ok(rows.split_off(kept))
    }

    async fn is_marked(&self, read_scope: &ReadScope, row: &MessageRow) -> Result<bool, Error> {
        let (of, id) = (read_scope.clone(), row.id.clone());
        let read = move |memory: &azera_memory::Memory| {
            let Some(id) = memory.messages().memory_of(&of, &id)? else { return Ok(false) };
            Ok(memory.memories().get(&of, id)?.is_some_and(|memory| memory.salience.is_some()))
        };
        self.services.blocking(read).await
    }
}
