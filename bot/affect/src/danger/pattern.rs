//! How phrases of `rules/danger.toml` become regular expressions.
//!
//! | in a phrase | matches |
//! |---|---|
//! | `word` | that word |
//! | `word*`, `*word` | any word that begins, or ends, like it |
//! | `(a\|b c)` | one of these |
//! | `[a\|b c]` | one of these, or nothing |
//! | `~` | up to three words, or six characters of a script without blanks |
//! | `{8-17}` | a number in this range |
//! | `<name>` | one of the alternatives of the slot with this name |
//!
//! Brackets may stand within brackets.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};
use regex::escape;
use serde::Deserialize;

use super::normal::normalise;

/// Bytes that one compiled list may take.
const MAX_REGEX_BYTES: usize = 64 << 20;

/// Whether a script sets its words apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spacing {
    /// By blanks.
    Words,
    /// Not at all.
    None,
}

/// Why a phrase cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatternError {
    #[error("`{phrase}`: {what}")]
    Phrase { phrase: String, what: &'static str },
    #[error(transparent)]
    Regex(#[from] regex::Error),
}

/// Alternatives by name: `mother = "mum|mom|mother"`.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Slots(BTreeMap<String, String>);

impl Slots {
    /// Returns a phrase with `(a|b)` in the place of each `<name>`. A slot may name slots that come before it in the alphabet.
    pub(super) fn fill(&self, phrase: &str) -> Result<String, PatternError> {
        let mut filled = phrase.to_owned();
        for (name, alternatives) in self.0.iter().rev() {
            filled = filled.replace(&format!("<{name}>"), &format!("({alternatives})"));
        }
        if filled.contains(['<', '>']) {
            return Err(PatternError::Phrase { phrase: phrase.to_owned(), what: "no slot has this name" });
        }
        Ok(filled)
    }
}

/// Phrases, ready to match.
///
/// The phrases of all languages together take tens of megabytes once they are compiled, and most of them only apply to scripts that
/// a place never uses. So those that no ASCII text can match are compiled when the first other text is read.
#[derive(Debug)]
pub(super) struct List {
    ascii: Option<Regex>,
    other: Option<(String, OnceLock<Regex>)>,
}

impl List {
    /// Prepares phrases; `None` for no phrases.
    pub(super) fn of(phrases: &[String], spacing: Spacing) -> Result<Option<Self>, PatternError> {
        if phrases.is_empty() {
            return Ok(None);
        }
        let (ascii, other): (Vec<_>, Vec<_>) = phrases.iter().partition(may_be_ascii);
        let ascii = source_of(&ascii, spacing)?.as_deref().map(compile).transpose()?;
        let other = source_of(&other, spacing)?;
        if cfg!(test) {
            other.as_deref().map(compile).transpose()?;
        }
        Ok(Some(Self { ascii, other: other.map(|source| (source, OnceLock::new())) }))
    }

    /// Returns true if one of the phrases stands in a normalised text.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regexes(text).any(|regex| regex.is_match(text.as_bytes()))
    }

    /// Returns the expressions that may match a text.
    pub(super) fn regexes(&self, text: &str) -> impl Iterator<Item = &Regex> + use<'_> {
        let other = self.other.as_ref().filter(|_| !text.is_ascii());
        let other = other.map(|(source, regex)| {
            regex.get_or_init(|| compile(source).expect("a test compiles the built-in phrases"))
        });
        self.ascii.iter().chain(other)
    }
}

/// Returns true if a phrase may match a text without any other signs than ASCII.
fn may_be_ascii(phrase: &&String) -> bool {
    phrase.chars().any(|c| c.is_ascii_alphanumeric()) || phrase.is_ascii()
}

