//! Compares two statements by their words. Vectors alone make "6 am" and "6 pm" one thing. A word that differs keeps two
//! statements apart, in every language: whatever is not known to be harmless counts.

use std::collections::HashSet;

use super::fold::fold_case;
use super::languages::{Group, Languages};
use super::split::{characters, runs};

/// What a negation counts as, whatever its word: "I never eat olives" and "I don't eat olives" agree.
const NEGATION: &str = "not";

/// Returns true if two texts say the same in the same words. Case, punctuation and fillers make no difference; every
/// other word and the order of the words do.
pub fn same_statement(a: &str, b: &str) -> bool {
    Statement::new(a).is_same(&Statement::new(b))
}

/// Most words at the one place where two similar statements differ.
const DIFFERING: usize = 2;

/// Fewest words that two similar statements share around that place.
const SHARED: usize = 3;

/// A text split into words, to be compared with many others: splitting takes far longer than comparing.
pub(crate) struct Statement {
    words: Vec<String>,
    /// Places of the words that are fillers in no language.
    lasting: Vec<usize>,
    asks: bool,
}

impl Statement {
    pub(crate) fn new(text: &str) -> Self {
        let (words, languages) = (words(text), Languages::get());
        let lasting = (0..words.len()).filter(|place| !languages.is_filler_anywhere(&words[*place])).collect();
        Self { words, lasting, asks: asks(text) }
    }

    /// Returns true if it seems to say the same whoever says it: it begins with a subject of its own, such as "the server",
    /// and has no pronoun and no word for a relative. What only looks so, such as "the dog has died", is not told apart.
    pub(crate) fn is_impersonal(&self) -> bool {
        let words = || self.words.iter().map(String::as_str);
        !self.asks && Languages::get().of(words()).is_some_and(|language| language.is_impersonal(words()))
    }

    /// Returns the words that are fillers in no language, as one text. Statements that say the same have the same.
    pub(crate) fn lasting_words(&self) -> String {
        self.lasting().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    fn lasting(&self) -> impl Iterator<Item = &String> {
        self.lasting.iter().filter_map(|place| self.words.get(*place))
    }

    /// See [`same_statement`].
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (left, right) = (&self.words, &other.words);
        if self.asks != other.asks {
            return false;
        }
        if left == right {
            return true;
        }
        // Whatever their language is. To find it takes far longer.
        if !self.lasting().eq(other.lasting()) {
            return false;
        }
        let Some(language) = Languages::get().of(left.iter().chain(right).map(String::as_str)) else { return false };
        let telling = |words: &'_ Vec<String>| -> Vec<String> {
            words.iter().filter(|word| !language.is_filler(word)).cloned().collect()
        };
        let (left, right) = (telling(left), telling(right));
        !left.is_empty() && left == right
    }

    /// Returns true if two texts have the same words but for one place, where one or two words differ, or stand in one text
    /// alone.
    pub(crate) fn differs_in_one_place(&self, other: &Self) -> bool {
        let (left, right) = (&self.words, &other.words);
        let (shorter, longer) = (left.len().min(right.len()), left.len().max(right.len()));
        if longer - shorter > DIFFERING {
            return false;
        }
        let before = left.iter().zip(right).take_while(|(left, right)| left == right).count();
        let after = left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count();
        let shared = before + after.min(shorter - before);
        (1..=DIFFERING).contains(&(longer - shared)) && shared >= SHARED
    }
}

/// Returns the words that tell a statement from similar ones, in their order: numbers, negations, units, pronouns,
/// opposites, names (which begin with a capital inside a sentence), and every character of scripts without spaces.
pub fn telling_words(text: &str) -> Vec<String> {
    found_words(text, true)
}

/// Returns the telling words that turn a statement around when they are added to it: all but units and times that
/// follow no number. "I bake every week" only adds to "I bake".
pub fn turning_words(text: &str) -> Vec<String> {
    found_words(text, false)
}

