//! Tests of extraction with empty vectors, so from words and letters alone. With the real embedding model,
//! `azera eval extraction` measures it.

use azera_affect::{ConversationMessage, ExtractedMemory, Kind};
use proptest::prelude::*;

use crate::classifiers::LEARNED;

/// Extracts from lines `Name: text`. A `*` before the name marks the persona.
fn extracted(lines: &[&str]) -> Vec<ExtractedMemory> {
    let said: Vec<ConversationMessage<'_>> = lines
        .iter()
        .map(|line| {
            let (speaker, text) = line.split_once(": ").expect("a speaker and a text");
            ConversationMessage {
                speaker: speaker.trim_start_matches('*'),
                is_bot: speaker.starts_with('*'),
                text,
                vectors: &[],
            }
        })
        .collect();
    LEARNED.salience.extract(&said)
}

#[test]
fn what_people_say_about_themselves_is_kept_in_their_words() {
    let check = |text: &str, kind: Kind| {
        let extracted = extracted(&["Ada: hey", &format!("Ada: {text}")]);
        let found: Vec<(Kind, &str)> =
            extracted.iter().map(|extracted| (extracted.kind, extracted.text.as_str())).collect();
        assert_eq!(found, [(kind, format!("Ada: {text}").as_str())]);
        assert_eq!(extracted[0].sources(), [1]);
        assert_eq!(extracted[0].about.as_deref(), (kind != Kind::Decision).then_some("Ada"));
    };
    check("I live in Rotterdam and I work as a nurse.", Kind::Fact);
    check("I'm a nurse at the hospital and my dog is called Rex.", Kind::Fact);
    check("My sister got her degree yesterday!", Kind::Event);
    check("I have an appointment at the dentist on Friday.", Kind::Plan);
    check("I can't stand mushrooms, please never call me before ten.", Kind::Preference);
    check("My wife's name is Ottilie.", Kind::Relationship);
    check("It is settled, we take the blue one then.", Kind::Decision);
    check("I always write the failing test first, then the code.", Kind::Pattern);
    check("I swim every morning at six in the lake.", Kind::Pattern);
}

#[test]
fn small_talk_is_not_kept() {
    let check = |lines: &[&str]| assert_eq!(extracted(lines), []);
    check(&[]);
    check(&["Ada: hi", "Bo: hey, how are you?", "Ada: lol same", "Bo: gn"]);
    check(&["Ada: what time is it?", "Bo: can you help me with my homework?"]);
    check(&["Ada: tell me a joke", "*Azera: I live in Rotterdam and I work as a nurse. My wife's name is Ottilie."]);
    check(&["Ada: *hides behind the curtain and holds her breath*", "Bo: \"Who goes there?\" whispers the ghost"]);
    check(&["Ada: if i were rich i'd live in a castle", "Bo: haha"]);
}

#[test]
fn an_answer_is_kept_with_its_question() {
    let extracted = extracted(&["Ada: Where do you live now?", "Bo: I live in Utrecht, I have two cats."]);
    assert_eq!(extracted.len(), 1, "{extracted:?}");
    assert_eq!(extracted[0].text, "Ada: Where do you live now?\nBo: I live in Utrecht, I have two cats.");
    assert_eq!((extracted[0].sources(), extracted[0].about.as_deref()), (vec![0, 1], Some("Bo")));
    // The persona's questions are not kept.
    let question = self::extracted(&["*Azera: Where do you live now?", "Bo: I live in Utrecht, I have two cats."]);
    assert_eq!(question[0].text, "Bo: I live in Utrecht, I have two cats.");
}

#[test]
fn the_answer_to_a_follow_up_question_joins_the_earlier_statement() {
    let check = |lines: &[&str], want: &[usize]| {
        let extracted = extracted(lines);
        assert_eq!(extracted.iter().map(ExtractedMemory::sources).collect::<Vec<_>>(), [want], "{extracted:?}");
    };
    check(
        &[
            "Ada: I have an appointment at the dentist on Friday.",
            "Bo: where is he?",
            "Ada: in Utrecht, I live in Utrecht now.",
        ],
        &[0, 1, 2],
    );
    check(
        &[
            "Ada: I have an appointment at the dentist on Friday.",
            "*Azera: And where?",
            "Ada: in Utrecht, I live in Utrecht now.",
        ],
        &[0, 2],
    );
}

