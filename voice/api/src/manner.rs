//! How a persona speaks, and which voice that is.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::{CLONE_MARK, Style, Voice};

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
    /// Pitch as a factor of the voice's own.
    pub pitch: Option<f32>,
    /// Liveliness as a factor of the voice's own.
    pub liveliness: Option<f32>,
    /// BCP 47 tag of the language that it speaks.
    pub language: Option<String>,
}

impl Manner {
    /// Returns the style in which this manner speaks: with its own voice if `voices` has it or no other may speak, or else
    /// with one of its language from the engine of the usual voice, or else as `usual`.
    pub fn style(&self, voices: &[Voice], usual: &Style) -> Style {
        let needs_voice = self.needs_voice && self.voice.is_some();
        let own = self.voice.as_ref().filter(|id| needs_voice || voices.iter().any(|voice| voice.id == **id));
        let of_language = || self.language.as_deref().and_then(|language| voice_of(language, voices, &usual.voice));
        Style {
            voice: own.or_else(of_language).unwrap_or(&usual.voice).clone(),
            needs_voice,
            pace: self.pace.unwrap_or(usual.pace),
            pitch: self.pitch.unwrap_or(usual.pitch),
            liveliness: self.liveliness.unwrap_or(usual.liveliness),
            language: self.language.clone().or_else(|| usual.language.clone()),
        }
    }
}

/// Returns the part of a BCP 47 tag that names the language, such as `de` of `de-AT`.
pub fn main_language(tag: &str) -> &str {
    tag.split(['-', '_']).next().unwrap_or_default()
}

/// Returns true if two BCP 47 tags name the same language, in whatever country. Some engines call Chinese `cmn` and
/// Norwegian `nb`, and people write `zh` and `no`.
pub fn is_same_language(one: &str, other: &str) -> bool {
    let main = |tag: &str| match main_language(tag).to_ascii_lowercase().as_str() {
        "zh" => "cmn".to_owned(),
        "no" => "nb".to_owned(),
        main => main.to_owned(),
    };
    main(one) == main(other)
}

/// Returns the code by which recognisers know the language of a BCP 47 tag.
pub fn recognised_language(tag: &str) -> String {
    let main = main_language(tag).to_ascii_lowercase();
    match main.as_str() {
        "nb" => "no".to_owned(),
        "fil" => "tl".to_owned(),
        _ => main,
    }
}

/// Returns a voice that speaks a language: one of the same country if the tag names a country, or else the usual one, or
/// else the first. A voice that somebody recorded speaks only where it was chosen, and one of another engine than the
/// usual one's never in its place: it may be there for the time alone in which the other does not answer.
fn voice_of<'a>(language: &str, voices: &'a [Voice], usual: &str) -> Option<&'a String> {
    let engine = voices.iter().find(|voice| voice.id == usual).map(|voice| voice.engine.as_str());
    let speaks = |voice: &&Voice| {
        let is_of_engine = engine.is_none_or(|engine| voice.engine == engine);
        is_of_engine && !voice.id.starts_with(CLONE_MARK) && is_same_language(&voice.language, language)
    };
    let speak = || voices.iter().filter(speaks);
    let has_country = main_language(language) != language;
    let same = speak().find(|voice| has_country && voice.language.eq_ignore_ascii_case(language));
    let found = same.or_else(|| speak().find(|voice| voice.id == usual)).or_else(|| speak().next());
    found.map(|voice| &voice.id)
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

    #[test]
    fn a_language_chooses_a_voice_unless_a_voice_is_named() {
        let voice = |id: &str, language: &str| Voice {
            id: id.to_owned(),
            language: language.to_owned(),
            rate: SampleRate(24_000),
            engine: "made-up".to_owned(),
        };
        let voices = [
            voice("~ann", "de-DE"),
            voice("joe", "en-US"),
            voice("alba", "en-GB"),
            voice("karl", "de-DE"),
            voice("resi", "de-AT"),
        ];
        let speaks = |name: Option<&str>, language: &str| {
            let (voice, language) = (name.map(str::to_owned), Some(language.to_owned()));
            Manner { voice, language, ..Manner::default() }.style(&voices, &Style::of("joe"))
        };
        for (language, id) in
            [("de", "karl"), ("de-AT", "resi"), ("de-CH", "karl"), ("en", "joe"), ("en-gb", "alba"), ("fr", "joe")]
        {
            let style = speaks(None, language);
            assert_eq!((style.voice.as_str(), style.language.as_deref()), (id, Some(language)));
        }
        assert_eq!(speaks(Some("joe"), "de").voice, "joe");
        assert_eq!(speaks(Some("gone"), "de").voice, "karl");
    }

    #[test]
    fn a_language_never_chooses_a_voice_of_another_engine() {
        let voice = |id: &str, language: &str, engine: &str| Voice {
            id: id.to_owned(),
            language: language.to_owned(),
            rate: SampleRate(24_000),
            engine: engine.to_owned(),
        };
        let voices = [voice("heart", "en", "server"), voice("joe", "en-US", "here"), voice("karl", "de-DE", "here")];
        for language in ["en-US", "en", "de"] {
            let manner = Manner { language: Some(language.to_owned()), ..Manner::default() };
            assert_eq!(manner.style(&voices, &Style::of("heart")).voice, "heart", "{language}");
        }
    }

    #[test]
    fn a_language_has_several_codes() {
        assert!(is_same_language("zh-TW", "cmn") && is_same_language("no", "nb-NO") && is_same_language("EN", "en-us"));
        assert!(!is_same_language("de", "da"));
        let codes = ["nb-NO", "fil", "de-AT", "EN"].map(recognised_language);
        assert_eq!(codes, ["no", "tl", "de", "en"]);
    }
}
