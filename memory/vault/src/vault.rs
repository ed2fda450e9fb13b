//! One owner's vault.

use std::collections::BTreeMap;
use std::fmt;

use azera_types::{PersonId, Timestamp};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::cipher::{self, KEY_BYTES, Key};
use crate::format::{Parts, digest};
use crate::master::{MasterId, Masters};
use crate::{EntryName, Error, SecretText};

/// Most entries of a vault.
pub const MAX_ENTRIES: usize = 200;

/// Most bytes of all sealed values of a vault.
pub const MAX_VAULT_BYTES: usize = 1 << 20;

/// Changes after which a vault gets another data key. Random nonces are safe for a thousand times as many messages.
const CHANGES_PER_KEY: u64 = 1 << 20;

const KEY_CONTEXT: &[u8] = b"azera vault data key";
const INDEX_CONTEXT: &[u8] = b"azera vault index";
const VALUE_CONTEXT: &[u8] = b"azera vault value";

/// Whose vault it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The operator: secrets of the configuration.
    Operator,
    /// A person.
    Person(PersonId),
}

impl Owner {
    fn context(&self) -> String {
        match self {
            Self::Operator => "operator".to_owned(),
            Self::Person(person) => format!("person {}", person.as_str()),
        }
    }
}

/// An entry without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryInfo {
    /// The name.
    pub name: EntryName,
    /// When the value was set.
    pub changed_at: Timestamp,
}

/// An entry as the index names it.
#[derive(Clone, Serialize, Deserialize)]
struct Indexed {
    name: EntryName,
    version: u64,
    changed_at: Timestamp,
    /// Bytes of the sealed value.
    bytes: usize,
}

#[derive(Serialize, Deserialize)]
struct Index {
    /// The version that the next change gets.
    next: u64,
    entries: Vec<Indexed>,
}

struct Entry {
    version: u64,
    changed_at: Timestamp,
    sealed: Vec<u8>,
}

/// A data key, and how it is sealed.
struct DataKey {
    key: Key,
    /// The master that sealed it, and the sealed key; `None` for a new one.
    sealed: Option<(MasterId, Vec<u8>)>,
}

/// The secrets of one owner.
pub struct Vault {
    owner: Owner,
    data_key: DataKey,
    next: u64,
    entries: BTreeMap<EntryName, Entry>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault[{} entries]", self.entries.len())
    }
}

