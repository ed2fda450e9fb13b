//! Recognises messages that ask a model of a hundred million weights for what it cannot do: a story, a poem, a sum, a
//! deed. Such a model writes a sentence that looks like an answer and says nothing. So its reply begins with an honest
//! word, and the model continues from there.
//!
//! Only English is recognised, because these models speak nothing else.

use crate::compose::Line;
use crate::reminders::{FILLERS, LEADS, REQUESTS, after, asks_for_a_deed, sentences};

/// How a sentence begins that asks for a text.
const ASKS_FOR_A_TEXT: &[&str] = &[
    "tell ",
    "write ",
    "make up ",
    "make me ",
    "give me ",
    "give us ",
    "compose ",
    "invent ",
    "read me ",
    "sing ",
    "i need a ",
    "we need a ",
    "i want a ",
    "we want a ",
    "i'd like a ",
    "we'd like a ",
];

/// The same in the middle of a sentence: "my son wants a bedtime story".
const WANTS_A_TEXT: &[&str] = &[" wants a ", " want a ", " needs a ", " would like a ", " would love a "];

/// Texts that take more than a few sentences, or a form, and how a reply begins that cannot give them.
const TEXTS: &[(&[&str], &str)] = &[
    (&["story", "stories", "tale", "legend", "fable"], "I can't tell stories"),
    (&["poem", "rhyme", "haiku", "limerick", "sonnet", "ballad"], "I can't write poems"),
    (&["song", "lyrics"], "I can't write songs"),
    (&["essay", "speech", "script", "letter"], "I can't write that"),
];

/// Words before one of [`TEXTS`] that show another wish: "tell me about the story you heard".
const ABOUT: &[&str] = &["about", "what", "who", "why", "how", "if", "whether", "more", "when", "where", "that"];

/// The most words between the request and the text: "tell me a very short bedtime story".
const WORDS_BEFORE_TEXT: usize = 6;

/// Words that join two numbers to a sum.
const OPERATIONS: &[&str] =
    &["plus", "minus", "times", "+", "-", "−", "*", "×", "x", "/", "÷", "divided", "multiplied"];

/// Returns the words with which a reply begins that cannot do what the message asks.
pub(crate) fn beginning(message: &Line) -> Option<&'static str> {
    let text = message.text.to_lowercase().replace('’', "'");
    if asks_for_a_sum(&text) {
        return Some("I'm no good at sums");
    }
    sentences(&text).find_map(|sentence| match asks_for_a_deed(&sentence) {
        true => Some("I can't do that"),
        false => asked_text(&sentence),
    })
}

fn asked_text(sentence: &str) -> Option<&'static str> {
    let asked = after(after(after(sentence, LEADS), REQUESTS), FILLERS);
    let starts = ASKS_FOR_A_TEXT.iter().find_map(|start| asked.strip_prefix(start));
    let wants = || WANTS_A_TEXT.iter().find_map(|middle| sentence.split_once(middle).map(|(_, rest)| rest));
    let words = starts.or_else(wants)?.split_whitespace().take(WORDS_BEFORE_TEXT);
    words
        .take_while(|word| !ABOUT.contains(word))
        .find_map(|word| TEXTS.iter().find(|(texts, _)| texts.contains(&word)).map(|(_, beginning)| *beginning))
}

/// Returns true if a text asks what two numbers make. Dates, times and ranges are no sums.
fn asks_for_a_sum(text: &str) -> bool {
    let text = text.replace('=', " = ").replace('%', " percent");
    let is_asked = text.contains(['?', '=']);
    let words: Vec<&str> = text.split_whitespace().map(|word| word.trim_matches(['.', ',', '!', '?', ':'])).collect();
    let numbers = words.iter().filter(|word| is_number(word)).count();
    let between = |parts: &[&str]| match parts {
        [one, operation, other, ..] if is_number(one) && OPERATIONS.contains(operation) => {
            // "Divided by" and "multiplied by" have a word more.
            let other = if *other == "by" { parts.get(3) } else { Some(other) };
            other.is_some_and(|other| is_number(other)) && (is_asked || operation.len() > 2)
        }
        ["half", "of", one, ..] => is_asked && is_number(one),
        [one, "percent", "of", other, ..] => is_asked && is_number(one) && is_number(other),
        _ => false,
    };
    let is_counted = is_asked && numbers > 1 && (text.contains("how many ") || text.contains("how much "));
    is_counted || (0..words.len()).any(|start| words.get(start..).is_some_and(between))
}

fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(text: &str) -> &'static str {
        beginning(&Line { depth: 0, speaker: Some("Ann".to_owned()), text: text.to_owned() }).unwrap_or_default()
    }

    #[test]
    fn stories_poems_sums_and_deeds_are_beyond_a_tiny_model() {
        for (asked, want) in [
            ("Tell me a story!", "I can't tell stories"),
            ("Hey. Can you tell us a very short story about a fox?", "I can't tell stories"),
            ("Could you please write me a haiku about rain", "I can't write poems"),
            ("So write a letter to my landlord", "I can't write that"),
            ("My daughter wants a song about trains.", "I can't write songs"),
            ("What's 14 times 3?", "I'm no good at sums"),
            ("What is 7 + 8?", "I'm no good at sums"),
            ("9 minus 4, please", "I'm no good at sums"),
            ("How much is 84 divided by 7?", "I'm no good at sums"),
            ("What's 15% of 60?", "I'm no good at sums"),
            ("I had 9 apples and ate 4. How many do I have?", "I'm no good at sums"),
            ("Remind me tomorrow at 7 please", "I can't do that"),
            ("Can you call my boss?", "I can't do that"),
        ] {
            assert_eq!(begun(asked), want, "{asked}");
        }
    }

    #[test]
    fn talk_about_stories_and_numbers_is_answered() {
        for other in [
            "I wrote a poem about my cat.",
            "I want to write a story some day.",
            "Tell me about the story you liked.",
            "Tell me what your favourite song is.",
            "I could tell my sister's story some day.",
            "Do you like poems?",
            "She told me a long story yesterday.",
            "I need a break.",
            "I run 3-4 times a week.",
            "We open 24/7, from 9 to 5.",
            "My exam is on 2026-05-01 at 10:30.",
            "It was 3 times bigger than ours.",
            "How many sisters do I have?",
            "Call me Sam.",
            "What did I say about the 2 boats?",
        ] {
            assert_eq!(begun(other), "", "{other}");
        }
    }
}
