//! What held in a month: "Where did Bruno live in July?" is answered by what Bruno said of himself in June. Small talk
//! of July is nearer to the time and answers nothing.
//!
//! A wrong first hit is worse than the old order. So the whole question and the beginning of the statement have to be
//! of a few plain forms, and only small talk is passed over.

use std::collections::HashMap;

use azera_types::MemoryId;

use super::changes::{COMPARED, began, is_form_of, is_kin, listed};
use super::question::{Speaker, is_question, tokens};
use super::{Asked, Hit, fuse};
use crate::Stored;
use crate::rows::{Kind, MemoryRow};
use crate::when::{self, Calendar, Era};
use crate::words::tells_of_change;

/// Fewest days of a time in which something held. "Last Friday" asks for what happened.
const FEWEST_DAYS: f32 = 14.0;

/// Share of the statement's cosine similarity to the question below which something else is about another matter.
const BESIDE: f32 = 0.75;

/// Titles with which people name somebody.
const TITLES: &str = "mr mrs ms miss dr prof";

/// What people ask for: a word, its other forms, and the words with which a statement of it goes on. "I live in Cork"
/// says where somebody lives, and "I live for music" does not.
const VERBS: [(&str, &str, &str); 6] = [
    ("live", "lived living", "in at near"),
    ("work", "worked working", "as at for in"),
    ("drive", "driven driving drove", "a an"),
    ("study", "studied studying", ""),
    ("own", "owned", "a an"),
    ("rent", "rented renting", "a an"),
];
const NOUNS: [(&str, &str); 7] = [
    ("boss", TITLES),
    ("dentist", TITLES),
    ("doctor", TITLES),
    ("landlord", TITLES),
    ("flat", "in at near on"),
    ("car", "a an"),
    ("job", "being as at"),
];

/// Words behind "study" and behind an article that name nothing: "I study a lot".
const NAMES_NOTHING: &str =
    "a an the lot hard every at in for with on to too here there and but all day mess pain wreck";

/// Words between "I" and the verb.
const STILL: &str = "still now currently";
const AUXILIARY: &str = "have ve am m been still now currently";

/// Words with which people deny, wish, plan, imagine or limit something, or tell of something over.
const NOT_LASTING: &str = "was were did ll will gonna d would could should dont don doesn not no never any anymore \
    longer want wanna hope plan going might may can cannot wish if unless when used until till once maybe soon \
    almost nearly isn aren ain";

/// Most words of a statement that is plain.
const MAX_WORDS: usize = 16;

/// What a question asks for.
enum Wanted {
    Verb(&'static str, &'static str, &'static str),
    Noun(&'static str, &'static str),
}

impl Wanted {
    /// Reads "where did I live in July" or "who was my boss last year", without names. Nothing else may stand in it.
    fn of(question: &str) -> Option<Self> {
        let words: Vec<String> = tokens(question).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ["where" | "what" | "who" | "which", verb, rest @ ..] = words.as_slice() else { return None };
        match (*verb, rest) {
            ("did", ["i" | "we", word, rest @ ..] | [word, rest @ ..]) => {
                let (word, forms, behind) = VERBS.into_iter().find(|(known, ..)| known == word)?;
                let rest = if let ["as" | "for", rest @ ..] = rest { rest } else { rest };
                is_time(rest).then_some(Self::Verb(word, forms, behind))
            }
            ("was" | "were", ["my" | "our" | "s", word, rest @ ..] | [word, rest @ ..]) => {
                let (word, behind) = NOUNS.into_iter().find(|(known, _)| known == word)?;
                is_time(rest).then_some(Self::Noun(word, behind))
            }
            _ => None,
        }
    }

    /// The other forms of a verb.
    fn forms(&self) -> &'static str {
        match self {
            Self::Verb(_, forms, _) => forms,
            Self::Noun(..) => "",
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Verb(word, ..) | Self::Noun(word, _) => word,
        }
    }

    /// Returns true if the words say that this lasts. `has_since` is true if they say since when.
    fn is_stated(&self, words: &[&str], has_since: bool) -> bool {
        // "Since May I live in Hull" begins with its time.
        let begins = |place: usize| place == 0 || (has_since && words.first() == Some(&"since") && place <= 3);
        let is_here = |place: usize| match (self, words.get(place..).unwrap_or_default()) {
            (Self::Verb(verb, forms, behind), ["i" | "we", rest @ ..]) if begins(place) => {
                let between = if has_since { AUXILIARY } else { STILL };
                let is_between = |word: &&&str| listed(between, word);
                let skipped = rest.iter().take_while(is_between).count();
                match rest.get(skipped..).unwrap_or_default() {
                    [word, rest @ ..] => (word == verb || (has_since && listed(forms, word))) && goes_on(rest, behind),
                    [] => false,
                }
            }
            (Self::Noun(noun, behind), ["my" | "our", word, rest @ ..]) if word == noun => {
                let is_behind = place.checked_sub(1).and_then(|before| words.get(before)) == Some(&"been");
                match rest {
                    ["has", "been", rest @ ..] if has_since && begins(place) => goes_on(rest, behind),
                    ["is", rest @ ..] if begins(place) => goes_on(rest, behind),
                    _ => has_since && is_behind && words.first().is_some_and(|first| listed(behind, first)),
                }
            }
            _ => false,
        };
        (0..words.len()).any(is_here)
    }
}

