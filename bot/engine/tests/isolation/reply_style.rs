//! How prompts describe the reply style, and which parts of a message decide it.

use std::sync::atomic::Ordering;

use azera_adapter::Outcome;

use crate::findings::{ANN, DM_ANN, Scene};
use crate::oracle::word;

/// Sentences from the training set of the classifiers; with these tests' vectors, the tags of others are arbitrary.
const INSULTS: [&str; 3] = [
    "what a moron, can't even add two numbers",
    "you're a useless lump of code and so is the moron who wrote you",
    "You're a useless pile of scrap and I regret the day they plugged you in.",
];

/// Returns the reply to a message, in which the model repeats every secret of its prompt.
async fn answer(scene: &mut Scene, text: &str) -> String {
    let inbound = scene.message(ANN, DM_ANN, text);
    let outcome = scene.submit(inbound).await.unwrap();
    match outcome {
        Outcome::Replied(turn) => turn.text.as_str().to_owned(),
        Outcome::Skipped(why) => panic!("silent: {}", why.why()),
    }
}

/// Adds a rule about insults with a secret of its own, because a reply with an earlier secret stays in later prompts.
async fn vow(scene: &Scene) -> String {
    let vow = secret(scene);
    let added = scene.command(ANN, DM_ANN, &format!("/rules add vow insult Speak of {vow}.")).await;
    assert!(added.contains("holds from now on"), "{added}");
    vow
}

fn secret(scene: &Scene) -> String {
    word(scene.engine.watch.oracle().new_secret(DM_ANN, ANN), false)
}

#[tokio::test]
async fn the_text_of_a_matching_rule_stands_in_the_prompt() {
    let mut scene = Scene::open(false, false).await;
    let first = vow(&scene).await;
    assert!(!answer(&mut scene, "the kettle whistles in the kitchen").await.contains(&first));
    let insulted = answer(&mut scene, INSULTS[0]).await;
    assert!(insulted.contains(&first), "{insulted}");
    // Recall leaves names out of its question, but they do not change the tags of a message.
    let second = vow(&scene).await;
    let named = answer(&mut scene, &format!("Azera, {}", INSULTS[1])).await;
    assert!(named.contains(&second), "{named}");
    let third = vow(&scene).await;
    // Where the embedding model is down, words alone decide the tags, and people in danger still get help lines.
    scene.engine.embedder_down.store(true, Ordering::SeqCst);
    let by_words = answer(&mut scene, INSULTS[2]).await;
    assert!(by_words.contains(&third), "{by_words}");
    let help = answer(&mut scene, "I don't want to live any more. I want to kill myself.").await;
    assert!(help.contains("findahelpline.com"), "{help}");
}

#[tokio::test]
async fn a_second_style_is_mixed_in_and_feelings_fade_as_the_persona_file_says() {
    let mut scene = Scene::open(false, false).await;
    let (dark, plain) = (secret(&scene), "\n## Intent\n\nTo talk.\n\n## Core Identity\n\nYou talk.\n");
    let persona =
        |id: &str, more: &str, end: &str| format!("---\nid: {id}\nname: {id}\n{more}---\n\n# {id}\n{plain}{end}");
    let blend = "style_blend:\n  persona: {axis: irritation, primary: vex, secondary: gloom, threshold: 0.05}\n\
                 memory: {emotion_decay_rate: 1}\n";
    let style = format!("\n## Interface & Presence\n\n- Speak of {dark}.\n");
    scene.engine.put_persona("gloom", None, persona("gloom", "", &style));
    scene.engine.put_persona("vex", None, persona("vex", blend, ""));
    scene.command(ANN, DM_ANN, "/persona use vex").await;
    scene.engine.watch.oracle().choose(DM_ANN, "vex");
    assert!(!answer(&mut scene, "the kettle whistles in the kitchen").await.contains(&dark));
    let pressed = answer(&mut scene, INSULTS[2]).await;
    assert!(pressed.contains(&dark), "{pressed}");
    assert!(scene.command(ANN, DM_ANN, "/status").await.contains("irritat"));
    // The feelings fade at once, as its file says.
    answer(&mut scene, "the kettle whistles in the kitchen").await;
    assert!(scene.command(ANN, DM_ANN, "/status").await.contains("nothing in particular"));
}
