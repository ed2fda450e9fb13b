//! The id of a persona.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::builtin::BUILT_INS;
use crate::error::Error;
use crate::fold::{fold, transliterated};
use crate::limits::MAX_ID_CHARS;

/// A persona's id: 1 to 48 of `a-z`, `0-9` and `-`, not beginning or ending with `-`. It names the persona's file and
/// its memories, so it never changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PersonaSlug(String);

impl PersonaSlug {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Derives an id from a name: letters in their usual ASCII spelling and digits, in lower case, everything else as
    /// single hyphens. Latin, Greek and Cyrillic letters have such a spelling. A name without any becomes `persona-` and
    /// eight hex digits of its SHA-256, so that two such names differ. Different names can give the same id; see
    /// [`PersonaSlug::free`].
    pub fn from_name(name: &str) -> Self {
        let mut slug = String::new();
        for c in fold(name).chars() {
            match transliterated(c) {
                Some(letters) => slug.push_str(letters),
                None if c.is_ascii_alphanumeric() => slug.push(c),
                None if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
                None => {}
            }
        }
        slug.truncate(MAX_ID_CHARS);
        let slug = slug.trim_end_matches('-');
        if !slug.is_empty() {
            return Self(slug.to_owned());
        }
        let digest = Sha256::digest(name.as_bytes());
        Self(format!("persona-{}", HEXLOWER.encode(&digest[..4])))
    }

    /// Returns true for the ids of the built-in personas, which no other persona gets.
    pub fn is_reserved(&self) -> bool {
        BUILT_INS.iter().any(|built_in| built_in.id == self.0)
    }

    /// Returns the first of `luna`, `luna-2`, `luna-3`, ... that is not taken.
    pub fn free(&self, taken: impl Fn(&Self) -> bool) -> Self {
        self.numbered().find(|id| !taken(id)).unwrap_or_else(|| self.clone())
    }

    /// Returns the id, and then the id with the numbers 2, 3 and so on behind it.
    pub fn numbered(&self) -> impl Iterator<Item = Self> {
        let numbered = (2u32..).map(|number| {
            let number = format!("-{number}");
            let room = MAX_ID_CHARS - number.len();
            let front = self.0.get(..self.0.len().min(room)).unwrap_or_default().trim_end_matches('-');
            Self(format!("{front}{number}"))
        });
        std::iter::once(self.clone()).chain(numbered)
    }
}

impl FromStr for PersonaSlug {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let allowed = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let sized = (1..=MAX_ID_CHARS).contains(&text.len());
        if allowed && sized && !text.starts_with('-') && !text.ends_with('-') {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::Id { id: text.chars().take(MAX_ID_CHARS).collect() })
        }
    }
}

impl TryFrom<String> for PersonaSlug {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<PersonaSlug> for String {
    fn from(slug: PersonaSlug) -> Self {
        slug.0
    }
}

impl fmt::Display for PersonaSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_ids_are_accepted() {
        fn check(text: &str, valid: bool) {
            assert_eq!(text.parse::<PersonaSlug>().is_ok(), valid, "{text:?}");
        }
        check("azera", true);
        check("a", true);
        check("night-watch-2", true);
        check(&"a".repeat(48), true);
        check(&"a".repeat(49), false);
        check("", false);
        check("Azera", false);
        check("-azera", false);
        check("azera-", false);
        check("../etc", false);
        check("a b", false);
        check("é", false);
    }

    #[test]
    fn every_name_gives_a_valid_id() {
        fn check(name: &str, id: &str) {
            let slug = PersonaSlug::from_name(name);
            assert_eq!(slug.as_str(), id);
            assert_eq!(id.parse::<PersonaSlug>().ok(), Some(slug));
        }
        check("Azera", "azera");
        check("  Captain J. O'Neil (v2) ", "captain-j-o-neil-v2");
        check(&"long ".repeat(40), "long-long-long-long-long-long-long-long-long-lon");
        check("千早", "persona-6cd754b5");
        assert_ne!(PersonaSlug::from_name("千早"), PersonaSlug::from_name("天海"));
        check("Zoë", "zoe");
        check("Łukasz Strauß", "lukasz-strauss");
        check("Надежда", "nadezhda");
        check("Ἀθηνᾶ", "athina");
        check("Luna 澪", "luna");
    }

    #[test]
    fn a_taken_id_gets_a_number() {
        let free = |name: &str, taken: &[&str]| {
            PersonaSlug::from_name(name).free(|id| id.is_reserved() || taken.contains(&id.as_str())).to_string()
        };
        assert_eq!(free("Zoé", &[]), "zoe");
        assert_eq!(free("Zoé", &["zoe"]), "zoe-2");
        assert_eq!(free("Zoé", &["zoe", "zoe-2"]), "zoe-3");
        assert_eq!(free("Azera!", &[]), "azera-2");
        assert_eq!(free("PROTAG", &["protag-2"]), "protag-3");
        let long = "long ".repeat(40);
        let numbered = free(&long, &[PersonaSlug::from_name(&long).as_str()]);
        assert!(numbered.len() <= MAX_ID_CHARS && numbered.ends_with("-2"), "{numbered}");
        assert!(numbered.parse::<PersonaSlug>().is_ok());
    }
}
