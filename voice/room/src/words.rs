//! What spoken words mean for the turn: small sounds of attention, orders to stop, calls by name, whole sentences, echo.

use strsim::damerau_levenshtein;

/// What people say while they listen.
const BACKCHANNELS: &[&str] = &[
    "ah", "aha", "alright", "cool", "exactly", "good", "great", "haha", "hm", "hmm", "hmmm", "huh", "i", "ja", "mhm",
    "mm", "mmhm", "mmhmm", "mmm", "nice", "oh", "ok", "okay", "really", "right", "see", "sure", "true", "uh", "uhhuh",
    "um", "wow", "ya", "yeah", "yep", "yes", "yup",
];

/// The most words of a backchannel.
const BACKCHANNEL_WORDS: usize = 3;

/// Whole utterances that ask for silence.
const STOPS: &[&str] = &[
    "be quiet",
    "enough",
    "hold on",
    "hush",
    "please be quiet",
    "please stop",
    "please stop talking",
    "quiet",
    "quiet please",
    "shush",
    "shut up",
    "silence",
    "stop",
    "stop it",
    "stop please",
    "stop talking",
    "thats enough",
    "wait",
    "wait a second",
];

/// Whole utterances that ask for the rest of a reply that was stopped.
const GO_ONS: &[&str] = &[
    "carry on",
    "continue",
    "continue please",
    "go ahead",
    "go on",
    "go on please",
    "keep going",
    "keep talking",
    "please carry on",
    "please continue",
    "please go on",
    "please keep going",
    "sorry continue",
    "sorry go on",
];

/// Whole utterances that ask the bot to be quiet until somebody asks it to talk again.
const MUTES: &[&str] = &[
    "be quiet for a while",
    "be quiet until i call you",
    "do not talk any more",
    "dont talk any more",
    "dont talk anymore",
    "mute",
    "mute yourself",
    "mute yourself please",
    "please mute yourself",
    "stay quiet",
    "stay silent",
];

/// Whole utterances that let the bot talk again.
const UNMUTES: &[&str] = &[
    "please unmute yourself",
    "speak again",
    "talk again",
    "unmute",
    "unmute yourself",
    "unmute yourself please",
    "you can speak again",
    "you can talk again",
    "you can talk now",
    "you may speak again",
    "you may talk again",
];

/// Last words after which a sentence goes on.
const UNFINISHED: &[&str] = &[
    "a", "an", "and", "as", "at", "because", "but", "by", "for", "from", "if", "in", "is", "like", "my", "of", "on",
    "or", "so", "than", "that", "the", "then", "to", "uh", "um", "when", "where", "which", "with", "your",
];

/// Fewest words that can be an echo.
const ECHO_WORDS: usize = 3;

/// Words at the beginning and at the end of an utterance among which a name counts as a call.
const CALL_WORDS: usize = 3;

/// Returns the words of a text in lower case, without marks.
pub(crate) fn plain(text: &str) -> Vec<String> {
    let letters = |word: &str| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    text.split(|c: char| c.is_whitespace() || c == '-').map(letters).filter(|word: &String| !word.is_empty()).collect()
}

/// Returns true for what people say while they listen, such as "mhm".
pub(crate) fn is_backchannel(text: &str) -> bool {
    let words = plain(text);
    let known = words.iter().all(|word| BACKCHANNELS.contains(&word.as_str()));
    (known && (1..=BACKCHANNEL_WORDS).contains(&words.len())) || BACKCHANNELS.contains(&words.concat().as_str())
}

/// Returns true if the whole utterance asks for silence.
pub(crate) fn is_stop(text: &str, names: &[String]) -> bool {
    is_order(text, names, STOPS)
}

/// Returns true if the whole utterance asks for the rest of a reply.
pub(crate) fn is_go_on(text: &str, names: &[String]) -> bool {
    is_order(text, names, GO_ONS)
}

/// Returns whether the whole utterance asks the bot to be quiet from now on, or lets it talk again.
pub(crate) fn asks_to_mute(text: &str, names: &[String]) -> Option<bool> {
    let asks = |orders| is_order(text, names, orders);
    if asks(MUTES) { Some(true) } else { asks(UNMUTES).then_some(false) }
}

fn is_order(text: &str, names: &[String], orders: &[&str]) -> bool {
    let mut words = plain(text);
    // "Azera, stop" is an order, too.
    words.retain(|word| !names.iter().any(|name| sounds_like(word, name)));
    orders.contains(&words.join(" ").as_str())
}

