//! Reads from a person's later words what became of something that they left open.

use std::collections::HashSet;
use std::sync::LazyLock;

use azera_types::Timestamp;

use super::matters::{Raised, broken_at, is_joke};
use super::phrases::CONDITIONS;
use super::report_phrases::{
    AGAIN, ALREADY, CAME, GIVEN_UP, HAS, MENDED, NO_PAST, ONCE_MORE, OUTCOMES, PAIN, PAST, RUNS, STILL, THANKS, WELL,
};
use super::sentences::{Sentence, sentences};
use super::topic::{shared, topic};
use crate::ProblemKind;
use crate::when::{self, Calendar};

/// What later words say about something that was left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Says {
    /// How it went.
    Report(std::ops::Range<usize>),
    /// It came up again, and nothing shows how it went.
    Mentioned,
}

/// A message of a person as a report of anything. It is read once for all matters.
pub(super) struct Told<'a> {
    sentences: Vec<Sentence<'a>>,
    is_joke: bool,
    /// True if it holds words that say how something went, whatever that is.
    may_report: bool,
}

impl<'a> Told<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let sentences = sentences(text);
        let says = |phrases: &[&str]| sentences.iter().any(|sentence| sentence.has_phrase(phrases));
        let thanks = || sentences.iter().any(|sentence| sentence.has_any(THANKS));
        let may_report = sentences.iter().any(is_mended) || says(OUTCOMES) || says(GIVEN_UP) || thanks();
        Self { is_joke: is_joke(text), may_report, sentences }
    }

    /// Returns false if it can say nothing about a matter that it does not speak of.
    pub(super) fn may_report(&self) -> bool {
        self.may_report
    }
}

/// A later message of the person.
pub(super) struct Later<'a> {
    pub(super) told: &'a Told<'a>,
    pub(super) at: Timestamp,
    /// True if it speaks of the matter.
    pub(super) is_about: bool,
    /// True if it belongs to the same conversation.
    pub(super) is_same_episode: bool,
    /// True if the words right before it, of somebody else, speak of the matter.
    pub(super) is_asked: bool,
    /// How many open matters it could be about.
    pub(super) candidates: usize,
}

/// Returns what a later message says about something that was left open; `None` if it says nothing.
pub(super) fn says(later: &Later<'_>, raised: &Raised, calendar: &Calendar) -> Option<Says> {
    let Told { sentences: all, is_joke, .. } = later.told;
    if *is_joke {
        return None;
    }
    let is_about = later.is_about;
    let calendar = calendar.at(later.at);
    let serious = || all.iter().filter(|sentence| !sentence.is_question() && !sentence.quotes());
    let found = match raised.kind {
        ProblemKind::Trouble => serious().find(|sentence| mends(sentence, is_about, later, raised)),
        _ => serious().find(|sentence| reports(sentence, is_about, later, raised, &calendar)),
    };
    if let Some(sentence) = found {
        return Some(Says::Report(sentence.range.clone()));
    }
    mentions(later, raised, all, is_about).then_some(Says::Mentioned)
}

/// Returns true if a sentence says how a plan went.
fn reports(sentence: &Sentence<'_>, is_about: bool, later: &Later<'_>, raised: &Raised, calendar: &Calendar) -> bool {
    if sentence.has_any(CONDITIONS) || sentence.has_any(STILL) || is_about_later(sentence, raised, later, calendar) {
        return false;
    }
    let names_nothing = topic(sentence.text).is_empty();
    let is_meant = is_about || (later.is_asked || later.candidates == 1) && names_nothing;
    if is_meant && sentence.has_phrase(GIVEN_UP) && (is_about || later.is_asked) {
        return true;
    }
    if !is_due(raised, later) {
        return is_about && sentence.has_any(ALREADY) && is_past(sentence);
    }
    match is_about {
        true => is_past(sentence) || sentence.has_phrase(CAME),
        false => is_meant && sentence.has_phrase(OUTCOMES),
    }
}

/// Returns true if a sentence names a time that is no time of a report: one to come, or one before the plan was made.
fn is_about_later(sentence: &Sentence<'_>, raised: &Raised, later: &Later<'_>, calendar: &Calendar) -> bool {
    let Some(found) = when::find(sentence.text, calendar, &|_| true) else { return false };
    let is_before = raised.planned.is_some_and(|(begin, _)| found.span.end() <= begin && !found.is_vague);
    is_before || !found.is_vague && found.span.begins_after(later.at)
}

fn is_past(sentence: &Sentence<'_>) -> bool {
    let ends_in_past = |word: &str| word.len() > "ed".len() + 1 && word.ends_with("ed") && !NO_PAST.contains(&word);
    sentence.words().any(|word| PAST.contains(&word) || ends_in_past(word))
}

/// Returns true if a plan could have been carried out when a later message was said.
fn is_due(raised: &Raised, later: &Later<'_>) -> bool {
    match raised.planned {
        Some((begin, _)) => later.at >= begin,
        None => !later.is_same_episode,
    }
}

