//! The rules for written forms. Each looks at the start of the rest; the first that knows it decides.

mod clock;
pub mod date;
mod figure;
mod link;
mod money;
mod phone;
pub mod quantity;
pub mod sign;
mod word;

use crate::scan::{Input, Said};

pub type Rule = fn(&Input<'_>) -> Option<Said>;

/// Those that know more come first.
pub const RULES: &[Rule] = &[
    sign::emoticon,
    sign::emoji,
    link::email,
    link::matrix_name,
    link::address,
    link::mention,
    link::hashtag,
    link::ip,
    date::numeric,
    link::version,
    date::iso,
    date::month_and_day,
    link::path,
    link::file,
    link::host,
    phone::phone,
    phone::emergency,
    date::month_first,
    date::day_first,
    date::span,
    date::weekday,
    word::keys,
    clock::long_duration,
    clock::range,
    clock::time,
    clock::duration,
    money::sign_first,
    money::sign_last,
    quantity::height,
    quantity::compound,
    quantity::dimensions,
    figure::lettered,
    quantity::range,
    date::decade,
    quantity::measured,
    figure::power_of_ten,
    figure::mixed_fraction,
    figure::season,
    figure::fraction,
    figure::ratio,
    figure::ordinal,
    figure::range,
    figure::code,
    figure::year,
    figure::scaled,
    figure::digit_then_letters,
    figure::number,
    word::before_number,
    word::letters_then_digits,
    word::chat,
    word::abbreviation,
    word::dotted_letters,
    word::numeral,
    word::acronym,
    word::shouted,
    word::stretched,
    word::plain,
    sign::superscript,
    sign::between,
    sign::symbol,
];

macro_rules! pattern {
    ($text:literal) => {{
        static PATTERN: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($text).expect("a test uses each pattern"));
        &*PATTERN
    }};
}
pub(crate) use pattern;

/// Returns the text of a group, or nothing.
pub(crate) fn group<'t>(found: &regex::Captures<'t>, index: usize) -> &'t str {
    found.get(index).map_or("", |part| part.as_str())
}

/// Returns the value of a group of digits.
pub(crate) fn value(found: &regex::Captures<'_>, index: usize) -> Option<u64> {
    group(found, index).parse().ok()
}
