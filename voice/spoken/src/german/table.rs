//! The tables of `data/german.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    pub months: Vec<String>,
    pub short_months: Vec<String>,
    pub ordinal_n: BTreeSet<String>,
    pub ordinal_e: BTreeSet<String>,
    pub ordinal_r: BTreeSet<String>,
    pub starters: BTreeSet<String>,
    pub masculine: BTreeSet<String>,
    pub feminine: BTreeSet<String>,
    pub neuter: BTreeSet<String>,
    pub actions: BTreeSet<String>,
    pub german_words: BTreeSet<String>,
    pub english_words: BTreeSet<String>,
    pub units: BTreeMap<String, [String; 3]>,
    pub currencies: BTreeMap<String, [String; 2]>,
    pub scales: BTreeMap<String, [String; 2]>,
    pub abbreviations: BTreeMap<String, String>,
    pub symbols: BTreeMap<String, String>,
}

/// Returns the tables. A test reads them, so a mistake in the file cannot ship.
pub fn tables() -> &'static Tables {
    static TABLES: LazyLock<Tables> = LazyLock::new(|| {
        toml::from_str(include_str!("../../data/german.toml")).expect("data/german.toml is valid, as a test checks")
    });
    &TABLES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read_and_say_no_digit() {
        let tables = tables();
        for words in tables.abbreviations.values().chain(tables.symbols.values()) {
            assert!(!words.chars().any(char::is_numeric), "{words} has a digit");
        }
        assert_eq!((tables.months.len(), tables.short_months.len()), (12, 12));
        let both: Vec<&String> = tables.german_words.intersection(&tables.english_words).collect();
        assert!(both.is_empty(), "{both:?}");
    }
}
