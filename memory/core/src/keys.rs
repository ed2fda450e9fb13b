//! Keys of the record's tables. NUL separates the parts of a key, because ids hold no control characters. Numbers are
//! big-endian, so that keys sort like numbers.

use azera_types::{ChatId, MemoryId, MessageId, PersonaId, RealmId};

use crate::Error;

/// Joins parts with NUL and ends with NUL, so that no other id can share the prefix.
pub(crate) fn prefix(parts: &[&str]) -> Vec<u8> {
    let mut key = Vec::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for part in parts {
        key.extend_from_slice(part.as_bytes());
        key.push(0);
    }
    key
}

/// Splits a key into its parts.
pub(crate) fn parts(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    key.split(|byte| *byte == 0)
}

/// Returns a prefix followed by a number.
pub(crate) fn numbered(parts: &[&str], number: u64) -> Vec<u8> {
    let mut key = prefix(parts);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// Returns the number at the end of a key.
pub(crate) fn number(table: &'static str, key: &[u8]) -> Result<u64, Error> {
    let tail = key.last_chunk::<8>().ok_or_else(|| Error::Damaged { table, why: "a key is too short".into() })?;
    Ok(u64::from_be_bytes(*tail))
}

pub(crate) fn message(id: &MessageId) -> Vec<u8> {
    id.as_str().as_bytes().to_vec()
}

pub(crate) fn chat(id: &ChatId) -> Vec<u8> {
    id.as_str().as_bytes().to_vec()
}

pub(crate) fn memory(id: MemoryId) -> Vec<u8> {
    id.0.to_be_bytes().to_vec()
}

pub(crate) fn branch(chat: &ChatId, name: &str) -> Vec<u8> {
    let mut key = prefix(&[chat.as_str()]);
    key.extend_from_slice(name.as_bytes());
    key
}

/// Returns the key of the row that says: `reply` was built on `source`.
pub(crate) fn derived(source: &MessageId, reply: &MessageId) -> Vec<u8> {
    let mut key = prefix(&[source.as_str()]);
    key.extend_from_slice(reply.as_str().as_bytes());
    key
}

/// Returns the prefix of the replies built on a fact, which has no source message. The first part is empty, so it
/// cannot equal a message's id.
pub(crate) fn built_on_fact(fact: MemoryId) -> Vec<u8> {
    prefix(&["", &fact.to_string()])
}

/// Returns the key of the row that says: `reply` was built on `fact`.
pub(crate) fn derived_from_fact(fact: MemoryId, reply: &MessageId) -> Vec<u8> {
    let mut key = built_on_fact(fact);
    key.extend_from_slice(reply.as_str().as_bytes());
    key
}

/// Returns the key of a memory in the table of memories by persona and chat.
pub(crate) fn memory_by_chat(persona: &PersonaId, chat: &ChatId, id: MemoryId) -> Vec<u8> {
    numbered(&[persona.as_str(), chat.as_str()], id.0)
}

/// Returns the chat in a key made by [`memory_by_chat`].
pub(crate) fn chat_of_memory(persona: &PersonaId, key: &[u8]) -> Result<ChatId, Error> {
    let damaged = || Error::Damaged { table: "memory_by_chat", why: "a key holds no chat".into() };
    // The persona and a NUL stand before the chat; a NUL and a number of eight bytes stand after it.
    let end = key.len().checked_sub(9).ok_or_else(damaged)?;
    let chat = key.get(persona.as_str().len() + 1..end).ok_or_else(damaged)?;
    let chat = std::str::from_utf8(chat).map_err(|_| damaged())?;
    ChatId::new(chat).map_err(|_| damaged())
}

/// Returns the prefix of a persona's versions. The owner comes first, so that the personas of a realm form one range.
pub(crate) fn persona(owner: Option<&RealmId>, id: &PersonaId) -> Vec<u8> {
    prefix(&[owner.map_or("", |realm| realm.as_str()), id.as_str()])
}
