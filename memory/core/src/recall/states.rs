//! What held in a month: "Where did Bruno live in July?" is answered by what Bruno said of himself in June. Small talk
//! of July, and what others said of themselves then, are nearer to the time and answer nothing.

use std::collections::HashMap;

use azera_types::MemoryId;

use super::changes::{COMPARED, covered, is_kin, listed, matter_of};
use super::question::{OWN_WORDS, Speaker, is_question, tokens};
use super::{Asked, Hit, fuse};
use crate::Stored;
use crate::rows::{Kind, MemoryRow};
use crate::when::{self, Calendar, Era};

/// Fewest days of a time in which something held. "Last Friday" asks for what happened.
const FEWEST_DAYS: f32 = 14.0;

/// Least share of the question's words that the statement repeats.
const LEAST_COVERED: f32 = 0.6;

/// Share of the statement's cosine similarity to the question below which something else is about another matter.
const BESIDE: f32 = 0.75;

/// Cosine similarity to the question below which something that repeats none of its words is about another matter.
/// Without names, a short question is alike to few texts.
const UNLIKE: f32 = 0.25;

/// Digits of a year.
const YEAR_DIGITS: usize = 4;

/// Words with which people tell of something over, planned or imagined.
const NOT_LASTING: &str = "was were did will gonna wish would should could if";

/// Past forms behind "I", beside those in "ed".
const PAST: &str =
    "used had went bought sold got made took saw met came gave ate lost won ran drove wrote told found felt left";

/// Words between "I" and such a form with which it tells of what lasts: "I am married", "I have got a van".
const BEFORE_STATE: &str = "am are have";

/// "I've" and "we've" without their apostrophes.
const PERFECT: &str = "ive weve";

/// "I'll" and "I'd" without theirs, at the beginning.
const PLANNED: &str = "ill id";

/// One hit, as far as it may say what held.
struct View {
    covered: f32,
    /// Cosine similarity to the question; 0 if it is unknown.
    cosine: f32,
    is_by_speaker: bool,
    /// True if its author speaks of themselves.
    is_own: bool,
    /// True if it says what lasts.
    is_state: bool,
}

impl View {
    fn of(hit: &Hit, asked: Asked<'_>, wanted: &[String], stored: &HashMap<MemoryId, Stored>) -> Self {
        let (memory, question) = (&hit.memory, &asked.query.question);
        let words: Vec<String> = tokens(&memory.text).collect();
        let vectors = asked.query.vector.as_ref().zip(stored.get(&memory.id));
        let is_own = words.iter().any(|word| OWN_WORDS.contains(&word.as_str()) || listed(PERFECT, word));
        // Somebody else is spoken of only if the question names them, too.
        let is_of_kin = |word: &String| is_kin(word) && !wanted.contains(word);
        let asks_for_kin = wanted.iter().any(|word| is_kin(word) && !words.contains(word));
        let is_own_state = is_own && !asks_for_kin && !words.iter().any(is_of_kin);
        Self {
            covered: covered(&words, wanted),
            cosine: vectors.map_or(0.0, |(vector, stored)| fuse::dot(vector, &stored.own)),
            is_by_speaker: question.speaker.as_ref().is_some_and(|speaker| speaker.said(&memory.author)),
            is_own,
            is_state: is_own_state && lasts(memory, &words, &question.calendar),
        }
    }

    fn answers(&self) -> bool {
        self.is_by_speaker && self.is_state && self.covered >= LEAST_COVERED
    }

    /// Returns true if this does not answer what `state` may answer.
    fn is_beside(&self, state: &Self) -> bool {
        let is_of_another = !self.is_by_speaker && self.is_own;
        let is_unlike = self.cosine < state.cosine * BESIDE || (self.covered <= 0.0 && self.cosine < UNLIKE);
        is_of_another || (self.covered < state.covered && is_unlike)
    }
}

