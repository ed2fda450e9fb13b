//! The engine: its components, wired together. Each one holds only those below itself, so the order in which
//! [`Engine::new`] makes them is the order of the layers.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::{Arc, OnceLock, RwLock};

use azera_adapter::{CommandAnswer, Platform};
use azera_affect::{Classifiers, ConversationMessage, MindParams, Tag};
use azera_memory::{Forget, ForgetReceipt, Memory};
use azera_model_api::{ChatModel, Embedder};
use azera_types::{ChatId, Clock, MemoryId, MessageId, PersonId, PlatformId};
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use crate::access::AccessControl;
use crate::background::{Background, Claim, ModelExtraction};
use crate::commands::{Commands, LinkStep};
use crate::config::ChatConfig;
use crate::error::Error;
use crate::files::FileFetcher;
use crate::forgetting::Forgetting;
use crate::hearth::{Hearth, Learning};
use crate::indexing::Indexer;
use crate::jobs::Scheduled;
use crate::minds::MindService;
use crate::model_catalog::ModelCatalog;
use crate::outbox::Outbox;
use crate::pictures::{PictureSettings, Pictures};
use crate::queue::Queues;
use crate::recall::RecallService;
use crate::services::Services;
use crate::surprise::SurpriseMeter;
use crate::turn::{Judge, Rehearsals, SpokenReplies, TurnProgress, Turns};

