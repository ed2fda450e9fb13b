//! Pictures that people ask for: the queue of those that wait, and what is known about those that were drawn.
//!
//! A drawn picture is a message of the persona with a file. So the law of reading, forgetting and backups treat it like
//! every other message. A row of [`Table::Pictures`] under the id of that message holds who asked, and for what. Before
//! the picture is drawn there is only the row.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use azera_types::{
    Author, BlobId, ChatId, MessageId, Part, PartKind, PersonId, PersonaId, PlatformId, Scope, Text, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::domains::Pictures;
use crate::files::{BlobRow, blob_key};
use crate::picture_starts::let_go_of_start;
use crate::rows::{MessageRow, OutboxRow, SourceScope};
use crate::turns::put_message;
use crate::writings::POST;
use crate::{Batch, Durability, Error, Table, blob_id, codec, keys};

/// What a place wants of pictures.
const WISHES: &str = "picture-rules";

/// A picture that somebody asked for.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PictureRow {
    /// Its number.
    pub number: u64,
    /// The message that shows it, once it is drawn.
    pub message: MessageId,
    /// The platform.
    pub platform: PlatformId,
    /// The chat.
    pub chat: ChatId,
    /// The persona that draws it.
    pub persona: PersonaId,
    /// The persona's displayed name.
    pub persona_name: String,
    /// The scope that it is shown in.
    pub scope: Scope,
    /// The other scopes that it is built on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_scopes: Vec<SourceScope>,
    /// When the oldest source from its own scope was said.
    pub from: Timestamp,
    /// The messages that it is built on: a reply with a tag, or a picture to start from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<MessageId>,
    /// Who asked. A picture that a persona wants belongs to the person whom it talks to.
    pub person: PersonId,
    /// The displayed name of that person then, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Text>,
    /// What to draw.
    pub prompt: Text,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Size, seed and everything else that decides how it looks, in the host's format.
    pub settings: serde_json::Value,
    /// The message with the picture that it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_from: Option<MessageId>,
    /// The picture that came with the request, to start from, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<BlobId>,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// The day whose limits it counts for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub day: String,
    /// How often it was tried.
    #[serde(default)]
    pub tries: u32,
    /// When it was drawn; `None` while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_at: Option<Timestamp>,
    /// The model that drew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether its file is removed after others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pinned: bool,
}

impl std::fmt::Debug for PictureRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("PictureRow");
        shown.field("number", &self.number).field("chat", &self.chat).field("drawn_at", &self.drawn_at);
        shown.finish_non_exhaustive()
    }
}

/// A picture to queue. The number, the message and the counts come with it.
#[derive(Clone)]
pub struct NewPicture {
    /// The row, with any number and message.
    pub row: PictureRow,
    /// The limits.
    pub quota: PictureQuota,
    /// The PNG file that it comes with, to start from. It is kept until the picture is drawn or taken back. One of a reply
    /// has none.
    pub start: Option<Vec<u8>>,
}

/// How many pictures may be asked for.
#[derive(Debug, Clone)]
pub struct PictureQuota {
    /// The day for the counts, such as `2026-03-01`.
    pub day: String,
    /// The most pictures of the person on that day.
    pub by_person: u32,
    /// The most pictures of the place on that day.
    pub in_place: u32,
    /// The most pictures that may wait.
    pub waiting: usize,
    /// The most pictures of the person that may wait.
    pub waiting_by_person: usize,
    /// The most pictures of the place that may wait.
    pub waiting_in_place: usize,
}

/// The answer to a request for a picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// It waits.
    Waits(Box<PictureRow>),
    /// Too many pictures wait.
    QueueFull,
    /// Too many pictures of this person wait.
    PersonWaits,
    /// Too many pictures of this place wait.
    PlaceWaits,
    /// The person had enough pictures today.
    PersonHadEnough,
    /// The place had enough pictures today.
    PlaceHadEnough,
}

/// The outcome of a picture.
#[derive(Clone)]
pub struct PictureOutcome {
    /// The text of the message.
    pub text: Text,
    /// The picture; `None` if it could not be drawn.
    pub picture: Option<DrawnPicture>,
    /// When it was drawn.
    pub at: Timestamp,
    /// Whether a picture that could not be drawn does not count for the limits of its day.
    pub is_given_back: bool,
}

/// A picture file.
#[derive(Clone)]
pub struct DrawnPicture {
    /// The PNG file.
    pub png: Vec<u8>,
    /// Its name.
    pub name: String,
    /// Its description.
    pub alt: String,
    /// The model that drew it.
    pub model: String,
    /// The settings, with the seed that was used.
    pub settings: serde_json::Value,
}

/// Returns the message of the picture of a number.
pub(crate) fn message_of(number: u64) -> Result<MessageId, Error> {
    MessageId::new(format!("{POST}{number}")).map_err(|error| Error::Invalid(error.to_string()))
}

fn wishes_key(platform: &PlatformId, scope: &Scope) -> Vec<u8> {
    keys::prefix(&[WISHES, platform.as_str(), &scope.to_string()])
}

