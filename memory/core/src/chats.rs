//! Chats, their settings and their branches.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::{ChatId, MessageId, PersonaId, PlatformId, Timestamp};

use crate::domains::Chats;
use crate::rows::{Answering, BranchRow, ChatRow, MAIN_BRANCH, VoiceReplies};
use crate::{Batch, Durability, Error, Order, ReadScope, Table, codec, keys};

/// Most branches that one chat may have.
pub const MAX_BRANCHES: usize = 256;

/// Longest name of a branch, in characters.
pub const MAX_BRANCH_NAME_CHARS: usize = 64;

/// A chat that Azera sees for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChat {
    /// Its id.
    pub id: ChatId,
    /// The platform that the chat is on.
    pub platform: PlatformId,
    /// The name that people see.
    pub title: Option<String>,
    /// The persona that answers until somebody changes it.
    pub persona: PersonaId,
}

/// A change of one setting of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatChange {
    /// The persona that answers.
    Persona(PersonaId),
    /// When the persona answers; `None` restores the configured default.
    Answering(Option<Answering>),
    /// When replies are also spoken; `None` restores the configured default.
    VoiceReplies(Option<VoiceReplies>),
    /// The group that the chat belongs to.
    Group(Option<String>),
    /// Adds a tag (`true`) or removes it (`false`).
    Tag(String, bool),
    /// Invites a persona (`true`) or uninvites it (`false`). An invited persona answers when somebody calls it by name.
    Invited(PersonaId, bool),
    /// Lets a persona speak with a voice; `None` for its own.
    Voice(PersonaId, Option<String>),
}

