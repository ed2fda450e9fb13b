//! The models on one machine.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{
    bundled::{BundledLora, InstalledLora},
    digest::sha256_of,
    entry::{ModelEntry, check_name},
    error::Error,
    hub::DEFAULT_HUB_ENDPOINT,
    import::{Imported, Wanted, import},
    kind::Kind,
    manifest::{Manifest, Selection, write_toml},
    progress::Progress,
    pull::pull,
    registry::Registry,
    store::{State, Store},
};

/// How often a broken hub transfer is resumed without success by default.
pub const DEFAULT_HUB_ATTEMPTS: u32 = 5;

/// Where models are stored and downloaded from.
#[derive(Clone)]
pub struct Options {
    /// The models folder.
    pub dir: PathBuf,
    /// The model hub's address.
    pub hub_endpoint: String,
    /// A token for the hub, for models that are not public.
    pub hub_token: Option<String>,
    /// How often a broken hub transfer is resumed without success before a pull fails.
    pub hub_attempts: u32,
    /// The command that runs Python, with its arguments: `["python3"]`, or `["py", "-3"]`.
    pub python: Vec<String>,
    /// The command that runs npm, with its arguments.
    pub npm: Vec<String>,
}

impl Options {
    /// Returns the default options for the models folder `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            hub_endpoint: DEFAULT_HUB_ENDPOINT.to_owned(),
            hub_token: None,
            hub_attempts: DEFAULT_HUB_ATTEMPTS,
            python: vec!["python3".to_owned()],
            npm: vec!["npm".to_owned()],
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dir, hub_endpoint, hub_token, hub_attempts, python, npm } = self;
        f.debug_struct("Options")
            .field("dir", dir)
            .field("hub_endpoint", hub_endpoint)
            .field("hub_token", &hub_token.as_ref().map(|_| "set"))
            .field("hub_attempts", hub_attempts)
            .field("python", python)
            .field("npm", npm)
            .finish()
    }
}

/// A model of the registry, with its state on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelStatus {
    /// The registry's entry.
    pub entry: ModelEntry,
    /// The state on this machine.
    pub state: State,
    /// True if this model is in use for its kind.
    pub in_use: bool,
}

impl ModelStatus {
    /// Returns the model's size on disk in bytes, and true if it is exact and not an estimate.
    pub fn size(&self) -> (u64, bool) {
        match (&self.state, self.entry.sources.first().and_then(|source| source.size())) {
            (State::Installed(manifest), _) => (manifest.size, true),
            (_, Some(size)) => (size, true),
            _ => (self.entry.download_mib << 20, false),
        }
    }
}

/// A model that is ready for use.
#[derive(Clone, Debug, PartialEq)]
pub struct InstalledModel {
    /// The registry's entry, now or at the time of the installation.
    pub entry: ModelEntry,
    /// The manifest.
    pub manifest: Manifest,
    /// The model file.
    pub path: PathBuf,
}

/// The models of one machine: the registry, and the folder of downloaded models.
///
/// Methods that are not `async` only read and write small files.
#[derive(Clone, Debug)]
pub struct Models {
    options: Options,
    store: Store,
    registry: Registry,
}

impl Models {
    /// Opens the models folder, creates it if needed, and reads the registry with people's additions.
    pub fn open(options: Options) -> Result<Self, Error> {
        let store = Store::open(&options.dir)?;
        let registry = Registry::with_file(&options.dir.join("ledger.toml"))?;
        Ok(Self { options, store, registry })
    }

    /// Returns the models folder.
    pub fn dir(&self) -> &Path {
        self.store.root()
    }

    /// Returns all known models: those of the registry, and imported ones.
    pub fn registry(&self) -> Result<Registry, Error> {
        let mut registry = self.registry.clone();
        for manifest in self.store.manifests()? {
            if registry.get(&manifest.model.name).is_none() {
                // The default of a former registry is not a default any more.
                registry.put(ModelEntry { default: false, ..manifest.model });
            }
        }
        Ok(registry)
    }

