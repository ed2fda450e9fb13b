//! Checks what a well-formed file must contain to be a persona.

use std::collections::BTreeMap;

use crate::limits::MAX_BRIEF_WORDS;
use crate::parse::Known;
use crate::persona::{Persona, PersonaKind};
use crate::problem::Problems;

/// Checks the persona as a whole. `places` has the line of each section in the file.
pub(crate) fn validate(persona: &Persona, places: &BTreeMap<Known, usize>, last_line: usize, problems: &mut Problems) {
    let mut missing = Vec::new();
    for known in Known::ALL {
        let title = known.title();
        let required = matches!(known, Known::Intent | Known::CoreIdentity);
        match places.get(&known) {
            Some(line) if is_empty(persona, known) && required => {
                problems.error(*line, format!("the section `{title}` is empty; every persona needs it"));
            }
            Some(line) if is_empty(persona, known) => {
                problems.warning(*line, format!("the section `{title}` is empty"));
            }
            None if required => {
                let message = format!("the section `## {title}` is missing; every persona needs it");
                problems.error(last_line, message);
            }
            // Most personas need only the built-in ones.
            None if known == Known::Sentiments => {}
            None if persona.kind == PersonaKind::Assistant => missing.push(format!("`## {title}`")),
            _ => {}
        }
    }
    if !missing.is_empty() {
        let message = format!("the persona would be richer with {}", missing.join(", "));
        problems.warning(last_line, message);
    }
    let words = persona.brief.split_whitespace().count();
    if words > MAX_BRIEF_WORDS {
        let line = places.get(&Known::Brief).copied().unwrap_or(last_line);
        let message = format!(
            "the brief has {words} words; small models are given it whole, so at most {MAX_BRIEF_WORDS} are allowed"
        );
        problems.error(line, message);
    }
}

fn is_empty(persona: &Persona, known: Known) -> bool {
    match known {
        Known::Brief => persona.brief.is_empty(),
        Known::Intent => persona.intent.is_empty(),
        Known::CoreIdentity => persona.core_identity.is_empty(),
        Known::PrimeDirective => persona.prime_directive == Default::default(),
        Known::Interface => persona.interface_and_presence.is_empty(),
        Known::Profile => persona.psychological_profile == Default::default(),
        Known::Quirks => persona.quirks.is_empty(),
        Known::Tasks => persona.task_behaviours.is_empty(),
        Known::Examples => persona.examples.is_empty(),
        Known::Sentiments => persona.sentiments.is_empty(),
    }
}

/// Checks that a Myers-Briggs type begins with its four letters (X where balanced), optionally followed by `-A` or
/// `-T`.
pub(crate) fn check_mbti(text: &str, line: usize, problems: &mut Problems) {
    let letters = [['E', 'I'], ['N', 'S'], ['T', 'F'], ['J', 'P']];
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
    let core = word.strip_suffix("-A").or_else(|| word.strip_suffix("-T")).unwrap_or(&word);
    let valid = core.chars().count() == letters.len()
        && core.chars().zip(letters).all(|(c, allowed)| c == 'X' || allowed.contains(&c));
    if !valid {
        problems.error(line, "MBTI must begin with four letters such as `ISTJ` or `ENTP`; words may follow");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mbti_types_follow_their_pattern() {
        fn check(text: &str, valid: bool) {
            let mut problems = Problems::default();
            check_mbti(text, 1, &mut problems);
            assert_eq!(!problems.has_errors(), valid, "{text:?}");
        }
        check("ISTJ", true);
        check("ISTJ, the Logistician", true);
        check("ENTP-T (Debater)", true);
        check("XNFP", true);
        check("istj", false);
        check("ITSJ", false);
        check("INTJS", false);
        check("a thinker", false);
    }
}
