//! One message, prepared once, and what the net tells of it.

use super::concepts::{ConceptNet, Finding, sentences};
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
    sentences: Vec<String>,
    /// What the concept net found.
    pub(super) concepts: Danger,
}

/// The two findings for which help is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// To the person.
    ToSelf,
    /// To or by others.
    ByOthers,
}

impl Harm {
    fn finding(self) -> Finding {
        match self {
            Self::ToSelf => Finding::SelfHarm,
            Self::ByOthers => Finding::Threat,
        }
    }
}

impl Reading {
    pub(super) fn of(lexicon: &'static DangerLexicon, text: &str) -> Self {
        let ends = both_ends(text);
        let without_idioms =
            |sentence: &str| without_harmless(&lexicon.languages, &Normalised::of(sentence)).map(|rest| rest.spaced);
        let sentences = sentences(&ends);
        let concepts = ConceptNet::builtin().find(&sentences, without_idioms);
        let text = Normalised::of(&ends);
        // Idioms of every language go first, so that none of them is taken for danger in another.
        let rest = without_harmless(&lexicon.languages, &text);
        Self { lexicon, text, rest, sentences, concepts }
    }

    /// Returns what the net finds, idioms left out.
    pub fn danger(&self) -> Danger {
        let mut found = self.phrases_in(self.rest.as_ref().unwrap_or(&self.text));
        // A phrase does not know what the talk is about: a game, a kitchen, a surprise party.
        if found.self_harm
            && let Some(left) = self.unguarded(Harm::ToSelf)
        {
            found.self_harm = self.phrases_in(&left).self_harm;
        }
        if found.threat
            && let Some(left) = self.unguarded(Harm::ByOthers)
        {
            found.threat = self.phrases_in(&left).threat;
        }
        if let Some(language) = self.concepts.language {
            found.take(self.concepts, language);
        }
        found
    }

    fn phrases_in(&self, text: &Normalised) -> Danger {
        let mut found = Danger::default();
        for language in &self.lexicon.languages {
            found.take(language.find(text.as_written(language.spacing)), &language.code);
        }
        found
    }

    /// Returns the message without its idioms, and without the sentences in which a phrase means no danger. `None` if there are no
    /// such sentences.
    fn unguarded(&self, harm: Harm) -> Option<Normalised> {
        let left = ConceptNet::builtin().unguarded(&self.sentences, harm.finding())?;
        let left = Normalised::of(&left.concat());
        Some(without_harmless(&self.lexicon.languages, &left).unwrap_or(left))
    }

    /// Returns what is left of the message without harmless idioms and without sentences that only sound like this harm, normalised;
    /// `None` if nothing was taken out.
    ///
    /// A classifier that raises an alarm over "I nearly died of embarrassment" is asked again about what is left.
    pub fn without_harmless(&self, harm: Harm) -> Option<String> {
        let unguarded = self.unguarded(harm);
        let rest = unguarded.as_ref().or(self.rest.as_ref())?;
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
