//! Courses that are learnt on another machine. A course lies sealed in a folder until whoever runs this has carried it off and laid
//! what came of it beside it; who learns there, and how it is sealed, is another's matter ([`Courier`]).
//!
//! What is away rests on what it was made of, like what is kept: it goes with it, and what comes back later is not taken in.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use azera_memory::Roots;
use azera_types::{ChatId, PersonaId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use super::choose::School;
use super::kept::Learnt;
use super::serve::{Entry, Outcome};
use super::{Burning, Candidate, Course, LearnError, Lesson, Trained};
use crate::azera::Azera;
use crate::error::Error;
use crate::gardener::{Home, after, is_past};
use crate::generate::any_seed;

/// The folder of courses that are away, in the hearth's.
pub const AWAY: &str = "away";

/// How the file of a course ends.
pub const COURSE: &str = "course";

/// How the file of what came of it ends.
pub const LEARNT: &str = "learnt";

/// How the file ends that says what a course is.
const RECORD: &str = "json";

/// How long is waited for something of use to come back.
const PATIENCE: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Time between two looks at what is away.
const LOOK_EVERY: Duration = Duration::from_secs(30 * 60);

/// What came back of a course.
#[derive(Debug)]
pub struct Back {
    /// What was to be learnt.
    pub lessons: Vec<Lesson>,
    /// What must not suffer by it.
    pub older: Vec<Lesson>,
    /// The adapter, which lies in a file.
    pub trained: Trained,
}

/// Seals courses for another machine, and opens what it made of them.
pub trait Courier: Send + Sync {
    /// Writes a course to a file, sealed under the file's name.
    ///
    /// # Errors
    /// If it cannot be sealed or written.
    fn send(&self, course: &Course, ground: &str, file: &Path) -> Result<(), LearnError>;

    /// Opens what came back of a course, and writes the adapter to `to`.
    ///
    /// # Errors
    /// See [`Unreceived`].
    fn receive(&self, course: &Path, learnt: &Path, to: &Path) -> Result<Back, Unreceived>;
}

/// Why what came back is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum Unreceived {
    /// It is not what the course becomes.
    #[error("it is not what its course becomes: {0}")]
    NotOfIt(io::Error),
    /// The course cannot be opened any more, so that nothing can be known of what came of it.
    #[error("its course cannot be opened any more: {0}")]
    NoCourse(io::Error),
    /// A file could not be read or written, which may pass.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A course that is away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Away {
    /// What its files are called: it tells nothing.
    name: String,
    /// The chat in which it was laid out.
    chat: ChatId,
    /// What it becomes; its adapter has no name yet.
    pub(super) learnt: Learnt,
    /// What the course rests on: beside what it becomes, what is only to be compared.
    pub(super) holds: Roots,
    /// What served as it was sent, and what it learns beside.
    beside: Option<Learnt>,
    exchanges: usize,
}

/// All there are.
pub(crate) struct Aways {
    folder: PathBuf,
    held: RwLock<Vec<Away>>,
    /// When they were looked at last.
    looked: Mutex<Option<Timestamp>>,
}