impl Vault {
    /// Returns an empty vault.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn new(owner: Owner) -> Result<Self, Error> {
        let data_key = DataKey { key: cipher::new_key()?, sealed: None };
        Ok(Self { owner, data_key, next: 1, entries: BTreeMap::new() })
    }

    /// Opens a sealed vault and checks all of it.
    ///
    /// # Errors
    /// [`Error::WrongMaster`] without the master that sealed it; [`Error::Damaged`] if it is damaged or somebody else's.
    pub fn open(bytes: &[u8], owner: Owner, masters: &Masters) -> Result<Self, Error> {
        let parts = Parts::parse(bytes)?;
        let of = owner.context();
        let master = masters.find(parts.master).ok_or(Error::WrongMaster(parts.master))?;
        let key = cipher::open(master.key(), &[KEY_CONTEXT, of.as_bytes()], parts.data_key);
        let key = key.ok_or(Error::Damaged("its data key does not open"))?;
        let key: [u8; KEY_BYTES] =
            key.as_slice().try_into().map_err(|_| Error::Damaged("its data key has another size"))?;
        let key: Key = Zeroizing::new(key);
        let index = cipher::open(&key, &[INDEX_CONTEXT, of.as_bytes(), &digest(parts.values)], parts.index);
        let index = index.ok_or(Error::Damaged("its index does not fit its values"))?;
        let index: Index = serde_json::from_slice(&index).map_err(|_| Error::Damaged("its index cannot be read"))?;
        let (mut entries, mut rest) = (BTreeMap::new(), parts.values);
        for Indexed { name, version, changed_at, bytes } in index.entries {
            let (sealed, left) = rest.split_at_checked(bytes).ok_or(Error::Damaged("a value is missing"))?;
            rest = left;
            entries.insert(name, Entry { version, changed_at, sealed: sealed.to_vec() });
        }
        let sealed = Some((parts.master, parts.data_key.to_vec()));
        Ok(Self { owner, data_key: DataKey { key, sealed }, next: index.next, entries })
    }

    /// Returns the entries, by name.
    pub fn list(&self) -> Vec<EntryInfo> {
        let info = |(name, entry): (&EntryName, &Entry)| EntryInfo { name: name.clone(), changed_at: entry.changed_at };
        self.entries.iter().map(info).collect()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value of an entry; `None` if there is no such entry.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn get(&self, name: &EntryName) -> Result<Option<SecretText>, Error> {
        self.entries.get(name).map(|entry| self.opened(name, entry)).transpose()
    }

    /// Sets the value of an entry. Returns true if it replaced one.
    ///
    /// # Errors
    /// [`Error::Full`], and then nothing changes.
    pub fn set(&mut self, name: EntryName, value: &SecretText, now: Timestamp) -> Result<bool, Error> {
        let replaced = self.entries.get(&name).map(|entry| entry.sealed.len());
        if replaced.is_none() && self.entries.len() >= MAX_ENTRIES {
            return Err(Error::Full);
        }
        let version = self.next;
        let sealed = self.sealed(&name, version, value)?;
        let taken: usize = self.entries.values().map(|entry| entry.sealed.len()).sum();
        if taken - replaced.unwrap_or(0) + sealed.len() > MAX_VAULT_BYTES {
            return Err(Error::Full);
        }
        self.next += 1;
        self.entries.insert(name, Entry { version, changed_at: now, sealed });
        if self.next.is_multiple_of(CHANGES_PER_KEY) {
            self.renew_data_key()?;
        }
        Ok(replaced.is_some())
    }

    /// Removes an entry. Returns false if there is none.
    pub fn remove(&mut self, name: &EntryName) -> bool {
        self.entries.remove(name).is_some()
    }

    /// Seals every value with a new data key.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::Random`], and then nothing changes.
    pub fn renew_data_key(&mut self) -> Result<(), Error> {
        let mut renewed = Self::new(self.owner.clone())?;
        for (name, entry) in &self.entries {
            let sealed = renewed.sealed(name, entry.version, &self.opened(name, entry)?)?;
            renewed.entries.insert(name.clone(), Entry { sealed, ..*entry });
        }
        renewed.next = self.next;
        *self = renewed;
        Ok(())
    }

    /// Returns true if the vault is sealed with the current master.
    pub fn is_current(&self, masters: &Masters) -> bool {
        self.data_key.sealed.as_ref().is_some_and(|(master, _)| *master == masters.current_id())
    }

    /// Returns the sealed bytes. The data key is sealed with the current master.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn seal(&mut self, masters: &Masters) -> Result<Vec<u8>, Error> {
        let (of, current) = (self.owner.context(), masters.current());
        let data_key = match &self.data_key.sealed {
            Some((master, sealed)) if *master == current.id() => sealed.clone(),
            _ => cipher::seal(current.key(), &[KEY_CONTEXT, of.as_bytes()], self.data_key.key.as_slice())?,
        };
        let values: Vec<u8> = self.entries.values().flat_map(|entry| entry.sealed.iter().copied()).collect();
        let indexed = |(name, entry): (&EntryName, &Entry)| Indexed {
            name: name.clone(),
            version: entry.version,
            changed_at: entry.changed_at,
            bytes: entry.sealed.len(),
        };
        let index = Index { next: self.next, entries: self.entries.iter().map(indexed).collect() };
        let index = Zeroizing::new(serde_json::to_vec(&index).map_err(|_| Error::Full)?);
        let context: [&[u8]; 3] = [INDEX_CONTEXT, of.as_bytes(), &digest(&values)];
        let index = cipher::seal(&self.data_key.key, &context, &index)?;
        let parts = Parts { master: current.id(), data_key: &data_key, index: &index, values: &values };
        let bytes = parts.to_bytes()?;
        self.data_key.sealed = Some((current.id(), data_key));
        Ok(bytes)
    }

    fn sealed(&self, name: &EntryName, version: u64, value: &SecretText) -> Result<Vec<u8>, Error> {
        let (of, version) = (self.owner.context(), version.to_be_bytes());
        cipher::seal(&self.data_key.key, &value_context(&of, name, &version), value.expose().as_bytes())
    }

    fn opened(&self, name: &EntryName, entry: &Entry) -> Result<SecretText, Error> {
        let damaged = || Error::Damaged("a value does not belong to its name");
        let (of, version) = (self.owner.context(), entry.version.to_be_bytes());
        let value = cipher::open(&self.data_key.key, &value_context(&of, name, &version), &entry.sealed);
        let value = value.ok_or_else(damaged)?;
        SecretText::new(std::str::from_utf8(&value).map_err(|_| damaged())?)
    }
}

/// Returns what a sealed value is bound to. A value that is moved to another name, version or owner does not open.
fn value_context<'a>(of: &'a str, name: &'a EntryName, version: &'a [u8; 8]) -> [&'a [u8]; 4] {
    [VALUE_CONTEXT, of.as_bytes(), name.as_str().as_bytes(), version]
}
