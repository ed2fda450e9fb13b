//! Reads the fields of lorebook entries as their writers mean them, and collects what is lost.
//!
//! SillyTavern writes its own fields into `extensions`, and `use_regex: true` into every entry, although only a key in
//! the form `/pattern/flags` is an expression there. Its world info files have the same fields in camel case.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{flag_of, is_blank, number_of, text_of};
use super::lorebook::{Key, Logic, LoreEntry};
use super::pattern::compile;

/// Fields by which SillyTavern's entries are known.
const SILLYTAVERN: [&str; 9] = [
    "selectiveLogic",
    "match_whole_words",
    "useProbability",
    "exclude_recursion",
    "prevent_recursion",
    "display_index",
    "group_weight",
    "automation_id",
    "vectorized",
];

/// Fields of other programs that have no effect here, with their camel-case names.
const LOST: [(&str, &str); 9] = [
    ("group", "group"),
    ("automation_id", "automationId"),
    ("vectorized", "vectorized"),
    ("triggers", "triggers"),
    ("ignore_budget", "ignoreBudget"),
    ("outlet_name", "outletName"),
    ("character_filter", "characterFilter"),
    ("use_group_scoring", "useGroupScoring"),
    ("role", "role"),
];

/// Decorators with an effect.
const DECORATORS: [&str; 4] = ["activate", "dont_activate", "additional_keys", "exclude_keys"];

/// What was lost of the entries of one book.
#[derive(Default)]
pub(super) struct Fields {
    lost: BTreeMap<String, usize>,
    odd_keys: RefCell<usize>,
}

impl Fields {
    /// Returns the fields of an entry.
    pub(super) fn of<'a>(&'a self, entry: &'a Map<String, Value>) -> Entry<'a> {
        let extensions = entry.get("extensions").and_then(Value::as_object);
        let native = entry.contains_key("selectiveLogic") || entry.contains_key("keysecondary");
        let known = extensions.is_some_and(|found| SILLYTAVERN.iter().any(|field| found.contains_key(*field)));
        Entry { entry, extensions, sillytavern: native || known, odd_keys: &self.odd_keys }
    }

    pub(super) fn lose(&mut self, names: Vec<String>) {
        for name in names {
            *self.lost.entry(name).or_default() += 1;
        }
    }

    /// Returns a note for each kind of loss. `unread` is the number of entries that are none.
    pub(super) fn notes(self, unread: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if unread > 0 {
            notes.push(format!("{unread} of its entries are no objects and are not used; kept for export"));
        }
        let odd_keys = self.odd_keys.into_inner();
        if odd_keys > 0 {
            notes.push(format!("{odd_keys} of its keys are no text and are not used; kept for export"));
        }
        if !self.lost.is_empty() {
            let named: Vec<String> = self.lost.iter().map(|(name, count)| format!("{name} ({count})")).collect();
            notes.push(format!("without effect here, with the number of entries: {}", named.join(", ")));
        }
        notes
    }
}

/// The fields of one entry.
pub(super) struct Entry<'a> {
    entry: &'a Map<String, Value>,
    extensions: Option<&'a Map<String, Value>>,
    sillytavern: bool,
    odd_keys: &'a RefCell<usize>,
}

