//! A short reminder next to the message it is about. A model of a billion weights reads the rules at the start of its
//! prompt and forgets them a few messages later: it says that it will wake somebody at six.
//!
//! A wrong reminder is worse than none, so each needs a whole phrase at the beginning of a sentence.

use azera_personas::speaks_of_loss;

use crate::abilities::Abilities;
use crate::compose::Line;

/// How a sentence begins that asks the persona to do something.
pub(crate) const REQUESTS: &[&str] =
    &["can you ", "could you ", "will you ", "please ", "kannst du ", "könntest du ", "bitte "];

/// Words between a request and its deed.
pub(crate) const FILLERS: &[&str] = &["please ", "also ", "quickly ", "just ", "maybe ", "then ", "bitte "];

/// What nobody can do who only talks. "Call me Sam" and "remind me what I said" are other things.
const DEEDS: &[&str] = &[
    "call my ",
    "call him ",
    "call her ",
    "call them ",
    "call somebody",
    "call someone",
    "phone my ",
    "text my ",
    "text him ",
    "text her ",
    "email my ",
    "email him ",
    "email her ",
    "message my ",
    "order me ",
    "order us ",
    "order a ",
    "order some ",
    "book me ",
    "book us ",
    "book a ",
    "buy me ",
    "buy us ",
    "wake me ",
    "remind me at ",
    "remind me in ",
    "remind me on ",
    "remind me to ",
    "remind me today",
    "remind me tonight",
    "remind me tomorrow",
    "remind me every ",
    "remind me next ",
    "google ",
    "weck mich ",
    "bestell mir ",
    "bestell uns ",
    "erinnere mich morgen",
    "erinnere mich daran",
    "erinnere mich an ",
    "erinnere mich um ",
];

/// The same in German, where the verb ends the sentence. "Kannst du dich erinnern?" is no deed.
const GERMAN_DEEDS: &[&str] =
    &[" anrufen", " bestellen", " buchen", " wecken", " mich daran erinnern", " mich morgen erinnern"];

/// How a question begins that the person asks about themselves.
const ABOUT_THE_PERSON: &[&str] = &[
    "what's my ",
    "what is my ",
    "what was my ",
    "what are my ",
    "when is my ",
    "when's my ",
    "who is my ",
    "who's my ",
    "where is my ",
    "where's my ",
    "how old is my ",
    "how old am i",
    "who am i",
    "what am i allergic ",
    "where do i live",
    "where do i work",
    "what do i do",
    "what do i write ",
    "what do i work ",
    "wie heiße ich",
    "wie heißt mein",
    "was ist mein",
    "wann ist mein",
    "wer ist mein",
    "wo ist mein",
    "wie alt ist mein",
    "wie alt bin ich",
    "wo wohne ich",
    "wo arbeite ich",
];

/// Words with which a question may begin.
pub(crate) const LEADS: &[&str] = &["so ", "and ", "ok ", "okay ", "but ", "und ", "aber ", "by the way "];

/// How a sentence begins that asks for a text.
const WRITING: &[&str] =
    &["write", "tell", "give", "make", "help", "explain", "show", "schreib", "erzähl", "erklär", "gib"];

/// The person's lines before a message in which a loss still counts.
const LINES_BEFORE: usize = 3;

/// Returns the reminder for a message. `person` is the name of who wrote it. `bot/docs/BENCHMARKS.md` says what they
/// change.
pub(crate) fn reminder(abilities: Abilities, person: &str, message: &Line, history: &[Line]) -> Option<String> {
    let text = message.text.to_lowercase().replace('’', "'");
    let asks = text.contains(['?', '？']);
    let mut sentences = sentences(&text);
    if sentences.clone().any(|sentence| asks_for_a_deed(&sentence)) {
        Some(abilities.fill("You cannot do that: you can {{only}}. Say so.").into_owned())
    } else if asks && sentences.clone().any(|sentence| begins_with(after(&sentence, LEADS), ABOUT_THE_PERSON)) {
        Some(format!("The question is about {person}. Answer it from what {person} told you, with \"you\"."))
    } else if !asks && !sentences.any(|sentence| begins_with(&sentence, WRITING)) && tells_of_loss(message, history) {
        Some(format!("{person} is sad. Answer in one gentle sentence, without a question."))
    } else {
        None
    }
}