impl Chats<'_> {
    /// Returns the chat if it is known. The row holds settings and no messages.
    pub fn get(self, id: &ChatId) -> Result<Option<ChatRow>, Error> {
        codec::get(self.0.store.as_ref(), Table::Chats, &keys::chat(id))
    }

    /// Returns every chat of `platform`.
    pub fn list(self, platform: &PlatformId) -> Result<Vec<ChatRow>, Error> {
        self.list_under(platform, "")
    }

    /// Returns every chat of `platform` whose id begins with `prefix`. Reads no other rows.
    pub fn list_under(self, platform: &PlatformId, prefix: &str) -> Result<Vec<ChatRow>, Error> {
        let mut chats: Vec<ChatRow> = codec::rows(self.0.store.as_ref(), Table::Chats, prefix.as_bytes())?;
        chats.retain(|chat| chat.platform == *platform);
        Ok(chats)
    }

    /// Returns every chat, on any platform, in which the persona answers or is invited. Nobody answers in imported chats.
    pub fn chats_served_by(self, identity: &PersonaId) -> Result<Vec<ChatRow>, Error> {
        let mut chats: Vec<ChatRow> = codec::rows(self.0.store.as_ref(), Table::Chats, b"")?;
        chats.retain(|chat| chat.imported.is_none() && chat.is_served_by(identity));
        Ok(chats)
    }

    /// Stores a new chat and returns its row. For a known chat, only the title changes.
    pub fn open(self, new: NewChat, now: Timestamp) -> Result<ChatRow, Error> {
        // Usually nothing changes. Returning early keeps this working while the store cannot be written.
        let known = self.get(&new.id)?.filter(|chat| new.title.is_none() || chat.title == new.title);
        if let Some(chat) = known {
            return Ok(chat);
        }
        let _writing = self.0.writing(&new.id)?;
        let row = match self.get(&new.id)? {
            Some(mut chat) => {
                chat.title = new.title;
                chat
            }
            None => ChatRow {
                // If damage has lost the chat's row, the chat continues after its newest message.
                head: self.newest_in(&new.id)?,
                id: new.id,
                platform: new.platform,
                title: new.title,
                persona: new.persona,
                answering: None,
                branch: MAIN_BRANCH.into(),
                created_at: now,
                last_at: now,
                group: None,
                tags: BTreeSet::new(),
                invited: BTreeSet::new(),
                voice_replies: None,
                voices: BTreeMap::new(),
                imported: None,
            },
        };
        self.put(&row)?;
        Ok(row)
    }

    /// Returns the newest message of a chat on any branch.
    fn newest_in(self, id: &ChatId) -> Result<Option<MessageId>, Error> {
        let log = keys::prefix(&[id.as_str()]);
        let newest = self.0.store.scan(Table::ChatLog, &log, None, Order::Descending, 1)?;
        newest.first().map(|(_, value)| codec::decode(Table::ChatLog, value)).transpose()
    }

    /// Lets no persona speak with a voice any more; returns the chats where one did.
    pub fn drop_voice(self, voice: &str) -> Result<Vec<ChatRow>, Error> {
        let chats: Vec<ChatRow> = codec::rows(self.0.store.as_ref(), Table::Chats, b"")?;
        let users: Vec<ChatRow> = chats.into_iter().filter(|chat| chat.voices.values().any(|id| id == voice)).collect();
        for chat in &users {
            let _writing = self.0.writing(&chat.id)?;
            let Some(mut chat) = self.get(&chat.id)? else { continue };
            chat.voices.retain(|_, id| id != voice);
            self.put(&chat)?;
        }
        Ok(users)
    }

    /// Changes one setting; returns `false` if the chat is unknown.
    pub fn change(self, id: &ChatId, change: ChatChange) -> Result<bool, Error> {
        let _writing = self.0.writing(id)?;
        let Some(mut chat) = self.get(id)? else { return Ok(false) };
        match change {
            ChatChange::Persona(persona) => {
                chat.invited.remove(&persona);
                chat.persona = persona;
            }
            ChatChange::Answering(answering) => chat.answering = answering,
            ChatChange::Voice(persona, Some(voice)) => {
                chat.voices.insert(persona, voice);
            }
            ChatChange::Voice(persona, None) => {
                chat.voices.remove(&persona);
            }
            ChatChange::VoiceReplies(replies) => chat.voice_replies = replies,
            ChatChange::Group(group) => chat.group = group,
            ChatChange::Tag(tag, true) => {
                chat.tags.insert(tag);
            }
            ChatChange::Tag(tag, false) => {
                chat.tags.remove(&tag);
            }
            ChatChange::Invited(persona, true) => {
                chat.invited.insert(persona);
            }
            ChatChange::Invited(persona, false) => {
                chat.invited.remove(&persona);
            }
        }
        self.put(&chat)?;
        Ok(true)
    }

    fn put(self, chat: &ChatRow) -> Result<(), Error> {
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Chats, keys::chat(&chat.id), chat)?;
        self.0.store.commit(batch, Durability::Flushed)
    }

    /// Returns the chat's branches, oldest first, with the current one. People choose the names of branches. Names
    /// given before a horizon of `read_scope` are therefore left out, except [`MAIN_BRANCH`].
    pub fn branches(self, read_scope: &ReadScope, id: &ChatId) -> Result<Vec<BranchRow>, Error> {
        let mut branches = self.all_branches(id)?;
        branches.retain(|branch| may_be_named(read_scope, branch));
        Ok(branches)
    }

    fn all_branches(self, id: &ChatId) -> Result<Vec<BranchRow>, Error> {
        let mut branches: Vec<BranchRow> =
            codec::rows(self.0.store.as_ref(), Table::Branches, &keys::prefix(&[id.as_str()]))?;
        if let Some(chat) = self.get(id)? {
            match branches.iter_mut().find(|branch| branch.name == chat.branch) {
                Some(present) => present.head = chat.head,
                None => branches.push(BranchRow {
                    name: chat.branch,
                    head: chat.head,
                    forked_from: None,
                    created_at: chat.created_at,
                }),
            }
        }
        branches.sort_by_key(|branch| branch.created_at);
        Ok(branches)
    }

    /// Creates a branch after the message `from` and switches to it. `from` is a message of this chat that `read_scope`
    /// allows.
    pub fn branch_from(
        self,
        read_scope: &ReadScope,
        id: &ChatId,
        from: &MessageId,
        name: &str,
        now: Timestamp,
    ) -> Result<BranchRow, Error> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_BRANCH_NAME_CHARS || name.chars().any(char::is_control) {
            return Err(Error::Invalid(format!("a branch's name has 1 to {MAX_BRANCH_NAME_CHARS} characters")));
        }
        let _writing = self.0.writing(id)?;
        let branches = self.all_branches(id)?;
        if branches.iter().any(|branch| branch.name == name) {
            return Err(Error::Invalid("there is a branch of that name already".into()));
        }
        if branches.len() >= MAX_BRANCHES {
            return Err(Error::Invalid(format!("a chat has {MAX_BRANCHES} branches at most")));
        }
        let here = self.0.messages().get(read_scope, from)?.filter(|message| message.chat == *id);
        let (Some(message), Some(mut chat)) = (here, self.get(id)?) else {
            return Err(Error::Invalid("that message is not in this chat".into()));
        };
        let branch = BranchRow {
            name: name.to_owned(),
            head: Some(message.id.clone()),
            forked_from: Some(message.id.clone()),
            created_at: now,
        };
        let mut batch = Batch::new();
        keep_present(&mut batch, &chat, &branches)?;
        codec::put(&mut batch, Table::Branches, keys::branch(id, name), &branch)?;
        chat.branch = name.to_owned();
        chat.head = Some(message.id);
        codec::put(&mut batch, Table::Chats, keys::chat(id), &chat)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(branch)
    }

    /// Switches to another branch; returns `None` if `read_scope` allows no branch of that name.
    pub fn switch_branch(self, read_scope: &ReadScope, id: &ChatId, name: &str) -> Result<Option<BranchRow>, Error> {
        let _writing = self.0.writing(id)?;
        let branches = self.all_branches(id)?;
        let (Some(branch), Some(mut chat)) = (
            branches.iter().find(|branch| branch.name == name && may_be_named(read_scope, branch)).cloned(),
            self.get(id)?,
        ) else {
            return Ok(None);
        };
        let mut batch = Batch::new();
        keep_present(&mut batch, &chat, &branches)?;
        chat.branch.clone_from(&branch.name);
        chat.head.clone_from(&branch.head);
        codec::put(&mut batch, Table::Chats, keys::chat(id), &chat)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(branch))
    }
}

fn may_be_named(read_scope: &ReadScope, branch: &BranchRow) -> bool {
    branch.name == MAIN_BRANCH || read_scope.allows(read_scope.persona(), read_scope.place(), &[], branch.created_at)
}

/// Saves the head of the current branch before the chat leaves it.
fn keep_present(batch: &mut Batch, chat: &ChatRow, branches: &[BranchRow]) -> Result<(), Error> {
    if let Some(present) = branches.iter().find(|branch| branch.name == chat.branch) {
        codec::put(batch, Table::Branches, keys::branch(&chat.id, &present.name), present)?;
    }
    Ok(())
}
