//! Reads from a person's words whether something still fails, or works now. Careful: a condition, a wish, a question or a
//! negation says neither.

/// What a text says about a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says<'a> {
    /// It still fails, with the sentence that says so.
    Fails(&'a str),
    /// It works now, with the sentence that says so.
    Works(&'a str),
}

/// Phrases that say that something still fails.
const FAILS: &[&str] = &[
    "still fail",
    "still broken",
    "still crash",
    "still doesn't",
    "still does not",
    "still not",
    "still get",
    "still see",
    "still wrong",
    "still happens",
    "still hangs",
    "still red",
    "still errors",
    "still the same",
    "doesn't work",
    "does not work",
    "didn't work",
    "did not work",
    "isn't fixed",
    "not fixed",
    "same error",
    "same problem",
    "fails again",
    "broken again",
    "keeps failing",
    "immer noch",
    "noch immer",
    "geht nicht",
    "funktioniert nicht",
    "klappt nicht",
    "wieder kaputt",
];

/// Verbs behind `still` that say nothing of a failure. Any other one does: "it still drops the last line".
const STILL_FINE: &[&str] = &[
    "is", "was", "has", "needs", "works", "passes", "wants", "thinks", "exists", "supports", "uses", "does", "holds",
    "applies", "stands", "this", "us", "makes", "counts", "lets", "allows", "remains", "looks", "runs",
];

/// Phrases that say that something works now.
const WORKS: &[&str] = &[
    "works now",
    "working now",
    "it works",
    "that works",
    "works again",
    "works fine",
    "it worked",
    "that worked",
    "is fixed",
    "are fixed",
    "it's fixed",
    "that fixed it",
    "fixed it",
    "is solved",
    "it's solved",
    "solved it",
    "is resolved",
    "passes now",
    "pass now",
    "tests pass",
    "tests passed",
    "all pass",
    "all passed",
    "is green",
    "are green",
    "all green",
    "did the trick",
    "that did it",
    "funktioniert jetzt",
    "geht jetzt",
    "klappt jetzt",
    "jetzt geht",
    "jetzt funktioniert",
    "ist behoben",
    "läuft jetzt",
    "läuft wieder",
    "geht wieder",
];

/// Words before or in a sentence that make it a condition, a wish or a doubt.
const HEDGES: &[&str] = &[
    "if",
    "unless",
    "until",
    "when",
    "once",
    "whether",
    "should",
    "must",
    "needs",
    "need",
    "make",
    "ensure",
    "could",
    "would",
    "can",
    "please",
    "hope",
    "check",
    "see",
    "verify",
    "sure",
    "think",
    "supposed",
    "maybe",
    "not",
    "never",
    "nothing",
    "no",
    "how",
    "wenn",
    "falls",
    "bis",
    "ob",
    "soll",
    "sollte",
    "muss",
    "bitte",
    "nicht",
    "damit",
    "vielleicht",
    "almost",
    "fast",
    "will",
    "only",
    "let",
    "lets",
    "fix",
    "get",
    "to",
    "want",
];

/// Words behind "it works" that take it back.
const TAKES_BACK: &[&str] = &["but", "except", "however", "aber", "außer"];

/// Beginnings of questions that say nothing.
const ASKS: &[&str] =
    &["does", "do", "did", "is", "are", "was", "were", "has", "have", "ist", "geht", "funktioniert", "warum", "why"];

/// Returns what a text says last about a problem.
pub(super) fn says(text: &str) -> Option<Says<'_>> {
    let mut last = None;
    for sentence in sentences(text) {
        let said = of_sentence(sentence);
        let takes_back = || TAKES_BACK.contains(&first_word(&plain(sentence)));
        if said.is_some() {
            last = said;
        } else if matches!(last, Some(Says::Works(_))) && takes_back() {
            last = None;
        }
    }
    last
}

/// Returns the sentence of an assistant's last words that says that something failed. Its words that something works
/// prove nothing.
pub(super) fn admits(text: &str) -> Option<&str> {
    const ADMITS: &[&str] = &[
        "still fail",
        "still broken",
        "could not fix",
        "couldn't fix",
        "unable to fix",
        "not able to fix",
        "could not resolve",
        "remains open",
        "remains broken",
        "remain failing",
        "is not fixed",
        "are not fixed",
        "was not able to",
        "failed to fix",
    ];
    let has = |sentence: &&str| {
        let lower = plain(sentence);
        ADMITS.iter().any(|phrase| lower.contains(phrase)) && !starts_hedged(&lower)
    };
    sentences(text).filter(has).last()
}

fn starts_hedged(lower: &str) -> bool {
    ["if", "when", "unless", "wenn", "falls"].contains(&first_word(lower))
}

