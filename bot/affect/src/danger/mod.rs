//! The lexical safety net: recognises people in danger by their words alone, in thirty languages.
//!
//! It needs no model, so it works in the first second after a start, with a broken embedding model, and in languages that the
//! classifiers never saw. It stands beside them: a message is in danger if either says so.
//!
//! The phrases are in `rules/danger*.toml`, which explain how to write them. [`normal`] prepares text and phrases, [`pattern`] turns
//! a phrase into a regular expression, and [`signs`] finds danger that is told in passing. [`concepts`] sees wordings that nobody
//! wrote a phrase for, by concepts near each other. Begin with [`DangerLexicon::read`].

mod concepts;
mod normal;
mod pattern;
mod reading;
mod reply;
mod signs;
mod text;

use std::sync::LazyLock;

use serde::Deserialize;

pub use reading::{Harm, Reading};
pub use reply::names_a_measure;

use pattern::{List, PatternError, Slots, Spacing};
use signs::{SignEntry, Signs, Together, TogetherEntry};

const FILES: [&str; 3] = [
    include_str!("../../rules/danger.toml"),
    include_str!("../../rules/danger_wide.toml"),
    include_str!("../../rules/danger_told.toml"),
];

/// What the net found in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Danger {
    /// The person may kill or harm themselves.
    pub self_harm: bool,
    /// The person announces harm to somebody else, or tells that somebody harms or threatens them.
    pub threat: bool,
    /// The person says that they are under 18.
    pub minor: bool,
    /// The person asks about means or doses. Harmless by itself; not within a conversation about danger.
    pub means: bool,
    /// The text asks for something sexual.
    pub sexual: bool,
    /// The text speaks of a child.
    pub child: bool,
    /// The text asks the companion for romance.
    pub romance: bool,
    /// The text asks for a romantic or sexual game with a child in it.
    pub child_romance: bool,
    /// The text asks the companion to be somebody under 18.
    pub child_role: bool,
    /// The text holds words of romance or sex, whomever they are about.
    pub intimate_words: bool,
    /// The language of the first phrase found, as an ISO 639-1 code (`tl` for Filipino).
    pub language: Option<&'static str>,
}

impl Danger {
    /// Whether the text asks for something sexual or romantic with a child in it. No model answers that.
    pub fn sexualises_a_child(&self) -> bool {
        self.child_romance || (self.sexual && self.child) || self.is_intimate_with(self.minor, self.child_role)
    }

    /// Whether the text asks for something sexual or romantic, where the person is under 18 or the companion plays somebody who is.
    /// In such a play any word of romance counts, and with a person only what is addressed to the companion.
    pub fn is_intimate_with(&self, minor: bool, child_role: bool) -> bool {
        (self.is_intimate() && (minor || child_role)) || (self.intimate_words && child_role)
    }

    /// Whether the text asks for something sexual or romantic. With somebody under 18, no model answers that.
    pub fn is_intimate(&self) -> bool {
        self.sexual || self.romance
    }
}

/// The phrases of all languages, ready to match.
#[derive(Debug)]
pub struct DangerLexicon {
    languages: Vec<Language>,
}

#[derive(Debug)]
struct Language {
    code: String,
    spacing: Spacing,
    self_harm: Option<List>,
    threat: Option<List>,
    minor: Option<List>,
    means: Option<List>,
    sexual: Option<List>,
    child: Option<List>,
    wary: Option<List>,
    harmless: Option<List>,
    signs: Signs,
    self_harm_together: Together,
    threat_together: Together,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    language: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    code: String,
    /// For people who read the file.
    #[serde(default, rename = "name")]
    _name: String,
    #[serde(default = "spaced")]
    spaced: bool,
    #[serde(default)]
    self_harm: Vec<String>,
    #[serde(default)]
    threat: Vec<String>,
    #[serde(default)]
    minor: Vec<String>,
    #[serde(default)]
    means: Vec<String>,
    #[serde(default)]
    sexual: Vec<String>,
    #[serde(default)]
    child: Vec<String>,
    #[serde(default)]
    wary: Vec<String>,
    #[serde(default)]
    harmless: Vec<String>,
    #[serde(default)]
    signs: SignEntry,
    #[serde(default)]
    self_harm_together: TogetherEntry,
    #[serde(default)]
    threat_together: TogetherEntry,
    /// Alternatives that phrases of this entry name as `<slot>`.
    #[serde(default)]
    slots: Slots,
}

fn spaced() -> bool {
    true
}

