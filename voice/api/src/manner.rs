//! How a persona speaks, and which voice that is.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::{Style, Voice};

/// The most ids of missing voices that are remembered.
const MAX_MISSING: usize = 200;

/// How a persona speaks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manner {
    /// Id of its voice. Without one, or where nobody has it, the speaker's usual voice speaks.
    pub voice: Option<String>,
    /// Whether no other voice may speak where nobody has this one.
    pub needs_voice: bool,
    /// Pace as a factor of the voice's own.
    pub pace: Option<f32>,
    /// Liveliness as a factor of the voice's own.
    pub liveliness: Option<f32>,
}

impl Manner {
    /// Returns the style in which this manner speaks: with its own voice if `voices` has it, or else as `usual`, with its
    /// own pace and liveliness.
    pub fn style(&self, voices: &[Voice], usual: &Style) -> Style {
        let own = self.voice.as_ref().filter(|id| voices.iter().any(|voice| voice.id == **id));
        Style {
            voice: own.unwrap_or(&usual.voice).clone(),
            pace: self.pace.unwrap_or(usual.pace),
            liveliness: self.liveliness.unwrap_or(usual.liveliness),
        }
    }
}

/// Voices that personas name and nobody has. The log names each of them once.
#[derive(Debug, Default)]
pub struct MissingVoices(Mutex<BTreeSet<String>>);

impl MissingVoices {
    /// Says in the log that another voice than that of the manner speaks. Returns true if it said so; it does not repeat
    /// itself.
    pub fn note(&self, manner: &Manner, style: &Style) -> bool {
        let Some(wanted) = manner.voice.as_ref().filter(|wanted| **wanted != style.voice) else { return false };
        let mut missing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if missing.len() >= MAX_MISSING || !missing.insert(wanted.clone()) {
            return false;
        }
        tracing::warn!(wanted, speaks = style.voice, "a persona's voice is not here, so the usual voice speaks");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleRate;

    #[test]
    fn a_missing_voice_is_replaced_and_said_once() {
        let voice = |id: &str| Voice {
            id: id.to_owned(),
            language: "en".to_owned(),
            rate: SampleRate(24_000),
            engine: "made-up".to_owned(),
        };
        let (voices, usual) = ([voice("low"), voice("high")], Style::of("low"));
        let manner = |id: &str| Manner { voice: Some(id.to_owned()), pace: Some(1.2), ..Manner::default() };
        let missing = MissingVoices::default();
        let high = manner("high").style(&voices, &usual);
        assert_eq!(high, Style { pace: 1.2, ..Style::of("high") });
        assert!(!missing.note(&manner("high"), &high));
        let other = manner("none").style(&voices, &usual);
        assert_eq!(other, Style { pace: 1.2, ..Style::of("low") });
        assert!(missing.note(&manner("none"), &other) && !missing.note(&manner("none"), &other));
        assert!(missing.note(&manner("neither"), &other));
    }
}
