use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{ImageError, ImageLimits, ImageRequest, UpscaleRequest};

/// How far a picture is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ImageProgress {
    /// Requests before this one at the model's own queue.
    pub ahead: usize,
    /// Set while the server loads its model: the bytes that it downloaded for that so far, 0 for a model on its disk.
    pub loading: Option<u64>,
    /// Steps done.
    pub step: u32,
    /// All steps; 0 while unknown.
    pub steps: u32,
    /// The bytes of a small PNG, JPEG or WebP picture of how it looks so far. A server made it, so it counts as
    /// untrusted.
    pub preview: Option<Vec<u8>>,
}

impl std::fmt::Debug for ImageProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let preview = self.preview.as_ref().map(Vec::len);
        write!(f, "ImageProgress({} ahead, {}/{}, preview {preview:?})", self.ahead, self.step, self.steps)
    }
}

/// Takes the progress of a request. Only the newest value counts, so that a slow reader never slows the model.
pub type ProgressSender = watch::Sender<ImageProgress>;

/// A picture that a model drew.
#[derive(Clone, PartialEq, Eq)]
pub struct DrawnImage {
    /// The bytes as the model returned them. They count as untrusted until [`crate::Picture::read`] has decoded them.
    pub bytes: Vec<u8>,
    /// The seed that draws it again; `None` if the server does not say.
    pub seed: Option<u32>,
    /// The model, as the server names it.
    pub model: String,
}

impl std::fmt::Debug for DrawnImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DrawnImage({} bytes, {})", self.bytes.len(), self.model)
    }
}

/// What a request may choose from on a server. A list is empty where there is nothing to choose, or nothing is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageOffer {
    /// The models, by the names that requests use.
    pub models: Vec<String>,
    /// The samplers, by the names that requests use.
    pub samplers: Vec<String>,
    /// Other names by which requests may choose the same samplers.
    pub sampler_aliases: Vec<String>,
    /// Set if the server does not list its models, and requests may name any.
    pub takes_any_model: bool,
    /// Set if the server does not list its samplers, and requests may name any.
    pub takes_any_sampler: bool,
}

/// A model that draws pictures.
#[async_trait]
pub trait ImageModel: Send + Sync {
    /// Returns the name for the operator: what it is and where, without a key.
    fn name(&self) -> &str;

    /// Returns what it is, without where, for everybody.
    fn title(&self) -> &str;

    /// Returns what the model can draw.
    fn limits(&self) -> &ImageLimits;

    /// Returns true if this model of the server, or its usual one, can start from a picture. [`ImageLimits::takes_reference`]
    /// says whether any of them can.
    fn can_edit(&self, _model: Option<&str>) -> bool {
        self.limits().takes_reference
    }

    /// Asks the server which models and samplers a request may choose from.
    ///
    /// # Errors
    /// [`ImageError`], if the server does not say.
    async fn offer(&self) -> Result<ImageOffer, ImageError> {
        Ok(ImageOffer::default())
    }

    /// Draws a picture. Reports progress to `progress` as it comes. When `cancelled` is cancelled, tells the server to
    /// stop and returns [`ImageError::Cancelled`]; dropping the future also ends the request, but a server may go on.
    ///
    /// # Errors
    /// [`ImageError`] says whether a retry helps.
    async fn generate(
        &self,
        request: &ImageRequest,
        progress: &ProgressSender,
        cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError>;

    /// Draws a picture larger. Progress, cancelling and errors are those of [`ImageModel::generate`]. Only models whose
    /// [`ImageLimits::upscales`] says so can do it.
    ///
    /// # Errors
    /// [`ImageError`] says whether a retry helps.
    async fn upscale(
        &self,
        _request: &UpscaleRequest,
        _progress: &ProgressSender,
        _cancelled: &CancellationToken,
    ) -> Result<DrawnImage, ImageError> {
        Err(ImageError::Refused(format!("{} cannot draw pictures larger", self.title())))
    }

    /// Checks that the model can be reached, and returns its name as the server reports it.
    ///
    /// # Errors
    /// [`ImageError`] says what to change.
    async fn check(&self) -> Result<String, ImageError>;
}
