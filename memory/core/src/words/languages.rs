use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::fold::{fold, fold_case};

/// What is known of the languages. Words of statements keep their diacritics, words of searches do not.
pub(super) struct Languages {
    each: Vec<Language>,
    /// Fillers of any language.
    fillers: HashSet<String>,
    /// Words of any language that tell statements apart.
    telling: HashMap<String, Group>,
    /// Parts after an apostrophe without a meaning of their own.
    pub(super) apostrophe_endings: HashSet<String>,
    /// Endings of words that negate.
    pub(super) negating_endings: Vec<String>,
    /// What searches leave out in scripts without spaces and in Korean.
    pub(super) asks: HashSet<String>,
    /// What searches use only when nothing else is left.
    pub(super) generic: HashSet<String>,
    /// Endings that searches cut off, longest first.
    pub(super) particles: Vec<String>,
}

/// Why a word tells two statements apart. A word of several groups, perhaps in several languages, belongs to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Unit,
    Other,
    Number,
    Negation,
}

/// The words of one language whose statements are compared.
pub(super) struct Language {
    fillers: HashSet<String>,
    neutral: HashSet<String>,
    known: HashSet<String>,
    people: HashSet<String>,
    subjects: HashSet<String>,
}

impl Language {
    pub(super) fn is_filler(&self, word: &str) -> bool {
        self.fillers.contains(word)
    }

    /// Returns true if a statement of these words begins with a subject of its own and has no word for people.
    pub(super) fn is_impersonal<'a>(&self, words: impl Iterator<Item = &'a str> + Clone) -> bool {
        let has_subject = words.clone().next().is_some_and(|first| self.subjects.contains(first));
        has_subject && !words.filter(|word| !self.subjects.contains(*word)).any(|word| self.people.contains(word))
    }

    /// Returns true for a word that only adds to a statement.
    pub(super) fn is_harmless(&self, word: &str) -> bool {
        self.fillers.contains(word) || self.neutral.contains(word)
    }
}

/// The lists of words of each language.
pub(super) const LISTS: &str = include_str!("languages.toml");

static LANGUAGES: LazyLock<Languages> =
    LazyLock::new(|| Languages::read(LISTS).expect("the file is constant and tests read it"));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    apostrophe_endings: String,
    negating_endings: Vec<String>,
    language: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    code: String,
    #[serde(default)]
    fillers: String,
    #[serde(default)]
    negations: String,
    #[serde(default)]
    numbers: String,
    #[serde(default)]
    units: String,
    #[serde(default)]
    people: String,
    #[serde(default)]
    subjects: String,
    #[serde(default)]
    speakers: String,
    #[serde(default)]
    opposites: String,
    #[serde(default)]
    neutral: String,
    #[serde(default)]
    asks: String,
    #[serde(default)]
    generic: String,
    #[serde(default)]
    particles: String,
}

impl Languages {
    pub(super) fn get() -> &'static Self {
        &LANGUAGES
    }

    fn read(text: &str) -> Result<Self, toml::de::Error> {
        let file: File = toml::from_str(text)?;
        let cased = |words: &str| words.split_whitespace().map(fold_case).collect::<Vec<_>>();
        let folded = |words: &str| words.split_whitespace().map(fold).collect::<Vec<_>>();
        let mut languages = Self {
            each: Vec::new(),
            fillers: HashSet::new(),
            telling: HashMap::new(),
            apostrophe_endings: cased(&file.apostrophe_endings).into_iter().collect(),
            negating_endings: file.negating_endings.iter().map(|ending| fold_case(ending)).collect(),
            asks: HashSet::new(),
            generic: HashSet::new(),
            particles: Vec::new(),
        };
        for entry in file.language {
            debug_assert!(!entry.code.is_empty());
            let groups = [
                (&entry.units, Group::Unit),
                (&entry.people, Group::Other),
                (&entry.opposites, Group::Other),
                (&entry.numbers, Group::Number),
                (&entry.negations, Group::Negation),
            ];
            let fillers: HashSet<String> = cased(&entry.fillers).into_iter().collect();
            let neutral: HashSet<String> = cased(&entry.neutral).into_iter().collect();
            let mut known = &fillers | &neutral;
            languages.fillers.extend(fillers.iter().cloned());
            for (words, group) in groups {
                for word in cased(words) {
                    known.insert(word.clone());
                    let present = languages.telling.entry(word).or_insert(group);
                    *present = (*present).max(group);
                }
            }
            if !known.is_empty() {
                let people = cased(&entry.people).into_iter().chain(cased(&entry.speakers)).collect();
                let subjects = cased(&entry.subjects).into_iter().collect();
                languages.each.push(Language { fillers, neutral, known, people, subjects });
            }
            languages.asks.extend(folded(&entry.asks));
            languages.generic.extend(folded(&entry.generic));
            languages.particles.extend(folded(&entry.particles));
        }
        languages.particles.sort_by_key(|ending| std::cmp::Reverse(ending.chars().count()));
        Ok(languages)
    }

    /// Returns why a word tells two statements apart, in any language; `None` if it is not known to.
    pub(super) fn group(&self, word: &str) -> Option<Group> {
        if self.negating_endings.iter().any(|ending| word.ends_with(ending.as_str())) {
            return Some(Group::Negation);
        }
        self.telling.get(word).copied()
    }

    /// Returns true for a filler of some language.
    pub(super) fn is_filler_anywhere(&self, word: &str) -> bool {
        self.fillers.contains(word)
    }

    /// Returns the language that knows most of these words; `None` if none knows one, or if two know as many.
    pub(super) fn of<'a>(&self, words: impl Iterator<Item = &'a str> + Clone) -> Option<&Language> {
        let count = |language: &Language| words.clone().filter(|word| language.known.contains(*word)).count();
        let counted = || self.each.iter().map(|language| (count(language), language));
        let most = counted().map(|(count, _)| count).max().filter(|most| *most > 0)?;
        let mut best = counted().filter(|(count, _)| *count == most);
        best.next().filter(|_| best.next().is_none()).map(|(_, language)| language)
    }

    /// Returns true if some language knows one of these words.
    pub(super) fn knows<'a>(&self, mut words: impl Iterator<Item = &'a str>) -> bool {
        words.any(|word| self.each.iter().any(|language| language.known.contains(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_readable_and_has_every_group_of_many_languages() {
        let file: File = toml::from_str(LISTS).unwrap();
        let spaced = file.language.iter().filter(|entry| !entry.opposites.is_empty());
        for entry in spaced.clone() {
            let groups = [&entry.fillers, &entry.negations, &entry.numbers, &entry.units, &entry.people];
            assert!(groups.iter().all(|words| words.split_whitespace().count() > 2), "{}", entry.code);
        }
        assert!(spaced.count() >= 24);
    }

    #[test]
    fn no_filler_of_a_language_tells_its_statements_apart() {
        let file: File = toml::from_str(LISTS).unwrap();
        for entry in file.language {
            let telling = [&entry.negations, &entry.numbers, &entry.units, &entry.people, &entry.opposites];
            let telling: HashSet<&str> = telling.iter().flat_map(|words| words.split_whitespace()).collect();
            let both: Vec<&str> = entry.fillers.split_whitespace().filter(|word| telling.contains(word)).collect();
            assert!(both.is_empty(), "{}: {both:?}", entry.code);
        }
    }
}
