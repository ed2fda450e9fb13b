//! Numbers with units.

use super::{group, pattern, value};
use crate::number::{Number, cardinal, fraction};
use crate::scan::{Input, Said};
use crate::table::{longest, tables};

/// A number with the word for thousands or millions that follows it.
pub struct Amount {
    pub len: usize,
    pub number: Number,
    pub words: String,
    /// Whether a thousand or million follows.
    pub scaled: bool,
}

/// Whether a minus may stand before the rest: "-5", but not "2-5".
pub fn may_be_negative(input: &Input<'_>) -> bool {
    input.char_before().is_none_or(|c| !c.is_alphanumeric() && !matches!(c, ')' | '%' | '-'))
}

/// Reads "1.5M", "20 million", "2 1/2".
pub fn amount(text: &str, may_be_negative: bool) -> Option<Amount> {
    let number = Number::parse(text, may_be_negative)?;
    let after = text.get(number.len..).unwrap_or_default();
    if let Some(found) = pattern!(r"^ (\d)/(\d)\b").captures(after).filter(|_| number.fraction.is_none()) {
        let part = fraction(value(&found, 1)?, value(&found, 2)?);
        let part = part.strip_prefix("one ").map_or_else(|| part.clone(), |rest| format!("a {rest}"));
        let words = format!("{} and {part}", number.words());
        return Some(Amount { len: number.len + 4, number, words, scaled: true });
    }
    let found = pattern!(r"^(?: ?)(\p{L}+)").captures(after);
    let scale = found.and_then(|found| {
        let word = group(&found, 1);
        let near = !group(&found, 0).starts_with(' ') || word.len() > 4;
        tables().scales.get(word).filter(|_| near).map(|said| (group(&found, 0).len(), said))
    });
    Some(match scale {
        Some((len, said)) => {
            let words = format!("{} {said}", number.words());
            Amount { len: number.len + len, number, words, scaled: true }
        }
        None => Amount { len: number.len, words: number.words(), number, scaled: false },
    })
}

struct Unit {
    len: usize,
    one: String,
    several: String,
}

/// Reads a unit at the start, with what it is divided by: "km/h".
fn unit(text: &str) -> Option<Unit> {
    let skip = usize::from(text.starts_with([' ', '\u{a0}', '\u{202f}']));
    let skip: usize = text.chars().take(skip).map(char::len_utf8).sum();
    let trimmed = text.get(skip..)?;
    let (key, [one, several]) = known_unit(trimmed)?;
    let mut unit = Unit { len: skip + key.len(), one: one.clone(), several: several.clone() };
    let below = trimmed.get(key.len()..).and_then(|rest| rest.strip_prefix('/'));
    if let Some((key, [below, _])) = below.and_then(known_unit) {
        unit.len += 1 + key.len();
        unit.one = format!("{one} per {below}");
        unit.several = format!("{several} per {below}");
    }
    Some(unit)
}

/// The longest unit that is no part of a longer word. Whole words are no units after a number: they are read as they are.
fn known_unit(text: &str) -> Option<(&'static str, &'static [String; 2])> {
    let (key, words) = longest(&tables().units, text)?;
    let ends = !text.get(key.len()..)?.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '²' | '³'));
    ends.then_some((key, words))
}

/// Says what stands after "per": "month" in "$20/month".
pub fn per(text: &str) -> Option<(usize, String)> {
    let (key, [one, _]) = text.strip_prefix('/').and_then(known_unit)?;
    Some((key.len() + 1, format!("per {one}")))
}

/// 5 km, 20°C, 50%, 1.2MB.
pub fn measured(input: &Input<'_>) -> Option<Said> {
    if !input.is_fresh() && !input.rest.starts_with('−') {
        return None;
    }
    let amount = amount(input.rest, may_be_negative(input))?;
    let after = input.after(amount.len);
    if let Some(said) = inches(input, &amount) {
        return Some(said);
    }
    let unit = unit(after)?;
    let len = amount.len + unit.len;
    let spaced = after.starts_with(' ');
    // "I am 5 a day" and "at 3 s" are as likely words; capitals after a space, such as "5 A", too.
    let name = after.get(..unit.len)?.trim();
    if spaced && matches!(name, "A" | "B" | "N" | "J" | "V" | "W" | "s" | "h" | "pt" | "mo") && !input.ends_at(len + 1)
    {
        return None;
    }
    let singular = (amount.number.is_one() && !amount.scaled) || input.describes_noun(len);
    let name = if singular { &unit.one } else { &unit.several };
    Said::new(len, format!("{} {name}", amount.words))
}

/// 27" where no quote is open.
fn inches(input: &Input<'_>, amount: &Amount) -> Option<Said> {
    let mark = input.after(amount.len).chars().next().filter(|c| matches!(c, '"' | '″' | '”'))?;
    let open = match mark {
        '"' => input.before.matches('"').count() % 2 == 1,
        '”' => true,
        _ => false,
    };
    let len = amount.len + mark.len_utf8();
    if open || !input.ends_at(len) {
        return None;
    }
    let name = if amount.number.is_one() || input.describes_noun(len) { "inch" } else { "inches" };
    Said::new(len, format!("{} {name}", amount.words))
}

