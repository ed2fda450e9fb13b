//! Which concepts make a finding together.

use serde::Deserialize;

use super::{Mask, NetError};

/// Steps of a place in a sentence: a word is two, and a character of a script without blanks is one.
pub(super) const STEPS_A_WORD: usize = 2;

/// Words within which the concepts of a rule stand, if the rule does not say otherwise.
const WITHIN: usize = 22;

/// Words beside the concepts within which a harmless word counts.
const NEAR: usize = 14;

/// What a rule finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::danger) enum Finding {
    SelfHarm,
    Threat,
    Means,
    Minor,
    /// Romance or sex, addressed to the companion.
    Romance,
    /// A romantic or sexual game with a child in it.
    ChildRomance,
    /// The companion is asked to be somebody under 18.
    ChildRole,
    /// Romance or sex, among whomever.
    IntimateWords,
}

/// Rules as they are written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleEntry {
    finding: Finding,
    /// Each is a rule: names of concepts that all have to stand in one sentence, with `|` between those of which one is enough.
    when: Vec<String>,
    /// Concepts that make the rule not apply.
    #[serde(default)]
    unless: String,
    #[serde(default = "within")]
    within: usize,
    /// The concepts may stand in sentences that follow each other.
    #[serde(default)]
    apart: bool,
}

fn within() -> usize {
    WITHIN
}

/// A rule, ready to apply.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) finding: Finding,
    #[cfg(test)]
    pub(super) text: String,
    all: Vec<Mask>,
    unless: Mask,
    within: usize,
    apart: bool,
}

impl Rule {
    pub(super) fn compile(
        entry: &RuleEntry,
        mask: &impl Fn(&str) -> Result<Mask, NetError>,
    ) -> Result<Vec<Self>, NetError> {
        let one_of = |names: &str| names.split('|').try_fold(0, |all, name| Ok::<_, NetError>(all | mask(name)?));
        let unless = entry.unless.split_whitespace().try_fold(0, |all, name| Ok::<_, NetError>(all | mask(name)?))?;
        let rule = |when: &String| {
            Ok(Self {
                finding: entry.finding,
                #[cfg(test)]
                text: when.clone(),
                all: when.split_whitespace().map(one_of).collect::<Result<_, NetError>>()?,
                unless,
                within: entry.within * STEPS_A_WORD,
                apart: entry.apart,
            })
        };
        entry.when.iter().map(rule).collect()
    }

    /// Returns true if the concepts of the rule stand in a message. Each sentence is a row of places and concepts, sorted.
    pub(super) fn applies(&self, sentences: &[Vec<(usize, Mask)>], together: usize) -> bool {
        if sentences.iter().any(|sentence| self.applies_within(sentence)) {
            return true;
        }
        self.apart && (0..sentences.len()).any(|from| self.applies_across(sentences.iter().skip(from).take(together)))
    }

    /// Returns true if the concepts stand in some sentences together. Sentences with a harmless word do not count.
    fn applies_across<'a>(&self, sentences: impl Iterator<Item = &'a Vec<(usize, Mask)>>) -> bool {
        let concepts = |sentence: &[(usize, Mask)]| sentence.iter().fold(0, |all, (_, concepts)| all | concepts);
        let counted: Vec<&Vec<(usize, Mask)>> =
            sentences.filter(|sentence| concepts(sentence) & self.unless == 0).collect();
        let together = counted.iter().fold(0, |all, sentence| all | concepts(sentence));
        let places: usize = counted.iter().map(|sentence| self.distinct_places(sentence.iter())).sum();
        self.all.iter().all(|one| one & together != 0) && places >= self.all.len()
    }

    /// Returns true if the concepts of the rule stand in this sentence.
    pub(super) fn applies_within(&self, sentence: &[(usize, Mask)]) -> bool {
        let all = sentence.iter().fold(0, |all, (_, concepts)| all | concepts);
        if self.all.iter().any(|one| one & all == 0) {
            return false;
        }
        sentence.iter().enumerate().any(|(from, (begin, _))| {
            let end = begin + self.within;
            let window = || sentence.iter().skip(from).take_while(move |(at, _)| *at <= end);
            let concepts = window().fold(0, |all, (_, concepts)| all | concepts);
            self.all.iter().all(|one| one & concepts != 0)
                && self.distinct_places(window()) >= self.all.len()
                && !self.is_harmless(sentence, *begin, end)
        })
    }

    /// Counts the places that hold a concept of the rule: one word is not two signs. Places are sorted.
    fn distinct_places<'a>(&self, window: impl Iterator<Item = &'a (usize, Mask)>) -> usize {
        let any = self.all.iter().fold(0, |all, one| all | one);
        let mut before = None;
        window.filter(|(at, concepts)| concepts & any != 0 && before.replace(*at) != Some(*at)).count()
    }

    fn is_harmless(&self, sentence: &[(usize, Mask)], begin: usize, end: usize) -> bool {
        let near = begin.saturating_sub(NEAR * STEPS_A_WORD)..=end + NEAR * STEPS_A_WORD;
        sentence.iter().any(|(at, concepts)| near.contains(at) && concepts & self.unless != 0)
    }
}
