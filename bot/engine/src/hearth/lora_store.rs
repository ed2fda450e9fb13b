//! LoRA files: each LoRA, and beside it a record of what it is and rests on. They are not part of a backup: their
//! sources are, and can be trained on again.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use azera_memory::{Provenance, ReadScope};
use azera_model_api::{Lora, LoraId};
use azera_types::{MessageId, PersonaId, PlatformId, Scope, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// LoRAs kept for a persona in a place, including the one in service.
const VERSIONS: usize = 3;

/// A trained LoRA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoraRecord {
    pub(crate) platform: PlatformId,
    pub(crate) persona: PersonaId,
    pub(crate) place: Scope,
    /// Ascending for a persona in a place.
    pub(crate) number: u32,
    /// The base fingerprint of the model it fits.
    #[serde(rename = "ground")]
    pub(crate) base_fingerprint: String,
    /// The LoRA's id in hexadecimal digits.
    pub(crate) id: String,
    #[serde(rename = "roots")]
    pub(crate) provenance: Provenance,
    /// Messages of people that it was trained on, including those of the LoRA that it was trained beside.
    pub(crate) said: BTreeSet<MessageId>,
    pub(crate) at: Timestamp,
}

/// The file that training writes to.
const DRAFT: &str = "draft.part";

/// Returns true if a file has a name like those that [`LoraStore`] writes.
fn is_named_by_us(path: &Path) -> bool {
    let by_id = path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.parse::<LoraId>().is_ok());
    let kinds = ["json", "gguf", "part"];
    let has_extension = path.extension().is_some_and(|it| kinds.iter().any(|kind| it == *kind));
    by_id && has_extension || path.file_name().is_some_and(|name| name == DRAFT)
}

/// All trained LoRAs.
pub(crate) struct LoraStore {
    folder: PathBuf,
    records: RwLock<HashMap<(PersonaId, Scope), Vec<LoraRecord>>>,
}

