//! Extracts memories from a conversation: people's own words, selected and never rewritten.

use std::fmt;
use std::ops::Range;

use crate::salience::{Kind, SalienceClassifier, SalienceScore};
use crate::sentences::sentences;

/// The salience from which a sentence is kept. A higher value gains precision and loses recall; BENCHMARKS.md has the
/// figures.
const MIN_SALIENCE: f32 = 0.55;

/// A message of at most this many words says too little without the one before it.
const SHORT_WORDS: usize = 3;

/// A question of at most this many words may only echo ("Tuesday?"), so the next message can still correct an earlier
/// one.
const ECHO_WORDS: usize = 3;

/// How many sentences on either side stay with a salient one, because it may not be clear alone.
const NEIGHBOURS: usize = 2;

/// A question of at most this many words only asks for more ("Where to?"), so its answer belongs to the earlier
/// statement.
const ASKS_ON_WORDS: usize = 5;

/// The most messages between a statement and its correction or answer.
const BELONGS_WITHIN: usize = 2;

/// A message of a conversation.
#[derive(Clone, Copy)]
pub struct ConversationMessage<'a> {
    /// The author's name, as it shall stand in the memory.
    pub speaker: &'a str,
    /// True if the persona wrote the message. Nothing of it is ever kept.
    pub is_bot: bool,
    /// The message's text.
    pub text: &'a str,
    /// One vector for each of [`SalienceClassifier::sentences`] of the text, in their order. If one is missing, only
    /// words and letters are rated. The persona's messages need none.
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
    /// The index of the message in the conversation, from 0.
    pub message: usize,
    /// The byte range in the message's text.
    pub span: Range<usize>,
}

/// The content of one memory.
#[derive(Clone, PartialEq)]
pub struct ExtractedMemory {
    /// The kind of memory.
    pub kind: Kind,
    /// The parts, in the order in which they were said: at least one, and at most one per message. There is more than
    /// one if the last says too little without those before it: a question and its answer, a statement and its
    /// correction.
    pub parts: Vec<MessagePart>,
    /// The parts word for word, one per line after the speaker's name: `Ada: I have moved to Turin.`
    pub text: String,
    /// How important it is, 0 to 1.
    pub importance: f32,
    /// The person it is about: the speaker of the last part. `None` for a decision, which belongs to everybody.
    pub about: Option<String>,
}

impl fmt::Debug for ExtractedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, parts, importance, .. } = self;
        write!(f, "ExtractedMemory[{kind}, {importance}, {parts:?}]")
    }
}

impl ExtractedMemory {
    /// Creates a memory of parts of a conversation, which must be in the order in which they were said. `probability`
    /// says how surely it is worth keeping, 0 to 1.
    pub fn of(conversation: &[ConversationMessage<'_>], kind: Kind, probability: f32, parts: Vec<MessagePart>) -> Self {
        let line = |part: &MessagePart| {
            let said = conversation.get(part.message)?;
            Some((said.speaker, said.text.get(part.span.clone())?))
        };
        let lines: Vec<(&str, &str)> = parts.iter().filter_map(line).collect();
        let about = lines.last().filter(|_| kind != Kind::Decision).map(|(speaker, _)| (*speaker).to_owned());
        let lines: Vec<String> = lines.into_iter().map(|(speaker, words)| format!("{speaker}: {words}")).collect();
        Self {
            kind,
            text: lines.join("\n"),
            // A sentence that is barely worth keeping is half as important as one that surely is.
            importance: kind.importance() * (1.0 + probability) / 2.0,
            about,
            parts,
        }
    }

    /// Returns the indexes of the messages that contain the parts, ascending and each once.
    pub fn sources(&self) -> Vec<usize> {
        let mut sources: Vec<usize> = self.parts.iter().map(|part| part.message).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }
}

/// The selected parts of one message, before they are written as a memory.
struct Chosen {
    kind: Kind,
    probability: f32,
    parts: Vec<MessagePart>,
}

impl SalienceClassifier {
    /// Returns the sentences of a message. Each is embedded by itself.
    pub fn sentences(text: &str) -> Vec<&str> {
        sentences(text).into_iter().filter_map(|range| text.get(range)).collect()
    }

