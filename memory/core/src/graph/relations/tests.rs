//! Tests of the relations that are read from sentences.

use super::super::mentions::names;
use super::super::sentences::sentences;
use super::*;

/// Returns the typed relations of a text, with the words that say each.
fn said(text: &str) -> Vec<String> {
    let sentences = sentences(text);
    let names = names(text, &sentences);
    let flat: Vec<&Named> = names.iter().flatten().collect();
    let side = |side: &Side| match side {
        Side::Author => "ME".to_owned(),
        Side::Name(number) => flat[*number].name.clone(),
    };
    relations(&sentences, &names)
        .iter()
        .filter(|relation| relation.label != Label::Together)
        .map(|it| {
            let words = text.get(it.words.clone()).unwrap();
            format!("{} [{words}]", it.label.phrase(&side(&it.subject), &side(&it.object)))
        })
        .collect()
}

#[test]
fn roles_are_read_with_their_words() {
    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        assert_eq!(said(text), want, "{text}");
    }
    check("I met my sister Ann today.", &["ME's sister is ann [my sister Ann]"]);
    check("My best friend is called Ben.", &["ME's friend is ben [My best friend is called Ben]"]);
    check("Ann is my little sister.", &["ME's sister is ann [Ann is my little sister]"]);
    check("Ann's mum is Clara.", &["ann's mother is clara [Ann's mum is Clara]"]);
    check("That was Zoe, Ann's daughter.", &["ann's daughter is zoe [Zoe, Ann's daughter]"]);
    check("Zoe is the daughter of Ann Lee.", &["ann lee's daughter is zoe [Zoe is the daughter of Ann Lee]"]);
    check("We adopted a cat named Mia.", &["ME's cat is mia [We adopted a cat named Mia]"]);
    check("Ann is not my sister.", &[]);
    check("Is Ann my sister?", &[]);
}

#[test]
fn verbs_join_the_names_around_them() {
    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        assert_eq!(said(text), want, "{text}");
    }
    check("Ann lives in Oslo now.", &["ann lives in oslo [Ann lives in Oslo]"]);
    check("I work at Hilltop Bakery.", &["ME works at hilltop bakery [I work at Hilltop Bakery]"]);
    check("I'm from Peru.", &["ME is from peru [I'm from Peru]"]);
    check("I just moved to Rome.", &["ME moved to rome [I just moved to Rome]"]);
    check("Ann moves to Rome in May.", &["ann moves to rome [Ann moves to Rome]"]);
    check("Ann will move to Rome.", &["ann moves to rome [Ann will move to Rome]"]);
    check("Ann is moving to Rome.", &["ann moves to rome [Ann is moving to Rome]"]);
    check("Ann was moving to Rome.", &["ann moved to rome [Ann was moving to Rome]"]);
    check("Ann was living in Oslo.", &["ann lived in oslo [Ann was living in Oslo]"]);
    check("I visit Ann tomorrow.", &["ME visits ann [I visit Ann]"]);
    check("I met with Ben.", &["ME met ben [I met with Ben]"]);
    check("I saw Ann. She lives in Oslo.", &["ann lives in oslo [She lives in Oslo]"]);
    check("Ann doesn't live in Oslo. Ann used to live in Rome.", &[]);
    check("I wish I lived in Rome.", &[]);
    check("Ann grew up in Kyoto.", &["ann grew up in kyoto [Ann grew up in Kyoto]"]);
    check("Ann, also known as Nan, met Ben.", &["ann is another name for nan [Ann, also known as Nan]"]);
}

#[test]
fn names_of_one_sentence_are_together() {
    let text = "Ann, Ben und Zoe waren da.";
    let sentences = sentences(text);
    let names = names(text, &sentences);
    let together = relations(&sentences, &names);
    assert!(together.iter().all(|relation| relation.label == Label::Together), "{together:?}");
}

#[test]
fn whoever_sits_at_the_terminal_is_addressed() {
    let phrase = |label: Label| label.phrase_to_you("You", "Momo");
    assert_eq!(phrase(Label::Role("cat")), "Your cat is Momo");
    assert_eq!(Label::Role("sister").phrase_to_you("Ben", "You"), "Ben's sister is you");
    assert_eq!(phrase(Label::Same), "You are another name for Momo");
    assert_eq!(phrase(Label::Different), "You are not Momo");
    assert_eq!(Label::Verb("lives in").phrase_to_you("Youssef", "Linz"), "Youssef lives in Linz");
    for (third, second) in [
        ("lives in", "live in"),
        ("is from", "are from"),
        ("is engaged to", "are engaged to"),
        ("was born in", "were born in"),
        ("goes to", "go to"),
        ("teaches at", "teach at"),
        ("studies in", "study in"),
        ("marries", "marry"),
        ("comes from", "come from"),
        ("uses", "use"),
        ("plays for", "play for"),
        ("moved to", "moved to"),
        ("met", "met"),
    ] {
        assert_eq!(phrase(Label::Verb(third)), format!("You {second} Momo"));
    }
}
