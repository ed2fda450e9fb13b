//! What was learnt, as files: an adapter, and beside it what it is and rests on. They are no part of a backup: what they rest on
//! is, and can be learnt again.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use azera_memory::{Provenance, ReadScope};
use azera_model_api::{Lora, LoraId};
use azera_types::{MessageId, PersonaId, PlatformId, Scope, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Adapters of a home that are kept, the one that serves included.
const VERSIONS: usize = 3;

/// An adapter that was learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoraRecord {
    pub(crate) platform: PlatformId,
    pub(crate) persona: PersonaId,
    pub(crate) place: Scope,
    /// Ascending, for a persona in a place.
    pub(crate) number: u32,
    /// What it is made for.
    #[serde(rename = "ground")]
    pub(crate) base_fingerprint: String,
    /// Its name, in hexadecimal digits.
    pub(crate) id: String,
    #[serde(rename = "roots")]
    pub(crate) provenance: Provenance,
    /// What people said in the exchanges that it learnt, with all that it was learnt beside.
    pub(crate) said: BTreeSet<MessageId>,
    pub(crate) at: Timestamp,
}

/// The file that something is learnt into.
const DRAFT: &str = "draft.part";

/// Whether a file is named as those that [`LoraStore`] writes.
fn is_named_by_us(path: &Path) -> bool {
    let by_id = path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.parse::<LoraId>().is_ok());
    let kinds = ["json", "gguf", "part"];
    let of_kind = path.extension().is_some_and(|it| kinds.iter().any(|kind| it == *kind));
    by_id && of_kind || path.file_name().is_some_and(|name| name == DRAFT)
}

/// All there are.
pub(crate) struct LoraStore {
    folder: PathBuf,
    held: RwLock<HashMap<(PersonaId, Scope), Vec<LoraRecord>>>,
}

