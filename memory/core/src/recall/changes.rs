//! Puts one of several statements first, of which a later one replaced an earlier one: the newest for what holds now, an
//! older one for what held before. Only statements about the matter of the best hit count, and all others keep their
//! order.

use std::cmp::Reverse;
use std::collections::HashMap;

use azera_types::{MemoryId, Timestamp};

use super::question::{OWN_WORDS, Speaker, is_question, tokens};
use super::{Asked, Hit, fuse, states};
use crate::rows::{Kind, MemoryRow};
use crate::when::Era;
use crate::words::{carries_meaning, is_written_alike, tells_of_change};
use crate::{Stored, Stretch};

/// Hits that are compared.
pub(super) const COMPARED: usize = 10;

/// What a statement about the same matter as the best hit has at least.
struct Bounds {
    /// Share of the best score.
    share: f32,
    /// Share of the question's words that it repeats, against the best hit.
    covered: f32,
    /// Cosine similarity to the best hit.
    cosine: f32,
    /// The same two, if the later one says that something changed.
    share_by_change: f32,
    cosine_by_change: f32,
    /// Words that it may have.
    words: usize,
}

/// Bounds where the question says whether it asks for now or for then.
const EXPLICIT: Bounds =
    Bounds { share: 0.4, covered: 0.5, cosine: 0.25, share_by_change: 0.3, cosine_by_change: 0.35, words: usize::MAX };

/// Bounds where it does not. Long statements are about more than one matter.
const PLAIN: Bounds =
    Bounds { share: 0.55, covered: 0.75, cosine: 0.5, share_by_change: 0.4, cosine_by_change: 0.4, words: 25 };

/// Words of a question that are compared. A longer question is about more than one matter.
const MAX_WORDS: usize = 64;

/// Words of a question that say nothing about its matter.
const ABOUT_NOTHING: &str = "the and for with are now from that this these those there old new before previous \
    previously former formerly current currently latest earlier originally moment days use used";

/// People of whom somebody speaks. A statement about another of them is about another matter.
const KIN: &str = "sister brother mother father mum mom mama dad papa parents son daughter child aunt uncle cousin niece \
    nephew friend neighbour neighbor boss colleague coworker wife husband partner girlfriend boyfriend grandma grandpa \
    grandmother grandfather gran granny teacher roommate flatmate landlord";

/// Puts the hit first that the question asks for, among those about the matter of the best one.
pub(super) fn reorder(hits: &mut [Hit], asked: Asked<'_>, stored: &HashMap<MemoryId, Stored>) {
    if let Some(place) = states::held_then(hits, asked, stored) {
        return move_to_front(hits, place);
    }
    let Some(best) = hits.first() else { return };
    let question = &asked.query.question;
    let is_plain = question.era == Era::Open && asked.time.is_none();
    if is_plain && !question.is_present {
        return;
    }
    let bounds = if is_plain { &PLAIN } else { &EXPLICIT };
    let vector = |hit: &Hit| stored.get(&hit.memory.id).map(|stored| stored.own.as_slice());
    let is_one = |hit: &Hit| {
        let cosine = vector(best).zip(vector(hit)).map_or(0.0, |(one, other)| fuse::dot(one, other));
        Matter::of(best, asked).is_that_of(&Matter::of(hit, asked), bounds, cosine, share_of(hit.score, best.score))
    };
    let places: Vec<usize> =
        (0..hits.len().min(COMPARED)).filter(|place| *place == 0 || hits.get(*place).is_some_and(is_one)).collect();
    if places.len() < 2 {
        return;
    }
    let group: Vec<(usize, &Hit)> = places.iter().filter_map(|place| Some((*place, hits.get(*place)?))).collect();
    let newest = |group: &mut dyn Iterator<Item = &(usize, &Hit)>| {
        group.max_by_key(|(place, hit)| (hit.memory.at, Reverse(*place))).map(|(place, _)| *place)
    };
    let first = match (asked.time, question.era) {
        // A question about one time asks for what was said then, or else for what held then.
        (Some(time), Era::Open | Era::Now) => {
            let is_near = |hit: &Hit| hit.signals.contains(&"date");
            if group.iter().any(|(_, hit)| is_near(hit)) || !time.span().is_within() {
                return;
            }
            let end = time.span().end();
            let began = |hit: &Hit| began(hit.memory.at, hit.memory.all_valid_from(&question.calendar), end);
            let held = group.iter().map(|(place, hit)| (began(hit), Reverse(*place)));
            held.filter(|(began, _)| *began < end).max().map(|(_, Reverse(place))| place)
        }
        (_, Era::First) => group.iter().min_by_key(|(place, hit)| (hit.memory.at, *place)).map(|(place, _)| *place),
        (_, Era::Then) => {
            // The newest one holds now. The one before it was asked for.
            let now = newest(&mut group.iter());
            newest(&mut group.iter().filter(|(place, _)| Some(*place) != now))
        }
        (_, Era::Now | Era::Open) => newest(&mut group.iter()),
    };
    if let Some(place) = first {
        move_to_front(hits, place);
    }
}

