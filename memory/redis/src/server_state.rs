use std::fs::File;
use std::io::Write;
use std::path::Path;

use azera_memory::Error;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// State of the values on a server, stored across restarts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerState {
    /// The server and prefix.
    pub(crate) place: String,
    pub(crate) secret: String,
    /// The current space.
    pub(crate) space: String,
    /// True if a change is missing on the server, so that the next process must not use its current space.
    pub(crate) dirty: bool,
    /// True if older spaces may still hold values there.
    pub(crate) stale: bool,
    /// True if the installation works without the server.
    pub(crate) left: bool,
}

impl ServerState {
    /// Returns the state of an unknown server.
    pub(crate) fn new(place: String) -> Self {
        let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Self { place, secret, space: new_space(), dirty: false, stale: false, left: false }
    }

    /// Returns this state with a new space.
    pub(crate) fn with_new_space(&self) -> Self {
        Self { space: new_space(), dirty: false, stale: true, left: false, ..self.clone() }
    }

    /// Reads the file; an unreadable one counts as missing.
    pub(crate) fn read(file: &Path) -> Result<Option<Self>, Error> {
        match std::fs::read(file) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("reading what the server of working memory holds")(error)),
        }
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), Error> {
        let what = "noting what the server of working memory holds";
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::io(what)(error.into()))?;
        // The new file is written next to the old one, so that a crash leaves one of them.
        let temporary = file.with_extension("new");
        let written = File::create(&temporary).and_then(|mut new| new.write_all(&text).and_then(|()| new.sync_all()));
        written.and_then(|()| std::fs::rename(&temporary, file)).map_err(Error::io(what))
    }

    /// Warns that values at a place that is no longer used stay there until they expire.
    pub(crate) fn warn_abandoned(&self) {
        tracing::warn!(
            place = self.place,
            "this place is no longer used for working memory; its values stay there until they expire, even if they \
             are forgotten from now on"
        );
    }
}

fn new_space() -> String {
    Uuid::new_v4().simple().to_string()
}
