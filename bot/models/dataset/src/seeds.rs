//! Parses the seeds and templates in `seeds/`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const FACTS: &str = include_str!("../seeds/facts.txt");
const SLOTS: &str = include_str!("../seeds/slots.txt");
const OF_ITSELF: &str = include_str!("../seeds/of_itself.txt");

/// One kind of fact that people tell.
#[derive(Debug, Default)]
pub(crate) struct Fact {
    pub(crate) kind: &'static str,
    pub(crate) stated: Vec<&'static str>,
    pub(crate) questions: Vec<&'static str>,
    /// Questions that are close, but not answered by the fact.
    pub(crate) near: Vec<&'static str>,
    /// The plain answer, without a capital or a full stop.
    pub(crate) answer: &'static str,
    /// The subject of the question, as a noun.
    pub(crate) about: &'static str,
    /// The answer about somebody else, if it cannot be derived from `answer`.
    pub(crate) of_other: Option<&'static str>,
    /// Direct reactions to the statement.
    pub(crate) heard: Vec<&'static str>,
    /// True if no [`crate::Kind::Claim`] example uses this fact.
    pub(crate) not_read: bool,
}

/// A message and good replies to it.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) said: &'static str,
    pub(crate) answers: Vec<&'static str>,
}

/// All seeds of the training examples.
#[derive(Debug)]
pub(crate) struct Seeds {
    pub(crate) facts: Vec<Fact>,
    pub(crate) slots: BTreeMap<&'static str, Vec<&'static str>>,
    pub(crate) talk: Vec<Exchange>,
    pub(crate) scenes: Vec<Exchange>,
    pub(crate) unknown: Vec<&'static str>,
    pub(crate) unknown_areza: Vec<&'static str>,
    pub(crate) openers_areza: Vec<&'static str>,
    pub(crate) answers: Vec<&'static str>,
    pub(crate) heard: Vec<&'static str>,
    /// Dreams and diary entries of the persona.
    pub(crate) dreams: Vec<&'static str>,
    pub(crate) diary: Vec<&'static str>,
    /// Questions for dreams and diary entries, and replies if there are none.
    pub(crate) dream_questions: Vec<&'static str>,
    pub(crate) diary_questions: Vec<&'static str>,
    pub(crate) no_dream: Vec<&'static str>,
    pub(crate) no_diary: Vec<&'static str>,
    pub(crate) chatter: Vec<&'static str>,
    /// Prose of many kinds, one passage per line.
    pub(crate) plain: Vec<&'static str>,
    /// Prose passages that are never training examples.
    pub(crate) held_out: Vec<&'static str>,
    /// Names and briefs.
    pub(crate) personas: Vec<(&'static str, &'static str)>,
}

/// The parsed seeds.
pub(crate) static SEEDS: LazyLock<Seeds> = LazyLock::new(|| Seeds {
    facts: facts(),
    slots: lines(SLOTS)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, list)| (name, list.split(", ").collect()))
        .collect(),
    talk: exchanges(include_str!("../seeds/talk.txt")),
    scenes: exchanges(include_str!("../seeds/scenes_areza.txt")),
    unknown: lines(include_str!("../seeds/unknown.txt")).collect(),
    unknown_areza: lines(include_str!("../seeds/unknown_areza.txt")).collect(),
    openers_areza: lines(include_str!("../seeds/openers_areza.txt")).collect(),
    answers: lines(include_str!("../seeds/answers.txt")).collect(),
    heard: lines(include_str!("../seeds/heard.txt")).collect(),
    dreams: marked(OF_ITSELF, "WD").collect(),
    diary: marked(OF_ITSELF, "WJ").collect(),
    dream_questions: marked(OF_ITSELF, "D").collect(),
    diary_questions: marked(OF_ITSELF, "J").collect(),
    no_dream: marked(OF_ITSELF, "ND").collect(),
    no_diary: marked(OF_ITSELF, "NJ").collect(),
    chatter: lines(include_str!("../seeds/chatter.txt")).collect(),
    plain: lines(include_str!("../seeds/plain.txt")).collect(),
    held_out: lines(include_str!("../seeds/held_out.txt")).collect(),
    personas: lines(include_str!("../seeds/personas.txt")).filter_map(|line| line.split_once(": ")).collect(),
});

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// Returns the lines that begin with a mark, without the mark.
fn marked(text: &'static str, mark: &'static str) -> impl Iterator<Item = &'static str> {
    lines(text).filter_map(|line| line.split_once(' ')).filter(move |(it, _)| *it == mark).map(|(_, text)| text)
}

