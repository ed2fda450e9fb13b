//! Looks for damage: rows that cannot be read, and references to rows that do not exist. A record that was never
//! damaged has neither, even after the process was killed.

use std::collections::{BTreeMap, HashSet};

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::{BlobRow, blob_faults};
use crate::forget_log::Forgotten;
use crate::minds::{BondRow, MindRow};
use crate::pictures::PictureRow;
use crate::ratings::RatingRow;
use crate::rows::{BranchRow, ChatRow, InboxRow, MemoryRow, MessageRow, OutboxRow, PersonaRow, WhyRow, WritingRow};
use crate::salience::mark_key;
use crate::vaults::VaultRow;
use crate::writings::writing_key;
use crate::{Error, Memory, Store, Table, codec, graph, kept, keys, themes};

/// The result of checking the whole record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Messages of people, without forgotten ones.
    pub messages: usize,
    /// Replies, without forgotten ones.
    pub replies: usize,
    /// Memories.
    pub memories: usize,
    /// Kept files of messages.
    pub files: usize,
    /// Messages whose turn has not ended.
    pub open_turns: usize,
    /// Replies that their platforms have not acknowledged.
    pub undelivered: usize,
    /// Number of rows that cannot be read, by table.
    pub unreadable: BTreeMap<&'static str, usize>,
    /// Number of rows with broken references, by a description of the fault.
    pub broken: BTreeMap<&'static str, usize>,
}

impl CheckReport {
    /// Returns true if the check found no damage.
    pub fn is_sound(&self) -> bool {
        self.unreadable.is_empty() && self.broken.is_empty()
    }

    fn broke(&mut self, what: &'static str, count: usize) {
        if count > 0 {
            *self.broken.entry(what).or_default() += count;
        }
    }

    /// Returns every readable row of a table with its key, and counts the unreadable ones.
    fn rows<T: DeserializeOwned>(&mut self, store: &dyn Store, table: Table) -> Result<Vec<(Vec<u8>, T)>, Error> {
        let mut rows = Vec::new();
        let walked = codec::walk(store, table, b"", |key, value| {
            match codec::decode(table, value) {
                Ok(row) => rows.push((key.to_vec(), row)),
                Err(_) => *self.unreadable.entry(table.name()).or_default() += 1,
            }
            Ok(true)
        });
        self.walked(walked)?;
        Ok(rows)
    }

    /// Counts a table that damage makes unreadable from some point on. Errors of the disk are returned: they are not
    /// damage.
    fn walked(&mut self, walked: Result<(), Error>) -> Result<(), Error> {
        match walked {
            Err(Error::Backend { transient: false, .. } | Error::Damaged { .. }) => {
                self.broke("tables that cannot be read to their end", 1);
                Ok(())
            }
            walked => walked,
        }
    }

    /// Returns the keys of a table.
    fn key_set(&mut self, store: &dyn Store, table: Table) -> Result<HashSet<Vec<u8>>, Error> {
        let mut keys = HashSet::new();
        let walked = codec::walk(store, table, b"", |key, _| {
            keys.insert(key.to_vec());
            Ok(true)
        });
        self.walked(walked)?;
        Ok(keys)
    }
}

