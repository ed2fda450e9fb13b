//! Makes spellings comparable: case, composed and decomposed letters, and for searches diacritics.

use unicode_normalization::UnicodeNormalization;

/// Returns a text with full case folding in one normal form (NFKC): `Straße` and `STRASSE` are equal, and so are the
/// forms of sigma. Diacritics stay.
pub fn fold_case(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.nfkc().flat_map(char::to_lowercase) {
        match c {
            'ß' => folded.push_str("ss"),
            'ς' => folded.push('σ'),
            _ => folded.push(c),
        }
    }
    folded.nfc().collect()
}

/// Returns a text as searches compare it: case folded, and without diacritics where a word stays readable without them
/// (Latin, Greek, Cyrillic, Hebrew, Arabic). Signs that are vowels or change a letter, as in Devanagari, Thai or kana,
/// stay. The two Turkish letters i count as one.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.nfkd().flat_map(char::to_lowercase).filter(|c| !is_diacritic(*c)) {
        match letters(c) {
            Some(letters) => folded.push_str(letters),
            None => folded.push(c),
        }
    }
    folded.nfc().collect()
}

/// Returns true for marks of scripts whose words stay readable without them.
fn is_diacritic(c: char) -> bool {
    matches!(
        u32::from(c),
        0x0300..=0x036f // combining marks of Latin, Greek and Cyrillic
            | 0x0483..=0x0487 // Cyrillic
            | 0x0591..=0x05bd | 0x05bf | 0x05c1..=0x05c2 | 0x05c4..=0x05c5 | 0x05c7 // Hebrew points
            | 0x0610..=0x061a | 0x064b..=0x065f | 0x0670 | 0x06d6..=0x06dc | 0x0640 // Arabic marks and tatweel
            | 0x1ab0..=0x1aff
            | 0x1dc0..=0x1dff
            | 0x20d0..=0x20ff
            | 0xfe20..=0xfe2f
    )
}

/// Returns the plain letters for a letter that Unicode does not decompose.
fn letters(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'ς' => "σ",
        'ı' => "i",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ł' => "l",
        'ħ' => "h",
        'ŧ' => "t",
        'ŋ' => "n",
        'ĸ' => "k",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_word_fold_to_one_form() {
        #[track_caller]
        fn check(one: &str, other: &str) {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        check("Zo\u{eb}", "zoe\u{308}");
        check("Zoë", "ZOE");
        check("STRASSE", "Straße");
        check("ΟΔΥΣΣΕΥΣ", "Οδυσσεύς");
        check("İstanbul", "istanbul");
        check("DIYARBAKIR", "Diyarbakır");
        check("Søren", "soren");
        check("ＡＢＣ１２", "abc12");
        check("ｶﾞﾑ", "ガム");
        check("\u{1112}\u{1161}\u{11ab}", "한");
        check("مُحَمَّد", "محمد");
    }

    #[test]
    fn marks_that_make_another_word_stay() {
        assert_ne!(fold("が"), fold("か"));
        assert_ne!(fold("कि"), fold("क"));
        assert_ne!(fold("ที่"), fold("ท"));
        assert_ne!(fold_case("sí"), fold_case("si"));
        assert_eq!(fold_case("SI\u{301}"), fold_case("sí"));
        assert_eq!(fold_case("Weiß"), fold_case("WEISS"));
    }
}