/// Returns the source of one expression that matches wherever one of the phrases does; `None` for no phrases.
fn source_of(phrases: &[&String], spacing: Spacing) -> Result<Option<String>, PatternError> {
    if phrases.is_empty() {
        return Ok(None);
    }
    let mut sources = Vec::with_capacity(phrases.len());
    for phrase in phrases {
        let error = |what| PatternError::Phrase { phrase: (*phrase).clone(), what };
        let source = sequence(phrase, spacing).map_err(error)?;
        if source.is_empty() {
            return Err(error("it holds no word"));
        }
        sources.push(source);
    }
    Ok(Some(match spacing {
        Spacing::Words => format!(" (?:{})", sources.join("|")),
        Spacing::None => sources.join("|"),
    }))
}

/// Compiles an expression. It matches bytes. Normalised text needs no classes of letters, and with those the gaps alone take most of
/// the time to compile.
fn compile(source: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(source).unicode(false).size_limit(MAX_REGEX_BYTES).build()
}

/// What an idiom leaves where it was taken out: no phrase reaches over it, and no text holds it.
pub(super) const BARRIER: &str = " | ";

/// A phrase, or one side of an alternative, as the source of an expression. Each word brings the blank behind it.
fn sequence(phrase: &str, spacing: Spacing) -> Result<String, &'static str> {
    let mut source = String::new();
    let mut rest = phrase;
    while let Some(at) = rest.find(['(', '[', '{', '~', ')', ']', '}', '|']) {
        let (before, from) = rest.split_at_checked(at).ok_or("it is no text")?;
        source.push_str(&words(before, spacing)?);
        let mut chars = from.chars();
        let mark = chars.next();
        rest = chars.as_str();
        match mark {
            Some('~') => source.push_str(gap(spacing)),
            Some('(') => source.push_str(&format!("(?:{})", alternatives(&mut rest, ')', spacing)?)),
            Some('[') => source.push_str(&format!("(?:{})?", alternatives(&mut rest, ']', spacing)?)),
            Some('{') => source.push_str(&number(&mut rest, spacing)?),
            _ => return Err("a bracket or bar stands alone"),
        }
    }
    source.push_str(&words(rest, spacing)?);
    Ok(source)
}

fn gap(spacing: Spacing) -> &'static str {
    match spacing {
        Spacing::Words => "(?:[^ |]+ ){0,3}",
        // Three bytes a character.
        Spacing::None => "[^|]{0,18}",
    }
}

/// What stands up to the closing bracket of this one, which is taken off too.
fn inside<'a>(rest: &mut &'a str, close: char) -> Result<&'a str, &'static str> {
    let mut depth = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            c if c == close && depth == 0 => {
                let (inside, behind) = rest.split_at_checked(at).ok_or("it is no text")?;
                *rest = behind.strip_prefix(close).unwrap_or(behind);
                return Ok(inside);
            }
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.checked_sub(1).ok_or("brackets cross")?,
            _ => {}
        }
    }
    Err("a bracket is not closed")
}

fn alternatives(rest: &mut &str, close: char, spacing: Spacing) -> Result<String, &'static str> {
    let mut depth = 0_i32;
    let sides = inside(rest, close)?.split(|c: char| {
        depth += match c {
            '(' | '[' => 1,
            ')' | ']' => -1,
            _ => 0,
        };
        c == '|' && depth == 0
    });
    let sides = sides.map(|side| sequence(side, spacing)).collect::<Result<Vec<_>, _>>()?;
    Ok(sides.join("|"))
}

fn number(rest: &mut &str, spacing: Spacing) -> Result<String, &'static str> {
    let (from, to) = inside(rest, '}')?.split_once('-').ok_or("a range is written {8-17}")?;
    let bound = |text: &str| text.parse::<u32>().map_err(|_| "a range is of whole numbers");
    let numbers: Vec<String> = (bound(from)?..=bound(to)?).rev().map(|number| number.to_string()).collect();
    let numbers = numbers.join("|");
    Ok(match spacing {
        Spacing::Words => format!("(?:{numbers}) "),
        // No other digit stands before it: 8 is not in 38.
        Spacing::None => format!("(?:^|[^0-9])(?:{numbers})"),
    })
}