impl LoraStore {
    /// Opens a folder. Removes every file without its counterpart: it is unfinished, half removed or damaged, so it
    /// cannot serve, and its examples can be trained on again. Files with other names belong to somebody else and stay.
    pub(crate) fn open(folder: &Path) -> std::io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut found: HashMap<String, LoraRecord> = HashMap::new();
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|it| it == "json") {
                let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<LoraRecord>(&bytes).ok());
                let whole = read.filter(|record| {
                    path.file_stem().is_some_and(|stem| *stem == *record.id) && is_whole(folder, &record.id)
                });
                if let Some(record) = whole {
                    found.insert(record.id.clone(), record);
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
                tracing::warn!(file = %path.display(), "ignoring a file that is not a LoRA of this program");
            } else if let Err(error) = fs::remove_file(&path) {
                tracing::error!(file = %path.display(), %error, "cannot remove an incomplete LoRA");
            }
        }
        let mut records: HashMap<(PersonaId, Scope), Vec<LoraRecord>> = HashMap::new();
        for record in found.into_values() {
            records.entry((record.persona.clone(), record.place.clone())).or_default().push(record);
        }
        records.values_mut().for_each(|versions| versions.sort_by_key(|it| it.number));
        Ok(Self { folder: folder.to_owned(), records: RwLock::new(records) })
    }

    /// Returns the LoRA that serves under a read scope with a model of this base fingerprint: the newest of its place,
    /// if everybody there may read all of its sources.
    pub(crate) fn serving(&self, read_scope: &ReadScope, base_fingerprint: &str) -> Option<LoraRecord> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        let versions = records.get(&(read_scope.persona().clone(), read_scope.place().clone()))?;
        let newest = versions.iter().rev().find(|it| it.base_fingerprint == base_fingerprint)?;
        let from = newest.provenance.from?;
        read_scope.allows(&newest.persona, &newest.place, &[], from).then(|| newest.clone())
    }

    /// Returns a LoRA as model requests name it.
    pub(crate) fn lora(&self, record: &LoraRecord) -> Option<Lora> {
        let id: LoraId = record.id.parse().ok()?;
        Some(Lora::new(id, file_of(&self.folder, &record.id)))
    }

    /// Returns the path of a LoRA file.
    pub(crate) fn file(&self, id: &LoraId) -> PathBuf {
        file_of(&self.folder, &id.to_string())
    }

    /// Returns the path that training writes to before the LoRA has an id.
    pub(crate) fn draft(&self) -> PathBuf {
        self.folder.join(DRAFT)
    }

    pub(crate) fn all(&self) -> Vec<LoraRecord> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        records.values().flatten().cloned().collect()
    }

    /// Returns the LoRAs of a persona in a place, oldest first.
    pub(crate) fn of(&self, persona: &PersonaId, place: &Scope) -> Vec<LoraRecord> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        records.get(&(persona.clone(), place.clone())).cloned().unwrap_or_default()
    }

    /// Adds a LoRA whose file is in place. Returns the old versions that were removed for it.
    pub(crate) fn keep(&self, record: LoraRecord) -> std::io::Result<Vec<LoraRecord>> {
        let bytes = serde_json::to_vec(&record).map_err(std::io::Error::other)?;
        File::open(file_of(&self.folder, &record.id))?.sync_all()?;
        let named = |extension: &str| self.folder.join(format!("{}.{extension}", record.id));
        azera_files::write_through(&named("part"), &named("json"), &bytes)?;
        let (persona, place) = (record.persona.clone(), record.place.clone());
        let gone = {
            let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
            let versions = records.entry((persona, place)).or_default();
            versions.retain(|it| it.id != record.id);
            versions.push(record);
            let surplus = versions.len().saturating_sub(VERSIONS);
            versions.drain(..surplus).collect::<Vec<_>>()
        };
        for older in &gone {
            if let Err(error) = self.remove_files(older) {
                tracing::error!(%error, "cannot remove an old LoRA");
            }
        }
        Ok(gone)
    }

    /// Returns the size of all LoRA files in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let sizes =
            self.all().into_iter().map(|it| fs::metadata(file_of(&self.folder, &it.id)).map_or(0, |file| file.len()));
        sizes.sum()
    }

    /// Returns the oldest LoRA that is not in service. LoRAs for another base fingerprint come first; the others are
    /// only needed for a rollback.
    pub(crate) fn oldest_spare(&self, base_fingerprint: &str) -> Option<LoraRecord> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        let spare = records.values().flat_map(|versions| {
            let serving = versions.iter().rposition(|record| record.base_fingerprint == base_fingerprint);
            let spare = versions.iter().enumerate().filter(move |(index, _)| Some(*index) != serving);
            spare.map(|(_, record)| record)
        });
        spare.min_by_key(|record| (record.base_fingerprint == base_fingerprint, record.at, record.number)).cloned()
    }

    /// Takes a LoRA out of service; its files stay.
    pub(crate) fn drop_one(&self, record: &LoraRecord) {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(versions) = records.get_mut(&(record.persona.clone(), record.place.clone())) {
            versions.retain(|it| it.id != record.id);
        }
    }

    /// Returns true if a LoRA is in the store.
    pub(crate) fn has(&self, record: &LoraRecord) -> bool {
        self.of(&record.persona, &record.place).iter().any(|it| it.id == record.id)
    }

    /// Removes the draft file, if there is one.
    pub(crate) fn clear_draft(&self) -> std::io::Result<()> {
        match fs::remove_file(self.draft()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes everything of a LoRA that was not put into service.
    pub(crate) fn remove_draft(&self, record: &LoraRecord) -> std::io::Result<()> {
        self.clear_draft()?;
        self.drop_one(record);
        self.remove_files(record)
    }

    /// Removes the files of a LoRA.
    pub(crate) fn remove_files(&self, record: &LoraRecord) -> std::io::Result<()> {
        // Without its record, the LoRA file is removed at the next start at the latest.
        for path in [self.folder.join(format!("{}.json", record.id)), file_of(&self.folder, &record.id)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns true if a LoRA file matches its checksum. A file that cannot be read now counts as whole, because it may be
/// readable later; the model checks it again.
fn is_whole(folder: &Path, id: &str) -> bool {
    let path = file_of(folder, id);
    let mut digest = Sha256::new();
    match File::open(&path).and_then(|mut file| std::io::copy(&mut file, &mut digest)) {
        Ok(_) if id.parse().is_ok_and(|id: LoraId| id == LoraId::new(digest.finalize().into())) => true,
        Ok(_) => {
            tracing::error!(file = %path.display(), "a LoRA is damaged and cannot be used; its exchanges may be trained on again");
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

    fn record(number: u32) -> LoraRecord {
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

    fn keep(lora_store: &LoraStore, record: LoraRecord) -> Vec<u32> {
        let id: LoraId = record.id.parse().unwrap();
        fs::write(lora_store.file(&id), weights(record.number)).unwrap();
        lora_store.keep(record).unwrap().iter().map(|it| it.number).collect()
    }

    #[test]
    fn the_newest_lora_of_a_place_serves_there_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let lora_store = LoraStore::open(folder.path()).unwrap();
        assert_eq!(lora_store.serving(&read_scope("ann", None), "model"), None);
        assert_eq!(keep(&lora_store, record(1)), Vec::<u32>::new());
        assert_eq!(keep(&lora_store, record(2)), Vec::<u32>::new());
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
        again.drop_one(&record(2));
        again.remove_files(&record(2)).unwrap();
        assert_eq!(serves(&again, &read_scope("ann", None)), Some(1));
        assert_eq!(keep(&again, record(3)), Vec::<u32>::new());
        assert_eq!(keep(&again, record(4)), Vec::<u32>::new());
        assert_eq!(keep(&again, record(5)), [1], "so many are kept");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
        assert_eq!(again.bytes(), 3 * weights(5).len() as u64);
        assert_eq!(again.oldest_spare("model").map(|it| it.number), Some(3));
        [3, 4].into_iter().for_each(|number| again.drop_one(&record(number)));
        assert_eq!(again.oldest_spare("model"), None, "what serves is not spare");
        assert_eq!(
            keep(&again, LoraRecord { base_fingerprint: "another model".into(), ..record(6) }),
            Vec::<u32>::new()
        );
        assert_eq!(again.oldest_spare("model").map(|it| it.number), Some(6), "it does not serve");
        assert_eq!(again.oldest_spare("another model").map(|it| it.number), Some(5), "now this one does not");
    }

    #[test]
    fn incomplete_and_damaged_loras_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let lora_store = LoraStore::open(folder.path()).unwrap();
        keep(&lora_store, record(1));
        keep(&lora_store, record(2));
        fs::remove_file(folder.path().join(format!("{}.gguf", record(1).id))).unwrap();
        fs::write(folder.path().join(format!("{}.gguf", record(3).id)), "no word of what it is").unwrap();
        fs::write(folder.path().join("draft.part"), "half").unwrap();
        fs::write(folder.path().join(format!("{}.json", record(4).id)), "{").unwrap();
        keep(&lora_store, record(5));
        fs::write(folder.path().join(format!("{}.gguf", record(5).id)), "weights damaged").unwrap();
        let lora_store = LoraStore::open(folder.path()).unwrap();
        assert_eq!(lora_store.all(), [record(2)]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
