//! The concept net: recognises danger by concepts that stand near each other, in twenty languages.
//!
//! A phrase sees one wording. Here each language lists short words for concepts (a place of danger, a step, a farewell), and rules
//! that all languages share say which concepts make a finding together, and which words nearby show that the talk is harmless.
//!
//! The words are in `rules/concepts/`, one file for each language; `rules.toml` there explains how to write them. [`sentence`] splits
//! messages, [`words`] finds concepts in a sentence, and [`rule`] decides. Begin with [`ConceptNet::find`].

mod rule;
mod sentence;
mod words;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Danger;
use super::pattern::Spacing;
use rule::{Finding, Rule, RuleEntry};
use sentence::sentences;
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

/// The words of all languages, and the rules.
#[derive(Debug)]
pub(super) struct ConceptNet {
    codes: Vec<&'static str>,
    /// The languages that set words apart.
    spaced: Index,
    /// The languages that do not.
    solid: Index,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    /// Every concept, and what it means.
    concepts: BTreeMap<String, String>,
    rule: Vec<RuleEntry>,
}

/// The words of one language, by concept.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageFile {
    #[serde(default = "spaced")]
    spaced: bool,
    words: BTreeMap<String, String>,
}

fn spaced() -> bool {
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
        let (mut spaced, mut solid) = (Index::new(Spacing::Words, number), Index::new(Spacing::None, number));
        for (language, (code, text)) in languages.iter().enumerate() {
            let file: LanguageFile = read(code, text)?;
            let index = if file.spaced { &mut spaced } else { &mut solid };
            for (concept, items) in file.words {
                let mask = names.mask(code, &concept)?;
                let added = items.split_whitespace().try_for_each(|item| index.add(item, language, mask));
                added.map_err(|source| NetError::Item { file: (*code).to_owned(), concept, source })?;
            }
        }
        let rules = rules.rule.iter().map(|entry| Rule::compile(entry, &|name| names.mask("rules.toml", name)));
        Ok(Self {
            codes: languages.iter().map(|(code, _)| *code).collect(),
            spaced,
            solid,
            rules: rules.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect(),
        })
    }

    /// Returns what the concepts of a message tell. `without_idioms` takes figures of speech out of a sentence that raises an alarm.
    pub(super) fn find(&self, text: &str, without_idioms: impl Fn(&str) -> Option<String>) -> Danger {
        let mut said: Vec<String> = sentences(text);
        let marked: Vec<Vec<Mark>> = said.iter().map(|sentence| self.marks(sentence)).collect();
        let found = self.decide(&marked);
        if !(found.self_harm || found.threat) {
            return found;
        }
        let mut changed = false;
        for (sentence, marks) in said.iter_mut().zip(&marked) {
            if !marks.is_empty()
                && let Some(rest) = without_idioms(sentence)
            {
                *sentence = rest;
                changed = true;
            }
        }
        if !changed {
            return found;
        }
        self.decide(&said.iter().map(|sentence| self.marks(sentence)).collect::<Vec<_>>())
    }

    fn marks(&self, sentence: &str) -> Vec<Mark> {
        let mut marks = Vec::new();
        self.spaced.mark(sentence, &mut marks);
        if !sentence.is_ascii() {
            self.solid.mark(sentence, &mut marks);
        }
        marks
    }

    /// Returns what the marks of each sentence tell, every language by itself.
    fn decide(&self, sentences: &[Vec<Mark>]) -> Danger {
        let mut danger = Danger::default();
        for (language, code) in self.codes.iter().enumerate() {
            let mut own: Vec<Vec<(usize, Mask)>> = Vec::with_capacity(sentences.len());
            for marks in sentences {
                let mut marks: Vec<(usize, Mask)> = marks
                    .iter()
                    .filter(|mark| mark.language == language)
                    .map(|mark| (mark.at, mark.concepts))
                    .collect();
                marks.sort_unstable();
                own.push(marks);
            }
            if own.iter().all(Vec::is_empty) {
                continue;
            }
            for rule in &self.rules {
                if !danger.holds(rule.finding) && rule.applies(&own, SENTENCES_TOGETHER) {
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
        let marked: Vec<Vec<Mark>> = sentences(text).iter().map(|sentence| self.marks(sentence)).collect();
        let mut reasons = Vec::new();
        for (language, code) in self.codes.iter().enumerate() {
            let own: Vec<Vec<(usize, Mask)>> = marked
                .iter()
                .map(|marks| {
                    let mut own: Vec<_> = marks
                        .iter()
                        .filter(|mark| mark.language == language)
                        .map(|mark| (mark.at, mark.concepts))
                        .collect();
                    own.sort_unstable();
                    own
                })
                .collect();
            let applying = self.rules.iter().filter(|rule| rule.applies(&own, SENTENCES_TOGETHER));
            reasons.extend(applying.map(|rule| format!("{code}: {}", rule.text)));
        }
        reasons
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
        }
    }
}

#[cfg(test)]
mod tests;
