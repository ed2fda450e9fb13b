//! How a persona looks, by its own file: for portraits, and for pictures that it draws of itself.

use azera_personas::{Persona, PictureStyle};

/// The section of a persona file that says how the persona looks.
pub(crate) const APPEARANCE: &str = "Appearance";

/// The most characters of that section in a prompt. Models that draw read about 75 words.
const MAX_CHARS: usize = 500;

/// Words in a prompt that mean the persona that draws.
const ITSELF: [&str; 4] = ["self portrait", "selfportrait", "yourself", "selfie of you"];

/// The word that means whoever wrote the prompt.
const WRITER: &str = "myself";

/// Who wrote a prompt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The persona, in a tag of a reply.
    Persona,
    /// A person who asks for a picture.
    Person,
}

/// Returns what a persona file says of the persona's look, in one line.
pub(crate) fn appearance(persona: &Persona) -> String {
    let text = persona.section(APPEARANCE).map(|section| section.text.as_str()).unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_CHARS).collect()
}

/// Returns the style of a picture that a persona draws. A picture of the persona itself also says how it looks.
pub(crate) fn style_of(persona: &Persona, prompt: &str, writer: Writer) -> PictureStyle {
    let mut style = persona.pictures.clone();
    let look = appearance(persona);
    if !look.is_empty() && shows_itself(prompt, &persona.name, writer) {
        style.style = Some(match style.style {
            Some(words) => format!("{look}, {words}"),
            None => look,
        });
    }
    style
}

/// Returns true if a prompt names the persona that draws.
fn shows_itself(prompt: &str, name: &str, writer: Writer) -> bool {
    let plain = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase())
    };
    let (prompt, name) = (plain(prompt), plain(name));
    let names = |words: &str| prompt.contains(words);
    let writer = (writer == Writer::Persona).then_some(WRITER);
    let mut itself = ITSELF.into_iter().chain(writer);
    !name.trim().is_empty() && names(&name) || itself.any(|words| names(&format!(" {words} ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persona_is_known_by_its_name_and_by_words_for_itself() {
        let by_person = |prompt: &str, name: &str| shows_itself(prompt, name, Writer::Person);
        for prompt in ["Mira in the rain", "a self-portrait in oil", "paint MIRA's hands", "draw yourself"] {
            assert!(by_person(prompt, "Mira") && shows_itself(prompt, "Mira", Writer::Persona), "{prompt}");
        }
        for prompt in ["a miracle", "admiral on a boat", "the sea itself", ""] {
            assert!(!by_person(prompt, "Mira") && !shows_itself(prompt, "Mira", Writer::Persona), "{prompt}");
        }
        assert!(
            by_person("old mother night, sleeping", "Old Mother Night") && !by_person("a night", "Old Mother Night")
        );
        assert!(!by_person("a boat", "✨"));
    }

    #[test]
    fn myself_is_whoever_wrote_it() {
        assert!(shows_itself("myself as a knight", "Mira", Writer::Persona));
        assert!(!shows_itself("myself as a knight", "Mira", Writer::Person));
        assert!(shows_itself("myself and Mira", "Mira", Writer::Person));
    }
}
