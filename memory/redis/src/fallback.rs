use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use azera_memory::{Error, Working};
use azera_types::Timestamp;

use crate::remote::RemoteWorking;
use crate::server_state::ServerState;

/// Keys remembered as changed while the server was away; with more, all it holds is given up.
pub const MAX_OWED_KEYS: usize = 4_096;

/// How long closing waits until what was cleared is removed from the server. What is not removed then goes at the next start.
pub const CLOSING_GRACE: Duration = Duration::from_secs(2);

struct State {
    server_state: ServerState,
    /// Keys that changed here alone: the server must lose them before it is asked again.
    owed: BTreeSet<String>,
    /// Somebody is about to tell the server.
    settling: bool,
    /// A thread removes older spaces.
    cleaning: bool,
}

struct Shared<F, N> {
    far: F,
    near: N,
    file: PathBuf,
    state: Mutex<State>,
    /// Held for reading by what writes to the server, so that a cleaning can wait for what was begun before it.
    writing: RwLock<()>,
    changed: Condvar,
}

/// Working memory on a server, with one on this machine behind it that stands in while the server is away.
///
/// A value is never older than the last one written under its key: what changed while the server was away is removed from
/// it before it is asked again, and what stood in is emptied then. Where that cannot be told key by key (a clearing, too many
/// keys, a restart in between, another server, a time without one) a new space is begun on the server, in which nothing was
/// ever written; the older ones are removed from it in the background. What was held on the other side meanwhile is lost,
/// which working memory may.
pub struct FallbackWorking<F: RemoteWorking, N: Working + 'static> {
    shared: Arc<Shared<F, N>>,
    cleaner: Mutex<Option<JoinHandle<()>>>,
}

impl<F: RemoteWorking, N: Working + 'static> FallbackWorking<F, N> {
    /// Puts `near` behind `remote`. `file` says what the server holds and is owed; it is made at the first start.
    ///
    /// # Errors
    /// If `near` cannot be emptied of what it held before, or the file not be read or written.
    pub fn new(far: F, near: N, file: impl Into<PathBuf>) -> Result<Self, Error> {
        let file = file.into();
        let place = far.place();
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
        near.clear()?;
        if before.as_ref() != Some(&server_state) {
            server_state.write(&file)?;
        }
        far.begin(&server_state.secret, &server_state.space);
        let state = State { server_state, owed: BTreeSet::new(), settling: false, cleaning: false };
        let (writing, changed) = (RwLock::new(()), Condvar::new());
        let shared = Arc::new(Shared { far, near, file, state: Mutex::new(state), writing, changed });
        let this = Self { shared, cleaner: Mutex::new(None) };
        this.clean_soon();
        Ok(this)
    }

    /// Waits until nothing is left on the server that was removed here, at most for so long; gives whether it is so.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.clean_soon();
        let shared = &self.shared;
        let waited = shared.changed.wait_timeout_while(shared.lock(), at_most, |state| state.cleaning);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.server_state.stale && state.owed.is_empty()
    }

    /// Begins to remove older spaces from the server, if there are any and nobody does.
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
                tracing::warn!(%error, "working memory on the server is cleaned up later");
                self.shared.lock().cleaning = false;
            }
        }
    }
}

/// Notes in `file` that the house works without the server from now on: what it holds is not believed again. Nothing
/// happens without such a file.
///
/// # Errors
/// If the file cannot be read or written.
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

    /// Whether the server may be asked: it is owed nothing, or was told just now.
    fn is_settled(&self) -> Result<bool, Error> {
        let owed: Vec<String> = {
            let mut state = self.lock();
            if state.owed.is_empty() && !state.settling {
                return Ok(true);
            }
            if std::mem::replace(&mut state.settling, true) {
                return Ok(false);
            }
            std::mem::take(&mut state.owed).into_iter().collect()
        };
        let server_state = self.far.remove_all(&owed);
        let mut state = self.lock();
        state.settling = false;
        if let Err(error) = server_state {
            tracing::debug!(%error, "the server of working memory is still away");
            self.owe(&mut state, owed)?;
            return Ok(false);
        }
        if !state.owed.is_empty() {
            // Something changed meanwhile, and stands here.
            return Ok(false);
        }
        if let Err(error) = self.near.clear() {
            self.owe(&mut state, owed)?;
            return Err(error);
        }
        let settled = ServerState { dirty: false, ..state.server_state.clone() };
        match settled.write(&self.file) {
            Ok(()) => state.server_state = settled,
            // Then the next start gives up what it need not.
            Err(error) => tracing::debug!(%error, "working memory is settled, and its file says otherwise"),
        }
        Ok(true)
    }

    /// Notes what the server is owed; that it is owed something on disk too, whoever asks it next.
    fn owe(&self, state: &mut State, keys: Vec<String>) -> Result<(), Error> {
        if state.owed.len() + keys.len() > MAX_OWED_KEYS {
            self.begin_anew(state)?;
        }
        if !state.server_state.dirty {
            let dirty = ServerState { dirty: true, ..state.server_state.clone() };
            dirty.write(&self.file)?;
            state.server_state = dirty;
        }
        state.owed.extend(keys);
        Ok(())
    }

    /// Gives up everything on both sides.
    fn begin_anew(&self, state: &mut State) -> Result<(), Error> {
        self.near.clear()?;
        let server_state = state.server_state.with_new_space();
        server_state.write(&self.file)?;
        self.far.begin(&server_state.secret, &server_state.space);
        state.server_state = server_state;
        state.owed.clear();
        Ok(())
    }

    /// Changes a key on the server, or else here.
    fn change(&self, key: &str, work: impl Fn(&dyn Working) -> Result<(), Error>) -> Result<(), Error> {
        if self.is_settled()? {
            let _writing = self.writing.read().unwrap_or_else(PoisonError::into_inner);
            match work(&self.far) {
                Err(error) if !matches!(error, Error::Invalid(_)) => {
                    tracing::debug!(%error, "working memory stays on this machine for now");
                }
                done => return done,
            }
        }
        let mut state = self.lock();
        self.owe(&mut state, vec![key.to_owned()])?;
        // Under the lock, or what stands in could be emptied in between, and this be left in it for later.
        work(&self.near)
    }

    /// Removes what older spaces hold on the server.
    fn clean(&self) {
        loop {
            let space = self.lock().server_state.space.clone();
            // What was on its way into an older one has arrived.
            drop(self.writing.write().unwrap_or_else(PoisonError::into_inner));
            let done = self.far.remove_older();
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
                tracing::debug!(%error, "what was cleared is removed from the server of working memory later");
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
            match shared.far.get(key, now) {
                Err(error) if !matches!(error, Error::Invalid(_)) => {
                    tracing::debug!(%error, "working memory is read from this machine for now");
                }
                got => return got,
            }
        }
        shared.near.get(key, now)
    }

    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error> {
        self.shared.change(key, |working| working.put(key, value, ttl, now))
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        self.shared.change(key, |working| working.remove(key))
    }

    /// Sweeps this machine: a server drops by itself what has ended. What was cleared and could not be removed there is
    /// tried again.
    fn sweep(&self, now: Timestamp) -> Result<usize, Error> {
        self.clean_soon();
        self.shared.near.sweep(now)
    }

    /// Done at once for whoever asks; the server is cleaned up in the background, or when it is back.
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
        shared.far.stop();
        let cleaner = self.cleaner.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if cleaner.is_some_and(|cleaner| cleaner.join().is_err()) {
            tracing::error!("the thread that cleans up working memory panicked");
        }
    }
}
