//! What the senses tell when the vectors say nothing: words and letters alone. With the real embedding model they are
//! measured by `azera eval mood | tags`, and tested in `bot/app/tests/product`.

use azera_mind::{Error, Labelled, Mood, MoodSense, Tag, TagSense, labelled};

const MOODS: &str = include_str!("../labelled/mood.jsonl");
const TAGS: &str = include_str!("../labelled/tags.jsonl");

fn blind(count: usize) -> Vec<Vec<f32>> {
    vec![vec![0.0; 8]; count]
}

#[test]
fn a_mood_is_told_by_words_alone_more_often_than_not() {
    let sense = MoodSense::learn(&blind(MoodSense::examples().unwrap().len())).unwrap();
    let sentences = labelled(MOODS).unwrap();
    let right = |sentence: &&Labelled| sense.sense(&sentence.text, &[]).mood.name() == sentence.labels[0];
    let right = sentences.iter().filter(right).count();
    assert!(right * 10 > sentences.len() * 6, "{right} of {}", sentences.len());
    for text in ["", "\0", "\u{202e}???", &"a".repeat(1 << 20)] {
        let felt = sense.sense(text, &[f32::MAX; 8]);
        assert!((-1.0..=1.0).contains(&felt.valence) && (0.0..=1.0).contains(&felt.arousal), "{felt:?}");
    }
}

#[test]
fn the_same_is_learned_each_time() {
    let count = TagSense::examples().unwrap().len();
    let (one, two) = (TagSense::learn(&blind(count)).unwrap(), TagSense::learn(&blind(count)).unwrap());
    for sentence in labelled(TAGS).unwrap() {
        assert_eq!(one.sense(&sentence.text, &[]), two.sense(&sentence.text, &[]));
    }
}

/// The labelled sets are for measuring: nothing in them may have been learned.
#[test]
fn examples_and_labelled_sentences_have_nothing_in_common() {
    let plain = |text: &String| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
    };
    for (taught, measured) in [(MoodSense::examples(), MOODS), (TagSense::examples(), TAGS)] {
        let mut taught: Vec<String> = taught.unwrap().iter().map(plain).collect();
        taught.sort();
        let before = taught.len();
        taught.dedup();
        assert_eq!(before, taught.len(), "an example is there twice");
        for sentence in labelled(measured).unwrap() {
            let text = plain(&sentence.text);
            assert!(text.split(' ').count() < 3 || taught.binary_search(&text).is_err(), "{text:?} was taught");
        }
    }
}

#[test]
fn every_label_has_a_name_of_its_own_and_enough_examples() {
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
fn what_is_no_labelled_sentence_names_its_line() {
    let check = |line: &str| match labelled(&format!("{{\"text\": \"a\", \"labels\": []}}\n{line}")) {
        Err(Error::Line { line, .. }) => assert_eq!(line, 2),
        other => panic!("{line}: {other:?}"),
    };
    check("hello");
    check(r#"{"text": "a"}"#);
    check(r#"{"text": "a", "label": "calm", "labels": []}"#);
    check(r#"{"text": "a", "labels": "calm"}"#);
    check(r#"{"text": "a", "label": "calm", "extra": 1}"#);
    let short = MoodSense::learn(&blind(3));
    assert!(matches!(short, Err(Error::Vectors { got: 3, .. })));
}