impl Entry<'_> {
    /// Returns a field of the extensions, or else of the entry itself, that is not null.
    fn value(&self, snake: &str, camel: &str) -> Option<&Value> {
        let extended = self.extensions.and_then(|found| found.get(snake).or_else(|| found.get(camel)));
        extended.filter(|value| !value.is_null()).or_else(|| self.entry.get(snake)).or_else(|| self.entry.get(camel))
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.entry.get(name).and_then(text_of)
    }

    pub(super) fn number(&self, snake: &str, camel: &str) -> Option<f64> {
        self.value(snake, camel).and_then(number_of)
    }

    pub(super) fn flag(&self, snake: &str, camel: &str) -> Option<bool> {
        self.value(snake, camel).and_then(flag_of)
    }

    /// Returns true if a field is true or a number above 0.
    pub(super) fn is_set(&self, snake: &str, camel: &str) -> bool {
        self.flag(snake, camel).unwrap_or_default()
    }

    /// Returns the keys of the first of these fields, without empty ones, which match nothing.
    pub(super) fn keys(&self, names: &[&str]) -> Vec<Key> {
        let Some(value) = names.iter().find_map(|name| self.entry.get(*name)) else { return Vec::new() };
        let texts: Vec<String> = match value {
            Value::String(text) => text.split(',').map(str::to_owned).collect(),
            Value::Array(items) => {
                let texts: Vec<String> = items.iter().filter_map(text_of).collect();
                *self.odd_keys.borrow_mut() += items.len() - texts.len();
                texts
            }
            other => {
                *self.odd_keys.borrow_mut() += usize::from(!is_blank(other));
                Vec::new()
            }
        };
        let patterns = self.flag("use_regex", "useRegex").unwrap_or_default() && !self.sillytavern;
        let insensitive = if self.flag("case_sensitive", "caseSensitive").unwrap_or_default() { "" } else { "i" };
        let texts = texts.iter().map(|key| key.trim()).filter(|key| !key.is_empty());
        let key = |key: &str| match delimited(key).filter(|_| patterns || self.sillytavern) {
            Some((pattern, flags)) => Key::Pattern { pattern: pattern.to_owned(), flags: flags.to_owned() },
            None if patterns => Key::Pattern { pattern: key.to_owned(), flags: insensitive.to_owned() },
            None => Key::Plain(key.to_owned()),
        };
        texts.map(key).collect()
    }

    /// Returns how the secondary keys decide. Expressions decide alone, unless SillyTavern wrote them.
    pub(super) fn logic(&self, secondary: &[Key]) -> Logic {
        let patterns = self.flag("use_regex", "useRegex").unwrap_or_default() && !self.sillytavern;
        if secondary.is_empty() || patterns || !self.flag("selective", "selective").unwrap_or(self.sillytavern) {
            return Logic::None;
        }
        match self.number("selectiveLogic", "selective_logic").map(whole) {
            Some(1) => Logic::NotAll,
            Some(2) => Logic::NotAny,
            Some(3) => Logic::All,
            _ => Logic::Any,
        }
    }

    /// Returns the chance in percent. SillyTavern says separately whether it counts.
    pub(super) fn probability(&self) -> f64 {
        let counts = self.flag("useProbability", "use_probability").unwrap_or(true);
        let given = self.number("probability", "risu_activationPercent");
        let given = given.or_else(|| self.number("activationPercent", "risu_activationPercent"));
        given.filter(|_| counts).map_or(100.0, |percent| percent.clamp(0.0, 100.0))
    }

    /// Returns the names of what the entry says and Azera does not do.
    pub(super) fn lost(&self, read: &LoreEntry) -> Vec<String> {
        let said = |value: &Value| !is_blank(value) && flag_of(value) != Some(false);
        let fields = LOST.iter().filter(|(snake, camel)| self.value(snake, camel).is_some_and(said));
        let mut lost: Vec<String> = fields.map(|(snake, _)| (*snake).to_owned()).collect();
        // 0 and 1 are before and after the persona, and Azera has one place for both.
        if self.value("position", "position").and_then(number_of).is_some_and(|position| position > 1.0) {
            lost.push("position".to_owned());
        }
        let decorators = read.decorators().map(|(name, _)| name).filter(|name| !DECORATORS.contains(name));
        lost.extend(
            decorators.map(|name| format!("@@{}", name.trim_start_matches('@').chars().take(40).collect::<String>())),
        );
        for key in read.keys.iter().chain(&read.secondary_keys) {
            if let Key::Pattern { pattern, flags } = key
                && compile(pattern, flags).is_none()
            {
                lost.push(format!("expression /{}/", pattern.chars().take(40).collect::<String>()));
            }
        }
        lost.sort_unstable();
        lost.dedup();
        lost
    }
}

/// Returns pattern and flags of a key in the form `/pattern/flags`; `None` if it is none, such as `/a/path/b`.
fn delimited(key: &str) -> Option<(&str, &str)> {
    let (pattern, flags) = key.strip_prefix('/')?.rsplit_once('/')?;
    if pattern.is_empty() || !flags.chars().all(|flag| "gimsuyvd".contains(flag)) {
        return None;
    }
    let mut escaped = false;
    for c in pattern.chars() {
        if c == '/' && !escaped {
            return None;
        }
        escaped = c == '\\' && !escaped;
    }
    Some((pattern, flags))
}

/// Converts a number to a count; `as` turns negative numbers into 0 and keeps huge ones in range.
pub(super) fn whole(number: f64) -> u64 {
    number as u64
}
