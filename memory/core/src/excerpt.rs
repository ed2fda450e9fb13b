//! Excerpts: the parts of a long text that answer a query, for prompts and lists. Begin with [`excerpt`].

use std::ops::Range;

use azera_types::Text;

use crate::passages::{Unit, units};
use crate::recall::question;

/// Stands for what an excerpt leaves out.
const ELLIPSIS: &str = "…";

/// Characters of an ellipsis with the blank beside it.
const ELLIPSIS_CHARS: usize = 2;

/// Most places of a text that one excerpt shows.
const MAX_PLACES: usize = 3;

/// Shortest room in characters for a further place.
const MIN_PLACE_CHARS: usize = 40;

/// Most words of a query that count: one bit each.
const MAX_QUERY_WORDS: usize = 64;

/// Weight of the passage that the vectors chose, in words that occur once.
const PASSAGE_WEIGHT: f32 = 1.0;

/// A further place must have this share of the first one's weight.
const FURTHER_SHARE: f32 = 0.3;

/// Words that say nothing about a place, besides the fillers of questions.
const COMMON: &str = "a an and are as at be but by for if in into is it no not of on or such that the their then there \
    these they this to was will with";

/// The parts of a text that an excerpt shows, as ranges of bytes in order. It shows the whole text if there are none.
pub type Shown = Vec<(usize, usize)>;

/// Returns the parts of `text` that answer `query`, with at most `chars` characters together when joined by [`show`]:
/// the places where most of the query's words stand close together, and the passage that its vector found. Without
/// either it is the beginning. No word and no grapheme is cut.
pub fn excerpt(text: &str, query: &str, passage: Option<Range<usize>>, chars: usize) -> Shown {
    if text.len() <= chars || text.chars().nth(chars).is_none() {
        return Shown::new();
    }
    let text = Excerpted::new(text, query);
    let places = text.places(passage, chars);
    text.grown(places, chars).into_iter().filter_map(|place| text.bytes(&place)).collect()
}

/// Returns the parts of `text` joined by ellipses; the whole text if there are none, or if they do not fit it.
pub fn show(text: &str, shown: &[(usize, usize)]) -> Text {
    let mut joined = String::new();
    let mut end = 0;
    for (from, to) in shown {
        let Some(part) = text.get(*from..*to).filter(|_| *from >= end) else { return Text::new(text) };
        if text.get(..*from).is_some_and(|before| !before.trim().is_empty()) {
            joined.push_str(if joined.is_empty() { "… " } else { " … " });
        }
        joined.push_str(part);
        end = *to;
    }
    if joined.is_empty() {
        return Text::new(text);
    }
    if text.get(end..).is_some_and(|behind| !behind.trim().is_empty()) {
        joined.push(' ');
        joined.push_str(ELLIPSIS);
    }
    Text::new(joined)
}

/// Returns an excerpt as text.
pub fn shortened(text: &str, query: &str, chars: usize) -> Text {
    show(text, &excerpt(text, query, None, chars))
}

/// Returns how many words of `query` stand in `text`, and how many there are. Words that stand everywhere do not count.
pub(crate) fn matching_words(text: &str, query: &str) -> (usize, usize) {
    let text = Excerpted::new(text, query);
    let found = text.matches.iter().fold(0, |words, (_, found)| words | found);
    (found.count_ones() as usize, text.weights.len())
}

/// A text in units, with the words of a query in it.
struct Excerpted {
    units: Vec<Unit>,
    /// Characters before each unit, and in all.
    chars: Vec<usize>,
    /// Units that hold words of the query, in order: the unit and the words as bits.
    matches: Vec<(usize, u64)>,
    /// The weight of each word.
    weights: Vec<f32>,
}

