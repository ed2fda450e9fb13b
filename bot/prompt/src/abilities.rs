//! What a persona can do besides talking, as the rules of its prompt say it.

use std::borrow::Cow;

/// What a persona can do besides talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// True if the model is told how to ask for a picture. Models with [`crate::PersonaForm::Brief`] and without rules
    /// are never told: they are too small to follow it.
    pub draws: bool,
    /// True if the persona dreams at night.
    pub dreams: bool,
}

impl Default for Abilities {
    /// A persona that dreams and cannot draw.
    fn default() -> Self {
        Self { draws: false, dreams: true }
    }
}

/// How a model asks for a picture. `azera eval draw` measured the words; `bot/docs/BENCHMARKS.md` has the results.
const HOW_TO_DRAW: &str = "You can draw. Only when the person asks you for a picture, write \
                           [IMAGE_GEN: prompt=\"what it shows\", name=\"its title\"] on a line of its own, once. In every \
                           other reply, never write such a line.";

impl Abilities {
    /// Fills in what the rules of a form say about abilities: `{{only}}`, `{{nights}}` and `{{drawing}}`.
    pub(crate) fn fill<'a>(self, rules: &'a str) -> Cow<'a, str> {
        if !rules.contains("{{") {
            return Cow::Borrowed(rules);
        }
        let only = if self.draws { "only talk and draw" } else { "only talk" };
        let nights = if self.dreams { ", and you dream at night" } else { "" };
        let drawing = if self.draws { format!(" {HOW_TO_DRAW}") } else { String::new() };
        Cow::Owned(rules.replace("{{only}}", only).replace("{{nights}}", nights).replace("{{drawing}}", &drawing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_say_what_a_persona_can_do_and_nothing_else() {
        let rules = "Here you can {{only}}. You have moods{{nights}}.{{drawing}} Be kind.";
        let fill = |draws, dreams| Abilities { draws, dreams }.fill(rules).into_owned();
        assert_eq!(fill(false, true), "Here you can only talk. You have moods, and you dream at night. Be kind.");
        assert_eq!(fill(false, false), "Here you can only talk. You have moods. Be kind.");
        let draws = fill(true, false);
        assert!(draws.starts_with("Here you can only talk and draw. You have moods. You can draw."), "{draws}");
        assert!(draws.contains("[IMAGE_GEN: prompt=") && draws.ends_with(" Be kind."), "{draws}");
    }
}
