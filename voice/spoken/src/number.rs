//! Numbers as words.

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES: [(u64, &str); 5] = [
    (1_000_000_000_000_000, "quadrillion"),
    (1_000_000_000_000, "trillion"),
    (1_000_000_000, "billion"),
    (1_000_000, "million"),
    (1_000, "thousand"),
];

/// Longer runs of digits are read one by one.
const MOST_DIGITS: usize = 18;

/// A number as written: its parts are ASCII digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// Bytes that it takes up.
    pub len: usize,
    pub negative: bool,
    /// Empty for ".5".
    pub whole: String,
    pub fraction: Option<String>,
    /// Whether thousands were grouped with commas.
    pub grouped: bool,
}

impl Number {
    /// Reads a number at the start of `text`: "12", "-3.5", "1,234", ".5", "19,99".
    pub fn parse(text: &str, may_be_negative: bool) -> Option<Self> {
        let chars: Vec<char> = text.chars().take(64).collect();
        let digits = |from: usize| chars.iter().skip(from).take_while(|c| c.is_ascii_digit()).count();
        let take = |from: usize, count: usize| chars.iter().skip(from).take(count).collect::<String>();
        let at = |index: usize| chars.get(index).copied().unwrap_or(' ');

        let negative = may_be_negative && matches!(at(0), '-' | '−');
        let mut next = usize::from(negative);
        let count = digits(next);
        let mut number = Self { len: 0, negative, whole: take(next, count), fraction: None, grouped: false };
        next += count;
        if (1..=3).contains(&count) && !number.whole.starts_with('0') {
            while at(next) == ',' && digits(next + 1) == 3 {
                number.whole.push_str(&take(next + 1, 3));
                number.grouped = true;
                next += 4;
            }
        }
        let after = digits(next + 1);
        let decimal_comma = at(next) == ',' && count > 0 && (1..=2).contains(&after) && at(next + 1 + after) != ',';
        if after > 0 && (at(next) == '.' || decimal_comma) {
            number.fraction = Some(take(next + 1, after));
            next += 1 + after;
        }
        if number.whole.is_empty() && number.fraction.is_none() {
            return None;
        }
        number.len = chars.iter().take(next).map(|c| c.len_utf8()).sum();
        Some(number)
    }

    pub fn value(&self) -> Option<u64> {
        if self.fraction.is_some() || self.whole.len() > MOST_DIGITS { None } else { self.whole.parse().ok() }
    }

    pub fn is_one(&self) -> bool {
        self.value() == Some(1)
    }

    /// A whole number without sign or grouping, as years and codes are.
    pub fn is_plain(&self) -> bool {
        !self.negative && !self.grouped && self.fraction.is_none()
    }

    pub fn words(&self) -> String {
        let mut words = if self.negative { "minus ".to_owned() } else { String::new() };
        words.push_str(&match self.whole.as_str() {
            "" => "point".to_owned(),
            whole if whole.len() > MOST_DIGITS || (self.fraction.is_none() && is_padded(whole)) => digits(whole),
            whole => whole.parse().map_or_else(|_| digits(whole), cardinal),
        });
        if let Some(fraction) = &self.fraction {
            if !self.whole.is_empty() {
                words.push_str(" point");
            }
            words.push(' ');
            words.push_str(&digits(fraction));
        }
        words
    }
}

/// Whether a code begins with a zero that is no number of its own.
fn is_padded(whole: &str) -> bool {
    whole.len() > 1 && whole.starts_with('0')
}

pub fn cardinal(value: u64) -> String {
    if let Some((scale, name)) = SCALES.iter().find(|(scale, _)| value >= *scale) {
        let rest = value % scale;
        let head = format!("{} {name}", cardinal(value / scale));
        return if rest == 0 { head } else { format!("{head} {}", cardinal(rest)) };
    }
    let small = |value: u64| usize::try_from(value).ok().and_then(|at| SMALL.get(at)).copied().unwrap_or_default();
    if value >= 100 {
        let head = format!("{} hundred", small(value / 100));
        return if value.is_multiple_of(100) { head } else { format!("{head} {}", cardinal(value % 100)) };
    }
    if value < 20 {
        return small(value).to_owned();
    }
    let tens = usize::try_from(value / 10).ok().and_then(|at| TENS.get(at)).copied().unwrap_or_default();
    if value.is_multiple_of(10) { tens.to_owned() } else { format!("{tens}-{}", small(value % 10)) }
}

