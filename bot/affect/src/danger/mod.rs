//! The lexical safety net: recognises people in danger by their words alone, in thirty languages.
//!
//! It needs no model, so it works in the first second after a start, with a broken embedding model, and in languages that the
//! classifiers never saw. It stands beside them: a message is in danger if either says so.
//!
//! The phrases lie in `rules/danger.toml` and `rules/danger_wide.toml`, which explain how to write them. [`normal`] is how text and phrases are
//! prepared, [`pattern`] how a phrase becomes a regular expression.

mod normal;
mod pattern;
mod reply;

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

pub use reply::names_a_measure;

use normal::normalise;
use pattern::{BARRIER, PatternError, Spacing, regex_of};

const FILES: [&str; 2] = [include_str!("../../rules/danger.toml"), include_str!("../../rules/danger_wide.toml")];

/// Characters of a message that are looked at: its first half and its last half of this. Matching takes time with the length, and
/// nobody hides a cry for help in the middle of a hundred thousand characters.
const MAX_CHARS: usize = 16_000;

/// What the net found in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Danger {
    /// The person may kill or harm themselves.
    pub self_harm: bool,
    /// The person announces harm to somebody else.
    pub threat: bool,
    /// The person says that they are under 18.
    pub minor: bool,
    /// The person asks about means or doses. Harmless by itself; not within a conversation about danger.
    pub means: bool,
    /// The text asks for something sexual.
    pub sexual: bool,
    /// The text speaks of a child.
    pub child: bool,
    /// The language of the first phrase found, as an ISO 639-1 code (`tl` for Filipino).
    pub language: Option<&'static str>,
}

impl Danger {
    /// Whether the text asks for something sexual with a child in it. No model answers that.
    pub fn sexualises_a_child(&self) -> bool {
        self.sexual && (self.child || self.minor)
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
    self_harm: Option<Regex>,
    threat: Option<Regex>,
    minor: Option<Regex>,
    means: Option<Regex>,
    sexual: Option<Regex>,
    child: Option<Regex>,
    wary: Option<Regex>,
    harmless: Option<Regex>,
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
}

fn spaced() -> bool {
    true
}

impl Entry {
    /// Adds the phrases of another entry of the same language.
    fn extend(&mut self, other: Self) {
        self.self_harm.extend(other.self_harm);
        self.threat.extend(other.threat);
        self.minor.extend(other.minor);
        self.means.extend(other.means);
        self.sexual.extend(other.sexual);
        self.child.extend(other.child);
        self.wary.extend(other.wary);
        self.harmless.extend(other.harmless);
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
            for entry in file.language {
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

    /// Returns what the net finds in a message, idioms left out.
    pub fn find(&'static self, text: &str) -> Danger {
        let text = Normalised::of(text);
        let mut found = Danger::default();
        // Idioms of every language go first, so that none of them is taken for danger in another.
        let text = self.without_harmless(&text).unwrap_or(text);
        for language in &self.languages {
            let shown = text.as_written(language.spacing);
            let matches = |list: &Option<Regex>| list.as_ref().is_some_and(|regex| regex.is_match(shown));
            let here = Danger {
                self_harm: matches(&language.self_harm),
                threat: matches(&language.threat),
                minor: matches(&language.minor),
                means: matches(&language.means),
                sexual: matches(&language.sexual),
                child: matches(&language.child),
                language: None,
            };
            found.take(here, &language.code);
        }
        found
    }

    /// Returns the message without its harmless idioms, normalised; `None` if it holds none.
    ///
    /// A classifier that raises an alarm over "I nearly died of embarrassment" is asked again about what is left.
    pub fn without_idioms(&self, text: &str) -> Option<String> {
        let rest = self.without_harmless(&Normalised::of(text))?;
        Some(rest.spaced.split(['|', ' ']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
    }

    /// Returns true if any word of the message has to do with death, harm or despair. This is the safe side, for a message that no
    /// classifier could judge: it raises many false alarms.
    pub fn is_wary(&self, text: &str) -> bool {
        let text = Normalised::of(text);
        let wary = |language: &Language| {
            let shown = text.as_written(language.spacing);
            [&language.wary, &language.self_harm].into_iter().flatten().any(|regex| regex.is_match(shown))
        };
        self.languages.iter().any(wary)
    }

    fn without_harmless(&self, text: &Normalised) -> Option<Normalised> {
        let mut rest: Option<Normalised> = None;
        for language in &self.languages {
            let Some(harmless) = &language.harmless else { continue };
            let present = rest.as_ref().unwrap_or(text);
            let shown = present.as_written(language.spacing);
            if harmless.is_match(shown) {
                rest = Some(present.without(harmless, language.spacing));
            }
        }
        rest
    }
}

impl Danger {
    fn take(&mut self, here: Self, language: &'static str) {
        let tells = here.self_harm || here.threat || here.minor || here.means || here.sexual;
        if tells && self.language.is_none() {
            self.language = Some(language);
        }
        self.self_harm |= here.self_harm;
        self.threat |= here.threat;
        self.minor |= here.minor;
        self.means |= here.means;
        self.sexual |= here.sexual;
        self.child |= here.child;
    }
}

impl Language {
    fn compile(entry: Entry) -> Result<Self, PatternError> {
        let spacing = if entry.spaced { Spacing::Words } else { Spacing::None };
        let list = |phrases: &[String]| regex_of(phrases, spacing);
        Ok(Self {
            self_harm: list(&entry.self_harm)?,
            threat: list(&entry.threat)?,
            minor: list(&entry.minor)?,
            means: list(&entry.means)?,
            sexual: list(&entry.sexual)?,
            child: list(&entry.child)?,
            wary: list(&entry.wary)?,
            harmless: list(&entry.harmless)?,
            code: entry.code,
            spacing,
        })
    }
}

/// A message as the patterns see it.
struct Normalised {
    /// Words, each with a blank before and behind it.
    spaced: String,
    /// The same without blanks, for scripts that set no words apart.
    solid: String,
}

impl Normalised {
    fn of(text: &str) -> Self {
        let chars = text.chars().count();
        let spaced = if chars <= MAX_CHARS {
            normalise(text)
        } else {
            let half = MAX_CHARS / 2;
            let ends: String = text.chars().take(half).chain([' ']).chain(text.chars().skip(chars - half)).collect();
            normalise(&ends)
        };
        Self { solid: spaced.replace(' ', ""), spaced }
    }

    fn as_written(&self, spacing: Spacing) -> &str {
        match spacing {
            Spacing::Words => &self.spaced,
            Spacing::None => &self.solid,
        }
    }

    /// The same message with a barrier in the place of each idiom.
    fn without(&self, idioms: &Regex, spacing: Spacing) -> Self {
        let mut left = self.as_written(spacing).to_owned();
        // Two idioms in a row share the blank between them, so one pass may leave the second.
        while idioms.is_match(&left) {
            left = idioms.replace_all(&left, BARRIER).into_owned();
        }
        match spacing {
            Spacing::Words => Self { solid: left.replace(' ', ""), spaced: left },
            // Where the idiom stands among the words is not known, so the words stay as they are.
            Spacing::None => Self { spaced: self.spaced.clone(), solid: left.replace(' ', "") },
        }
    }
}

#[cfg(test)]
mod tests;
