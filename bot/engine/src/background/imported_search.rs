//! Searches conversations that somebody imported for what is worth keeping, from their first message to their last. The
//! classifiers search them in steps, and the record knows how far they are: a stop or a crash costs at most one step, and
//! what was marked in it before is not marked again. Searches take turns step by step, so that a large import holds up no
//! other. Only the words of the person who imported count.

use std::collections::BTreeSet;
use std::time::Duration;

use azera_affect::Classifiers;
use azera_memory::{MessageRow, PendingImport, ReadScope, Salience, UnsearchedPart};
use azera_types::ChatId;
use tokio_util::sync::CancellationToken;

use super::extract::Comparison;
use super::imported::scope_of_import;
use crate::background::Background;
use crate::error::Error;

/// Messages of one step.
const STEP: usize = 64;

/// Bytes of the messages of one step. A single message may be longer.
const STEP_BYTES: usize = 128 << 10;

/// The person's last messages before a step that stay in sight, so that a correction finds what it corrects.
const IN_SIGHT: usize = 2;

/// Messages in one turn of the background. Other work has its turn after them.
const AT_ONCE: usize = 128;

/// Messages that somebody waits for who asks for a search. The background searches the rest.
const ASKED_FOR: usize = 2_048;

/// Longest wait of a step for people who wait for an answer.
const LONGEST_YIELD: Duration = Duration::from_secs(30);

/// A conversation that is searched.
struct Search<'a> {
    classifiers: &'a Classifiers,
    import: PendingImport,
    read_scope: ReadScope,
    stop: &'a CancellationToken,
}

impl Background {
    /// Marks what is worth keeping in imported chats that were not searched to their end: in those of `chats`, or in all,
    /// and in a bounded number of messages. Does nothing without the classifiers. All statements stand until the running
    /// bot compares them. Returns false if the background has to go on, because `stop` was cancelled or for another reason.
    pub(crate) async fn search_imports(
        &self,
        chats: Option<&BTreeSet<ChatId>>,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        let is_settled = tokio::select! {
            biased;
            () = self.until_stopped(stop) => false,
            () = self.judge.classifiers.settled() => true,
        };
        let searched = if is_settled { self.search_unsearched(chats, ASKED_FOR, stop).await } else { Ok(false) };
        // The background goes on with what is left, and lets a model read what was searched.
        self.search_imports_soon();
        searched
    }

    /// Searches as much of what was imported as one turn allows. Returns false if something is left for the next turn.
    pub(super) async fn search_some_imports(&self) -> Result<bool, Error> {
        self.search_older_imports().await?;
        self.search_unsearched(None, AT_ONCE, &self.services.stopping).await
    }

