//! Courses that are learnt on another machine. A course lies sealed in a folder until whoever runs this has carried it off and laid
//! what came of it beside it; who learns there, and how it is sealed, is another's matter ([`Courier`]).
//!
//! What is away rests on what it was made of, like what is kept: it goes with it, and what comes back later is not taken in.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use azera_memory::Roots;
use azera_types::{PersonaId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use super::choose::School;
use super::kept::Learnt;
use super::serve::{Entry, Outcome};
use super::{Burning, Course, LearnError, Lesson, Trained};
use crate::azera::Azera;
use crate::error::Error;
use crate::gardener::Home;
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
    /// [`io::ErrorKind::InvalidData`] if it is not what that course becomes; anything else if a file cannot be read or written.
    fn receive(&self, course: &Path, learnt: &Path, to: &Path) -> io::Result<Back>;
}

/// A course that is away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Away {
    /// What its files are called: it tells nothing.
    name: String,
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
}

impl Aways {
    /// Reads a folder. What is no pair of a course and its record is removed; and all there is, if nothing is learnt elsewhere.
    pub(crate) fn open(folder: &Path, wanted: bool) -> io::Result<Self> {
        let (folder, mut held) = (folder.join(AWAY), Vec::<Away>::new());
        if wanted {
            fs::create_dir_all(&folder)?;
        } else if !folder.exists() {
            return Ok(Self { folder, held: RwLock::default() });
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
            if ends(path, "part") || ours && !known {
                fs::remove_file(path)?;
            }
        }
        Ok(Self { folder, held: RwLock::new(held) })
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

    /// Waits for one no more; its files stay.
    pub(super) fn drop_one(&self, away: &Away) {
        self.held.write().unwrap_or_else(PoisonError::into_inner).retain(|it| it.name != away.name);
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
        home: &Home,
        courier: Arc<dyn Courier>,
        course: Course,
        (learnt, holds, beside): (Learnt, Roots, Option<Learnt>),
    ) -> Result<(), Error> {
        let (number, at, exchanges) = (learnt.number, learnt.at, course.lessons.len());
        let away = Away { name: format!("{:08x}{:08x}", any_seed(), any_seed()), learnt, holds, beside, exchanges };
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
        let outcome = match sent {
            Ok(true) => Outcome::Away,
            // Something that it rests on went meanwhile.
            Ok(false) => return Ok(()),
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "a course for another machine could not be laid out");
                Outcome::Failed
            }
        };
        if outcome == Outcome::Away {
            tracing::info!(persona = %home.persona, exchanges, "a course waits to be learnt elsewhere: azera hearth pack");
        }
        self.note_lesson(burning, home, Entry { number, at, exchanges, outcome, learnt: None }).await
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

    /// How it stands with what a home has away; `None` if that is nothing.
    pub(super) fn back_or_waited_for(&self, burning: &Burning, home: &Home, now: Timestamp) -> Option<Arrival> {
        let away = burning.aways.of(&home.persona, &home.place)?;
        let waited = now.duration_since(away.learnt.at);
        let is_overdue = waited.is_positive() && waited.unsigned_abs() >= PATIENCE;
        Some(match burning.aways.file(&away.name, LEARNT).exists() {
            true => Arrival::Back { away, is_overdue },
            false if is_overdue => Arrival::Lost(away),
            false => Arrival::Awaited,
        })
    }

    /// Examines what came back as if it had been learnt here; what could not be examined for too long is given up.
    pub(super) async fn take_in(
        &self,
        burning: &Arc<Burning>,
        home: &Home,
        away: Away,
        is_overdue: bool,
    ) -> Result<(), Error> {
        match self.examine(burning, home, &away).await? {
            Examination::Over => drop(self.wait_no_longer(burning, &away).await),
            Examination::Impossible if is_overdue => self.give_up(burning, home, away).await?,
            Examination::Impossible | Examination::BrokenOff => {}
        }
        Ok(())
    }

    async fn examine(&self, burning: &Arc<Burning>, home: &Home, away: &Away) -> Result<Examination, Error> {
        let model = self.model().info().name.clone();
        let (Some(courier), Some(ground)) = (burning.hearth.courier.clone(), burning.ground(&model)) else {
            return Ok(Examination::Impossible);
        };
        // Another model answers at the moment: this may be of use again.
        let Some(school) = self.school(burning, home).await?.filter(|_| ground == away.learnt.ground) else {
            return Ok(Examination::Impossible);
        };
        let (of, names) = (Arc::clone(burning), away.name.clone());
        let received = self
            .blocking(move |_| {
                let (course, learnt) = (of.aways.file(&names, COURSE), of.aways.file(&names, LEARNT));
                let received = courier.receive(&course, &learnt, &of.kept.draft());
                if let Err(error) = &received {
                    let is_no_such = error.kind() == io::ErrorKind::InvalidData;
                    let removed = if is_no_such { fs::remove_file(&learnt) } else { Ok(()) };
                    of.kept
                        .clear_draft()
                        .and(removed)
                        .map_err(azera_memory::Error::io("removing what is of no use"))?;
                }
                Ok(received)
            })
            .await?;
        let Back { lessons, older, trained } = match received {
            Ok(back) => back,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "what came back from another machine is not taken in");
                return Ok(Examination::Impossible);
            }
        };
        let learnt = Learnt { id: trained.id.to_string(), at: self.0.clock.now(), ..away.learnt.clone() };
        // Kept, and broken off before that was noted.
        if burning.kept.has(&learnt) {
            let of = Arc::clone(burning);
            self.blocking(move |_| of.kept.clear_draft().map_err(azera_memory::Error::io("removing a draft"))).await?;
            return Ok(Examination::Over);
        }
        let trial = (&trained, &learnt, away.beside.clone());
        let is_over = self.keep_or_drop(burning, home, &school, trial, &lessons, &older).await?;
        Ok(if is_over { Examination::Over } else { Examination::BrokenOff })
    }

    /// Gives up on what nothing of use came back of.
    pub(super) async fn give_up(&self, burning: &Arc<Burning>, home: &Home, away: Away) -> Result<(), Error> {
        self.wait_no_longer(burning, &away).await;
        let Away { learnt, exchanges, .. } = away;
        let (number, at, outcome) = (learnt.number, self.0.clock.now(), Outcome::Lost);
        self.note_lesson(burning, home, Entry { number, at, exchanges, outcome, learnt: None }).await
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

/// How it stands with what is away.
pub(super) enum Arrival {
    /// It is not back yet.
    Awaited,
    Back {
        away: Away,
        /// It was waited for long enough: if it is of no use now, it is given up.
        is_overdue: bool,
    },
    /// It was waited for long enough, and is not back.
    Lost(Away),
}

/// How the examination of what came back went.
enum Examination {
    /// It was kept or dropped.
    Over,
    /// Azera was stopped meanwhile: it begins again.
    BrokenOff,
    /// Now it can't be: another model answers, the key is gone, or it is no such file.
    Impossible,
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
        Away { name: name.into(), learnt, holds: Roots::default(), beside: None, exchanges: 4 }
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