impl Aways {
    /// Reads a folder. What is no pair of a course and its record is removed; and all there is, if nothing is learnt elsewhere.
    pub(crate) fn open(folder: &Path, wanted: bool) -> io::Result<Self> {
        let (folder, mut held) = (folder.join(AWAY), Vec::<Away>::new());
        if wanted {
            fs::create_dir_all(&folder)?;
        } else if !folder.exists() {
            return Ok(Self { folder, held: RwLock::default(), looked: Mutex::default() });
        }
        let files: Vec<PathBuf> = fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<io::Result<_>>()?;
        for path in files.iter().filter(|path| wanted && ends(path, RECORD)) {
            let read = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Away>(&bytes).ok());
            let is_whole = |away: &Away| {
                path.file_stem().is_some_and(|stem| *stem == *away.name) && path.with_extension(COURSE).exists()
            };
            held.extend(read.filter(is_whole));
        }
        for path in &files {
            let known = path.file_stem().and_then(|stem| stem.to_str());
            let known = known.is_some_and(|stem| held.iter().any(|away| away.name == stem));
            // Anything else is not of this: the key, for one.
            let ours = [RECORD, COURSE, LEARNT].iter().any(|extension| ends(path, extension));
            // Somebody may be bringing something back at this moment.
            if (ends(path, "part") || ours && !known)
                && let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::error!(file = %path.display(), %error, "what is left of a course could not be removed");
            }
        }
        if !wanted && files.iter().any(|path| ends(path, COURSE)) {
            tracing::warn!("hearth.elsewhere is off: courses that were away are given up");
        }
        Ok(Self { folder, held: RwLock::new(held), looked: Mutex::default() })
    }

    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }

    /// All there are.
    pub(crate) fn all(&self) -> Vec<Away> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Of a persona in a place.
    pub(crate) fn of(&self, persona: &PersonaId, place: &Scope) -> Option<Away> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.iter().find(|away| away.learnt.persona == *persona && away.learnt.place == *place).cloned()
    }

    /// Whether one is still waited for.
    pub(super) fn has(&self, away: &Away) -> bool {
        self.held.read().unwrap_or_else(PoisonError::into_inner).iter().any(|it| it.name == away.name)
    }

    /// When they are to be looked at next.
    pub(crate) fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        if self.held.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return None;
        }
        // A look later than now was noted by a clock that was wrong.
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner).filter(|looked| *looked <= now);
        Some(looked.map_or(now, |looked| after(looked, LOOK_EVERY)))
    }

    /// They were looked at.
    fn note_look(&self, now: Timestamp) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Takes one in whose course is in its place.
    fn keep(&self, away: Away) -> io::Result<()> {
        let staged = self.file(&away.name, "part");
        let mut file = File::create(&staged)?;
        file.write_all(&serde_json::to_vec(&away)?)?;
        file.sync_all()?;
        fs::rename(&staged, self.file(&away.name, RECORD))?;
        self.held.write().unwrap_or_else(PoisonError::into_inner).push(away);
        Ok(())
    }

    /// Waits for one no more; its files stay. Whether it was waited for.
    pub(super) fn drop_one(&self, away: &Away) -> bool {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let before = held.len();
        held.retain(|it| it.name != away.name);
        held.len() < before
    }

    /// Removes what one left on disk.
    pub(super) fn remove_files(&self, away: &Away) -> io::Result<()> {
        // Without the record, the others go at the next start at the latest.
        for extension in [RECORD, COURSE, LEARNT, "part"] {
            match fs::remove_file(self.file(&away.name, extension)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn ends(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}

impl Away {
    fn home(&self) -> Home {
        let Learnt { platform, place, persona, .. } = &self.learnt;
        Home { platform: platform.clone(), place: place.clone(), persona: persona.clone() }
    }
}

impl Burning {
    /// Since when something of a home is away.
    pub(crate) fn away_since(&self, home: &Home) -> Option<Timestamp> {
        Some(self.aways.of(&home.persona, &home.place)?.learnt.at)
    }
}

impl Azera {
    /// Lays out a course for another machine.
    pub(super) async fn send_away(
        &self,
        burning: &Arc<Burning>,
        (home, school): (&Home, &School),
        courier: Arc<dyn Courier>,
        course: Course,
        (learnt, holds): (Learnt, Roots),
    ) -> Result<(), Error> {
        let (number, at, exchanges) = (learnt.number, learnt.at, course.lessons.len());
        let (name, chat) = (format!("{:08x}{:08x}", any_seed(), any_seed()), school.chat.clone());
        let away = Away { name, chat, learnt, holds, beside: school.serving.clone(), exchanges };
        let entry = |outcome| Entry { number, at, exchanges, outcome, learnt: None };
        // Before it is kept: from then on forgetting may end it, and notes that.
        self.note_lesson(burning, home, entry(Outcome::Away)).await?;
        let of = Arc::clone(burning);
        let sent = self
            .blocking(move |memory| {
                let file = of.aways.file(&away.name, COURSE);
                let sent = courier.send(&course, &away.learnt.ground, &file).and_then(|()| {
                    let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                    let failed = |error: &dyn std::fmt::Display| LearnError::Failed(error.to_string());
                    let founded = memory.stand(&away.holds).map_err(|error| failed(&error))?
                        && away.beside.as_ref().is_none_or(|beside| of.kept.has(beside));
                    if founded {
                        of.aways.keep(away.clone()).map_err(|error| failed(&error))?;
                    }
                    Ok(founded)
                });
                if !matches!(sent, Ok(true))
                    && let Err(error) = of.aways.remove_files(&away)
                {
                    tracing::error!(%error, "what is left of a course could not be removed");
                }
                Ok(sent)
            })
            .await?;
        match sent {
            Ok(true) => {
                tracing::info!(persona = %home.persona, exchanges, "a course waits to be learnt elsewhere: azera hearth pack");
                Ok(())
            }
            // Something that it rests on went meanwhile.
            Ok(false) => self.note_lesson(burning, home, entry(Outcome::Withdrawn)).await,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "a course for another machine could not be laid out");
                self.note_lesson(burning, home, entry(Outcome::Failed)).await
            }
        }
    }

    /// Whether nothing is learnt in a home because what serves there may not go to the other machine.
    pub(crate) async fn is_held_up(&self, burning: &Burning, home: &Home) -> Result<bool, Error> {
        match self.school(burning, home).await? {
            Some(school) => Ok(!self.may_be_sent(&school).await?),
            None => Ok(false),
        }
    }

    /// Whether what serves in a place may go where its courses go: a course goes on from it.
    pub(super) async fn may_be_sent(&self, school: &School) -> Result<bool, Error> {
        let Some(serving) = school.serving.clone().filter(|_| school.elsewhere) else { return Ok(true) };
        self.blocking(move |memory| memory.may_go_elsewhere(&serving.roots)).await
    }

    /// Looks, if it is time to, whether something came back or was waited for long enough. It goes on by itself.
    pub(crate) async fn look_after_aways(&self, now: Timestamp) {
        let Some(burning) = self.0.hearth.get() else { return };
        if burning.aways.next_look(now).is_none_or(|next| next > now) {
            return;
        }
        burning.aways.note_look(now);
        let Ok(held) = Arc::clone(&burning.learning).try_lock_owned() else { return };
        let arrived =
            burning.aways.all().into_iter().filter_map(|away| Some((self.arrival(burning, &away, now)?, away)));
        let arrived: Vec<(Arrival, Away)> = arrived.collect();
        if arrived.is_empty() {
            return;
        }
        let (core, burning) = (self.clone(), Arc::clone(burning));
        self.0.tasks.spawn(async move {
            let _held = held;
            for (arrival, away) in arrived {
                if core.0.stopping.is_cancelled() {
                    return;
                }
                let done = match arrival {
                    Arrival::Back { is_overdue } => core.take_in(&burning, &away, is_overdue).await,
                    Arrival::Lost => core.give_up(&burning, &away).await,
                };
                match done {
                    Ok(()) => {}
                    Err(error) if error.is_transient() => tracing::info!(%error, "what came back waits"),
                    Err(error) => {
                        tracing::warn!(persona = %away.learnt.persona, %error, "what came back could not be looked at");
                    }
                }
            }
        });
    }

    /// What is to be done about what is away; `None` if it is to be waited for.
    fn arrival(&self, burning: &Burning, away: &Away, now: Timestamp) -> Option<Arrival> {
        let is_overdue = away.learnt.at <= now && is_past(away.learnt.at, PATIENCE, now);
        if burning.aways.file(&away.name, LEARNT).exists() {
            Some(Arrival::Back { is_overdue })
        } else {
            is_overdue.then_some(Arrival::Lost)
        }
    }

    /// Examines what came back as if it had been learnt here; what could not be examined for too long is given up.
    async fn take_in(&self, burning: &Arc<Burning>, away: &Away, is_overdue: bool) -> Result<(), Error> {
        if self.is_talked_in(&away.home()).await? {
            return Ok(());
        }
        match self.examine(burning, away).await? {
            Examination::Over => drop(self.wait_no_longer(burning, away).await),
            Examination::Useless => self.give_up(burning, away).await?,
            Examination::NotNow if is_overdue && !self.0.stopping.is_cancelled() => {
                self.give_up(burning, away).await?;
            }
            Examination::NotNow => {}
        }
        Ok(())
    }

    /// Whether somebody talks in a home, or did just now.
    async fn is_talked_in(&self, home: &Home) -> Result<bool, Error> {
        let Some(stirred) = self.0.agenda.stirred(home) else { return Ok(false) };
        let rest = self.customs(&home.platform, &home.place).await?.garden.rest;
        Ok(!is_past(stirred.said, rest, self.0.clock.now()))
    }

    async fn examine(&self, burning: &Arc<Burning>, away: &Away) -> Result<Examination, Error> {
        let home = away.home();
        let model = self.model().info().name.clone();
        let (Some(courier), Some(ground)) = (burning.hearth.courier.clone(), burning.ground(&model)) else {
            return Ok(Examination::NotNow);
        };
        // Another model answers at the moment: this may be of use again.
        let chat = self.0.agenda.open_chat(&home).unwrap_or_else(|| away.chat.clone());
        let school = self.school_in(burning, &home, chat).await?;
        let Some(school) = school.filter(|_| ground == away.learnt.ground) else {
            return Ok(Examination::NotNow);
        };
        let (of, names) = (Arc::clone(burning), away.name.clone());
        let received = self
            .blocking(move |_| {
                let (course, learnt) = (of.aways.file(&names, COURSE), of.aways.file(&names, LEARNT));
                let received = courier.receive(&course, &learnt, &of.kept.draft());
                if let Err(error) = &received {
                    let of_no_use = matches!(error, Unreceived::NotOfIt(_));
                    let removed = if of_no_use { fs::remove_file(&learnt) } else { Ok(()) };
                    let removing = azera_memory::Error::io("removing what is of no use");
                    of.kept.clear_draft().and(removed).map_err(removing)?;
                }
                Ok(received)
            })
            .await?;
        let Back { lessons, older, trained } = match received {
            Ok(back) => back,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "what came back from another machine is not taken in");
                let is_lost = matches!(error, Unreceived::NoCourse(_));
                return Ok(if is_lost { Examination::Useless } else { Examination::NotNow });
            }
        };
        let learnt = Learnt { id: trained.id.to_string(), at: self.0.clock.now(), ..away.learnt.clone() };
        // Kept, and broken off before that was noted.
        if burning.kept.has(&learnt) {
            let of = Arc::clone(burning);
            self.blocking(move |_| of.kept.clear_draft().map_err(azera_memory::Error::io("removing a draft"))).await?;
            return Ok(Examination::Over);
        }
        let candidate = Candidate { trained, learnt, beside: away.beside.clone(), away: Some(away) };
        let is_settled = self.keep_or_drop(burning, &home, &school, &candidate, &lessons, &older).await?;
        Ok(if is_settled { Examination::Over } else { Examination::NotNow })
    }

    /// Gives up on what nothing of use came back of, if it is still waited for.
    async fn give_up(&self, burning: &Arc<Burning>, away: &Away) -> Result<(), Error> {
        if !burning.aways.drop_one(away) {
            return Ok(());
        }
        self.wait_no_longer(burning, away).await;
        let (number, at, exchanges) = (away.learnt.number, self.0.clock.now(), away.exchanges);
        let entry = Entry { number, at, exchanges, outcome: Outcome::Lost, learnt: None };
        self.note_lesson(burning, &away.home(), entry).await
    }

    /// Whether nothing is left of what was away.
    pub(super) async fn wait_no_longer(&self, burning: &Arc<Burning>, away: &Away) -> bool {
        burning.aways.drop_one(away);
        let (of, gone) = (Arc::clone(burning), away.clone());
        let removed = tokio::task::spawn_blocking(move || of.aways.remove_files(&gone)).await;
        let is_gone = matches!(removed, Ok(Ok(())));
        if !is_gone {
            tracing::error!(course = %away.name, "a course for another machine could not be removed");
        }
        is_gone
    }
}

