//! How long a statement held: until the same person said something else instead. Background work notes that in the mark
//! of a message ([`crate::Superseded`]), and people say it themselves ([`Memories::replace`]).

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, Timestamp};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::domains::Memories;
use crate::rows::{Kind, MemoryRow};
use crate::when::{self, Calendar};
use crate::{Batch, Durability, Error, Forgotten, NewFact, ReadScope, Table, codec, keys};

/// Least time between the beginning of what a statement says and the moment it was said, for the two to differ.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Replacements that are followed from one statement to the next.
const MAX_CHAIN: usize = 64;

/// A newer statement that its person put in the place of an older one. It counts as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedBy {
    /// The newer statement.
    pub memory: MemoryId,
    /// When it was said.
    pub at: Timestamp,
}

/// Where a newer statement stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Newer {
    /// In a message.
    Message(MessageId),
    /// In a memory, which its person named.
    Memory(MemoryId),
}

impl Newer {
    /// Returns true if a memory is the newer statement.
    pub(crate) fn is_in(&self, memory: &MemoryRow) -> bool {
        match self {
            Self::Message(message) => memory.kind == Kind::Message && memory.sources.first() == Some(message),
            Self::Memory(id) => memory.id == *id,
        }
    }
}

/// What replaced a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// The newer statement.
    pub by: Newer,
    /// When it was said.
    pub at: Timestamp,
}

/// A stretch of time, as exactly as it was named: its first moment, and the one after its end. A moment begins and ends
/// at once.
pub type Stretch = (Timestamp, Timestamp);

/// From when and until when a statement holds, as far as that may be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validity {
    /// Since when it says that it holds; `None` if it says no time before it was said.
    pub since: Option<Stretch>,
    /// When it ceased to hold; `None` while it holds.
    pub until: Option<Stretch>,
    /// The memory of the newer statement.
    pub replaced_by: Option<MemoryId>,
}

/// Why a statement was not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReplaced {
    /// There is no such memory that may be shown.
    Unknown(MemoryId),
    /// It is not a statement of the person.
    NotOwn(MemoryId),
    /// The newer one is the older one, or rests on it.
    Circle,
    /// The newer one is older.
    Older,
    /// It holds already where it is read: nothing that may be shown there replaced it. What may not be shown no longer
    /// replaces it, either.
    Holds(MemoryId),
    /// It holds already. Lists show a newer statement that says the same.
    Repeated {
        /// The older statement.
        older: MemoryId,
        /// The memory of the newer one, if it has one.
        by: Option<MemoryId>,
    },
    /// Something that may be shown replaced it already.
    Already {
        /// The older statement.
        older: MemoryId,
        /// The memory that replaced it, if it has one.
        by: Option<MemoryId>,
    },
}

impl MemoryRow {
    /// Returns from when on a person's statement says that it holds, as a stretch of time: May for "since May". It is
    /// `None` if it says no such time, or one of the day on which it was said, or says anything else beside it. What it
    /// says is known since it was said.
    pub fn valid_from(&self, calendar: &Calendar) -> Option<Stretch> {
        self.began_by(self.gist(), calendar)
    }

    /// Returns the same for the whole text. What is salient in a message need not be what replaced something.
    pub(crate) fn all_valid_from(&self, calendar: &Calendar) -> Option<Stretch> {
        self.began_by(&self.text, calendar)
    }

    fn began_by(&self, text: &str, calendar: &Calendar) -> Option<Stretch> {
        let is_statement = matches!(self.kind, Kind::Message | Kind::Fact) && self.author.person().is_some();
        let text = Some(text).filter(|text| is_statement && !text.trim_end().ends_with('?'))?;
        let (from, to) = when::holds_since(text, &calendar.at(self.at))?;
        let is_earlier = self.at.duration_since(from) >= DAY;
        is_earlier.then_some((from, to))
    }
}

/// Returns when a statement ceased to hold, of which a newer one was made `said_at` and says since when it holds. It held
/// at least when it was made.
fn end_of(older: &MemoryRow, since: Option<Stretch>, said_at: Timestamp) -> Stretch {
    match since {
        None => (said_at, said_at),
        Some((_, to)) if to <= older.at => (older.at, older.at),
        Some((from, to)) => (from.max(older.at), to),
    }
}

