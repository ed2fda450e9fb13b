//! Writings: diaries, reflections, dreams, creative pieces and working notes that personas write in background jobs.
//! Each is a memory whose sources are the messages it was written from; it is forgotten with the first of them. A row
//! of its own holds its other data.

use std::collections::BTreeSet;

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, PersonaId, PlatformId, Scope, Text, Timestamp};

use crate::domains::Writings;
use crate::rows::{Kind, MemoryRow, MessageRow, OutboxRow, Posted, SourceScope, WritingRow};
use crate::settings::BackgroundProgress;
use crate::turns::put_message;
use crate::{Batch, Durability, Error, Grant, Order, ReadScope, Table, codec, keys};

/// Most rows read in the search for recent memories. It bounds the cost for a persona that nobody talked to for a long
/// time.
const MAX_LOOKED_AT: usize = 20_000;

/// Rows read at a time.
const PAGE: usize = 64;

/// Prefix of the message id of a posted writing; its number follows.
pub(crate) const POST: &str = "post~";

/// Most source messages of one writing.
pub const MAX_SOURCES: usize = 128;

/// A writing to store.
#[derive(Clone)]
pub struct NewWriting {
    /// The persona.
    pub persona: PersonaId,
    /// The persona's displayed name.
    pub persona_name: String,
    /// Its kind.
    pub kind: Kind,
    /// The chat it belongs to.
    pub chat: ChatId,
    /// The scope in which it may be shown.
    pub scope: Scope,
    /// Every scope it was built on, with its own.
    pub source_scopes: Vec<SourceScope>,
    /// Its source messages; empty for an imported writing.
    pub sources: Vec<MessageId>,
    /// The text.
    pub text: Text,
    /// When it was written.
    pub at: Timestamp,
    /// The prompt of the model.
    pub prompt: Option<Text>,
    /// The model.
    pub model: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Words from its sources that it took up.
    pub themes: Vec<String>,
    /// The persona's mood.
    pub mood: Option<String>,
    /// The person who imported it. Working notes cannot be imported.
    pub imported_by: Option<PersonId>,
    /// The platform that posts it in its chat, if it is to be posted.
    pub post: Option<PlatformId>,
    /// Background progress to store in the same transaction, so that nothing is written again after a crash.
    pub tended: Option<(PlatformId, Scope, BackgroundProgress)>,
}

/// An existing writing to post.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The writing.
    pub memory: MemoryId,
    /// The platform that shows it.
    pub platform: PlatformId,
    /// The chat.
    pub chat: ChatId,
    /// The scope in which it is shown.
    pub scope: Scope,
    /// Every scope it was built on, with its own.
    pub source_scopes: Vec<SourceScope>,
    /// The time of the post.
    pub at: Timestamp,
    /// Background progress to store in the same transaction.
    pub tended: (PlatformId, Scope, BackgroundProgress),
}

/// Data of the message that a writing is posted as.
struct Posting<'a> {
    persona: &'a PersonaId,
    name: &'a str,
    chat: &'a ChatId,
    scope: &'a Scope,
    source_scopes: &'a [SourceScope],
    sources: &'a [MessageId],
    text: &'a Text,
    at: Timestamp,
    platform: &'a PlatformId,
}

impl std::fmt::Debug for NewWriting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("NewWriting");
        shown.field("persona", &self.persona).field("kind", &self.kind).field("chat", &self.chat);
        shown.field("text", &self.text).finish_non_exhaustive()
    }
}

/// Returns the writing that a message id stands for, if it is a post.
pub(crate) fn posted(message: &MessageId) -> Option<MemoryId> {
    message.as_str().strip_prefix(POST)?.parse().ok().map(MemoryId)
}

impl NewWriting {
    fn check(&self) -> Result<(), Error> {
        if self.sources.len() > MAX_SOURCES {
            return Err(Error::Invalid(format!("a writing rests on {MAX_SOURCES} messages at most")));
        }
        if self.kind == Kind::Note && self.imported_by.is_some() {
            // Newer notes replace older ones, and a backup could then not know who imported them.
            return Err(Error::Invalid("notes are not brought from elsewhere".into()));
        }
        Ok(())
    }
}