/// 5'11".
pub fn height(input: &Input<'_>) -> Option<Said> {
    let found =
        pattern!(r#"^(\d{1,2})['′’] ?(\d{1,2})(?:["″”]|'')"#).captures(input.rest).filter(|_| input.is_fresh())?;
    let (feet, inches) = (value(&found, 1)?, value(&found, 2).filter(|inches| *inches < 12)?);
    let said = format!("{} foot {}", cardinal(feet), if inches == 0 { String::new() } else { cardinal(inches) });
    Said::new(group(&found, 0).len(), said.trim_end())
}

/// 5ft 4in, 7 lb 3 oz: a measure in two units, and inches written as "in" beside the number.
pub fn compound(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(
        r"^(\d{1,3}) ?(ft|feet|foot|lbs?|pounds?|yd|yards?)\.?,? ?(\d{1,2}) ?(in|inch|inches|oz|ounces?|ft|feet|foot)\b(\.?)"
    )
    .captures(input.rest)
    .filter(|_| input.is_fresh());
    let Some(found) = found else { return single_inches(input) };
    let (large, small) = (measure_of(group(&found, 2)), measure_of(group(&found, 4)));
    if !matches!((large[0], small[0]), ("foot", "inch") | ("pound", "ounce") | ("yard", "foot")) {
        return None;
    }
    let (first, second) = (value(&found, 1)?, value(&found, 3)?);
    let name = |count: u64, [one, several]: [&'static str; 2]| if count == 1 { one } else { several };
    let end = found.get(4)?.end();
    let stop = !group(&found, 5).is_empty() && pattern!(r"^\. [a-z\d]").is_match(input.after(end));
    let said = format!("{} {} {} {}", cardinal(first), name(first, large), cardinal(second), name(second, small));
    Said::new(end + usize::from(stop), said)
}

/// Returns the whole name of a measure of length or weight, for one and for several.
fn measure_of(written: &str) -> [&'static str; 2] {
    match written {
        "ft" | "feet" | "foot" => ["foot", "feet"],
        "yd" | "yard" | "yards" => ["yard", "yards"],
        "in" | "inch" | "inches" => ["inch", "inches"],
        "oz" | "ounce" | "ounces" => ["ounce", "ounces"],
        _ => ["pound", "pounds"],
    }
}

/// 27in. With a space, "in" is a word.
fn single_inches(input: &Input<'_>) -> Option<Said> {
    let number = Number::parse(input.rest, false).filter(|_| input.is_fresh())?;
    let len = number.len + "in".len();
    if !input.after(number.len).starts_with("in") || !input.ends_at(len) {
        return None;
    }
    let name = if number.is_one() || input.describes_noun(len) { "inch" } else { "inches" };
    Said::new(len, format!("{} {name}", number.words()))
}

/// 2x4, 3m x 4m, 1920×1080.
pub fn dimensions(input: &Input<'_>) -> Option<Said> {
    if !input.is_fresh() {
        return None;
    }
    let mut said = Vec::new();
    let mut len = 0;
    let mut measured = false;
    loop {
        let number = Number::parse(input.after(len), false)?;
        let mut end = len + number.len;
        let mut words = number.words();
        if let Some(unit) = unit(input.after(end)) {
            end += unit.len;
            words = format!("{words} {}", if number.is_one() { unit.one } else { unit.several });
            measured = true;
        }
        said.push(words);
        len = end;
        let Some(by) = pattern!(r"^(?: x |x| ?× ?)").find(input.after(len)) else { break };
        if !input.after(len + by.len()).starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
        len += by.len();
    }
    // "3 × 4 = 12" is a sum.
    let sum = !measured
        && (input.after(len).trim_start().starts_with(['=', '^', '≈', '+'])
            || pattern!(r"^[\d.]+ ?×").is_match(input.rest) && !input.rest.starts_with(|c: char| c.is_ascii_digit()));
    if said.len() < 2 || sum || !input.ends_at(len) { None } else { Said::new(len, said.join(" by ")) }
}

/// 18–22°C, 2-8 kg.
pub fn range(input: &Input<'_>) -> Option<Said> {
    if !input.is_fresh() {
        return None;
    }
    let first = amount(input.rest, may_be_negative(input))?;
    let found = pattern!(r"^ ?([-–—]|\.\.|to) ?").captures(input.after(first.len));
    let dash = group(found.as_ref()?, 0).len();
    let own = unit(input.after(first.len));
    if own.is_some() && dash == 0 {
        return None;
    }
    let second = amount(input.after(first.len + dash), false)?;
    let start = first.len + dash + second.len;
    let unit = unit(input.after(start))?;
    Said::new(start + unit.len, format!("{} to {} {}", first.words, second.words, unit.several))
}
