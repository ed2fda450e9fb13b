//! The rules by which `azera eval talk` judges a reply. Each is plain text matching; `bot/app/eval/TALK.md` explains
//! them.

use std::collections::HashSet;

use azera_personas::Persona;
use serde::Deserialize;

use super::talk_language::is_in;
use super::talk_phrases::{
    CLAIMS_OF_MEMORY, DECLINES, EXAMPLE_DETAILS, EXAMPLE_PERSON, FROM_OUTSIDE, MADE_BY, MAKERS, MODEL_NAMES,
    MODEL_WORDS, NOT_KNOWN, TEMPLATE_MARKS,
};

/// A rule that a reply can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The persona speaks as itself, and not as the person or as its model.
    Role,
    /// The reply is neither the persona's description nor the person's own words.
    SaidBack,
    /// A question is answered, or the reply says shortly that it cannot.
    Answered,
    /// No sentence or run of words repeats.
    Loop,
    /// The reply claims no memory that does not exist.
    Memory,
    /// The reply is in the person's language.
    Language,
    /// The length suits the occasion.
    Length,
    /// The reply ends where a sentence does.
    Whole,
}

impl Rule {
    /// All rules, in the order of the report.
    pub const ALL: [Self; 8] = [
        Self::Role,
        Self::SaidBack,
        Self::Answered,
        Self::Loop,
        Self::Memory,
        Self::Language,
        Self::Length,
        Self::Whole,
    ];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::SaidBack => "said back",
            Self::Answered => "answered",
            Self::Loop => "loop",
            Self::Memory => "memory",
            Self::Language => "language",
            Self::Length => "length",
            Self::Whole => "whole",
        }
    }
}

/// The kind of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    SmallTalk,
    Telling,
    Question,
    Sum,
    Recall,
    Unknown,
    Itself,
    Story,
    Poem,
    Comfort,
    Scene,
}

impl Kind {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::SmallTalk => "small talk",
            Self::Telling => "telling",
            Self::Question => "question",
            Self::Sum => "sum",
            Self::Recall => "recall",
            Self::Unknown => "unknown",
            Self::Itself => "itself",
            Self::Story => "story",
            Self::Poem => "poem",
            Self::Comfort => "comfort",
            Self::Scene => "scene",
        }
    }

    /// Returns the least and the most words of the last reply.
    fn words(self) -> (usize, usize) {
        match self {
            Self::SmallTalk | Self::Recall | Self::Unknown => (1, 70),
            Self::Telling | Self::Itself => (2, 90),
            Self::Question | Self::Sum => (1, 120),
            Self::Comfort => (5, 120),
            Self::Scene => (12, 170),
            Self::Poem => (12, 200),
            Self::Story => (40, 350),
        }
    }

    /// True if a model may say that it cannot do this.
    fn may_decline(self) -> bool {
        matches!(self, Self::Question | Self::Sum | Self::Story | Self::Poem)
    }

    /// True if the person has told nothing that a reply could refer to.
    fn has_no_past(self) -> bool {
        !matches!(self, Self::Telling | Self::Recall)
    }
}

/// What a conversation asks of its replies.
#[derive(Debug, Clone)]
pub struct Judged<'a> {
    pub kind: Kind,
    pub language: &'a str,
    /// Everything the person said up to this reply.
    pub said: &'a [String],
    /// What the persona replied before.
    pub replied: &'a [String],
    /// The person's name.
    pub person: &'a str,
    /// Words of which the last reply must contain one; empty if anything will do.
    pub answer: &'a [String],
    /// True for the reply to the last message.
    pub is_last: bool,
}

/// The most words of a reply that says shortly what it cannot do.
const DECLINE_WORDS: usize = 30;

/// A run of this many words from the persona's description is said back.
const PERSONA_RUN: usize = 8;

/// A run of this many words from the person's messages is said back, if it makes up most of the reply.
const PERSON_RUN: usize = 5;

/// A run of this many words must not occur twice in a reply.
const LOOP_RUN: usize = 8;

/// A text of at least this many lines may be a poem or a list, in which a line of at most [`VERSE_WORDS`] ends as it likes.
const VERSE_LINES: usize = 4;

/// See [`VERSE_LINES`].
const VERSE_WORDS: usize = 12;

/// A reply of at most this many words needs no mark at its end.
const SHORT_WORDS: usize = 12;

/// A sentence of at least this many words must not occur twice in a reply.
const LOOP_SENTENCE: usize = 4;

