//! What a list of chats needs of their messages: when the newest was said, and in which chats somebody said something.
//! Texts are read only where nothing is indexed.

use std::collections::BTreeSet;

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonaId, Scope, Text, Timestamp};
use serde::Deserialize;

use crate::domains::{Messages, Recall};
use crate::indexing::queued_id;
use crate::passages::memory_and_passage;
use crate::rows::SourceScope;
use crate::words::fold;
use crate::writings::posted;
use crate::{Error, MAX_HISTORY, MAX_SEARCH_LIMIT, Order, ReadScope, Table, TextIndexKind, codec, keys};

/// Entries of the index queue that one search reads, newest first.
const MAX_QUEUED: usize = 256;

/// A message without its text.
#[derive(Deserialize)]
struct Outline {
    chat: ChatId,
    parent: Option<MessageId>,
    author: Author,
    at: Timestamp,
    persona: PersonaId,
    scope: Scope,
    #[serde(default, rename = "needs")]
    source_scopes: Vec<SourceScope>,
}

impl Outline {
    fn may_be_read(&self, read_scope: &ReadScope) -> bool {
        self.author != Author::Forgotten && read_scope.allows(&self.persona, &self.scope, &self.source_scopes, self.at)
    }
}

/// A picture without its settings.
#[derive(Deserialize)]
struct Asked {
    message: MessageId,
    prompt: Text,
    drawn_at: Option<Timestamp>,
}

/// Whose a memory is, and where it was said.
#[derive(Deserialize)]
struct Origin {
    sources: Vec<MessageId>,
    chat: Option<ChatId>,
    at: Timestamp,
    persona: PersonaId,
    scope: Scope,
    #[serde(default, rename = "needs")]
    source_scopes: Vec<SourceScope>,
}

/// The words of a query.
struct Words(String);

impl Words {
    fn new(query: &str) -> Self {
        Self(fold(query))
    }

    /// Returns true if a text contains all of them, in any spelling.
    fn are_in(&self, text: &str) -> bool {
        let text = fold(text);
        let mut words = self.0.split_whitespace().peekable();
        words.peek().is_some() && words.all(|word| text.contains(word))
    }
}

impl Messages<'_> {
    /// Returns when the newest message up to `tip` that `read_scope` allows was said.
    pub fn newest_at(self, read_scope: &ReadScope, tip: Option<&MessageId>) -> Result<Option<Timestamp>, Error> {
        let mut next = tip.cloned();
        for _ in 0..MAX_HISTORY {
            let Some(id) = next else { return Ok(None) };
            let Some(message) = self.outline(&id)? else { return Ok(None) };
            if message.may_be_read(read_scope) {
                return Ok(Some(message.at));
            }
            next = message.parent;
        }
        Ok(None)
    }

    fn outline(self, id: &MessageId) -> Result<Option<Outline>, Error> {
        codec::get(self.0.store.as_ref(), Table::Messages, &keys::message(id))
    }
}

impl Recall<'_> {
    /// Returns the chats in which a message that `read_scope` allows contains every word of `query`. A word may be the
    /// beginning of a longer one. Looks at the newest [`MAX_SEARCH_LIMIT`] such messages, as many posted writings, and all
    /// pictures.
    pub fn chats_saying(self, read_scope: &ReadScope, query: &str, now: Timestamp) -> Result<BTreeSet<ChatId>, Error> {
        let mut chats = BTreeSet::new();
        for memory in self.memories_saying(read_scope, TextIndexKind::Chats, query, now)? {
            chats.extend(memory.chat);
        }
        for memory in self.memories_saying(read_scope, TextIndexKind::Memories, query, now)? {
            // A writing that was posted is a message, too: its first source.
            if let Some(post) = memory.sources.first().filter(|source| posted(source).is_some()) {
                chats.extend(self.chat_with(read_scope, post)?);
            }
        }
        let words = Words::new(query);
        chats.extend(self.unindexed_chats_saying(read_scope, &words)?);
        chats.extend(self.chats_with_pictures_of(read_scope, &words)?);
        Ok(chats)
    }

    fn memories_saying(
        self,
        read_scope: &ReadScope,
        text_index: TextIndexKind,
        query: &str,
        now: Timestamp,
    ) -> Result<Vec<Origin>, Error> {
        let found = self.0.text.containing(read_scope, text_index, query, now, MAX_SEARCH_LIMIT)?;
        let ids: BTreeSet<MemoryId> = found.into_iter().map(|entry| memory_and_passage(entry).0).collect();
        let mut memories = Vec::with_capacity(ids.len());
        for id in ids {
            let origin = codec::get::<Origin>(self.0.store.as_ref(), Table::Memories, &keys::memory(id))?;
            memories.extend(
                origin.filter(|memory| {
                    read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at)
                }),
            );
        }
        Ok(memories)
    }

    /// Returns the chat of a message that may be read.
    fn chat_with(self, read_scope: &ReadScope, message: &MessageId) -> Result<Option<ChatId>, Error> {
        let message = self.0.messages().outline(message)?;
        Ok(message.filter(|message| message.may_be_read(read_scope)).map(|message| message.chat))
    }

    /// Returns the chats with drawn pictures whose prompts contain the words. The message of a picture is no memory, so no
    /// index has it.
    fn chats_with_pictures_of(self, read_scope: &ReadScope, words: &Words) -> Result<BTreeSet<ChatId>, Error> {
        let mut chats = BTreeSet::new();
        codec::walk(self.0.store.as_ref(), Table::Pictures, b"", |_, value| {
            let picture: Asked = codec::decode(Table::Pictures, value)?;
            if picture.drawn_at.is_some() && words.are_in(&picture.prompt) {
                chats.extend(self.chat_with(read_scope, &picture.message)?);
            }
            Ok(true)
        })?;
        Ok(chats)
    }

    /// Returns the chats of the newest messages that wait to be indexed and contain the words. People expect to find what
    /// they just said.
    fn unindexed_chats_saying(self, read_scope: &ReadScope, words: &Words) -> Result<BTreeSet<ChatId>, Error> {
        let queue = self.0.store.scan(Table::IndexQueue, b"", None, Order::Descending, MAX_QUEUED)?;
        let ids: BTreeSet<MemoryId> = queue.iter().map(|(ticket, _)| queued_id(ticket)).collect::<Result<_, _>>()?;
        let mut chats = BTreeSet::new();
        for id in ids {
            let memory = self.0.memories().get(read_scope, id)?.filter(|memory| memory.kind.is_said());
            chats.extend(memory.filter(|memory| words.are_in(&memory.text)).and_then(|memory| memory.chat));
        }
        Ok(chats)
    }
}
