use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use azera_memory::{Error, Facet, Found, Point, PointSource, ReadScope, Stored, VectorIndex};
use azera_types::{MemoryId, Timestamp};

use crate::collection::PAGE_POINTS;
use crate::config::QdrantConfig;
use crate::index::QdrantVectors;
use crate::pending_log::{MAX_WAITING, PendingChanges, PendingLog};
use crate::target::{MirrorTarget, TARGET_FILE, new_secret};

/// How long closing waits for the server to take the last changes. The next start delivers the rest.
pub const CLOSING_GRACE: Duration = Duration::from_secs(2);

/// Wait after a failed attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(200);

/// Longest wait between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Wait after the server refused a complete refill twice for the same reason.
const REFUSED_PAUSE: Duration = Duration::from_secs(3_600);

/// File of the pending log.
const PENDING_LOG: &str = "journal";

struct State {
    log: PendingLog,
    /// True if the server was unreachable since its number of points was last compared with the local index.
    doubt: bool,
    /// When to compare again. The wait grows with failed searches, because a server may count well and search badly.
    compare_at: Option<Instant>,
    /// True while changes are being sent to the server.
    giving: bool,
    /// True if the last attempt failed.
    failing: bool,
    /// Why the server last refused a complete refill.
    refusal: Option<String>,
    /// True if it refused twice for the same reason.
    refused_again: bool,
    stopping: bool,
}

struct Shared<L> {
    local: L,
    remote: QdrantVectors,
    state: Mutex<State>,
    /// True if the server is up to date. A copy of `state` for searches, which must not wait for a lock.
    settled: AtomicBool,
    /// Searches that the server failed in a row.
    failed_searches: AtomicU32,
    changed: Condvar,
}

/// The next work for the server.
enum Step {
    /// Empty the server and send everything.
    Anew,
    /// Send these points, and remove these ids.
    Some(Vec<Point>, Vec<MemoryId>),
    Rewrite,
    /// Compare the numbers of points.
    Compare,
}

/// The side on which a step failed: the local index or the server.
enum Fault {
    Local(Error),
    Remote(Error),
}

/// A local vector index that is mirrored to a server. The local index is always complete. Searches go to the server
/// while it is up to date, and otherwise, or if it does not answer, to the local index.
///
/// Each change is noted in a pending log and sent in the background, in any order that ends with the current state. The
/// log survives the process. A server that was unreachable is used again once it has as many points as the local index;
/// otherwise it is refilled.
pub struct MirroredVectors<L: PointSource + 'static> {
    shared: Arc<Shared<L>>,
    worker: Option<JoinHandle<()>>,
}

