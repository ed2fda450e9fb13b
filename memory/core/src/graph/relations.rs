//! Reads relations between names from the words around them: English patterns with their exact words, and names in one
//! sentence for any language.

use std::ops::Range;

use super::lexicon::{self, Role, Verb};
use super::mentions::Named;
use super::read::EntityKind;
use super::sentences::{Form, Sentence, Token};

/// Confidence of a relation whose names both stand there.
const STATED: f32 = 0.9;

/// Confidence of a relation whose subject is a pronoun.
const BY_PRONOUN: f32 = 0.6;

/// Confidence that two names in one sentence have to do with each other.
const TOGETHER: f32 = 0.3;

/// Names of a sentence between which pairs are noted.
const MAX_PAIRED: usize = 6;

/// Most words between the owner of a role and the role.
const MAX_BESIDE: usize = 2;

/// What whoever sits at the terminal is called, unless they give a name.
const YOU: &str = "You";

/// What a relation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// The object has this role for the subject, such as `sister`.
    Role(&'static str),
    /// These words stand between subject and object, such as `lives in`.
    Verb(&'static str),
    /// Both are names of one thing.
    Same,
    /// Both are names of different things.
    Different,
    /// Both are named in one sentence.
    Together,
}

impl Label {
    /// Returns the relation of a subject to an object in words.
    pub fn phrase(self, subject: &str, object: &str) -> String {
        match self {
            Self::Role(role) => format!("{subject}'s {role} is {object}"),
            Self::Verb(words) => format!("{subject} {words} {object}"),
            Self::Same => format!("{subject} is another name for {object}"),
            Self::Different => format!("{subject} is not {object}"),
            Self::Together => format!("{subject} and {object} are named together"),
        }
    }

    /// Returns the same to somebody at the terminal, who is called [`YOU`] there: "your cat is Momo".
    pub fn phrase_to_you(self, subject: &str, object: &str) -> String {
        let object = if object == YOU { "you" } else { object };
        if subject != YOU {
            return self.phrase(subject, object);
        }
        match self {
            Self::Role(role) => format!("Your {role} is {object}"),
            Self::Verb(words) => format!("{subject} {} {object}", second_person(words)),
            Self::Same => format!("{subject} are another name for {object}"),
            Self::Different => format!("{subject} are not {object}"),
            Self::Together => self.phrase(subject, object),
        }
    }

    /// Returns the words of the relation alone.
    pub fn words(self) -> &'static str {
        match self {
            Self::Role(words) | Self::Verb(words) => words,
            Self::Same => "is another name for",
            Self::Different => "is not",
            Self::Together => "together with",
        }
    }
}

/// Returns the words of a verb in the third person, as they stand behind "you": "lives in" becomes "live in".
fn second_person(words: &str) -> String {
    let (verb, rest) = words.split_once(' ').map_or((words, None), |(verb, rest)| (verb, Some(rest)));
    let verb = match verb {
        "is" => "are".to_owned(),
        "was" => "were".to_owned(),
        _ => match (verb.strip_suffix("ies"), verb.strip_suffix("es"), verb.strip_suffix('s')) {
            (Some(stem), ..) => format!("{stem}y"),
            (_, Some(stem), _) if stem.ends_with("ch") || stem == "go" => stem.to_owned(),
            (_, _, Some(stem)) => stem.to_owned(),
            _ => verb.to_owned(),
        },
    };
    rest.map_or(verb.clone(), |rest| format!("{verb} {rest}"))
}

/// One side of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The author of the text.
    Author,
    /// A name, by its number in the text.
    Name(usize),
}

/// A relation with the words that say it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Relation {
    pub(super) subject: Side,
    pub(super) object: Side,
    pub(super) label: Label,
    pub(super) confidence: f32,
    /// Its place in the text.
    pub(super) words: Range<usize>,
    pub(super) subject_kind: Option<EntityKind>,
    pub(super) object_kind: Option<EntityKind>,
}

/// Returns the relations of a text's sentences.
pub(super) fn relations(sentences: &[Sentence], names: &[Vec<Named>]) -> Vec<Relation> {
    let mut reader = Reader { items: Vec::new(), found: Vec::new(), last: None };
    let mut number = 0;
    for (sentence, names) in sentences.iter().zip(names) {
        reader.items = items(sentence, names, number);
        if !sentence.is_question {
            reader.read();
        }
        reader.pair(number..number + names.len());
        reader.last = reader.last_person().or(reader.last);
        number += names.len();
    }
    reader.found
}

