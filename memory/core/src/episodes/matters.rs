//! Finds what a person leaves open: a plan, or something that is broken or lost. It reads the speaker's own words alone,
//! and rather finds too little: what nobody meant seriously, asked, quoted or made depend on something is none.

use std::ops::Range;

use azera_types::Timestamp;
use jiff::SignedDuration;

use super::phrases::{
    BEHIND_RUNNING, BROKEN, CONDITIONS, EVENTS, FAILING, FAILS, GREETINGS, HEDGES, IDLE, INTENTIONS, JOKES, LEADING,
    OWN, PASSED_OVER, PLANNED_WITH_TIME, RUNNING, WISHES, starts_with_word,
};
use super::report_phrases::PAST;
use super::sentences::{Sentence, find_phrase, plain, sentences, words};
use super::topic::{Topic, topic};
use crate::ProblemKind;
use crate::when::{self, Calendar, Found};

/// Words that may stand before "I am going to".
const MAX_LEADING: usize = 6;

/// Telling words that a plan without a time needs, and a wish without one.
const PLAIN_PLAN_WORDS: usize = 2;
const WISH_WORDS: usize = 3;

/// Seconds ahead from which something is planned. Who is back in five minutes tells no plan.
const AHEAD_S: i64 = 2 * 3_600;

/// Seconds ahead up to which something is planned. Nobody waits to hear of what is further away.
pub(super) const FAR_S: i64 = 60 * 24 * 3_600;

const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Something that a person leaves open.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Raised {
    pub(super) kind: ProblemKind,
    /// The sentence that says so.
    pub(super) range: Range<usize>,
    pub(super) topic: Topic,
    /// For when it is planned.
    pub(super) planned: Option<(Timestamp, Timestamp)>,
}

/// Returns what a text that was said `at` leaves open. `is_marked` says whether a part of it was found to be a plan.
pub(super) fn raised(
    text: &str,
    at: Timestamp,
    calendar: &Calendar,
    is_marked: &dyn Fn(&Range<usize>) -> bool,
) -> Option<Raised> {
    let all = sentences(text);
    if is_joke(text) {
        return None;
    }
    let calendar = calendar.at(at);
    let serious = || all.iter().filter(|sentence| !sentence.is_question() && !sentence.quotes());
    let plan = serious().find_map(|sentence| plan_in(sentence, at, &calendar, is_marked));
    plan.or_else(|| serious().find_map(trouble_in))
}

/// Returns true if a text is not meant seriously, as far as it shows.
pub(super) fn is_joke(text: &str) -> bool {
    let lower = plain(text);
    text.contains(['😂', '🤣', '😜', '😉', '🙃', '😝'])
        || [";)", ":p", " /s", " /j"].iter().any(|sign| lower.contains(sign))
        || words(&lower).any(|word| JOKES.contains(&word) || word.starts_with("haha") || word.starts_with("hehe"))
        || lower.contains("just kidding")
}

fn plan_in(
    sentence: &Sentence<'_>,
    at: Timestamp,
    calendar: &Calendar,
    is_marked: &dyn Fn(&Range<usize>) -> bool,
) -> Option<Raised> {
    if sentence.has_any(HEDGES) {
        return None;
    }
    let intention = intention(&sentence.plain);
    // The time is looked for last: most sentences tell no intention.
    let is_told_otherwise = || is_marked(&sentence.range) && sentence.has_any(OWN);
    if intention.is_none() && !is_told_otherwise() {
        return None;
    }
    let found = when::find(sentence.text, calendar, &|_| true);
    let planned = found.as_ref().and_then(|found| ahead(found, sentence.text, at));
    if found.is_some() && planned.is_none() {
        return None;
    }
    let is_plan = match (&intention, planned) {
        (Some(intention), Some(_)) => !is_idle(intention.rest),
        (Some(intention), None) => intention.least.is_some() && !is_idle(intention.rest),
        (None, Some(_)) => true,
        (None, None) => false,
    };
    let words = without(sentence.text, found.map(|found| found.range));
    let topic = topic(&words);
    let untimed = intention.and_then(|intention| intention.least).unwrap_or(PLAIN_PLAN_WORDS);
    let least = if planned.is_some() { 1 } else { untimed };
    let is_told = is_plan && topic.len() >= least;
    is_told.then(|| Raised { kind: ProblemKind::Plan, range: sentence.range.clone(), topic, planned })
}

/// Returns the time that is meant, if it lies ahead. A bare weekday in a plan is the next one.
fn ahead(found: &Found, text: &str, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let seconds = |moment: Timestamp| moment.as_second().saturating_sub(at.as_second());
    let is_weekday =
        found.is_vague && text.get(found.range.clone()).is_some_and(|time| !time.contains(char::is_numeric));
    let next = || {
        let (begin, end) = found.span.planned().next()?;
        Some((begin.checked_add(WEEK).ok()?, end.checked_add(WEEK).ok()?)).filter(|_| is_weekday)
    };
    let (begin, end) = found.span.planned().find(|(_, end)| *end > at).or_else(next)?;
    (seconds(end) >= AHEAD_S && seconds(begin) <= FAR_S).then_some((begin.max(at), end))
}

