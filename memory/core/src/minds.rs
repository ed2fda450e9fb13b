//! Minds and bonds of personas. Both are numbers that the host makes and reads; they contain no words of a
//! conversation.

use std::sync::PoisonError;

use azera_types::{Author, ChatId, PersonId, PersonaId, RealmId, Scope};
use serde::{Deserialize, Serialize};

use crate::domains::Minds;
use crate::forget_log::Forgotten;
use crate::rows::MessageRow;
use crate::{Batch, Durability, Error, Table, codec, keys, ratings};

/// The mind of a persona in one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MindRow {
    /// The persona.
    pub persona: PersonaId,
    /// The scope: a realm, or a chat or DM outside of any realm.
    pub scope: Scope,
    /// Number of the message that changed it last.
    pub seq: u64,
    /// The mind, in the host's format.
    pub mind: serde_json::Value,
}

/// The bond of a persona towards a person in one place. What somebody says in private changes no bond elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BondRow {
    /// The persona.
    pub persona: PersonaId,
    /// The person.
    pub person: PersonId,
    /// The scope.
    pub scope: Scope,
    /// Number of the message that changed it last.
    pub seq: u64,
    /// The bond, in the host's format.
    pub bond: serde_json::Value,
}

impl Minds<'_> {
    /// Returns every stored mind, for the host's start.
    pub fn list(self) -> Result<Vec<MindRow>, Error> {
        codec::rows(self.0.store.as_ref(), Table::Minds, b"")
    }

    /// Returns the bond of a persona towards a person in a place.
    pub fn bond(self, persona: &PersonaId, person: &PersonId, scope: &Scope) -> Result<Option<BondRow>, Error> {
        codec::get(self.0.store.as_ref(), Table::Bonds, &bond_key(persona, person, scope))
    }

    /// Stores mind and bond after the reply to `message`, unless that message is forgotten by now. A crash right
    /// afterwards may lose them; the turn itself is stored already.
    pub fn put_state(self, message: &MessageRow, mind: Option<MindRow>, bond: Option<BondRow>) -> Result<(), Error> {
        let _writing = self.0.writing(&message.chat)?;
        let now = self.0.messages().raw_message(&message.id)?;
        if now.is_none_or(|message| message.author == Author::Forgotten) {
            return Ok(());
        }
        self.0.store.ready()?;
        let mut batch = Batch::new();
        if let Some(row) = mind {
            let key = mind_key(&row.persona, &row.scope);
            codec::put(&mut batch, Table::Minds, key, &row)?;
        }
        if let Some(row) = bond {
            codec::put(&mut batch, Table::Bonds, bond_key(&row.persona, &row.person, &row.scope), &row)?;
        }
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Stores a mind that changed with time, if the persona has one in that scope. A crash right afterwards may lose
    /// it.
    pub fn put_mind(self, persona: &PersonaId, scope: &Scope, mind: serde_json::Value) -> Result<(), Error> {
        self.0.store.ready()?;
        let _changing = self.0.states.lock().unwrap_or_else(PoisonError::into_inner);
        let key = mind_key(persona, scope);
        let Some(row) = codec::get::<MindRow>(self.0.store.as_ref(), Table::Minds, &key)? else { return Ok(()) };
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Minds, key, &MindRow { mind, ..row })?;
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Returns all bonds towards a person.
    pub(crate) fn bonds_of(self, person: &PersonId) -> Result<Vec<BondRow>, Error> {
        codec::rows(self.0.store.as_ref(), Table::Bonds, &keys::prefix(&[person.as_str()]))
    }

    /// Removes the minds and bonds that belong to forgotten items.
    pub(crate) fn forget_states(self, gone: &ForgottenScope<'_>) -> Result<(), Error> {
        let _changing = self.0.states.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Batch::new();
        codec::walk(self.0.store.as_ref(), Table::Minds, b"", |key, value| {
            if gone.has(&codec::decode::<MindRow>(Table::Minds, value)?.scope, None) {
                batch.remove(Table::Minds, key.to_vec());
            }
            Ok(true)
        })?;
        codec::walk(self.0.store.as_ref(), Table::Bonds, b"", |key, value| {
            let row: BondRow = codec::decode(Table::Bonds, value)?;
            if gone.has(&row.scope, Some(&row.person)) {
                batch.remove(Table::Bonds, key.to_vec());
            }
            Ok(true)
        })?;
        ratings::forget(self.0.store.as_ref(), &mut batch, gone)?;
        self.0.places().forget_settings(&mut batch, gone)?;
        self.0.forgetting().commit_forgetting(batch, Forgotten::default())
    }
}

/// A person, chat or realm that is forgotten.
pub(crate) enum ForgottenScope<'a> {
    Person(&'a PersonId),
    Chat(&'a ChatId),
    Realm(&'a RealmId),
}

impl ForgottenScope<'_> {
    pub(crate) fn has(&self, scope: &Scope, towards: Option<&PersonId>) -> bool {
        match (self, scope) {
            (Self::Person(person), _) if towards == Some(person) => true,
            (Self::Person(person), Scope::Dm(with)) => with == *person,
            (Self::Chat(chat), Scope::Chat(of)) => of == *chat,
            (Self::Realm(realm), Scope::Realm(of)) => of == *realm,
            _ => false,
        }
    }
}

fn mind_key(persona: &PersonaId, scope: &Scope) -> Vec<u8> {
    keys::prefix(&[persona.as_str(), &scope.to_string()])
}

fn bond_key(persona: &PersonaId, person: &PersonId, scope: &Scope) -> Vec<u8> {
    keys::prefix(&[person.as_str(), persona.as_str(), &scope.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mind_stored_by_an_earlier_version_keeps_its_key_and_its_bytes() {
        for (scope, key, stored) in [
            (
                "realm:guild",
                &b"azera\0realm:guild\0"[..],
                r#"{"persona":"azera","scope":"realm:guild","seq":7,"mind":{"arousal":0.5}}"#,
            ),
            (
                "dm:ann",
                &b"azera\0dm:ann\0"[..],
                r#"{"persona":"azera","scope":"dm:ann","seq":7,"mind":{"arousal":0.5}}"#,
            ),
            (
                "chat:!a:b",
                &b"azera\0chat:!a:b\0"[..],
                r#"{"persona":"azera","scope":"chat:!a:b","seq":7,"mind":{"arousal":0.5}}"#,
            ),
        ] {
            let row: MindRow = codec::decode(Table::Minds, stored.as_bytes()).unwrap();
            assert_eq!(row.scope, scope.parse().unwrap());
            assert_eq!(mind_key(&row.persona, &row.scope), key);
            assert_eq!(codec::encode(Table::Minds, &row).unwrap(), stored.as_bytes());
        }
    }
}
