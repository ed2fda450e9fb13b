//! Parses a question: the words to look up, the text to embed, and the speaker, the time and the event that it names.

use std::collections::HashSet;
use std::sync::LazyLock;

use azera_types::{Author, PersonId, Text, Timestamp};

use crate::domains::Recall;
use crate::rows::MemoryRow;
use crate::when::{self, Calendar, Era, EventClause, Relation, TimeSpan};
use crate::words::{fold, lookup_words, spaced_words};
use crate::{Error, ReadScope};

/// Most words of a question that are looked up among the speakers' names.
const MAX_NAME_LOOKUPS: usize = 64;

/// Question words and fillers, which are useless for a lookup. They are used in addition to the index's own stop words.
const FILLERS: &str = "about also am any been being both can could d did do does done during each from had has have \
    having he her hers him his how i its just ll m may me might mine must my only our ours own re s same shall she \
    should so some t than theirs them too us ve very we were what when where which who whom whose why would you your \
    yours";

static FILLER_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| FILLERS.split_whitespace().collect());

/// Words about speech, and generic nouns. They are looked up only when nothing else is left.
const GENERIC: &str = "according another describe kind mention name one ones recently said say says sort tell thing \
    things told type way";

/// Words with which people ask about themselves.
const FIRST_PERSON: [&str; 5] = ["i", "me", "my", "mine", "myself"];

/// A name that is a common verb, too. It counts as a name only where the words around it show a person.
const NAME_AND_VERB: &str = "may";

/// Words of questions about the past.
const PAST: [&str; 4] = ["did", "was", "were", "had"];

/// Words of people who speak of themselves.
pub(super) const OWN_WORDS: [&str; 8] = ["i", "my", "me", "mine", "we", "our", "us", "im"];

/// Words of questions about a conversation: `what did we talk about`.
const TALK: &str = "chat chatted chatting conversation conversations discuss discussed discussing discussion reden geredet \
    gesprochen sprachen besprochen unterhalten unterhielten spoke speak spoken speaking talk talked talks talking topic \
    topics";

/// Words of questions about what is open: `what is still open with Ann`.
const OPEN: &str = "open unfinished unsettled pending offen ausstehend";

/// Small words beside those.
const BESIDE_TALK: &str = "a about again all an and are at by everything for i in is it last left like me of on our \
    please remember still that the then there things this time to together today tonight us was we were what which who \
    with you alles am das dem den der die du es fur gibt haben habt hat ich im ist mal mit mir noch uns und vom von war \
    was wir woruber uber";

/// Phrases of questions about what was known at a time: `what did you know in June`. `Did anyone know` and `did we know
/// Ann` ask for something else.
const KNEW: &str = "did you know, did you already know, had you known, what you knew, what did we know, \
    what did we already know, what we knew, what had we known, what was known, wusstest du, hast du gewusst, \
    was wussten wir, was haben wir gewusst, was war bekannt, savais tu, tu savais, sabias tu, que sabias, sabias de, \
    sabias sobre, cosa sapevi, sapevi di, wist je";

/// Words before a clause: `did you know that I lived in Rome in 2015` names the time of that, and not of knowing.
const CLAUSE_OF_KNOWING: &str = "that dass dat que qu che ob i he she we they ich ik";

/// First words of a request that needs no question mark.
const TELL: [&str; 3] = ["tell", "show", "list"];

/// What a question about conversations asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedTalk {
    /// What was said.
    Said,
    /// What was left open.
    Open,
}

/// The speaker whose words a question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// Anyone with this name, folded.
    Named(String),
    /// The person who asks.
    Asker(PersonId),
}

impl Speaker {
    pub(crate) fn said(&self, author: &Author) -> bool {
        match self {
            Self::Named(name) => folded_names(author.name()).any(|token| token == *name),
            Self::Asker(person) => author.person() == Some(person),
        }
    }
}

