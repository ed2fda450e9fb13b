use std::sync::Arc;

use azera_memory::{Asked, PictureQuota, PictureRow};
use azera_model_image::{
    DrawnImage, ImageError, ImageModel, ImageRequest, ImageSize, PictureLimits, ProgressSender, Reference,
    UPSCALE_FACTOR, UpscaleRequest,
};
use azera_pictures::{PromptRules, Traits, Wish};
use azera_types::PersonaId;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// How much of a picture is redrawn for a variation.
pub(crate) const VARIATION_STRENGTH: f32 = 0.35;

/// How much of a picture is redrawn for a remix. With less, another prompt changes little.
pub(crate) const REMIX_STRENGTH: f32 = 0.6;

/// The fewest weights of a chat model that is told how to ask for pictures. `azera eval draw` measured 1.5 billion and half
/// a billion.
const MIN_PARAMETERS: u64 = 1_000_000_000;

/// One place may hold this part of the queue: fifty people of one server may ask at once, and others still can.
const PLACE_SHARE: usize = 2;

/// What draws, and within which limits.
#[derive(Clone)]
pub struct PictureSettings {
    /// The model.
    pub model: Arc<dyn ImageModel>,
    /// The size of a picture for which none was asked.
    pub size: ImageSize,
    /// Its steps.
    pub steps: u32,
    /// How strongly the prompt is followed.
    pub guidance: f32,
    /// What is never drawn, besides what the person says.
    pub negative: String,
    /// The sampler; `None` for the server's own.
    pub sampler: Option<String>,
    /// The most pictures of a person in a day.
    pub per_person: u32,
    /// The most pictures of a place in a day.
    pub per_place: u32,
    /// The most pictures that wait.
    pub queue: usize,
    /// The most pictures of a person that wait.
    pub queue_per_person: usize,
    /// The most drawn pictures whose files are kept.
    pub kept: usize,
    /// Whether people see a picture while it is drawn, where nobody checks pictures.
    pub previews: bool,
    /// Whether personas may ask for pictures in their replies.
    pub in_replies: bool,
    /// Whether small models, and those of unknown size, are told how to ask, too.
    pub tells_every_model: bool,
}

impl std::fmt::Debug for PictureSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PictureSettings").field("model", &self.model.name()).finish_non_exhaustive()
    }
}

impl PictureSettings {
    /// Returns true if a chat model is told how to ask for pictures.
    pub(crate) fn tells(&self, model: &azera_model_api::ModelInfo) -> bool {
        let is_large = model.parameters.is_some_and(|parameters| parameters >= MIN_PARAMETERS);
        self.in_replies && (self.tells_every_model || is_large)
    }

    /// Returns the limits of a day.
    pub(crate) fn quota(&self, day: String) -> PictureQuota {
        PictureQuota {
            day,
            by_person: self.per_person,
            in_place: self.per_place,
            waiting: self.queue,
            waiting_by_person: self.queue_per_person,
            waiting_in_place: (self.queue / PLACE_SHARE).max(self.queue_per_person),
        }
    }

    /// Returns what a person is told whose request met a limit.
    pub(crate) fn told_of(&self, limit: &Asked) -> String {
        match limit {
            Asked::PersonWaits => format!(
                "You have {} pictures waiting, and that is the most. `/picture cancel` takes one back.",
                self.queue_per_person
            ),
            Asked::PersonHadEnough => format!(
                "You have asked for {} pictures today, and that is the most. Ask again tomorrow.",
                self.per_person
            ),
            Asked::PlaceHadEnough => format!(
                "This place has had {} pictures today, and that is the most. Ask again tomorrow.",
                self.per_place
            ),
            Asked::PlaceWaits => {
                "Half of all pictures that can wait come from this place, and that is the most. Ask again in a few \
                 minutes."
                    .to_owned()
            }
            Asked::QueueFull | Asked::Waits(_) => {
                "Too many pictures are waiting. Ask again in a few minutes.".to_owned()
            }
        }
    }

    /// Returns how a picture looks that somebody asks for.
    pub(crate) fn look(&self, wish: &Wish, seed: u32) -> PictureLook {
        let (width, height) = wish.size.unwrap_or((self.size.width, self.size.height));
        PictureLook {
            width,
            height,
            steps: wish.steps.unwrap_or(self.steps),
            seed: wish.seed.unwrap_or(seed),
            guidance: wish.guidance.unwrap_or(self.guidance),
            negative: wish.negative.clone().filter(|negative| !negative.is_empty()),
            model: wish.model.clone(),
            sampler: wish.sampler.clone().or_else(|| self.sampler.clone()),
            strength: wish.strength,
            is_plain: wish.is_plain,
            style: None,
            style_negative: None,
            drawn: None,
            uploaded: None,
            traits: Traits::default(),
            start_traits: Traits::default(),
            is_unseen: false,
            is_upscaled: false,
            portrait_of: None,
        }
    }

    /// Returns the size of a picture that starts from one of this size: the same proportions, and as many pixels as
    /// usual.
    pub(crate) fn size_like(&self, (width, height): (u32, u32)) -> (u32, u32) {
        let usual = f64::from(self.size.width) * f64::from(self.size.height);
        let scale = (usual / (f64::from(width.max(1)) * f64::from(height.max(1)))).sqrt();
        let multiple = self.model.limits().side_multiple.max(1);
        // The model's limits cut what is too long.
        let side = |side: u32| ((f64::from(side) * scale).round() as u32).max(1).next_multiple_of(multiple);
        (side(width), side(height))
    }

