//! The tables of `data/english.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

type Words = BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    pub units: BTreeMap<String, [String; 2]>,
    pub currencies: BTreeMap<String, [String; 4]>,
    pub scales: Words,
    pub abbreviations: Words,
    pub chat: Words,
    pub before_number: Words,
    pub acronym_words: Words,
    pub spelled: List,
    pub shouted: List,
    pub extensions: Words,
    pub spelled_extensions: List,
    pub hosts: List,
    pub months: Months,
    pub weekdays: Words,
    pub monarchs: List,
    pub counted: List,
    pub year_cues: List,
    pub digit_cues: List,
    pub pair_cues: List,
    pub letter_cues: List,
    pub modifiers: List,
    pub keys: Words,
    pub emergency: Emergency,
    pub function_words: List,
    pub symbols: Words,
    pub fractions: Words,
    pub emoji: Words,
    pub emoticons: Words,
    pub actions: List,
    pub no_actions: List,
    pub doubled: List,
}

#[derive(Deserialize)]
pub struct List {
    list: BTreeSet<String>,
}

impl List {
    pub fn has(&self, word: &str) -> bool {
        self.list.contains(word)
    }
}

#[derive(Deserialize)]
pub struct Months {
    pub list: Vec<String>,
}

#[derive(Deserialize)]
pub struct Emergency {
    pub always: BTreeSet<String>,
    pub called: BTreeSet<String>,
    pub cues: BTreeSet<String>,
}

/// Returns the tables. A test reads them, so a mistake in the file cannot ship.
pub fn tables() -> &'static Tables {
    static TABLES: LazyLock<Tables> = LazyLock::new(|| {
        toml::from_str(include_str!("../data/english.toml")).expect("data/english.toml is valid, as a test checks")
    });
    &TABLES
}

/// Returns the longest key that `text` starts with, and what it stands for.
pub fn longest<'a, T>(table: &'a BTreeMap<String, T>, text: &str) -> Option<(&'a str, &'a T)> {
    const LONGEST_KEY: usize = 14;
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).take(LONGEST_KEY);
    let keys = ends.filter_map(|end| table.get_key_value(text.get(..end)?));
    keys.last().map(|(key, value)| (key.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read_and_say_no_digit() {
        let tables = tables();
        let said = [&tables.abbreviations, &tables.chat, &tables.acronym_words, &tables.extensions, &tables.emoji];
        for words in said.iter().flat_map(|table| table.values()) {
            assert!(!words.chars().any(char::is_numeric), "{words} has a digit");
        }
        assert_eq!(tables.months.list.len(), 12);
    }
}
