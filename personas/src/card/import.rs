//! Converts a character card to a persona.

use azera_types::composed;
use serde_json::{Map, Value};

use super::fields::{text_of, texts_of};
use super::lorebook::Lorebook;
use super::png::{PngCard, SIGNATURE, read_png};
use super::{CardData, CardSpec, INSTRUCTIONS_TITLE, ImportedCard, Note, PERSONALITY_TITLE, TOP_LEVEL};
use crate::error::Error;
use crate::examples::{Cast, read_turns};
use crate::hygiene::{clean_name, defuse};
use crate::limits::{
    MAX_CARD_BYTES, MAX_CARD_DESCRIPTION_BYTES, MAX_CARD_FIELD_BYTES, MAX_CARD_JSON_BYTES, MAX_EXAMPLES,
    MAX_FILE_BYTES, MAX_GREETINGS, MAX_NOTES, MAX_WAKE_NAME_CHARS,
};
use crate::lines::{Line, fence_delimiter, scan, settle, unify_line_ends};
use crate::parse::parse;
use crate::parts::label_of;
use crate::persona::{ExampleInteraction, Persona, Section};
use crate::placeholders::reduce_macros;
use crate::problem::Problems;
use crate::slug::PersonaSlug;

/// Reads a character card: JSON of V1, V2 or V3, or a PNG file with one (`ccv3` before `chara`).
///
/// The persona's id is derived from its name; the host may have to choose another if it is taken.
///
/// # Errors
///
/// [`Error::NotACard`], [`Error::Json`], [`Error::Png`] and [`Error::Field`] if the card cannot be read,
/// [`Error::TooLarge`] above a limit, [`Error::Invalid`] if the card does not give a valid persona.
pub fn import_card(bytes: &[u8]) -> Result<ImportedCard, Error> {
    if bytes.len() > MAX_CARD_BYTES {
        return Err(Error::TooLarge { what: "the card", limit: format!("{} MiB", MAX_CARD_BYTES >> 20) });
    }
    if !bytes.starts_with(&SIGNATURE) {
        return Import::default().run(bytes, None);
    }
    let png = read_png(bytes)?;
    let mut import = Import::default();
    let json = import.card_text(&png)?;
    let avatar = import.avatar(png);
    import.run(&json, avatar)
}

/// Notes and extras collected during the import.
#[derive(Default)]
struct Import {
    notes: Vec<Note>,
    extras: Map<String, Value>,
}

