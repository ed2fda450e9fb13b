//! How a persona looks, by its own file: for portraits, and for pictures that it draws of itself.

use azera_personas::{Persona, PictureStyle};

/// The section of a persona file that says how the persona looks.
pub(crate) const APPEARANCE: &str = "Appearance";

/// The most characters of that section in a prompt. Models that draw read about 75 words.
const MAX_CHARS: usize = 500;

/// Words in a prompt that mean the persona that draws.
const ITSELF: [&str; 5] = ["self portrait", "selfportrait", "myself", "yourself", "selfie of you"];

/// Returns what a persona file says of the persona's look, in one line.
pub(crate) fn appearance(persona: &Persona) -> String {
    let text = persona.section(APPEARANCE).map(|section| section.text.as_str()).unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_CHARS).collect()
}

/// Returns the style of a picture that a persona draws. A picture of the persona itself also says how it looks.
pub(crate) fn style_of(persona: &Persona, prompt: &str) -> PictureStyle {
    let mut style = persona.pictures.clone();
    let look = appearance(persona);
    if !look.is_empty() && shows_itself(prompt, &persona.name) {
        style.style = Some(match style.style {
            Some(words) => format!("{look}, {words}"),
            None => look,
        });
    }
    style
}

/// Returns true if a prompt names the persona that draws.
fn shows_itself(prompt: &str, name: &str) -> bool {
    let plain = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase())
    };
    let (prompt, name) = (plain(prompt), plain(name));
    let names = |words: &str| prompt.contains(words);
    !name.trim().is_empty() && names(&name) || ITSELF.iter().any(|words| names(&format!(" {words} ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persona_is_known_by_its_name_and_by_words_for_itself() {
        for prompt in
            ["Mira in the rain", "a self-portrait in oil", "paint MIRA's hands", "draw yourself", "myself, asleep"]
        {
            assert!(shows_itself(prompt, "Mira"), "{prompt}");
        }
        for prompt in ["a miracle", "admiral on a boat", "the sea itself", ""] {
            assert!(!shows_itself(prompt, "Mira"), "{prompt}");
        }
        assert!(
            shows_itself("old mother night, sleeping", "Old Mother Night")
                && !shows_itself("a night", "Old Mother Night")
        );
        assert!(!shows_itself("a boat", "✨"));
    }
}
