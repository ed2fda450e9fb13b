use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use azera_memory::{Error, Working};
use azera_types::Timestamp;

use crate::remote::RemoteWorking;
use crate::server_state::ServerState;

/// Most keys noted as changed while the server was unavailable. With more, everything on the server is given up.
pub const MAX_OWED_KEYS: usize = 4_096;

/// How long closing waits until cleared values are removed from the server. The next start removes the rest.
pub const CLOSING_GRACE: Duration = Duration::from_secs(2);

struct State {
    server_state: ServerState,
    /// Keys that changed only locally. The server must remove them before it is asked again.
    pending: BTreeSet<String>,
    /// True while a call is removing those keys from the server.
    settling: bool,
    /// True while a thread removes older spaces.
    cleaning: bool,
}

struct Shared<F, N> {
    remote: F,
    local: N,
    file: PathBuf,
    state: Mutex<State>,
    /// Locked for reading during writes to the server, so that the cleaner can wait for earlier writes.
    writing: RwLock<()>,
    changed: Condvar,
}

/// Working memory on a server, with a local one that takes over while the server is unavailable.
///
/// A value is never older than the last one written under its key. Keys that changed while the server was unavailable
/// are removed from it before it is asked again, and the local values are then emptied. Sometimes the changed keys are
/// not known: after a clear, with too many keys, after a restart, with another server, or after a time without one.
/// Then a new, empty space begins on the server, and the older ones are removed in the background. Values on the other
/// side may be lost meanwhile, which working memory allows.
pub struct FallbackWorking<F: RemoteWorking, N: Working + 'static> {
    shared: Arc<Shared<F, N>>,
    cleaner: Mutex<Option<JoinHandle<()>>>,
}

impl<F: RemoteWorking, N: Working + 'static> FallbackWorking<F, N> {
    /// Combines `remote` and `local`. `file` stores the state of the server; it is created at the first start.
    ///
    /// # Errors
    ///
    /// Fails if `local` cannot be emptied, or the file cannot be read or written.
    pub fn new(remote: F, local: N, file: impl Into<PathBuf>) -> Result<Self, Error> {
        let file = file.into();
        let place = remote.place();
        let before = ServerState::read(&file)?;
        let server_state = match &before {
            None => ServerState::new(place),
            Some(server_state) if server_state.place != place => {
                if !server_state.left {
                    server_state.warn_abandoned();
                }
                ServerState { place, ..server_state.with_new_space() }
            }
            Some(server_state) if server_state.dirty || server_state.left => server_state.with_new_space(),
            Some(server_state) => server_state.clone(),
        };
        local.clear()?;
        if before.as_ref() != Some(&server_state) {
            server_state.write(&file)?;
        }
        remote.begin(&server_state.secret, &server_state.space);
        let state = State { server_state, pending: BTreeSet::new(), settling: false, cleaning: false };
        let (writing, changed) = (RwLock::new(()), Condvar::new());
        let shared = Arc::new(Shared { remote, local, file, state: Mutex::new(state), writing, changed });
        let this = Self { shared, cleaner: Mutex::new(None) };
        this.clean_soon();
        Ok(this)
    }

    /// Waits at most `at_most` until the server holds no value that was removed here; returns true if so.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.clean_soon();
        let shared = &self.shared;
        let waited = shared.changed.wait_timeout_while(shared.lock(), at_most, |state| state.cleaning);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.server_state.stale && state.pending.is_empty()
    }

    /// Starts a thread that removes older spaces from the server, if there are any and none is running.
    fn clean_soon(&self) {
        {
            let mut state = self.shared.lock();
            if !state.server_state.stale || state.cleaning {
                return;
            }
            state.cleaning = true;
        }
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("azera-working".into()).spawn(move || shared.clean());
        let mut cleaner = self.cleaner.lock().unwrap_or_else(PoisonError::into_inner);
        match thread {
            Ok(thread) => *cleaner = Some(thread),
            Err(error) => {
                tracing::warn!(%error, "cannot start to clean working memory on the server; trying again later");
                self.shared.lock().cleaning = false;
            }
        }
    }
}

/// Records in `file` that the installation works without the server from now on, so that its values are not used again.
/// Does nothing without that file.
///
/// # Errors
///
/// Fails if the file cannot be read or written.
pub fn leave(file: impl AsRef<Path>) -> Result<(), Error> {
    let file = file.as_ref();
    match ServerState::read(file)? {
        Some(server_state) if !server_state.left => {
            server_state.warn_abandoned();
            ServerState { left: true, ..server_state }.write(file)
        }
        _ => Ok(()),
    }
}

