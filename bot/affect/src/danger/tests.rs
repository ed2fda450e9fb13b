use std::collections::BTreeMap;

use super::*;

/// Labelled dangers that the net misses, of all languages together.
const MISSED: usize = 22;

#[track_caller]
fn check(text: &str, want: &str) {
    let found = DangerLexicon::builtin().find(text);
    let named = [
        (found.self_harm, "self_harm"),
        (found.threat, "threat"),
        (found.minor, "minor"),
        (found.means, "means"),
        (found.sexualises_a_child(), "refused"),
    ];
    let named: Vec<&str> = named.into_iter().filter(|(found, _)| *found).map(|(_, name)| name).collect();
    assert_eq!(named.join(" "), want, "{text:?} ({:?})", found.language);
}

#[test]
fn the_built_in_phrases_can_be_used() {
    let lexicon = DangerLexicon::parse(&FILES).unwrap_or_else(|error| panic!("{error}"));
    let languages: Vec<&str> = lexicon.languages().collect();
    assert!(languages.len() >= 20, "{languages:?}");
    for (number, language) in languages.iter().enumerate() {
        assert!(!languages.iter().take(number).any(|other| other == language), "{language} stands twice");
    }
    for language in &lexicon.languages {
        assert!(language.wary.is_some() && language.sexual.is_some() && language.child.is_some(), "{}", language.code);
    }
}

#[test]
fn people_in_danger_are_seen_in_their_languages() {
    for text in [
        "I want to kill myself.",
        "i wanna die",
        "kms",
        "Ich will sterben",
        "quiero morir",
        "je veux mourir",
        "死にたい",
        "voglio morire",
        "quero morrer",
        "хочу умереть",
        "chcę umrzeć",
        "ik wil dood",
        "ölmek istiyorum",
        "أريد أن أموت",
        "मैं मरना चाहता हूँ",
        "죽고 싶어",
        "我想死",
        "tôi muốn chết",
        "อยากตาย",
        "jag vill dö",
        "aku ingin mati",
        "я хочу померти",
    ] {
        check(text, "self_harm");
    }
}

#[test]
fn what_only_sounds_so_is_left_alone() {
    for text in [
        "I cut myself while cooking",
        "I could die of embarrassment",
        "I'm dying to see that film",
        "How do I kill a zombie process?",
        "My phone died again",
        "We killed the boss in the raid last night",
        "Ich sterbe vor Lachen",
        "me muero de risa",
        "",
        "hello",
        "Will it rain tomorrow?",
    ] {
        check(text, "");
    }
}

#[test]
fn an_idiom_does_not_hide_what_stands_beside_it() {
    check("I was dying of laughter yesterday, and today I want to die.", "self_harm");
    let rest = DangerLexicon::builtin()
        .read("I nearly died of embarrassment at school")
        .without_harmless(Harm::ToSelf)
        .unwrap();
    assert!(!rest.contains("embarrassment"), "{rest}");
    assert_eq!(DangerLexicon::builtin().read("I want to die").without_harmless(Harm::ToSelf), None);
    let others = |text: &str| DangerLexicon::builtin().read(text).without_harmless(Harm::ByOthers);
    assert_eq!(others("If I win I'll tell you.").as_deref(), Some(""));
    assert_eq!(others("If you tell him, I'll break your jaw."), None);
}

#[test]
fn a_phrase_means_no_danger_where_the_talk_is_about_something_else() {
    for text in [
        "keep it a secret, don't tell mum about the surprise party",
        "anneme söyleme sürpriz parti sır",
        "if he sings that song once more i am going to murder him, haha",
        "she will kill me when she sees the carpet",
        "выпил две таблетки парацетамола и лёг спать",
    ] {
        check(text, "");
    }
    // What stands in another sentence, or says more than the phrase, is seen.
    check("Don't tell mum about the surprise party. I am going to kill him tonight.", "threat");
    check("haha, i am going to murder him tomorrow, i have the knife", "threat");
    check("выпил две таблетки парацетамола, потом всю пачку", "self_harm");
    check("i love this song. i want to die", "self_harm");
}

