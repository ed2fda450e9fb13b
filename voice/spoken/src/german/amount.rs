//! Numbers, alone and with money or units.

use super::number::{Number, cardinal, digits, fraction as fraction_words, stem, year as year_words};
use super::word::stop_after;
use super::{starts_sentence, tables};
use crate::rule::{group, pattern, value};
use crate::scan::{Input, Said};
use crate::table::longest;

/// A number with a word such as "Mio." after it.
struct Amount {
    len: usize,
    number: Number,
    scale: Option<String>,
}

impl Amount {
    fn parse(text: &str, negative: bool) -> Option<Self> {
        let number = Number::parse(text, negative)?;
        let after = text.get(number.len..).unwrap_or_default();
        let gap = usize::from(after.starts_with(' '));
        let found = after.get(gap..).and_then(|after| longest(&tables().scales, after));
        let scale = found.filter(|(key, _)| {
            let rest = after.get(gap + key.len()..).unwrap_or_default();
            !rest.starts_with(char::is_alphanumeric)
        });
        Some(match scale {
            Some((key, [one, several])) => {
                let len = number.len + gap + key.len();
                let words = match number.is_one() {
                    true if one.starts_with(char::is_uppercase) => format!("eine {one}"),
                    true => format!("ein {one}"),
                    false => format!("{} {several}", number.words()),
                };
                Self { len, number, scale: Some(words) }
            }
            None => Self { len: number.len, number, scale: None },
        })
    }

    /// Reads an amount of money, also one with a point before two digits of cents: "4.99", "1,234.56".
    fn parse_money(text: &str, negative: bool) -> Option<Self> {
        let pattern = pattern!(r"^([-−]?)(\d{1,3}(?:,\d{3})+|\d+)\.(\d{2})(?:[^\d.]|\.\D|\.?$)");
        let pointed = pattern.captures(text).filter(|found| negative || group(found, 1).is_empty());
        let Some(found) = pointed else { return Self::parse(text, negative) };
        let number = Number {
            len: found.get(3)?.end(),
            negative: !group(&found, 1).is_empty(),
            whole: group(&found, 2).replace(',', ""),
            fraction: Some(group(&found, 3).to_owned()),
            grouped: false,
        };
        Some(Self { len: number.len, number, scale: None })
    }

    fn words(&self, one: &str) -> String {
        self.scale.clone().unwrap_or_else(|| self.number.words_before(one))
    }
}

/// Says a sum: two digits after the comma are cents.
fn sum(amount: &Amount, [name, cents]: &[String; 2]) -> String {
    let number = &amount.number;
    let part = number.fraction.as_deref().filter(|part| part.len() == 2 && amount.scale.is_none() && !cents.is_empty());
    let Some(part) = part.and_then(|part| part.parse::<u64>().ok()) else {
        return format!("{} {name}", amount.words("ein"));
    };
    let whole = Number { fraction: None, ..number.clone() };
    let minus = if number.negative { "minus " } else { "" };
    let one_cent = cents.strip_suffix("ence").map_or_else(|| cents.clone(), |head| format!("{head}enny"));
    match (whole.value(), part) {
        (Some(0), 1) => format!("{minus}ein {one_cent}"),
        (Some(0), 2..) => format!("{minus}{} {cents}", cardinal(part)),
        (_, 0) => format!("{} {name}", whole.words_before("ein")),
        _ => format!("{} {name} {}", whole.words_before("ein"), cardinal(part)),
    }
}

/// Reads what a price is for: "/Monat", "/kg".
fn per(text: &str) -> Option<(usize, String)> {
    let found = pattern!(r"^/(\p{L}+[²³]?)").captures(text)?;
    let word = group(&found, 1);
    let unit = tables().units.get(word).map_or(word, |[one, ..]| one.as_str());
    Some((group(&found, 0).len(), format!("pro {unit}")))
}

fn with_per(input: &Input<'_>, len: usize, words: String) -> Option<Said> {
    match per(input.after(len)) {
        Some((more, said)) => Said::new(len + more, format!("{words} {said}")),
        None if input.ends_at(len) => Said::new(len, words),
        None => None,
    }
}

/// €5, $20.
pub fn sign_first(input: &Input<'_>) -> Option<Said> {
    let (sign, names) = longest(&tables().currencies, input.rest)?;
    if !input.is_fresh() {
        return None;
    }
    let start = sign.len() + usize::from(input.after(sign.len()).starts_with(' '));
    let amount = Amount::parse_money(input.after(start), false)?;
    if pattern!(r"^[.,]\d").is_match(input.after(start + amount.len)) {
        return None;
    }
    with_per(input, start + amount.len, sum(&amount, names))
}

