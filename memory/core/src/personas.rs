//! Persona files and their versions. A file is nobody's private word: whoever may use the persona may read it.

use azera_types::{PersonId, PersonaId, RealmId, Timestamp};

use crate::rows::PersonaRow;
use crate::{Batch, Durability, Error, Memory, Order, Table, codec, keys};

/// Versions of one persona that are kept; the oldest go first.
pub const MAX_PERSONA_VERSIONS: usize = 50;

/// Personas one realm, or the operator, may own.
pub const MAX_PERSONAS: usize = 200;

/// A persona file to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPersona {
    /// Its id.
    pub id: PersonaId,
    /// The realm that owns it; `None` for the operator's, visible everywhere.
    pub owner: Option<RealmId>,
    /// The file, in normal form; `None` marks its removal.
    pub markdown: Option<String>,
    /// What a character card held beyond the persona.
    pub card: Option<serde_json::Value>,
    /// By whom, if by a person.
    pub added_by: Option<PersonId>,
}

impl Memory {
    /// Adds a version; gives the row, or the present one unchanged if the file is the same.
    pub fn put_persona(&self, new: NewPersona, now: Timestamp) -> Result<PersonaRow, Error> {
        let versions = self.persona_versions(new.owner.as_ref(), &new.id)?;
        let last = versions.last();
        let markdown = new.markdown.clone().unwrap_or_default();
        if let Some(same) =
            last.filter(|row| row.markdown == markdown && row.card == new.card && row.removed == new.markdown.is_none())
        {
            return Ok(same.clone());
        }
        if last.is_none() && self.personas(new.owner.as_ref())?.len() >= MAX_PERSONAS {
            return Err(Error::Invalid(format!("{MAX_PERSONAS} personas are kept at most; remove one first")));
        }
        let row = PersonaRow {
            id: new.id.clone(),
            owner: new.owner.clone(),
            version: last.map_or(1, |row| row.version + 1),
            markdown,
            card: new.card,
            added_at: now,
            added_by: new.added_by,
            removed: new.markdown.is_none(),
        };
        let prefix = keys::persona(new.owner.as_ref(), &new.id);
        let key = |version: u32| {
            let mut key = prefix.clone();
            key.extend_from_slice(&u64::from(version).to_be_bytes());
            key
        };
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Personas, key(row.version), &row)?;
        for old in versions.iter().rev().skip(MAX_PERSONA_VERSIONS - 1) {
            batch.remove(Table::Personas, key(old.version));
        }
        self.store.commit(batch, Durability::Flushed)?;
        Ok(row)
    }

    /// The newest version of every persona of an owner, removed ones left out.
    pub fn personas(&self, owner: Option<&RealmId>) -> Result<Vec<PersonaRow>, Error> {
        let prefix = keys::prefix(&[owner.map_or("", |realm| realm.as_str())]);
        let mut newest: Vec<PersonaRow> = Vec::new();
        for row in codec::rows::<PersonaRow>(self.store.as_ref(), Table::Personas, &prefix)? {
            match newest.last_mut() {
                Some(last) if last.id == row.id => *last = row,
                _ => newest.push(row),
            }
        }
        newest.retain(|row| !row.removed);
        Ok(newest)
    }

    /// The newest version of one persona, unless it was removed.
    pub fn persona(&self, owner: Option<&RealmId>, id: &PersonaId) -> Result<Option<PersonaRow>, Error> {
        let prefix = keys::persona(owner, id);
        let last = self.store.scan(Table::Personas, &prefix, None, Order::Descending, 1)?;
        let row: Option<PersonaRow> =
            last.first().map(|(_, value)| codec::decode(Table::Personas, value)).transpose()?;
        Ok(row.filter(|row| !row.removed))
    }

    /// Every kept version of one persona, oldest first, removals included.
    pub fn persona_versions(&self, owner: Option<&RealmId>, id: &PersonaId) -> Result<Vec<PersonaRow>, Error> {
        codec::rows(self.store.as_ref(), Table::Personas, &keys::persona(owner, id))
    }
}
