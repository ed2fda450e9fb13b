//! Imported conversations. What somebody said to other programs becomes memories of one persona, in chats that nobody
//! talks in. Only the person who imported them may read them: in their direct messages, or in the realm of their project.

use std::collections::BTreeMap;

use azera_types::{
    Author, ChatId, IdError, MAX_NAME_CHARS, MessageId, PersonId, PersonaId, PlatformId, RealmId, Scope, Text,
    Timestamp, folded_project_name,
};
use serde::{Deserialize, Serialize};

use crate::domains::Imports;
use crate::import_search::IMPORT_SEARCH;
use crate::rows::{ChatRow, Kind, MAIN_BRANCH, MessageRow, RanCommand};
use crate::turns::put_message;
use crate::{Batch, Durability, Error, ReadScope, Table, codec, keys};

/// The platform of imported chats. No adapter serves it, so nothing is ever answered or posted there.
const PLATFORM: &str = "import";

/// Most characters of a chat's title. The chat's row is written with every message, and titles stand in lists.
pub const MAX_IMPORTED_TITLE_CHARS: usize = 128;

/// Most commands that are kept of what was run for one message.
pub const MAX_RAN: usize = 200;

/// First part of the keys of projects.
const PROJECT: &str = "project";

/// The file that an import read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// The file's name, without its folder.
    pub name: String,
    /// The format's name.
    pub format: String,
    /// When the import first added something to the chat.
    pub first_at: Timestamp,
    /// When it last did.
    pub last_at: Timestamp,
}

/// Where an imported chat came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum ImportedChat {
    /// The chat is there.
    Kept {
        /// The person who imported it.
        by: PersonId,
        /// The scope of its messages.
        scope: Scope,
        /// The imports that added something to it, by id.
        imports: BTreeMap<String, ImportedFile>,
        /// True if statements in it wait to be compared with what the person said elsewhere.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
        /// The number of the first message that was not searched for what is worth keeping; `None` if all were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unsearched: Option<u64>,
        /// The number of the first message that no chat model read for what is worth keeping; `None` if one read all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unread: Option<u64>,
        /// The version of the search that the chat was last given to; 0 for those of older versions of Azera.
        #[serde(default)]
        search: u32,
    },
    /// The chat was forgotten. It is not imported again.
    Forgotten,
    /// Its import was undone. Another import may bring the conversation back, as another chat.
    Undone,
}

impl ImportedChat {
    /// Returns when something was first imported into the chat.
    pub(crate) fn first_at(&self) -> Option<Timestamp> {
        match self {
            Self::Kept { imports, .. } => imports.values().map(|file| file.first_at).min(),
            Self::Forgotten | Self::Undone => None,
        }
    }
}

/// An import.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// Its id. The same file of the same person always has the same.
    pub id: String,
    /// The person who imports.
    pub by: PersonId,
    /// The persona that remembers.
    pub persona: PersonaId,
    /// The scope: the person's direct messages, or the realm of one of their projects.
    pub scope: Scope,
    /// The name of the file.
    pub file: String,
    /// The name of the format.
    pub format: String,
    /// True if the person's own words are to be searched for what is worth keeping.
    pub learns: bool,
}

/// A message to import. Its ids follow from the source, so that the same message is imported once.
#[derive(Debug, Clone, PartialEq)]
pub struct NewImported {
    /// Its id.
    pub id: MessageId,
    /// The chat.
    pub chat: ChatId,
    /// The chat's title; it is cut at [`MAX_IMPORTED_TITLE_CHARS`].
    pub title: Option<String>,
    /// The message before it, if it is known; otherwise the chat's newest.
    pub after: Option<MessageId>,
    /// The author.
    pub person: PersonId,
    /// The author's name.
    pub name: String,
    /// The text.
    pub text: Text,
    /// When it was said.
    pub at: Timestamp,
}

/// What is there of a chat or a message to import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportState {
    /// Nothing.
    New,
    /// It is there.
    Kept,
    /// It was forgotten.
    Forgotten,
    /// Its import was undone.
    Undone,
}

/// What a person imported from one file for one persona and scope.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportSummary {
    /// The import's id.
    pub id: String,
    /// The file.
    #[serde(flatten)]
    pub file: ImportedFile,
    /// The persona that remembers.
    pub persona: PersonaId,
    /// The scope.
    pub scope: Scope,
    /// Number of chats.
    pub chats: usize,
    /// Number of messages in these chats, without forgotten ones.
    pub messages: usize,
    /// Number of messages in these chats that are still to be searched for what is worth keeping.
    pub unsearched: usize,
}

