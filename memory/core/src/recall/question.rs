//! Parses a question: the words to look up, the text to embed, the speaker and the date that it names.

use std::collections::HashSet;

use azera_types::{Author, PersonId, Text};

use super::dates::DateSpan;
use crate::words::{fold, has_number, lookup_words, spaced_words};
use crate::{Error, Memory, ReadScope};

/// Most words of a question that are looked up among the speakers' names.
const MAX_NAME_LOOKUPS: usize = 64;

/// Question words and fillers, which are useless for a lookup. They are used in addition to the index's own stop words.
const FILLERS: &str = "about also am any been being both can could d did do does done during each from had has have \
    having he her hers him his how i its just ll m may me might mine must my only our ours own re s same shall she \
    should so some t than theirs them too us ve very we were what when where which who whom whose why would you your \
    yours";

/// Words about speech, and generic nouns. They are looked up only when nothing else is left.
const GENERIC: &str = "according another describe kind mention name one ones recently said say says sort tell thing \
    things told type way";

/// Words with which people ask about themselves.
const FIRST_PERSON: [&str; 5] = ["i", "me", "my", "mine", "myself"];

/// The speaker whose words a question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// Anyone with this name, folded.
    Named(String),
    /// The person who asks.
    Asker(PersonId),
}

impl Speaker {
    pub(super) fn said(&self, author: &Author) -> bool {
        match self {
            Self::Named(name) => folded_names(author.name()).any(|token| token == *name),
            Self::Asker(person) => author.person() == Some(person),
        }
    }
}

/// A parsed question.
#[derive(Clone, PartialEq)]
pub struct Question {
    /// The text to embed: the question without the speakers' names, because a name attracts every turn of that speaker.
    pub embed: String,
    /// The words to look up.
    pub words: String,
    /// The speaker whose words are asked for, if it is exactly one.
    pub speaker: Option<Speaker>,
    /// The date that the question names.
    pub span: Option<DateSpan>,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Question[{} bytes]", self.embed.len())
    }
}

impl Memory {
    /// Parses a question to `persona`, whose own name is ignored. A word counts as a speaker's name only if a speaker
    /// of that name said something that `read_scope` allows.
    pub fn question(
        &self,
        read_scope: &ReadScope,
        text: &Text,
        asker: &PersonId,
        persona: &str,
    ) -> Result<Question, Error> {
        let tokens: Vec<(String, String)> = spaced_words(text).collect();
        let called: HashSet<String> = folded_names(persona).collect();
        let mut named: Vec<String> = Vec::new();
        for (written, folded) in tokens.iter().take(MAX_NAME_LOOKUPS) {
            if called.contains(folded) || named.contains(folded) {
                continue;
            }
            if self.is_a_speaker(read_scope, folded)? || written != folded && self.is_a_speaker(read_scope, written)? {
                named.push(folded.clone());
            }
        }
        let speaker = match named.as_slice() {
            [one] => Some(Speaker::Named(one.clone())),
            [] if tokens.iter().any(|(_, token)| FIRST_PERSON.contains(&token.as_str())) => {
                Some(Speaker::Asker(asker.clone()))
            }
            _ => None,
        };
        let names: HashSet<String> = named.into_iter().chain(called).collect();
        let embed = without_names(text, &names);
        let (span, dateless) = match DateSpan::find(text) {
            Some((span, rest)) => (Some(span), rest),
            None => (None, text.as_str().to_owned()),
        };
        Ok(Question { embed, words: words_to_look_up(&dateless, text, &names), speaker, span })
    }
}

/// Returns true if a text is a question: it ends in a question mark, apart from a trailing attachment in brackets.
pub(super) fn is_question(text: &str) -> bool {
    let body = match text.trim_end().strip_suffix(']') {
        Some(head) => head.rfind('[').and_then(|at| head.get(..at)).unwrap_or(text),
        None => text,
    };
    body.trim_end().ends_with('?')
}