impl Excerpted {
    fn new(text: &str, query: &str) -> Self {
        let units = units(text);
        let mut chars = vec![0];
        chars.extend(units.iter().scan(0, |sum, unit| {
            *sum += unit.chars;
            Some(*sum)
        }));
        let mut wanted: Vec<String> = Vec::new();
        for word in words(query).filter(|word| !is_common(word)) {
            if wanted.len() < MAX_QUERY_WORDS && !wanted.contains(&word) {
                wanted.push(word);
            }
        }
        let mut counts = vec![0_u32; wanted.len()];
        let mut matches = Vec::new();
        for (number, unit) in units.iter().enumerate() {
            let mut found = 0_u64;
            for word in words(text.get(unit.bytes.clone()).unwrap_or_default()) {
                found |= wanted
                    .iter()
                    .enumerate()
                    .filter(|(_, other)| similar(&word, other))
                    .fold(0, |bits, (bit, _)| bits | 1 << bit);
            }
            if found != 0 {
                counts.iter_mut().enumerate().filter(|(bit, _)| found >> bit & 1 == 1).for_each(|(_, n)| *n += 1);
                matches.push((number, found));
            }
        }
        // A word that stands everywhere says little about the place.
        let weights = counts.iter().map(|count| (*count as f32).max(1.0).sqrt().recip()).collect();
        Self { units, chars, matches, weights }
    }

    fn chars_of(&self, place: &Range<usize>) -> usize {
        let at = |unit: usize| self.chars.get(unit).copied().unwrap_or(0);
        at(place.end).saturating_sub(at(place.start))
    }

    fn bytes(&self, place: &Range<usize>) -> Option<(usize, usize)> {
        Some((self.units.get(place.start)?.bytes.start, self.units.get(place.end.checked_sub(1)?)?.bytes.end))
    }

    fn weight(&self, words: u64) -> f32 {
        self.weights.iter().enumerate().filter(|(bit, _)| words >> bit & 1 == 1).map(|(_, weight)| weight).sum()
    }

    /// Returns the places to show, most important first.
    fn places(&self, passage: Option<Range<usize>>, chars: usize) -> Vec<Range<usize>> {
        let mut passage = passage.and_then(|bytes| self.units_of(&bytes));
        let mut left = chars.saturating_sub(2 * ELLIPSIS_CHARS);
        let (mut places, mut shown, mut first) = (Vec::new(), 0, None);
        while places.len() < MAX_PLACES && left >= MIN_PLACE_CHARS {
            let words = self.closest_words(shown, left).map(|(place, words)| (place, self.weight(words)));
            let words = words.filter(|(_, weight)| passage.is_none() || *weight >= PASSAGE_WEIGHT);
            let (place, weight) = match (words, passage.take()) {
                (Some((place, weight)), Some(found)) if meet(&place, &found) => {
                    (self.joined(place, &found, left), weight)
                }
                (Some((place, weight)), found) => {
                    passage = found;
                    (place, weight)
                }
                (None, Some(found)) => (self.beginning(&found, left), PASSAGE_WEIGHT),
                (None, None) => break,
            };
            if weight < first.unwrap_or(0.0) * FURTHER_SHARE {
                break;
            }
            first.get_or_insert(weight);
            shown |= self.words_in(&place);
            left = left.saturating_sub(self.chars_of(&place).max(MIN_PLACE_CHARS) + ELLIPSIS_CHARS + 1);
            places.push(place);
        }
        if places.is_empty() {
            places.push(0..1);
        }
        places
    }

    /// Returns a place together with the passage it meets, or the place alone if both are too long.
    fn joined(&self, place: Range<usize>, passage: &Range<usize>, chars: usize) -> Range<usize> {
        let both = place.start.min(passage.start)..place.end.max(passage.end);
        if self.chars_of(&both) <= chars { both } else { place }
    }

    /// Returns the units of a range of bytes.
    fn units_of(&self, bytes: &Range<usize>) -> Option<Range<usize>> {
        let first = self.units.partition_point(|unit| unit.bytes.end <= bytes.start);
        let end = self.units.partition_point(|unit| unit.bytes.start < bytes.end);
        (first < end).then_some(first..end)
    }

    fn beginning(&self, place: &Range<usize>, chars: usize) -> Range<usize> {
        let mut end = place.start + 1;
        while end < place.end && self.chars_of(&(place.start..end + 1)) <= chars {
            end += 1;
        }
        place.start..end
    }

