//! What of a conversation is kept as memories of their own: people's own words, chosen, never rewritten.

use std::fmt;
use std::ops::Range;

use crate::salience::{Kind, SalienceClassifier, SalienceScore};
use crate::sentences::sentences;

/// Probability of being worth it from which on a sentence is kept. What a higher one gains in precision it loses in recall;
/// BENCHMARKS.md has the figures.
const MIN_SALIENCE: f32 = 0.55;

/// Words up to which a message says too little without the one before it.
const SHORT_WORDS: usize = 3;

/// Words up to which a question may be one that only asks again, so that what follows can still correct what stood before it.
const ECHO_WORDS: usize = 3;

/// Sentences on either side that stay with those worth keeping, for what they say alone may not be clear.
const NEIGHBOURS: usize = 2;

/// Words up to which a question only asks on ("Where to?"), so that the answer belongs to what was asked about.
const ASKS_ON_WORDS: usize = 5;

/// How many messages before a correction, or an answer, may lie what it belongs to.
const BELONGS_WITHIN: usize = 2;

/// A message of a conversation.
#[derive(Clone, Copy)]
pub struct ConversationMessage<'a> {
    /// Who wrote it, as it shall stand in the memory.
    pub speaker: &'a str,
    /// Whether the persona wrote it: nothing of it is ever kept.
    pub is_bot: bool,
    /// What was written.
    pub text: &'a str,
    /// A vector for each of [`SalienceClassifier::sentences`] of the text, in their order. Where one is missing, words and letters
    /// tell alone; for the persona's messages none is needed.
    pub vectors: &'a [Vec<f32>],
}

impl fmt::Debug for ConversationMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConversationMessage[{} bytes, bot: {}]", self.text.len(), self.is_bot)
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePart {
    /// The number of the message in the conversation, the first being 0.
    pub message: usize,
    /// Where in its text, in bytes.
    pub span: Range<usize>,
}

/// What is kept as one memory.
#[derive(Clone, PartialEq)]
pub struct ExtractedMemory {
    /// What it is.
    pub kind: Kind,
    /// Where it stands, in the order it was said; never empty, and no two in one message. More than one part where the last
    /// says too little without those before it: a question and its answer, what was said and its correction.
    pub parts: Vec<MessagePart>,
    /// The parts word for word, each on a line behind its speaker's name: `Ada: I have moved to Turin.`
    pub text: String,
    /// How much it matters, 0 to 1.
    pub importance: f32,
    /// Whom it is about: the speaker of its last part, or nobody in particular for a decision, which is everybody's.
    pub about: Option<String>,
}

impl fmt::Debug for ExtractedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, parts, importance, .. } = self;
        write!(f, "ExtractedMemory[{kind}, {importance}, {parts:?}]")
    }
}

impl ExtractedMemory {
    /// The numbers of the messages it stands in, each once, rising.
    pub fn sources(&self) -> Vec<usize> {
        let mut sources: Vec<usize> = self.parts.iter().map(|part| part.message).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }
}

/// What of one message makes a memory, before it is written down.
struct Chosen {
    kind: Kind,
    probability: f32,
    parts: Vec<MessagePart>,
}

impl SalienceClassifier {
    /// The sentences of a message, each of which is embedded by itself.
    pub fn sentences(text: &str) -> Vec<&str> {
        sentences(text).into_iter().filter_map(|range| text.get(range)).collect()
    }

    /// What of a conversation is worth keeping, in the order it was said. The text of a memory is what people wrote, so that
    /// it is as true as they were; nothing is kept of what the persona wrote, so neither is what it had recalled. Words such as
    /// "tomorrow" mean the day of the message.
    pub fn extract(&self, conversation: &[ConversationMessage<'_>]) -> Vec<ExtractedMemory> {
        let mut chosen: Vec<Chosen> = Vec::new();
        for (number, said) in conversation.iter().enumerate().filter(|(_, said)| !said.is_bot) {
            let before = number.checked_sub(1).and_then(|number| conversation.get(number));
            if let Some(mut memory) = self.chosen(number, said) {
                let own = memory.parts.first().and_then(|part| said.text.get(part.span.clone())).unwrap_or_default();
                let opens = memory.parts.first().is_some_and(|part| starts(said.text, part));
                let before = before.filter(|before| opens && !before.text.trim().is_empty());
                let question = before.filter(|before| asks(before.text)).map(|before| words(before.text));
                let corrects = opens && corrects(own) && question.is_none_or(|words| words <= ECHO_WORDS);
                let goes_on = question.is_some_and(|words| words <= ASKS_ON_WORDS);
                let alone = question.is_none() && !corrects && words(own) > SHORT_WORDS;
                if let Some(before) = before.filter(|before| !alone && !before.is_bot) {
                    memory.parts.insert(0, MessagePart { message: number - 1, span: 0..before.text.len() });
                }
                let belongs = |last: &Chosen| {
                    last.reaches(number) && (corrects || (goes_on && last.speaker(conversation) == Some(said.speaker)))
                };
                match chosen.last_mut().filter(|last| belongs(last)) {
                    Some(last) => last.absorb(memory),
                    None => chosen.push(memory),
                }
            }
        }
        chosen.into_iter().map(|memory| memory.written(conversation)).collect()
    }

    /// What of one message is worth keeping: from the first to the last sentence that is, with those around them, as one memory of
    /// the kind of the one that is worth most. A message is one mark in the record, and what is said in one breath is rarely
    /// understood in halves.
    fn chosen(&self, number: usize, said: &ConversationMessage<'_>) -> Option<Chosen> {
        let ranges = sentences(said.text);
        let mut found: Option<(usize, usize, SalienceScore)> = None;
        for (index, range) in ranges.iter().enumerate() {
            let sentence = said.text.get(range.clone()).unwrap_or_default();
            let salience = self.classify(sentence, said.vectors.get(index).map_or(&[], Vec::as_slice));
            if salience.probability < MIN_SALIENCE {
                continue;
            }
            found = Some(match found {
                Some((first, _, most)) if most.probability >= salience.probability => (first, index, most),
                Some((first, ..)) => (first, index, salience),
                None => (index, index, salience),
            });
        }
        let (first, last, SalienceScore { kind, probability }) = found?;
        let first = ranges.get(first.saturating_sub(NEIGHBOURS))?;
        let last = ranges.get(last + NEIGHBOURS).or(ranges.last())?;
        Some(Chosen { kind, probability, parts: vec![MessagePart { message: number, span: first.start..last.end }] })
    }
}

impl Chosen {
    /// Whether something in the message `number` can belong to this.
    fn reaches(&self, number: usize) -> bool {
        self.parts.last().is_some_and(|part| part.message < number && number - part.message <= BELONGS_WITHIN)
    }

