//! The options of `/imagine`, as people type them behind the prompt: `a lighthouse --size wide --seed 7`.

use thiserror::Error;

/// The longest negative prompt, in characters.
pub const MAX_NEGATIVE_CHARS: usize = 500;

/// The longest name of a model or a sampler, in characters.
const MAX_CHOICE_CHARS: usize = 200;

/// Options whose values have several words.
const LONG: [&str; 4] = ["negative", "no", "model", "sampler"];

/// Names of sizes, with the share of the width and the height.
const SIZES: [(&str, u32, u32); 7] = [
    ("square", 1024, 1024),
    ("wide", 1216, 832),
    ("landscape", 1216, 832),
    ("tall", 832, 1216),
    ("portrait", 832, 1216),
    ("banner", 1536, 640),
    ("small", 512, 512),
];

/// What a person asks for.
#[derive(Clone, Default, PartialEq)]
pub struct Wish {
    /// What to draw.
    pub prompt: String,
    /// What not to draw; empty if the person wants nothing left out.
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
    /// The model of the picture that it is like, for a wish that names none. It may be there no more.
    pub earlier_model: Option<String>,
    /// The sampler of that picture.
    pub earlier_sampler: Option<String>,
    /// How much of the picture to start from is redrawn, from 0.05 to 1.
    pub strength: Option<f32>,
    /// The number of the drawn picture to start from.
    pub from: Option<u64>,
    /// True if the persona's own style is left out.
    pub is_plain: bool,
}

impl std::fmt::Debug for Wish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wish").field("size", &self.size).field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// Why options cannot be used. `Display` says what to change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WishError {
    /// There is no such option.
    #[error(
        "There is no option `--{0}`. The options are `--size`, `--seed`, `--steps`, `--negative`, `--guidance`, `--model`, `--sampler`, `--strength`, `--from` and `--style`."
    )]
    Unknown(String),
    /// The value of an option is not usable.
    #[error("`--{option}` wants {wanted}.")]
    Value {
        /// The option.
        option: &'static str,
        /// What it wants.
        wanted: &'static str,
    },
}

impl Wish {
    /// Reads a prompt and the options behind it.
    ///
    /// # Errors
    /// The option that cannot be used.
    pub fn parse(text: &str) -> Result<Self, WishError> {
        let mut wish = Self::default();
        let mut option: Option<(String, Vec<&str>)> = None;
        let mut prompt: Vec<&str> = Vec::new();
        for word in text.split_whitespace() {
            match name_of(word) {
                Some(name) => {
                    if let Some((name, words)) = option.take() {
                        wish.set(&name, &words.join(" "))?;
                    }
                    option = Some((name, Vec::new()));
                }
                None => match &mut option {
                    // Behind a value of one word, the prompt goes on.
                    Some((name, words)) if words.is_empty() || LONG.contains(&name.as_str()) => words.push(word),
                    Some(_) | None => prompt.push(word),
                },
            }
        }
        if let Some((name, words)) = option {
            wish.set(&name, &words.join(" "))?;
        }
        wish.prompt = prompt.join(" ");
        Ok(wish)
    }

    /// Returns true if a person can choose a model or a sampler of this name by an option.
    pub fn can_name(name: &str) -> bool {
        let named = Self { model: Some(name.to_owned()), ..Self::default() };
        Self::parse(&format!("--model {name}")).is_ok_and(|wish| wish == named)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), WishError> {
        let wrong = |option, wanted| WishError::Value { option, wanted };
        let within = |least: f32, most: f32| {
            value.replace(',', ".").parse().ok().filter(|number: &f32| (least..=most).contains(number))
        };
        let whole = || value.parse::<u32>().ok();
        match name {
            "size" => {
                self.size =
                    Some(size(value).ok_or(wrong(
                        "size",
                        "`square`, `wide`, `tall`, `banner`, `small`, or a size such as `768x512`",
                    ))?)
            }
            "seed" => self.seed = Some(whole().ok_or(wrong("seed", "a number from 0 to 4294967295"))?),
            "steps" => {
                let steps = whole().filter(|steps| (1..=150).contains(steps));
                self.steps = Some(steps.ok_or(wrong("steps", "a number from 1 to 150"))?);
            }
            "guidance" | "cfg" => {
                self.guidance = Some(within(0.0, 30.0).ok_or(wrong("guidance", "a number from 0 to 30"))?)
            }
            "strength" => self.strength = Some(within(0.05, 1.0).ok_or(wrong("strength", "a number from 0.05 to 1"))?),
            "style" if value.eq_ignore_ascii_case("none") => self.is_plain = true,
            "style" => return Err(wrong("style", "`none`, to leave the persona's own style out")),
            "from" => self.from = Some(value.parse().map_err(|_| wrong("from", "the number of a drawn picture"))?),
            "negative" | "no" if value.eq_ignore_ascii_case("none") => self.negative = Some(String::new()),
            "negative" | "no" if !value.is_empty() => {
                self.negative = Some(value.chars().take(MAX_NEGATIVE_CHARS).collect())
            }
            "negative" | "no" => return Err(wrong("negative", "what not to draw")),
            "model" => self.model = Some(named(value).ok_or(wrong("model", "the name of a model"))?),
            "sampler" => self.sampler = Some(named(value).ok_or(wrong("sampler", "the name of a sampler"))?),
            other => return Err(WishError::Unknown(other.chars().take(20).collect())),
        }
        Ok(())
    }
}