    fn words_in(&self, place: &Range<usize>) -> u64 {
        let first = self.matches.partition_point(|(unit, _)| *unit < place.start);
        let inside = self.matches.iter().skip(first).take_while(|(unit, _)| *unit < place.end);
        inside.fold(0, |words, (_, found)| words | found)
    }

    /// Returns the place of at most `chars` characters with the most words that are not yet `shown`, the shortest and
    /// then the first of equal ones, and those words.
    fn closest_words(&self, shown: u64, chars: usize) -> Option<(Range<usize>, u64)> {
        let mut best: Option<(Range<usize>, u64, f32)> = None;
        let mut counts = Counts { counts: vec![0; self.weights.len()], shown };
        let mut first = 0;
        for (unit, found) in &self.matches {
            counts.add(*found);
            while let Some((start, leaving)) = self.matches.get(first).filter(|(start, _)| start < unit) {
                if counts.needs(*leaving) && self.chars_of(&(*start..unit + 1)) <= chars {
                    break;
                }
                counts.remove(*leaving);
                first += 1;
            }
            let Some((start, _)) = self.matches.get(first) else { continue };
            let (place, words) = (*start..unit + 1, counts.words());
            let weight = self.weight(words);
            let better = best.as_ref().is_none_or(|(other, _, most)| {
                let shorter = self.chars_of(&place) < self.chars_of(other);
                weight > most + f32::EPSILON || (weight - most).abs() <= f32::EPSILON && shorter
            });
            if words != 0 && better {
                best = Some((place, words, weight));
            }
        }
        best.map(|(place, words, _)| (place, words))
    }

    /// Widens the places in turn until the excerpt has `chars` characters, and returns them in order. Places that meet
    /// become one.
    fn grown(&self, mut places: Vec<Range<usize>>, chars: usize) -> Vec<Range<usize>> {
        places.sort_by_key(|place| place.start);
        places = merged(places);
        loop {
            let mut grew = false;
            for to_the_right in [true, false] {
                let mut number = 0;
                while number < places.len() {
                    let mut wider = places.clone();
                    if let Some(place) = wider.get_mut(number) {
                        place.start -= usize::from(!to_the_right && place.start > 0);
                        place.end += usize::from(to_the_right && place.end < self.units.len());
                    }
                    let wider = merged(wider);
                    if wider != places && self.joined_chars(&wider) <= chars {
                        (places, grew) = (wider, true);
                    }
                    number += 1;
                }
            }
            if !grew {
                return places;
            }
        }
    }

    /// Returns at most how many characters [`show`] makes of places.
    fn joined_chars(&self, places: &[Range<usize>]) -> usize {
        let own: usize = places.iter().map(|place| self.chars_of(place)).sum();
        let before = places.first().map_or(0, |place| usize::from(place.start > 0));
        let behind = places.last().map_or(0, |place| usize::from(place.end < self.units.len()));
        own + (before + behind) * ELLIPSIS_CHARS + places.len().saturating_sub(1) * (ELLIPSIS_CHARS + 1)
    }
}

/// How often each word of a query stands in a place, without words that are shown already.
struct Counts {
    counts: Vec<u32>,
    shown: u64,
}

impl Counts {
    fn each(&mut self, words: u64) -> impl Iterator<Item = &mut u32> {
        let words = words & !self.shown;
        self.counts.iter_mut().enumerate().filter(move |(bit, _)| words >> bit & 1 == 1).map(|(_, count)| count)
    }

    fn add(&mut self, words: u64) {
        self.each(words).for_each(|count| *count += 1);
    }

    fn remove(&mut self, words: u64) {
        self.each(words).for_each(|count| *count = count.saturating_sub(1));
    }

    /// Returns true if one of the words stands nowhere else in the place.
    fn needs(&mut self, words: u64) -> bool {
        self.each(words).any(|count| *count == 1)
    }

    fn words(&self) -> u64 {
        self.counts.iter().enumerate().filter(|(_, n)| **n > 0).fold(0, |words, (bit, _)| words | 1 << bit)
    }
}

