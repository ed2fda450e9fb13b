//! Lorebooks: facts that enter the prompt when the conversation mentions their keys.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::lore_fields::{Fields, whole};
use super::macros::clean;
use crate::limits::MAX_LORE_ENTRIES;

/// A lorebook: the `character_book` of card V2 and V3. It serializes as the JSON that it was read from, so nothing of
/// it is lost.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Lorebook {
    /// How many of the newest messages are searched for keys.
    pub scan_depth: Option<u64>,
    /// Most tokens of all matching entries together.
    pub token_budget: Option<u64>,
    /// True if the content of a matching entry may activate other entries.
    pub recursive_scanning: bool,
    /// The entries that can be read, in the card's order.
    pub entries: Vec<LoreEntry>,
    /// Texts of the card besides the persona's, which some entries search for their keys.
    pub(super) creator_notes: String,
    pub(super) depth_prompt: String,
    original: Value,
}

/// One entry of a lorebook.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct LoreEntry {
    /// The keys, of which one activates the entry.
    pub keys: Vec<Key>,
    /// The text for the prompt, after its decorator lines (`@@...`); see [`LoreEntry::prompt_text`].
    pub content: String,
    /// False if the entry is never used.
    pub enabled: bool,
    /// Position among the matching entries, lowest first.
    pub insertion_order: f64,
    /// True if plain keys are case-sensitive.
    pub case_sensitive: bool,
    /// True if a plain key may stand within a word.
    pub within_words: bool,
    /// True if the entry needs no key.
    pub constant: bool,
    /// What the secondary keys decide.
    pub logic: Logic,
    /// See `logic`.
    pub secondary_keys: Vec<Key>,
    /// If there is too little space, entries with the lowest priority are left out first. The default is
    /// `insertion_order`.
    pub priority: Option<f64>,
    /// How many of the newest messages are searched, if not as many as the book says.
    pub scan_depth: Option<u64>,
    /// Chance in percent that a match activates the entry.
    pub probability: f64,
    /// Messages that the conversation must have.
    pub delay: u64,
    /// Messages for which the entry stays active.
    pub sticky: u64,
    /// Messages for which the entry is not activated again.
    pub cooldown: u64,
    /// Whether the content of other entries activates it, and whether its own activates others.
    pub recursion: Recursion,
    /// Texts that are searched besides the messages.
    pub sources: Sources,
}

/// A key of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A word or phrase.
    Plain(String),
    /// A regular expression, with its flags.
    Pattern {
        /// The expression.
        pattern: String,
        /// Letters such as `i`.
        flags: String,
    },
}

/// How secondary keys decide. All need one of the keys, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Logic {
    /// They decide nothing.
    #[default]
    None,
    /// One of them must occur (AND ANY).
    Any,
    /// All of them must occur (AND ALL).
    All,
    /// None of them may occur (NOT ANY).
    NotAny,
    /// One of them at least must be missing (NOT ALL).
    NotAll,
}

/// How an entry takes part in recursive scanning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recursion {
    /// Other entries do not activate it.
    pub excluded: bool,
    /// It does not activate other entries.
    pub prevented: bool,
    /// Only other entries activate it.
    pub only: bool,
}

/// Texts besides the messages that are searched for an entry's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sources {
    /// The persona's description.
    pub description: bool,
    /// The persona's personality.
    pub personality: bool,
    /// The scenario.
    pub scenario: bool,
    /// The notes of the card's author.
    pub creator_notes: bool,
    /// The text that the card wants near the end of a prompt.
    pub depth_prompt: bool,
    /// The role that the person plays.
    pub user_persona: bool,
}

