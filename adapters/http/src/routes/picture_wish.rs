//! The body of a request for a picture.

use azera_adapter::{PictureStart, PictureWish};
use schemars::JsonSchema;
use serde::Deserialize;

use super::images::number_in;
use crate::problem::Problem;

/// The side of a picture whose other side alone was given.
const USUAL_SIDE: u32 = 1_024;

/// The shortest and the longest side that can be asked for. A server may draw smaller pictures.
const SIDES: std::ops::RangeInclusive<u32> = 64..=4_096;

/// The steps that can be asked for.
const STEPS: std::ops::RangeInclusive<u32> = 1..=150;

/// How strongly the prompt can be followed.
const GUIDANCE: std::ops::RangeInclusive<f32> = 0.0..=30.0;

/// How much of a picture can be redrawn.
const STRENGTH: std::ops::RangeInclusive<f32> = 0.05..=1.0;

/// Longest name of a picture, of a model or sampler, and longest negative prompt, in characters.
const MAX_NAME_CHARS: usize = 80;
const MAX_CHOICE_CHARS: usize = 200;
const MAX_NEGATIVE_CHARS: usize = 500;

/// Characters of the id of an uploaded picture.
const ID_CHARS: usize = 32;

/// A picture to draw.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NewPicture {
    /// What to draw.
    prompt: String,
    /// What not to draw.
    #[serde(default)]
    negative_prompt: Option<String>,
    /// The model, one of `models` in `/api/images/models`. Another name is refused. The `name` of what draws stands for its
    /// usual model.
    #[serde(default)]
    model: Option<String>,
    /// The sampler, one of `samplers` in `/api/images/models`. Another name is refused.
    #[serde(default)]
    sampler: Option<String>,
    /// The width in pixels, from 64 to 4096; the server may draw a smaller picture.
    #[serde(default)]
    width: Option<u32>,
    /// The height in pixels, like the width.
    #[serde(default)]
    height: Option<u32>,
    /// Steps of the sampler, from 1 to 150.
    #[serde(default)]
    steps: Option<u32>,
    /// How strongly the prompt is followed, from 0 to 30.
    #[serde(default)]
    cfg_scale: Option<f32>,
    /// The seed, up to 4294967295; -1 for any.
    #[serde(default)]
    seed: Option<i64>,
    /// The id or the address of a picture to start from: an uploaded or a drawn one.
    #[serde(default)]
    reference_image: Option<String>,
    /// How much of that picture is redrawn, from 0.05 to 1.
    #[serde(default)]
    reference_strength: Option<f32>,
    /// The persona that draws.
    #[serde(default)]
    persona_id: Option<String>,
    /// What the picture is called. The name of its file begins with it.
    #[serde(default)]
    custom_filename: Option<String>,
}

/// Returns what somebody wrote; some clients send empty texts for what they leave out.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Fails unless a number is within its range.
fn within<T: PartialOrd + std::fmt::Display + Copy>(
    name: &str,
    number: Option<T>,
    range: &std::ops::RangeInclusive<T>,
) -> Result<Option<T>, Problem> {
    match number {
        Some(number) if !range.contains(&number) => {
            let (least, most) = (range.start(), range.end());
            Err(Problem::invalid(format!("`{name}` is a number from {least} to {most}.")))
        }
        number => Ok(number),
    }
}

fn short(name: &str, text: Option<&str>, most: usize) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.chars().count() > most || text.chars().any(char::is_control) => {
            Err(Problem::invalid(format!("`{name}` has at most {most} characters, on one line.")))
        }
        text => Ok(text.map(str::to_owned)),
    }
}

/// Returns the picture that an id or an address names.
fn start(named: &str) -> Option<PictureStart> {
    let last = named.rsplit('/').next()?;
    let id = last.strip_suffix(".png").unwrap_or(last);
    if id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(PictureStart::Uploaded(id.to_ascii_lowercase()));
    }
    number_in(last).map(PictureStart::Drawn)
}

impl NewPicture {
    /// Returns the persona that draws, if one was named.
    pub(super) fn persona(&self) -> Option<&str> {
        given(self.persona_id.as_ref())
    }

    /// Returns what is wanted, checked. `draws` are the names of what draws, which stand for the usual model.
    pub(super) fn wish(&self, draws: &[&str]) -> Result<PictureWish, Problem> {
        if self.prompt.trim().is_empty() {
            return Err(Problem::invalid("`prompt` says what to draw."));
        }
        let (width, height) = (within("width", self.width, &SIDES)?, within("height", self.height, &SIDES)?);
        let size = match (width, height) {
            (None, None) => None,
            (width, height) => Some((width.unwrap_or(USUAL_SIDE), height.unwrap_or(USUAL_SIDE))),
        };
        let seed =
            match self.seed {
                None | Some(-1) => None,
                Some(seed) => Some(u32::try_from(seed).map_err(|_| {
                    Problem::invalid(format!("`seed` is a number from 0 to {}, or -1 for any.", u32::MAX))
                })?),
            };
        let start = match given(self.reference_image.as_ref()) {
            None => None,
            Some(named) => Some(start(named).ok_or_else(|| {
                Problem::invalid("`reference_image` is the id or the address of an uploaded or a drawn picture.")
            })?),
        };
        let negative = given(self.negative_prompt.as_ref());
        if negative.is_some_and(|negative| negative.chars().count() > MAX_NEGATIVE_CHARS) {
            return Err(Problem::invalid(format!("`negative_prompt` has at most {MAX_NEGATIVE_CHARS} characters.")));
        }
        Ok(PictureWish {
            prompt: self.prompt.trim().to_owned(),
            negative: negative.map(str::to_owned),
            size,
            seed,
            steps: within("steps", self.steps, &STEPS)?,
            guidance: within("cfg_scale", self.cfg_scale, &GUIDANCE)?,
            model: short("model", given(self.model.as_ref()).filter(|model| !draws.contains(model)), MAX_CHOICE_CHARS)?,
            sampler: short("sampler", given(self.sampler.as_ref()), MAX_CHOICE_CHARS)?,
            name: short("custom_filename", given(self.custom_filename.as_ref()), MAX_NAME_CHARS)?,
            start,
            strength: within("reference_strength", self.reference_strength, &STRENGTH)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_to_start_from_is_named_by_its_id_or_its_address() {
        let id = "00112233445566778899aabbccddeeff";
        let uploaded = Some(PictureStart::Uploaded(id.to_owned()));
        for named in [id.to_owned(), format!("{id}.png"), format!("/api/images/references/{id}.png")] {
            assert_eq!(start(&named), uploaded, "{named}");
        }
        assert_eq!(start("https://azera.example.org/api/images/picture-7.png"), Some(PictureStart::Drawn(7)));
        for named in ["", "/", "picture.png", "../../etc/passwd", "picture-x.png", "data:image/png;base64,AAAA"] {
            assert_eq!(start(named), None, "{named}");
        }
    }
}
