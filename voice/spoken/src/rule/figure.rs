//! Numbers without units: fractions, ranges, ordinals, years and codes.

use super::quantity::{amount, may_be_negative};
use super::{group, pattern, value};
use crate::number::{self, Number, cardinal, digits, paired};
use crate::scan::{Input, Said};
use crate::table::tables;

pub fn exponent(power: u64, negative: bool) -> String {
    match (power, negative) {
        (2, false) => "squared".to_owned(),
        (3, false) => "cubed".to_owned(),
        (_, false) => format!("to the {}", number::ordinal(power)),
        (_, true) => format!("to the minus {}", number::ordinal(power)),
    }
}

/// 2^10, 6.02×10^23, 1e6.
pub fn power_of_ten(input: &Input<'_>) -> Option<Said> {
    let base = Number::parse(input.rest, may_be_negative(input)).filter(|_| input.is_fresh())?;
    let found =
        pattern!(r"^(?:(?P<e>[eE])|(?P<ten> ?[×x*] ?10\^)|\^)([-−+]?)(\d{1,4})").captures(input.after(base.len))?;
    let len = base.len + group(&found, 0).len();
    if !input.ends_at(len) {
        return None;
    }
    let power = exponent(value(&found, 4)?, matches!(group(&found, 3), "-" | "−"));
    let times_ten = found.name("e").is_some() || found.name("ten").is_some();
    let ten = if times_ten { " times ten" } else { "" };
    Said::new(len, format!("{}{ten} {power}", base.words()))
}

/// 2 1/2.
pub fn mixed_fraction(input: &Input<'_>) -> Option<Said> {
    pattern!(r"^-?\d+ \d/\d").is_match(input.rest).then_some(())?;
    let amount = amount(input.rest, may_be_negative(input)).filter(|_| input.is_fresh())?;
    if !input.ends_at(amount.len) { None } else { Said::new(amount.len, amount.words) }
}

/// 2023/24.
pub fn season(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^((?:19|20)\d\d)/(\d\d)").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    let (first, second) = (value(&found, 1)?, value(&found, 2)?);
    if !input.ends_at(len) || (first + 1) % 100 != second {
        return None;
    }
    Said::new(len, format!("{} to {}", number::year(first), super::date::short_year(second)))
}

/// 3/4, 24/7, 50/50, 8/10.
pub fn fraction(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,4})/(\d{1,4})").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    if !input.ends_at(len) || input.after(len).starts_with('/') {
        return None;
    }
    let (above, below) = (value(&found, 1)?, value(&found, 2)?);
    Said::new(
        len,
        match (above, below) {
            (24, 7) | (9, 11) | (50, 50) | (60, 40) | (80, 20) => format!("{} {}", cardinal(above), cardinal(below)),
            _ => number::fraction(above, below),
        },
    )
}

/// 3:1 and 16:9.
pub fn ratio(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,4}):(\d{1,4})").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    if !input.ends_at(len) || input.after(len).starts_with(':') {
        return None;
    }
    Said::new(len, format!("{} to {}", cardinal(value(&found, 1)?), cardinal(value(&found, 2)?)))
}

pub fn ordinal(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,3}(?:,\d{3})+|\d{1,12})(?i:st|nd|rd|th)")
        .captures(input.rest)
        .filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    let plain: String = group(&found, 1).chars().filter(char::is_ascii_digit).collect();
    if input.ends_at(len) { Said::new(len, number::ordinal(plain.parse().ok()?)) } else { None }
}

/// 5-10, 1939-1945, 2 - 3.
pub fn range(input: &Input<'_>) -> Option<Said> {
    let first = amount(input.rest, may_be_negative(input)).filter(|_| input.is_fresh())?;
    let dash = pattern!(r"^(?:[-–—]| [-–—] )").find(input.after(first.len))?;
    let second = amount(input.after(first.len + dash.len()), false)?;
    let len = first.len + dash.len() + second.len;
    let after = input.after(len);
    // More groups are a code, "7 - 2 = 5" is a sum.
    if !input.ends_at(len) || pattern!(r"^-\d|^ ?[=+*/^]").is_match(after) || first.number.whole.is_empty() {
        return None;
    }
    let years = [&first.number, &second.number]
        .map(|number| number.value().filter(|value| number.is_plain() && (1000..=2099).contains(value)));
    let said = match years {
        [Some(from), Some(to)] => format!("{} to {}", number::year(from), number::year(to)),
        [Some(from), None] if second.number.whole.len() == 2 && second.number.is_plain() => {
            format!("{} to {}", number::year(from), second.words)
        }
        _ => format!("{} to {}", first.words, second.words),
    };
    Said::new(len, said)
}

/// Digits of codes, and numbers of rooms, flights and models in pairs.
pub fn code(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^\d+(?:[- ]\d{3,4})?").find(input.rest).filter(|_| input.is_fresh())?;
    let number = pattern!(r"^\d+").find(input.rest)?;
    if !input.ends_at(number.len()) || pattern!(r"^[.,:]\d|^ ?[%°]").is_match(input.after(number.len())) {
        return None;
    }
    let tables = tables();
    let near: Vec<String> = input.words_before().take(3).collect();
    let linked = |word: &String| tables.digit_cues.has(word);
    let nearest = near.first().is_some_and(linked);
    let over_is = near.first().is_some_and(|word| matches!(word.as_str(), "is" | "number" | "was" | "to"))
        && near.iter().skip(1).any(linked);
    if (nearest || over_is) && number.len() > 2 {
        let len = if input.ends_at(found.len()) { found.len() } else { number.len() };
        return Said::new(len, digits(found.as_str().get(..len)?));
    }
    let paired_cue = near.iter().take(2).any(|word| tables.pair_cues.has(word));
    if paired_cue && !number.as_str().starts_with('0') && (3..=4).contains(&number.len()) {
        return Said::new(number.len(), paired(number.as_str().parse().ok()?));
    }
    None
}