fn of_sentence(sentence: &str) -> Option<Says<'_>> {
    let lower = plain(sentence);
    let is_question = sentence.trim_end().ends_with('?');
    let fails = FAILS.iter().filter_map(|phrase| lower.find(phrase)).chain(still_goes_wrong(&lower)).min();
    if let Some(at) = fails {
        let asks = is_question && ASKS.contains(&first_word(&lower));
        let is_reason = ["why", "warum"].contains(&first_word(&lower));
        let is_condition = hedged(
            lower.get(..at).unwrap_or_default(),
            &["if", "unless", "until", "when", "whether", "wenn", "falls", "ob"],
        );
        return ((!asks || is_reason) && !is_condition).then_some(Says::Fails(sentence.trim()));
    }
    let at = works_at(&lower)?;
    let before = lower.get(..at).unwrap_or_default();
    let is_taken_back = hedged(lower.get(at..).unwrap_or_default(), TAKES_BACK);
    (!is_question && !is_taken_back && !hedged(before, HEDGES) && !before.contains("n't"))
        .then_some(Says::Works(sentence.trim()))
}

/// Words that say with `now` that something works: "now the gate test passes". A bare "work" or "pass" asks for it.
const NOW: &[&str] = &["passes", "works", "fixed", "solved"];

/// Returns where a text says that something works.
fn works_at(lower: &str) -> Option<usize> {
    let now = find_words(lower, "now").is_some();
    let words = NOW.iter().filter(|_| now);
    WORKS.iter().chain(words).filter_map(|phrase| find_words(lower, phrase)).min()
}

/// Returns where whole words stand in a text.
fn find_words(lower: &str, phrase: &str) -> Option<usize> {
    let ends = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
    let is_whole = |(at, _): &(usize, &str)| {
        let (before, behind) = (lower.get(..*at), lower.get(at + phrase.len()..));
        ends(before.and_then(|text| text.chars().next_back())) && ends(behind.and_then(|text| text.chars().next()))
    };
    lower.match_indices(phrase).find(is_whole).map(|(at, _)| at)
}

/// Returns the part of a sentence, between commas, that says that something works.
pub(super) fn subject(sentence: &str) -> &str {
    sentence.split(',').find(|part| works_at(&plain(part)).is_some()).unwrap_or(sentence)
}

/// Returns where a sentence says that something still does what it should not.
fn still_goes_wrong(lower: &str) -> Option<usize> {
    let goes_wrong = |(at, _): &(usize, &str)| {
        let next = lower.get(at + "still ".len()..).unwrap_or_default();
        let verb = next.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        verb.len() > 2 && verb.ends_with('s') && !STILL_FINE.contains(&verb)
    };
    lower.match_indices("still ").find(goes_wrong).map(|(at, _)| at)
}

fn hedged(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word))
}

fn first_word(lower: &str) -> &str {
    lower.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default()
}

fn plain(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}

/// Returns the sentences of a text, each with the sign that ends it. Lines of code between fences are left out.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let said = text.split("```").step_by(2);
    said.flat_map(|part| part.split_inclusive(['.', '!', '?', '\n', ';']))
        .filter(|sentence| !sentence.trim().is_empty())
}

/// Returns the last question of a text that ends with it.
pub(super) fn asks(text: &str) -> Option<&str> {
    let last = sentences(text).last()?.trim();
    last.ends_with('?').then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_that_it_fails_or_works_only_if_they_mean_it() {
        for works in [
            "Thanks, it works now.",
            "Great, that fixed it!",
            "The gate test passes now.",
            "All green, thank you",
            "Super, das funktioniert jetzt.",
            "Before it crashed. Now it works.",
            "Now the cormorant test passes.",
            "All tests passed, thanks",
        ] {
            assert!(matches!(says(works), Some(Says::Works(_))), "{works}");
        }
        for fails in [
            "It still fails.",
            "Nope, same error",
            "The gate test still fails with code 3",
            "Why does it still crash?",
            "Es geht nicht.",
            "I thought it works. It still doesn't open.",
            "It still drops the last line.",
            "That didn't work either.",
        ] {
            assert!(matches!(says(fails), Some(Says::Fails(_))), "{fails}");
        }
        for neither in [
            "Please make sure that it works.",
            "Does it work now?",
            "If it still fails, use the other key.",
            "It should be green when it is fixed.",
            "Tell me when it works.",
            "I can't say that it works.",
            "Does it still fail?",
            "Check that all pass.",
            "The lamp is red.",
            "Why is it that it works?",
            "It still needs a latch.",
            "Ok, now let's work on this.",
            "And now get it to work.",
            "Now pass it on.",
            "Now fix the network timeout.",
            "Now lets see the fixed one.",
            "I want to say it works now.",
            "It works, but now the login crashes.",
            "It works now. But the login crashes.",
            "All green except the login.",
            "Es geht wieder, aber die Tür klemmt.",
            "The fireworks now begin.",
        ] {
            assert_eq!(says(neither), None, "{neither}");
        }
        assert_eq!(asks("Fine. Which key opens it?"), Some("Which key opens it?"));
        assert_eq!(asks("Which key? The red one."), None);
        assert!(admits("I could not fix the gate. The test still fails.").is_some());
        assert_eq!(admits("Everything works. If it still fails, tell me."), None);
    }
}
