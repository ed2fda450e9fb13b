//! Short reminders next to the message they are about. A model of a billion weights reads the rules at the start of its
//! prompt and forgets them a few messages later: it says that it will wake somebody at six.

use azera_personas::calls_for_comfort;

use crate::abilities::Abilities;
use crate::compose::Line;

/// How English requests begin, in lower case. The deed is the next word but fillers.
const REQUESTS: &[&[&str]] = &[&["can", "you"], &["could", "you"], &["will", "you"], &["would", "you"], &["please"]];

/// Words between a request and its deed.
const FILLERS: &[&str] = &["please", "also", "quickly", "just", "maybe", "perhaps", "then", "now"];

/// What a persona cannot do, because it only talks.
const DEEDS: &[&str] = &[
    "call", "phone", "text", "email", "e-mail", "mail", "message", "order", "book", "buy", "pay", "google", "remind",
    "wake",
];

/// Words after a deed that make it another one: "call me Sam", "order these words", "would you call it blue".
const OTHERWISE: &[&str] = &["it", "this", "that", "these", "those", "them", "me"];

/// Deeds for which `me` is no other deed.
const FOR_ME: &[&str] = &["text", "email", "e-mail", "mail", "message", "order", "book", "buy", "remind", "wake"];

/// A question that begins so asks for words, and no deed.
const QUESTION_WORDS: &[&str] = &["what", "how", "why", "which", "who", "where", "when"];

/// How German requests begin.
const GERMAN_REQUESTS: &[&str] = &["kannst", "könntest", "würdest", "bitte", "erinnere", "weck", "ruf", "bestell"];

/// The same deeds in German, where the verb stands at the end or begins the request.
const GERMAN_DEEDS: &[&str] = &[
    "anrufen",
    "bestellen",
    "buchen",
    "kaufen",
    "bezahlen",
    "googeln",
    "erinnern",
    "wecken",
    "erinnere",
    "weck",
    "bestell",
];

/// Words by which people speak of themselves, in lower case.
const FIRST_PERSON: &[&str] =
    &["i", "my", "me", "mine", "i'm", "i've", "ich", "mein", "meine", "meinen", "meiner", "meinem", "mir", "mich"];

/// The person's lines before a message in which what weighs on them still counts.
const LINES_BEFORE: usize = 3;

/// Returns the reminder for a message. `person` is the name of who wrote it. `bot/docs/BENCHMARKS.md` says what they
/// change.
pub(crate) fn reminder(abilities: Abilities, person: &str, message: &Line, history: &[Line]) -> Option<String> {
    let text = message.text.to_lowercase().replace('’', "'");
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && !"'-".contains(c)).filter(|word| !word.is_empty()).collect();
    let asks = text.contains(['?', '？']);
    if asks_for_a_deed(&words) {
        Some(abilities.fill("You cannot do that: you can {{only}}. Say so.").into_owned())
    } else if asks && words.iter().any(|word| FIRST_PERSON.contains(word)) {
        Some(format!("The question is about {person}. Answer it from what {person} told you, with \"you\"."))
    } else if !asks && is_sad(message, history) {
        Some(format!("{person} is sad. Answer in one gentle sentence, without a question."))
    } else {
        None
    }
}

/// Returns true if somebody asks the persona to do something outside the conversation.
fn asks_for_a_deed(words: &[&str]) -> bool {
    let german = words.first().is_some_and(|first| GERMAN_REQUESTS.contains(first));
    if german && words.iter().any(|word| GERMAN_DEEDS.contains(word)) {
        return true;
    }
    // "What would you call a small dragon?"
    if words.first().is_some_and(|first| QUESTION_WORDS.contains(first)) {
        return false;
    }
    let begun = words.first().filter(|first| ["remind", "wake"].contains(first)).map(|_| words.to_vec());
    let asked = (0..words.len()).filter_map(|at| {
        let rest = words.get(at..)?;
        let request = REQUESTS.iter().find(|request| rest.starts_with(request))?;
        let after = rest.iter().skip(request.len()).skip_while(|word| FILLERS.contains(word));
        Some(after.copied().collect())
    });
    begun.into_iter().chain(asked).any(|rest: Vec<&str>| match rest.as_slice() {
        [deed, "me", ..] => FOR_ME.contains(deed),
        [deed, next, ..] => DEEDS.contains(deed) && !OTHERWISE.contains(next),
        [deed] => DEEDS.contains(deed),
        [] => false,
    })
}

/// Returns true if the message, or one of the person shortly before it, calls for comfort.
fn is_sad(message: &Line, history: &[Line]) -> bool {
    let before = history.iter().rev().filter(|line| line.speaker.is_some() && line.speaker == message.speaker);
    std::iter::once(message).chain(before.take(LINES_BEFORE)).any(|line| calls_for_comfort(&line.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line { depth: 0, speaker: Some("Ann".to_owned()), text: text.to_owned() }
    }

    fn reminder_for(text: &str) -> String {
        reminder(Abilities::default(), "Ann", &line(text), &[]).unwrap_or_default()
    }

    #[test]
    fn what_only_a_body_can_do_is_refused() {
        for asked in [
            "Can you call my boss and tell him off? :)",
            "Please order me a pizza for tonight",
            "could you quickly text my sister?",
            "Hi! Could you wake me up at six?",
            "Bitte bestell mir eine Pizza.",
            "Remind me tomorrow at 7 please",
            "Kannst du bitte meinen Chef anrufen?",
        ] {
            assert_eq!(reminder_for(asked), "You cannot do that: you can only talk. Say so.", "{asked}");
        }
        for other in [
            "I call my boss every day.",
            "My mother can order in Polish.",
            "Can you tell me a story about a book?",
            "Can you call me Sam?",
            "What would you call a small dragon?",
            "Could you order these words by length?",
            "Kannst du mir ein Gedicht schreiben?",
            "Please check the text.",
        ] {
            assert_eq!(reminder_for(other), "", "{other}");
        }
    }

    #[test]
    fn a_question_about_the_person_is_named_one() {
        for asked in ["What's my name?", "Wie heiße ich?", "do I like rain?"] {
            assert!(reminder_for(asked).starts_with("The question is about Ann."), "{asked}");
        }
        for other in ["What is the capital of Australia?", "I like rain."] {
            assert_eq!(reminder_for(other), "", "{other}");
        }
    }

    #[test]
    fn somebody_sad_is_answered_gently_for_some_messages_and_still_gets_answers() {
        let sad = "Ann is sad. Answer in one gentle sentence, without a question.";
        assert_eq!(reminder_for("My dog died this morning."), sad);
        assert_eq!(reminder_for("My phone died this morning."), "");
        let history = [line("My dog died this morning."), line("He was thirteen."), line("And so clever.")];
        let after = |history: &[Line], text: &str| reminder(Abilities::default(), "Ann", &line(text), history);
        assert_eq!(after(&history, "I hear his paws."), Some(sad.to_owned()));
        assert_eq!(after(&history[1..], "I hear his paws."), None);
        assert_eq!(after(&history, "How do children mourn?"), None, "a question is answered");
    }
}
