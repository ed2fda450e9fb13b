//! Sums of money.

use super::pattern;
use super::quantity::{amount, may_be_negative, per};
use crate::number::{Number, cardinal};
use crate::scan::{Input, Said};
use crate::table::{longest, tables};

/// $5.99, -$5, US$1.5M, $10-15, $20/month.
pub fn sign_first(input: &Input<'_>) -> Option<Said> {
    let minus = input
        .rest
        .chars()
        .next()
        .filter(|c| matches!(c, '-' | '−') && may_be_negative(input))
        .map_or(0, char::len_utf8);
    let (sign, names) = longest(&tables().currencies, input.after(minus))?;
    if !input.is_fresh() && !sign.starts_with(|c: char| !c.is_alphanumeric()) {
        return None;
    }
    let gap = usize::from(input.after(minus + sign.len()).starts_with(' '));
    let start = minus + sign.len() + gap;
    if !input.after(start).starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let first = amount(input.after(start), false)?;
    let mut len = start + first.len;
    let mut words = if let Some(found) = pattern!(r"^ ?[-–—] ?\$?\d").find(input.after(len)).filter(|_| !first.scaled)
    {
        let dash = found.len() - 1;
        let second = amount(input.after(len + dash), false)?;
        len += dash + second.len;
        format!("{} to {} {}", first.words, second.words, several(names))
    } else if first.scaled {
        format!("{} {}", first.words, several(names))
    } else {
        sum(&first.number, names, input.describes_noun(len))
    };
    if input.after(len).starts_with('+') {
        len += 1;
        words.push_str(" or more");
    }
    if let Some((skip, said)) = per(input.after(len)) {
        len += skip;
        words = format!("{words} {said}");
    }
    if !input.ends_at(len) {
        return None;
    }
    Said::new(len, if minus > 0 { format!("minus {words}") } else { words })
}

/// 20 €, 19,99 EUR, 99¢.
pub fn sign_last(input: &Input<'_>) -> Option<Said> {
    if !input.is_fresh() {
        return None;
    }
    let amount = amount(input.rest, may_be_negative(input))?;
    let gap = usize::from(input.after(amount.len).starts_with(' '));
    let (sign, names) = longest(&tables().currencies, input.after(amount.len + gap))?;
    let len = amount.len + gap + sign.len();
    // "I have 3 $5 bills": the sign belongs to what follows.
    let is_sign = sign.ends_with(|c: char| !c.is_alphanumeric());
    if !input.ends_at(len) || (is_sign && gap == 1 && sign == "$") {
        return None;
    }
    let words = if amount.scaled {
        format!("{} {}", amount.words, several(names))
    } else {
        sum(&amount.number, names, input.describes_noun(len))
    };
    Said::new(len, words)
}

fn several(names: &[String; 4]) -> &str {
    let [_, several, _, _] = names;
    several
}

/// Says a sum: two digits after the point are cents.
fn sum(number: &Number, names: &[String; 4], describes: bool) -> String {
    let [one, several, cent, cents] = names;
    let hundredths = number.fraction.as_deref().filter(|part| part.len() == 2 && !cent.is_empty());
    let Some(part) = hundredths.and_then(|part| part.parse::<u64>().ok()) else {
        return format!("{} {}", number.words(), if number.is_one() || describes { one } else { several });
    };
    let mut whole = number.clone();
    whole.fraction = None;
    if whole.whole.is_empty() {
        "0".clone_into(&mut whole.whole);
    }
    let coins = format!("{} {}", cardinal(part), if part == 1 { cent } else { cents });
    let notes = format!("{} {}", whole.words(), if whole.is_one() { one } else { several });
    match (whole.value(), part) {
        (Some(0), 1..) => coins,
        (_, 0) => notes,
        _ => format!("{notes} and {coins}"),
    }
}