/// Returns true if a sentence says that something works again, or was found.
fn mends(sentence: &Sentence<'_>, is_about: bool, later: &Later<'_>, raised: &Raised) -> bool {
    if !is_mended(sentence) {
        return false;
    }
    let is_negated = sentence.has_any(&["not", "isn't", "can't", "nicht"]) && !sentence.has_phrase(WELL);
    if sentence.has_any(CONDITIONS) || sentence.has_any(STILL) || is_negated {
        return false;
    }
    let named = topic(sentence.text);
    // "Fixed it!" names nothing; "fixed the sink" names something else.
    let rest = named.iter().filter(|word| !is_mending(**word)).count();
    is_about || shared(&named, &raised.topic) > 0 || rest == 0 && (later.is_asked || later.candidates == 1)
}

/// Returns true if a sentence says that something is as it should be again, whatever it is.
fn is_mended(sentence: &Sentence<'_>) -> bool {
    let lacks = || sentence.has_any(&["no", "kein", "keine", "keinen"]);
    let runs = || sentence.has_any(AGAIN) && sentence.has_any(RUNS) && !lacks();
    sentence.has_phrase(MENDED) || sentence.has_phrase(WELL) || runs() || has_again(sentence) && !lacks()
}

/// Returns true for "the village has power again". Who has to do something again, or has pain again, says that it is not
/// well, and so does "it has fallen again".
fn has_again(sentence: &Sentence<'_>) -> bool {
    let words: Vec<&str> = sentence.words().collect();
    let is_other = |next: &str| matches!(next, "to" | "gone" | "lost") || next.ends_with("ed") || next.ends_with("en");
    let has = |pair: &[&str]| matches!(pair, [has, next] if HAS.contains(has) && !is_other(next));
    let is_bad = || sentence.has_any(PAIN) || broken_at(&sentence.plain).is_some();
    sentence.has_any(ONCE_MORE) && words.windows(2).any(has) && !is_bad()
}

/// The telling words of what says that something works again.
static MENDING: LazyLock<HashSet<u64>> =
    LazyLock::new(|| MENDED.iter().chain(RUNS).flat_map(|phrase| topic(phrase)).collect());

fn is_mending(word: u64) -> bool {
    MENDING.contains(&word)
}

/// Returns true if a message comes back to something so that it is no longer known to be open.
fn mentions(later: &Later<'_>, raised: &Raised, all: &[Sentence<'_>], is_about: bool) -> bool {
    let thanks = || all.iter().any(|sentence| sentence.has_any(THANKS));
    let comes_back = is_about && is_due(raised, later) && !all.iter().any(|sentence| sentence.has_any(STILL));
    match raised.kind {
        // Advice was enough.
        ProblemKind::Trouble => later.is_same_episode && later.candidates == 1 && thanks(),
        _ => {
            let is_outcome = || all.iter().any(|sentence| !sentence.is_question() && sentence.has_phrase(OUTCOMES));
            let may_be_it = is_due(raised, later) && later.candidates > 1 && is_outcome();
            comes_back || may_be_it
        }
    }
}

#[cfg(test)]
mod tests {
    use azera_types::TimeZone;

    use super::*;
    use crate::episodes::matters::raised;
    use crate::episodes::topic::speaks_of;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Reads what is said on a Monday about something that was said on the Wednesday before.
    fn read(before: &str, after: &str) -> &'static str {
        let said = time("2026-03-18T10:00:00Z");
        let calendar = Calendar::new(said, TimeZone::UTC);
        let raised = raised(before, said, &calendar, &|_| false).unwrap();
        let later = Later {
            told: &Told::new(after),
            at: time("2026-03-23T10:00:00Z"),
            is_about: speaks_of(&topic(after), &raised.topic),
            is_same_episode: false,
            is_asked: false,
            candidates: 1,
        };
        match says(&later, &raised, &calendar) {
            Some(Says::Report(_)) => "report",
            Some(Says::Mentioned) => "mentioned",
            None => "nothing",
        }
    }

    #[test]
    fn later_words_say_how_it_went_only_if_they_mean_it() {
        let fence = "I'm going to paint the fence on Saturday.";
        for (after, want) in [
            ("I painted the fence!", "report"),
            ("The fence is painted, it took all day", "report"),
            ("It went well.", "report"),
            ("I didn't paint the fence after all", "report"),
            ("I haven't painted the fence yet", "nothing"),
            ("I still have to paint the fence", "nothing"),
            ("Did I paint the fence?", "mentioned"),
            ("If I had painted the fence it would be blue", "mentioned"),
            ("I painted the fence last year, too", "mentioned"),
            ("good morning", "nothing"),
            ("It was a long day at the office", "nothing"),
            ("lol I painted the fence pink haha", "nothing"),
        ] {
            assert_eq!(read(fence, after), want, "{after}");
        }
        let bike = "My bike is broken.";
        for (after, want) in [
            ("I fixed the bike", "report"),
            ("Fixed it!", "report"),
            ("My bike works again", "report"),
            ("I fixed the sink", "nothing"),
            ("It runs again!", "report"),
            ("The bike runs now", "report"),
            ("The radio plays again", "nothing"),
            ("I can't get it fixed", "nothing"),
            ("the bike is not fixed yet", "nothing"),
            ("The bike is a wreck. I have to take the bus now.", "nothing"),
            ("The bike is a wreck. I have to take the bus again.", "nothing"),
            ("The bike has fallen apart again", "nothing"),
        ] {
            assert_eq!(read(bike, after), want, "{after}");
        }
        assert_eq!(read("My knee hurts.", "I have knee pain again."), "nothing");
        assert_eq!(read("The village has no signal.", "The village has a signal again."), "report");
    }
}