/// What an engine is built from.
pub struct EngineDependencies {
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

/// The components that the engine itself calls. Files, surprise and outbox are held by the components that use them.
pub(crate) struct EngineInner {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) minds: Arc<MindService>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) recall: Arc<RecallService>,
    pub(crate) judge: Arc<Judge>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) forgetting: Arc<Forgetting>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) background: Arc<Background>,
    pub(crate) pictures: Arc<Pictures>,
    pub(crate) commands: Commands,
    pub(crate) jobs: RwLock<Vec<Scheduled>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Creates an engine from `dependencies`. Attach platforms, then call [`Engine::start`].
    pub fn new(dependencies: EngineDependencies) -> Self {
        let EngineDependencies { memory, model, embedder, clock, models, params, config } = dependencies;
        let queues = Queues::new(config.queue_per_chat);
        let services = Arc::new(Services::new(memory, model, embedder, clock, models, config));
        let files = Arc::new(FileFetcher::new(Arc::clone(&services)));
        let access = Arc::new(AccessControl::new(Arc::clone(&services)));
        let minds = Arc::new(MindService::new(Arc::clone(&services), params));
        let indexer = Arc::new(Indexer::new(Arc::clone(&services)));
        let recall = Arc::new(RecallService::new(Arc::clone(&services), Arc::clone(&indexer)));
        let judge = Arc::new(Judge::new(Arc::clone(&services), Arc::clone(&recall)));
        let surprise = Arc::new(SurpriseMeter::new(Arc::clone(&services)));
        let learning = Arc::new(Learning {
            services: Arc::clone(&services),
            access: Arc::clone(&access),
            minds: Arc::clone(&minds),
            indexer: Arc::clone(&indexer),
            judge: Arc::clone(&judge),
            state: OnceLock::new(),
        });
        let forgetting = Arc::new(Forgetting {
            services: Arc::clone(&services),
            access: Arc::clone(&access),
            minds: Arc::clone(&minds),
            indexer: Arc::clone(&indexer),
            learning: Arc::clone(&learning),
            surprise: Arc::clone(&surprise),
            files: Arc::clone(&files),
            retracting: AsyncMutex::default(),
        });
        let outbox = Arc::new(Outbox {
            services: Arc::clone(&services),
            access: Arc::clone(&access),
            forgetting: Arc::clone(&forgetting),
        });
        let pictures = Pictures::new(
            Arc::clone(&services),
            Arc::clone(&access),
            Arc::clone(&outbox),
            Arc::clone(&files),
            Arc::clone(&minds),
        );
        let pictures = Arc::new(pictures);
        let turns = Arc::new(Turns {
            services: Arc::clone(&services),
            access: Arc::clone(&access),
            minds: Arc::clone(&minds),
            indexer: Arc::clone(&indexer),
            recall: Arc::clone(&recall),
            judge: Arc::clone(&judge),
            surprise: Arc::clone(&surprise),
            learning: Arc::clone(&learning),
            forgetting: Arc::clone(&forgetting),
            outbox,
            pictures: Arc::clone(&pictures),
            files,
            spoken: SpokenReplies::default(),
            rehearsals: Rehearsals::default(),
            queues,
            progress: TurnProgress::default(),
        });
        let background = Arc::new(Background::over(Arc::clone(&turns)));
        let commands = Commands::over(Arc::clone(&turns), Arc::clone(&background));
        Self(Arc::new(EngineInner {
            services,
            access,
            minds,
            indexer,
            recall,
            judge,
            learning,
            forgetting,
            turns,
            background,
            pictures,
            commands,
            jobs: RwLock::default(),
        }))
    }

    /// Adds a platform, or replaces its earlier connection.
    pub fn attach(&self, platform: Arc<dyn Platform>) {
        self.0.services.attach(platform);
    }

    /// Learns the classifiers in the background, again and again until it succeeds. Turns that begin meanwhile wait for
    /// the first try, and [`azera_adapter::Host::settle`] does too.
    pub fn learn<E: Display, F>(&self, learn: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<Arc<Classifiers>, E>> + Send,
    {
        self.0.judge.learn(learn);
    }

    /// Turns on training in the weights. Call it before [`Engine::start`].
    ///
    /// # Errors
    /// The folder of LoRAs cannot be read or made.
    pub fn light(&self, hearth: Hearth) -> std::io::Result<()> {
        self.0.learning.light(hearth)
    }

    /// Sets what draws pictures. Call it before [`Engine::start`]; only the first call counts.
    pub fn draw_with(&self, settings: PictureSettings) {
        self.0.pictures.draw_with(settings);
    }

    /// Says that something is configured that draws, but in a way that cannot work. Pictures wait until that is corrected;
    /// without this call and without [`Engine::draw_with`], they are given up. Call it before [`Engine::start`].
    pub fn set_pictures_aside(&self) {
        self.0.pictures.set_aside();
    }

    /// Draws the pictures that wait, for a caller that stops soon. Stops at the first whose server does not work; the
    /// next start draws it.
    pub async fn draw_waiting(&self) {
        if let Err(error) = self.0.pictures.draw_all().await {
            tracing::warn!(%error, "the pictures that wait are drawn after the next start");
        }
    }

    /// Indexes everything that is queued. Returns the number of memories indexed.
    ///
    /// # Errors
    /// The record or an index fails, or the engine stops.
    pub async fn index_all(&self) -> Result<usize, Error> {
        self.0.indexer.index_all().await
    }

    /// Indexes the words of everything that is queued, which is fast. The meaning stays queued.
    ///
    /// # Errors
    /// The record or an index fails.
    pub async fn index_all_words(&self) -> Result<(), Error> {
        self.0.indexer.index_all_words().await
    }

    /// Groups memories that are alike, where enough is new, unless that was done a short while ago.
    pub async fn find_themes_if_due(&self) {
        self.0.indexer.find_themes_if_due().await;
    }

    /// Indexes what is queued in the background, once the engine was started.
    pub fn index_soon(&self) {
        self.0.indexer.wake();
    }

    /// Marks what is worth keeping in imported chats that were not searched to their end: in those of `chats`, or in all.
    /// Only the words of the people who imported them are marked. Waits for the classifiers. The running bot compares later
    /// what these words contradict. Ends when `stop` is cancelled, and after some thousand messages. Returns false if
    /// something is left; the background of the running bot goes on with it.
    ///
    /// # Errors
    /// The record or the embedding model fails.
    pub async fn search_imports(
        &self,
        chats: Option<&BTreeSet<ChatId>>,
        stop: &CancellationToken,
    ) -> Result<bool, Error> {
        self.0.background.search_imports(chats, stop).await
    }

    /// Lets the background search what was imported, in turns with its other work, once the engine was started.
    pub fn search_imports_soon(&self) {
        self.0.background.search_imports_soon();
    }

    /// Does what `/link` does in chats, for a person who works at the machine itself. Their platform need not be attached.
    ///
    /// # Errors
    /// The record fails.
    pub async fn link_at_the_machine(
        &self,
        platform: &PlatformId,
        person: &PersonId,
        name: &str,
        step: LinkStep,
    ) -> Result<CommandAnswer, Error> {
        self.0.commands.link_at_the_machine(platform, person, name, step).await
    }

    /// Forgets what an import added, as `/forget` would, also outside the record. With `quotes`, replies that rest on it go,
    /// too. The bytes are overwritten in the background.
    ///
    /// # Errors
    /// The record or an index fails.
    pub async fn forget_import(&self, id: &str, quotes: bool) -> Result<ForgetReceipt, Error> {
        self.0.forgetting.forget(Forget::Import(id.to_owned()), quotes, None).await
    }

    /// Asks the model whether a message states a lasting fact about `who`, and which.
    ///
    /// # Errors
    /// The model fails, or somebody waits for an answer for too long.
    pub async fn claim(&self, who: &str, text: &str) -> Result<Option<Claim>, Error> {
        self.0.background.claim(who, text).await
    }

    /// Asks the model what is worth keeping in a conversation, as after one that has ended.
    ///
    /// # Errors
    /// The model fails, or somebody waits for an answer for too long.
    pub async fn extract_by_model(&self, said: &[ConversationMessage<'_>]) -> Result<ModelExtraction, Error> {
        self.0.background.extract_by_model(said).await
    }

    /// Returns true if the fact `now` takes the place of `before`.
    ///
    /// # Errors
    /// The model or the embedding model fails.
    pub async fn replaces(&self, before: &Claim, now: &Claim) -> Result<bool, Error> {
        self.0.background.replaces(before, now).await
    }

    /// Returns the tags of a text by itself, judged as a message would be.
    ///
    /// # Errors
    /// The embedding model fails.
    pub async fn tags_of(&self, text: &str) -> Result<Vec<Tag>, Error> {
        self.0.judge.tags_of(text).await
    }

    /// Embeds every text again and compares it with the index. Returns the memories whose stored vectors differ.
    /// Memories without vectors are left out.
    ///
    /// # Errors
    /// The record, the index or the embedding model fails.
    pub async fn compare_vectors(&self) -> Result<Vec<MemoryId>, Error> {
        self.0.indexer.compare_vectors().await
    }

    /// Overwrites forgotten bytes on disk, if there are any. Indexes everything queued first.
    ///
    /// # Errors
    /// The record or an index fails.
    pub async fn scrub(&self) -> Result<bool, Error> {
        self.0.indexer.scrub().await
    }

    /// Takes LoRAs out of service, and removes them, if a source is gone or a person withdrew their consent. With
    /// `resting_on`, only LoRAs with this message among their sources are checked. Returns true if all files could be
    /// removed; a LoRA whose file remains does not serve.
    pub async fn withdraw_unfounded(&self, resting_on: Option<&MessageId>) -> bool {
        self.0.learning.withdraw_unfounded(resting_on).await
    }
}