/// Returns the name of an option. Some keyboards turn two hyphens into a dash.
fn name_of(word: &str) -> Option<String> {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix(['—', '–']))?;
    let is_name = name.len() >= 2 && name.chars().all(|c| c.is_ascii_alphabetic());
    is_name.then(|| name.to_lowercase())
}

fn named(value: &str) -> Option<String> {
    (!value.is_empty() && value.chars().count() <= MAX_CHOICE_CHARS).then(|| value.to_owned())
}

fn size(text: &str) -> Option<(u32, u32)> {
    let text = text.to_lowercase();
    if let Some((_, width, height)) = SIZES.iter().find(|(name, _, _)| *name == text) {
        return Some((*width, *height));
    }
    let (width, height) = text.split_once(['x', '×', '*'])?;
    let side = |text: &str| text.trim().parse().ok().filter(|side| (64..=4096).contains(side));
    Some((side(width)?, side(height)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn options_are_read_wherever_they_stand() {
        let wish = Wish::parse("a lighthouse --size wide --negative fog, people --seed 7 at dusk —steps 12 --cfg 5,5")
            .unwrap();
        assert_eq!(wish.prompt, "a lighthouse at dusk");
        assert_eq!((wish.size, wish.seed, wish.steps), (Some((1216, 832)), Some(7), Some(12)));
        assert_eq!((wish.negative.as_deref(), wish.guidance), (Some("fog, people"), Some(5.5)));
        assert_eq!(Wish::parse("x --size 768x512").unwrap().size, Some((768, 512)));
        assert!(Wish::parse("x --style none").unwrap().is_plain && !Wish::parse("x").unwrap().is_plain);
        assert_eq!(Wish::parse("x --from 12").unwrap().from, Some(12));
        assert_eq!(Wish::parse("x --negative none").unwrap().negative.as_deref(), Some(""));
        let chosen = Wish::parse("x --model big one.safetensors --sampler Euler a --seed 3 y").unwrap();
        assert_eq!(
            (chosen.model.as_deref(), chosen.sampler.as_deref()),
            (Some("big one.safetensors"), Some("Euler a"))
        );
        assert_eq!((chosen.prompt.as_str(), chosen.seed), ("x y", Some(3)));
        assert_eq!(Wish::parse("a -- b - c --").unwrap().prompt, "a -- b - c --");
    }

    #[test]
    fn a_name_can_be_chosen_if_its_option_is_read_as_that_name() {
        for name in ["Euler a", "sdxl.safetensors [abc]", "a--b", &"x".repeat(200)] {
            assert!(Wish::can_name(name), "{name}");
        }
        for name in ["", "two  spaces", " before", "a --turbo", "a\nb", &"x".repeat(201)] {
            assert!(!Wish::can_name(name), "{name}");
        }
        let long = "y".repeat(150);
        assert_eq!(Wish::parse(&format!("x --sampler {long}")).unwrap().sampler, Some(long));
    }

    #[test]
    fn an_option_that_cannot_be_used_is_named() {
        #[track_caller]
        fn check(text: &str, part: &str) {
            let error = Wish::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        check("x --siez wide", "`--siez`");
        check("x --size enormous", "`--size` wants");
        check("x --size 10x10", "`--size` wants");
        check("x --seed -1", "`--seed` wants");
        check("x --steps 0", "`--steps` wants");
        check("x --strength nan", "`--strength` wants");
        check("x --negative", "`--negative` wants");
        check("x --style oil", "`--style` wants");
        check("x --model", "`--model` wants");
        check("x --from that", "`--from` wants");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
            if let Ok(wish) = Wish::parse(&text) {
                prop_assert!(wish.prompt.chars().count() <= text.chars().count());
            }
        }
    }
}
