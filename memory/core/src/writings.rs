//! What personas write between messages: diaries, reflections, dreams, working notes. Each is a memory that rests on the
//! messages it was written from, and goes with the first of them that is forgotten; what belongs to it besides stands in a
//! row of its own.

use std::collections::BTreeSet;

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, PersonaId, PlatformId, Scope, Text, Timestamp};

use crate::rows::{Kind, MemoryRow, MessageRow, OutboxRow, Posted, SourceScope, WritingRow};
use crate::settings::BackgroundProgress;
use crate::turns::put_message;
use crate::{Batch, Durability, Error, Grant, Memory, Order, ReadScope, Table, codec, keys};

/// Rows looked at for the newest memories at most, so that a persona nobody talked to for long does not cost a walk over
/// everything.
const MAX_LOOKED_AT: usize = 20_000;

/// Rows read at a time.
const PAGE: usize = 64;

/// What the id of a message begins with that something written is shown as; its number follows.
const POST: &str = "post~";

/// Messages one writing may rest on.
pub const MAX_SOURCES: usize = 128;

/// Something a persona wrote, to be kept.
#[derive(Clone)]
pub struct NewWriting {
    /// Who wrote it.
    pub persona: PersonaId,
    /// The name shown.
    pub persona_name: String,
    /// What it is.
    pub kind: Kind,
    /// The chat it belongs to.
    pub chat: ChatId,
    /// The place it may be shown in.
    pub scope: Scope,
    /// Every place it was built on, its own included.
    pub source_scopes: Vec<SourceScope>,
    /// The messages it rests on; none for what was imported.
    pub sources: Vec<MessageId>,
    /// What was written.
    pub text: Text,
    /// When.
    pub at: Timestamp,
    /// What the model was asked.
    pub prompt: Option<Text>,
    /// The model.
    pub model: Option<String>,
    /// What it is called.
    pub title: Option<String>,
    /// Words it took up of what it rests on.
    pub themes: Vec<String>,
    /// The persona's mood.
    pub mood: Option<String>,
    /// Who brought it here from elsewhere; not for notes.
    pub imported_by: Option<PersonId>,
    /// The platform that shows it in its chat, if it is to be posted there.
    pub post: Option<PlatformId>,
    /// What else was done with it, to be noted along with it: then a crash makes nobody write it again.
    pub tended: Option<(PlatformId, Scope, BackgroundProgress)>,
}

/// Something written before that is to be posted.
#[derive(Debug, Clone)]
pub struct Publication {
    /// What.
    pub memory: MemoryId,
    /// The platform that shows it.
    pub platform: PlatformId,
    /// Where.
    pub chat: ChatId,
    /// The place it is shown in.
    pub scope: Scope,
    /// Every place it was built on, its own included.
    pub source_scopes: Vec<SourceScope>,
    /// When.
    pub at: Timestamp,
    /// What was done with it, to be noted along with it.
    pub tended: (PlatformId, Scope, BackgroundProgress),
}

/// What the message is made of that something is posted as.
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

/// What is shown as a message, if that was written.
pub(crate) fn posted(message: &MessageId) -> Option<MemoryId> {
    message.as_str().strip_prefix(POST)?.parse().ok().map(MemoryId)
}

