//! German numbers as words.

use crate::rule::{group, pattern};

const SMALL: [&str; 20] = [
    "null",
    "eins",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
];
const TENS: [&str; 10] =
    ["", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"];
const SCALES: [(u64, &str, &str); 4] = [
    (1_000_000_000_000_000, "Billiarde", "Billiarden"),
    (1_000_000_000_000, "Billion", "Billionen"),
    (1_000_000_000, "Milliarde", "Milliarden"),
    (1_000_000, "Million", "Millionen"),
];

/// Longer runs of digits are read one by one.
const MOST_DIGITS: usize = 18;

/// A number as written in German: "1.234,5".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// Bytes that it takes up.
    pub len: usize,
    pub negative: bool,
    pub whole: String,
    pub fraction: Option<String>,
    pub grouped: bool,
}

impl Number {
    /// Reads a number at the start of `text`.
    pub fn parse(text: &str, may_be_negative: bool) -> Option<Self> {
        let sign = text.chars().next().filter(|c| may_be_negative && matches!(c, '-' | '−'));
        let mut len = sign.map_or(0, char::len_utf8);
        let digits = |from: usize| text.bytes().skip(from).take_while(u8::is_ascii_digit).count();
        let take = |from: usize, count: usize| text.get(from..from + count).unwrap_or_default();
        let count = digits(len);
        if count == 0 {
            return None;
        }
        let mut number =
            Self { len, negative: sign.is_some(), whole: take(len, count).to_owned(), fraction: None, grouped: false };
        len += count;
        if count <= 3 && !number.whole.starts_with('0') {
            while take(len, 1) == "." && digits(len + 1) == 3 {
                number.whole.push_str(take(len + 1, 3));
                number.grouped = true;
                len += 4;
            }
        }
        // "10 000": a space before three digits that are no zeros may stand between two numbers.
        let spaced = text.get(len..).filter(|_| count <= 3 && !number.grouped && !number.whole.starts_with('0'));
        if let Some(found) = spaced.and_then(|rest| pattern!(r"^((?: \d{3})* 000)(?:\D|$)").captures(rest)) {
            number.whole.extend(group(&found, 1).chars().filter(char::is_ascii_digit));
            number.grouped = true;
            len += group(&found, 1).len();
        }
        let after = digits(len + 1);
        if take(len, 1) == "," && after > 0 {
            number.fraction = Some(take(len + 1, after).to_owned());
            len += 1 + after;
        }
        number.len = len;
        Some(number)
    }

    /// Returns the value of a whole number.
    pub fn value(&self) -> Option<u64> {
        if self.fraction.is_some() || self.whole.len() > MOST_DIGITS { None } else { self.whole.parse().ok() }
    }

    pub fn is_one(&self) -> bool {
        self.value() == Some(1)
    }

    pub fn words(&self) -> String {
        let padded = self.fraction.is_none() && self.whole.len() > 1 && self.whole.starts_with('0');
        let whole = match self.whole.parse() {
            Ok(value) if !padded && self.whole.len() <= MOST_DIGITS => cardinal(value),
            _ => digits(&self.whole),
        };
        let minus = if self.negative { "minus " } else { "" };
        match &self.fraction {
            Some(fraction) => format!("{minus}{whole} Komma {}", digits(fraction)),
            None => format!("{minus}{whole}"),
        }
    }

    /// Returns the words before a noun: "ein" in place of "eins", with the article of the noun.
    pub fn words_before(&self, one: &str) -> String {
        if self.is_one() { format!("{}{one}", if self.negative { "minus " } else { "" }) } else { self.words() }
    }
}

pub fn cardinal(value: u64) -> String {
    if let Some((scale, one, several)) = SCALES.iter().find(|(scale, ..)| value >= *scale) {
        let rest = value % scale;
        let head = match value / scale {
            1 => format!("eine {one}"),
            count => format!("{} {several}", stem(count)),
        };
        return if rest == 0 { head } else { format!("{head} {}", cardinal(rest)) };
    }
    match value {
        100 => "hundert".to_owned(),
        1_000 => "tausend".to_owned(),
        1_001.. => format!("{}tausend{}", stem(value / 1_000), rest(value % 1_000)),
        101..1_000 => format!("{}hundert{}", stem(value / 100), rest(value % 100)),
        20..100 => {
            let tens = word(&TENS, value / 10);
            if value.is_multiple_of(10) { tens.to_owned() } else { format!("{}und{tens}", stem(value % 10)) }
        }
        _ => word(&SMALL, value).to_owned(),
    }
}

