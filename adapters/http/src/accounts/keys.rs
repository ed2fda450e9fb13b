//! API keys: `azk_ID_SECRET`. The whole key is shown once.

use azera_types::{Span, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::account::{Account, Key};
use super::{Accounts, Caller, MAX_NAME_CHARS, Scope};
use crate::problem::Problem;
use crate::secrets::{digest, id, same, token};

/// The beginning of every key.
const PREFIX: &str = "azk_";

/// Most keys of one account.
const MAX_KEYS: usize = 50;

/// Seconds within which the time of the last use is not stored again.
const USED_S: i64 = 60;

/// A key without its secret.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeyInfo {
    /// Its id.
    pub(crate) id: String,
    /// The name that its owner gave it.
    pub(crate) name: String,
    /// What it may do.
    pub(crate) scopes: Vec<Scope>,
    /// When it was made (RFC 3339).
    pub(crate) created_at: String,
    /// When it was last used, to the minute.
    pub(crate) used_at: Option<String>,
}

/// A new key with its secret.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NewKey {
    /// The whole key. It is shown this once.
    pub(crate) key: String,
    #[serde(flatten)]
    pub(crate) info: KeyInfo,
}

impl Key {
    fn info(&self) -> KeyInfo {
        KeyInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            created_at: self.created_at.to_string(),
            used_at: self.used_at.map(|at| at.to_string()),
        }
    }
}

impl Accounts {
    /// Makes a key that may do some of what its account may do.
    pub(crate) async fn add_key(&self, caller: &Caller, name: &str, scopes: Vec<Scope>) -> Result<NewKey, Problem> {
        let name = name.trim().to_owned();
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            return Err(Problem::invalid(format!("A key's name has 1 to {MAX_NAME_CHARS} characters.")));
        }
        if scopes.is_empty() {
            return Err(Problem::invalid("A key needs at least one scope."));
        }
        let (id, secret, now) = (id()?.simple().to_string(), token()?, self.clock.now());
        let key = Key { id, name, secret: digest(&secret), scopes, created_at: now, used_at: None };
        let (whole, info) = (format!("{PREFIX}{}_{secret}", key.id), key.info());
        self.change(&caller.account, |account| {
            let may = account.role.scopes();
            if let Some(scope) = key.scopes.iter().find(|scope| !may.contains(scope)) {
                let detail = format!("This account may not do what the scope {} allows.", scope.as_str());
                return Err(Problem::forbidden("scope", detail));
            }
            if account.keys.len() >= MAX_KEYS {
                return Err(Problem::invalid(format!("An account has at most {MAX_KEYS} keys. Revoke one first.")));
            }
            account.keys.push(key);
            Ok(())
        })
        .await?;
        Ok(NewKey { key: whole, info })
    }

    /// Returns the keys of an account, newest first.
    pub(crate) fn keys(&self, caller: &Caller) -> Vec<KeyInfo> {
        let infos = |account: &Account| account.keys.iter().rev().map(Key::info).collect();
        self.with(&caller.account, infos).unwrap_or_default()
    }

    /// Revokes a key of an account.
    pub(crate) async fn revoke_key(&self, caller: &Caller, id: &str) -> Result<(), Problem> {
        self.change(&caller.account, |account| {
            let before = account.keys.len();
            account.keys.retain(|key| key.id != id);
            if account.keys.len() == before { Err(Problem::not_found("key")) } else { Ok(()) }
        })
        .await
    }

    /// Returns whom a key stands for.
    pub(crate) fn by_key(&self, key: &str) -> Option<Caller> {
        let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
        let wanted = digest(secret);
        self.find(|account| {
            let key = account.keys.iter().find(|key| key.id == id)?;
            same(&key.secret, &wanted).then(|| account.caller(Some(key.id.clone()), None, key.scopes.clone()))
        })
    }

    /// Stores that a key was used, at most once a minute.
    pub(crate) async fn note_key(&self, account: &str, id: &str) -> Result<(), Problem> {
        let now = self.clock.now();
        let is_old = |at: Timestamp| now >= at.checked_add(Span::new().seconds(USED_S)).unwrap_or(Timestamp::MAX);
        let stale = |key: &&Key| key.id == id && key.used_at.is_none_or(is_old);
        if !self.with(account, |account| account.keys.iter().any(|key| stale(&key))).unwrap_or(false) {
            return Ok(());
        }
        self.change(account, |account| {
            for key in account.keys.iter_mut().filter(|key| key.id == id) {
                key.used_at = Some(now);
            }
            Ok(())
        })
        .await
    }
}