/// Returns the rules that a reply breaks.
pub fn broken_rules(judged: &Judged<'_>, persona: &Persona, reply: &str) -> Vec<Rule> {
    let text = plain(reply);
    let reply_words = words(&text);
    let declined = is_declined(judged, &text);
    let breaks = |rule: Rule| match rule {
        Rule::Role => !keeps_role(judged, persona, &text),
        Rule::SaidBack => says_back(judged, persona, &reply_words),
        Rule::Answered => judged.is_last && !declined && !answers(judged, &text),
        Rule::Loop => loops(&text, &reply_words) || says_again(judged, &reply_words),
        Rule::Memory => claims_memory(judged, &text),
        Rule::Language => !is_in(judged.language, &text),
        Rule::Length => {
            let (least, most) = if judged.is_last { judged.kind.words() } else { (1, 170) };
            reply_words.len() > most || (reply_words.len() < least && !declined)
        }
        Rule::Whole => is_cut(reply),
    };
    Rule::ALL.into_iter().filter(|rule| breaks(*rule)).collect()
}

/// Returns true if the reply says shortly that it cannot do what was asked, and does not answer it.
pub fn is_declined(judged: &Judged<'_>, text: &str) -> bool {
    let text = plain(text);
    judged.is_last
        && judged.kind.may_decline()
        && words(&text).len() <= DECLINE_WORDS
        && DECLINES.iter().any(|phrase| text.contains(phrase))
}

fn answers(judged: &Judged<'_>, text: &str) -> bool {
    if judged.kind == Kind::Unknown {
        return NOT_KNOWN.iter().any(|phrase| text.contains(phrase));
    }
    judged.answer.is_empty() || judged.answer.iter().any(|key| contains_words(text, &plain(key)))
}

fn keeps_role(judged: &Judged<'_>, persona: &Persona, text: &str) -> bool {
    let (person, name) = (plain(judged.person), plain(&persona.name));
    let outside = FROM_OUTSIDE.iter().any(|start| {
        [&name, "protag", "an ai companion", "a dungeon master"]
            .iter()
            .any(|who| contains_words(text, &format!("{start} {who}")))
    });
    let as_person = [format!("i'm {person}"), format!("i am {person}"), format!("my name is {person}")];
    let as_person = as_person.iter().any(|claim| contains_words(text, claim));
    let said = plain(&judged.said.join(" "));
    let as_model = MODEL_NAMES.iter().any(|model| text.contains(model) && !said.contains(model))
        || MODEL_WORDS.iter().any(|model| contains_words(text, model) && !contains_words(&said, model))
        || MAKERS.iter().any(|maker| MADE_BY.iter().any(|by| contains_words(text, &format!("{by} {maker}"))));
    let speaker = text.starts_with(&format!("{person}:")) || text.starts_with("user:");
    let leaks = text.contains("protag") || TEMPLATE_MARKS.iter().any(|mark| text.contains(mark));
    !(outside || as_person || as_model || speaker || leaks)
}

/// True for a run of the persona's description, or if most of the reply is a run of the person's words.
fn says_back(judged: &Judged<'_>, persona: &Persona, reply: &[&str]) -> bool {
    let described = plain(&description(persona));
    if longest_run(reply, &words(&described)) >= PERSONA_RUN {
        return true;
    }
    // An answer from what the person told is in the person's words.
    let is_answer = judged.kind == Kind::Recall && judged.is_last;
    !is_answer
        && judged.said.iter().any(|message| {
            let message = plain(message);
            let message = words(&message);
            let run = longest_run(reply, &message);
            run >= PERSON_RUN.min(message.len().max(3)) && run * 10 >= reply.len() * 7
        })
}

/// The persona's file up to its examples, whose replies may be given again.
fn description(persona: &Persona) -> String {
    let markdown = persona.to_markdown();
    let end = markdown.find("## Example interaction").unwrap_or(markdown.len());
    markdown.get(..end).unwrap_or_default().to_owned()
}

fn loops(text: &str, reply: &[&str]) -> bool {
    let mut sentences = HashSet::new();
    let repeats_sentence = text
        .split(['.', '!', '?', '\n'])
        .map(|sentence| words(sentence).join(" "))
        .filter(|sentence| sentence.split(' ').count() >= LOOP_SENTENCE)
        .any(|sentence| !sentences.insert(sentence));
    let mut runs = HashSet::new();
    repeats_sentence || reply.windows(LOOP_RUN).any(|run| !runs.insert(run))
}

