//! Storing a turn: a message comes in, a reply goes out, each in one transaction.

use azera_types::{
    Author, ChatId, Inbound, MAX_PARTS, MemoryId, MessageId, Part, PersonId, PersonaId, PlatformId, Scope, Text,
    Timestamp,
};

use crate::domains::{Messages, Turns};
use crate::files::let_go_of_parts;
use crate::pictures::{Asked, NewPicture};
use crate::rows::{ChatRow, InboxRow, Kind, MessageRow, NOTES, OutboxRow, SourceScope, WhyRow};
use crate::{Batch, Durability, Error, Table, codec, keys};

/// The result of receiving a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// It is new. It is now stored and flushed, and its turn is open.
    New(Box<MessageRow>),
    /// It was stored before.
    Known {
        /// True if its turn has not ended.
        open: bool,
    },
}

/// The chat and the persona of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageOwner {
    /// The chat.
    pub chat: ChatId,
    /// The persona that it was addressed to, or that wrote it.
    pub persona: PersonaId,
    /// True if the persona wrote it.
    pub by_persona: bool,
}

/// A reply to store.
#[derive(Debug, Clone)]
pub struct NewReply {
    /// Its id.
    pub id: MessageId,
    /// The message that it answers.
    pub to: MessageId,
    /// The platform that shows it.
    pub platform: PlatformId,
    /// The person who asked.
    pub asker: PersonId,
    /// The persona that speaks.
    pub persona: PersonaId,
    /// The persona's displayed name.
    pub persona_name: String,
    /// The text.
    pub text: Text,
    /// The time of the reply.
    pub at: Timestamp,
    /// Time of the oldest prompt message from the reply's own place.
    pub from: Timestamp,
    /// The other scopes of the prompt's contents.
    pub source_scopes: Vec<SourceScope>,
    /// Source messages of the memories in the prompt.
    pub built_on: Vec<MessageId>,
    /// Memories in the prompt without a source message.
    pub built_on_facts: Vec<MemoryId>,
    /// True if the reply says something new that is worth recalling, and does not just repeat recalled text.
    pub memorable: bool,
    /// The mind after the reply, as reported to the platform.
    pub state: serde_json::Value,
    /// The help lines of a reply to somebody in danger; otherwise empty.
    pub help: String,
    /// The sources of the reply.
    pub why: WhyRow,
    /// The reply that it replaces.
    pub replaces: Option<MessageId>,
}

impl Turns<'_> {
    /// Receives a message for the persona of its chat: stores the message, its order of arrival and an open turn in one
    /// flushed transaction. The chat must be known.
    pub fn receive(
        self,
        platform: &PlatformId,
        inbound: &Inbound,
        scope: Scope,
        now: Timestamp,
    ) -> Result<Received, Error> {
        self.receive_for(platform, inbound, scope, None, now)
    }

    /// Receives a message for the persona it is addressed to: `called`, or the persona of its chat.
    pub fn receive_for(
        self,
        platform: &PlatformId,
        inbound: &Inbound,
        scope: Scope,
        called: Option<PersonaId>,
        now: Timestamp,
    ) -> Result<Received, Error> {
        let _writing = self.0.writing(&inbound.chat)?;
        let key = keys::message(&inbound.id);
        if self.0.messages().raw_message(&inbound.id)?.is_some() {
            return Ok(Received::Known { open: self.0.store.get(Table::Inbox, &key)?.is_some() });
        }
        self.0.store.room()?;
        let mut chat =
            self.0.chats().get(&inbound.chat)?.ok_or_else(|| Error::Invalid("that chat is unknown".into()))?;
        let message = MessageRow {
            id: inbound.id.clone(),
            chat: inbound.chat.clone(),
            seq: self.0.next_number()?,
            parent: chat.head.clone(),
            depth: self.depth_behind(chat.head.as_ref())?,
            author: Author::Person { id: inbound.person.clone(), name: inbound.name.clone() },
            text: inbound.text.clone(),
            at: inbound.at,
            reply_to: inbound.reply_to.clone(),
            answers: None,
            persona: called.unwrap_or_else(|| chat.persona.clone()),
            scope,
            source_scopes: Vec::new(),
            memorable: true,
            edited_at: None,
            came_at: None,
            parts: inbound.parts.iter().take(MAX_PARTS).map(|inbound| inbound.part.clone()).collect(),
            undone: false,
            ran: Vec::new(),
        };
        let inbox = InboxRow {
            message: inbound.id.clone(),
            platform: platform.clone(),
            person: inbound.person.clone(),
            mentions_bot: inbound.mentions_bot,
            mentions: inbound.mentions.clone(),
            panics: 0,
        };
        let mut batch = Batch::new();
        put_message(&mut batch, &message)?;
        codec::put(&mut batch, Table::PersonLog, keys::numbered(&[inbound.person.as_str()], message.seq), &message.id)?;
        codec::put(&mut batch, Table::Inbox, key, &inbox)?;
        chat.head = Some(message.id.clone());
        chat.last_at = chat.last_at.max(now);
        codec::put(&mut batch, Table::Chats, keys::chat(&chat.id), &chat)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Received::New(Box::new(message)))
    }
}

