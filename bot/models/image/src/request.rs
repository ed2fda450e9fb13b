/// The longest prompt or negative prompt, in characters.
pub const MAX_PROMPT_CHARS: usize = 2_000;

/// The shortest side of a picture, in pixels.
pub const MIN_SIDE: u32 = 64;

/// How strongly a prompt can be followed.
const GUIDANCE: std::ops::RangeInclusive<f32> = 0.0..=30.0;

/// How much of a reference can be redrawn.
const STRENGTH: std::ops::RangeInclusive<f32> = 0.05..=1.0;

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSize {
    /// The width.
    pub width: u32,
    /// The height.
    pub height: u32,
}

/// A picture to start from.
#[derive(Clone, PartialEq)]
pub struct Reference {
    /// The picture, as a PNG file.
    pub png: Vec<u8>,
    /// How much of it is redrawn, from almost nothing (0.05) to everything (1).
    pub strength: f32,
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reference({} bytes, {})", self.png.len(), self.strength)
    }
}

/// Everything that decides how a picture looks. `Debug` shows no prompt.
#[derive(Clone, PartialEq)]
pub struct ImageRequest {
    /// What to draw.
    pub prompt: String,
    /// What not to draw.
    pub negative: String,
    /// The size.
    pub size: ImageSize,
    /// Steps of the sampler. More steps take longer.
    pub steps: u32,
    /// The seed. The same request with the same seed draws the same picture, if the server supports seeds.
    pub seed: u32,
    /// How strongly the model follows the prompt.
    pub guidance: f32,
    /// The model, by the server's own name; `None` for the configured one.
    pub model: Option<String>,
    /// The sampler, by the server's own name; `None` for the server's default.
    pub sampler: Option<String>,
    /// A picture to start from.
    pub reference: Option<Reference>,
}

impl std::fmt::Debug for ImageRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageRequest")
            .field("prompt_chars", &self.prompt.chars().count())
            .field("size", &self.size)
            .field("steps", &self.steps)
            .field("reference", &self.reference.as_ref().map(|reference| reference.png.len()))
            .finish_non_exhaustive()
    }
}

/// How many times longer the sides of an enlarged picture are.
pub const UPSCALE_FACTOR: u32 = 2;

/// A picture to draw larger: both sides are [`UPSCALE_FACTOR`] times as long.
#[derive(Clone, PartialEq)]
pub struct UpscaleRequest {
    /// The picture, as a PNG file.
    pub png: Vec<u8>,
    /// The size to reach.
    pub size: ImageSize,
    /// The request that the picture was drawn by. Servers that redraw parts of it need its prompt.
    pub drawn_by: ImageRequest,
}

impl std::fmt::Debug for UpscaleRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UpscaleRequest({} bytes, {:?})", self.png.len(), self.size)
    }
}

/// What a model can draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageLimits {
    /// The longest side, in pixels.
    pub max_side: u32,
    /// The most pixels.
    pub max_pixels: u32,
    /// Both sides are multiples of this.
    pub side_multiple: u32,
    /// The most steps.
    pub max_steps: u32,
    /// Whether it can start from a picture.
    pub takes_reference: bool,
    /// Whether the same seed draws the same picture.
    pub takes_seed: bool,
    /// Whether it can draw a picture larger.
    pub upscales: bool,
}

impl Default for ImageLimits {
    /// Returns the limits of models of the Stable Diffusion XL class.
    fn default() -> Self {
        Self {
            max_side: 1_536,
            max_pixels: 1_216 * 1_216,
            side_multiple: 8,
            max_steps: 60,
            takes_reference: true,
            takes_seed: true,
            upscales: false,
        }
    }
}

impl ImageLimits {
    /// Returns the nearest request that is within the limits. Keeps the proportions of a picture that is too large.
    pub fn fit(&self, request: &ImageRequest) -> ImageRequest {
        let cut = |text: &str| text.chars().take(MAX_PROMPT_CHARS).collect::<String>();
        ImageRequest {
            prompt: cut(&request.prompt),
            negative: cut(&request.negative),
            size: self.fit_size(request.size),
            steps: request.steps.clamp(1, self.max_steps.max(1)),
            guidance: finite(request.guidance, *GUIDANCE.start()).clamp(*GUIDANCE.start(), *GUIDANCE.end()),
            reference: request.reference.clone().filter(|_| self.takes_reference).map(|reference| {
                let strength = finite(reference.strength, *STRENGTH.end()).clamp(*STRENGTH.start(), *STRENGTH.end());
                Reference { strength, ..reference }
            }),
            ..request.clone()
        }
    }

    fn fit_size(&self, size: ImageSize) -> ImageSize {
        let (width, height) = (f64::from(size.width.max(1)), f64::from(size.height.max(1)));
        let by_side = f64::from(self.max_side) / width.max(height);
        let by_pixels = (f64::from(self.max_pixels) / (width * height)).sqrt();
        let scale = by_side.min(by_pixels).min(1.0);
        let multiple = self.side_multiple.max(1);
        // The result is at most `max_side`, so it fits.
        let side = |side: f64| ((side * scale) as u32 / multiple * multiple).max(MIN_SIDE.next_multiple_of(multiple));
        ImageSize { width: side(width), height: side(height) }
    }
}

fn finite(number: f32, otherwise: f32) -> f32 {
    if number.is_finite() { number } else { otherwise }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(width: u32, height: u32) -> ImageRequest {
        ImageRequest {
            prompt: "a lighthouse".into(),
            negative: String::new(),
            size: ImageSize { width, height },
            steps: 20,
            seed: 7,
            guidance: 7.0,
            model: None,
            sampler: None,
            reference: None,
        }
    }

    #[test]
    fn a_request_within_the_limits_stays_as_it_is() {
        let limits = ImageLimits::default();
        assert_eq!(limits.fit(&request(1024, 1024)), request(1024, 1024));
    }

    #[test]
    fn a_request_beyond_the_limits_becomes_the_nearest_one_within() {
        let limits =
            ImageLimits { max_side: 1024, max_pixels: 512 * 512, takes_reference: false, ..Default::default() };
        let reference = Some(Reference { png: vec![1], strength: 0.5 });
        let wild = ImageRequest { steps: 5_000, guidance: f32::NAN, reference, ..request(4000, 2000) };
        let fitted = limits.fit(&wild);
        assert_eq!(fitted.size, ImageSize { width: 720, height: 360 });
        assert!(fitted.steps == 60 && fitted.guidance == 0.0 && fitted.reference.is_none());
        assert_eq!(limits.fit(&request(1, 1)).size, ImageSize { width: MIN_SIDE, height: MIN_SIDE });
    }

    #[test]
    fn debug_shows_no_prompt() {
        assert!(!format!("{:?}", request(64, 64)).contains("lighthouse"));
    }

    proptest! {
        #[test]
        fn every_size_is_within_the_limits(width in any::<u32>(), height in any::<u32>()) {
            let limits = ImageLimits::default();
            let size = limits.fit(&request(width, height)).size;
            prop_assert!(size.width.max(size.height) <= limits.max_side, "{size:?}");
            prop_assert!(size.width % limits.side_multiple == 0 && size.height % limits.side_multiple == 0);
            prop_assert!(size.width >= MIN_SIDE && size.height >= MIN_SIDE);
        }
    }
}
