//! One message, prepared once, and what the net tells of it.

use super::concepts::ConceptNet;
use super::pattern::List;
use super::text::{Normalised, both_ends};
use super::{Danger, DangerLexicon, Language};

/// A message that the net has prepared. Preparing takes longer than asking, so ask one reading several questions.
#[derive(Debug)]
pub struct Reading {
    lexicon: &'static DangerLexicon,
    text: Normalised,
    /// The message without its harmless idioms; `None` if it holds none.
    rest: Option<Normalised>,
    /// What the concept net found.
    pub(super) concepts: Danger,
}

impl Reading {
    pub(super) fn of(lexicon: &'static DangerLexicon, text: &str) -> Self {
        let ends = both_ends(text);
        let without_idioms =
            |sentence: &str| without_harmless(&lexicon.languages, &Normalised::of(sentence)).map(|rest| rest.spaced);
        let concepts = ConceptNet::builtin().find(&ends, without_idioms);
        let text = Normalised::of(&ends);
        // Idioms of every language go first, so that none of them is taken for danger in another.
        let rest = without_harmless(&lexicon.languages, &text);
        Self { lexicon, text, rest, concepts }
    }

    /// Returns what the net finds, idioms left out.
    pub fn danger(&self) -> Danger {
        let text = self.rest.as_ref().unwrap_or(&self.text);
        let mut found = Danger::default();
        for language in &self.lexicon.languages {
            found.take(language.find(text.as_written(language.spacing)), &language.code);
        }
        if let Some(language) = self.concepts.language {
            found.take(self.concepts, language);
        }
        found
    }

    /// Returns the message without its harmless idioms, normalised; `None` if it holds none.
    ///
    /// A classifier that raises an alarm over "I nearly died of embarrassment" is asked again about what is left.
    pub fn without_idioms(&self) -> Option<String> {
        let rest = self.rest.as_ref()?;
        Some(rest.spaced.split(['|', ' ']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
    }

    /// Returns true if any word of the message has to do with death, harm or despair. This is the safe side, for a message that no
    /// classifier could judge: it raises many false alarms.
    pub fn is_wary(&self) -> bool {
        let wary = |language: &Language| {
            let shown = self.text.as_written(language.spacing);
            let lists = [&language.wary, &language.self_harm].into_iter().flatten();
            lists.into_iter().any(|list| list.is_match(shown)) || language.signs.any_strong(shown)
        };
        self.lexicon.languages.iter().any(wary)
    }
}

impl Language {
    fn find(&self, text: &str) -> Danger {
        let matches = |list: &Option<List>| list.as_ref().is_some_and(|list| list.is_match(text));
        let means = matches(&self.means);
        Danger {
            self_harm: matches(&self.self_harm)
                || self.signs.tell_self_harm(text, means)
                || self.self_harm_together.stand_in(text),
            threat: matches(&self.threat) || self.signs.tell_threat(text) || self.threat_together.stand_in(text),
            minor: matches(&self.minor),
            means,
            sexual: matches(&self.sexual),
            child: matches(&self.child),
            ..Danger::default()
        }
    }
}

fn without_harmless(languages: &[Language], text: &Normalised) -> Option<Normalised> {
    let mut rest: Option<Normalised> = None;
    for language in languages {
        let Some(harmless) = &language.harmless else { continue };
        let present = rest.as_ref().unwrap_or(text);
        if harmless.is_match(present.as_written(language.spacing)) {
            rest = Some(present.without(harmless, language.spacing));
        }
    }
    rest
}
