//! Lorebooks: facts that enter the prompt when the conversation mentions their keys.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields::{text_of, texts_of};
use crate::error::Error;
use crate::hygiene::defuse;
use crate::limits::MAX_LORE_ENTRIES;

/// A lorebook: the `character_book` of card V2 and V3, in whose format it serializes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lorebook {
    /// Its name; never in a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its description; never in a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many of the newest messages the caller should search for keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_depth: Option<u64>,
    /// Most tokens of all matching entries together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// True if the content of a matching entry may activate other entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursive_scanning: Option<bool>,
    /// The entries, in the card's order.
    pub entries: Vec<LoreEntry>,
    /// `extensions` and all other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// One entry of a lorebook.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoreEntry {
    /// Words, or patterns if `use_regex` is set. Any of them activates the entry.
    pub keys: Vec<String>,
    /// The text for the prompt, after its decorator lines (`@@...`); see [`LoreEntry::prompt_text`].
    pub content: String,
    /// False if the entry is never used.
    pub enabled: bool,
    /// Position among the matching entries, lowest first.
    pub insertion_order: f64,
    /// True if the keys are case-sensitive.
    pub case_sensitive: bool,
    /// True if the keys are regular expressions.
    pub use_regex: bool,
    /// True if the entry needs no key.
    pub constant: bool,
    /// True if one of the secondary keys is needed, too.
    pub selective: bool,
    /// See `selective`.
    pub secondary_keys: Vec<String>,
    /// Its name; never in a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A comment; never in a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// If there is too little space, entries with the lowest priority are left out first. The default is
    /// `insertion_order`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// `id`, `position`, `extensions` and all other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Lorebook {
    /// Reads a `character_book`. Accepts common deviations from the specification: entries as an object, keys as one
    /// text with commas, numbers as text. Defuses control tokens in contents.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] above [`MAX_LORE_ENTRIES`]; [`Error::Field`] if the book or an entry is not an object.
    pub fn from_json(book: &Value) -> Result<Self, Error> {
        let Value::Object(book) = book else { return Err(no_object("character_book")) };
        let mut rest = book.clone();
        let entries: Vec<&Value> = match book.get("entries") {
            Some(Value::Array(entries)) => entries.iter().collect(),
            Some(Value::Object(entries)) => entries.values().collect(),
            _ => Vec::new(),
        };
        if entries.len() > MAX_LORE_ENTRIES {
            return Err(Error::TooLarge { what: "the lorebook", limit: format!("{MAX_LORE_ENTRIES} entries") });
        }
        rest.remove("entries");
        Ok(Self {
            name: take_text(&mut rest, "name"),
            description: take_text(&mut rest, "description"),
            scan_depth: take(&mut rest, "scan_depth", number).map(whole),
            token_budget: take(&mut rest, "token_budget", number).map(whole),
            recursive_scanning: take(&mut rest, "recursive_scanning", Value::as_bool),
            entries: entries.into_iter().map(LoreEntry::from_json).collect::<Result<_, _>>()?,
            rest,
        })
    }
}

impl LoreEntry {
    fn from_json(entry: &Value) -> Result<Self, Error> {
        let Value::Object(entry) = entry else { return Err(no_object("character_book.entries[]")) };
        let mut rest = entry.clone();
        Ok(Self {
            keys: take_keys(&mut rest, "keys"),
            content: defuse(&take_text(&mut rest, "content").unwrap_or_default()).into_owned(),
            enabled: take(&mut rest, "enabled", Value::as_bool).unwrap_or(true),
            insertion_order: take(&mut rest, "insertion_order", number).unwrap_or_default(),
            case_sensitive: take(&mut rest, "case_sensitive", Value::as_bool).unwrap_or_default(),
            use_regex: take(&mut rest, "use_regex", Value::as_bool).unwrap_or_default(),
            constant: take(&mut rest, "constant", Value::as_bool).unwrap_or_default(),
            selective: take(&mut rest, "selective", Value::as_bool).unwrap_or_default(),
            secondary_keys: take_keys(&mut rest, "secondary_keys"),
            name: take_text(&mut rest, "name"),
            comment: take_text(&mut rest, "comment"),
            priority: take(&mut rest, "priority", number),
            rest,
        })
    }
}

fn no_object(field: &str) -> Error {
    Error::Field { field: field.to_owned(), reason: "must be an object" }
}

/// Takes a value out of `rest`. A value that `read` does not understand stays there under `unread_` and its key, so
/// that nothing is lost and no key appears twice.
fn take<T>(rest: &mut Map<String, Value>, key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let value = rest.remove(key)?;
    let read = read(&value);
    if read.is_none() && !value.is_null() {
        rest.insert(format!("unread_{key}"), value);
    }
    read
}

fn take_text(rest: &mut Map<String, Value>, key: &str) -> Option<String> {
    take(rest, key, text_of)
}

/// Takes the keys, without empty ones, which match nothing.
fn take_keys(rest: &mut Map<String, Value>, key: &str) -> Vec<String> {
    let keys = take(rest, key, |value| match value {
        Value::String(text) => Some(text.split(',').map(str::to_owned).collect()),
        other => texts_of(other),
    });
    keys.unwrap_or_default().into_iter().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).collect()
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        other => other.as_f64(),
    }
}

/// Converts a number to a count; `as` turns negative numbers into 0 and keeps huge ones in range.
fn whole(number: f64) -> u64 {
    number as u64
}
