//! What of a reply was heard, by the clock of its sound.

use std::time::Duration;

use crate::alignment::spoken_until;

/// How long a letter lasts, as long as the sound of its sentence is not whole.
const LETTER: Duration = Duration::from_millis(65);

/// Letters for which a digit counts, because it is said as a word.
const DIGIT_LETTERS: u32 = 4;

/// What of a reply was heard.
#[derive(Clone, PartialEq, Eq)]
pub struct Heard {
    /// The words as written, from the beginning on.
    pub text: String,
    /// How many sentences were heard to their end.
    pub sentences: usize,
    /// True if that is all of the reply that was made.
    pub is_whole: bool,
}

/// Leaves out what was said.
impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Heard[{} bytes, whole: {}]", self.text.len(), self.is_whole)
    }
}

/// A sentence of a reply.
struct Line {
    written: String,
    spoken: String,
    sound: Duration,
    /// When its first word begins and its last one ends. A voice leaves silence around them.
    words: Option<(Duration, Duration)>,
    /// When each spoken word ends, as far as its sound is made; empty if the voice does not say it.
    word_ends: Vec<Duration>,
    is_made: bool,
}

impl Line {
    /// Returns the written words that were heard after so much of its sound; `None` if all of it was.
    fn heard(&self, position: Duration) -> Option<String> {
        if let Some(heard) = self.heard_by_word_ends(position) {
            return heard;
        }
        let (from, until) = self.span();
        let share = || position.saturating_sub(from).as_secs_f64() / until.saturating_sub(from).as_secs_f64();
        (position < until).then(|| words_until(&self.written, share()))
    }

    /// Returns what [`Line::heard`] returns, if the voice says when its words end.
    fn heard_by_word_ends(&self, position: Duration) -> Option<Option<String>> {
        let words = self.spoken.split_whitespace().count();
        let known = self.word_ends.len();
        if known == 0 || known > words || (self.is_made && known != words) {
            return None;
        }
        let said = self.word_ends.iter().filter(|end| **end <= position).count();
        if self.is_made && said == words {
            return Some(None);
        }
        let mut until = spoken_until(&self.written, &self.spoken).into_iter();
        let mut heard = String::new();
        for word in self.written.split_inclusive(char::is_whitespace) {
            if !word.trim().is_empty() && until.next().is_none_or(|until| until > said) {
                break;
            }
            heard.push_str(word);
        }
        Some(Some(heard))
    }

    /// Returns when its first word begins and its last one ends.
    fn span(&self) -> (Duration, Duration) {
        let (from, until) = self.words.unwrap_or((Duration::ZERO, self.sound));
        if self.is_made { (from, until) } else { (from, self.sound.max(from + LETTER * letters(&self.written))) }
    }
}

/// A reply that is spoken: its sentences, and how long each sounds.
#[derive(Default)]
pub struct Script {
    /// Silence and other sound before the first word.
    lead: Duration,
    /// What was heard of the reply before, as far as whole sentences reach, and in all.
    before: String,
    heard_before: String,
    lines: Vec<Line>,
}

impl Script {
    /// Begins a reply with some silence.
    pub fn new(lead: Duration) -> Self {
        Self { lead, ..Self::default() }
    }

    /// Goes on with a reply that was stopped, from the sentence on in which that was. `before` are the sentences that
    /// were heard to their end, and `heard` is everything that was heard.
    pub fn resumed(lead: Duration, before: String, heard: String) -> Self {
        Self { lead, before, heard_before: heard, lines: Vec::new() }
    }

    /// Adds other sound before the first word.
    pub fn delay(&mut self, sound: Duration) {
        self.lead += sound;
    }

    /// Adds a sentence as written and as spoken. Its sound follows.
    pub fn add(&mut self, written: impl Into<String>, spoken: impl Into<String>) {
        self.is_made();
        self.lines.push(Line {
            written: written.into(),
            spoken: spoken.into(),
            sound: Duration::ZERO,
            words: None,
            word_ends: Vec::new(),
            is_made: false,
        });
    }

