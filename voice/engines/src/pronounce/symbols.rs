//! Phoneme symbols: from those of misaki's American lexicon to those of espeak-ng, which Piper's voices know.

/// Returns the phonemes of a token in espeak-ng's symbols.
pub fn to_espeak(misaki: &str) -> String {
    let mut out = String::with_capacity(misaki.len() + 8);
    for (index, word) in misaki.split(' ').enumerate() {
        if index > 0 {
            out.push(' ');
        }
        add_word(&mut out, &word.chars().collect::<Vec<_>>());
    }
    out
}

fn add_word(out: &mut String, word: &[char]) {
    let syllables = word.iter().filter(|symbol| is_vowel(**symbol)).count();
    for (index, &symbol) in word.iter().enumerate() {
        let next = word.get(index + 1).copied();
        let before = index.checked_sub(1).and_then(|index| word.get(index)).copied();
        let is_stressed = matches!(before, Some('ˈ' | 'ˌ'));
        let sound = match symbol {
            'A' => "eɪ",
            'I' => "aɪ",
            'O' => "oʊ",
            'W' => "aʊ",
            'Y' => "ɔɪ",
            'ʤ' => "dʒ",
            'ʧ' => "tʃ",
            'T' => "ɾ",
            'ᵊ' => "ə",
            'ɑ' => "ɑː",
            'ɔ' => "ɔː",
            'u' => "uː",
            'i' if is_stressed || syllables == 1 => "iː",
            // A vowel with r is one sound; the r is heard on its own only before another vowel.
            'ɜ' => "ɜː",
            'ə' if next == Some('ɹ') => "ɚ",
            'ɹ' if matches!(before, Some('ɜ' | 'ə')) && !before_vowel(word, index + 1) => "",
            'g' => "ɡ",
            '—' | '–' | '(' | ')' => ",",
            '…' => ".",
            '“' | '”' | '"' | '❓' => "",
            other => {
                out.push(other);
                ""
            }
        };
        out.push_str(sound);
    }
}

fn before_vowel(word: &[char], index: usize) -> bool {
    let next = word.get(index..).unwrap_or_default().iter().find(|symbol| !matches!(symbol, 'ˈ' | 'ˌ'));
    next.is_some_and(|symbol| is_vowel(*symbol))
}

/// Returns true for a vowel in misaki's symbols.
pub fn is_vowel(symbol: char) -> bool {
    "AIOWYaeiouæɑɐɔəɛɜɪʊʌᵊᵻ".contains(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_become_those_of_espeak() {
        for (misaki, espeak) in [
            ("bˈɜɹd", "bˈɜːd"),
            ("hˈɜɹi", "hˈɜːɹi"),
            ("lˈɛTəɹ", "lˈɛɾɚ"),
            ("fˈɛdəɹəl", "fˈɛdɚɹəl"),
            ("mˈɔɹ", "mˈɔːɹ"),
            ("hi", "hiː"),
            ("hˈæpi", "hˈæpi"),
            ("məʃˈin", "məʃˈiːn"),
            ("ʤˈʌʤ ʧˈAnʤ", "dʒˈʌdʒ tʃˈeɪndʒ"),
            ("lˈɪTᵊl", "lˈɪɾəl"),
            ("—", ","),
            ("“", ""),
            ("?", "?"),
        ] {
            assert_eq!(to_espeak(misaki), espeak, "{misaki}");
        }
    }
}