impl LoraStore {
    /// Reads a folder. What is no whole pair of files is removed: it was not finished, half removed or damaged since, so nothing could
    /// be answered with it, and what it learnt can be learnt again. What bears another name is somebody else's and stays.
    pub(crate) fn open(folder: &Path) -> std::io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut found: HashMap<String, LoraRecord> = HashMap::new();
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|it| it == "json") {
                let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<LoraRecord>(&bytes).ok());
                let whole = read.filter(|learnt| {
                    path.file_stem().is_some_and(|stem| *stem == *learnt.id) && is_whole(folder, &learnt.id)
                });
                if let Some(learnt) = whole {
                    found.insert(learnt.id.clone(), learnt);
                }
            }
        }
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            let known = path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| found.contains_key(stem));
            if !path.is_file() || known && path.extension().is_some_and(|it| it == "json" || it == "gguf") {
                continue;
            }
            if !is_named_by_us(&path) {
                tracing::warn!(file = %path.display(), "this is nothing that was learnt; it stays, and does not serve");
            } else if let Err(error) = fs::remove_file(&path) {
                tracing::error!(file = %path.display(), %error, "what is left of something learnt could not be removed");
            }
        }
        let mut held: HashMap<(PersonaId, Scope), Vec<LoraRecord>> = HashMap::new();
        for learnt in found.into_values() {
            held.entry((learnt.persona.clone(), learnt.place.clone())).or_default().push(learnt);
        }
        held.values_mut().for_each(|versions| versions.sort_by_key(|it| it.number));
        Ok(Self { folder: folder.to_owned(), held: RwLock::new(held) })
    }

    /// The one that serves a persona under a right, with a model of this ground: the newest of its place, if everybody there may read
    /// all that it rests on.
    pub(crate) fn serving(&self, read_scope: &ReadScope, base_fingerprint: &str) -> Option<LoraRecord> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let versions = held.get(&(read_scope.persona().clone(), read_scope.place().clone()))?;
        let newest = versions.iter().rev().find(|it| it.base_fingerprint == base_fingerprint)?;
        let from = newest.provenance.from?;
        read_scope.allows(&newest.persona, &newest.place, &[], from).then(|| newest.clone())
    }

    /// As a request names it.
    pub(crate) fn lora(&self, learnt: &LoraRecord) -> Option<Lora> {
        let id: LoraId = learnt.id.parse().ok()?;
        Some(Lora::new(id, file_of(&self.folder, &learnt.id)))
    }

    /// The file of an adapter.
    pub(crate) fn file(&self, id: &LoraId) -> PathBuf {
        file_of(&self.folder, &id.to_string())
    }

    /// A file to be written to, of no adapter yet.
    pub(crate) fn draft(&self) -> PathBuf {
        self.folder.join(DRAFT)
    }

    /// All there are.
    pub(crate) fn all(&self) -> Vec<LoraRecord> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.values().flatten().cloned().collect()
    }

    /// Of a persona in a place, oldest first.
    pub(crate) fn of(&self, persona: &PersonaId, place: &Scope) -> Vec<LoraRecord> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.get(&(persona.clone(), place.clone())).cloned().unwrap_or_default()
    }

    /// Takes one in whose file is in its place; gives those that made way for it.
    pub(crate) fn keep(&self, learnt: LoraRecord) -> std::io::Result<Vec<LoraRecord>> {
        let bytes = serde_json::to_vec(&learnt).map_err(std::io::Error::other)?;
        File::open(file_of(&self.folder, &learnt.id))?.sync_all()?;
        let staged = self.folder.join(format!("{}.part", learnt.id));
        let mut file = File::create(&staged)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&staged, self.folder.join(format!("{}.json", learnt.id)))?;
        let (persona, place) = (learnt.persona.clone(), learnt.place.clone());
        let gone = {
            let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
            let versions = held.entry((persona, place)).or_default();
            versions.retain(|it| it.id != learnt.id);
            versions.push(learnt);
            let surplus = versions.len().saturating_sub(VERSIONS);
            versions.drain(..surplus).collect::<Vec<_>>()
        };
        for older in &gone {
            if let Err(error) = self.remove_files(older) {
                tracing::error!(%error, "what made way for something learnt could not be removed");
            }
        }
        Ok(gone)
    }

    /// Bytes that all adapters take.
    pub(crate) fn bytes(&self) -> u64 {
        let sizes =
            self.all().into_iter().map(|it| fs::metadata(file_of(&self.folder, &it.id)).map_or(0, |file| file.len()));
        sizes.sum()
    }

    /// The oldest one that does not serve: what nothing would miss but a rollback, and before that what was learnt on another ground.
    pub(crate) fn oldest_spare(&self, base_fingerprint: &str) -> Option<LoraRecord> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let spare = held.values().flat_map(|versions| {
            let serving = versions.iter().rposition(|learnt| learnt.base_fingerprint == base_fingerprint);
            let spare = versions.iter().enumerate().filter(move |(index, _)| Some(*index) != serving);
            spare.map(|(_, learnt)| learnt)
        });
        spare.min_by_key(|learnt| (learnt.base_fingerprint == base_fingerprint, learnt.at, learnt.number)).cloned()
    }

    /// Takes one out of what serves; its files stay.
    pub(crate) fn drop_one(&self, learnt: &LoraRecord) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(versions) = held.get_mut(&(learnt.persona.clone(), learnt.place.clone())) {
            versions.retain(|it| it.id != learnt.id);
        }
    }

    /// Whether one is kept.
    pub(crate) fn has(&self, learnt: &LoraRecord) -> bool {
        self.of(&learnt.persona, &learnt.place).iter().any(|it| it.id == learnt.id)
    }

    /// Removes what was written of no adapter yet, if anything was.
    pub(crate) fn clear_draft(&self) -> std::io::Result<()> {
        match fs::remove_file(self.draft()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes what is left of one that was not kept.
    pub(crate) fn remove_draft(&self, learnt: &LoraRecord) -> std::io::Result<()> {
        self.clear_draft()?;
        self.drop_one(learnt);
        self.remove_files(learnt)
    }

    /// Removes what one left on disk.
    pub(crate) fn remove_files(&self, learnt: &LoraRecord) -> std::io::Result<()> {
        // Without what it is, the adapter goes at the next start at the latest.
        for path in [self.folder.join(format!("{}.json", learnt.id)), file_of(&self.folder, &learnt.id)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether an adapter's file holds what its name says. One that cannot be read now may be read later: the engine looks again.
fn is_whole(folder: &Path, id: &str) -> bool {
    let path = file_of(folder, id);
    let mut digest = Sha256::new();
    match File::open(&path).and_then(|mut file| std::io::copy(&mut file, &mut digest)) {
        Ok(_) if id.parse().is_ok_and(|id: LoraId| id == LoraId::new(digest.finalize().into())) => true,
        Ok(_) => {
            tracing::error!(file = %path.display(), "this is damaged: what was learnt there is lost, and may be learnt again");
            false
        }
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

fn file_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.gguf"))
}

#[cfg(test)]
mod tests {
    use azera_types::{ChatId, PersonId, Place, PlaceKind, ReadableScopes};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn weights(number: u32) -> String {
        format!("weights {number}")
    }

    fn learnt(number: u32) -> LoraRecord {
        LoraRecord {
            platform: PlatformId::new("sim").unwrap(),
            persona: PersonaId::new("azera").unwrap(),
            place: Scope::Dm(PersonId::new("ann").unwrap()),
            number,
            base_fingerprint: "model".into(),
            id: LoraId::new(Sha256::digest(weights(number)).into()).to_string(),
            provenance: Provenance { from: Some(at(100)), ..Provenance::default() },
            said: BTreeSet::new(),
            at: at(200),
        }
    }

    fn read_scope(of: &str, since: Option<Timestamp>) -> ReadScope {
        let kind = PlaceKind::Dm(PersonId::new(of).unwrap());
        let place = Place { chat: ChatId::new("c").unwrap(), kind, since };
        ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default())
    }

    fn keep(lora_store: &LoraStore, learnt: LoraRecord) -> Vec<u32> {
        let id: LoraId = learnt.id.parse().unwrap();
        fs::write(lora_store.file(&id), weights(learnt.number)).unwrap();
        lora_store.keep(learnt).unwrap().iter().map(|it| it.number).collect()
    }

    #[test]
    fn the_newest_of_a_place_serves_there_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let lora_store = LoraStore::open(folder.path()).unwrap();
        assert_eq!(lora_store.serving(&read_scope("ann", None), "model"), None);
        assert_eq!(keep(&lora_store, learnt(1)), Vec::<u32>::new());
        assert_eq!(keep(&lora_store, learnt(2)), Vec::<u32>::new());
        let serves = |lora_store: &LoraStore, read_scope: &ReadScope| {
            lora_store.serving(read_scope, "model").map(|it| it.number)
        };
        assert_eq!(serves(&lora_store, &read_scope("ann", None)), Some(2));
        assert_eq!(serves(&lora_store, &read_scope("ann", Some(at(100)))), Some(2));
        assert_eq!(serves(&lora_store, &read_scope("ann", Some(at(101)))), None, "not all of it may be read");
        assert_eq!(serves(&lora_store, &read_scope("bob", None)), None);
        assert_eq!(lora_store.serving(&read_scope("ann", None), "another model"), None);
        let again = LoraStore::open(folder.path()).unwrap();
        assert_eq!(serves(&again, &read_scope("ann", None)), Some(2), "after a restart, too");
        again.drop_one(&learnt(2));
        again.remove_files(&learnt(2)).unwrap();
        assert_eq!(serves(&again, &read_scope("ann", None)), Some(1));
        assert_eq!(keep(&again, learnt(3)), Vec::<u32>::new());
        assert_eq!(keep(&again, learnt(4)), Vec::<u32>::new());
        assert_eq!(keep(&again, learnt(5)), [1], "so many are kept");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
        assert_eq!(again.bytes(), 3 * weights(5).len() as u64);
        assert_eq!(again.oldest_spare("model").map(|it| it.number), Some(3));
        [3, 4].into_iter().for_each(|number| again.drop_one(&learnt(number)));
        assert_eq!(again.oldest_spare("model"), None, "what serves is not spare");
        assert_eq!(
            keep(&again, LoraRecord { base_fingerprint: "another model".into(), ..learnt(6) }),
            Vec::<u32>::new()
        );
        assert_eq!(again.oldest_spare("model").map(|it| it.number), Some(6), "it does not serve");
        assert_eq!(again.oldest_spare("another model").map(|it| it.number), Some(5), "now this one does not");
    }

    #[test]
    fn what_is_not_whole_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let lora_store = LoraStore::open(folder.path()).unwrap();
        keep(&lora_store, learnt(1));
        keep(&lora_store, learnt(2));
        fs::remove_file(folder.path().join(format!("{}.gguf", learnt(1).id))).unwrap();
        fs::write(folder.path().join(format!("{}.gguf", learnt(3).id)), "no word of what it is").unwrap();
        fs::write(folder.path().join("draft.part"), "half").unwrap();
        fs::write(folder.path().join(format!("{}.json", learnt(4).id)), "{").unwrap();
        keep(&lora_store, learnt(5));
        fs::write(folder.path().join(format!("{}.gguf", learnt(5).id)), "weights damaged").unwrap();
        let lora_store = LoraStore::open(folder.path()).unwrap();
        assert_eq!(lora_store.all(), [learnt(2)]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