fn meet(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

/// Joins places that meet; they are in order.
fn merged(places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(places.len());
    for place in places {
        match apart.last_mut() {
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => apart.push(place),
        }
    }
    apart
}

/// Returns the words of a text in lower case.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Returns true for words that stand everywhere.
fn is_common(word: &str) -> bool {
    COMMON.split_whitespace().any(|common| common == word) || question::is_filler(word)
}

/// Returns true if two words are the same but for their endings.
fn similar(a: &str, b: &str) -> bool {
    const STEM: usize = 4;
    if a == b {
        return true;
    }
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.chars().count(), b.chars().count());
    common >= STEM && a.min(b) - common <= 1 && a.max(b) - common <= 3
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    fn filler(words: usize) -> String {
        (0..words).map(|number| format!("filler{number} ")).collect()
    }

    #[test]
    fn a_short_text_is_shown_whole() {
        assert_eq!(shortened("short", "", 400).as_str(), "short");
        assert_eq!(shortened("one two three", "", 10).as_str(), "one two …");
    }

    #[test]
    fn the_place_with_the_words_of_the_query_is_shown() {
        let text = format!("{}the locker of the choir has the code 4711. {}", filler(90), filler(90));
        let shown = shortened(&text, "code choir locker", 200);
        assert!(shown.contains("the locker of the choir has the code 4711."), "{}", shown.as_str());
        assert!(shown.starts_with("… ") && shown.ends_with(" …"), "{}", shown.as_str());
        assert!(shown.chars().count() <= 200);
    }

    #[test]
    fn several_places_are_joined_by_an_ellipsis() {
        let text = format!("{0}my locker has 4711 {0}the ferry leaves at seven {0}", filler(90));
        let shown = shortened(&text, "locker ferry", 200);
        assert!(shown.contains("locker has 4711") && shown.contains("ferry leaves at seven"), "{}", shown.as_str());
        assert_eq!(shown.matches('…').count(), 3, "{}", shown.as_str());
    }

    #[test]
    fn the_passage_of_the_vector_is_shown_with_the_words() {
        let fact = "she keeps bees behind the chapel and sells honey in June";
        let text = format!("{0}{fact} {0}the garden is small {0}", filler(90));
        let from = text.find(fact).unwrap();
        let passage = Some(from..from + fact.len());
        let shown = |query| show(&text, &excerpt(&text, query, passage.clone(), 400));
        assert!(shown("").contains(fact));
        let both = shown("garden");
        assert!(both.contains(fact) && both.contains("the garden is small"), "{}", both.as_str());
    }

    #[test]
    fn endings_do_not_matter() {
        for (a, b) in [("keeping", "keep"), ("parties", "party"), ("station", "stations")] {
            assert!(similar(a, b) && similar(b, a), "{a} {b}");
        }
        for (a, b) in [("code", "cord"), ("4711", "4712"), ("harbour", "hard"), ("stationery", "state")] {
            assert!(!similar(a, b), "{a} {b}");
        }
    }

    #[test]
    fn parts_of_another_text_are_not_shown() {
        assert_eq!(show("short", &[(2, 90)]).as_str(), "short");
        assert_eq!(show("é é", &[(1, 2)]).as_str(), "é é");
    }

    proptest! {
        #[test]
        fn an_excerpt_cuts_no_word_and_keeps_its_length(
            words in prop::collection::vec("[a-z]{1,12}|e\u{301}{1,3}|👩‍👩‍👧|[一-龥]{1,30}", 1..300),
            query in prop::collection::vec(0_usize..300, 0..4),
            chars in 60_usize..500,
        ) {
            // Stored texts are composed.
            let text = Text::new(words.join(" "));
            let words: Vec<&str> = text.split(' ').collect();
            let query: Vec<&str> = query.iter().filter_map(|at| words.get(*at)).copied().collect();
            let shown = shortened(&text, &query.join(" "), chars);
            prop_assert!(shown.chars().count() <= chars.max(60), "{}", shown.as_str());
            prop_assert!(!shown.trim_matches(['…', ' ']).is_empty());
            for word in shown.split([' ', '…']).filter(|word| !word.is_empty()) {
                prop_assert!(words.contains(&word), "{word}");
            }
            let graphemes: Vec<&str> = text.graphemes(true).collect();
            prop_assert!(shown.graphemes(true).all(|it| it == "…" || graphemes.contains(&it)));
        }
    }
}