/// Returns the realm of a person's project. Nobody else may read it.
///
/// # Errors
///
/// Fails if the name is empty, has control characters, or is too long together with the person's id.
pub fn project_realm(by: &PersonId, name: &str) -> Result<RealmId, IdError> {
    // The person's id ends at the last colon, so that no name leads to a realm of another person.
    let name = folded_project_name(name);
    if name.is_empty() {
        return Err(IdError::Empty);
    }
    RealmId::new(format!("{PROJECT}:{by}:{name}"))
}

/// Returns the name of the project that a realm is; `None` for a realm of a platform.
pub fn project_name(realm: &RealmId) -> Option<&str> {
    realm.as_str().strip_prefix(PROJECT)?.strip_prefix(':')?.rsplit_once(':').map(|(_, name)| name)
}

/// Returns the person whose project a realm is; `None` for a realm of a platform.
pub fn project_owner(realm: &RealmId) -> Option<PersonId> {
    let (owner, _) = realm.as_str().strip_prefix(PROJECT)?.strip_prefix(':')?.rsplit_once(':')?;
    PersonId::new(owner).ok()
}

/// Returns a title without line breaks and other control characters, cut to its limit; `None` if nothing is left.
fn shown_title(title: &str) -> Option<String> {
    let plain: String = title.trim().chars().take(MAX_IMPORTED_TITLE_CHARS).collect();
    let plain: String = plain.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(plain.trim().to_owned()).filter(|title| !title.is_empty())
}

fn project_key(by: &PersonId, scope: &Scope) -> Vec<u8> {
    keys::prefix(&[PROJECT, &Scope::Dm(by.clone()).to_string(), &scope.to_string()])
}