/// Returns true if words go on as a statement that names something does: with one of `behind`, or with any name.
fn goes_on(words: &[&str], behind: &str) -> bool {
    match words {
        [first, second, ..] if listed(behind, first) => {
            matches!(*second, "a" | "an" | "the") || !listed(NAMES_NOTHING, second)
        }
        [first, ..] => behind.is_empty() && !listed(NAMES_NOTHING, first),
        [] => false,
    }
}

/// Returns true if the end of a question is a time and nothing else, as far as its length shows.
fn is_time(words: &[&str]) -> bool {
    match words {
        ["in" | "during", rest @ ..] => matches!(rest.len(), 1 | 2),
        ["last", rest @ ..] => rest.len() == 1,
        _ => false,
    }
}

/// Returns the place of the speaker's statement that held at the time that a question names, if the question asks for
/// what held over weeks or months, and if all better hits are small talk.
pub(super) fn held_then(hits: &[Hit], asked: Asked<'_>, stored: &HashMap<MemoryId, Stored>) -> Option<usize> {
    let question = &asked.query.question;
    let time = asked.time.filter(|time| time.span().is_within() && !time.is_by_event())?;
    if time.span().days() < FEWEST_DAYS || !matches!(question.era, Era::Open | Era::Now) {
        return None;
    }
    let speaker = question.speaker.as_ref()?;
    let wanted = Wanted::of(&question.embed)?;
    let is_state = |hit: &Hit| speaker.said(&hit.memory.author) && states(&hit.memory, &wanted, &question.calendar);
    let hits = hits.get(..hits.len().min(COMPARED))?;
    let best = hits.iter().position(is_state)?;
    let vector = asked.query.vector.as_ref()?;
    let cosine = |hit: &Hit| stored.get(&hit.memory.id).map(|stored| fuse::dot(vector, &stored.own));
    let least = cosine(hits.get(best)?)? * BESIDE;
    let is_beside =
        |hit: &Hit| is_small_talk(&hit.memory, &wanted, speaker) && cosine(hit).is_some_and(|near| near < least);
    if !hits.get(..best)?.iter().all(is_beside) {
        return None;
    }
    let end = time.span().end();
    let began = |hit: &Hit| began(hit.memory.at, hit.memory.all_valid_from(&question.calendar), end);
    let held = hits.iter().enumerate().filter(|(_, hit)| is_state(hit) && began(hit) < end);
    held.max_by_key(|(place, hit)| (began(hit), std::cmp::Reverse(*place))).map(|(place, _)| place)
}

/// Returns true if a memory states plainly what is wanted, of its author and nobody else.
fn states(memory: &MemoryRow, wanted: &Wanted, calendar: &Calendar) -> bool {
    if !matches!(memory.kind, Kind::Message | Kind::Fact) || is_question(&memory.text) {
        return false;
    }
    let words: Vec<String> = tokens(&memory.text).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_of_kin = |word: &&str| is_kin(word) && *word != wanted.word();
    if words.len() > MAX_WORDS || words.iter().any(is_of_kin) {
        return false;
    }
    if memory.all_valid_from(calendar).is_some() {
        return wanted.is_stated(&words, true);
    }
    let is_open = when::find(&memory.text, &calendar.at(memory.at), &|_| true).is_none();
    is_open && !words.iter().any(|word| listed(NOT_LASTING, word)) && wanted.is_stated(&words, false)
}

