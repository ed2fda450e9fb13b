//! What every component of the engine uses: the record, the models, the clock, the configuration, and the attached platforms.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use azera_adapter::Platform;
use azera_memory::{Memory, PersonaRow, persona_file};
use azera_memory_vault::MasterKeys;
use azera_model_api::{ChatModel, ChatRequest, Embedder, Reranker, SessionKey};
use azera_model_image::Viewer;
use azera_personas::{CardData, Lorebook, Persona};
use azera_types::{ChatId, Clock, PersonId, PersonaId, Place, PlatformId, RealmId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call_recordings::KeptRecordings;
use crate::clones::{AskedOwners, Unanswered};
use crate::config::ChatConfig;
use crate::error::Error;
use crate::foreground_gate::ForegroundGate;
use crate::interruptions::Interruptions;
use crate::measurements::Measurements;
use crate::model_catalog::ModelCatalog;
use crate::references::References;
use crate::speech::Voice;

/// How often a background request is given up for live chat. After that only the inference engine makes it yield.
const MAX_YIELDS: usize = 3;

/// Longest wait for live chat to pause; then the background request is postponed.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// What every component of the engine uses. Each component holds it, and beside it only the components below itself.
pub(crate) struct Services {
    pub(crate) memory: Arc<Memory>,
    /// The chat model that answers now.
    pub(crate) model: RwLock<Arc<dyn ChatModel>>,
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The other available chat models.
    pub(crate) models: Arc<dyn ModelCatalog>,
    pub(crate) config: ChatConfig,
    /// What hears and speaks; empty where nothing does.
    pub(crate) voice: OnceLock<Voice>,
    /// When a recording of a voice has waited long enough for an answer.
    pub(crate) unanswered: Unanswered,
    pub(crate) asked_owners: AskedOwners,
    /// Recordings of calls; empty where nobody records.
    pub(crate) recordings: OnceLock<KeptRecordings>,
    /// How much was heard of spoken replies that were interrupted.
    pub(crate) interruptions: Interruptions,
    /// What sees pictures; empty where nothing does.
    pub(crate) viewer: OnceLock<Arc<dyn Viewer>>,
    /// What reranks hits of recall; empty where nothing does.
    pub(crate) reranker: OnceLock<Arc<dyn Reranker>>,
    /// True if what draws can draw pictures larger.
    pub(crate) upscales: AtomicBool,
    /// The keys of people's vaults; empty where nobody has one.
    pub(crate) vault_keys: OnceLock<Arc<dyn MasterKeys>>,
    /// Pictures to start from that people uploaded.
    pub(crate) references: References,
    platforms: RwLock<HashMap<PlatformId, Arc<dyn Platform>>>,
    pub(crate) measurements: Measurements,
    /// Keeps background requests away while somebody waits for an answer.
    pub(crate) foreground: ForegroundGate,
    /// The engine's own tasks, which a stop waits for.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the engine stops.
    pub(crate) stopping: CancellationToken,
}

impl Services {
    pub(crate) fn new(
        memory: Arc<Memory>,
        model: Arc<dyn ChatModel>,
        embedder: Arc<dyn Embedder>,
        clock: Arc<dyn Clock>,
        models: Arc<dyn ModelCatalog>,
        config: ChatConfig,
    ) -> Self {
        Self {
            memory,
            model: RwLock::new(model),
            embedder,
            clock,
            models,
            config,
            voice: OnceLock::new(),
            unanswered: Unanswered::default(),
            asked_owners: AskedOwners::default(),
            recordings: OnceLock::new(),
            interruptions: Interruptions::default(),
            viewer: OnceLock::new(),
            reranker: OnceLock::new(),
            upscales: AtomicBool::new(false),
            vault_keys: OnceLock::new(),
            references: References::default(),
            platforms: RwLock::default(),
            measurements: Measurements::default(),
            foreground: ForegroundGate::new(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }
    }

    /// Adds a platform, or replaces its earlier connection.
    pub(crate) fn attach(&self, platform: Arc<dyn Platform>) {
        let mut platforms = self.platforms.write().unwrap_or_else(PoisonError::into_inner);
        platforms.insert(platform.id().clone(), platform);
    }

    /// Returns what hears and speaks.
    pub(crate) fn voice(&self) -> Voice {
        self.voice.get().cloned().unwrap_or_default()
    }

    /// Returns the ids of the attached platforms.
    pub(crate) fn platform_ids(&self) -> Vec<PlatformId> {
        self.platforms.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    pub(crate) fn platform(&self, id: &PlatformId) -> Result<Arc<dyn Platform>, Error> {
        let platforms = self.platforms.read().unwrap_or_else(PoisonError::into_inner);
        platforms.get(id).cloned().ok_or(Error::NoPlatform)
    }

    pub(crate) fn model(&self) -> Arc<dyn ChatModel> {
        self.model.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs blocking work on the memory outside the async threads.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Memory) -> Result<T, azera_memory::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let memory = self.memory.clone();
        let done = tokio::task::spawn_blocking(move || work(&memory)).await;
        done?.map_err(Error::Memory)
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

    /// Loads the persona with this identity for a place where every reader belongs to `realm`.
    pub(crate) async fn persona(&self, realm: Option<&RealmId>, identity: &PersonaId) -> Result<LoadedPersona, Error> {
        let (realm, wanted) = (realm.cloned(), identity.clone());
        let row = self.blocking(move |memory| memory.personas().of(realm.as_ref(), &wanted)).await?;
        row.and_then(loaded).ok_or_else(|| Error::NoPersona(persona_file(identity).to_owned()))
    }

    /// Loads a user persona as `realm` sees it: the realm's own of that id, or else the operator's.
    pub(crate) async fn role(&self, realm: Option<&RealmId>, id: &PersonaId) -> Result<Option<LoadedPersona>, Error> {
        let (realm, id) = (realm.cloned(), id.clone());
        let row = self
            .blocking(move |memory| {
                let own = realm.map(|realm| memory.personas().get(Some(&realm), &id)).transpose()?.flatten();
                Ok(match own {
                    Some(row) => Some(row),
                    None => memory.personas().get(None, &id)?,
                })
            })
            .await?;
        Ok(row.and_then(loaded))
    }

    /// Returns the key under which the model caches a chat's evaluated tokens.
    pub(crate) fn session(chat: &ChatId, persona: &PersonaId) -> SessionKey {
        SessionKey::new(format!("{persona}\u{1f}{chat}"))
    }

    /// Asks the model when nobody waits for an answer, and stops as soon as somebody does. An inference engine yields
    /// between two steps, but not every server does, and the stages before a reply's first token need the processor,
    /// too.
    pub(crate) async fn ask_quietly(&self, request: ChatRequest) -> Result<String, Error> {
        let foreground = &self.foreground;
        for yields in 0..=MAX_YIELDS {
            let still = tokio::select! {
                () = self.stopping.cancelled() => false,
                still = foreground.until_idle(MAX_WAIT) => still,
            };
            if !still {
                return Err(Error::Interrupted);
            }
            let model = self.model();
            let written = async { Ok::<_, Error>(model.chat(request.clone()).await?.collect().await?.0) };
            let busy = async {
                if yields < MAX_YIELDS { foreground.until_busy().await } else { std::future::pending().await }
            };
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return Err(Error::Interrupted),
                () = busy => tracing::debug!("a background request yields to live chat"),
                text = written => return text,
            }
        }
        Err(Error::Interrupted)
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
    Some(LoadedPersona { persona, lorebook: card.and_then(CardData::into_lorebook), owner: row.owner })
}
