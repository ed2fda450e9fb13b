//! Accounts that a platform keeps for people itself, in the platform's format: one value for each person. They are part of
//! backups, and a forgotten account leaves the backups, too.

use azera_types::{PersonId, PlatformId};

use crate::domains::Accounts;
use crate::forget_log::Forgotten;
use crate::{Batch, Error, Table, codec, keys};

/// A person with their account, or with the reason why it cannot be read.
pub type ListedAccount = (PersonId, Result<serde_json::Value, Error>);

/// First part of the keys of accounts.
const ACCOUNT: &str = "account";

fn account_key(platform: &PlatformId, person: &PersonId) -> Vec<u8> {
    keys::prefix(&[ACCOUNT, platform.as_str(), person.as_str()])
}

/// Returns the platform and the person of an account, if the key of a setting is one of an account.
pub(crate) fn account_of(key: &[u8]) -> Option<(PlatformId, PersonId)> {
    let mut parts = keys::parts(key);
    if parts.next() != Some(ACCOUNT.as_bytes()) {
        return None;
    }
    let platform = PlatformId::new(std::str::from_utf8(parts.next()?).ok()?).ok()?;
    Some((platform, PersonId::new(std::str::from_utf8(parts.next()?).ok()?).ok()?))
}

impl Accounts<'_> {
    /// Returns every account of a platform. An account whose row is damaged is an error of its own.
    pub fn list(self, platform: &PlatformId) -> Result<Vec<ListedAccount>, Error> {
        let mut found = Vec::new();
        let prefix = keys::prefix(&[ACCOUNT, platform.as_str()]);
        codec::walk(self.0.store.as_ref(), Table::Settings, &prefix, |key, value| {
            if let Some((_, person)) = account_of(key) {
                found.push((person, codec::decode(Table::Settings, value)));
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Stores an account, flushed.
    pub fn put(self, platform: &PlatformId, person: &PersonId, account: &serde_json::Value) -> Result<(), Error> {
        self.0.set(account_key(platform, person), account)
    }

    /// Removes an account for good, here and in backups. What its person said stays.
    pub fn forget(self, platform: &PlatformId, person: &PersonId) -> Result<(), Error> {
        self.0.forgetting().ask_for_scrub()?;
        let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
        batch.remove(Table::Settings, account_key(platform, person));
        gone.account(platform.clone(), person.clone());
        self.0.forgetting().commit_forgetting(batch, gone)?;
        // A scrub that ran meanwhile may have copied the row before it was removed. So another one is requested.
        self.0.forgetting().ask_for_scrub()
    }
}