impl Memory {
    /// Keeps something a persona wrote, and puts it into its chat and the outbox if it is to be posted, in one flushed
    /// transaction; gives it with the message it is posted as. `None` if something it rests on was forgotten while it was
    /// written.
    pub fn write(&self, new: NewWriting) -> Result<Option<(MemoryRow, Option<MessageRow>)>, Error> {
        if new.sources.len() > MAX_SOURCES {
            return Err(Error::Invalid(format!("a writing rests on {MAX_SOURCES} messages at most")));
        }
        if new.kind == Kind::Note && new.imported_by.is_some() {
            // They make way for newer ones, and a backup would not know then who brought them.
            return Err(Error::Invalid("notes are not brought from elsewhere".into()));
        }
        let mut chats = BTreeSet::from([new.chat.clone()]);
        for source in &new.sources {
            match self.raw_message(source)? {
                Some(message) => chats.insert(message.chat),
                None => return Ok(None),
            };
        }
        // Nobody forgets in those chats meanwhile.
        let _writing = self.writing_in(&chats)?;
        for source in &new.sources {
            if self.raw_message(source)?.is_none_or(|message| message.author == Author::Forgotten) {
                return Ok(None);
            }
        }
        let id = MemoryId(self.next_number()?);
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
            // Whoever forgets the post forgets what was posted.
            sources: post.iter().map(|post| post.id.clone()).chain(new.sources).collect(),
            text: new.text,
            at: new.at,
            salience: None,
            surprise: None,
        };
        if memory.kind == Kind::Note {
            let key = notes_key(&memory.persona, &new.chat);
            if let Some(before) = codec::get::<MemoryId>(self.store.as_ref(), Table::Notes, &key)?
                && let Some(before) = self.raw_memory(before)?
            {
                self.remove_memory(&mut batch, &before)?;
            }
            codec::put(&mut batch, Table::Notes, key, &id)?;
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
        self.put_memory(&mut batch, &memory)?;
        codec::put(&mut batch, Table::Writings, writing_key(&memory), &writing)?;
        self.store.commit(batch, Durability::Flushed)?;
        Ok(Some((memory, post)))
    }

    /// Puts something that was written before into a chat and the outbox, in one flushed transaction. `None` if it is forgotten
    /// by now, or was posted already. Whoever calls has made sure that everybody who reads there may read it.
    pub fn publish(&self, new: Publication) -> Result<Option<MessageRow>, Error> {
        let Some(memory) = self.raw_memory(new.memory)? else { return Ok(None) };
        let mut chats = BTreeSet::from([new.chat.clone()]);
        for source in &memory.sources {
            match self.raw_message(source)? {
                Some(message) => chats.insert(message.chat),
                None => return Ok(None),
            };
        }
        // Nobody forgets in those chats meanwhile.
        let _writing = self.writing_in(&chats)?;
        let Some(mut memory) = self.raw_memory(new.memory)? else { return Ok(None) };
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
        // Whoever forgets the post forgets what was posted.
        memory.sources.insert(0, post.id.clone());
        writing.posted = Some(Posted { chat: post.chat.clone(), message: post.id.clone() });
        let (platform, home, tended) = &new.tended;
        let key = crate::settings::background_progress_key(platform, home, &memory.persona);
        codec::put(&mut batch, Table::Settings, key, tended)?;
        self.put_memory(&mut batch, &memory)?;
        codec::put(&mut batch, Table::Writings, writing_key(&memory), &writing)?;
        self.store.commit(batch, Durability::Flushed)?;
        Ok(Some(post))
    }

    /// The message that something written is shown as: the newest of its chat, on its way to its platform.
    fn put_post(&self, batch: &mut Batch, id: MemoryId, new: Posting<'_>) -> Result<MessageRow, Error> {
        let mut chat = self.chat(new.chat)?.ok_or_else(|| Error::Invalid("that chat is unknown".into()))?;
        let post = MessageRow {
            // Numbers are never given out twice, so this is another than that of any post before.
            id: MessageId::new(format!("{POST}{}", id.0)).map_err(|error| Error::Invalid(error.to_string()))?,
            chat: new.chat.clone(),
            seq: self.next_number()?,
            parent: chat.head.clone(),
            depth: self.depth_behind(chat.head.as_ref())?,
            author: Author::Persona { id: new.persona.clone(), name: new.name.to_owned() },
            text: new.text.clone(),
            at: new.at,
            reply_to: None,
            answers: None,
            persona: new.persona.clone(),
            scope: new.scope.clone(),
            source_scopes: new.source_scopes.to_vec(),
            // It is remembered as what it is, and not as something said.
            memorable: false,
            edited_at: None,
        };
        if self.raw_message(&post.id)?.is_some() {
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
        };
        codec::put(batch, Table::Outbox, keys::numbered(&[], post.seq), &outbox)?;
        chat.head = Some(post.id.clone());
        chat.last_at = chat.last_at.max(new.at);
        codec::put(batch, Table::Chats, keys::chat(&chat.id), &chat)?;
        Ok(post)
    }