impl Memory {
    /// Checks the whole record. Nothing should write to the record meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if the disk fails. If damage stops the reading of a table, the check counts that table and continues with
    /// the next one.
    pub fn check(&self) -> Result<CheckReport, Error> {
        let store = self.store.as_ref();
        let mut found = CheckReport::default();
        let messages: Vec<(_, MessageRow)> = found.rows(store, Table::Messages)?;
        let known: HashSet<&MessageId> = messages.iter().map(|(_, message)| &message.id).collect();
        found.check_messages(store, &messages, &known)?;
        found.check_memories(store, &known)?;
        let chats: Vec<(_, ChatRow)> = found.rows(store, Table::Chats)?;
        let heads = chats.iter().filter_map(|(_, chat)| chat.head.as_ref());
        found.broke("chats whose newest message is missing", heads.filter(|head| !known.contains(head)).count());
        let chats: HashSet<&ChatId> = chats.iter().map(|(_, chat)| &chat.id).collect();
        let homeless = messages.iter().filter(|(_, message)| !chats.contains(&message.chat)).count();
        found.broke("messages of unknown chats", homeless);
        let inbox: Vec<(_, InboxRow)> = found.rows(store, Table::Inbox)?;
        found.open_turns = inbox.len();
        found.broke(
            "open turns without a message",
            inbox.iter().filter(|(_, row)| !known.contains(&row.message)).count(),
        );
        let outbox: Vec<(_, OutboxRow)> = found.rows(store, Table::Outbox)?;
        found.undelivered = outbox.len();
        let lost = outbox.iter().filter(|(_, row)| !known.contains(&row.message)).count();
        found.broke("undelivered replies without a message", lost);
        let why: Vec<(_, WhyRow)> = found.rows(store, Table::Why)?;
        found.broke(
            "notes behind replies that are missing",
            why.iter().filter(|(_, row)| !known.contains(&row.reply)).count(),
        );
        let _branches: Vec<(_, BranchRow)> = found.rows(store, Table::Branches)?;
        let _personas: Vec<(_, PersonaRow)> = found.rows(store, Table::Personas)?;
        let _settings: Vec<(_, serde_json::Value)> = found.rows(store, Table::Settings)?;
        let derived: Vec<(_, MessageId)> = found.rows(store, Table::Derived)?;
        found.broke("links to replies that are missing", derived.iter().filter(|(_, id)| !known.contains(id)).count());
        let blobs: Vec<(_, BlobRow)> = found.rows(store, Table::Blobs)?;
        found.files = blobs.len();
        let pictures: Vec<(_, PictureRow)> = found.rows(store, Table::Pictures)?;
        // A picture that waits is no message yet, and may have the file that it starts from.
        let waiting: HashSet<&MessageId> =
            pictures.iter().filter(|(_, row)| row.start.is_some()).map(|(_, row)| &row.message).collect();
        let is_of_none = |row: &BlobRow| !known.contains(&row.message) && !waiting.contains(&row.message);
        found.broke("files of a message that is missing", blobs.iter().filter(|(_, row)| is_of_none(row)).count());
        let lost = pictures.iter().filter(|(_, row)| row.drawn_at.is_some() && !known.contains(&row.message)).count();
        found.broke("pictures without a message", lost);
        let [missing, damaged, stray] = blob_faults(store, self.blobs.as_ref())?;
        found.broke("files that are missing", missing);
        found.broke("files that are damaged", damaged);
        found.broke("files that belong to no message", stray);
        let _minds: Vec<(_, MindRow)> = found.rows(store, Table::Minds)?;
        let _bonds: Vec<(_, BondRow)> = found.rows(store, Table::Bonds)?;
        let _vaults: Vec<(_, VaultRow)> = found.rows(store, Table::Vaults)?;
        let _forgotten: Vec<(_, Forgotten)> = found.rows(store, Table::Forgotten)?;
        Ok(found)
    }
}

impl CheckReport {
    fn check_messages(
        &mut self,
        store: &dyn Store,
        messages: &[(Vec<u8>, MessageRow)],
        known: &HashSet<&MessageId>,
    ) -> Result<(), Error> {
        let log: Vec<(_, MessageId)> = self.rows(store, Table::ChatLog)?;
        self.broke("places in a chat without a message", log.iter().filter(|(_, id)| !known.contains(id)).count());
        let log: HashSet<Vec<u8>> = log.into_iter().map(|(key, _)| key).collect();
        let person_log: Vec<(_, MessageId)> = self.rows(store, Table::PersonLog)?;
        let lost = person_log.iter().filter(|(_, id)| !known.contains(id)).count();
        self.broke("entries of a person without a message", lost);
        let person_log: HashSet<Vec<u8>> = person_log.into_iter().map(|(key, _)| key).collect();
        let answers: Vec<(_, MessageId)> = self.rows(store, Table::Answers)?;
        self.broke("answers without a message", answers.iter().filter(|(_, id)| !known.contains(id)).count());
        for (_, message) in messages {
            let here = keys::numbered(&[message.chat.as_str()], message.seq);
            self.broke("messages without a place in their chat", usize::from(!log.contains(&here)));
            let of = |person: &PersonId| keys::numbered(&[person.as_str()], message.seq);
            match &message.author {
                Author::Person { id, .. } => {
                    self.messages += 1;
                    self.broke("messages missing from their person", usize::from(!person_log.contains(&of(id))));
                }
                Author::Forgotten => {}
                _ => self.replies += 1,
            }
            let before = message.parent.iter().chain(&message.answers);
            self.broke("messages behind one that is missing", before.filter(|id| !known.contains(id)).count());
        }
        Ok(())
    }

