//! How an unknown word is pronounced: as two known words, by the sounds of its letters, or letter by letter. Phonemes are
//! in misaki's symbols.

use super::scripts::latin;
use super::symbols::is_vowel;

/// The fewest letters of each half of a compound, and of its longer half.
const HALF: usize = 3;
const LONGER_HALF: usize = 5;
/// So many consonants in a row cannot be spoken.
const CLUSTER: usize = 5;
/// Words in capital letters up to this length are spelled.
const ACRONYM: usize = 4;
/// The most letters that are spelled one by one.
const MOST_SPELLED: usize = 40;
/// What is said for a word in a script without letters that sound alike.
const FOREIGN: &str = "fˈɔɹən wˈɜɹd";

/// Letters that make one sound together, longest first. A sound is in [`is_vowel`]'s symbols.
const TOGETHER: &[(&str, &str)] = &[
    ("eigh", "A"),
    ("ough", "O"),
    ("augh", "ɔ"),
    ("tion", "ʃən"),
    ("sion", "ʒən"),
    ("ture", "ʧəɹ"),
    ("sch", "ʃ"),
    ("tch", "ʧ"),
    ("dge", "ʤ"),
    ("igh", "I"),
    ("ck", "k"),
    ("ch", "ʧ"),
    ("sh", "ʃ"),
    ("zh", "ʒ"),
    ("th", "θ"),
    ("ph", "f"),
    ("gh", "ɡ"),
    ("kh", "k"),
    ("wh", "w"),
    ("qu", "kw"),
    ("ng", "ŋ"),
    ("ee", "i"),
    ("ea", "i"),
    ("ie", "i"),
    ("oo", "u"),
    ("ou", "W"),
    ("ow", "O"),
    ("oa", "O"),
    ("ai", "A"),
    ("ay", "A"),
    ("ei", "A"),
    ("ey", "A"),
    ("oi", "Y"),
    ("oy", "Y"),
    ("au", "ɔ"),
    ("aw", "ɔ"),
    ("eu", "ju"),
    ("ew", "u"),
    ("ue", "u"),
    ("ui", "u"),
];

/// Returns the phonemes of a word. `known` returns those of a word in the lexicon. Empty for symbols alone.
pub fn pronounce(word: &str, known: &dyn Fn(&str) -> Option<String>) -> String {
    let letters = latin(word);
    if letters.is_empty() {
        return if word.chars().any(char::is_alphabetic) { FOREIGN.to_owned() } else { String::new() };
    }
    let is_acronym = letters.len() <= ACRONYM && word.chars().all(|c| c.is_uppercase() || !c.is_alphabetic());
    let runs = runs(&letters);
    let spoken = runs.iter().map(|run| match run.chars().next() {
        Some(first) if first.is_ascii_digit() || is_acronym => spell(run),
        _ if runs.len() > 1 && run.len() < HALF => spell(run),
        _ => known(run).unwrap_or_else(|| unknown(run, known)),
    });
    spoken.collect::<Vec<_>>().join(" ")
}

/// Splits a word between letters and digits.
fn runs(letters: &str) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    for c in letters.chars() {
        match runs.last_mut() {
            Some(run) if run.ends_with(|last: char| last.is_ascii_digit() == c.is_ascii_digit()) => run.push(c),
            _ => runs.push(c.to_string()),
        }
    }
    runs
}

fn unknown(letters: &str, known: &dyn Fn(&str) -> Option<String>) -> String {
    if let Some(both) = compound(letters, known) { both } else { by_sound(letters).unwrap_or_else(|| spell(letters)) }
}

/// Returns the phonemes of two known words in one, such as "livestream". The more even split wins.
fn compound(letters: &str, known: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let length = letters.len();
    if length > MOST_SPELLED {
        return None;
    }
    let mut splits: Vec<usize> = (HALF..=length.saturating_sub(HALF)).collect();
    splits.retain(|split| (*split).max(length - split) >= LONGER_HALF || *split == length - split && *split > HALF);
    splits.sort_by_key(|split| split.abs_diff(length - split));
    splits.into_iter().find_map(|split| {
        let (first, second) = letters.split_at_checked(split)?;
        Some(known(first)? + &known(second)?.replace('ˈ', "ˌ"))
    })
}

