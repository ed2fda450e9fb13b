//! The engine as one value: memory, model, embedder, clock, and the attached platforms.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use azera_adapter::Platform;
use azera_affect::MindParams;
use azera_config::Tuning;
use azera_memory::{Memory, PersonaRow, ReadScope, persona_file};
use azera_model_api::{ChatModel, Embedder, SessionKey};
use azera_personas::{CardData, Lorebook, Persona};
use azera_types::{ChatId, Clock, MessageId, PersonId, PersonaId, Place, PlatformId, RealmId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::background::Agenda;
use crate::classifiers::LazyClassifiers;
use crate::commands::Uploads;
use crate::config::ChatConfig;
use crate::error::Error;
use crate::foreground_gate::ForegroundGate;
use crate::hearth::HearthState;
use crate::indexing::Bound;
use crate::jobs::Scheduled;
use crate::links::LinkCodes;
use crate::minds::Minds;
use crate::model_catalog::ModelCatalog;
use crate::overrides::OverrideCache;
use crate::queue::Queues;
use crate::surprise::Exchanges;

/// The parts that an engine is built from.
pub struct EngineParts {
    /// The memory.
    pub memory: Arc<Memory>,
    /// The chat model that answers.
    pub model: Arc<dyn ChatModel>,
    /// The embedding model.
    pub embedder: Arc<dyn Embedder>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The other available chat models.
    pub models: Arc<dyn ModelCatalog>,
    /// Parameters of minds, where no place overrides them.
    pub params: Arc<MindParams>,
    /// Settings.
    pub config: ChatConfig,
}

/// The engine. Clones are cheap and share one engine.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<EngineInner>);

pub(crate) struct EngineInner {
    pub(crate) memory: Arc<Memory>,
    pub(crate) model: RwLock<Arc<dyn ChatModel>>,
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) models: Arc<dyn ModelCatalog>,
    pub(crate) config: ChatConfig,
    pub(crate) platforms: RwLock<HashMap<PlatformId, Arc<dyn Platform>>>,
    pub(crate) queues: Queues,
    /// Personas with a limit on their memories that may have got new ones.
    pub(crate) bounded: Mutex<HashMap<PersonaId, Bound>>,
    /// Messages whose turns are waiting or in progress.
    pub(crate) under_way: Mutex<HashSet<MessageId>>,
    /// Edited versions of messages that are being answered now.
    pub(crate) changed_amid: Mutex<HashMap<MessageId, azera_memory::MessageRow>>,
    /// Whether a turn failed for a reason that may pass.
    pub(crate) stranded: AtomicBool,
    pub(crate) retry_wanted: tokio::sync::Notify,
    /// Held while the outbox is delivered, so that no reply is delivered twice.
    pub(crate) leftovers: tokio::sync::Mutex<()>,
    pub(crate) indexing: tokio::sync::Mutex<()>,
    pub(crate) foreground: ForegroundGate,
    pub(crate) minds: Minds,
    /// Parameters of minds, where no place overrides them.
    pub(crate) params: Arc<MindParams>,
    /// The `[mind]` and `[gardener]` numbers that places start from.
    pub(crate) tuning: Tuning,
    /// Overrides by place.
    pub(crate) overrides: OverrideCache,
    /// Held while a background job writes, so that nothing is written twice for the same reason.
    pub(crate) writing: tokio::sync::Mutex<()>,
    /// Persona files that were shown to the uploader and wait for confirmation.
    pub(crate) uploads: Uploads,
    /// Codes of `/link` that wait to be entered by another account.
    pub(crate) links: LinkCodes,
    /// The classifiers of moods, tags and salience.
    pub(crate) classifiers: LazyClassifiers,
    /// Conversations that background jobs have not handled yet.
    pub(crate) agenda: Agenda,
    /// Exchanges whose surprise is not measured yet.
    pub(crate) exchanges: Exchanges,
    /// Training in the weights; unset if it is off.
    pub(crate) hearth: OnceLock<Arc<HearthState>>,
    /// Whether a failed index of recall was already marked for a check.
    pub(crate) looked_at: AtomicBool,
    pub(crate) index_wanted: tokio::sync::Notify,
    pub(crate) jobs: RwLock<Vec<Scheduled>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Creates an engine from `parts`. Attach platforms, then call [`Engine::start`].
    pub fn new(parts: EngineParts) -> Self {
        let queues = Queues::new(parts.config.queue_per_chat);
        let tuning = Tuning { mind: parts.params.constants.clone(), gardener: parts.config.garden.clone() };
        Self(Arc::new(EngineInner {
            memory: parts.memory,
            model: RwLock::new(parts.model),
            embedder: parts.embedder,
            clock: parts.clock,
            models: parts.models,
            config: parts.config,
            platforms: RwLock::default(),
            queues,
            bounded: Mutex::default(),
            under_way: Mutex::default(),
            changed_amid: Mutex::default(),
            stranded: AtomicBool::new(false),
            retry_wanted: tokio::sync::Notify::new(),
            leftovers: tokio::sync::Mutex::new(()),
            indexing: tokio::sync::Mutex::new(()),
            foreground: ForegroundGate::new(),
            minds: Minds::default(),
            params: parts.params,
            tuning,
            overrides: OverrideCache::default(),
            writing: tokio::sync::Mutex::new(()),
            uploads: Uploads::default(),
            links: LinkCodes::default(),
            classifiers: LazyClassifiers::default(),
            agenda: Agenda::default(),
            exchanges: Exchanges::default(),
            hearth: OnceLock::new(),
            looked_at: AtomicBool::new(false),
            index_wanted: tokio::sync::Notify::new(),
            jobs: RwLock::default(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    /// Adds a platform, or replaces its earlier connection.
    pub fn attach(&self, platform: Arc<dyn Platform>) {
        let mut platforms = self.0.platforms.write().unwrap_or_else(PoisonError::into_inner);
        platforms.insert(platform.id().clone(), platform);
    }

    pub(crate) fn platform(&self, id: &PlatformId) -> Result<Arc<dyn Platform>, Error> {
        let platforms = self.0.platforms.read().unwrap_or_else(PoisonError::into_inner);
        platforms.get(id).cloned().ok_or(Error::NoPlatform)
    }

    pub(crate) fn model(&self) -> Arc<dyn ChatModel> {
        self.0.model.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs blocking work on the memory outside the async threads.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Memory) -> Result<T, azera_memory::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let memory = self.0.memory.clone();
        let done = tokio::task::spawn_blocking(move || work(&memory)).await;
        done.map_err(|_| Error::Interrupted)?.map_err(Error::Memory)
    }

    /// Returns the place as its platform describes it now; `None` if `asker` cannot read it.
    pub(crate) async fn place(
        &self,
        platform: &dyn Platform,
        chat: &ChatId,
        asker: &PersonId,
    ) -> Result<Option<Place>, Error> {
        Ok(platform.place(chat, asker).await?)
    }

    /// Returns what `persona` may show in `place` now.
    pub(crate) async fn read_scope(
        &self,
        platform: &dyn Platform,
        place: &Place,
        persona: &PersonaId,
    ) -> Result<ReadScope, Error> {
        Ok(ReadScope::in_place(persona.clone(), place, &self.readable_scopes(platform, place).await?))
    }

    /// Loads the persona with this identity for a place where every reader belongs to `realm`.
    pub(crate) async fn persona(&self, realm: Option<&RealmId>, identity: &PersonaId) -> Result<LoadedPersona, Error> {
        let (realm, wanted) = (realm.cloned(), identity.clone());
        let row = self.blocking(move |memory| memory.persona_of(realm.as_ref(), &wanted)).await?;
        row.and_then(loaded).ok_or_else(|| Error::NoPersona(persona_file(identity).to_owned()))
    }

    /// Loads a user persona as `realm` sees it: the realm's own of that id, or else the operator's.
    pub(crate) async fn role(&self, realm: Option<&RealmId>, id: &PersonaId) -> Result<Option<LoadedPersona>, Error> {
        let (realm, id) = (realm.cloned(), id.clone());
        let row = self
            .blocking(move |memory| {
                let own = realm.map(|realm| memory.persona(Some(&realm), &id)).transpose()?.flatten();
                Ok(match own {
                    Some(row) => Some(row),
                    None => memory.persona(None, &id)?,
                })
            })
            .await?;
        Ok(row.and_then(loaded))
    }

    /// Returns the key under which the model caches a chat's evaluated tokens.
    pub(crate) fn session(chat: &ChatId, persona: &PersonaId) -> SessionKey {
        SessionKey::new(format!("{persona}\u{1f}{chat}"))
    }
}

/// A parsed persona with its lorebook and the realm that owns it.
pub(crate) struct LoadedPersona {
    pub(crate) persona: Persona,
    pub(crate) lorebook: Option<Lorebook>,
    pub(crate) owner: Option<RealmId>,
}

fn loaded(row: PersonaRow) -> Option<LoadedPersona> {
    let persona = azera_personas::parse(&row.markdown).ok()?;
    let card = row.card.and_then(|card| serde_json::from_value::<CardData>(card).ok());
    Some(LoadedPersona { persona, lorebook: card.and_then(|card| card.lorebook), owner: row.owner })
}