impl Lorebook {
    /// Reads a `character_book`, and adds what was not understood to `notes`. An entry or a key of a wrong type costs
    /// only itself. Accepts common deviations: entries as an object or as the book itself, keys as one text with commas,
    /// numbers as text, the field names of world info files. Returns `None` if there is no entry to read.
    pub fn read(book: &Value, notes: &mut Vec<String>) -> Option<Self> {
        let empty = Map::new();
        let (fields, entries): (&Map<String, Value>, Vec<&Value>) = match book {
            Value::Object(fields) => match fields.get("entries") {
                Some(Value::Array(entries)) => (fields, entries.iter().collect()),
                Some(Value::Object(entries)) => (fields, entries.values().collect()),
                None => (fields, Vec::new()),
                Some(_) => {
                    notes.push("its `entries` are no list, so it has none".to_owned());
                    (fields, Vec::new())
                }
            },
            Value::Array(entries) if !entries.is_empty() => (&empty, entries.iter().collect()),
            Value::Null => return None,
            _ => {
                notes.push("is no lorebook; kept for export".to_owned());
                return None;
            }
        };
        let mut reading = Fields::default();
        let read: Vec<LoreEntry> =
            entries.iter().take(MAX_LORE_ENTRIES).filter_map(|entry| LoreEntry::read(entry, &mut reading)).collect();
        if entries.len() > MAX_LORE_ENTRIES {
            notes.push(format!("has {} entries; only the first {MAX_LORE_ENTRIES} are used", entries.len()));
        }
        notes.append(&mut reading.notes(entries.len().min(MAX_LORE_ENTRIES) - read.len()));
        let number = |key: &str| fields.get(key).and_then(super::fields::number_of).map(whole);
        Some(Self {
            scan_depth: number("scan_depth"),
            token_budget: number("token_budget"),
            recursive_scanning: fields.get("recursive_scanning").and_then(super::fields::flag_of).unwrap_or_default(),
            entries: read,
            creator_notes: String::new(),
            depth_prompt: String::new(),
            original: book.clone(),
        })
    }

    /// Returns the JSON that the book was read from.
    pub(super) fn original(&self) -> &Value {
        &self.original
    }
}

impl Serialize for Lorebook {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.original.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Lorebook {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let book = Value::deserialize(deserializer)?;
        Ok(Self::read(&book, &mut Vec::new()).unwrap_or_default())
    }
}

impl LoreEntry {
    fn read(entry: &Value, fields: &mut Fields) -> Option<Self> {
        let Value::Object(entry) = entry else { return None };
        let of = fields.of(entry);
        let (keys, secondary_keys) = (of.keys(&["keys", "key"]), of.keys(&["secondary_keys", "keysecondary"]));
        let content = of.text("content").unwrap_or_default();
        let timed = |name: &str| of.number(name, name).map(whole).unwrap_or_default();
        let source = |snake: &str, camel: &str| of.flag(snake, camel).unwrap_or_default();
        let read = Self {
            content: clean(&content).text,
            enabled: of.flag("enabled", "enabled").unwrap_or(true)
                && !of.flag("disable", "disable").unwrap_or_default(),
            insertion_order: of.number("insertion_order", "order").unwrap_or_default(),
            case_sensitive: of.flag("case_sensitive", "caseSensitive").unwrap_or_default(),
            within_words: of.flag("match_whole_words", "matchWholeWords") == Some(false),
            constant: of.flag("constant", "alwaysActive").unwrap_or_default(),
            logic: of.logic(&secondary_keys),
            priority: of.number("priority", "priority"),
            scan_depth: of.number("scan_depth", "scanDepth").map(whole),
            probability: of.probability(),
            delay: timed("delay"),
            sticky: timed("sticky"),
            cooldown: timed("cooldown"),
            recursion: Recursion {
                excluded: source("exclude_recursion", "excludeRecursion"),
                prevented: source("prevent_recursion", "preventRecursion"),
                only: of.is_set("delay_until_recursion", "delayUntilRecursion"),
            },
            sources: Sources {
                description: source("match_character_description", "matchCharacterDescription"),
                personality: source("match_character_personality", "matchCharacterPersonality"),
                scenario: source("match_scenario", "matchScenario"),
                creator_notes: source("match_creator_notes", "matchCreatorNotes"),
                depth_prompt: source("match_character_depth_prompt", "matchCharacterDepthPrompt"),
                user_persona: source("match_persona_description", "matchPersonaDescription"),
            },
            keys,
            secondary_keys,
        };
        let lost = of.lost(&read);
        fields.lose(lost);
        Some(read)
    }

    /// Returns the text for the prompt: the content without decorator lines.
    pub fn prompt_text(&self) -> String {
        let lines: Vec<&str> = self.content.lines().filter(|line| !line.trim_start().starts_with("@@")).collect();
        lines.join("\n").trim().to_owned()
    }

    /// Returns the argument of a decorator; `None` if the entry does not have it.
    pub(super) fn decorator(&self, name: &str) -> Option<&str> {
        self.decorators().find_map(|(found, argument)| (found == name).then_some(argument))
    }

    /// Returns the decorators with their arguments.
    pub(super) fn decorators(&self) -> impl Iterator<Item = (&str, &str)> {
        self.content.lines().filter_map(|line| {
            let line = line.trim().strip_prefix("@@")?;
            let (found, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            Some((found, argument.trim()))
        })
    }
}
