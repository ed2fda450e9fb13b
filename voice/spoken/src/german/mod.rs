//! German written forms as a voice says them. The rules stand in `data/german.toml` and in the files beside this one; they
//! are used like those of `src/rule`.

mod amount;
mod moment;
mod number;
mod table;
mod word;

use crate::rule::{Rule, sign};

pub use moment::stamp;
pub use table::tables;
pub use word::host;

/// Those that know more come first.
pub const RULES: &[Rule] = &[
    sign::emoticon_in_german,
    sign::emoji_in_german,
    word::email,
    word::matrix_name,
    word::address,
    word::name,
    word::mention,
    word::hashtag,
    moment::iso,
    moment::numeric,
    moment::month,
    word::version,
    moment::long_duration,
    moment::range,
    moment::time,
    amount::sign_first,
    amount::sign_last,
    amount::measured,
    word::phone,
    word::emergency,
    amount::fraction,
    amount::ratio,
    moment::ordinal,
    amount::decade,
    amount::times,
    amount::range,
    amount::scaled,
    amount::year,
    amount::number,
    word::abbreviation,
    word::between,
    word::symbol,
];

/// Whether a word with a full stop ends no sentence: "z.B.", "Dr.".
pub fn is_short(word: &str) -> bool {
    let is_letter = word.chars().count() == 1 && word.chars().all(char::is_lowercase);
    let known = || {
        let key = format!("{word}.");
        tables().abbreviations.contains_key(&key) || word::uncapitalised(&key).is_some_and(|(len, _)| len == key.len())
    };
    is_letter || (!may_end(word) && known())
}

/// Whether a word with a full stop may end a sentence, or stand inside of one: "usw."
pub fn may_end(word: &str) -> bool {
    matches!(word, "usw" | "etc" | "Str" | "Min" | "Std" | "min" | "max" | "Mi" | "Do" | "Di" | "Mo" | "o.Ä" | "Ä")
}

/// Whether a word with a full stop ends a sentence only before a word that begins one, since a noun may follow: "3 Mio.
/// Menschen".
pub fn may_end_before_starter(word: &str) -> bool {
    matches!(word, "Mio" | "Mrd" | "Tsd" | "Jh" | "inkl" | "exkl")
}

/// Whether a capitalised word begins a sentence, since it is no noun: "Dann". The polite "Sie" and "Ihr" may stand inside.
pub fn starts_sentence(word: &str) -> bool {
    tables().starters.contains(word.trim_end_matches('.'))
}

/// Whether a number with a full stop is an ordinal, by the words around it: "mein 30. Geburtstag", "Freitag, 3. Mai", "im
/// 1. und 2. Stock".
pub fn is_ordinal(earlier: &str, last: &str, next: &str) -> bool {
    let tables = tables();
    let month = next.strip_suffix('.').unwrap_or(next);
    let is_month = tables.months.iter().any(|name| name == month)
        || (next.ends_with('.') && tables.short_months.iter().any(|name| name == month));
    let last = last.to_lowercase();
    let called = [&tables.ordinal_n, &tables.ordinal_e, &tables.ordinal_r];
    let is_called = called.iter().any(|words| words.contains(&last));
    let is_number = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    let is_joined = matches!(last.as_str(), "und" | "oder" | "bis") && earlier.strip_suffix('.').is_some_and(is_number);
    is_month || next.starts_with(char::is_lowercase) || is_called || is_joined
}

/// Whether emphasised words tell what somebody does: "lächelt", "sie nickt langsam".
pub fn is_action(words: &[String]) -> bool {
    let subject = matches!(words.first().map(String::as_str), Some("sie" | "er" | "es"));
    words.get(usize::from(subject)).is_some_and(|verb| tables().actions.contains(verb))
}