/// Returns the sentences of a text, without commas.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = String> + Clone {
    text.split(['.', '!', '?', '？']).map(|sentence| sentence.replace(',', "").trim().to_owned())
}

fn begins_with(sentence: &str, beginnings: &[&str]) -> bool {
    // So that a phrase that ends with a space is found at the end, too.
    let sentence = format!("{sentence} ");
    beginnings.iter().any(|beginning| sentence.starts_with(beginning))
}

/// Returns a sentence without one of these beginnings.
pub(crate) fn after<'a>(sentence: &'a str, beginnings: &[&str]) -> &'a str {
    beginnings.iter().find_map(|beginning| sentence.strip_prefix(beginning)).unwrap_or(sentence)
}

/// Returns true if a sentence asks the persona to do something outside the conversation.
pub(crate) fn asks_for_a_deed(sentence: &str) -> bool {
    let asked = after(sentence, REQUESTS);
    let is_request = asked.len() < sentence.len();
    let deed = after(after(asked, FILLERS), FILLERS);
    begins_with(deed, DEEDS) && (is_request || !deed.starts_with("call") && !deed.starts_with("google"))
        || is_request && GERMAN_DEEDS.iter().any(|end| sentence.ends_with(end))
}

/// Returns true if the message, or one of the person shortly before it, tells of a loss.
fn tells_of_loss(message: &Line, history: &[Line]) -> bool {
    let before = history.iter().rev().filter(|line| line.speaker.is_some() && line.speaker == message.speaker);
    std::iter::once(message).chain(before.take(LINES_BEFORE)).any(|line| speaks_of_loss(&line.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line { depth: 0, speaker: Some("Ann".to_owned()), text: text.to_owned() }
    }

    fn after_lines(history: &[&str], text: &str) -> String {
        let history: Vec<Line> = history.iter().copied().map(line).collect();
        reminder(Abilities::default(), "Ann", &line(text), &history).unwrap_or_default()
    }

    #[test]
    fn what_only_a_body_can_do_is_refused() {
        for asked in [
            "Can you call my boss and tell him off? :)",
            "Please order me a pizza for tonight",
            "could you quickly text my sister?",
            "Hi! Could you wake me up at six?",
            "Remind me tomorrow at 7 please",
            "Kannst du bitte meinen Chef anrufen?",
            "Bitte bestell mir eine Pizza.",
        ] {
            assert_eq!(after_lines(&[], asked), "You cannot do that: you can only talk. Say so.", "{asked}");
        }
    }

    #[test]
    fn a_question_of_the_person_about_themselves_is_named_one() {
        for asked in ["What's my name?", "So what do I do?", "Wie heiße ich?", "And when is my exam?"] {
            assert!(after_lines(&[], asked).starts_with("The question is about Ann."), "{asked}");
        }
    }

    #[test]
    fn what_can_be_answered_has_no_reminder() {
        for other in [
            "I call my boss every day.",
            "Call me Sam.",
            "Can you call me Sam?",
            "Can you remind me what I said about the ferry?",
            "Remind me what my sister's name is.",
            "Kannst du dich an meinen Namen erinnern?",
            "Kannst du mir ein Gedicht schreiben?",
            "Can you tell me a story about a book?",
            "Can you order the list alphabetically?",
            "Please pay attention to the tone.",
            "Please wake the dragon.",
            "Would you buy a used car?",
            "Translate: 'Hi Tom, can you call my landlord?'",
            "How do I install Rust?",
            "Can I roll the dice?",
            "Do I hit the goblin?",
            "What is the capital of Australia?",
            "I feel great today!",
            "My phone died this morning.",
        ] {
            assert_eq!(after_lines(&[], other), "", "{other}");
        }
    }

    #[test]
    fn somebody_who_lost_somebody_is_answered_gently_for_some_messages_and_still_gets_answers() {
        let sad = "Ann is sad. Answer in one gentle sentence, without a question.";
        assert_eq!(after_lines(&[], "My dog died this morning."), sad);
        let told = ["My dog died this morning.", "He was thirteen.", "And so clever."];
        assert_eq!(after_lines(&told, "I hear his paws."), sad);
        assert_eq!(after_lines(&told[1..], "I hear his paws."), "");
        assert_eq!(after_lines(&told, "How do children mourn?"), "", "a question is answered");
        assert_eq!(after_lines(&told, "Write me an obituary for him."), "", "a text is written");
    }
}
