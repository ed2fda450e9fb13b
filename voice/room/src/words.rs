//! What spoken words mean for the turn: small sounds of attention, orders to stop, calls by name, whole sentences, echo.

mod english;
mod german;

use strsim::damerau_levenshtein;

/// What words mean in one language. All are in lower case and without marks.
struct Language {
    /// What people say while they listen.
    backchannels: &'static [&'static str],
    /// Whole utterances that ask for silence.
    stops: &'static [&'static str],
    /// Whole utterances that ask for the rest of a reply that was stopped.
    go_ons: &'static [&'static str],
    /// Whole utterances that ask the bot to be quiet until somebody asks it to talk again.
    mutes: &'static [&'static str],
    /// Whole utterances that let the bot talk again.
    unmutes: &'static [&'static str],
    /// Last words after which a sentence goes on.
    unfinished: &'static [&'static str],
}

/// The languages in which people are understood, whichever they speak.
const LANGUAGES: [&Language; 2] = [&english::LANGUAGE, &german::LANGUAGE];

/// The most words of a backchannel.
const BACKCHANNEL_WORDS: usize = 3;

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
    // People mix languages: "ok, genau".
    let is_known = |word: &str| LANGUAGES.iter().any(|language| language.backchannels.contains(&word));
    let is_short = (1..=BACKCHANNEL_WORDS).contains(&words.len());
    is_short && words.iter().all(|word| is_known(word)) || is_known(&words.concat())
}

/// Returns true if the whole utterance asks for silence.
pub(crate) fn is_stop(text: &str, names: &[String]) -> bool {
    is_order(text, names, |language| language.stops)
}

/// Returns true if the whole utterance asks for the rest of a reply.
pub(crate) fn is_go_on(text: &str, names: &[String]) -> bool {
    is_order(text, names, |language| language.go_ons)
}

/// Returns whether the whole utterance asks the bot to be quiet from now on, or lets it talk again.
pub(crate) fn asks_to_mute(text: &str, names: &[String]) -> Option<bool> {
    if is_order(text, names, |language| language.mutes) {
        return Some(true);
    }
    is_order(text, names, |language| language.unmutes).then_some(false)
}

fn is_order(text: &str, names: &[String], orders: fn(&Language) -> &'static [&'static str]) -> bool {
    let words = plain(text);
    let is_known = |words: &[&str]| {
        let order = words.join(" ");
        LANGUAGES.iter().any(|language| orders(language).contains(&order.as_str()))
    };
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    // "Azera, stop" is an order, too. For a bot called Stella, "still" is both.
    let is_name = |word: &str| names.iter().any(|name| sounds_like(word, name));
    let others: Vec<&str> = all.iter().copied().filter(|word| !is_name(word)).collect();
    is_known(&all) || is_known(&others)
}

/// Returns true if a transcript ends like a whole sentence.
pub(crate) fn seems_whole(text: &str) -> bool {
    let text = text.trim_end().trim_end_matches(['"', '\'', ')']);
    let is_ended = text.ends_with(['.', '!', '?']) && !text.ends_with("..");
    let goes_on = |last: &String| LANGUAGES.iter().any(|language| language.unfinished.contains(&last.as_str()));
    is_ended && plain(text).last().is_some_and(|last| !goes_on(last))
}

/// Returns true if a transcript that seems whole is a question.
pub(crate) fn is_question(text: &str) -> bool {
    text.trim_end().trim_end_matches(['"', '\'', ')']).ends_with('?')
}

/// Returns true if a transcript repeats what the bot just said: three in five of its pairs of words stand there. "At six
/// in the evening?" is a question about it, if the bot asked nothing.
pub(crate) fn is_echo(text: &str, said: &str) -> bool {
    if is_question(text) && !said.contains('?') {
        return false;
    }
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
    let differ = damerau_levenshtein(word, &name);
    // "Area" and "Alexa" differ from "Azera" in two letters, too, but not in vowels alone.
    let is_sure = differ == 1 && letters > 4 && same_start;
    differ <= most && (is_sure || consonants(word) == consonants(&name))
}

