//! The concept net: recognises danger by concepts that stand near each other, in twenty languages.
//!
//! A phrase sees one wording. Here each language lists short words for concepts (a place of danger, a step, a farewell), and rules
//! that all languages share say which concepts make a finding together, and which words nearby show that the talk is harmless.
//!
//! The words are in `rules/concepts/`, one file for each language; `rules.toml` there explains how to write them. [`sentence`] splits
//! messages, [`words`] finds concepts in a sentence, [`language`] leaves out languages that the message is not in, and [`rule`]
//! decides. Begin with [`ConceptNet::find`].
//!
//! Guards are rules for the phrases: they name sentences in which a phrase means no danger ([`ConceptNet::unguarded`]).

mod language;
mod rule;
mod sentence;
mod words;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Danger;
use super::pattern::Spacing;
use language::CommonWords;
pub(super) use rule::Finding;
use rule::{Rule, RuleEntry};
pub(super) use sentence::sentences;
use words::{Index, ItemError, Mark};

const RULES: &str = include_str!("../../../rules/concepts/rules.toml");

/// The words of each language.
const LANGUAGES: [(&str, &str); 20] = [
    ("en", include_str!("../../../rules/concepts/en.toml")),
    ("es", include_str!("../../../rules/concepts/es.toml")),
    ("pt", include_str!("../../../rules/concepts/pt.toml")),
    ("fr", include_str!("../../../rules/concepts/fr.toml")),
    ("de", include_str!("../../../rules/concepts/de.toml")),
    ("it", include_str!("../../../rules/concepts/it.toml")),
    ("nl", include_str!("../../../rules/concepts/nl.toml")),
    ("pl", include_str!("../../../rules/concepts/pl.toml")),
    ("ru", include_str!("../../../rules/concepts/ru.toml")),
    ("uk", include_str!("../../../rules/concepts/uk.toml")),
    ("tr", include_str!("../../../rules/concepts/tr.toml")),
    ("sv", include_str!("../../../rules/concepts/sv.toml")),
    ("ar", include_str!("../../../rules/concepts/ar.toml")),
    ("hi", include_str!("../../../rules/concepts/hi.toml")),
    ("id", include_str!("../../../rules/concepts/id.toml")),
    ("vi", include_str!("../../../rules/concepts/vi.toml")),
    ("ko", include_str!("../../../rules/concepts/ko.toml")),
    ("ja", include_str!("../../../rules/concepts/ja.toml")),
    ("zh", include_str!("../../../rules/concepts/zh.toml")),
    ("th", include_str!("../../../rules/concepts/th.toml")),
];

/// Sentences that a rule looks at together, if it may look beyond one.
const SENTENCES_TOGETHER: usize = 5;

/// The concepts of a word, one bit each.
type Mask = u128;

/// The places of a sentence that hold concepts, in order.
type Places = Vec<(usize, Mask)>;

/// The words of all languages, and the rules.
#[derive(Debug)]
pub(super) struct ConceptNet {
    codes: Vec<&'static str>,
    /// The languages that set words apart.
    spaced: Index,
    /// The languages that do not.
    solid: Index,
    common: CommonWords,
    rules: Vec<Rule>,
    guards: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    /// Every concept, and what it means.
    concepts: BTreeMap<String, String>,
    rule: Vec<RuleEntry>,
    /// When a phrase that finds this means no danger.
    guard: Vec<RuleEntry>,
}

/// The words of one language, by concept.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageFile {
    #[serde(default = "spaced")]
    spaced: bool,
    /// Short words may be written onto the next one.
    #[serde(default = "elides")]
    elides: bool,
    /// The commonest words, where other languages have the same script.
    #[serde(default)]
    common: String,
    words: BTreeMap<String, String>,
}

fn spaced() -> bool {
    true
}