    /// Adds sound to the last sentence, which is silent before and after a part of it; `None` if all of it is.
    /// `word_ends` says when words end in it; it is empty if the voice does not say it.
    pub fn sound(&mut self, duration: Duration, loud: Option<(Duration, Duration)>, word_ends: &[Duration]) {
        if let Some(line) = self.lines.last_mut() {
            line.word_ends.extend(word_ends.iter().map(|end| line.sound + *end));
            if let Some((from, until)) = loud {
                let begin = line.words.map_or(line.sound + from, |(begin, _)| begin);
                line.words = Some((begin, line.sound + until));
            }
            line.sound += duration;
        }
    }

    /// Records that the sound of the last sentence is whole.
    pub fn is_made(&mut self) {
        if let Some(line) = self.lines.last_mut() {
            line.is_made = true;
        }
    }

    /// Returns the text of the first sentences, with what was heard before.
    pub fn text_of(&self, sentences: usize) -> String {
        let lines = self.lines.iter().take(sentences).map(|line| line.written.as_str());
        std::iter::once(self.before.as_str()).chain(lines).collect()
    }

    /// Returns what was heard after so much of the sound.
    pub fn heard(&self, position: Duration) -> Heard {
        let mut left = position.saturating_sub(self.lead);
        let mut text = self.before.clone();
        for (number, line) in self.lines.iter().enumerate() {
            if let Some(words) = line.heard(left) {
                text.push_str(&words);
                return self.reached(&text, number, false);
            }
            left = left.saturating_sub(line.sound);
            text.push_str(&line.written);
        }
        self.reached(&text, self.lines.len(), true)
    }

    /// Returns what is heard once all sound so far was played.
    pub fn heard_in_all(&self) -> Heard {
        self.heard(self.lead + self.lines.iter().map(|line| line.sound).sum::<Duration>())
    }

    /// A reply that goes on repeats the sentence in which it was stopped, and what was heard stays heard.
    fn reached(&self, text: &str, sentences: usize, is_whole: bool) -> Heard {
        let text = text.trim_end();
        let text = if text.len() < self.heard_before.len() { &self.heard_before } else { text };
        Heard { text: text.to_owned(), sentences, is_whole }
    }
}

/// Returns the words that end before this share of the text's sound.
fn words_until(text: &str, share: f64) -> String {
    let most = share * f64::from(letters(text.trim_end()));
    let mut heard = String::new();
    let mut so_far = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        if f64::from(so_far + letters(word.trim_end())) > most {
            break;
        }
        so_far += letters(word);
        heard.push_str(word);
    }
    heard
}

