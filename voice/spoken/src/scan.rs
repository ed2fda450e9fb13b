//! Goes through plain text and asks the rules at the start of every word, number and sign.

use crate::rule::RULES;
use crate::{Language, Options, german, language, table};

/// What a rule sees.
pub struct Input<'a> {
    pub before: &'a str,
    pub rest: &'a str,
    pub options: &'a Options,
    /// Whether the sentence is written in capitals only.
    pub shouts: bool,
    /// Whether the sentence has a word or a number besides emoji.
    pub has_words: bool,
}

/// What a rule makes of the start of the rest.
#[derive(Debug)]
pub struct Said {
    /// Bytes of the written form.
    pub len: usize,
    pub words: String,
}

impl Said {
    pub fn new(len: usize, words: impl Into<String>) -> Option<Self> {
        Some(Self { len, words: words.into() })
    }
}

impl<'a> Input<'a> {
    /// Returns the words before, the nearest first, in lower case and without signs at their ends.
    pub fn words_before(&self) -> impl Iterator<Item = String> + use<'a> {
        let words =
            self.before.rsplit(char::is_whitespace).map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        words.filter(|word| !word.is_empty()).map(str::to_lowercase)
    }

    pub fn word_before(&self) -> String {
        self.words_before().next().unwrap_or_default()
    }

    pub fn char_before(&self) -> Option<char> {
        self.before.chars().next_back()
    }

    /// Whether the rest starts a number or word of its own.
    pub fn is_fresh(&self) -> bool {
        self.char_before().is_none_or(|c| !c.is_alphanumeric())
    }

    pub fn after(&self, len: usize) -> &'a str {
        self.rest.get(len..).unwrap_or_default()
    }

    /// Whether no letter or digit follows after `len` bytes.
    pub fn ends_at(&self, len: usize) -> bool {
        !self.after(len).starts_with(char::is_alphanumeric)
    }

    /// Returns the word that follows after `len` bytes and one space.
    pub fn word_after(&self, len: usize) -> &'a str {
        let Some(rest) = self.after(len).strip_prefix(' ') else { return "" };
        rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
    }

    /// Whether a noun follows, so that what stands before it takes the singular: "a 5 dollar bill".
    pub fn describes_noun(&self, len: usize) -> bool {
        let article =
            matches!(self.word_before().as_str(), "a" | "an" | "the" | "another" | "this" | "my" | "your" | "our");
        let next = self.word_after(len);
        let is_acronym = next.len() > 1 && next.chars().all(char::is_uppercase);
        let is_noun = next.starts_with(char::is_lowercase) && !table::tables().function_words.has(next);
        article && (is_noun || is_acronym)
    }
}

/// Whether a character is a pictogram, or changes one. Digits and marks that may become pictograms are none.
pub fn is_emoji(c: char) -> bool {
    let pattern =
        crate::rule::pattern!(r"^[\p{Extended_Pictographic}\p{Regional_Indicator}\p{Emoji_Modifier}\u{FE0F}\u{200D}]$");
    !c.is_ascii() && pattern.is_match(c.encode_utf8(&mut [0; 4]))
}

/// Turns plain text of a language, one sentence or several, into words.
pub fn say(text: &str, options: &Options, language: Language) -> String {
    let rules = match language {
        Language::English => RULES,
        Language::German => german::RULES,
        Language::Other => return language::as_written(text),
    };
    let has_lower = text.chars().any(char::is_lowercase);
    let capitals = text.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() > 1).count();
    let shouts = !has_lower && capitals > 1;
    let has_words = has_words(text);
    let mut out = Output::default();
    let mut at = 0;
    while let Some((before, rest)) = text.split_at_checked(at).filter(|(_, rest)| !rest.is_empty()) {
        let input = Input { before, rest, options, shouts, has_words };
        let said = rules.iter().find_map(|rule| rule(&input)).filter(|said| said.len > 0);
        if let Some(said) = said {
            out.say(&said.words);
            at += said.len;
        } else if let Some(c) = rest.chars().next() {
            out.copy(c, rest.chars().nth(1));
            at += c.len_utf8();
        }
    }
    tidy(&out.text)
}

/// Whether something besides emoji, emoticons and signs is to be said.
fn has_words(text: &str) -> bool {
    let emoticons = &table::tables().emoticons;
    text.split_whitespace().any(|word| !emoticons.contains_key(word) && word.chars().any(char::is_alphanumeric))
}

#[derive(Default)]
struct Output {
    text: String,
    said: bool,
}

impl Output {
    fn say(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if self.text.ends_with(char::is_alphanumeric) && words.starts_with(char::is_alphanumeric) {
            self.text.push(' ');
        }
        self.text.push_str(words);
        self.said = true;
    }

    /// Copies a character that no rule knows, if a voice can say it or pauses at it.
    fn copy(&mut self, c: char, next: Option<char>) {
        let inside_word = self.text.ends_with(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric);
        match c {
            _ if c.is_numeric() => {}
            _ if c.is_alphabetic() => {
                if self.said && self.text.ends_with(char::is_alphanumeric) {
                    self.text.push(' ');
                }
                self.text.push(c);
            }
            '\u{300}'..='\u{36f}' => self.text.push(c),
            '\'' | '’' if self.text.ends_with(char::is_alphanumeric) && next.is_some_and(char::is_alphabetic) => {
                self.text.push('\'');
            }
            '-' | '‐' | '‑' if inside_word => self.text.push('-'),
            '.' | ',' | '?' | '!' | ';' | ':' => self.text.push(c),
            '…' => self.text.push_str("..."),
            '。' => self.text.push_str(". "),
            '，' | '、' => self.text.push_str(", "),
            '？' => self.text.push_str("? "),
            '！' => self.text.push_str("! "),
            '—' | '–' | '(' | ')' | '[' | ']' => self.text.push_str(", "),
            '-' if next.is_some_and(char::is_whitespace) && self.text.ends_with(' ') => self.text.push_str(", "),
            '\n' => self.text.push_str(". "),
            '\'' | '’' | '"' | '“' | '”' => {}
            _ => self.text.push(' '),
        }
        self.said = false;
    }
}

fn is_pause(c: char) -> bool {
    matches!(c, '.' | ',' | '?' | '!' | ';' | ':')
}

/// Puts spaces and marks in order: no space before a mark, one mark in a row, no mark at the start.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut marks = String::new();
    let mut gap = false;
    for c in text.chars() {
        if is_pause(c) {
            marks.push(c);
        } else if c.is_whitespace() {
            gap = true;
        } else {
            if !out.is_empty() {
                out.push_str(strongest(&marks));
                if gap || !marks.is_empty() {
                    out.push(' ');
                }
            }
            marks.clear();
            gap = false;
            out.push(c);
        }
    }
    if !out.is_empty() {
        out.push_str(match strongest(&marks) {
            "," | ";" | ":" => ",",
            mark => mark,
        });
    }
    out
}

/// Returns the one mark that a row of marks comes down to.
fn strongest(marks: &str) -> &'static str {
    let has = |mark: char| marks.contains(mark);
    match marks {
        "" => "",
        _ if has('?') => "?",
        _ if has('!') => "!",
        _ if marks.contains("...") => "...",
        _ if has('.') => ".",
        _ if has(':') => ":",
        _ if has(';') => ";",
        _ => ",",
    }
}