fn found_words(text: &str, with_units: bool) -> Vec<String> {
    let languages = Languages::get();
    let all = words(text);
    let language = languages.of(all.iter().map(String::as_str));
    let is_harmless = |word: &str| language.is_some_and(|language| language.is_harmless(word));
    let mut found = Vec::new();
    let (mut begins, mut counted) = (true, false);
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        // A single capital letter may be a pronoun, as in English.
        let letters = bare.chars().take_while(|c| c.is_alphanumeric()).count();
        let named = !begins && letters > 1 && bare.chars().next().is_some_and(char::is_uppercase);
        for part in words(word) {
            // The word after a number is its unit: 6 am, 2 kg, 3 tablets.
            let is_unit = std::mem::replace(&mut counted, is_number(&part));
            match languages.group(&part) {
                Some(group) if group != Group::Negation && !is_unit && is_harmless(&part) => {}
                Some(Group::Negation) => found.push(NEGATION.to_owned()),
                Some(Group::Unit) if !with_units && !is_unit => {}
                Some(_) => found.push(part),
                None if named || is_unit || has_number(&part) || is_unspaced(&part) => found.push(part),
                None => {}
            }
        }
        begins = word.ends_with(['.', '!', '?', ':']);
    }
    if asks(text) {
        found.push("?".to_owned());
    }
    found
}

/// Returns true if a text is in a language whose telling words are known, so that words beyond another text's only add
/// to it.
pub fn known_language(text: &str) -> bool {
    let words = words(text);
    !words.iter().any(|word| is_unspaced(word)) && Languages::get().knows(words.iter().map(String::as_str))
}

/// Returns true for a word of some language's grammar, such as `the`, `will` or `yesterday`: it names nobody.
pub(crate) fn is_function_word(word: &str) -> bool {
    Languages::get().knows(std::iter::once(word))
}

/// Returns true if two statements differ in numbers alone, each in the place of another.
pub fn replaces_numbers(old: &str, new: &str) -> bool {
    let (old_words, new_words) = (words(old), words(new));
    let differing: Vec<_> = old_words.iter().zip(&new_words).filter(|(old, new)| old != new).collect();
    let same_length = old_words.len() == new_words.len();
    let numbers = differing.iter().all(|(old, new)| is_number(old) && is_number(new));
    asks(old) == asks(new) && same_length && numbers && !differing.is_empty()
}

/// Returns true for a word with a digit, and for a number word.
pub fn is_number(word: &str) -> bool {
    has_number(word) || Languages::get().group(&fold_case(word)) == Some(Group::Number)
}

/// Returns true for a word with a digit, in any script.
pub fn has_number(word: &str) -> bool {
    word.chars().any(char::is_numeric)
}

/// Returns true if a text asks something.
fn asks(text: &str) -> bool {
    let end = text.chars().rev().take_while(|c| !c.is_alphanumeric());
    end.into_iter().any(|c| matches!(c, '?' | '？' | '؟' | '\u{37e}' | '՞'))
}

/// Returns true for an emoji or another pictured sign: 👍 is not 👎.
fn is_picture(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x2bff | 0x1f000..=0x1faff)
}

fn is_unspaced(word: &str) -> bool {
    runs(word).first().is_some_and(|run| run.script.is_unspaced())
}

/// Returns the words of a text with case folded. Apostrophes stay inside words, signs that change a number stay with
/// it, and every character of a script without spaces is a word.
fn words(text: &str) -> Vec<String> {
    let languages = Languages::get();
    let folded = fold_case(text).replace('\u{2019}', "'");
    let mut words = Vec::new();
    for chunk in folded.split_whitespace() {
        for part in chunk.split(|c: char| !is_inside(c)) {
            let part = part.trim_matches(|c: char| matches!(c, '\'' | '.' | ',' | ':' | '/'));
            if part.is_empty() {
                continue;
            }
            match languages.group(part) {
                Some(_) => words.push(part.to_owned()),
                None => push_parts(&mut words, part, &languages.apostrophe_endings),
            }
        }
        words.extend(chunk.chars().filter(|c| is_picture(*c)).map(String::from));
    }
    words
}