/// Returns a text without a part of it.
fn without(text: &str, part: Option<Range<usize>>) -> String {
    let Some(part) = part else { return text.to_owned() };
    let (before, behind) = (text.get(..part.start), text.get(part.end..));
    format!("{} {}", before.unwrap_or_default(), behind.unwrap_or_default())
}

/// The words with which somebody says what they are going to do.
struct Intention<'a> {
    /// How many telling words make them a plan without a time; `None` if nothing does.
    least: Option<usize>,
    /// What follows them.
    rest: &'a str,
}

fn intention(plain: &str) -> Option<Intention<'_>> {
    let mut rest = plain;
    for _ in 0..=MAX_LEADING {
        let found = |phrases: &[&str], least: Option<usize>| {
            let phrase = phrases.iter().find(|phrase| starts_with_word(rest, phrase))?;
            Some(Intention { least, rest: rest.get(phrase.len()..)?.trim_start() })
        };
        let timed = || found(PLANNED_WITH_TIME, None);
        let wish = || found(WISHES, Some(WISH_WORDS));
        if let Some(intention) = found(INTENTIONS, Some(PLAIN_PLAN_WORDS)).or_else(wish).or_else(timed) {
            return Some(intention);
        }
        if let Some(event) = found(&["my", "our", "mein", "meine", "unser", "unsere"], None) {
            return EVENTS.iter().any(|phrase| find_phrase(event.rest, phrase).is_some()).then_some(event);
        }
        if let Some(doing) = doing(rest) {
            return Some(Intention { least: None, rest: doing });
        }
        rest = behind_leading(rest)?;
    }
    None
}

/// Returns "visiting ..." of "I'm visiting ...".
fn doing(plain: &str) -> Option<&str> {
    let who = ["i'm ", "i am ", "we're ", "we are "].iter().find_map(|who| plain.strip_prefix(who))?;
    let verb = words(who).next()?;
    (verb.len() > "ing".len() + 1 && verb.ends_with("ing")).then_some(who)
}

/// Cuts one word that may stand before an intention: a greeting, a time, or a name with a comma.
fn behind_leading(plain: &str) -> Option<&str> {
    let end = plain.find(|c: char| !c.is_alphanumeric() && c != '\'').filter(|end| *end > 0)?;
    let (word, rest) = plain.split_at_checked(end)?;
    let is_called = rest.trim_start().starts_with(',');
    let rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
    let may_lead = LEADING.contains(&word) || GREETINGS.contains(&word) || word.chars().all(|c| c.is_ascii_digit());
    (!rest.is_empty() && (is_called || may_lead)).then_some(rest)
}

/// Returns true for what everybody does all the time, or nobody does: going to bed, dying of laughter.
fn is_idle(rest: &str) -> bool {
    // "I must have left it" guesses what happened.
    let mut next = words(rest);
    let guesses = next.next() == Some("have") && next.next().is_some_and(is_participle);
    let mut words = words(rest).filter(|word| !PASSED_OVER.contains(word));
    guesses || words.next().is_none_or(|first| IDLE.contains(&first))
}

fn is_participle(word: &str) -> bool {
    let is_regular = word.len() > "ed".len() + 1 && (word.ends_with("ed") || word.ends_with("en"));
    let other = ["left", "put", "kept", "slept", "meant", "thought", "heard", "gone"];
    is_regular || PAST.contains(&word) || other.contains(&word)
}

fn trouble_in(sentence: &Sentence<'_>) -> Option<Raised> {
    let plain = sentence.plain.as_str();
    let is_own = sentence.has_any(OWN) || plain.starts_with("the ") || plain.starts_with("die ");
    if !is_own {
        return None;
    }
    // "It crashes whenever I open it" is a problem, and "when it is broken" is none.
    let is_told = |at: &usize| {
        let before = plain.get(..*at).unwrap_or_default();
        !words(before).any(|word| CONDITIONS.contains(&word))
    };
    broken_at(plain).filter(is_told)?;
    let topic = topic(&cut_phrases(plain));
    let range = sentence.range.clone();
    (!topic.is_empty()).then_some(Raised { kind: ProblemKind::Trouble, range, topic, planned: None })
}

/// Returns where a text says that something is broken, or fails.
pub(super) fn broken_at(plain: &str) -> Option<usize> {
    let works = ["doesn't work", "does not work"].iter().find_map(|phrase| {
        let at = find_phrase(plain, phrase)?;
        let next = words(plain.get(at + phrase.len()..)?).next();
        // Who does not work on Mondays is not broken.
        next.is_none_or(|next| matches!(next, "anymore" | "any" | "again" | "properly" | "and")).then_some(at)
    });
    let phrase = || BROKEN.iter().chain(FAILING).find_map(|phrase| find_phrase(plain, phrase));
    works.or_else(phrase).or_else(|| fails_at(plain))
}

