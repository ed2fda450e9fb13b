//! Finds where a message calls somebody by name, word by word. This module does no I/O.
//!
//! A name at the beginning of a message calls, also after a greeting, and so does a name at its end behind a comma. A
//! name in the middle talks about somebody, unless it begins a sentence and a comma follows. A name that is also a
//! common word calls only with a mark behind it, such as a comma.

use azera_personas::SpokenName;

use super::speech::Speech;

/// Maximum number of greeting words that are read before a name.
const MAX_GREETING_WORDS: usize = 8;

/// Words before a name when people call somebody.
const GREETINGS: [&str; 56] = [
    "hey",
    "hi",
    "hello",
    "hiya",
    "heya",
    "yo",
    "ok",
    "okay",
    "dear",
    "thanks",
    "thx",
    "ty",
    "cheers",
    "sorry",
    "bye",
    "goodbye",
    "welcome",
    "greetings",
    "howdy",
    "morning",
    "evening",
    "night",
    "goodnight",
    "congrats",
    "please",
    "oh",
    "ah",
    "well",
    "um",
    "hmm",
    "so",
    "hallo",
    "moin",
    "servus",
    "danke",
    "bitte",
    "hola",
    "gracias",
    "ola",
    "obrigado",
    "obrigada",
    "salut",
    "bonjour",
    "bonsoir",
    "merci",
    "coucou",
    "ciao",
    "grazie",
    "hej",
    "tak",
    "привет",
    "спасибо",
    "здравствуи",
    "مرحبا",
    "اهلا",
    "يا",
];

/// The same in two words.
const LONG_GREETINGS: [(&str, &str); 27] = [
    ("good", "morning"),
    ("good", "evening"),
    ("good", "afternoon"),
    ("good", "night"),
    ("good", "day"),
    ("good", "bye"),
    ("thank", "you"),
    ("thanks", "again"),
    ("see", "you"),
    ("excuse", "me"),
    ("hey", "there"),
    ("hi", "there"),
    ("hello", "there"),
    ("happy", "birthday"),
    ("guten", "morgen"),
    ("guten", "tag"),
    ("guten", "abend"),
    ("gute", "nacht"),
    ("buenos", "dias"),
    ("buenas", "noches"),
    ("buenas", "tardes"),
    ("bom", "dia"),
    ("bonne", "nuit"),
    ("доброе", "утро"),
    ("صباح", "الخير"),
    ("مساء", "الخير"),
    ("السلام", "عليكم"),
];

/// Greetings that make even a common word a name, if it has a capital letter: "Hi Rose how are you".
const CLEAR_GREETINGS: [&str; 8] = ["hey", "hi", "hello", "hiya", "yo", "dear", "thanks", "morning"];

/// Words whose dot does not end a sentence.
const TITLES: [&str; 9] = ["mr", "mrs", "ms", "miss", "mx", "dr", "prof", "st", "vs"];

/// Words that call whoever follows, anywhere in a message.
const VOCATIVES: [&str; 1] = ["يا"];

/// Last words before a name that people put behind a question without a comma: "are you there nova?".
const BEFORE_LATE_NAME: [&str; 8] = ["you", "u", "there", "please", "up", "doing", "today", "tonight"];

/// Endings that show respect or affection, written behind a hyphen.
const HONORIFICS: [&str; 8] = ["chan", "san", "kun", "sama", "sensei", "senpai", "dono", "tan"];

/// Marks that end a sentence.
const SENTENCE_ENDS: [char; 11] = ['.', '!', '?', '…', '。', '！', '？', '؟', '\n', '‽', '।'];

/// Marks that separate a name from the rest of a sentence.
const SEPARATORS: [char; 12] = [',', '،', '、', '，', ';', '؛', '；', ':', '：', '—', '–', '~'];

/// Marks that join a name with the next word, so that both are something else: `nova.exe`, `rose-coloured`, `Nova's`.
const JOINTS: [char; 11] = ['\'', '’', '-', '.', '_', '/', '\\', '@', '&', '+', '='];

/// Returns true if the message calls somebody by this form of a name.
pub(super) fn calls_form(speech: &Speech, form: &SpokenName) -> bool {
    let lower: Vec<String> = form.words.iter().map(|word| word.to_lowercase()).collect();
    if lower.iter().all(|word| word.chars().all(is_unspaced)) {
        return super::unspaced::calls(speech, &lower);
    }
    (0..speech.words.len()).any(|at| {
        let Some(end) = name_at(speech, at, &lower, form.joins) else { return false };
        Place { speech, form, at, end }.is_a_call()
    })
}

/// Returns true if the message begins with a name that has no letters, such as `✨`.
pub(super) fn calls_sign(text: &str, sign: &str) -> bool {
    let sign = sign.trim();
    !sign.is_empty() && text.trim_start().starts_with(sign)
}

