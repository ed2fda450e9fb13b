//! The list of voices that `espeak-ng --voices` prints.

use azera_voice_api::{SampleRate, Voice};

use super::ESPEAK;

/// The most voices that are kept; version 1.51 has 131.
const MAX_VOICES: usize = 400;

/// Returns the voices of a list, one for each language. Each line has a priority, the language, age and gender, the name
/// and the file.
pub(super) fn voices(list: &str, rate: SampleRate) -> Vec<Voice> {
    let mut voices: Vec<Voice> = Vec::new();
    for line in list.lines() {
        let mut words = line.split_whitespace();
        let is_row = words.next().is_some_and(|priority| priority.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(language) = words.next().filter(|language| is_row && is_language(language)) else { continue };
        let is_known = voices.iter().any(|voice| voice.language == language);
        if !is_known && voices.len() < MAX_VOICES {
            let id = format!("{ESPEAK}-{language}");
            voices.push(Voice { id, language: language.to_owned(), rate, engine: ESPEAK.to_owned() });
        }
    }
    voices
}

/// Returns true for a language as the program names it, which is safe as an argument.
fn is_language(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    is_plain && text.starts_with(|c: char| c.is_ascii_lowercase()) && (2..=35).contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of what version 1.51 prints, and lines that it never does.
    const LIST: &str = "\
Pty Language       Age/Gender VoiceName          File                 Other Languages
 5  af              --/M      Afrikaans          gmw/af
 5  cmn             --/M      Chinese_(Mandarin,_latin_as_English) sit/cmn              (zh-cmn 5)(zh 5)
 5  en-us           --/M      English_(America)  gmw/en-US            (en 3)
 2  en-us           --/M      English_(New_York) gmw/en-US-nyc
 5  de              --/M      German             gmw/de
 5  --stdout        --/M      None               none
 5  de;reboot       --/M      None               none

x
";

    #[test]
    fn every_language_becomes_a_voice() {
        let ids: Vec<String> = voices(LIST, SampleRate(22_050)).into_iter().map(|voice| voice.id).collect();
        assert_eq!(ids, ["espeak-ng-af", "espeak-ng-cmn", "espeak-ng-en-us", "espeak-ng-de"]);
        let many: String = (0..500).map(|n| format!(" 5 a{n} --/M x y\n")).collect();
        assert_eq!(voices(&many, SampleRate(22_050)).len(), MAX_VOICES);
        assert!(voices("", SampleRate(22_050)).is_empty());
    }
}