impl Entry {
    /// Puts the alternatives in the place of each slot.
    fn fill(&mut self) -> Result<(), PatternError> {
        let own = [
            &mut self.self_harm,
            &mut self.threat,
            &mut self.minor,
            &mut self.means,
            &mut self.sexual,
            &mut self.child,
            &mut self.wary,
            &mut self.harmless,
        ];
        let together = self.self_harm_together.iter_mut().chain(&mut self.threat_together);
        for phrase in own.into_iter().chain(self.signs.lists_mut()).chain(together).flatten() {
            *phrase = self.slots.fill(phrase)?;
        }
        Ok(())
    }

    /// Adds the phrases of another entry of the same language. Each entry has its own slots, so those are filled in before.
    fn extend(&mut self, other: Self) {
        self.self_harm.extend(other.self_harm);
        self.threat.extend(other.threat);
        self.minor.extend(other.minor);
        self.means.extend(other.means);
        self.sexual.extend(other.sexual);
        self.child.extend(other.child);
        self.wary.extend(other.wary);
        self.harmless.extend(other.harmless);
        self.signs.extend(other.signs);
        self.self_harm_together.extend(other.self_harm_together);
        self.threat_together.extend(other.threat_together);
    }
}

static BUILT_IN: LazyLock<DangerLexicon> =
    LazyLock::new(|| DangerLexicon::parse(&FILES).expect("a test parses the built-in phrases"));

/// Why the file of phrases cannot be used.
#[derive(Debug, thiserror::Error)]
enum LexiconError {
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    #[error("language {language}: {source}")]
    Pattern { language: String, source: PatternError },
}

impl DangerLexicon {
    /// The built-in phrases. The first call compiles them, which takes some hundred milliseconds.
    pub fn builtin() -> &'static Self {
        &BUILT_IN
    }

    /// Reads files of phrases; what several say of one language is put together.
    fn parse(files: &[&str]) -> Result<Self, LexiconError> {
        let mut entries: Vec<Entry> = Vec::new();
        for file in files {
            let file: File = toml::from_str(file)?;
            for mut entry in file.language {
                entry.fill().map_err(|source| LexiconError::Pattern { language: entry.code.clone(), source })?;
                match entries.iter_mut().find(|known| known.code == entry.code) {
                    Some(known) => known.extend(entry),
                    None => entries.push(entry),
                }
            }
        }
        let languages = entries.into_iter().map(|entry| {
            let language = entry.code.clone();
            Language::compile(entry).map_err(|source| LexiconError::Pattern { language, source })
        });
        Ok(Self { languages: languages.collect::<Result<_, _>>()? })
    }

    /// The languages that the net knows, as codes.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.languages.iter().map(|language| language.code.as_str())
    }

    /// Prepares a message once, for all that the net tells of it.
    pub fn read(&'static self, text: &str) -> Reading {
        Reading::of(self, text)
    }

    /// Returns a text as the net reads it: in lower case, without accents, disguises and punctuation, with one blank
    /// before, between and behind its words.
    pub fn normalised(text: &str) -> String {
        normal::normalise(text)
    }

    /// Returns what the net finds in a message, idioms left out.
    pub fn find(&'static self, text: &str) -> Danger {
        self.read(text).danger()
    }
}

impl Danger {
    fn take(&mut self, here: Self, language: &'static str) {
        let tells = here.self_harm || here.threat || here.minor || here.means || here.sexual || here.child_romance;
        if tells && self.language.is_none() {
            self.language = Some(language);
        }
        self.self_harm |= here.self_harm;
        self.threat |= here.threat;
        self.minor |= here.minor;
        self.means |= here.means;
        self.sexual |= here.sexual;
        self.child |= here.child;
        self.romance |= here.romance;
        self.child_romance |= here.child_romance;
        self.child_role |= here.child_role;
        self.intimate_words |= here.intimate_words;
    }
}

impl Language {
    fn compile(entry: Entry) -> Result<Self, PatternError> {
        let spacing = if entry.spaced { Spacing::Words } else { Spacing::None };
        let list = |phrases: &[String]| List::of(phrases, spacing);
        Ok(Self {
            self_harm: list(&entry.self_harm)?,
            threat: list(&entry.threat)?,
            minor: list(&entry.minor)?,
            means: list(&entry.means)?,
            sexual: list(&entry.sexual)?,
            child: list(&entry.child)?,
            wary: list(&entry.wary)?,
            harmless: list(&entry.harmless)?,
            signs: Signs::compile(&entry.signs, spacing)?,
            self_harm_together: Together::compile(&entry.self_harm_together, spacing)?,
            threat_together: Together::compile(&entry.threat_together, spacing)?,
            code: entry.code,
            spacing,
        })
    }
}

#[cfg(test)]
mod tests;