/// Returns the place of the first statement in which the speaker whom a question names says what lasts, if the question
/// asks for what held over days or months, and if all better hits are about something or somebody else. Returns `None`
/// if the best hit is not passed over.
pub(super) fn first_state(hits: &[Hit], asked: Asked<'_>, stored: &HashMap<MemoryId, Stored>) -> Option<usize> {
    let question = &asked.query.question;
    let time = asked.time.filter(|time| time.span().is_within() && !time.is_by_event())?;
    if time.span().days() < FEWEST_DAYS || !matches!(question.era, Era::Open | Era::Now) {
        return None;
    }
    let speaker = question.speaker.as_ref()?;
    // A name with an ending, as in "Bruno's boss", is among the words to look up.
    let is_name = |word: &String| matches!(speaker, Speaker::Named(name) if name == word);
    let is_year = |word: &String| word.len() == YEAR_DIGITS && word.chars().all(|c| c.is_ascii_digit());
    let mut wanted = matter_of(&question.words);
    wanted.retain(|word| !is_name(word) && !is_year(word));
    let views: Vec<View> = hits.iter().take(COMPARED).map(|hit| View::of(hit, asked, &wanted, stored)).collect();
    let place = views.iter().position(View::answers).filter(|place| *place > 0)?;
    let (better, state) = (views.get(..place)?, views.get(place)?);
    better.iter().all(|view| view.is_beside(state)).then_some(place)
}

/// Returns true if a person's statement tells of what lasts: it says since when, or it names no time and nothing past.
fn lasts(memory: &MemoryRow, words: &[String], calendar: &Calendar) -> bool {
    if !matches!(memory.kind, Kind::Message | Kind::Fact) || is_question(&memory.text) {
        return false;
    }
    if memory.all_valid_from(calendar).is_some() {
        return true;
    }
    let found = when::find(&memory.text, &calendar.at(memory.at), &|_| true);
    found.is_none_or(|found| found.span.since().is_some()) && !is_over(words)
}