/// Returns how many letters a text has when it is said.
fn letters(text: &str) -> u32 {
    let letter = |c: char| if c.is_ascii_digit() { DIGIT_LETTERS } else { u32::from(c.is_alphanumeric() || c == ' ') };
    text.chars().map(letter).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_reply_is_cut_at_the_word() {
        let mut script = Script::new(ms(150));
        script.add("The ferry leaves. ", "The ferry leaves.");
        script.sound(ms(600), Some((ms(0), ms(600))), &[]);
        script.sound(ms(400), Some((ms(0), ms(400))), &[]);
        script.add("It rains at the pier.", "It rains at the pier.");
        script.sound(ms(2_000), Some((ms(0), ms(2_000))), &[]);
        script.is_made();
        let heard = |position| script.heard(ms(position)).text;
        assert_eq!(heard(0), "");
        assert_eq!(heard(150 + 250), "The");
        assert_eq!(heard(150 + 650), "The ferry");
        assert_eq!(heard(150 + 1_000), "The ferry leaves.");
        assert_eq!(heard(150 + 2_200), "The ferry leaves. It rains at");
        assert_eq!(
            script.heard(ms(3_150)),
            Heard { text: "The ferry leaves. It rains at the pier.".into(), sentences: 2, is_whole: true }
        );
        assert_eq!(script.heard(ms(150 + 2_200)).sentences, 1);
        assert_eq!(script.text_of(1), "The ferry leaves. ");
    }

    #[test]
    fn a_reply_that_goes_on_keeps_what_was_heard_before() {
        let mut script = Script::resumed(ms(150), "The ferry leaves. ".into(), "The ferry leaves. It rains".into());
        script.add("It rains at the pier.", "It rains at the pier.");
        script.sound(ms(2_000), Some((ms(0), ms(2_000))), &[]);
        script.is_made();
        script.delay(ms(500));
        assert_eq!(script.heard(ms(650)).text, "The ferry leaves. It rains");
        assert_eq!(script.heard(ms(650 + 1_200)).text, "The ferry leaves. It rains at");
        assert!(script.heard(ms(2_650)).is_whole);
    }

    #[test]
    fn silence_around_the_words_of_a_sentence_is_no_time_for_words() {
        let mut script = Script::new(Duration::ZERO);
        script.add("Nine tall trees. ", "Nine tall trees.");
        script.sound(ms(700), Some((ms(200), ms(700))), &[]);
        script.sound(ms(300), None, &[]);
        script.sound(ms(1_000), Some((ms(0), ms(600))), &[]);
        script.add("Some rain. ", "Some rain.");
        script.sound(ms(1_000), Some((ms(100), ms(800))), &[]);
        script.is_made();
        let heard = |position| script.heard(ms(position)).text;
        assert_eq!(heard(200), "");
        // Fifteen letters with their spaces in 1.4 s.
        assert_eq!(heard(200 + 380), "Nine");
        assert_eq!(heard(200 + 850), "Nine tall");
        assert_eq!((heard(1_600), script.heard(ms(1_600)).sentences), ("Nine tall trees.".to_owned(), 1));
        assert_eq!(heard(2_000), "Nine tall trees.");
        assert!(script.heard(ms(2_800)).is_whole, "the rest is silence");
    }

    #[test]
    fn a_voice_that_says_when_its_words_end_is_believed() {
        let mut script = Script::new(ms(100));
        script.add("At 14:05 we sail. ", "At fourteen oh five we sail.");
        script.sound(ms(800), Some((ms(0), ms(800))), &[ms(200), ms(500), ms(700)]);
        let heard = |script: &Script, position: u64| script.heard(ms(100 + position)).text;
        assert_eq!((heard(&script, 199), heard(&script, 200)), (String::new(), "At".to_owned()));
        assert_eq!(heard(&script, 800), "At", "the time is not said to its end");
        script.sound(ms(1_200), Some((ms(0), ms(700))), &[ms(200), ms(300), ms(700)]);
        script.add("Bye. ", "Bye.");
        assert_eq!(heard(&script, 999), "At");
        assert_eq!((heard(&script, 1_000), heard(&script, 1_100)), ("At 14:05".to_owned(), "At 14:05 we".to_owned()));
        assert_eq!(
            (heard(&script, 1_499), heard(&script, 1_500)),
            ("At 14:05 we".to_owned(), "At 14:05 we sail.".to_owned())
        );
        assert_eq!((script.heard(ms(1_599)).sentences, script.heard(ms(1_600)).sentences), (0, 1));
    }

    #[test]
    fn word_ends_that_do_not_fit_the_words_are_not_used() {
        let mut script = Script::new(Duration::ZERO);
        script.add("One two three four.", "One two three four.");
        script.sound(ms(1_000), Some((ms(0), ms(1_000))), &[ms(900), ms(950)]);
        script.is_made();
        assert_eq!(script.heard(ms(500)).text, "One two");
    }

    #[test]
    fn a_sentence_whose_sound_is_not_whole_is_estimated() {
        let mut script = Script::new(Duration::ZERO);
        script.add("One two three four.", "One two three four.");
        script.sound(ms(300), Some((ms(0), ms(300))), &[]);
        assert_eq!(script.heard(ms(300)).text, "One");
        assert!(!script.heard(ms(300)).is_whole);
        assert_eq!(script.heard_in_all().text, "One");
    }
}