impl Import {
    fn note(&mut self, field: &str, message: impl Into<String>) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(Note { field: field.to_owned(), message: message.into() });
        }
    }

    /// Returns the JSON in a PNG; uses the older copy if the newer one is damaged.
    fn card_text(&mut self, png: &PngCard<'_>) -> Result<Vec<u8>, Error> {
        let mut failure = None;
        for text in png.v3.iter().chain(&png.v2) {
            match text.json() {
                Ok(json) => {
                    if failure.is_some() {
                        self.note("ccv3", "was damaged, so an older copy of the card was read");
                    }
                    return Ok(json);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or_else(|| Error::NotACard {
            reason: "the picture carries no character; cards have a `ccv3` or `chara` text in them, and some sites \
                     strip it from pictures"
                .to_owned(),
        }))
    }

    fn avatar(&mut self, png: PngCard<'_>) -> Option<Vec<u8>> {
        if png.assets > 0 {
            self.note("assets", format!("{} embedded asset(s) in the picture were dropped", png.assets));
        }
        if png.trailing > 0 {
            self.note("picture", format!("{} bytes after its end were dropped", png.trailing));
        }
        if png.shows() {
            return Some(png.avatar);
        }
        let (width, height) = png.size;
        self.note("picture", format!("{width} x {height} pixels are too many; it was dropped"));
        None
    }

    fn run(mut self, json: &[u8], avatar: Option<Vec<u8>>) -> Result<ImportedCard, Error> {
        let (spec, mut card) = self.read_json(json)?;
        let name = self.name(&card)?;
        card.remove("name");
        let mut persona = Persona::empty(PersonaSlug::from_name(&name), name.clone());
        persona.intent = format!("Be {name}, in character, in every conversation with {{{{user}}}}.");
        self.note("name", format!("became the name; the id is `{}`", persona.id));
        self.nickname(&card, &mut persona);

        persona.core_identity = self
            .field(&mut card, "description", "Core Identity", MAX_CARD_DESCRIPTION_BYTES, &name)
            .unwrap_or_else(|| {
                self.note("description", "is empty, so the core identity is the name alone");
                format!("You are {name}.")
            });
        let personality = format!("Psychological Profile, {PERSONALITY_TITLE}");
        if let Some(text) = self.field(&mut card, "personality", &personality, MAX_CARD_FIELD_BYTES, &name) {
            persona.psychological_profile.other.push(Section { title: PERSONALITY_TITLE.to_owned(), text });
        }
        let scenario = self.field(&mut card, "scenario", "Prime Directive, Dynamic", MAX_CARD_FIELD_BYTES, &name);
        persona.prime_directive.dynamic = scenario.unwrap_or_default();
        let instructions = format!("Prime Directive, {INSTRUCTIONS_TITLE}");
        if let Some(text) = self.field(&mut card, "system_prompt", &instructions, MAX_CARD_FIELD_BYTES, &name) {
            persona.prime_directive.other.push(Section { title: INSTRUCTIONS_TITLE.to_owned(), text });
        }
        let constraint = self.field(
            &mut card,
            "post_history_instructions",
            "Prime Directive, Constraint",
            MAX_CARD_FIELD_BYTES,
            &name,
        );
        persona.prime_directive.constraint = constraint.unwrap_or_default();
        self.examples(&mut card, &mut persona);

        let mut greetings = self.greetings(&mut card, "first_mes", &name);
        greetings.extend(self.greetings(&mut card, "alternate_greetings", &name));
        let group_greetings = self.greetings(&mut card, "group_only_greetings", &name);
        let lorebook = match card.remove("character_book") {
            None | Some(Value::Null) => None,
            Some(book) => {
                let book = Lorebook::from_json(&book)?;
                self.note("character_book", format!("{} lorebook entries kept", book.entries.len()));
                Some(book)
            }
        };
        // Sorted by name, because the order of JSON objects depends on other crates' features.
        let mut rest: Vec<_> = card.into_iter().collect();
        rest.sort_by(|a, b| a.0.cmp(&b.0));
        for (field, value) in rest {
            if !is_blank(&value) {
                self.note(&field, "has no place in a persona; kept for export");
                self.extras.entry(field).or_insert(value);
            }
        }
        let persona = settled(&persona)?;
        let data = CardData { greetings, group_greetings, lorebook, extras: self.extras };
        Ok(ImportedCard { persona, data, avatar, spec, notes: self.notes })
    }

    /// Returns the card's format, and the object with its fields.
    fn read_json(&mut self, json: &[u8]) -> Result<(CardSpec, Map<String, Value>), Error> {
        if json.len() > MAX_CARD_JSON_BYTES {
            let limit = format!("{} KiB", MAX_CARD_JSON_BYTES >> 10);
            return Err(Error::TooLarge { what: "the card's JSON", limit });
        }
        let json = json.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(json);
        if !json.trim_ascii_start().starts_with(b"{") {
            let reason = "cards are JSON objects or PNG pictures".to_owned();
            return Err(Error::NotACard { reason });
        }
        let mut top: Map<String, Value> = serde_json::from_slice(json).map_err(|error| Error::Json {
            line: error.line(),
            column: error.column(),
            reason: error.to_string(),
        })?;
        let Some(Value::Object(card)) = top.remove("data") else {
            let flat = ["description", "personality", "scenario", "first_mes", "mes_example"];
            if flat.iter().any(|field| top.get(*field).is_some_and(Value::is_string)) {
                return Ok((CardSpec::V1, top));
            }
            let reason = "the JSON has none of a card's fields".to_owned();
            return Err(Error::NotACard { reason });
        };
        let spec = match top.remove("spec").as_ref().and_then(Value::as_str) {
            Some("chara_card_v2") => CardSpec::V2,
            Some("chara_card_v3") => CardSpec::V3,
            Some("lorebook_v3") => {
                return Err(Error::NotACard { reason: "this is a lorebook without a character".to_owned() });
            }
            _ => {
                self.note("spec", "is none that is known; read as V3");
                CardSpec::V3
            }
        };
        top.remove("spec_version");
        // V2 cards often repeat their fields at the top level for V1 readers.
        top.retain(|field, value| card.get(field) != Some(value) && !is_blank(value));
        if !top.is_empty() {
            self.note("spec", format!("{} field(s) beside `data` kept for export", top.len()));
            self.extras.insert(TOP_LEVEL.to_owned(), Value::Object(top));
        }
        Ok((spec, card))
    }

    fn name(&mut self, card: &Map<String, Value>) -> Result<String, Error> {
        let given = card.get("name").and_then(text_of).unwrap_or_default();
        let given = composed(&given);
        let name = clean_name(&given);
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
        let nickname = defuse(composed(nickname.trim()).as_ref()).into_owned();
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
                self.extras.insert(field.to_owned(), value);
            }
            return None;
        };
        let text = self.clean(field, &given).replace("{{char}}", name);
        let text = settle(self.cut(field, &text, limit, value), 3);
        if text.is_empty() {
            return None;
        }
        self.note(field, format!("became {place}"));
        Some(text)
    }

    /// Removes macros, control tokens and hidden characters from a text, except `{{char}}` and `{{user}}`.
    fn clean(&mut self, field: &str, given: &str) -> String {
        let text = unify_line_ends(given);
        let (text, unknown) = reduce_macros(&text);
        if let Some(first) = unknown.first() {
            self.note(field, format!("{} macro(s) such as {first} are not known here and stay as text", unknown.len()));
        }
        let clean = defuse(&text);
        if clean != text {
            self.note(field, "had control tokens or hidden characters, which were defused");
        }
        clean.into_owned()
    }

    /// Cuts a text at its limit; the whole text (`whole`) then goes to the extras.
    fn cut<'a>(&mut self, field: &str, text: &'a str, limit: usize, whole: Value) -> &'a str {
        if text.len() <= limit {
            return text;
        }
        self.note(field, format!("is longer than {} KiB and was cut there; the whole is kept for export", limit >> 10));
        self.extras.insert(field.to_owned(), whole);
        text.get(..text.floor_char_boundary(limit)).unwrap_or_default()
    }

    fn greetings(&mut self, card: &mut Map<String, Value>, field: &str, name: &str) -> Vec<String> {
        let Some(value) = card.remove(field) else { return Vec::new() };
        let texts = texts_of(&value).or_else(|| text_of(&value).map(|text| vec![text])).unwrap_or_default();
        let retained: Vec<String> = texts
            .iter()
            .map(|text| self.clean(field, text).replace("{{char}}", name).trim().to_owned())
            .filter(|text| !text.is_empty())
            .take(MAX_GREETINGS)
            .collect();
        let unread = texts.is_empty() && !is_blank(&value);
        if unread || texts.len() > MAX_GREETINGS {
            self.note(field, "could not be read in full; kept for export");
            self.extras.insert(field.to_owned(), value);
        }
        if !retained.is_empty() {
            self.note(field, format!("{} greeting(s) kept", retained.len()));
        }
        retained
    }

    fn examples(&mut self, card: &mut Map<String, Value>, persona: &mut Persona) {
        let Some(value) = card.remove("mes_example") else { return };
        let given = text_of(&value).unwrap_or_default();
        let text = self.clean("mes_example", &given);
        let text = self.cut("mes_example", &text, MAX_CARD_FIELD_BYTES, value.clone()).to_owned();
        for block in split_examples(&text) {
            let block = settle(&with_labels(block, persona.cast()), 3);
            let lines = scan(&block, 1).lines;
            let mut turns = read_turns(&lines, persona.cast(), &mut Problems::default());
            turns.retain(|turn| !turn.text.is_empty());
            for turn in &mut turns {
                turn.text = settle(&turn.text.replace("{{char}}", &persona.name), 3);
            }
            if !turns.is_empty() {
                let title = format!("Example {}", persona.examples.len() + 1);
                persona.examples.push(ExampleInteraction { title, turns });
            }
        }
        let read = persona.examples.len();
        persona.examples.truncate(MAX_EXAMPLES);
        while persona.to_markdown().len() > MAX_FILE_BYTES && persona.examples.pop().is_some() {}
        if read > persona.examples.len() {
            let message = format!("{} of {read} examples had to go; the whole is kept", read - persona.examples.len());
            self.note("mes_example", message);
            self.extras.insert("mes_example".to_owned(), value);
        }
        if !persona.examples.is_empty() {
            self.note("mes_example", format!("became {} example(s)", persona.examples.len()));
        }
    }
}

