//! Converts the fields of a character card to a persona.
//!
//! A field of a wrong type costs only itself. Whatever a later export would not write as the card had it is kept in
//! [`CardData::extras`] under the field's name.

use azera_types::composed;
use serde_json::{Map, Value};

use super::examples::read_examples;
use super::export::card_fields;
use super::fields::{is_blank, text_of};
use super::lorebook::Lorebook;
use super::macros::clean;
use super::{CardData, INSTRUCTIONS_TITLE, Note, PERSONALITY_TITLE, default_intent};
use crate::error::Error;
use crate::hygiene::clean_name;
use crate::limits::{MAX_CARD_DESCRIPTION_BYTES, MAX_CARD_FIELD_BYTES, MAX_GREETINGS, MAX_NOTES, MAX_WAKE_NAME_CHARS};
use crate::lines::{settle, unify_line_ends};
use crate::names::callable_as;
use crate::parse::parse;
use crate::persona::{Persona, Section};
use crate::slug::PersonaSlug;

/// Most unknown macros that one note names.
const MAX_NAMED_MACROS: usize = 8;

/// A converted card.
pub(super) struct Card {
    pub(super) persona: Persona,
    pub(super) data: CardData,
    pub(super) notes: Vec<Note>,
}

/// Notes and extras collected during the conversion.
#[derive(Default)]
pub(super) struct Conversion {
    notes: Vec<Note>,
    extras: Map<String, Value>,
}