/// Puts one hit before those above it. The scores stay in order.
fn move_to_front(hits: &mut [Hit], place: usize) {
    let Some(moved) = hits.get_mut(..=place) else { return };
    let scores: Vec<f32> = moved.iter().map(|hit| hit.score).collect();
    moved.rotate_right(1);
    for (hit, score) in moved.iter_mut().zip(scores) {
        hit.score = score;
    }
}

/// Returns from when on a statement counts in answers about a time that ends at `end`. "I've lived in Hull since May",
/// said in August, answers for June. What was said by then counts by when it was said: the last one corrects the others.
pub(super) fn began(said_at: Timestamp, since: Option<Stretch>, end: Timestamp) -> Timestamp {
    since.filter(|_| said_at >= end).map_or(said_at, |(from, _)| from)
}

/// What a statement is about, as far as a question is concerned.
struct Matter<'a> {
    memory: &'a MemoryRow,
    /// Share of the question's words that it repeats.
    covered: f32,
    /// True if the speaker that the question names said it.
    by_speaker: Option<bool>,
    /// People of whom it speaks, apart from those of the question.
    kin: Vec<String>,
    is_own: bool,
    changes: bool,
    words: usize,
}

impl<'a> Matter<'a> {
    fn of(hit: &'a Hit, asked: Asked<'_>) -> Self {
        let question = &asked.query.question;
        let words: Vec<String> = tokens(&hit.memory.text).collect();
        let is_telling = |word: &String| {
            has_digit(word) || carries_meaning(word) || (word.chars().count() > 2 && !listed(ABOUT_NOTHING, word))
        };
        let wanted: Vec<String> = tokens(&question.words).filter(is_telling).take(MAX_WORDS).collect();
        let found = wanted.iter().filter(|wanted| words.iter().any(|word| repeats(word, wanted))).count();
        let mut kin: Vec<String> = words.iter().filter(|word| listed(KIN, word)).cloned().collect();
        kin.retain(|word| !wanted.contains(word));
        kin.sort_unstable();
        kin.dedup();
        Self {
            memory: &hit.memory,
            covered: found as f32 / wanted.len().max(1) as f32,
            by_speaker: question.speaker.as_ref().map(|speaker: &Speaker| speaker.said(&hit.memory.author)),
            kin,
            is_own: words.iter().any(|word| OWN_WORDS.contains(&word.as_str())),
            words: words.len(),
            changes: words.iter().any(|word| tells_of_change(word)),
        }
    }

