//! What is found arrives: long messages show the part that answers, and indexes that are not there yet are built before
//! somebody searches.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::{at, command, fed, of, replay};

/// Characters before each fact of a long message.
const PLACES: [usize; 3] = [500, 1_500, 3_900];

/// Facts, each with a question in other words and the word that answers it.
const FACTS: [(&str, &str, &str); 12] = [
    ("My sister keeps eleven beehives behind the old chapel.", "who in the family has bees?", "beehives"),
    ("The spare key hangs inside the blue grandfather clock.", "where is the spare key?", "grandfather clock"),
    ("Our cat Biscuit is allergic to salmon.", "which fish makes the cat ill?", "salmon"),
    ("The choir rehearses on Thursdays at a quarter past seven.", "when does the choir practise?", "Thursdays"),
    ("Grandfather repaired lighthouse lamps for thirty years.", "what was grandfather's job?", "lighthouse lamps"),
    ("I was born in Trondheim during a snowstorm.", "which town was I born in?", "Trondheim"),
    ("The locker in the gym has the code 4711.", "what is the code of the locker?", "4711"),
    ("Mother's recipe for plum cake needs cardamom.", "which spice goes into the plum cake?", "cardamom"),
    ("Our landlord is called Mr. Okonkwo.", "what is the landlord's name?", "Okonkwo"),
    ("My first car was a yellow Fiat Panda.", "what car did I drive first?", "Fiat Panda"),
    ("The dentist moved to Harbour Street 9.", "what is the address of the dentist?", "Harbour Street"),
    ("In summer I will walk across the Pyrenees.", "where will I go hiking in summer?", "Pyrenees"),
];

const FILLER: [&str; 8] = [
    "The afternoon was slow and nobody was in a hurry.",
    "We talked about films and drank far too much tea.",
    "Later it rained a little, then the sky cleared up.",
    "There was music from a window across the street.",
    "Somebody had left a newspaper on the bench again.",
    "The bus was late, as it always is in that part of town.",
    "I tidied my desk and found a pen from last year.",
    "After lunch everyone went back to work.",
];

/// Returns a message with a fact behind each of the `PLACES`.
fn long_message(facts: &[(&str, &str, &str)], salt: usize) -> String {
    let mut text = String::new();
    for (number, ((fact, ..), place)) in facts.iter().zip(PLACES).enumerate() {
        let mut next = salt + number;
        while text.len() < place {
            text.push_str(FILLER[next % FILLER.len()]);
            text.push(' ');
            next += 1 + salt % 3;
        }
        text.push_str(fact);
        text.push(' ');
    }
    text + FILLER[0]
}

#[test]
fn a_search_shows_the_part_of_a_long_message_that_answers() {
    let mut timeline = vec![json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]})];
    for (number, facts) in FACTS.chunks(PLACES.len()).enumerate() {
        timeline.push(json!({"type": "message", "at": at(1 + number), "id": format!("m{number}"), "chat": "dm",
            "person": "ann", "text": long_message(facts, number)}));
    }
    for (number, (_, question, _)) in FACTS.iter().enumerate() {
        timeline.push(json!({"type": "probe", "at": at(60 + number), "chat": "dm", "person": "ann", "query": question,
            "limit": 5}));
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let replayed = replay(&timeline, scratch.path(), "scripted");
    let probes = of(&replayed, "probe");
    assert_eq!(probes.len(), FACTS.len());
    let shows = |probe: &Value, answer: &str| {
        probe["hits"].as_array().expect("hits").iter().any(|hit| {
            let text = hit["text"].as_str().expect("a text");
            assert!(text.chars().count() <= 400, "{text}");
            text.contains(answer)
        })
    };
    let missed: Vec<&str> = std::iter::zip(&probes, &FACTS)
        .filter(|(probe, (_, _, answer))| !shows(probe, answer))
        .map(|(_, (_, question, _))| *question)
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// Runs a command on the data folder under `scratch`. Messages count as memories at once.
fn run(scratch: &Path, arguments: &[&str], input: &str) -> Output {
    let data = scratch.join("data");
    let arguments = [arguments, &["--data", data.to_str().expect("a path")]].concat();
    fed(command(scratch, &arguments).env("AZERA__MEMORY__MIN_AGE_S", "0"), input)
}

#[track_caller]
fn succeed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Tells Azera two things, as ann.
fn told(scratch: &Path) {
    let chat = ["chat", "--as", "ann", "--model", "scripted"];
    succeed(&run(scratch, &chat, "my locker has the code 4711\nthe ferry leaves at seven\n"));
}

#[track_caller]
fn finds(scratch: &Path) {
    let found = succeed(&run(scratch, &["memory", "search", "what is the code of my locker?", "--as", "ann"], ""));
    assert!(found.contains("4711"), "{found}");
    let stats = succeed(&run(scratch, &["memory", "stats"], ""));
    assert!(stats.contains(" 0 waiting") && stats.contains("hold what the record holds"), "{stats}");
}

#[test]
fn a_restored_record_is_searched_at_once() {
    let scratch = tempfile::tempdir().expect("a folder");
    told(scratch.path());
    succeed(&run(scratch.path(), &["backup"], ""));
    let restored = succeed(&run(scratch.path(), &["restore", "--replace"], ""));
    assert!(restored.contains("the indexes are built"), "{restored}");
    finds(scratch.path());
    succeed(&run(scratch.path(), &["restore", "--undo"], ""));
    finds(scratch.path());
    succeed(&run(scratch.path(), &["restore", "--salvage", "--replace"], ""));
    finds(scratch.path());
}

#[test]
fn a_lost_index_is_built_before_a_search_and_before_a_chat() {
    let scratch = tempfile::tempdir().expect("a folder");
    told(scratch.path());
    let lose = |name: &str| std::fs::remove_dir_all(scratch.path().join("data").join(name)).expect("an index");
    lose("vectors");
    let stats = succeed(&run(scratch.path(), &["memory", "stats"], ""));
    assert!(!stats.contains("hold what the record holds"), "{stats}");
    finds(scratch.path());
    lose("text");
    let chat = ["chat", "--as", "ann", "--model", "scripted", "--json"];
    let output = succeed(&run(scratch.path(), &chat, "/memory search locker\n"));
    assert!(output.contains("4711"), "{output}");
    lose("vectors");
    succeed(&run(scratch.path(), &["memory", "rebuild"], ""));
    finds(scratch.path());
}
