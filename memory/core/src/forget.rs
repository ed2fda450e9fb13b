//! Forgetting. Forgotten content leaves the rows, the indexes, the caches and the `/why` data at once. Its bytes leave
//! the disk with the next [`Forgetting::scrub`]; the transaction that removes the rows also requests that scrub.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, PersonaId, RealmId, Scope, Text, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domains::Forgetting;
use crate::files::let_go_of_parts;
use crate::forget_log::Forgotten;
use crate::forget_run::ForgetRun;
use crate::picture_starts::let_go_of_start;
use crate::rows::{MemoryRow, MessageRow, WritingRow};
use crate::{Batch, Durability, Error, ReadScope, Table, codec, keys};

/// What to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forget {
    /// One message and every memory of it.
    Message(MessageId),
    /// One memory and its source messages, because the memory would be rebuilt from them.
    Memory(MemoryId),
    /// Everything said in a chat between two times.
    Span {
        /// The chat.
        chat: ChatId,
        /// The first moment, inclusive.
        from: Timestamp,
        /// The last moment, inclusive.
        to: Timestamp,
    },
    /// Everything that a person said, everywhere.
    Person(PersonId),
    /// A chat and everything said in it.
    Chat(ChatId),
    /// A realm: everything said in its public chats and in the given private chats.
    Realm(RealmId, Vec<ChatId>),
    /// Every conversation that an import added something to, by the import's id.
    Import(String),
}

/// Counts of what a call of [`Forgetting::forget`] removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetReceipt {
    /// Messages of people.
    pub messages: usize,
    /// Replies. They were removed because they lay in the forgotten range, or because they were built on forgotten
    /// messages and the caller asked for that.
    pub replies: usize,
    /// Memories, each with its vectors and its entry in the text index.
    pub memories: usize,
    /// Rows that explain a reply (`/why`).
    pub why: usize,
    /// Chats that were removed entirely.
    pub chats: usize,
    /// Replies that were built on forgotten messages and remain.
    pub quoted_by: Vec<MessageId>,
    /// Removed replies that the platforms must retract: chat, id, and the time of writing.
    #[serde(skip)]
    pub retract: Vec<(ChatId, MessageId, Timestamp)>,
    /// Removed messages of people, for platforms that show them as captions: chat and id.
    #[serde(skip)]
    pub said: Vec<(ChatId, MessageId)>,
    /// Chats and personas whose cached prompt tokens must be dropped.
    #[serde(skip)]
    pub touched: HashSet<(ChatId, PersonaId)>,
}