/// True if the persona gives a reply of some length that it gave before.
fn says_again(judged: &Judged<'_>, reply: &[&str]) -> bool {
    let same = |before: &String| words(&plain(before)) == reply;
    reply.len() >= LOOP_SENTENCE && judged.replied.iter().any(same)
}

/// True if the reply stops within a sentence. A line of a poem or a list may end without a mark, and so may a few words.
fn is_cut(reply: &str) -> bool {
    let text = reply.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '"' | '\'' | ')'));
    let text = text.trim_end_matches(['\u{201d}', '\u{bb}', '\u{ab}']);
    let last_line = text.lines().next_back().unwrap_or_default();
    let ends = last_line.ends_with(['.', '!', '?', '\u{2026}', ':', ';', ',', '|', '~', '\u{2014}'])
        || last_line.chars().next_back().is_some_and(|c| !c.is_alphanumeric() && !c.is_ascii());
    // A comma or a word in the middle of prose is a cut; the end of a verse is not.
    let is_verse = text.lines().filter(|line| !line.trim().is_empty()).count() >= VERSE_LINES
        && words(last_line).len() <= VERSE_WORDS;
    let is_short = words(text).len() <= SHORT_WORDS;
    let open = last_line.ends_with([',', ';', ':', '\u{2014}']);
    let may_be_open = is_verse || (is_short && !open);
    !may_be_open && (!ends || open)
}

fn claims_memory(judged: &Judged<'_>, text: &str) -> bool {
    let said = plain(&judged.said.join(" "));
    let invented = |detail: &str| contains_words(text, detail) && !contains_words(&said, detail);
    // A story may be about anybody.
    let is_told = matches!(judged.kind, Kind::Story | Kind::Poem | Kind::Scene);
    if EXAMPLE_DETAILS.iter().any(|detail| invented(detail)) || (!is_told && invented(EXAMPLE_PERSON)) {
        return true;
    }
    judged.kind.has_no_past() && judged.said.len() == 1 && CLAIMS_OF_MEMORY.iter().any(|claim| text.contains(claim))
}

/// Lower case, straight apostrophes, and no marks of emphasis.
fn plain(text: &str) -> String {
    text.to_lowercase().replace(['\u{2019}', '\u{2018}'], "'").replace(['*', '_', '`'], "")
}

/// The words of a plain text, without punctuation around them.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .collect()
}

/// True if the words of `part` stand in `text` one after the other.
fn contains_words(text: &str, part: &str) -> bool {
    let (text, part) = (split_letters(text), split_letters(part));
    !part.is_empty() && text.windows(part.len()).any(|run| run == part)
}

fn split_letters(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect()
}

