//! The language in which a text is read aloud.

use crate::german;
use crate::rule::pattern;
use crate::scan::is_emoji;

/// The language of a voice. Written forms are said in English and in German. In any other language, numbers and signs
/// stay as they are written, for the voice to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// American English, or English with the day before the month.
    #[default]
    English,
    /// German.
    German,
    /// Another language.
    Other,
}

impl Language {
    /// Returns the language of a BCP 47 tag such as `de-AT`.
    pub fn of(tag: &str) -> Self {
        let language = tag.split(['-', '_']).next().unwrap_or_default();
        match language.to_ascii_lowercase().as_str() {
            "en" | "" => Self::English,
            "de" => Self::German,
            _ => Self::Other,
        }
    }

    /// Returns the language in which a sentence is said. A German sentence is said in German by a voice of English, and
    /// the other way round: servers have voices of several languages. `before` is the language of the sentence before.
    pub(crate) fn of_sentence(self, text: &str, before: Option<Self>) -> Self {
        if self == Self::Other {
            return self;
        }
        told_by_words(text).or(before).unwrap_or(self)
    }
}

/// Tells English from German by common words; `None` if there are too few of them.
pub(crate) fn told_by_words(text: &str) -> Option<Language> {
    const LEAST: usize = 2;
    let (mut german, mut english) = (0, 0);
    // Code and addresses are in no language.
    let foreign = pattern!(r"(?s)```.*?(?:```|$)|`[^`\n]*`|(?i:\b[a-z][a-z0-9+.-]*://|\bwww\.)[^\s<>]+");
    let text = foreign.replace_all(text, " ");
    let words = text.split(|c: char| !c.is_alphabetic() && c != '\'').filter(|word| !word.is_empty());
    for word in words.map(str::to_lowercase) {
        german += usize::from(german::tables().german_words.contains(&word));
        english += usize::from(german::tables().english_words.contains(&word));
    }
    match (german, english) {
        (german, english) if german >= LEAST && german > english => Some(Language::German),
        (german, english) if english >= LEAST && english > german => Some(Language::English),
        _ => None,
    }
}

/// What is said in place of what is not read aloud.
pub(crate) struct Phrases {
    pub(crate) code_in_chat: &'static str,
    pub(crate) code_in_message: &'static str,
    pub(crate) code_not_read: &'static str,
    pub(crate) some_code: &'static str,
    pub(crate) picture: &'static str,
    pub(crate) to_do: &'static str,
    pub(crate) done: &'static str,
    pub(crate) someone: &'static str,
    pub(crate) role: &'static str,
    pub(crate) channel: &'static str,
}

impl Phrases {
    /// Returns the phrases of a language. Nothing is said in place of something in a language without phrases.
    pub(crate) fn of(language: Language) -> &'static Self {
        const ENGLISH: Phrases = Phrases {
            code_in_chat: "I've put the code in the chat",
            code_in_message: "I'm sending you the code as a direct message",
            code_not_read: "There is code here that I don't read aloud",
            some_code: "some code",
            picture: "a picture, ",
            to_do: "to do, ",
            done: "done, ",
            someone: "someone",
            role: "a role",
            channel: "a channel",
        };
        const GERMAN: Phrases = Phrases {
            code_in_chat: "Den Code habe ich in den Chat geschrieben",
            code_in_message: "Den Code schicke ich dir als Direktnachricht",
            code_not_read: "Hier steht Code, den ich nicht vorlese",
            some_code: "etwas Code",
            picture: "ein Bild, ",
            to_do: "zu erledigen, ",
            done: "erledigt, ",
            someone: "jemand",
            role: "eine Rolle",
            channel: "ein Kanal",
        };
        const OTHER: Phrases = Phrases {
            code_in_chat: "",
            code_in_message: "",
            code_not_read: "",
            some_code: "",
            picture: "",
            to_do: "",
            done: "",
            someone: "",
            role: "",
            channel: "",
        };
        match language {
            Language::English => &ENGLISH,
            Language::German => &GERMAN,
            Language::Other => &OTHER,
        }
    }
}

/// Returns plain text as it is written, without emoji and with the host alone of each address.
pub(crate) fn as_written(text: &str) -> String {
    let text =
        pattern!(r"(?i:\b[a-z][a-z0-9+.-]*://|\bwww\.)[^\s<>]+").replace_all(text, |found: &regex::Captures<'_>| {
            let whole = crate::rule::group(found, 0);
            let trimmed = whole.trim_end_matches(['.', ',', '!', '?', ';', ':', ')']);
            format!("{}{}", german::host(trimmed), whole.get(trimmed.len()..).unwrap_or_default())
        });
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if is_emoji(c) {
            plain.truncate(plain.trim_end().len());
        } else {
            plain.push(c);
        }
    }
    let has_words = plain.chars().any(char::is_alphanumeric);
    if has_words { plain.split_whitespace().collect::<Vec<_>>().join(" ") } else { String::new() }
}