pub fn ordinal(value: u64) -> String {
    let words = cardinal(value);
    let split = words.rfind([' ', '-']).map_or(0, |at| at + 1);
    let (head, last) = words.split_at(split);
    let last = match last {
        "one" => "first".to_owned(),
        "two" => "second".to_owned(),
        "three" => "third".to_owned(),
        "five" => "fifth".to_owned(),
        "eight" => "eighth".to_owned(),
        "nine" => "ninth".to_owned(),
        "twelve" => "twelfth".to_owned(),
        word => word.strip_suffix('y').map_or_else(|| format!("{word}th"), |stem| format!("{stem}ieth")),
    };
    format!("{head}{last}")
}

/// Reads digits one by one; other characters are left out.
pub fn digits(text: &str) -> String {
    let words: Vec<String> =
        text.chars().filter_map(|c| c.to_digit(10)).map(|digit| cardinal(u64::from(digit))).collect();
    words.join(" ")
}

/// Reads a year: 1907 as "nineteen oh seven", 2005 as "two thousand five".
pub fn year(value: u64) -> String {
    if !(1000..=9999).contains(&value) || (2000..=2009).contains(&value) || value.is_multiple_of(1000) {
        return cardinal(value);
    }
    paired(value)
}

/// Reads three or four digits in pairs: 304 as "three oh four", 4090 as "forty ninety".
pub fn paired(value: u64) -> String {
    if !(101..=9999).contains(&value) || value.is_multiple_of(1000) || (value < 1000 && value.is_multiple_of(100)) {
        return cardinal(value);
    }
    let head = cardinal(value / 100);
    match value % 100 {
        0 => format!("{head} hundred"),
        low @ 1..=9 => format!("{head} oh {}", cardinal(low)),
        low => format!("{head} {}", cardinal(low)),
    }
}

/// Reads a decade from its first year: 1990 as "nineteen nineties", 80 as "eighties".
pub fn decade(value: u64) -> String {
    let words = year(value);
    words.strip_suffix('y').map_or_else(|| format!("{words}s"), |stem| format!("{stem}ies"))
}

/// Reads a fraction: "one half", "three quarters", "two thirds", "eight out of ten".
pub fn fraction(above: u64, below: u64) -> String {
    let several = above != 1;
    match below {
        2 => format!("{} {}", cardinal(above), if several { "halves" } else { "half" }),
        4 => format!("{} {}", cardinal(above), if several { "quarters" } else { "quarter" }),
        0 | 1 | 10 | 20 | 100.. => format!("{} out of {}", cardinal(above), cardinal(below)),
        _ if above > below => format!("{} over {}", cardinal(above), cardinal(below)),
        _ => format!("{} {}{}", cardinal(above), ordinal(below), if several { "s" } else { "" }),
    }
}

/// Returns the value of a Roman numeral in its usual form, up to 3,999.
pub fn roman(text: &str) -> Option<u64> {
    const PARTS: [(u64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut rest = text;
    let mut value = 0;
    for (worth, sign) in PARTS {
        let mut times = 0;
        while let Some(shorter) = rest.strip_prefix(sign) {
            rest = shorter;
            value += worth;
            times += 1;
        }
        if times > if sign.len() == 1 && !matches!(sign, "V" | "L" | "D") { 3 } else { 1 } {
            return None;
        }
    }
    (rest.is_empty() && value > 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roman_numerals_are_read_in_their_usual_form_only() {
        assert_eq!(
            [roman("XIV"), roman("LVIII"), roman("IIII"), roman("MIX"), roman("VX"), roman("")],
            [Some(14), Some(58), None, Some(1009), None, None]
        );
    }

    #[test]
    fn the_largest_number_has_words() {
        assert!(cardinal(u64::MAX).starts_with("eighteen thousand"));
        assert_eq!(Number::parse("99999999999999999999", false).unwrap().words().split(' ').count(), 20);
    }
}