/// What is to be done about what is away.
enum Arrival {
    /// It came back.
    Back {
        /// It was waited for long enough: if it is of no use now, it is given up.
        is_overdue: bool,
    },
    /// It was waited for long enough, and is not back.
    Lost,
}

/// How the examination of what came back went.
enum Examination {
    /// It was kept or dropped, or what it rests on is gone.
    Over,
    /// It can't be now: another model answers, the key is gone, it was no such file, or something failed.
    NotNow,
    /// It can't ever be.
    Useless,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use azera_types::{PersonId, PlatformId};

    use super::*;

    fn away(name: &str) -> Away {
        let learnt = Learnt {
            platform: PlatformId::new("sim").unwrap(),
            persona: PersonaId::new("azera").unwrap(),
            place: Scope::Dm(PersonId::new(name).unwrap()),
            number: 1,
            ground: "model".into(),
            id: String::new(),
            roots: Roots::default(),
            said: BTreeSet::new(),
            at: Timestamp::UNIX_EPOCH,
        };
        Away {
            name: name.into(),
            chat: ChatId::new("dm").unwrap(),
            learnt,
            holds: Roots::default(),
            beside: None,
            exchanges: 4,
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder.join(AWAY)).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_away_is_known_after_a_restart_and_what_is_half_there_goes() {
        let folder = tempfile::tempdir().unwrap();
        let aways = Aways::open(folder.path(), true).unwrap();
        for name in ["one", "two", "three"] {
            fs::write(aways.file(name, COURSE), "sealed").unwrap();
        }
        aways.keep(away("one")).unwrap();
        aways.keep(away("two")).unwrap();
        fs::remove_file(aways.file("two", COURSE)).unwrap();
        fs::write(aways.file("one", LEARNT), "sealed").unwrap();
        fs::write(aways.file("four", LEARNT), "sealed").unwrap();
        fs::write(aways.file("one", "part"), "half").unwrap();
        fs::write(folder.path().join(AWAY).join("key"), "secret").unwrap();
        let again = Aways::open(folder.path(), true).unwrap();
        assert_eq!(again.all(), [away("one")]);
        assert_eq!(names(folder.path()), ["key", "one.course", "one.json", "one.learnt"]);
        // Nothing is learnt elsewhere any more.
        let none = Aways::open(folder.path(), false).unwrap();
        assert_eq!((none.all(), names(folder.path())), (Vec::new(), vec!["key".to_owned()]));
    }
}
