//! Who may use the web: accounts with their sessions, keys and invitations. `account` is what is stored for one account,
//! `sessions`, `keys` and `invitations` are what happens to it. Begin with [`Accounts`].
//!
//! The accounts are few, so all of them are in memory. A change is stored before it counts.

mod account;
mod invitations;
mod keys;
mod passes;
mod preferences;
mod sessions;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use azera_types::{Clock, PersonId, Timestamp};
use tokio::sync::Semaphore;

pub(crate) use account::{Account, MAX_NAME_CHARS, Role, Scope};
pub(crate) use keys::{KeyInfo, NewKey};
pub(crate) use passes::Pass;
pub(crate) use preferences::{Label, LabelChanges, LabelKind, NewLabel, Preferences};
pub(crate) use sessions::{OpenSession, SESSION_DAYS, checked_name};

use crate::platform::person_id;
use crate::problem::Problem;
use crate::{AccountStore, Error, StoreError};

/// Most accounts.
const MAX_ACCOUNTS: usize = 1_000;

/// Computations of a password's hash at once. Each takes 19 MB and tens of milliseconds.
const MAX_HASHING: usize = 2;

/// Most further computations that wait. At a few dozen each second, the last one waits about two seconds.
const MAX_WAITING: usize = 64;

/// Seconds after which a client may ask again for a computation that found no place.
const BUSY_S: u64 = 5;

/// Every account.
pub(crate) struct Accounts {
    store: OnceLock<Arc<dyn AccountStore>>,
    clock: Arc<dyn Clock>,
    accounts: RwLock<HashMap<String, Account>>,
    /// Held while an account is changed and stored.
    changing: tokio::sync::Mutex<()>,
    hashing: Arc<Semaphore>,
    /// Places of the computations that run or wait.
    waiting: Arc<Semaphore>,
    /// Digest of the token that makes the owner's account; `None` once there is one.
    setup: RwLock<Option<String>>,
}

/// Who a request is from.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of the account.
    pub(crate) account: String,
    /// The account's name.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// What the request may do.
    pub(crate) scopes: Vec<Scope>,
    /// The key that it carries; `None` for a session.
    pub(crate) key: Option<String>,
    /// The session that it carries.
    pub(crate) session: Option<OpenSession>,
    /// The token for scripts that it carries. Its key is the one that made it.
    pub(crate) pass: Option<Pass>,
    /// The grant of the OAuth token that it carries. Such a token is for `/mcp` alone.
    pub(crate) grant: Option<String>,
    /// Whether it comes from a command on this machine.
    pub(crate) is_local: bool,
}

impl Caller {
    /// Returns the person that this is on the platform.
    pub(crate) fn person(&self) -> Result<PersonId, Problem> {
        Ok(person_id(&self.account)?)
    }
}