    fn is_that_of(&self, other: &Self, bounds: &Bounds, cosine: f32, share: f32) -> bool {
        let is_statement =
            |memory: &MemoryRow| matches!(memory.kind, Kind::Message | Kind::Fact) && !is_question(&memory.text);
        if !is_statement(self.memory) || !is_statement(other.memory) || self.kin != other.kin {
            return false;
        }
        // Nobody takes back in one language what they said in another, and an embedding model that does not know a script
        // finds all texts in it alike.
        if !is_written_alike(&self.memory.text, &other.memory.text) {
            return false;
        }
        let one_author = self.memory.author.person() == other.memory.author.person();
        if self.by_speaker != other.by_speaker || (!one_author && (self.is_own || other.is_own)) {
            return false;
        }
        let newer = if self.memory.at > other.memory.at { self } else { other };
        if self.words.max(other.words) > bounds.words {
            return false;
        }
        let covered = other.covered >= self.covered * bounds.covered;
        // `Sold it, I have a van now` repeats no word of the question. With some of its words and not the others, a
        // statement is about another thing.
        let is_brief = other.covered <= 0.0 || covered;
        let is_alike = share >= bounds.share && covered && cosine >= bounds.cosine;
        let is_change = share >= bounds.share_by_change && newer.changes && cosine >= bounds.cosine_by_change;
        is_alike || (is_change && is_brief)
    }
}

/// Returns true for a word that names somebody by what they are to another person, such as "sister" or "friends".
pub(super) fn is_kin(word: &str) -> bool {
    listed(KIN, word) || word.strip_suffix('s').is_some_and(|one| listed(KIN, one))
}

pub(super) fn listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

fn has_digit(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_digit())
}

/// Returns true if a word of a statement repeats one of the question. Without spaces a word stands within others.
fn repeats(word: &str, wanted: &str) -> bool {
    if carries_meaning(wanted) { word.contains(wanted) } else { is_form_of(word, wanted) }
}

/// Returns true if two words have the same beginning, up to an ending of two letters. Numbers have no other forms.
pub(super) fn is_form_of(one: &str, other: &str) -> bool {
    if has_digit(one) || has_digit(other) {
        return one == other;
    }
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let longest = one.chars().count().max(other.chars().count());
    common == longest || (common >= 4 && common + 3 >= longest) || (common >= 3 && common + 1 >= longest)
}

/// Returns a score as a share of the best one, from 0 to 1. Scores may be negative.
fn share_of(score: f32, best: f32) -> f32 {
    if score >= best {
        1.0
    } else if best > 0.0 {
        (score / best).max(0.0)
    } else {
        best / score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worse_hit_has_a_smaller_share_also_below_zero() {
        assert_eq!(share_of(2.0, 4.0), 0.5);
        assert_eq!(share_of(-4.0, -1.0), 0.25);
        assert_eq!((share_of(-1.0, 0.0), share_of(0.0, 0.0), share_of(-1.0, 2.0)), (0.0, 1.0, 0.0));
    }

    #[test]
    fn a_correction_counts_from_when_it_was_made() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let since = (time("2019-01-01T00:00:00Z"), time("2020-01-01T00:00:00Z"));
        // "I live in Oslo" of 2024, and "I've lived in Hull since 2019" of 2025.
        let (oslo, hull) = (time("2024-05-01T10:00:00Z"), time("2025-05-01T10:00:00Z"));
        let of_2026 = time("2027-01-01T00:00:00Z");
        assert!(began(hull, Some(since), of_2026) > began(oslo, None, of_2026));
        let of_2023 = time("2024-01-01T00:00:00Z");
        assert_eq!(began(hull, Some(since), of_2023), since.0);
    }

    #[test]
    fn a_word_without_spaces_is_repeated_within_others() {
        assert!(repeats("我家的猫叫团子", "猫"));
        assert!(!repeats("他叫什么名字", "猫"));
        assert!(repeats("lives", "live"));
        assert!(!repeats("cats", "at"));
    }

    #[test]
    fn forms_of_a_word_are_recognised() {
        assert!(is_form_of("lives", "live"));
        assert!(is_form_of("job", "jobs"));
        assert!(!is_form_of("cat", "car"));
        assert!(!is_form_of("phone", "photo"));
        assert!(is_form_of("w17", "w17"));
        assert!(!is_form_of("w17", "w19"));
        assert!(!is_form_of("1234", "1235"));
    }
}
