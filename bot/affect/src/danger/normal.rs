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
    let mut before = ' ';
    let mut chars = folded.chars().peekable();
    while let Some(c) = chars.next() {
        let within_word = before.is_alphabetic() && chars.peek().is_some_and(|next| next.is_alphabetic());
        before = match disguised(c) {
            Some(Disguise::Letter(latin, cyrillic)) if within_word => {
                if is_cyrillic(before) {
                    cyrillic
                } else {
                    latin
                }
            }
            Some(Disguise::Blot) if within_word => continue,
            _ => c,
        };
        push(&mut words, before);
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    rejoined(&shortened(&words))
}

/// What a mark within a word stands for, where somebody writes around a filter.
enum Disguise {
    /// Another letter, of Latin or of Cyrillic script: "su1c1de", "k!ll", "с@моубийство".
    Letter(char, char),
    /// Nothing: "k*ll".
    Blot,
}

fn disguised(c: char) -> Option<Disguise> {
    Some(match c {
        '0' => Disguise::Letter('o', 'о'),
        '1' | '!' => Disguise::Letter('i', 'и'),
        '3' => Disguise::Letter('e', 'е'),
        '4' | '@' => Disguise::Letter('a', 'а'),
        '5' | '$' => Disguise::Letter('s', 'з'),
        '*' | '#' => Disguise::Blot,
        _ => return None,
    })
}

fn is_cyrillic(c: char) -> bool {
    ('\u{400}'..='\u{52f}').contains(&c)
}

/// How many letters in a row that stand alone are one word, written apart: "d e a d".
const SPELLED_OUT: usize = 4;

/// The same with words that are written letter by letter put together.
fn rejoined(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let is_letter = |word: &str| {
        let mut chars = word.chars();
        chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
    };
    let mut joined = String::with_capacity(text.len());
    joined.push(' ');
    for row in words.chunk_by(|a, b| is_letter(a) && is_letter(b)) {
        joined.push_str(&row.join(if row.len() < SPELLED_OUT { " " } else { "" }));
        joined.push(' ');
    }
    joined
}

/// Apostrophes join: "don't" is "dont". Joiners and marks of direction are no characters at all.
fn joins(c: char) -> bool {
    matches!(
        c,
        '\'' | '’' | '‘' | '`' | '´' | 'ʼ' | '\u{200b}'
            ..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}' | '\u{ad}' | 'ـ'
    )
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
        c if PICTURES.contains(&c) => {
            if !words.ends_with(' ') {
                words.push(' ');
            }
            words.extend([c, ' ']);
        }
        c if is_of_a_word(c) => words.push(western_digit(c)),
        _ if words.ends_with(' ') => {}
        _ => words.push(' '),
    }
}

/// Emoji that say something about a danger, or that there is none. Each is a word.
const PICTURES: [char; 13] = ['😂', '🤣', '🔫', '🔪', '🗡', '💊', '🪢', '🩸', '⚰', '🪦', '🪒', '🌉', '🚌'];

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

    #[test]
    fn letters_in_disguise_and_letters_set_apart_are_read() {
        #[track_caller]
        fn check(text: &str, want: &str) {
            assert_eq!(normalise(text), want, "{text:?}");
        }
        check("su1c1de k!ll mys3lf s*icide", " suicide kill myself sicide ");
        check("с@моубийство", " самоубииство ");
        check("k-i-l-l m.e", " killme ");
        check("I am 13yo, a 10k run! 5 kms", " i am 13yo a 10k run 5 kms ");
        check("a b c of x", " a b c of x ");
        check("me 🔫⚰️!", " me 🔫 ⚰ ");
    }
}