fn facts() -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for line in lines(FACTS) {
        let (mark, text) = line.split_once(' ').unwrap_or((line, ""));
        if mark == "=" {
            facts.push(Fact { kind: text, ..Fact::default() });
        }
        let Some(fact) = facts.last_mut() else { continue };
        match mark {
            "T" => fact.stated.push(text),
            "Q" => fact.questions.push(text),
            "N" => fact.near.push(text),
            "Y" => fact.answer = text,
            "S" => fact.about = text,
            "R" => fact.of_other = Some(text),
            "H" => fact.heard.push(text),
            "X" => fact.not_read = true,
            _ => {}
        }
    }
    facts
}

fn exchanges(text: &'static str) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for line in lines(text) {
        match line.split_once(' ') {
            Some(("U", said)) => exchanges.push(Exchange { said, answers: Vec::new() }),
            Some(("A", answer)) => exchanges.last_mut().into_iter().for_each(|last| last.answers.push(answer)),
            _ => {}
        }
    }
    exchanges
}

/// A kind of remark that people make about many things.
#[derive(Debug, Default)]
pub(crate) struct Saying {
    pub(crate) name: &'static str,
    /// The words for its blanks. They take precedence over the common ones.
    pub(crate) words: BTreeMap<&'static str, Vec<&'static str>>,
    pub(crate) stated: Vec<&'static str>,
    /// The subject, as said to the person who makes the remark.
    pub(crate) about: &'static str,
    pub(crate) value: &'static str,
    /// Later questions about it; may be empty.
    pub(crate) questions: Vec<&'static str>,
    /// The plain answer, without a capital or a full stop.
    pub(crate) answer: &'static str,
    /// Things that no question is about.
    pub(crate) off_topic: Vec<&'static str>,
}

/// The remarks that people make in passing.
pub(crate) static SAYINGS: LazyLock<Vec<Saying>> = LazyLock::new(|| {
    let mut all: Vec<Saying> = Vec::new();
    for line in lines(include_str!("../seeds/claims.txt")) {
        let Some((mark, text)) = line.split_once(' ') else { continue };
        if mark == "=" {
            all.push(Saying { name: text, ..Saying::default() });
        }
        let Some(saying) = all.last_mut() else { continue };
        match mark {
            "W" => saying.words.extend(text.split_once(": ").map(|(name, list)| (name, list.split(", ").collect()))),
            "T" => saying.stated.push(text),
            "S" => saying.about = text,
            "V" => saying.value = text,
            "Q" => saying.questions.push(text),
            "Y" => saying.answer = text,
            "X" => saying.off_topic = text.split(", ").collect(),
            _ => {}
        }
    }
    all
});

/// A text that a persona writes between messages.
#[derive(Debug, Default)]
pub(crate) struct Composition {
    pub(crate) kind: &'static str,
    /// Speakers and their messages, with `{a}` and `{b}` for people and `{p}` for the persona.
    pub(crate) lines: Vec<(&'static str, &'static str)>,
    pub(crate) text: &'static str,
}

/// The texts that personas write.
pub(crate) static COMPOSITIONS: LazyLock<Vec<Composition>> = LazyLock::new(|| {
    let mut all: Vec<Composition> = Vec::new();
    for line in lines(include_str!("../seeds/writings.txt")) {
        match (line.split_once(' '), all.last_mut()) {
            (Some(("=", kind)), _) => all.push(Composition { kind, ..Composition::default() }),
            (Some(("L", said)), Some(last)) => last.lines.extend(said.split_once(": ")),
            (Some(("A", text)), Some(last)) => last.text = text,
            _ => {}
        }
    }
    all
});
