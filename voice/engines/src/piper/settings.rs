//! The settings of a Piper voice: the text of its `.onnx.json` file.

use std::collections::HashMap;

use azera_voice_api::SampleRate;
use serde::Deserialize;

/// Sample rates that a voice may have.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;

/// What a voice's sound depends on besides its model.
#[derive(Debug)]
pub struct Settings {
    file: File,
    start: i32,
    end: i32,
    between: i32,
}

#[derive(Debug, Deserialize)]
struct File {
    audio: AudioSettings,
    inference: Inference,
    language: Language,
    phoneme_id_map: HashMap<char, Vec<i32>>,
}

#[derive(Debug, Deserialize)]
struct AudioSettings {
    sample_rate: u32,
}

#[derive(Debug, Deserialize)]
struct Inference {
    noise_scale: f32,
    length_scale: f32,
    noise_w: f32,
}

#[derive(Debug, Deserialize)]
struct Language {
    code: String,
}

impl Settings {
    /// Parses settings. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| format!("its settings: {error}"))?;
        if !RATES.contains(&file.audio.sample_rate) {
            return Err(format!("its settings: a sample rate of {}", file.audio.sample_rate));
        }
        let only = |symbol: char| match file.phoneme_id_map.get(&symbol).map(Vec::as_slice) {
            Some([id]) => Ok(*id),
            _ => Err(format!("its settings: no id for `{symbol}`")),
        };
        let (start, end, between) = (only('^')?, only('$')?, only('_')?);
        Ok(Self { file, start, end, between })
    }

    /// Returns the rate of the voice's sound.
    pub fn rate(&self) -> SampleRate {
        SampleRate(self.file.audio.sample_rate)
    }

    /// Returns the language as a BCP 47 tag.
    pub fn language(&self) -> String {
        self.file.language.code.replace('_', "-")
    }

    /// Returns the ids of phonemes as the model takes them, and for each symbol how many ids stand before its end.
    /// Symbols that the model does not know have no ids.
    pub fn ids(&self, phonemes: &str) -> (Vec<i32>, Vec<usize>) {
        let mut ids = vec![self.start, self.between];
        let mut ends = Vec::new();
        for symbol in phonemes.chars() {
            let known = self.file.phoneme_id_map.get(&symbol);
            ids.extend(known.into_iter().flatten().flat_map(|id| [*id, self.between]));
            // The padding after the last one is no part of it.
            ends.push(ids.len() - 1);
        }
        ids.push(self.end);
        (ids, ends)
    }

    /// Returns noise, length and noise of lengths for a pace and a liveliness, both as factors.
    pub fn scales(&self, pace: f32, liveliness: f32) -> [f32; 3] {
        let Inference { noise_scale, length_scale, noise_w } = self.file.inference;
        [noise_scale * liveliness, length_scale / pace, noise_w * liveliness]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"audio": {"sample_rate": 22050, "quality": "medium"},
        "inference": {"noise_scale": 0.5, "length_scale": 1, "noise_w": 0.8}, "language": {"code": "en_US"},
        "phoneme_id_map": {"_": [0], "^": [1], "$": [2], "a": [14], "b": [15, 16]}}"#;

    #[test]
    fn phonemes_become_ids_with_padding_between() {
        let settings = Settings::parse(FILE).unwrap();
        let (ids, ends) = settings.ids("a❓b");
        assert_eq!(ids, [1, 0, 14, 0, 15, 0, 16, 0, 2]);
        assert_eq!(ends, [3, 3, 7]);
        assert_eq!((settings.rate().0, settings.language().as_str()), (22_050, "en-US"));
        assert_eq!(settings.scales(2.0, 0.5), [0.25, 0.5, 0.4]);
    }

    #[test]
    fn wrong_settings_are_refused_with_a_reason() {
        for (from, to, said) in [
            ("22050", "1", "sample rate of 1"),
            ("\"^\": [1], ", "", "no id for `^`"),
            ("[2]", "[2, 3]", "no id for `$`"),
            ("\"language\"", "\"l\"", "missing field"),
        ] {
            let error = Settings::parse(&FILE.replace(from, to)).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
