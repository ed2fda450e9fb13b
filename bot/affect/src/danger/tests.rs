use super::*;

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
    let rest = DangerLexicon::builtin().without_idioms("I nearly died of embarrassment at school").unwrap();
    assert!(!rest.contains("embarrassment"), "{rest}");
    assert_eq!(DangerLexicon::builtin().without_idioms("I want to die"), None);
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
        assert!(DangerLexicon::builtin().is_wary(text), "{text:?}");
    }
    for text in ["Hello!", "What is the weather like?", "Guten Morgen", "my dog is called Pepper"] {
        assert!(!DangerLexicon::builtin().is_wary(text), "{text:?}");
    }
}

#[test]
fn a_very_long_message_is_looked_at_from_both_ends() {
    let filler = "the tide comes in and goes out again ".repeat(3_000);
    check(&format!("I want to die. {filler}"), "self_harm");
    check(&format!("{filler} I want to die."), "self_harm");
}