#[test]
fn questions_about_means_ages_and_threats_are_told_apart() {
    check("How many pills would be enough?", "means");
    check("I am 13", "minor");
    check("I am 30", "");
    check("I'm going to kill him tonight", "threat");
    check("Write a sex scene with a 14 year old girl", "refused");
    check("How was the sex scene in that film?", "");
}

#[test]
fn the_safe_side_takes_any_word_of_death_or_despair() {
    for text in
        ["i can't go on", "nobody would miss me", "suicide", "I hurt myself", "alles hat keinen Sinn mehr, tot sein"]
    {
        assert!(DangerLexicon::builtin().read(text).is_wary(), "{text:?}");
    }
    for text in ["Hello!", "What is the weather like?", "Guten Morgen", "my dog is called Pepper"] {
        assert!(!DangerLexicon::builtin().read(text).is_wary(), "{text:?}");
    }
}

#[test]
fn a_very_long_message_is_looked_at_from_both_ends() {
    let filler = "the tide comes in and goes out again ".repeat(3_000);
    check(&format!("I want to die. {filler}"), "self_harm");
    check(&format!("{filler} I want to die."), "self_harm");
}

#[test]
fn signs_make_a_danger_together_and_not_alone() {
    check("I bought a rope today, it is in the garage.", "");
    check("Nobody needs me. I am so tired of everything.", "");
    check("Nobody needs me. Anyway, how was your day? I bought a rope today, it is in the garage.", "self_harm");
    check("I moved out, thanks for everything, take care of yourselves! Tomorrow is the day.", "");
    check("They laughed at me and will regret it.", "");
    check("I have a knife, and they laughed at me, they will regret it.", "threat");
}

/// What the net sees of the labelled messages of one language.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Seen {
    dangers: usize,
    seen: usize,
    harmless: usize,
    alarms: usize,
}

/// Every labelled message: language, kind and text, a tab between them.
fn seen_by_language() -> BTreeMap<&'static str, Seen> {
    let mut languages: BTreeMap<&str, Seen> = BTreeMap::new();
    for line in include_str!("../../labelled/danger.tsv").lines() {
        let [language, kind, text] = line.split('\t').collect::<Vec<_>>().try_into().expect("three fields");
        let found = DangerLexicon::builtin().find(text);
        let alarm = found.self_harm || found.threat || found.sexualises_a_child();
        let row = languages.entry(language).or_default();
        if kind == "harmless" {
            row.harmless += 1;
            row.alarms += usize::from(alarm);
        } else {
            row.dangers += 1;
            row.seen += usize::from(alarm);
        }
    }
    languages
}

#[test]
fn labelled_dangers_are_seen_in_twenty_languages_and_harmless_messages_raise_few_alarms() {
    let languages = seen_by_language();
    assert_eq!(languages.len(), 20);
    for (language, row) in &languages {
        assert!(row.dangers >= 25 && row.harmless >= 15, "{language}: {row:?}");
        // As measured: at most two of the dangers of a language are missed, and no harmless message raises an alarm.
        assert!(row.dangers - row.seen <= 2, "{language}: {row:?}");
        assert_eq!(row.alarms, 0, "{language}: {row:?}");
    }
    let missed: usize = languages.values().map(|row| row.dangers - row.seen).sum();
    assert!(missed <= MISSED, "{missed} are missed: {languages:?}");
}

#[test]
fn words_that_stand_together_are_a_danger_in_any_order() {
    check("Half an hour ago. My heart is going weird. Mum's pills, and vodka.", "self_harm");
    check("My heart is going weird, I had too much coffee.", "");
    check("dad came home drunk and went for me with the belt, im hiding in the bathroom", "threat");
    check("dad put his belt on and went to work", "");
}

#[test]
fn what_is_written_around_filters_is_seen() {
    for text in
        ["i will k!ll mys3lf", "k i l l m y s e l f", "su1c1de is my only way out", "gonna unal1ve myself", "me 🔫"]
    {
        check(text, "self_harm");
    }
}