impl<L: PointSource + 'static> MirroredVectors<L> {
    /// Mirrors `local` to a server, which need not be running yet. `dir` holds the pending log and the secret, which is
    /// created at the first start and replaces the one in `config`.
    ///
    /// # Errors
    ///
    /// Fails if the configuration is invalid, or the files in `dir` cannot be read or written.
    pub fn open(local: L, mut config: QdrantConfig, dir: impl AsRef<Path>) -> Result<Self, Error> {
        let dir = dir.as_ref();
        std::fs::create_dir_all(dir).map_err(Error::io("making the folder of the vector index's server"))?;
        let mut log = PendingLog::open(&dir.join(PENDING_LOG))?;
        let before = MirrorTarget::read(&dir.join(TARGET_FILE))?;
        let secret = before.as_ref().map_or_else(new_secret, |about| about.secret.clone());
        let about = MirrorTarget {
            url: config.url.clone(),
            collection: config.collection.clone(),
            dimension: config.dimension,
            secret: secret.clone(),
            left: false,
        };
        config.secret = secret;
        let remote = QdrantVectors::new(config)?;
        if before.as_ref() != Some(&about) {
            if let Some(before) = before.filter(|before| !before.left && !before.is_of_the_place_of(&about)) {
                before.warn_abandoned();
            }
            log.note(PendingChanges { anew: true, ..PendingChanges::default() })?;
            log.sync()?;
            about.write(&dir.join(TARGET_FILE))?;
        }
        let shared = Arc::new(Shared {
            local,
            remote,
            state: Mutex::new(State {
                log,
                doubt: true,
                compare_at: None,
                giving: false,
                failing: false,
                refusal: None,
                refused_again: false,
                stopping: false,
            }),
            settled: AtomicBool::new(false),
            failed_searches: AtomicU32::new(0),
            changed: Condvar::new(),
        });
        let working = shared.clone();
        let worker = std::thread::Builder::new().name("azera-mirror".into()).spawn(move || working.work());
        Ok(Self {
            shared,
            worker: Some(worker.map_err(Error::io("starting the thread of the vector index's server"))?),
        })
    }

    /// Records that the installation works without the server from now on, so that the server must be refilled before
    /// it is used again. Does nothing if `dir` is not a mirror's folder.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be read or written.
    pub fn leave(dir: impl AsRef<Path>) -> Result<(), Error> {
        let file = dir.as_ref().join(TARGET_FILE);
        match MirrorTarget::read(&file)? {
            Some(about) if !about.left => {
                about.warn_abandoned();
                MirrorTarget { left: true, ..about }.write(&file)
            }
            _ => Ok(()),
        }
    }

    /// Returns the secret in a mirror's folder, if there is one. It is needed to look at the mirror's points on the
    /// server.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn secret(dir: impl AsRef<Path>) -> Result<Option<String>, Error> {
        Ok(MirrorTarget::read(&dir.as_ref().join(TARGET_FILE))?.map(|about| about.secret))
    }

    /// Waits at most `at_most` until the server is up to date; returns true if it is.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.wait_while(at_most, |state| !state.is_settled())
    }

    /// Waits at most `at_most` until the server is up to date or an attempt failed; returns true if it is up to date.
    pub fn give(&self, at_most: Duration) -> bool {
        self.wait_while(at_most, |state| !state.is_settled() && !state.failing);
        self.shared.lock().is_settled()
    }

    fn wait_while(&self, at_most: Duration, unless: impl Fn(&State) -> bool) -> bool {
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), at_most, |state| unless(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Changes the local index and notes the change for the server. Only one change runs at a time, and none while the
    /// next step is read; so the server never gets data older than the log says.
    fn change(&self, pending: PendingChanges, work: impl FnOnce(&L) -> Result<(), Error>) -> Result<(), Error> {
        let shared = &self.shared;
        let mut state = shared.lock();
        state.log.note(pending)?;
        shared.settled.store(state.is_settled(), Ordering::Relaxed);
        let done = work(&shared.local);
        drop(state);
        shared.changed.notify_all();
        done
    }
}