/// A parsed question.
#[derive(Clone, PartialEq)]
pub struct Question {
    /// The text to embed: the question without the speakers' names, because a name attracts every turn of that speaker.
    pub embed: String,
    /// The words to look up.
    pub words: String,
    /// The speaker whose words are asked for, if it is exactly one.
    pub speaker: Option<Speaker>,
    /// The time that the question names.
    pub time: Option<TimeSpan>,
    /// True if that time counts from now, such as `last weekend`.
    pub is_relative: bool,
    /// The event that the question names in place of a date.
    pub event: Option<AskedEvent>,
    /// Whether the question asks for what holds now or for what held before.
    pub era: Era,
    /// True if the question is in the present tense, as far as its words show.
    pub is_present: bool,
    /// The moment after which nothing counts, if it asks what was known at a time: `what did you know in June?`
    pub known_by: Option<Timestamp>,
    /// What it asks for, if it is about conversations and names nothing that they were about.
    pub talk: Option<AskedTalk>,
    /// Where and when the question is asked.
    pub calendar: Calendar,
}

/// An event that serves as a date in a question.
#[derive(Clone, PartialEq, Eq)]
pub struct AskedEvent {
    /// The text to embed.
    pub embed: String,
    /// The words to look up.
    pub words: String,
    /// On which side of the event the question asks.
    pub relation: Relation,
}

/// Leaves out what people said.
impl std::fmt::Debug for AskedEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AskedEvent[{} bytes]", self.embed.len())
    }
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Question[{} bytes]", self.embed.len())
    }
}

impl Recall<'_> {
    /// Parses a question to `persona`, whose own name is ignored. A word counts as a speaker's name only if a speaker
    /// of that name said something that `read_scope` allows.
    pub fn question(
        self,
        read_scope: &ReadScope,
        text: &Text,
        asker: &PersonId,
        persona: &str,
        calendar: &Calendar,
    ) -> Result<Question, Error> {
        let called: HashSet<String> = folded_names(persona).collect();
        let mut named: Vec<String> = Vec::new();
        for (written, folded) in spaced_words(text).take(MAX_NAME_LOOKUPS) {
            let is_common = folded == NAME_AND_VERB && !when::shows_person(text, NAME_AND_VERB);
            if is_common || called.contains(&folded) || named.contains(&folded) {
                continue;
            }
            if self.0.memories().is_a_speaker(read_scope, &folded)?
                || written != folded && self.0.memories().is_a_speaker(read_scope, &written)?
            {
                named.push(folded);
            }
        }
        let dated = Dated::new(text, calendar, &named);
        let asked: Vec<String> = tokens(&dated.rest).collect();
        // A name inside a time or an event is not the speaker's: `in April`, `before Ben moved`.
        let all: HashSet<String> = named.iter().cloned().chain(called).collect();
        named.retain(|name| asked.contains(name));
        let speaker = match named.as_slice() {
            [one] => Some(Speaker::Named(one.clone())),
            [] if asked.iter().any(|token| FIRST_PERSON.contains(&token.as_str())) => {
                Some(Speaker::Asker(asker.clone()))
            }
            _ => None,
        };
        let event = dated.event.as_ref().map(|event| AskedEvent {
            embed: without_names(&event.text, &all),
            words: words_to_look_up(&event.text, &event.text, &all),
            relation: event.relation,
        });
        // A time of knowing is no time of what was known.
        let asked_by = dated.time.as_ref().filter(|_| asks_what_was_known(text, &dated.rest));
        let known_by = asked_by.and_then(TimeSpan::known_by);
        Ok(Question {
            embed: without_names(text, &all),
            words: match known_by {
                Some(_) => words_to_look_up(&dated.rest, text, &all),
                None => dated.words(text, &all),
            },
            speaker,
            time: dated.time.filter(|_| known_by.is_none()),
            known_by,
            is_relative: dated.is_relative,
            event,
            era: when::era(text),
            is_present: is_present(text),
            talk: asked_talk(&dated.rest, &all).filter(|_| seems_to_ask(text)),
            calendar: calendar.clone(),
        })
    }
}

/// The time of a question, and the question without it.
struct Dated {
    time: Option<TimeSpan>,
    event: Option<EventClause>,
    rest: String,
    /// True if the time counts from now, or is an event. The answer may name it in the same words.
    is_relative: bool,
}

