use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_memory::{Error, Working};
use azera_types::Timestamp;

/// Keys remembered as changed while the server was away; with more, all it holds is cleared when it is back.
pub const MAX_OWED_KEYS: usize = 4_096;

/// What the server holds and must no longer hold.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owed {
    Keys(BTreeSet<String>),
    All,
}

struct State {
    owed: Owed,
    /// Somebody is about to give the server what it is owed.
    settling: bool,
}

/// Working memory on a server, with one on this machine behind it that stands in while the server is away.
///
/// A value is never older than the last one written under its key: what changed while the server was away is removed from
/// it before it is asked again, and what stood in is emptied then. A file says so across a restart. What was held on the
/// other side meanwhile is lost, which working memory may.
pub struct FallbackWorking<F, N> {
    far: F,
    near: N,
    flag: PathBuf,
    state: Mutex<State>,
}

impl<F: Working, N: Working> FallbackWorking<F, N> {
    /// Puts `near` behind `far`. `flag` is a file that is there while the server is owed something.
    ///
    /// # Errors
    /// If `near` cannot be emptied of what it held before the server came into use, or the file not be looked for.
    pub fn new(far: F, near: N, flag: impl Into<PathBuf>) -> Result<Self, Error> {
        let flag = flag.into();
        let there =
            flag.try_exists().map_err(|source| Error::Io { what: "looking for a file of working memory", source })?;
        let owed = if there {
            Owed::All
        } else {
            near.clear()?;
            Owed::Keys(BTreeSet::new())
        };
        Ok(Self { far, near, flag, state: Mutex::new(State { owed, settling: false }) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server may be asked: it is owed nothing, or was given it just now.
    fn is_settled(&self) -> Result<bool, Error> {
        let owed = {
            let mut state = self.lock();
            if state.owed.is_nothing() {
                return Ok(true);
            }
            if std::mem::replace(&mut state.settling, true) {
                return Ok(false);
            }
            std::mem::replace(&mut state.owed, Owed::Keys(BTreeSet::new()))
        };
        let given = match &owed {
            Owed::All => self.far.clear(),
            Owed::Keys(keys) => keys.iter().try_for_each(|key| self.far.remove(key)),
        };
        let mut state = self.lock();
        state.settling = false;
        if let Err(error) = given {
            tracing::debug!(%error, "the server of working memory is still away");
            state.owed.add(owed);
            return Ok(false);
        }
        if !state.owed.is_nothing() {
            // Something changed meanwhile, and stands here.
            return Ok(false);
        }
        let emptied = self.near.clear().and_then(|()| match std::fs::remove_file(&self.flag) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Io { what: "removing a file of working memory", source })
            }
            _ => Ok(true),
        });
        if emptied.is_err() {
            state.owed = Owed::All;
        }
        emptied
    }

    /// Notes what the server is owed; on disk too, as it must not be asked before, whoever asks it next.
    fn owe(&self, state: &mut State, owed: Owed) -> Result<(), Error> {
        if !state.settling && state.owed.is_nothing() {
            let made = File::create(&self.flag).and_then(|file| file.sync_all());
            made.map_err(|source| Error::Io { what: "writing a file of working memory", source })?;
        }
        state.owed.add(owed);
        Ok(())
    }

    /// Changes a key on the server, or else here.
    fn change(&self, key: &str, work: impl Fn(&dyn Working) -> Result<(), Error>) -> Result<(), Error> {
        if self.is_settled()? {
            match work(&self.far) {
                Err(error) if !matches!(error, Error::Invalid(_)) => {
                    tracing::debug!(%error, "working memory stays on this machine for now");
                }
                done => return done,
            }
        }
        let mut state = self.lock();
        self.owe(&mut state, Owed::Keys(BTreeSet::from([key.to_owned()])))?;
        // Under the lock, or what stands in could be emptied in between, and this be left in it for later.
        work(&self.near)
    }
}

impl Owed {
    fn is_nothing(&self) -> bool {
        matches!(self, Self::Keys(keys) if keys.is_empty())
    }

    fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Keys(keys), Self::Keys(more)) if keys.len() + more.len() <= MAX_OWED_KEYS => keys.extend(more),
            _ => *self = Self::All,
        }
    }
}

impl<F: Working, N: Working> Working for FallbackWorking<F, N> {
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        if self.is_settled()? {
            match self.far.get(key, now) {
                Err(error) if !matches!(error, Error::Invalid(_)) => {
                    tracing::debug!(%error, "working memory is read from this machine for now");
                }
                got => return got,
            }
        }
        self.near.get(key, now)
    }

    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error> {
        self.change(key, |working| working.put(key, value, ttl, now))
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        self.change(key, |working| working.remove(key))
    }

    fn sweep(&self, now: Timestamp) -> Result<usize, Error> {
        let near = self.near.sweep(now)?;
        let far = if self.is_settled()? { self.far.sweep(now) } else { Ok(0) };
        match far {
            Ok(far) => Ok(near + far),
            Err(error) => {
                tracing::debug!(%error, "working memory on the server is swept later");
                Ok(near)
            }
        }
    }

    /// A server that is away is cleared before it is asked again.
    fn clear(&self) -> Result<(), Error> {
        {
            let mut state = self.lock();
            self.owe(&mut state, Owed::All)?;
            self.near.clear()?;
        }
        self.is_settled().map(drop)
    }
}
