//! How a text is prepared for matching.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// Marks up to this combining class belong to the letter (the voicing marks of Japanese, the virama and nukta of Indian scripts);
/// those above are accents, vowel points and tones, which people leave out.
const LETTER_MARKS: u8 = 9;

/// How often a letter may stand in a row before it is a lengthened one: "dieee".
const MAX_REPEATS: usize = 2;

/// Returns the text in lower case, without accents and punctuation, with one blank before, between and behind its words.
pub(super) fn normalise(text: &str) -> String {
    let folded: String = text
        .chars()
        .filter(|c| !joins(*c))
        .nfkd()
        .filter(|c| canonical_combining_class(*c) <= LETTER_MARKS)
        .flat_map(char::to_lowercase)
        .filter(|c| canonical_combining_class(*c) <= LETTER_MARKS)
        .nfc()
        .collect();
    let mut words = String::with_capacity(folded.len() + 2);
    words.push(' ');
    for c in folded.chars() {
        push(&mut words, c);
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    shortened(&words)
}

/// Apostrophes join: "don't" is "dont". Joiners and marks of direction are no characters at all.
fn joins(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | '`' | '´' | 'ʼ' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' | 'ـ')
}

fn push(words: &mut String, c: char) {
    match c {
        'ß' => words.push_str("ss"),
        'æ' => words.push_str("ae"),
        'œ' => words.push_str("oe"),
        'ø' => words.push('o'),
        'ł' => words.push('l'),
        'đ' => words.push('d'),
        'ı' => words.push('i'),
        'أ' | 'إ' | 'آ' | 'ٱ' => words.push('ا'),
        'ى' | 'ی' => words.push('ي'),
        'ک' => words.push('ك'),
        'ة' => words.push('ه'),
        c if is_of_a_word(c) => words.push(western_digit(c)),
        _ if words.ends_with(' ') => {}
        _ => words.push(' '),
    }
}

/// The zeros of the digits that people write in Arabic, Persian, Hindi, Bengali and Thai.
const ZEROS: [char; 5] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{e50}'];

/// A digit of another script as one of 0 to 9; any other character as it is.
fn western_digit(c: char) -> char {
    let digit = |zero: char| u32::from(c).checked_sub(u32::from(zero)).filter(|digit| *digit < 10);
    ZEROS.into_iter().find_map(digit).and_then(|digit| char::from_digit(digit, 10)).unwrap_or(c)
}

/// Letters, digits, and the vowel signs of Indian and Thai scripts, which are marks and not letters.
fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(c)
}

/// The same with letters that are lengthened ("dieee") standing once.
fn shortened(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut short = String::with_capacity(text.len());
    for row in chars.chunk_by(|a, b| a == b) {
        let Some(c) = row.first() else { continue };
        let lengthened = row.len() > MAX_REPEATS && c.is_alphabetic();
        short.extend(std::iter::repeat_n(*c, if lengthened { 1 } else { row.len() }));
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_case_punctuation_and_lengthening_make_no_difference() {
        #[track_caller]
        fn check(text: &str, want: &str) {
            assert_eq!(normalise(text), want, "{text:?}");
        }
        check("I DON'T want…to dieee!!", " i dont want to die ");
        check("  Je veux MOURIR, l’été ", " je veux mourir lete ");
        check("Größe Łódź İstanbul ıssız", " grosse lodz istanbul issiz ");
        check("죽고 싶어", " 죽고 싶어 ");
        check("死にたい。ガギグ", " 死にたい ガギグ ");
        check("मैं मरना चाहता हूँ", &normalise("मैं मरना चाहता हूँ"));
        check("أُرِيدُ أنْ أموت", " اريد ان اموت ");
        check("", " ");
        check("!?", " ");
        check("I don´t", " i dont ");
        check("10000 pills", " 10000 pills ");
        check("۱۲ ساله, १२", " 12 ساله 12 ");
    }
}