fn words(text: &str, spacing: Spacing) -> Result<String, &'static str> {
    let mut source = String::new();
    for word in text.split_whitespace() {
        let (open, close) = (word.starts_with('*'), word.ends_with('*'));
        let core = normalise(word);
        let core = core.trim();
        if core.is_empty() {
            return Err("a word holds no letter");
        }
        match spacing {
            Spacing::None => source.push_str(&escape(&core.replace(' ', ""))),
            Spacing::Words => {
                source.push_str(if open { "[^ ]*" } else { "" });
                source.push_str(&escape(core));
                source.push_str(if close { "[^ ]* " } else { " " });
            }
        }
    }
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spacing: Spacing, phrase: &str, text: &str, want: bool) {
        let list = List::of(&[phrase.to_owned()], spacing).unwrap().unwrap();
        let text = normalise(text);
        let text = if spacing == Spacing::None { text.replace(' ', "") } else { text };
        assert_eq!(list.is_match(&text), want, "{phrase:?} in {text:?}: {list:?}");
    }

    #[test]
    fn phrases_match_at_the_edges_of_words() {
        let check = |phrase, text, want| check(Spacing::Words, phrase, text, want);
        check("want to die", "I want to DIE.", true);
        check("want to die", "I want to diet", false);
        check("want to die", "unwant to die", false);
        check("want to ~ die", "I want to just fucking die", true);
        check("want to ~ die", "I want to see how the roses in there die", false);
        check("(i|we) [really|do] want to die", "I really want to die", true);
        check("(i|we) [really|do] want to die", "we want to die", true);
        check("(i|we) [really|do] want to die", "they want to die", false);
        check("selbstmord*", "Selbstmordgedanken", true);
        check("*mord", "Selbstmord!", true);
        check("don't want to live", "i dont want to live", true);
        check("(to (see|meet) [him|(her|them) again]|away) now", "to see them again now", true);
        check("(to (see|meet) [him|(her|them) again]|away) now", "to meet now", true);
        check("(to (see|meet) [him|(her|them) again]|away) now", "to see again now", false);
        check("i am {8-17}", "I am 9", true);
        check("i am {8-17}", "I am 17!", true);
        check("i am {8-17}", "I am 18", false);
        check("i am {8-17}", "I am 170", false);
    }

    #[test]
    fn phrases_of_scripts_without_blanks_match_anywhere() {
        let check = |phrase, text, want| check(Spacing::None, phrase, text, want);
        check("死にたい", "もう 死に たいです", true);
        check("(我|俺)想死", "其实我想死了", true);
        check("(我|俺)想死", "我不想活", false);
        check("想~死", "想现在就去死", true);
        check("{8-17}歳", "12歳です", true);
        check("{8-17}歳", "僕は12歳です", true);
        check("{8-17}歳", "38歳です", false);
    }

    #[test]
    fn a_slot_stands_for_its_alternatives() {
        let slots = [("a", "mum|dad"), ("kin", "<a>|my <a>")].map(|(name, of)| (name.to_owned(), of.to_owned()));
        let slots = Slots(BTreeMap::from(slots));
        let phrase = slots.fill("tell <kin> that").unwrap();
        check(Spacing::Words, &phrase, "Tell my dad that", true);
        check(Spacing::Words, &phrase, "Tell that", false);
        assert!(slots.fill("tell <nobody>").is_err());
    }

    #[test]
    fn a_phrase_that_says_nothing_or_is_broken_is_refused() {
        for phrase in ["", "  ", "(a|b", "a)", "a|b", "{8}", "{x-y}", "a - b", "(a [b) c]"] {
            assert!(List::of(&[phrase.to_owned()], Spacing::Words).is_err(), "{phrase:?}");
        }
    }
}