/// Returns true if a message is not about what is wanted and names nothing that may be the answer.
fn is_small_talk(memory: &MemoryRow, wanted: &Wanted, speaker: &Speaker) -> bool {
    let is_name = |word: &str| matches!(speaker, Speaker::Named(name) if name == word);
    let is_form = |word: &str| is_form_of(word, wanted.word()) || listed(wanted.forms(), word);
    let is_about = |word: String| is_form(&word) || is_name(&word) || tells_of_change(&word);
    let is_written_as_name = |word: &str| {
        word.chars().next().is_some_and(char::is_uppercase) && word.trim_matches(|c: char| !c.is_alphanumeric()) != "I"
    };
    let names_something = memory.text.split_whitespace().skip(1).any(is_written_as_name);
    memory.kind == Kind::Message && !names_something && !tokens(&memory.text).any(is_about)
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
        let person = PersonId::new(who.to_lowercase()).unwrap();
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
    fn first(asks: &str, hits: &[(&str, &str, &str, f32)]) -> String {
        let calendar = Calendar::new("2025-11-20T10:00:00Z".parse().unwrap(), TimeZone::UTC);
        let span = when::find(asks, &calendar, &|_| false).unwrap().span;
        let question = Question {
            embed: asks.to_owned(),
            words: asks.to_owned(),
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
    const STORM: (&str, &str, &str, f32) = ("Bruno", "2025-07-09", "what a storm", FAR);
    const JULY: &str = "Where did live in July 2025?";

    #[test]
    fn small_talk_of_a_month_does_not_say_what_held_in_it() {
        assert_eq!(first(JULY, &[STORM, GRAZ, CORK]), CORK.2);
        assert_eq!(first(JULY, &[STORM, CORK]), CORK.2);
        assert_eq!(first("Where did live last summer?", &[STORM, CORK, GRAZ]), GRAZ.2);
        assert_eq!(
            first("Where did live last year?", &[("Bruno", "2024-07-09", "what a storm", FAR), CORK]),
            "what a storm"
        );
        let nap = ("Ann", "2025-09-09", "haha no way", FAR);
        assert_eq!(first("Where did live in September 2025?", &[nap, CORK, GRAZ]), GRAZ.2);
    }

    /// Returns true if a statement of June comes before small talk of July.
    fn comes_forward(asks: &str, text: &str) -> bool {
        first(asks, &[STORM, ("Bruno", "2025-06-20", text, NEAR)]) == text
    }

    #[test]
    fn a_statement_of_what_lasts_comes_forward() {
        for (asks, text) in [
            (JULY, "I still live in Cork"),
            (JULY, "We live in Cork"),
            (JULY, "I have lived in Cork since May"),
            (JULY, "Since May I live in Cork"),
            ("What did drive in July 2025?", "I've been driving a red van since May"),
            ("What did work as in July 2025?", "I work as a nurse."),
            ("What did study in July 2025?", "I study law."),
            ("Who was boss in July 2025?", "My boss is Mrs Tan."),
            ("Who was s boss in July 2025?", "My boss has been Mrs Tan since May"),
            ("Who was dentist in July 2025?", "Dr Weiss has been my dentist since May"),
            ("What was car in July 2025?", "My car is a blue minivan."),
        ] {
            assert!(comes_forward(asks, text), "{asks} {text}");
        }
    }

    #[test]
    fn what_is_over_denied_wished_or_said_of_others_stays_where_it_was() {
        for text in [
            "I lived in Cork.",
            "I used to live in Cork",
            "I just lived in Cork.",
            "I'll live in Cork.",
            "Ill live in Cork",
            "I'd love to live in Rome",
            "I live in Cork until Friday",
            "I don't live in Oslo any more",
            "I no longer live in Oslo",
            "I want to live in Lisbon",
            "I'm going to live in Lisbon",
            "I might live in Rome",
            "I can't live without coffee",
            "I've lived in Rome",
            "I've never lived in Rome",
            "I live for music",
            "Ann lives in Oslo, I think",
            "My friends live in Oslo",
            "My neighbours live in Cork",
            "My ex lives in Oslo",
            "My sister lives in Cork. I like it",
            "I've got a flat and live in Cork",
            "If I live in Cork I need a car",
            "Do I live in Cork?",
        ] {
            assert!(!comes_forward(JULY, text), "{text}");
        }
        let later = ("Bruno", "2025-10-17", "I live in Graz", NEAR);
        assert_eq!(first(JULY, &[STORM, later]), STORM.2);
        for text in ["I quit my job", "I taught my job", "My boss is ill", "My boss has been ill since May"] {
            for asks in ["Who was boss in July 2025?", "What was job in July 2025?"] {
                assert!(!comes_forward(asks, text), "{text}");
            }
        }
    }

    #[test]
    fn an_answer_is_not_passed_over() {
        for (who, text) in [
            ("Ann", "Bruno lives with us in Turin now"),
            ("Ann", "I helped Bruno move to Turin"),
            ("Ann", "we live together"),
            ("Bruno", "Lived out of a suitcase for weeks"),
            ("Bruno", "moved again"),
            ("Bruno", "loving it in Turin"),
        ] {
            let told = (who, "2025-09-09", text, FAR);
            assert_eq!(first("Where did live in September 2025?", &[told, CORK]), text);
        }
        let near = ("Bruno", "2025-07-09", "the rent is killing me", 0.5);
        assert_eq!(first(JULY, &[near, CORK]), near.2);
    }

    #[test]
    fn a_question_about_what_happened_keeps_its_order() {
        let habits = ["I travel a lot", "I read books", "I live in Cork", "I work as a nurse", "My boss is Mrs Tan"];
        for asks in [
            "Where did I travel in July 2025?",
            "Which books did I read in July 2025?",
            "What did I work on in July 2025?",
            "Where did I drive to in July 2025?",
            "What did my boss say in July 2025?",
            "What was my boss doing in July 2025?",
            "Where did sister live in July 2025?",
            "Where did live in Cork in July 2025?",
            "Where did live on 9 July 2025?",
            "How was my boss in July 2025?",
        ] {
            assert!(!habits.iter().any(|text| comes_forward(asks, text)), "{asks}");
        }
    }
}
