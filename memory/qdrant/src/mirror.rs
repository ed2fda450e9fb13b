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

/// How long closing waits for the server to be given the last changes. What it is not given then it gets at the next start.
pub const CLOSING_GRACE: Duration = Duration::from_secs(2);

/// Wait after a failure before the server is tried again; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest of those waits.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Wait after a server refused twice for the same reason to be filled.
const REFUSED_PAUSE: Duration = Duration::from_secs(3_600);

/// The journal's file.
const JOURNAL: &str = "journal";

struct State {
    journal: PendingLog,
    /// Whether the server was out of reach since it was last seen to hold as many points as the local index.
    doubt: bool,
    /// When that is to be seen again; after failed searches later and later, as a server may count well and search badly.
    compare_at: Option<Instant>,
    /// Whether something is being given to the server.
    giving: bool,
    /// Whether the last try failed.
    failing: bool,
    /// Why the server last refused to be filled anew.
    refusal: Option<String>,
    /// Whether it did so for the same reason twice.
    refused_again: bool,
    stopping: bool,
}

struct Shared<L> {
    local: L,
    far: QdrantVectors,
    state: Mutex<State>,
    /// Whether the server has everything; what `state` says, for searches, which wait for nobody.
    settled: AtomicBool,
    /// Searches in a row that the server failed.
    failed_searches: AtomicU32,
    changed: Condvar,
}

/// The next thing to be done for the server.
enum Step {
    /// Empty it and give it everything.
    Anew,
    /// Give it these, or take them away.
    Some(Vec<Point>, Vec<MemoryId>),
    Rewrite,
    /// See whether it holds as much as it should.
    Compare,
}

/// What failed of a step: the index of this machine, or the server.
enum Fault {
    Here(Error),
    There(Error),
}

/// A vector index on this machine, mirrored to a server. The local one is always whole. The server is asked while it has
/// everything; else, or if it does not answer, the local one is.
///
/// Each change is noted in a journal and given to the server in the background, in any order that ends with the present
/// state. The journal outlives the process. A server that was out of reach is believed again once it holds as many points
/// as the local index; otherwise it gets everything anew.
pub struct MirroredVectors<L: PointSource + 'static> {
    shared: Arc<Shared<L>>,
    worker: Option<JoinHandle<()>>,
}