    async fn until_stopped(&self, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.services.stopping.cancelled() => {}
        }
    }

    /// Searches about `room` messages at most. Returns false if something is left to search.
    async fn search_unsearched(
        &self,
        chats: Option<&BTreeSet<ChatId>>,
        mut room: usize,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        let mut pending = self.services.blocking(|memory| memory.imports().pending()).await?;
        pending.retain(|import| !import.is_searched && chats.is_none_or(|chats| chats.contains(&import.chat)));
        let mut failed = None;
        for import in pending {
            let Some(classifiers) = self.judge.classifiers.now() else { return Ok(false) };
            let search = Search { classifiers: &classifiers, read_scope: scope_of_import(&import), import, stop };
            match self.search_chat(&search, &mut room).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                // One chat must not hold up the others.
                Err(error) => {
                    if failed.is_none() {
                        tracing::info!(%error, "an imported chat is searched later");
                    }
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(true), Err)
    }

    /// Returns false if some of the chat is left to search.
    async fn search_chat(&self, search: &Search<'_>, room: &mut usize) -> Result<bool, Error> {
        let (mut expected, mut in_sight) = (None, Vec::new());
        loop {
            if *room == 0 {
                return Ok(false);
            }
            let turn = async {
                self.services.foreground.until_quiet(LONGEST_YIELD).await;
                self.imports.searching.lock().await
            };
            let _one = tokio::select! {
                biased;
                () = self.until_stopped(search.stop) => return Ok(false),
                turn = turn => turn,
            };
            let (of, chat) = (search.read_scope.clone(), search.import.chat.clone());
            let read = move |memory: &azera_memory::Memory| memory.imports().to_search(&of, &chat, STEP);
            let Some(part) = self.services.blocking(read).await?.map(cut) else { return Ok(true) };
            if expected != Some(part.from) {
                // Another search went on meanwhile.
                in_sight.clear();
            }
            let count = part.rows.len();
            let Some(last) = self.search_part(search, in_sight, part.rows).await? else { return Ok(false) };
            let (chat, next) = (search.import.chat.clone(), part.next);
            if !self.services.blocking(move |memory| memory.imports().note_searched(&chat, next)).await? {
                return Ok(true);
            }
            *room = room.saturating_sub(count);
            (expected, in_sight) = (Some(next), last);
        }
    }

    /// Searches a part of a chat behind some messages of the person. Returns the last messages of the person in it; `None`
    /// if the search was stopped first.
    async fn search_part(
        &self,
        search: &Search<'_>,
        before: Vec<MessageRow>,
        part: Vec<MessageRow>,
    ) -> Result<Option<Vec<MessageRow>>, Error> {
        let own = |row: &MessageRow| row.author.person() == Some(&search.import.person);
        let seen = before.len();
        let mut rows = before;
        rows.extend(part.into_iter().filter(own));
        let all: Vec<&MessageRow> = rows.iter().collect();
        let found = tokio::select! {
            biased;
            () = self.until_stopped(search.stop) => return Ok(None),
            found = self.find_salient(search.classifiers, &all) => found?,
        };
        let is_new = |row: &MessageRow| rows.iter().skip(seen).any(|new| new.id == row.id);
        let found: Vec<_> = found.into_iter().filter(|(row, _)| is_new(row)).collect();
        let waits = !found.is_empty();
        for (row, salience) in found {
            // A step that broke off begins again.
            if !self.is_marked(&search.read_scope, row).await? {
                self.mark_salient(&search.read_scope, &search.import.person, row, salience, Comparison::Later).await?;
            }
        }
        if waits {
            // In this order a comparison that ends now does not take the new statements for compared.
            self.imports.note_grown(&search.import.chat);
            self.set_waiting(&search.import.chat, true).await?;
            self.imports.wake(self.services.clock.now());
        }
        let kept = rows.len().saturating_sub(IN_SIGHT);
        Ok(Some(rows.split_off(kept)))
    }

    async fn is_marked(&self, read_scope: &ReadScope, row: &MessageRow) -> Result<bool, Error> {
        Ok(self.mark_on(read_scope, row).await?.is_some())
    }

    /// Returns the mark on a message; `None` if it has none.
    pub(super) async fn mark_on(&self, read_scope: &ReadScope, row: &MessageRow) -> Result<Option<Salience>, Error> {
        let (of, id) = (read_scope.clone(), row.id.clone());
        let read = move |memory: &azera_memory::Memory| {
            let Some(id) = memory.messages().memory_of(&of, &id)? else { return Ok(None) };
            Ok(memory.memories().get(&of, id)?.and_then(|memory| memory.salience))
        };
        self.services.blocking(read).await
    }
}

/// Cuts a part to what one step searches: long messages have many sentences.
fn cut(mut part: UnsearchedPart) -> UnsearchedPart {
    let mut bytes = 0;
    let fits = |row: &&MessageRow| {
        bytes += row.text.as_str().len();
        bytes <= STEP_BYTES
    };
    let count = part.rows.iter().take_while(fits).count().max(1);
    if let Some(next) = part.rows.get(count).map(|row| row.seq) {
        part.rows.truncate(count);
        part.next = next;
    }
    part
}