impl Imports<'_> {
    /// Returns what is there of a chat.
    pub fn chat_state(self, id: &ChatId) -> Result<ImportState, Error> {
        Ok(match self.0.chats().get(id)?.and_then(|chat| chat.imported) {
            None => ImportState::New,
            Some(ImportedChat::Kept { .. }) => ImportState::Kept,
            Some(ImportedChat::Forgotten) => ImportState::Forgotten,
            Some(ImportedChat::Undone) => ImportState::Undone,
        })
    }

    /// Returns what is there of a message.
    pub fn message_state(self, id: &MessageId) -> Result<ImportState, Error> {
        Ok(match self.0.messages().raw_message(id)? {
            None => ImportState::New,
            Some(message) if message.undone => ImportState::Undone,
            Some(message) if message.author == Author::Forgotten => ImportState::Forgotten,
            Some(_) => ImportState::Kept,
        })
    }

    /// Stores a message with its memory in one transaction, unless it was stored or forgotten before; returns what was
    /// there. Call [`Imports::flush`] after the last one.
    ///
    /// # Errors
    ///
    /// Fails if the chat belongs to somebody else, to another persona or to another scope, or if it was forgotten.
    pub fn add(self, import: &Import, new: NewImported, now: Timestamp) -> Result<ImportState, Error> {
        let _writing = self.0.writing(&new.chat)?;
        let state = self.message_state(&new.id)?;
        if state != ImportState::New {
            return Ok(state);
        }
        self.0.store.room()?;
        let mut chat = self.chat_for(import, &new, now)?;
        let parent = new.after.map(|id| self.0.messages().raw_message(&id)).transpose()?.flatten();
        let parent = parent.filter(|message| message.chat == chat.id).map(|message| message.id).or(chat.head.clone());
        let message = MessageRow {
            id: new.id,
            chat: chat.id.clone(),
            seq: self.0.next_number()?,
            depth: self.0.turns().depth_behind(parent.as_ref())?,
            parent,
            author: Author::Person { id: new.person.clone(), name: new.name.chars().take(MAX_NAME_CHARS).collect() },
            text: new.text,
            at: new.at,
            reply_to: None,
            answers: None,
            persona: import.persona.clone(),
            scope: import.scope.clone(),
            source_scopes: Vec::new(),
            memorable: true,
            edited_at: None,
            came_at: Some(now),
            parts: Vec::new(),
            undone: false,
            ran: Vec::new(),
        };
        let mut batch = Batch::new();
        put_message(&mut batch, &message)?;
        codec::put(&mut batch, Table::PersonLog, keys::numbered(&[new.person.as_str()], message.seq), &message.id)?;
        chat.head = Some(message.id.clone());
        chat.last_at = chat.last_at.max(message.at);
        if let Some(ImportedChat::Kept { unsearched, unread, .. }) = &mut chat.imported
            && import.learns
            && message.author.person() == Some(&import.by)
        {
            unsearched.get_or_insert(message.seq);
            unread.get_or_insert(message.seq);
        }
        codec::put(&mut batch, Table::Chats, keys::chat(&chat.id), &chat)?;
        if matches!(import.scope, Scope::Realm(_)) {
            codec::put(&mut batch, Table::Settings, project_key(&import.by, &import.scope), &import.scope)?;
        }
        self.0.turns().remember(&mut batch, &message, Kind::Message)?;
        self.0.store.commit(batch, Durability::Soon)?;
        Ok(ImportState::New)
    }

    /// Adds what an assistant ran for a message of the import. A command that is known gets its outcome if it lacked one.
    /// Only the last [`MAX_RAN`] are kept. Returns how many are new.
    ///
    /// # Errors
    ///
    /// Fails if the message belongs to somebody else, to another persona or to another scope.
    pub fn ran(self, import: &Import, message: &MessageId, ran: Vec<RanCommand>) -> Result<usize, Error> {
        let Some(found) = self.0.messages().raw_message(message)? else { return Ok(0) };
        let _writing = self.0.writing(&found.chat)?;
        // It may have been forgotten meanwhile.
        let Some(row) = self.0.messages().raw_message(message)?.filter(|row| row.author != Author::Forgotten) else {
            return Ok(0);
        };
        let by = self.0.chats().get(&row.chat)?.and_then(|chat| match chat.imported {
            Some(ImportedChat::Kept { by, .. }) => Some(by),
            _ => None,
        });
        if by.as_ref() != Some(&import.by) || row.persona != import.persona || row.scope != import.scope {
            return Err(Error::Invalid("that message was imported for somebody else".into()));
        }
        let mut merged = row.ran.clone();
        for command in ran {
            match merged.iter_mut().find(|known| known.id == command.id) {
                Some(known) => known.worked = known.worked.or(command.worked),
                None => merged.push(command),
            }
        }
        // A transcript may be imported in parts, and the later part first.
        merged.sort_by_key(|command| command.at);
        merged.drain(..merged.len().saturating_sub(MAX_RAN));
        if merged == row.ran {
            return Ok(0);
        }
        let is_new = |command: &&RanCommand| row.ran.iter().all(|known| known.id != command.id);
        let added = merged.iter().filter(is_new).count();
        self.0.store.room()?;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Messages, keys::message(&row.id), &MessageRow { ran: merged, ..row })?;
        self.0.store.commit(batch, Durability::Soon)?;
        Ok(added)
    }

    /// Returns the row of a message's chat, with this import in it.
    fn chat_for(self, import: &Import, new: &NewImported, now: Timestamp) -> Result<ChatRow, Error> {
        let other = || Error::Invalid("that conversation was imported for somebody else, or was forgotten".into());
        let mut chat = match self.0.chats().get(&new.chat)? {
            Some(chat) => chat,
            None => ChatRow {
                id: new.chat.clone(),
                platform: PlatformId::new(PLATFORM).map_err(|error| Error::Invalid(error.to_string()))?,
                title: None,
                persona: import.persona.clone(),
                answering: None,
                branch: MAIN_BRANCH.into(),
                head: None,
                created_at: new.at,
                last_at: new.at,
                group: None,
                tags: std::collections::BTreeSet::new(),
                invited: std::collections::BTreeSet::new(),
                voice_replies: None,
                voices: BTreeMap::new(),
                imported: Some(ImportedChat::Kept {
                    by: import.by.clone(),
                    scope: import.scope.clone(),
                    imports: BTreeMap::new(),
                    waits: false,
                    unsearched: None,
                    unread: None,
                    search: IMPORT_SEARCH,
                }),
            },
        };
        if chat.persona != import.persona {
            return Err(other());
        }
        let Some(ImportedChat::Kept { by, scope, imports, .. }) = &mut chat.imported else { return Err(other()) };
        if *by != import.by || *scope != import.scope {
            return Err(other());
        }
        let file = imports.entry(import.id.clone()).or_insert_with(|| ImportedFile {
            name: import.file.clone(),
            format: import.format.clone(),
            first_at: now,
            last_at: now,
        });
        file.last_at = now;
        if new.title.is_some() {
            chat.title = new.title.as_deref().and_then(shown_title);
        }
        Ok(chat)
    }

    /// Notes whether statements in an imported chat wait to be compared with what the person said elsewhere.
    pub fn set_waiting(self, chat: &ChatId, is_waiting: bool) -> Result<(), Error> {
        let _writing = self.0.writing(chat)?;
        // It may have been forgotten meanwhile.
        let Some(mut chat) = self.0.chats().get(chat)? else { return Ok(()) };
        match &mut chat.imported {
            Some(ImportedChat::Kept { waits, .. }) if *waits != is_waiting => *waits = is_waiting,
            _ => return Ok(()),
        }
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Chats, keys::chat(&chat.id), &chat)?;
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Writes everything that was added to disk.
    pub fn flush(self) -> Result<(), Error> {
        self.0.store.flush()
    }

    /// Returns what a person imported, newest last.
    pub fn list(self, by: &PersonId) -> Result<Vec<ImportSummary>, Error> {
        let mut found: BTreeMap<String, ImportSummary> = BTreeMap::new();
        for chat in self.kept(|whose, _, _| whose == by)? {
            let Some(ImportedChat::Kept { scope, imports, unsearched, .. }) = chat.imported else { continue };
            let messages = self.count_messages(&chat.id)?;
            let unsearched = unsearched.map_or(Ok(0), |from| self.count_from(&chat.id, from))?;
            for (id, file) in imports {
                let new = || ImportSummary {
                    id: id.clone(),
                    file: file.clone(),
                    persona: chat.persona.clone(),
                    scope: scope.clone(),
                    chats: 0,
                    messages: 0,
                    unsearched: 0,
                };
                let summary = found.entry(id.clone()).or_insert_with(new);
                summary.file.first_at = summary.file.first_at.min(file.first_at);
                summary.file.last_at = summary.file.last_at.max(file.last_at);
                summary.chats += 1;
                summary.messages += messages;
                summary.unsearched += unsearched;
            }
        }
        let mut found: Vec<ImportSummary> = found.into_values().collect();
        found.sort_by_key(|summary| summary.file.last_at);
        Ok(found)
    }

    fn count_messages(self, chat: &ChatId) -> Result<usize, Error> {
        let ids: Vec<MessageId> = codec::rows(self.0.store.as_ref(), Table::ChatLog, &keys::prefix(&[chat.as_str()]))?;
        let mut count = 0;
        for id in ids {
            count += usize::from(self.message_state(&id)? == ImportState::Kept);
        }
        Ok(count)
    }

    /// Returns the realms of a person's projects.
    pub fn projects_of(self, by: &PersonId) -> Result<Vec<RealmId>, Error> {
        let mut found = Vec::new();
        let prefix = keys::prefix(&[PROJECT, &Scope::Dm(by.clone()).to_string()]);
        codec::walk(self.0.store.as_ref(), Table::Settings, &prefix, |_, value| {
            if let Scope::Realm(realm) = codec::decode(Table::Settings, value)? {
                found.push(realm);
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns the chats that were imported into `of`, as far as the read scope may read them, with the newest message last,
    /// at most `limit` of them. Their messages are read by [`crate::Messages::history`].
    pub fn latest_chats(self, read_scope: &ReadScope, of: &Scope, limit: usize) -> Result<Vec<ChatRow>, Error> {
        let mut chats = self.kept(|_, scope, _| scope == of)?;
        chats.retain(|chat| read_scope.allows(&chat.persona, of, &[], chat.last_at));
        chats.sort_by_key(|chat| chat.last_at);
        chats.drain(..chats.len().saturating_sub(limit));
        Ok(chats)
    }

    /// Returns the chats of the projects that the scope may read, with the newest message last, at most `limit` of them.
    pub(crate) fn project_chats(self, read_scope: &ReadScope, limit: usize) -> Result<Vec<ChatRow>, Error> {
        let mut chats = self.all_project_chats()?;
        chats.retain(|chat| match &chat.imported {
            Some(ImportedChat::Kept { scope, .. }) => read_scope.allows(&chat.persona, scope, &[], chat.last_at),
            _ => false,
        });
        chats.sort_by(|one, other| (one.last_at, &one.id).cmp(&(other.last_at, &other.id)));
        chats.drain(..chats.len().saturating_sub(limit));
        Ok(chats)
    }

    /// Returns the chats of all projects.
    pub(crate) fn all_project_chats(self) -> Result<Vec<ChatRow>, Error> {
        self.kept(|_, scope, _| matches!(scope, Scope::Realm(realm) if project_name(realm).is_some()))
    }

    /// Returns the chats of an import.
    pub(crate) fn chats_of_import(self, id: &str) -> Result<Vec<ChatRow>, Error> {
        self.kept(|_, _, imports| imports.contains_key(id))
    }

    /// Returns the chats that a person imported.
    pub(crate) fn chats_of_person(self, person: &PersonId) -> Result<Vec<ChatRow>, Error> {
        self.kept(|by, _, _| by == person)
    }

    /// Returns the chats that were imported into a realm.
    pub(crate) fn chats_of_realm(self, realm: &RealmId) -> Result<Vec<ChatRow>, Error> {
        self.kept(|_, scope, _| *scope == Scope::Realm(realm.clone()))
    }

    pub(crate) fn kept(
        self,
        wanted: impl Fn(&PersonId, &Scope, &BTreeMap<String, ImportedFile>) -> bool,
    ) -> Result<Vec<ChatRow>, Error> {
        let mut found = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Chats, b"", |_, value| {
            let chat: ChatRow = codec::decode(Table::Chats, value)?;
            let fits = match &chat.imported {
                Some(ImportedChat::Kept { by, scope, imports, .. }) => wanted(by, scope, imports),
                _ => false,
            };
            if fits {
                found.push(chat);
            }
            Ok(true)
        })?;
        Ok(found)
    }
}
