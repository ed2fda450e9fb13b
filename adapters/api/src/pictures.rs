use async_trait::async_trait;
use azera_types::{ChatId, MessageId, PersonId, PlatformId, Text, Timestamp};

use crate::{FileContent, HostError, Reading};

/// What draws pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureModel {
    /// What it is, for everybody.
    pub name: String,
    /// What it is and where, for the operator.
    pub server: String,
    /// The longest side of a picture, in pixels.
    pub max_side: u32,
    /// The most steps.
    pub max_steps: u32,
    /// Whether it can start from a picture.
    pub takes_reference: bool,
    /// Whether the same seed draws the same picture.
    pub takes_seed: bool,
    /// Whether it can draw a picture larger.
    pub upscales: bool,
}

/// What people may choose on the server that draws, by its own names. A list is empty where there is nothing to choose, or
/// while the server does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PictureChoices {
    /// The models.
    pub models: Vec<String>,
    /// The samplers.
    pub samplers: Vec<String>,
}

/// A picture that somebody wants. What is `None` has its configured value. `Debug` shows no prompt.
#[derive(Clone, Default, PartialEq)]
pub struct PictureWish {
    /// What to draw.
    pub prompt: String,
    /// What not to draw.
    pub negative: Option<String>,
    /// Width and height in pixels.
    pub size: Option<(u32, u32)>,
    /// The seed.
    pub seed: Option<u32>,
    /// Steps of the sampler.
    pub steps: Option<u32>,
    /// How strongly the prompt is followed.
    pub guidance: Option<f32>,
    /// The model.
    pub model: Option<String>,
    /// The sampler.
    pub sampler: Option<String>,
    /// What it is called.
    pub name: Option<String>,
    /// The picture that it starts from.
    pub start: Option<PictureStart>,
    /// How much of that picture is redrawn, from 0.05 to 1.
    pub strength: Option<f32>,
}

impl std::fmt::Debug for PictureWish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PictureWish").field("size", &self.size).field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// A picture to start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PictureStart {
    /// A drawn picture, by its number.
    Drawn(u64),
    /// A picture that the person uploaded, by its id.
    Uploaded(String),
}

/// The answer to a request for a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PictureAsked {
    /// It waits, or is being drawn. This is its number.
    Waits(u64),
    /// It is not drawn. The text says why.
    Refused(String),
    /// It is not drawn: the server has no such model or sampler.
    Unknown {
        /// `model` or `sampler`.
        kind: &'static str,
        /// Those that there are, for the person who asked.
        why: String,
    },
    /// It is not drawn now: too many pictures wait, or were asked for today. The text says which.
    TooMany(String),
}

/// How far a picture is.
#[derive(Debug, Clone, PartialEq)]
pub enum PictureState {
    /// It waits for its turn.
    Waits {
        /// Its place among those that wait, from 1.
        place: usize,
    },
    /// It is its turn, and the server loads its model first.
    Loading {
        /// The bytes that the server downloaded for it so far; 0 for a model on its disk.
        downloaded: u64,
    },
    /// It is being drawn.
    Drawing {
        /// Steps done.
        step: u32,
        /// All steps; 0 while unknown.
        steps: u32,
        /// A small JPEG file of how it looks so far, where that may be shown.
        preview: Option<FileContent>,
    },
    /// It is drawn.
    Drawn(ShownPicture),
    /// It could not be drawn. The text says why.
    Failed(String),
}

/// A picture that waits or is being drawn. `Debug` shows no prompt.
#[derive(Clone, PartialEq)]
pub struct WaitingPicture {
    /// The chat in which it was asked for.
    pub chat: ChatId,
    /// Its number.
    pub number: u64,
    /// What is to be drawn.
    pub prompt: Text,
    /// How far it is.
    pub state: PictureState,
}