    /// Returns every known model with its state, in the registry's order.
    pub fn list(&self) -> Result<Vec<ModelStatus>, Error> {
        let registry = self.registry()?;
        let used = Kind::ALL.map(|kind| self.selected_in(&registry, kind));
        let used = used.into_iter().collect::<Result<Vec<_>, _>>()?;
        let list = registry.entries().iter().map(|entry| {
            let in_use = used.iter().flatten().any(|name| *name == entry.name);
            Ok(ModelStatus { entry: entry.clone(), state: self.store.state(&entry.name)?, in_use })
        });
        list.collect()
    }

    /// Returns the model that was chosen for `kind`, or else the registry's default. It need not be installed. `None`
    /// if there is neither. A kind that is optional has no default: the first installed model takes its place.
    pub fn selected(&self, kind: Kind) -> Result<Option<ModelEntry>, Error> {
        let registry = self.registry()?;
        let name = self.selected_in(&registry, kind)?;
        Ok(name.and_then(|name| registry.get(&name).cloned()))
    }

    fn selected_in(&self, registry: &Registry, kind: Kind) -> Result<Option<String>, Error> {
        let selection = Selection::read(&self.store.selection_file())?;
        if let Some(name) = selection.get(kind) {
            if registry.get(name).is_some_and(|entry| entry.kind == kind) {
                return Ok(Some(name.to_owned()));
            }
            tracing::warn!(name, %kind, "the chosen model is no longer known; using the default");
        }
        if kind.is_optional() {
            return self.first_installed(registry, kind);
        }
        Ok(registry.default_of(kind).map(|entry| entry.name.clone()))
    }

    fn first_installed(&self, registry: &Registry, kind: Kind) -> Result<Option<String>, Error> {
        for entry in registry.entries().iter().filter(|entry| entry.kind == kind) {
            if matches!(self.store.state(&entry.name)?, State::Installed(_)) {
                return Ok(Some(entry.name.clone()));
            }
        }
        Ok(None)
    }

    /// Returns an installed model. `None` if it is not installed or not known.
    pub fn find(&self, name: &str) -> Result<Option<InstalledModel>, Error> {
        let registry = self.registry()?;
        let Some(entry) = registry.get(name) else { return Ok(None) };
        Ok(match self.store.state(name)? {
            State::Installed(manifest) => {
                let path = self.store.model_file(name, manifest.model.kind);
                Some(InstalledModel { entry: entry.clone(), manifest: *manifest, path })
            }
            _ => None,
        })
    }

    /// Returns the LoRA that an installed model is used with. Writes it beside the model if needed.
    pub fn lora(&self, installed: &InstalledModel) -> Result<Option<InstalledLora>, Error> {
        self.shipped(installed, installed.entry.lora.as_ref(), "adapter.gguf")
    }

    /// Returns the LoRA that is added for extracting JSON. Writes it beside the model if needed.
    pub fn reading_lora(&self, installed: &InstalledModel) -> Result<Option<InstalledLora>, Error> {
        self.shipped(installed, installed.entry.reading_lora.as_ref(), "reading-adapter.gguf")
    }

    fn shipped(
        &self,
        installed: &InstalledModel,
        shipped: Option<&BundledLora>,
        name: &str,
    ) -> Result<Option<InstalledLora>, Error> {
        let folder = installed.path.parent().unwrap_or(self.store.root());
        shipped.map_or(Ok(None), |lora| lora.install(&folder.join(name)))
    }

    /// Downloads and installs a model, and resumes an earlier pull. A model that is installed and current stays as it
    /// is. `installed_at` is the caller's time, for the manifest.
    ///
    /// If another process pulls the same model, this waits for it. The future may be dropped at any moment: the next
    /// pull reuses what has arrived from a hub.
    pub async fn pull(&self, name: &str, installed_at: &str, progress: Progress<'_>) -> Result<Manifest, Error> {
        let registry = self.registry()?;
        let entry = registry.require(name)?;
        let _lock = self.store.lock(name, progress).await?;
        if let State::Installed(manifest) = self.store.state(name)?
            && is_current(entry, &manifest)
        {
            return Ok(*manifest);
        }
        pull(&self.options, &self.store, entry, installed_at, progress).await
    }