/// Returns true if a transcript ends like a whole sentence.
pub(crate) fn seems_whole(text: &str) -> bool {
    let text = text.trim_end().trim_end_matches(['"', '\'', ')']);
    let is_ended = text.ends_with(['.', '!', '?']) && !text.ends_with("..");
    is_ended && plain(text).last().is_some_and(|last| !UNFINISHED.contains(&last.as_str()))
}

/// Returns true if a transcript that seems whole is a question.
pub(crate) fn is_question(text: &str) -> bool {
    text.trim_end().trim_end_matches(['"', '\'', ')']).ends_with('?')
}

/// Returns true if a transcript repeats what the bot just said: three in five of its pairs of words stand there.
pub(crate) fn is_echo(text: &str, said: &str) -> bool {
    let (words, said) = (plain(text), plain(said));
    if words.len() < ECHO_WORDS {
        return false;
    }
    let pairs = words.windows(2).filter(|pair| said.windows(2).any(|other| other == *pair)).count();
    pairs * 5 >= (words.len() - 1) * 3
}

/// Returns true if an utterance calls somebody by one of these names, at its beginning or end. Recognition spells names
/// as it likes, so a similar word counts.
pub(crate) fn calls(text: &str, names: &[String]) -> bool {
    let words = plain(text);
    let first = words.iter().take(CALL_WORDS);
    let last = words.iter().rev().take(CALL_WORDS - 1);
    let single = first.chain(last).any(|word| names.iter().any(|name| sounds_like(word, name)));
    // "Azera" may be written as "as era".
    let split =
        words.windows(2).take(CALL_WORDS - 1).any(|pair| names.iter().any(|name| sounds_like(&pair.concat(), name)));
    single || split
}

fn sounds_like(word: &str, name: &str) -> bool {
    let name = plain(name).concat();
    if name.is_empty() || word == name {
        return word == name;
    }
    let letters = name.chars().count();
    let same_start = word.chars().next() == name.chars().next();
    let most = match (letters, same_start) {
        (..=3, _) => 0,
        (4, _) | (_, false) => 1,
        (_, true) => 2,
    };
    damerau_levenshtein(word, &name) <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_make_small_sounds() {
        for text in ["Mhm.", "Mm-hmm.", "Yeah, right.", "I see.", "Uh-huh.", "Okay."] {
            assert!(is_backchannel(text), "{text}");
        }
        for text in ["", "No.", "Yes, but wait.", "I see the ferry.", "Really, right now, okay?", "What?"] {
            assert!(!is_backchannel(text), "{text}");
        }
    }

    #[test]
    fn orders_to_stop_are_whole_utterances() {
        let names = ["Azera".to_owned()];
        for text in ["Stop.", "Stop it!", "Azera, stop.", "Please stop, Azara."] {
            assert!(is_stop(text, &names), "{text}");
        }
        for text in ["Stop the car at the bridge.", "Do not stop.", "Azera."] {
            assert!(!is_stop(text, &names), "{text}");
        }
    }

    #[test]
    fn a_whole_sentence_has_an_end() {
        for text in ["When does the ferry leave?", "It rains.", "\"Go home!\""] {
            assert!(seems_whole(text), "{text}");
        }
        for text in ["I think that", "I went to the.", "It rains and.", "Well...", ""] {
            assert!(!seems_whole(text), "{text}");
        }
    }

    #[test]
    fn its_own_words_are_an_echo() {
        let said = "The ferry leaves at six in the evening, from the old pier.";
        assert!(is_echo("leaves at six in the evening", said));
        assert!(is_echo("Ferry leaves at sixth in the evening", said));
        assert!(!is_echo("When does the ferry leave?", said));
        assert!(!is_echo("At six", said));
    }

    #[test]
    fn names_are_heard_as_they_sound() {
        let names = ["Azera".to_owned(), "Lou".to_owned()];
        for text in [
            "Azera, what time is it?",
            "Hey Azara!",
            "Good night, Azure.",
            "As era, hello.",
            "Lou?",
            "Are you there, azera?",
        ] {
            assert!(calls(text, &names), "{text}");
        }
        for text in
            ["What time is it?", "I told him that Azera was asleep all day.", "You are loud.", "Low tide is at six."]
        {
            assert!(!calls(text, &names), "{text}");
        }
    }
}
