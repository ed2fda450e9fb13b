//! What a picture names, as far as the rules ask: by its own words, and by those about what it started from.

use azera_memory::{MessageRow, PictureRow};
use azera_pictures::{PromptRules, Refusal, Traits};
use azera_types::Part;

use super::PictureLook;

/// The words of a picture besides its prompt.
pub(super) struct Besides<'a> {
    pub(super) name: Option<&'a str>,
    /// What the person excludes.
    pub(super) negative: Option<&'a str>,
    /// What the persona adds.
    pub(super) style: Option<&'a str>,
    /// What the persona excludes.
    pub(super) style_negative: Option<&'a str>,
}

impl<'a> Besides<'a> {
    fn of(row: &'a PictureRow, look: Option<&'a PictureLook>) -> Self {
        Self {
            name: row.name.as_deref(),
            negative: look.and_then(|look| look.negative.as_deref()),
            style: look.and_then(|look| look.style.as_deref()),
            style_negative: look.and_then(|look| look.style_negative.as_deref()),
        }
    }

    /// Returns the texts that the rules ask about. Some servers read what is excluded as part of the prompt, and it can
    /// ask for the opposite.
    pub(super) fn texts(&self, prompt: &'a str) -> [&'a str; 7] {
        let (negative, style_negative) = (self.negative.unwrap_or_default(), self.style_negative.unwrap_or_default());
        [
            prompt,
            self.name.unwrap_or_default(),
            self.style.unwrap_or_default(),
            negative,
            opposite_of(negative),
            style_negative,
            opposite_of(style_negative),
        ]
    }
}

/// Returns what a picture shows that excludes these words: excluded clothes ask for a naked person, and excluded age for
/// a child.
fn opposite_of(negative: &str) -> &'static str {
    const CLOTHES: [&str; 16] = [
        "cloth",
        "dress",
        "shirt",
        "pants",
        "trousers",
        "underwear",
        "lingerie",
        "bra",
        "bikini",
        "swimsuit",
        "skirt",
        "covered",
        "censor",
        "jeans",
        "uniform",
        "garment",
    ];
    const AGE: [&str; 9] = ["adult", "mature", "grown", "old", "aged", "elder", "wrinkle", "woman", "man"];
    let negative = negative.to_lowercase();
    let words: Vec<&str> = negative.split(|c: char| !c.is_alphanumeric()).collect();
    let excludes = |list: &[&str]| words.iter().any(|word| list.iter().any(|listed| word.starts_with(listed)));
    match (excludes(&CLOTHES), excludes(&AGE)) {
        (true, true) => "nude child",
        (true, false) => "nude",
        (false, true) => "child",
        (false, false) => "",
    }
}

/// Returns the texts of a picture that the rules ask about.
pub(super) fn own_texts<'a>(row: &'a PictureRow, look: &'a PictureLook) -> [&'a str; 7] {
    Besides::of(row, Some(look)).texts(row.prompt.as_str())
}

/// Returns what a picture names: by its own words, and by those about what it started from.
pub(crate) fn traits(row: &PictureRow) -> Traits {
    let look = serde_json::from_value::<PictureLook>(row.settings.clone()).ok();
    let own = Traits::of(&Besides::of(row, look.as_ref()).texts(row.prompt.as_str()));
    look.map_or(own, |look| own.and(look.traits).and(look.start_traits))
}

/// Checks a picture by the rules of the place where it is drawn or shown.
///
/// # Errors
/// The rule that forbids it.
pub(super) fn check(rules: &PromptRules, row: &PictureRow) -> Result<(), Refusal> {
    rules.check_from(&[row.prompt.as_str(), row.name.as_deref().unwrap_or_default()], traits(row))
}

/// Returns true if the rules of a place allow a picture to be drawn and shown there: one for adults is shown only where
/// such pictures may be drawn.
pub(crate) fn is_suitable(rules: &PromptRules, row: &PictureRow) -> bool {
    check(rules, row).is_ok()
}

/// Returns what the sender of a picture, and the model that saw it, say about it.
pub(super) fn said_about(message: &MessageRow, part: &Part) -> Vec<String> {
    vec![message.text.as_str().to_owned(), part.alt.as_deref().unwrap_or_default().to_owned(), part.name.clone()]
}