impl Dated {
    fn new(text: &str, calendar: &Calendar, named: &[String]) -> Self {
        let is_person = |word: &str| named.iter().any(|name| name == word);
        let found = when::find(text, calendar, &is_person);
        let clause = when::event_clause(text);
        match (found, clause) {
            (Some(found), Some((clause, rest)))
                if text.get(found.range.clone()).is_some_and(|date| clause.text.contains(date)) =>
            {
                // `Before we moved in March` names the date of its event.
                let time = Some(found.span.beside(clause.relation));
                Self { time, event: None, rest, is_relative: true }
            }
            (Some(found), _) => {
                let (before, after) = (text.get(..found.range.start), text.get(found.range.end..));
                let rest = format!("{} {}", before.unwrap_or_default(), after.unwrap_or_default());
                Self { time: Some(found.span), event: None, rest, is_relative: found.is_relative }
            }
            (None, Some((clause, rest))) => Self { time: None, event: Some(clause), rest, is_relative: true },
            (None, None) => Self { time: None, event: None, rest: text.to_owned(), is_relative: false },
        }
    }

    /// Returns the words to look up. The words of a date are none. Those of `last weekend` are, next to others: the
    /// answer may contain them.
    fn words(&self, text: &str, names: &HashSet<String>) -> String {
        let rest = words_to_look_up(&self.rest, text, names);
        if self.is_relative && !rest.is_empty() { words_to_look_up(text, text, names) } else { rest }
    }
}

/// Returns true for questions about what the persona knew, such as `what did you know about my boat`.
fn asks_what_was_known(text: &str, dateless: &str) -> bool {
    let words: Vec<String> = tokens(dateless).collect();
    let is_told = words.first().is_some_and(|first| TELL.contains(&first.as_str()));
    let is_asked = |place: usize| place == 0 || is_told || seems_to_ask(text);
    let is_found = |phrase: &str| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words.windows(phrase.len()).enumerate().any(|(place, window)| {
            let behind = words.get(place + phrase.len()..).unwrap_or_default();
            let is_joining = |word: &String| CLAUSE_OF_KNOWING.split_whitespace().any(|joining| joining == word);
            // `That` alone stands for what was known.
            let has_clause = behind.len() > 1 && behind.first().is_some_and(is_joining);
            window == phrase.as_slice() && is_asked(place) && !has_clause
        })
    };
    KNEW.split(", ").any(is_found)
}

/// Returns true if a text ends or begins like a question. People leave out question marks in chats.
fn seems_to_ask(text: &str) -> bool {
    let first = tokens(text).next().unwrap_or_default();
    text.contains('?') || ["what", "which", "was", "worüber", "woruber", "wovon"].contains(&first.as_str())
}

/// Returns what a question without its time asks for, if it is about conversations and nothing else.
fn asked_talk(dateless: &str, names: &HashSet<String>) -> Option<AskedTalk> {
    let is_in = |list: &str, word: &String| list.split_whitespace().any(|known| known == word);
    let (mut has_talk, mut has_open) = (false, false);
    for word in tokens(dateless) {
        has_talk |= is_in(TALK, &word);
        has_open |= is_in(OPEN, &word);
        let says_nothing = is_in(TALK, &word) || is_in(OPEN, &word) || is_in(BESIDE_TALK, &word);
        if !says_nothing && !is_filler(&word) && !names.contains(&word) {
            return None;
        }
    }
    let has = |words: &[&str]| tokens(dateless).any(|token| words.contains(&token.as_str()));
    // "Is it still open?" asks for a shop.
    let is_left = has(&["still", "left", "noch", "unfinished"]) && !has(&["it", "you", "es", "du", "ihr"]);
    match (has_open, has_talk) {
        (true, _) => is_left.then_some(AskedTalk::Open),
        (false, true) => Some(AskedTalk::Said),
        (false, false) => None,
    }
}

/// Returns true if the question asks for what holds or held for one speaker, and another one speaks of themselves.
pub(super) fn speaks_of_another(question: &Question, memory: &MemoryRow) -> bool {
    if question.era == Era::Open {
        return false;
    }
    let is_other = question.speaker.as_ref().is_some_and(|speaker| !speaker.said(&memory.author));
    is_other
        && memory.author.person().is_some()
        && tokens(&memory.text).any(|token| OWN_WORDS.contains(&token.as_str()))
}

