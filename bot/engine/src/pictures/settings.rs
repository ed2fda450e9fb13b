use std::sync::Arc;

use azera_model_image::{ImageModel, ImageRequest, ImageSize, Reference};
use azera_pictures::{PromptRules, Wish};
use azera_types::PersonaId;
use serde::{Deserialize, Serialize};

/// How much of a picture is redrawn for a variation.
pub(crate) const VARIATION_STRENGTH: f32 = 0.35;

/// The fewest weights of a chat model that is told how to ask for pictures. Smaller ones do it at the wrong moments.
const MIN_PARAMETERS: u64 = 6_000_000_000;

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
    /// Whether personas may ask for pictures in their replies.
    pub in_replies: bool,
}

impl std::fmt::Debug for PictureSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PictureSettings").field("model", &self.model.name()).finish_non_exhaustive()
    }
}

impl PictureSettings {
    /// Returns true if a chat model is told how to ask for pictures.
    pub(crate) fn tells(&self, model: &azera_model_api::ModelInfo) -> bool {
        self.in_replies && model.parameters.is_some_and(|parameters| parameters >= MIN_PARAMETERS)
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
            negative: wish.negative.clone(),
            sampler: wish.sampler.clone().or_else(|| self.sampler.clone()),
            strength: wish.strength,
            drawn: None,
            uploaded: None,
            portrait_of: None,
        }
    }

    /// Returns the request for a picture.
    pub(crate) fn request(&self, prompt: &str, look: &PictureLook, reference: Option<Vec<u8>>) -> ImageRequest {
        let negative = [look.negative.as_deref().unwrap_or_default(), self.negative.as_str()];
        let strength = look.strength.unwrap_or(VARIATION_STRENGTH);
        self.model.limits().fit(&ImageRequest {
            prompt: prompt.to_owned(),
            negative: negative.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", "),
            size: ImageSize { width: look.width, height: look.height },
            steps: look.steps,
            seed: look.seed,
            guidance: look.guidance,
            sampler: look.sampler.clone(),
            reference: reference.map(|png| Reference { png, strength }),
        })
    }
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sampler: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strength: Option<f32>,
    /// Width and height of the picture that came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) drawn: Option<(u32, u32)>,
    /// The id of the uploaded picture that it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) uploaded: Option<String>,
    /// The persona that it portrays, if an admin asked for a portrait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) portrait_of: Option<PersonaId>,
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
