use std::fs::File;
use std::io::Write;
use std::path::Path;

use azera_memory::Error;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What is known of the values on a server, across restarts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerState {
    /// Where they are.
    pub(crate) place: String,
    pub(crate) secret: String,
    /// What they are called by at present.
    pub(crate) space: String,
    /// Something changed that the server does not know of: its present space must not be believed by the next process.
    pub(crate) dirty: bool,
    /// Older spaces may still hold values there.
    pub(crate) stale: bool,
    /// The house works without it.
    pub(crate) left: bool,
}

impl ServerState {
    /// Of a place nothing is known of.
    pub(crate) fn new(place: String) -> Self {
        let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Self { place, secret, space: new_space(), dirty: false, stale: false, left: false }
    }

    /// The same with a space that nothing was ever written in.
    pub(crate) fn with_new_space(&self) -> Self {
        Self { space: new_space(), dirty: false, stale: true, left: false, ..self.clone() }
    }

    /// What stands in a file; one that cannot be understood is as good as none.
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
        // Beside it first: a crash leaves the old one or the new one.
        let beside = file.with_extension("new");
        let written = File::create(&beside).and_then(|mut new| new.write_all(&text).and_then(|()| new.sync_all()));
        written.and_then(|()| std::fs::rename(&beside, file)).map_err(Error::io(what))
    }

    /// What stays at a place that is not used any more, nobody but its operator removes.
    pub(crate) fn warn_abandoned(&self) {
        tracing::warn!(
            place = self.place,
            "working memory there is not used any more: its values, what is forgotten from now on included, stay until \
             their time is over"
        );
    }
}

fn new_space() -> String {
    Uuid::new_v4().simple().to_string()
}