impl<L: PointSource> Shared<L> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends pending changes to the server until this is closed.
    fn work(&self) {
        let mut pause = PAUSE;
        loop {
            let step = {
                let mut state = self.lock();
                loop {
                    if state.stopping {
                        return;
                    }
                    match self.next(&mut state) {
                        Ok(Some(step)) => break Ok(step),
                        Ok(None) => {}
                        Err(error) => break Err(error),
                    }
                    let soon =
                        state.compare_at.map_or(LONGEST_PAUSE, |at| at.saturating_duration_since(Instant::now()));
                    state = self.changed.wait_timeout(state, soon).unwrap_or_else(PoisonError::into_inner).0;
                }
            };
            let done = step.and_then(|step| self.give(step));
            let mut state = self.lock();
            state.failing = done.is_err();
            self.changed.notify_all();
            let Err(error) = done else {
                pause = PAUSE;
                continue;
            };
            tracing::debug!(%error, "cannot update the vector server; trying again later");
            let least = if std::mem::take(&mut state.refused_again) { REFUSED_PAUSE } else { pause };
            let wait = self.remote.breaker_pause().unwrap_or_default().max(least);
            let waited = self.changed.wait_timeout_while(state, wait, |state| !state.stopping);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Takes the next step from the log, and reads the points it needs from the local index under the lock.
    fn next(&self, state: &mut State) -> Result<Option<Step>, Error> {
        let pending = state.log.pending();
        let (step, taken) = if pending.anew {
            (Step::Anew, PendingChanges { anew: true, ..PendingChanges::default() })
        } else if !pending.ids.is_empty() {
            let ids: BTreeSet<MemoryId> = pending.ids.iter().take(PAGE_POINTS).copied().collect();
            let points = self.local.points(&ids.iter().copied().collect::<Vec<_>>())?;
            let there: BTreeSet<MemoryId> = points.iter().map(|point| point.id).collect();
            let gone = ids.difference(&there).copied().collect();
            (Step::Some(points, gone), PendingChanges { ids, ..PendingChanges::default() })
        } else if pending.rewrite {
            (Step::Rewrite, PendingChanges { rewrite: true, ..PendingChanges::default() })
        } else if state.doubt && state.compare_at.is_none_or(|at| at <= Instant::now()) {
            state.compare_at = None;
            (Step::Compare, PendingChanges::default())
        } else {
            return Ok(None);
        };
        state.log.take(taken);
        state.giving = true;
        Ok(Some(step))
    }

    /// Runs a step; if it fails, its changes stay pending.
    fn give(&self, step: Step) -> Result<(), Error> {
        let anew = matches!(step, Step::Anew);
        let done = match step {
            Step::Anew => self.give_all(),
            Step::Some(points, gone) => {
                let done = if points.is_empty() { Ok(()) } else { self.remote.upsert(points) };
                done.and_then(|()| self.remote.remove(&gone)).map(|()| PendingChanges::default()).map_err(Fault::Remote)
            }
            Step::Rewrite => self.remote.rewrite().map(|()| PendingChanges::default()).map_err(Fault::Remote),
            Step::Compare => self.compare(),
        };
        let mut state = self.lock();
        state.giving = false;
        let done = match done {
            // The server is not in the state in which it was left, so it is refilled.
            Err(Fault::Remote(error)) if !error.is_transient() => {
                state.doubt = true;
                state.log.put_back();
                state.refuses(anew, &error);
                state.log.note(PendingChanges { anew: true, ..PendingChanges::default() }).and(Err(error))
            }
            Err(Fault::Remote(error) | Fault::Local(error)) => {
                state.doubt = true;
                state.log.put_back();
                Err(error)
            }
            Ok(left) => {
                if anew {
                    state.refusal = None;
                }
                if left.is_nothing() { state.log.given() } else { state.log.given_but(left) }
            }
        };
        self.settled.store(state.is_settled(), Ordering::Relaxed);
        drop(state);
        self.changed.notify_all();
        done
    }

    /// Empties the server and returns every memory as pending; so an interruption wastes no work. If there are more
    /// than the log can hold, sends them directly; after an interruption this starts again.
    fn give_all(&self) -> Result<PendingChanges, Fault> {
        tracing::info!("refilling the vector server");
        self.remote.clear().map_err(Fault::Remote)?;
        // Changes from here on are noted, and sent afterwards.
        let ids = self.local.ids().map_err(Fault::Local)?;
        if ids.len() <= MAX_WAITING / 2 {
            return Ok(PendingChanges { ids: ids.into_iter().collect(), ..PendingChanges::default() });
        }
        for page in ids.chunks(PAGE_POINTS) {
            let points = {
                let state = self.lock();
                if state.stopping || state.log.pending().anew {
                    let why = "it is interrupted, and begun again".to_owned();
                    let what = "filling the server of the vector index";
                    return Err(Fault::Local(Error::Backend { what, why, transient: true }));
                }
                self.local.points(page).map_err(Fault::Local)?
            };
            self.remote.upsert(points).map_err(Fault::Remote)?;
        }
        Ok(PendingChanges::default())
    }

    /// Compares the number of points on the server with the local index, unless something changes meanwhile; returns
    /// the changes that are then pending.
    fn compare(&self) -> Result<PendingChanges, Fault> {
        let there = self.remote.count().map_err(Fault::Remote)?;
        let here = self.local.ids().map_err(Fault::Local)?.len() as u64;
        let mut state = self.lock();
        // Only this thread sends, so a change since the count is still pending.
        if !state.log.pending().is_nothing() {
            return Ok(PendingChanges::default());
        }
        state.doubt = false;
        if there == Some(here) {
            return Ok(PendingChanges::default());
        }
        tracing::warn!(here, ?there, "the vector server has another number of points than the local index");
        Ok(PendingChanges { anew: true, ..PendingChanges::default() })
    }
}

impl State {
    /// Records a permanent refusal. If the server refuses a complete refill twice for the same reason, trying again is
    /// useless.
    fn refuses(&mut self, anew: bool, error: &Error) {
        if !anew {
            tracing::warn!(%error, "the vector server refuses a change; refilling it");
            return;
        }
        let error = error.to_string();
        self.refused_again = self.refusal.as_ref() == Some(&error);
        if self.refused_again {
            tracing::error!(
                error,
                "the vector server refuses to be refilled; the next attempt is in an hour or at the next start: \
                 see vector_server in the configuration"
            );
        }
        self.refusal = Some(error);
    }

    fn is_settled(&self) -> bool {
        !self.doubt && !self.giving && self.log.pending().is_nothing()
    }
}

impl<L: PointSource + 'static> VectorIndex for MirroredVectors<L> {
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error> {
        let ids = points.iter().map(|point| point.id).collect();
        self.change(PendingChanges { ids, ..PendingChanges::default() }, |local| local.upsert(points))
    }

    fn search(
        &self,
        read_scope: &ReadScope,
        facet: Facet,
        vector: &[f32],
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Found>, Error> {
        let shared = &self.shared;
        if shared.settled.load(Ordering::Relaxed) {
            match shared.remote.search(read_scope, facet, vector, until, limit) {
                Err(error) if !matches!(error, Error::Invalid(_)) => {
                    tracing::debug!(%error, "the vector server does not answer; searching the local index");
                    let failures = shared.failed_searches.fetch_add(1, Ordering::Relaxed);
                    let pause = PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
                    let mut state = shared.lock();
                    state.doubt = true;
                    state.compare_at = Some(Instant::now() + pause);
                    shared.settled.store(false, Ordering::Relaxed);
                    shared.changed.notify_all();
                }
                found => {
                    shared.failed_searches.store(0, Ordering::Relaxed);
                    return found;
                }
            }
        }
        shared.local.search(read_scope, facet, vector, until, limit)
    }

    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        self.shared.local.vectors(ids)
    }

    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        self.change(PendingChanges { ids: ids.iter().copied().collect(), ..PendingChanges::default() }, |local| {
            local.remove(ids)
        })
    }

    /// The log is flushed first, so that everything in the local index is pending or sent.
    fn flush(&self) -> Result<(), Error> {
        self.shared.lock().log.sync()?;
        self.shared.local.flush()
    }

    fn optimize(&self) -> Result<(), Error> {
        self.shared.local.optimize()
    }

    /// The server is emptied in the background, or when it is back; it is not searched until then.
    fn clear(&self) -> Result<(), Error> {
        self.change(PendingChanges { anew: true, ..PendingChanges::default() }, L::clear)
    }

    /// The server deletes removed points in the background, or when it is back.
    fn rewrite(&self) -> Result<(), Error> {
        self.shared.local.rewrite()?;
        self.change(PendingChanges { rewrite: true, ..PendingChanges::default() }, |_| Ok(()))
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        self.shared.local.ids()
    }
}

impl<L: PointSource + 'static> Drop for MirroredVectors<L> {
    fn drop(&mut self) {
        self.wait_while(CLOSING_GRACE, |state| !state.is_settled() && !state.failing);
        self.shared.lock().stopping = true;
        self.shared.remote.stop();
        self.shared.changed.notify_all();
        if let Some(worker) = self.worker.take()
            && worker.join().is_err()
        {
            tracing::error!("the thread of the vector server panicked");
        }
    }
}