impl Messages<'_> {
    /// Returns chat and persona of a message, without its text; `None` if it is unknown.
    pub fn owner(self, id: &MessageId) -> Result<Option<MessageOwner>, Error> {
        Ok(self.raw_message(id)?.map(|message| MessageOwner {
            chat: message.chat,
            persona: message.persona,
            by_persona: matches!(message.author, Author::Persona { .. }),
        }))
    }
}

impl Turns<'_> {
    /// Returns the message if its turn is open; `None` if the turn has ended, or nobody knows the message.
    pub fn open(self, id: &MessageId) -> Result<Option<MessageRow>, Error> {
        let open = self.0.store.get(Table::Inbox, &keys::message(id))?.is_some();
        Ok(self.0.messages().raw_message(id)?.filter(|message| open && message.author.person().is_some()))
    }

    /// Returns the messages whose turn is open, in order of arrival. After a crash, the next start continues with them.
    pub fn all_open(self) -> Result<Vec<(MessageRow, InboxRow)>, Error> {
        let inbox: Vec<InboxRow> = codec::rows(self.0.store.as_ref(), Table::Inbox, b"")?;
        let mut turns = Vec::with_capacity(inbox.len());
        for row in inbox {
            if let Some(message) = self.0.messages().raw_message(&row.message)? {
                turns.push((message, row));
            }
        }
        turns.sort_by_key(|(message, _)| message.seq);
        Ok(turns)
    }

    /// Notes that a message's turn ended in a panic. Returns how often that has happened by now; 0 if its turn is over.
    pub fn note_panic(self, id: &MessageId) -> Result<u32, Error> {
        let Some(message) = self.0.messages().raw_message(id)? else { return Ok(0) };
        let _writing = self.0.writing(&message.chat)?;
        let found = codec::get(self.0.store.as_ref(), Table::Inbox, &keys::message(id))?;
        let Some(mut inbox): Option<InboxRow> = found else { return Ok(0) };
        inbox.panics = inbox.panics.saturating_add(1);
        let panics = inbox.panics;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Inbox, keys::message(id), &inbox)?;
        // On disk before the next try: the next panic may end the process.
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(panics)
    }

    /// Closes the turn of a message that gets no reply. The message is still remembered, unless it is empty. If a crash
    /// comes before this reaches the disk, the turn is open again.
    pub fn leave(self, id: &MessageId) -> Result<(), Error> {
        let Some(chat) = self.0.messages().raw_message(id)?.map(|message| message.chat) else { return Ok(()) };
        let _writing = self.0.writing(&chat)?;
        let mut batch = Batch::new();
        // It may have been forgotten or edited meanwhile.
        if let Some(message) = self.0.messages().raw_message(id)? {
            self.remember(&mut batch, &message, Kind::Message)?;
        }
        batch.remove(Table::Inbox, keys::message(id));
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Stores a reply in one flushed transaction: the message, the chat's head, the outbox, the memories of question
    /// and reply, and the sources. This also closes the turn.
    pub fn reply(self, new: NewReply) -> Result<MessageRow, Error> {
        Ok(self.reply_with_pictures(new, Vec::new())?.0)
    }

    /// Returns the message that a reply answers, if it may still be answered.
    fn open_question(self, new: &NewReply) -> Result<MessageRow, Error> {
        let question = self.0.messages().raw_message(&new.to)?;
        let question = question.filter(|question| question.author != Author::Forgotten).ok_or_else(is_missing)?;
        // A turn is answered once: the reply removes its entry from the inbox.
        if new.replaces.is_none() && self.0.store.get(Table::Inbox, &keys::message(&new.to))?.is_none() {
            return Err(is_missing());
        }
        // A platform may use the id that a reply would get. The earlier message stays.
        if self.0.messages().raw_message(&new.id)?.is_some() {
            return Err(Error::Invalid("there is a message of the reply's id".into()));
        }
        Ok(question)
    }

    /// Stores a reply in the same way, and queues the pictures that it asks for in the same transaction, within the limits.
    /// Returns the answer to each request.
    pub fn reply_with_pictures(
        self,
        new: NewReply,
        pictures: Vec<NewPicture>,
    ) -> Result<(MessageRow, Vec<Asked>), Error> {
        let chat = self.0.messages().raw_message(&new.to)?.ok_or_else(is_missing)?.chat;
        let _writing = self.0.writing(&chat)?;
        let question = self.open_question(&new)?;
        let mut chat =
            self.0.chats().get(&question.chat)?.ok_or_else(|| Error::Invalid("that chat is unknown".into()))?;
        let replaced = match &new.replaces {
            Some(id) => self.0.messages().raw_message(id)?,
            None => None,
        };
        let parent = replaced.as_ref().map_or_else(|| chat.head.clone(), |old| old.parent.clone());
        let reply = MessageRow {
            id: new.id.clone(),
            chat: question.chat.clone(),
            seq: self.0.next_number()?,
            depth: self.depth_behind(parent.as_ref())?,
            parent,
            author: Author::Persona { id: new.persona.clone(), name: new.persona_name },
            text: new.text,
            at: new.at,
            reply_to: Some(new.to.clone()),
            answers: Some(new.to.clone()),
            persona: new.persona,
            scope: question.scope.clone(),
            source_scopes: new.source_scopes,
            memorable: new.memorable,
            edited_at: None,
            came_at: None,
            parts: Vec::new(),
            undone: false,
            ran: Vec::new(),
        };
        let mut batch = Batch::new();
        put_message(&mut batch, &reply)?;
        codec::put(&mut batch, Table::Answers, keys::numbered(&[new.to.as_str()], reply.seq), &reply.id)?;
        let facts = new.built_on_facts.iter().map(|fact| keys::derived_from_fact(*fact, &reply.id));
        for key in new.built_on.iter().map(|source| keys::derived(source, &reply.id)).chain(facts) {
            codec::put(&mut batch, Table::Derived, key, &reply.id)?;
        }
        let outbox = OutboxRow {
            message: reply.id.clone(),
            platform: new.platform,
            asker: Some(new.asker),
            from: Some(new.from),
            state: new.state,
            help: new.help,
        };
        codec::put(&mut batch, Table::Outbox, keys::numbered(&[], reply.seq), &outbox)?;
        let why = self.with_noted(new.why)?;
        codec::put(&mut batch, Table::Why, keys::message(&reply.id), &why)?;
        match &replaced {
            None => chat.head = Some(reply.id.clone()),
            Some(old) => {
                self.put_in_place_of(&mut batch, &mut chat, old, &reply.id)?;
                self.unremember(&mut batch, &old.id)?;
            }
        }
        chat.last_at = chat.last_at.max(reply.at);
        codec::put(&mut batch, Table::Chats, keys::chat(&chat.id), &chat)?;
        self.remember(&mut batch, &question, Kind::Message)?;
        if new.memorable {
            self.remember(&mut batch, &reply, Kind::Reply)?;
        }
        batch.remove(Table::Inbox, keys::message(&new.to));
        if pictures.is_empty() {
            self.0.store.commit(batch, Durability::Flushed)?;
            return Ok((reply, Vec::new()));
        }
        let _asking = self.0.pictures().asking();
        let asked = self.0.pictures().put_asked(&mut batch, pictures)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        self.0.pictures().note_asked(&asked)?;
        Ok((reply, asked))
    }

    /// Adds the messages that the notes in the prompt were made from. If those notes were replaced meanwhile, the list
    /// becomes unknown.
    fn with_noted(self, mut why: WhyRow) -> Result<WhyRow, Error> {
        let mut noted = Vec::new();
        for hit in why.recalled.iter().filter(|hit| hit.signals == [NOTES]) {
            let notes = self.0.memories().raw_memory(hit.memory)?;
            for source in notes.iter().flat_map(|notes| &notes.sources) {
                noted.push(self.0.messages().raw_message(source)?.map(|row| row.seq));
            }
            if notes.is_none() {
                noted.push(None);
            }
        }
        why.shown = why.shown.and_then(|shown| shown.into_iter().map(Some).chain(noted).collect());
        Ok(why)
    }

    /// Replaces the reply on the current branch with another reply to the same message. Fails if the other one was forgotten
    /// meanwhile.
    pub fn choose_alternative(self, present: &MessageRow, chosen: &MessageRow) -> Result<(), Error> {
        let _writing = self.0.writing(&present.chat)?;
        let Some(mut chat) = self.0.chats().get(&present.chat)? else { return Ok(()) };
        let chosen = self.0.messages().raw_message(&chosen.id)?.filter(|chosen| chosen.author != Author::Forgotten);
        let chosen = chosen.ok_or_else(is_missing)?;
        let mut batch = Batch::new();
        self.put_in_place_of(&mut batch, &mut chat, present, &chosen.id)?;
        self.unremember(&mut batch, &present.id)?;
        if chosen.memorable {
            self.remember(&mut batch, &chosen, Kind::Reply)?;
        }
        codec::put(&mut batch, Table::Chats, keys::chat(&chat.id), &chat)?;
        self.0.store.commit(batch, Durability::Flushed)
    }

    /// Puts `new` in the place of `old` on the current path: as the head, or as the parent of the next message.
    fn put_in_place_of(
        self,
        batch: &mut Batch,
        chat: &mut ChatRow,
        old: &MessageRow,
        new: &MessageId,
    ) -> Result<(), Error> {
        if chat.head.as_ref() == Some(&old.id) {
            chat.head = Some(new.clone());
            return Ok(());
        }
        let mut next = chat.head.clone();
        while let Some(id) = next {
            let Some(mut message) = self.0.messages().raw_message(&id)? else { return Ok(()) };
            if message.parent.as_ref() == Some(&old.id) {
                message.parent = Some(new.clone());
                return codec::put(batch, Table::Messages, keys::message(&message.id), &message);
            }
            next = message.parent;
        }
        Err(Error::Invalid("that reply is no longer part of the conversation".into()))
    }

    /// Stores a person's edit after which the message has no parts, like [`Turns::edit_with_parts`].
    pub fn edit(self, id: &MessageId, text: Text, at: Timestamp) -> Result<Option<MessageRow>, Error> {
        self.edit_with_parts(id, text, Vec::new(), at)
    }

    /// Stores a person's edit and returns the new row; `None` if the message is unknown or forgotten. Releases the files
    /// of the old parts. Keeps those of `parts`.
    pub fn edit_with_parts(
        self,
        id: &MessageId,
        text: Text,
        parts: Vec<Part>,
        at: Timestamp,
    ) -> Result<Option<MessageRow>, Error> {
        let Some(chat) = self.0.messages().raw_message(id)?.map(|message| message.chat) else { return Ok(None) };
        let _writing = self.0.writing(&chat)?;
        let Some(mut message) = self.0.messages().raw_message(id)?.filter(|message| message.author.person().is_some())
        else {
            return Ok(None);
        };
        let mut batch = Batch::new();
        let_go_of_parts(&mut batch, &message);
        message.parts = parts.into_iter().take(MAX_PARTS).collect();
        message.text = text;
        message.edited_at = Some(at);
        codec::put(&mut batch, Table::Messages, keys::message(id), &message)?;
        self.reword_memories(&mut batch, &message)?;
        self.0.files().commit_letting_go(batch, Durability::Flushed)?;
        Ok(Some(message))
    }

    /// Returns the number of replies to a message, including those that may no longer be read.
    pub fn answer_count(self, to: &MessageId) -> Result<usize, Error> {
        let ids: Vec<MessageId> = codec::rows(self.0.store.as_ref(), Table::Answers, &keys::prefix(&[to.as_str()]))?;
        Ok(ids.len())
    }

    pub(crate) fn depth_behind(self, parent: Option<&MessageId>) -> Result<u64, Error> {
        let parent = parent.map(|id| self.0.messages().raw_message(id)).transpose()?.flatten();
        Ok(parent.map_or(0, |parent| parent.depth + 1))
    }
}

pub(crate) fn put_message(batch: &mut Batch, message: &MessageRow) -> Result<(), Error> {
    codec::put(batch, Table::Messages, keys::message(&message.id), message)?;
    codec::put(batch, Table::ChatLog, keys::numbered(&[message.chat.as_str()], message.seq), &message.id)
}

/// The error for a reply to a message that cannot be answered any more.
fn is_missing() -> Error {
    Error::Invalid("the message was forgotten, or answered already".into())
}
