//! The words of time, read from `lexicon.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{DayPart, Era, Relation, Unit};

/// The meaning of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Month(i8),
    /// The short form of a month, which counts only beside a day or a year.
    Short(i8),
    /// A month or a season that is also a name.
    Name,
    Weekday(i8),
    Weekend,
    /// Days from today.
    Day(i32),
    /// A part of a day, counted in days from today.
    DayAndPart(i32, DayPart),
    Part(DayPart),
    Unit(Unit),
    Number(i32),
    AgoAfter,
    AgoBefore,
    Last,
    This,
    Next,
    BeforeLast,
    Season(i8),
    /// Month, day, and length in days.
    Feast(i8, i8, i8),
    Early,
    Middle,
    Late,
    In,
    On,
    Since,
    Before,
    After,
    Until,
    To,
    Between,
    Filler,
    NeedsHier,
    PersonAfter,
    PersonBefore,
    Future,
    /// A word before an event that serves as a date.
    Clause(Relation),
    /// A word after which no such event follows.
    NoClause,
    Era(Era),
    /// A phrase that looks like a word for an era.
    NoEra,
}

/// All phrases by their first word, the longest first.
static PHRASES: LazyLock<HashMap<String, Vec<Phrase>>> = LazyLock::new(|| read(include_str!("lexicon.txt")));

struct Phrase {
    words: Vec<String>,
    meaning: Meaning,
}

/// Returns the meanings of the phrases that begin a list of folded words, each with its number of words.
pub(super) fn meanings<'a>(words: &'a [&str]) -> impl Iterator<Item = (Meaning, usize)> + 'a {
    let phrases = words.first().and_then(|first| PHRASES.get(*first)).into_iter().flatten();
    let fits = move |phrase: &&Phrase| {
        phrase.words.len() <= words.len() && phrase.words.iter().zip(words).all(|(one, other)| one == other)
    };
    phrases.filter(fits).map(|phrase| (phrase.meaning, phrase.words.len()))
}

fn read(text: &str) -> HashMap<String, Vec<Phrase>> {
    let mut phrases: HashMap<String, Vec<Phrase>> = HashMap::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let Some((meaning, listed)) = line.split_once(':') else { continue };
        // Tests read every line, so that a line with a mistake does not ship.
        let Some(meaning) = parse(meaning.trim()) else { continue };
        for phrase in listed.split('|') {
            let words: Vec<String> = phrase.split_whitespace().map(fold).collect();
            if let Some(first) = words.first().cloned() {
                phrases.entry(first).or_default().push(Phrase { words, meaning });
            }
        }
    }
    phrases.values_mut().for_each(|list| list.sort_by_key(|phrase| std::cmp::Reverse(phrase.words.len())));
    phrases
}

fn parse(meaning: &str) -> Option<Meaning> {
    let words: Vec<&str> = meaning.split_whitespace().collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<i8>().ok());
    let part = |index: usize| words.get(index).and_then(|word| DayPart::named(word));
    Some(match words.as_slice() {
        ["month", _] => Meaning::Month(number(1)?),
        ["short", _] => Meaning::Short(number(1)?),
        ["name"] => Meaning::Name,
        ["weekday", _] => Meaning::Weekday(number(1)?),
        ["weekend"] => Meaning::Weekend,
        ["day", _] => Meaning::Day(number(1)?.into()),
        ["tonight", _] => Meaning::DayAndPart(number(1)?.into(), DayPart::Evening),
        ["today", _] => Meaning::DayAndPart(0, part(1)?),
        ["part", _] => Meaning::Part(part(1)?),
        ["unit", unit] => Meaning::Unit(Unit::named(unit)?),
        ["number", _] => Meaning::Number(number(1)?.into()),
        ["ago", "after"] => Meaning::AgoAfter,
        ["ago", "before"] => Meaning::AgoBefore,
        ["last"] => Meaning::Last,
        ["this"] => Meaning::This,
        ["next"] => Meaning::Next,
        ["before", "last"] => Meaning::BeforeLast,
        ["season", _] => Meaning::Season(number(1)?),
        ["feast", _, _, _] => Meaning::Feast(number(1)?, number(2)?, number(3)?),
        ["early"] => Meaning::Early,
        ["middle"] => Meaning::Middle,
        ["late"] => Meaning::Late,
        ["in"] => Meaning::In,
        ["on"] => Meaning::On,
        ["since"] => Meaning::Since,
        ["before"] => Meaning::Before,
        ["after"] => Meaning::After,
        ["until"] => Meaning::Until,
        ["to"] => Meaning::To,
        ["between"] => Meaning::Between,
        ["filler"] => Meaning::Filler,
        ["needs", "hier"] => Meaning::NeedsHier,
        ["person", "after"] => Meaning::PersonAfter,
        ["person", "before"] => Meaning::PersonBefore,
        ["future"] => Meaning::Future,
        ["clause", relation] => Meaning::Clause(match *relation {
            "before" => Relation::Before,
            "after" => Relation::After,
            "since" => Relation::Since,
            "until" => Relation::Until,
            "while" => Relation::Within,
            _ => return None,
        }),
        ["no", "clause"] => Meaning::NoClause,
        ["era", "now"] => Meaning::Era(Era::Now),
        ["era", "then"] => Meaning::Era(Era::Then),
        ["era", "first"] => Meaning::Era(Era::First),
        ["no", "era"] => Meaning::NoEra,
        _ => return None,
    })
}

/// Returns a word in lower case and without accents.
pub(super) fn fold(word: &str) -> String {
    let plain = |c: char| match c {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => 'a',
        'ç' => 'c',
        'è' | 'é' | 'ê' | 'ë' => 'e',
        'ì' | 'í' | 'î' | 'ï' | 'ı' => 'i',
        'ñ' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' => 'o',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        'ş' | 'ß' => 's',
        'ğ' => 'g',
        '’' => '\'',
        other => other,
    };
    // The small form of a Turkish capital I has a dot of its own, which is no letter.
    word.chars().flat_map(char::to_lowercase).filter(|c| *c != '\u{307}').map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_lexicon_is_read() {
        let lines = include_str!("lexicon.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        for line in lines {
            let (meaning, phrases) = line.split_once(':').unwrap();
            assert!(parse(meaning).is_some(), "{line}");
            assert!(phrases.split('|').all(|phrase| !phrase.trim().is_empty()), "{line}");
        }
    }

    #[test]
    fn accents_and_case_do_not_matter() {
        assert_eq!(fold("MÄRZ"), "marz");
        assert_eq!(fold("İki"), "iki");
        assert_eq!(fold("Ağustos"), "agustos");
        assert_eq!(meanings(&["day", "before", "yesterday"]).next(), Some((Meaning::Day(-2), 3)));
    }
}