    /// Installs a GGUF file under a name, or a folder with a BERT model, which is converted. Without a kind, the file's
    /// architecture decides. The name may be that of a registry model that is not installed. If the registry pins a
    /// SHA-256 for it, the file must have it.
    pub async fn import(
        &self,
        file: &Path,
        name: &str,
        kind: Option<Kind>,
        installed_at: &str,
        progress: Progress<'_>,
    ) -> Result<Imported, Error> {
        check_name(name)?;
        let _lock = self.store.try_lock(name)?;
        let known = self.registry.get(name);
        match self.store.state(name)? {
            State::Available | State::Partial { .. } => {}
            State::Installed(_) | State::Damaged { .. } => return Err(Error::NameTaken { name: name.to_owned() }),
        }
        import(&self.store, file, &Wanted { name, kind, known, installed_at }, progress).await
    }

    /// Makes an installed model the one in use for its kind, from the next start on.
    pub fn select(&self, name: &str) -> Result<ModelEntry, Error> {
        let entry = self.registry()?.require(name)?.clone();
        if self.find(name)?.is_none() {
            return Err(Error::NotInstalled { name: name.to_owned() });
        }
        let path = self.store.selection_file();
        let mut selection = Selection::read(&path)?;
        selection.set(entry.kind, Some(entry.name.clone()));
        write_toml(&path, &selection)?;
        Ok(entry)
    }

    /// Deletes a model's file and the rest of unfinished pulls. Returns the freed bytes. Without `force`, a model in
    /// use is not removed; with it, the registry's default is in use afterwards.
    pub fn remove(&self, name: &str, force: bool) -> Result<u64, Error> {
        let registry = self.registry()?;
        // A folder with an unreadable manifest can still be removed by its name.
        check_name(name)?;
        let state = self.store.state(name)?;
        if state == State::Available {
            registry.require(name)?;
            return Err(Error::NotInstalled { name: name.to_owned() });
        }
        let _lock = self.store.try_lock(name)?;
        let path = self.store.selection_file();
        let mut selection = Selection::read(&path)?;
        for kind in Kind::ALL {
            let in_use = self.selected_in(&registry, kind)?.is_some_and(|selected| selected == name);
            if in_use && !force && matches!(state, State::Installed(_)) {
                return Err(Error::InUse { name: name.to_owned(), kind });
            }
            if selection.get(kind) == Some(name) {
                selection.set(kind, None);
                write_toml(&path, &selection)?;
            }
        }
        self.store.remove(name)
    }

    /// Returns true if somebody chose the model of this kind on this machine.
    pub fn is_chosen(&self, kind: Kind) -> Result<bool, Error> {
        Ok(Selection::read(&self.store.selection_file())?.get(kind).is_some())
    }

    /// Returns true if the model hub answers within a few seconds and has the model's first file.
    pub async fn hub_has(&self, entry: &ModelEntry) -> bool {
        crate::pull::hub_has(&self.options, entry).await
    }

    /// Reads an installed model's file again and compares it with the manifest.
    pub async fn verify(&self, name: &str, progress: Progress<'_>) -> Result<Manifest, Error> {
        self.registry()?.require(name)?;
        let damaged = |reason: String| Error::Damaged { name: name.to_owned(), reason };
        let manifest = match self.store.state(name)? {
            State::Installed(manifest) => *manifest,
            State::Damaged { reason } => return Err(damaged(reason)),
            State::Available | State::Partial { .. } => return Err(Error::NotInstalled { name: name.to_owned() }),
        };
        let (sha256, _) = sha256_of(&self.store.model_file(name, manifest.model.kind), progress).await?;
        if sha256 == manifest.sha256 {
            return Ok(manifest);
        }
        Err(damaged(format!("its SHA-256 is {sha256} instead of {}", manifest.sha256)))
    }
}

/// Returns true if an installed model is still the one that the registry names. If the registry pins other bytes, the
/// model must be pulled again.
fn is_current(entry: &ModelEntry, manifest: &Manifest) -> bool {
    entry.sources.is_empty()
        || entry.sources.iter().any(|source| source.sha256().is_none_or(|sha256| sha256 == manifest.sha256))
}