impl Conversion {
    pub(super) fn note(&mut self, field: &str, message: impl Into<String>) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(Note { field: field.to_owned(), message: message.into() });
        }
    }

    /// Keeps a value for export.
    pub(super) fn keep(&mut self, field: &str, value: Value) {
        self.extras.insert(field.to_owned(), value);
    }

    /// Converts the fields of a card.
    ///
    /// # Errors
    ///
    /// [`Error::Field`] if there is no name, [`Error::Invalid`] if the fields do not give a valid persona.
    pub(super) fn run(mut self, mut card: Map<String, Value>) -> Result<Card, Error> {
        let original = card.clone();
        let name = self.name(&card)?;
        card.remove("name");
        let id = PersonaSlug::from_name(&name).free(PersonaSlug::is_reserved);
        let mut persona = Persona::empty(id, name.clone());
        persona.intent = default_intent(&name);
        self.note("name", format!("became the name; the id is `{}`", persona.id));
        self.nickname(&card, &mut persona);
        self.note_calls(&persona);
        self.sections(&mut card, &mut persona);
        let greetings =
            [self.greetings(&mut card, "first_mes", &name), self.greetings(&mut card, "alternate_greetings", &name)];
        let greetings: Vec<String> = greetings.into_iter().flatten().collect();
        let group_greetings = self.greetings(&mut card, "group_only_greetings", &name);
        let lorebook = self.lorebook(&mut card);
        // Sorted by name, because the order of JSON objects depends on other crates' features.
        let mut rest: Vec<_> = card.into_iter().collect();
        rest.sort_by(|a, b| a.0.cmp(&b.0));
        for (field, value) in rest {
            if !is_blank(&value) {
                self.note(&field, "has no place in a persona; kept for export");
            }
            self.extras.entry(field).or_insert(value);
        }
        let persona = settled(&persona)?;
        if persona.brief_leaves_out() {
            let seen = persona.brief().split_whitespace().count();
            self.note(
                "description",
                format!(
                    "a model below 3 billion weights sees these {seen} words of the persona: \"{}\"; a section *Brief* \
                     in its file says better what matters",
                    persona.brief()
                ),
            );
        }
        let mut data = CardData { greetings, group_greetings, lorebook, extras: self.extras };
        keep_differences(&persona, &mut data, original);
        Ok(Card { persona, data, notes: self.notes })
    }

    /// Fills the persona's sections from the card's texts.
    fn sections(&mut self, card: &mut Map<String, Value>, persona: &mut Persona) {
        let name = persona.name.clone();
        persona.core_identity =
            self.field(card, "description", "Core Identity", MAX_CARD_DESCRIPTION_BYTES, &name).unwrap_or_else(|| {
                self.note("description", "is empty, so the core identity is the name alone");
                format!("You are {name}.")
            });
        let personality = format!("Psychological Profile, {PERSONALITY_TITLE}");
        if let Some(text) = self.field(card, "personality", &personality, MAX_CARD_FIELD_BYTES, &name) {
            persona.psychological_profile.other.push(Section { title: PERSONALITY_TITLE.to_owned(), text });
        }
        let scenario = self.field(card, "scenario", "Prime Directive, Dynamic", MAX_CARD_FIELD_BYTES, &name);
        persona.prime_directive.dynamic = scenario.unwrap_or_default();
        let instructions = format!("Prime Directive, {INSTRUCTIONS_TITLE}");
        if let Some(text) = self.field(card, "system_prompt", &instructions, MAX_CARD_FIELD_BYTES, &name) {
            persona.prime_directive.other.push(Section { title: INSTRUCTIONS_TITLE.to_owned(), text });
        }
        let place = "Prime Directive, Constraint";
        let constraint = self.field(card, "post_history_instructions", place, MAX_CARD_FIELD_BYTES, &name);
        persona.prime_directive.constraint = constraint.unwrap_or_default();
        read_examples(self, card, persona);
    }

    /// Notes by which names people can call the persona.
    fn note_calls(&mut self, persona: &Persona) {
        let names: Vec<String> = persona.answers_to().flat_map(callable_as).collect();
        let message = match names.is_empty() {
            true => {
                "has no letters or digits, so people cannot call it by name in a group; add `wake_names`".to_owned()
            }
            false => format!("people can call it by: {}", names.join(", ")),
        };
        self.note("name", message);
    }

    fn lorebook(&mut self, card: &mut Map<String, Value>) -> Option<Lorebook> {
        let value = card.remove("character_book")?;
        let mut notes = Vec::new();
        let book = Lorebook::read(&value, &mut notes);
        for note in notes {
            self.note("character_book", note);
        }
        if let Some(book) = &book {
            self.note("character_book", format!("{} lorebook entries kept", book.entries.len()));
        }
        book
    }

    fn name(&mut self, card: &Map<String, Value>) -> Result<String, Error> {
        let given = card.get("name").and_then(text_of).unwrap_or_default();
        let name = clean_name(&composed(&without_braces(&clean(&given).text)));
        if name.is_empty() {
            return Err(Error::Field { field: "name".to_owned(), reason: "is missing or empty" });
        }
        if name != given.trim() {
            self.note("name", "was cleaned or shortened");
        }
        Ok(name)
    }

    fn nickname(&mut self, card: &Map<String, Value>, persona: &mut Persona) {
        let Some(nickname) = card.get("nickname").and_then(text_of) else { return };
        let nickname = without_braces(&clean(nickname.trim()).text);
        let nickname = composed(nickname.trim()).into_owned();
        let usable = nickname.chars().any(char::is_alphanumeric)
            && nickname.chars().count() <= MAX_WAKE_NAME_CHARS
            && !nickname.contains(['\n', '\r'])
            && nickname != persona.name;
        if usable {
            self.note("nickname", "became a wake name");
            persona.wake_names.push(nickname);
        }
    }

    /// Takes a text field out of the card, cleaned and at most `limit` bytes long; `None` if it is missing or empty.
    fn field(
        &mut self,
        card: &mut Map<String, Value>,
        field: &str,
        place: &str,
        limit: usize,
        name: &str,
    ) -> Option<String> {
        let value = card.remove(field)?;
        let Some(given) = text_of(&value) else {
            if !value.is_null() {
                self.note(field, "is not text; kept for export");
            }
            return None;
        };
        let text = self.clean(field, &given).replace("{{char}}", name);
        let text = settle(self.cut(field, &text, limit), 3);
        if text.is_empty() {
            return None;
        }
        self.note(field, format!("became {place}"));
        Some(text)
    }

    /// Removes macros, control tokens and hidden characters from a text, except `{{char}}` and `{{user}}`.
    pub(super) fn clean(&mut self, field: &str, given: &str) -> String {
        let cleaned = clean(&unify_line_ends(given));
        if !cleaned.unknown.is_empty() {
            let names: Vec<&str> = cleaned.unknown.iter().map(String::as_str).take(MAX_NAMED_MACROS).collect();
            self.note(field, format!("macros without effect here, removed or left as words: {}", names.join(", ")));
        }
        if cleaned.defused {
            self.note(field, "had control tokens or hidden characters, which were defused");
        }
        cleaned.text
    }

    /// Cuts a text at its limit.
    pub(super) fn cut<'a>(&mut self, field: &str, text: &'a str, limit: usize) -> &'a str {
        if text.len() <= limit {
            return text;
        }
        self.note(field, format!("is longer than {} KiB and was cut there; the whole is kept for export", limit >> 10));
        text.get(..text.floor_char_boundary(limit)).unwrap_or_default()
    }

    fn greetings(&mut self, card: &mut Map<String, Value>, field: &str, name: &str) -> Vec<String> {
        let Some(value) = card.remove(field) else { return Vec::new() };
        let items = match &value {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            one => std::slice::from_ref(one),
        };
        let texts: Vec<String> = items.iter().filter_map(text_of).collect();
        let retained: Vec<String> = texts
            .iter()
            .map(|text| self.clean(field, text).replace("{{char}}", name).trim().to_owned())
            .filter(|text| !text.is_empty())
            .take(MAX_GREETINGS)
            .collect();
        if texts.len() < items.len() || texts.len() > MAX_GREETINGS {
            self.note(field, "could not be read in full; kept for export");
        }
        if !retained.is_empty() {
            self.note(field, format!("{} greeting(s) kept", retained.len()));
        }
        retained
    }
}

/// Keeps each field of the card that an export of the persona would write in another way. [`super::to_card`] then
/// writes the field as it was, as long as the persona says the same.
fn keep_differences(persona: &Persona, data: &mut CardData, original: Map<String, Value>) {
    let exported = card_fields(persona, data);
    for (field, value) in original {
        if exported.get(&field) != Some(&value) {
            data.extras.insert(field, value);
        }
    }
}

/// Returns a name without the braces of placeholders, which cannot be filled in a name.
fn without_braces(name: &str) -> String {
    name.replace("{{", "").replace("}}", "")
}

/// Returns the persona as it will be read from its file.
fn settled(persona: &Persona) -> Result<Persona, Error> {
    parse(&persona.to_markdown()).map_err(|problems| Error::Invalid { problems })
}
