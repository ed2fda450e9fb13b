//! Persona files and their versions. They hold no private content: everyone who may use a persona may read its file.
//!
//! Owners choose the ids of their personas freely, so an id does not say whose memories are meant. A realm's persona
//! therefore remembers under its *identity*, such as `luna@guild`; the operator's persona remembers under its id.

use azera_types::{MAX_ID_BYTES, PersonId, PersonaId, RealmId, Timestamp};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::domains::Personas;
use crate::rows::PersonaRow;
use crate::{Batch, Durability, Error, Order, Table, codec, keys};

/// Versions that are stored of one persona; the oldest are removed first.
pub const MAX_PERSONA_VERSIONS: usize = 50;

/// Most personas that one realm, or the operator, may own.
pub const MAX_PERSONAS: usize = 200;

/// Largest picture of a persona, in bytes.
pub const MAX_PICTURE_BYTES: usize = 1 << 20;

/// A persona file to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPersona {
    /// Its id.
    pub id: PersonaId,
    /// The realm that owns it; `None` for the operator's personas, which are visible everywhere.
    pub owner: Option<RealmId>,
    /// The normalized file; `None` removes the persona.
    pub markdown: Option<String>,
    /// Contents of a character card that the persona file cannot hold.
    pub card: Option<serde_json::Value>,
    /// The person who added it, if any.
    pub added_by: Option<PersonId>,
}

/// Separates the id of a realm's persona from the realm. Ids of files cannot contain it.
const AT: char = '@';

/// Bytes of the digest that replaces the end of an identity that is too long.
const DIGEST_BYTES: usize = 16;

/// Returns the identity of a persona of `owner`. Chats choose a persona by it, and it remembers under it.
pub fn persona_identity(owner: Option<&RealmId>, id: &PersonaId) -> PersonaId {
    let Some(realm) = owner else { return id.clone() };
    let whole = format!("{id}{AT}{realm}");
    if whole.len() <= MAX_ID_BYTES {
        return PersonaId::new(whole).unwrap_or_else(|_| id.clone());
    }
    let digest = HEXLOWER.encode(&Sha256::digest(&whole)[..DIGEST_BYTES]);
    let room = MAX_ID_BYTES - digest.len() - 1;
    let beginning = whole.get(..whole.floor_char_boundary(room)).unwrap_or_default();
    // Both parts come from valid ids, and the length is within the limit.
    PersonaId::new(format!("{beginning}~{digest}")).unwrap_or_else(|_| id.clone())
}

/// Returns the id of the file of an identity, which is the name people use.
pub fn persona_file(identity: &PersonaId) -> &str {
    identity.as_str().split_once(AT).map_or(identity.as_str(), |(id, _)| id)
}

impl PersonaRow {
    /// Returns the identity of this persona.
    pub fn identity(&self) -> PersonaId {
        persona_identity(self.owner.as_ref(), &self.id)
    }
}

impl Personas<'_> {
    /// Returns the persona of an identity in a place whose members all belong to `realm`. It is one of that realm's own
    /// personas, or the operator's.
    pub fn of(self, realm: Option<&RealmId>, identity: &PersonaId) -> Result<Option<PersonaRow>, Error> {
        let owned = identity.as_str().contains(AT);
        let Ok(id) = PersonaId::new(persona_file(identity)) else { return Ok(None) };
        let row = match (owned, realm) {
            (false, _) => self.get(None, &id)?,
            (true, Some(realm)) => self.get(Some(realm), &id)?,
            (true, None) => None,
        };
        Ok(row.filter(|row| row.identity() == *identity))
    }

    /// Adds a version and returns its row. If the file is unchanged, returns the current row.
    pub fn put(self, new: NewPersona, now: Timestamp) -> Result<PersonaRow, Error> {
        self.0.store.ready()?;
        let versions = self.versions(new.owner.as_ref(), &new.id)?;
        let last = versions.last();
        let markdown = new.markdown.clone().unwrap_or_default();
        if let Some(same) =
            last.filter(|row| row.markdown == markdown && row.card == new.card && row.removed == new.markdown.is_none())
        {
            return Ok(same.clone());
        }
        if last.is_none() && self.list(new.owner.as_ref())?.len() >= MAX_PERSONAS {
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
        if row.removed {
            batch.remove(Table::Settings, picture_key(&row.identity()));
        }
        for old in versions.iter().rev().skip(MAX_PERSONA_VERSIONS - 1) {
            batch.remove(Table::Personas, key(old.version));
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(row)
    }

    /// Returns the newest version of every persona of an owner, without removed ones.
    pub fn list(self, owner: Option<&RealmId>) -> Result<Vec<PersonaRow>, Error> {
        let prefix = keys::prefix(&[owner.map_or("", |realm| realm.as_str())]);
        let mut newest: Vec<PersonaRow> = Vec::new();
        for row in codec::rows::<PersonaRow>(self.0.store.as_ref(), Table::Personas, &prefix)? {
            match newest.last_mut() {
                Some(last) if last.id == row.id => *last = row,
                _ => newest.push(row),
            }
        }
        newest.retain(|row| !row.removed);
        Ok(newest)
    }

    /// Returns the newest version of a persona, unless it was removed.
    pub fn get(self, owner: Option<&RealmId>, id: &PersonaId) -> Result<Option<PersonaRow>, Error> {
        let prefix = keys::persona(owner, id);
        let last = self.0.store.scan(Table::Personas, &prefix, None, Order::Descending, 1)?;
        let row: Option<PersonaRow> =
            last.first().map(|(_, value)| codec::decode(Table::Personas, value)).transpose()?;
        Ok(row.filter(|row| !row.removed))
    }

    /// Returns the picture of a persona in base64, if it has one.
    pub fn picture(self, identity: &PersonaId) -> Result<Option<String>, Error> {
        codec::get(self.0.store.as_ref(), Table::Settings, &picture_key(identity))
    }

    /// Stores a picture in base64 and replaces the one before. All versions of a persona share it; it is removed with
    /// the persona.
    pub fn set_picture(self, identity: &PersonaId, picture: &str) -> Result<(), Error> {
        if picture.len() > MAX_PICTURE_BYTES.div_ceil(3) * 4 {
            return Err(Error::Invalid(format!("a picture of a persona has at most {MAX_PICTURE_BYTES} bytes")));
        }
        self.0.store.ready()?;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Settings, picture_key(identity), &picture)?;
        self.0.store.commit(batch, Durability::Flushed)
    }

    /// Returns every stored version of a persona, oldest first, with removals.
    pub fn versions(self, owner: Option<&RealmId>, id: &PersonaId) -> Result<Vec<PersonaRow>, Error> {
        codec::rows(self.0.store.as_ref(), Table::Personas, &keys::persona(owner, id))
    }
}

fn picture_key(identity: &PersonaId) -> Vec<u8> {
    keys::prefix(&["picture", identity.as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn personas_of_different_owners_have_different_identities() {
        let luna = PersonaId::new("luna").unwrap();
        let realm = |id: &str| RealmId::new(id).unwrap();
        let of = |id: &str| persona_identity(Some(&realm(id)), &luna);
        assert_eq!(persona_identity(None, &luna), luna);
        assert_eq!(of("guild").as_str(), "luna@guild");
        assert_eq!(of("a@b").as_str(), "luna@a@b");
        let long = |end: &str| of(&format!("{}{end}", "é".repeat(126)));
        assert!(long("a") != long("b") && long("a").as_str().len() <= MAX_ID_BYTES);
        for identity in [luna.clone(), of("guild"), of("a@b"), long("a")] {
            assert_eq!(persona_file(&identity), "luna");
        }
    }
}