/// A part of a sentence: a name counts as one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part<'a> {
    Name(usize),
    Word(&'a str),
    Possessive,
    Comma,
    Sign,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item<'a> {
    part: Part<'a>,
    from: usize,
    to: usize,
}

fn items<'a>(sentence: &'a Sentence, names: &[Named], first: usize) -> Vec<Item<'a>> {
    let mut items = Vec::with_capacity(sentence.tokens.len());
    let mut at = 0;
    while let Some(token) = sentence.tokens.get(at) {
        match names.iter().position(|named| named.tokens.start == at) {
            Some(index) if names[index].tokens.end > at => {
                let named = &names[index];
                items.push(Item { part: Part::Name(first + index), from: named.from, to: named.to });
                at = named.tokens.end;
            }
            _ => {
                items.push(Item { part: part(token), from: token.from, to: token.to });
                at += 1;
            }
        }
    }
    items
}

fn part(token: &Token) -> Part<'_> {
    match &token.form {
        Form::Word { folded, .. } => Part::Word(folded),
        Form::Possessive => Part::Possessive,
        Form::Comma => Part::Comma,
        Form::Sign => Part::Sign,
    }
}

/// Somebody or something that a sentence speaks of, and how surely.
type Found = (Side, f32, usize);

struct Reader<'a> {
    items: Vec<Item<'a>>,
    found: Vec<Relation>,
    /// The person named last in an earlier sentence.
    last: Option<usize>,
}