impl Accounts {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            store: OnceLock::new(),
            clock,
            accounts: RwLock::default(),
            changing: tokio::sync::Mutex::default(),
            hashing: Arc::new(Semaphore::new(MAX_HASHING)),
            waiting: Arc::new(Semaphore::new(MAX_HASHING + MAX_WAITING)),
            setup: RwLock::default(),
        }
    }

    /// Sets the store. Only the first call counts.
    pub(crate) fn set_store(&self, store: Arc<dyn AccountStore>) {
        self.store.get_or_init(|| store);
    }

    fn store(&self) -> Result<&Arc<dyn AccountStore>, StoreError> {
        self.store.get().ok_or_else(|| StoreError("no store is set".to_owned()))
    }

    /// Loads every account; one that is damaged is refused, and named in the log. Returns a token that makes the owner's account, if there is none yet.
    pub(crate) async fn load(&self) -> Result<Option<String>, Error> {
        let mut accounts = HashMap::new();
        for (person, value) in self.store()?.load().await? {
            let read = value.and_then(|value| {
                // Where it is damaged, and nothing of what it holds.
                let damaged = |error: serde_json::Error| StoreError(format!("{:?} error", error.classify()));
                serde_json::from_value::<Account>(value).map_err(damaged)
            });
            match read {
                Ok(account) => {
                    accounts.insert(account.id.clone(), account);
                }
                // The others go on. A backup may hold this one whole.
                Err(error) => tracing::error!(%person, %error, "an account of the web is damaged; it cannot log in"),
            }
        }
        let has_owner = accounts.values().any(|account| account.role == Role::Owner);
        *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = accounts;
        if has_owner {
            return Ok(None);
        }
        self.renew_setup().map(Some)
    }

    /// Makes a token for the owner's account. Earlier ones no longer work.
    fn renew_setup(&self) -> Result<String, Error> {
        let token = crate::secrets::token()?;
        *self.setup.write().unwrap_or_else(PoisonError::into_inner) = Some(crate::secrets::digest(&token));
        Ok(token)
    }

    /// Returns true if nobody owns this Azera yet.
    pub(crate) fn awaits_owner(&self) -> bool {
        self.setup.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns something of one account.
    pub(crate) fn with<T>(&self, id: &str, read: impl FnOnce(&Account) -> T) -> Option<T> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).get(id).map(read)
    }

    fn find<T>(&self, find: impl FnMut(&Account) -> Option<T>) -> Option<T> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).values().find_map(find)
    }

    /// Returns true if a caller's session or key still stands for the account, and the time of its token is not over. A
    /// program with a grant is never current. Call
    /// [`Shared::is_current`](crate::web::Shared::is_current), which asks for the key that signed the token, too.
    pub(crate) fn is_current(&self, caller: &Caller) -> bool {
        let now = self.clock.now();
        let stands = |account: &Account| match (&caller.pass, &caller.session, &caller.key, &caller.grant) {
            (Some(pass), _, key, _) => account.has_pass(pass, key.as_deref(), now),
            (None, Some(open), ..) => account.has_session(open, now),
            (None, None, Some(key), _) => account.has_key(key),
            // A grant is asked for anew with each call of `/mcp`, and its access token ends by itself.
            (None, None, None, Some(_)) => false,
            (None, None, None, None) => caller.is_local,
        };
        self.with(&caller.account, stands).unwrap_or(false)
    }

    /// Returns the role of an account by its person.
    pub(crate) fn role_of(&self, account: &str) -> Option<Role> {
        self.with(account, |account| account.role)
    }

    /// Returns name, role and time of creation of every account, oldest first.
    pub(crate) fn list(&self) -> Vec<(String, String, Role, azera_types::Timestamp)> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<_> = accounts
            .values()
            .map(|account| (account.id.clone(), account.name.clone(), account.role, account.created_at))
            .collect();
        list.sort_by_key(|(.., created_at)| *created_at);
        list
    }

    /// Returns the owner.
    pub(crate) fn owner(&self) -> Option<Caller> {
        self.find(|account| (account.role == Role::Owner).then(|| account.caller(None, None, Scope::ALL.to_vec())))
    }

    /// Returns a guest by the id of the account.
    pub(crate) fn guest(&self, id: &str) -> Option<Caller> {
        self.with(id, |account| (account.role == Role::Guest).then(|| account.caller(None, None, Role::Guest.scopes())))
            .flatten()
    }

    /// Changes an account and stores it. Nothing changes if `change` fails or the store does.
    pub(crate) async fn change<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Account) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        self.change_or(id, change).await
    }

    /// Like [`Self::change`], with another kind of error.
    pub(crate) async fn change_or<T, E: From<Problem>>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Account) -> Result<T, E>,
    ) -> Result<T, E> {
        let _changing = self.changing.lock().await;
        let mut account = self.with(id, Account::clone).ok_or_else(Problem::unauthorized)?;
        let done = change(&mut account)?;
        self.keep(account).await?;
        Ok(done)
    }

    /// Stores an account, then lets it count.
    async fn keep(&self, account: Account) -> Result<(), Problem> {
        let person = person_id(&account.id)?;
        let value = serde_json::to_value(&account).map_err(|error| Problem::internal(&error))?;
        let store = self.store().map_err(|error| Problem::internal(&error))?;
        store.save(&person, &value).await.map_err(|error| Problem::internal(&error))?;
        self.accounts.write().unwrap_or_else(PoisonError::into_inner).insert(account.id.clone(), account);
        Ok(())
    }

    /// Removes an account for good, with its sessions, keys and invitations. What its person said is forgotten elsewhere.
    pub(crate) async fn remove(&self, id: &str) -> Result<(), Problem> {
        let _changing = self.changing.lock().await;
        let person = person_id(id)?;
        let store = self.store().map_err(|error| Problem::internal(&error))?;
        store.forget(&person).await.map_err(|error| Problem::internal(&error))?;
        self.accounts.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        Ok(())
    }

    /// Runs a slow computation on a thread of its own, a few at a time.
    async fn hash<T: Send + 'static>(&self, compute: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        let place = self.waiting.clone().try_acquire_owned().map_err(|_| Problem::too_many(BUSY_S))?;
        let turn = self.hashing.clone().acquire_owned().await.map_err(|error| Problem::internal(&error))?;
        // A computation goes on even if nobody waits for it any more. So it holds its place itself.
        let computed = tokio::task::spawn_blocking(move || {
            let _held = (place, turn);
            compute()
        });
        computed.await.map_err(|error| Problem::internal(&error))
    }

    fn is_full(&self) -> bool {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).len() >= MAX_ACCOUNTS
    }
}