/// Returns true if a text is a question: it ends in a question mark, apart from a trailing attachment in brackets.
pub(super) fn is_question(text: &str) -> bool {
    let body = match text.trim_end().strip_suffix(']') {
        Some(head) => head.rfind('[').and_then(|at| head.get(..at)).unwrap_or(text),
        None => text,
    };
    body.trim_end().ends_with('?')
}

/// Returns true if a text asks a question in the same words, perhaps after a name and a comma.
pub(super) fn asks_the_same(question: &str, text: &str) -> bool {
    let asked: HashSet<String> = tokens(question).collect();
    let is_same = |said: &str| tokens(said).collect::<HashSet<String>>() == asked;
    let called = text.split_once(',').filter(|(name, _)| tokens(name).count() == 1);
    is_question(question) && (is_same(text) || called.is_some_and(|(_, said)| is_same(said)))
}

/// Returns the words of a text, folded.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = String> + '_ {
    spaced_words(text).map(|(_, folded)| folded)
}

/// Returns the words of a name by which somebody may be called, as written in lower case and folded. Single letters and
/// common words do not count, except that somebody may be called May and nothing else.
pub(crate) fn name_tokens(name: &str) -> impl Iterator<Item = String> + '_ {
    // Older rows of names were split at combining marks.
    let split = name.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty()).map(str::to_lowercase);
    let spelt = spaced_words(name).flat_map(|(written, folded)| [written, folded]);
    let tokens: std::collections::BTreeSet<String> = split.chain(spelt).collect();
    let is_alone = is_name_alone(name);
    tokens.into_iter().filter(move |token| is_alone || is_name(token))
}

/// Returns true if no word of a question is in the past tense.
fn is_present(text: &str) -> bool {
    !tokens(text).any(|token| PAST.contains(&token.as_str()))
}

/// Returns the words of a name by which somebody may be called, folded.
fn folded_names(name: &str) -> impl Iterator<Item = String> + '_ {
    let is_alone = is_name_alone(name);
    tokens(name).filter(move |token| is_alone || is_name(token))
}

fn is_name_alone(name: &str) -> bool {
    name.trim().eq_ignore_ascii_case(NAME_AND_VERB)
}

fn is_name(token: &str) -> bool {
    token.chars().count() > 1 && !is_filler(token)
}

pub(crate) fn is_filler(token: &str) -> bool {
    FILLER_WORDS.contains(token)
}

/// Returns the text without the words in `names` and their possessive endings; the text itself if nothing would be
/// left.
fn without_names(text: &str, names: &HashSet<String>) -> String {
    let retained: Vec<&str> = text
        .split_whitespace()
        .filter(|word| {
            let bare = fold(word.trim_matches(|c: char| !c.is_alphanumeric()));
            let bare = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(&bare);
            !names.contains(bare)
        })
        .collect();
    if retained.is_empty() { text.to_owned() } else { retained.join(" ") }
}

/// Digits from which a number of a date is looked up as a word, too: what looks like a year may be something else.
const YEAR_DIGITS: usize = 4;