impl Forgetting<'_> {
    /// Forgets `what`. With `quotes`, the replies built on it are forgotten too. Otherwise those replies are listed in
    /// the receipt and no longer recalled, so that they do not reveal what they took from it.
    pub fn forget(self, what: &Forget, quotes: bool) -> Result<ForgetReceipt, Error> {
        self.forget_and_tell(what, quotes, None)
    }

    /// Forgets like [`Forgetting::forget`] and returns a receipt that may be shown under `read_scope`. The receipt does not
    /// count or list replies in places outside `read_scope`, unless they were named themselves. The asker must not
    /// learn that a persona told somebody something in another place.
    pub fn forget_as_seen(self, read_scope: &ReadScope, what: &Forget, quotes: bool) -> Result<ForgetReceipt, Error> {
        self.forget_and_tell(what, quotes, Some(read_scope))
    }

    fn forget_and_tell(self, what: &Forget, quotes: bool, witness: Option<&ReadScope>) -> Result<ForgetReceipt, Error> {
        self.ask_for_scrub()?;
        let mut loose = Vec::new();
        // First: a picture that is drawn meanwhile is a message then, and found below.
        self.forget_waiting_pictures(what)?;
        let named = self.messages_to_forget(what, quotes, &mut loose)?;
        let built_on = self.all_built_on(&named, &loose)?;
        let mut run = ForgetRun::new(what, quotes, witness, &named);
        self.forget_loose(&mut run, &loose)?;
        self.forget_messages(&mut run, named.iter().chain(built_on.iter().filter(|_| quotes)))?;
        if !quotes {
            self.stop_recalling(&mut run, &built_on)?;
        }
        self.remove_places(what, &mut run)?;
        // A scrub that ran meanwhile may have copied rows before they were removed. So another one is requested.
        self.ask_for_scrub()?;
        Ok(run.into_receipt())
    }

    /// Commits a part of a forgetting, together with the ids that backups still have to forget.
    pub(crate) fn commit_forgetting(self, mut batch: Batch, gone: Forgotten) -> Result<(), Error> {
        if !gone.is_empty() {
            codec::put(&mut batch, Table::Forgotten, keys::numbered(&[], self.0.next_number()?), &gone)?;
        }
        self.0.files().commit_letting_go(batch, Durability::Flushed)?;
        self.0.forgettings.fetch_add(1, Ordering::SeqCst);
        self.0.origins.clear();
        self.0.mark_lists.clear();
        Ok(())
    }

    /// Removes the memories of a message and returns how many of them the asker may know about (`known`).
    pub(crate) fn unremember_for_good(
        self,
        batch: &mut Batch,
        id: &MessageId,
        gone: &mut Forgotten,
        touched: &mut HashSet<(ChatId, PersonaId)>,
        known: &dyn Fn(&MemoryRow) -> bool,
    ) -> Result<usize, Error> {
        let mut memories = self.0.turns().memories_of(id)?;
        // A memory with several source messages is removed with the first of them.
        memories.retain(|memory| gone.memory(memory.id));
        for memory in &memories {
            // A writing may be part of every prompt of its chat.
            if let Some(chat) = memory.chat.as_ref().filter(|_| memory.kind.is_written()) {
                touched.insert((chat.clone(), memory.persona.clone()));
            }
        }
        self.0.turns().unremember(batch, id)?;
        Ok(memories.iter().filter(|memory| known(memory)).count())
    }

    /// Returns the replies built on these messages and facts, directly or through other replies, without the messages
    /// themselves.
    pub(crate) fn all_built_on(
        self,
        messages: &HashSet<MessageId>,
        facts: &[MemoryRow],
    ) -> Result<HashSet<MessageId>, Error> {
        let mut all = HashSet::new();
        let mut next: Vec<MessageId> = Vec::new();
        for key in facts.iter().map(|fact| keys::built_on_fact(fact.id)) {
            next.extend(self.derived(&key)?);
        }
        for message in messages {
            next.extend(self.derived(&keys::prefix(&[message.as_str()]))?);
        }
        while let Some(reply) = next.pop() {
            if !messages.contains(&reply) && all.insert(reply.clone()) {
                next.extend(self.derived(&keys::prefix(&[reply.as_str()]))?);
            }
        }
        Ok(all)
    }

    fn derived(self, prefix: &[u8]) -> Result<Vec<MessageId>, Error> {
        codec::rows(self.0.store.as_ref(), Table::Derived, prefix)
    }

    fn messages_to_forget(
        self,
        what: &Forget,
        quotes: bool,
        loose: &mut Vec<MemoryRow>,
    ) -> Result<HashSet<MessageId>, Error> {
        let mut messages = HashSet::new();
        match what {
            Forget::Message(id) => {
                messages.insert(id.clone());
            }
            Forget::Memory(id) => {
                if let Some(memory) = self.0.memories().raw_memory(*id)? {
                    if memory.kind.is_written() {
                        // A writing is not made again, so its sources stay. The message it was posted as is forgotten.
                        messages.extend(
                            self.0.writings().raw_writing(&memory)?.and_then(|it| it.posted).map(|it| it.message),
                        );
                        loose.push(memory);
                    } else {
                        messages.extend(memory.sources.iter().cloned());
                        loose.extend(memory.sources.is_empty().then_some(memory));
                    }
                }
            }
            Forget::Span { chat, from, to } => {
                let mut gone = Forgotten::default();
                gone.span(chat.clone(), *from, *to, self.0.next_number()?);
                self.commit_forgetting(Batch::new(), gone)?;
                for message in self.log_of(chat)? {
                    if message.at >= *from && message.at <= *to {
                        messages.insert(message.id);
                    }
                }
                self.loose_memories(loose, |memory| {
                    memory.chat.as_ref() == Some(chat) && memory.at >= *from && memory.at <= *to
                })?;
            }
            Forget::Person(person) => {
                let mut gone = Forgotten::default();
                gone.person(person.clone(), self.0.next_number()?, quotes);
                self.commit_forgetting(Batch::new(), gone)?;
                messages.extend(self.0.messages().messages_of(person, usize::MAX)?);
                let pictures = self.0.pictures().of_person(person)?.into_iter();
                messages.extend(pictures.filter(|row| row.drawn_at.is_some()).map(|row| row.message));
                self.memories_of_person(person, &mut messages, loose)?;
                // The conversations that the person imported belong to the person, whoever spoke there.
                for chat in self.0.imports().chats_of_person(person)? {
                    messages.extend(self.log_of(&chat.id)?.into_iter().map(|message| message.id));
                }
                // Writings that the person imported belong to the person, too.
                codec::walk(self.0.store.as_ref(), Table::Writings, b"", |_, value| {
                    let writing: WritingRow = codec::decode(Table::Writings, value)?;
                    if writing.imported_by.as_ref() == Some(person) {
                        loose.extend(self.0.memories().raw_memory(writing.memory)?);
                    }
                    Ok(true)
                })?;
            }
            Forget::Chat(chat) => {
                messages.extend(self.log_of(chat)?.into_iter().map(|message| message.id));
                self.loose_memories(loose, |memory| memory.chat.as_ref() == Some(chat))?;
            }
            Forget::Import(id) => {
                for chat in self.0.imports().chats_of_import(id)? {
                    messages.extend(self.log_of(&chat.id)?.into_iter().map(|message| message.id));
                }
            }
            Forget::Realm(realm, private) => {
                let scope = Scope::Realm(realm.clone());
                codec::walk(self.0.store.as_ref(), Table::Messages, b"", |_, value| {
                    let message: MessageRow = codec::decode(Table::Messages, value)?;
                    if message.scope == scope || private.contains(&message.chat) {
                        messages.insert(message.id);
                    }
                    Ok(true)
                })?;
                self.loose_memories(loose, |memory| {
                    memory.scope == scope || memory.chat.as_ref().is_some_and(|chat| private.contains(chat))
                })?;
            }
        }
        Ok(messages)
    }

    /// Removes the pictures that wait and have no message yet.
    fn forget_waiting_pictures(self, what: &Forget) -> Result<(), Error> {
        let waiting = self.0.pictures().waiting_of(|row| match what {
            Forget::Person(person) => row.person == *person,
            Forget::Chat(chat) => row.chat == *chat,
            Forget::Span { chat, from, to } => row.chat == *chat && (*from..=*to).contains(&row.asked_at),
            Forget::Realm(realm, private) => row.scope == Scope::Realm(realm.clone()) || private.contains(&row.chat),
            Forget::Message(id) => row.message == *id || row.sources.contains(id),
            // Nobody asks for a picture in an imported chat.
            Forget::Memory(_) | Forget::Import(_) => false,
        })?;
        if waiting.is_empty() {
            return Ok(());
        }
        // Whoever draws writes under the same locks, and looks there whether the picture still waits.
        let _writing = self.0.writing_in(&waiting.iter().map(|row| row.chat.clone()).collect())?;
        let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
        for row in waiting {
            if self.0.pictures().is_waiting(&row.message)? {
                batch.remove(Table::Pictures, keys::message(&row.message));
                let_go_of_start(&mut batch, &row);
                gone.message(row.message);
            }
        }
        self.commit_forgetting(batch, gone)
    }

    /// Collects memories that no message leads to: facts that a person asked to remember, and writings, whose sources
    /// may lie in other places.
    fn loose_memories(self, loose: &mut Vec<MemoryRow>, wanted: impl Fn(&MemoryRow) -> bool) -> Result<(), Error> {
        codec::walk(self.0.store.as_ref(), Table::Memories, b"", |_, value| {
            let memory: MemoryRow = codec::decode(Table::Memories, value)?;
            if memory.stands_alone() && wanted(&memory) {
                loose.push(memory);
            }
            Ok(true)
        })
    }

    /// Collects the messages of a person's memories, and the memories that no message leads to. An older version could
    /// remember a message while it was forgotten: then only the memory tells whose it was.
    fn memories_of_person(
        self,
        person: &PersonId,
        messages: &mut HashSet<MessageId>,
        loose: &mut Vec<MemoryRow>,
    ) -> Result<(), Error> {
        let is_theirs = |message: &MessageRow| match &message.author {
            Author::Forgotten => true,
            author => author.person() == Some(person),
        };
        codec::walk(self.0.store.as_ref(), Table::Memories, b"", |_, value| {
            let memory: MemoryRow = codec::decode(Table::Memories, value)?;
            if memory.author.person() != Some(person) {
                return Ok(true);
            }
            let mut has_message = false;
            for id in &memory.sources {
                if messages.contains(id) || self.0.messages().raw_message(id)?.as_ref().is_some_and(is_theirs) {
                    has_message = true;
                    messages.insert(id.clone());
                }
            }
            if !has_message {
                loose.push(memory);
            }
            Ok(true)
        })
    }

    fn log_of(self, chat: &ChatId) -> Result<Vec<MessageRow>, Error> {
        let ids: Vec<MessageId> = codec::rows(self.0.store.as_ref(), Table::ChatLog, &keys::prefix(&[chat.as_str()]))?;
        let mut messages = Vec::with_capacity(ids.len());
        for id in ids {
            messages.extend(self.0.messages().raw_message(&id)?);
        }
        Ok(messages)
    }

    /// Empties one message. The empty row keeps the order of the conversation, and it prevents the message from coming
    /// back if the platform hands it in again. With `undoing`, it may come back by another import, unless it was forgotten
    /// before.
    pub(crate) fn forget_message(
        self,
        batch: &mut Batch,
        id: &MessageId,
        gone: &mut Forgotten,
        receipt: &mut ForgetReceipt,
        undoing: bool,
        known: &dyn Fn(&MemoryRow) -> bool,
    ) -> Result<(), Error> {
        // The id is recorded even if the row is already empty: an older backup may still hold the text.
        gone.message(id.clone());
        let Some(message) = self.0.messages().raw_message(id)? else { return Ok(()) };
        let was_forgotten = message.author == Author::Forgotten;
        let undone = undoing && (!was_forgotten || message.undone);
        if undone {
            gone.undone(id.clone());
        }
        // An older version could remember a message while it was forgotten.
        receipt.memories += self.unremember_for_good(batch, id, gone, &mut receipt.touched, known)?;
        if was_forgotten {
            // What was undone is now forgotten for good.
            if message.undone && !undone {
                codec::put(batch, Table::Messages, keys::message(id), &MessageRow { undone, ..message })?;
            }
            return Ok(());
        }
        match &message.author {
            Author::Person { id: person, .. } => {
                batch.remove(Table::PersonLog, keys::numbered(&[person.as_str()], message.seq));
                batch.remove(Table::Inbox, keys::message(id));
                receipt.messages += 1;
                receipt.said.push((message.chat.clone(), id.clone()));
            }
            _ => {
                batch.remove(Table::Outbox, keys::numbered(&[], message.seq));
                if self.0.store.get(Table::Why, &keys::message(id))?.is_some() {
                    batch.remove(Table::Why, keys::message(id));
                    receipt.why += 1;
                }
                self.note_retraction(batch, &message)?;
                receipt.replies += 1;
                receipt.retract.push((message.chat.clone(), id.clone(), message.at));
            }
        }
        receipt.touched.insert((message.chat.clone(), message.persona.clone()));
        batch.remove(Table::Pictures, keys::message(id));
        let_go_of_parts(batch, &message);
        codec::put(batch, Table::Messages, keys::message(id), &MessageRow { undone, ..emptied(message) })
    }

    pub(crate) fn rows_under(self, table: Table, prefix: &[u8]) -> Result<Vec<(Table, Vec<u8>)>, Error> {
        let mut found = Vec::new();
        codec::walk(self.0.store.as_ref(), table, prefix, |key, _| {
            found.push((table, key.to_vec()));
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns true if bytes of forgotten content may still be on disk.
    pub fn scrub_due(self) -> Result<bool, Error> {
        Ok(self.0.store.get(Table::Meta, b"scrub")?.is_some())
    }

    /// Rewrites every store so that no byte of forgotten content remains on disk; returns true if it did. Does nothing
    /// while the index queue holds entries, because the indexes forget through that queue. Anything forgotten meanwhile
    /// requests another scrub.
    pub fn scrub(self) -> Result<bool, Error> {
        if !self.scrub_due()? {
            return Ok(false);
        }
        // This may request a scrub, too.
        self.0.memories().clear_replaced()?;
        let Some(requested) = self.0.store.get(Table::Meta, b"scrub")? else { return Ok(false) };
        if self.0.indexing().queued()? > 0 {
            return Ok(false);
        }
        self.0.vectors.rewrite()?;
        self.0.text.rewrite()?;
        self.0.working.clear()?;
        self.0.store.rewrite()?;
        self.0.files().sweep_blobs()?;
        let _asking = self.0.scrubbing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.store.get(Table::Meta, b"scrub")? == Some(requested) {
            let mut batch = Batch::new();
            batch.remove(Table::Meta, b"scrub");
            self.0.store.commit(batch, Durability::Flushed)?;
        }
        Ok(true)
    }

    /// Requests a scrub. Callers do this before they remove rows: a crash in between costs a needless scrub, but never
    /// loses a needed one.
    pub(crate) fn ask_for_scrub(self) -> Result<(), Error> {
        // Before a scrub can run: what is cached after it must see this.
        self.0.forgettings.fetch_add(1, Ordering::SeqCst);
        let _asking = self.0.scrubbing.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.store.ready()?;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Meta, b"scrub".to_vec(), &self.0.next_number()?)?;
        self.0.store.commit(batch, Durability::Flushed)
    }
}

/// Returns the remains of a forgotten message.
pub(crate) fn emptied(message: MessageRow) -> MessageRow {
    MessageRow {
        author: Author::Forgotten,
        text: Text::default(),
        reply_to: None,
        source_scopes: Vec::new(),
        edited_at: None,
        came_at: None,
        parts: Vec::new(),
        ran: Vec::new(),
        ..message
    }
}
