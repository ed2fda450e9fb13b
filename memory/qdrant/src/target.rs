use std::fs::File;
use std::io::Write;
use std::path::Path;

use azera_memory::Error;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The file that describes the mirrored server.
pub(crate) const TARGET_FILE: &str = "about.json";

/// The server and collection that the log belongs to. A new address, vector length or secret requires a refill.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MirrorTarget {
    pub(crate) url: String,
    pub(crate) collection: String,
    pub(crate) dimension: usize,
    pub(crate) secret: String,
    /// True if the installation has worked without the server since, so that the server lacks changes that the log does
    /// not list.
    #[serde(default)]
    pub(crate) left: bool,
}

impl MirrorTarget {
    /// Returns true if both mean the same collection.
    pub(crate) fn is_of_the_place_of(&self, other: &Self) -> bool {
        (&self.url, &self.collection) == (&other.url, &other.collection)
    }

    /// Warns that a collection that is no longer configured stays on its server until the operator removes it.
    pub(crate) fn warn_abandoned(&self) {
        let Self { url, collection, .. } = self;
        tracing::warn!(
            url,
            collection,
            "this collection is no longer used; its points stay on the server, even if they are forgotten from now on: \
             remove the collection there if you do not need it again"
        );
    }

    /// Reads the file; an unreadable one counts as missing.
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
        let temporary = file.with_extension("new");
        let written = File::create(&temporary).and_then(|mut new| new.write_all(&text).and_then(|()| new.sync_all()));
        written.and_then(|()| std::fs::rename(&temporary, file)).map_err(Error::io(what))
    }
}

/// Returns a secret with 244 random bits.
pub(crate) fn new_secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