impl<'a> Reader<'a> {
    fn word(&self, at: usize) -> Option<&'a str> {
        match self.items.get(at)?.part {
            Part::Word(word) => Some(word),
            _ => None,
        }
    }

    fn name(&self, at: usize) -> Option<usize> {
        match self.items.get(at)?.part {
            Part::Name(number) => Some(number),
            _ => None,
        }
    }

    fn is(&self, at: usize, part: &Part<'_>) -> bool {
        self.items.get(at).is_some_and(|item| item.part == *part)
    }

    fn read(&mut self) {
        for at in 0..self.items.len() {
            let Some(word) = self.word(at) else { continue };
            if let Some(role) = lexicon::role(word) {
                self.read_role(at, role);
            }
            for verb in lexicon::verbs(word) {
                if self.read_verb(at, verb) {
                    break;
                }
            }
            self.read_same(at);
        }
    }

    /// Reads `my sister Ann`, `Ann's sister is Zoe`, `Ann is my sister`, `Zoe, Ann's sister`, `a cat called Mia`.
    fn read_role(&mut self, at: usize, role: Role) {
        let mut start = at;
        while at - start < MAX_BESIDE
            && start.checked_sub(1).and_then(|before| self.word(before)).is_some_and(lexicon::is_beside_role)
        {
            start -= 1;
        }
        let owner =
            self.owner_before(start).or_else(|| self.owner_behind(at)).or_else(|| self.keeper_before(start, at));
        let Some((owner, sure, first)) = owner else { return };
        let behind =
            if self.owner_before(start).is_none() && self.word(at + 1) == Some("of") { at + 3 } else { at + 1 };
        let named = self.name_behind(behind).or_else(|| self.name_before(first));
        let Some((object, other)) = named.filter(|(object, _)| owner != Side::Name(*object)) else { return };
        let words = self.span(first.min(other), at.max(other).max(behind - 1));
        self.add(Relation {
            subject: owner,
            object: Side::Name(object),
            label: Label::Role(role.label),
            confidence: sure,
            words,
            subject_kind: None,
            object_kind: Some(role.kind),
        });
    }

    /// Returns the owner whose word or name ends right before `at`, and where it begins.
    fn owner_before(&self, at: usize) -> Option<Found> {
        let before = at.checked_sub(1)?;
        match &self.items.get(before)?.part {
            Part::Word("my" | "our") => Some((Side::Author, STATED, before)),
            Part::Word("his" | "her") => self.person_before(before).map(|name| (Side::Name(name), BY_PRONOUN, before)),
            Part::Possessive => {
                let owner = before.checked_sub(1)?;
                self.name(owner).map(|name| (Side::Name(name), STATED, owner))
            }
            _ => None,
        }
    }

    /// Returns the owner in `the sister of Ann`.
    fn owner_behind(&self, at: usize) -> Option<Found> {
        let name = self.name(at + 2).filter(|_| self.word(at + 1) == Some("of"))?;
        let article = at.checked_sub(1).filter(|before| self.word(*before) == Some("the"));
        Some((Side::Name(name), STATED, article.unwrap_or(at)))
    }

    /// Returns the owner in `I have a cat called Mia`. The words for a name must follow.
    fn keeper_before(&self, start: usize, at: usize) -> Option<Found> {
        if !matches!(self.word(at + 1), Some("called" | "named")) {
            return None;
        }
        let article =
            start.checked_sub(1).filter(|at| matches!(self.word(*at), Some("a" | "an" | "another" | "one")))?;
        let verb = article.checked_sub(1)?;
        let has = self.word(verb).is_some_and(|word| {
            matches!(word, "have" | "has" | "got" | "adopted" | "bought" | "own" | "owns" | "had" | "found" | "started")
        });
        if has { self.subject_before(verb) } else { None }
    }

    /// Returns the name that a role introduces: right behind it, or behind `is`, `called` or a comma.
    fn name_behind(&self, at: usize) -> Option<(usize, usize)> {
        let mut at = at;
        if self.is(at, &Part::Comma) {
            at += 1;
        } else if self.is(at, &Part::Possessive) && self.word(at + 1) == Some("name") {
            at += 2;
        }
        if matches!(self.word(at), Some("is" | "was")) {
            at += 1;
        }
        if matches!(self.word(at), Some("called" | "named")) {
            at += 1;
        }
        // `My sister Ann's dog` is about the dog.
        self.name(at).map(|name| (name, at))
    }

    /// Returns the name before `is` or a comma.
    fn name_before(&self, at: usize) -> Option<(usize, usize)> {
        let between = at.checked_sub(1)?;
        let article = between.checked_sub(1);
        let joins = matches!(self.items.get(between)?.part, Part::Comma | Part::Word("is" | "was"));
        let at = article.filter(|_| joins)?;
        self.name(at).map(|name| (name, at))
    }

    fn read_verb(&mut self, at: usize, verb: &Verb) -> bool {
        let mut behind = at + 1;
        if verb.behind.is_empty() {
            behind += usize::from(self.word(behind) == Some("with") && matches!(verb.label, "meets" | "met"));
        } else {
            if !self.word(behind).is_some_and(|word| lexicon::has(verb.behind, word)) {
                return false;
            }
            behind += 1;
        }
        behind += usize::from(matches!(self.word(behind), Some("the" | "a" | "my" | "old" | "downtown")));
        let Some(object) = self.name(behind) else { return false };
        // `Works at Ann's shop` says nothing of Ann herself.
        if self.is(behind + 1, &Part::Possessive) {
            return false;
        }
        let own_subject = matches!(self.word(at), Some("i'm" | "we're"));
        let pronoun = matches!(self.word(at), Some("he's" | "she's"));
        let subject = match (own_subject, pronoun) {
            (true, _) => Some((Side::Author, STATED, at)),
            (_, true) => self.person_before(at).map(|name| (Side::Name(name), BY_PRONOUN, at)),
            _ => self.subject_before(at),
        };
        let Some((subject, sure, first)) = subject.filter(|(subject, ..)| *subject != Side::Name(object)) else {
            return false;
        };
        let words = self.span(first, behind);
        // `Ann was moving to Oslo` tells of the past, unlike `Ann is moving to Oslo`.
        let is_past =
            self.items.get(first..at).into_iter().flatten().any(|item| matches!(item.part, Part::Word("was" | "were")));
        let label = if is_past { lexicon::in_past(verb.label) } else { verb.label };
        self.add(Relation {
            subject,
            object: Side::Name(object),
            label: Label::Verb(label),
            confidence: sure,
            words,
            subject_kind: verb.subject,
            object_kind: verb.object,
        });
        true
    }

    /// Returns the subject of the verb at `at`; `None` if a word between them turns the sentence around.
    fn subject_before(&self, at: usize) -> Option<Found> {
        let mut at = at;
        loop {
            at = at.checked_sub(1)?;
            match &self.items.get(at)?.part {
                Part::Name(name) => return Some((Side::Name(*name), STATED, at)),
                Part::Word(word) if lexicon::is_turning(word) => return None,
                Part::Word("i" | "we" | "i've" | "we've" | "i'm" | "we're" | "i'll") => {
                    let turned =
                        at.checked_sub(1).and_then(|before| self.word(before)).is_some_and(lexicon::is_turning);
                    return (!turned).then_some((Side::Author, STATED, at));
                }
                Part::Word("he" | "she" | "he's" | "she's") => {
                    return self.person_before(at).map(|name| (Side::Name(name), BY_PRONOUN, at));
                }
                Part::Word("grew") => {}
                Part::Word(word) if lexicon::is_adverb(word) => {}
                _ => return None,
            }
        }
    }

    /// Returns the person named last before `at`: the last name that is no place.
    fn person_before(&self, at: usize) -> Option<usize> {
        let inside = self.items.get(..at)?.iter().rev().find_map(|item| match item.part {
            Part::Name(name) if !self.is_no_person(name) => Some(name),
            _ => None,
        });
        inside.or(self.last)
    }

    fn last_person(&self) -> Option<usize> {
        self.person_before(self.items.len())
    }

    fn is_no_person(&self, name: usize) -> bool {
        let is_other = |kind: Option<EntityKind>| kind.is_some_and(|kind| kind != EntityKind::Person);
        self.found.iter().any(|relation| {
            relation.object == Side::Name(name) && is_other(relation.object_kind)
                || relation.subject == Side::Name(name) && is_other(relation.subject_kind)
        })
    }

    /// Reads `Ann, also known as Annie`, `Ann is short for Annabel` and `Ann is the same person as Annie`.
    fn read_same(&mut self, at: usize) {
        let words = |from: usize, wanted: &[&str]| {
            wanted.iter().enumerate().all(|(offset, word)| self.word(from + offset) == Some(*word))
        };
        let patterns: [&[&str]; 9] = [
            &["also", "known", "as"],
            &["also", "called"],
            &["aka"],
            &["alias"],
            &["is", "short", "for"],
            &["is", "another", "name", "for"],
            &["is", "the", "same", "person", "as"],
            &["is", "the", "same", "as"],
            &["is", "really", "called"],
        ];
        let Some(pattern) = patterns.into_iter().find(|pattern| words(at, pattern)) else { return };
        let behind = at + pattern.len();
        let before = at.checked_sub(1);
        let before = before.filter(|at| self.is(*at, &Part::Comma)).map_or(before, |at| at.checked_sub(1));
        let Some((before, one)) = before.and_then(|at| self.name(at).map(|name| (at, name))) else { return };
        let Some(other) = self.name(behind).filter(|other| *other != one) else { return };
        let words = self.span(before, behind);
        self.add(Relation {
            subject: Side::Name(one),
            object: Side::Name(other),
            label: Label::Same,
            confidence: STATED,
            words,
            subject_kind: None,
            object_kind: None,
        });
    }

    /// Notes the names of the sentence that no relation joins.
    fn pair(&mut self, names: Range<usize>) {
        let Some((first, last)) = self.items.first().zip(self.items.last()) else { return };
        let words = first.from..last.to;
        let names: Vec<usize> = names.take(MAX_PAIRED).collect();
        for (index, one) in names.iter().enumerate() {
            for other in names.iter().skip(index + 1) {
                let (one, other) = (Side::Name(*one), Side::Name(*other));
                let joined = |relation: &Relation| {
                    (relation.subject == one && relation.object == other)
                        || (relation.subject == other && relation.object == one)
                };
                if !self.found.iter().any(joined) {
                    self.found.push(Relation {
                        subject: one,
                        object: other,
                        label: Label::Together,
                        confidence: TOGETHER,
                        words: words.clone(),
                        subject_kind: None,
                        object_kind: None,
                    });
                }
            }
        }
    }

    fn span(&self, first: usize, last: usize) -> Range<usize> {
        let at = |index: usize| self.items.get(index).map_or((0, 0), |item| (item.from, item.to));
        at(first).0..at(last).1
    }

    fn add(&mut self, relation: Relation) {
        let known = self.found.iter().any(|other| {
            other.subject == relation.subject && other.object == relation.object && other.label == relation.label
        });
        if !known {
            self.found.push(relation);
        }
    }
}

#[cfg(test)]
mod tests;