    /// Draws a picture, or draws the one that it starts from larger.
    pub(crate) async fn make(
        &self,
        prompt: &str,
        look: &PictureLook,
        reference: Option<Vec<u8>>,
        (token, progress): (&CancellationToken, &ProgressSender),
    ) -> Result<DrawnImage, ImageError> {
        match reference {
            Some(png) if look.is_upscaled => {
                let (width, height) = look.ordinary_size();
                let drawn_by = self.request(prompt, &PictureLook { width, height, ..look.clone() }, None);
                let size = ImageSize { width: look.width, height: look.height };
                self.model.upscale(&UpscaleRequest { png, size, drawn_by }, progress, token).await
            }
            reference => self.model.generate(&self.request(prompt, look, reference), progress, token).await,
        }
    }

    /// Returns the request for a picture.
    fn request(&self, prompt: &str, look: &PictureLook, reference: Option<Vec<u8>>) -> ImageRequest {
        let of_style = look.style_negative.as_deref().unwrap_or_default();
        let negative = [look.negative.as_deref().unwrap_or_default(), of_style, self.negative.as_str()];
        let prompt = [prompt, look.style.as_deref().unwrap_or_default()];
        let joined = |texts: &[&str]| {
            let texts: Vec<&str> = texts.iter().copied().filter(|text| !text.is_empty()).collect();
            texts.join(", ")
        };
        let strength = look.strength.unwrap_or(VARIATION_STRENGTH);
        self.model.limits().fit(&ImageRequest {
            prompt: joined(&prompt),
            negative: joined(&negative),
            size: ImageSize { width: look.width, height: look.height },
            steps: look.steps,
            seed: look.seed,
            guidance: look.guidance,
            model: look.model.clone(),
            sampler: look.sampler.clone(),
            reference: reference.map(|png| Reference { png, strength }),
        })
    }
}

/// Said about a picture that cannot be drawn larger.
pub(crate) const AS_LARGE_AS_CAN_BE: &str = "That picture is as large as pictures can be here.";

/// Returns the size of a picture that is drawn larger; `None` if that would be larger than pictures may be.
fn upscaled((width, height): (u32, u32)) -> Option<(u32, u32)> {
    let (width, height) = (width.checked_mul(UPSCALE_FACTOR)?, height.checked_mul(UPSCALE_FACTOR)?);
    let limits = PictureLimits::default();
    let fits = width.max(height) <= limits.max_side && u64::from(width) * u64::from(height) <= limits.max_pixels;
    fits.then_some((width, height))
}

/// Everything that decides how a picture looks besides its prompt, as the record stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PictureLook {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) steps: u32,
    pub(crate) seed: u32,
    pub(crate) guidance: f32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) negative: Option<String>,
    /// The model that the person chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sampler: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strength: Option<f32>,
    /// True if the persona's own style was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_plain: bool,
    /// Words that the persona adds to the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) style: Option<String>,
    /// What the persona does not draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) style_negative: Option<String>,
    /// Width and height of the picture that came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) drawn: Option<(u32, u32)>,
    /// The id of the uploaded picture that it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) uploaded: Option<String>,
    /// What it names, by the words that it was asked for with and everything about the picture that it starts from.
    #[serde(default, skip_serializing_if = "Traits::is_empty")]
    pub(crate) traits: Traits,
    /// What is said about the picture that it starts from.
    #[serde(default, skip_serializing_if = "Traits::is_empty")]
    pub(crate) start_traits: Traits,
    /// True if it starts from a picture that nobody described or looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_unseen: bool,
    /// True if it is the picture that it starts from, drawn larger.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_upscaled: bool,
    /// The persona that it portrays, if an admin asked for a portrait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) portrait_of: Option<PersonaId>,
}

impl PictureLook {
    /// Returns the size to draw it again in: a picture that was drawn larger is drawn in its first size.
    pub(crate) fn ordinary_size(&self) -> (u32, u32) {
        let factor = if self.is_upscaled { UPSCALE_FACTOR } else { 1 };
        (self.width / factor, self.height / factor)
    }

    /// Returns the wish for another picture with this prompt: what `changes` name, and the rest as in this one.
    pub(crate) fn wish(&self, prompt: String, changes: &Wish) -> Wish {
        Wish {
            prompt,
            negative: changes.negative.clone().or_else(|| self.negative.clone()),
            size: changes.size.or(Some(self.ordinary_size())),
            // The same seed would draw the same picture.
            seed: changes.seed,
            steps: changes.steps.or(Some(self.steps)),
            guidance: changes.guidance.or(Some(self.guidance)),
            model: changes.model.clone(),
            sampler: changes.sampler.clone(),
            earlier_model: self.model.clone(),
            earlier_sampler: self.sampler.clone(),
            strength: changes.strength,
            from: None,
            is_plain: changes.is_plain || self.is_plain,
        }
    }

    /// Returns the wish for the picture of `row`, whose file has this size, drawn larger; `None` if that would be larger
    /// than pictures may be.
    pub(crate) fn wish_for_upscale(&self, row: &PictureRow, size: (u32, u32)) -> Option<Wish> {
        let changes = Wish { size: Some(upscaled(size)?), seed: Some(self.seed), ..Wish::default() };
        Some(self.wish(row.prompt.as_str().to_owned(), &changes))
    }
}

/// What a place wants of pictures, as the record stores it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PlaceWishes {
    /// An admin allowed pictures for adults.
    pub(crate) adult: bool,
    /// Words that no prompt may hold.
    pub(crate) forbidden: Vec<String>,
}

impl PlaceWishes {
    /// Returns the rules for prompts. `is_for_adults` is the platform's word.
    pub(crate) fn rules(self, is_for_adults: bool) -> PromptRules {
        PromptRules { allows_adult: self.adult && is_for_adults, forbidden: self.forbidden }
    }
}
