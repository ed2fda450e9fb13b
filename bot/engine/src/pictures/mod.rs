//! Pictures that people and personas ask for. A request waits in the record, is drawn when it is its turn, and becomes a
//! message of the persona that the outbox delivers. So a crash loses none.
//!
//! | file | does |
//! |---|---|
//! | `appearance.rs` | how a persona looks, by its own file |
//! | `ask.rs` | checks rules and limits, queues a request |
//! | `choices.rs` | which models and samplers people may choose |
//! | `draw.rs` | draws what waits, one after another, and delivers it |
//! | `caption.rs` | the texts of the messages |
//! | `start.rs` | pictures that drawings start from |
//! | `looking.rs` | reads and looks at them before they are drawn |
//! | `naming.rs` | what a picture names, as far as the rules ask |
//! | `previews.rs` | passes on how a picture looks so far, where that may be shown |
//! | `results.rs` | looks at finished pictures before anybody sees them |
//! | `search.rs` | which pictures a search finds |
//! | `pace.rs` | estimates how many seconds a drawing still takes |
//! | `places.rs` | tells people when their place in the queue changes |
//! | `outages.rs` | keeps pictures while their server is away |
//! | `settings.rs` | what is configured, and what a place wants |
//! | `telling.rs` | tells who asked why a picture is not drawn |

mod appearance;
mod ask;
mod caption;
mod choices;
mod draw;
mod looking;
mod naming;
mod outages;
mod pace;
mod places;
mod previews;
mod results;
mod search;
mod settings;
mod start;
mod telling;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use azera_model_image::ImageProgress;
use azera_types::{MessageId, PersonId, Scope};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use appearance::{APPEARANCE, Writer, appearance, style_of};
pub(crate) use ask::{Allowed, Base, PictureRequest, Queued};
pub(crate) use caption::shortened;
pub(crate) use choices::Unknown;
pub(crate) use naming::is_suitable;
pub(crate) use search::{By, holds_words, mentions, words_of};
pub use settings::PictureSettings;
pub(crate) use settings::{AS_LARGE_AS_CAN_BE, PictureLook, PlaceWishes, REMIX_STRENGTH, VARIATION_STRENGTH};
pub(crate) use start::{Basis, Start};

use crate::access::AccessControl;
use crate::files::FileFetcher;
use crate::minds::MindService;
use crate::outbox::Outbox;
use crate::services::Services;

/// Said where nothing is configured that draws.
pub(crate) const NO_BACKEND: &str = "I cannot draw: no server for pictures is configured. The operator can set one up \
                                     in `[images]`; the page on pictures in the documentation says how.";

/// Said where personas do not draw by themselves.
pub(crate) const NOT_FROM_REPLIES: &str = "I do not draw by myself here. `/imagine` draws.";

/// Pictures whose places and people are remembered for a fair order.
const MAX_SERVED: usize = 500;

/// Draws pictures.
pub(crate) struct Pictures {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) outbox: Arc<Outbox>,
    files: Arc<FileFetcher>,
    minds: Arc<MindService>,
    settings: OnceLock<PictureSettings>,
    /// Something is configured that draws, but it cannot be used until its configuration is corrected.
    is_set_aside: AtomicBool,
    wake: Notify,
    /// Held while a picture is drawn: the server draws one at a time.
    turn: tokio::sync::Mutex<()>,
    /// Held while somebody is told a new place in the queue, from the look whether the picture still waits.
    placing: tokio::sync::Mutex<()>,
    progress: Mutex<Progress>,
    /// What the server offers, as it said last.
    offered: Arc<choices::Offered>,
}

/// What happens at the moment.
#[derive(Default)]
struct Progress {
    /// The pictures that are being drawn.
    running: HashMap<MessageId, Running>,
    /// Messages that are being delivered.
    delivering: HashSet<MessageId>,
    /// Where and for whom the last pictures were drawn, oldest first.
    served: VecDeque<(Scope, PersonId)>,
    /// Whether those drawn before the last start were read.
    knows_served: bool,
    /// The places in the queue that people were told last.
    places: HashMap<MessageId, usize>,
    /// The server cannot be reached, since then.
    away: Option<outages::Away>,
}

/// Keeps a picture's message from being delivered by others, until it is dropped.
struct DeliveryHold<'a> {
    pictures: &'a Pictures,
    message: MessageId,
}

impl Drop for DeliveryHold<'_> {
    fn drop(&mut self) {
        self.pictures.progress().delivering.remove(&self.message);
    }
}

/// A picture that is being drawn.
struct Running {
    token: CancellationToken,
    /// How far it is, as people may see it.
    progress: watch::Receiver<ImageProgress>,
}

impl Pictures {
    pub(crate) fn new(
        services: Arc<Services>,
        access: Arc<AccessControl>,
        outbox: Arc<Outbox>,
        files: Arc<FileFetcher>,
        minds: Arc<MindService>,
    ) -> Self {
        Self {
            services,
            access,
            outbox,
            files,
            minds,
            settings: OnceLock::new(),
            is_set_aside: AtomicBool::new(false),
            wake: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            placing: tokio::sync::Mutex::default(),
            progress: Mutex::default(),
            offered: Arc::default(),
        }
    }

    /// Sets what draws; only the first call counts.
    pub(crate) fn draw_with(&self, settings: PictureSettings) {
        let settings = self.settings.get_or_init(|| settings);
        self.services.upscales.store(settings.model.limits().upscales, Ordering::Relaxed);
    }

    /// Lets pictures wait for a start at which something draws: what draws is configured wrong now, and will be corrected.
    pub(crate) fn set_aside(&self) {
        self.is_set_aside.store(true, Ordering::Relaxed);
    }

    /// Looks for pictures that wait.
    pub(crate) fn begin(&self) {
        self.wake.notify_one();
    }

    /// Returns what draws, if anything does.
    pub(crate) fn settings(&self) -> Option<&PictureSettings> {
        self.settings.get()
    }

    /// Returns true if the pictures that replies ask for are drawn.
    pub(crate) fn draws_for_replies(&self) -> bool {
        self.settings().is_some_and(|settings| settings.in_replies)
    }

    /// Returns true while a picture's message is being delivered here, so that nobody else delivers it.
    pub(crate) fn is_delivering(&self, message: &MessageId) -> bool {
        self.progress().delivering.contains(message)
    }

    /// Begins to deliver a picture's message here. To be called before the message is in the outbox.
    fn hold_delivery(&self, message: &MessageId) -> DeliveryHold<'_> {
        self.progress().delivering.insert(message.clone());
        DeliveryHold { pictures: self, message: message.clone() }
    }

    /// Returns how far a picture is that is being drawn.
    pub(crate) fn progress_of(&self, message: &MessageId) -> Option<ImageProgress> {
        self.progress().running.get(message).map(|running| running.progress.borrow().clone())
    }

    /// Waits until nobody is being told a place: from then on nobody is told one of a picture that does not wait any more.
    async fn placed(&self) {
        drop(self.placing.lock().await);
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