/// Returns the consonants of a word as they sound: "Assera", "Acera" and "Atsera" have those of "Azera".
fn consonants(word: &str) -> String {
    let word = word.replace("ph", "f").replace("ts", "z").replace("tz", "z");
    let mut letters: Vec<char> = word.chars().collect();
    letters.dedup();
    let next = letters.iter().skip(1).copied().map(Some).chain([None]);
    let sound = |(letter, next): (&char, Option<char>)| match letter {
        'a' | 'e' | 'i' | 'o' | 'u' | 'y' | 'h' | 'ä' | 'ö' | 'ü' => None,
        'c' if matches!(next, Some('e' | 'i' | 'y')) => Some('z'),
        's' | 'ß' => Some('z'),
        'b' => Some('p'),
        'd' => Some('t'),
        'g' | 'k' | 'q' => Some('c'),
        'v' | 'w' => Some('f'),
        letter => Some(*letter),
    };
    letters.iter().zip(next).filter_map(sound).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_make_small_sounds() {
        for text in ["Mhm.", "Mm-hmm.", "Yeah, right.", "I see.", "Uh-huh.", "Okay."] {
            assert!(is_backchannel(text), "{text}");
        }
        for text in ["Genau.", "Ach so.", "Ja, klar.", "Ich verstehe.", "Alles klar.", "Ok, genau."] {
            assert!(is_backchannel(text), "{text}");
        }
        for text in [
            "Nein.",
            "Ja, aber warte.",
            "Genau wann?",
            "",
            "No.",
            "Yes, but wait.",
            "I see the ferry.",
            "Really, right now, okay?",
            "What?",
        ] {
            assert!(!is_backchannel(text), "{text}");
        }
    }

    #[test]
    fn orders_to_stop_are_whole_utterances() {
        let names = ["Azera".to_owned()];
        for text in ["Stop.", "Stop it!", "Azera, stop.", "Please stop, Azara."] {
            assert!(is_stop(text, &names), "{text}");
        }
        for text in ["Stopp!", "Azera, hör auf.", "Bitte sei still, Azera.", "Moment mal."] {
            assert!(is_stop(text, &names), "{text}");
        }
        assert!(is_go_on("Sprich weiter!", &names));
        assert_eq!(asks_to_mute("Azera, schalte dich stumm.", &names), Some(true));
        assert_eq!(asks_to_mute("Du darfst wieder sprechen.", &names), Some(false));
        assert!(is_stop("Sei still!", &["Stella".to_owned()]));
        for text in ["Hör auf die Musik.", "Stop the car at the bridge.", "Do not stop.", "Azera."] {
            assert!(!is_stop(text, &names), "{text}");
        }
    }

    #[test]
    fn a_whole_sentence_has_an_end() {
        for text in ["When does the ferry leave?", "It rains.", "\"Go home!\"", "Was ist das?", "Kommst du mit?"] {
            assert!(seems_whole(text), "{text}");
        }
        for text in ["I think that", "I went to the.", "It rains and.", "Well...", "", "Es regnet und."] {
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
        assert!(!is_echo("At six in the evening?", said), "somebody asks whether that is so");
        assert!(is_echo("Do you want to know more?", "Yes. Do you want to know more?"));
    }

    #[test]
    fn names_are_heard_as_they_sound() {
        let names = ["Azera".to_owned(), "Lou".to_owned()];
        for text in [
            "Azera, what time is it?",
            "Hey Azara!",
            "Good night, Azure.",
            "As era, hello.",
            "Hallo Assera!",
            "Atsera, wie spät ist es?",
            "Acera?",
            "Lou?",
            "Are you there, azera?",
        ] {
            assert!(calls(text, &names), "{text}");
        }
        for text in [
            "What time is it?",
            "I told him that Azera was asleep all day.",
            "You are loud.",
            "Low tide is at six.",
            "Which area?",
            "The arena is full.",
            "Alexa, what time is it?",
            "Red alert!",
            "What an aura.",
        ] {
            assert!(!calls(text, &names), "{text}");
        }
    }
}