    /// What `read_scope` may see of the writings of these kinds, the newest first, at most `limit`.
    pub fn writings(
        &self,
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
        &self,
        read_scope: &ReadScope,
        grant: &Grant,
        kinds: &[Kind],
        limit: usize,
    ) -> Result<Vec<(MemoryRow, WritingRow)>, Error> {
        let prefix = keys::prefix(&[read_scope.persona().as_str(), &grant.scope.to_string()]);
        let (mut found, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let page = self.store.scan(Table::Writings, &prefix, after.as_deref(), Order::Descending, PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            after = Some(last.clone());
            for (_, value) in page {
                let writing: WritingRow = codec::decode(Table::Writings, &value)?;
                if !kinds.contains(&writing.kind) {
                    continue;
                }
                if let Some(memory) = self.memory(read_scope, writing.memory)? {
                    found.push((memory, writing));
                    if found.len() == limit {
                        return Ok(found);
                    }
                }
            }
        }
    }

    /// One writing, if `read_scope` may see it.
    pub fn written(&self, read_scope: &ReadScope, id: MemoryId) -> Result<Option<(MemoryRow, WritingRow)>, Error> {
        let Some(memory) = self.memory(read_scope, id)? else { return Ok(None) };
        Ok(self.raw_writing(&memory)?.map(|writing| (memory, writing)))
    }

    /// The memories of what something written rests on that `read_scope` may see, in its order.
    pub fn behind(&self, read_scope: &ReadScope, written: &MemoryRow) -> Result<Vec<MemoryRow>, Error> {
        let mut behind = Vec::new();
        for source in &written.sources {
            let of_itself = |memory: &MemoryRow| memory.id != written.id && memory.kind.is_said();
            for memory in self.memories_of(source)?.into_iter().filter(of_itself) {
                behind.extend(self.memory(read_scope, memory.id)?);
            }
        }
        Ok(behind)
    }

    /// The working notes of a chat, if there are any that `read_scope` may see.
    pub fn notes(&self, read_scope: &ReadScope, chat: &ChatId) -> Result<Option<MemoryRow>, Error> {
        let key = notes_key(read_scope.persona(), chat);
        let id: Option<MemoryId> = codec::get(self.store.as_ref(), Table::Notes, &key)?;
        Ok(id.map(|id| self.memory(read_scope, id)).transpose()?.flatten())
    }

    /// What was said from `since` on that `read_scope` may see, the newest first, at most `limit`.
    pub fn recent(&self, read_scope: &ReadScope, since: Timestamp, limit: usize) -> Result<Vec<MemoryRow>, Error> {
        let (mut found, mut after, mut looked) = (Vec::new(), None::<Vec<u8>>, 0);
        while looked < MAX_LOOKED_AT {
            let page = self.store.scan(Table::Memories, b"", after.as_deref(), Order::Descending, PAGE)?;
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
            // Ids ascend with time but for what platforms hand in late: a whole page of older ones has nothing behind it.
            if older == page.len() {
                break;
            }
        }
        Ok(found)
    }

    /// Whether something written is to be shown as this message still, or was.
    pub fn posted_as(&self, post: &MessageRow) -> Result<Option<(MemoryRow, WritingRow)>, Error> {
        for memory in self.memories_of(&post.id)? {
            if let Some(writing) = self.raw_writing(&memory)?
                && writing.posted.as_ref().is_some_and(|posted| posted.message == post.id)
            {
                return Ok(Some((memory, writing)));
            }
        }
        Ok(None)
    }

    pub(crate) fn raw_writing(&self, memory: &MemoryRow) -> Result<Option<WritingRow>, Error> {
        if !memory.kind.is_written() {
            return Ok(None);
        }
        codec::get(self.store.as_ref(), Table::Writings, &writing_key(memory))
    }

    /// Removes what belongs to a memory that was written.
    pub(crate) fn remove_writing(&self, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
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

/// Key of what belongs to a writing: those of a persona in a place are one range, in order.
pub(crate) fn writing_key(memory: &MemoryRow) -> Vec<u8> {
    keys::numbered(&[memory.persona.as_str(), &memory.scope.to_string()], memory.id.0)
}

/// Key of the working notes of a chat.
pub(crate) fn notes_key(persona: &PersonaId, chat: &ChatId) -> Vec<u8> {
    keys::prefix(&[persona.as_str(), chat.as_str()])
}