fn word(words: &[&'static str], at: u64) -> &'static str {
    usize::try_from(at).ok().and_then(|at| words.get(at)).copied().unwrap_or_default()
}

/// Returns what follows after thousands or hundreds.
fn rest(value: u64) -> String {
    match value {
        0 => String::new(),
        100 => "einhundert".to_owned(),
        value => cardinal(value),
    }
}

/// Returns a number as the first part of a longer word: "einund", "einhundert".
pub fn stem(value: u64) -> String {
    let words = cardinal(value);
    match words.strip_suffix("eins") {
        Some(head) => format!("{head}ein"),
        None => words,
    }
}

/// Reads a year: 1985 as "neunzehnhundertfünfundachtzig".
pub fn year(value: u64) -> String {
    if !(1_100..=1_999).contains(&value) {
        return cardinal(value);
    }
    format!("{}hundert{}", stem(value / 100), rest(value % 100))
}

/// Reads an ordinal with the ending -e: "dritte", "zwanzigste".
pub fn ordinal(value: u64) -> String {
    let words = cardinal(value);
    let short = [("eins", "erste"), ("drei", "dritte"), ("sieben", "siebte"), ("acht", "achte")];
    if !(1..=19).contains(&(value % 100)) && value != 0 {
        return format!("{words}ste");
    }
    let changed = short.iter().find_map(|(end, ordinal)| Some(format!("{}{ordinal}", words.strip_suffix(end)?)));
    changed.unwrap_or_else(|| format!("{words}te"))
}

/// Reads digits one by one; other characters are left out.
pub fn digits(text: &str) -> String {
    let words: Vec<&str> =
        text.chars().filter_map(|c| c.to_digit(10)).map(|digit| word(&SMALL, u64::from(digit))).collect();
    words.join(" ")
}

/// Reads a fraction: "ein halb", "drei Viertel", "acht von zehn".
pub fn fraction(above: u64, below: u64) -> String {
    match (above, below) {
        (1, 2) => "ein halb".to_owned(),
        (above, 2) => format!("{} halbe", stem(above)),
        (_, 0 | 1 | 10 | 20 | 100..) => format!("{} von {}", cardinal(above), cardinal(below)),
        (above, below) => {
            let part = ordinal(below);
            let part = format!("{}tel", part.strip_suffix("te").unwrap_or(&part));
            let mut letters = part.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            format!("{} {first}{}", stem(above), letters.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_in_one_word_below_a_million() {
        let said = [0, 1, 21, 100, 101, 111, 1_000, 1_001, 2_025, 21_000, 1_100].map(cardinal);
        let expected = [
            "null",
            "eins",
            "einundzwanzig",
            "hundert",
            "einhunderteins",
            "einhundertelf",
            "tausend",
            "eintausendeins",
            "zweitausendfünfundzwanzig",
            "einundzwanzigtausend",
            "eintausendeinhundert",
        ];
        assert_eq!(said, expected);
        assert_eq!(cardinal(1_000_001), "eine Million eins");
        assert!(cardinal(u64::MAX).starts_with("achtzehntausendvierhundertsechsundvierzig Billiarden"));
        assert_eq!(
            [year(1985), year(1900), year(2003)],
            ["neunzehnhundertfünfundachtzig", "neunzehnhundert", "zweitausenddrei"]
        );
    }

    #[test]
    fn ordinals_and_fractions_have_their_endings() {
        let said = [1, 3, 7, 8, 12, 20, 21, 101, 100].map(ordinal);
        let expected = [
            "erste",
            "dritte",
            "siebte",
            "achte",
            "zwölfte",
            "zwanzigste",
            "einundzwanzigste",
            "einhunderterste",
            "hundertste",
        ];
        assert_eq!(said, expected);
        assert_eq!(
            [fraction(1, 3), fraction(3, 4), fraction(1, 25)],
            ["ein Drittel", "drei Viertel", "ein Fünfundzwanzigstel"]
        );
    }
}
