//! Makes names comparable: "Zoë", "Zoe" and "ZOE" are the same name to people who type it.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// Returns the text without accents and invisible characters, in its normal width and in its own case. Letters such as
/// `ß` and `ø` become their usual spelling in ASCII. Marks that make another letter in their script, such as the voicing
/// of kana, stay.
pub fn plain(text: &str) -> String {
    let bare = text.nfkd().filter(|&c| !is_accent(c) && !is_invisible(c));
    let mut out = String::with_capacity(text.len());
    for c in bare.nfc() {
        match spelled(c) {
            Some(letters) => out.push_str(letters),
            None => out.push(c),
        }
    }
    out
}

/// Returns [`plain`] in lower case.
pub(crate) fn fold(text: &str) -> String {
    plain(text).to_lowercase()
}

/// Accents of Latin, Greek and Cyrillic letters, and the vowel signs of Hebrew and Arabic, which people leave out.
fn is_accent(c: char) -> bool {
    matches!(canonical_combining_class(c), 10..=35 | 200..=240)
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{640}')
}

/// Returns the ASCII spelling of a Latin letter that has no accent to drop.
pub(crate) fn spelled(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'ø' => "o",
        'Ø' => "O",
        'ł' => "l",
        'Ł' => "L",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'þ' => "th",
        'Þ' => "TH",
        'ħ' => "h",
        'Ħ' => "H",
        'ı' => "i",
        'ŋ' => "n",
        'Ŋ' => "N",
        'ŧ' => "t",
        'Ŧ' => "T",
        _ => return None,
    })
}

/// Returns the usual Latin spelling of a lower-case Greek or Cyrillic letter; `None` for other letters.
pub(crate) fn transliterated(c: char) -> Option<&'static str> {
    const GREEK: [&str; 25] = [
        "a", "v", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x", "o", "p", "r", "s", "s", "t", "y", "f",
        "ch", "ps", "o",
    ];
    const CYRILLIC: [&str; 32] = [
        "a", "b", "v", "g", "d", "e", "zh", "z", "i", "i", "k", "l", "m", "n", "o", "p", "r", "s", "t", "u", "f", "kh",
        "ts", "ch", "sh", "shch", "", "y", "", "e", "yu", "ya",
    ];
    let at = |first: char| (u32::from(c) - u32::from(first)) as usize;
    match c {
        'α'..='ω' => GREEK.get(at('α')).copied(),
        'а'..='я' => CYRILLIC.get(at('а')).copied(),
        'ѐ' | 'ё' | 'є' => Some("ye"),
        'і' | 'ї' => Some("i"),
        'ј' => Some("j"),
        'ґ' => Some("g"),
        'ў' => Some("u"),
        'ђ' | 'џ' => Some("dj"),
        'љ' => Some("lj"),
        'њ' => Some("nj"),
        'ћ' => Some("c"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_type_alike_fold_alike() {
        fn check(text: &str, folded: &str) {
            assert_eq!(fold(text), folded, "{text:?}");
        }
        check("Zoë", "zoe");
        check("Zoe\u{308}", "zoe");
        check("ＮＯＶＡ", "nova");
        check("No\u{200B}va", "nova");
        check("Łukasz Strauß", "lukasz strauss");
        check("Ёлка", "елка");
        check("ガイ", "ガイ");
        check("유나", "유나");
        check("نُور", "نور");
    }
}