/// Returns true for letters of scripts that put no spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    c.is_alphanumeric()
        && (matches!(c, '\u{2E80}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..)
            || matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'))
}

/// Returns the end of the name, if it stands at this word.
fn name_at(speech: &Speech, at: usize, name: &[String], joins: bool) -> Option<usize> {
    let rest = speech.lower.get(at..)?;
    if rest.starts_with(name) {
        return Some(at + name.len());
    }
    if !joins {
        return None;
    }
    // `J.A.R.V.I.S.` is also written `Jarvis`, and `R2-D2` is also written `R2D2`.
    let whole = name.concat();
    let mut written = String::new();
    for (count, word) in rest.iter().take(name.len()).enumerate() {
        written.push_str(word);
        if written == whole {
            return Some(at + count + 1);
        }
    }
    None
}

/// A name in a message: the words from `at` to before `end`.
struct Place<'a> {
    speech: &'a Speech,
    form: &'a SpokenName,
    at: usize,
    end: usize,
}

impl Place<'_> {
    fn is_a_call(&self) -> bool {
        let before = self.speech.gap(self.at);
        let end = if self.has_honorific() { self.end + 1 } else { self.end };
        let after = self.speech.gap(end);
        let last = end >= self.speech.words.len();
        if !last && is_joint(after) || before.ends_with(['#', '/', '\\', '_', '$', '&', '=']) {
            return false;
        }
        if before.ends_with('@') || self.word_before(1).is_some_and(|word| VOCATIVES.contains(&word)) {
            return true;
        }
        let (before_is_end, separated) = (self.begins_sentence(), last || separates(after));
        let (start, greeted) = self.clause_start();
        if start == 0 {
            // The beginning of the message, perhaps after a greeting.
            let clear = greeted && (ends_sentence(after) || self.is_capital() && self.is_clearly_greeted());
            return separated || clear || !self.form.common;
        }
        if greeted && (separated || ends_sentence(after)) || before_is_end && is_separator(after) {
            return true;
        }
        if self.form.common {
            return last && is_separator(before) && (self.is_capital() || asks(after));
        }
        let late = self.word_before(1).is_some_and(|word| BEFORE_LATE_NAME.contains(&word));
        last && (is_separator(before) || before_is_end || late)
    }

    /// Returns the word that the name's clause begins with, and true if a greeting stands between it and the name.
    fn clause_start(&self) -> (usize, bool) {
        let begins = |at: usize| at == 0 || is_separator(self.speech.gap(at)) || ends_sentence(self.speech.gap(at));
        let (mut at, mut start) = (self.at, (self.at, false));
        while let Some(length) = self.greeting_before(at).filter(|_| self.at - at < MAX_GREETING_WORDS) {
            at -= length;
            if begins(at) {
                start = (at, true);
            }
        }
        start
    }

    /// Returns true if a sentence ends before the name. The dot of a title or an initial ends none: "Dr. Quill".
    fn begins_sentence(&self) -> bool {
        let short = self.word_before(1).is_some_and(|word| TITLES.contains(&word) || word.chars().count() == 1);
        let gap = self.speech.gap(self.at);
        ends_sentence(gap) && !(short && gap.trim() == ".")
    }

    /// Returns the number of words of a greeting that ends before the word `at`.
    fn greeting_before(&self, at: usize) -> Option<usize> {
        let last = self.speech.lower.get(at.checked_sub(1)?)?.as_str();
        let first = at.checked_sub(2).and_then(|at| self.speech.lower.get(at));
        if first.is_some_and(|first| LONG_GREETINGS.contains(&(first.as_str(), last))) {
            return Some(2);
        }
        GREETINGS.contains(&last).then_some(1)
    }

    fn word_before(&self, count: usize) -> Option<&str> {
        self.speech.lower.get(self.at.checked_sub(count)?).map(String::as_str)
    }

    /// Returns true if the name has the capital letter of a name here.
    fn is_capital(&self) -> bool {
        self.speech.words.get(self.at).and_then(|word| word.chars().next()).is_some_and(char::is_uppercase)
    }

    fn is_clearly_greeted(&self) -> bool {
        self.word_before(1).is_some_and(|word| {
            CLEAR_GREETINGS.contains(&word)
                || self.word_before(2).is_some_and(|first| LONG_GREETINGS.contains(&(first, word)))
        })
    }

    /// Returns true if a word such as `-chan` follows.
    fn has_honorific(&self) -> bool {
        let next = self.speech.lower.get(self.end);
        self.speech.gap(self.end) == "-" && next.is_some_and(|word| HONORIFICS.contains(&word.as_str()))
    }
}

/// Returns true if the marks join two words into one.
fn is_joint(gap: &str) -> bool {
    gap.chars().count() == 1 && gap.starts_with(JOINTS)
}

fn is_separator(gap: &str) -> bool {
    gap.contains(SEPARATORS) || gap.contains(" - ") || gap.contains('@')
}

fn ends_sentence(gap: &str) -> bool {
    gap.contains(SENTENCE_ENDS)
}

/// Returns true if the marks after a name set it apart: a comma, a call or a question, or the end of the line.
fn separates(gap: &str) -> bool {
    is_separator(gap) || gap.contains(['!', '?', '！', '？', '؟', '…', '\n']) || gap.contains("...")
}

fn asks(gap: &str) -> bool {
    gap.contains(['?', '!', '？', '！', '؟'])
}