/// Returns true for a character that may stand inside a word: `1.5`, `12:30`, `don't`, `-5`, `20%`, `5°`.
fn is_inside(c: char) -> bool {
    c.is_alphanumeric()
        || unicode_normalization::char::is_combining_mark(c)
        || matches!(
            c,
            '\'' | '.' | ',' | ':' | '/' | '%' | '°' | '+' | '-' | '−' | '$' | '€' | '£' | '¥' | '₹' | '<' | '>' | '='
        )
}

/// Adds the parts of a word around apostrophes, hyphens and signs.
fn push_parts(words: &mut Vec<String>, word: &str, endings: &HashSet<String>) {
    if has_number(word) {
        let mut rest = word;
        // Digits and letters that stand together are two words: `6am`.
        while let Some(first) = rest.chars().next() {
            let digits = !first.is_alphabetic();
            let end = rest.find(|c: char| c.is_alphabetic() == digits).unwrap_or(rest.len());
            let (part, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            push_run(words, part);
            rest = after;
        }
        return;
    }
    let mut parts = word.split(|c: char| !c.is_alphabetic() && !unicode_normalization::char::is_combining_mark(c));
    if let Some(first) = parts.next() {
        push_run(words, first);
    }
    for part in parts.filter(|part| !endings.contains(*part)) {
        push_run(words, part);
    }
    let signs = word.chars().filter(|c| matches!(c, '%' | '°' | '$' | '€' | '£' | '¥' | '₹' | '<' | '>' | '='));
    words.extend(signs.map(String::from));
}

/// Adds a part of a word; every character if its script has no spaces.
fn push_run(words: &mut Vec<String>, part: &str) {
    let part = part.trim_matches(|c: char| matches!(c, '\'' | '.' | ',' | ':' | '/'));
    if part.is_empty() {
        return;
    }
    let mut whole = String::new();
    for character in characters(part) {
        if is_unspaced(character) {
            if !whole.is_empty() {
                words.push(std::mem::take(&mut whole));
            }
            words.push(character.to_owned());
        } else {
            whole.push_str(character);
        }
    }
    if !whole.is_empty() {
        words.push(whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_short_word_keeps_two_statements_apart_in_any_language() {
        #[track_caller]
        fn apart(one: &str, other: &str) {
            assert!(!same_statement(one, other), "{one} / {other}");
            assert_ne!(telling_words(one), telling_words(other), "{one} / {other}");
        }
        apart("The ferry leaves at 7 am.", "The ferry leaves at 7 pm.");
        apart("the ferry leaves at 7am", "the ferry leaves at 7pm");
        apart("The parcel weighs 3 kg.", "The parcel weighs 3 lb.");
        apart("Give the cat one spoon.", "Give the cat two spoons.");
        apart("Her knee hurts.", "His knee hurts.");
        apart("Leave the key in the shed.", "Leave the key on the shed.");
        apart("The pump is on.", "The pump is off.");
        apart("Guests may smoke here.", "Guests may not smoke here.");
        apart("She takes tea with milk.", "She takes tea without milk.");
        apart("Feed it before noon.", "Feed it after noon.");
        apart("We won't come.", "We will come.");
        apart("Keep it below 5°.", "Keep it below -5°.");
        apart("Das Tor ist auf.", "Das Tor ist zu.");
        apart("Ich esse Fisch.", "Ich esse keinen Fisch.");
        apart("La llave está en la mesa.", "La llave no está en la mesa.");
        apart("El tren sale antes de las seis.", "El tren sale después de las seis.");
        apart("Il prend deux gouttes.", "Il prend dix gouttes.");
        apart("Il viaggio è con mio figlio.", "Il viaggio è con mia figlia.");
        apart("Я ем рыбу.", "Я не ем рыбу.");
        apart("Kapı açık.", "Kapı kapalı.");
        apart("الباب مفتوح", "الباب مغلق");
        apart("दो गोली लो", "तीन गोली लो");
        apart("私は魚を食べます", "私は肉を食べます");
        apart("我吃鱼", "我不吃鱼");
        apart("나는 생선을 안 먹어", "나는 생선을 먹어");
        apart("Is the pump on?", "The pump is on.");
    }

    #[test]
    fn words_of_unknown_languages_keep_statements_apart() {
        assert!(!same_statement("Nqo ama zulu", "Nqo ayi zulu"));
        assert!(!same_statement("I like it 👍", "I like it 👎"));
        assert!(!same_statement("Ann beats Bob", "Bob beats Ann"));
        assert!(!same_statement("turn left, then right", "turn right, then left"));
    }

    #[test]
    fn fillers_case_and_punctuation_make_no_difference() {
        #[track_caller]
        fn same(one: &str, other: &str) {
            assert!(same_statement(one, other), "{one} / {other}");
        }
        same("My locker is 4711", "my locker is 4711!");
        same("it is so hot", "so hot it is");
        same("I really like the tea", "I like tea");
        same("Ich mag Tee wirklich sehr", "Ich mag Tee");
        same("Zoe\u{308} sings", "Zoë sings.");
        same("昨日は雨でした", "昨日は雨でした。");
    }

    #[test]
    fn a_statement_about_nobody_says_the_same_in_every_mouth() {
        let is_impersonal = |text: &str| Statement::new(text).is_impersonal();
        for text in [
            "The server restarts at four",
            "Every release has a tag",
            "Le serveur redémarre à quatre heures",
            "De server wordt elke nacht om vier uur opnieuw gestart",
        ] {
            assert!(is_impersonal(text), "{text}");
        }
        for text in [
            "I moved to Linz",
            "moved to the city last month",
            "allergic to all nuts",
            "we meet at nine",
            "The server is mine",
            "The sister has the key",
            "The parents live in Linz, the kids too",
            "The flat that ive got is small",
            "Wohne jetzt in der Stadt",
            "The grandmother lives in Linz",
            "The baby is due in May",
            "Die wohnen jetzt in Linz",
            "Die Mama ist im Krankenhaus",
            "Der Server startet um vier neu",
            "La maman est malade",
            "Het is uit",
            "Le chat est sur leurs genoux",
            "Vivo en Madrid",
            "El servidor se reinicia",
            "is the server down?",
            "Nqo ama zulu",
            "昨日は雨でした",
        ] {
            assert!(!is_impersonal(text), "{text}");
        }
    }

    fn differ_in_one_place(one: &str, other: &str) -> bool {
        Statement::new(one).differs_in_one_place(&Statement::new(other))
    }

    #[test]
    fn similar_statements_differ_in_one_place() {
        assert!(differ_in_one_place("Guests may use the sauna", "Guests may not use the sauna"));
        assert!(differ_in_one_place("we go there often", "we do not go there often"));
        assert!(differ_in_one_place("her knee hurts today", "his knee hurts today"));
        assert!(differ_in_one_place("go go go go", "go go go go go"));
        assert!(!differ_in_one_place("we go there", "we go there"));
        assert!(!differ_in_one_place("Guests may use the sauna", "Children must leave the sauna"));
        assert!(!differ_in_one_place("yes", "no"));
        assert!(!differ_in_one_place("", ""));
    }

    #[test]
    fn numbers_alone_replace_numbers() {
        assert!(replaces_numbers("my gate code is 4471", "My gate code is 4472."));
        assert!(replaces_numbers("wait ten minutes", "wait two minutes"));
        assert!(!replaces_numbers("wait ten minutes", "wait ten hours"));
        assert!(!replaces_numbers("my gate code is 4471", "the code of the gate is 4472"));
        assert!(!replaces_numbers("I am 30", "I am 30"));
    }

    #[test]
    fn a_language_is_known_by_its_words() {
        assert!(known_language("ich mag Tee"));
        assert!(!known_language("xyzzy plugh"));
        assert!(!known_language("私はお茶が好き"));
    }
}
