//! Links between accounts of one human, on one platform or several. Only that human makes links; they are never
//! guessed. A DM with one account may show everything from the DMs with the linked accounts, because the same human
//! reads all of them.
//!
//! Each link has two rows, one for each account, whose keys name both. Forgetting a person thus removes every row that
//! names them, here and in backups, and leaves the links of others alone.

use std::sync::PoisonError;

use azera_types::{PersonId, PlatformId};
use serde::{Deserialize, Serialize};

use crate::domains::Links;
use crate::forget_log::Forgotten;
use crate::{Batch, Durability, Error, Table, codec, keys};

/// Most accounts that one human may link.
pub const MAX_LINKED: usize = 8;

/// First part of the keys of links.
const LINKED: &str = "linked";

/// An account of a person on a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The platform.
    pub platform: PlatformId,
    /// The person's id there.
    pub person: PersonId,
    /// The display name at the time of linking.
    pub name: String,
}

/// The result of linking two accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkOutcome {
    /// They are linked now, together with all accounts that either was linked with.
    Now,
    /// They were linked already, or are the same account.
    Already,
    /// The group would have more than [`MAX_LINKED`] accounts.
    TooMany,
}

/// Data of the account in the second part of the key, shown to the accounts linked with it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LinkRow {
    platform: PlatformId,
    name: String,
    /// Its number in the order of numbers given out. A link removed after this number does not return with a backup.
    pub(crate) seq: u64,
}

fn link_key(of: &PersonId, other: &PersonId) -> Vec<u8> {
    keys::prefix(&[LINKED, of.as_str(), other.as_str()])
}

/// Returns the two accounts of a link, if the key of a setting is one.
pub(crate) fn between(key: &[u8]) -> Option<[PersonId; 2]> {
    let mut parts = keys::parts(key);
    if parts.next() != Some(LINKED.as_bytes()) {
        return None;
    }
    let mut person = || PersonId::new(std::str::from_utf8(parts.next()?).ok()?).ok();
    Some([person()?, person()?])
}

impl Links<'_> {
    /// Returns the other accounts of a person's human. A link with only one of its two rows does not count.
    pub fn of(self, person: &PersonId) -> Result<Vec<Account>, Error> {
        let mut found = Vec::new();
        codec::walk(
            self.0.store.as_ref(),
            Table::Settings,
            &keys::prefix(&[LINKED, person.as_str()]),
            |key, value| {
                let Some([_, other]) = between(key) else { return Ok(true) };
                if self.0.store.get(Table::Settings, &link_key(&other, person))?.is_some() {
                    let LinkRow { platform, name, .. } = codec::decode(Table::Settings, value)?;
                    found.push(Account { platform, person: other, name });
                }
                Ok(true)
            },
        )?;
        Ok(found)
    }

    /// Links two accounts, together with all accounts that either is linked with.
    pub fn link(self, one: &Account, other: &Account) -> Result<LinkOutcome, Error> {
        let _changing = self.0.states.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.store.ready()?;
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
        let (seq, mut batch) = (self.0.next_number()?, Batch::new());
        for of in &group {
            for Account { platform, person, name } in group.iter().filter(|other| other.person != of.person) {
                let row = LinkRow { platform: platform.clone(), name: name.clone(), seq };
                codec::put(&mut batch, Table::Settings, link_key(&of.person, person), &row)?;
            }
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(LinkOutcome::Now)
    }

    /// Returns an account and those linked with it.
    fn group(self, account: &Account) -> Result<Vec<Account>, Error> {
        let mut group = vec![account.clone()];
        group.extend(self.of(&account.person)?);
        Ok(group)
    }

    /// Removes an account from its links, here and in backups, and returns how many links it had. The other accounts
    /// stay linked with each other.
    pub fn unlink(self, person: &PersonId) -> Result<usize, Error> {
        let others = {
            let _changing = self.0.states.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.store.ready()?;
            let (mut batch, mut others) = (Batch::new(), 0);
            codec::walk(self.0.store.as_ref(), Table::Settings, &keys::prefix(&[LINKED]), |key, _| {
                if let Some(pair) = between(key).filter(|pair| pair.contains(person)) {
                    others += usize::from(pair[0] == *person);
                    batch.remove(Table::Settings, key.to_vec());
                }
                Ok(true)
            })?;
            if batch.is_empty() {
                return Ok(0);
            }
            self.0.forgetting().ask_for_scrub()?;
            let mut gone = Forgotten::default();
            gone.unlinked(person.clone(), self.0.next_number()?);
            self.0.forgetting().commit_forgetting(batch, gone)?;
            others
        };
        // A scrub that ran meanwhile may have copied rows before they were removed. So another one is requested.
        self.0.forgetting().ask_for_scrub()?;
        Ok(others)
    }
}