impl Writings<'_> {
    /// Puts new notes in the place of those that stand under `key`.
    fn replace_notes(self, batch: &mut Batch, key: Vec<u8>, id: MemoryId) -> Result<(), Error> {
        if let Some(before) = codec::get::<MemoryId>(self.0.store.as_ref(), Table::Notes, &key)?
            && let Some(before) = self.0.memories().raw_memory(before)?
        {
            self.0.turns().remove_memory(batch, &before)?;
        }
        codec::put(batch, Table::Notes, key, &id)
    }

    /// Stores a writing in one flushed transaction. If it is to be posted, also adds it to its chat and the outbox.
    /// Returns the memory and the message of the post; `None` if a source was forgotten meanwhile.
    pub fn write(self, new: NewWriting) -> Result<Option<(MemoryRow, Option<MessageRow>)>, Error> {
        new.check()?;
        self.0.store.room()?;
        let mut chats = BTreeSet::from([new.chat.clone()]);
        for source in &new.sources {
            match self.0.messages().raw_message(source)? {
                Some(message) => chats.insert(message.chat),
                None => return Ok(None),
            };
        }
        // The lock keeps others from forgetting in those chats meanwhile.
        let _writing = self.0.writing_in(&chats)?;
        for source in &new.sources {
            if self.0.messages().raw_message(source)?.is_none_or(|message| message.author == Author::Forgotten) {
                return Ok(None);
            }
        }
        let id = MemoryId(self.0.next_number()?);
        let mut batch = Batch::new();
        let post = match &new.post {
            Some(platform) => {
                let posting = Posting {
                    persona: &new.persona,
                    name: &new.persona_name,
                    chat: &new.chat,
                    scope: &new.scope,
                    source_scopes: &new.source_scopes,
                    sources: &new.sources,
                    text: &new.text,
                    at: new.at,
                    platform,
                };
                Some(self.put_post(&mut batch, id, posting)?)
            }
            None => None,
        };
        let memory = MemoryRow {
            id,
            persona: new.persona.clone(),
            kind: new.kind,
            scope: new.scope,
            source_scopes: new.source_scopes,
            chat: Some(new.chat.clone()),
            session: 0,
            author: Author::Persona { id: new.persona, name: new.persona_name },
            // The post is a source, so forgetting it also forgets the writing.
            sources: post.iter().map(|post| post.id.clone()).chain(new.sources).collect(),
            text: new.text,
            at: new.at,
            salience: None,
            surprise: None,
            apart: false,
            replaced: None,
        };
        if memory.kind == Kind::Note {
            self.replace_notes(&mut batch, notes_key(&memory.persona, &new.chat), id)?;
        }
        let writing = WritingRow {
            memory: id,
            kind: memory.kind,
            prompt: new.prompt,
            model: new.model,
            title: new.title,
            themes: new.themes,
            mood: new.mood,
            posted: post.as_ref().map(|post| Posted { chat: post.chat.clone(), message: post.id.clone() }),
            imported_by: new.imported_by,
        };
        if let Some((platform, home, tended)) = &new.tended {
            let key = crate::settings::background_progress_key(platform, home, &memory.persona);
            codec::put(&mut batch, Table::Settings, key, tended)?;
        }
        self.0.turns().put_memory(&mut batch, &memory)?;
        codec::put(&mut batch, Table::Writings, writing_key(&memory), &writing)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some((memory, post)))
    }

    /// Posts an existing writing to a chat and the outbox, in one flushed transaction. Returns `None` if it was
    /// forgotten or posted already. The caller must have checked that everyone in that chat may read it.
    pub fn publish(self, new: Publication) -> Result<Option<MessageRow>, Error> {
        let Some(memory) = self.0.memories().raw_memory(new.memory)? else { return Ok(None) };
        let mut chats = BTreeSet::from([new.chat.clone()]);
        for source in &memory.sources {
            match self.0.messages().raw_message(source)? {
                Some(message) => chats.insert(message.chat),
                None => return Ok(None),
            };
        }
        // The lock keeps others from forgetting in those chats meanwhile.
        let _writing = self.0.writing_in(&chats)?;
        let Some(mut memory) = self.0.memories().raw_memory(new.memory)? else { return Ok(None) };
        let Some(mut writing) = self.raw_writing(&memory)?.filter(|writing| writing.posted.is_none()) else {
            return Ok(None);
        };
        let mut batch = Batch::new();
        let posting = Posting {
            persona: &memory.persona,
            name: memory.author.name(),
            chat: &new.chat,
            scope: &new.scope,
            source_scopes: &new.source_scopes,
            sources: &memory.sources,
            text: &memory.text,
            at: new.at,
            platform: &new.platform,
        };
        let post = self.put_post(&mut batch, memory.id, posting)?;
        // The post is a source, so forgetting it also forgets the writing.
        memory.sources.insert(0, post.id.clone());
        writing.posted = Some(Posted { chat: post.chat.clone(), message: post.id.clone() });
        let (platform, home, tended) = &new.tended;
        let key = crate::settings::background_progress_key(platform, home, &memory.persona);
        codec::put(&mut batch, Table::Settings, key, tended)?;
        self.0.turns().put_memory(&mut batch, &memory)?;
        codec::put(&mut batch, Table::Writings, writing_key(&memory), &writing)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(post))
    }

    /// Adds the message of a post: it is the newest of its chat, and waits in the outbox.
    fn put_post(self, batch: &mut Batch, id: MemoryId, new: Posting<'_>) -> Result<MessageRow, Error> {
        let mut chat = self.0.chats().get(new.chat)?.ok_or_else(|| Error::Invalid("that chat is unknown".into()))?;
        let post = MessageRow {
            // Numbers are never reused, so the id differs from that of every other post.
            id: MessageId::new(format!("{POST}{}", id.0)).map_err(|error| Error::Invalid(error.to_string()))?,
            chat: new.chat.clone(),
            seq: self.0.next_number()?,
            parent: chat.head.clone(),
            depth: self.0.turns().depth_behind(chat.head.as_ref())?,
            author: Author::Persona { id: new.persona.clone(), name: new.name.to_owned() },
            text: new.text.clone(),
            at: new.at,
            reply_to: None,
            answers: None,
            persona: new.persona.clone(),
            scope: new.scope.clone(),
            source_scopes: new.source_scopes.to_vec(),
            // The writing is remembered itself; the post needs no memory of its own.
            memorable: false,
            edited_at: None,
            came_at: None,
            parts: Vec::new(),
            undone: false,
            ran: Vec::new(),
        };
        if self.0.messages().raw_message(&post.id)?.is_some() {
            return Err(Error::Invalid("there is a message of the post's id".into()));
        }
        put_message(batch, &post)?;
        for source in new.sources {
            codec::put(batch, Table::Derived, keys::derived(source, &post.id), &post.id)?;
        }
        let outbox = OutboxRow {
            message: post.id.clone(),
            platform: new.platform.clone(),
            asker: None,
            from: Some(new.at),
            state: serde_json::Value::Null,
            help: String::new(),
        };
        codec::put(batch, Table::Outbox, keys::numbered(&[], post.seq), &outbox)?;
        chat.head = Some(post.id.clone());
        chat.last_at = chat.last_at.max(new.at);
        codec::put(batch, Table::Chats, keys::chat(&chat.id), &chat)?;
        Ok(post)
    }

    /// Returns the writings of these kinds that `read_scope` allows, newest first, at most `limit`.
    pub fn list(
        self,
        read_scope: &ReadScope,
        kinds: &[Kind],
        limit: usize,
    ) -> Result<Vec<(MemoryRow, WritingRow)>, Error> {
        let mut found = Vec::new();
        for grant in read_scope.grants() {
            found.extend(self.writings_from(read_scope, grant, kinds, limit)?);
        }
        found.sort_by_key(|(memory, _)| std::cmp::Reverse(memory.id));
        found.truncate(limit);
        Ok(found)
    }

    fn writings_from(
        self,
        read_scope: &ReadScope,
        grant: &Grant,
        kinds: &[Kind],
        limit: usize,
    ) -> Result<Vec<(MemoryRow, WritingRow)>, Error> {
        let prefix = keys::prefix(&[read_scope.persona().as_str(), &grant.scope.to_string()]);
        let (mut found, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let page = self.0.store.scan(Table::Writings, &prefix, after.as_deref(), Order::Descending, PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            after = Some(last.clone());
            for (_, value) in page {
                let writing: WritingRow = codec::decode(Table::Writings, &value)?;
                if !kinds.contains(&writing.kind) {
                    continue;
                }
                if let Some(memory) = self.0.memories().get(read_scope, writing.memory)? {
                    found.push((memory, writing));
                    if found.len() == limit {
                        return Ok(found);
                    }
                }
            }
        }
    }

    /// Returns a writing, if `read_scope` allows it.
    pub fn written(self, read_scope: &ReadScope, id: MemoryId) -> Result<Option<(MemoryRow, WritingRow)>, Error> {
        let Some(memory) = self.0.memories().get(read_scope, id)? else { return Ok(None) };
        Ok(self.raw_writing(&memory)?.map(|writing| (memory, writing)))
    }

    /// Returns the memories of a writing's sources that `read_scope` allows, in the order of the sources.
    pub fn behind(self, read_scope: &ReadScope, written: &MemoryRow) -> Result<Vec<MemoryRow>, Error> {
        let mut behind = Vec::new();
        for source in &written.sources {
            let of_itself = |memory: &MemoryRow| memory.id != written.id && memory.kind.is_said();
            for memory in self.0.turns().memories_of(source)?.into_iter().filter(of_itself) {
                behind.extend(self.0.memories().get(read_scope, memory.id)?);
            }
        }
        Ok(behind)
    }

    /// Returns the working notes of a chat, if `read_scope` allows them.
    pub fn notes(self, read_scope: &ReadScope, chat: &ChatId) -> Result<Option<MemoryRow>, Error> {
        let key = notes_key(read_scope.persona(), chat);
        let id: Option<MemoryId> = codec::get(self.0.store.as_ref(), Table::Notes, &key)?;
        Ok(id.map(|id| self.0.memories().get(read_scope, id)).transpose()?.flatten())
    }

    /// Returns messages since `since` that `read_scope` allows, newest first, at most `limit`.
    pub fn recent(self, read_scope: &ReadScope, since: Timestamp, limit: usize) -> Result<Vec<MemoryRow>, Error> {
        let (mut found, mut after, mut looked) = (Vec::new(), None::<Vec<u8>>, 0);
        while looked < MAX_LOOKED_AT {
            let page = self.0.store.scan(Table::Memories, b"", after.as_deref(), Order::Descending, PAGE)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            looked += page.len();
            let mut older = 0;
            for (_, value) in &page {
                let memory: MemoryRow = codec::decode(Table::Memories, value)?;
                older += usize::from(memory.at < since);
                let wanted = memory.kind.is_said() && memory.at >= since;
                if wanted && read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at) {
                    found.push(memory);
                    if found.len() == limit {
                        return Ok(found);
                    }
                }
            }
            // Ids ascend with time, except for messages that a platform hands in late. A whole page of older ones means
            // that no newer ones follow.
            if older == page.len() {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the writing that a message shows, if it still exists.
    pub fn posted_as(self, post: &MessageRow) -> Result<Option<(MemoryRow, WritingRow)>, Error> {
        for memory in self.0.turns().memories_of(&post.id)? {
            if let Some(writing) = self.raw_writing(&memory)?
                && writing.posted.as_ref().is_some_and(|posted| posted.message == post.id)
            {
                return Ok(Some((memory, writing)));
            }
        }
        Ok(None)
    }

    pub(crate) fn raw_writing(self, memory: &MemoryRow) -> Result<Option<WritingRow>, Error> {
        if !memory.kind.is_written() {
            return Ok(None);
        }
        codec::get(self.0.store.as_ref(), Table::Writings, &writing_key(memory))
    }

    /// Removes the other data of a writing.
    pub(crate) fn remove_writing(self, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
        if !memory.kind.is_written() {
            return Ok(());
        }
        batch.remove(Table::Writings, writing_key(memory));
        if memory.kind == Kind::Note
            && let Some(chat) = &memory.chat
        {
            batch.remove(Table::Notes, notes_key(&memory.persona, chat));
        }
        Ok(())
    }
}

/// Returns the key of a writing's row. The writings of a persona in a place are one range, in order.
pub(crate) fn writing_key(memory: &MemoryRow) -> Vec<u8> {
    keys::numbered(&[memory.persona.as_str(), &memory.scope.to_string()], memory.id.0)
}

/// Returns the key of a chat's working notes.
pub(crate) fn notes_key(persona: &PersonaId, chat: &ChatId) -> Vec<u8> {
    keys::prefix(&[persona.as_str(), chat.as_str()])
}