/// Returns true if words tell of something over, planned or imagined.
fn is_over(words: &[String]) -> bool {
    let is_past = |word: &String| listed(PAST, word) || (word.len() > 4 && word.ends_with("ed"));
    // An adverb may stand between the two: "I just moved".
    let is_past_behind = |place: usize| match (words.get(place + 1), words.get(place + 2)) {
        (Some(next), Some(second)) => is_past(next) || (is_past(second) && !listed(BEFORE_STATE, next)),
        (next, _) => next.is_some_and(is_past),
    };
    let is_subject = |word: &str| matches!(word, "i" | "we");
    let has_past = words.iter().enumerate().any(|(place, word)| is_subject(word) && is_past_behind(place));
    let is_planned = words.first().is_some_and(|first| listed(PLANNED, first));
    has_past || is_planned || words.iter().any(|word| listed(NOT_LASTING, word))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use azera_types::{Author, PersonId, PersonaId, Scope, Text, TimeZone, Timestamp};

    use super::super::changes::reorder;
    use super::super::time::AskedTime;
    use super::super::{Limits, Query, Question, Speaker};
    use super::*;
    use crate::{Shown, Validity};

    /// Cosine similarities to the question.
    const NEAR: f32 = 0.6;
    const FAR: f32 = 0.1;

    fn said(who: &str, on: &str, text: &str, cosine: f32) -> (MemoryRow, Stored) {
        let person = PersonId::new(&who.to_lowercase()).unwrap();
        let at: Timestamp = format!("{on}T10:00:00Z").parse().unwrap();
        let id = MemoryId(u64::try_from(at.as_second()).unwrap());
        let memory = MemoryRow {
            salience: None,
            surprise: None,
            apart: false,
            replaced: None,
            id,
            persona: PersonaId::new("azera").unwrap(),
            kind: Kind::Message,
            scope: Scope::Dm(person.clone()),
            source_scopes: Vec::new(),
            chat: None,
            session: 0,
            author: Author::Person { id: person, name: who.into() },
            sources: Vec::new(),
            text: Text::new(text),
            at,
        };
        let own = vec![cosine, (1.0 - cosine * cosine).sqrt()];
        (memory, Stored { id, own, window: None })
    }

    /// Returns what comes first for a question about Bruno, of hits in the order of recall.
    fn first(time: &str, words: &str, hits: &[(&str, &str, &str, f32)]) -> String {
        let calendar = Calendar::new("2025-11-20T10:00:00Z".parse().unwrap(), TimeZone::UTC);
        let span = when::find(time, &calendar, &|_| false).unwrap().span;
        let question = Question {
            embed: words.to_owned(),
            words: words.to_owned(),
            speaker: Some(Speaker::Named("bruno".to_owned())),
            time: Some(span.clone()),
            is_relative: false,
            event: None,
            era: Era::Open,
            is_present: false,
            known_by: None,
            talk: None,
            calendar: calendar.clone(),
        };
        let query = Query {
            question,
            vector: Some(vec![1.0, 0.0]),
            event_vector: None,
            asker: None,
            now: calendar.now,
            include_latest: true,
            exclude: HashSet::new(),
            limits: Limits::default(),
            results: 10,
        };
        let (rated, asked_time) = (HashMap::new(), AskedTime::named(span.clone()));
        let asked = Asked { query: &query, time: Some(&asked_time), rated: &rated };
        let (mut found, mut stored) = (Vec::new(), HashMap::new());
        for (place, (who, on, text, cosine)) in hits.iter().enumerate() {
            let (memory, vectors) = said(who, on, text, *cosine);
            stored.insert(memory.id, vectors);
            let is_near = asked_time.closeness(&memory, &calendar) > 0.5;
            let signals = is_near.then_some("date").into_iter().collect();
            let score = 1.5 - 0.1 * place as f32;
            let (snippet, shown, validity) = (Text::default(), Shown::new(), Validity::default());
            found.push(Hit { memory, snippet, shown, score, signals, validity, again: Vec::new() });
        }
        reorder(&mut found, asked, &stored);
        found.first().map(|hit| hit.memory.text.as_str().to_owned()).unwrap()
    }

    const CORK: (&str, &str, &str, f32) = ("Bruno", "2025-06-20", "I live in Cork.", NEAR);
    const GRAZ: (&str, &str, &str, f32) = ("Bruno", "2025-10-17", "I've lived in Graz since August.", NEAR);

    #[test]
    fn small_talk_of_a_month_does_not_say_what_held_in_it() {
        let storm = ("Bruno", "2025-07-09", "what a storm", FAR);
        assert_eq!(first("in July 2025", "live 2025", &[storm, GRAZ, CORK]), CORK.2);
        assert_eq!(first("in July 2025", "live 2025", &[storm, CORK]), CORK.2);
        assert_eq!(first("in July 2025", "bruno live 2025", &[storm, CORK]), CORK.2);
        let faint = ("Bruno", "2025-06-20", "I live in Cork.", 0.12);
        assert_eq!(first("in July 2025", "live 2025", &[storm, faint]), faint.2);
        let nap = ("Ann", "2025-09-09", "haha no way", FAR);
        assert_eq!(first("in September 2025", "live 2025", &[nap, CORK, GRAZ]), GRAZ.2);
    }

    #[test]
    fn what_others_say_of_themselves_does_not_say_what_held_for_somebody() {
        let utrecht = ("Lena", "2025-09-17", "I live in Utrecht.", NEAR);
        assert_eq!(first("in September 2025", "live 2025", &[utrecht, CORK, GRAZ]), GRAZ.2);
        // Somebody else may know it.
        let told = ("Lena", "2025-09-17", "Bruno lives with his parents in Turin", NEAR);
        assert_eq!(first("in September 2025", "live 2025", &[told, CORK, GRAZ]), told.2);
    }

    #[test]
    fn what_was_said_in_the_month_about_the_matter_stays_first() {
        let told = ("Bruno", "2025-09-09", "Lived out of a suitcase for weeks", NEAR);
        assert_eq!(first("in September 2025", "live 2025", &[told, CORK, GRAZ]), told.2);
        let near = ("Bruno", "2025-09-09", "The rent in Turin is killing me", 0.5);
        assert_eq!(first("in September 2025", "live 2025", &[near, CORK, GRAZ]), near.2);
    }

    #[test]
    fn a_day_asks_for_what_happened() {
        let storm = ("Bruno", "2025-07-09", "what a storm", FAR);
        assert_eq!(first("on 9 July 2025", "live 2025", &[storm, CORK]), storm.2);
    }

    #[test]
    fn only_a_statement_of_what_lasts_and_had_begun_comes_forward() {
        let storm = ("Bruno", "2025-07-09", "what a storm", FAR);
        for text in [
            "I lived in Cork.",
            "I just lived in Cork.",
            "I used to live in Cork",
            "I'll live in Cork.",
            "I live in Cork until Friday",
            "My sister lives in Cork. I like it",
            "Do I live in Cork?",
        ] {
            let other = ("Bruno", "2025-06-20", text, NEAR);
            assert_eq!(first("in July 2025", "live 2025", &[storm, other]), storm.2, "{text}");
        }
        let later = ("Bruno", "2025-10-17", "I live in Graz", NEAR);
        assert_eq!(first("in July 2025", "live 2025", &[storm, later]), storm.2);
        assert_eq!(first("in July 2025", "sister live 2025", &[storm, CORK]), storm.2);
        for text in ["I've got a flat and live in Cork", "I am married and live in Cork"] {
            let other = ("Bruno", "2025-06-20", text, NEAR);
            assert_eq!(first("in July 2025", "live 2025", &[storm, other]), text);
        }
    }
}