fn is_speakable(letters: &str) -> bool {
    let mut cluster = 0;
    let mut has_vowel = false;
    for c in letters.chars() {
        if is_vowel_letter(c) || c == 'y' {
            (cluster, has_vowel) = (0, true);
        } else {
            cluster += 1;
        }
        if cluster >= CLUSTER {
            return false;
        }
    }
    has_vowel && letters.len() > 1
}

/// Returns the phonemes of letters and digits said one by one.
fn spell(letters: &str) -> String {
    letters.chars().take(MOST_SPELLED).map(name).collect::<Vec<_>>().join(" ")
}

/// Returns the name of a letter or digit.
fn name(letter: char) -> &'static str {
    const LETTERS: [&str; 26] = [
        "ˈA",
        "bˈi",
        "sˈi",
        "dˈi",
        "ˈi",
        "ˈɛf",
        "ʤˈi",
        "ˈAʧ",
        "ˈI",
        "ʤˈA",
        "kˈA",
        "ˈɛl",
        "ˈɛm",
        "ˈɛn",
        "ˈO",
        "pˈi",
        "kjˈu",
        "ˈɑɹ",
        "ˈɛs",
        "tˈi",
        "jˈu",
        "vˈi",
        "dˈʌbəlju",
        "ˈɛks",
        "wˈI",
        "zˈi",
    ];
    const DIGITS: [&str; 10] = ["zˈɪɹO", "wˈʌn", "tˈu", "θɹˈi", "fˈɔɹ", "fˈIv", "sˈɪks", "sˈɛvən", "ˈAt", "nˈIn"];
    let found = match letter {
        'a'..='z' => LETTERS.get(letter as usize - 'a' as usize),
        '0'..='9' => DIGITS.get(letter as usize - '0' as usize),
        _ => None,
    };
    found.copied().unwrap_or_default()
}

fn is_vowel_letter(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u')
}

/// Returns the phonemes of a word by the sounds of its letters; `None` if nobody can speak it so.
fn by_sound(letters: &str) -> Option<String> {
    if !is_speakable(letters) {
        return None;
    }
    let letters: Vec<char> = letters.chars().collect();
    let mut sounds: Vec<&str> = Vec::new();
    let mut index = 0;
    while index < letters.len() {
        let (sound, taken) = sound(&letters, index);
        if !sound.is_empty() {
            sounds.push(sound);
        }
        index += taken;
    }
    let vowels: Vec<usize> = (0..sounds.len()).filter(|index| has_vowel(sounds[*index])).collect();
    let stressed = *vowels.get(stressed_syllable(&letters, vowels.len()))?;
    let mut out = String::new();
    for (index, sound) in sounds.iter().enumerate() {
        match (stressed == index, *sound) {
            (true, sound) => {
                // The mark stands before the vowel, and some sounds begin with a consonant.
                let (before, vowel) = sound.split_at_checked(sound.find(is_vowel).unwrap_or(0)).unwrap_or(("", sound));
                out.extend([before, "ˈ", vowel]);
            }
            (false, "æ") => out.push('ə'),
            (false, sound) => out.push_str(sound),
        }
    }
    Some(out)
}

fn has_vowel(sound: &str) -> bool {
    sound.contains(is_vowel)
}

/// Returns which vowel is stressed. Names that end in a vowel letter are mostly stressed on the last but one, all others on
/// the first.
fn stressed_syllable(letters: &[char], vowels: usize) -> usize {
    match letters.last() {
        Some('a' | 'i' | 'o' | 'u') if vowels >= 3 => vowels - 2,
        _ => 0,
    }
}

/// Returns the sound at a letter, and how many letters make it.
fn sound(letters: &[char], index: usize) -> (&'static str, usize) {
    let rest = letters.get(index..).unwrap_or_default();
    let starts = |text: &str| text.chars().count() <= rest.len() && text.chars().zip(rest).all(|(a, b)| a == *b);
    if index == 0 && ["kn", "gn", "wr", "ps", "pn"].iter().any(|silent| starts(silent)) {
        return ("", 1);
    }
    if let Some((text, sound)) = TOGETHER.iter().find(|(text, _)| starts(text)) {
        return (sound, text.len());
    }
    let Some(&letter) = rest.first() else { return ("", 1) };
    let next = rest.get(1).copied();
    if Some(letter) == next && !is_vowel_letter(letter) {
        // A doubled consonant is one sound.
        return (sound(letters, index + 1).0, 2);
    }
    match letter {
        'a' | 'e' | 'i' | 'o' | 'u' => vowel(letters, index),
        'y' if next.is_some_and(is_vowel_letter) => ("j", 1),
        'y' if next.is_none() => ("i", 1),
        'y' => ("ɪ", 1),
        letter => (consonant(letter, index, next), 1),
    }
}

