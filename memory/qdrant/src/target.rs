use std::fs::File;
use std::io::Write;
use std::path::Path;

use azera_memory::Error;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The file that says what the journal is about.
pub(crate) const TARGET_FILE: &str = "about.json";

/// What the server was filled for. Another address, length of vectors or secret means filling it anew.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MirrorTarget {
    pub(crate) url: String,
    pub(crate) collection: String,
    pub(crate) dimension: usize,
    pub(crate) secret: String,
    /// The house has worked without the server since, which so lacks changes that the journal does not know of.
    #[serde(default)]
    pub(crate) left: bool,
}

impl MirrorTarget {
    /// Whether both mean the same collection.
    pub(crate) fn is_of_the_place_of(&self, other: &Self) -> bool {
        (&self.url, &self.collection) == (&other.url, &other.collection)
    }

    /// What stays on a server that is no longer named, nobody removes but its operator.
    pub(crate) fn warn_abandoned(&self) {
        let Self { url, collection, .. } = self;
        tracing::warn!(
            url,
            collection,
            "this collection is not used any more and stays on its server as it is, what is forgotten from now on included: \
             remove it there if you will not use it again"
        );
    }

    /// What stands in a file; one that cannot be understood is as good as none.
    pub(crate) fn read(file: &Path) -> Result<Option<Self>, Error> {
        match std::fs::read(file) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("reading what the vector index's server holds")(error)),
        }
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), Error> {
        let what = "noting what the vector index's server holds";
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::io(what)(error.into()))?;
        let beside = file.with_extension("new");
        let written = File::create(&beside).and_then(|mut new| new.write_all(&text).and_then(|()| new.sync_all()));
        written.and_then(|()| std::fs::rename(&beside, file)).map_err(Error::io(what))
    }
}

/// 244 bits of chance.
pub(crate) fn new_secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