/// A year by what stands around it, and '99.
pub fn year(input: &Input<'_>) -> Option<Said> {
    if let Some(found) = pattern!(r"^['’](\d\d)").captures(input.rest) {
        let len = group(&found, 0).len();
        let fits = input.is_fresh() && input.ends_at(len);
        return if fits { Said::new(len, super::date::short_year(value(&found, 1)?)) } else { None };
    }
    let found = pattern!(r"^[12]\d{3}").find(input.rest).filter(|_| input.is_fresh())?;
    let number: u64 = found.as_str().parse().ok()?;
    let len = found.len();
    if number > 2100 || !input.ends_at(len) || pattern!(r"^[.,]\d|^ ?[%°=+*/^×]").is_match(input.after(len)) {
        return None;
    }
    let before = input.before.trim_end();
    let cue =
        tables().year_cues.has(&input.word_before()) && !before.ends_with([',', '.']) || before.ends_with(['©', '(']);
    let next = input.word_after(len);
    let counts = next.len() > 2
        && next.ends_with('s')
        && next.starts_with(char::is_lowercase)
        && !matches!(next, "was" | "is" | "has" | "this");
    let likely = (1900..=2099).contains(&number) && !number.is_multiple_of(100);
    if counts || !(cue || likely) { None } else { Said::new(len, number::year(number)) }
}

/// 10k, 2M, 3x, 1080p.
pub fn scaled(input: &Input<'_>) -> Option<Said> {
    let amount = amount(input.rest, may_be_negative(input)).filter(|_| input.is_fresh())?;
    if amount.number.is_plain() && input.rest.starts_with("4K") {
        return Said::new(2, "four K").filter(|_| input.ends_at(2));
    }
    if amount.scaled && input.ends_at(amount.len) {
        return Said::new(amount.len, amount.words);
    }
    let after = input.after(amount.len);
    if after.starts_with(['x', '×']) && input.ends_at(amount.len + 1) && !after.starts_with("×") {
        return Said::new(amount.len + 1, format!("{} times", amount.words));
    }
    let lines = amount.number.value().filter(|_| after.starts_with(['p', 'i']) && input.ends_at(amount.len + 1))?;
    let letter = if after.starts_with('p') { "P" } else { "I" };
    if lines < 100 { None } else { Said::new(amount.len + 1, format!("{} {letter}", paired(lines))) }
}

/// 221B Baker Street, seat 14B, Apt 4B: a number of a house, room or seat with its letter. "B" alone may be billions,
/// too: "3B people".
pub fn lettered(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^([1-9]\d{0,3})([A-H])\b").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    let number = value(&found, 1)?;
    let tables = tables();
    let cue = input.words_before().take(2).any(|word| tables.letter_cues.has(&word) || tables.pair_cues.has(&word));
    let name_follows = pattern!(r"^ \p{Lu}\p{Ll}").is_match(input.after(len));
    let counts = pattern!(r"^ \p{Ll}+s\b").is_match(input.after(len));
    let is_number = cue || name_follows || (number >= 100 && !counts);
    if !is_number { None } else { Said::new(len, format!("{} {}", paired(number), group(&found, 2))) }
}

/// 14B, 5G, 12a, 3D: a number and then letters.
pub fn digit_then_letters(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d+)([A-Za-z]\w*)").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    Said::new(len, mixed(group(&found, 0)))
}

/// Says letters and digits that stand together: "A one B two".
pub fn mixed(text: &str) -> String {
    let parts = pattern!(r"\d+|\p{L}+").find_iter(text);
    let said: Vec<String> = parts
        .map(|part| match part.as_str() {
            number if number.starts_with(|c: char| c.is_ascii_digit()) => Number::parse(number, false).map_or_else(
                || digits(number),
                |number| match number.value() {
                    Some(value) if (1000..=9999).contains(&value) => paired(value),
                    _ => number.words(),
                },
            ),
            letters if letters.chars().count() <= 2 || letters.chars().all(char::is_uppercase) => {
                super::word::capitals(letters)
            }
            letters => letters.to_owned(),
        })
        .collect();
    said.join(" ")
}

pub fn number(input: &Input<'_>) -> Option<Said> {
    let number = Number::parse(input.rest, may_be_negative(input))?;
    // "1500 people" are fifteen hundred.
    let hundreds = number.value().filter(|value| {
        let is_round = value.is_multiple_of(100) && !value.is_multiple_of(1_000);
        number.is_plain() && (1_100..=9_900).contains(value) && is_round
    });
    let noun = input.word_after(number.len);
    if let Some(value) = hundreds.filter(|_| noun.len() > 2 && noun.starts_with(char::is_lowercase)) {
        return Said::new(number.len, paired(value));
    }
    // After a letter or digit a sign belongs to it: "x-5".
    Said::new(number.len, number.words())
}
