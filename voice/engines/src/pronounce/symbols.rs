//! Phoneme symbols: from those of misaki's lexicons to those of espeak-ng, which Piper's voices know, and to those that
//! Kokoro's voices know.

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
            other => match mark(other) {
                Some(mark) => mark,
                None => {
                    out.push(other);
                    ""
                }
            },
        };
        out.push_str(sound);
    }
}

/// Returns what stands for a mark, or for the Latin letter that a lexicon has in a symbol's place.
fn mark(symbol: char) -> Option<&'static str> {
    Some(match symbol {
        'g' => "ɡ",
        '—' | '–' | '(' | ')' => ",",
        '…' => ".",
        '“' | '”' | '"' | '❓' => "",
        _ => return None,
    })
}

/// Returns the phonemes of a token as Kokoro's voices know them. They were trained on misaki's symbols.
pub fn to_kokoro(misaki: &str) -> String {
    let mut out = String::with_capacity(misaki.len());
    for symbol in misaki.chars() {
        match mark(symbol) {
            Some(mark) => out.push_str(mark),
            None => out.push(symbol),
        }
    }
    out
}

/// Returns American phonemes with British sounds. British ones stay as they are.
pub fn to_british(american: &str) -> String {
    let words = american.split(' ').map(|word| british_word(&word.chars().collect::<Vec<_>>()));
    words.collect::<Vec<_>>().join(" ")
}

fn british_word(word: &[char]) -> String {
    let mut out = String::new();
    for (index, &symbol) in word.iter().enumerate() {
        let next = word.get(index + 1).copied();
        let is_long = next == Some('ː');
        match symbol {
            'O' => out.push('Q'),
            'æ' => out.push('a'),
            'T' => out.push('t'),
            'ᵻ' => out.push('ɪ'),
            'ɑ' if next != Some('ɹ') && !is_long => out.push('ɒ'),
            'ɑ' | 'ɔ' | 'ɜ' | 'u' if !is_long => out.extend([symbol, 'ː']),
            // It is silent but before a vowel.
            'ɹ' if !before_vowel(word, index + 1) => {}
            symbol => out.push(symbol),
        }
    }
    out
}

fn before_vowel(word: &[char], index: usize) -> bool {
    let next = word.get(index..).unwrap_or_default().iter().find(|symbol| !matches!(symbol, 'ˈ' | 'ˌ'));
    next.is_some_and(|symbol| is_vowel(*symbol))
}

/// Returns true for a vowel in misaki's symbols.
pub fn is_vowel(symbol: char) -> bool {
    "AIOQWYaeiouæɑɐɒɔəɛɜɪʊʌᵊᵻ".contains(symbol)
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

    #[test]
    fn kokoro_knows_the_symbols_of_the_lexicon() {
        assert_eq!(to_kokoro("lˈɪTᵊl"), "lˈɪTᵊl");
        assert_eq!(to_kokoro("gˈO"), "ɡˈO");
        assert_eq!(to_kokoro("“"), "");
        assert_eq!(to_kokoro("—"), ",");
    }

    #[test]
    fn american_sounds_become_british() {
        for (american, british) in [
            ("əzˈɛɹə", "əzˈɛɹə"),
            ("zˈɔɹbɪŋ", "zˈɔːbɪŋ"),
            ("mˈɪkO", "mˈɪkQ"),
            ("nˈɑθ", "nˈɒθ"),
            ("kˈɑɹ mˈæn", "kˈɑː mˈan"),
            ("fˈɑːðə kˈQd sˈiː", "fˈɑːðə kˈQd sˈiː"),
        ] {
            assert_eq!(to_british(american), british);
        }
    }
}
