//! The seeds and templates in `lessons/`, read.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const FACTS: &str = include_str!("../seeds/facts.txt");
const SLOTS: &str = include_str!("../seeds/slots.txt");
const OF_ITSELF: &str = include_str!("../seeds/of_itself.txt");

/// One kind of thing that people tell.
#[derive(Debug, Default)]
pub(crate) struct Fact {
    pub(crate) kind: &'static str,
    pub(crate) stated: Vec<&'static str>,
    pub(crate) questions: Vec<&'static str>,
    /// Questions beside it.
    pub(crate) near: Vec<&'static str>,
    /// The plain answer, without a capital or a full stop.
    pub(crate) answer: &'static str,
    /// What was asked for, as a noun.
    pub(crate) about: &'static str,
    /// The answer about somebody else, where it cannot be made of the other.
    pub(crate) of_other: Option<&'static str>,
    /// What is said right when it is told.
    pub(crate) heard: Vec<&'static str>,
    /// Whether reading it as JSON is not taught.
    pub(crate) not_read: bool,
}

/// Something said, and good answers to it.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) said: &'static str,
    pub(crate) answers: Vec<&'static str>,
}

/// Everything lessons are drawn from.
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
    /// What the persona dreamt, and what it wrote into its diary.
    pub(crate) dreams: Vec<&'static str>,
    pub(crate) diary: Vec<&'static str>,
    /// How the persona is asked for its dreams and its diary, and what it says when there is none.
    pub(crate) dream_questions: Vec<&'static str>,
    pub(crate) diary_questions: Vec<&'static str>,
    pub(crate) no_dream: Vec<&'static str>,
    pub(crate) no_diary: Vec<&'static str>,
    pub(crate) chatter: Vec<&'static str>,
    /// Prose of many kinds, a passage a line.
    pub(crate) plain: Vec<&'static str>,
    /// Such passages that are no lessons.
    pub(crate) held_out: Vec<&'static str>,
    /// Names and briefs.
    pub(crate) personas: Vec<(&'static str, &'static str)>,
}

/// The seeds.
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

/// The lines that begin with a mark, without it.
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

/// One thing that people say of many.
#[derive(Debug, Default)]
pub(crate) struct Saying {
    pub(crate) name: &'static str,
    /// What its blanks stand for, before those of all.
    pub(crate) words: BTreeMap<&'static str, Vec<&'static str>>,
    pub(crate) stated: Vec<&'static str>,
    /// What it is about, said to the one who says it.
    pub(crate) about: &'static str,
    pub(crate) value: &'static str,
    /// How it is asked for later; empty if it is not.
    pub(crate) questions: Vec<&'static str>,
    /// The plain answer, without a capital or a full stop.
    pub(crate) answer: &'static str,
    /// What it is not asked of.
    pub(crate) off_topic: Vec<&'static str>,
}

/// What people say in passing.
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

/// Something a persona writes between messages.
#[derive(Debug, Default)]
pub(crate) struct Composition {
    pub(crate) kind: &'static str,
    /// Speakers and what they say, with `{a}`, `{b}` for people and `{p}` for the persona.
    pub(crate) lines: Vec<(&'static str, &'static str)>,
    pub(crate) text: &'static str,
}

/// What personas write.
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