impl<F: RemoteWorking, N: Working> Shared<F, N> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the server may be asked: no keys are pending, or they were removed just now.
    fn is_settled(&self) -> Result<bool, Error> {
        let pending: Vec<String> = {
            let mut state = self.lock();
            if state.pending.is_empty() && !state.settling {
                return Ok(true);
            }
            if std::mem::replace(&mut state.settling, true) {
                return Ok(false);
            }
            std::mem::take(&mut state.pending).into_iter().collect()
        };
        let server_state = self.remote.remove_all(&pending);
        let mut state = self.lock();
        state.settling = false;
        if let Err(error) = server_state {
            tracing::debug!(%error, "the working memory server is still unavailable");
            self.owe(&mut state, pending)?;
            return Ok(false);
        }
        if !state.pending.is_empty() {
            // A key changed meanwhile, and its value is local.
            return Ok(false);
        }
        if let Err(error) = self.local.clear() {
            self.owe(&mut state, pending)?;
            return Err(error);
        }
        let settled = ServerState { dirty: false, ..state.server_state.clone() };
        match settled.write(&self.file) {
            Ok(()) => state.server_state = settled,
            // The next start then gives up the values needlessly.
            Err(error) => tracing::debug!(%error, "cannot record that the working memory server is up to date"),
        }
        Ok(true)
    }

    /// Notes keys that the server must remove, and records on disk that there are some.
    fn owe(&self, state: &mut State, keys: Vec<String>) -> Result<(), Error> {
        if state.pending.len() + keys.len() > MAX_OWED_KEYS {
            self.begin_anew(state)?;
        }
        if !state.server_state.dirty {
            let dirty = ServerState { dirty: true, ..state.server_state.clone() };
            dirty.write(&self.file)?;
            state.server_state = dirty;
        }
        state.pending.extend(keys);
        Ok(())
    }

    /// Abandons all values on both sides.
    fn begin_anew(&self, state: &mut State) -> Result<(), Error> {
        self.local.clear()?;
        let server_state = state.server_state.with_new_space();
        server_state.write(&self.file)?;
        self.remote.begin(&server_state.secret, &server_state.space);
        state.server_state = server_state;
        state.pending.clear();
        Ok(())
    }

    /// Changes a key on the server, or locally if the server is unavailable.
    fn change(&self, key: &str, work: impl Fn(&dyn Working) -> Result<(), Error>) -> Result<(), Error> {
        if self.is_settled()? {
            let _writing = self.writing.read().unwrap_or_else(PoisonError::into_inner);
            match work(&self.remote) {
                Err(error) if !matches!(error, Error::Invalid(_)) => {
                    tracing::debug!(%error, "the working memory server does not answer; writing locally");
                }
                done => return done,
            }
        }
        let mut state = self.lock();
        self.owe(&mut state, vec![key.to_owned()])?;
        // This needs the lock. Otherwise the local values could be emptied in between, and this one would stay behind.
        work(&self.local)
    }

    /// Removes older spaces from the server.
    fn clean(&self) {
        loop {
            let space = self.lock().server_state.space.clone();
            // This waits for writes that are still on their way to an older space.
            drop(self.writing.write().unwrap_or_else(PoisonError::into_inner));
            let done = self.remote.remove_older();
            let mut state = self.lock();
            if done.is_ok() && state.server_state.space != space {
                continue;
            }
            let noted = done.and_then(|()| {
                let server_state = ServerState { stale: false, ..state.server_state.clone() };
                server_state.write(&self.file)?;
                state.server_state = server_state;
                Ok(())
            });
            if let Err(error) = noted {
                tracing::debug!(%error, "cannot clear the working memory server; trying again later");
            }
            state.cleaning = false;
            drop(state);
            self.changed.notify_all();
            return;
        }
    }
}

impl<F: RemoteWorking, N: Working + 'static> Working for FallbackWorking<F, N> {
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        let shared = &self.shared;
        if shared.is_settled()? {
            match shared.remote.get(key, now) {
                Err(error) if !matches!(error, Error::Invalid(_)) => {
                    tracing::debug!(%error, "the working memory server does not answer; reading locally");
                }
                got => return got,
            }
        }
        shared.local.get(key, now)
    }

    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error> {
        self.shared.change(key, |working| working.put(key, value, ttl, now))
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        self.shared.change(key, |working| working.remove(key))
    }

    /// Removes expired local values; the server expires its own. Also tries again to remove cleared values there.
    fn sweep(&self, now: Timestamp) -> Result<usize, Error> {
        self.clean_soon();
        self.shared.local.sweep(now)
    }

    /// Takes effect at once; the server is cleaned in the background, or when it is back.
    fn clear(&self) -> Result<(), Error> {
        self.shared.begin_anew(&mut self.shared.lock())?;
        self.clean_soon();
        Ok(())
    }
}

impl<F: RemoteWorking, N: Working + 'static> Drop for FallbackWorking<F, N> {
    fn drop(&mut self) {
        let shared = &self.shared;
        let waited = shared.changed.wait_timeout_while(shared.lock(), CLOSING_GRACE, |state| state.cleaning);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        shared.remote.stop();
        let cleaner = self.cleaner.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if cleaner.is_some_and(|cleaner| cleaner.join().is_err()) {
            tracing::error!("the thread that cleans up working memory panicked");
        }
    }
}