    /// Who said the last of it.
    fn speaker<'a>(&self, conversation: &[ConversationMessage<'a>]) -> Option<&'a str> {
        conversation.get(self.parts.last()?.message).map(|said| said.speaker)
    }

    /// Takes in what belongs to it, a correction above all: both stay, in their order, so that what was wrong is never kept
    /// alone.
    fn absorb(&mut self, other: Self) {
        let there = self.parts.iter().map(|part| part.message).max();
        // What the other brings along may be here already.
        self.parts.extend(other.parts.into_iter().filter(|part| Some(part.message) > there));
        self.probability = self.probability.max(other.probability);
    }

    fn written(self, conversation: &[ConversationMessage<'_>]) -> ExtractedMemory {
        let line = |part: &MessagePart| {
            let said = conversation.get(part.message)?;
            Some((said.speaker, said.text.get(part.span.clone())?))
        };
        let lines: Vec<(&str, &str)> = self.parts.iter().filter_map(line).collect();
        let about = lines.last().filter(|_| self.kind != Kind::Decision).map(|(speaker, _)| (*speaker).to_owned());
        let lines: Vec<String> = lines.into_iter().map(|(speaker, words)| format!("{speaker}: {words}")).collect();
        ExtractedMemory {
            kind: self.kind,
            text: lines.join("\n"),
            // What is hardly worth keeping matters half as much as what surely is.
            importance: self.kind.importance() * (1.0 + self.probability) / 2.0,
            about,
            parts: self.parts,
        }
    }
}

/// Whether the part begins where the text does.
fn starts(text: &str, part: &MessagePart) -> bool {
    text.get(..part.span.start).is_some_and(|before| before.trim().is_empty())
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Whether a text ends with a question.
fn asks(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_whitespace() || "\"”’')*".contains(c)).ends_with(['?', '？'])
}

/// Words that put something right when a message begins with one, after words that put it off ("oh", "well").
const CORRECTING: [&str; 11] =
    ["no", "nope", "nah", "not", "actually", "correction", "sorry", "wait", "nein", "doch", "non"];

/// Pairs of words that do.
const CORRECTING_PAIRS: [[&str; 2]; 5] =
    [["i", "meant"], ["scrap", "that"], ["my", "mistake"], ["je", "voulais"], ["quise", "decir"]];

const HESITATING: [&str; 10] = ["oh", "ah", "um", "uh", "er", "well", "hm", "ok", "okay", "haha"];

/// Whether a message puts right what was said before it.
fn corrects(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words = words.skip_while(|word| HESITATING.contains(word));
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    CORRECTING.contains(&first) || CORRECTING_PAIRS.contains(&[first, second]) || text.contains(", not ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_is_told_by_how_it_begins() {
        let check = |text: &str, want: bool| assert_eq!(corrects(text), want, "{text}");
        check("No, it is Tuesday.", true);
        check("oh wait, actually 5", true);
        check("I meant the blue one", true);
        check("Thursday, not Friday", true);
        check("Nobody came", false);
        check("Notably late", false);
        check("I know what I meant", false);
        check("", false);
    }

    #[test]
    fn a_question_may_stand_in_quotes() {
        let check = |text: &str, want: bool| assert_eq!(asks(text), want, "{text}");
        check("Is it so?", true);
        check("\"Is it so?\" ", true);
        check("元気？", true);
        check("Is it? Yes.", false);
        check("", false);
    }
}
