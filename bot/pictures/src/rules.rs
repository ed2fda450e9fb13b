//! What a prompt may ask for.

use azera_affect::DangerLexicon;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::words::Words;

/// The longest word that a place can forbid, in characters.
pub const MAX_FORBIDDEN_CHARS: usize = 60;

/// The ages in words that are under 18 in a prompt.
const AGES: [&str; 18] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
];

/// Words behind a number that make it an age.
const AGE_WORDS: [&str; 12] =
    ["year", "years", "yr", "yrs", "yo", "jahre", "jahrige", "jahriges", "ans", "anos", "anni", "let"];

/// Words before a number that make it an age.
const AGED: [&str; 3] = ["age", "aged", "alter"];

/// Why a picture is not drawn. `Display` names the rule, for the person who asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Something sexual with a minor in it.
    #[error("I never draw anything sexual with somebody under 18 in it. No setting changes that.")]
    Minors,
    /// Something sexual where that is not allowed.
    #[error(
        "Nothing sexual is drawn here. That needs a channel that the platform marks for adults, and an admin who allowed it with `/picture adult on`."
    )]
    Adult,
    /// A word that the place forbids.
    #[error("This place does not want pictures of that: `{0}` is on its list.")]
    Forbidden(String),
    /// Something about harming oneself.
    #[error("I do not draw how somebody harms or kills themselves. If this is about you, tell me in words; I listen.")]
    SelfHarm,
    /// Nothing to draw.
    #[error("Say what to draw, for example `/imagine a lighthouse at dusk`.")]
    Empty,
}

impl Refusal {
    /// Names the rule without the word that broke it: for somebody who asked for none of the words, because a persona did.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Minors => "I never draw anything sexual with somebody under 18 in it.",
            Self::Adult => "Nothing sexual is drawn here.",
            Self::Forbidden(_) => "Something in it is on the list of words that this place does not want in pictures.",
            Self::SelfHarm => "I do not draw how somebody harms or kills themselves.",
            Self::Empty => "There was nothing to draw in it.",
        }
    }
}

/// The rules of a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptRules {
    /// Whether nudity and sex are allowed: the platform marks the place for adults, and an admin allowed it.
    pub allows_adult: bool,
    /// What the place forbids, normalised by [`forbidden_word`].
    pub forbidden: Vec<String>,
}

/// Returns a word or a few as a place's list holds them; `None` if nothing is left or it is too long.
pub fn forbidden_word(text: &str) -> Option<String> {
    let word = DangerLexicon::normalised(text).trim().to_owned();
    (!word.is_empty() && word.chars().count() <= MAX_FORBIDDEN_CHARS).then_some(word)
}

/// What texts about a picture name, as far as the rules ask. A picture passes it on to those that start from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traits {
    /// Something sexual.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_sexual: bool,
    /// Somebody under 18.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_minor: bool,
    /// Something that is never drawn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_refused: bool,
    /// Somebody who harms or kills themselves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_self_harm: bool,
}

impl Traits {
    /// Returns what the texts name together.
    pub fn of(texts: &[&str]) -> Self {
        let normalised: Vec<String> = texts.iter().map(|text| DangerLexicon::normalised(text)).collect();
        let (lists, lexicon) = (Words::builtin(), DangerLexicon::builtin());
        let texts_in_words: Vec<Vec<&str>> = normalised.iter().map(|text| lists.meant(text)).collect();
        let has = |found: &dyn Fn(&[&str]) -> bool| texts_in_words.iter().any(|words| found(words));
        let danger: Vec<_> = texts.iter().map(|text| lexicon.find(text)).collect();
        Self {
            // Here, too, a naked mole-rat is nothing sexual.
            is_sexual: has(&|words| lists.sexual.is_in(words) || lexicon.find(&words.join(" ")).sexual),
            has_minor: has(&|words| lists.minor.is_in(words) || has_young_age(words))
                || danger.iter().any(|found| found.child || found.minor),
            is_refused: has(&|words| lists.refused.is_in(words))
                || danger.iter().any(|found| found.sexualises_a_child()),
            is_self_harm: danger.iter().any(|found| found.self_harm),
        }
    }

    /// Returns what either names.
    pub fn and(self, other: Self) -> Self {
        Self {
            is_sexual: self.is_sexual || other.is_sexual,
            has_minor: self.has_minor || other.has_minor,
            is_refused: self.is_refused || other.is_refused,
            is_self_harm: self.is_self_harm || other.is_self_harm,
        }
    }

    /// Returns true if nothing is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl PromptRules {
    /// Checks what a picture is made from: the prompt, what the persona adds, and the prompt that it takes over. The
    /// forbidden words of a place are looked for in these texts alone.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn check(&self, texts: &[&str]) -> Result<(), Refusal> {
        self.check_from(texts, Traits::default())
    }

    /// Checks the same for a picture that starts from another one, about which `start` is known.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn check_from(&self, texts: &[&str], start: Traits) -> Result<(), Refusal> {
        // A space between the texts would let words of two texts become a phrase.
        let normalised: Vec<String> = texts.iter().map(|text| DangerLexicon::normalised(text)).collect();
        if normalised.iter().all(|text| text.trim().is_empty()) {
            return Err(Refusal::Empty);
        }
        let named = Traits::of(texts).and(start);
        if named.is_refused || named.is_sexual && named.has_minor {
            return Err(Refusal::Minors);
        }
        if named.is_self_harm {
            return Err(Refusal::SelfHarm);
        }
        if named.is_sexual && !self.allows_adult {
            return Err(Refusal::Adult);
        }
        let forbidden = |word: &&String| normalised.iter().any(|text| text.contains(&format!(" {word} ")));
        match self.forbidden.iter().find(forbidden) {
            Some(word) => Err(Refusal::Forbidden(word.clone())),
            None => Ok(()),
        }
    }
}

