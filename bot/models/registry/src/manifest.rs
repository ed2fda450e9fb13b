//! The small files beside models: what was installed, and which models are in use.

use std::{fs, io::Write as _, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    entry::ModelEntry,
    error::{Error, IoContext},
    kind::Kind,
    registry::read_text,
};

/// The source of the SHA-256 that the installed file was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckedAgainst {
    /// The registry.
    #[serde(rename = "ledger")]
    Registry,
    /// The hub, which sent it with the file.
    Hub,
    /// None: a person's own file, or a hub file without a SHA-256.
    Nothing,
}

/// The facts about an installed model, stored beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The source, in words.
    pub source: String,
    /// SHA-256 of the file, in lower-case hexadecimal.
    pub sha256: String,
    /// The file's size, in bytes.
    pub size: u64,
    /// The time of the installation, by the caller's clock.
    pub installed_at: String,
    /// The source of the SHA-256.
    pub checked_against: CheckedAgainst,
    /// The model's entry at that time. A registry entry with the same name takes precedence.
    pub model: ModelEntry,
}

impl Manifest {
    /// Reads the manifest at `path`; `None` if it does not exist.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let Some(manifest) = read_toml::<Self>(path)? else { return Ok(None) };
        manifest.model.validate().map_err(|reason| Error::Registry { file: path.display().to_string(), reason })?;
        Ok(Some(manifest))
    }
}

/// The chosen models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selection {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speech: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    voice: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vad: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reranker: Option<String>,
}

impl Selection {
    /// Reads the selection at `path`. Without a file, nothing is chosen.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        Ok(read_toml(path)?.unwrap_or_default())
    }

    /// Returns the model that was chosen for `kind`.
    pub(crate) fn get(&self, kind: Kind) -> Option<&str> {
        match kind {
            Kind::Chat => self.chat.as_deref(),
            Kind::Embedding => self.embedding.as_deref(),
            Kind::Speech => self.speech.as_deref(),
            Kind::Voice => self.voice.as_deref(),
            Kind::Vad => self.vad.as_deref(),
            Kind::Reranker => self.reranker.as_deref(),
        }
    }

    /// Chooses a model for `kind`, or resets it to the registry's default.
    pub(crate) fn set(&mut self, kind: Kind, name: Option<String>) {
        match kind {
            Kind::Chat => self.chat = name,
            Kind::Embedding => self.embedding = name,
            Kind::Speech => self.speech = name,
            Kind::Voice => self.voice = name,
            Kind::Vad => self.vad = name,
            Kind::Reranker => self.reranker = name,
        }
    }
}

/// Reads a TOML file of at most [`crate::MAX_REGISTRY_BYTES`]; `None` if it does not exist.
pub(crate) fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    toml::from_str(&text).map(Some).map_err(|error| Error::Registry {
        file: path.display().to_string(),
        reason: error.to_string().trim().to_owned(),
    })
}

/// Writes a TOML file atomically: to a temporary file, synced to disk, then renamed.
pub(crate) fn write_toml<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let text = toml::to_string(value)
        .map_err(|error| Error::Registry { file: path.display().to_string(), reason: error.to_string() })?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = readable_by_others().tempfile_in(folder).at(folder)?;
    file.write_all(text.as_bytes()).at(path)?;
    file.as_file().sync_all().at(path)?;
    file.persist(path).map_err(|error| Error::Io { path: path.to_owned(), source: error.error })?;
    sync_folder(folder)
}

/// Creates temporary files that others may read as far as the umask allows, like any other new file.
fn readable_by_others() -> tempfile::Builder<'static, 'static> {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

/// Syncs a folder's names to disk. Only Unix can do that, and needs to.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    if cfg!(unix) { fs::File::open(folder).and_then(|folder| folder.sync_all()).at(folder) } else { Ok(()) }
}