fn elides() -> bool {
    true
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
enum NetError {
    #[error("{file}: {source}")]
    Toml { file: String, source: Box<toml::de::Error> },
    #[error("{file}: no concept is called `{name}`")]
    Concept { file: String, name: String },
    #[error("{file}: `{concept}`: {source}")]
    Item { file: String, concept: String, source: ItemError },
    #[error("more than {} concepts", Mask::BITS)]
    TooMany,
}

static BUILT_IN: LazyLock<ConceptNet> =
    LazyLock::new(|| ConceptNet::parse(RULES, &LANGUAGES).expect("a test parses the built-in words"));

/// The names of the concepts. The bit of a concept is its place here.
struct Names(Vec<String>);

impl Names {
    fn mask(&self, file: &str, name: &str) -> Result<Mask, NetError> {
        let at = self.0.iter().position(|known| known == name);
        let at = at.ok_or_else(|| NetError::Concept { file: file.to_owned(), name: name.to_owned() })?;
        Ok(1 << at)
    }
}

impl ConceptNet {
    /// The built-in words and rules. The first call reads them, which takes some milliseconds.
    pub(super) fn builtin() -> &'static Self {
        &BUILT_IN
    }

    fn parse(rules: &str, languages: &[(&'static str, &str)]) -> Result<Self, NetError> {
        let rules: RulesFile = read("rules.toml", rules)?;
        let names = Names(rules.concepts.into_keys().collect());
        if names.0.len() > Mask::BITS as usize {
            return Err(NetError::TooMany);
        }
        let number = names.mask("rules.toml", "number")?;
        let mut common = CommonWords::default();
        let (mut spaced, mut solid) = (Index::new(Spacing::Words, number), Index::new(Spacing::None, number));
        for (language, (code, text)) in languages.iter().enumerate() {
            let file: LanguageFile = read(code, text)?;
            let index = if file.spaced { &mut spaced } else { &mut solid };
            if file.elides {
                index.elide(language);
            }
            common.add(&file.common);
            for (concept, items) in file.words {
                let mask = names.mask(code, &concept)?;
                let added = items.split_whitespace().try_for_each(|item| index.add(item, language, mask));
                added.map_err(|source| NetError::Item { file: (*code).to_owned(), concept, source })?;
            }
        }
        let compile = |entries: &[RuleEntry]| -> Result<Vec<Rule>, NetError> {
            let compiled = entries.iter().map(|entry| Rule::compile(entry, &|name| names.mask("rules.toml", name)));
            Ok(compiled.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        };
        Ok(Self {
            codes: languages.iter().map(|(code, _)| *code).collect(),
            spaced,
            solid,
            common,
            rules: compile(&rules.rule)?,
            guards: compile(&rules.guard)?,
        })
    }

    /// Returns what the concepts of a message tell. `without_idioms` takes figures of speech out of a sentence that raises an alarm.
    pub(super) fn find(&self, sentences: &[String], without_idioms: impl Fn(&str) -> Option<String>) -> Danger {
        let mut said: Vec<String> = sentences.to_vec();
        let found = self.decide(&self.by_language(&said));
        if !(found.self_harm || found.threat) {
            return found;
        }
        let mut changed = false;
        for sentence in &mut said {
            if !self.marks(sentence).is_empty()
                && let Some(rest) = without_idioms(sentence)
            {
                *sentence = rest;
                changed = true;
            }
        }
        if !changed {
            return found;
        }
        self.decide(&self.by_language(&said))
    }

    /// Returns the sentences in which a phrase for `finding` counts; `None` if that is every sentence.
    pub(super) fn unguarded(&self, sentences: &[String], finding: Finding) -> Option<Vec<String>> {
        // A word of another language guards nothing.
        let marks = self.places(sentences, &self.common.likeliest(sentences));
        let guarded = |number: usize| {
            let guards = || self.guards.iter().filter(|guard| guard.finding == finding);
            marks
                .iter()
                .filter_map(|(_, own)| own.get(number))
                .any(|own| guards().any(|guard| guard.applies_within(own)))
        };
        let (left, taken): (Vec<_>, Vec<_>) = sentences.iter().enumerate().partition(|(number, _)| !guarded(*number));
        (!taken.is_empty()).then(|| left.into_iter().map(|(_, sentence)| sentence.clone()).collect())
    }

    fn marks(&self, sentence: &str) -> Vec<Mark> {
        let mut marks = Vec::new();
        self.spaced.mark(sentence, &mut marks);
        if !sentence.is_ascii() {
            self.solid.mark(sentence, &mut marks);
        }
        marks
    }

    /// Returns the concepts of each sentence in each language that the message may be in. Languages without any are left out.
    fn by_language(&self, sentences: &[String]) -> Vec<(&'static str, Vec<Places>)> {
        self.places(sentences, &self.common.likely(sentences))
    }

    /// Returns the concepts of each sentence in each of these languages.
    fn places(&self, sentences: &[String], languages: &[bool]) -> Vec<(&'static str, Vec<Places>)> {
        let marked: Vec<Vec<Mark>> = sentences.iter().map(|sentence| self.marks(sentence)).collect();
        let languages = self.codes.iter().zip(languages).enumerate().filter(|(_, (_, likely))| **likely);
        let places = |language: usize| -> Vec<Places> {
            let own = |marks: &Vec<Mark>| {
                let own = marks.iter().filter(|mark| mark.language == language);
                let mut own: Places = own.map(|mark| (mark.at, mark.concepts)).collect();
                own.sort_unstable();
                own
            };
            marked.iter().map(own).collect()
        };
        let places = languages.map(|(language, (code, _))| (*code, places(language)));
        places.filter(|(_, own)| own.iter().any(|places| !places.is_empty())).collect()
    }

    /// Returns what the concepts tell, every language by itself.
    fn decide(&self, languages: &[(&'static str, Vec<Places>)]) -> Danger {
        let mut danger = Danger::default();
        for (code, own) in languages {
            for rule in &self.rules {
                if !danger.holds(rule.finding) && rule.applies(own, SENTENCES_TOGETHER) {
                    danger.add(rule.finding);
                    danger.language = danger.language.or(Some(code));
                }
            }
        }
        danger
    }

    /// Returns the rules that apply to a message, by their text, for whoever tunes them.
    #[cfg(test)]
    fn reasons(&self, text: &str) -> Vec<String> {
        let languages = self.by_language(&sentences(text));
        let applying = languages.iter().flat_map(|(code, own)| {
            let applying = self.rules.iter().filter(|rule| rule.applies(own, SENTENCES_TOGETHER));
            applying.map(move |rule| format!("{code}: {}", rule.text))
        });
        applying.collect()
    }
}

fn read<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, NetError> {
    toml::from_str(text).map_err(|source| NetError::Toml { file: file.to_owned(), source: Box::new(source) })
}

impl Danger {
    fn holds(&self, finding: Finding) -> bool {
        match finding {
            Finding::SelfHarm => self.self_harm,
            Finding::Threat => self.threat,
            Finding::Means => self.means,
            Finding::Minor => self.minor,
            Finding::Romance => self.romance,
            Finding::ChildRomance => self.child_romance,
            Finding::ChildRole => self.child_role,
            Finding::IntimateWords => self.intimate_words,
        }
    }

    fn add(&mut self, finding: Finding) {
        match finding {
            Finding::SelfHarm => self.self_harm = true,
            Finding::Threat => self.threat = true,
            Finding::Means => self.means = true,
            Finding::Minor => self.minor = true,
            Finding::Romance => self.romance = true,
            Finding::ChildRomance => self.child_romance = true,
            Finding::ChildRole => self.child_role = true,
            Finding::IntimateWords => self.intimate_words = true,
        }
    }
}

#[cfg(test)]
mod tests;
