//! Words in other alphabets, written in Latin letters.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Returns a word in lower-case Latin letters without accents, digits included. Letters of scripts that are not alphabets
/// are left out.
pub fn latin(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' => out.push(c),
            c => out.push_str(letters(c)),
        }
    }
    out
}

fn letters(c: char) -> &'static str {
    match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ı' => "i",
        c => greek(c).or_else(|| cyrillic(c)).unwrap_or_default(),
    }
}

fn greek(c: char) -> Option<&'static str> {
    Some(match c {
        'α' => "a",
        'β' => "v",
        'γ' => "g",
        'δ' => "d",
        'ε' => "e",
        'ζ' => "z",
        'η' | 'ι' | 'υ' => "i",
        'θ' => "th",
        'κ' => "k",
        'λ' => "l",
        'μ' => "m",
        'ν' => "n",
        'ξ' => "x",
        'ο' | 'ω' => "o",
        'π' => "p",
        'ρ' => "r",
        'σ' | 'ς' => "s",
        'τ' => "t",
        'φ' => "f",
        'χ' => "h",
        'ψ' => "ps",
        _ => return None,
    })
}

fn cyrillic(c: char) -> Option<&'static str> {
    Some(match c {
        'а' => "a",
        'б' => "b",
        'в' => "v",
        'г' | 'ґ' => "g",
        'д' => "d",
        'е' | 'э' | 'є' => "e",
        'ж' => "zh",
        'з' => "z",
        'и' | 'і' | 'ы' => "i",
        'ј' => "y",
        'к' => "k",
        'л' => "l",
        'м' => "m",
        'н' => "n",
        'о' => "o",
        'п' => "p",
        'р' => "r",
        'с' => "s",
        'т' => "t",
        'у' => "u",
        'ф' => "f",
        'х' => "h",
        'ц' => "ts",
        'ч' => "ch",
        'ш' | 'щ' => "sh",
        'ю' => "yu",
        'я' => "ya",
        'ъ' | 'ь' => "",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabets_become_latin() {
        for (word, said) in [
            ("Łódź", "lodz"),
            ("naïveté", "naivete"),
            ("Straße", "strasse"),
            ("Привет", "privet"),
            ("γνώση", "gnosi"),
            ("x7", "x7"),
            ("你好", ""),
        ] {
            assert_eq!(latin(word), said);
        }
    }
}
