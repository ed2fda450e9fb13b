//! Random choices, and filling of templates.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::Timestamp;

use crate::perspective;
use crate::seeds::{Fact, SEEDS, Saying};

/// The first day of all statements, 2026-01-01, and the length of the period, in seconds.
const FIRST_SECOND: i64 = 1_767_225_600;
const SECONDS: i64 = 330 * 86_400;

/// The source of all randomness.
pub(crate) struct Sampler(fastrand::Rng);

impl Sampler {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0.usize(..count.max(1))
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.0.usize(..100) < percent
    }

    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.0.usize(..all.len())]
    }

    /// Returns one of some texts.
    pub(crate) fn text(&mut self, all: &[&'static str]) -> &'static str {
        self.of::<&str>(all)
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        self.0.shuffle(all);
    }

    pub(crate) fn time(&mut self) -> Timestamp {
        let second = FIRST_SECOND + self.0.i64(0..SECONDS);
        Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Returns `count` different names of people.
    pub(crate) fn people(&mut self, count: usize) -> Vec<String> {
        let mut names: Vec<&str> = SEEDS.slots.get("name").cloned().unwrap_or_default();
        self.shuffle(&mut names);
        names.into_iter().take(count).map(str::to_owned).collect()
    }

    /// Generates a statement of a kind of fact by `who`.
    pub(crate) fn stated(&mut self, fact: &'static Fact, who: &str, taken: &[String]) -> StatedFact {
        let mut values = BTreeMap::new();
        let texts = fact.stated.iter().chain(&fact.questions).chain(&fact.near).chain([&fact.answer, &fact.about]);
        for slot in texts.flat_map(|text| slots(text)) {
            if !values.contains_key(slot) {
                let value = self.value(slot, taken);
                values.insert(slot, value);
            }
        }
        let text = with_articles(&fill(self.text(&fact.stated), &values));
        StatedFact { fact, who: who.to_owned(), text, at: self.time(), values }
    }

    /// Fills the blanks of a text. The same blank gets the same value everywhere.
    pub(crate) fn filled(&mut self, text: &'static str) -> String {
        let values: BTreeMap<_, _> = slots(text).map(|slot| (slot, self.value(slot, &[]))).collect();
        fill(text, &values)
    }

    /// Generates a remark about none of the things in `taken`.
    pub(crate) fn said(&mut self, saying: &'static Saying, taken: &[String]) -> Option<Remark> {
        let stated = self.text(&saying.stated);
        let all = || [stated, saying.about, saying.value].into_iter().flat_map(slots);
        let base = |slot: &'static str| slot.strip_suffix('0').filter(|_| !saying.words.contains_key(slot));
        let mut values: BTreeMap<&str, String> = BTreeMap::new();
        // Fill the blank that holds first, then the other one of its kind.
        for slot in all().filter(|slot| base(slot).is_none()).chain(all().filter(|slot| base(slot).is_some())) {
            if values.contains_key(slot) {
                continue;
            }
            let name = base(slot).unwrap_or(slot);
            let taken: Vec<String> = values.get(name).into_iter().chain(taken).cloned().collect();
            let value = match saying.words.get(name) {
                Some(words) => self.one_of(words, &taken),
                None => self.value(name, &taken),
            };
            values.insert(slot, value);
        }
        let mut value = fill(saying.value, &values);
        let (_, after) = stated.split_once(saying.value)?;
        if after.starts_with('s') {
            // `Mondays` is one word.
            value.push('s');
        }
        let text = with_articles(&fill(stated, &values));
        Some(Remark { saying, text, about: fill(saying.about, &values), value, values })
    }

    /// Returns a remark with what people say before and after it, sometimes with a second sentence.
    pub(crate) fn in_passing(&mut self, said: String) -> String {
        let mut text = said;
        if self.chance(18) {
            let openings =
                ["btw ", "oh, ", "so ", "fyi ", "haha ", "right, ", "by the way, ", "small update: ", "ugh, "];
            text = format!("{}{text}", self.of(&openings));
        }
        if self.chance(18) && !text.ends_with(['!', '?']) {
            let ends =
                [", finally", " lol", ", just saying", ", so there", ", don't ask", ", thank goodness", ", it seems"];
            text = format!("{text}{}", self.of(&ends));
        }
        if self.chance(35) {
            text = capital(&text);
        }
        if self.chance(20) {
            text = format!("{} {text}", ended(self.text(&SEEDS.chatter)));
        } else if self.chance(10) {
            text = format!("{} {}", ended(&text), self.text(&SEEDS.chatter));
        }
        text
    }

    /// Returns a word that is not taken.
    fn one_of(&mut self, words: &[&str], taken: &[String]) -> String {
        loop {
            let word = *self.of(words);
            if !taken.iter().any(|it| it == word) {
                return word.to_owned();
            }
        }
    }

    fn value(&mut self, slot: &str, taken: &[String]) -> String {
        match slot {
            "n2" => self.0.usize(11..100).to_string(),
            "n3" => self.0.usize(101..1000).to_string(),
            "n4" => self.0.usize(1000..10_000).to_string(),
            _ => SEEDS.slots.get(slot).map_or_else(String::new, |words| self.one_of(words, taken)),
        }
    }

    /// Returns a message as people type it: with or without capitals and punctuation, sometimes with an opening.
    pub(crate) fn typed(&mut self, text: &str, persona: &str) -> String {
        let mut text = text.to_owned();
        if self.chance(12) {
            let openings = ["hey, ", "so, ", "quick question: ", "um, ", "sorry to ask again, ", "oh and "];
            text = format!("{}{text}", self.of(&openings));
        } else if self.chance(8) {
            text = format!("{persona}, {text}");
        }
        if self.chance(45) {
            text = capital(&text);
        }
        if self.chance(15) {
            text = text.trim_end_matches(['?', '.']).to_owned();
        }
        text
    }
}

/// Turns `a` before a vowel into `an`.
fn with_articles(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for index in 1..words.len() {
        let vowel = words[index].starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']);
        if words[index - 1] == "a" && vowel {
            words[index - 1].push('n');
        }
    }
    words.join(" ")
}

/// A statement of a fact by a person.
#[derive(Debug, Clone)]
pub(crate) struct StatedFact {
    pub(crate) fact: &'static Fact,
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) at: Timestamp,
    values: BTreeMap<&'static str, String>,
}

impl StatedFact {
    pub(crate) fn fill(&self, template: &str) -> String {
        with_articles(&fill(template, &self.values))
    }

    /// Returns the answer about the person who stated the fact, for somebody else: without a capital or a full stop.
    pub(crate) fn of_other(&self) -> Option<String> {
        match self.fact.of_other {
            Some(template) => Some(self.fill(template).replace("{who}", &self.who)),
            None => perspective::about(&self.fill(self.fact.answer), &self.who),
        }
    }

    /// Returns the part of the answer that the question asks for, as the statement contains it: the blanks that the
    /// question does not name, with the words after them if the statement contains those too.
    pub(crate) fn value(&self) -> Option<String> {
        let answer = self.fact.answer;
        let own = |slot: &&str| !self.fact.about.contains(&format!("{{{slot}}}"));
        let marks: Vec<String> = slots(answer).filter(own).map(|slot| format!("{{{slot}}}")).collect();
        let start = marks.iter().filter_map(|mark| answer.find(mark)).min()?;
        let end = marks.iter().filter_map(|mark| Some(answer.rfind(mark)? + mark.len())).max()?;
        let parts = [answer.get(start..), answer.get(start..end)];
        parts.into_iter().flatten().map(|part| self.fill(part)).find(|value| self.text.contains(value.as_str()))
    }

    /// Returns the subject of the question when somebody else asks.
    pub(crate) fn about_other(&self) -> Option<String> {
        perspective::about(&self.fill(self.fact.about), &self.who).filter(|about| about.contains(&self.who))
    }
}

/// A remark in passing.
#[derive(Debug, Clone)]
pub(crate) struct Remark {
    pub(crate) saying: &'static Saying,
    pub(crate) text: String,
    /// The subject of the remark.
    pub(crate) about: String,
    /// What the remark says about its subject, as the text contains it.
    pub(crate) value: String,
    values: BTreeMap<&'static str, String>,
}

impl Remark {
    /// Fills a template of the same seed with the remark's values.
    pub(crate) fn fill(&self, template: &str) -> String {
        with_articles(&fill(template, &self.values))
    }

    /// Returns the thing that the remark is about, or its subject if there is no thing.
    pub(crate) fn thing(&self) -> &str {
        slots(self.saying.about).next().and_then(|slot| self.values.get(slot)).unwrap_or(&self.about)
    }
}

/// Iterates over the names in braces.
pub(crate) fn slots(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(slot, _)| slot))
}

fn fill(template: &str, values: &BTreeMap<&'static str, String>) -> String {
    values.iter().fold(template.to_owned(), |text, (slot, value)| text.replace(&format!("{{{slot}}}"), value))
}

pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Capitalizes each sentence, because the value of a blank may stand at its beginning.
pub(crate) fn sentences(text: &str) -> String {
    let cased = text
        .split_inclusive(['.', '!', '?'])
        .map(|sentence| match sentence.strip_prefix(' ') {
            Some(rest) => format!(" {}", capital(rest)),
            None => sentence.to_owned(),
        })
        .collect::<String>();
    capital(&cased)
}

/// Counts the words that two texts share. Only words of more than three letters count, by their first five letters, so
/// that `sailed` equals `sailing`.
pub(crate) fn shared_words(one: &str, other: &str) -> usize {
    let stems = |text: &str| -> BTreeSet<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        words
            .filter(|word| word.chars().count() > 3)
            .map(|word| word.to_lowercase().chars().take(5).collect())
            .collect()
    };
    stems(one).intersection(&stems(other)).count()
}

/// Adds a full stop, unless the text has an end.
pub(crate) fn ended(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '*', '"']) { text.to_owned() } else { format!("{text}.") }
}