/// Whether a minus may belong to the number that starts here. A dash after a full stop or a unit stands in a range.
fn may_be_negative(input: &Input<'_>) -> bool {
    input.char_before().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '"' | '„' | '“' | ':' | '=' | '/'))
}

/// Reads the second half of a range whose halves both have this unit: " - 10 €". Returns the end of it and the amount.
fn second_half(input: &Input<'_>, len: usize, unit: &str) -> Option<(usize, Amount)> {
    let dash = pattern!(r"^ ?[-–—] ?").find(input.after(len))?.len();
    let amount = Amount::parse_money(input.after(len + dash), false)?;
    let end = len + dash + amount.len;
    let gap = usize::from(input.after(end).starts_with(' '));
    let end = end + gap + input.after(end + gap).strip_prefix(unit).map(|_| unit.len())?;
    input.ends_at(end).then_some((end, amount))
}

/// 20 €, 19,99 EUR, 3.50 €, 5-10 €, 5 € - 10 €, 3,- €.
pub fn sign_last(input: &Input<'_>) -> Option<Said> {
    let first = Amount::parse_money(input.rest, may_be_negative(input)).filter(|_| input.is_fresh())?;
    let dash = pattern!(r"^ ?[-–—] ?\d").find(input.after(first.len)).map(|found| found.len() - 1);
    let second = dash.and_then(|dash| Some((dash, Amount::parse_money(input.after(first.len + dash), false)?)));
    let mut len = first.len + second.as_ref().map_or(0, |(dash, second)| dash + second.len);
    len += pattern!(r"^,[-–—]").find(input.after(len)).map_or(0, |found| found.len());
    len += usize::from(input.after(len).starts_with(' '));
    let (sign, names) = longest(&tables().currencies, input.after(len))?;
    len += sign.len();
    if second.is_none()
        && let Some((end, other)) = second_half(input, len, sign)
    {
        return Said::new(end, format!("{} bis {}", sum(&first, names), sum(&other, names)));
    }
    let words = match &second {
        Some((_, second)) => format!("{} bis {}", first.words("ein"), sum(second, names)),
        None => sum(&first, names),
    };
    with_per(input, len, words)
}

/// 5 km, 120 km/h, -5 °C, 3-4 h, 50 %.
pub fn measured(input: &Input<'_>) -> Option<Said> {
    let first = Amount::parse(input.rest, may_be_negative(input)).filter(|_| input.is_fresh())?;
    let dash = pattern!(r"^ ?[-–—] ?\d").find(input.after(first.len)).map(|found| found.len() - 1);
    let second = dash.and_then(|dash| Some((dash, Amount::parse(input.after(first.len + dash), false)?)));
    let number = first.len + second.as_ref().map_or(0, |(dash, second)| dash + second.len);
    let gap = usize::from(input.after(number).starts_with([' ', '-']));
    let (key, [one, several, article]) = longest(&tables().units, input.after(number + gap))?;
    let len = number + gap + key.len();
    // A dash stands before a whole word: "5-jährig", "12-V-Lampe".
    if input.after(number).starts_with('-') && !input.after(len).starts_with('-') {
        return None;
    }
    if second.is_none()
        && let Some((end, other)) = second_half(input, len, key)
    {
        let unit = if first.number.is_one() { one } else { several };
        return Said::new(end, format!("{} {unit} bis {} {several}", first.words(article), other.words(article)));
    }
    let is_one = second.is_none() && first.number.is_one() && first.scale.is_none();
    let unit = if is_one { one } else { several };
    let words = match &second {
        Some((_, second)) => format!("{} bis {} {unit}", first.words(article), second.words(article)),
        None => format!("{} {unit}", first.words(article)),
    };
    with_per(input, len, words)
}

/// 1/2, 3/4.
pub fn fraction(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,3})/(\d{1,3})").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    if !input.ends_at(len) || input.after(len).starts_with('/') {
        return None;
    }
    let (above, below) = (value(&found, 1)?, value(&found, 2)?);
    if (above, below) == (24, 7) {
        return Said::new(len, format!("{} {}", cardinal(above), cardinal(below)));
    }
    Said::new(len, fraction_words(above, below))
}

/// 2:1, 3:0.
pub fn ratio(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,4}) ?: ?(\d{1,4})").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    if !input.ends_at(len) || input.after(len).starts_with(':') {
        return None;
    }
    Said::new(len, format!("{} zu {}", cardinal(value(&found, 1)?), cardinal(value(&found, 2)?)))
}