/// The length of the longest run of words that both have.
fn longest_run(a: &[&str], b: &[&str]) -> usize {
    let mut longest = 0;
    let mut before = vec![0_usize; b.len() + 1];
    for word in a {
        let mut now = vec![0_usize; b.len() + 1];
        for (index, other) in b.iter().enumerate() {
            if word == other {
                let run = before.get(index).copied().unwrap_or(0) + 1;
                longest = longest.max(run);
                if let Some(slot) = now.get_mut(index + 1) {
                    *slot = run;
                }
            }
        }
        before = now;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(kind: Kind, said: &str, answer: &[&str], reply: &str) -> Vec<Rule> {
        let said = [said.to_owned()];
        let answer: Vec<String> = answer.iter().map(|key| (*key).to_owned()).collect();
        let judged =
            Judged { kind, language: "en", said: &said, person: "Robin", replied: &[], answer: &answer, is_last: true };
        broken_rules(&judged, &azera_personas::built_in("azera").unwrap(), reply)
    }

    #[test]
    fn the_role_is_kept() {
        let check = |reply: &str, want: &[Rule]| assert_eq!(judge(Kind::SmallTalk, "Hello!", &[], reply), want);
        check("Hello, and welcome back to the desk.", &[]);
        check("You are Protag, a person like any other.", &[Rule::Role]);
        check("You are Azera.", &[Rule::Role]);
        check("I'm Robin, and I am well.", &[Rule::Role]);
        check("Robin: I am well.", &[Rule::Role]);
        check("I am Qwen, made to help you.", &[Rule::Role]);
        check("I was developed by Anthropic to be helpful.", &[Rule::Role]);
        check("I'm a large language model, trained by Google.", &[Rule::Role]);
        check("I was created by Microsoft.", &[Rule::Role]);
        check("I am Claude, and I am well.", &[Rule::Role]);
        check("I run on Qwen2.5, if you must know.", &[Rule::Role]);
        check("[INST] Hello there, friend.", &[Rule::Role]);
        check("Hello there, friend.<end_of_turn>", &[Rule::Role]);
        check("That was very meta of you, and I like apple pie.", &[]);
    }

    #[test]
    fn nothing_is_said_back() {
        let said = "I just adopted a cat called Pepper.";
        let check = |reply: &str, want: &[Rule]| assert_eq!(judge(Kind::Telling, said, &[], reply), want);
        check("Congratulations! How is Pepper finding the new home?", &[]);
        check("I just adopted a cat called Pepper.", &[Rule::SaidBack]);
        check(
            "Wonderful. You think like a logistician: what is known, what is missing, what comes next.",
            &[Rule::SaidBack],
        );
    }

    #[test]
    fn a_sum_is_right_or_shortly_declined() {
        let check =
            |reply: &str, want: &[Rule]| assert_eq!(judge(Kind::Sum, "What is 12 times 8?", &["96"], reply), want);
        check("12 × 8 = **96**.", &[]);
        check("That is a lot, my friend.", &[Rule::Answered]);
        check("It is 960.", &[Rule::Answered]);
        check("I can't do sums well, sorry.", &[]);
    }

    #[test]
    fn what_was_never_told_is_not_known() {
        let check =
            |reply: &str, want: &[Rule]| assert_eq!(judge(Kind::Unknown, "What is my aunt's name?", &[], reply), want);
        check("I don\u{2019}t know that yet.", &[]);
        check("Your aunt is called Jo.", &[Rule::Answered]);
        check("You told me her name is Miso.", &[Rule::Answered, Rule::Memory]);
        check("I don't know that yet. Is it Sam's sister Ines?", &[Rule::Memory]);
        check("I don't know that yet. You fixed the squeaky kitchen door, though.", &[Rule::Memory]);
    }

    #[test]
    fn a_reply_is_not_given_twice_and_what_the_person_named_may_be_named() {
        let said = ["I like Claude Monet and Gemma Arterton.".to_owned(), "What do you think?".to_owned()];
        let replied = ["Both have an eye for light, each in their own way.".to_owned()];
        let judge = |reply: &str| {
            let judged = Judged {
                kind: Kind::SmallTalk,
                language: "en",
                said: &said,
                replied: &replied,
                person: "Robin",
                answer: &[],
                is_last: true,
            };
            broken_rules(&judged, &azera_personas::built_in("azera").unwrap(), reply)
        };
        assert_eq!(judge("Claude painted the lilies best, I think."), []);
        assert_eq!(judge("Both have an eye for light, each in their own way."), [Rule::Loop]);
    }

    #[test]
    fn a_reply_ends_where_a_sentence_does() {
        #[track_caller]
        fn check(reply: &str, is_cut_off: bool) {
            assert_eq!(is_cut(reply), is_cut_off, "{reply}");
        }
        check("The keeper lit the lamp, and the boats came home.", false);
        check("The keeper lit the lamp, and then the wind turned and the boats came ho", true);
        check("The keeper lit the lamp, and then the wind turned and the boats came home,", true);
        check("The keeper lit the lamp, and then she said: \"The wind has turned, and the boats are home.\"", false);
        check("*The keeper lit the lamp, and the wind turned, and the boats came home again.*", false);
        check("The keeper lit the lamp for you, and I am glad that you came by today \u{1f98a}", false);
        check("Of course, Robin", false);
        check("The lamp is lit\nthe wind has turned\nthe boats are home\nand so are you", false);
        check("Take these:\n1. the lamp\n2. the rope\n3. the old map", false);
        check("First,", true);
    }

    #[test]
    fn stories_are_long_and_do_not_loop() {
        let check = |reply: &str, want: &[Rule]| assert_eq!(judge(Kind::Story, "A story!", &[], reply), want);
        let once =
            "The keeper climbed the stairs and lit the lamp, for the storm had come early and the boats were out.";
        check("That is a good one.", &[Rule::Length]);
        check(&format!("{once} {once} {once}"), &[Rule::Loop]);
        check("I can't tell a whole story well.", &[]);
    }

    #[test]
    fn the_examples_details_are_those_of_the_built_in_personas() {
        let all: String = ["azera", "areza"]
            .iter()
            .map(|id| azera_personas::built_in(id).unwrap().to_markdown().to_lowercase())
            .collect();
        for detail in EXAMPLE_DETAILS {
            assert!(all.contains(detail), "{detail} is in no example");
        }
    }
}