impl Pictures<'_> {
    /// Returns the pictures that wait, in the order in which they were asked for.
    pub fn waiting(self) -> Result<Vec<PictureRow>, Error> {
        let numbers = self.order()?.waiting();
        let mut rows = Vec::with_capacity(numbers.len());
        for number in numbers {
            match self.numbered(number)?.filter(|row| row.drawn_at.is_none()) {
                Some(row) => rows.push(row),
                None => self.order()?.is_over(number),
            }
        }
        Ok(rows)
    }

    /// Notes that a waiting picture was tried once more; returns how often it was, or `None` if it waits no more.
    pub fn tried(self, message: &MessageId) -> Result<Option<u32>, Error> {
        let Some(mut row) = self.raw(message)?.filter(|row| row.drawn_at.is_none()) else { return Ok(None) };
        let _writing = self.0.writing(&row.chat)?;
        if self.raw(message)?.is_none() {
            return Ok(None);
        }
        row.tries += 1;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Pictures, keys::message(message), &row)?;
        self.0.store.commit(batch, Durability::Soon)?;
        Ok(Some(row.tries))
    }

    /// Notes that the last try was interrupted, so that it does not count.
    pub fn interrupted(self, message: &MessageId) -> Result<(), Error> {
        let Some(row) = self.raw(message)? else { return Ok(()) };
        let _writing = self.0.writing(&row.chat)?;
        let Some(mut row) = self.raw(message)?.filter(|row| row.drawn_at.is_none()) else { return Ok(()) };
        row.tries = row.tries.saturating_sub(1);
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Pictures, keys::message(message), &row)?;
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Returns true if a picture still waits, and nothing that it is built on was forgotten.
    pub fn is_wanted(self, message: &MessageId) -> Result<bool, Error> {
        match self.raw(message)?.filter(|row| row.drawn_at.is_none()) {
            Some(row) => self.has_sources(&row),
            None => Ok(false),
        }
    }

    /// Returns true if nothing that a picture is built on was forgotten.
    fn has_sources(self, row: &PictureRow) -> Result<bool, Error> {
        for source in &row.sources {
            let source = self.0.messages().raw_message(source)?;
            if source.is_none_or(|source| source.author == Author::Forgotten) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes a picture out of the queue; returns it if it waited. One that was begun counts for the limits of its day.
    pub fn cancel(self, message: &MessageId) -> Result<Option<PictureRow>, Error> {
        let Some(row) = self.raw(message)? else { return Ok(None) };
        let _writing = self.0.writing(&row.chat)?;
        let Some(row) = self.raw(message)?.filter(|row| row.drawn_at.is_none()) else { return Ok(None) };
        let mut batch = Batch::new();
        let _asking = self.0.asking_for_pictures.lock().unwrap_or_else(PoisonError::into_inner);
        batch.remove(Table::Pictures, keys::message(message));
        let_go_of_start(&mut batch, &row);
        if row.tries == 0 {
            self.give_back(&mut batch, &row)?;
        }
        self.0.files().commit_letting_go(batch, Durability::Flushed)?;
        Ok(Some(row))
    }

    /// Ends a picture of the queue: its message, its file, its place in the outbox and its row are one flushed
    /// transaction. A picture that could not be drawn leaves only its message. Returns the message; `None` if the picture
    /// waits no more, or if something that it is built on was forgotten.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file is larger than files may be.
    pub fn finish(self, message: &MessageId, outcome: PictureOutcome) -> Result<Option<MessageRow>, Error> {
        let Some(row) = self.raw(message)? else { return Ok(None) };
        let mut chats = BTreeSet::from([row.chat.clone()]);
        for source in &row.sources {
            chats.extend(self.0.messages().raw_message(source)?.map(|source| source.chat));
        }
        let _writing = self.0.writing_in(&chats)?;
        let Some(mut row) = self.raw(message)?.filter(|row| row.drawn_at.is_none()) else { return Ok(None) };
        if !self.has_sources(&row)? {
            return Ok(None);
        }
        let mut batch = Batch::new();
        let _asking = self.0.asking_for_pictures.lock().unwrap_or_else(PoisonError::into_inner);
        let mut post = self.post_of(&row, outcome.text)?;
        // First, as what is drawn may have the same bytes.
        let_go_of_start(&mut batch, &row);
        let started_from = row.start.take();
        let mut held = None;
        match outcome.picture {
            Some(drawn) => {
                let size = drawn.png.len() as u64;
                if size > self.0.files().largest() {
                    return Err(Error::Invalid("the picture is larger than the files that are kept".into()));
                }
                let blob = blob_id(&drawn.png)?;
                // Nobody removes the bytes between the writing of the file and of its row.
                let mut total = self.0.files().blob_bytes();
                let is_new = !self.0.files().belongs_to_any(&blob)?;
                if is_new {
                    self.0.files().make_room(&mut total, size, &row.scope)?;
                }
                self.0.blobs.put(&blob, &drawn.png)?;
                let part = Part {
                    kind: PartKind::Image,
                    blob: Some(blob.clone()),
                    ..Part::new(&drawn.name, Some("image/png"), size)
                };
                post.parts.push(part.described(Some(&drawn.alt)));
                let (persona, scope) = (row.persona.clone(), row.scope.clone());
                let blob_row = BlobRow {
                    blob: blob.clone(),
                    bytes: size,
                    message: post.id.clone(),
                    persona,
                    scope,
                    seq: post.seq,
                    is_pinned: false,
                };
                codec::put(&mut batch, Table::Blobs, blob_key(&blob, &post.id), &blob_row)?;
                (row.drawn_at, row.model, row.settings) = (Some(outcome.at), Some(drawn.model), drawn.settings);
                codec::put(&mut batch, Table::Pictures, keys::message(message), &row)?;
                held = Some((total, if is_new { size } else { 0 }));
            }
            None => {
                batch.remove(Table::Pictures, keys::message(message));
                if outcome.is_given_back {
                    self.give_back(&mut batch, &row)?;
                }
            }
        }
        self.put_post(&mut batch, &row, &post)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        let is_drawn = held.is_some();
        let (mut total, added) = held.unwrap_or_else(|| (self.0.files().blob_bytes(), 0));
        *total += added;
        self.remove_start(&mut total, started_from);
        drop(total);
        match is_drawn {
            true => self.order()?.note(&row),
            false => self.order()?.is_over(row.number),
        }
        Ok(Some(post))
    }

    pub(crate) fn post_of(self, row: &PictureRow, text: Text) -> Result<MessageRow, Error> {
        let chat = self.0.chats().get(&row.chat)?.ok_or_else(|| Error::Invalid("that chat is unknown".into()))?;
        Ok(MessageRow {
            id: row.message.clone(),
            chat: row.chat.clone(),
            seq: self.0.next_number()?,
            parent: chat.head.clone(),
            depth: self.0.turns().depth_behind(chat.head.as_ref())?,
            author: Author::Persona { id: row.persona.clone(), name: row.persona_name.clone() },
            text,
            // Its message may be shown since then.
            at: row.asked_at,
            reply_to: None,
            answers: None,
            persona: row.persona.clone(),
            scope: row.scope.clone(),
            source_scopes: row.source_scopes.clone(),
            memorable: false,
            edited_at: None,
            came_at: None,
            parts: Vec::new(),
            undone: false,
            ran: Vec::new(),
        })
    }

    /// Adds the message of a picture: it is the newest of its chat, and waits in the outbox.
    pub(crate) fn put_post(self, batch: &mut Batch, row: &PictureRow, post: &MessageRow) -> Result<(), Error> {
        put_message(batch, post)?;
        for source in &row.sources {
            codec::put(batch, Table::Derived, keys::derived(source, &post.id), &post.id)?;
        }
        let outbox = OutboxRow {
            message: post.id.clone(),
            platform: row.platform.clone(),
            asker: Some(row.person.clone()),
            from: Some(row.from),
            state: serde_json::Value::Null,
            help: String::new(),
        };
        codec::put(batch, Table::Outbox, keys::numbered(&[], post.seq), &outbox)?;
        if let Some(mut chat) = self.0.chats().get(&row.chat)? {
            chat.head = Some(post.id.clone());
            chat.last_at = chat.last_at.max(post.at);
            codec::put(batch, Table::Chats, keys::chat(&chat.id), &chat)?;
        }
        Ok(())
    }

    /// Returns what the place `home` wants of pictures, in the host's format.
    pub fn wishes(self, platform: &PlatformId, home: &Scope) -> Result<Option<serde_json::Value>, Error> {
        self.0.read_setting(&wishes_key(platform, home))
    }

    /// Stores what the place `home` wants of pictures.
    pub fn set_wishes(self, platform: &PlatformId, home: &Scope, wishes: &serde_json::Value) -> Result<(), Error> {
        self.0.set(wishes_key(platform, home), wishes)
    }

    /// Returns the pictures that a person asked for.
    pub(crate) fn of_person(self, person: &PersonId) -> Result<Vec<PictureRow>, Error> {
        let mut rows: Vec<PictureRow> = codec::rows(self.0.store.as_ref(), Table::Pictures, b"")?;
        rows.retain(|row| row.person == *person);
        rows.sort_by_key(|row| row.number);
        Ok(rows)
    }

    /// Returns the waiting pictures that `is_gone` names. They have no message that forgetting would find.
    pub(crate) fn waiting_of(self, is_gone: impl Fn(&PictureRow) -> bool) -> Result<Vec<PictureRow>, Error> {
        Ok(self.waiting()?.into_iter().filter(is_gone).collect())
    }

    /// Returns true if a picture waits and is no message yet.
    pub(crate) fn is_waiting(self, message: &MessageId) -> Result<bool, Error> {
        Ok(self.raw(message)?.is_some_and(|row| row.drawn_at.is_none()))
    }

    pub(crate) fn raw(self, message: &MessageId) -> Result<Option<PictureRow>, Error> {
        codec::get(self.0.store.as_ref(), Table::Pictures, &keys::message(message))
    }
}
