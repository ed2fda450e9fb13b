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
    amount::fraction,
    amount::ratio,
    moment::ordinal,
    amount::decade,
    amount::times,
    amount::range,
    amount::year,
    amount::number,
    word::abbreviation,
    word::between,
    word::symbol,
];

/// Whether a word with a full stop ends no sentence: "z.B.", "Dr.", "am 3.".
pub fn is_short(word: &str, before: &str) -> bool {
    let is_number = word.len() <= 3 && !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    if is_number {
        let before = before.to_lowercase();
        return tables().ordinal_n.contains(&before) || tables().ordinal_e.contains(&before);
    }
    let is_letter = word.chars().count() == 1 && word.chars().all(char::is_lowercase);
    is_letter || (!may_end(word) && tables().abbreviations.contains_key(&format!("{word}.")))
}

/// Whether a word with a full stop may end a sentence, or stand inside of one: "usw."
pub fn may_end(word: &str) -> bool {
    matches!(word, "usw" | "etc" | "Str" | "Min" | "Std" | "min" | "max" | "Mi" | "Do" | "Di" | "Mo")
}

/// Whether emphasised words tell what somebody does: "lächelt", "sie nickt langsam".
pub fn is_action(words: &[String]) -> bool {
    let subject = matches!(words.first().map(String::as_str), Some("sie" | "er" | "es"));
    words.get(usize::from(subject)).is_some_and(|verb| tables().actions.contains(verb))
}