/// Returns the words to look up: those of the text without its date, and the long numbers of the whole text.
fn words_to_look_up(dateless: &str, whole: &str, names: &HashSet<String>) -> String {
    let mut rest: Vec<String> = Vec::new();
    let mut telling: Vec<String> = Vec::new();
    let found = lookup_words(dateless);
    let is_long_number =
        |word: &String| word.chars().count() >= YEAR_DIGITS && word.chars().all(|c| c.is_ascii_digit());
    let numbers = lookup_words(whole).words.into_iter().filter(is_long_number);
    for token in found.words.into_iter().chain(numbers) {
        if names.contains(&token) || is_filler(&token) {
            continue;
        }
        let list = if GENERIC.split_whitespace().any(|word| word == token) { &mut telling } else { &mut rest };
        if !list.contains(&token) {
            list.push(token);
        }
    }
    telling.extend(found.generic);
    if rest.is_empty() { telling.join(" ") } else { rest.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_fillers_are_removed() {
        let names = HashSet::from(["caroline".to_owned()]);
        let text = "What did Caroline's sister say, Caroline?";
        assert_eq!(without_names(text, &names), "What did sister say,");
        assert_eq!(words_to_look_up(text, text, &names), "sister");
        let text = "What did Caroline say?";
        assert_eq!(words_to_look_up(text, text, &names), "say");
        assert_eq!(without_names("Caroline?", &names), "Caroline?");
    }

    #[test]
    fn a_number_is_a_word_whether_or_not_it_looks_like_a_year() {
        let look_up = |text: &str| {
            let zone = azera_types::TimeZone::UTC;
            let calendar = Calendar { now: azera_types::Timestamp::UNIX_EPOCH, zone, month_first: false };
            Dated::new(text, &calendar, &[]).words(text, &HashSet::new())
        };
        assert_eq!(look_up("2070"), "2070");
        assert_eq!(look_up("graphics card 2070"), "graphics card 2070");
        assert_eq!(look_up("what is in locker 1999?"), "is in locker 1999");
        assert_eq!(look_up("room 2400"), "room 2400");
    }

    #[test]
    fn a_question_about_a_conversation_names_nothing_else() {
        #[track_caller]
        fn check(text: &str, want: Option<AskedTalk>) {
            assert_eq!(asked_talk(text, &HashSet::from(["ann".to_owned()])), want, "{text}");
        }
        check("What did we talk about?", Some(AskedTalk::Said));
        check("What did you discuss with Ann?", Some(AskedTalk::Said));
        check("Worüber haben wir geredet?", Some(AskedTalk::Said));
        check("What is still open with Ann?", Some(AskedTalk::Open));
        check("Was ist noch offen?", Some(AskedTalk::Open));
        check("What did we say about the boat when we talked?", None);
        check("Is the shop open?", None);
        check("How are you?", None);
        check("When do you open?", None);
        check("Is it still open?", None);
        assert!(!seems_to_ask("Talk to me") && seems_to_ask("what did we talk about yesterday"));
    }

    #[test]
    fn talk_of_what_people_knew_is_no_question_about_knowing() {
        let asks = |text: &str| asks_what_was_known(text, text);
        for text in [
            "What did you know about the boat?",
            "what did you already know about the boat",
            "Tell me what you knew about the boat",
            "What did we know about the boat?",
            "What was known about the boat?",
            "Did you already know that?",
            "Wusstest du von dem Boot?",
            "Was haben wir gewusst?",
            "Que savais-tu du bateau ?",
        ] {
            assert!(asks(text), "{text}");
        }
        for text in [
            "We knew Ben, he was fun",
            "We knew Ben, right?",
            "Did we know Ann?",
            "The pub was known as the Crown",
            "Wist je dat ik in Rome woonde?",
            "Did you know that I lived in Rome?",
            "Did you know I lived in Rome?",
            "Wusstest du, dass ich in Rom gewohnt habe?",
            "I told you what you knew",
        ] {
            assert!(!asks(text), "{text}");
        }
    }

    #[test]
    fn a_question_is_recognised_by_its_end() {
        assert!(is_question("What time is it?"));
        assert!(is_question("Do you like it? [shares a photo of a cat]"));
        assert!(!is_question("Why not. I do."));
        assert!(!is_question("]"));
    }

    #[test]
    fn a_repeated_question_is_known_by_its_words() {
        let repeats = |said| asks_the_same("where do I live?", said);
        assert!(repeats("Where do I live?") && repeats("Azera, where do I live?"));
        assert!(!asks_the_same("when is the party?", "The party is when, Friday?"));
        assert!(!asks_the_same("wedding cake", "Wedding cake?"));
    }

    #[test]
    fn a_filler_is_no_name() {
        assert_eq!(name_tokens("Mine Willow").collect::<Vec<_>>(), ["willow"]);
        assert_eq!(name_tokens("May").collect::<Vec<_>>(), ["may"]);
        assert_eq!(name_tokens("J. R. Smith").collect::<Vec<_>>(), ["smith"]);
    }
}
