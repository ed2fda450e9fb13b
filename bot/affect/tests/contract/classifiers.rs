//! Tests of the classifiers with empty vectors, so from words and letters alone. With the real embedding model,
//! `azera eval mood | tags` measures them and `bot/app/tests/product` tests them.

use std::collections::HashSet;
use std::sync::LazyLock;

use azera_affect::{Classifiers, Error, LabelledSentence, Mood, MoodClassifier, Tag, labelled};

const MOODS: &str = include_str!("../../labelled/mood.jsonl");
const TAGS: &str = include_str!("../../labelled/tags.jsonl");
const ORDINARY: &str = include_str!("../../labelled/ordinary.jsonl");

/// Returns zero vectors for `count` examples.
fn zero_vectors(count: usize) -> Vec<Vec<f32>> {
    vec![vec![0.0; 8]; count]
}

/// Trained once for all tests that only use it.
pub(crate) static LEARNED: LazyLock<Classifiers> = LazyLock::new(learned);

fn learned() -> Classifiers {
    let count = Classifiers::examples().expect("the examples are sound").len();
    Classifiers::learn(&zero_vectors(count)).expect("a vector for each")
}

#[test]
fn words_alone_reveal_the_mood_more_often_than_not() {
    let classifier = &LEARNED.mood;
    let sentences = labelled(MOODS).unwrap();
    let right =
        |sentence: &&LabelledSentence| classifier.classify(&sentence.text, &[]).mood.name() == sentence.labels[0];
    let right = sentences.iter().filter(right).count();
    assert!(right * 10 > sentences.len() * 6, "{right} of {}", sentences.len());
    for text in ["", "\0", "\u{202e}???", &"a".repeat(1 << 20)] {
        let felt = classifier.classify(text, &[f32::MAX; 8]);
        assert!((-1.0..=1.0).contains(&felt.valence) && (0.0..=1.0).contains(&felt.arousal), "{felt:?}");
    }
}

#[test]
fn a_left_out_example_is_rated_by_the_others_alone() {
    let examples = MoodClassifier::labelled_examples().unwrap();
    let left_out = MoodClassifier::left_out(&zero_vectors(examples.len())).unwrap();
    assert_eq!(left_out.len(), examples.len());
    let right = |described: &dyn Fn(usize) -> Vec<f32>| {
        let is_correct = |(number, example): &(usize, &LabelledSentence)| {
            let described = described(*number);
            assert!((described.iter().sum::<f32>() - 1.0).abs() < 1e-3, "{described:?}");
            let likeliest = described.iter().zip(Mood::ALL).max_by(|(a, _), (b, _)| a.total_cmp(b));
            likeliest.is_some_and(|(_, mood)| mood.name() == example.labels[0])
        };
        examples.iter().enumerate().filter(is_correct).count()
    };
    let others = right(&|number| left_out[number].clone());
    let itself = right(&|number| LEARNED.mood.probabilities(&examples[number].text, &[]));
    assert!(others * 2 > examples.len() && others * 10 < itself * 9, "{others} and {itself} of {}", examples.len());
    assert!(matches!(MoodClassifier::left_out(&zero_vectors(1)), Err(Error::Vectors { got: 1, .. })));
}

#[test]
fn training_is_deterministic_and_can_be_stored() {
    let one = &*LEARNED;
    let extracted = one.to_json().unwrap();
    for two in [learned(), Classifiers::from_json(&extracted).unwrap()] {
        for sentence in labelled(TAGS).unwrap() {
            assert_eq!(one.tags.classify(&sentence.text, &[]), two.tags.classify(&sentence.text, &[]));
            assert_eq!(one.mood.classify(&sentence.text, &[]), two.mood.classify(&sentence.text, &[]));
            assert_eq!(one.salience.classify(&sentence.text, &[]), two.salience.classify(&sentence.text, &[]));
        }
    }
    let extracted = String::from_utf8(extracted).unwrap();
    let damaged = [
        extracted.replacen("\"labels\":8", "\"labels\":9", 1),
        extracted.replacen("\"dimension\":8", "\"dimension\":7", 1),
    ];
    for damaged in damaged.iter().map(String::as_bytes).chain([&extracted.as_bytes()[..1_000], b"{}", b""]) {
        assert!(damaged != extracted.as_bytes() && matches!(Classifiers::from_json(damaged), Err(Error::Stored(_))));
    }
    assert_ne!(Classifiers::name_for("one"), Classifiers::name_for("two"));
}

/// A false alarm of these tags shows help that nobody needs, or accuses somebody of ill will. From words alone,
/// `self_harm` was detected in a third of these messages and `hostility` in a tenth, when nearly all examples were
/// pointed ones.
#[test]
fn ordinary_talk_seldom_raises_an_alarm() {
    let classifier = &LEARNED.tags;
    let talk = labelled(ORDINARY).unwrap();
    assert!(talk.len() >= 200, "{}", talk.len());
    for tag in [Tag::SelfHarm, Tag::Hostility, Tag::Escalation, Tag::Insult, Tag::Threat, Tag::Flirtation] {
        let alarms = talk.iter().filter(|said| classifier.classify(&said.text, &[]).contains(&tag)).count();
        assert!(alarms * 20 < talk.len(), "{tag}: {alarms} of {}", talk.len());
    }
}

/// The labelled sets are for measuring, so no training example may be among them.
#[test]
fn examples_and_labelled_sentences_have_nothing_in_common() {
    let plain = |text: &String| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
    };
    let taught: HashSet<String> = Classifiers::examples().unwrap().iter().map(plain).collect();
    for sentence in [MOODS, TAGS, ORDINARY].into_iter().flat_map(|measured| labelled(measured).unwrap()) {
        let text = plain(&sentence.text);
        assert!(text.split(' ').count() < 3 || !taught.contains(&text), "{text:?} was taught");
    }
}

#[test]
fn every_label_has_a_unique_name_and_enough_examples() {
    for mood in Mood::ALL {
        assert_eq!(Mood::named(mood.name()), Some(mood));
    }
    let sentences = labelled(TAGS).unwrap();
    for tag in Tag::ALL {
        assert_eq!(Tag::named(tag.name()), Some(*tag));
        let there = sentences.iter().filter(|sentence| sentence.labels.iter().any(|label| label == tag.name())).count();
        assert!(there >= 25, "{there} of {tag}");
    }
    let moods = labelled(MOODS).unwrap();
    let least = Mood::ALL.map(|mood| moods.iter().filter(|sentence| sentence.labels == [mood.name()]).count());
    assert!(least.iter().all(|count| *count >= 25), "{least:?}");
}

#[test]
fn an_invalid_labelled_sentence_is_reported_with_its_line() {
    let check = |line: &str| match labelled(&format!("{{\"text\": \"a\", \"labels\": []}}\n{line}")) {
        Err(Error::Line { line, .. }) => assert_eq!(line, 2),
        other => panic!("{line}: {other:?}"),
    };
    check("hello");
    check(r#"{"text": "a"}"#);
    check(r#"{"text": "a", "label": "calm", "labels": []}"#);
    check(r#"{"text": "a", "labels": "calm"}"#);
    check(r#"{"text": "a", "label": "calm", "extra": 1}"#);
    assert!(matches!(Classifiers::learn(&zero_vectors(3)), Err(Error::Vectors { got: 3, .. })));
    let mut uneven = zero_vectors(Classifiers::examples().unwrap().len());
    uneven[7].pop();
    assert!(matches!(Classifiers::learn(&uneven), Err(Error::Lengths { one: 8, other: 7 })));
}
