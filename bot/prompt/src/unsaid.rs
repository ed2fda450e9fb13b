//! What a reply should not say back.

use azera_personas::{Persona, fill_placeholders};

use crate::form::Unsaid;

/// The most characters of a message that is talk, and no text to work on.
const TALK_CHARS: usize = 200;

/// The most digits of a message that holds no number to work on.
const MOST_DIGITS: usize = 4;

/// Returns what the reply should not say back. Recalled lines are never part of it: a remembered fact can be said.
pub(crate) fn unsaid(wanted: Unsaid, persona: &Persona, message: &str) -> Vec<String> {
    let brief = || fill_placeholders(&persona.brief(), "the person", &persona.name).into_owned();
    match wanted {
        Unsaid::Nothing => Vec::new(),
        Unsaid::PersonaAndMessage => vec![brief(), message.to_owned()],
        Unsaid::PersonaAndTalk if is_material(message) => vec![brief()],
        Unsaid::PersonaAndTalk => vec![brief(), message.to_owned()],
    }
}

/// Returns true if a message seems to hold a text, a number or an address to work on, which a reply may have to repeat.
pub(crate) fn is_material(message: &str) -> bool {
    message.chars().count() > TALK_CHARS
        || message.contains(['\n', ':', '"', '`', '‘', '„', '“', '«', '「', '@', '/'])
        || message.chars().filter(char::is_ascii_digit).count() > MOST_DIGITS
}
