//! Tells whether the record knows somebody or something by an id, so that a mistyped id is not taken for empty data.

use azera_types::{ChatId, PersonId, RealmId, Scope};

use crate::rows::MemoryRow;
use crate::{Error, Forget, Memory, RetentionPreference, Table, codec, keys};

impl Memory {
    /// Returns true if the record holds anything of what is to be forgotten.
    pub fn is_known(&self, what: &Forget) -> Result<bool, Error> {
        match what {
            Forget::Message(id) => Ok(self.messages().raw_message(id)?.is_some()),
            Forget::Memory(id) => Ok(self.memories().raw_memory(*id)?.is_some()),
            Forget::Span { chat, .. } | Forget::Chat(chat) => self.knows_chat(chat),
            Forget::Person(person) => self.knows_person(person),
            Forget::Import(id) => Ok(!self.imports().chats_of_import(id)?.is_empty()),
            Forget::Realm(realm, chats) => {
                let mut known = self.knows_realm(realm)?;
                for chat in chats {
                    known = known || self.knows_chat(chat)?;
                }
                Ok(known)
            }
        }
    }

    /// Returns true if the person said or imported something, or if the record holds settings or feelings about them.
    pub fn knows_person(&self, person: &PersonId) -> Result<bool, Error> {
        let settings = !self.messages().messages_of(person, 1)?.is_empty()
            || !self.minds().bonds_of(person)?.is_empty()
            || !self.places().overrides_of(person)?.is_empty()
            || !self.places().check_ins_of(person)?.is_empty()
            || !self.links().of(person)?.is_empty()
            || self.vaults().sealed(person)?.is_some()
            || !self.imports().chats_of_person(person)?.is_empty()
            || self.consent().training(person)?.is_some()
            || self.consent().retention(person)? != RetentionPreference::default();
        if settings {
            return Ok(true);
        }
        self.any_memory(|memory| memory.author.person() == Some(person) || memory.scope == Scope::Dm(person.clone()))
    }

    /// Returns true if the chat was ever seen.
    pub fn knows_chat(&self, chat: &ChatId) -> Result<bool, Error> {
        let mut logged = false;
        codec::walk(self.store.as_ref(), Table::ChatLog, &keys::prefix(&[chat.as_str()]), |_, _| {
            logged = true;
            Ok(false)
        })?;
        Ok(logged || self.chats().get(chat)?.is_some())
    }

    /// Returns true if something was said in the realm, or if it has personas of its own.
    pub fn knows_realm(&self, realm: &RealmId) -> Result<bool, Error> {
        if !self.personas().list(Some(realm))?.is_empty() {
            return Ok(true);
        }
        self.any_memory(|memory| memory.scope == Scope::Realm(realm.clone()))
    }

    fn any_memory(&self, fits: impl Fn(&MemoryRow) -> bool) -> Result<bool, Error> {
        let mut found = false;
        codec::walk(self.store.as_ref(), Table::Memories, b"", |_, value| {
            // A damaged row is a matter of the record's check.
            found = codec::decode(Table::Memories, value).is_ok_and(|memory| fits(&memory));
            Ok(!found)
        })?;
        Ok(found)
    }
}