    fn check_memories(&mut self, store: &dyn Store, known: &HashSet<&MessageId>) -> Result<(), Error> {
        let memories: Vec<(_, MemoryRow)> = self.rows(store, Table::Memories)?;
        self.memories = memories.len();
        let mut by_message = self.key_set(store, Table::MemoryByMessage)?;
        let mut by_chat = self.key_set(store, Table::MemoryByChat)?;
        for (_, memory) in &memories {
            for source in &memory.sources {
                let key = keys::numbered(&[source.as_str()], memory.id.0);
                self.broke("memories missing from their message", usize::from(!by_message.remove(&key)));
                self.broke("memories of a message that is missing", usize::from(!known.contains(source)));
            }
            if let Some(chat) = memory.conversation() {
                let key = keys::memory_by_chat(&memory.persona, chat, memory.id);
                self.broke("memories missing from their chat", usize::from(!by_chat.remove(&key)));
            }
        }
        let mut marks = self.key_set(store, Table::Marks)?;
        for (_, memory) in memories.iter().filter(|(_, memory)| memory.salience.is_some()) {
            let missing = mark_key(memory).is_none_or(|key| !marks.remove(&key));
            self.broke("marked memories missing from their person", usize::from(missing));
        }
        self.broke("marks of memories that are missing", marks.len());
        self.check_graph(store, &memories)?;
        self.check_themes(store, &memories)?;
        self.check_kept(store, &memories)?;
        let mut writings: HashSet<Vec<u8>> = HashSet::new();
        for (key, _) in self.rows::<WritingRow>(store, Table::Writings)? {
            writings.insert(key);
        }
        for (_, memory) in memories.iter().filter(|(_, memory)| memory.kind.is_written()) {
            self.broke("writings without what belongs to them", usize::from(!writings.remove(&writing_key(memory))));
        }
        self.broke("rows about writings that are missing", writings.len());
        let ids: HashSet<MemoryId> = memories.iter().map(|(_, memory)| memory.id).collect();
        let notes: Vec<(_, MemoryId)> = self.rows(store, Table::Notes)?;
        let ratings: Vec<(Vec<u8>, RatingRow)> = self.rows(store, Table::Ratings)?;
        let stray = ratings.iter().filter(|(_, row)| !ids.contains(&row.memory)).count();
        self.broke("ratings of memories that are missing", stray);
        self.broke("working notes that are missing", notes.iter().filter(|(_, id)| !ids.contains(id)).count());
        let lost = |keys: &HashSet<Vec<u8>>| {
            keys.iter().filter(|key| !keys::number("memories", key).is_ok_and(|id| ids.contains(&MemoryId(id)))).count()
        };
        self.broke("links to memories that are missing", lost(&by_message) + lost(&by_chat));
        Ok(())
    }

    /// Compares the rows of the themes with the memories that may belong to one.
    fn check_themes(&mut self, store: &dyn Store, memories: &[(Vec<u8>, MemoryRow)]) -> Result<(), Error> {
        let mut rows = self.key_set(store, Table::Themes)?;
        let is_whole = themes::is_whole(store)?;
        for (_, memory) in memories.iter().filter(|(_, memory)| themes::is_eligible(memory)) {
            let missing = !rows.remove(&themes::key(memory));
            self.broke("memories missing from the themes", usize::from(is_whole && missing));
        }
        self.broke("themes of memories that are missing", rows.len());
        Ok(())
    }

    /// Compares the index of kept facts with the facts.
    fn check_kept(&mut self, store: &dyn Store, memories: &[(Vec<u8>, MemoryRow)]) -> Result<(), Error> {
        let mut rows = self.key_set(store, Table::Kept)?;
        let keys = memories.iter().flat_map(|(_, memory)| kept::keys_of(memory));
        let missing = keys.filter(|key| !rows.remove(key)).count();
        self.broke("kept facts missing from their person", missing);
        self.broke("kept facts of memories that are missing", rows.len());
        Ok(())
    }

    /// Compares the rows of the graph with those that the memories make.
    fn check_graph(&mut self, store: &dyn Store, memories: &[(Vec<u8>, MemoryRow)]) -> Result<(), Error> {
        let mut rows = self.key_set(store, Table::Graph)?;
        let is_whole = graph::is_whole(store)?;
        for (_, memory) in memories {
            let missing = graph::rows_of(memory).into_iter().filter(|(key, _)| !rows.remove(key)).count();
            self.broke("names missing from the graph", if is_whole { missing } else { 0 });
        }
        self.broke("names in the graph of memories that are missing", rows.len());
        Ok(())
    }
}