/// Returns where a text says that something does not do what it should. Who does not play football is not broken, and
/// neither are people who do not open up.
fn fails_at(plain: &str) -> Option<usize> {
    FAILS.iter().find_map(|fails| {
        let at = find_phrase(plain, fails)?;
        let subject = plain.get(..at)?.split_whitespace().next_back()?;
        if matches!(subject, "i" | "we" | "you" | "they" | "he" | "she") {
            return None;
        }
        let rest = plain.get(at + fails.len()..)?.trim_start();
        let verb = RUNNING.iter().find(|verb| starts_with_word(rest, verb))?;
        let next = words(rest.get(verb.len()..)?).next();
        next.is_none_or(|next| BEHIND_RUNNING.contains(&next)).then_some(at)
    })
}

/// Cuts what says that something is broken: what is left says what it is.
fn cut_phrases(plain: &str) -> String {
    BROKEN.iter().chain(FAILING).fold(plain.to_owned(), |text, phrase| text.replace(phrase, " "))
}

/// Returns the question that a text ends with, if it asks for something.
pub(super) fn question(text: &str) -> Option<(Range<usize>, Topic)> {
    let all = sentences(text);
    let last = all.last().filter(|sentence| sentence.is_question() && !sentence.quotes())?;
    let topic = topic(last.text);
    (topic.len() >= PLAIN_PLAN_WORDS && !is_joke(text)).then(|| (last.range.clone(), topic))
}

#[cfg(test)]
mod tests {
    use azera_types::TimeZone;

    use super::*;

    fn read(text: &str) -> Option<&'static str> {
        // A Wednesday.
        let at: Timestamp = "2026-03-18T10:00:00Z".parse().unwrap();
        let calendar = Calendar::new(at, TimeZone::UTC);
        raised(text, at, &calendar, &|_| false).map(|raised| raised.kind.as_str())
    }

    #[test]
    fn plans_and_problems_are_read_from_what_people_say_of_themselves() {
        for plan in [
            "I'm going to paint the fence on Saturday.",
            "Hi Azera, I'm going to visit my sister in Leeds next week!",
            "Tomorrow I have an interview at the library.",
            "I have an exam on Friday.",
            "We're moving to Hull next month.",
            "ok so I will call the dentist tomorrow",
            "I plan to learn the cello.",
            "I have to renew my passport by Friday.",
            "Ich werde morgen den Zaun streichen.",
            "I still have to wash the curtains",
            "I must have a word with the plumber about the sink",
            "I'll mend the curtain of the kitchen window",
            "My driving test is on Monday.",
            "I'm going to start a new job next month.",
        ] {
            assert_eq!(read(plan), Some("plan"), "{plan}");
        }
        for trouble in [
            "My bike is broken.",
            "the heating stopped working",
            "I can't find my passport",
            "My laptop won't start :(",
            "The lamp doesn't turn on any more",
            "My ear hurts.",
            "The game crashes whenever I save",
            "Mein Fahrrad ist kaputt.",
        ] {
            assert_eq!(read(trouble), Some("problem"), "{trouble}");
        }
        for neither in [
            "I'm going to bed.",
            "I'm going to die of laughter",
            "I'm gonna kill him lol",
            "I'll be back in 5 minutes",
            "I'll see",
            "Am I going to paint the fence on Saturday?",
            "If it rains I'm going to paint the kitchen tomorrow.",
            "Maybe I'll paint the fence tomorrow.",
            "She said \"I'm going to paint the fence tomorrow\".",
            "> I'm going to paint the fence tomorrow",
            "Ben is going to paint the fence tomorrow.",
            "I painted the fence yesterday.",
            "I was going to paint the fence tomorrow",
            "I'm not going to paint the fence.",
            "His bike is broken.",
            "I don't play any more",
            "My sister doesn't play chess",
            "When my ear hurts I stay in",
            "I have to say, that was nice work",
            "I have to agree with Ben about the soup",
            "I must have left my wallet at the bakery",
            "We must have forgotten the blue suitcase",
            "I'll take the red one",
            "I have no brothers",
            "Is my bike broken?",
            "When my bike is broken I walk.",
            "I'm going to be honest, that soup was bad.",
            "good morning everyone",
            "I'm going to sleep now, see you tomorrow",
            "I have a cat.",
            "I'll watch the game tonight",
            "I'm going to play chess tomorrow",
            "I have a headache since Monday",
            "I go swimming every Friday",
            "My favourite day is Friday.",
        ] {
            assert_eq!(read(neither), None, "{neither}");
        }
    }

    #[test]
    fn a_question_asks_for_something() {
        assert!(question("Which glue holds on wet wood?").is_some());
        for small in
            ["How are you?", "really?", "What's up?", "Which glue holds? The red one.", "lol who ate my cake crumbs?"]
        {
            assert_eq!(question(small), None, "{small}");
        }
    }
}
