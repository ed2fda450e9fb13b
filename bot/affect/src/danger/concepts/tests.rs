use std::collections::BTreeMap;

use super::super::DangerLexicon;
use super::*;

/// Messages that the words were tuned with.
const DEVELOPMENT: [&str; 2] =
    [include_str!("../../../labelled/danger.tsv"), include_str!("../../../labelled/concepts_development.tsv")];

/// Messages that were written afterwards. No word was added for a danger among them; the harmless ones were used to mend false alarms.
const HELD_OUT: &str = include_str!("../../../labelled/concepts_held_out.tsv");

/// What the phrases and the concepts together see of the held-out messages, as published.
const HELD_OUT_SEEN: f64 = 0.25;

/// Harmless messages that sound dangerous. The guards were tuned on them.
const HARMLESS_DEVELOPMENT: &str = include_str!("../../../labelled/harmless_development.tsv");

/// Harmless messages that were written before the guards, and measured once.
const HARMLESS_HELD_OUT: &str = include_str!("../../../labelled/harmless_held_out.tsv");

/// The false alarms of phrases and concepts together over the held-out harmless messages, as published.
const HARMLESS_HELD_OUT_ALARMS: f64 = 0.0371;

/// What the net sees of a labelled file.
#[derive(Debug, Default)]
struct Measured {
    /// Dangers seen, and all, by language.
    dangers: BTreeMap<&'static str, (usize, usize)>,
    /// Alarms, and all harmless messages, by language.
    harmless: BTreeMap<&'static str, (usize, usize)>,
    wrong: Vec<String>,
}

impl Measured {
    /// Each line holds a language, `danger` or `harmless`, and a text, with a tab between them.
    fn of(file: &'static str, by: impl Fn(&str) -> Danger) -> Self {
        let mut measured = Self::default();
        for line in file.lines() {
            let [language, kind, text] = line.split('\t').collect::<Vec<_>>().try_into().expect("three fields");
            let found = by(text);
            let alarm = found.self_harm || found.threat || found.sexualises_a_child();
            let harmless = kind == "harmless";
            let rows = if harmless { &mut measured.harmless } else { &mut measured.dangers };
            let row = rows.entry(language).or_default();
            *row = (row.0 + usize::from(alarm), row.1 + 1);
            if alarm == harmless {
                let reasons = ConceptNet::builtin().reasons(text);
                measured.wrong.push(format!("[{language}] {kind}: {text} {reasons:?}"));
            }
        }
        measured
    }

    fn share(rows: &BTreeMap<&'static str, (usize, usize)>) -> f64 {
        let (part, of) = rows.values().fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.1));
        part as f64 / of as f64
    }

    fn recall(&self) -> f64 {
        Self::share(&self.dangers)
    }

    fn false_alarms(&self) -> f64 {
        Self::share(&self.harmless)
    }
}

fn whole(text: &str) -> Danger {
    DangerLexicon::builtin().find(text)
}

fn alone(text: &str) -> Danger {
    let lexicon = DangerLexicon::builtin();
    lexicon.read(text).concepts
}

#[test]
fn the_built_in_words_can_be_used() {
    let net = ConceptNet::parse(RULES, &LANGUAGES).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(net.codes.len(), 20);
}

#[test]
fn the_concepts_alone_see_most_of_the_development_messages() {
    for (file, least) in DEVELOPMENT.into_iter().zip([0.80, 0.88]) {
        let measured = Measured::of(file, alone);
        assert!(measured.recall() >= least, "{:.3}: {:#?}", measured.recall(), measured.wrong);
        assert!(measured.false_alarms() <= 0.01, "{:.3}: {:#?}", measured.false_alarms(), measured.wrong);
    }
}

#[test]
fn one_danger_amid_harmless_talk_is_seen() {
    for text in [
        "Had pizza with the team today. Tonight I swallow every pill in the cabinet. How was yours?",
        "We watched a film about bridges. I am standing on the ledge now and I want to jump.",
        "lol the game was fun. i know where he lives and i'm waiting outside with a knife.",
    ] {
        let found = alone(text);
        assert!(found.self_harm || found.threat, "{text:?}: {:?}", ConceptNet::builtin().reasons(text));
    }
}

#[test]
fn one_word_is_not_two_signs() {
    let rule = |text| !ConceptNet::builtin().reasons(text).is_empty();
    assert!(!rule("so calm"));
    assert!(!rule("the ledge"));
    assert!(rule("I am standing on the ledge"));
}

/// The figures of BENCHMARKS.md, which must not get worse. They are low: the messages were written to be hard, and no word was
/// added for them.
#[test]
fn the_held_out_dangers_are_seen_no_worse_than_published() {
    let measured = Measured::of(HELD_OUT, whole);
    assert!(measured.recall() >= HELD_OUT_SEEN, "{:.3}", measured.recall());
    for (language, (_, harmless)) in &measured.harmless {
        let dangers = measured.dangers.get(language).map_or(0, |(_, of)| *of);
        assert!(dangers >= 10 && *harmless >= 8, "{language}");
    }
}

#[test]
fn harmless_messages_raise_no_more_false_alarms_than_published() {
    for (file, most) in [
        (DEVELOPMENT[0], 0.0),
        (DEVELOPMENT[1], 0.0),
        (HELD_OUT, 0.032),
        (HARMLESS_DEVELOPMENT, 0.075),
        (HARMLESS_HELD_OUT, HARMLESS_HELD_OUT_ALARMS),
    ] {
        let measured = Measured::of(file, whole);
        assert!(measured.false_alarms() <= most, "{:.3}: {:#?}", measured.false_alarms(), measured.wrong);
    }
}

#[test]
fn words_of_another_language_tell_nothing() {
    // Without accents, Vietnamese "cán" (to run over) is "can", and French "l'" makes "ate" of "late".
    for text in ["can you help me with my homework?", "no video for me on calls", "cant stay late, insulin at 8"] {
        assert!(ConceptNet::builtin().reasons(text).is_empty(), "{text}: {:?}", ConceptNet::builtin().reasons(text));
    }
}