impl Memories<'_> {
    /// Returns what replaced a statement with something different. Returns `None` if nothing did, if the newer statement
    /// was forgotten or edited, if the person undid it, or if `read_scope` does not allow it: then nothing may tell that
    /// there is one.
    pub fn replaced(self, read_scope: &ReadScope, memory: &MemoryRow) -> Result<Option<Replacement>, Error> {
        if let Some(ReplacedBy { memory: by, at }) = memory.replaced
            && self.get(read_scope, by)?.is_some()
        {
            return Ok(Some(Replacement { by: Newer::Memory(by), at }));
        }
        let superseded = memory.salience.as_ref().and_then(|salience| salience.superseded.as_ref());
        let Some(superseded) = superseded.filter(|superseded| !superseded.same) else {
            return Ok(None);
        };
        let newer = self.0.messages().get(read_scope, &superseded.by)?;
        let newer = newer.filter(|newer| superseded.counts(newer));
        Ok(newer.map(|_| Replacement { by: Newer::Message(superseded.by.clone()), at: superseded.at }))
    }

    /// Returns from when and until when a statement holds. If the newer one says since when it holds, the older one ceased
    /// to hold then, and not when the newer one was made. Nothing tells of a newer statement that `read_scope` does not
    /// allow.
    pub fn validity(self, read_scope: &ReadScope, memory: &MemoryRow, calendar: &Calendar) -> Result<Validity, Error> {
        let since = memory.valid_from(calendar);
        let Some(Replacement { by, at }) = self.replaced(read_scope, memory)? else {
            return Ok(Validity { since, ..Validity::default() });
        };
        let replaced_by = self.memory_of_newer(read_scope, &by)?;
        let newer = replaced_by.map(|id| self.get(read_scope, id)).transpose()?.flatten();
        let held_since = newer.and_then(|newer| newer.all_valid_from(calendar));
        Ok(Validity { since, until: Some(end_of(memory, held_since, at)), replaced_by })
    }

    /// Returns the memory of a newer statement.
    fn memory_of_newer(self, read_scope: &ReadScope, by: &Newer) -> Result<Option<MemoryId>, Error> {
        match by {
            Newer::Memory(id) => Ok(Some(*id)),
            Newer::Message(message) => self.0.messages().memory_of(read_scope, message),
        }
    }

    /// Returns since when what a memory says now is known: since it was said, imported or last edited.
    pub(crate) fn known_since(self, memory: &MemoryRow) -> Result<Timestamp, Error> {
        let source = memory.sources.first().filter(|_| !memory.kind.is_written());
        let Some(message) = source.map(|id| self.0.messages().raw_message(id)).transpose()?.flatten() else {
            return Ok(memory.at);
        };
        let came_at = match message.came_at {
            Some(at) => Some(at),
            None => self.0.chats().get(&message.chat)?.and_then(|chat| chat.imported.as_ref()?.first_at()),
        };
        Ok([Some(memory.at), message.edited_at, came_at].into_iter().flatten().max().unwrap_or(memory.at))
    }

    /// Returns from when and until when a statement holds, as far as that was known by a moment.
    pub(crate) fn validity_by(
        self,
        read_scope: &ReadScope,
        memory: &MemoryRow,
        calendar: &Calendar,
        known_by: Option<Timestamp>,
    ) -> Result<Validity, Error> {
        let validity = self.validity(read_scope, memory, calendar)?;
        let (Some(known_by), Some(newer)) = (known_by, self.replaced(read_scope, memory)?) else {
            return Ok(validity);
        };
        let by = validity.replaced_by.map(|id| self.get(read_scope, id)).transpose()?.flatten();
        let known_since = by.map_or(Ok(newer.at), |by| self.known_since(&by))?.max(newer.at);
        Ok(if known_since < known_by { validity } else { Validity { since: validity.since, ..Validity::default() } })
    }

    /// Returns those of several memories in which one person says the same that still hold. With a newer statement, a
    /// person ends whatever they said in the same way before. One that says the same ends nothing: people tidy up
    /// repeats.
    pub(crate) fn still_holding(
        self,
        read_scope: &ReadScope,
        mut memories: Vec<MemoryRow>,
    ) -> Result<Vec<MemoryRow>, Error> {
        let mut ended = None;
        for memory in &memories {
            let by = self.replaced(read_scope, memory)?;
            let by = by.filter(|by| !memories.iter().any(|other| by.by.is_in(other)));
            ended = ended.max(by.map(|by| by.at));
        }
        memories.retain(|memory| ended.is_none_or(|ended| memory.at > ended));
        Ok(memories)
    }

    /// Returns the statement of a person that may be replaced.
    pub fn may_be_replaced(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        id: MemoryId,
    ) -> Result<Result<MemoryRow, NotReplaced>, Error> {
        let Some(memory) = self.get(read_scope, id)? else { return Ok(Err(NotReplaced::Unknown(id))) };
        let is_own = matches!(memory.kind, Kind::Message | Kind::Fact) && memory.author.person() == Some(person);
        Ok(if is_own { Ok(memory) } else { Err(NotReplaced::NotOwn(id)) })
    }

    /// Stores a new statement of a person, and puts it in the place of an older one of theirs. Returns its id. Nothing is
    /// stored if it replaces nothing, or if something that may be shown replaced the older one already: both would hold.
    pub fn update(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        older: MemoryId,
        fact: NewFact,
    ) -> Result<Result<MemoryId, NotReplaced>, Error> {
        let Some(before) = self.get(read_scope, older)? else { return Ok(Err(NotReplaced::Unknown(older))) };
        let _writing = before.chat.as_ref().map(|chat| self.0.writing(chat)).transpose()?;
        // It may have been forgotten meanwhile.
        let before = match self.may_be_replaced(read_scope, person, older)? {
            Ok(memory) => memory,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(Replacement { by, .. }) = self.replaced(read_scope, &before)? {
            return Ok(Err(NotReplaced::Already { older, by: self.memory_of_newer(read_scope, &by)? }));
        }
        if fact.at < before.at {
            return Ok(Err(NotReplaced::Older));
        }
        let (mut batch, at) = (Batch::new(), fact.at);
        let newer = self.add_fact(&mut batch, fact)?;
        let memory = MemoryRow { replaced: Some(ReplacedBy { memory: newer, at }), ..before };
        codec::put(&mut batch, Table::Memories, keys::memory(older), &memory)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Ok(newer))
    }

    /// Returns a memory without those replacements that do not count in its own place: the newer statement is gone,
    /// was edited or was made elsewhere, or the person undid it.
    pub(crate) fn as_kept_in_place(self, mut memory: MemoryRow) -> Result<MemoryRow, Error> {
        if let Some(by) = memory.replaced
            && self.raw_memory(by.memory)?.is_none_or(|newer| newer.scope != memory.scope)
        {
            memory.replaced = None;
        }
        if let Some(salience) = &mut memory.salience
            && let Some(superseded) = &salience.superseded
            && self
                .0
                .messages()
                .raw_message(&superseded.by)?
                .is_none_or(|newer| newer.author == Author::Forgotten || !superseded.counts(&newer))
        {
            salience.superseded = None;
        }
        Ok(memory)
    }

    /// Removes the notes about newer statements that are gone, so that nothing of those remains. Reads all memories.
    pub(crate) fn clear_replaced(self) -> Result<(), Error> {
        let mut stale: Vec<(MemoryId, Option<ChatId>)> = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Memories, b"", |_, value| {
            // A damaged row says nothing that can be removed.
            let memory = codec::decode::<MemoryRow>(Table::Memories, value);
            if let Ok(MemoryRow { id, chat, replaced: Some(by), .. }) = memory
                && self.raw_memory(by.memory)?.is_none()
            {
                stale.push((id, chat));
            }
            Ok(true)
        })?;
        for (id, chat) in stale {
            let _writing = chat.as_ref().map(|chat| self.0.writing(chat)).transpose()?;
            // It may have been forgotten or replaced anew meanwhile.
            let Some(memory) = self.raw_memory(id)? else { continue };
            let Some(by) = memory.replaced else { continue };
            if self.raw_memory(by.memory)?.is_none() {
                let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
                codec::put(&mut batch, Table::Memories, keys::memory(id), &MemoryRow { replaced: None, ..memory })?;
                // Backups lose the note, too.
                gone.memory(by.memory);
                self.0.forgetting().commit_forgetting(batch, gone)?;
            }
        }
        Ok(())
    }

    /// Puts a person's newer statement in the place of an older one of theirs. `None` lets the older one hold again, also
    /// if background work had found the newer one.
    pub fn replace(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        older: MemoryId,
        newer: Option<MemoryId>,
    ) -> Result<Result<(), NotReplaced>, Error> {
        let own = |id| self.may_be_replaced(read_scope, person, id);
        let before = match own(older)? {
            Ok(memory) => memory,
            Err(why) => return Ok(Err(why)),
        };
        let by = match newer.map(own).transpose()? {
            None => None,
            Some(Err(why)) => return Ok(Err(why)),
            Some(Ok(newer)) => {
                if self.leads_to(&newer, older)? {
                    return Ok(Err(NotReplaced::Circle));
                }
                if newer.at < before.at {
                    return Ok(Err(NotReplaced::Older));
                }
                Some(ReplacedBy { memory: newer.id, at: newer.at })
            }
        };
        let _writing = before.chat.as_ref().map(|chat| self.0.writing(chat)).transpose()?;
        // It may have been forgotten meanwhile.
        let Some(memory) = self.get(read_scope, older)? else { return Ok(Err(NotReplaced::Unknown(older))) };
        let holds = match by {
            None if self.replaced(read_scope, &memory)?.is_none() => Some(self.how_it_holds(read_scope, &memory)?),
            _ => None,
        };
        let mut batch = Batch::new();
        let mut memory = MemoryRow { replaced: by, ..memory };
        let superseded = memory.salience.as_mut().and_then(|salience| salience.superseded.as_mut());
        // A repetition holds all the time. It stays hidden behind the statement that says the same.
        if let Some(superseded) = superseded.filter(|superseded| by.is_none() && !superseded.same) {
            // Notes of older versions do not say which text of the newer message it was.
            if superseded.worded_at.is_none() {
                let newer = self.0.messages().raw_message(&superseded.by)?;
                superseded.worded_at = newer.map(|newer| newer.worded_at());
            }
            superseded.undone = true;
        }
        codec::put(&mut batch, Table::Memories, keys::memory(older), &memory)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        // What may not be shown here no longer replaces it, either. Nothing may tell that there was something.
        Ok(holds.map_or(Ok(()), Err))
    }

    /// Returns whether lists show a statement that holds itself, or the newest one that says the same. Nothing tells of one
    /// that `read_scope` does not allow.
    fn how_it_holds(self, read_scope: &ReadScope, memory: &MemoryRow) -> Result<NotReplaced, Error> {
        let older = memory.id;
        let mut shown = memory.clone();
        for _ in 0..MAX_CHAIN {
            let superseded = shown.salience.as_ref().and_then(|salience| salience.superseded.clone());
            let Some(superseded) = superseded.filter(|by| by.same) else { break };
            let newer = self.0.messages().get(read_scope, &superseded.by)?;
            let Some(newer) = newer.filter(|newer| superseded.counts(newer)) else { break };
            let newer = self.0.messages().memory_of(read_scope, &newer.id)?;
            let newer = newer.map(|id| self.get(read_scope, id)).transpose()?.flatten();
            let Some(newer) = newer else { return Ok(NotReplaced::Repeated { older, by: None }) };
            shown = newer;
        }
        if let Some(replacement) = self.replaced(read_scope, &shown)? {
            return Ok(NotReplaced::Already {
                older: shown.id,
                by: self.memory_of_newer(read_scope, &replacement.by)?,
            });
        }
        let by = shown.id;
        Ok(if by == older { NotReplaced::Holds(older) } else { NotReplaced::Repeated { older, by: Some(by) } })
    }

    /// Returns true if a statement is another one, or was replaced by it, directly or through others.
    fn leads_to(self, from: &MemoryRow, to: MemoryId) -> Result<bool, Error> {
        let (mut id, mut next) = (from.id, from.replaced);
        for _ in 0..MAX_CHAIN {
            if id == to {
                return Ok(true);
            }
            let Some(by) = next else { return Ok(false) };
            (id, next) = (by.memory, self.raw_memory(by.memory)?.and_then(|memory| memory.replaced));
        }
        Ok(true)
    }
}