/// Returns the words of a name by which somebody may be called, as written in lower case and folded. Single letters and
/// common words do not count.
pub(crate) fn name_tokens(name: &str) -> impl Iterator<Item = String> + '_ {
    // Older rows of names were split at combining marks.
    let split = name.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty()).map(str::to_lowercase);
    let spelt = spaced_words(name).flat_map(|(written, folded)| [written, folded]);
    let tokens: std::collections::BTreeSet<String> = split.chain(spelt).collect();
    tokens.into_iter().filter(|token| is_name(token))
}

/// Returns the words of a name by which somebody may be called, folded.
fn folded_names(name: &str) -> impl Iterator<Item = String> + '_ {
    spaced_words(name).map(|(_, folded)| folded).filter(|token| is_name(token))
}

fn is_name(token: &str) -> bool {
    token.chars().count() > 1 && !is_filler(token)
}

pub(crate) fn is_filler(token: &str) -> bool {
    FILLERS.split_whitespace().any(|word| word == token)
}

/// Returns the text without the words in `names` and their possessive endings; the text itself if nothing would be
/// left.
fn without_names(text: &str, names: &HashSet<String>) -> String {
    let retained: Vec<&str> = text
        .split_whitespace()
        .filter(|word| {
            let bare = fold(word.trim_matches(|c: char| !c.is_alphanumeric()));
            let bare = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(&bare);
            !names.contains(bare)
        })
        .collect();
    if retained.is_empty() { text.to_owned() } else { retained.join(" ") }
}

/// Returns the words to look up: those of the text without its date, and all numbers of the whole text, because what
/// looks like a year may be something else.
fn words_to_look_up(dateless: &str, whole: &str, names: &HashSet<String>) -> String {
    let mut rest: Vec<String> = Vec::new();
    let mut telling: Vec<String> = Vec::new();
    let found = lookup_words(dateless);
    let numbers = lookup_words(whole).words.into_iter().filter(|word| has_number(word));
    for token in found.words.into_iter().chain(numbers) {
        if names.contains(&token) || is_filler(&token) {
            continue;
        }
        let list = if GENERIC.split_whitespace().any(|word| word == token) { &mut telling } else { &mut rest };
        if !list.contains(&token) {
            list.push(token);
        }
    }
    telling.extend(found.generic);
    if rest.is_empty() { telling.join(" ") } else { rest.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_fillers_are_removed() {
        let names = HashSet::from(["caroline".to_owned()]);
        let text = "What did Caroline's sister say, Caroline?";
        assert_eq!(without_names(text, &names), "What did sister say,");
        assert_eq!(words_to_look_up(text, text, &names), "sister");
        let text = "What did Caroline say?";
        assert_eq!(words_to_look_up(text, text, &names), "say");
        assert_eq!(without_names("Caroline?", &names), "Caroline?");
    }

    #[test]
    fn a_number_is_a_word_whether_or_not_it_looks_like_a_year() {
        let look_up = |text: &str| {
            let dateless = DateSpan::find(text).map_or_else(|| text.to_owned(), |(_, rest)| rest);
            words_to_look_up(&dateless, text, &HashSet::new())
        };
        assert_eq!(look_up("2070"), "2070");
        assert_eq!(look_up("graphics card 2070"), "graphics card 2070");
        assert_eq!(look_up("what is in locker 1999?"), "is in locker 1999");
        assert_eq!(look_up("room 2400"), "room 2400");
    }

    #[test]
    fn a_question_is_recognised_by_its_end() {
        assert!(is_question("What time is it?"));
        assert!(is_question("Do you like it? [shares a photo of a cat]"));
        assert!(!is_question("Why not. I do."));
        assert!(!is_question("]"));
    }

    #[test]
    fn a_filler_is_no_name() {
        assert_eq!(name_tokens("May Will").collect::<Vec<_>>(), ["will"]);
        assert_eq!(name_tokens("J. R. Smith").collect::<Vec<_>>(), ["smith"]);
    }
}