    /// Returns what is worth keeping of a conversation, in the order in which it was said. The text of a memory is what
    /// people wrote, so it is as true as they were. Nothing that the persona wrote is kept, and so nothing that it had
    /// recalled. Words such as "tomorrow" are relative to the day of the message.
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
                let answers_follow_up = question.is_some_and(|words| words <= ASKS_ON_WORDS);
                let alone = question.is_none() && !corrects && words(own) > SHORT_WORDS;
                if let Some(before) = before.filter(|before| !alone && !before.is_bot) {
                    memory.parts.insert(0, MessagePart { message: number - 1, span: 0..before.text.len() });
                }
                let belongs = |last: &Chosen| {
                    last.reaches(number)
                        && (corrects || (answers_follow_up && last.speaker(conversation) == Some(said.speaker)))
                };
                match chosen.last_mut().filter(|last| belongs(last)) {
                    Some(last) => last.absorb(memory),
                    None => chosen.push(memory),
                }
            }
        }
        let written = |memory: Chosen| ExtractedMemory::of(conversation, memory.kind, memory.probability, memory.parts);
        chosen.into_iter().map(written).collect()
    }

    /// Selects what is worth keeping of one message as one memory: from the first to the last salient sentence, with
    /// their neighbours, and with the kind of the most salient one. A memory refers to whole messages, and halves of
    /// one message are rarely clear alone.
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
    /// Returns true if the message `number` is near enough to belong to this memory.
    fn reaches(&self, number: usize) -> bool {
        self.parts.last().is_some_and(|part| part.message < number && number - part.message <= BELONGS_WITHIN)
    }

    /// Returns the speaker of the last part.
    fn speaker<'a>(&self, conversation: &[ConversationMessage<'a>]) -> Option<&'a str> {
        conversation.get(self.parts.last()?.message).map(|said| said.speaker)
    }

    /// Appends the parts of another memory that belongs to this one, typically a correction. Both stay, in their order,
    /// so that a wrong statement is never kept alone.
    fn absorb(&mut self, other: Self) {
        let there = self.parts.iter().map(|part| part.message).max();
        // The other memory may bring parts that are already here.
        self.parts.extend(other.parts.into_iter().filter(|part| Some(part.message) > there));
        self.probability = self.probability.max(other.probability);
    }
}

/// Returns true if the part begins where the text does.
fn starts(text: &str, part: &MessagePart) -> bool {
    text.get(..part.span.start).is_some_and(|before| before.trim().is_empty())
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Returns true if a text ends with a question mark.
fn asks(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_whitespace() || "\"”’')*".contains(c)).ends_with(['?', '？'])
}

/// Words that mark a correction at the beginning of a message, possibly after a hesitation ("oh", "well").
const CORRECTING: [&str; 11] =
    ["no", "nope", "nah", "not", "actually", "correction", "sorry", "wait", "nein", "doch", "non"];

/// Pairs of words that mark a correction.
const CORRECTING_PAIRS: [[&str; 2]; 5] =
    [["i", "meant"], ["scrap", "that"], ["my", "mistake"], ["je", "voulais"], ["quise", "decir"]];

const HESITATING: [&str; 10] = ["oh", "ah", "um", "uh", "er", "well", "hm", "ok", "okay", "haha"];

/// Returns true if a message corrects what was said before it.
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
    fn a_correction_is_recognized_by_its_beginning() {
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
    fn a_question_can_be_quoted() {
        let check = |text: &str, want: bool| assert_eq!(asks(text), want, "{text}");
        check("Is it so?", true);
        check("\"Is it so?\" ", true);
        check("元気？", true);
        check("Is it? Yes.", false);
        check("", false);
    }
}