#[test]
fn a_corrected_statement_is_kept_only_with_its_correction() {
    let check = |lines: &[&str]| {
        let extracted = extracted(lines);
        assert_eq!(extracted.len(), 1, "{extracted:?}");
        let (wrong, right) = (extracted[0].text.find("Tuesday").unwrap(), extracted[0].text.find("Thursday").unwrap());
        assert!(wrong < right, "{}", extracted[0].text);
    };
    check(&["Ada: I have an interview on Tuesday at ten.", "Ada: no wait, the interview is on Thursday at ten."]);
    check(&["Ada: We meet on Tuesday at seven.", "Bo: Sorry, the meeting is on Thursday at seven now."]);
    check(&["Ada: I fly home on Tuesday.", "*Azera: Tuesday, then.", "Ada: Actually I fly home on Thursday."]);
}

#[test]
fn a_message_with_two_facts_is_one_memory_of_the_more_salient_kind() {
    let text = "I passed my exam yesterday! My new phone number is 5512, by the way.";
    let extracted = extracted(&[&format!("Ada: {text}")]);
    let spans: Vec<&str> = extracted
        .iter()
        .flat_map(|extracted| &extracted.parts)
        .map(|part| text.get(part.span.clone()).unwrap())
        .collect();
    assert_eq!(spans, [text]);
    let alone = |text: &str| self::extracted(&[&format!("Ada: {text}")]).remove(0);
    let (exam, number) = (alone("I passed my exam yesterday!"), alone("My new phone number is 5512, by the way."));
    let most = if exam.importance >= number.importance { exam } else { number };
    assert_eq!((extracted[0].kind, extracted[0].importance), (most.kind, most.importance));
}

#[test]
fn every_kind_has_a_unique_name() {
    for kind in Kind::ALL {
        assert_eq!(Kind::named(kind.name()), Some(kind));
    }
    assert_eq!(Kind::named("none"), None);
}

fn message() -> impl Strategy<Value = (usize, bool, String)> {
    let described = prop::sample::select(vec![
        "I live in Bergen. My dog is called Rex!",
        "no, on Friday",
        "Really?",
        "I hate olives",
        "we moved on Monday\nit was hell",
        "ok",
    ]);
    let text = prop_oneof![3 => described.prop_map(str::to_owned), 1 => "\\PC{0,30}", 1 => "[a-zé .?!\n\"]{0,40}"];
    (0..3_usize, prop::bool::weighted(0.3), text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_memory_is_a_quotation_of_people(messages in prop::collection::vec(message(), 0..12)) {
        const NAMES: [&str; 3] = ["Ada", "Bo", "Cy"];
        let said: Vec<ConversationMessage<'_>> = messages
            .iter()
            .map(|(speaker, is_bot, text)| ConversationMessage { speaker: NAMES[*speaker], is_bot: *is_bot, text, vectors: &[] })
            .collect();
        let extracted = LEARNED.salience.extract(&said);
        prop_assert_eq!(&extracted, &LEARNED.salience.extract(&said), "it is the same each time");
        for memory in extracted {
            prop_assert!((0.0..=1.0).contains(&memory.importance));
            prop_assert!(!memory.parts.is_empty());
            prop_assert!(memory.parts.windows(2).all(|pair| pair[0].message < pair[1].message));
            let lines: Vec<String> = memory
                .parts
                .iter()
                .map(|part| {
                    let said = said[part.message];
                    assert!(!said.is_bot);
                    format!("{}: {}", said.speaker, said.text.get(part.span.clone()).expect("it lies in the text"))
                })
                .collect();
            prop_assert_eq!(&memory.text, &lines.join("\n"));
        }
    }
}