impl std::fmt::Debug for WaitingPicture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingPicture").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A drawn picture without its bytes. `Debug` shows no prompt.
#[derive(Clone, PartialEq)]
pub struct ShownPicture {
    /// Its number.
    pub number: u64,
    /// The message that shows it.
    pub message: MessageId,
    /// What was to be drawn.
    pub prompt: Text,
    /// What was not to be drawn.
    pub negative: Option<String>,
    /// What it is called.
    pub name: Option<Text>,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
    /// Steps of the sampler.
    pub steps: u32,
    /// The seed.
    pub seed: u32,
    /// The model that the person chose; `None` for the usual one.
    pub chosen_model: Option<String>,
    /// The sampler; `None` for the server's usual one.
    pub sampler: Option<String>,
    /// The model that drew it.
    pub model: Option<String>,
    /// The displayed name of the person who asked for it; `None` if it is not known.
    pub by: Option<Text>,
    /// The name of the place where it was asked for, if the person reads that place. Lists have it alone.
    pub place: Option<Text>,
    /// When it was drawn.
    pub at: Timestamp,
    /// Whether its file is removed after others.
    pub is_pinned: bool,
}

impl std::fmt::Debug for ShownPicture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownPicture").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Which pictures are listed. What is empty lets all of them through. `Debug` shows no words.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PictureSearch {
    /// Words that the prompt or the name holds.
    pub words: String,
    /// A part of the displayed name of the person who asked, or `me`.
    pub by: String,
    /// A part of the name of the place where it was asked for.
    pub place: String,
}

impl std::fmt::Debug for PictureSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PictureSearch(..)")
    }
}

/// The engine's pictures, for platforms that show more than messages. The persona that answers in the chat draws them, and
/// they become messages there. Like [`crate::Reader`], every read shows what the person may read in the chat at that
/// moment, and nothing to a person who cannot read the chat.
#[async_trait]
pub trait PictureHost: Send + Sync {
    /// Returns what draws; empty if nothing is configured.
    fn picture_models(&self) -> Vec<PictureModel>;

    /// Returns what people may choose on it.
    async fn picture_choices(&self) -> PictureChoices;

    /// Asks for a picture, within the rules and limits of `/imagine`.
    async fn ask(&self, platform: &PlatformId, at: Reading, wish: PictureWish) -> Result<PictureAsked, HostError>;

    /// Asks for a drawn picture at twice its size, within the rules and limits of `/picture upscale`. `None` for a picture
    /// that does not exist or may not be shown.
    async fn upscale(&self, platform: &PlatformId, at: Reading, number: u64)
    -> Result<Option<PictureAsked>, HostError>;

    /// Returns how far a picture is. `None` if it was taken back, or for somebody who neither asked for it nor may be
    /// shown it.
    async fn picture_state(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<PictureState>, HostError>;

    /// Returns the pictures that this person asked for on this platform and that wait or are being drawn, in the order in
    /// which they are drawn, if the person can read the chats in which they asked.
    async fn waiting_pictures(
        &self,
        platform: &PlatformId,
        person: &PersonId,
    ) -> Result<Vec<WaitingPicture>, HostError>;

    /// Returns the drawn pictures that a search finds, newest first.
    async fn pictures(
        &self,
        platform: &PlatformId,
        at: Reading,
        search: &PictureSearch,
    ) -> Result<Vec<ShownPicture>, HostError>;

    /// Returns a drawn picture and its PNG file, if that is still kept.
    async fn picture(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<(ShownPicture, FileContent)>, HostError>;

    /// Returns a drawn picture and a small JPEG file of it, if its file is still kept.
    async fn thumbnail(
        &self,
        platform: &PlatformId,
        at: Reading,
        number: u64,
    ) -> Result<Option<(ShownPicture, FileContent)>, HostError>;

    /// Keeps a picture to start from for its person alone: decoded within limits, written anew without metadata, in memory,
    /// and for a day at most. Returns its id, or why it is not kept.
    async fn keep_reference(
        &self,
        platform: &PlatformId,
        at: Reading,
        file: FileContent,
    ) -> Result<Result<String, String>, HostError>;

    /// Returns the PNG file of a picture to start from; `None` unless this person uploaded it, and it is still kept.
    async fn reference(&self, platform: &PlatformId, at: Reading, id: &str) -> Result<Option<FileContent>, HostError>;
}