/// Returns true if an age under 18 is named: "15 years old", "aged 12", "15yo", "a fifteen year old".
fn has_young_age(words: &[&str]) -> bool {
    let young = |word: &str| word.parse().is_ok_and(|age: u32| age < 18) || AGES.contains(&word);
    let pairs = words
        .windows(2)
        .any(|pair| young(pair[0]) && AGE_WORDS.contains(&pair[1]) || AGED.contains(&pair[0]) && young(pair[1]));
    pairs
        || words.iter().any(|word| {
            let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
            let unit = word.strip_prefix(digits.as_str()).unwrap_or_default();
            !digits.is_empty()
                && young(&digits)
                && matches!(unit, "yo" | "y" | "yr" | "yrs" | "year" | "years" | "jahrige")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &PromptRules, prompt: &str, want: Result<(), Refusal>) {
        assert_eq!(rules.check(&[prompt]), want, "{prompt:?}");
    }

    fn adult() -> PromptRules {
        PromptRules { allows_adult: true, forbidden: Vec::new() }
    }

    #[test]
    fn nothing_sexual_with_a_minor_is_ever_drawn() {
        for prompt in [
            "nude schoolgirl",
            "a naked child",
            "sexy 15 year old",
            "sexy 15yo girl",
            "a topless girl, aged 12",
            "fifteen-year-old in lingerie",
            "loli",
            "l0li, masterpiece",
            "shota, forest",
            "n u d e teenager",
            "Nackte Kinder am Strand",
            "fillette nue",
            "niña desnuda",
            "голая школьница",
            "裸の少女",
            "萝莉",
            "young girl, see-through dress",
            "high school student, ahegao",
            "nude little girl",
            "ein nacktes kleines Kind",
            "NAKED TODDLERS",
            "child porn",
        ] {
            check(&adult(), prompt, Err(Refusal::Minors));
            check(&PromptRules::default(), prompt, Err(Refusal::Minors));
        }
        let parts = ["a teenager in a garden", "topless"];
        assert_eq!(adult().check(&parts), Err(Refusal::Minors), "the rule is about all texts together");
    }

    #[test]
    fn what_a_picture_starts_from_counts_like_its_prompt() {
        let nude = Traits::of(&["a nude woman"]);
        assert_eq!(adult().check_from(&["as a schoolgirl"], nude), Err(Refusal::Minors));
        assert_eq!(adult().check_from(&["as a queen"], nude), Ok(()));
        assert_eq!(PromptRules::default().check_from(&["as a queen"], nude), Err(Refusal::Adult));
        let son = Traits::of(&["look, my 5 year old son"]);
        assert_eq!(adult().check_from(&["topless"], son), Err(Refusal::Minors));
        assert_eq!(adult().check_from(&["as a knight"], son), Ok(()));
        assert_eq!(adult().check_from(&["as a knight"], son.and(nude)), Err(Refusal::Minors));
        let harm = Traits::of(&["I want to kill myself"]);
        assert_eq!(adult().check_from(&["as a knight"], harm), Err(Refusal::SelfHarm));
    }

    #[test]
    fn sexual_pictures_need_a_place_for_them() {
        for prompt in ["a nude woman", "hentai", "erotic art", "woman in lingerie", "porno", "sexy pose"] {
            check(&PromptRules::default(), prompt, Err(Refusal::Adult));
            check(&adult(), prompt, Ok(()));
        }
    }

    #[test]
    fn harmless_prompts_are_drawn_everywhere() {
        for prompt in [
            "a lighthouse at dusk",
            "children playing in the snow",
            "a naked mole-rat in armour",
            "a peacock in the grass, glass cathedral",
            "Moby Dick, oil painting",
            "a cocktail in a cockpit",
            "sperm whales over the city",
            "portrait of a teenager reading",
            "an 18 year old oak",
            "a grandmother aged 80",
            "a pussy willow branch",
            "sonata in a minor",
            "assassin in the rain",
            "12 monkeys",
        ] {
            check(&PromptRules::default(), prompt, Ok(()));
        }
    }

    #[test]
    fn a_place_has_its_own_list() {
        let word = forbidden_word("  Spíders! ").unwrap();
        assert_eq!(word, "spiders");
        let rules = PromptRules { forbidden: vec![word, forbidden_word("red car").unwrap()], ..Default::default() };
        check(&rules, "big SPIDERS", Err(Refusal::Forbidden("spiders".into())));
        check(&rules, "a red, car", Err(Refusal::Forbidden("red car".into())));
        check(&rules, "spidersilk, a car that is red", Ok(()));
        assert_eq!((forbidden_word(" ,. "), forbidden_word(&"xy".repeat(31))), (None, None));
    }

    #[test]
    fn prompts_of_self_harm_and_empty_ones_are_refused() {
        check(&PromptRules::default(), "I want to kill myself", Err(Refusal::SelfHarm));
        check(&PromptRules::default(), " ,. ", Err(Refusal::Empty));
    }
}