fn consonant(letter: char, index: usize, next: Option<char>) -> &'static str {
    match letter {
        'c' if matches!(next, Some('e' | 'i' | 'y')) => "s",
        'b' => "b",
        'c' | 'k' | 'q' => "k",
        'd' => "d",
        'f' => "f",
        'g' => "ɡ",
        'h' if index > 0 && !next.is_some_and(is_vowel_letter) => "",
        'h' => "h",
        'j' => "ʤ",
        'l' => "l",
        'm' => "m",
        'n' => "n",
        'p' => "p",
        'r' => "ɹ",
        's' => "s",
        't' => "t",
        'v' => "v",
        'w' => "w",
        'x' if index == 0 => "z",
        'x' => "ks",
        'z' => "z",
        _ => "",
    }
}

/// Returns the sound of a single vowel letter, and how many letters make it.
fn vowel(letters: &[char], index: usize) -> (&'static str, usize) {
    let at = |offset: usize| letters.get(index + offset).copied();
    let letter = at(0).unwrap_or_default();
    let is_last = at(1).is_none();
    let has_earlier_vowel = letters.iter().take(index).any(|c| is_vowel_letter(*c) || *c == 'y');
    if is_last {
        let sound = match letter {
            'a' => "ə",
            'e' if has_earlier_vowel => "",
            'e' | 'i' => "i",
            'o' => "O",
            _ => "u",
        };
        return (sound, 1);
    }
    // With r before a consonant or at the end.
    if at(1) == Some('r') && !at(2).is_some_and(|c| is_vowel_letter(c) || c == 'r') {
        let sound = match letter {
            'a' => "ɑɹ",
            'e' if has_earlier_vowel => "əɹ",
            'o' => "ɔɹ",
            _ => "ɜɹ",
        };
        return (sound, 2);
    }
    // Long before one consonant and a final e.
    let is_long = at(2) == Some('e') && at(3).is_none() && at(1).is_some_and(|c| !is_vowel_letter(c));
    let sound = match (letter, is_long) {
        ('a', false) => "æ",
        ('a', true) => "A",
        ('e', false) => "ɛ",
        ('e', true) => "i",
        ('i', false) => "ɪ",
        ('i', true) => "I",
        ('o', false) => "ɑ",
        ('o', true) => "O",
        (_, false) => "ʌ",
        (_, true) => "u",
    };
    (sound, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    fn some(word: &str) -> Option<String> {
        let found = [("code", "kˈOd"), ("base", "bˈAs"), ("stream", "stɹˈim"), ("live", "lˈIv"), ("man", "mˈæn")];
        found.iter().find(|(known, _)| *known == word).map(|(_, phonemes)| (*phonemes).to_owned())
    }

    #[test]
    fn names_are_said_by_their_letters() {
        for (word, said) in [
            ("Azera", "əzˈɛɹə"),
            ("Areza", "əɹˈɛzə"),
            ("Blorptine", "blˈɔɹptIn"),
            ("Zorbing", "zˈɔɹbɪŋ"),
            ("Mikko", "mˈɪkO"),
            ("Knoth", "nˈɑθ"),
        ] {
            assert_eq!(pronounce(word, &none), said, "{word}");
        }
    }

    #[test]
    fn a_compound_is_said_as_its_words() {
        assert_eq!(pronounce("codebase", &some), "kˈOdbˌAs");
        assert_eq!(pronounce("Livestream", &some), "lˈIvstɹˌim");
    }

    #[test]
    fn what_cannot_be_spoken_is_spelled() {
        assert_eq!(pronounce("xkcd", &none), "ˈɛks kˈA sˈi dˈi");
        assert_eq!(pronounce("PGP", &none), "pˈi ʤˈi pˈi");
        assert_eq!(pronounce("x7", &none), "ˈɛks sˈɛvən");
        assert_eq!(pronounce("你好", &none), FOREIGN);
        assert_eq!(pronounce("→", &none), "");
    }

    #[test]
    fn every_string_of_letters_has_a_sound() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let word: String = (0..random.usize(1..14)).map(|_| random.char('a'..='z')).collect();
            let said = pronounce(&word, &none);
            assert!(said.contains(is_vowel), "{word}: {said}");
            assert!(said.contains('ˈ'), "{word}: {said}");
        }
    }
}