impl<L: PointSource + 'static> MirroredVectors<L> {
    /// Mirrors `local` to a server, which need not be there yet. In `dir` stands what it is owed; the configuration's
    /// secret is replaced by the one that stands there, made at the first start.
    ///
    /// # Errors
    /// If the configuration cannot be, or the files in `dir` not be read or written.
    pub fn open(local: L, mut config: QdrantConfig, dir: impl AsRef<Path>) -> Result<Self, Error> {
        let dir = dir.as_ref();
        std::fs::create_dir_all(dir).map_err(Error::io("making the folder of the vector index's server"))?;
        let mut journal = PendingLog::open(&dir.join(JOURNAL))?;
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
        let far = QdrantVectors::new(config)?;
        if before.as_ref() != Some(&about) {
            if let Some(before) = before.filter(|before| !before.left && !before.is_of_the_place_of(&about)) {
                before.warn_abandoned();
            }
            journal.note(PendingChanges { anew: true, ..PendingChanges::default() })?;
            journal.sync()?;
            about.write(&dir.join(TARGET_FILE))?;
        }
        let shared = Arc::new(Shared {
            local,
            far,
            state: Mutex::new(State {
                journal,
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

    /// Notes that the house works without the server from now on: it is not believed again before it was given everything
    /// anew. Nothing happens without a mirror's folder.
    ///
    /// # Errors
    /// If the files cannot be read or written.
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

    /// The secret that stands in a mirror's folder, if it does: for looking at what the mirror has on its server.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn secret(dir: impl AsRef<Path>) -> Result<Option<String>, Error> {
        Ok(MirrorTarget::read(&dir.as_ref().join(TARGET_FILE))?.map(|about| about.secret))
    }

    /// Waits until the server has everything, at most for so long; gives whether it has.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.wait_while(at_most, |state| !state.is_settled())
    }

    /// Waits until the server has everything or a try to give it something failed, at most for so long; gives whether it
    /// has everything.
    pub fn give(&self, at_most: Duration) -> bool {
        self.wait_while(at_most, |state| !state.is_settled() && !state.failing);
        self.shared.lock().is_settled()
    }

    fn wait_while(&self, at_most: Duration, unless: impl Fn(&State) -> bool) -> bool {
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), at_most, |state| unless(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Changes the local index and notes what the server is owed for it. One change at a time, and none while the server's
    /// next share is read: so what it is given is never older than what is noted as given.
    fn change(&self, owed: PendingChanges, work: impl FnOnce(&L) -> Result<(), Error>) -> Result<(), Error> {
        let shared = &self.shared;
        let mut state = shared.lock();
        state.journal.note(owed)?;
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

    /// Gives the server what it is owed, until this is closed.
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
            tracing::debug!(%error, "the server of the vector index is tried again later");
            let least = if std::mem::take(&mut state.refused_again) { REFUSED_PAUSE } else { pause };
            let wait = self.far.breaker_pause().unwrap_or_default().max(least);
            let waited = self.changed.wait_timeout_while(state, wait, |state| !state.stopping);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Takes the next step out of the journal; reads under the lock what it needs of the local index.
    fn next(&self, state: &mut State) -> Result<Option<Step>, Error> {
        let owed = state.journal.pending();
        let (step, taken) = if owed.anew {
            (Step::Anew, PendingChanges { anew: true, ..PendingChanges::default() })
        } else if !owed.ids.is_empty() {
            let ids: BTreeSet<MemoryId> = owed.ids.iter().take(PAGE_POINTS).copied().collect();
            let points = self.local.points(&ids.iter().copied().collect::<Vec<_>>())?;
            let there: BTreeSet<MemoryId> = points.iter().map(|point| point.id).collect();
            let gone = ids.difference(&there).copied().collect();
            (Step::Some(points, gone), PendingChanges { ids, ..PendingChanges::default() })
        } else if owed.rewrite {
            (Step::Rewrite, PendingChanges { rewrite: true, ..PendingChanges::default() })
        } else if state.doubt && state.compare_at.is_none_or(|at| at <= Instant::now()) {
            state.compare_at = None;
            (Step::Compare, PendingChanges::default())
        } else {
            return Ok(None);
        };
        state.journal.take(taken);
        state.giving = true;
        Ok(Some(step))
    }

    /// Does a step; what fails stays owed.
    fn give(&self, step: Step) -> Result<(), Error> {
        let anew = matches!(step, Step::Anew);
        let done = match step {
            Step::Anew => self.give_all(),
            Step::Some(points, gone) => {
                let done = if points.is_empty() { Ok(()) } else { self.far.upsert(points) };
                done.and_then(|()| self.far.remove(&gone)).map(|()| PendingChanges::default()).map_err(Fault::There)
            }
            Step::Rewrite => self.far.rewrite().map(|()| PendingChanges::default()).map_err(Fault::There),
            Step::Compare => self.compare(),
        };
        let mut state = self.lock();
        state.giving = false;
        let done = match done {
            // A server that is not as it was left is filled anew.
            Err(Fault::There(error)) if !error.is_transient() => {
                state.doubt = true;
                state.journal.put_back();
                state.refuses(anew, &error);
                state.journal.note(PendingChanges { anew: true, ..PendingChanges::default() }).and(Err(error))
            }
            Err(Fault::There(error) | Fault::Here(error)) => {
                state.doubt = true;
                state.journal.put_back();
                Err(error)
            }
            Ok(left) => {
                if anew {
                    state.refusal = None;
                }
                if left.is_nothing() { state.journal.given() } else { state.journal.given_but(left) }
            }
        };
        self.settled.store(state.is_settled(), Ordering::Relaxed);
        drop(state);
        self.changed.notify_all();
        done
    }

    /// Empties the server; gives what it is owed then: every memory, so that an interruption costs nothing of what was
    /// given. More than the journal takes is given at once, and from the beginning after an interruption.
    fn give_all(&self) -> Result<PendingChanges, Fault> {
        tracing::info!("the server of the vector index gets everything anew");
        self.far.clear().map_err(Fault::There)?;
        // What changes meanwhile is noted, and given behind this.
        let ids = self.local.ids().map_err(Fault::Here)?;
        if ids.len() <= MAX_WAITING / 2 {
            return Ok(PendingChanges { ids: ids.into_iter().collect(), ..PendingChanges::default() });
        }
        for page in ids.chunks(PAGE_POINTS) {
            let points = {
                let state = self.lock();
                if state.stopping || state.journal.pending().anew {
                    let why = "it is interrupted, and begun again".to_owned();
                    let what = "filling the server of the vector index";
                    return Err(Fault::Here(Error::Backend { what, why, transient: true }));
                }
                self.local.points(page).map_err(Fault::Here)?
            };
            self.far.upsert(points).map_err(Fault::There)?;
        }
        Ok(PendingChanges::default())
    }

    /// Sees whether the server holds as many points as the local index, unless something changes meanwhile; gives what it
    /// is owed then.
    fn compare(&self) -> Result<PendingChanges, Fault> {
        let there = self.far.count().map_err(Fault::There)?;
        let here = self.local.ids().map_err(Fault::Here)?.len() as u64;
        let mut state = self.lock();
        // Nobody else gives: a change since the counting is owed still.
        if !state.journal.pending().is_nothing() {
            return Ok(PendingChanges::default());
        }
        state.doubt = false;
        if there == Some(here) {
            return Ok(PendingChanges::default());
        }
        tracing::warn!(here, ?there, "the server of the vector index holds something else");
        Ok(PendingChanges { anew: true, ..PendingChanges::default() })
    }
}

impl State {
    /// Notes that the server refuses something for good. What it refuses when it is filled anew, and then again, no further
    /// try mends.
    fn refuses(&mut self, anew: bool, error: &Error) {
        if !anew {
            tracing::warn!(%error, "the server of the vector index is not as it was left, and is filled anew");
            return;
        }
        let error = error.to_string();
        self.refused_again = self.refusal.as_ref() == Some(&error);
        if self.refused_again {
            tracing::error!(
                error,
                "the server of the vector index refuses to be filled, and is left alone for an hour or until the next start: \
                 see vector_server in the configuration"
            );
        }
        self.refusal = Some(error);
    }

    fn is_settled(&self) -> bool {
        !self.doubt && !self.giving && self.journal.pending().is_nothing()
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
            match shared.far.search(read_scope, facet, vector, until, limit) {
                Err(error) if !matches!(error, Error::Invalid(_)) => {
                    tracing::debug!(%error, "the local vector index is searched for now");
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

    /// The journal first: what the local index keeps, the server is owed.
    fn flush(&self) -> Result<(), Error> {
        self.shared.lock().journal.sync()?;
        self.shared.local.flush()
    }

    fn optimize(&self) -> Result<(), Error> {
        self.shared.local.optimize()
    }

    /// The server is emptied in the background, or when it is back; until then it is not asked.
    fn clear(&self) -> Result<(), Error> {
        self.change(PendingChanges { anew: true, ..PendingChanges::default() }, L::clear)
    }

    /// The server forgets what was removed in the background, or when it is back.
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
        self.shared.far.stop();
        self.shared.changed.notify_all();
        if let Some(worker) = self.worker.take()
            && worker.join().is_err()
        {
            tracing::error!("the thread of the vector index's server panicked");
        }
    }
}
