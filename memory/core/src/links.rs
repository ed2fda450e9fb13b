//! Accounts of one human, on several platforms or on one, as that human said: never guessed. Everything in direct messages with one
//! of them may be shown in those with the others, for the one who reads them all said so.
//!
//! Each pair has two rows, one for either side, whose keys name both: so forgetting somebody takes out every row that names
//! them, here and in backups, without touching the links of the others.

use std::sync::PoisonError;

use azera_types::{PersonId, PlatformId};
use serde::{Deserialize, Serialize};

use crate::forget_log::Forgotten;
use crate::{Batch, Durability, Error, Memory, Table, codec, keys};

/// Accounts that one human may link.
pub const MAX_LINKED: usize = 8;

/// The first part of the keys of links.
const LINKED: &str = "linked";

/// An account of somebody on a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The platform.
    pub platform: PlatformId,
    /// Who it is there.
    pub person: PersonId,
    /// The name it was seen under when it was linked.
    pub name: String,
}

/// What came of linking two accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkOutcome {
    /// They are, with all that either was linked with before.
    Now,
    /// They were before, or are the same.
    Already,
    /// Together they would be more than [`MAX_LINKED`].
    TooMany,
}

/// The account that the second part of the key names, as those linked with it are told of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LinkRow {
    platform: PlatformId,
    name: String,
    /// Its place among the numbers given out: what was taken apart after it does not come back with a backup.
    pub(crate) seq: u64,
}

fn link_key(of: &PersonId, other: &PersonId) -> Vec<u8> {
    keys::prefix(&[LINKED, of.as_str(), other.as_str()])
}

/// The two accounts of a link, if a setting of this key is one.
pub(crate) fn between(key: &[u8]) -> Option<[PersonId; 2]> {
    let mut parts = keys::parts(key);
    if parts.next() != Some(LINKED.as_bytes()) {
        return None;
    }
    let mut person = || PersonId::new(std::str::from_utf8(parts.next()?).ok()?).ok();
    Some([person()?, person()?])
}

impl Memory {
    /// The other accounts of whoever a person is. What one side alone knows of is no link.
    pub fn linked(&self, person: &PersonId) -> Result<Vec<Account>, Error> {
        let mut found = Vec::new();
        codec::walk(self.store.as_ref(), Table::Settings, &keys::prefix(&[LINKED, person.as_str()]), |key, value| {
            let Some([_, other]) = between(key) else { return Ok(true) };
            if self.store.get(Table::Settings, &link_key(&other, person))?.is_some() {
                let LinkRow { platform, name, .. } = codec::decode(Table::Settings, value)?;
                found.push(Account { platform, person: other, name });
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Links two accounts, and with them all that either is linked with: their human is one.
    pub fn link(&self, one: &Account, other: &Account) -> Result<LinkOutcome, Error> {
        let _changing = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        self.store.ready()?;
        let mut group = self.group(one)?;
        if group.iter().any(|account| account.person == other.person) {
            return Ok(LinkOutcome::Already);
        }
        for account in self.group(other)? {
            if group.iter().all(|known| known.person != account.person) {
                group.push(account);
            }
        }
        if group.len() > MAX_LINKED {
            return Ok(LinkOutcome::TooMany);
        }
        let (seq, mut batch) = (self.next_number()?, Batch::new());
        for of in &group {
            for Account { platform, person, name } in group.iter().filter(|other| other.person != of.person) {
                let row = LinkRow { platform: platform.clone(), name: name.clone(), seq };
                codec::put(&mut batch, Table::Settings, link_key(&of.person, person), &row)?;
            }
        }
        self.store.commit(batch, Durability::Flushed)?;
        Ok(LinkOutcome::Now)
    }

    /// An account and those linked with it.
    fn group(&self, account: &Account) -> Result<Vec<Account>, Error> {
        let mut group = vec![account.clone()];
        group.extend(self.linked(&account.person)?);
        Ok(group)
    }

    /// Takes an account out of its links, here and in backups; the others stay linked with each other. Gives how many they were.
    pub fn unlink(&self, person: &PersonId) -> Result<usize, Error> {
        let others = {
            let _changing = self.states.lock().unwrap_or_else(PoisonError::into_inner);
            self.store.ready()?;
            let (mut batch, mut others) = (Batch::new(), 0);
            codec::walk(self.store.as_ref(), Table::Settings, &keys::prefix(&[LINKED]), |key, _| {
                if let Some(pair) = between(key).filter(|pair| pair.contains(person)) {
                    others += usize::from(pair[0] == *person);
                    batch.remove(Table::Settings, key.to_vec());
                }
                Ok(true)
            })?;
            if batch.is_empty() {
                return Ok(0);
            }
            self.ask_for_scrub()?;
            let mut gone = Forgotten::default();
            gone.unlinked(person.clone(), self.next_number()?);
            self.commit_forgetting(batch, gone)?;
            others
        };
        // A scrub that ran meanwhile may have copied rows that went only after it.
        self.ask_for_scrub()?;
        Ok(others)
    }
}
