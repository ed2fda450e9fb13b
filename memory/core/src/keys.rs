//! Keys of the record's tables. Ids hold no control characters, so NUL separates; numbers are big-endian, so keys sort
//! as numbers do.

use azera_types::{ChatId, MemoryId, MessageId, PersonaId, RealmId};

use crate::Error;

/// Parts joined by NUL, with a NUL behind the last: a prefix that no other id can share.
pub(crate) fn prefix(parts: &[&str]) -> Vec<u8> {
    let mut key = Vec::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for part in parts {
        key.extend_from_slice(part.as_bytes());
        key.push(0);
    }
    key
}

/// The parts of such a prefix.
pub(crate) fn parts(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    key.split(|byte| *byte == 0)
}

/// A prefix and a number.
pub(crate) fn numbered(parts: &[&str], number: u64) -> Vec<u8> {
    let mut key = prefix(parts);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The number a key ends with.
pub(crate) fn number(table: &'static str, key: &[u8]) -> Result<u64, Error> {
    let tail = key.last_chunk::<8>().ok_or_else(|| Error::Damaged { table, why: "a key is too short".into() })?;
    Ok(u64::from_be_bytes(*tail))
}

/// Key of a message.
pub(crate) fn message(id: &MessageId) -> Vec<u8> {
    id.as_str().as_bytes().to_vec()
}

/// Key of a chat.
pub(crate) fn chat(id: &ChatId) -> Vec<u8> {
    id.as_str().as_bytes().to_vec()
}

/// Key of a memory.
pub(crate) fn memory(id: MemoryId) -> Vec<u8> {
    id.0.to_be_bytes().to_vec()
}

/// Key of a branch.
pub(crate) fn branch(chat: &ChatId, name: &str) -> Vec<u8> {
    let mut key = prefix(&[chat.as_str()]);
    key.extend_from_slice(name.as_bytes());
    key
}

/// Key of "`reply` was built on `source`".
pub(crate) fn derived(source: &MessageId, reply: &MessageId) -> Vec<u8> {
    let mut key = prefix(&[source.as_str()]);
    key.extend_from_slice(reply.as_str().as_bytes());
    key
}

/// Prefix of the replies built on a fact, which has no message behind it. No message's id is empty, so none is taken
/// for it.
pub(crate) fn built_on_fact(fact: MemoryId) -> Vec<u8> {
    prefix(&["", &fact.to_string()])
}

/// Key of "`reply` was built on `fact`".
pub(crate) fn derived_from_fact(fact: MemoryId, reply: &MessageId) -> Vec<u8> {
    let mut key = built_on_fact(fact);
    key.extend_from_slice(reply.as_str().as_bytes());
    key
}

/// Key of a memory among those of a persona in a chat.
pub(crate) fn memory_by_chat(persona: &PersonaId, chat: &ChatId, id: MemoryId) -> Vec<u8> {
    numbered(&[persona.as_str(), chat.as_str()], id.0)
}

/// The chat in a key of [`memory_by_chat`].
pub(crate) fn chat_of_memory(persona: &PersonaId, key: &[u8]) -> Result<ChatId, Error> {
    let damaged = || Error::Damaged { table: "memory_by_chat", why: "a key holds no chat".into() };
    // Persona and NUL before it; NUL and a number behind it.
    let end = key.len().checked_sub(9).ok_or_else(damaged)?;
    let chat = key.get(persona.as_str().len() + 1..end).ok_or_else(damaged)?;
    let chat = std::str::from_utf8(chat).map_err(|_| damaged())?;
    ChatId::new(chat).map_err(|_| damaged())
}

/// Prefix of a persona's versions. The owner comes first, so that a realm's personas are one range.
pub(crate) fn persona(owner: Option<&RealmId>, id: &PersonaId) -> Vec<u8> {
    prefix(&[owner.map_or("", |realm| realm.as_str()), id.as_str()])
}