/// 90er, 1990er Jahre.
pub fn decade(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,4})er\b").captures(input.rest).filter(|_| input.is_fresh())?;
    Said::new(group(&found, 0).len(), format!("{}er", year_words(value(&found, 1)?)))
}

/// 3x, 3-mal, 3mal.
pub fn times(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,6})(?: ?[x×]|-?mal)").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    input.ends_at(len).then_some(())?;
    // "3 x 4" multiplies.
    if pattern!(r"^ ?\d").is_match(input.after(len)) {
        return Said::new(len, format!("{} mal", cardinal(value(&found, 1)?)));
    }
    Said::new(len, format!("{}mal", stem(value(&found, 1)?)))
}

/// 3-5, 1990–1995.
pub fn range(input: &Input<'_>) -> Option<Said> {
    let first = Number::parse(input.rest, false).filter(|_| input.is_fresh())?;
    let dash = pattern!(r"^(?:[-–—]| [-–—] )\d").find(input.after(first.len))?.len() - 1;
    let second = Number::parse(input.after(first.len + dash), false)?;
    let len = first.len + dash + second.len;
    let counts = input.word_after(len).starts_with(char::is_uppercase);
    // "10 - 4 = 6" is a difference, "5 - 10 Minuten" a range.
    let rises = counts && first.value().zip(second.value()).is_some_and(|(first, second)| first < second);
    if input.after(first.len).starts_with(" -") && !rises {
        return None;
    }
    if !input.ends_at(len) || pattern!(r"^[-–]\d").is_match(input.after(len)) {
        return None;
    }
    let said = |number: &Number| if counts { number.words() } else { plain(number) };
    Said::new(len, format!("{} bis {}", said(&first), said(&second)))
}

/// Says a number that may be a year.
fn plain(number: &Number) -> String {
    match number.value() {
        Some(value) if number.whole.len() == 4 && !number.grouped && !number.negative => year_words(value),
        _ => number.words(),
    }
}

/// Words before a year, in small letters.
const YEAR_CUES: [&str; 12] =
    ["jahr", "jahre", "jahren", "anno", "in", "seit", "ab", "bis", "von", "vor", "nach", "um"];

/// 1985, without a sign and without groups.
pub fn year(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^1[1-9]\d\d").find(input.rest).filter(|_| input.is_fresh())?;
    let number = Number::parse(input.rest, false).filter(|number| number.len == found.len())?;
    // "1850 Menschen" are counted, and so is "1234" where nothing says that it is a year.
    let noun = input.word_after(found.len());
    let counts = noun.starts_with(char::is_uppercase) && !starts_sentence(noun);
    let is_called = YEAR_CUES.contains(&input.word_before().as_str());
    let is_likely = number.value().is_some_and(|value| value >= 1_500);
    (!counts && (is_called || is_likely)).then_some(())?;
    Said::new(found.len(), plain(&number))
}

/// Says a noun's "one" where its gender is known.
fn one_of(noun: &str) -> Option<&'static str> {
    const FEMININE: [&str; 6] = ["ung", "heit", "keit", "schaft", "ion", "tät"];
    const NEUTER: [&str; 2] = ["chen", "lein"];
    let tables = tables();
    if tables.masculine.contains(noun) || tables.neuter.contains(noun) || NEUTER.iter().any(|end| noun.ends_with(end)) {
        return Some("ein");
    }
    let is_feminine = tables.feminine.contains(noun) || FEMININE.iter().any(|end| noun.ends_with(end));
    is_feminine.then_some("eine")
}

/// 3 Mio., 1 Million, 5 Tsd.
pub fn scaled(input: &Input<'_>) -> Option<Said> {
    let amount = Amount::parse(input.rest, may_be_negative(input)).filter(|_| input.is_fresh())?;
    let words = amount.scale?;
    Said::new(amount.len, format!("{words}{}", stop_after(input, amount.len)))
}

/// Any other number.
pub fn number(input: &Input<'_>) -> Option<Said> {
    let number = Number::parse(input.rest, may_be_negative(input))?;
    let after = input.after(number.len);
    // A point before digits that are no thousands: "3.5".
    if let Some(found) = pattern!(r"^\.(\d+)").captures(after).filter(|_| number.fraction.is_none()) {
        let words = format!("{} Punkt {}", number.words(), digits(group(&found, 1)));
        return Said::new(number.len + group(&found, 0).len(), words);
    }
    let noun = input.word_after(number.len);
    if number.is_one()
        && input.is_fresh()
        && let Some(one) = one_of(noun)
    {
        return Said::new(number.len, number.words_before(one));
    }
    Said::new(number.len, number.words())
}