/// Returns the persona as it will be read from its file.
fn settled(persona: &Persona) -> Result<Persona, Error> {
    parse(&persona.to_markdown()).map_err(|problems| Error::Invalid { problems })
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Splits a text at `<START>` marks, in any case.
fn split_examples(text: &str) -> Vec<&str> {
    const MARK: &str = "<start>";
    let lower = text.to_ascii_lowercase();
    let mut from = 0;
    let mut blocks = Vec::new();
    for (at, _) in lower.match_indices(MARK) {
        blocks.extend(text.get(from..at));
        from = at + MARK.len();
    }
    blocks.extend(text.get(from..));
    blocks
}

/// Gives the first line of a block a speaker if it has none, and moves code after a label to a line of its own.
fn with_labels(block: &str, cast: Cast<'_>) -> String {
    let mut out = String::with_capacity(block.len());
    for text in block.split('\n') {
        let line = Line { number: 1, text, code: false };
        let label = label_of(&line).filter(|label| cast.speaker(label.name).is_some());
        if out.is_empty() && text.trim().is_empty() {
            continue;
        }
        if out.is_empty() && label.is_none() {
            out.push_str("{{char}}:\n");
        }
        match label {
            Some(label) if fence_delimiter(label.rest).is_some() || label.rest.starts_with("<!--") => {
                out.push_str(label.name);
                out.push_str(":\n");
                out.push_str(label.rest);
            }
            _ => out.push_str(text),
        }
        out.push('\n');
    }
    out
}
